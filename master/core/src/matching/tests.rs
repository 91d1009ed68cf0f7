//! The worked numbers of ALGORITHMS.md sections 3 and 4, and what 8.1.9 showed
//! (tests/captures/21sched.txt, 22sched.txt).

mod load;

use super::*;
use crate::ledger::{Booking, Grant, Level};
use crate::sched::tests::lab::check_start;
use crate::sched::tests::lab::{Lab, spec};
use crate::sched::verification::verify;
use proto::id::{CellId, HostName, SubmitSeq, TaskId, TaskKey};
use proto::job::GrantedSlots;
use proto::wire::stream::Order;
use proto::wire::view::{ResourceValue, ResourceView};
use std::sync::Arc;

fn lab(script: &str) -> Lab {
    let mut lab = Lab::new();
    script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .for_each(|line| lab.line(line));
    lab
}

/// The hosts on which an instance of `all.q` serves one slot of a request.
fn suitable(lab: &Lab, request: &str, mode: Mode) -> String {
    let spec = spec(&["-l", request], &mut Vec::new());
    let model = lab.scheduler.model();
    let cluster = Cluster::of_state(lab.state(), model.observations(), mode);
    let demand = Demand::new(&lab.state().config, &spec);
    let globally = crate::sched::assign::fit_globally(&cluster, &demand);
    let fits = |instance: &&QueueInstanceName| {
        globally.holds(1)
            && crate::sched::assign::assign_serial(&cluster, &demand, &globally, &cluster.site(instance)).is_ok()
    };
    let hosts: Vec<&str> = lab
        .state()
        .config
        .resolved
        .keys()
        .filter(fits)
        .map(|instance| instance.host.as_str())
        .collect();
    hosts.join(" ")
}

/// What `-w` would say of a job.
fn verdict(lab: &Lab, options: &str, mode: Mode) -> Vec<String> {
    let words: Vec<&str> = options.split_whitespace().collect();
    let spec = spec(&words, &mut Vec::new());
    let asked = Demand::new(&lab.state().config, &spec).text;
    let reasons = verify(lab.state(), lab.scheduler.model().observations(), &spec, mode)
        .err()
        .unwrap_or_default();
    reasons
        .iter()
        .map(|reason| crate::explain::sentence(reason, &asked))
        .collect()
}

/// `hc:lic=4.000000` and the like, as `qhost -F` prints them.
fn shown(views: &[ResourceView]) -> Vec<String> {
    let text = |view: &ResourceView| {
        let value = match &view.value {
            ResourceValue::Amount(amount) => amount.qhost_text(view.r#type),
            ResourceValue::Text(text) => text.clone(),
        };
        format!(
            "{}{}:{}={value}",
            view.dominance.level, view.dominance.source, view.name
        )
    };
    views.iter().map(text).collect()
}

fn now(lab: &Lab) -> Cluster<'_> {
    Cluster::of_state(lab.state(), lab.scheduler.model().observations(), Mode::Now)
}

fn of_instance(lab: &Lab, host: &str, attribute: &str) -> String {
    let instance = QueueInstanceName {
        queue: "all.q".into(),
        host: host.into(),
    };
    shown(&now(lab).resources(&Level::Instance(instance), &[attribute.to_owned()])).join(" ")
}

fn of_host(lab: &Lab, host: &str, attribute: &str) -> String {
    let host = HostName::new(host);
    let level = if host.is_global() {
        Level::Global
    } else {
        Level::Host(host)
    };
    shown(&now(lab).resources(&level, &[attribute.to_owned()])).join(" ")
}

