use super::*;
use crate::complex::Complex;
use crate::id::AttributeName;
use crate::request::ResourceList;
use proptest::prelude::*;
use std::collections::BTreeSet;

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
/// How the captures print a limit that is not set.
const NONE: i64 = -1;

/// A complex with one line of the built-in table replaced.
fn complex_with(name: &str, line: &str) -> Complex {
    let text = Complex::built_in().to_string();
    let lines = text
        .lines()
        .map(|old| if old.split(' ').next() == Some(name) { line } else { old });
    Complex::parse(&lines.collect::<Vec<_>>().join("\n")).unwrap()
}

/// Limits of a queue, written as requests are.
fn queue(text: &str) -> LimitSet {
    let complex = Complex::built_in();
    let mut limits = LimitSet::default();
    for request in ResourceList::parse(text).unwrap().resolve(&complex).unwrap() {
        let kinds = LimitKind::ATTRIBUTES
            .into_iter()
            .flat_map(|kind| BoundKind::ALL.map(|bound| (kind, bound)));
        let (kind, bound) = kinds
            .into_iter()
            .find(|(k, b)| k.name(*b) == request.attribute.as_str())
            .unwrap();
        limits.set_bound(kind, bound, request.value.amount().unwrap());
    }
    limits
}

/// The limits in force with one queue instance whose capacities are named.
fn limits(complex: &Complex, requests: &str, queue_limits: &str, managed: &[&str], slots: u32) -> LimitSet {
    let requests = ResourceList::parse(requests).unwrap().resolve(complex).unwrap();
    let managed: BTreeSet<AttributeName> = managed.iter().map(|name| AttributeName::from(*name)).collect();
    let grant = Grant {
        queue: &queue(queue_limits),
        managed: &managed,
        slots,
    };
    effective(complex, &requests, &[grant], &LimitSet::default())
}

fn pair(limits: &LimitSet, kind: LimitKind) -> (i64, i64) {
    let Bounds { soft, hard } = limits.get(kind);
    let number = |limit: Option<Amount>| limit.map_or(NONE, |limit| limit.finite().unwrap_or(i64::MAX));
    (number(soft), number(hard))
}

/// Kinds in the order of the captures: cpu, fsize, data, stack, core, rss, vmem.
fn captured(requests: &str, queue_limits: &str, slots: u32) -> [(i64, i64); 7] {
    let limits = limits(&Complex::built_in(), requests, queue_limits, &[], slots);
    [
        LimitKind::Cpu,
        LimitKind::Fsize,
        LimitKind::Data,
        LimitKind::Stack,
        LimitKind::Core,
        LimitKind::Rss,
        LimitKind::Vmem,
    ]
    .map(|kind| pair(&limits, kind))
}

#[test]
fn recorded_jobs_have_the_recorded_limits() {
    // As recorded of 8.1.9. Where it raises a limit that nobody set to unlimited, the inherited one
    // stays.
    let none = (NONE, NONE);
    let both = |value: i64| (value, value);
    let soft = |value: i64| (value, NONE);
    let hard = "h_rt=3600,h_cpu=1000,h_fsize=1G,h_data=2G,h_stack=16M,h_core=5M,h_rss=3G,h_vmem=4G";
    let g = |gib: i64| gib * GIB;
    assert_eq!(captured("", "", 1), [none; 7]);
    assert_eq!(
        captured(hard, "", 1),
        [
            both(1000),
            both(g(1)),
            both(g(2)),
            both(16 * MIB),
            both(5 * MIB),
            both(g(3)),
            both(g(4))
        ]
    );
    // 8.1.9 enforces no h_rss, and so does not multiply it: here it holds for the whole job and is
    // booked for each slot.
    assert_eq!(
        captured(hard, "", 2),
        [
            both(2000),
            both(g(1)),
            both(g(4)),
            both(32 * MIB),
            both(5 * MIB),
            both(g(6)),
            both(g(8))
        ]
    );
    assert_eq!(captured("s_rss=100M,h_rss=200M", "", 4)[5], (400 * MIB, 800 * MIB));
    assert_eq!(
        captured(&hard.replace("h_", "s_"), "", 1),
        [
            soft(1000),
            soft(g(1)),
            soft(g(2)),
            soft(16 * MIB),
            soft(5 * MIB),
            soft(g(3)),
            soft(g(4))
        ]
    );
    let vmem = |requests: &str, slots| captured(requests, "s_vmem=1.5G,h_vmem=2G,h_cpu=600", slots)[6];
    assert_eq!(vmem("", 1), (1_610_612_736, g(2)));
    assert_eq!(vmem("", 2), (3_221_225_472, g(4)));
    assert_eq!(vmem("h_vmem=1G", 1), both(g(1)));
    assert_eq!(vmem("h_vmem=500M", 2), both(1_048_576_000));
    assert_eq!(vmem("s_vmem=1G", 1), (g(1), g(2)));
    assert_eq!(captured("", "h_cpu=600", 2)[0], both(1200));
}

