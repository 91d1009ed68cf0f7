//! A scheduler outside the master: its lease, its orders and their verdicts.

use super::cell::{Cell, array, job, texts};
use crate::effect::{Effect, Input, Placer};
use crate::event::Event;
use proto::diagnostic::Code;
use proto::id::{CellId, PeName, QueueInstanceName, SubmitSeq, TaskId, TaskKey};
use proto::job::{GrantedSlots, Holds, JobSpec};
use proto::wire::client::{Answer, Command, Reply};
use proto::wire::stream::Order;
use proto::wire::stream::{ORDERS_MAX, Orders, Verdict};
use proto::wire::view::Data;

fn external() -> Cell {
    let mut cell = Cell::ready();
    cell.set_scheduler(&[("algorithm", "external"), ("params", "EXTERNAL_TIMEOUT=0:0:20")]);
    cell.pass(0);
    cell
}

fn start(cell: &Cell, number: u32, task: u32, host: &str) -> Order {
    let instance = QueueInstanceName {
        queue: "all.q".into(),
        host: host.into(),
    };
    let granted = vec![GrantedSlots { instance, slots: 1 }];
    Order::Start {
        seq: cell.job(number).seq,
        task: TaskId(task),
        granted,
        pe: None,
    }
}

fn orders(scheduler: &str, orders: Vec<Order>) -> Command {
    Command::Orders(Orders {
        scheduler: scheduler.to_owned(),
        orders,
        last: false,
    })
}

fn verdicts(reply: &Reply) -> &[Verdict] {
    let Some(Data::Verdicts(verdicts)) = &reply.data else {
        panic!("{reply:?}")
    };
    verdicts
}

/// Who places jobs from the last input on, if that has changed.
fn placing(cell: &Cell) -> Option<Placer> {
    let placing = |effect: &Effect| {
        if let Effect::Placing { by, .. } = effect {
            Some(*by)
        } else {
            None
        }
    };
    cell.effects.iter().find_map(placing)
}

fn built_in_is_refused(cell: &mut Cell, number: u32) -> bool {
    let order = start(cell, number, 1, "h1");
    cell.input(Input::Orders {
        scheduler: "default".to_owned(),
        orders: vec![order],
    });
    cell.effects
        .iter()
        .any(|effect| matches!(effect, Effect::OrderRefused { .. }))
}

#[test]
fn each_order_has_its_verdict() {
    let mut cell = external();
    let number = cell.submit(array("1-3:1"));
    let wanted = [(1, "h1"), (1, "h1"), (2, "h9"), (3, "h2")];
    let wanted = wanted
        .iter()
        .map(|(task, host)| start(&cell, number, *task, host))
        .collect();
    let reply = cell.command("boss", orders("mine", wanted));
    let [
        Verdict::Accepted { seq: first },
        Verdict::Refused(twice),
        Verdict::Refused(nowhere),
        Verdict::Accepted { seq: last },
    ] = verdicts(&reply)
    else {
        panic!("{reply:?}")
    };
    assert_eq!((twice.code, nowhere.code), (Code::WrongState, Code::WrongState));
    for (seq, task) in [(first, 1), (last, 3)] {
        let record = cell.log.iter().find(|record| record.seq == *seq).unwrap();
        assert!(
            matches!(record.event, Event::TaskPlaced { key, .. } if key.task == TaskId(task)),
            "{record:?}"
        );
    }
    cell.assert_replay_is_live();
}

#[test]
fn an_order_that_cannot_be_changes_nothing() {
    let mut cell = external();
    let one = cell.submit(job());
    let held = cell.submit(JobSpec {
        holds: Holds {
            user: true,
            ..Holds::default()
        },
        ..job()
    });
    let at = |queue: &str, host: &str, slots: u32| GrantedSlots {
        instance: QueueInstanceName {
            queue: queue.into(),
            host: host.into(),
        },
        slots,
    };
    let seq = cell.job(one).seq;
    let start = |task: u32, granted: Vec<GrantedSlots>, pe: Option<PeName>| Order::Start {
        seq,
        task: TaskId(task),
        granted,
        pe,
    };
    let most = u32::MAX;
    let key = TaskKey {
        cell: CellId(7),
        seq,
        task: TaskId(1),
        pe_task: 0,
        attempt: most,
    };
    let wanted = vec![
        start(0, vec![at("all.q", "h1", 1)], None),
        start(most, vec![at("all.q", "h1", 1)], None),
        start(1, Vec::new(), None),
        start(1, vec![at("all.q", "h1", most)], None),
        start(
            1,
            vec![at("all.q", "h1", most), at("all.q", "h2", most)],
            Some("mpi".into()),
        ),
        start(1, vec![at("all.q", "h1", 1)], Some("".into())),
        start(1, vec![at("", "", 1)], None),
        start(1, vec![at("all.q", "h1", 1), at("all.q", "h1", 0)], None),
        Order::Start {
            seq: SubmitSeq(u64::MAX),
            task: TaskId(1),
            granted: vec![at("all.q", "h1", 1)],
            pe: None,
        },
        Order::Start {
            seq: cell.job(held).seq,
            task: TaskId(1),
            granted: vec![at("all.q", "h1", 1)],
            pe: None,
        },
        Order::RejectImmediate { seq },
        Order::RejectImmediate { seq: SubmitSeq(0) },
        Order::SuspendByThreshold { key, suspended: true },
    ];
    let before = cell.log.len();
    let reply = cell.command("boss", orders("mine", wanted.clone()));
    let refused = verdicts(&reply)
        .iter()
        .filter(|verdict| matches!(verdict, Verdict::Refused(_)))
        .count();
    assert_eq!((refused, cell.log.len()), (wanted.len(), before), "{reply:?}");
}

