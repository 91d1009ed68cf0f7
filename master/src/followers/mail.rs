//! Mail about jobs and about errors of queues, in the texts of 8.1.9.
//!
//! Which mail an event leads to is decided from the state just before it; [`sender`] gives it to
//! the `mailer` of the configuration. Mail is sent at most once: what a master has not sent when it
//! ends stays unsent.

pub mod relay;
mod reservations;
pub mod sender;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use master_core::decide::hosts::fitness;
use master_core::event::{Actor, Event, Record, TaskFate};
use master_core::state::State;
use master_core::state::job::{Job, Placement};
use proto::accounting::AccountingRecord;
use proto::id::{JobNumber, QueueInstanceName, TaskId, TaskKey};
use proto::job::JobSpec;
use proto::request::TaskRange;
use proto::time::Wall;
use proto::usage::FailedCode;
use sender::MailQueue;

/// One mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// The program that sends it: `mailer` of the configuration.
    pub mailer: String,
    /// Who gets it, one run of the program for each.
    pub to: Vec<String>,
    /// What it is about.
    pub subject: String,
    /// What it says.
    pub text: String,
}

/// Decides about mail, event by event.
pub struct Mailer {
    zone: TimeZone,
    queue: MailQueue,
    /// The end that may have put a queue into error; the event behind it says so.
    failed: Option<Box<AccountingRecord>>,
}

impl Mailer {
    /// A mailer that writes times of this zone, and puts mail into this queue.
    pub fn new(zone: TimeZone, queue: MailQueue) -> Self {
        Self {
            zone,
            queue,
            failed: None,
        }
    }

    /// Sends the mail that an event leads to. `state` is the state before it.
    pub(super) fn before(&mut self, state: &State, record: &Record) {
        for mail in self.notices(state, record) {
            self.queue.put(mail);
        }
    }

