//! What the options of a job mean: each becomes a change of a specification.

use super::{aliases, date, empty, paths};
use crate::args::Given;
use crate::exit;
use crate::fail::Fail;
use crate::site::Site;
use proto::checkpoint::{BadOccasion, Occasion};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, ReservationId};
use proto::job::{HoldChange, Holds, JobChanges, MailEvents, PeRequest, Validation};
use proto::pe::AllocationRule;
use proto::request::{RangeError, ResourceList, ResourceRequest, SlotRange, TaskRange};
use proto::time::Wall;

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
    /// `-sync`.
    pub sync: bool,
    /// `-terse`.
    pub terse: bool,
    /// `-verify`.
    pub verify: bool,
    /// `-V`.
    pub export_all: bool,
    /// `-v`, in order; none takes the value from the environment.
    pub variables: Vec<(String, Option<String>)>,
    /// Whether a following `-l` or `-q` is soft.
    soft: bool,
    /// Which slots a following `-l` or `-q` is about.
    scope: Scope,
    command: &'static str,
}

impl JobRequest {
    /// Nothing said yet; `command` is named in messages.
    pub fn new(command: &'static str) -> Self {
        Self { command, ..Self::default() }
    }

    /// Looks up under which paths other hosts have the working directory.
    ///
    /// # Errors
    /// A file of path aliases that cannot be read.
    pub fn map_directory(&mut self, site: &Site) -> Result<(), Fail> {
        if let Some(directory) = &self.changes.directory {
            let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default();
            self.changes.directory_on = Some(aliases::of_directory(site, directory, &HostName::new(&host))?);
        }
        Ok(())
    }

