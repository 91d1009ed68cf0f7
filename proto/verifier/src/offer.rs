//! What a verifier is told of a job: parameters in the order of 8.1.9, and on request the
//! environment.
//!
//! Only what was set is told. Requests that 8.1.9 does not have follow under names of their own:
//! `par`, `master_l_hard`, `slave_l_hard`, `slave_q_hard`.

#[cfg(test)]
pub(crate) mod tests;

use crate::date::LocalCalendar;
use proto::checkpoint::Occasion;
use proto::id::JobNumber;
use proto::job::{Holds, HostPath, JobSpec, MailEvents, Program, Validation};
use proto::request::ResourceRequest;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Which side runs the verifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsvSide {
    /// A command of this name.
    Client(&'static str),
    /// The master, which has a number for the job.
    Server(JobNumber),
}

/// What a verifier is told of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsvOffer {
    /// Names and values of `PARAM`, in order.
    pub parameters: Vec<(String, String)>,
    /// Names and values of `ENV ADD`, in order.
    pub environment: Vec<(String, String)>,
}

impl JsvOffer {
    /// What is told of a job. Dates are printed by the calendar of the side.
    pub fn new(side: JsvSide, spec: &JobSpec, calendar: &LocalCalendar) -> Self {
        let mut offer = Self::default();
        offer.put_origin(side, spec);
        offer.put_program(spec);
        offer.put_first_half(side, spec, calendar);
        offer.put_second_half(spec);
        offer.put_requests(spec);
        offer.put_last(spec);
        offer.environment = environment(spec);
        offer
    }

    /// The lines that the verifier reads, up to `BEGIN`.
    pub fn lines(&self, with_environment: bool) -> String {
        let mut lines = String::new();
        let mut put = |word: &str, (name, value): &(String, String)| {
            let _ = writeln!(lines, "{word} {} {}", one_line(name), one_line(value));
        };
        self.parameters.iter().for_each(|parameter| put("PARAM", parameter));
        if with_environment {
            self.environment.iter().for_each(|variable| put("ENV ADD", variable));
        }
        lines.push_str("BEGIN\n");
        lines
    }

    fn put_origin(&mut self, side: JsvSide, spec: &JobSpec) {
        self.put("VERSION", "1.0");
        let (context, client) = match side {
            JsvSide::Client(command) => ("client", command),
            JsvSide::Server(_) => ("server", "qmaster"),
        };
        self.put("CONTEXT", context);
        self.put("CLIENT", client);
        self.put("USER", spec.owner.user.as_str());
        self.put("GROUP", &spec.owner.group);
        if let JsvSide::Server(number) = side {
            self.put("JOB_ID", number.to_string());
        }
    }

    fn put_program(&mut self, spec: &JobSpec) {
        let command = match &spec.program {
            Program::Script { path, .. } | Program::Stored { path, .. } => path,
            Program::Command { command } => command,
        };
        self.put("CMDNAME", if command.is_empty() { "NONE" } else { command });
        self.put("CMDARGS", spec.args.len().to_string());
        for (index, arg) in spec.args.iter().enumerate() {
            self.put(&format!("CMDARG{index}"), arg);
        }
    }

    /// From `a` to `js`.
    fn put_first_half(&mut self, side: JsvSide, spec: &JobSpec, calendar: &LocalCalendar) {
        self.put_some("a", spec.start_after.map(|at| calendar.print(at)));
        self.put_list("ac", spec.context.iter().map(assignment));
        self.put_some("ar", spec.reservation.map(|id| id.0.to_string()));
        let default = match side {
            JsvSide::Client(_) => None,
            JsvSide::Server(_) => Some("sge".to_owned()),
        };
        self.put_some("A", spec.account.clone().or(default));
        self.put_flag("b", matches!(spec.program, Program::Command { .. }));
        match spec.occasion {
            Some(Occasion::EverySeconds(seconds)) => self.put("c_interval", seconds.to_string()),
            Some(Occasion::When(when)) => self.put("c_occasion", when.to_string()),
            Some(Occasion::Never) => self.put("c_occasion", "n"),
            None => {}
        }
        self.put_some("ckpt", spec.checkpoint.clone());
        self.put_some("cwd", spec.directory.clone());
        self.put_some("C", spec.directive_prefix.clone());
        self.put_some("dl", spec.deadline.map(|at| calendar.print(at)));
        self.put_list("e", spec.stderr.iter().map(host_path));
        self.put_list("hold_jid", spec.predecessors.iter().cloned());
        self.put_list("hold_jid_ad", spec.array_predecessors.iter().cloned());
        self.put_some("h", holds(spec.holds));
        self.put_list("i", spec.stdin.iter().map(host_path));
        self.put_flag("j", spec.merge_stderr);
        self.put_some("js", (spec.job_share > 0).then(|| spec.job_share.to_string()));
    }

