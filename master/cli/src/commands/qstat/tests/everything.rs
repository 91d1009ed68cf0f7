//! `qstat -j` of a job for which everything was asked, as 8.1.9 answered.

use super::details::detail_of;
use super::utc;
use crate::commands::qstat::{detail, detail_xml};
use crate::output::xml::tests::assert_well_formed;
use proto::amount::Type;
use proto::complex::Consumable;
use proto::id::{HostName, JobNumber};
use proto::job::{HostPath, JobSpec, PeRequest, Requests, Validation};
use proto::request::{ResourceList, SlotRange, TaskRange};
use proto::time::Wall;
use proto::wire::view::{JobDetail, RequestedAttribute};

fn words(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

fn path(host: Option<&str>, path: &str) -> Vec<HostPath> {
    vec![HostPath {
        host: host.map(HostName::new),
        path: path.to_owned(),
    }]
}

fn requests() -> Requests {
    Requests {
        hard: ResourceList::parse("lic=1,mem=1.5G,h_rt=5400,excl=TRUE,dbl=1.5,hostname=vm,s_rt=INFINITY")
            .unwrap()
            .into(),
        soft: ResourceList::parse("arch=lx*,gone=1").unwrap().into(),
        hard_queues: words("all.q,*@vm"),
        soft_queues: words("all.q"),
        master_queues: words("all.q"),
        pe: Some(PeRequest {
            name: "smp".to_owned(),
            slots: SlotRange::parse("1-2,4").unwrap(),
        }),
        ..Requests::default()
    }
}

fn ask_for_everything(spec: &mut JobSpec) {
    *spec = JobSpec {
        requests: requests().into(),
        array: TaskRange::parse("1-4:2").ok(),
        task_concurrency: Some(2),
        predecessors: words("2,pre"),
        array_predecessors: words("3"),
        project: Some("prj".to_owned()),
        start_after: Some(Wall::from_seconds(1_893_456_000)),
        deadline: Some(Wall::from_seconds(0)),
        priority: -5,
        job_share: 3,
        reserve: true,
        rerunnable: Some(true),
        notify: true,
        validation: Validation::Warn,
        directive_prefix: Some("#X".to_owned()),
        session: None,
        stdout: path(Some("vm"), "/tmp/o"),
        stderr: path(None, "/tmp/e"),
        stdin: path(None, "/dev/null"),
        shell: path(Some("vm"), ""),
        merge_stderr: true,
        directory: Some("/home/u2".to_owned()),
        mail_to: words("a@b.c,u"),
        context: vec![("A".to_owned(), "1".to_owned()), ("C".to_owned(), String::new())],
        args: vec!["a".to_owned(), String::new()],
        ..spec.clone()
    };
}

fn everything() -> JobDetail {
    let mut detail = detail_of(9, ask_for_everything);
    (detail.row.waits_for, detail.row.array_waits_for) = (vec![JobNumber(2), JobNumber(4)], vec![JobNumber(3)]);
    detail.successors = vec![JobNumber(8)];
    (detail.version, detail.script_bytes) = (2, 100);
    let known = |name: &str, r#type, consumable| RequestedAttribute {
        name: name.into(),
        r#type,
        consumable,
    };
    detail.attributes = vec![
        known("lic", Type::Int, Consumable::Yes),
        known("mem", Type::Memory, Consumable::Job),
        known("h_rt", Type::Time, Consumable::No),
        known("s_rt", Type::Time, Consumable::No),
        known("excl", Type::Bool, Consumable::Yes),
        known("dbl", Type::Double, Consumable::Yes),
        known("hostname", Type::Host, Consumable::No),
        known("arch", Type::ReString, Consumable::No),
    ];
    detail
}

#[test]
fn lines_have_the_names_and_the_order_of_8_1_9() {
    let text = detail::render(&[everything()], false, &utc());
    let from = text.find("execution_time").unwrap();
    let is_other = |line: &&str| {
        ["mail_list", "job_args", "context"]
            .iter()
            .all(|name| !line.starts_with(name))
    };
    let lines = text[from..].lines().take_while(|line| !line.starts_with("scheduling"));
    let shown: Vec<&str> = lines.filter(is_other).collect();
    let expected = [
        "execution_time:             Tue Jan  1 00:00:00 2030",
        "account:                    sge",
        "cwd:                        /home/u2",
        "directive_prefix:           #X",
        "stderr_path_list:           NONE:NONE:/tmp/e",
        "reserve:                    y",
        "merge:                      y",
        "hard resource_list:         lic=1,mem=1.5G,h_rt=5400,excl=TRUE,dbl=1.5,hostname=vm,s_rt=INFINITY",
        "soft resource_list:         arch=lx*,gone=1",
        "notify:                     TRUE",
        "job_name:                   err",
        "stdout_path_list:           vm:NONE:/tmp/o",
        "stdin_path_list:            NONE:NONE:/dev/null",
        "priority:                   -5",
        "jobshare:                   3",
        "hard_queue_list:            all.q,*@vm",
        "soft_queue_list:            all.q",
        "restart:                    y",
        "shell_list:                 vm:NONE",
        "env_list:                   TERM=NONE",
        "master hard queue_list:     all.q",
        "script_file:                sleep",
        "parallel environment:  smp range: 1,2,4",
        "jid_predecessor_list (req): 2,pre",
        "jid_predecessor_list:       2,4",
        "jid_successor_list:         8",
        "ja_ad_predecessor_list:     3",
        "verify_suitable_queues:     1",
        "version:                    2",
        "project:                    prj",
        "job-array tasks:            1-4:2",
        "maximum concurrency:        2",
        "job_type:                   binary",
    ];
    assert_eq!(shown, expected);
    assert!(!text.contains("deadline"), "a moment of 0 is none\n{text}");
}

