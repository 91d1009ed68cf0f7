//! The event stream as others see it: what of the log, the state and the observations is public, in
//! the shape of [`proto::wire::stream`] (master/EVENTS.md). Stored records are not shown
//! themselves, so that they may change.

use crate::collections::ranges::TaskRanges;
use crate::config::Configuration;
use crate::event::{self, Actor, Event, InstanceState, Record, StoredObject};
use crate::observe::{Observation, Observations};
use crate::state::State;
use crate::state::job::{Job, Placement, Task};
use proto::id::{AttributeName, EventSeq, HostName, JobNumber, QueueInstanceName, TaskId, TaskKey};
use proto::job::{GrantedSlots, Holds, JobSpec, Program};
use proto::object::{Form, ObjectKind};
use proto::request::TaskRange;
use proto::time::Wall;
use proto::wire::stream::{Change, Item, JobFacts, ObjectState, Source, SuspendCause, TaskFate};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Objects in one element of the full state.
const OBJECTS_AT_ONCE: usize = 500;

/// An event as others see it, with the number of the job that it is about.
pub fn item(record: &Record, job: Option<JobNumber>) -> Item {
    let Record {
        seq,
        now,
        actor,
        request: _,
        event,
    } = record;
    Item {
        seq: *seq,
        time: now.wall,
        source: Source::Event,
        by: by(actor),
        job,
        change: change(event),
    }
}

/// The number of the job that an event is about, before the event is applied: afterwards the job
/// may be gone.
pub fn job_number(state: &State, event: &Event) -> Option<JobNumber> {
    if let Event::JobSubmitted { number, .. } = event {
        return Some(*number);
    }
    state.jobs.get(&event.subject().job()?).map(|job| job.number)
}

/// What is no event, after that event.
pub fn soft(change: Change, after: EventSeq, time: Wall) -> Item {
    Item {
        seq: after,
        time,
        source: Source::Soft,
        by: "master".to_owned(),
        job: None,
        change,
    }
}

/// Everything that the log has led to, as changes that lead to it from nothing.
pub fn full(state: &State) -> impl Iterator<Item = Item> + '_ {
    let plain = |change: Change| (None, change);
    let objects = ObjectKind::ALL.iter().flat_map(|kind| objects_of(&state.config, *kind));
    let instances = state
        .instances
        .iter()
        .map(|(instance, condition)| instance_changed(instance, condition));
    let of_job = |job: &Job| {
        job_changes(job)
            .into_iter()
            .map(|change| (Some(job.number), change))
            .collect::<Vec<_>>()
    };
    let jobs = state.jobs.values().flat_map(of_job);
    objects
        .chain(instances)
        .map(plain)
        .chain(jobs)
        .map(|(job, change)| Item {
            seq: state.last,
            time: state.now.wall,
            source: Source::State,
            by: "master".to_owned(),
            job,
            change,
        })
}

/// Every soft fact that is told.
pub fn soft_facts(state: &State, observations: &Observations) -> Vec<Change> {
    let hosts: BTreeSet<&HostName> = state.config.resolved.keys().map(|instance| &instance.host).collect();
    let mut facts: Vec<Change> = hosts.into_iter().map(|host| instances(&state.config, host)).collect();
    facts.extend(observations.hosts.iter().map(|(host, known)| Change::Contact {
        host: host.clone(),
        connected: known.is_ready(),
    }));
    let mut by_reporter: BTreeMap<HostName, BTreeMap<HostName, BTreeMap<AttributeName, String>>> = BTreeMap::new();
    for (subject, values) in observations.load.iter() {
        for (name, entry) in values.iter() {
            let of_host = by_reporter.entry(entry.reporter.clone()).or_default();
            of_host
                .entry(subject.clone())
                .or_default()
                .insert(name.clone(), entry.text.clone());
        }
    }
    let load = |(host, values)| Change::Load {
        host,
        full: true,
        values,
        withdrawn: BTreeMap::new(),
    };
    facts.extend(by_reporter.into_iter().map(load));
    facts
}

