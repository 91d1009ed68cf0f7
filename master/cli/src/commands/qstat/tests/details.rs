//! `qstat -j` in its three forms.

use super::utc;
use crate::commands::captured;
use crate::commands::qstat::{detail, detail_xml, reasons};
use crate::output::xml::tests::assert_well_formed;
use proto::binding::{BindingInstance, BindingObstacle, BindingOutcome, BindingRequest, HostBinding};
use proto::id::{HostName, JobNumber, TaskId, UserName};
use proto::job::{HostPath, JobSpec, Owner, Program};
use proto::rsmap::GrantedIds;
use proto::wire::view::JobDetail;
use std::sync::Arc;

fn spec(name: &str) -> JobSpec {
    let environment = [
        ("SGE_O_HOME", "/home/u2"),
        ("SGE_O_LOGNAME", "u2"),
        ("SGE_O_PATH", "/usr/bin:/bin"),
        ("SGE_O_SHELL", "/bin/bash"),
        ("SGE_O_TZ", "UTC"),
        ("TERM", ""),
        ("SGE_O_HOST", "vm"),
        ("SGE_O_WORKDIR", "/home/u2"),
    ];
    JobSpec {
        name: name.to_owned(),
        program: Program::Command {
            command: "sleep".to_owned(),
        },
        args: vec!["1".to_owned()],
        owner: Owner {
            user: UserName::from("u2"),
            uid: 2002,
            gid: 2002,
            group: "u2".to_owned(),
            groups: Vec::new(),
        }
        .into(),
        submit_host: HostName::new("vm"),
        submit_directory: "/home/u2".to_owned(),
        directory: None,
        directory_on: Vec::new(),
        stdout: Vec::new(),
        stderr: Vec::new(),
        stdin: Vec::new(),
        merge_stderr: false,
        shell: Vec::new(),
        use_shell: None,
        environment: environment
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec()
            .into(),
        account: None,
        project: None,
        priority: 0,
        job_share: 0,
        override_tickets: 0,
        requests: Default::default(),
        array: None,
        task_concurrency: None,
        holds: Default::default(),
        predecessors: Vec::new(),
        array_predecessors: Vec::new(),
        start_after: None,
        deadline: None,
        rerunnable: None,
        reserve: false,
        immediate: false,
        notify: false,
        mail: Default::default(),
        mail_to: Vec::new(),
        context: Vec::new(),
        validation: Default::default(),
        checkpoint: None,
        occasion: None,
        reservation: None,
        directive_prefix: None,
        session: None,
    }
}

/// A job of the captures with its specification and the lines that all of them share.
pub(super) fn detail_of(number: u32, change: impl FnOnce(&mut JobSpec)) -> JobDetail {
    let row = captured::jobs()
        .into_iter()
        .find(|row| row.number == JobNumber(number))
        .unwrap();
    let mut spec = JobSpec {
        requests: row.requests.clone().into(),
        array: row.array,
        ..spec(&row.name)
    };
    change(&mut spec);
    let info = [
        "queue instance \"sus.q@vm\" dropped because it is temporarily not available",
        "queue instance \"dis.q@vm\" dropped because it is disabled",
        "queue instance \"all.q@vm\" dropped because it is full",
        "All queues dropped because of overload or full",
    ];
    JobDetail {
        row,
        spec: Arc::new(spec),
        attributes: Vec::new(),
        version: 0,
        script_bytes: 0,
        successors: Vec::new(),
        errors: Vec::new(),
        scheduling_info: info.map(str::to_owned).into(),
        checkpoint_when: None,
        hides_environment: false,
    }
}

fn failed_job() -> JobDetail {
    let reason = "11/21/2026 01:09:56 [2002:28769]: error: can't open output file \"/nonexistent/dir/\": No such file or directory";
    let mut detail = detail_of(9, |spec| {
        spec.stdout = vec![HostPath {
            host: None,
            path: "/nonexistent/dir/".to_owned(),
        }];
    });
    detail.errors = vec![(TaskId(1), reason.to_owned())];
    detail.scheduling_info.push("Job is in error state".to_owned());
    detail
}

