//! What the ledger keeps, told by numbers and by laws.

use super::*;
use crate::sched::tests::lab::{plain_spec, spec};
use proptest::prelude::*;
use proto::complex::Complex;
use proto::id::QueueInstanceName;
use proto::job::GrantedSlots;
use std::sync::Arc;

fn config(lines: &str) -> Configuration {
    let mut config = Configuration::new();
    config.complex = Arc::new(Complex::parse(&format!("{}{lines}\n", Complex::built_in())).unwrap());
    config
}

fn granted(parts: &[(&str, u32)]) -> Vec<GrantedSlots> {
    let part = |(host, slots): &(&str, u32)| GrantedSlots {
        instance: QueueInstanceName {
            queue: "all.q".into(),
            host: (*host).into(),
        },
        slots: *slots,
    };
    parts.iter().map(part).collect()
}

fn key(seq: u64) -> TaskKey {
    TaskKey {
        seq: SubmitSeq(seq),
        attempt: 1,
        ..Ledger::FIRST_KEY
    }
}

fn host(name: &str) -> Level {
    Level::Host(name.into())
}

fn instance(name: &str) -> Level {
    Level::Instance(granted(&[(name, 1)]).remove(0).instance)
}

fn book(ledger: &mut Ledger, config: &Configuration, spec: &JobSpec, key: TaskKey, grant: Grant<'_>, at: Tick) {
    let charges = Arc::new(Charges::new(&config.complex, &spec.requests));
    ledger.book(
        config,
        key,
        Arc::new(Booking::new(config, charges, grant, at).with_owner(Arc::new(JobOwner::of_spec(spec)))),
    );
}

fn asked_since(ledger: &Ledger, level: &Level, since: u64) -> Amount {
    asked(ledger, level, CountRule::EachSlot, since)
}

fn asked(ledger: &Ledger, level: &Level, counted: CountRule, since: u64) -> Amount {
    let there = ledger.level(level);
    let asked = |there: &LevelBookings| there.requested_since(level.into(), &"mem_free".into(), counted, Tick(since));
    there.map_or(Amount::ZERO, asked)
}

fn mebibytes(count: i64) -> Amount {
    Amount::from_base(count << 20)
}

#[test]
fn consumables_are_booked_for_each_slot_once_a_job_or_once_a_host() {
    // ALGORITHMS.md section 4.1: 8 slots, 100M, four on a with the master and four on b.
    for (kind, at_a, at_b, globally) in [("YES", 400, 400, 800), ("JOB", 100, 0, 100), ("HOST", 100, 100, 200)] {
        let config = config(&format!("mem mem MEMORY <= YES {kind} 0 0"));
        let mut ledger = Ledger::default();
        let spec = spec(&["-l", "mem=100M"], &mut Vec::new());
        book(
            &mut ledger,
            &config,
            &spec,
            key(1),
            Grant::of_slots(&granted(&[("a", 4), ("b", 4)]), None),
            Tick(5),
        );
        for (level, amount) in [
            (host("a"), at_a),
            (host("b"), at_b),
            (instance("a"), at_a),
            (Level::Global, globally),
        ] {
            assert_eq!(ledger.booked(&level, "mem"), mebibytes(amount), "{kind} at {level}");
        }
        assert_eq!(ledger.slots(&Level::Global), 8);
        assert_eq!(ledger.slots(&host("b")), 4);
        ledger.check();
        assert!(ledger.release(key(1)));
        assert_eq!(ledger, Ledger::default());
    }
}

#[test]
fn a_booking_of_earlier_versions_with_a_request_twice_counts_the_later() {
    let config = config("mem mem MEMORY <= YES YES 0 0");
    let grant = granted(&[("a", 2)]);
    let booking = |charges| Booking::new(&config, Arc::new(charges), Grant::of_slots(&grant, None), Tick(1));
    let asked = |mebibyte| ("mem".into(), mebibytes(mebibyte));
    let stored = booking(Charges::stored(vec![asked(300), asked(100)], Vec::new(), Vec::new()));
    let spec = spec(&["-l", "mem=100M"], &mut Vec::new());
    assert_eq!(
        stored.rebooked(&config.complex),
        booking(Charges::new(&config.complex, &spec.requests))
    );
}

#[test]
fn a_default_is_booked_unless_the_job_asks() {
    let config = config("def def INT <= YES YES 2 0");
    let mut ledger = Ledger::default();
    book(
        &mut ledger,
        &config,
        &plain_spec(),
        key(1),
        Grant::of_slots(&granted(&[("a", 3)]), None),
        Tick(1),
    );
    assert_eq!(ledger.booked(&host("a"), "def"), Amount::from_base(6));
    book(
        &mut ledger,
        &config,
        &spec(&["-l", "def=0"], &mut Vec::new()),
        key(2),
        Grant::of_slots(&granted(&[("a", 3)]), None),
        Tick(1),
    );
    assert_eq!(ledger.booked(&host("a"), "def"), Amount::from_base(6));
}