#[test]
fn requests_compare_with_what_a_level_offers() {
    // ALGORITHMS.md section 3.2: mem_free 2G of 4G; of a configured value and a load value the
    // stricter counts; == takes the configured one.
    let lab = lab("complex busy busy DOUBLE >= YES NO 0 0
        host a | mem_free=4G busy=0.3
        host b mem_free=1G | mem_free=4G
        host c mem_free=1G | mem_free=0.9G
        host d arch=lx | arch=sol
        queue all.q a,b,c,d slots=9");
    for (request, hosts) in [
        ("mem_free=2G", "a"),
        ("mem_free=1G", "a b"),
        ("mem_free=0.9G", "a b c"),
        ("busy=1.0", "a"),
        ("busy=0.2", ""),
        ("arch=lx", "d"),
        ("arch=sol", ""),
    ] {
        assert_eq!(suitable(&lab, request, Mode::Now), hosts, "{request}");
    }
}

#[test]
fn relational_operators_and_types_as_8_1_9_has_them() {
    // As recorded of 8.1.9: a has 5, b has 6, c and d nothing.
    let lab = lab("complex iv iv INT <= YES NO 0 0
        complex ige ige INT >= YES NO 0 0
        complex ieq ieq INT == YES NO 0 0
        complex ilt ilt INT < YES NO 0 0
        complex igt igt INT > YES NO 0 0
        complex ine ine INT != YES NO 0 0
        complex dv dv DOUBLE == YES NO 0 0
        complex tv tv TIME == YES NO 0 0
        complex bv bv BOOL == YES NO 0 0
        host a iv=5,ige=5,ieq=5,ilt=5,igt=5,ine=5,dv=1.5,tv=3600,bv=TRUE
        host b iv=6,ige=6,ieq=6,ilt=6,igt=6,ine=6,bv=FALSE
        host c
        host d
        queue all.q a,b,c,d slots=4");
    for (request, hosts) in [
        ("iv=4", "a b"),
        ("iv=6", "b"),
        ("iv=7", ""),
        ("ige=4", ""),
        ("ige=5", "a"),
        ("ige=6", "a b"),
        ("ieq=5", "a"),
        ("ilt=5", "b"),
        ("igt=6", "a"),
        ("ine=5", "b"),
        ("iv=1K", ""),
        ("iv=-1", "a b"),
        ("iv=INFINITY", ""),
        ("ige=INFINITY", "a b"),
        ("dv=1.50", "a"),
        ("dv=1.500001", ""),
        ("tv=1:0:0", "a"),
        ("tv=0:60:0", "a"),
        ("bv=TRUE", "a"),
        ("bv=0", "b"),
        ("bv", "a"),
        ("h=a", "a"),
        ("h=[ab]", "a b"),
        ("h=!a", "b c d"),
        ("hostname=A", "a"),
        ("q=a*", "a b c d"),
        ("q=!all.q", ""),
        ("seq_no=0", "a b c d"),
        ("h_rt=infinity", "a b c d"),
        ("tmpdir=/tmp", "a b c d"),
        ("calendar=x", ""),
        ("num_proc=4", "a b c d"),
    ] {
        assert_eq!(suitable(&lab, request, Mode::EmptyCluster), hosts, "{request}");
    }
    assert_eq!(
        verdict(&lab, "-l iv=7", Mode::EmptyCluster),
        [
            "(-l iv=7) cannot run at host \"a\" because it offers only hf:iv=5.000000",
            "(-l iv=7) cannot run at host \"b\" because it offers only hf:iv=6.000000",
            "(-l iv=7) cannot run in queue \"all.q@c\" because job requests unknown resource (iv)",
            "(-l iv=7) cannot run in queue \"all.q@d\" because job requests unknown resource (iv)",
        ]
    );
}

#[test]
fn texts_match_as_expressions_and_inverted_under_not_equal() {
    // As recorded of 8.1.9: abc, abd, xyz, a.c.
    let lab = lab("complex rs rs RESTRING == YES NO NONE 0
        complex cs cs CSTRING == YES NO NONE 0
        complex rsn rsn RESTRING != YES NO NONE 0
        host a rs=abc,cs=abc,rsn=abc
        host b rs=abd,cs=abd,rsn=abd
        host c rs=xyz,cs=xyz
        host d rs=a.c,cs=ABC
        queue all.q a,b,c,d slots=4");
    for (request, hosts) in [
        ("rs=abc|xyz", "a c"),
        ("cs=abc|xyz", "a c d"),
        ("rsn=abc|xyz", "b"),
        ("rs=!abc", "b c d"),
        ("rs=a*&!abc", "b d"),
        ("rs=abc|abd&xyz", "a"),
        ("rs=nomatch*", ""),
        ("rs=ab[!c]", ""),
        ("rs=ab[^c]", "b"),
    ] {
        assert_eq!(suitable(&lab, request, Mode::EmptyCluster), hosts, "{request}");
    }
}

#[test]
fn reasons_have_the_requests_in_the_order_of_their_names() {
    let lab = lab("host a | arch=lx-amd64 mem_free=8G
        queue all.q a slots=9");
    let said = "(-l arch=foo,h_rt=3600,mem_free=1G) cannot run at host \"a\" because it offers only hl:arch=lx-amd64";
    for request in ["-l mem_free=1G,h_rt=3600,arch=foo", "-l arch=foo,mem_free=1G,h_rt=3600"] {
        assert_eq!(verdict(&lab, request, Mode::Now), [said], "{request}");
    }
}

#[test]
fn what_is_left_after_each_task_is_what_is_offered_then() {
    let lab = lab("complex mem mem MEMORY <= YES YES 1M 0
         complex io io DOUBLE <= YES NO 0 0
         host a mem=1024M | mem=900M io=10 np_load_avg=0.5
         queue all.q a slots=9 complex_values=mem=2G
         wait 10");
    let instance = QueueInstanceName {
        queue: "all.q".into(),
        host: "a".into(),
    };
    // A value is sampled before the pass begins, or while it is under way: what it plans is in
    // neither.
    for (now, request, tasks) in [
        (lab.now.tick, "io=3", 3),
        (lab.now.tick, "mem=400M", 2),
        (lab.now.tick, "mem=100M,io=1,np_load_avg=1", 5),
        (lab.now.tick, "io=11", 0),
        (Tick(0), "io=3", 3),
        (Tick(0), "mem=400M", 2),
    ] {
        let config = &lab.state().config;
        let demand = Demand::new(config, &spec(&["-l", request], &mut Vec::new()));
        let tally = Tally::new(&config.complex, &demand);
        let (mut planned, mut headroom, mut count) = (Ledger::default(), Headroom::default(), 0);
        loop {
            let cluster = Cluster {
                planned: Some(&planned),
                now,
                ..self::now(&lab).untold()
            };
            let site = cluster.site(&instance);
            let on_host = cluster.fit_level(Fit::anywhere(), &site.host.view, &demand, 1, SlotRole::Master);
            let fits = cluster
                .fit_instance(on_host, &site, &demand, 1, SlotRole::Master)
                .holds(1);
            assert_eq!(
                cluster.fits_in(&mut headroom, &Fit::anywhere(), &site, &demand),
                fits,
                "{request} after {count}"
            );
            if !fits {
                break;
            }
            let granted = [GrantedSlots {
                instance: instance.clone(),
                slots: 1,
            }];
            let booking = Booking::new(config, demand.charges.clone(), Grant::of_slots(&granted, None), now);
            headroom.take(&tally);
            let key = TaskKey {
                cell: CellId(0),
                seq: SubmitSeq(count),
                task: TaskId(1),
                pe_task: 0,
                attempt: 0,
            };
            planned.book(config, key, Arc::new(booking));
            count += 1;
        }
        assert_eq!(count, tasks, "{request} from {now:?} on");
    }
}

#[test]
fn the_most_restrictive_level_is_shown() {
    // ALGORITHMS.md section 3.4.
    let mut lab = lab("complex lic lic INT <= YES YES 0 0
        global lic=5
        host a lic=4
        host b lic=1
        host c
        queue all.q a,b,c slots=4 complex_values=lic=3");
    for (host, text) in [
        ("a", "qc:lic=3.000000"),
        ("b", "hc:lic=1.000000"),
        ("c", "qc:lic=3.000000"),
    ] {
        assert_eq!(of_instance(&lab, host, "lic"), text);
    }
    for (host, text) in [
        ("global", "gc:lic=5.000000"),
        ("a", "hc:lic=4.000000"),
        ("c", "gc:lic=5.000000"),
    ] {
        assert_eq!(of_host(&lab, host, "lic"), text);
    }
    lab.line("job 1 -t 1-5:1 -l lic=1");
    lab.line("pass");
    assert_eq!(of_instance(&lab, "a", "lic"), "gc:lic=0.000000");
    // Of equal ones the farthest.
    assert_eq!(
        (of_instance(&lab, "b", "lic"), of_host(&lab, "b", "lic")),
        ("gc:lic=0.000000".into(), "gc:lic=0.000000".into())
    );
    assert_eq!(of_host(&lab, "c", "slots"), "");
    assert_eq!(of_instance(&lab, "b", "slots"), "qc:slots=3.000000");
    assert_eq!(of_instance(&lab, "b", "hostname"), "qf:hostname=b");
    lab.line("global lic=2");
    assert_eq!(of_host(&lab, "global", "lic"), "gc:lic=-3.000000");
}

#[test]
fn what_is_left_of_a_capacity_and_the_limit_of_a_queue_are_shown_by_the_lesser() {
    // ALGORITHMS.md section 3.4: of 6G at the host 2G are booked; the queue limits to 3G or to 5G.
    for (limit, expected) in [("3G", "qf:h_vmem=3.000G"), ("5G", "hc:h_vmem=4.000G")] {
        let lab = lab(&format!(
            "complex h_vmem h_vmem MEMORY <= YES YES 0 0
             host a h_vmem=6G
             queue all.q a slots=9 h_vmem={limit}
             job 1 -l h_vmem=2G
             pass"
        ));
        assert_eq!(of_instance(&lab, "a", "h_vmem"), expected);
    }
}

#[test]
fn equal_and_not_equal_hold_at_each_level_and_what_is_configured_wins_within_one() {
    // ALGORITHMS.md section 3.1: == and != have no stricter side, so a host's own value hides its
    // load and no other level's.
    let lab = lab("complex eq eq INT == YES NO 0 0
        complex ne ne INT != YES NO 0 0
        complex word word STRING != YES NO NONE 0
        global ne=1
        host a eq=5,ne=2,word=own | eq=6 ne=7 word=load
        host b eq=5 | word=load
        queue all.q a,b slots=4 complex_values=NONE,[b=eq=6]");
    for (request, hosts) in [
        ("eq=5", "a"),
        ("eq=6", ""),
        ("ne=1", ""),
        ("ne=2", "b"),
        ("ne=7", "a b"),
        ("word=own", "b"),
        ("word=load", "a"),
        ("word=l*|o*", ""),
    ] {
        assert_eq!(suitable(&lab, request, Mode::Now), hosts, "{request}");
    }
}

#[test]
fn an_empty_cluster_has_no_bookings_and_only_static_load() {
    let lab = lab("complex lic lic INT <= YES YES 0 0
        global lic=5
        host a | mem_free=1G
        queue all.q a slots=1
        job 1 -l lic=5
        pass");
    assert_eq!(verdict(&lab, "-l lic=1", Mode::EmptyCluster), Vec::<String>::new());
    assert_eq!(
        verdict(&lab, "-l lic=1", Mode::Now),
        ["(-l lic=1) cannot run globally because it offers only gc:lic=0.000000"]
    );
    assert_eq!(
        verdict(&lab, "-l lic=6", Mode::EmptyCluster),
        ["(-l lic=6) cannot run globally because it offers only gc:lic=5.000000"]
    );
    // 8.1.9 calls load values that change unknown here; a host that reports one can be expected to
    // have some.
    assert_eq!(
        verdict(&lab, "-l mem_free=2G", Mode::EmptyCluster),
        Vec::<String>::new()
    );
    assert_eq!(
        verdict(&lab, "-l num_proc=3", Mode::EmptyCluster),
        ["(-l num_proc=3) cannot run at host \"a\" because it offers only hl:num_proc=4.000000"]
    );
    assert_eq!(
        verdict(&lab, "-l cpu=0", Mode::EmptyCluster),
        ["(-l cpu=0) cannot run in queue \"all.q@a\" because job requests unknown resource (cpu)"]
    );
}

#[test]
fn orders_are_checked_without_load_and_with_everything_else() {
    let mut lab = lab("complex lic lic INT <= YES YES 0 0
        host a lic=2 | mem_free=1G
        host b
        pe two 8 2
        queue all.q a,b slots=4 pe_list=two
        job 1 -l lic=1,mem_free=9G
        job 2 -pe two 4
        job 3 -q *@b");
    let check = |lab: &Lab, job: u64, parts: &[(&str, u32)], pe: Option<&str>| {
        let instance = |host: &str| QueueInstanceName {
            queue: "all.q".into(),
            host: host.into(),
        };
        let granted = parts
            .iter()
            .map(|(host, slots)| GrantedSlots {
                instance: instance(host),
                slots: *slots,
            })
            .collect();
        let order = Order::Start {
            seq: SubmitSeq(job),
            task: TaskId(1),
            granted,
            pe: pe.map(Into::into),
        };
        check_start(lab.state(), lab.scheduler.model().observations(), &order, lab.now).is_ok()
    };
    assert!(check(&lab, 1, &[("a", 1)], None), "load is not asked");
    assert!(!check(&lab, 1, &[("b", 1)], None), "no licence there");
    assert!(!check(&lab, 1, &[("a", 2)], None), "a serial job has one slot");
    assert!(!check(&lab, 1, &[("x", 1)], None), "no such instance");
    assert!(check(&lab, 2, &[("a", 2), ("b", 2)], Some("two")));
    assert!(
        !check(&lab, 2, &[("a", 3), ("b", 1)], Some("two")),
        "not as the rule spreads"
    );
    assert!(!check(&lab, 2, &[("a", 2), ("a", 2)], Some("two")), "an instance twice");
    assert!(!check(&lab, 2, &[("a", 2), ("b", 2)], None), "without its environment");
    assert!(check(&lab, 3, &[("b", 1)], None));
    assert!(!check(&lab, 3, &[("a", 1)], None), "not in its queue list");
    lab.line("disable all.q@b");
    assert!(!check(&lab, 3, &[("b", 1)], None));
}

#[test]
fn what_is_charged_once_a_host_is_charged_for_each_host_globally() {
    // Found by the simulator: three hosts were given to a job where two were left.
    let mut lab = lab("complex node node INT <= YES HOST 0 0
        global node=3
        host a
        host b
        host c
        host d
        pe mpi 99 $round_robin
        queue all.q a,b slots=2
        queue big.q c,d slots=5
        job 1 -l node=1 -pe mpi 6
        job 2 -l node=1 -pe mpi 8");
    let check = |lab: &Lab, hosts: &[&str]| {
        let instance = |host: &str| QueueInstanceName {
            queue: if host < "c" { "all.q" } else { "big.q" }.into(),
            host: host.into(),
        };
        let slots = 6 / u32::try_from(hosts.len()).unwrap();
        let granted = hosts
            .iter()
            .map(|host| GrantedSlots {
                instance: instance(host),
                slots,
            })
            .collect();
        let order = Order::Start {
            seq: SubmitSeq(1),
            task: TaskId(1),
            granted,
            pe: Some("mpi".into()),
        };
        check_start(lab.state(), lab.scheduler.model().observations(), &order, lab.now).is_ok()
    };
    assert!(check(&lab, &["a", "b", "d"]));
    lab.line("global node=2");
    assert!(!check(&lab, &["a", "b", "d"]));
    assert!(check(&lab, &["c", "d"]));
    // On the hosts with most room.
    for line in [
        "pass",
        "= 2 big.q@c:4 big.q@d:4",
        "end 2",
        "pass",
        "= 1 big.q@c:3 big.q@d:3",
    ] {
        lab.line(line);
    }
    lab.line("job 3 -l node=1 -pe mpi 1");
    lab.line("pass");
    lab.line("? 3 (-l node=1) cannot run globally because it offers only gc:node=0.000000");
}

#[test]
fn exclusive_attributes_show_whether_the_object_can_be_had_alone() {
    // 8.1.9 shows -3 for a parallel job of four slots.
    let mut lab = lab("complex exclusive excl BOOL EXCL YES YES 0 1000
        host a exclusive=true
        pe smp 9 $pe_slots
        queue all.q a slots=4");
    assert_eq!(of_host(&lab, "a", "exclusive"), "hc:exclusive=1.000000");
    lab.line("job 1 -l excl -pe smp 4");
    lab.line("pass");
    assert_eq!(of_host(&lab, "a", "exclusive"), "hc:exclusive=0.000000");
}

#[test]
fn selection_asks_queue_instances_for_what_they_are_and_hosts_for_what_they_have() {
    // As recorded of 8.1.9: tests/captures/06stat.txt, 03load.txt.
    let mut lab = lab("complex lic lic INT <= YES YES 0 0
        complex exclusive excl BOOL EXCL YES YES 0 1000
        host a lic=4 exclusive=true | mem_free=4G arch=lx
        host b lic=1 | mem_free=1G arch=sol
        queue all.q a,b slots=8
        job 1 -l lic=3
        pass");
    lab.placed.clear();
    let select = |request: &str, mode: Mode, level: &dyn Fn(&str) -> Level| {
        let list = proto::request::ResourceList::parse(request).unwrap();
        let requests = requests(&lab.state().config.complex, &Vec::from(list)).unwrap();
        let cluster = Cluster::of_state(lab.state(), lab.scheduler.model().observations(), mode);
        let hosts: Vec<&str> = ["a", "b"]
            .into_iter()
            .filter(|host| cluster.has(&level(host), &requests))
            .collect();
        hosts.join(" ")
    };
    let instance = |host: &str| {
        Level::Instance(QueueInstanceName {
            queue: "all.q".into(),
            host: host.into(),
        })
    };
    let host = |host: &str| Level::Host(host.into());
    for (request, of_queues, of_hosts) in [
        ("arch=lx", "a", "a"),
        ("a=*", "a b", "a b"),
        ("mem_free=2G", "", "a"),
        ("lic=1", "a b", "a b"),
        ("lic=2", "a", ""),
        ("slots=8", "a b", ""),
        ("slots=9", "", ""),
        ("h_rt=20:0:0", "a b", ""),
        ("excl", "a", ""),
        ("arch=lx,lic=4", "a", ""),
    ] {
        assert_eq!(
            select(request, Mode::EmptyCluster, &instance),
            of_queues,
            "qselect -l {request}"
        );
        assert_eq!(select(request, Mode::Now, &host), of_hosts, "qhost -l {request}");
    }
    let nosuch = proto::request::ResourceList::parse("nosuch=1").unwrap();
    assert_eq!(
        requests(&lab.state().config.complex, &Vec::from(nosuch)),
        Err(UnusableRequest {
            name: "nosuch".to_owned()
        })
    );
}

#[test]
fn attributes_are_shown_in_the_order_of_8_1_9() {
    let lab = lab("complex lic lic INT <= YES YES 0 0
        host a lic=4 | mem_free=4G arch=lx load_avg=1
        queue all.q a slots=8");
    let level = Level::Instance(QueueInstanceName {
        queue: "all.q".into(),
        host: "a".into(),
    });
    let names = |asked: &[&str]| {
        let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
        let views = now(&lab).resources(&level, &asked);
        views
            .iter()
            .map(|view| view.name.to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let all = names(&[]);
    assert!(
        all.starts_with("load_avg arch num_proc mem_free np_load_avg lic qname hostname slots tmpdir"),
        "{all}"
    );
    assert!(all.ends_with("s_vmem h_vmem min_cpu_interval"), "{all}");
    assert_eq!(names(&["s", "lic", "mf", "nosuch"]), "mem_free lic slots");
    assert_eq!(names(&["nosuch"]), "");
}

#[test]
fn attributes_of_a_site_are_shown_in_the_order_of_complex_values() {
    let lab = lab("complex aa aa INT <= YES YES 0 0
        complex bb bb INT <= YES YES 0 0
        complex cc cc INT <= YES YES 0 0
        complex dd dd INT <= YES NO 0 0
        host a cc=4 aa=1 | dd=4
        queue all.q a slots=8 complex_values=bb=3,cc=9");
    let level = Level::Instance(QueueInstanceName {
        queue: "all.q".into(),
        host: "a".into(),
    });
    let asked = ["aa", "bb", "cc", "dd"].map(str::to_owned);
    let shown = shown(&now(&lab).resources(&level, &asked));
    let names: Vec<&str> = shown.iter().map(|text| &text[3..5]).collect();
    assert_eq!(names, ["dd", "cc", "aa", "bb"], "{shown:?}");
}