#[test]
fn elements_have_the_names_and_the_order_of_8_1_9() {
    let document = detail_xml::render(&[everything()]);
    assert_well_formed(&document);
    let is_field = |line: &&str| line.starts_with("      <JB_");
    let names = document
        .lines()
        .filter(is_field)
        .map(|line| line.trim().trim_start_matches("<JB_"));
    let names: Vec<&str> = names.map(|name| name.split('>').next().unwrap_or(name)).collect();
    let expected = "job_number ar exec_file submission_time owner uid group gid account merge_stderr mail_list project \
        notify job_name stdout_path_list jobshare hard_resource_list soft_resource_list hard_queue_list soft_queue_list \
        shell_list env_list job_args script_file ja_tasks context cwd stderr_path_list jid_predecessor_list \
        ja_ad_predecessor_list jid_request_list ja_ad_request_list jid_successor_list deadline execution_time \
        checkpoint_attr checkpoint_interval directive_prefix reserve mail_options stdin_path_list priority restart \
        verify master_hard_queue_list script_size pe pe_range jid_request_list verify_suitable_queues \
        soft_wallclock_gmt hard_wallclock_gmt override_tickets version ja_structure type binding \
        ja_task_concurrency nurg";
    let expected: Vec<&str> = expected.split_whitespace().filter(|name| *name != "ja_tasks").collect();
    assert_eq!(names, expected);
    for part in [
        "<JB_verify_suitable_queues>1<",
        "<JB_version>2<",
        "<JB_script_size>0<",
        "<mail_list>\n          <MR_user>a</MR_user>\n          <MR_host>b.c<",
        "<job_predecessors>\n          <JRE_job_number>2<",
        "<job_predecessors_ad>\n          <JRE_job_number>3<",
        "<element>\n          <JRE_job_number>0</JRE_job_number>\n          <JRE_job_name>pre<",
        "<context_list>\n          <VA_variable>C</VA_variable>\n        </context_list>",
        "<RN_min>1</RN_min>\n          <RN_max>2</RN_max>",
        "<RN_min>4</RN_min>\n          <RN_max>4</RN_max>",
    ] {
        assert!(document.contains(part), "{part} in\n{document}");
    }
}

#[test]
fn a_request_has_the_numbers_of_its_attribute() {
    let document = detail_xml::render(&[everything()]);
    let entry = |name: &str| {
        let from = document.find(&format!("<CE_name>{name}</CE_name>")).expect("a request");
        let lines = document[from..]
            .lines()
            .take_while(|line| !line.contains("</qstat_l_requests>"));
        let values = lines.map(|line| line.split(['<', '>']).nth(2).unwrap_or_default().to_owned());
        values.collect::<Vec<_>>()
    };
    let rest = |consumable: &str| {
        ["0", consumable, "0", "0.000000", "0", "0", "0"]
            .map(str::to_owned)
            .to_vec()
    };
    for (name, valtype, text, number, consumable) in [
        ("lic", "1", "1", "1.000000", "1"),
        ("mem", "4", "1.5G", "1610612736.000000", "2"),
        ("h_rt", "3", "5400", "5400.000000", "0"),
        ("excl", "5", "TRUE", "1.000000", "1"),
        ("dbl", "8", "1.5", "1.500000", "1"),
        ("hostname", "7", "vm", "0.000000", "0"),
        ("arch", "9", "lx*", "0.000000", "0"),
    ] {
        let expected: Vec<String> = [name, valtype, text, number]
            .map(str::to_owned)
            .into_iter()
            .chain(rest(consumable))
            .collect();
        let shown = entry(name);
        assert_eq!(shown, expected, "{name}");
    }
    let infinite = &entry("s_rt")[3];
    assert!(
        infinite.starts_with("17976931348623157") && infinite.len() == 316,
        "{infinite}"
    );
    assert_eq!(
        entry("gone").len(),
        2,
        "an attribute that was removed has its name and its text alone"
    );
}
