//! Why a wish for a reservation (`-R y`) has no effect.

use crate::matching::Demand;
use crate::sched::expected_ms;
use crate::state::State;
use proto::job::JobSpec;

/// What prevents a reservation, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationObstacle {
    /// The setting that prevents it.
    pub text: String,
    /// What to do.
    pub fix: String,
}

/// What makes a job's wish for a reservation vain; none where it has an effect, or there is no such
/// wish.
pub fn vain_reservation(state: &State, spec: &JobSpec) -> Option<ReservationObstacle> {
    if !spec.reserve {
        return None;
    }
    let vain = |text: &str, fix: &str| {
        Some(ReservationObstacle {
            text: text.to_owned(),
            fix: fix.to_owned(),
        })
    };
    if spec.immediate {
        return vain(
            "-R y has no effect: the job starts at once (-now y) or never",
            "leave one of both out",
        );
    }
    if state.config.scheduler.max_reservation == 0 {
        return vain(
            "-R y has no effect: max_reservation of the scheduler configuration is 0",
            "set it with qconf -msconf, or leave -R out",
        );
    }
    if expected_ms(&state.config, &Demand::new(&state.config, spec)).is_none() {
        return vain(
            "-R y may have no effect: the job requests neither h_rt nor s_rt and default_duration is INFINITY",
            "request a run time with -l h_rt=…, or set default_duration with qconf -msconf",
        );
    }
    None
}
