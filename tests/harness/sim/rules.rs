//! When a task may be placed, told apart from the code under test: every placement in the log is
//! judged by these rules, whoever ordered it. They cover what the workload asks for, and nothing
//! else.

use super::accounts::Accounts;
use super::books::{Books, LevelAttribute, SlotRole, TaskSlots};
use super::quotas::Quotas;
use super::slaves::Slaves;
use master_core::config::Configuration;
use master_core::event::{Actor, Event, Record, StoredObject, TaskFate};
use master_core::ledger::Level;
use master_core::state::State;
use master_core::state::job;
use proto::accounting::AccountingRecord;
use proto::amount::Amount;
use proto::calendar::CalendarState;
use proto::complex::Consumable;
use proto::id::{PeName, ReservationId, SubmitSeq, TaskId, TaskKey};
use proto::job::{GrantedSlots, HoldChange, Holds, JobSpec, Requests};
use proto::object::ObjectKind;
use proto::pe::AllocationRule;
use proto::request::TaskRange;
use proto::reservation::ReservationState;
use proto::time::{Now, Tick};
use proto::usage::FailedCode;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The exit status that keeps successors waiting.
const APPLICATION_ERROR: u32 = 100;

/// So many events apart, walks over everything are not for every event.
const LARGE: u64 = 1_000;

/// What accounting says of attempts of which nobody knows how they ended.
const LOST: [u8; 4] = [18, 19, 21, 22];

/// A job as its events tell it.
#[derive(Debug)]
struct Job {
    spec: Arc<JobSpec>,
    /// The holds of each task that has not left.
    holds: BTreeMap<TaskId, Holds>,
    errors: BTreeSet<TaskId>,
    /// Placed tasks that people want to run again.
    rescheduling: BTreeSet<TaskId>,
    /// From when on tasks that asked to be run again, with exit status 99, may start again.
    again: BTreeMap<TaskId, Tick>,
    placed: BTreeMap<TaskId, u32>,
    waits_for: Vec<SubmitSeq>,
    array_waits_for: Vec<SubmitSeq>,
    /// Whether a task of it ended with 100 since its errors were cleared.
    failed: bool,
}

/// What decides whether a task may be placed, and the sums of what is taken.
#[derive(Debug, Default)]
pub(super) struct Rules {
    jobs: BTreeMap<SubmitSeq, Job>,
    /// Who waited for whom at some time.
    successors: BTreeMap<SubmitSeq, BTreeSet<SubmitSeq>>,
    books: Books,
    quotas: Quotas,
    accounts: Accounts,
    slaves: Slaves,
    /// The slots of the reservations that are not over.
    reserved: BTreeMap<ReservationId, u32>,
    /// After how many events everything is compared, and not only what an event touched.
    every: u64,
}

impl Rules {
    pub(super) fn new(every: u64) -> Rules {
        Rules {
            every,
            ..Rules::default()
        }
    }

    /// Everything that is added up from event to event, added up anew.
    pub(super) fn compare_all(&self, state: &State) {
        self.books.compare_all(state);
        self.books.audit(&state.config);
        self.quotas.audit(&state.config, &self.books);
        self.accounts.audit(state);
    }

    /// Judges a durable event against the state before it.
    pub(super) fn judge(&self, record: &Record, before: &State) {
        self.slaves.judge(record, before);
        self.may_be_granted(&record.event, before);
        match &record.event {
            Event::TaskPlaced { key, granted, pe, .. } => {
                self.may_be_placed(*key, granted, pe.as_ref(), before, record.now);
            }
            Event::TasksDeleted { seq, .. } if matches!(record.actor, Actor::Scheduler(_)) => {
                let job = &self.jobs[seq];
                assert!(
                    job.spec.immediate && job.placed.is_empty(),
                    "a scheduler gave up {seq:?}, which is not immediate"
                );
            }
            Event::TaskEnded {
                key,
                record: Some(kept),
                then: TaskFate::Requeued,
                ..
            } if record.actor != Actor::Master => {
                let (job, task, placement) = before.placed(*key).expect("it was placed");
                let queue = before
                    .config
                    .resolved
                    .get(placement.master())
                    .is_some_and(|settings| settings.rerun.0);
                let may =
                    job.spec.rerunnable.unwrap_or(queue) || !LOST.contains(&kept.failed.0) || placement.rescheduling;
                assert!(may, "{key} was lost and runs again, although it may not: {task:?}");
            }
            _ => {}
        }
    }

