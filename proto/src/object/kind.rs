//! The kinds of objects. A row for each says what code that is about any kind must know of it.

use super::Fields;
use crate::calendar::Calendar;
use crate::checkpoint::Checkpoint;
use crate::complex::Complex;
use crate::conf::ClusterConf;
use crate::diagnostic::Diagnostic;
use crate::host::ExecHost;
use crate::hostgroup::HostGroup;
use crate::pe::ParallelEnvironment;
use crate::policy::SchedulerConf;
use crate::project::{Project, User};
use crate::queue::ClusterQueue;
use crate::quota::QuotaSet;
use crate::sharetree::ShareTree;
use crate::userset::UserSet;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kinds of objects that `qconf` administers in Grid Engine 8.1.9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ObjectKind {
    /// All resource attributes together: the complex (`-sc`), a table of its own form.
    ///
    /// It travels and is stored as one field for each attribute: the key is its name, the value its
    /// other seven columns, separated by single blanks. It is only replaced as a whole.
    ComplexTable,
    /// An execution host (`-se`), or the pseudo host `global`.
    ExecHost,
    /// A cluster queue (`-sq`).
    Queue,
    /// A host group (`-shgrp`).
    HostGroup,
    /// A parallel environment (`-sp`).
    Pe,
    /// The cluster configuration, global or of one host (`-sconf`).
    ClusterConf,
    /// The scheduler configuration (`-ssconf`).
    SchedulerConf,
    /// The hosts from which managers may administer (`-sh`).
    AdminHosts,
    /// The hosts from which users may submit (`-ss`).
    SubmitHosts,
    /// The managers (`-sm`).
    Managers,
    /// The operators (`-so`).
    Operators,
    /// A checkpointing environment (`-sckpt`).
    Checkpoint,
    /// A calendar (`-scal`).
    Calendar,
    /// An access list or department (`-su`).
    UserSet,
    /// A project (`-sprj`).
    Project,
    /// A user with shares (`-suser`).
    User,
    /// A resource quota set (`-srqs`), which has a form of its own.
    ResourceQuota,
    /// The share tree (`-sstree`), which has a form of its own.
    ShareTree,
}

/// A typed object that is read from attributes and written as attributes. Printing what was read
/// changes nothing.
pub trait Object: Sized {
    /// What `qconf -a…` opens; an empty name stands for the one that 8.1.9 shows.
    fn template(name: &str) -> Self;

    /// Reads an object. `name` counts where the attributes do not hold the name.
    ///
    /// # Errors
    ///
    /// One refusal for each attribute that is unknown, missing or has a value it cannot have.
    fn read(name: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>>;

    /// The attributes in the order of `qconf -s…`.
    fn write(&self) -> Fields;
}

/// What an object of a kind consists of, and where its name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Attributes; the first is the name.
    Named,
    /// Attributes; the name is that of a host, and no part of them.
    OfHost,
    /// Attributes of the one object of its kind.
    Once,
    /// A name in a list and nothing else.
    Bare,
}

/// An attribute and its meaning.
type Meaning = (&'static str, &'static str);

/// What is known of a kind.
struct KindRow {
    words: &'static str,
    listed_by: &'static str,
    attr_name: Option<&'static str>,
    form: Form,
    keys: &'static [&'static str],
    later_keys: &'static [&'static str],
    meanings: &'static [&'static [Meaning]],
    value_column: Option<usize>,
    template: Option<fn(&str) -> Fields>,
    check: fn(&str, &Fields) -> Result<Fields, Vec<Diagnostic>>,
}

impl KindRow {
    /// A kind with a typed object.
    const fn typed<T: Object>(words: &'static str, listed_by: &'static str, form: Form) -> KindRow {
        let template = Some(template::<T> as fn(&str) -> Fields);
        KindRow {
            template,
            check: settled::<T>,
            ..KindRow::bare(words, listed_by, form)
        }
    }

    /// A list of names.
    const fn names(words: &'static str, listed_by: &'static str) -> KindRow {
        KindRow::bare(words, listed_by, Form::Bare)
    }

    /// A kind of which nothing else is known.
    const fn bare(words: &'static str, listed_by: &'static str, form: Form) -> KindRow {
        let check = |_: &str, _: &Fields| Ok(Fields::new());
        KindRow {
            words,
            listed_by,
            attr_name: None,
            form,
            keys: &[],
            later_keys: &[],
            meanings: &[],
            value_column: None,
            template: None,
            check,
        }
    }

    /// The name of the kind in `qconf -aattr` and its relatives.
    const fn attr(self, name: &'static str) -> KindRow {
        KindRow {
            attr_name: Some(name),
            ..self
        }
    }

