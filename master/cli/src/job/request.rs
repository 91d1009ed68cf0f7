//! What the options of a job mean: each becomes a change of a specification.

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
mod values;

use super::options::{JobOption, JobOptionRow, row_of};
use super::sources::Source;
use super::{aliases, empty, verifiers};
use crate::args::GivenOption;
use crate::cell_address::CellAddress;
use crate::exit;
use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::job::{ContextChange, HostPath, JobChanges, lists};
use proto::request::{ResourceList, ResourceRequest};

pub use proto::job::lists::list;
pub use values::{logical_directory, variables};

/// Which slots of a job a `-l` or `-q` is about (`-scope`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Scope {
    /// All of them.
    #[default]
    Global,
    /// The one of the master task of a parallel job.
    Master,
    /// The others of a parallel job.
    Slave,
}

impl Scope {
    const ALL: [Scope; 3] = [Scope::Global, Scope::Master, Scope::Slave];

    /// As `-scope` takes it.
    fn as_str(self) -> &'static str {
        match self {
            Scope::Global => "global",
            Scope::Master => "master",
            Scope::Slave => "slave",
        }
    }
}

/// What `qsub` waits for (`-sync`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AwaitedState {
    /// Nothing: the job is submitted.
    #[default]
    Submitted,
    /// A task of the job has started.
    Started,
    /// The job has ended.
    Ended,
}

/// Everything that the options of `qsub`, `qalter` and `qresub` said.
#[derive(Clone, Debug, Default)]
pub struct JobRequest {
    /// What they say about the job.
    pub changes: JobChanges,
    /// `-b`.
    pub binary: bool,
    /// `-shell`.
    pub use_shell: Option<bool>,
    /// `-now`.
    pub immediate: bool,
    /// `-sync`: what the command waits for.
    pub sync: AwaitedState,
    /// `-terse`.
    pub terse: bool,
    /// `-verify`.
    pub verify: bool,
    /// `-V`.
    pub export_all: bool,
    /// `-C` of the command line, which `qsub` sets.
    pub directive_prefix: Option<String>,
    /// `-v`, in order; none takes the value from the environment.
    pub variables: Option<Vec<(String, Option<String>)>>,
    /// `-jsv`, the weakest source first; the last one sees the job first.
    pub verifiers: Option<Vec<String>>,
    /// Whether a following `-l` or `-q` is soft.
    soft: bool,
    /// Which slots a following `-l` or `-q` is about.
    scope: Scope,
    /// The options that the present source has given whose lists of earlier sources are dropped,
    /// each with its scope.
    named: Vec<(JobOption, Scope)>,
    command: &'static str,
}

impl JobRequest {
    /// Nothing said yet; `command` is named in messages.
    pub fn new(command: &'static str) -> Self {
        Self {
            command,
            ..Self::default()
        }
    }

    /// Looks up under which paths other hosts have the working directory.
    ///
    /// # Errors
    /// A file of path aliases that cannot be read.
    pub fn map_directory(&mut self, site: &CellAddress) -> Result<(), Fail> {
        if let Some(directory) = &self.changes.directory {
            let host = nix::unistd::gethostname()
                .ok()
                .and_then(|name| name.into_string().ok())
                .unwrap_or_default();
            self.changes.directory_on = Some(aliases::of_directory(site, directory, &HostName::new(&host))?);
        }
        Ok(())
    }

    /// Takes in what all sources say, weakest first.
    ///
    /// # Errors
    /// As [`JobRequest::apply`], with the place of the line; a `-scope` that is about nothing.
    pub fn apply_sources(&mut self, sources: &[Source]) -> Result<(), Fail> {
        for source in sources {
            self.named.clear();
            for line in &source.lines {
                self.apply_line(&line.given)
                    .map_err(|fail| source.origin.refusal(fail, &line.place))?;
            }
        }
        Ok(())
    }

    /// Takes in the options of one line, of a file or the command line. The effect of `-soft` and
    /// `-scope` ends with it.
    ///
    /// # Errors
    /// As [`JobRequest::apply`]; a `-scope` that is about nothing.
    pub fn apply_line(&mut self, given: &[GivenOption]) -> Result<(), Fail> {
        self.start_anew();
        given.iter().try_for_each(|given| self.apply(given))?;
        let mut last = given
            .iter()
            .rev()
            .take_while(|given| !matches!(given.name, "-l" | "-q"));
        match last.find(|given| given.name == "-scope") {
            Some(_) if self.scope != Scope::Global => Err(self.scope_of_nothing()),
            Some(_) | None => Ok(()),
        }
    }