    /// Follows what a job is, apart from its tasks.
    fn follow_job(&mut self, event: &Event) {
        match event {
            Event::JobSubmitted {
                seq,
                spec,
                waits_for,
                array_waits_for,
                ..
            } => {
                let tasks: Vec<TaskId> = spec.array.map_or(vec![TaskId(1)], |range| range.iter().collect());
                self.wait(*seq, waits_for.iter().chain(array_waits_for));
                let job = Job {
                    holds: tasks.into_iter().map(|task| (task, spec.holds)).collect(),
                    spec: spec.clone(),
                    errors: BTreeSet::new(),
                    rescheduling: BTreeSet::new(),
                    again: BTreeMap::new(),
                    placed: BTreeMap::new(),
                    waits_for: waits_for.clone(),
                    array_waits_for: array_waits_for.clone(),
                    failed: false,
                };
                self.jobs.insert(*seq, job);
            }
            Event::JobAltered {
                seq,
                spec,
                waits_for,
                array_waits_for,
            } => {
                self.wait(*seq, waits_for.iter().chain(array_waits_for));
                let job = self.jobs.get_mut(seq).expect("an altered job is there");
                job.spec = spec.clone();
                (job.waits_for, job.array_waits_for) = (waits_for.clone(), array_waits_for.clone());
            }
            Event::HoldsChanged { seq, tasks, change } => self.hold(*seq, tasks, *change),
            Event::ErrorCleared { seq, tasks } => {
                let job = self.jobs.get_mut(seq).expect("a job in error is there");
                job.errors
                    .retain(|task| !tasks.iter().any(|range| range.contains(*task)));
                job.failed = false;
            }
            _ => {}
        }
    }

    /// Notes a durable event; `after` is the state that it led to.
    pub(super) fn read(&mut self, record: &Record, after: &State) {
        self.follow_job(&record.event);
        match &record.event {
            Event::TaskPlaced { key, granted, pe, .. } => {
                let job = self.jobs.get_mut(&key.seq).expect("a placed job is there");
                job.placed.insert(key.task, key.attempt);
                self.books.place(after, &job.spec, *key, granted, pe.as_ref());
                if self.books.is_alone(*key) {
                    self.quotas.place(&after.config, self.books.task(*key));
                }
            }
            Event::TaskEnded {
                key,
                record: ended,
                then,
                ..
            } => {
                let job = self.jobs.get_mut(&key.seq).expect("the job of a task is there");
                job.failed |= ended
                    .as_ref()
                    .is_some_and(|ended| ended.exit_status == APPLICATION_ERROR);
                let is_asked_by_people = job.rescheduling.remove(&key.task);
                let is_again =
                    |ended: &AccountingRecord| ended.failed == FailedCode::RESCHEDULING && !is_asked_by_people;
                if *then == TaskFate::Requeued && ended.as_deref().is_some_and(is_again) {
                    let interval_s = after
                        .config
                        .scheduler
                        .schedule_interval
                        .seconds()
                        .unwrap_or(0)
                        .clamp(1, 600);
                    job.again.insert(key.task, record.now.tick.plus_ms(1000 * interval_s));
                }
                self.end(*key, then, after);
            }
            Event::TaskRescheduleRequested { key } => {
                self.jobs
                    .get_mut(&key.seq)
                    .expect("the job of a task is there")
                    .rescheduling
                    .insert(key.task);
            }
            Event::TasksDeleted { seq, tasks } => {
                let job = self.jobs.get_mut(seq).expect("a deleted job is there");
                job.holds
                    .retain(|task, _| !tasks.iter().any(|range| range.contains(*task)));
            }
            Event::JobFinished { seq } => self.finish(*seq, after),
            Event::ObjectsChanged(objects) => self.count_anew(objects, after),
            _ => {}
        }
        self.reserve(&record.event, after);
        self.accounts.read(record, after);
        self.slaves.read(record, after);
        self.compare_job(record, after);
        if record.seq.0.is_multiple_of(self.every) {
            self.compare_all(after);
        }
    }