    /// Takes in the options of one source: the command line, a line of a script or of a request file. What `-soft` and `-scope` say ends
    /// with it.
    ///
    /// # Errors
    /// As [`JobRequest::apply`]; a `-scope` that is about nothing.
    pub fn apply_source(&mut self, given: &[Given]) -> Result<(), Fail> {
        self.start_anew();
        given.iter().try_for_each(|given| self.apply(given))?;
        let mut last = given.iter().rev().take_while(|given| !matches!(given.name, "-l" | "-q"));
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

    /// As nothing had been said of `-soft` and `-scope`.
    fn start_anew(&mut self) {
        (self.soft, self.scope) = (false, Scope::Global);
    }

    /// Takes one option in. Later ones win, lists of `-l`, `-q` and `-v` grow.
    ///
    /// # Errors
    /// A value that does not parse, with the exit code of 8.1.9.
    pub fn apply(&mut self, given: &Given) -> Result<(), Fail> {
        match given.values.as_slice() {
            [] => {
                self.apply_flag(given.name);
                Ok(())
            }
            [value] => self.apply_value(given.name, value),
            [name, range, ..] => self.apply_pe(name, range),
        }
    }

    fn apply_flag(&mut self, name: &str) {
        match name {
            "-hard" => self.soft = false,
            "-soft" => self.soft = true,
            "-clear" => self.start_anew(),
            "-cwd" => self.changes.directory = std::env::current_dir().ok().map(|dir| logical_directory(&dir)),
            "-h" => self.changes.holds.get_or_insert_default().set.user = true,
            "-notify" => self.changes.notify = Some(true),
            "-terse" => self.terse = true,
            "-verify" => self.verify = true,
            "-V" => self.export_all = true,
            // -help and the like were handled where the options came from.
            _ => {}
        }
    }

    fn apply_value(&mut self, name: &str, value: &str) -> Result<(), Fail> {
        // `qalter -scope slave -q ""` takes the queues of a scope away again; without `-scope`, `-q "*"` does.
        if name != "-q" || self.scope == Scope::Global || self.command != "qalter" {
            empty::refuse_option(self.command, name, value)?;
        }
        match name {
            "-m" => self.changes.mail = Some(self.mail_events(value)?),
            "-l" => self.apply_resources(value)?,
            "-q" => self.apply_queues(value)?,
            "-scope" => self.scope = self.parse_scope(value)?,
            _ => return self.apply_text(name, value),
        }
        Ok(())
    }

    fn apply_text(&mut self, name: &str, value: &str) -> Result<(), Fail> {
        let changes = &mut self.changes;
        match name {
            "-N" => changes.name = Some(job_name(self.command, value)?),
            "-ckpt" => changes.checkpoint = Some(value.to_owned()),
            "-A" => changes.account = Some(value.to_owned()),
            "-P" => changes.project = Some(value.to_owned()),
            "-wd" => changes.directory = Some(value.to_owned()),
            "-o" => changes.stdout = Some(paths::parse(value)),
            "-e" => changes.stderr = Some(paths::parse(value)),
            "-i" => changes.stdin = Some(paths::parse(value)),
            "-S" => changes.shell = Some(paths::parse(value)),
            "-M" => changes.mail_to = Some(list(value)),
            "-hold_jid" => changes.predecessors.get_or_insert_default().extend(list(value)),
            "-hold_jid_ad" => changes.array_predecessors.get_or_insert_default().extend(list(value)),
            "-ac" => changes.add_context.extend(pairs(value)),
            "-dc" => changes.delete_context.extend(list(value)),
            "-sc" => changes.set_context = Some(pairs(value)),
            "-v" => self.variables.extend(variables(self.command, value)?),
            "-masterq" => changes.master_queues.get_or_insert_default().extend(list(value)),
            _ => return self.apply_scalar(name, value),
        }
        Ok(())
    }

    fn apply_scalar(&mut self, name: &str, value: &str) -> Result<(), Fail> {
        match name {
            "-a" => self.changes.start_after = Some(self.moment(name, value)?),
            "-ar" => self.changes.reservation = Some(self.reservation(value)?),
            "-c" => self.changes.occasion = Some(self.occasion(value)?),
            "-dl" => self.changes.deadline = Some(self.moment(name, value)?),
            "-h" => self.changes.holds = Some(self.hold_change(value)?),
            "-j" => self.changes.merge_stderr = Some(self.yes_no(name, value)?),
            "-R" => self.changes.reserve = Some(self.yes_no(name, value)?),
            "-r" => self.changes.rerunnable = Some(self.yes_no(name, value)?),
            "-notify" => self.changes.notify = Some(self.yes_no(name, value)?),
            "-b" => self.binary = self.yes_no(name, value)?,
            "-now" => self.immediate = self.yes_no(name, value)?,
            "-shell" => self.use_shell = Some(self.yes_no(name, value)?),
            "-sync" => self.sync = self.yes_no(name, value)?,
            "-par" => self.changes.allocation_rule = Some(self.allocation_rule(value)?),
            "-p" => self.changes.priority = Some(self.priority(value)?),
            "-js" => self.changes.job_share = Some(self.number(value, "jobshare")?),
            "-ot" => self.changes.override_tickets = Some(self.number(value, "override tickets")?),
            "-t" => self.changes.array = Some(self.task_range(value)?),
            "-tc" => self.changes.task_concurrency = Some(self.concurrency(value)?),
            "-w" => self.changes.validation = Some(self.validation(value)?),
            // -C, -@ and -u have done their work before.
            _ => {}
        }
        Ok(())
    }

    fn allocation_rule(&self, value: &str) -> Result<AllocationRule, Fail> {
        let refusal =
            |_| self.invalid("-par", value).fix("give $pe_slots, $fill_up, $round_robin or the slots for each host");
        value.parse().map_err(refusal)
    }

    fn apply_pe(&mut self, name: &str, range: &str) -> Result<(), Fail> {
        let slots = SlotRange::parse(range).map_err(|error| self.range_error(&error))?;
        self.changes.pe = Some(PeRequest { name: name.to_owned(), slots });
        Ok(())
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

    fn apply_queues(&mut self, value: &str) -> Result<(), Fail> {
        self.check_scope_of_soft("-q", value)?;
        let changes = &mut self.changes;
        let side = match self.scope {
            Scope::Global if self.soft => &mut changes.soft_queues,
            Scope::Global => &mut changes.hard_queues,
            Scope::Master => &mut changes.master_queues,
            Scope::Slave => &mut changes.slave_queues,
        };
        side.get_or_insert_default().extend(list(value));
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

    fn invalid(&self, name: &str, value: &str) -> Fail {
        Fail::bad_value(format!("{}: invalid option argument \"{name} {value}\"", self.command))
    }

    fn yes_no(&self, name: &str, value: &str) -> Result<bool, Fail> {
        match value.to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(true),
            "n" | "no" => Ok(false),
            _ => Err(self.invalid(name, value).fix("write y or n")),
        }
    }

    fn priority(&self, value: &str) -> Result<i32, Fail> {
        let parsed = value.parse().ok().filter(|priority| (-1023..=1024).contains(priority));
        parsed.ok_or_else(|| {
            let command = self.command;
            Fail::bad_value(format!("{command}: invalid priority \"{value}\".  Must be an integer from -1023 to 1024"))
        })
    }

    fn number(&self, value: &str, what: &str) -> Result<u32, Fail> {
        value.parse().map_err(|_| {
            let what = format!("{}: invalid {what}, must be an unsigned integer", self.command);
            Fail::new(exit::USAGE, Diagnostic::new(Code::BadSyntax, what).fix("write a whole number from 0 up"))
        })
    }

    fn reservation(&self, value: &str) -> Result<ReservationId, Fail> {
        value.parse().map(ReservationId).map_err(|_| {
            let what = format!("{}: invalid advance reservation id, must be an unsigned integer", self.command);
            Fail::new(exit::USAGE, Diagnostic::new(Code::BadSyntax, what).fix("qrstat lists them"))
        })
    }

    fn concurrency(&self, value: &str) -> Result<u32, Fail> {
        value.parse().map_err(|_| {
            let command = self.command;
            Fail::bad_value(format!(
                "{command}: invalid task concurrency number \"{value}\". Must be an integer greater or equal to 0."
            ))
        })
    }

    fn task_range(&self, value: &str) -> Result<TaskRange, Fail> {
        if value.contains(',') {
            return Err(Fail::bad_value(format!("{}: -t option only allows one range", self.command)));
        }
        TaskRange::parse(value).map_err(|error| self.range_error(&error))
    }

    fn range_error(&self, error: &RangeError) -> Fail {
        let diagnostic = error.diagnostic();
        match diagnostic.code {
            Code::JobRejected => rejected(diagnostic),
            _ => Fail::bad_value(format!("{}: {}", self.command, diagnostic.what)),
        }
    }

    fn validation(&self, value: &str) -> Result<Validation, Fail> {
        match value {
            "e" => Ok(Validation::Refuse),
            "w" => Ok(Validation::Warn),
            "n" => Ok(Validation::None),
            "v" => Ok(Validation::Verify),
            "p" => Ok(Validation::Poke),
            _ => Err(self.invalid("-w", value).fix("write one of e, w, n, v, p")),
        }
    }

    fn occasion(&self, value: &str) -> Result<Occasion, Fail> {
        value.parse().map_err(|error: BadOccasion| {
            let refusal = Diagnostic::new(Code::BadSyntax, format!("{}: {error}", self.command));
            Fail::new(exit::USAGE, refusal.fix("write n, letters of s m x r, or a time as hours:minutes:seconds"))
        })
    }

    /// Reads a date.
    ///
    /// # Errors
    /// In the words of 8.1.9, if it is none.
    pub fn moment(&self, name: &str, value: &str) -> Result<Wall, Fail> {
        let now = jiff::Zoned::now();
        date::parse(value, now.year(), now.time_zone()).map_err(|reason| {
            let command = self.command;
            Fail::bad_value(format!(
                "{reason}\n{command}: Wrong date/time format \"{value}\" specified to {name} option"
            ))
            .fix("write [[CC]YY]MMDDhhmm[.SS]")
        })
    }

    fn mail_events(&self, value: &str) -> Result<MailEvents, Fail> {
        let mut events = MailEvents::default();
        for letter in value.chars().filter(|letter| *letter != ',') {
            match letter {
                'b' => events.begin = true,
                'e' => events.end = true,
                'a' => events.abort = true,
                's' => events.suspend = true,
                'n' => events = MailEvents::default(),
                _ => {
                    let what =
                        format!("{}: Wrong mail options list format \"{value}\" specified to -m option", self.command);
                    return Err(Fail::bad_value(what).fix("write letters of b, e, a, s, n"));
                }
            }
        }
        Ok(events)
    }

    /// `-h` of `qalter`, `qhold` and `qrls`: `u`, `s`, `o` set, `U`, `S`, `O` release, `n` releases all.
    pub fn hold_change(&self, value: &str) -> Result<HoldChange, Fail> {
        let mut change = HoldChange::default();
        for letter in value.chars().filter(|letter| *letter != ',') {
            match letter {
                'u' => change.set.user = true,
                'o' => change.set.operator = true,
                's' => change.set.system = true,
                'U' => change.release.user = true,
                'O' => change.release.operator = true,
                'S' => change.release.system = true,
                'n' => change.release = Holds { user: true, operator: true, system: true },
                _ => {
                    let what = format!("{}: Unknown hold list \"{value}\" specified to -h option", self.command);
                    return Err(
                        Fail::bad_value(what).fix("write letters of u, o, s to hold, U, O, S to release, n for none")
                    );
                }
            }
        }
        Ok(change)
    }
}

/// A refusal in the frame that `qsub` puts around what the master refuses.
pub fn rejected(diagnostic: Diagnostic) -> Fail {
    let exit = diagnostic.code.exit_code();
    let what = format!("Unable to run job: {}\nExiting.", diagnostic.what);
    Fail::new(exit, Diagnostic { what, ..diagnostic })
}

fn job_name(command: &str, value: &str) -> Result<String, Fail> {
    if value.contains('/') {
        let refusal = Diagnostic::new(Code::BadSyntax, format!("{command}: argument to -N option must not contain /"));
        return Err(Fail::new(exit::USAGE, refusal));
    }
    Ok(value.to_owned())
}

/// The working directory as the user sees it: `PWD` where it names the same directory, so that links stay.
pub fn logical_directory(actual: &std::path::Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &std::path::Path| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
    let shown = std::env::var("PWD").ok().filter(|pwd| pwd.starts_with('/'));
    match shown.filter(|pwd| identity(pwd.as_ref()) == identity(actual)) {
        Some(pwd) => pwd,
        None => actual.to_string_lossy().into_owned(),
    }
}

/// The parts of a comma separated list.
pub fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |part: String| match part.split_once('=') {
        Some((name, value)) => (name.to_owned(), value.to_owned()),
        None => (part, String::new()),
    };
    list(text).into_iter().map(pair).collect()
}

/// The variables of a `-v`; those without a value take it from the environment.
///
/// # Errors
/// A part without a name.
pub fn variables(command: &str, text: &str) -> Result<Vec<(String, Option<String>)>, Fail> {
    let mut variables = Vec::new();
    for part in split_variables(text) {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (part.as_str(), None),
        };
        if name.is_empty() {
            return Err(Fail::bad_value(format!("{command}: \"{part}\" specified to -v option has no variable name")));
        }
        variables.push((name.to_owned(), value));
    }
    Ok(variables)
}

