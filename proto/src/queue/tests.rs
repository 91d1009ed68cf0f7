use super::*;
use crate::object::LineWrap;
use proptest::prelude::*;

const RECORDED: &[&str] = &[
    include_str!("../../tests-data/qconf/queue_template.txt"),
    include_str!("../../tests-data/qconf/queue_all.q.txt"),
];

fn queue(changes: &[(&str, &str)]) -> Result<ClusterQueue, Vec<Diagnostic>> {
    let mut fields = ClusterQueue::template(QueueName::from("a.q")).to_fields();
    for (key, value) in changes {
        fields.set(key, *value);
    }
    ClusterQueue::from_fields(&fields)
}

fn groups(names: &[&str]) -> BTreeSet<HostGroupName> {
    names.iter().map(|name| HostGroupName::from(*name)).collect()
}

#[test]
fn recorded_queues_print_as_they_were_read() {
    for text in RECORDED {
        let queue = ClusterQueue::from_fields(&Fields::parse(text).unwrap()).unwrap();
        assert_eq!(queue.to_fields().print(ObjectKind::Queue, LineWrap::At80), *text);
    }
}

#[test]
fn the_template_differs_from_8_1_9_in_its_shell_start_mode_alone() {
    let recorded = RECORDED[0].replace("posix_compliant", "unix_behavior");
    let template = ClusterQueue::template(QueueName::from("template"));
    assert_eq!(template.to_fields().print(ObjectKind::Queue, LineWrap::At80), recorded);
}

#[test]
fn a_setting_for_the_host_beats_one_for_a_group_which_beats_the_default() {
    let queue = queue(&[("slots", "1,[@big=8],[n1=2]"), ("pe_list", "NONE, [@big=mpi smp]")]).unwrap();
    let check = |host: &str, names: &[&str], slots: u32, pes: &str| {
        let (settings, ambiguities) = queue.resolve(&HostName::new(host), &groups(names));
        assert_eq!((settings.slots, settings.pe_list.to_string().as_str()), (slots, pes));
        assert_eq!(ambiguities, []);
    };
    check("n0", &[], 1, "NONE");
    check("n2", &["@big"], 8, "mpi smp");
    check("N1", &["@big"], 2, "mpi smp");
}

#[test]
fn groups_that_disagree_leave_the_default_and_an_ambiguity() {
    let queue = queue(&[("slots", "1,[@a=4],[@b=8],[@c=4]")]).unwrap();
    let host = HostName::new("n1");
    assert_eq!(queue.resolve(&host, &groups(&["@a", "@c"])).0.slots, 4);
    let (settings, ambiguities) = queue.resolve(&host, &groups(&["@a", "@b"]));
    assert_eq!(settings.slots, 1);
    assert_eq!(ambiguities.len(), 1);
    assert_eq!(
        ambiguities[0].to_string(),
        "attribute \"slots\" configuration ambiguous: @a=4, @b=8"
    );
}

#[test]
fn overrides_of_lists_keep_their_commas() {
    let text = "np_load_avg=1.75,mem_free=1G,[@big=np_load_avg=4,mem_free=2G],[n1=NONE]";
    let queue = queue(&[("load_thresholds", text)]).unwrap();
    assert_eq!(queue.load_thresholds.default.len(), 2);
    assert_eq!(queue.load_thresholds.overrides[0].1.value("mem_free"), Some("2G"));
    assert_eq!(queue.load_thresholds.to_string(), text);
}

#[test]
fn values_that_cannot_be_are_refused_with_their_attribute() {
    for (key, value) in [
        ("slots", "-1"),
        ("slots", "10000000"),
        ("slots", "[@a=4]"),
        ("slots", "1,[@a=4"),
        ("slots", "1,[@a=4],[@a=5]"),
        ("slots", "1,[@a=4]x"),
        ("slots", "1,4"),
        ("priority", "21"),
        ("qtype", "PARALLEL"),
        ("rerun", "MAYBE"),
        ("shell_start_mode", "bash"),
        ("suspend_method", "SIGNONE"),
        ("notify", "1:0"),
        ("notify", "INFINITY"),
        ("h_vmem", "4GB"),
        ("h_rt", "-5"),
        ("complex_values", "gpu"),
        ("complex_values", "gpu=1,gpu=2"),
        ("initial_state", "off"),
        ("qname", "a/b"),
        ("qname", "none"),
        ("hostlist", "bad!host"),
    ] {
        let refusals = queue(&[(key, value)]).expect_err(value);
        assert_eq!(refusals.len(), 1, "{key} {value}");
        assert!(refusals[0].why.ends_with("is expected"), "{}", refusals[0].why);
    }
}

#[test]
fn bad_values_are_refused_in_the_words_of_8_1_9() {
    let parsing = |value: &str| format!("Error during parsing of attribute value \"{value}\"");
    for (key, value, first, second) in [
        (
            "slots",
            "abc",
            "error parsing unsigned long value from string \"abc\"",
            Some(parsing("abc")),
        ),
        ("slots", "-1", "\"-1\" is not an u_long32 value", Some(parsing("-1"))),
        (
            "slots",
            "2,[n1=x]",
            "error parsing unsigned long value from string \"x\"",
            Some(parsing("x")),
        ),
        (
            "h_rt",
            "1:2:3:4",
            "error parsing value \"1:2:3:4\"",
            Some(parsing("1:2:3:4")),
        ),
        (
            "rerun",
            "maybe",
            "error parsing value \"maybe\"",
            Some(parsing("maybe")),
        ),
        (
            "complex_values",
            "foo",
            "error parsing value \"foo\"",
            Some(parsing("foo")),
        ),
        (
            "qtype",
            "FOO",
            "error parsing queue type from string \"FOO\"",
            Some(parsing("FOO")),
        ),
        ("priority", "99", "Priority not in range -20 to +20", None),
        (
            "shell_start_mode",
            "maybe",
            "Invalid value \"maybe\" as shell start mode",
            None,
        ),
        (
            "initial_state",
            "maybe",
            "Invalid value \"maybe\" as initial state",
            None,
        ),
        ("qname", "a/b", "Slash ('/') not allowed in objectname", None),
        ("qname", "none", "Keyword (\"NONE\") not allowed as objectname", None),
    ] {
        let what = std::iter::once(first.to_owned())
            .chain(second)
            .collect::<Vec<_>>()
            .join("\n");
        assert_eq!(queue(&[(key, value)]).expect_err(value)[0].what, what, "{key} {value}");
    }
}