#[test]
fn what_was_asked_since_a_sample_is_told_until_a_later_one() {
    let config = config("");
    let mut ledger = Ledger::default();
    let spec = spec(&["-l", "mem_free=2G"], &mut Vec::new());
    book(
        &mut ledger,
        &config,
        &spec,
        key(1),
        Grant::of_slots(&granted(&[("a", 2), ("b", 1)]), None),
        Tick(100),
    );
    let gibibytes = |count: i64| mebibytes(count << 10);
    for (level, since, asked) in [
        (host("a"), 100, 4),
        (host("a"), 101, 0),
        (host("b"), 50, 2),
        (Level::Global, 50, 6),
        (host("c"), 50, 0),
    ] {
        assert_eq!(
            asked_since(&ledger, &level, since),
            gibibytes(asked),
            "{level} since {since}"
        );
    }
    assert_eq!(
        ledger.booked(&host("a"), "mem_free"),
        Amount::ZERO,
        "it is no consumable"
    );
}

#[test]
fn what_was_asked_of_a_load_value_counts_once_at_each_level_if_so_wanted() {
    let requests = |common: &[&str], master: &str, slaves: &str| {
        let apart = ["-scope", "master", "-l", master, "-scope", "slave", "-l", slaves];
        spec(
            &[common, if master.is_empty() { &[] } else { &apart }].concat(),
            &mut Vec::new(),
        )
    };
    let two_queues = |host: &str| {
        let part = |queue: &str, slots| GrantedSlots {
            instance: QueueInstanceName {
                queue: queue.into(),
                host: host.into(),
            },
            slots,
        };
        vec![part("all.q", 2), part("io.q", 3)]
    };
    for (spec, granted, each_slot, once) in [
        (requests(&["-l", "mem_free=2G"], "", ""), granted(&[("a", 3)]), 6, 2),
        (requests(&["-l", "mem_free=2G"], "", ""), two_queues("a"), 10, 2),
        (
            requests(&[], "mem_free=5G", "mem_free=2G"),
            granted(&[("a", 3), ("b", 2)]),
            9,
            5,
        ),
        (
            requests(&[], "mem_free=1G", "mem_free=2G"),
            granted(&[("a", 3), ("b", 2)]),
            5,
            2,
        ),
        (
            requests(&[], "mem_free=1G", "mem_free=2G"),
            granted(&[("a", 1), ("b", 2)]),
            1,
            1,
        ),
        (
            requests(&[], "mem_free=5G", "mem_free=2G"),
            granted(&[("b", 3), ("a", 2)]),
            4,
            2,
        ),
    ] {
        let (config, mut ledger) = (config(""), Ledger::default());
        book(
            &mut ledger,
            &config,
            &spec,
            key(1),
            Grant::of_slots(&granted, None),
            Tick(100),
        );
        assert_eq!(
            asked(&ledger, &host("a"), CountRule::EachSlot, 0),
            mebibytes(each_slot << 10),
            "{granted:?}"
        );
        assert_eq!(
            asked(&ledger, &host("a"), CountRule::Once, 0),
            mebibytes(once << 10),
            "{granted:?}"
        );
    }
}

#[test]
fn a_changed_complex_books_what_tasks_asked_for_when_they_were_placed() {
    let mut ledger = Ledger::default();
    let spec = spec(&["-l", "mem_free=2G"], &mut Vec::new());
    book(
        &mut ledger,
        &config(""),
        &spec,
        key(1),
        Grant::of_slots(&granted(&[("a", 2)]), None),
        Tick(100),
    );
    let mut lines: Vec<String> = Complex::built_in().to_string().lines().map(str::to_owned).collect();
    lines.retain(|line| !line.starts_with("mem_free"));
    lines.push("mem_free mf MEMORY <= YES YES 1G 0".to_owned());
    ledger.rebook(&Complex::parse(&lines.join("\n")).unwrap());
    assert_eq!(ledger.booked(&host("a"), "mem_free"), mebibytes(4096));
    ledger.check();
    ledger.rebook(&Complex::built_in());
    assert_eq!(ledger.booked(&host("a"), "mem_free"), Amount::ZERO);
    ledger.check();
}

#[test]
fn what_is_unbounded_can_be_given_back() {
    let config = config("lic lic INT <= YES YES 0 0");
    let mut ledger = Ledger::default();
    let unbounded = spec(&["-l", "lic=INFINITY"], &mut Vec::new());
    let one = spec(&["-l", "lic=1"], &mut Vec::new());
    book(
        &mut ledger,
        &config,
        &one,
        key(1),
        Grant::of_slots(&granted(&[("a", 1)]), None),
        Tick(1),
    );
    book(
        &mut ledger,
        &config,
        &unbounded,
        key(2),
        Grant::of_slots(&granted(&[("a", 1)]), None),
        Tick(1),
    );
    assert!(ledger.booked(&host("a"), "lic").is_infinite());
    ledger.release(key(2));
    assert_eq!(ledger.booked(&host("a"), "lic"), Amount::from_base(1));
}

