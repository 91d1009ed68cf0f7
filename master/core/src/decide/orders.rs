//! Orders of a scheduler: each is checked against the state before it becomes an event.

use super::{Turn, causes, tasks};
use crate::config::Configuration;
use crate::decide::check::check_grant;
use crate::effect::Effect;
use crate::event::Event;
use crate::ledger::Grant;
use crate::matching::Demand;
use crate::state::eligible::eligible;
use proto::binding::{BindingObstacle, BindingOutcome};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, SubmitSeq, TaskId, TaskKey};
use proto::job::{GrantedSlots, JobSpec};
use proto::wire::stream::Order;
use std::sync::Arc;

/// Checks and executes orders in turn; one that is refused goes back to its scheduler.
pub(super) fn orders(turn: &mut Turn<'_>, scheduler: &str, orders: Vec<Order>) {
    let is_external = turn.external().is_in_charge();
    let mut asked = LastDemand::default();
    // An event each, a description and a start.
    turn.expect(orders.len(), 2 * orders.len());
    for order in orders {
        if is_external {
            let why = stale("a scheduler outside the master places jobs");
            turn.effect(Effect::OrderRefused {
                scheduler: scheduler.to_owned(),
                order: Box::new(order),
                why,
            });
            continue;
        }
        if let Err(why) = execute(turn, &order, &mut asked) {
            turn.effect(Effect::OrderRefused {
                scheduler: scheduler.to_owned(),
                order: Box::new(order),
                why,
            });
        }
    }
}

/// What the last job asked for that was looked at: the next one mostly asks for the same. No order
/// changes what requests mean.
#[derive(Default)]
pub(super) struct LastDemand(Option<(Arc<JobSpec>, Demand)>);

impl LastDemand {
    fn demand_of(&mut self, config: &Configuration, spec: &Arc<JobSpec>) -> &Demand {
        let known = self
            .0
            .take()
            .filter(|(last, _)| Arc::ptr_eq(last, spec) || Demand::source(last) == Demand::source(spec));
        let (_, demand) = self
            .0
            .insert(known.unwrap_or_else(|| (spec.clone(), Demand::new(config, spec))));
        demand
    }
}

/// Checks one order and carries it out.
///
/// # Errors
/// Why it is not believed; nothing has happened then.
pub(super) fn execute(turn: &mut Turn<'_>, order: &Order, asked: &mut LastDemand) -> Result<(), Diagnostic> {
    match order {
        Order::Start { seq, task, granted, pe } => {
            let grant = Grant::of_slots(granted, pe.as_ref());
            check(turn, *seq, *task, grant, asked)?;
            place(turn, *seq, *task, grant)?;
            // The next order may be for an instance that this start suspends.
            causes::follow(turn);
            Ok(())
        }
        Order::RejectImmediate { seq } => reject_immediate(turn, *seq),
        Order::SuspendByThreshold { key, suspended } => suspend(turn, *key, *suspended),
    }
}

/// Whether a start is right: the task may start, its hosts are there, and what it takes is free.
fn check(
    turn: &Turn<'_>,
    seq: SubmitSeq,
    task: TaskId,
    grant: Grant<'_>,
    asked: &mut LastDemand,
) -> Result<(), Diagnostic> {
    let granted = grant.slots;
    let state = turn.state();
    let job = state.jobs.get(&seq).ok_or_else(|| stale("the job is gone"))?;
    eligible(state, job, task, turn.now).map_err(|why| stale(&why.text(state)))?;
    if granted.is_empty() || granted.iter().skip(1).any(|granted| granted.slots == 0) {
        return Err(stale("it grants no slots"));
    }
    if let Some(why) = granted
        .iter()
        .find_map(|granted| not_ready(turn, &granted.instance.host))
    {
        return Err(stale(&why));
    }
    let lost = |granted: &&GrantedSlots| state.is_unconfirmed(&granted.instance.host, seq, task);
    if let Some(granted) = granted.iter().find(lost) {
        return Err(stale(&format!(
            "an earlier attempt may still run on host {}",
            granted.instance.host
        )));
    }
    // Which tasks avoid which hosts was looked at above: another task of the job may go there.
    let demand = asked.demand_of(&state.config, &job.spec);
    check_grant(state, turn.observations(), demand, grant, turn.now)
        .map_err(|reasons| stale(&reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))
}

/// Why no task can be given to a host, if so.
fn not_ready(turn: &Turn<'_>, host: &HostName) -> Option<String> {
    match turn.observations().hosts.get(host).filter(|known| known.connected) {
        None => Some(format!("host {host} is not connected")),
        Some(known) => known
            .unfit
            .as_ref()
            .map(|why| format!("host {host} cannot start jobs: {why}")),
    }
}

fn stale(why: &str) -> Diagnostic {
    Diagnostic::new(Code::WrongState, "the order does not fit the present state").why(why)
}

fn place(turn: &mut Turn<'_>, seq: SubmitSeq, task: TaskId, grant: Grant<'_>) -> Result<(), Diagnostic> {
    let state = turn.state();
    let maps = state.choose_ids(turn.observations(), &state.jobs[&seq].spec, grant);
    let maps = maps.ok_or_else(|| stale("too few ids of a resource map are free and well"))?;
    let mut binding = state.choose_cores(turn.observations(), &state.jobs[&seq].spec, grant);
    for here in &mut binding {
        if !turn.agents().binds_cores(&here.host) {
            here.outcome = BindingOutcome::Unbound(BindingObstacle::OldAgent);
        }
    }
    let attempts = state.jobs[&seq].tasks.get(&task).map_or(0, |task| task.attempts);
    let key = TaskKey {
        cell: state.cell,
        seq,
        task,
        pe_task: 0,
        attempt: attempts + 1,
    };
    turn.record(Event::TaskPlaced {
        key,
        granted: grant.slots.to_vec(),
        pe: grant.pe.cloned(),
        maps,
        binding,
    });
    tasks::send_start(turn, key);
    Ok(())
}

/// A `-now y` job that could not start leaves whole, unless a part of it has started after all.
fn reject_immediate(turn: &mut Turn<'_>, seq: SubmitSeq) -> Result<(), Diagnostic> {
    let job = turn.state().jobs.get(&seq).ok_or_else(|| stale("the job is gone"))?;
    if !job.spec.immediate || job.active > 0 {
        return Err(stale("the job is not immediate, or has started"));
    }
    let tasks = job.present().ranges();
    turn.record(Event::TasksDeleted { seq, tasks });
    tasks::finish_if_empty(turn, seq);
    Ok(())
}

fn suspend(turn: &mut Turn<'_>, key: TaskKey, suspended: bool) -> Result<(), Diagnostic> {
    let (_, _, placement) = turn
        .state()
        .placed(key)
        .ok_or_else(|| stale("the task is not on a host"))?;
    if placement.suspended_by_threshold != suspended {
        let before = tasks::is_stopped(turn, key);
        turn.record(Event::TaskThresholdSuspended { key, suspended });
        tasks::signal_change(turn, key, before);
    }
    Ok(())
}