    fn scope_of_nothing(&self) -> Fail {
        let scope = self.scope.as_str();
        let what = format!("{}: \"-scope {scope}\" is followed by no -l and no -q", self.command);
        let refusal = Diagnostic::new(Code::BadValue, what)
            .at(format!("-scope {scope}"))
            .why("it is about those behind it on the same command line, line of a script or line of a request file")
            .fix("write them behind it on one line");
        Fail::new(exit::BAD_VALUE, refusal)
    }

    /// Takes back what was said by `-soft` and `-scope`.
    fn start_anew(&mut self) {
        (self.soft, self.scope) = (false, Scope::Global);
    }

    /// Takes one option in, by the rule of its row in the table.
    ///
    /// # Errors
    /// A value that does not parse, with the exit code of 8.1.9.
    pub fn apply(&mut self, given: &GivenOption) -> Result<(), Fail> {
        let name = given.name;
        let value = given.values.first().map_or("", String::as_str);
        let Some(row) = row_of(name, !given.values.is_empty()) else {
            return Err(self.invalid(name, value));
        };
        // `qalter -scope slave -q ""` takes the queues of a scope away again; without `-scope`, `-q
        // "*"` does.
        let is_scoped = self.scope != Scope::Global && self.command == "qalter" && row.option == JobOption::Queues;
        if !given.values.is_empty() && !is_scoped {
            empty::refuse_option(self.command, name, value)?;
        }
        if row.replaces_earlier_sources && !self.named.contains(&(row.option, self.scope)) {
            self.named.push((row.option, self.scope));
            self.forget_queues();
        }
        self.apply_option(row, name, value, given.values.get(1).map_or("", String::as_str))
    }

    fn apply_option(&mut self, row: &JobOptionRow, name: &str, value: &str, second: &str) -> Result<(), Fail> {
        use JobOption as O;
        let rule = || row.list_rule();
        let files = || values::path_list(self.command, name, value);
        let verifier = || verifiers::script(self.command, value).map(|path| vec![path]);
        match row.option {
            O::StartTime => self.changes.start_after = Some(self.moment(name, value)?),
            O::AddContext => self.change_context(ContextChange::Add(self.pairs(name, value)?)),
            O::Reservation => self.changes.reservation = Some(self.reservation(value)?),
            O::Account => self.changes.account = Some(self.account(value)?),
            O::Binding => self.changes.binding = Some(self.binding(value, second)?),
            O::Binary => self.binary = self.yes_no(name, value)?,
            O::Occasion => self.changes.occasion = Some(self.occasion(value)?),
            O::Checkpoint => self.changes.checkpoint = Some(value.to_owned()),
            O::Clear => self.start_anew(),
            O::CurrentDirectory => self.changes.directory = Some(self.current_directory()?),
            O::DeleteContext => self.change_context(ContextChange::Delete(self.context_names(name, value)?)),
            O::Deadline => self.changes.deadline = Some(self.moment(name, value)?),
            O::Hold => self.changes.holds.get_or_insert_default().set.user = true,
            O::HoldList => self.changes.holds = Some(self.hold_change(value)?),
            O::Hard => self.soft = false,
            O::Predecessors => rule().add(&mut self.changes.predecessors, list(value), |a, b| a == b),
            O::ArrayPredecessors => rule().add(&mut self.changes.array_predecessors, list(value), |a, b| a == b),
            O::Stdin => rule().add(&mut self.changes.stdin, files()?, is_for_same_host),
            O::Stdout => rule().add(&mut self.changes.stdout, files()?, is_for_same_host),
            O::Stderr => rule().add(&mut self.changes.stderr, files()?, is_for_same_host),
            O::Shell => rule().add(&mut self.changes.shell, files()?, is_for_same_host),
            O::Join => self.changes.merge_stderr = Some(self.yes_no(name, value)?),
            O::Share => self.changes.job_share = Some(self.number(value, "jobshare")?),
            O::Resources => self.apply_resources(value)?,
            O::MailEvents => self.changes.mail = Some(self.mail_events(self.changes.mail.unwrap_or_default(), value)?),
            O::MasterQueues => rule().add(&mut self.changes.master_queues, list(value), |a, b| a == b),
            O::Notify => self.changes.notify = Some(true),
            O::Immediate => self.immediate = self.yes_no(name, value)?,
            O::MailList => rule().add(&mut self.changes.mail_to, lists::addresses(value), |a, b| {
                values::is_at_same_host(a, b)
            }),
            O::Name => self.changes.name = Some(self.job_name(value)?),
            O::When => self.changes.for_running = self.is_now(name, value)?,
            O::OverrideTickets => self.changes.override_tickets = Some(self.number(value, "override tickets")?),
            O::Project => self.changes.project = Some(value.to_owned()),
            O::Priority => self.changes.priority = Some(self.priority(value)?),
            O::AllocationRule => self.changes.allocation_rule = Some(self.allocation_rule(value)?),
            O::ParallelEnvironment => self.changes.pe = Some(self.parallel_environment(value, second)?),
            O::Queues => self.apply_queues(row, value)?,
            O::Reserve => self.changes.reserve = Some(self.yes_no(name, value)?),
            O::Rerun => self.changes.rerunnable = Some(self.yes_no(name, value)?),
            O::SetContext => self.change_context(ContextChange::Set(self.pairs(name, value)?)),
            O::Scope => self.scope = self.parse_scope(value)?,
            O::UseShell => self.use_shell = Some(self.yes_no(name, value)?),
            O::Soft => self.soft = true,
            O::Sync => self.sync = self.awaited_state(name, value)?,
            O::Tasks => self.changes.array = Some(self.task_range(value)?),
            O::Concurrency => self.changes.task_concurrency = Some(self.concurrency(value)?),
            O::Terse => self.terse = true,
            O::Variables => rule().add(&mut self.variables, variables(self.command, value)?, |a, b| a.0 == b.0),
            O::Verify => self.verify = true,
            O::ExportAll => self.export_all = true,
            O::Validation => self.changes.validation = Some(self.validation(value)?),
            O::Directory => self.changes.directory = Some(value.to_owned()),
            O::Verifier => rule().add(&mut self.verifiers, verifier()?, |a, b| a == b),
            // The parser refuses this one, and the command has used those below before.
            O::Terminal => return Err(self.invalid(name, value)),
            O::Duration | O::End | O::HardError => {}
            O::Help | O::Prefix | O::Users | O::AllUsers | O::OptionFile => {}
        }
        Ok(())
    }

