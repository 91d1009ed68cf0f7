//! A scheduler outside the master (`algorithm external`): who places jobs, and for how long without
//! a sign of life.
//!
//! A program that sends orders holds a lease, which each of its requests renews, one without orders
//! too. While the lease runs the built-in scheduler places nothing; when it has run out, or the
//! program says that it goes, the built-in one takes over as `default` until a program is heard
//! again. A master that starts, and a configuration that becomes `external`, wait as long for the
//! first sign. All of this is soft: no event tells of it, and a new master begins anew.

use super::Turn;
use super::orders::{self, LastDemand};
use crate::effect::{Effect, Placer};
use crate::sched::algorithm::Algorithm;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::EventSeq;
use proto::time::Tick;
use proto::wire::client::Reply;
use proto::wire::stream::{ORDERS_MAX, Order, Orders, Verdict, is_name};
use proto::wire::view::Data;

/// Who may place jobs beside the built-in scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ExternalScheduler {
    /// Nobody: another algorithm is configured.
    #[default]
    Off,
    /// A program, or one that is waited for.
    Leased {
        /// Its name; none before the first sign of it.
        holder: Option<String>,
        /// When the built-in scheduler takes over.
        until: Tick,
    },
    /// A program might, and none is heard: the built-in scheduler places.
    Silent,
}

impl ExternalScheduler {
    /// Whether the built-in scheduler leaves placing to a program.
    pub(crate) fn is_in_charge(&self) -> bool {
        matches!(self, ExternalScheduler::Leased { .. })
    }

    /// When time alone changes something.
    pub(crate) fn next_timer(&self) -> Option<Tick> {
        match self {
            ExternalScheduler::Leased { until, .. } => Some(*until),
            ExternalScheduler::Off | ExternalScheduler::Silent => None,
        }
    }
}

/// Follows the configuration and the time.
pub(super) fn follow(turn: &mut Turn<'_>) {
    let is_wanted = Algorithm::from_conf(&turn.state().config.scheduler) == Algorithm::External;
    match (is_wanted, turn.external()) {
        (false, ExternalScheduler::Off) | (true, ExternalScheduler::Silent) => {}
        (false, ExternalScheduler::Leased { .. } | ExternalScheduler::Silent) => {
            change(
                turn,
                ExternalScheduler::Off,
                Placer::BuiltIn,
                "the algorithm is no longer external".to_owned(),
            );
        }
        (true, ExternalScheduler::Off) => {
            let until = lease_end(turn);
            let why = "the algorithm is external, and a program is waited for".to_owned();
            change(
                turn,
                ExternalScheduler::Leased { holder: None, until },
                Placer::External,
                why,
            );
        }
        (true, ExternalScheduler::Leased { until, .. }) if *until > turn.now.tick => {}
        (true, ExternalScheduler::Leased { holder, .. }) => {
            let who = holder.as_ref().map_or("no external scheduler".to_owned(), |name| {
                format!("nothing of scheduler {name}")
            });
            let seconds = turn.state().config.scheduler.external_timeout_s();
            let why = format!("{who} was heard for {seconds} s (EXTERNAL_TIMEOUT)");
            change(turn, ExternalScheduler::Silent, Placer::BuiltIn, why);
        }
    }
}

/// Decides a request of a program, whose caller is a manager.
pub(super) fn command(turn: &mut Turn<'_>, request: Orders) -> Reply {
    if let Err(refusal) = may_order(turn, &request) {
        return Reply::refusal(refusal);
    }
    let Orders {
        scheduler,
        orders,
        last,
    } = request;
    let mut asked = LastDemand::default();
    let verdicts = orders.iter().map(|order| verdict(turn, order, &mut asked)).collect();
    if last {
        change(
            turn,
            ExternalScheduler::Silent,
            Placer::BuiltIn,
            format!("scheduler {scheduler} has said that it goes"),
        );
    } else {
        renew(turn, scheduler);
    }
    Reply::data(Data::Verdicts(verdicts))
}

/// Whether a program may order anything now.
fn may_order(turn: &Turn<'_>, request: &Orders) -> Result<(), Diagnostic> {
    if !is_name(&request.scheduler) {
        let what = format!("denied: \"{}\" is no name of a scheduler", request.scheduler);
        return Err(
            Diagnostic::new(Code::BadValue, what).fix("use 1 to 64 letters, digits, points, dashes and underscores")
        );
    }
    if request.orders.len() > ORDERS_MAX {
        let what = format!(
            "denied: {} orders in one request are above the limit of {ORDERS_MAX}",
            request.orders.len()
        );
        return Err(Diagnostic::new(Code::Overloaded, what).fix("send them in several requests"));
    }
    match turn.external() {
        ExternalScheduler::Off => {
            let algorithm = &turn.state().config.scheduler.algorithm;
            let what = format!("denied: jobs are placed by algorithm {algorithm} of the master");
            Err(Diagnostic::new(Code::WrongState, what).fix("set algorithm external: qconf -msconf"))
        }
        ExternalScheduler::Leased {
            holder: Some(holder), ..
        } if *holder != request.scheduler => {
            let what = format!("denied: scheduler {holder} places jobs");
            Err(Diagnostic::new(Code::WrongState, what)
                .fix("stop it, or wait until it has been silent for EXTERNAL_TIMEOUT"))
        }
        ExternalScheduler::Leased { .. } | ExternalScheduler::Silent => Ok(()),
    }
}

/// Carries an order out, or says why not.
fn verdict(turn: &mut Turn<'_>, order: &Order, asked: &mut LastDemand) -> Verdict {
    let first = EventSeq(turn.state().last.0 + 1);
    match orders::execute(turn, order, asked) {
        // An order for what is so already leads to no event.
        Ok(()) => Verdict::Accepted {
            seq: first.min(turn.state().last),
        },
        Err(why) => Verdict::Refused(why),
    }
}

fn renew(turn: &mut Turn<'_>, scheduler: String) {
    let until = lease_end(turn);
    let is_known = matches!(turn.external(), ExternalScheduler::Leased { holder: Some(_), .. });
    let why = format!("scheduler {scheduler} gives orders");
    let leased = ExternalScheduler::Leased {
        holder: Some(scheduler),
        until,
    };
    if is_known {
        *turn.external_mut() = leased
    } else {
        change(turn, leased, Placer::External, why)
    }
}

fn lease_end(turn: &Turn<'_>) -> Tick {
    turn.now
        .tick
        .plus_ms(turn.state().config.scheduler.external_timeout_s().saturating_mul(1000))
}

fn change(turn: &mut Turn<'_>, external: ExternalScheduler, placing: Placer, why: String) {
    *turn.external_mut() = external;
    turn.effect(Effect::Placing { by: placing, why });
}