    /// Counts again what changed objects count otherwise.
    fn count_anew(&mut self, objects: &[StoredObject], after: &State) {
        let has = |kinds: &[ObjectKind]| objects.iter().any(|object| kinds.contains(&object.kind));
        if has(&[ObjectKind::ComplexTable]) {
            self.books.rebook(after);
        }
        if has(&[
            ObjectKind::ComplexTable,
            ObjectKind::ResourceQuota,
            ObjectKind::HostGroup,
        ]) {
            self.quotas = Quotas::added_up(&after.config, &self.books);
        }
    }

    fn wait<'a>(&mut self, seq: SubmitSeq, others: impl Iterator<Item = &'a SubmitSeq>) {
        for other in others {
            self.successors.entry(*other).or_default().insert(seq);
        }
    }

    fn finish(&mut self, seq: SubmitSeq, after: &State) {
        let job = self.jobs.remove(&seq).expect("a job finishes once");
        if !job.failed {
            self.let_go(seq, after);
        }
    }

    /// Nothing waits for a job that finished well.
    fn let_go(&mut self, seq: SubmitSeq, after: &State) {
        let waits = |other: &&job::Job| other.waits_for.contains(&seq) || other.array_waits_for.contains(&seq);
        let known = self.successors.remove(&seq).unwrap_or_default();
        let mut known = known.iter().filter_map(|other| after.jobs.get(other));
        let is_small = self.every < LARGE;
        let waiting = if is_small {
            after.jobs.values().find(waits)
        } else {
            known.find(waits)
        };
        let waiting = waiting.map(|job| job.seq);
        assert!(
            waiting.is_none(),
            "{seq:?} finished well, and {waiting:?} still waits for it"
        );
    }

    fn end(&mut self, key: TaskKey, then: &TaskFate, after: &State) {
        let job = self.jobs.get_mut(&key.seq).expect("the job of a task is there");
        assert_eq!(
            job.placed.remove(&key.task),
            Some(key.attempt),
            "{key} ended and is not the present attempt"
        );
        match then {
            TaskFate::Done => drop(job.holds.remove(&key.task)),
            TaskFate::Error { .. } => drop(job.errors.insert(key.task)),
            TaskFate::Requeued => {}
        }
        if self.books.is_alone(key) {
            self.quotas.end(&after.config, self.books.task(key));
        }
        self.books.end(key, after);
    }

    fn hold(&mut self, seq: SubmitSeq, tasks: &[TaskRange], change: HoldChange) {
        let job = self.jobs.get_mut(&seq).expect("a held job is there");
        let HoldChange { set, release } = change;
        for (_, holds) in job
            .holds
            .iter_mut()
            .filter(|(task, _)| tasks.iter().any(|range| range.contains(**task)))
        {
            holds.user = (holds.user || set.user) && !release.user;
            holds.operator = (holds.operator || set.operator) && !release.operator;
            holds.system = (holds.system || set.system) && !release.system;
        }
    }

    /// The job of an event has exactly the tasks that it should have, each where it should be.
    fn compare_job(&self, record: &Record, after: &State) {
        let seq = match &record.event {
            Event::JobSubmitted { seq, .. } | Event::TasksDeleted { seq, .. } | Event::HoldsChanged { seq, .. } => seq,
            Event::ErrorCleared { seq, .. } | Event::JobAltered { seq, .. } => seq,
            Event::TaskPlaced { key, .. } | Event::TaskEnded { key, .. } | Event::TaskStarted { key, .. } => &key.seq,
            _ => return,
        };
        let (ours, theirs) = (&self.jobs[seq], &after.jobs[seq]);
        let count = theirs.untouched.len() as usize + theirs.tasks.len();
        assert_eq!(
            count,
            ours.holds.len(),
            "job {} has lost or invented tasks",
            theirs.number
        );
        for (task, holds) in &ours.holds {
            assert!(theirs.has_task(*task), "{} is lost", theirs.task_name(*task));
            assert_eq!(theirs.holds(*task), *holds, "the holds of {}", theirs.task_name(*task));
        }
        let placed = theirs
            .placements()
            .map(|(task, placement)| (task, placement.key.attempt));
        assert!(
            placed.eq(ours.placed.iter().map(|(task, attempt)| (*task, *attempt))),
            "job {} runs elsewhere",
            theirs.number
        );
        assert_eq!(
            theirs.active as usize,
            ours.placed.len(),
            "the active tasks of job {}",
            theirs.number
        );
    }

    fn may_be_placed(&self, key: TaskKey, granted: &[GrantedSlots], pe: Option<&PeName>, before: &State, now: Now) {
        let job = self
            .jobs
            .get(&key.seq)
            .unwrap_or_else(|| panic!("{key} was placed, and its job is not there"));
        self.may_start(key, job, before, now);
        has_right_shape(key, &job.spec, granted, pe, &before.config);
        let given = TaskSlots::new(&before.config, granted, pe);
        for part in granted {
            may_use(key, part, pe, before);
            suits_slots(key, &job.spec, part, &given.whose(&part.instance), &before.config);
        }
        let within = self.books.reservation_of(&job.spec);
        let takes = Books::would_take(&before.config, &job.spec.requests, granted, pe);
        if let Some(id) = within {
            return self.fits_within(key, id, &takes, before);
        }
        assert!(
            job.spec.reservation.is_none(),
            "{key} was placed, and its reservation does not run"
        );
        if let Some(conf) = pe.and_then(|pe| before.config.pes.get(pe)) {
            let slots: u32 = granted.iter().map(|part| part.slots).sum();
            let taken = self.books.in_pe(&conf.name) + slots;
            assert!(
                taken <= conf.slots,
                "{key} makes {taken} of {} slots of {}",
                conf.slots,
                conf.name
            );
        }
        self.quotas
            .judge(key, job.spec.owner.user.as_str(), pe, &takes, &before.config);
        for (place, amount) in takes {
            let Some(capacity) = capacity(&before.config, &place) else {
                continue;
            };
            let taken = self.books.sum(&place) + amount;
            assert!(
                taken <= capacity,
                "{key} makes {taken} of {capacity} {} at {}",
                place.1,
                place.0
            );
        }
    }

    /// A task of a reservation takes what that keeps and nothing else. No quota counts it.
    fn fits_within(&self, key: TaskKey, id: ReservationId, takes: &BTreeMap<LevelAttribute, i64>, before: &State) {
        for (place, amount) in takes {
            if capacity(&before.config, place).is_some() {
                let (kept, taken) = self.books.within(id, place);
                let taken = taken + amount;
                assert!(
                    taken <= kept,
                    "{key} makes {taken} of {kept} {} at {} that {id} keeps",
                    place.1,
                    place.0
                );
            }
        }
    }

    /// What a reservation is given is there at that time, as far as other reservations have it.
    fn may_be_granted(&self, event: &Event, before: &State) {
        let Event::ReservationGranted {
            id,
            spec,
            start,
            end,
            granted,
            pe,
        } = event
        else {
            return;
        };
        for (place, amount) in Books::would_take(&before.config, &spec.requests, granted, pe.as_ref()) {
            let Some(capacity) = capacity(&before.config, &place) else {
                continue;
            };
            let taken = self.books.kept(&place, *start, *end) + amount;
            assert!(
                taken <= capacity,
                "{id} makes {taken} of {capacity} {} at {}",
                place.1,
                place.0
            );
        }
    }

    /// A reservation begins or is over.
    fn reserve(&mut self, event: &Event, after: &State) {
        match event {
            Event::ReservationGranted { id, granted, .. } => {
                self.reserved.insert(*id, granted.iter().map(|part| part.slots).sum());
                self.books.grant(*id, after);
            }
            Event::ReservationChanged {
                id,
                state: ReservationState::Running,
            } => self.books.begin(*id, after),
            Event::ReservationChanged { id, .. } | Event::ReservationEnded { id } => {
                let slots = self.reserved.remove(id).unwrap_or(0);
                for task in self.books.over(*id, slots, after) {
                    self.quotas.place(&after.config, &task);
                }
            }
            _ => {}
        }
    }

    fn may_start(&self, key: TaskKey, job: &Job, before: &State, now: Now) {
        let holds = job
            .holds
            .get(&key.task)
            .unwrap_or_else(|| panic!("{key} was placed, and its task has left"));
        assert!(!holds.any(), "{key} was placed while it is held");
        assert!(
            !job.placed.contains_key(&key.task),
            "{key} was placed beside another attempt"
        );
        assert!(!job.errors.contains(&key.task), "{key} was placed while it is in error");
        assert!(
            job.spec.start_after.is_none_or(|at| at <= now.wall),
            "{key} was placed before its time"
        );
        let is_over = job.again.get(&key.task).is_none_or(|end| *end <= now.tick);
        assert!(is_over, "{key} was placed right after it ended with 99");
        let limit = job.spec.task_concurrency.filter(|limit| *limit > 0).unwrap_or(u32::MAX) as usize;
        assert!(job.placed.len() < limit, "{key} is one task too many for -tc");
        let instances = before.config.settings.max_aj_instances as usize;
        let is_too_many = job.spec.array.is_some() && instances > 0 && job.placed.len() >= instances;
        assert!(!is_too_many, "{key} is one task too many for max_aj_instances");
        let waited = job.waits_for.iter().find(|other| self.jobs.contains_key(other));
        assert!(
            waited.is_none(),
            "{key} was placed while {waited:?}, for which it waits, has not finished"
        );
        let is_there = |other: &&SubmitSeq| {
            self.jobs
                .get(other)
                .is_some_and(|other| other.holds.contains_key(&key.task))
        };
        let waited = job.array_waits_for.iter().find(is_there);
        assert!(
            waited.is_none(),
            "{key} was placed while its task of {waited:?} has not finished"
        );
    }
}