#[test]
fn details_have_a_line_for_each_field() {
    let expected = r##"==============================================================
job_number:                 9
exec_file:                  job_scripts/9
submission_time:            Sat Nov 21 01:09:24 2026
owner:                      u2
uid:                        2002
group:                      u2
gid:                        2002
sge_o_home:                 /home/u2
sge_o_log_name:             u2
sge_o_path:                 /usr/bin:/bin
sge_o_shell:                /bin/bash
sge_o_tz:                   UTC
sge_o_workdir:              /home/u2
sge_o_host:                 vm
account:                    sge
mail_list:                  u2@vm
notify:                     FALSE
job_name:                   err
stdout_path_list:           NONE:NONE:/nonexistent/dir/
jobshare:                   0
env_list:                   TERM=NONE
job_args:                   1
script_file:                sleep
binding:                    NONE
job_type:                   binary
error reason          1:      11/21/2026 01:09:56 [2002:28769]: error: can't open output file "/nonexistent/dir/": No such file or directory
scheduling info:            queue instance "sus.q@vm" dropped because it is temporarily not available
                            queue instance "dis.q@vm" dropped because it is disabled
                            queue instance "all.q@vm" dropped because it is full
                            All queues dropped because of overload or full
                            Job is in error state
"##;
    assert_eq!(detail::render(&[failed_job()], true, &utc()), expected);
    let parallel = detail::render(&[detail_of(4, |_| ())], true, &utc());
    for expected in [
        "parallel environment:  mpi range: 2\n",
        "usage         1:            cpu=00:00:00, mem=0.00000 GB s, io=0.00004 GB, vmem=3.363M, maxvmem=3.363M\n",
        "binding       1:            NONE\n",
    ] {
        assert!(parallel.contains(expected), "{expected}in\n{parallel}");
    }
    let array = detail::render(&[detail_of(12, |_| ())], true, &utc());
    assert!(array.contains("job-array tasks:            1-10:1\n"), "{array}");
}

