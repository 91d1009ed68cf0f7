//! What a verifier changed, applied to a job.
//!
//! Values are read as the options of `qsub` read them; whether the job is acceptable then is the
//! master's business. A parameter without a value is deleted. Unknown parameters are ignored, as in
//! 8.1.9, because scripts of other versions set them. `CMDNAME` is taken and has no effect, as in
//! 8.1.9: a verifier may not exchange the program.

#[cfg(test)]
mod tests;

use crate::binding::BindingParameters;
use crate::date::LocalCalendar;
use crate::dialog::JsvChange;
use proto::checkpoint::Occasion;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::ReservationId;
use proto::job::{Holds, JobSpec, MailEvents, PeRequest, Program, Requests, Validation, lists};
use proto::request::{ResourceList, ResourceRequest, SlotRange, TaskRange, split_unquoted};
use proto::time::Wall;

/// The most arguments that a verifier may give a job.
const ARGS_MAX: usize = 65_536;

/// The job with all changes.
///
/// # Errors
/// A value that does not parse, in the words of 8.1.9.
pub fn corrected(mut spec: JobSpec, changes: &[JsvChange], calendar: &LocalCalendar) -> Result<JobSpec, Diagnostic> {
    let mut environment = (*spec.environment).clone();
    let mut correction = Correction {
        requests: (*spec.requests).clone(),
        calendar,
        numbers: Numbers::default(),
        binding: BindingParameters::default(),
    };
    for change in changes {
        match change {
            JsvChange::Parameter { name, value } => {
                correction.parameter(&mut spec, name, value.as_deref().unwrap_or_default())?;
                if name == "display" {
                    set_variable(&mut environment, "DISPLAY", value.as_deref());
                }
            }
            JsvChange::SetVariable { name, value } => set_variable(&mut environment, name, Some(value)),
            JsvChange::DeleteVariable { name } => set_variable(&mut environment, name, None),
        }
    }
    correction.finish(&mut spec)?;
    if *spec.environment != environment {
        spec.environment = environment.into();
    }
    Ok(spec)
}

/// Sets a variable in its place, adds it at the end, or removes it.
fn set_variable(environment: &mut Vec<(String, String)>, name: &str, value: Option<&str>) {
    let Some(value) = value else {
        return environment.retain(|(known, _)| known != name);
    };
    match environment.iter_mut().rfind(|(known, _)| known == name) {
        Some(variable) => value.clone_into(&mut variable.1),
        None => environment.push((name.to_owned(), value.to_owned())),
    }
}

/// Parameters that make one value together.
#[derive(Default)]
struct Numbers {
    args: Option<usize>,
    arg: Vec<(usize, String)>,
    pe_name: Option<String>,
    pe_min: Option<u32>,
    pe_max: Option<u32>,
    first_task: Option<u32>,
    last_task: Option<u32>,
    task_step: Option<u32>,
}

struct Correction<'a> {
    requests: Requests,
    calendar: &'a LocalCalendar,
    numbers: Numbers,
    binding: BindingParameters,
}

