//! Slots for an advance reservation: granted at once for a time to come, or not at all.

use crate::ledger::timeline::{Span, Window};
use crate::ledger::{Ledger, Level};
use crate::matching::{Cluster, Demand, Mode};
use crate::observe::Observations;
use crate::reason::{Obstacle, Reason};
use crate::sched::assign::{Assignment, assign_parallel, assign_serial, fit_globally};
use crate::sched::rank::{host_value, rank};
use crate::sched::reserve::ahead::Lookahead;
use crate::state::State;
use crate::state::reservation::tick;
use proto::id::QueueInstanceName;
use proto::time::{Now, Wall, Zone};

/// Slots that nobody needs from `start` until `end`, for all that is known: tasks that run,
/// calendars, other reservations. Load is not asked, and neither are quotas.
///
/// # Errors
/// With what is missing.
pub fn find(
    state: &State,
    observations: &Observations,
    zone: Zone,
    demand: &Demand,
    (start, end): (Wall, Wall),
    now: Now,
) -> Result<Assignment, Vec<Reason>> {
    let ahead = Lookahead::for_advance(state, zone, now);
    let span = Span {
        from: tick(now, start),
        until: tick(now, end),
    };
    let closing = ahead.closings().within(now, span);
    let window = Some(Window {
        line: ahead.line(),
        span,
        closing: &closing,
    });
    let cluster = Cluster {
        now: now.tick,
        window,
        ..Cluster::of_state(state, observations, Mode::Later)
    };
    let globally = fit_globally(&cluster, demand);
    let instances = in_order(&cluster);
    if demand.pe.is_some() {
        return assign_parallel(&cluster, demand, &globally, &instances);
    }
    if !globally.holds(1) {
        return Err(globally.reasons);
    }
    let mut reasons = Vec::new();
    for instance in &instances {
        match assign_serial(&cluster, demand, &globally, &cluster.site(instance)) {
            Ok(assignment) => return Ok(assignment),
            Err(why) => reasons.extend(why),
        }
    }
    if reasons.is_empty() {
        reasons.push(Reason::new(Level::Global, Obstacle::NoInstances));
    }
    Err(reasons)
}

/// Slots for a task of an advance reservation among those that it has. `planned` is what others of
/// its tasks are about to take.
pub(crate) fn assign_within(cluster: &Cluster<'_>, planned: Option<&Ledger>, demand: &Demand) -> Option<Assignment> {
    let cluster = Cluster { planned, ..*cluster };
    let granted = cluster.within()?.granted.iter().map(|granted| granted.instance.clone());
    let open: Vec<QueueInstanceName> = granted
        .filter(|instance| !cluster.is_in_alarm(&cluster.site(instance)))
        .collect();
    let globally = fit_globally(&cluster, demand);
    if demand.pe.is_some() {
        return assign_parallel(&cluster, demand, &globally, &open).ok();
    }
    globally.holds(1).then(|| {
        open.iter()
            .find_map(|open| assign_serial(&cluster, demand, &globally, &cluster.site(open)).ok())
    })?
}

/// All queue instances, best first.
fn in_order(cluster: &Cluster<'_>) -> Vec<QueueInstanceName> {
    let mut instances: Vec<QueueInstanceName> = cluster.config.resolved.keys().cloned().collect();
    instances.sort_by_cached_key(|instance| {
        let site = cluster.site(instance);
        let value = host_value(cluster, &site.host, &[site]);
        (rank(cluster, &site, value), instance.clone())
    });
    instances
}