/// `qstat -j 9 -xml` of the captures.
const FAILED_JOB_DOCUMENT: &str = r##"<?xml version='1.0'?>
<detailed_job_info  xmlns:xsd="http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/detailed_job_info.xsd">
  <djob_info>
    <element>
      <JB_job_number>9</JB_job_number>
      <JB_ar>0</JB_ar>
      <JB_exec_file>job_scripts/9</JB_exec_file>
      <JB_submission_time>1795223364</JB_submission_time>
      <JB_owner>u2</JB_owner>
      <JB_uid>2002</JB_uid>
      <JB_group>u2</JB_group>
      <JB_gid>2002</JB_gid>
      <JB_account>sge</JB_account>
      <JB_merge_stderr>false</JB_merge_stderr>
      <JB_mail_list>
        <element>
          <MR_user>u2</MR_user>
          <MR_host>vm</MR_host>
        </element>
      </JB_mail_list>
      <JB_notify>false</JB_notify>
      <JB_job_name>err</JB_job_name>
      <JB_stdout_path_list>
        <path_list>
          <PN_path>/nonexistent/dir/</PN_path>
          <PN_host></PN_host>
          <PN_file_host></PN_file_host>
          <PN_file_staging>false</PN_file_staging>
        </path_list>
      </JB_stdout_path_list>
      <JB_jobshare>0</JB_jobshare>
      <JB_env_list>
        <job_sublist>
          <VA_variable>__SGE_PREFIX__O_HOME</VA_variable>
          <VA_value>/home/u2</VA_value>
        </job_sublist>
        <job_sublist>
          <VA_variable>__SGE_PREFIX__O_LOGNAME</VA_variable>
          <VA_value>u2</VA_value>
        </job_sublist>
        <job_sublist>
          <VA_variable>__SGE_PREFIX__O_PATH</VA_variable>
          <VA_value>/usr/bin:/bin</VA_value>
        </job_sublist>
        <job_sublist>
          <VA_variable>__SGE_PREFIX__O_SHELL</VA_variable>
          <VA_value>/bin/bash</VA_value>
        </job_sublist>
        <job_sublist>
          <VA_variable>__SGE_PREFIX__O_TZ</VA_variable>
          <VA_value>UTC</VA_value>
        </job_sublist>
        <job_sublist>
          <VA_variable>TERM</VA_variable>
        </job_sublist>
        <job_sublist>
          <VA_variable>__SGE_PREFIX__O_HOST</VA_variable>
          <VA_value>vm</VA_value>
        </job_sublist>
        <job_sublist>
          <VA_variable>__SGE_PREFIX__O_WORKDIR</VA_variable>
          <VA_value>/home/u2</VA_value>
        </job_sublist>
      </JB_env_list>
      <JB_job_args>
        <element>
          <ST_name>1</ST_name>
        </element>
      </JB_job_args>
      <JB_script_file>sleep</JB_script_file>
      <JB_ja_tasks>
        <ulong_sublist>
          <JAT_status>0</JAT_status>
          <JAT_task_number>1</JAT_task_number>
          <JAT_message_list>
            <ulong_sublist>
              <QIM_type>1</QIM_type>
              <QIM_message>11/21/2026 01:09:56 [2002:28769]: error: can&apos;t open output file &quot;/nonexistent/dir/&quot;: No such file or directory</QIM_message>
            </ulong_sublist>
          </JAT_message_list>
          <JAT_start_time>0</JAT_start_time>
          <JAT_ntix>0.500000</JAT_ntix>
        </ulong_sublist>
      </JB_ja_tasks>
      <JB_deadline>0</JB_deadline>
      <JB_execution_time>0</JB_execution_time>
      <JB_checkpoint_attr>0</JB_checkpoint_attr>
      <JB_checkpoint_interval>0</JB_checkpoint_interval>
      <JB_reserve>false</JB_reserve>
      <JB_mail_options>0</JB_mail_options>
      <JB_priority>1024</JB_priority>
      <JB_restart>0</JB_restart>
      <JB_verify>0</JB_verify>
      <JB_script_size>0</JB_script_size>
      <JB_verify_suitable_queues>0</JB_verify_suitable_queues>
      <JB_soft_wallclock_gmt>0</JB_soft_wallclock_gmt>
      <JB_hard_wallclock_gmt>0</JB_hard_wallclock_gmt>
      <JB_override_tickets>0</JB_override_tickets>
      <JB_version>0</JB_version>
      <JB_ja_structure>
        <task_id_range>
          <RN_min>1</RN_min>
          <RN_max>1</RN_max>
          <RN_step>1</RN_step>
        </task_id_range>
      </JB_ja_structure>
      <JB_type>64</JB_type>
      <JB_binding>
        <element>
          <BN_strategy>no_job_binding</BN_strategy>
          <BN_type>0</BN_type>
          <BN_parameter_n>0</BN_parameter_n>
          <BN_parameter_socket_offset>0</BN_parameter_socket_offset>
          <BN_parameter_core_offset>0</BN_parameter_core_offset>
          <BN_parameter_striding_step_size>0</BN_parameter_striding_step_size>
          <BN_parameter_explicit>no_explicit_binding</BN_parameter_explicit>
        </element>
      </JB_binding>
      <JB_ja_task_concurrency>0</JB_ja_task_concurrency>
      <JB_nurg>0.000000</JB_nurg>
    </element>
  </djob_info>
  <messages>
    <element>
      <SME_message_list>
        <element>
          <MES_job_number_list>
            <ulong_sublist>
              <ULNG_value>9</ULNG_value>
            </ulong_sublist>
          </MES_job_number_list>
          <MES_message_number>32</MES_message_number>
          <MES_message>Job is in error state</MES_message>
        </element>
      </SME_message_list>
      <SME_global_message_list>
        <element>
          <MES_message_number>40</MES_message_number>
          <MES_message>queue instance &quot;sus.q@vm&quot; dropped because it is temporarily not available</MES_message>
        </element>
        <element>
          <MES_message_number>39</MES_message_number>
          <MES_message>queue instance &quot;dis.q@vm&quot; dropped because it is disabled</MES_message>
        </element>
        <element>
          <MES_message_number>37</MES_message_number>
          <MES_message>queue instance &quot;all.q@vm&quot; dropped because it is full</MES_message>
        </element>
        <element>
          <MES_message_number>28</MES_message_number>
          <MES_message>All queues dropped because of overload or full</MES_message>
        </element>
      </SME_global_message_list>
    </element>
  </messages>
</detailed_job_info>
"##;

