//! What holds for every cluster and every job.
//!
//! That each order passes the core's own check, and that the ledger's sums hold, is asserted by the
//! lab in every test.

use super::lab::Lab;
use crate::ledger::{CountRule, Level};
use proptest::prelude::*;
use proto::amount::Amount;
use proto::id::SubmitSeq;

const HOSTS: [&str; 3] = ["a", "b", "c"];
const REQUESTS: [&str; 9] = [
    "",
    "-l lic=1",
    "-l lic=2",
    "-l mem=1G",
    "-l mem=3G,lic=1",
    "-l per=1",
    "-l excl",
    "-l mem_free=2G",
    "-l node=1",
];
const SHAPES: [&str; 7] = [
    "",
    "-pe smp 2",
    "-pe fill 2-6",
    "-pe robin 3-",
    "-pe two 2-8",
    "-t 1-3:1",
    "-pe loose 2-7 -masterq all.q",
];

/// Three hosts with what the requests above ask for, here and there.
fn cluster(licences: i64, memory: i64) -> Lab {
    let mut lab = Lab::new();
    for line in [
        "complex lic lic INT <= YES YES 0 0",
        "complex mem mem MEMORY <= YES YES 512M 0",
        "complex per per INT <= YES JOB 0 0",
        "complex excl excl BOOL EXCL YES YES 0 0",
        "complex node node INT <= YES HOST 0 0",
        &format!("global lic={licences},node=3"),
        &format!("host a mem={memory}G per=1 excl=true | mem_free=5G"),
        "host b mem=4G per=2,node=1 | mem_free=3G np_load_avg=0.3",
        "host c excl=true | mem_free=9G np_load_avg=0.1",
        "pe smp 9 $pe_slots",
        "pe fill 9 $fill_up",
        "pe robin 9 $round_robin",
        "pe two 8 2",
        "pe loose 9 $fill_up job_is_first_task=FALSE",
        "queue all.q a,b,c slots=4,[b=3] pe_list=smp,fill,robin,two,loose",
        "queue short.q a,b slots=2 seq_no=5 pe_list=fill,loose complex_values=lic=1",
    ] {
        lab.line(line);
    }
    lab
}

fn submit(lab: &mut Lab, number: usize, request: usize, shape: usize) {
    lab.line(&format!("job {number} {} {}", REQUESTS[request], SHAPES[shape]));
}

/// Whether nothing is given out beyond what there is.
fn assert_not_oversubscribed(lab: &Lab, licences: i64, memory: i64) {
    let ledger = &lab.state().ledger;
    let within = |level: &Level, attribute: &str, capacity: i64| {
        let booked = ledger.booked(level, attribute);
        assert!(
            booked <= Amount::from_base(capacity),
            "{attribute} at {level}: {booked:?} of {capacity}"
        );
    };
    within(&Level::Global, "lic", licences);
    within(&Level::Global, "node", 3);
    within(&Level::Host("b".into()), "node", 1);
    for (host, mem, per) in [("a", memory, 1), ("b", 4, 2)] {
        within(&Level::Host(host.into()), "mem", mem << 30);
        within(&Level::Host(host.into()), "per", per);
    }
    for (instance, settings) in &lab.state().config.resolved {
        let level = Level::Instance(instance.clone());
        within(&level, "slots", i64::from(settings.slots));
        if instance.queue.as_str() == "short.q" {
            within(&level, "lic", 1);
        }
    }
    let is_per_slot = lab.state().config.scheduler.load_per_slot();
    let counted = if is_per_slot {
        CountRule::EachSlot
    } else {
        CountRule::Once
    };
    for (host, free) in [("a", 5i64), ("b", 3), ("c", 9)] {
        let asked = {
            let level = Level::Host(host.into());
            let there = ledger.level(&level);
            there.map_or(Amount::ZERO, |there| {
                there.requested_since((&level).into(), &"mem_free".into(), counted, proto::time::Tick(0))
            })
        };
        assert!(asked <= Amount::from_base(free << 30), "mem_free of {host}");
    }
    for host in ["a", "c"] {
        let (level, slots) = (Level::Host(host.into()), |job: &crate::state::job::Job| {
            job.placements()
                .flat_map(|(_, at)| &at.granted)
                .filter(|part| part.instance.host.as_str() == host)
                .count()
        });
        let users = lab.state().jobs.values().filter(|job| slots(job) > 0).count();
        assert!(
            ledger.booked(&level, "excl") == Amount::ZERO || users == 1,
            "{host} is not alone"
        );
    }
}