impl Correction<'_> {
    /// Sets one parameter. An empty value deletes it.
    fn parameter(&mut self, spec: &mut JobSpec, name: &str, value: &str) -> Result<(), Diagnostic> {
        let is_set = !value.is_empty();
        let some = || is_set.then(|| value.to_owned());
        match name {
            "a" => spec.start_after = self.date(value)?,
            "ac" => spec.context = context(value)?,
            "ar" => spec.reservation = some().map(|id| number(&id, name).map(ReservationId)).transpose()?,
            "A" => spec.account = some(),
            "b" => set_binary(spec, yes_no("b", value)?)?,
            "c_occasion" => spec.occasion = occasion(value)?,
            "c_interval" => spec.occasion = some().map(|every| interval(&every)).transpose()?,
            "ckpt" => spec.checkpoint = some(),
            "cwd" => (spec.directory, spec.directory_on) = (some(), Vec::new()),
            "dl" => spec.deadline = self.date(value)?,
            "e" => spec.stderr = lists::paths(value),
            "hold_jid" => spec.predecessors = lists::list(value),
            "hold_jid_ad" => spec.array_predecessors = lists::list(value),
            "h" => spec.holds = holds(value)?,
            "i" => spec.stdin = lists::paths(value),
            "j" => spec.merge_stderr = yes_no("j", value)?,
            "js" => spec.job_share = number_or_zero(value, name)?,
            "m" => spec.mail = mail_events(value)?,
            "M" => spec.mail_to = lists::addresses(value),
            "notify" => spec.notify = yes_no("notify", value)?,
            "N" => value.clone_into(&mut spec.name),
            "o" => spec.stdout = lists::paths(value),
            "P" => spec.project = some(),
            "p" => spec.priority = priority(value)?,
            "tc" => spec.task_concurrency = some().map(|tasks| number(&tasks, name)).transpose()?,
            "R" => spec.reserve = yes_no("R", value)?,
            "r" => spec.rerunnable = some().map(|value| yes_no("r", &value)).transpose()?,
            "shell" => spec.use_shell = some().map(|value| yes_no("shell", &value)).transpose()?,
            "S" => spec.shell = lists::paths(value),
            "w" => spec.validation = validation(value)?,
            _ => self.request(name, value)?,
        }
        Ok(())
    }

    /// Requests, and parameters that make one value together.
    fn request(&mut self, name: &str, value: &str) -> Result<(), Diagnostic> {
        let requests = &mut self.requests;
        let numbers = &mut self.numbers;
        match name {
            "l_hard" => requests.hard = resources(value)?,
            "l_soft" => requests.soft = resources(value)?,
            "master_l_hard" => requests.master = resources(value)?,
            "slave_l_hard" => requests.slaves = resources(value)?,
            "q_hard" => requests.hard_queues = lists::list(value),
            "q_soft" => requests.soft_queues = lists::list(value),
            "slave_q_hard" => requests.slave_queues = lists::list(value),
            "masterq" => requests.master_queues = lists::list(value),
            "par" if value.is_empty() => requests.allocation_rule = None,
            "par" => requests.allocation_rule = Some(value.parse().map_err(|_| not_settable(name, value))?),
            "pe_name" => numbers.pe_name = Some(value.to_owned()),
            "pe_min" => numbers.pe_min = Some(number(value, name)?),
            "pe_max" => numbers.pe_max = Some(number(value, name)?),
            "t_min" => numbers.first_task = Some(number(value, name)?),
            "t_max" => numbers.last_task = Some(number(value, name)?),
            "t_step" => numbers.task_step = Some(number(value, name)?),
            "CMDARGS" => numbers.args = Some(number(value, name)? as usize),
            _ if self.binding.take(name, value) => {}
            _ => {
                if let Some(index) = name.strip_prefix("CMDARG").and_then(|index| index.parse().ok()) {
                    numbers.arg.push((index, value.to_owned()));
                }
            }
        }
        Ok(())
    }

    /// Puts together what several parameters make.
    fn finish(self, spec: &mut JobSpec) -> Result<(), Diagnostic> {
        let Self {
            mut requests,
            numbers,
            binding,
            calendar: _,
        } = self;
        numbers.change_args(&mut spec.args)?;
        numbers.change_pe(&mut requests)?;
        let changed = binding.change(requests.binding.as_deref());
        requests.binding = changed.map_err(|error| refusal(error.to_string()))?.map(Box::new);
        if let Some(tasks) = spec.array {
            spec.array = Some(numbers.tasks(tasks)?);
        }
        if *spec.requests != requests {
            spec.requests = requests.into();
        }
        Ok(())
    }

    fn date(&self, value: &str) -> Result<Option<Wall>, Diagnostic> {
        if value.is_empty() {
            return Ok(None);
        }
        let date = self
            .calendar
            .parse(value)
            .map_err(|reason| refusal(reason.to_string()))?;
        Ok(Some(date).filter(|date| date.0 > 0))
    }
}

impl Numbers {
    fn change_args(&self, args: &mut Vec<String>) -> Result<(), Diagnostic> {
        let last = self
            .arg
            .iter()
            .map(|(index, _)| index.saturating_add(1))
            .max()
            .unwrap_or(0);
        let count = self.args.unwrap_or(args.len().max(last));
        if count > ARGS_MAX {
            return Err(refusal(format!(
                "the verifier gives the job more than {ARGS_MAX} arguments"
            )));
        }
        args.resize(count, String::new());
        for (index, value) in &self.arg {
            if let Some(arg) = args.get_mut(*index) {
                arg.clone_from(value);
            }
        }
        Ok(())
    }

    fn change_pe(&self, requests: &mut Requests) -> Result<(), Diagnostic> {
        if self.pe_name.as_deref() == Some("") {
            requests.pe = None;
            return Ok(());
        }
        let known = requests.pe.take();
        let Some(name) = self
            .pe_name
            .clone()
            .or_else(|| known.as_ref().map(|pe| pe.name.clone()))
        else {
            return Ok(());
        };
        let slots = match (self.pe_min, self.pe_max, known.map(|pe| pe.slots)) {
            (None, None, Some(known)) => known,
            (min, max, known) => {
                let least = min.or(known.as_ref().map(SlotRange::least)).or(max).unwrap_or(1);
                let largest = max.or(known.as_ref().map(SlotRange::largest)).unwrap_or(least);
                SlotRange::parse(&format!("{least}-{largest}")).map_err(|error| refusal(error.to_string()))?
            }
        };
        requests.pe = Some(PeRequest { name, slots });
        Ok(())
    }

