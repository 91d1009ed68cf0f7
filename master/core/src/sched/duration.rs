//! How long a task is expected to hold what it was given (ALGORITHMS.md section 5.2).

use crate::config::Configuration;
use crate::ledger::Booking;
use crate::matching::{Demand, WantedValue};
use proto::amount::Amount;
use proto::time::Tick;

/// The requests that limit how long a job runs: the smaller counts.
const LIMITS: [&str; 2] = ["h_rt", "s_rt"];

/// How long a pending job needs its slots, in milliseconds: its request, else `default_duration`,
/// and `DURATION_OFFSET`. `None` means for ever. Limits of queues do not count before the start.
pub fn expected_ms(config: &Configuration, demand: &Demand) -> Option<u64> {
    // A job is over when its master is.
    let of_master = demand.apart.iter().filter_map(|apart| apart.master.as_ref());
    let asked = demand.hard.iter().chain(of_master);
    let asked = asked.filter(|request| LIMITS.contains(&request.attribute.name.as_str()));
    let asked = asked
        .filter(|request| !request.implied)
        .filter_map(|request| match request.wanted {
            WantedValue::Amount(amount) => Some(amount),
            WantedValue::Text(_) => None,
        });
    in_ms(config, asked.min())
}

/// The expected end of a placed task: after its request, else the least limit of its queue
/// instances, else `default_duration`, and `DURATION_OFFSET`.
pub fn end(config: &Configuration, booking: &Booking) -> Tick {
    let asked = LIMITS.iter().filter_map(|name| booking.requested(*name)).min();
    let limit = || {
        let settings = booking
            .granted()
            .iter()
            .filter_map(|granted| config.resolved.get(&granted.instance));
        let limits = settings.flat_map(|settings| [settings.h_rt.amount(), settings.s_rt.amount()]);
        limits.min().filter(|limit| !limit.is_infinite())
    };
    match in_ms(config, asked.or_else(limit)) {
        Some(length_ms) => booking.at().plus_ms(length_ms),
        None => crate::ledger::timeline::NEVER,
    }
}

fn in_ms(config: &Configuration, limit: Option<Amount>) -> Option<u64> {
    let conf = &config.scheduler;
    let seconds = limit.unwrap_or_else(|| conf.default_duration.amount()).finite()?;
    let seconds = u64::try_from(seconds)
        .unwrap_or(0)
        .saturating_add(conf.duration_offset_s());
    Some(seconds.saturating_mul(1000))
}
