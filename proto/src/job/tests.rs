use super::*;

#[test]
fn state_letters_are_those_that_programs_know() {
    let pending = Condition::default();
    let running = Condition {
        phase: Phase::Running,
        ..pending
    };
    let moving = Condition {
        phase: Phase::Transferring,
        ..pending
    };
    for (condition, letters) in [
        (pending, "qw"),
        (Condition { held: true, ..pending }, "hqw"),
        (
            Condition {
                held: true,
                restarted: true,
                ..pending
            },
            "hRwq",
        ),
        (
            Condition {
                restarted: true,
                ..pending
            },
            "Rq",
        ),
        (Condition { error: true, ..pending }, "Eqw"),
        (
            Condition {
                error: true,
                held: true,
                ..pending
            },
            "Ehqw",
        ),
        (
            Condition {
                error: true,
                restarted: true,
                ..pending
            },
            "Eqw",
        ),
        (
            Condition {
                error: true,
                held: true,
                restarted: true,
                ..pending
            },
            "EhRqw",
        ),
        (running, "r"),
        (moving, "t"),
        (
            Condition {
                restarted: true,
                ..running
            },
            "Rr",
        ),
        (
            Condition {
                restarted: true,
                ..moving
            },
            "Rt",
        ),
        (
            Condition {
                suspended: true,
                ..running
            },
            "s",
        ),
        (
            Condition {
                queue_suspended: true,
                ..running
            },
            "S",
        ),
        (
            Condition {
                threshold_suspended: true,
                ..running
            },
            "T",
        ),
        (
            Condition {
                suspended: true,
                ..moving
            },
            "ts",
        ),
        (
            Condition {
                suspended: true,
                restarted: true,
                ..moving
            },
            "Rts",
        ),
        (
            Condition {
                deleting: true,
                ..running
            },
            "dr",
        ),
        (
            Condition {
                deleting: true,
                suspended: true,
                restarted: true,
                ..running
            },
            "dRs",
        ),
        (Condition { held: true, ..running }, "hr"),
        (
            Condition {
                held: true,
                suspended: true,
                ..running
            },
            "hs",
        ),
        (
            Condition {
                held: true,
                deleting: true,
                ..running
            },
            "dhr",
        ),
        (
            Condition {
                queue_suspended: true,
                suspended: true,
                ..running
            },
            "Ss",
        ),
        (
            Condition {
                held: true,
                queue_suspended: true,
                suspended: true,
                ..running
            },
            "Shs",
        ),
        (
            Condition {
                phase: Phase::Finished,
                ..pending
            },
            "z",
        ),
    ] {
        assert_eq!(condition.letters(), letters, "{condition:?}");
    }
}
