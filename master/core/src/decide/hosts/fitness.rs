//! Hosts that cannot start tasks: by their own word, by a start that they refused, or because
//! several starts in a row failed there.
//!
//! What a host says and what it refused closes its queue instances until it is well again, and
//! nobody has to do anything: it is an observation, no event. A host that claims to be well and
//! refuses again is left alone for longer each time. Too many starts in a row that failed, by
//! whatever fault, close it until an operator has looked (`MAX_START_FAILURES` of
//! `qmaster_params`).
//!
//! A job whose shepherds die again and again before it begins would in this way pause one host
//! after the other. After as many such starts in a row it waits in error itself. Those that can be
//! the fault of one host do not count for that.

use crate::decide::Turn;
use crate::decide::hosts::agents::Deadline;
use crate::effect::{Alarm, Effect};
use crate::event::Event;
use crate::observe::Observation;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, QueueInstanceName, SubmitSeq, TaskKey, UserName};
use proto::launch::{LISTED_OTHERWISE, NOT_LISTED};
use proto::root_commands::is_sendable;
use proto::time::Tick;
use proto::usage::{Blame, FailedCode, TaskResult};
use std::collections::{BTreeMap, BTreeSet};

/// How long a host that refused a start gets no other one, unless it says before that it was unwell
/// and is no more.
pub(crate) const FIRST_PAUSE_MS: u64 = 10_000;

/// The longest such time: it doubles while the host refuses again after each.
pub(crate) const LONGEST_PAUSE_MS: u64 = 600_000;

/// The error text of an instance that is closed because starts failed in a row.
const IN_A_ROW: &str = "starts in a row failed on host";

/// Whether an error of a queue instance is about starts that failed in a row, and not about one
/// job.
pub fn is_about_host(error: &str) -> bool {
    error.contains(IN_A_ROW)
}

/// How well hosts start tasks. Volatile: a new master finds it out anew.
#[derive(Debug, Default)]
pub(crate) struct Fitness {
    hosts: BTreeMap<HostName, HostFitness>,
    /// Starts of unfinished jobs that ended with the death of the shepherd, since one of the job
    /// succeeded.
    deaths: BTreeMap<SubmitSeq, Deaths>,
}

/// The starts of a job in a row that ended with the death of the shepherd.
#[derive(Debug, Default)]
struct Deaths {
    count: u32,
    /// Those that can hardly be the fault of one host.
    of_job: u32,
    /// The last one on each host.
    last: BTreeMap<HostName, Tick>,
    last_host: Option<HostName>,
}

/// The record of one host.
#[derive(Debug, Default)]
struct HostFitness {
    /// The reason that the host gives why it cannot start tasks.
    said: Option<String>,
    refused: Option<Pause>,
    /// The lines of its list of commands that root runs there, if it says.
    root_commands: Option<Vec<String>>,
    /// The last such lines, also of a host that does not say any more.
    last_commands: Option<Vec<String>>,
    /// When a task last started.
    started: Option<Tick>,
    /// Jobs whose starts failed since one succeeded.
    failed: BTreeMap<SubmitSeq, FailedStart>,
}

/// The time in which a host that refused a start gets no other one.
#[derive(Debug)]
struct Pause {
    why: String,
    until: Tick,
    length_ms: u64,
}

#[derive(Debug)]
struct FailedStart {
    owner: UserName,
    blame: Blame,
}

impl HostFitness {
    fn unfit(&self, now: Tick) -> Option<&str> {
        let paused = self.refused.as_ref().filter(|pause| pause.until > now);
        self.said.as_deref().or(paused.map(|pause| pause.why.as_str()))
    }

    /// Whether the starts that failed tell more about the host than about one user.
    fn is_evidence(&self) -> bool {
        let owners: BTreeSet<&UserName> = self.failed.values().map(|failure| &failure.owner).collect();
        owners.len() > 1 || self.failed.values().any(|failure| failure.blame == Blame::Host)
    }
}

/// Notes the reason that a host gives why it cannot start tasks. `None` means that it can.
pub(crate) fn said(turn: &mut Turn<'_>, host: &HostName, unfit: Option<String>) {
    let record = turn.fitness_mut().host_mut(host);
    let was_unwell = std::mem::replace(&mut record.said, unfit).is_some();
    if was_unwell && record.said.is_none() {
        // It knew what was wrong and knows that it is mended: what it refused meanwhile says
        // nothing more.
        record.refused = None;
    }
    show(turn, host);
}

