//! The agents: who is connected, what each was told, and what is not heard for too long.
//!
//! All of this is volatile. After a restart of the master the agents connect again and bring their
//! tasks with them.

mod binding;
mod overdue;
mod table;

pub use table::Agents;

use crate::config::Configuration;
use crate::decide::hosts::{fitness, load, reconcile};
use crate::decide::tasks::TaskEnd;
use crate::decide::tasks::{attempt_end, slaves, tickets, usage};
use crate::decide::{Turn, tasks};
use crate::effect::{Alarm, ConnectionId, Effect};
use crate::event::Event;
use crate::observe::Observation;
use proto::amount::Type;
use proto::conf::{NotifySignal, PdcInterval};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{AttributeName, HostName, TaskKey};
use proto::usage::{FailedCode, TaskResult, Usage};
use proto::wire::agent::{AgentConfig, AgentHello, AgentMessage, MasterMessage, PROTOCOL_VERSION};
use std::collections::BTreeMap;
use std::sync::Arc;
pub(crate) use table::Deadline;

/// Milliseconds in a second.
const MS: u64 = 1000;

/// Wall clocks that differ by more than this are worth a warning.
const SKEW_MS: u64 = 60_000;

/// Bytes that are kept of what keeps a host from starting tasks.
const HEALTH_TEXT: usize = 1_024;

/// How long a connected agent may take to show that it lives when another one comes under its name.
const ANSWER_MS: u64 = 2_000;

/// Types of attributes by name, shared by all agents.
pub(crate) type AttributeTypes = Arc<BTreeMap<AttributeName, Type>>;

