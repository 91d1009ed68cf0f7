//! Independent causes of suspension: a task goes on when none is left.

use super::cell::{Cell, result, texts};
use super::*;
use crate::core::Core;
use crate::effect::{Effect, Input};
use crate::event::{Event, InstanceState};
use proptest::prelude::*;
use proto::calendar::{Calendar, CalendarState};
use proto::id::{HostName, QueueInstanceName, TaskId, TaskKey};
use proto::job::GrantedSlots;
use proto::object::{Fields, ObjectKind};
use proto::queue::ClusterQueue;
use proto::time::{Now, Tick, Wall};
use proto::usage::{Exit, FailedCode};
use proto::wire::agent::{MasterMessage, TaskReport, TaskReportState, TaskSignal};
use proto::wire::client::{AttributeEdit, Command, ModifyAction, ObjectAction, ObjectChange};
use proto::wire::stream::Order;
use std::collections::BTreeMap;

const HOUR_MS: u64 = 3_600_000;

fn at(queue: &str, host: &str) -> QueueInstanceName {
    QueueInstanceName {
        queue: queue.into(),
        host: host.into(),
    }
}

impl Cell {
    fn configure(&mut self, kind: ObjectKind, name: &str, action: ObjectAction) -> Vec<String> {
        texts(&self.command(
            "boss",
            Command::Objects(vec![ObjectChange {
                kind,
                name: name.to_owned(),
                action,
            }]),
        ))
    }

    fn calendar(&mut self, name: &str, week: &str) -> Vec<String> {
        let mut fields = Calendar::template(name.into()).to_fields();
        fields.set("week", week);
        let exists = self.core.state().config.calendars.contains_key(name);
        let action = if exists {
            ObjectAction::Replace(fields)
        } else {
            ObjectAction::Add(fields)
        };
        self.configure(ObjectKind::Calendar, name, action)
    }

    fn replace(&mut self, queue: &str, attribute: &str, value: &str) -> Vec<String> {
        let (attribute, value) = (attribute.to_owned(), value.to_owned());
        let action = ObjectAction::Attribute {
            edit: AttributeEdit::Replace,
            attribute,
            value,
        };
        self.configure(ObjectKind::Queue, queue, action)
    }

    fn add_queue(&mut self, name: &str, slots: &str) {
        let mut fields: Fields = ClusterQueue::template(name.into()).to_fields();
        for (key, value) in [
            ("hostlist", "h1"),
            ("slots", slots),
            ("pe_list", "NONE"),
            ("load_thresholds", "NONE"),
        ] {
            fields.set(key, value);
        }
        self.configure(ObjectKind::Queue, name, ObjectAction::Add(fields));
    }

    /// Starts a job in a queue on `h1`, or says why not.
    fn start_in(&mut self, queue: &str) -> Result<(u32, TaskKey), String> {
        let number = self.submit(job());
        let seq = self.job(number).seq;
        let granted = vec![GrantedSlots {
            instance: at(queue, "h1"),
            slots: 1,
        }];
        let orders = vec![Order::Start {
            seq,
            task: TaskId(1),
            granted,
            pe: None,
        }];
        self.input(Input::Orders {
            scheduler: "default".to_owned(),
            orders,
        });
        let refused = |effect: &Effect| {
            if let Effect::OrderRefused { why, .. } = effect {
                Some(why.why.clone())
            } else {
                None
            }
        };
        if let Some(why) = self.effects.iter().find_map(refused) {
            self.qdel("u1", &[&number.to_string()]);
            return Err(why);
        }
        let (key, effects) = (self.placement(number, 1).key, self.effects.clone());
        self.report(key, "h1", TaskReportState::Running { for_ms: 0 });
        self.effects = effects;
        Ok((number, key))
    }

    fn state_of(&self, queue: &str, host: &str) -> InstanceState {
        self.core
            .state()
            .instances
            .get(&at(queue, host))
            .cloned()
            .unwrap_or_default()
    }