    /// The mail that an event leads to. `state` is the state before it.
    #[allow(clippy::wildcard_enum_match_arm, reason = "users hear of these events only")]
    fn notices(&mut self, state: &State, record: &Record) -> Vec<Mail> {
        match &record.event {
            Event::TaskStarted { key, at } => self.started(state, *key, *at).into_iter().collect(),
            Event::TaskEnded {
                key,
                record: Some(ended),
                then,
                ..
            } => self.ended(state, *key, ended, then),
            Event::TasksDeleted { seq, tasks } => state
                .jobs
                .get(seq)
                .map_or_else(Vec::new, |job| deleted(state, job, tasks, &record.actor)),
            Event::TaskDeletionRequested { key } => match state.placed(*key) {
                Some((job, ..)) => deleted(state, job, &one(key.task), &record.actor),
                None => Vec::new(),
            },
            Event::TaskSuspended { key, suspended } | Event::TaskThresholdSuspended { key, suspended } => {
                self.suspended(state, *key, *suspended).into_iter().collect()
            }
            Event::InstanceChanged { instance, state: now } => {
                let known = state.instances.get(instance).map_or(0, |before| before.errors.len());
                let error = now.errors.get(known..).and_then(<[String]>::last);
                let of_error = error.and_then(|error| self.queue_error(state, instance, error));
                of_error
                    .into_iter()
                    .chain(reservations::failing(state, instance, now))
                    .collect()
            }
            Event::ReservationChanged { id, state: now } => reservations::changed(self, state, *id, *now, record)
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }

    fn started(&self, state: &State, key: TaskKey, at: Wall) -> Option<Mail> {
        let (job, _, placement) = state.placed(key).filter(|(job, ..)| job.spec.mail.begin)?;
        let subject = format!("{} Started", named(job, key.task));
        let (user, queue, host) = (&job.spec.owner.user, &placement.master().queue, placement.host());
        let start = self.time(at);
        let text = format!(
            "{subject}\n User       = {user}\n Queue      = {queue}\n Host       = {host}\n Start Time = {start}\n"
        );
        Some(to_job(state, &job.spec, subject, text))
    }

    fn ended(&mut self, state: &State, key: TaskKey, ended: &AccountingRecord, then: &TaskFate) -> Vec<Mail> {
        self.failed = (ended.failed != FailedCode::NO).then(|| Box::new(ended.clone()));
        let Some((job, _, placement)) = state.placed(key) else {
            return Vec::new();
        };
        let wish = job.spec.mail;
        let of_job = if placement.deleting {
            // The deletion was told when it was asked for.
            None
        } else if ended.failed == FailedCode::NO {
            wish.end.then(|| self.complete(state, job, placement, ended))
        } else {
            (wish.abort || wish.end).then(|| self.aborted(state, job, placement, ended, then))
        };
        let of_error = matches!(then, TaskFate::Error { .. }).then(|| {
            let action = match job.spec.array {
                Some(_) => format!("Job-array task {}.{} set to ERROR", job.number, key.task),
                None => format!("Job {} set to ERROR", job.number),
            };
            self.caused(state, ended, &action)
        });
        of_job.into_iter().chain(of_error.flatten()).collect()
    }

    fn complete(&self, state: &State, job: &Job, placement: &Placement, ended: &AccountingRecord) -> Mail {
        let subject = format!("{} Complete", named(job, placement.key.task));
        let text = format!(
            "{subject}\n User             = {}\n Queue            = {}\n Host             = {}\n Start Time       = {}\n \
             End Time         = {}\n User Time        = {}\n System Time      = {}\n Wallclock Time   = {}\n \
             CPU              = {}\n Max vmem         = {}\n Exit Status      = {}\n",
            ended.owner,
            placement.master(),
            ended.host,
            self.time(ended.started),
            self.time(ended.ended),
            duration(ended.rusage.utime_ms),
            duration(ended.rusage.stime_ms),
            duration(ended.wallclock_ms),
            duration(ended.usage.cpu_ms),
            memory(ended.usage.maxvmem_bytes),
            ended.exit_status,
        );
        to_job(state, &job.spec, subject, text)
    }

    fn aborted(
        &self,
        state: &State,
        job: &Job,
        placement: &Placement,
        ended: &AccountingRecord,
        then: &TaskFate,
    ) -> Mail {
        let what = match then {
            TaskFate::Requeued => "Rescheduled",
            TaskFate::Error { .. } => "Set in error state",
            TaskFate::Done => "Aborted",
        };
        let subject = format!("{} {what}", named(job, placement.key.task));
        let (status, signal) = match ended.exit_status.checked_sub(128).filter(|signal| *signal > 0) {
            Some(signal) => (ended.exit_status.to_string(), signal_name(signal)),
            None => (ended.exit_status.to_string(), "unknown signal".to_owned()),
        };
        let hint = match then {
            TaskFate::Error { .. } => "\nUse \"qmod -c <jobid>\" to clear job error state\nonce the problem is fixed.",
            TaskFate::Done | TaskFate::Requeued => "",
        };
        let text = format!(
            "{subject}\n Exit Status      = {status}\n Signal           = {signal}\n User             = {}\n \
             Queue            = {}\n Host             = {}\n Start Time       = {}\n End Time         = {}\n \
             CPU              = {}\n Max vmem         = {}\nfailed {} because:\n{}{hint}\n",
            ended.owner,
            placement.master(),
            ended.host,
            self.time(ended.started),
            self.time(ended.ended),
            duration(ended.usage.cpu_ms),
            memory(ended.usage.maxvmem_bytes),
            ended.failed.text(),
            ended.reason,
        );
        to_job(state, &job.spec, subject, text)
    }

    fn suspended(&self, state: &State, key: TaskKey, is_suspended: bool) -> Option<Mail> {
        let (job, _, placement) = state.placed(key).filter(|(job, ..)| job.spec.mail.suspend)?;
        let subject = format!(
            "{} {}",
            named(job, key.task),
            if is_suspended { "Suspended" } else { "Continued" }
        );
        let text = format!(
            "{subject}\n Master queue    = {}\n Owner           = {}\n Submission time = {}\n Start time      = {}\n",
            placement.master(),
            job.spec.owner.user,
            self.time(job.submitted),
            self.time(placement.started.unwrap_or(placement.placed)),
        );
        Some(to_job(state, &job.spec, subject, text))
    }

    /// To the administrator: a queue instance takes no more jobs.
    fn queue_error(&mut self, state: &State, instance: &QueueInstanceName, error: &str) -> Option<Mail> {
        let action = format!("Queue \"{instance}\" set to ERROR");
        let is_cause = |ended: &AccountingRecord| ended.queue == instance.queue && ended.host == instance.host;
        // One job is not the cause where many failed.
        match self
            .failed
            .take()
            .filter(|ended| is_cause(ended) && !fitness::is_about_host(error))
        {
            Some(ended) => self.caused(state, &ended, &action),
            None => to_administrator(state, action.clone(), format!("{action}\n{error}\n")),
        }
    }

    /// To the administrator: what the failure of a job led to.
    fn caused(&self, state: &State, ended: &AccountingRecord, action: &str) -> Option<Mail> {
        let number = ended.job_number;
        let task = if ended.task_number == 0 {
            format!("Job {number}")
        } else {
            format!("Job-array task {number}.{}", ended.task_number)
        };
        let subject = format!("Gridwright {}: {task} failed", env!("CARGO_PKG_VERSION"));
        let text = format!(
            "Job {number} caused action: {action}\n User        = {}\n Queue       = {}@{}\n Start Time  = {}\n \
             End Time    = {}\nfailed {}: {}\n",
            ended.owner,
            ended.queue,
            ended.host,
            self.time(ended.started),
            self.time(ended.ended),
            ended.failed.text(),
            ended.reason,
        );
        to_administrator(state, subject, text)
    }

    /// `11/21/2026 01:46:27`; `<unknown>` for what never was.
    fn time(&self, at: Wall) -> String {
        match Timestamp::from_millisecond(at.0) {
            Ok(time) if at.0 > 0 => time
                .to_zoned(self.zone.clone())
                .strftime("%m/%d/%Y %H:%M:%S")
                .to_string(),
            _ => "<unknown>".to_owned(),
        }
    }
}

/// `qdel`: who did it. One mail for a whole job, one for each range of tasks of an array.
fn deleted(state: &State, job: &Job, tasks: &[TaskRange], actor: &Actor) -> Vec<Mail> {
    if !job.spec.mail.abort {
        return Vec::new();
    }
    let by = match actor {
        Actor::User { user, host } => format!("{user}@{host}"),
        Actor::Agent(host) => format!("execd@{host}"),
        Actor::Scheduler(_) | Actor::Master => "qmaster".to_owned(),
    };
    let mail = |(subject, text): (String, String)| to_job(state, &job.spec, subject, text);
    let whole = |number: JobNumber, name: &str| {
        (
            format!("Job {number} ({name}) Killed"),
            format!("Job {number} ({name})  was killed by {by}\n"),
        )
    };
    if job.spec.array.is_none() {
        return vec![mail(whole(job.number, &job.spec.name))];
    }
    let part = |range: &TaskRange| {
        let name = format!("Job-array task {}.{range} ({})", job.number, job.spec.name);
        (format!("{name} Killed"), format!("{name} was killed by {by}\n"))
    };
    tasks.iter().map(part).map(mail).collect()
}

/// A single task as ranges.
fn one(task: TaskId) -> Vec<TaskRange> {
    TaskRange::new(task.0, task.0, 1).into_iter().collect()
}

/// `Job 7 (name)`, `Job-array task 7.3 (name)`.
fn named(job: &Job, task: TaskId) -> String {
    match job.spec.array {
        Some(_) => format!("Job-array task {}.{task} ({})", job.number, job.spec.name),
        None => format!("Job {} ({})", job.number, job.spec.name),
    }
}

/// To those whom `-M` names, else to the owner where the job was submitted.
fn to_job(state: &State, spec: &JobSpec, subject: String, text: String) -> Mail {
    let owner = || vec![format!("{}@{}", spec.owner.user, spec.submit_host)];
    let to = if spec.mail_to.is_empty() {
        owner()
    } else {
        spec.mail_to.clone()
    };
    Mail {
        mailer: mailer(state),
        to,
        subject,
        text,
    }
}

/// To `administrator_mail`, a list; nobody if there is none.
fn to_administrator(state: &State, subject: String, text: String) -> Option<Mail> {
    let addresses = state.config.settings.administrator_mail.value()?.to_string();
    let to: Vec<String> = addresses
        .split([',', ' '])
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    (!to.is_empty()).then(|| Mail {
        mailer: mailer(state),
        to,
        subject,
        text,
    })
}

fn mailer(state: &State) -> String {
    state.config.settings.mailer.to_string()
}

/// `00:00:07`, from a day on `1:00:00:07`.
fn duration(ms: u64) -> String {
    let s = ms / 1_000;
    let clock = format!("{:02}:{:02}:{:02}", s / 3_600 % 24, s / 60 % 60, s % 60);
    if s < 86_400 {
        clock
    } else {
        format!("{}:{clock}", s / 86_400)
    }
}

/// `1.500M`; `NA` where nothing was measured.
fn memory(bytes: u64) -> String {
    const UNITS: [(u64, char); 4] = [(1 << 40, 'T'), (1 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')];
    if bytes == 0 {
        return "NA".to_owned();
    }
    match UNITS.into_iter().find(|(size, _)| bytes >= *size) {
        Some((size, letter)) => {
            let thousandths = u128::from(bytes) * 1_000 / u128::from(size);
            format!("{}.{:03}{letter}", thousandths / 1_000, thousandths % 1_000)
        }
        None => format!("{bytes}.000"),
    }
}

/// `KILL`; `unknown signal` for a number that names none.
fn signal_name(number: u32) -> String {
    let signal = i32::try_from(number)
        .ok()
        .and_then(|number| nix::sys::signal::Signal::try_from(number).ok());
    signal.map_or_else(
        || "unknown signal".to_owned(),
        |signal| signal.as_str().trim_start_matches("SIG").to_owned(),
    )
}