    /// The tasks of an array. As in 8.1.9, a job that is not one does not become one.
    fn tasks(&self, known: TaskRange) -> Result<TaskRange, Diagnostic> {
        let (first, last, step) = (
            self.first_task.unwrap_or(known.first()),
            self.last_task.unwrap_or(known.last()),
            self.task_step.unwrap_or(known.step()),
        );
        TaskRange::new(first, last, step).map_err(|error| refusal(error.to_string()))
    }
}

fn refusal(what: String) -> Diagnostic {
    Diagnostic::new(Code::JobRejected, what)
        .why("a job submission verifier set it")
        .fix("tell the author of the verifier, which -jsv, sge_request or jsv_url of qconf -sconf names")
}

fn not_settable(name: &str, value: &str) -> Diagnostic {
    refusal(format!("JSV tries to set \"{name}\" to \"{value}\""))
}

fn yes_no(name: &str, value: &str) -> Result<bool, Diagnostic> {
    match value.to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        "n" | "no" | "" => Ok(false),
        _ => Err(not_settable(name, value)),
    }
}

fn number(value: &str, name: &str) -> Result<u32, Diagnostic> {
    value.parse().map_err(|_| not_settable(name, value))
}

fn number_or_zero(value: &str, name: &str) -> Result<u32, Diagnostic> {
    if value.is_empty() { Ok(0) } else { number(value, name) }
}

fn priority(value: &str) -> Result<i32, Diagnostic> {
    if value.is_empty() {
        return Ok(0);
    }
    let parsed = value.parse().ok().filter(|priority| (-1023..=1024).contains(priority));
    parsed.ok_or_else(|| {
        refusal(format!(
            "invalid priority \"{value}\".  Must be an integer from -1023 to 1024"
        ))
    })
}

fn context(value: &str) -> Result<Vec<(String, String)>, Diagnostic> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for part in split_unquoted(value, &[','])
        .into_iter()
        .filter(|part| !part.is_empty())
    {
        let (name, value_of) = part.split_once('=').unwrap_or((part, ""));
        if name.is_empty() {
            return Err(refusal(format!("Wrong context list format -ac \"{value}\"")));
        }
        match pairs.iter_mut().find(|(known, _)| known == name) {
            Some(pair) => value_of.clone_into(&mut pair.1),
            None => pairs.push((name.to_owned(), value_of.to_owned())),
        }
    }
    Ok(pairs)
}

fn resources(value: &str) -> Result<Vec<ResourceRequest>, Diagnostic> {
    match ResourceList::parse(value) {
        Ok(list) => Ok(list.into()),
        Err(wrong) => Err(refusal(wrong.what)),
    }
}

fn occasion(value: &str) -> Result<Option<Occasion>, Diagnostic> {
    if value.is_empty() {
        return Ok(None);
    }
    match value.parse::<Occasion>() {
        Ok(occasion) => Ok(Some(occasion)),
        Err(error) => Err(refusal(error.to_string())),
    }
}

/// A time between two checkpoints, in seconds.
fn interval(value: &str) -> Result<Occasion, Diagnostic> {
    let seconds = number(value, "c_interval")?;
    Ok(Occasion::EverySeconds(seconds.into()))
}

fn holds(value: &str) -> Result<Holds, Diagnostic> {
    let mut holds = Holds::default();
    for letter in value.chars() {
        match letter {
            'u' => holds.user = true,
            'o' => holds.operator = true,
            's' => holds.system = true,
            'n' => holds = Holds::default(),
            _ => return Err(not_settable("h", value)),
        }
    }
    Ok(holds)
}

fn mail_events(value: &str) -> Result<MailEvents, Diagnostic> {
    let mut events = MailEvents::default();
    for letter in value.chars() {
        match letter {
            'b' => events.begin = true,
            'e' => events.end = true,
            'a' => events.abort = true,
            's' => events.suspend = true,
            'n' => return Ok(MailEvents::default()),
            _ => {
                return Err(refusal(format!(
                    "Wrong mail options list format \"{value}\" specified to -m option"
                )));
            }
        }
    }
    Ok(events)
}

fn validation(value: &str) -> Result<Validation, Diagnostic> {
    match value {
        "" | "n" => Ok(Validation::None),
        "w" => Ok(Validation::Warn),
        "e" => Ok(Validation::Refuse),
        "v" => Ok(Validation::Verify),
        "p" => Ok(Validation::Poke),
        _ => Err(refusal(format!("invalid option argument \"-w {value}\""))),
    }
}

/// `b y` makes the path of a script a command. The other way there is no script to take.
fn set_binary(spec: &mut JobSpec, is_binary: bool) -> Result<(), Diagnostic> {
    let path = match &spec.program {
        Program::Command { .. } if !is_binary => {
            return Err(refusal(
                "a binary job cannot become one with a script: the script was not sent".to_owned(),
            ));
        }
        Program::Command { .. } => return Ok(()),
        Program::Script { path, .. } | Program::Stored { path, .. } => path.clone(),
    };
    if is_binary {
        spec.program = Program::Command { command: path };
    }
    Ok(())
}