#[test]
fn the_worked_numbers_of_semantics_section_12_hold() {
    let vmem = |slots| captured("h_vmem=2G", "", slots)[6].1;
    assert_eq!((vmem(4), vmem(3)), (8 * GIB, 6 * GIB));
    assert_eq!(captured("h_fsize=10G", "", 7)[1], (10 * GIB, 10 * GIB));
}

#[test]
fn a_default_counts_only_if_it_is_managed_and_not_zero() {
    let vmem = |line: &str, managed: &[&str], requests: &str| {
        pair(
            &limits(&complex_with("h_vmem", line), requests, "h_vmem=8G", managed, 2),
            LimitKind::Vmem,
        )
        .1
    };
    let with_default = "h_vmem h_vmem MEMORY <= YES YES 1G 0";
    assert_eq!(vmem(with_default, &["h_vmem"], ""), 2 * GIB);
    assert_eq!(vmem(with_default, &[], ""), 16 * GIB);
    assert_eq!(vmem(with_default, &["h_vmem"], "h_vmem=3G"), 6 * GIB);
    assert_eq!(vmem("h_vmem h_vmem MEMORY <= YES YES 0 0", &["h_vmem"], ""), 16 * GIB);
    assert_eq!(vmem("h_vmem h_vmem MEMORY <= YES NO 0 0", &["h_vmem"], ""), 16 * GIB);
}

#[test]
fn what_is_booked_once_is_not_multiplied() {
    for consumable in ["JOB", "HOST"] {
        let complex = complex_with("h_vmem", &format!("h_vmem h_vmem MEMORY <= YES {consumable} 0 0"));
        assert_eq!(
            pair(&limits(&complex, "h_vmem=4G", "", &[], 3), LimitKind::Vmem),
            (4 * GIB, 4 * GIB)
        );
    }
}

#[test]
fn floors_come_before_the_slots() {
    let tiny = "h_cpu=1,h_fsize=1,h_data=1,h_stack=1,h_core=0,h_rss=1,h_vmem=1";
    let both = |value: i64| (value, value);
    let expected = [
        both(4),
        both(15 << 10),
        both(20 * MIB),
        both(2 * MIB),
        both(0),
        both(20 * MIB),
        both(20 * MIB),
    ];
    assert_eq!(captured(tiny, "", 2), expected);
}

#[test]
fn infinity_stays_and_overflow_becomes_infinity() {
    assert_eq!(captured("h_vmem=INFINITY", "h_vmem=2G", 4)[6], (i64::MAX, i64::MAX));
    assert_eq!(captured("h_vmem=8388607T", "", 2)[6], (i64::MAX, i64::MAX));
    assert_eq!(captured("s_vmem=INFINITY,h_vmem=1G", "", 1)[6], (GIB, GIB));
    assert_eq!(captured("", "h_vmem=INFINITY,s_vmem=INFINITY", 1)[6], (NONE, NONE));
}

#[test]
fn instances_on_one_host_add_up_slots_and_share_the_shortest_run_time() {
    let (long, short) = (queue("h_rt=7200,h_vmem=1G"), queue("h_rt=3600,s_rt=3000,h_vmem=2G"));
    let managed = BTreeSet::new();
    let grants = |first: &LimitSet, second: &LimitSet| {
        let grants = [
            Grant {
                queue: first,
                managed: &managed,
                slots: 3,
            },
            Grant {
                queue: second,
                managed: &managed,
                slots: 1,
            },
        ];
        effective(&Complex::built_in(), &[], &grants, &LimitSet::default())
    };
    let limits = grants(&long, &short);
    assert_eq!(pair(&limits, LimitKind::Rt), (3000, 3600));
    assert_eq!(pair(&limits, LimitKind::Vmem), (5 * GIB, 5 * GIB));
    // An instance without a limit leaves the task as a whole without one that holds for each slot,
    // but not without run time.
    let limits = grants(&long, &LimitSet::default());
    assert_eq!(
        (pair(&limits, LimitKind::Rt), pair(&limits, LimitKind::Vmem)),
        ((7200, 7200), (NONE, NONE))
    );
    assert!(effective(&Complex::built_in(), &[], &[], &LimitSet::default()).is_empty());
}