/// Splits at commas outside quotes; the quotes themselves were the shell's and stay.
fn split_variables(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (None, ',') => parts.push(String::new()),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (_, c) => parts.last_mut().expect("it begins with one part and only grows").push(c),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(options: &[(&'static str, &[&str])]) -> Result<JobRequest, Fail> {
        let mut request = JobRequest::new("qsub");
        for (name, values) in options {
            request.apply(&Given { name, values: values.iter().map(|v| (*v).to_owned()).collect() })?;
        }
        Ok(request)
    }

    #[test]
    fn lists_grow_and_scalars_are_replaced() {
        let built = request(&[
            ("-l", &["h_vmem=1G,h_rt=5"]),
            ("-soft", &[]),
            ("-l", &["lic=1"]),
            ("-hard", &[]),
            ("-l", &["h_vmem=2G"]),
            ("-N", &["a"]),
            ("-N", &["b"]),
            ("-v", &["A=1,B,C=x y"]),
        ])
        .unwrap();
        assert_eq!(show(&built.changes.hard), ["h_vmem=2G", "h_rt=5"]);
        assert_eq!(show(&built.changes.soft), ["lic=1"]);
        assert_eq!(built.changes.name.as_deref(), Some("b"));
        let expected = [("A", Some("1")), ("B", None), ("C", Some("x y"))];
        assert_eq!(built.variables, expected.map(|(n, v)| (n.to_owned(), v.map(str::to_owned))));
    }

    fn show(list: &Option<Vec<ResourceRequest>>) -> Vec<String> {
        list.iter().flatten().map(ToString::to_string).collect()
    }

    #[test]
    fn requests_go_to_the_scope_that_is_in_force() {
        let built = request(&[
            ("-l", &["h_rt=3600"]),
            ("-q", &["all.q"]),
            ("-soft", &[]),
            ("-l", &["arch=lx*"]),
            ("-scope", &["master"]),
            ("-hard", &[]),
            ("-masterq", &["log.q"]),
            ("-q", &["io.q"]),
            ("-l", &["memory=1G,disk=2G"]),
            ("-scope", &["slave"]),
            ("-q", &["compute.q"]),
            ("-l", &["memory=4G"]),
            ("-q", &["big.q"]),
            ("-l", &["gpu=1,memory=8G"]),
            ("-scope", &["global"]),
            ("-l", &["lic=1"]),
            ("-scope", &["master"]),
            ("-l", &["memory=2G"]),
        ])
        .unwrap();
        let changes = &built.changes;
        assert_eq!(show(&changes.hard), ["h_rt=3600", "lic=1"]);
        assert_eq!(show(&changes.soft), ["arch=lx*"]);
        assert_eq!(show(&changes.master), ["memory=2G", "disk=2G"]);
        assert_eq!(show(&changes.slaves), ["memory=8G", "gpu=1"]);
        let queues = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(changes.hard_queues, queues(&["all.q"]));
        assert_eq!(changes.soft_queues, None);
        assert_eq!(changes.master_queues, queues(&["log.q", "io.q"]));
        assert_eq!(changes.slave_queues, queues(&["compute.q", "big.q"]));
    }

    #[test]
    fn soft_and_scope_end_with_their_source() {
        let given = |name, value: &[&str]| Given { name, values: value.iter().map(|v| (*v).to_owned()).collect() };
        let mut request = JobRequest::new("qsub");
        let file = [given("-scope", &["slave"]), given("-l", &["a=1"])];
        let script = [given("-l", &["b=1"]), given("-soft", &[]), given("-l", &["c=1"])];
        let line = [given("-scope", &["master"]), given("-l", &["d=1"]), given("-q", &["io.q"])];
        for source in [&file[..], &script, &line] {
            request.apply_source(source).unwrap();
        }
        let changes = &request.changes;
        assert_eq!((show(&changes.slaves), show(&changes.hard)), (vec!["a=1".to_owned()], vec!["b=1".to_owned()]));
        assert_eq!((show(&changes.soft), show(&changes.master)), (vec!["c=1".to_owned()], vec!["d=1".to_owned()]));
        assert_eq!(changes.master_queues, Some(vec!["io.q".to_owned()]));
    }

    #[test]
    fn lines_of_a_script_have_scopes() {
        let script = b"#!/bin/sh\n#$ -pe mpi 16 -l h_rt=3600\n#$ -scope master -q io.q -l memory=1G\n\
            #$ -scope slave -q compute.q -l memory=4G,gpu=1\nmpirun x\n";
        let mut request = JobRequest::new("qsub");
        let lines = crate::job::script::directives(script, "#$").unwrap();
        lines.iter().for_each(|line| request.apply_source(line).unwrap());
        let changes = &request.changes;
        assert_eq!(show(&changes.hard), ["h_rt=3600"]);
        assert_eq!(show(&changes.master), ["memory=1G"]);
        assert_eq!(show(&changes.slaves), ["memory=4G", "gpu=1"]);
        assert_eq!(changes.hard_queues, None);
        assert_eq!(changes.master_queues, Some(vec!["io.q".to_owned()]));
        assert_eq!(changes.slave_queues, Some(vec!["compute.q".to_owned()]));
    }

    #[test]
    fn soft_ends_with_its_line_as_in_8_1_9() {
        let script = b"#$ -soft\n#$ -l arch=nosuch\n#$ -soft -l mem_free=1G\n#$ -l h_rt=77\n";
        let mut request = JobRequest::new("qsub");
        let lines = crate::job::script::directives(script, "#$").unwrap();
        lines.iter().for_each(|line| request.apply_source(line).unwrap());
        assert_eq!(show(&request.changes.hard), ["arch=nosuch", "h_rt=77"]);
        assert_eq!(show(&request.changes.soft), ["mem_free=1G"]);
    }

    #[test]
    fn a_scope_of_nothing_is_refused() {
        let source = |words: &[(&'static str, &[&str])]| -> Vec<Given> {
            let given = |(name, values): &(&'static str, &[&str])| Given {
                name,
                values: values.iter().map(|value| (*value).to_owned()).collect(),
            };
            words.iter().map(given).collect()
        };
        let refused = |words: &[(&'static str, &[&str])]| JobRequest::new("qsub").apply_source(&source(words)).err();
        let fail = refused(&[("-scope", &["master"])]).unwrap();
        let what = "qsub: \"-scope master\" is followed by no -l and no -q";
        assert_eq!((fail.exit, fail.diagnostic.what.as_str()), (7, what));
        assert!(refused(&[("-l", &["a=1"]), ("-scope", &["slave"]), ("-N", &["x"])]).is_some());
        assert!(refused(&[("-scope", &["slave"]), ("-l", &["a=1"]), ("-N", &["x"])]).is_none());
        assert!(refused(&[("-scope", &["slave"]), ("-q", &["a.q"]), ("-scope", &["global"])]).is_none());
    }

    #[test]
    fn soft_requests_have_the_global_scope_alone() {
        for (scope, name, value) in [("master", "-l", "a=1"), ("slave", "-l", "a=1"), ("slave", "-q", "all.q")] {
            let fail = request(&[("-soft", &[]), ("-scope", &[scope]), (name, &[value])]).unwrap_err();
            let what = format!("qsub: \"{name} {value}\" is given with both -soft and -scope {scope}");
            assert_eq!((fail.exit, fail.diagnostic.what.as_str()), (7, what.as_str()));
            assert!(!fail.diagnostic.why.is_empty() && !fail.diagnostic.fix.is_empty());
        }
        assert!(request(&[("-scope", &["master"]), ("-soft", &[]), ("-l", &["a=1"])]).is_err());
        assert!(request(&[("-soft", &[]), ("-scope", &["master"]), ("-hard", &[]), ("-l", &["a=1"])]).is_ok());
        let back = request(&[("-soft", &[]), ("-scope", &["slave"]), ("-scope", &["global"]), ("-q", &["all.q"])]);
        assert_eq!(back.unwrap().changes.soft_queues, Some(vec!["all.q".to_owned()]));
        let cleared = request(&[("-soft", &[]), ("-scope", &["slave"]), ("-clear", &[]), ("-l", &["a=1"])]);
        assert_eq!(show(&cleared.unwrap().changes.hard), ["a=1"]);
    }

    #[test]
    fn values_that_do_not_parse_are_refused_in_the_words_of_8_1_9() {
        for (name, values, exit, what) in [
            ("-p", &["2000"][..], 7, "qsub: invalid priority \"2000\".  Must be an integer from -1023 to 1024"),
            ("-par", &["$all"], 7, "qsub: invalid option argument \"-par $all\""),
            ("-R", &["x"], 7, "qsub: invalid option argument \"-R x\""),
            ("-scope", &["slaves"], 7, "qsub: invalid option argument \"-scope slaves\""),
            ("-scope", &["Master"], 7, "qsub: invalid option argument \"-scope Master\""),
            ("-w", &["x"], 7, "qsub: invalid option argument \"-w x\""),
            ("-m", &["x"], 7, "qsub: Wrong mail options list format \"x\" specified to -m option"),
            (
                "-tc",
                &["x"],
                7,
                "qsub: invalid task concurrency number \"x\". Must be an integer greater or equal to 0.",
            ),
            ("-t", &["1-5:0"], 7, "qsub: Negative or zero step in range is not allowed"),
            ("-t", &["1-3,5"], 7, "qsub: -t option only allows one range"),
            ("-t", &["0-5"], 1, "Unable to run job: job rejected: 0 is an invalid task id\nExiting."),
            (
                "-pe",
                &["mpi", "0"],
                1,
                "Unable to run job: \"job\" rejected: pe range must be greater than zero\nExiting.",
            ),
            ("-c", &["q"], 2, "qsub: -c specifier invalid"),
            ("-c", &["0:10"], 2, "qsub: -c argument invalid"),
            ("-N", &["a/b"], 2, "qsub: argument to -N option must not contain /"),
            (
                "-a",
                &["203013010000"],
                7,
                "Invalid month specification.\nqsub: Wrong date/time format \"203013010000\" specified to -a option",
            ),
        ] {
            let fail = request(&[(name, values)]).unwrap_err();
            assert_eq!((fail.exit, fail.diagnostic.what.as_str()), (exit, what), "{name} {values:?}");
        }
    }
}