#[test]
fn detailed_documents_are_those_of_8_1_9() {
    assert_eq!(detail_xml::render(&[failed_job()]), FAILED_JOB_DOCUMENT);
    let expected = "<?xml version='1.0'?>\n<unknown_jobs >\n    <ST_name>99999</ST_name>\n</unknown_jobs>\n";
    assert_eq!(detail_xml::unknown(&["99999".to_owned()]), expected);
    assert_well_formed(&detail_xml::render(&[detail_of(12, |_| ()), detail_of(4, |_| ())]));
}

#[test]
fn reasons_have_the_numbers_of_8_1_9() {
    for (line, number) in [
        ("has no permission for cluster queue \"a.q\"", 1),
        (
            "(no project) does not have the correct project to run in cluster queue \"a.q\"",
            3,
        ),
        (
            "cannot run in queue \"a.q\" because it is not contained in its hard queue list (-q)",
            6,
        ),
        ("cannot run in queue \"a.q\" because PE \"smp\" is not in PE list", 8),
        (
            "cannot run in queue instance \"a.q@h\" because it is not of type checkpointing",
            9,
        ),
        (
            "cannot run in queue instance \"a.q@h\" because it is not of type batch",
            12,
        ),
        (
            "(-l mem=1) cannot run in queue \"a.q@h\" because it offers only qf:mem=0.000",
            17,
        ),
        ("(-l mem=1) cannot run in queue \"a.q@h\" because of cluster queue", 17),
        ("(-l mem=1) cannot run globally because it offers only gc:mem=0.000", 20),
        (
            "(-l mem=1) cannot run at host \"h\" because it offers only hc:mem=0.000",
            0,
        ),
        ("cannot run in PE \"smp\" because it only offers 2 slots", 24),
        ("cannot run because no access to PE \"smp\"", 25),
        ("cannot run because it exceeds limit \"u/////\" in rule \"set/1\"", 50),
    ] {
        let mut detail = failed_job();
        detail.scheduling_info = vec![line.to_owned()];
        let document = reasons::Reasons::from_details(&[detail]).xml();
        assert!(
            document.contains(&format!("<MES_message_number>{number}</MES_message_number>")),
            "{line}:\n{document}"
        );
    }
}

#[test]
fn reasons_name_the_jobs_that_they_keep() {
    let found = reasons::Reasons::from_details(&[failed_job(), detail_of(4, |_| ())]);
    let text = found.text();
    assert!(
        text.starts_with("scheduling info:            queue instance \"sus.q@vm\" dropped"),
        "{text}"
    );
    assert!(text.ends_with("\nJob is in error state\n\t9\n"), "{text}");
    let document = found.xml();
    assert_well_formed(&document);
    assert!(document.contains("<MES_message_number>32</MES_message_number>"));
}

#[test]
fn details_as_json_name_what_does_not_exist() {
    let text = detail::json(&[failed_job()], &["99".to_owned()]);
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&read["version"], &read["unknown_jobs"][0]), (&1.into(), &"99".into()));
}

#[test]
fn ids_of_resource_maps_are_told_of_each_task() {
    let mut detail = detail_of(4, |_| ());
    let ids = ["0", "3", "3"].map(str::to_owned).into();
    let map = GrantedIds {
        attribute: "gpu".into(),
        host: HostName::new("vm"),
        ids,
    };
    detail.row.tasks[0].maps = vec![
        map,
        GrantedIds {
            attribute: "lic".into(),
            host: HostName::global(),
            ids: Vec::new(),
        },
    ];
    let text = detail::render(std::slice::from_ref(&detail), false, &utc());
    assert!(
        text.contains("resource_map  1:            gpu=vm=(0 3 3),lic=global=()\n"),
        "{text}"
    );
    let document = detail_xml::render(&[detail]);
    assert_well_formed(&document);
    for expected in [
        "<GRU_name>gpu</GRU_name>",
        "<GRU_amount>3.000000</GRU_amount>",
        "<GRU_host>vm</GRU_host>",
    ] {
        assert!(document.contains(expected), "{expected} in\n{document}");
    }
    assert_eq!(
        document.matches("<RESL_value>3</RESL_value>").count(),
        1,
        "each id once"
    );
    assert!(
        document.contains("<RESL_amount>2</RESL_amount>"),
        "with how often the task has it\n{document}"
    );
}