/// The number of slots and what the parallel environment says about them.
fn has_right_shape(
    key: TaskKey,
    spec: &JobSpec,
    granted: &[GrantedSlots],
    pe: Option<&PeName>,
    config: &Configuration,
) {
    let slots: u32 = granted.iter().map(|part| part.slots).sum();
    let instances: BTreeSet<_> = granted.iter().map(|part| &part.instance).collect();
    // A master that is no task, and asks for something else than the tasks do, may be where none
    // is.
    let Requests {
        master,
        slaves,
        slave_queues,
        ..
    } = &*spec.requests;
    let is_apart = !master.is_empty() || !slaves.is_empty() || !slave_queues.is_empty();
    let is_task = pe
        .and_then(|pe| config.pes.get(pe))
        .is_none_or(|pe| pe.job_is_first_task.0);
    let may_be_empty = |index: usize| index == 0 && is_apart && !is_task;
    let has_slots = |(index, part): (usize, &GrantedSlots)| part.slots > 0 || may_be_empty(index);
    assert!(
        !granted.is_empty() && granted.iter().enumerate().all(has_slots),
        "{key} was placed on no slots"
    );
    assert_eq!(instances.len(), granted.len(), "{key} names an instance twice");
    match (&spec.requests.pe, pe) {
        (None, None) => assert_eq!(slots, 1, "{key} has one slot"),
        (Some(wanted), Some(pe)) => {
            assert_eq!(wanted.name, pe.as_str(), "{key} has the environment that it asked for");
            assert!(wanted.slots.contains(slots), "{key} got {slots} slots");
            let of_pe = config
                .pes
                .get(pe)
                .unwrap_or_else(|| panic!("{key} runs in {pe}, which is not there"));
            let rule = spec.requests.allocation_rule.unwrap_or(of_pe.allocation_rule);
            let hosts: BTreeSet<_> = granted.iter().map(|part| &part.instance.host).collect();
            assert!(
                rule != AllocationRule::PeSlots || hosts.len() == 1,
                "{key} is spread over hosts"
            );
        }
        (wanted, got) => panic!("{key} asked for {wanted:?} and got {got:?}"),
    }
}