#[test]
fn a_stored_ledger_reads_back_whole() {
    let config = config("lic lic INT <= YES YES 1 0");
    let mut ledger = Ledger::default();
    for seq in 1..4 {
        book(
            &mut ledger,
            &config,
            &plain_spec(),
            key(seq),
            Grant::of_slots(&granted(&[("a", 2), ("b", 1)]), None),
            Tick(seq),
        );
    }
    let stored = rmp_serde::to_vec_named(&ledger).unwrap();
    assert_eq!(rmp_serde::from_slice::<Ledger>(&stored).unwrap(), ledger);
}

proptest! {
    #![proptest_config(crate::testing::cases(256))]

    #[test]
    fn what_is_booked_is_the_sum_over_the_tasks_after_any_sequence(
        steps in proptest::collection::vec((0u64..6, any::<bool>(), 1u32..5, 0u32..4, 0usize..4), 1..60)
    ) {
        let config = config("yes yes INT <= YES YES 1 0\njob job INT <= YES JOB 0 0\neach each MEMORY <= YES HOST 0 0");
        let requests = ["yes=3", "job=2,yes=0", "each=5M", "yes=-4"];
        let mut ledger = Ledger::default();
        let mut expected: BTreeMap<u64, (u32, u32, usize)> = BTreeMap::new();
        for (seq, is_placed, on_a, on_b, request) in steps {
            if is_placed {
                let spec = spec(&["-l", requests[request]], &mut Vec::new());
                let slots = [("a", on_a), ("b", on_b)].into_iter().filter(|(_, slots)| *slots > 0).collect::<Vec<_>>();
                book(&mut ledger, &config, &spec, key(seq), Grant::of_slots(&granted(&slots), None), Tick(seq));
                expected.insert(seq, (on_a, on_b, request));
            } else {
                prop_assert_eq!(ledger.release(key(seq)), expected.remove(&seq).is_some());
            }
            ledger.check();
            let sum = |of: fn(&(u32, u32, usize)) -> u32| expected.values().map(of).sum::<u32>();
            prop_assert_eq!(ledger.slots(&host("a")), sum(|task| task.0));
            prop_assert_eq!(ledger.slots(&Level::Global), sum(|task| task.0 + task.1));
            let yes = sum(|(on_a, _, request)| on_a * [3, 0, 1, 0][*request]);
            prop_assert_eq!(ledger.booked(&host("a"), "yes"), Amount::from_base(i64::from(yes)));
            let job = sum(|(_, _, request)| [0, 2, 0, 0][*request]);
            prop_assert_eq!(ledger.booked(&host("a"), "job"), Amount::from_base(i64::from(job)));
            prop_assert_eq!(ledger.booked(&host("b"), "job"), Amount::ZERO);
        }
    }
}

#[test]
fn the_takers_that_are_kept_are_those_that_a_walk_finds() {
    let config = config("lic lic INT <= YES YES 0 0\nfoo foo INT <= YES YES 0 0");
    let (mpi, at) = (PeName::from("mpi"), granted(&[("a", 1), ("b", 2)]));
    let mut ledger = Ledger::with_takers();
    let names = |names: &[&str]| names.iter().map(|name| AttributeName::from(*name)).collect();
    let check = |ledger: &Ledger, lic: &[u64], foo: &[u64], pe: &[u64]| {
        let numbers = |keys: Box<dyn Iterator<Item = TaskKey> + '_>| keys.map(|key| key.seq.0).collect::<Vec<_>>();
        let found = |ledger: &Ledger| {
            let of_cluster = ["lic", "foo"].map(|name| numbers(ledger.takers_of_cluster(name)));
            (of_cluster, numbers(ledger.takers_of_pe(&mpi)))
        };
        let expected = ([lic.to_vec(), foo.to_vec()], pe.to_vec());
        assert_eq!(found(ledger), expected);
        assert_eq!(found(&ledger.image()), expected, "the walk");
        ledger.check();
    };
    ledger.keep_takers(&names(&["lic"]));
    for (seq, words, pe) in [
        (1, &["-l", "lic=1"][..], None),
        (2, &["-l", "foo=2"], Some(&mpi)),
        (3, &["-l", "lic=1,foo=1"], Some(&mpi)),
    ] {
        let spec = spec(words, &mut Vec::new());
        book(&mut ledger, &config, &spec, key(seq), Grant::of_slots(&at, pe), Tick(1));
    }
    check(&ledger, &[1, 3], &[2, 3], &[2, 3]);
    ledger.keep_takers(&names(&["lic", "foo"]));
    check(&ledger, &[1, 3], &[2, 3], &[2, 3]);
    ledger.rebook(&config.complex);
    assert!(ledger.release(key(3)));
    check(&ledger, &[1], &[2], &[2]);
    ledger.keep_takers(&names(&[]));
    assert!(ledger.release(key(1)) && ledger.release(key(2)));
    check(&ledger, &[], &[], &[]);
}