/// Notes the commands that root runs on a host, as the host says; `None` if it does not. A list
/// that is longer than launchers send is not kept: it is unknown what the host lists. Queue
/// instances that wait in error because a command was not listed take jobs again once a list has
/// it. Those whose command has other arguments do so once the list is another one than before.
pub(crate) fn lists(turn: &mut Turn<'_>, host: &HostName, root_commands: Option<Vec<String>>) {
    let root_commands = root_commands.filter(|lines| is_sendable(lines));
    let record = turn.fitness_mut().host_mut(host);
    record.root_commands.clone_from(&root_commands);
    let Some(lines) = root_commands.filter(|lines| record.last_commands.as_ref() != Some(lines)) else {
        return;
    };
    // A new master does not know whether the first list that it is told is another one than before.
    let is_changed = record.last_commands.replace(lines.clone()).is_some();
    let state = turn.state();
    let queues = state
        .config
        .sites
        .get(host)
        .into_iter()
        .flat_map(|site| &site.instances);
    let mended: Vec<_> = queues
        .filter_map(|(queue, _)| {
            let instance = QueueInstanceName {
                queue: queue.clone(),
                host: host.clone(),
            };
            let known = state.instances.get(&instance)?;
            let is_one = known.errors.iter().any(|error| is_mended(error, &lines, is_changed));
            is_one.then(|| (instance, known.clone()))
        })
        .collect();
    for (instance, mut state) in mended {
        state.errors.retain(|error| !is_mended(error, &lines, is_changed));
        turn.record(Event::InstanceChanged { instance, state });
    }
}

/// Whether an error of a queue instance is about a program that a list of its host has now, or
/// about arguments of one and the list has changed. The next job shows whether the list has those.
fn is_mended(error: &str, lines: &[String], is_changed: bool) -> bool {
    let refusal = error.split_once("root@").filter(|_| !is_about_host(error));
    let Some((_, refusal)) = refusal else { return false };
    let has = |program: Option<&str>| {
        let mut programs = lines.iter().map(|line| line.split_ascii_whitespace().next());
        program.is_some() && programs.any(|listed| listed == program)
    };
    match refusal.strip_suffix(NOT_LISTED) {
        Some(text) => has(text.strip_suffix(": ")),
        None => is_changed && refusal.contains(LISTED_OTHERWISE) && has(refusal.split_ascii_whitespace().next()),
    }
}

/// Counts a task that did not start. Returns the reason for which it waits in error and is not
/// tried again, if that is so although its host takes the blame.
pub(crate) fn not_started(turn: &mut Turn<'_>, host: &HostName, key: TaskKey, result: &TaskResult) -> Option<String> {
    let (job, _, placement) = turn.state().placed(TaskKey { pe_task: 0, ..key })?;
    if placement.deleting || placement.rescheduling || placement.migrating {
        return None;
    }
    let failure = FailedStart {
        owner: job.spec.owner.user.clone(),
        blame: result.blame,
    };
    let is_unfit = turn
        .observations()
        .hosts
        .get(host)
        .is_some_and(|known| known.unfit.is_some());
    match result.blame {
        // Starts that were on their way when the first of them was refused are no further failures.
        Blame::Host if is_unfit => None,
        Blame::Host => {
            pause(turn, host, &result.reason);
            show(turn, host);
            count(turn, host, key.seq, failure, &result.reason);
            is_death(key, result)
                .then(|| count_death(turn, host, key.seq, &result.reason))
                .flatten()
        }
        Blame::Job | Blame::Queue => {
            count(turn, host, key.seq, failure, &result.reason);
            None
        }
    }
}

/// Whether the shepherd of a task, not of a slave task, died before the job began.
fn is_death(key: TaskKey, result: &TaskResult) -> bool {
    key.pe_task == 0 && result.failed == FailedCode::BEFORE_EXEC
}

/// Counts a start that ended with the death of the shepherd. Returns the reason why the job is not
/// tried again after too many.
///
/// The first death on a host counts. A further one there may be the fault of the host, so it counts
/// only if the host has started something else since the one before, if the job has died on another
/// host since, or if the cell has no other host.
fn count_death(turn: &mut Turn<'_>, host: &HostName, seq: SubmitSeq, why: &str) -> Option<String> {
    let (state, now) = (turn.state(), turn.now.tick);
    let most = state.config.settings.qmaster().max_start_failures;
    let is_only_host = !state.config.resolved.keys().any(|instance| instance.host != *host);
    let Fitness { hosts: records, deaths } = turn.fitness_mut();
    let started = records.get(host).and_then(|record| record.started);
    let row = deaths.entry(seq).or_default();
    row.count = row.count.saturating_add(1);
    let before = row.last.insert(host.clone(), now);
    let starts_others = before.is_none_or(|before| started.is_some_and(|started| started > before));
    let is_elsewhere = row.last_host.replace(host.clone()).is_some_and(|last| last != *host);
    if is_only_host || starts_others || is_elsewhere {
        row.of_job = row.of_job.saturating_add(1);
    }
    let count = row.count;
    (most > 0 && row.of_job >= most)
        .then(|| format!("{why}; so ended {count} starts of the job in a row, the last one on host {host}"))
}

/// An operator has looked at a host: what it refused and what failed there is forgotten. Whether
/// anything was in force, and what the host says itself keeps it from starting tasks, which it
/// alone takes back.
pub(crate) fn forgive(turn: &mut Turn<'_>, host: &HostName) -> (bool, Option<String>) {
    let now = turn.now.tick;
    let Some(record) = turn.fitness_mut().hosts.get_mut(host) else {
        return (false, None);
    };
    record.failed.clear();
    let was_paused = record.refused.take().is_some_and(|pause| pause.until > now);
    let said = record.said.clone();
    show(turn, host);
    (was_paused, said)
}