/// What a queue instance says.
fn may_use(key: TaskKey, part: &GrantedSlots, pe: Option<&PeName>, before: &State) {
    let (instance, config) = (&part.instance, &before.config);
    let settings = config
        .resolved
        .get(instance)
        .unwrap_or_else(|| panic!("{key} runs in {instance}, which is not there"));
    let state = before.instances.get(instance).cloned().unwrap_or_default();
    assert!(
        !state.disabled && !state.suspended && state.errors.is_empty() && !state.subordinate && !state.preempted,
        "{key} runs in {instance}, which is {state:?}"
    );
    assert_eq!(
        state.calendar,
        CalendarState::On,
        "{key} runs in {instance}, which its calendar has closed"
    );
    assert!(
        !config.ambiguous.contains_key(instance),
        "{key} runs in {instance}, whose configuration is ambiguous"
    );
    let in_list = |pe: &PeName| settings.pe_list.to_string().split(' ').any(|name| name == pe.as_str());
    assert!(
        pe.is_none_or(in_list),
        "{key} runs in {instance}, which does not offer {pe:?}"
    );
}

/// What the job asks for of a queue instance: for all its slots, for the master's and for those of
/// its slaves.
fn suits_slots(key: TaskKey, spec: &JobSpec, part: &GrantedSlots, slots: &BTreeSet<SlotRole>, config: &Configuration) {
    let (instance, asked) = (&part.instance, &spec.requests);
    let meant = |wanted: &String| *wanted == instance.queue.as_str() || *wanted == instance.to_string();
    let has = |attribute: &str| {
        levels(instance)
            .iter()
            .any(|level| value(config, level, attribute).is_some())
    };
    // What is charged once for a job need not be where its slaves are.
    let is_needed = |attribute: &str| {
        let known = config.complex.lookup(attribute);
        slots.contains(&SlotRole::Master) || known.is_some_and(|known| known.consumable != Consumable::Job)
    };
    // Beside queues of the master, those of the job are not about it.
    let is_of_master = !asked.master_queues.is_empty() && !slots.contains(&SlotRole::Slave);
    let of_all = if is_of_master { &Vec::new() } else { &asked.hard_queues };
    for (whose, is_here, queues, resources) in [
        ("its slots", true, of_all, &asked.hard),
        (
            "its master",
            slots.contains(&SlotRole::Master),
            &asked.master_queues,
            &asked.master,
        ),
        (
            "its slaves",
            slots.contains(&SlotRole::Slave),
            &asked.slave_queues,
            &asked.slaves,
        ),
    ] {
        if !is_here {
            continue;
        }
        let is_meant = queues.is_empty() || queues.iter().any(meant);
        assert!(
            is_meant,
            "{key} runs in {instance} and asked for {queues:?} for {whose}"
        );
        for request in resources
            .iter()
            .filter(|request| request.name == "gpu" && is_needed("gpu"))
        {
            assert!(
                has("gpu"),
                "{key} asked for {request} for {whose} and runs in {instance}, which has none"
            );
        }
    }
}

fn levels(instance: &proto::id::QueueInstanceName) -> [Level; 3] {
    [
        Level::Global,
        Level::Host(instance.host.clone()),
        Level::Instance(instance.clone()),
    ]
}

fn value<'a>(config: &'a Configuration, level: &Level, attribute: &str) -> Option<&'a str> {
    match level {
        Level::Global => config.exec_hosts.get("global")?.complex_values.value(attribute),
        Level::Host(host) => config.exec_hosts.get(host)?.complex_values.value(attribute),
        Level::Instance(instance) => config.resolved.get(instance)?.complex_values.value(attribute),
    }
}

/// How much there is of a consumable at a level; none if nothing limits it there.
fn capacity(config: &Configuration, (level, attribute): &LevelAttribute) -> Option<i64> {
    if let (Level::Instance(instance), "slots") = (level, attribute.as_str()) {
        return Some(i64::from(
            config.resolved.get(instance).map_or(0, |settings| settings.slots),
        ));
    }
    let kind = config.complex.lookup(attribute.as_str())?.r#type;
    Amount::parse(value(config, level, attribute.as_str())?, kind)
        .expect("a capacity reads")
        .finite()
}
