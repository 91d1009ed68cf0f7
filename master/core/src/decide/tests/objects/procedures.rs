//! What procedures of queues and parallel environments may name.

use super::*;
use crate::effect::Input;
use proto::wire::agent::AgentMessage;

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

#[test]
fn a_procedure_of_root_that_its_hosts_do_not_list_is_warned_about() {
    let mut cell = Cell::ready();
    let lists = |cell: &mut Cell, lines: &[&str]| {
        let root_commands = Some(lines.iter().map(|line| (*line).to_owned()).collect());
        let connection = cell.connection("h1");
        let message = Box::new(AgentMessage::Health { unfit: None, root_commands });
        cell.input(Input::AgentMessage { connection, message });
    };
    let set = |cell: &mut Cell, prolog: &str| {
        let fields = cell.core.state().config.object_fields(K::Queue, "all.q").unwrap();
        let action = Do::Replace(with(fields, &[("prolog", prolog)]));
        let reply = cell.change(vec![object_change(K::Queue, "all.q", action)]);
        warnings(&reply).into_iter().map(|(_, what)| what).collect::<Vec<String>>()
    };
    assert!(set(&mut cell, "root@/x/prolog $host").is_empty(), "no host has said what it lists");
    lists(&mut cell, &["/x/prolog", "/x/other $host"]);
    for (prolog, is_told) in [
        ("root@/x/prolog $host", true),
        ("root@/x/prolog $job_id", false),
        ("root@/x/other $host", false),
        ("/x/prolog $host", false),
        ("ann@/x/prolog", false),
    ] {
        let said = set(&mut cell, prolog);
        assert_eq!(!said.is_empty(), is_told, "{prolog}: {said:?}");
    }
    let said = set(&mut cell, "root@/x/missing");
    assert!(said[0].contains("root does not run \"/x/missing\" on h1"), "{said:?}");
}