/// Job 4 runs with this request for cores, and with what came of it on each host.
fn bound(instance: BindingInstance, strategy: &str, cores: &[(&str, Option<&str>)]) -> JobDetail {
    let request = BindingRequest {
        instance,
        strategy: strategy.parse().unwrap(),
    };
    let mut detail = detail_of(4, |spec| spec.requests.binding = Some(Box::new(request.clone())));
    detail.row.requests.binding = Some(Box::new(request));
    let outcome = |cores: Option<&str>| match cores {
        Some(cores) => BindingOutcome::Bound(cores.to_owned()),
        None => BindingOutcome::Unbound(BindingObstacle::NoTopology),
    };
    let hosts = cores.iter().map(|(host, cores)| HostBinding {
        host: HostName::new(host),
        outcome: outcome(*cores),
    });
    detail.row.tasks[0].binding = hosts.collect();
    detail
}

#[test]
fn requests_for_cores_and_the_cores_of_tasks_are_shown_as_recorded() {
    use BindingInstance::{Env, Pe, Set};
    for (instance, strategy, cores, request, task) in [
        (Set, "linear:1", vec![("vm", Some("ScC"))], "set linear:1", "ScC"),
        (
            Env,
            "explicit:0,1",
            vec![("vm", Some("SCc"))],
            "env explicit:0,1",
            "SCc",
        ),
        (Pe, "linear:5", vec![("vm", None)], "pe linear:5", "NONE"),
        (
            Set,
            "linear",
            vec![("a", Some("ScC")), ("b", Some("Sc"))],
            "set linear:slots",
            "a=ScC,b=Sc",
        ),
        (
            Set,
            "striding:2:1:0,0",
            vec![("a", None), ("b", Some("Scc"))],
            "set striding:2:1:0,0",
            "b=Scc",
        ),
    ] {
        let detail = bound(instance, strategy, &cores);
        let text = detail::render(std::slice::from_ref(&detail), true, &utc());
        assert!(
            text.contains(&format!("binding:                    {request}\n")),
            "{text}"
        );
        assert!(
            text.contains(&format!("binding       1:            {task}\n")),
            "{text}"
        );
        assert!(!detail::render(&[detail], false, &utc()).contains("binding"), "-ncb");
    }
}

#[test]
fn requests_for_cores_are_numbers_in_xml_as_recorded() {
    let cores = [("vm", Some("ScC"))];
    use BindingInstance::{Env, Pe, Set};
    for (instance, strategy, values) in [
        (Set, "linear:2", ["linear_automatic", "3", "2", "0", "0", "0"]),
        (Set, "linear", ["linear_automatic", "3", "2147483647", "0", "0", "0"]),
        (Set, "linear:2:1,1", ["linear", "3", "2", "1", "1", "0"]),
        (Pe, "striding:2:1", ["striding_automatic", "1", "2", "0", "0", "1"]),
        (Set, "striding:2:1:0,0", ["striding", "3", "2", "0", "0", "1"]),
        (Env, "explicit:0,0:0,1", ["explicit", "2", "0", "0", "0", "0"]),
    ] {
        let document = detail_xml::render(&[bound(instance, strategy, &cores)]);
        assert_well_formed(&document);
        let names = [
            "strategy",
            "type",
            "parameter_n",
            "parameter_socket_offset",
            "parameter_core_offset",
            "parameter_striding_step_size",
        ];
        for (name, value) in names.into_iter().zip(values) {
            let leaf = format!("<BN_{name}>{value}</BN_{name}>");
            assert!(document.contains(&leaf), "{leaf} in\n{document}");
        }
        assert!(document.contains("<UA_name>binding_inuse!ScC</UA_name>"), "{document}");
        let list = "<BN_parameter_explicit>explicit:0,0:0,1</BN_parameter_explicit>";
        assert_eq!(document.contains(list), strategy.starts_with("explicit"));
    }
}

#[test]
fn an_environment_without_values_is_told_by_its_names_alone() {
    let mut detail = detail_of(9, |spec| {
        spec.environment = vec![("SECRET".to_owned(), String::new()), ("A".to_owned(), String::new())].into();
    });
    detail.hides_environment = true;
    let text = detail::render(std::slice::from_ref(&detail), false, &utc());
    assert!(text.contains("env_list:                   SECRET,A\n"), "{text}");
    let document = detail_xml::render(&[detail]);
    assert!(
        document.contains("<VA_variable>SECRET</VA_variable>") && !document.contains("VA_value"),
        "{document}"
    );
}