    /// From `l_hard` to `tc`.
    fn put_second_half(&mut self, spec: &JobSpec) {
        self.put_list("l_hard", spec.requests.hard.iter().map(ResourceRequest::to_string));
        self.put_list("l_soft", spec.requests.soft.iter().map(ResourceRequest::to_string));
        self.put_some("m", mail_events(spec.mail));
        let owner = || format!("{}@{}", spec.owner.user, spec.submit_host);
        let to = match spec.mail_to.is_empty() {
            true => owner(),
            false => spec.mail_to.join(","),
        };
        self.put("M", to);
        self.put_list("masterq", spec.requests.master_queues.iter().cloned());
        self.put_flag("notify", spec.notify);
        self.put("N", &spec.name);
        self.put_list("o", spec.stdout.iter().map(host_path));
        self.put_some("P", spec.project.clone());
        self.put_some("p", (spec.priority != 0).then(|| spec.priority.to_string()));
        let concurrency = spec.task_concurrency.filter(|tasks| *tasks > 0);
        self.put_some("tc", concurrency.map(|tasks| tasks.to_string()));
    }

    /// The parallel environment, queues, and what 8.1.9 does not have.
    fn put_requests(&mut self, spec: &JobSpec) {
        let requests = &spec.requests;
        if let Some(binding) = &requests.binding {
            self.parameters.extend(crate::binding::parameters(binding));
        }
        if let Some(pe) = &requests.pe {
            self.put("pe_name", &pe.name);
            self.put("pe_min", pe.slots.least().to_string());
            self.put("pe_max", pe.slots.largest().to_string());
        }
        self.put_some("par", requests.allocation_rule.as_ref().map(ToString::to_string));
        self.put_list("q_hard", requests.hard_queues.iter().cloned());
        self.put_list("q_soft", requests.soft_queues.iter().cloned());
        self.put_list("master_l_hard", requests.master.iter().map(ResourceRequest::to_string));
        self.put_list("slave_l_hard", requests.slaves.iter().map(ResourceRequest::to_string));
        self.put_list("slave_q_hard", requests.slave_queues.iter().cloned());
    }

    /// From `R` to `w`.
    fn put_last(&mut self, spec: &JobSpec) {
        self.put_flag("R", spec.reserve);
        self.put_some("r", spec.rerunnable.map(|runs_again| yes_no(runs_again).to_owned()));
        self.put_some("shell", (spec.use_shell == Some(false)).then(|| "n".to_owned()));
        self.put_list("S", spec.shell.iter().map(host_path));
        if let Some(tasks) = spec.array {
            self.put("t_min", tasks.first().to_string());
            self.put("t_max", tasks.last().to_string());
            self.put("t_step", tasks.step().to_string());
        }
        self.put_some("w", validation(spec.validation).map(str::to_owned));
    }

    fn put(&mut self, name: &str, value: impl Into<String>) {
        self.parameters.push((name.to_owned(), value.into()));
    }

    fn put_some(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    fn put_flag(&mut self, name: &str, is_set: bool) {
        self.put_some(name, is_set.then(|| "y".to_owned()));
    }

    fn put_list(&mut self, name: &str, parts: impl Iterator<Item = String>) {
        let parts: Vec<String> = parts.collect();
        self.put_some(name, (!parts.is_empty()).then(|| parts.join(",")));
    }
}

/// The exported variables. `TERM` is always told of, as 8.1.9 does.
fn environment(spec: &JobSpec) -> Vec<(String, String)> {
    let exported = || spec.exported_variables().cloned();
    if exported().any(|(name, _)| name == "TERM") {
        return exported().collect();
    }
    std::iter::once(("TERM".to_owned(), String::new()))
        .chain(exported())
        .collect()
}

/// A text in one line: what follows a line break would be taken for another command.
fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

fn assignment((name, value): &(String, String)) -> String {
    match value.is_empty() {
        true => name.clone(),
        false => format!("{name}={value}"),
    }
}

fn host_path(path: &HostPath) -> String {
    match &path.host {
        Some(host) => format!("{host}:{}", path.path),
        None => path.path.clone(),
    }
}

fn letters(set: &[(bool, char)]) -> Option<String> {
    let text: String = set
        .iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, letter)| letter)
        .collect();
    (!text.is_empty()).then_some(text)
}

fn holds(holds: Holds) -> Option<String> {
    letters(&[(holds.user, 'u'), (holds.operator, 'o'), (holds.system, 's')])
}

fn mail_events(mail: MailEvents) -> Option<String> {
    let MailEvents {
        begin,
        end,
        abort,
        suspend,
    } = mail;
    letters(&[(abort, 'a'), (begin, 'b'), (end, 'e'), (suspend, 's')])
}

fn validation(validation: Validation) -> Option<&'static str> {
    match validation {
        Validation::None => None,
        Validation::Warn => Some("w"),
        Validation::Refuse => Some("e"),
        Validation::Verify => Some("v"),
        Validation::Poke => Some("p"),
    }
}

fn yes_no(is_yes: bool) -> &'static str {
    if is_yes { "y" } else { "n" }
}