    fn change_context(&mut self, change: ContextChange) {
        self.changes.context.push(change);
    }

    /// Drops the queue lists of earlier sources, in the scope that is in force. `-masterq` adds up
    /// over sources, and `-scope master` shares its list.
    fn forget_queues(&mut self) {
        let changes = &mut self.changes;
        match self.scope {
            Scope::Global => (changes.hard_queues, changes.soft_queues) = (None, None),
            Scope::Slave => changes.slave_queues = None,
            Scope::Master => {}
        }
    }

    fn apply_resources(&mut self, value: &str) -> Result<(), Fail> {
        self.check_scope_of_soft("-l", value)?;
        let more = ResourceList::parse(value)?;
        let changes = &mut self.changes;
        let side = match self.scope {
            Scope::Global if self.soft => &mut changes.soft,
            Scope::Global => &mut changes.hard,
            Scope::Master => &mut changes.master,
            Scope::Slave => &mut changes.slaves,
        };
        let mut merged = ResourceList::from(side.take().unwrap_or_default());
        merged.merge(more);
        *side = Some(Vec::<ResourceRequest>::from(merged));
        Ok(())
    }

    fn apply_queues(&mut self, row: &JobOptionRow, value: &str) -> Result<(), Fail> {
        self.check_scope_of_soft("-q", value)?;
        let changes = &mut self.changes;
        let side = match self.scope {
            Scope::Global if self.soft => &mut changes.soft_queues,
            Scope::Global => &mut changes.hard_queues,
            Scope::Master => &mut changes.master_queues,
            Scope::Slave => &mut changes.slave_queues,
        };
        row.list_rule().add(side, list(value), |a, b| a == b);
        Ok(())
    }

    fn parse_scope(&self, value: &str) -> Result<Scope, Fail> {
        let known = Scope::ALL.into_iter().find(|scope| scope.as_str() == value);
        known.ok_or_else(|| self.invalid("-scope", value).fix("write global, master or slave"))
    }

    /// Soft requests are made for the whole job alone.
    fn check_scope_of_soft(&self, name: &str, value: &str) -> Result<(), Fail> {
        if !self.soft || self.scope == Scope::Global {
            return Ok(());
        }
        let (command, scope) = (self.command, self.scope.as_str());
        let what = format!("{command}: \"{name} {value}\" is given with both -soft and -scope {scope}");
        let refusal = Diagnostic::new(Code::BadValue, what)
            .at(format!("{name} {value}"))
            .why("soft requests are possible for the whole job only, not for its master or its slaves alone")
            .fix("put -hard in front of it, or -scope global");
        Err(Fail::new(exit::BAD_VALUE, refusal))
    }
}

/// A refusal in the frame that `qsub` puts around what the master refuses.
pub fn rejected(diagnostic: Diagnostic) -> Fail {
    let exit = diagnostic.code.exit_code();
    let what = format!("Unable to run job: {}\nExiting.", diagnostic.what);
    Fail::new(exit, Diagnostic { what, ..diagnostic })
}

fn is_for_same_host(one: &HostPath, other: &HostPath) -> bool {
    one.host == other.host
}