    /// The attributes in the order in which they are shown.
    const fn keys(self, keys: &'static [&'static str]) -> KindRow {
        KindRow { keys, ..self }
    }

    /// Attributes that 8.1.9 does not have, which are shown only where they are not at their
    /// default.
    const fn later_keys(self, later_keys: &'static [&'static str]) -> KindRow {
        KindRow { later_keys, ..self }
    }

    /// What the attributes mean.
    const fn meanings(self, meanings: &'static [&'static [Meaning]]) -> KindRow {
        KindRow { meanings, ..self }
    }

    /// The column at which values start, counted from 0 (measured on 8.1.9).
    const fn column(self, column: usize) -> KindRow {
        KindRow {
            value_column: Some(column),
            ..self
        }
    }
}

fn template<T: Object>(name: &str) -> Fields {
    T::template(name).write()
}

/// Reads an object and writes it again.
fn settled<T: Object>(name: &str, fields: &Fields) -> Result<Fields, Vec<Diagnostic>> {
    T::read(name, fields).map(|object| object.write())
}

const COMPLEX: KindRow = KindRow::typed::<Complex>("complex", "-sc", Form::Once);
const EXEC_HOST: KindRow = KindRow::typed::<ExecHost>("exec host", "-sel", Form::Named)
    .attr("exechost")
    .keys(crate::host::KEYS)
    .meanings(&[crate::host::MEANINGS])
    .column(22);
const QUEUE: KindRow = KindRow::typed::<ClusterQueue>("cluster queue", "-sql", Form::Named)
    .attr("queue")
    .keys(crate::queue::KEYS)
    .meanings(&[crate::queue::MEANINGS])
    .column(22);
const HOST_GROUP: KindRow = KindRow::typed::<HostGroup>("host group", "-shgrpl", Form::Named)
    .attr("hostgroup")
    .keys(crate::hostgroup::KEYS)
    .meanings(&[crate::hostgroup::MEANINGS]);
const PE: KindRow = KindRow::typed::<ParallelEnvironment>("parallel environment", "-spl", Form::Named)
    .attr("pe")
    .keys(crate::pe::KEYS)
    .meanings(&[crate::pe::MEANINGS, crate::pe::LATER_MEANINGS])
    .later_keys(crate::pe::LATER_KEYS)
    .column(19);
const CLUSTER_CONF: KindRow = KindRow::typed::<ClusterConf>("cluster configuration", "-sconfl", Form::OfHost)
    .keys(crate::conf::KEYS)
    .meanings(&[crate::conf::MEANINGS])
    .column(29);
const SCHEDULER_CONF: KindRow = KindRow::typed::<SchedulerConf>("scheduler configuration", "-ssconf", Form::Once)
    .keys(crate::policy::KEYS)
    .meanings(&[crate::policy::MEANINGS])
    .column(34);
const ADMIN_HOSTS: KindRow = KindRow::names("administrative host list", "-sh");
const SUBMIT_HOSTS: KindRow = KindRow::names("submit host list", "-ss");
const MANAGERS: KindRow = KindRow::names("manager list", "-sm");
const OPERATORS: KindRow = KindRow::names("operator list", "-so");

const CALENDAR: KindRow = KindRow::typed::<Calendar>("calendar", "-scall", Form::Named)
    .attr("calendar")
    .keys(crate::calendar::KEYS)
    .meanings(&[crate::calendar::MEANINGS])
    .column(17);

const CHECKPOINT: KindRow = KindRow::typed::<Checkpoint>("checkpoint interface", "-sckptl", Form::Named)
    .attr("ckpt")
    .keys(crate::checkpoint::KEYS)
    .meanings(&[crate::checkpoint::MEANINGS])
    .column(19);
const USER_SET: KindRow = KindRow::typed::<UserSet>("access list", "-sul", Form::Named)
    .attr("userset")
    .keys(crate::userset::KEYS)
    .meanings(&[crate::userset::MEANINGS])
    .column(8);
const PROJECT: KindRow = KindRow::typed::<Project>("project", "-sprjl", Form::Named)
    .attr("project")
    .keys(crate::project::PROJECT_KEYS)
    .meanings(&[crate::project::PROJECT_MEANINGS]);
const USER: KindRow = KindRow::typed::<User>("user", "-suserl", Form::Named)
    .attr("user")
    .keys(crate::project::USER_KEYS)
    .meanings(&[crate::project::USER_MEANINGS]);
const RESOURCE_QUOTA: KindRow = KindRow::typed::<QuotaSet>("resource quota set", "-srqsl", Form::Named)
    .attr("resource_quota")
    .keys(crate::quota::KEYS)
    .meanings(&[crate::quota::MEANINGS]);
const SHARE_TREE: KindRow =
    KindRow::typed::<ShareTree>("share tree", "-sstree", Form::Once).meanings(&[crate::sharetree::MEANINGS]);

