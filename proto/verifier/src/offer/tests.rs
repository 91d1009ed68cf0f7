use super::*;
use jiff::tz::TimeZone;
use proto::job::Requests;

/// A job of u1 with what `more` says, in JSON.
pub fn job(more: &str) -> JobSpec {
    let base = r#""owner": {"user": "u1", "uid": 1, "gid": 1, "group": "u1"}, "submit_host": "vm",
        "program": {"script": {"path": "/w/job.sh", "content": []}}"#;
    serde_json::from_str(&format!("{{{base}, {more}}}")).unwrap()
}

pub fn calendar() -> LocalCalendar {
    LocalCalendar {
        zone: TimeZone::UTC,
        this_year: 2026,
    }
}

/// What is told behind the parameters of the origin, without `PARAM` and `BEGIN`.
fn told(side: JsvSide, spec: &JobSpec) -> String {
    let lines = JsvOffer::new(side, spec, &calendar()).lines(false);
    let lines = lines.lines().filter_map(|line| line.strip_prefix("PARAM "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_plain_job_is_told_of_as_in_8_1_9() {
    let spec = job(r#""name": "fromscript", "holds": {"user": true}"#);
    let offer = JsvOffer::new(JsvSide::Client("qsub"), &spec, &calendar());
    assert_eq!(
        offer.lines(false),
        "PARAM VERSION 1.0\nPARAM CONTEXT client\nPARAM CLIENT qsub\nPARAM USER u1\nPARAM GROUP u1\n\
         PARAM CMDNAME /w/job.sh\nPARAM CMDARGS 0\nPARAM h u\nPARAM M u1@vm\nPARAM N fromscript\nBEGIN\n"
    );
    assert_eq!(
        told(JsvSide::Server(JobNumber(1043)), &spec),
        "VERSION 1.0\nCONTEXT server\nCLIENT qmaster\nUSER u1\nGROUP u1\nJOB_ID 1043\nCMDNAME /w/job.sh\nCMDARGS 0\n\
         A sge\nh u\nM u1@vm\nN fromscript"
    );
}

/// The recorded order and values, with the start time right and without what `qsub` refuses here.
#[test]
fn a_job_with_all_options_is_told_of_as_in_8_1_9() {
    let spec = job(
        r#""name": "nm", "args": ["one", "two three", ""], "start_after": 1893456000000, "context": [["k", "v"]],
        "account": "acct", "directory": "/home/u1", "stderr": [{"path": "/tmp/e"}], "stdout": [{"path": "/tmp/o"}],
        "predecessors": ["1", "nm2"], "holds": {"user": true}, "merge_stderr": true, "job_share": 3,
        "mail": {"begin": true, "end": true, "abort": true}, "mail_to": ["a@b", "c@d"], "notify": true, "priority": -5,
        "task_concurrency": 2, "reserve": true, "rerunnable": true, "use_shell": false,
        "shell": [{"path": "/bin/sh"}], "validation": "warn",
        "requests": {"hard": [{"name": "h_rt", "value": "60"}, {"name": "h_vmem", "value": "1G"}],
            "soft": [{"name": "mem_free", "value": "1M"}], "hard_queues": ["all.q", "d.q"], "master_queues": ["all.q"],
            "pe": {"name": "smp", "slots": "2-4"}}"#,
    );
    let spec = JobSpec {
        program: Program::Command {
            command: "/bin/echo".to_owned(),
        },
        array: proto::request::TaskRange::parse("1-9:2").ok(),
        ..spec
    };
    assert_eq!(
        told(JsvSide::Client("qsub"), &spec),
        "VERSION 1.0\nCONTEXT client\nCLIENT qsub\nUSER u1\nGROUP u1\nCMDNAME /bin/echo\nCMDARGS 3\nCMDARG0 one\n\
         CMDARG1 two three\nCMDARG2 \na 203001010000.00\nac k=v\nA acct\nb y\ncwd /home/u1\ne /tmp/e\nhold_jid 1,nm2\n\
         h u\nj y\njs 3\nl_hard h_rt=60,h_vmem=1G\nl_soft mem_free=1M\nm abe\nM a@b,c@d\nmasterq all.q\nnotify y\nN nm\n\
         o /tmp/o\np -5\ntc 2\npe_name smp\npe_min 2\npe_max 4\nq_hard all.q,d.q\nR y\nr y\nshell n\nS /bin/sh\n\
         t_min 1\nt_max 9\nt_step 2\nw w"
    );
}

#[test]
fn the_environment_is_told_of_on_request_alone() {
    let spec = job(
        r#""name": "n", "environment": [["SGE_O_HOME", "/home/u1"], ["SGE_O_WORKDIR", "/"], ["FOO", "1"], ["BAR", "a  b"]]"#,
    );
    let offer = JsvOffer::new(JsvSide::Client("qsub"), &spec, &calendar());
    let with = offer.lines(true);
    assert!(
        with.ends_with("PARAM N n\nENV ADD TERM \nENV ADD FOO 1\nENV ADD BAR a  b\nBEGIN\n"),
        "{with}"
    );
    assert!(!offer.lines(false).contains("ENV"));
}

/// A user could otherwise hide the job from the verifier behind commands of his own.
#[test]
fn no_value_makes_a_line_of_its_own() {
    let spec = JobSpec {
        args: vec!["x\nBEGIN\nPARAM N y".to_owned()],
        environment: vec![("A".to_owned(), "1\nBEGIN".to_owned())].into(),
        ..job(r#""name": "n""#)
    };
    let lines = JsvOffer::new(JsvSide::Client("qsub"), &spec, &calendar()).lines(true);
    assert_eq!(lines.lines().filter(|line| *line == "BEGIN").count(), 1, "{lines}");
    assert!(lines.contains("PARAM CMDARG0 x\\nBEGIN\\nPARAM N y\n"), "{lines}");
}

#[test]
fn what_8_1_9_does_not_have_cannot_be_hidden_from_a_verifier() {
    let requests = r#"{"master": [{"name": "m", "value": "1"}], "slaves": [{"name": "gpu"}], "slave_queues": ["x.q"],
        "pe": {"name": "smp", "slots": "2"}, "allocation_rule": "$fill_up"}"#;
    let requests: Requests = serde_json::from_str(requests).unwrap();
    let spec = JobSpec {
        requests: requests.into(),
        ..job(r#""name": "n""#)
    };
    let told = told(JsvSide::Client("qsub"), &spec);
    let new = "par $fill_up\nmaster_l_hard m=1\nslave_l_hard gpu\nslave_q_hard x.q";
    assert!(
        told.ends_with(&format!("pe_name smp\npe_min 2\npe_max 2\n{new}")),
        "{told}"
    );
}