#[test]
fn while_a_program_is_heard_the_built_in_scheduler_places_nothing() {
    let mut cell = external();
    let number = cell.submit(job());
    cell.command("boss", orders("mine", Vec::new()));
    assert_eq!(placing(&cell), Some(Placer::External));
    assert!(built_in_is_refused(&mut cell, number));
    for _ in 0..5 {
        cell.pass(19_000);
        assert_eq!(placing(&cell), None);
        cell.command("boss", orders("mine", Vec::new()));
        assert_eq!(placing(&cell), None);
    }
    cell.pass(20_000);
    assert_eq!(placing(&cell), Some(Placer::BuiltIn));
    assert!(!built_in_is_refused(&mut cell, number));
    cell.command("boss", orders("mine", Vec::new()));
    assert_eq!(placing(&cell), Some(Placer::External));
}

#[test]
fn the_built_in_scheduler_waits_for_the_first_sign_and_then_takes_over() {
    let mut cell = external();
    let number = cell.submit(job());
    assert!(built_in_is_refused(&mut cell, number));
    assert!(
        cell.core
            .next_timer()
            .is_some_and(|at| at <= cell.now.tick.plus_ms(20_000))
    );
    cell.pass(20_000);
    assert_eq!(placing(&cell), Some(Placer::BuiltIn));
    assert!(!built_in_is_refused(&mut cell, number));
}

#[test]
fn a_master_that_starts_waits_for_the_program_before_it_places_anything_itself() {
    let mut cell = external();
    cell.command("boss", orders("mine", Vec::new()));
    let number = cell.submit(job());
    cell.core = crate::core::Core::new(cell.core.state().clone());
    cell.connect("h1");
    assert_eq!(placing(&cell), Some(Placer::External));
    assert!(built_in_is_refused(&mut cell, number));
    cell.pass(20_000);
    assert_eq!(placing(&cell), Some(Placer::BuiltIn));
}

#[test]
fn a_program_that_says_that_it_goes_is_not_waited_for() {
    let mut cell = external();
    let number = cell.submit(job());
    let last = Orders {
        scheduler: "mine".to_owned(),
        orders: vec![start(&cell, number, 1, "h1")],
        last: true,
    };
    let reply = cell.command("boss", Command::Orders(last));
    assert!(matches!(verdicts(&reply), [Verdict::Accepted { .. }]));
    assert_eq!(placing(&cell), Some(Placer::BuiltIn));
}

#[test]
fn another_algorithm_ends_the_lease() {
    let mut cell = external();
    cell.command("boss", orders("mine", Vec::new()));
    cell.set_scheduler(&[("algorithm", "fcfs")]);
    cell.pass(0);
    assert_eq!(placing(&cell), Some(Placer::BuiltIn));
    let reply = cell.command("boss", orders("mine", Vec::new()));
    assert_eq!(
        texts(&reply),
        ["denied: jobs are placed by algorithm fcfs of the master"]
    );
}

#[test]
fn who_may_not_order_is_refused() {
    let mut cell = external();
    cell.command("boss", orders("mine", Vec::new()));
    let number = cell.submit(job());
    let many = vec![start(&cell, number, 1, "h1"); ORDERS_MAX + 1];
    for (user, command, code) in [
        ("u1", orders("mine", Vec::new()), Code::NotPermitted),
        ("op", orders("mine", Vec::new()), Code::NotPermitted),
        ("boss", orders("other", Vec::new()), Code::WrongState),
        ("boss", orders("two words", Vec::new()), Code::BadValue),
        ("boss", orders("mine", many), Code::Overloaded),
    ] {
        let reply = cell.command(user, command);
        let [Answer::Refused(refusal)] = reply.answers.as_slice() else {
            panic!("{reply:?}")
        };
        assert_eq!(refusal.code, code, "{refusal}");
        assert!(!refusal.fix.is_empty(), "{refusal}");
    }
}