/// An observation, if it is one that is told. `observations` have it already: a host that connects
/// again may still be left alone because of a start that it refused.
pub fn observed(observations: &Observations, observation: &Observation) -> Option<Change> {
    match observation {
        Observation::Load { host, at: _, report } => Some(Change::Load {
            host: host.clone(),
            full: report.full,
            values: report.values.clone(),
            withdrawn: report.withdrawn.clone(),
        }),
        Observation::Contact { host, .. } | Observation::Unfit { host, .. } => Some(Change::Contact {
            host: host.clone(),
            connected: observations.is_ready(host),
        }),
        // Its values count no longer.
        Observation::Unheard { host } => Some(Change::Load {
            host: host.clone(),
            full: true,
            values: BTreeMap::new(),
            withdrawn: BTreeMap::new(),
        }),
        Observation::Usage(_) | Observation::Sensors { .. } | Observation::LoadRefused { .. } => None,
    }
}

/// The queue instances of a host.
pub fn instances(config: &Configuration, host: &HostName) -> Change {
    let name = |queue: &proto::id::QueueName| QueueInstanceName {
        queue: queue.clone(),
        host: host.clone(),
    };
    let resolved = |instance| {
        let slots = config.resolved.get(&instance)?.slots;
        Some(GrantedSlots { instance, slots })
    };
    Change::Instances {
        host: host.clone(),
        instances: config.queues.keys().map(name).filter_map(resolved).collect(),
    }
}

/// Who caused an event, as other programs see it.
pub fn by(actor: &Actor) -> String {
    actor.to_string()
}