impl ObjectKind {
    /// Every kind, in the order of the declaration.
    pub const ALL: &[ObjectKind] = &[
        ObjectKind::ComplexTable,
        ObjectKind::ExecHost,
        ObjectKind::Queue,
        ObjectKind::HostGroup,
        ObjectKind::Pe,
        ObjectKind::ClusterConf,
        ObjectKind::SchedulerConf,
        ObjectKind::AdminHosts,
        ObjectKind::SubmitHosts,
        ObjectKind::Managers,
        ObjectKind::Operators,
        ObjectKind::Checkpoint,
        ObjectKind::Calendar,
        ObjectKind::UserSet,
        ObjectKind::Project,
        ObjectKind::User,
        ObjectKind::ResourceQuota,
        ObjectKind::ShareTree,
    ];

    const fn row(self) -> &'static KindRow {
        match self {
            ObjectKind::ComplexTable => &COMPLEX,
            ObjectKind::ExecHost => &EXEC_HOST,
            ObjectKind::Queue => &QUEUE,
            ObjectKind::HostGroup => &HOST_GROUP,
            ObjectKind::Pe => &PE,
            ObjectKind::ClusterConf => &CLUSTER_CONF,
            ObjectKind::SchedulerConf => &SCHEDULER_CONF,
            ObjectKind::AdminHosts => &ADMIN_HOSTS,
            ObjectKind::SubmitHosts => &SUBMIT_HOSTS,
            ObjectKind::Managers => &MANAGERS,
            ObjectKind::Operators => &OPERATORS,
            ObjectKind::Checkpoint => &CHECKPOINT,
            ObjectKind::Calendar => &CALENDAR,
            ObjectKind::UserSet => &USER_SET,
            ObjectKind::Project => &PROJECT,
            ObjectKind::User => &USER,
            ObjectKind::ResourceQuota => &RESOURCE_QUOTA,
            ObjectKind::ShareTree => &SHARE_TREE,
        }
    }

    /// The option of `qconf` that lists the objects of this kind, or shows what exists once.
    pub fn listed_by(self) -> &'static str {
        self.row().listed_by
    }

    /// The kind in words, as messages name it.
    pub fn as_str(self) -> &'static str {
        self.row().words
    }

    /// What an object of this kind consists of.
    pub fn form(self) -> Form {
        self.row().form
    }

    /// The name of the kind in `qconf -aattr`, `-dattr`, `-mattr` and `-rattr`; `None` where these
    /// do not apply.
    pub fn attr_name(self) -> Option<&'static str> {
        self.row().attr_name
    }

    /// The kind that `qconf -aattr` and its relatives call `name`.
    pub fn from_attr_name(name: &str) -> Option<ObjectKind> {
        Self::ALL.iter().copied().find(|kind| kind.attr_name() == Some(name))
    }

    /// The attributes in the order in which `qconf -s…` prints them; empty for lists, and for the
    /// complex, of which each attribute is a field.
    pub fn keys(self) -> &'static [&'static str] {
        self.row().keys
    }

    /// Attributes that objects of this kind may have although 8.1.9 does not know them; shown only
    /// where they are not at their default.
    pub fn later_keys(self) -> &'static [&'static str] {
        self.row().later_keys
    }

    /// What each attribute means, in the order of `qconf -s…`; empty for lists and for the complex.
    pub fn meanings(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.row()
            .meanings
            .iter()
            .copied()
            .flatten()
            .map(|(key, meaning)| (*key, meaning.trim()))
    }

    /// The name that the attributes of an object give it; none for kinds whose attributes do not
    /// hold it.
    pub fn name_in(self, fields: &Fields) -> Option<&str> {
        let key = self.keys().first().filter(|_| self.form() == Form::Named)?;
        fields.value(key)
    }

    /// What `qconf -a…` opens for a new object; an empty name stands for the one that 8.1.9 shows.
    /// None for lists of names.
    pub fn template(self, name: &str) -> Option<Fields> {
        self.row().template.map(|template| template(name))
    }

    /// The column at which values start in the output of `qconf -s…`, counted from 0 (measured on
    /// 8.1.9).
    ///
    /// `None` where one blank separates the attribute from its value.
    pub fn value_column(self) -> Option<usize> {
        self.row().value_column
    }

    /// Reads the attributes of an object and gives them in the form in which they print. `name`
    /// counts where the attributes do not hold it.
    ///
    /// # Errors
    ///
    /// One refusal for each attribute that is unknown, missing or has a value it cannot have.
    pub fn settle(self, name: &str, fields: &Fields) -> Result<Fields, Vec<Diagnostic>> {
        (self.row().check)(name, fields)
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
