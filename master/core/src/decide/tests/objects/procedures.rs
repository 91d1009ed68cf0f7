//! What procedures of parallel environments may name.

use super::*;

#[test]
fn a_variable_that_no_procedure_of_a_parallel_environment_has_is_refused() {
    let mut cell = Cell::ready();
    cell.qconf(K::Pe, "smp", Do::Add(pe("smp", &[])));
    let known = "/x/start $pe_hostfile $host-$job_id.$ja_task_id $stdout_path $fs_stdin_host $$HOME";
    for (key, value, expected) in [
        ("start_proc_args", known.trim_end_matches(" $$HOME"), None),
        ("start_proc_args", "/x/start $nosuch", Some("start_proc_args of pe \"smp\": unknown variable \"nosuch\"")),
        ("stop_proc_args", "/x/stop $pe_x", Some("stop_proc_args of pe \"smp\": unknown variable \"pe_x\"")),
        ("stop_proc_args", known, Some("stop_proc_args of pe \"smp\": variables need at least one character")),
    ] {
        let reply = cell.change(vec![object_change(K::Pe, "smp", Do::Replace(pe("smp", &[(key, value)])))]);
        let said = reply.answers.iter().find_map(|answer| match answer {
            Answer::Refused(refusal) => Some(refusal.what.clone()),
            Answer::Done(_) | Answer::Warning(_) => None,
        });
        assert_eq!(said, expected.map(|why| format!("parameter {why}")), "{value}");
        if expected.is_none() {
            assert!(warnings(&reply).is_empty());
        }
    }
}