    fn is_stopped(&self, number: u32) -> bool {
        self.core.state().is_stopped(self.placement(number, 1))
    }

    /// The signals of the last input.
    fn signals(&self) -> Vec<(u64, TaskSignal)> {
        let signal = |message: &&MasterMessage| match message {
            MasterMessage::Signal { key, signal } => Some((key.seq.0, *signal)),
            _ => None,
        };
        self.sent().iter().filter_map(signal).collect()
    }

    /// Lets time pass, whenever the core wants to be called, until a calendar says something else;
    /// how long that took.
    fn pass_to_change(&mut self) -> u64 {
        let (before, mut passed) = (self.state_of("all.q", "h1").calendar, 0);
        while self.state_of("all.q", "h1").calendar == before {
            let due = self.core.next_timer().expect("something waits for time to pass");
            let ms = due.since_ms(self.now.tick);
            self.pass(ms);
            passed += ms;
        }
        passed
    }

    /// The agent of `h1` connects and knows every task that it should.
    fn reconnect(&mut self) {
        let keys: Vec<TaskKey> = self.core.state().index.on_host(&HostName::new("h1")).collect();
        let report = |key| TaskReport {
            key,
            state: TaskReportState::Running { for_ms: 0 },
        };
        self.connect_with("h1", 1, keys.into_iter().map(report).collect());
    }