fn change(event: &Event) -> Change {
    match event {
        Event::JobSubmitted { .. }
        | Event::JobAltered { .. }
        | Event::HoldsChanged { .. }
        | Event::TasksDeleted { .. }
        | Event::ErrorCleared { .. }
        | Event::JobFinished { .. } => job_change(event),
        Event::TaskPlaced { .. }
        | Event::TaskStarted { .. }
        | Event::TaskEnded { .. }
        | Event::TaskDeletionRequested { .. }
        | Event::TaskRescheduleRequested { .. }
        | Event::TaskMigrationRequested { .. }
        | Event::TaskSuspended { .. }
        | Event::TaskThresholdSuspended { .. }
        | Event::TaskPreempted { .. } => task_change(event),
        Event::InstanceChanged { instance, state } => instance_changed(instance, state),
        Event::ObjectsChanged(objects) => Change::ObjectsChanged {
            objects: objects.iter().map(object).collect(),
        },
        Event::CellCreated { .. } => other("cell-created"),
        Event::CellVersionRaised { .. } => other("cell-version-raised"),
        Event::EpochRaised { .. } => other("epoch-raised"),
        Event::WallJumped { .. } => other("wall-jumped"),
        Event::TaskRebooked { .. } => other("task-rebooked"),
        Event::SlavePlaced { .. } => other("slave-placed"),
        Event::SlaveStarted { .. } => other("slave-started"),
        Event::SlaveEnded { .. } => other("slave-ended"),
        Event::UsageCharged { .. } => other("usage-charged"),
        Event::UsageCleared { .. } => other("usage-cleared"),
        Event::TaskUnconfirmed { .. } => other("task-unconfirmed"),
        Event::TaskConfirmedGone { .. } => other("task-confirmed-gone"),
        Event::NumbersContinued { .. } => other("numbers-continued"),
        Event::ReservationGranted { .. } => other("reservation-granted"),
        Event::ReservationChanged { .. } => other("reservation-changed"),
        Event::ReservationEnded { .. } => other("reservation-ended"),
        Event::CertificateIssued { .. } => other("certificate-issued"),
        Event::HostRevoked { .. } => other("host-revoked"),
        Event::HostTasksBound { .. } => other("host-tasks-bound"),
        Event::TokenCreated(_) => other("token-created"),
        Event::TokenRevoked { .. } => other("token-revoked"),
        Event::TokenUsed { .. } => other("token-used"),
        Event::RequestAnswered { .. } => other("request-answered"),
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the caller sorts the events")]
fn job_change(event: &Event) -> Change {
    match event {
        Event::JobSubmitted {
            seq,
            number,
            spec,
            waits_for,
            array_waits_for,
        } => {
            let (tasks, spec) = (TaskRanges::all(spec.array).ranges(), without_script(spec));
            let (waits_for, array_waits_for) = (waits_for.clone(), array_waits_for.clone());
            let job = JobFacts {
                seq: *seq,
                number: *number,
                spec,
                tasks,
                waits_for,
                array_waits_for,
            };
            Change::JobAdded { job: Box::new(job) }
        }
        Event::JobAltered {
            seq,
            spec,
            waits_for,
            array_waits_for,
        } => Change::JobChanged {
            job: *seq,
            spec: without_script(spec),
            waits_for: waits_for.clone(),
            array_waits_for: array_waits_for.clone(),
        },
        Event::HoldsChanged { seq, tasks, change } => Change::HoldsChanged {
            job: *seq,
            tasks: tasks.clone(),
            set: change.set,
            release: change.release,
        },
        Event::TasksDeleted { seq, tasks } => Change::TasksDeleted {
            job: *seq,
            tasks: tasks.clone(),
        },
        Event::ErrorCleared { seq, tasks } => Change::ErrorCleared {
            job: *seq,
            tasks: tasks.clone(),
        },
        Event::JobFinished { seq } => Change::JobFinished { job: *seq },
        other => unreachable!("an event that is not about a job: {other:?}"),
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the caller sorts the events")]
fn task_change(event: &Event) -> Change {
    match event {
        Event::TaskPlaced {
            key,
            granted,
            pe,
            maps: _,
            binding: _,
        } => Change::TaskPlaced {
            task: *key,
            granted: granted.clone(),
            pe: pe.clone(),
        },
        Event::TaskStarted { key, at: _ } => Change::TaskStarted { task: *key },
        Event::TaskEnded {
            key,
            record,
            then,
            saved_pid: _,
            charged: _,
        } => Change::TaskEnded {
            task: *key,
            then: becomes(then),
            record: record.clone(),
        },
        Event::TaskDeletionRequested { key } => Change::TaskEnding {
            task: *key,
            again: false,
        },
        Event::TaskRescheduleRequested { key } | Event::TaskMigrationRequested { key } => Change::TaskEnding {
            task: *key,
            again: true,
        },
        Event::TaskSuspended { key, suspended } => stopped(*key, SuspendCause::Hand, *suspended),
        Event::TaskThresholdSuspended { key, suspended } => stopped(*key, SuspendCause::Threshold, *suspended),
        Event::TaskPreempted { key, suspended } => stopped(*key, SuspendCause::Preemption, *suspended),
        other => unreachable!("an event that is not about a task: {other:?}"),
    }
}

fn stopped(task: TaskKey, cause: SuspendCause, suspended: bool) -> Change {
    Change::TaskSuspended { task, cause, suspended }
}

fn becomes(then: &event::TaskFate) -> TaskFate {
    match then {
        event::TaskFate::Done => TaskFate::Done,
        event::TaskFate::Requeued => TaskFate::Pending,
        event::TaskFate::Error { reason } => TaskFate::Error { reason: reason.clone() },
    }
}

fn other(what: &str) -> Change {
    Change::Other { what: what.to_owned() }
}

/// A specification without the content of its script, which may be long and is nobody's business
/// but the job's.
fn without_script(spec: &Arc<JobSpec>) -> Arc<JobSpec> {
    let path = match &spec.program {
        Program::Script { path, content } if !content.is_empty() => path,
        Program::Stored { path, .. } => path,
        Program::Script { .. } | Program::Command { .. } => return spec.clone(),
    };
    let program = Program::Script {
        path: path.clone(),
        content: Arc::new([]),
    };
    Arc::new(JobSpec {
        program,
        ..(**spec).clone()
    })
}

fn instance_changed(instance: &QueueInstanceName, state: &InstanceState) -> Change {
    let InstanceState {
        disabled,
        suspended,
        errors,
        calendar,
        subordinate,
        preempted,
    } = state.clone();
    Change::InstanceChanged {
        instance: instance.clone(),
        disabled,
        suspended,
        errors,
        calendar,
        subordinate,
        preempted,
    }
}

fn object(object: &StoredObject) -> ObjectState {
    let StoredObject { kind, name, fields } = object.clone();
    ObjectState { kind, name, fields }
}

fn objects_of(config: &Configuration, kind: ObjectKind) -> Vec<Change> {
    let mut names = config.object_names(kind);
    match kind.form() {
        Form::Once => names = vec![String::new()],
        // The global one stands in no list.
        Form::OfHost => names.insert(0, HostName::global().to_string()),
        Form::Named | Form::Bare => {}
    }
    let object = |name: String| {
        let fields = config.object_fields(kind, &name)?;
        Some(ObjectState {
            kind,
            name,
            fields: Some(fields),
        })
    };
    let objects: Vec<ObjectState> = names.into_iter().filter_map(object).collect();
    objects
        .chunks(OBJECTS_AT_ONCE)
        .map(|objects| Change::ObjectsChanged {
            objects: objects.to_vec(),
        })
        .collect()
}

/// What leads to a job as it is.
fn job_changes(job: &Job) -> Vec<Change> {
    let facts = JobFacts {
        seq: job.seq,
        number: job.number,
        spec: without_script(&job.spec),
        tasks: job.present().ranges(),
        waits_for: job.waits_for.iter().copied().collect(),
        array_waits_for: job.array_waits_for.iter().copied().collect(),
    };
    let mut changes = vec![Change::JobAdded { job: Box::new(facts) }];
    job.tasks
        .iter()
        .for_each(|(id, task)| changes.extend(task_changes(job, *id, task)));
    changes
}

fn task_changes(job: &Job, id: TaskId, task: &Task) -> Vec<Change> {
    let mut changes = Vec::new();
    let only = || TaskRange::new(id.0, id.0, 1).into_iter().collect::<Vec<_>>();
    if task.holds != job.spec.holds {
        let Holds { user, operator, system } = task.holds;
        let release = Holds {
            user: !user,
            operator: !operator,
            system: !system,
        };
        changes.push(Change::HoldsChanged {
            job: job.seq,
            tasks: only(),
            set: task.holds,
            release,
        });
    }
    if let Some(reason) = task.place.error() {
        changes.push(Change::TasksFailed {
            job: job.seq,
            tasks: only(),
            reason: reason.to_owned(),
        });
    }
    changes.extend(task.place.placement().into_iter().flat_map(placement_changes));
    changes
}

fn placement_changes(placement: &Placement) -> Vec<Change> {
    let task = placement.key;
    let mut changes = vec![Change::TaskPlaced {
        task,
        granted: placement.granted.clone(),
        pe: placement.pe.clone(),
    }];
    if placement.started.is_some() {
        changes.push(Change::TaskStarted { task });
    }
    let causes = [
        (placement.suspended, SuspendCause::Hand),
        (placement.suspended_by_threshold, SuspendCause::Threshold),
        (placement.preempted, SuspendCause::Preemption),
    ];
    let stopping = causes.into_iter().filter(|(is_stopped, _)| *is_stopped);
    changes.extend(stopping.map(|(_, cause)| stopped(task, cause, true)));
    if placement.deleting || placement.rescheduling || placement.migrating {
        let again = !placement.deleting;
        changes.push(Change::TaskEnding { task, again });
    }
    changes
}
