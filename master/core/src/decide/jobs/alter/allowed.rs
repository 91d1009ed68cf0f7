//! What `qalter` may change where the cell has a job submission verifier (`jsv_allowed_mod`).
//!
//! A verifier does not see changes of jobs that are there already, so all those are refused that
//! the cell does not name. The names are those of the parameters of verifiers. A change of holds
//! alone is what `qhold` and `qrls` do, which are not concerned.

use crate::decide::submit::verification::verifier;
use crate::state::State;
use proto::diagnostic::{Code, Diagnostic};
use proto::job::JobChanges;
use proto::object::value::is_none;

/// Refuses changes that the cell does not allow.
///
/// # Errors
/// In the words of 8.1.9, with the names of what is not allowed.
pub(super) fn check(state: &State, changes: &JobChanges) -> Result<(), Diagnostic> {
    let names = names(changes);
    if verifier(state).is_none() || names == ["h"] {
        return Ok(());
    }
    let fix = "a manager changes jsv_allowed_mod with qconf -mconf; or delete the job and submit another one";
    let list = &state.config.settings.jsv_allowed_mod.0;
    if is_none(list) {
        let what = "No job modification allowed due to jsv_allowed_mod configuration";
        return Err(Diagnostic::new(Code::NotPermitted, what).fix(fix));
    }
    let allowed: Vec<&str> = list.split([',', ' ']).filter(|name| !name.is_empty()).collect();
    let is_allowed = |name: &str| allowed.iter().any(|allowed| covers(allowed, name));
    let others: Vec<&str> = names.into_iter().filter(|name| !is_allowed(name)).collect();
    if others.is_empty() {
        return Ok(());
    }
    let what = format!(
        "rejected due to jsv_allowed_mod configuration which does not allow: {}",
        others.join(",")
    );
    Err(Diagnostic::new(Code::NotPermitted, what).fix(fix))
}

/// Whether a name of the list allows a parameter. An option of `qalter` allows all of its own.
fn covers(allowed: &str, name: &str) -> bool {
    allowed == name
        || match allowed {
            "l" => name.contains("l_hard") || name == "l_soft",
            "q" => name.contains("q_hard") || name == "q_soft",
            "pe" => name.starts_with("pe_"),
            _ => false,
        }
}

/// The parameters that a change is about, in the order in which verifiers are told of them.
fn names(changes: &JobChanges) -> Vec<&'static str> {
    let is_changed = |(_, is_changed): &&(&str, IsChanged)| is_changed(changes);
    PARAMETERS.iter().filter(is_changed).map(|(name, _)| *name).collect()
}

/// Whether a change is about a parameter.
type IsChanged = fn(&JobChanges) -> bool;

/// Each parameter, and whether a change is about it. Where the directory is on other hosts changes
/// with `cwd`.
const PARAMETERS: &[(&str, IsChanged)] = &[
    ("CMDARGS", |it| it.args.is_some()),
    ("a", |it| it.start_after.is_some()),
    ("ac", |it| !it.context.is_empty()),
    ("ar", |it| it.reservation.is_some()),
    ("A", |it| it.account.is_some()),
    ("c", |it| it.occasion.is_some()),
    ("ckpt", |it| it.checkpoint.is_some()),
    ("cwd", |it| it.directory.is_some()),
    ("dl", |it| it.deadline.is_some()),
    ("e", |it| it.stderr.is_some()),
    ("hold_jid", |it| it.predecessors.is_some()),
    ("hold_jid_ad", |it| it.array_predecessors.is_some()),
    ("h", |it| it.holds.is_some()),
    ("i", |it| it.stdin.is_some()),
    ("j", |it| it.merge_stderr.is_some()),
    ("js", |it| it.job_share.is_some()),
    ("l_hard", |it| it.hard.is_some()),
    ("l_soft", |it| it.soft.is_some()),
    ("m", |it| it.mail.is_some()),
    ("M", |it| it.mail_to.is_some()),
    ("masterq", |it| it.master_queues.is_some()),
    ("notify", |it| it.notify.is_some()),
    ("N", |it| it.name.is_some()),
    ("o", |it| it.stdout.is_some()),
    ("ot", |it| it.override_tickets.is_some()),
    ("P", |it| it.project.is_some()),
    ("p", |it| it.priority.is_some()),
    ("tc", |it| it.task_concurrency.is_some()),
    ("binding", |it| it.binding.is_some()),
    ("pe_name", |it| it.pe.is_some()),
    ("pe_min", |it| it.pe.is_some()),
    ("par", |it| it.allocation_rule.is_some()),
    ("q_hard", |it| it.hard_queues.is_some()),
    ("q_soft", |it| it.soft_queues.is_some()),
    ("master_l_hard", |it| it.master.is_some()),
    ("slave_l_hard", |it| it.slaves.is_some()),
    ("slave_q_hard", |it| it.slave_queues.is_some()),
    ("R", |it| it.reserve.is_some()),
    ("r", |it| it.rerunnable.is_some()),
    ("S", |it| it.shell.is_some()),
    ("t", |it| it.array.is_some()),
    ("v", |it| it.environment.is_some()),
    ("w", |it| it.validation.is_some()),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A field that is added to [`JobChanges`] needs a parameter, or `qalter` changes it unjudged.
    #[test]
    fn every_change_has_a_parameter() {
        let written = serde_json::to_value(JobChanges::default()).unwrap();
        let fields = written.as_object().unwrap().len();
        // `directory_on` goes with `directory`, `for_running` with the changes beside it; `pe` has
        // two, and `binding` is not written while it is empty.
        assert_eq!(PARAMETERS.len(), fields - 2 + 2);
    }
}
