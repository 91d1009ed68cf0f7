//! The fold of events: what each makes of the state, and nothing else.
//!
//! Applying decides nothing and asks nothing: what an event says is true. An event that cannot be
//! true of the state it meets is a bug, and an assertion stops it before it is durable
//! (ARCHITECTURE.md "One input").

mod jobs;
mod slaves;
mod tasks;

use super::decay::Decay;
use super::{ANSWERS_KEPT, State};
use crate::config::DerivedChanges;
use crate::event::{Event, InstanceState, JoinGrant, Record, StoredObject};
use crate::ledger::Grant;
use proto::id::{EventSeq, HostName, QueueInstanceName, RequestId, TaskKey};
use proto::object::ObjectKind;
use proto::time::Wall;
use proto::wire::agent::TasksMark;
use proto::wire::client::Reply;
use std::sync::Arc;

impl State {
    /// Makes one record true. Returns what changed objects led to; nothing for other events.
    ///
    /// # Panics
    /// If it is not the next record, or cannot be true of this state: a bug, and the state must not
    /// be used any more.
    pub fn apply(&mut self, record: &Record) -> DerivedChanges {
        assert_eq!(
            record.seq,
            EventSeq(self.last.0 + 1),
            "events are applied in order and without gaps"
        );
        self.last = record.seq;
        self.now = record.now;
        if let Event::ObjectsChanged(objects) = &record.event {
            return self.store(objects);
        }
        self.apply_event(&record.event);
        if let Event::TaskDeletionRequested { key } = record.event {
            self.placement_mut(key).deleted_by = Some(record.actor.to_string().into());
        }
        DerivedChanges::default()
    }

