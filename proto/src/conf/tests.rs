use super::*;
use crate::amount::Amount;
use crate::limit::VmemMeaning;

const RECORDED: &str = include_str!("../../tests-data/qconf/conf_global.txt");

fn read(host: &str, entries: &[(&str, &str)]) -> Result<ClusterConf, Vec<Diagnostic>> {
    ClusterConf::from_fields(&HostName::new(host), &entries.iter().copied().collect())
}

fn execd(text: &str) -> ExecdParams {
    let global = read("global", &[("execd_params", text)]).unwrap();
    Settings::effective(&global, None).execd()
}

#[test]
fn the_recorded_configuration_prints_as_it_was_read() {
    let conf = ClusterConf::from_fields(&HostName::global(), &Fields::parse(RECORDED).unwrap()).unwrap();
    assert_eq!(conf.print(LineWrap::At80), RECORDED);
}

#[test]
fn every_default_parses_and_the_template_is_complete() {
    let template = ClusterConf::template();
    assert_eq!(
        ClusterConf::from_fields(template.host(), &template.to_fields()),
        Ok(template.clone())
    );
    assert_eq!(Settings::effective(&template, None), Settings::template());
    assert_eq!(template.warnings(), []);
}

#[test]
fn an_entry_of_the_host_replaces_the_global_one() {
    let global = read(
        "global",
        &[("load_report_time", "00:01:00"), ("load_sensor", "/opt/a, /opt/b -v")],
    )
    .unwrap();
    let local = read("n1", &[("load_report_time", "10"), ("prolog", "none")]).unwrap();
    let settings = Settings::effective(&global, Some(&local));
    assert_eq!(settings.load_report_time.seconds(), Some(10));
    assert_eq!(settings.load_sensor.0, ["/opt/a", "/opt/b -v"]);
    assert_eq!(settings.max_unheard.seconds(), Some(300));
    assert_eq!(
        local.print(LineWrap::At80),
        "#n1:\nprolog                       none\nload_report_time             10\n\n"
    );
}

#[test]
fn entries_of_the_whole_cell_are_refused_in_a_local_configuration() {
    let refusals = read("n1", &[("max_jobs", "5")]).unwrap_err();
    assert_eq!(
        refusals[0].what,
        "\"max_jobs\" is not allowed in the local configuration of host \"n1\""
    );
    assert!(read("global", &[("max_jobs", "5")]).is_ok());
    assert_eq!(
        (scope_of("prolog"), scope_of("max_jobs"), scope_of("nosuch")),
        (Some(Scope::Host), Some(Scope::Global), None)
    );
}

#[test]
fn a_relative_load_sensor_is_refused_in_the_words_of_8_1_9() {
    let refusals = read("n1", &[("load_sensor", "good.sh")]).unwrap_err();
    assert_eq!(
        refusals[0].what,
        "denied: the path given for \"load_sensor\" must start with a \"/\""
    );
}

#[test]
fn values_that_cannot_be_are_refused() {
    for (key, value) in [
        ("load_report_time", "soon"),
        ("enforce_user", "maybe"),
        ("gid_range", "50-60"),
        ("gid_range", "70-60"),
        ("loglevel", "loud"),
        ("max_aj_tasks", "-1"),
        ("execd_params", "KEEP_ACTIVE=perhaps"),
        ("execd_params", "PDC_INTERVAL=0"),
        ("execd_params", "MEM_FREE=new"),
        ("execd_params", "H_VMEM=swap"),
        ("execd_params", "SCRIPT_TIMEOUT=0"),
        ("execd_params", "METHOD_TIMEOUT=never"),
        ("reporting_params", "flush_time=never"),
        ("nosuch", "1"),
    ] {
        assert_eq!(
            read("global", &[(key, value)]).expect_err(value).len(),
            1,
            "{key} {value}"
        );
    }
}

#[test]
fn timeouts_are_times() {
    let unset = execd("none");
    assert_eq!((unset.script_timeout_s, unset.method_timeout_s), (120, None));
    let set = execd("SCRIPT_TIMEOUT=0:10:0,METHOD_TIMEOUT=30");
    assert_eq!((set.script_timeout_s, set.method_timeout_s), (600, Some(30)));
}

#[test]
fn execd_params_are_read_into_values() {
    let params =
        execd("KEEP_ACTIVE=true,S_DESCRIPTORS=1K,H_DESCRIPTORS=4K,H_LOCKS=infinity,NOTIFY_KILL=TERM,NOTIFY_SUSP=none");
    assert!(params.keep_active && !params.mem_free_classic && !params.inherit_env);
    assert_eq!(
        params.descriptors,
        Some(LimitPair {
            soft: Amount::from_base(1024),
            hard: Amount::from_base(4096)
        })
    );
    assert_eq!(
        params.locks,
        Some(LimitPair {
            soft: Amount::INFINITY,
            hard: Amount::INFINITY
        })
    );
    assert_eq!(params.maxproc, None);
    assert_eq!(
        (params.notify_kill, params.notify_susp),
        (NotifySignal::Signal(15), NotifySignal::Silent)
    );
    assert!(execd("mem_free=classic").mem_free_classic);
    assert_eq!(
        execd("PDC_INTERVAL=PER_LOAD_REPORT").pdc_interval,
        PdcInterval::PerLoadReport
    );
    assert_eq!(execd("none"), ExecdParams::default());
    assert_eq!(execd("none").h_vmem, VmemMeaning::Address);
    assert_eq!(execd("H_VMEM=Memory").h_vmem, VmemMeaning::Memory);
}

#[test]
fn unknown_parameters_are_kept_and_warned_about() {
    let conf = read("global", &[("execd_params", "KEEP_ACTVE=true")]).unwrap();
    let warnings = conf.warnings();
    assert_eq!(warnings[0].what, "unknown parameter \"KEEP_ACTVE\" has no effect");
    assert_eq!(warnings[0].fix, "did you mean \"KEEP_ACTIVE\"?");
}

#[test]
fn the_recorded_reporting_parameters_are_read() {
    let reporting = Settings::template().reporting();
    assert!(reporting.accounting && !reporting.reporting && !reporting.joblog);
    assert_eq!(
        (
            reporting.flush_time_s,
            reporting.accounting_flush_time_s,
            reporting.sharelog_s
        ),
        (15, 15, 0)
    );
}

#[test]
fn a_stored_configuration_is_checked_when_it_is_read() {
    let conf = read("n1", &[("load_report_time", "10")]).unwrap();
    let text = serde_json::to_string(&conf).unwrap();
    assert_eq!(serde_json::from_str::<ClusterConf>(&text).unwrap(), conf);
    assert!(serde_json::from_str::<ClusterConf>(&text.replace("\"10\"", "\"soon\"")).is_err());
}
