//! `-w`: whether any queue instance could run a job.

use super::Turn;
use super::submit::access::admitted_nowhere;
use crate::explain::sentence;
use crate::matching::{Demand, Mode};
use crate::reason::Reason;
use crate::sched::verification;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::JobNumber;
use proto::job::{JobSpec, Validation};
use proto::wire::client::Answer;

/// The most lines that tell why a job fits nowhere.
const LINES_MAX: usize = 100;

/// What follows from `-w`.
pub(super) enum Verdict {
    /// The user only asked; this is the answer.
    OnlyAsked(Answer),
    /// The job may go on, with these warnings.
    GoOn(Vec<Answer>),
}

/// Does what `-w` says. `number` is the one that the job would get.
///
/// # Errors
/// If the job is to be refused, or the user only asked and no queue instance suits.
pub(super) fn verify(turn: &Turn<'_>, number: JobNumber, spec: &JobSpec) -> Result<Verdict, Vec<Diagnostic>> {
    let mode = match spec.validation {
        Validation::None => return Ok(Verdict::GoOn(Vec::new())),
        Validation::Warn | Validation::Refuse | Validation::Verify => Mode::EmptyCluster,
        Validation::Poke => Mode::Now,
    };
    let outcome = verification::verify(turn.state(), turn.observations(), spec, mode);
    let reasons = outcome.err().map(|reasons| said(turn, number, spec, &reasons));
    match (spec.validation, reasons) {
        (Validation::Verify | Validation::Poke, None) => Ok(Verdict::OnlyAsked(Answer::Done(
            "verification: found suitable queue(s)".to_owned(),
        ))),
        (Validation::None | Validation::Warn | Validation::Refuse, None) => Ok(Verdict::GoOn(Vec::new())),
        (Validation::Verify | Validation::Poke, Some(reasons)) => Err(vec![not_suitable(format!(
            "{reasons}\nverification: no suitable queues"
        ))]),
        (Validation::Refuse, Some(reasons)) => {
            let nowhere = admitted_nowhere(&turn.state().config, spec).map(|what| format!("{what}\n"));
            let what = format!("{}error: no suitable queues", nowhere.unwrap_or_default());
            Err(vec![not_suitable(what).why(reasons)])
        }
        (Validation::None | Validation::Warn, Some(reasons)) => Ok(Verdict::GoOn(vec![Answer::Warning(
            not_suitable("warning: no suitable queues".to_owned()).why(reasons),
        )])),
    }
}

/// The reasons, a line for each; a large cluster has more of them than anybody reads.
fn said(turn: &Turn<'_>, number: JobNumber, spec: &JobSpec, reasons: &[Reason]) -> String {
    let asked = Demand::new(&turn.state().config, spec).text;
    let mut lines: Vec<String> = admitted_nowhere(&turn.state().config, spec).into_iter().collect();
    for reason in reasons {
        if lines.len() >= LINES_MAX {
            break;
        }
        // What guards a whole cluster queue is one reason for all of its instances.
        let line = format!("Job {number} {}", sentence(reason, &asked));
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines.join("\n")
}

fn not_suitable(what: String) -> Diagnostic {
    Diagnostic::new(Code::NotSuitable, what)
}
