//! What all of `qconf` shares: the connection, how to print, which editor; and questions whose
//! answer is of one kind.

use super::{exit_code, export, hosts, import};
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::fail::Fail;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::object::{Fields, LineWrap, ObjectKind};
use proto::wire::client::{Answer, Command, Import, ObjectAction, ObjectChange, Query, Reply};
use proto::wire::view::Data;
use std::path::PathBuf;

/// How data is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFormat {
    /// As 8.1.9 does.
    Text,
    /// `-fmt json`.
    Json,
}

/// One run of `qconf`.
pub struct Session {
    client: Client,
    /// How data is printed.
    pub format: DataFormat,
    /// Whether long values are wrapped: not under `SGE_SINGLE_LINE`.
    pub wrap: LineWrap,
    /// Whether changes are tried and not made.
    pub dry_run: bool,
    /// A command of the shell that edits the file behind it.
    pub editor: String,
    /// The directory of files that are edited.
    pub drafts: PathBuf,
}

impl Session {
    /// Connects to the cell of this shell.
    ///
    /// # Errors
    /// `NoMaster` if no daemon answers.
    pub fn from_environment(format: DataFormat) -> Result<Self, Fail> {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let wrap = if set("SGE_SINGLE_LINE").is_some() {
            LineWrap::SingleLine
        } else {
            LineWrap::At80
        };
        let editor = set("EDITOR").unwrap_or_else(|| "vi".to_owned());
        let client = Client::connect(&CellAddress::from_environment(), "qconf")?.with_raw_values();
        Ok(Self {
            client,
            format,
            wrap,
            dry_run: false,
            editor,
            drafts: std::env::temp_dir(),
        })
    }

    /// A session over a connection of a test, which edits in a directory of the test.
    #[cfg(test)]
    pub fn over(client: Client, editor: &str, drafts: PathBuf) -> Self {
        Self {
            client,
            format: DataFormat::Text,
            wrap: LineWrap::At80,
            dry_run: false,
            editor: editor.to_owned(),
            drafts,
        }
    }

    /// One object.
    ///
    /// # Errors
    /// What the master refuses: that there is none of that name.
    pub fn object(&mut self, kind: ObjectKind, name: &str) -> Result<Fields, Fail> {
        let Data::Object(fields) = self.ask(Query::Object {
            kind,
            name: name.to_owned(),
        })?
        else {
            return Err(unexpected());
        };
        Ok(fields)
    }

    /// A new object of that name with nothing set.
    ///
    /// # Errors
    /// What the master refuses.
    pub fn template(&mut self, kind: ObjectKind, name: &str) -> Result<Fields, Fail> {
        let Data::Object(fields) = self.ask(Query::Template {
            kind,
            name: name.to_owned(),
        })?
        else {
            return Err(unexpected());
        };
        Ok(fields)
    }

    /// The names of all objects of a kind, in order.
    ///
    /// # Errors
    /// What the master refuses.
    pub fn names(&mut self, kind: ObjectKind) -> Result<Vec<String>, Fail> {
        let Data::Names(names) = self.ask(Query::Names { kind })? else {
            return Err(unexpected());
        };
        Ok(names)
    }

    /// Asks for data.
    ///
    /// # Errors
    /// What the master refuses.
    pub fn ask(&mut self, query: Query) -> Result<Data, Fail> {
        let Reply { more: _, answers, data } = self.client.query(query)?;
        let refused = answers.into_iter().find_map(|answer| match answer {
            Answer::Refused(refusal) => Some(refusal),
            Answer::Done(_) | Answer::Warning(_) => None,
        });
        match (refused, data) {
            (Some(refusal), _) => Err(refusal.into()),
            (None, Some(data)) => Ok(data),
            (None, None) => Err(unexpected()),
        }
    }

    /// Changes one object and prints what the master says. Returns the exit code.
    ///
    /// # Errors
    /// If the master cannot be reached, or the outcome is unknown.
    pub fn change(&mut self, kind: ObjectKind, name: &str, action: ObjectAction) -> Result<u8, Fail> {
        self.change_all(vec![ObjectChange {
            kind,
            name: name.to_owned(),
            action,
        }])
    }

    /// Makes changes, all of them or none, and prints what the master says. Returns the exit code.
    ///
    /// # Errors
    /// If the master cannot be reached, or the outcome is unknown.
    pub fn change_all(&mut self, changes: Vec<ObjectChange>) -> Result<u8, Fail> {
        self.change_from(changes, |place| place)
    }

    /// The same; `locate` turns the places of refusals and warnings into those in the text that the
    /// changes came from.
    ///
    /// # Errors
    /// If the master cannot be reached, or the outcome is unknown.
    pub fn change_from(&mut self, changes: Vec<ObjectChange>, locate: impl Fn(String) -> String) -> Result<u8, Fail> {
        let on_stderr = changes.iter().any(is_reported_on_stderr);
        hosts::must_be_known_in(self, &changes)?;
        if self.dry_run {
            for change in &changes {
                output::data(&self.tried(change)?);
            }
        }
        let added = hosts::added(&changes);
        let located = self.answers(Command::Objects(changes), locate)?;
        let code = print_answers(&located, on_stderr);
        if code == exit::OK && !self.dry_run {
            hosts::unknown_added(self, &added).iter().for_each(output::diagnostic);
        }
        Ok(code)
    }

