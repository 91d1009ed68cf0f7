//! Every option of `qconf`, and what is behind it.

mod rows;

use super::entries::EntryAct;
use super::quotas::Act;
use super::sharetree::TreeAction;
use crate::args::{CommandDef, Operands, OptionDef};
use proto::object::ObjectKind;
use proto::wire::client::AttributeEdit;
use rows::{OptionRow, ROWS};

/// What an option does.
#[derive(Clone, Copy, Debug)]
pub enum Verb {
    /// Shows the names of all objects of a kind, or says on stderr that there are none.
    List {
        /// The kind.
        kind: ObjectKind,
        /// What is said.
        nothing: &'static str,
    },
    /// Shows objects by name.
    Show(ObjectKind),
    /// `-shgrp_tree`
    GroupTree,
    /// `-shgrp_resolved`
    GroupHosts,
    /// `-sds`
    Detached,
    /// `-sobjl`
    Search,
    /// Opens a new object in the editor.
    Add(ObjectKind),
    /// Opens an object in the editor.
    Modify(ObjectKind),
    /// Adds objects from files.
    AddFile(ObjectKind),
    /// Changes objects to what files say.
    ModifyFile(ObjectKind),
    /// Adds names to a list.
    AddNames(ObjectKind),
    /// `-au`
    Enlist,
    /// `-du`
    Strike,
    /// Deletes objects, or names of a list.
    Delete(ObjectKind),
    /// Resource quota sets.
    Quotas(Act),
    /// Single attributes of the complex.
    Entries(EntryAct),
    /// `-cq`
    Clean,
    /// Edits one attribute of objects.
    Attribute(AttributeEdit),
    /// Edits attributes of objects as a file says.
    AttributeFile(AttributeEdit),
    /// Shows or changes the share tree or its nodes.
    Tree(TreeAction),
    /// `-purge`
    Purge,
    /// `-sss`
    SchedulerHost,
    /// `-scatl`
    ListCategories,
    /// `-scat`
    ShowCategories,
    /// `-secl`
    EventClients,
    /// `-kec`
    KillEventClients,
    /// `-tsm`
    TriggerScheduling,
    /// `-clearusage`
    ClearUsage,
    /// `-km`
    ShutdownMaster,
    /// `-ke`, `-kej`
    ShutdownAgents {
        /// Whether jobs end first.
        kill_jobs: bool,
    },
    /// `-export`
    Export,
    /// `-import`
    Import,
    /// Changes how the other options work, and does nothing in its turn.
    Setting,
}

impl Verb {
    /// Whether `--dry-run` shows what it would change.
    pub fn can_be_tried(self) -> bool {
        let quotas = matches!(self, Verb::Quotas(Act::AddFile | Act::ModifyFile));
        quotas
            || matches!(
                self,
                Verb::Import | Verb::AddFile(_) | Verb::ModifyFile(_) | Verb::Setting
            )
    }
}

/// The option that tries changes and makes none.
pub const DRY_RUN: &str = "--dry-run";

/// The command line of `qconf`.
pub const QCONF: CommandDef = CommandDef {
    name: "qconf",
    summary: "Shows and changes the configuration of the cell. Lists are separated by commas; editing options open $EDITOR (vi).",
    operand_placeholder: "",
    operands: Operands::None,
    options: &OPTIONS,
    exit_codes: "0 done or shown; 1 something was refused, or there is none; 75 the outcome of a change is unknown",
};

/// What the option of that name does.
///
/// # Panics
/// If there is no such option: the parser has refused it.
pub fn verb(name: &str) -> Verb {
    let row = ROWS.iter().find(|OptionRow(option, _)| option.name == name);
    row.expect("the parser knows the options of this very table").1
}

/// The options without their verbs, for the parser.
const OPTIONS: [OptionDef; ROWS.len()] = {
    let mut options = [ROWS[0].0; ROWS.len()];
    let mut at = 0;
    while at < ROWS.len() {
        options[at] = ROWS[at].0;
        at += 1;
    }
    options
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Support;
    use std::collections::BTreeSet;

    /// The options that `qconf -help` of 8.1.9 lists, in its order.
    const LISTED: &str = "\
        -aattr -Aattr -acal -Acal -Ackpt -aconf -Aconf -ae -Ae -ah -ahgrp -Ahgrp -arqs -Arqs -am -ao -ap -aprj \
        -Aprj -aq -Aq -ar -as -astree -Astree -au -Au -auser -Auser -ckpt -clear -clearusage -cq -dattr -Dattr \
        -dcal -dckpt -dconf -de -display -dh -dhgrp -dl -drqs -dm -do -dp -dprj -dq -ds -dstnode -dstree -du \
        -duser -help -ke -kej -km -ks -kec -kt -Mattr -mc -Mc -mcal -Mcal -mckpt -Mckpt -mconf -Mconf -me -Me \
        -mhgrp -Mhgrp -mrqs -Mrqs -mp -Mp -mprj -Mprj -mq -Mq -msconf -Msconf -mstnode -mstree -Mstree -mu -Mu \
        -muser -Muser -purge -R -rattr -Rattr -rsstnode -sc -scal -scall -sckpt -sckptl -sconf -sconfl -sds -se \
        -secl -sel -sh -shgrp -shgrp_tree -shgrp_resolved -shgrpl -sm -so -sobjl -sp -spl -sprj -sprjl -sq -sql \
        -srqsl -ss -ssconf -sstnode -sst -sstree -su -sul -suser -suserl -tc -tsm -verbose -w";

    #[test]
    fn every_option_that_8_1_9_lists_is_in_the_table_once() {
        let names: Vec<&str> = ROWS.iter().map(|OptionRow(option, _)| option.name).collect();
        let unique: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(unique.len(), names.len());
        let missing: Vec<&str> = LISTED
            .split_whitespace()
            .filter(|option| !unique.contains(option))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn the_help_marks_what_is_not_supported_and_begins_with_product_and_version() {
        let help = QCONF.help();
        assert!(help.starts_with("Gridwright "));
        for OptionRow(option, _) in ROWS {
            let head = format!("[{}", option.name);
            let line = help
                .lines()
                .find(|line| line.trim_start().split([' ', ']']).next() == Some(&head))
                .unwrap();
            assert_eq!(
                line.ends_with("(not supported yet)"),
                option.support != Support::Yes,
                "{line}"
            );
        }
    }
}