    fn apply_event(&mut self, event: &Event) {
        match event {
            Event::CellCreated { cell, version } => {
                assert_eq!(self.last, EventSeq(1), "a cell is created by its first event");
                (self.cell, self.version) = (*cell, *version);
            }
            Event::CellVersionRaised { version } => {
                assert!(*version > self.version, "the version of a cell is only raised");
                self.version = *version;
            }
            Event::EpochRaised { epoch } => {
                assert!(*epoch > self.epoch, "an epoch is only raised");
                self.epoch = *epoch;
            }
            Event::WallJumped { expected: _ } => {}
            Event::JobSubmitted { .. }
            | Event::JobAltered { .. }
            | Event::HoldsChanged { .. }
            | Event::TasksDeleted { .. }
            | Event::ErrorCleared { .. }
            | Event::JobFinished { .. } => self.apply_to_job(event),
            Event::TaskPlaced { .. }
            | Event::TaskStarted { .. }
            | Event::TaskEnded { .. }
            | Event::TaskUnconfirmed { .. }
            | Event::TaskConfirmedGone { .. }
            | Event::TaskDeletionRequested { .. }
            | Event::TaskRescheduleRequested { .. }
            | Event::TaskMigrationRequested { .. }
            | Event::TaskSuspended { .. }
            | Event::TaskThresholdSuspended { .. }
            | Event::TaskPreempted { .. }
            | Event::TaskRebooked { .. } => self.apply_to_task(event),
            Event::SlavePlaced { .. } | Event::SlaveStarted { .. } | Event::SlaveEnded { .. } => {
                self.apply_to_slave(event);
            }
            Event::UsageCharged { tasks } => self.charge(tasks),
            Event::UsageCleared { users } => self.clear_usage(users),
            Event::InstanceChanged { instance, state } => self.set_instance(instance, state),
            Event::NumbersContinued { job, reservation } => {
                self.last_number = job.unwrap_or(self.last_number);
                self.last_reservation = reservation.unwrap_or(self.last_reservation);
            }
            Event::ReservationGranted { .. } | Event::ReservationChanged { .. } | Event::ReservationEnded { .. } => {
                self.apply_to_reservation(event);
            }
            Event::ObjectsChanged(_) => unreachable!("what objects touch is told, so they are stored before"),
            Event::CertificateIssued {
                host,
                serial,
                not_after,
            } => self.admit(host, serial, *not_after),
            Event::HostRevoked { host } => self.revoke(host),
            Event::HostTasksBound { host, mark } => self.bind_tasks(host, mark.as_ref()),
            Event::TokenCreated(grant) => {
                self.tokens.insert(grant.hash.clone(), grant.clone());
            }
            Event::TokenRevoked { hash } => drop(self.tokens.remove(hash)),
            Event::TokenUsed { hash, host: _ } => self.use_token(hash),
            Event::RequestAnswered { id, reply } => self.answer(*id, reply),
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "`apply_event` sorts the events")]
    fn apply_to_reservation(&mut self, event: &Event) {
        match event {
            Event::ReservationGranted {
                id,
                spec,
                start,
                end,
                granted,
                pe,
            } => self.grant(*id, spec, (*start, *end), granted, pe.as_ref()),
            Event::ReservationChanged { id, state } => self.change_reservation(*id, *state),
            Event::ReservationEnded { id } => self.end_reservation(*id),
            other => unreachable!("{other:?} is not about a reservation"),
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "`apply_event` sorts the events")]
    fn apply_to_job(&mut self, event: &Event) {
        match event {
            Event::JobSubmitted {
                seq,
                number,
                spec,
                waits_for,
                array_waits_for,
            } => {
                self.add_job(*seq, *number, spec, (waits_for, array_waits_for));
            }
            Event::JobAltered {
                seq,
                spec,
                waits_for,
                array_waits_for,
            } => {
                self.alter_job(*seq, spec, (waits_for, array_waits_for));
            }
            Event::HoldsChanged { seq, tasks, change } => self.change_holds(*seq, tasks, *change),
            Event::TasksDeleted { seq, tasks } => self.delete_tasks(*seq, tasks),
            Event::ErrorCleared { seq, tasks } => self.clear_errors(*seq, tasks),
            Event::JobFinished { seq } => self.finish_job(*seq),
            other => unreachable!("an event that is not about a job: {other:?}"),
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "`apply_event` sorts the events")]
    fn apply_to_task(&mut self, event: &Event) {
        match event {
            Event::TaskPlaced {
                key,
                granted,
                pe,
                maps,
                binding,
            } => {
                self.place_task(
                    *key,
                    Grant {
                        slots: granted,
                        pe: pe.as_ref(),
                        maps,
                        binding,
                    },
                );
            }
            Event::TaskStarted { key, at } => self.start_task(*key, *at),
            Event::TaskEnded {
                key,
                record,
                then,
                saved_pid,
                charged,
            } => {
                self.charge_task(*key, record.as_deref(), *charged);
                self.end_task(*key, record.as_deref(), then, *saved_pid);
            }
            Event::TaskUnconfirmed { key, host } => {
                self.unconfirmed.entry(host.clone()).or_default().insert(*key);
            }
            Event::TaskConfirmedGone { key, host } => self.forget_unconfirmed(host, |known| known == key),
            Event::TaskDeletionRequested { key } => self.placement_mut(*key).deleting = true,
            Event::TaskRescheduleRequested { key } => self.placement_mut(*key).rescheduling = true,
            Event::TaskMigrationRequested { key } => self.placement_mut(*key).migrating = true,
            Event::TaskSuspended { key, suspended } => self.suspend_task(*key, *suspended),
            Event::TaskThresholdSuspended { key, suspended } => self.suspend_task_by_threshold(*key, *suspended),
            Event::TaskPreempted { key, suspended } => self.preempt_task(*key, *suspended),
            Event::TaskRebooked { key } => self.rebook_task(*key),
            other => unreachable!("an event that is not about a task: {other:?}"),
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "`apply_event` sorts the events")]
    fn apply_to_slave(&mut self, event: &Event) {
        match event {
            Event::SlavePlaced {
                key,
                instance,
                from,
                spec,
            } => self.place_slave(*key, instance, from, spec),
            Event::SlaveStarted { key, at } => self.start_slave(*key, *at),
            Event::SlaveEnded {
                key,
                record,
                exit_status,
                reason: _,
                usage,
                rusage,
                charged,
            } => {
                self.charge_end(*key, charged.unwrap_or((*usage).into()));
                self.end_slave(*key, record.as_deref(), *exit_status, (*usage, *rusage));
            }
            other => unreachable!("an event that is not about a slave task: {other:?}"),
        }
    }

