//! Commands of Grid Engine that Gridwright does not have yet: refused by name, with what to do
//! instead.

use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};

/// Each name with what does a similar thing today.
const INSTEAD: &[(&str, &str)] = &[
    (
        "qtcsh",
        "it is a tcsh that sends some commands away unseen, and will not come; write qrsh or qsub before these commands, as an alias if you like",
    ),
    (
        "qmon",
        "there is no window; qstat, qhost and qconf show and change everything",
    ),
];

/// Refuses a command of that name with an exit code; none if Grid Engine has no such command
/// either.
pub fn refuse(name: &str) -> Option<u8> {
    refusal(name).map(|refusal| {
        output::diagnostic(&refusal);
        exit::FAILED
    })
}

fn refusal(name: &str) -> Option<Diagnostic> {
    let (_, instead) = INSTEAD.iter().find(|(known, _)| *known == name)?;
    Some(Diagnostic::new(Code::NotSupported, format!("gridwright: {name} is not supported yet")).fix(*instead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_are_planned_are_refused_by_name_with_a_remedy() {
        for name in ["qtcsh", "qmon"] {
            let refusal = refusal(name).unwrap();
            assert_eq!(refusal.what, format!("gridwright: {name} is not supported yet"));
            assert!(!refusal.fix.is_empty());
        }
        assert_eq!((refusal("qstat"), refusal("qrsb")), (None, None));
    }
}