/// A task runs: the host starts tasks, and the job can be started. What was on its way before a
/// refusal says nothing about the host.
pub(crate) fn started(turn: &mut Turn<'_>, host: &HostName, key: TaskKey) {
    let now = turn.now.tick;
    turn.fitness_mut().deaths.remove(&key.seq);
    let record = turn.fitness_mut().host_mut(host);
    record.started = Some(now);
    if record.unfit(now).is_none() {
        (record.refused, record.failed) = (None, BTreeMap::new());
    }
}

fn pause(turn: &mut Turn<'_>, host: &HostName, why: &str) {
    let now = turn.now.tick;
    let record = turn.fitness_mut().host_mut(host);
    let before = record.refused.as_ref().map(|pause| pause.length_ms);
    let length_ms = before.map_or(FIRST_PAUSE_MS, |before_ms| (2 * before_ms).min(LONGEST_PAUSE_MS));
    let until = now.plus_ms(length_ms);
    record.refused = Some(Pause {
        why: why.to_owned(),
        until,
        length_ms,
    });
    turn.agents_mut().expect(until, host.clone(), Deadline::Pause);
}

/// Tells everybody whether a host can start tasks, where that has changed.
pub(crate) fn show(turn: &mut Turn<'_>, host: &HostName) {
    let now = turn.now.tick;
    let why = turn
        .fitness_mut()
        .hosts
        .get(host)
        .and_then(|record| record.unfit(now))
        .map(str::to_owned);
    let Some(known) = turn.observations().hosts.get(host) else {
        return;
    };
    if known.unfit.as_deref() == why.as_deref() {
        return;
    }
    let (was_unfit, connected) = (known.unfit.is_some(), known.connected);
    match &why {
        // A reason that has changed is shown, and is no news for the log.
        Some(_) if was_unfit => {}
        Some(why) => {
            let what = format!("host {host} cannot start jobs and gets none until it can");
            turn.effect(Effect::Warn(
                Diagnostic::new(Code::SystemRefused, what).why(why.clone()),
            ));
        }
        None if was_unfit && connected => turn.effect(Effect::Note(format!("host {host} can start jobs again"))),
        None => {}
    }
    turn.observe(Observation::Unfit {
        host: host.clone(),
        why,
    });
}

/// Counts a start that failed, and closes the host after too many in a row.
///
/// What is the fault of one user's jobs alone closes nothing: whoever submits many of them with a
/// mistake would close one host after the other.
fn count(turn: &mut Turn<'_>, host: &HostName, job: SubmitSeq, failure: FailedStart, why: &str) {
    let most = turn.state().config.settings.qmaster().max_start_failures as usize;
    if most == 0 {
        return;
    }
    let record = turn.fitness_mut().host_mut(host);
    record.failed.insert(job, failure);
    while record.failed.len() > most {
        record.failed.pop_first();
    }
    if record.failed.len() == most && record.is_evidence() {
        record.failed.clear();
        close(turn, host, most, why);
    }
}

/// Puts the queue instances of a host into error, until an operator clears it.
fn close(turn: &mut Turn<'_>, host: &HostName, failed: usize, why: &str) {
    let on_host = turn
        .state()
        .config
        .resolved
        .keys()
        .filter(|instance| instance.host == *host);
    let instances: Vec<QueueInstanceName> = on_host.cloned().collect();
    for instance in instances {
        let mut state = turn.state().instances.get(&instance).cloned().unwrap_or_default();
        let queue = &instance.queue;
        state.errors.push(format!(
            "queue {queue} marked QERROR: {failed} {IN_A_ROW} {host}, the last one: {why}"
        ));
        turn.record(Event::InstanceChanged { instance, state });
    }
    let what = format!("host {host} is closed: {failed} starts of different jobs failed there in a row");
    let fix = format!("look at the host (gridwright doctor there), then open it: qmod -cq '*@{host}'");
    turn.effect(Effect::Alarm(Alarm::HostClosed(
        Diagnostic::new(Code::SystemRefused, what).why(why).fix(fix),
    )));
}

impl Fitness {
    /// Forgets the deaths of a job that has ended, or for which people have done something.
    pub(crate) fn follow(&mut self, event: &Event) {
        if let Event::JobAltered { seq, .. } | Event::ErrorCleared { seq, .. } | Event::JobFinished { seq } = event {
            self.deaths.remove(seq);
        }
    }

    /// The lines of a host's list of commands that root runs there. `None` if the host does not
    /// say.
    pub(crate) fn root_commands(&self, host: &HostName) -> Option<&[String]> {
        self.hosts.get(host)?.root_commands.as_deref()
    }

    fn host_mut(&mut self, host: &HostName) -> &mut HostFitness {
        self.hosts.entry(host.clone()).or_default()
    }
}