    /// Takes over another cell, or tries to, and prints what the master says. Returns the exit
    /// code.
    ///
    /// # Errors
    /// If a queue or a host group lists a host that nobody knows; if the master cannot be reached,
    /// or the outcome is unknown.
    pub fn import(&mut self, import: Import, locate: impl Fn(String) -> String) -> Result<u8, Fail> {
        if let Some(listed) = hosts::unknown_listed(self, &import.changes)? {
            let place = format!("{} {}: hostlist", listed.change.kind, listed.change.name);
            return Err(listed.refusal().at(locate(place)).into());
        }
        Ok(print_answers(&self.answers(Command::Import(import), locate)?, true))
    }

    /// What a change would make of its object.
    fn tried(&mut self, ObjectChange { kind, name, action }: &ObjectChange) -> Result<String, Fail> {
        Ok(match action {
            ObjectAction::Add(fields) => import::shown(*kind, name, "", fields),
            ObjectAction::Replace(fields) => {
                let before = export::object_text(self, *kind, name)?;
                import::shown(*kind, name, &before, fields)
            }
            ObjectAction::Delete => format!("@@ {kind} {name} @@ deleted\n"),
            ObjectAction::Attribute { .. }
            | ObjectAction::Purge { .. }
            | ObjectAction::Clean
            | ObjectAction::Enlist { .. }
            | ObjectAction::Strike { .. } => String::new(),
        })
    }

    /// What the master says to changes, or would say if they are tried.
    fn answers(&mut self, command: Command, locate: impl Fn(String) -> String) -> Result<Vec<Answer>, Fail> {
        let tried = self.dry_run;
        let command = if tried {
            Command::DryRun(Box::new(command))
        } else {
            command
        };
        let answers = self.client.change(command)?.answers;
        // What would have been said to be done was not done.
        let answers = answers
            .into_iter()
            .filter(|answer| !(tried && matches!(answer, Answer::Done(_))));
        let located = answers.map(|answer| match answer {
            Answer::Done(text) => Answer::Done(text),
            Answer::Warning(warning) => Answer::Warning(Diagnostic {
                place: locate(warning.place),
                ..warning
            }),
            Answer::Refused(refusal) => Answer::Refused(Diagnostic {
                place: locate(refusal.place),
                ..refusal
            }),
        });
        Ok(located.collect())
    }

    /// Commands the cell itself; what was done is told on stderr, as in 8.1.9. Returns the exit
    /// code.
    ///
    /// # Errors
    /// If the master cannot be reached, or the outcome is unknown.
    pub fn command(&mut self, command: Command) -> Result<u8, Fail> {
        Ok(print_answers(&self.client.change(command)?.answers, true))
    }
}

/// 8.1.9 tells on stdout what it did to single attributes of objects with names, that users were
/// added and changed, and that resource quota sets were added. All else that it did to objects it
/// tells on stderr.
fn is_reported_on_stderr(change: &ObjectChange) -> bool {
    let is_of_attributes = matches!(
        change.action,
        ObjectAction::Attribute { .. } | ObjectAction::Purge { .. }
    );
    match change.kind {
        ObjectKind::ComplexTable | ObjectKind::ClusterConf | ObjectKind::SchedulerConf => true,
        ObjectKind::ResourceQuota => matches!(change.action, ObjectAction::Replace(_) | ObjectAction::Delete),
        ObjectKind::User => matches!(change.action, ObjectAction::Delete),
        ObjectKind::ExecHost
        | ObjectKind::Queue
        | ObjectKind::HostGroup
        | ObjectKind::Pe
        | ObjectKind::AdminHosts
        | ObjectKind::SubmitHosts
        | ObjectKind::Managers
        | ObjectKind::Operators
        | ObjectKind::Checkpoint
        | ObjectKind::Calendar
        | ObjectKind::UserSet
        | ObjectKind::Project
        | ObjectKind::ShareTree => !is_of_attributes,
    }
}

fn print_answers(answers: &[Answer], on_stderr: bool) -> u8 {
    if !on_stderr {
        return exit_code(output::answers(answers));
    }
    let mut code = exit::OK;
    for answer in answers {
        match answer {
            Answer::Done(text) => output::note(text),
            Answer::Warning(warning) => output::diagnostic(warning),
            Answer::Refused(refusal) => {
                output::diagnostic(refusal);
                code = exit_code(refusal.code.exit_code());
            }
        }
    }
    code
}

/// The refusal of an answer that does not fit the question.
pub fn unexpected() -> Fail {
    Diagnostic::new(Code::BadMessage, "error: the master's answer does not fit the question")
        .fix("use commands and daemons of the same release")
        .into()
}