/// The types of all attributes of the complex, for the agents. [`Agents::types`] keeps them while
/// no object changes.
fn attribute_types(config: &Configuration) -> AttributeTypes {
    Arc::new(
        config
            .complex
            .iter()
            .map(|attribute| (attribute.name.clone(), attribute.r#type))
            .collect(),
    )
}

/// How an agent is to behave, by the configuration that holds on its host. `types` are those of the
/// complex, which agents share.
pub(crate) fn agent_config(config: &Configuration, host: &HostName, types: &AttributeTypes) -> AgentConfig {
    let settings = config.settings_of(host);
    let params = settings.execd();
    let report_interval_ms = settings.load_report_time.seconds().unwrap_or(0).saturating_mul(MS);
    let sample_interval_ms = match params.pdc_interval {
        PdcInterval::Seconds(seconds) => seconds.saturating_mul(MS),
        PdcInterval::PerLoadReport => report_interval_ms,
        PdcInterval::Never => 0,
    };
    AgentConfig {
        report_interval_ms,
        load_sensors: settings.load_sensor.0.clone(),
        mem_free_classic: params.mem_free_classic,
        keep_active: params.keep_active,
        job_environment: Vec::new(),
        // Usage travels with the load reports, as in 8.1.9, and never more often than it is
        // sampled.
        usage_interval_ms: if sample_interval_ms == 0 {
            0
        } else {
            report_interval_ms.max(sample_interval_ms)
        },
        sample_interval_ms: Some(u32::try_from(sample_interval_ms).unwrap_or(u32::MAX)),
        notify_kill_signal: announcement(params.notify_kill),
        notify_suspend_signal: announcement(params.notify_susp),
        script_timeout_s: Some(params.script_timeout_s),
        method_timeout_s: params.method_timeout_s,
        set_lib_path: params.set_lib_path,
        inherit_env: params.inherit_env,
        use_qidle: params.use_qidle,
        use_cgroups: params.use_cgroups,
        vmem: params.h_vmem,
        reprioritize: tickets::range(config, host),
        attribute_types: types.clone(),
    }
}

/// The signal that announces an end or a suspension, 0 for none; nothing where it is the usual one.
fn announcement(signal: NotifySignal) -> Option<i32> {
    match signal {
        NotifySignal::Usual => None,
        NotifySignal::Silent => Some(0),
        NotifySignal::Signal(number) => Some(number),
    }
}

/// An agent said hello: it is let in, its tasks are compared with ours, and from then on its host
/// gets starts.
pub(crate) fn connected(turn: &mut Turn<'_>, connection: ConnectionId, host: HostName, hello: AgentHello) {
    if let Err(why) = admit(turn, &host, &hello) {
        return turn.effect(Effect::Disconnect { connection, why });
    }
    // What it says of its tasks was true before it connected again: one that has started since
    // would be taken to have ended.
    if turn.agents().is_outdated(&host, &hello) {
        let why = Diagnostic::new(
            Code::WrongState,
            format!("the agent of {host} has connected again since"),
        );
        return turn.effect(Effect::Disconnect { connection, why });
    }
    if let Err(why) = binding::check(turn, &host, &hello) {
        turn.effect(Effect::Alarm(Alarm::OtherTasks(
            why.clone().at(format!("agent of {host}")),
        )));
        return turn.effect(Effect::Disconnect { connection, why });
    }
    if is_held(turn, &host, hello.instance) {
        let what = format!("an agent of host {host} is connected already");
        let why =
            Diagnostic::new(Code::AlreadyExists, what).fix("end the other agent that uses this host's certificate");
        return turn.effect(Effect::Disconnect { connection, why });
    }
    if let Some(old) = turn.agents_mut().remove_host(&host) {
        let why = Diagnostic::new(Code::WrongState, format!("the agent of {host} connected again"));
        turn.effect(Effect::Disconnect { connection: old, why });
    }
    let config = &turn.state().config;
    let config = agent_config(config, &host, &turn.agents().types(config));
    heard(turn, &host);
    turn.agents_mut().add(connection, host.clone(), &hello, config.clone());
    turn.send(connection, MasterMessage::Configure(config));
    warn_of_skew(turn, &host, hello.wall_ms);
    binding::bind(turn, &host, &hello.marks);
    reconcile::reconcile(turn, connection, &host, hello.tasks);
    let at = turn.now.tick;
    // It says so again if it is unwell.
    fitness::said(turn, &host, None);
    // The agent says what it knows on this connection.
    fitness::lists(turn, &host, None);
    turn.observe(Observation::Contact {
        host,
        at,
        connected: true,
    });
}

fn admit(turn: &Turn<'_>, host: &HostName, hello: &AgentHello) -> Result<(), Diagnostic> {
    let state = turn.state();
    let config = &state.config;
    if hello.host != *host {
        let what = format!("the certificate of {host} was presented by an agent of {}", hello.host);
        return Err(Diagnostic::new(Code::BadCertificate, what));
    }
    if hello.version.abs_diff(PROTOCOL_VERSION) > 1 {
        let what = format!(
            "the agent of {host} speaks version {}, this master version {PROTOCOL_VERSION}",
            hello.version
        );
        return Err(Diagnostic::new(Code::BadMessage, what).fix("bring both to releases that are at most one apart"));
    }
    let is_known =
        config.exec_hosts.contains_key(host) || config.admin_hosts.contains(host) || config.submit_hosts.contains(host);
    if host.is_global() || !is_known {
        let what = format!("host {host} is no execution, submit or administrative host of this cell");
        return Err(Diagnostic::new(Code::HostNotPermitted, what).fix("let it join with a new token"));
    }
    if hello.cell_version < state.version {
        let what = format!(
            "the agent of {host} is of a release before version {} of the cell: it knows version {}",
            state.version, hello.cell_version
        );
        let fix = format!("bring {host} to the release of the master; its jobs go on meanwhile");
        return Err(Diagnostic::new(Code::BadMessage, what).fix(fix));
    }
    if hello.epoch > state.epoch {
        let what = format!(
            "the agent of {host} has obeyed a master of epoch {}, this one has {}",
            hello.epoch.0, state.epoch.0
        );
        return Err(Diagnostic::new(Code::WrongCell, what).why("another master has taken over this cell"));
    }
    Ok(())
}

/// Whether a connected agent that is not this instance holds its place. Killed, it could not say
/// that it is gone, and its connection stands until its silence is noticed: so it is asked for a
/// report, and gives way when none comes.
fn is_held(turn: &mut Turn<'_>, host: &HostName, instance: u128) -> bool {
    if turn.agents().instance(host).is_none_or(|present| present == instance) {
        return false;
    }
    let now = turn.now.tick;
    let heard = turn.agents().heard(host);
    let asked = turn
        .agents()
        .asked(host)
        .filter(|asked| heard.is_none_or(|heard| heard <= *asked));
    if asked.is_none()
        && let Some(connection) = turn.agents_mut().ask(host, now)
    {
        turn.send(connection, MasterMessage::ReportNow);
    }
    asked.is_none_or(|asked| asked.plus_ms(ANSWER_MS) > now)
}

/// A host's wall clock is never used, but people compare its log with ours.
fn warn_of_skew(turn: &mut Turn<'_>, host: &HostName, wall_ms: i64) {
    let skew_ms = turn.now.wall.0.abs_diff(wall_ms);
    if wall_ms != 0 && skew_ms > SKEW_MS {
        let what = format!("the clock of host {host} is off by {} s", skew_ms / MS);
        turn.effect(Effect::Warn(
            Diagnostic::new(Code::SystemRefused, what).fix("keep the clocks in step, with NTP for one"),
        ));
    }
}

/// A connection ended.
pub(crate) fn lost(turn: &mut Turn<'_>, connection: ConnectionId) {
    let Some(host) = turn.agents().host_of(connection).cloned() else {
        return;
    };
    turn.agents_mut().remove_host(&host);
    let at = turn.now.tick;
    turn.observe(Observation::Contact {
        host,
        at,
        connected: false,
    });
}

/// A message on a control stream. One of a connection that was replaced is dropped.
pub(crate) fn message(turn: &mut Turn<'_>, connection: ConnectionId, message: AgentMessage) {
    let Some(host) = turn.agents().host_of(connection).cloned() else {
        return;
    };
    heard(turn, &host);
    match message {
        AgentMessage::Task(report) => tasks::report(turn, connection, &host, report),
        AgentMessage::Usage(usage) => observe_usage(turn, &host, usage),
        AgentMessage::Sensors(sensors) => load::sensors(turn, host, sensors),
        AgentMessage::Health { unfit, root_commands } => {
            fitness::said(turn, &host, unfit.map(shorten));
            fitness::lists(turn, &host, root_commands);
        }
        AgentMessage::Refused(why) => turn.effect(Effect::Warn(why.at(format!("agent of {host}")))),
    }
}

/// Shortens the text that a host says about itself: everybody sees it.
fn shorten(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(HEALTH_TEXT));
    text
}

/// Only the use of tasks that the host runs by our order counts.
fn observe_usage(turn: &mut Turn<'_>, host: &HostName, mut used: Vec<(TaskKey, Usage)>) {
    let state = turn.state();
    used.retain(|(key, _)| state.host_of(*key) == Some(host));
    if !used.is_empty() {
        usage::observed(turn, used.iter().map(|(key, _)| *key));
        turn.observe(Observation::Usage(used));
    }
}

/// After a restart: hosts with tasks count as heard just now, so that they are given up if they do
/// not come back.
pub(crate) fn expect_hosts(turn: &mut Turn<'_>) {
    let hosts: Vec<HostName> = turn.state().index.hosts().cloned().collect();
    hosts.iter().for_each(|host| heard(turn, host));
}

/// Notes that a host was heard, and asks a host that had been given up for all of its load values.
pub(crate) fn heard(turn: &mut Turn<'_>, host: &HostName) {
    let now = turn.now.tick;
    let is_new = turn.agents_mut().hear(host, now);
    if is_new {
        let deadline = now.plus_ms(max_unheard_ms(turn));
        turn.agents_mut().expect(deadline, host.clone(), Deadline::Unheard);
        if let Some(connection) = turn.agents().connection(host) {
            turn.send(connection, MasterMessage::ReportNow);
        }
    }
}

fn max_unheard_ms(turn: &Turn<'_>) -> u64 {
    turn.state()
        .config
        .settings
        .max_unheard
        .seconds()
        .unwrap_or(u64::MAX)
        .saturating_mul(MS)
}

/// Sends the configuration again to every agent for which it changed. Runs after every input that
/// changed objects.
pub(crate) fn reconfigure(turn: &mut Turn<'_>) {
    let hosts: Vec<(HostName, ConnectionId)> = turn.agents().connected().collect();
    turn.agents_mut().forget_types();
    let types = turn.agents().types(&turn.state().config);
    for (host, connection) in hosts {
        let config = agent_config(&turn.state().config, &host, &types);
        if turn.agents_mut().set_config(&host, &config) {
            turn.send(connection, MasterMessage::Configure(config));
        }
    }
    let wait_ms = max_unheard_ms(turn);
    let silences: Vec<_> = turn
        .agents()
        .all_heard()
        .map(|(host, at)| (host.clone(), at.plus_ms(wait_ms)))
        .collect();
    silences
        .into_iter()
        .for_each(|(host, at)| turn.agents_mut().expect(at, host, Deadline::Unheard));
    // Limits of hosts that are unknown already may be enforced from now on.
    let hosts: Vec<HostName> = turn.state().index.hosts().cloned().collect();
    hosts.iter().for_each(|host| overdue::watch(turn, host));
}

/// Ends the connection of a host that is no longer admitted.
pub(crate) fn disconnect(turn: &mut Turn<'_>, host: &HostName, why: Diagnostic) {
    if let Some(connection) = turn.agents().connection(host) {
        turn.effect(Effect::Disconnect { connection, why });
        lost(turn, connection);
    }
}

/// Does what is due: orders without an answer are repeated, hosts without contact are given up.
pub(crate) fn timers(turn: &mut Turn<'_>) {
    let now = turn.now.tick;
    for key in turn.agents_mut().due_orders(now) {
        tasks::send_start(turn, key);
    }
    while let Some((host, deadline)) = turn.agents_mut().due_deadline(now) {
        match deadline {
            Deadline::Unheard => check_unheard(turn, host),
            Deadline::Reschedule => reschedule_unknown(turn, &host),
            Deadline::Limit => overdue::enforce(turn, &host),
            Deadline::Slaves => slaves::end_leftovers(turn, &host),
            Deadline::Pause => fitness::show(turn, &host),
        }
    }
}

fn check_unheard(turn: &mut Turn<'_>, host: HostName) {
    let Some(heard) = turn.agents().heard(&host) else {
        return;
    };
    let deadline = heard.plus_ms(max_unheard_ms(turn));
    if deadline > turn.now.tick {
        return turn.agents_mut().expect(deadline, host, Deadline::Unheard);
    }
    turn.agents_mut().give_up(&host);
    warn_of_silence(turn, &host);
    slaves::give_up_on(turn, &host);
    turn.observe(Observation::Unheard { host: host.clone() });
    overdue::watch(turn, &host);
    let settings = turn.state().config.settings_of(&host);
    let wait_s = settings.reschedule_unknown.seconds().unwrap_or(0);
    if wait_s > 0 && !turn.state().config.settings.qmaster().disable_auto_rescheduling {
        let deadline = turn.now.tick.plus_ms(wait_s.saturating_mul(MS));
        turn.agents_mut().expect(deadline, host, Deadline::Reschedule);
    }
}

fn warn_of_silence(turn: &mut Turn<'_>, host: &HostName) {
    let tasks = turn.state().index.on_host(host).count();
    let unheard_s = max_unheard_ms(turn) / MS;
    let what =
        format!("nothing was heard of host {host} for {unheard_s} s: it gets no jobs, and {tasks} tasks are there");
    let fix = "look at the host and its network; qhost shows it with its values again when it is back";
    turn.effect(Effect::Warn(Diagnostic::new(Code::SystemRefused, what).fix(fix)));
}

/// `reschedule_unknown`: rerunnable tasks of a host that stayed unknown run again elsewhere.
fn reschedule_unknown(turn: &mut Turn<'_>, host: &HostName) {
    if turn.agents().heard(host).is_some() {
        return;
    }
    let keys: Vec<TaskKey> = turn.state().index.on_host(host).collect();
    for key in keys {
        let Some((job, _, placement)) = turn.state().placed(key) else {
            continue;
        };
        if placement.host() == host && attempt_end::is_rerunnable(turn.state(), job, placement) {
            let reason = format!("host {host} is unknown for longer than reschedule_unknown allows");
            let result = TaskResult::not_started(FailedCode::IN_RECOGNIZING_JOB, reason);
            turn.record(Event::TaskUnconfirmed {
                key,
                host: host.clone(),
            });
            tasks::end(turn, key, TaskEnd::lost(result));
        }
    }
}