#[test]
fn values_of_groups_come_before_those_of_hosts() {
    let queue = queue(&[("slots", "1,[n1=2],[@z=3],[n0=4],[@x=5]")]).unwrap();
    assert_eq!(queue.slots.to_string(), "1,[@z=3],[@x=5],[n1=2],[n0=4]");
}

#[test]
fn a_relative_path_is_refused_in_the_words_of_8_1_9() {
    for (key, value) in [("tmpdir", "tmp"), ("prolog", "prolog.sh")] {
        let refusals = queue(&[(key, value)]).expect_err(value);
        assert_eq!(
            refusals[0].what,
            format!("denied: the path given for \"{key}\" must start with a \"/\"")
        );
    }
}

#[test]
fn every_fault_of_a_queue_is_reported_at_once() {
    let mut fields = ClusterQueue::template(QueueName::from("a.q")).to_fields();
    fields.set("slot", "4");
    fields.set("slots", "many");
    fields.remove("shell");
    let whats: Vec<String> = ClusterQueue::from_fields(&fields)
        .unwrap_err()
        .into_iter()
        .map(|refusal| refusal.what)
        .collect();
    assert_eq!(
        whats,
        [
            "unknown attribute name \"slot\"",
            "required attribute \"shell\" is missing",
            "error parsing unsigned long value from string \"many\"\nError during parsing of attribute value \"many\""
        ]
    );
}

#[test]
fn detached_settings_are_those_without_an_instance() {
    let queue = queue(&[("hostlist", "n1 @a"), ("slots", "1,[@a=2],[@b=3],[n1=4],[n9=5]")]).unwrap();
    let mut table = HostGroupTable::default();
    for (name, members) in [("@a", "n2 n3"), ("@b", "n8 n9")] {
        let fields: Fields = [("group_name", name), ("hostlist", members)].into_iter().collect();
        table.insert(crate::hostgroup::HostGroup::from_fields(&fields).unwrap());
    }
    let detached: Vec<String> = queue
        .detached(&table)
        .iter()
        .map(|(key, id)| format!("{key} {id}"))
        .collect();
    assert_eq!(detached, ["slots @b", "slots n9"]);
    assert_eq!(queue.hosts(&table).len(), 3);
}

#[test]
fn a_queue_with_a_parallel_environment_takes_parallel_jobs_in_any_case() {
    let (settings, _) = queue(&[("qtype", "NONE"), ("pe_list", "smp")])
        .unwrap()
        .resolve(&HostName::new("n1"), &groups(&[]));
    assert!(!settings.is_batch() && settings.is_parallel() && !settings.is_interactive());
}

#[test]
fn limits_are_known_by_name_in_base_units() {
    let queue = queue(&[("h_vmem", "2G"), ("s_rt", "1:0:0,[n1=INFINITY]")]).unwrap();
    let (settings, _) = queue.resolve(&HostName::new("n2"), &groups(&[]));
    let limits = KEYS.iter().filter(|key| settings.limit(key).is_some()).count();
    assert_eq!(limits, 16);
    assert_eq!(settings.limit("h_vmem"), Some(Amount::from_base(2 << 30)));
    assert_eq!(settings.limit("s_rt"), Some(Amount::from_base(3600)));
    assert_eq!(
        queue.resolve(&HostName::new("n1"), &groups(&[])).0.limit("s_rt"),
        Some(Amount::INFINITY)
    );
}

#[test]
fn an_instance_prints_its_own_values() {
    let queue = queue(&[("slots", "1,[n1=4]")]).unwrap();
    let name = QueueInstanceName {
        queue: queue.name.clone(),
        host: HostName::new("n1"),
    };
    let fields = queue.resolve(&name.host, &groups(&[])).0.to_fields(&name);
    assert_eq!(
        (fields.value("hostname"), fields.value("slots")),
        (Some("n1"), Some("4"))
    );
}

#[test]
fn a_queue_survives_json() {
    let queue = queue(&[
        ("slots", "1,[@a=4]"),
        ("terminate_method", "SIGTERM"),
        ("prolog", "root@/opt/p $host"),
    ])
    .unwrap();
    let text = serde_json::to_string(&queue).unwrap();
    assert_eq!(serde_json::from_str::<ClusterQueue>(&text).unwrap(), queue);
    assert!(serde_json::from_str::<ClusterQueue>(&text.replace("SIGTERM", "SIGNONE")).is_err());
}

proptest! {
    #[test]
    fn every_setting_reads_back_from_what_it_prints(
        default in 0u32..1000,
        overrides in prop::collection::btree_map("@?[a-z][a-z0-9.-]{0,10}", 0u32..1000, 0..6),
    ) {
        let overrides = overrides.into_iter().filter_map(|(id, value)| Some((id.parse().ok()?, value))).collect();
        let setting = Setting { default, overrides };
        let parsed = Setting::parse(&setting.to_string(), value::bounded::<0, 1000, u32>);
        prop_assert_eq!(parsed.unwrap(), setting);
    }
}