    /// The same cell after the master was started again: nothing changes by that alone.
    fn restart(&mut self) {
        self.core = Core::new(self.core.state().clone());
        let logged = self.log.len();
        self.input(Input::Tick);
        assert_eq!(
            self.log.len(),
            logged,
            "{:?}",
            self.log[logged..].iter().map(|r| &r.event).collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_calendar_closes_suspends_and_opens_a_queue_to_the_millisecond() {
    let mut cell = Cell::ready();
    // The cell begins on a Friday, 15 January 2027, at 08:00 UTC.
    assert_eq!(
        cell.calendar("c", "fri=9-10 fri=10-11=suspended"),
        ["boss@sub added \"c\" to calendar list"]
    );
    assert_eq!(
        cell.replace("all.q", "calendar", "c"),
        ["boss@sub modified \"all.q\" in cluster queue list"]
    );
    let (number, _) = cell.start_in("all.q").unwrap();
    assert_eq!(cell.pass_to_change(), HOUR_MS);
    assert_eq!(cell.state_of("all.q", "h1").calendar, CalendarState::Off);
    assert!(
        !cell.is_stopped(number),
        "running tasks go on while the queue is closed"
    );
    let why = cell.start_in("all.q").unwrap_err();
    assert_eq!(why, "queue instance \"all.q@h1\" dropped because it is disabled");
    assert_eq!(cell.pass_to_change(), HOUR_MS);
    assert_eq!(cell.state_of("all.q", "h2").calendar, CalendarState::Suspended);
    assert_eq!(
        (cell.is_stopped(number), cell.signals()),
        (true, vec![(1, TaskSignal::Suspend)])
    );
    cell.restart();
    assert!(cell.is_stopped(number));
    cell.reconnect();
    assert_eq!(
        cell.signals(),
        [(1, TaskSignal::Suspend)],
        "a host that comes back is told how things stand"
    );
    assert_eq!(cell.pass_to_change(), HOUR_MS);
    assert_eq!(
        (cell.is_stopped(number), cell.signals()),
        (false, vec![(1, TaskSignal::Resume)])
    );
    cell.assert_replay_is_live();
}

#[test]
fn a_changed_calendar_and_a_clock_that_is_set_count_at_once() {
    let mut cell = Cell::ready();
    cell.calendar("c", "sat");
    cell.replace("all.q", "calendar", "c");
    assert_eq!(cell.state_of("all.q", "h1"), InstanceState::default());
    cell.now.wall = Wall(cell.now.wall.0 + 86_400_000);
    cell.pass(1);
    assert_eq!(cell.state_of("all.q", "h1").calendar, CalendarState::Off);
    cell.now.wall = Wall(cell.now.wall.0 - 86_400_000);
    cell.pass(1);
    assert_eq!(cell.state_of("all.q", "h1").calendar, CalendarState::On);
    cell.calendar("c", "fri=suspended");
    assert_eq!(cell.state_of("all.q", "h1").calendar, CalendarState::Suspended);
    assert_eq!(
        cell.replace("all.q@h2", "calendar", "NONE"),
        ["boss@sub modified \"all.q\" in cluster queue list"]
    );
    assert_eq!(cell.state_of("all.q", "h2").calendar, CalendarState::On);
    cell.replace("all.q", "calendar", "NONE");
    assert_eq!(cell.state_of("all.q", "h1").calendar, CalendarState::On);
    assert!(cell.core.state().instances.is_empty());
    cell.assert_replay_is_live();
}

#[test]
fn what_refers_to_calendars_and_queues_is_checked() {
    let mut cell = Cell::ready();
    cell.add_queue("low.q", "4");
    cell.calendar("c", "sat");
    assert_eq!(
        cell.replace("all.q", "calendar", "nosuch"),
        ["Calendar \"nosuch\" does not exist"]
    );
    cell.replace("all.q", "calendar", "c");
    let delete = |cell: &mut Cell, kind, name| cell.configure(kind, name, ObjectAction::Delete);
    assert_eq!(
        delete(&mut cell, ObjectKind::Calendar, "c"),
        ["denied: Calendar \"c\" is still referenced in queue \"all.q\""]
    );
    cell.replace("all.q", "calendar", "NONE");
    assert_eq!(
        delete(&mut cell, ObjectKind::Calendar, "c"),
        ["boss@sub removed \"c\" from calendar list"]
    );
    assert_eq!(
        delete(&mut cell, ObjectKind::Calendar, "c"),
        ["denied: calendar \"c\" does not exist"]
    );
    assert_eq!(
        cell.replace("all.q", "subordinate_list", "lo.q"),
        ["Subordinated cluster queue \"lo.q\" referenced in \"all.q\" does not exist"]
    );
    for list in ["low.q=2", "slots=2(low.q:1:lr)"] {
        assert_eq!(
            cell.replace("all.q", "subordinate_list", list),
            ["boss@sub modified \"all.q\" in cluster queue list"]
        );
    }
    for list in ["all.q", "slots=1(all.q)"] {
        assert_eq!(
            cell.replace("low.q", "subordinate_list", list),
            ["Cluster queue \"low.q\" can't get subordinated by itself"]
        );
    }
    assert_eq!(
        delete(&mut cell, ObjectKind::Queue, "low.q"),
        ["Cluster queue \"low.q\" is referenced in cluster queue \"all.q\" as a subordinate. Deletion denied"]
    );
    assert_eq!(
        cell.replace("all.q", "suspend_thresholds", "nosuch=1"),
        ["Complex attribute \"nosuch\" does not exist"]
    );
}

#[test]
fn a_subordinate_queue_is_suspended_while_the_other_uses_its_threshold() {
    let mut cell = Cell::ready();
    cell.add_queue("high.q", "4");
    cell.replace("high.q", "subordinate_list", "all.q=2");
    let (low, _) = cell.start_in("all.q").unwrap();
    let (_, first) = cell.start_in("high.q").unwrap();
    assert!(!cell.state_of("all.q", "h1").subordinate);
    cell.start_in("high.q").unwrap();
    assert_eq!(cell.signals(), [(1, TaskSignal::Suspend)]);
    assert!(cell.state_of("all.q", "h1").subordinate && cell.is_stopped(low));
    assert!(!cell.state_of("all.q", "h2").subordinate, "only on the same host");
    let why = cell.start_in("all.q").unwrap_err();
    assert_eq!(
        why,
        "queue instance \"all.q@h1\" dropped because it is temporarily not available"
    );
    // People suspend it too: it goes on when both causes are gone.
    cell.qmod("op", ModifyAction::SuspendQueue, "all.q@h1");
    cell.end(first, "h1", result(Exit::Code(0), FailedCode::NO, ""));
    assert!(!cell.state_of("all.q", "h1").subordinate && cell.is_stopped(low));
    cell.qmod("op", ModifyAction::UnsuspendQueue, "all.q@h1");
    assert_eq!(
        (cell.is_stopped(low), cell.signals()),
        (false, vec![(1, TaskSignal::Resume)])
    );
    // Without a number all slots count.
    cell.replace("high.q", "subordinate_list", "all.q");
    cell.start_in("high.q").unwrap();
    cell.start_in("high.q").unwrap();
    assert!(!cell.is_stopped(low));
    cell.start_in("high.q").unwrap();
    assert!(cell.is_stopped(low));
    cell.replace("high.q", "slots", "5");
    assert!(!cell.is_stopped(low), "one slot is free again");
    cell.replace("high.q", "slots", "4");
    cell.restart();
    cell.reconnect();
    cell.replace("high.q", "subordinate_list", "NONE");
    assert!(!cell.is_stopped(low));
    cell.assert_replay_is_live();
}

/// A queue `high.q` over `low1.q` and `low2.q` on `h1`.
fn slotwise(list: &str) -> Cell {
    let mut cell = Cell::ready();
    for queue in ["low1.q", "low2.q", "high.q"] {
        cell.add_queue(queue, "9");
    }
    cell.replace("high.q", "subordinate_list", list);
    cell
}

#[test]
fn the_worked_example_of_slot_wise_subordination_holds() {
    let mut cell = slotwise("slots=4(low1.q:0:sr, low2.q:1:lr)");
    let (one, _) = cell.start_in("low1.q").unwrap();
    let (two, _) = cell.start_in("low2.q").unwrap();
    cell.start_in("high.q").unwrap();
    cell.start_in("high.q").unwrap();
    assert_eq!((cell.is_stopped(one), cell.is_stopped(two)), (false, false));
    assert!(
        !cell.state_of("low1.q", "h1").preempted,
        "one more in low1.q would suspend that of low2.q"
    );
    let (_, third) = cell.start_in("high.q").unwrap();
    assert_eq!(
        (cell.is_stopped(one), cell.is_stopped(two)),
        (false, true),
        "five are more than four"
    );
    assert_eq!(cell.signals(), [(2, TaskSignal::Suspend)]);
    assert!(
        cell.state_of("low1.q", "h1").preempted,
        "now it would give way at once itself"
    );
    let why = cell.start_in("low1.q").unwrap_err();
    assert_eq!(
        why,
        "queue instance \"low1.q@h1\" dropped because it is temporarily not available"
    );
    let (_, fourth) = cell.start_in("high.q").unwrap();
    assert_eq!((cell.is_stopped(one), cell.is_stopped(two)), (true, true));
    assert!(!cell.state_of("high.q", "h1").preempted);
    cell.restart();
    cell.reconnect();
    // Slots of suspended tasks stay booked.
    assert_eq!(
        cell.core
            .state()
            .ledger
            .slots(&crate::ledger::Level::Instance(at("low2.q", "h1"))),
        1
    );
    let ended = result(Exit::Code(0), FailedCode::NO, "");
    cell.end(third, "h1", ended.clone());
    assert_eq!(
        (cell.is_stopped(one), cell.is_stopped(two)),
        (false, true),
        "in the reverse order"
    );
    cell.end(fourth, "h1", ended);
    assert_eq!((cell.is_stopped(one), cell.is_stopped(two)), (false, false));
    cell.assert_replay_is_live();
}

#[test]
fn a_task_that_people_suspend_makes_room_for_one_that_gave_way() {
    let mut cell = slotwise("slots=2(low1.q)");
    let (older, _) = cell.start_in("low1.q").unwrap();
    cell.pass(1000);
    let (younger, _) = cell.start_in("low1.q").unwrap();
    let (high, _) = cell.start_in("high.q").unwrap();
    assert_eq!(
        (cell.is_stopped(older), cell.is_stopped(younger)),
        (false, true),
        "the one that has run for less"
    );
    cell.qmod("u1", ModifyAction::SuspendJob, &high.to_string());
    assert!(!cell.is_stopped(younger));
    cell.qmod("u1", ModifyAction::UnsuspendJob, &high.to_string());
    assert!(cell.is_stopped(younger) && !cell.is_stopped(high));
    // A list that says nothing more lets all go on.
    cell.replace("high.q", "subordinate_list", "NONE");
    assert!(!cell.is_stopped(younger));
    assert!(cell.core.state().instances.is_empty());
}

/// What may happen to a cell with causes of all kinds.
#[derive(Clone, Debug)]
enum CauseStep {
    Start(&'static str),
    EndOldest,
    QueueState(ModifyAction, &'static str),
    JobState(ModifyAction),
    Threshold(bool),
    Set(&'static str, &'static str, &'static str),
    Time(u64),
    Jump(i64),
    Restart,
}

fn happens() -> impl Strategy<Value = CauseStep> {
    let queue = || prop::sample::select(vec!["all.q", "low1.q", "high.q"]);
    let set = prop::sample::select(vec![
        ("high.q", "subordinate_list", "all.q=1"),
        ("high.q", "subordinate_list", "slots=2(low1.q, all.q:1:lr)"),
        ("high.q", "subordinate_list", "NONE"),
        ("low1.q", "subordinate_list", "slots=1(all.q)"),
        ("low1.q", "subordinate_list", "all.q=2"),
        ("low1.q", "subordinate_list", "NONE"),
        ("all.q", "calendar", "c"),
        ("all.q", "calendar", "NONE"),
        ("low1.q", "calendar", "c"),
        ("low1.q", "hostlist", "h2"),
        ("low1.q", "hostlist", "h1"),
    ]);
    prop_oneof![
        4 => queue().prop_map(CauseStep::Start),
        2 => Just(CauseStep::EndOldest),
        1 => queue().prop_map(|queue| CauseStep::QueueState(ModifyAction::SuspendQueue, queue)),
        1 => queue().prop_map(|queue| CauseStep::QueueState(ModifyAction::UnsuspendQueue, queue)),
        1 => Just(CauseStep::JobState(ModifyAction::SuspendJob)),
        1 => Just(CauseStep::JobState(ModifyAction::UnsuspendJob)),
        1 => any::<bool>().prop_map(CauseStep::Threshold),
        2 => set.prop_map(|(queue, key, value)| CauseStep::Set(queue, key, value)),
        2 => (1u64..20).prop_map(|quarters| CauseStep::Time(quarters * HOUR_MS / 4)),
        1 => (-30i64..30).prop_map(CauseStep::Jump),
        1 => Just(CauseStep::Restart),
    ]
}

fn happen(cell: &mut Cell, happens: &CauseStep) {
    let oldest = cell.core.state().by_number.keys().next().map(|number| number.0);
    match happens {
        CauseStep::Start(queue) => drop(cell.start_in(queue)),
        CauseStep::EndOldest => {
            if let Some(number) = oldest {
                let key = cell.placement(number, 1).key;
                cell.end(key, "h1", result(Exit::Code(0), FailedCode::NO, ""));
            }
        }
        CauseStep::QueueState(action, queue) => drop(cell.qmod("op", *action, &format!("{queue}@h1"))),
        CauseStep::JobState(action) => drop(oldest.map(|number| cell.qmod("op", *action, &number.to_string()))),
        CauseStep::Threshold(suspended) => {
            if let Some(number) = oldest {
                let orders = vec![Order::SuspendByThreshold {
                    key: cell.placement(number, 1).key,
                    suspended: *suspended,
                }];
                cell.input(Input::Orders {
                    scheduler: "default".to_owned(),
                    orders,
                });
            }
        }
        CauseStep::Set(queue, key, value) => drop(cell.replace(queue, key, value)),
        CauseStep::Time(ms) => cell.pass(*ms),
        CauseStep::Jump(hours) => {
            cell.now.wall = Wall(cell.now.wall.0 + hours * HOUR_MS.cast_signed());
            cell.pass(1);
        }
        CauseStep::Restart => {
            cell.restart();
            cell.effects.clear();
        }
    }
}

/// The flags are what they should be, told apart from the code under test as far as that is easy.
fn check_flags(cell: &Cell) {
    let state = cell.core.state();
    let noon = proto::time::Zone::utc().local(cell.now.wall);
    for (instance, settings) in &state.config.resolved {
        let kept = state.instances.get(instance).cloned().unwrap_or_default();
        let calendar = settings
            .calendar
            .value()
            .map(|name| state.config.calendars[name.as_str()].state_at(noon));
        assert_eq!(kept.calendar, calendar.unwrap_or_default(), "{instance}");
        let used = |queue: &str| {
            state
                .ledger
                .slots(&crate::ledger::Level::Instance(at(queue, instance.host.as_str())))
        };
        let is_above = |queue: &str, threshold: u32| {
            let list = state.config.resolved.get(&at(queue, instance.host.as_str()));
            let list = list
                .and_then(|settings| settings.subordinate_list.value())
                .map(ToString::to_string);
            list == Some(format!("{}={threshold}", instance.queue)) && used(queue) >= threshold
        };
        assert_eq!(
            kept.subordinate,
            is_above("high.q", 1) || is_above("low1.q", 2),
            "{instance}"
        );
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(48))]

    /// After any sequence of causes that come and go a task runs exactly if no cause is left, its
    /// host was told so last, and a new master that starts from the log finds nothing to change.
    #[test]
    fn a_task_runs_exactly_if_no_cause_is_left(story in prop::collection::vec(happens(), 1..40)) {
        let mut cell = slotwise("NONE");
        cell.calendar("c", "9-12=suspended 18-20 sat,sun=6-8=suspended");
        let mut told: BTreeMap<TaskKey, bool> = BTreeMap::new();
        for step in &story {
            let before = cell.log.len();
            happen(&mut cell, step);
            if matches!(step, CauseStep::Restart) {
                // What an agent is told when it comes back is a test of its own.
                cell.reconnect();
            }
            for effect in &cell.effects {
                let Effect::Send { message, .. } = effect else { continue };
                if let MasterMessage::Signal { key, signal } = &**message {
                    told.insert(*key, *signal == TaskSignal::Suspend);
                }
            }
            check_flags(&cell);
            let state = cell.core.state();
            for key in state.index.on_host(&HostName::new("h1")) {
                let (_, _, placement) = state.placed(key).unwrap();
                let stopped = state.is_stopped(placement);
                prop_assert_eq!(told.get(&key).copied().unwrap_or(false), stopped, "{} after {:?}", key, step);
                let queue = state.instances.get(placement.master()).cloned().unwrap_or_default();
                let causes = [placement.suspended, placement.suspended_by_threshold, placement.preempted,
                    queue.suspended, queue.subordinate, queue.calendar == CalendarState::Suspended];
                prop_assert_eq!(stopped, causes.contains(&true));
            }
            let starts = cell.log[before..].iter().filter(|record| matches!(record.event, Event::TaskPlaced { .. }));
            prop_assert!(starts.count() <= 1);
        }
        cell.assert_replay_is_live();
        let mut again = Core::new(cell.core.state().clone());
        let now = Now { tick: Tick(cell.now.tick.0 + 1), ..cell.now };
        prop_assert_eq!(again.handle(Input::Tick, now).events, vec![]);
    }
}