/// Every job that could start now has started: a second pass finds nothing.
fn assert_nothing_is_left_over(lab: &mut Lab) {
    lab.placed.clear();
    lab.pass();
    assert_eq!(lab.placed, Vec::<String>::new(), "a pass leaves nothing for the next");
}

proptest! {
    #![proptest_config(crate::testing::cases(48))]

    #[test]
    fn plans_pass_the_checks_and_give_nothing_out_twice(
        jobs in proptest::collection::vec((0usize..9, 0usize..7), 1..25),
        ends in proptest::collection::vec(any::<prop::sample::Index>(), 0..10),
        licences in 0i64..6,
        memory in 0i64..8,
        load_per_slot in any::<bool>(),
    ) {
        let mut lab = cluster(licences, memory);
        lab.line(&format!("conf params LOAD_PER_SLOT={load_per_slot}"));
        for (number, (request, shape)) in jobs.iter().enumerate() {
            submit(&mut lab, number + 1, *request, *shape);
            if number % 7 == 6 {
                lab.pass();
                assert_not_oversubscribed(&lab, licences, memory);
            }
        }
        lab.pass();
        for end in ends {
            let running: Vec<String> = lab.state().jobs.values()
                .flat_map(|job| job.placements().map(|(task, _)| format!("{}.{task}", job.seq.0))).collect();
            if running.is_empty() { break }
            lab.end(end.get(running.as_slice()).as_str());
            lab.pass();
            assert_not_oversubscribed(&lab, licences, memory);
        }
        assert_nothing_is_left_over(&mut lab);
        lab.state().check();
    }

    #[test]
    fn asking_for_more_never_adds_a_host(
        attribute in prop::sample::select(&["mem", "lic", "mem_free", "per", "node"]),
        low in 1i64..6, more in 1i64..6, licences in 0i64..6, memory in 0i64..8,
    ) {
        let hosts = |request: &str| -> Vec<&str> {
            let takes = |host: &&str| {
                let mut lab = cluster(licences, memory);
                lab.line(&format!("job 1 {request} -q *@{host}"));
                lab.pass();
                lab.state().jobs[&SubmitSeq(1)].active == 1
            };
            HOSTS.into_iter().filter(takes).collect()
        };
        let unit = if attribute.starts_with("mem") { "G" } else { "" };
        let without = hosts("");
        let some = hosts(&format!("-l {attribute}={low}{unit}"));
        let raised = hosts(&format!("-l {attribute}={}{unit}", low + more));
        prop_assert!(some.iter().all(|host| without.contains(host)), "asking for {attribute} added a host");
        prop_assert!(raised.iter().all(|host| some.contains(host)), "raising {attribute} added a host");
    }

    #[test]
    fn what_nobody_asks_for_and_the_order_of_what_is_set_change_nothing(
        jobs in proptest::collection::vec((0usize..9, 0usize..7), 1..20),
        licences in 0i64..6, memory in 0i64..8,
        order in Just(["per=1", "mem=2G", "excl=true", "other=3", "lic=3", "unused=TRUE"]).prop_shuffle(),
    ) {
        let placed = |values: Vec<&str>| {
            let mut lab = cluster(licences, memory);
            lab.line("complex other other INT <= YES YES 0 0");
            lab.line("complex unused unused BOOL == YES NO 0 0");
            lab.line(&format!("host d {} | mem_free=4G", values.join(",")));
            lab.line("queue all.q a,b,c,d slots=4,[b=3] pe_list=smp,fill,robin,two,loose");
            for (number, (request, shape)) in jobs.iter().enumerate() {
                submit(&mut lab, number + 1, *request, *shape);
            }
            lab.pass();
            lab.placed.clone()
        };
        let related = |name: &&str| !name.starts_with("other") && !name.starts_with("unused");
        let sorted = placed(vec!["excl=true", "lic=3", "mem=2G", "per=1"]);
        prop_assert_eq!(&sorted, &placed(order.into_iter().filter(related).collect()));
        prop_assert_eq!(&sorted, &placed(order.into()));
    }

    #[test]
    fn the_same_jobs_are_placed_alike_however_a_pass_is_sliced(
        jobs in proptest::collection::vec((0usize..9, 0usize..7), 1..20), budget in 1usize..50
    ) {
        let placed = |budget: usize| {
            let mut lab = cluster(4, 6);
            lab.budget = budget;
            for (number, (request, shape)) in jobs.iter().enumerate() {
                submit(&mut lab, number + 1, *request, *shape);
            }
            lab.pass();
            lab.placed.clone()
        };
        prop_assert_eq!(placed(budget), placed(1_000));
    }
}
