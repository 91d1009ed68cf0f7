use super::Phase::{Finished, Pending, Running, Transferring};
use super::*;

/// A phase, what is true besides, and the letters.
const CONDITIONS: [(Phase, &str, &str); 25] = [
    (Pending, "", "qw"),
    (Pending, "held", "hqw"),
    (Pending, "held restarted", "hRwq"),
    (Pending, "restarted", "Rq"),
    (Pending, "error", "Eqw"),
    (Pending, "error held", "Ehqw"),
    (Pending, "error restarted", "Eqw"),
    (Pending, "error held restarted", "EhRqw"),
    (Running, "", "r"),
    (Transferring, "", "t"),
    (Running, "restarted", "Rr"),
    (Transferring, "restarted", "Rt"),
    (Running, "suspended", "s"),
    (Running, "queue_suspended", "S"),
    (Running, "threshold_suspended", "T"),
    (Transferring, "suspended", "ts"),
    (Transferring, "suspended restarted", "Rts"),
    (Running, "deleting", "dr"),
    (Running, "deleting suspended restarted", "dRs"),
    (Running, "held", "hr"),
    (Running, "held suspended", "hs"),
    (Running, "held deleting", "dhr"),
    (Running, "queue_suspended suspended", "Ss"),
    (Running, "held queue_suspended suspended", "Shs"),
    (Finished, "", "z"),
];

/// A task in a phase for which the fields of [`Condition`] that are named are true.
fn condition(phase: Phase, fields: &str) -> Condition {
    let mut condition = Condition {
        phase,
        ..Condition::default()
    };
    for field in fields.split_whitespace() {
        *match field {
            "held" => &mut condition.held,
            "error" => &mut condition.error,
            "deleting" => &mut condition.deleting,
            "restarted" => &mut condition.restarted,
            "suspended" => &mut condition.suspended,
            "queue_suspended" => &mut condition.queue_suspended,
            "threshold_suspended" => &mut condition.threshold_suspended,
            other => panic!("no field {other}"),
        } = true;
    }
    condition
}

#[test]
fn state_letters_are_those_that_programs_know() {
    for (phase, fields, letters) in CONDITIONS {
        assert_eq!(condition(phase, fields).letters(), letters, "{phase:?} {fields}");
    }
}