#[test]
fn execd_params_set_the_limits_of_processes() {
    let check = |params: &str, slots, kind, expected| {
        let params = LimitSet::from_execd_params(params).unwrap();
        let grant = Grant {
            queue: &LimitSet::default(),
            managed: &BTreeSet::new(),
            slots,
        };
        let limits = effective(&Complex::built_in(), &[], &[grant], &params);
        assert_eq!(pair(&limits, kind), expected);
    };
    let all = "ACCT_RESERVED_USAGE=true,S_DESCRIPTORS=1111 H_DESCRIPTORS=2222,S_MAXPROC=3333,H_MAXPROC=4444,\
               S_MEMORYLOCKED=1M,H_MEMORYLOCKED=2M,S_LOCKS=55,H_LOCKS=66";
    check(all, 1, LimitKind::Descriptors, (1111, 2222));
    check(all, 1, LimitKind::MaxProc, (3333, 4444));
    check(all, 1, LimitKind::MemoryLocked, (MIB, 2 * MIB));
    check(all, 2, LimitKind::Locks, (110, 132));
    check("H_MAXPROC=100", 2, LimitKind::MaxProc, (200, 200));
    check("s_locks=5", 1, LimitKind::Locks, (5, 5));
    check("S_LOCKS=9,H_LOCKS=5", 1, LimitKind::Locks, (5, 5));
    check("H_DESCRIPTORS=40000", 2, LimitKind::Descriptors, (65_535, 65_535));
    check("H_DESCRIPTORS=INFINITY", 1, LimitKind::Descriptors, (65_535, 65_535));
    check("H_DESCRIPTORS=1,H_MAXPROC=1", 1, LimitKind::Descriptors, (100, 100));
    check("H_LOCKS=INFINITY", 3, LimitKind::Locks, (i64::MAX, i64::MAX));
    check("none", 1, LimitKind::Locks, (NONE, NONE));
    let refusal = LimitSet::from_execd_params("H_LOCKS=x").unwrap_err();
    assert_eq!(refusal.what, "attribute \"H_LOCKS\" is not a integer value");
    assert!(LimitSet::from_execd_params("H_LOCKS=-1").is_err());
}

#[test]
fn slots_of_two_kinds_add_up_what_holds_for_a_slot() {
    let complex = Complex::built_in();
    let own = limits(
        &complex,
        "h_vmem=1G,h_rt=60,s_cpu=5,h_cpu=9",
        "h_stack=1M,h_core=1M",
        &[],
        1,
    );
    let others = limits(&complex, "h_vmem=2G,h_rt=30", "h_stack=2M", &[], 3);
    let all = together(&complex, &own, &others, &[]);
    assert_eq!(pair(&all, LimitKind::Vmem), (7 * GIB, 7 * GIB));
    // The time of the task itself counts, and processor time that the others may use without limit
    // is unlimited.
    assert_eq!(pair(&all, LimitKind::Rt), (60, 60));
    assert_eq!(pair(&all, LimitKind::Cpu), (NONE, NONE));
    assert_eq!(pair(&all, LimitKind::Stack), (7 * MIB, 7 * MIB));
    assert_eq!(pair(&all, LimitKind::Core), (MIB, MIB));
    let alone = ResourceList::parse("h_vmem=1G").unwrap().resolve(&complex).unwrap();
    let all = together(&complex, &own, &others, &alone);
    assert_eq!(pair(&all, LimitKind::Vmem), (GIB, GIB));
    assert_eq!(pair(&all, LimitKind::Stack), (7 * MIB, 7 * MIB));
    // What is booked once for a job is its own.
    let complex = complex_with("h_vmem", "h_vmem h_vmem MEMORY <= YES JOB 0 0");
    assert_eq!(
        pair(&together(&complex, &own, &others, &[]), LimitKind::Vmem),
        (GIB, GIB)
    );
}

#[test]
fn every_kind_has_names_a_type_and_a_resource() {
    for kind in LimitKind::ATTRIBUTES {
        for bound in BoundKind::ALL {
            let complex = Complex::built_in();
            let attribute = complex.lookup(kind.name(bound)).unwrap();
            assert_eq!(attribute.r#type, kind.value_type());
        }
        assert_eq!(kind.rlimit().is_none(), kind == LimitKind::Rt);
    }
    let mut set = LimitSet::default();
    set.set_bound(LimitKind::Rt, BoundKind::Soft, Amount::ZERO);
    assert_eq!(set.iter().count(), 1);
    set.set(LimitKind::Rt, Bounds::default());
    assert!(set.is_empty());
}

#[test]
fn limits_are_stored_by_name() {
    let json = serde_json::to_string(&queue("h_rt=60,s_rt=50")).unwrap();
    assert_eq!(json, "{\"Rt\":{\"soft\":50,\"hard\":60}}");
    assert_eq!(
        serde_json::from_str::<LimitSet>(&json).unwrap(),
        queue("h_rt=60,s_rt=50")
    );
}

proptest! {
    #[test]
    fn a_soft_limit_never_exceeds_its_hard_one(soft in 0i64.., hard in 0i64.., in_queue in 0i64.., slots in 1u32..64) {
        let requests = format!("s_vmem={},h_cpu={}", soft / 2, hard / 2);
        let queue_limits = format!("h_vmem={},s_cpu={}", in_queue / 2, in_queue / 2);
        let limits = limits(&Complex::built_in(), &requests, &queue_limits, &[], slots);
        for (kind, Bounds { soft, hard }) in limits.iter() {
            prop_assert!(soft.is_some() && soft <= hard.or(soft), "{:?}", kind);
            prop_assert!(soft >= Some(kind.floor()));
        }
    }
}