    /// Only instances that differ from the default are kept.
    fn set_instance(&mut self, instance: &QueueInstanceName, state: &InstanceState) {
        if state.stops_tasks() {
            for key in self.tasks_in(instance) {
                self.placement_mut(key).was_suspended = true;
            }
        }
        if *state == InstanceState::default() {
            self.instances.remove(instance);
        } else {
            self.instances.insert(instance.clone(), state.clone());
        }
    }

    fn store(&mut self, objects: &[StoredObject]) -> DerivedChanges {
        let decay = Decay::from_conf(&self.config.scheduler);
        let touched = self.config.store(objects);
        if decay != Decay::from_conf(&self.config.scheduler) {
            self.usage.settle(&decay, self.now.tick);
        }
        if objects.iter().any(|object| object.kind == ObjectKind::ComplexTable) {
            self.renew_requests();
            self.index.commons.recharge(&self.config.complex);
            self.rebook();
        }
        self.recount_quotas(objects, &touched);
        self.ledger.keep_takers(&self.config.shared.names);
        let kept: Vec<QueueInstanceName> = self.instances.keys().cloned().collect();
        self.forget_instances(kept.iter());
        touched
    }

    /// Counts for the quotas anew what changed objects may have moved to another rule.
    fn recount_quotas(&mut self, objects: &[StoredObject], touched: &DerivedChanges) {
        let changed = |kinds: &[ObjectKind]| objects.iter().any(|object| kinds.contains(&object.kind));
        if changed(&[ObjectKind::ResourceQuota, ObjectKind::ComplexTable, ObjectKind::UserSet]) {
            self.ledger.recount(&self.config);
        } else if changed(&[ObjectKind::HostGroup]) && self.config.enabled_quotas().next().is_some() {
            for host in &touched.hosts {
                self.ledger.recount_tasks(&self.config, self.index.on_host(host));
            }
        }
    }

    /// Drops the states of instances that are neither configured nor used: an orphan keeps its own
    /// until its tasks have ended.
    fn forget_instances<'a>(&mut self, instances: impl Iterator<Item = &'a QueueInstanceName>) {
        for instance in instances {
            if !self.config.resolved.contains_key(instance) && self.tasks_in(instance).is_empty() {
                self.instances.remove(instance);
            }
        }
    }

    /// Drops attempts of a host that were given up; a host without any is not kept.
    pub(super) fn forget_unconfirmed(&mut self, host: &HostName, is_gone: impl Fn(&TaskKey) -> bool) {
        let Some(keys) = self.unconfirmed.get_mut(host) else {
            return;
        };
        keys.retain(|key| !is_gone(key));
        if keys.is_empty() {
            self.unconfirmed.remove(host);
        }
    }

    fn admit(&mut self, host: &HostName, serial: &str, not_after: Wall) {
        self.certificates
            .entry(host.clone())
            .or_default()
            .insert(serial.to_owned(), not_after);
    }

    fn revoke(&mut self, host: &HostName) {
        self.certificates.remove(host);
        self.task_marks.remove(host);
    }

    fn bind_tasks(&mut self, host: &HostName, mark: Option<&TasksMark>) {
        match mark {
            Some(mark) => self.task_marks.insert(host.clone(), mark.clone()),
            None => self.task_marks.remove(host),
        };
    }

    fn use_token(&mut self, hash: &str) {
        let grant: &mut JoinGrant = self.tokens.get_mut(hash).expect("only a known token is used");
        grant.uses_left = grant.uses_left.checked_sub(1).expect("a used-up token is refused");
        if grant.uses_left == 0 {
            self.tokens.remove(hash);
        }
    }

    fn answer(&mut self, id: RequestId, reply: &Arc<Reply>) {
        assert!(self.index.answer(id).is_none(), "a request is answered once");
        self.answers.push_back((id, reply.clone()));
        self.index.add_answer(id, reply.clone());
        if self.answers.len() > ANSWERS_KEPT
            && let Some((oldest, _)) = self.answers.pop_front()
        {
            self.index.remove_answer(oldest);
        }
    }
}
