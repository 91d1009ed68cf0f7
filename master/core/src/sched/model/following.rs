//! Changes of the model that follow from records and observations.

use super::Model;
use crate::config::DerivedChanges;
use crate::event::{Event, Record, StoredObject};
use crate::ledger::Level;
use crate::observe::{Loads, Observation};
use crate::sched::model::concerned::{advance_of, job_of};
use proto::id::{HostName, QueueInstanceName, QueueName, SubmitSeq};
use proto::job::GrantedSlots;
use proto::object::ObjectKind;
use proto::time::{Now, Tick};

impl Model {
    /// Folds a record in.
    pub fn apply(&mut self, record: &Record) {
        self.disturbed();
        let ended = self.granted_of(&record.event);
        let gives_back_shared = self.gives_back_shared(&record.event);
        // A job that is finished no longer knows who waited for it.
        let mut touched = self.touched_by(&record.event);
        let changed = self.state.apply(record);
        self.time = if record.now.tick > self.time.tick {
            record.now
        } else {
            self.time
        };
        self.observations.follow(record);
        self.live.follow(&self.state, &self.observations, &record.event);
        for granted in &ended {
            self.host_changed(&granted.instance.host);
        }
        if !ended.is_empty() {
            self.gave_back(gives_back_shared);
        }
        if let Event::InstanceChanged { instance, .. } = &record.event {
            touched.extend(self.state.strict_jobs(instance));
        }
        self.follow(&record.event, record.now, &changed);
        touched.into_iter().for_each(|seq| self.refile(seq));
    }

    /// Follows an event that the state has taken in, apart from filing jobs again.
    fn follow(&mut self, event: &Event, now: Now, changed: &DerivedChanges) {
        match event {
            Event::TaskPlaced { key, granted, .. } => self.placed(*key, granted, now),
            Event::TaskEnded { key, .. } => self.ahead.over(*key),
            Event::InstanceChanged { instance, .. } => self.host_changed(&instance.host),
            Event::ObjectsChanged(objects) => self.objects_changed(objects, changed),
            Event::JobFinished { seq } => {
                self.given_up.remove(seq);
            }
            Event::ReservationGranted { .. } | Event::ReservationChanged { .. } | Event::WallJumped { .. } => {
                self.ahead.outdate_ends(&self.state);
            }
            Event::ReservationEnded { id } => {
                self.planned_within.remove(id);
                self.ahead.outdate_ends(&self.state);
            }
            Event::TaskRebooked { .. } => self.ahead.outdate_ends(&self.state),
            // What it asks for, or which hosts it avoids, is another.
            Event::JobAltered { seq, .. } => self.forget(*seq),
            Event::TaskUnconfirmed { key, .. } | Event::TaskConfirmedGone { key, .. } => self.forget(key.seq),
            Event::CellCreated { .. }
            | Event::CellVersionRaised { .. }
            | Event::EpochRaised { .. }
            | Event::JobSubmitted { .. }
            | Event::HoldsChanged { .. }
            | Event::SlavePlaced { .. }
            | Event::SlaveStarted { .. }
            | Event::SlaveEnded { .. }
            | Event::UsageCharged { .. }
            | Event::UsageCleared { .. }
            | Event::TaskStarted { .. }
            | Event::TasksDeleted { .. }
            | Event::TaskDeletionRequested { .. }
            | Event::TaskRescheduleRequested { .. }
            | Event::TaskSuspended { .. }
            | Event::TaskThresholdSuspended { .. }
            | Event::TaskMigrationRequested { .. }
            | Event::TaskPreempted { .. }
            | Event::ErrorCleared { .. }
            | Event::CertificateIssued { .. }
            | Event::HostRevoked { .. }
            | Event::HostTasksBound { .. }
            | Event::TokenCreated(_)
            | Event::TokenRevoked { .. }
            | Event::TokenUsed { .. }
            | Event::NumbersContinued { .. }
            | Event::RequestAnswered { .. } => {}
        }
    }

    /// The jobs whose tasks an event may have made ready, or no longer ready, to start.
    fn touched_by(&self, event: &Event) -> Vec<SubmitSeq> {
        let (job, advance) = (job_of(event), advance_of(event));
        let index = &self.state.index;
        let successors = job.into_iter().flat_map(|seq| index.successors(seq));
        successors
            .chain(job)
            .chain(advance.iter().flat_map(|id| index.jobs_within(*id)))
            .collect()
    }

    /// Folds an observation in.
    pub fn observe(&mut self, observation: &Observation) {
        self.disturbed();
        let settled = self.settled_by(observation);
        self.observations.apply(observation);
        match observation {
            Observation::Load { host, report, .. } => {
                self.changed(host);
                let others = report.values.keys().chain(report.withdrawn.keys()).chain(&settled);
                others
                    .filter(|subject| *subject != host)
                    .for_each(|subject| self.changed(subject));
            }
            Observation::Contact { host, .. } | Observation::Unheard { host } | Observation::Unfit { host, .. } => {
                self.host_changed(host)
            }
            Observation::Usage(usage) => {
                let keys = usage.iter().map(|(key, _)| *key).collect();
                self.live.refresh(&self.state, &self.observations, keys);
            }
            Observation::Sensors { .. } | Observation::LoadRefused { .. } => {}
        }
    }

    /// The slots that an event frees, or may, or in which it frees something.
    fn granted_of(&self, event: &Event) -> Vec<GrantedSlots> {
        match (event, advance_of(event)) {
            (Event::TaskEnded { key, .. } | Event::TaskRebooked { key }, _) => self
                .state
                .placed(*key)
                .map_or_else(Vec::new, |(_, _, placement)| placement.granted.clone()),
            (Event::ReservationChanged { .. } | Event::ReservationEnded { .. }, Some(id)) => self
                .state
                .reservations
                .get(&id)
                .map_or_else(Vec::new, |advance| advance.granted.clone()),
            _ => Vec::new(),
        }
    }

    /// The subjects of a report from whose values no longer all is subtracted that was, changed or
    /// not: jobs started there since the report before, or so shortly before it that it did not
    /// show them.
    fn settled_by(&self, observation: &Observation) -> Vec<HostName> {
        let Observation::Load { host, .. } = observation else {
            return Vec::new();
        };
        let settle_ms = self
            .state
            .config
            .scheduler
            .settle_times()
            .map(|(_, seconds)| seconds * 1000)
            .max();
        let subjects = self
            .observations
            .hosts
            .get(host)
            .into_iter()
            .flat_map(|known| &known.subjects);
        let has_recent = |subject: &&HostName| {
            let values = self.observations.load.get(*subject).into_iter().flat_map(Loads::values);
            let oldest = values
                .filter(|entry| entry.reporter == *host)
                .map(|entry| entry.sampled.0)
                .min();
            let level = if subject.is_global() {
                Level::Global
            } else {
                Level::Host((*subject).clone())
            };
            oldest.is_some_and(|oldest| {
                let since = Tick(oldest.saturating_sub(settle_ms.unwrap_or(0)));
                self.state.ledger.since(&level, since).next().is_some()
            })
        };
        subjects
            .filter(|subject| *subject != host)
            .filter(has_recent)
            .cloned()
            .collect()
    }

    fn changed(&mut self, subject: &HostName) {
        if subject.is_global() {
            self.everything_changed()
        } else {
            self.host_changed(subject)
        }
    }

    /// Follows changed objects. What every job's demand, category or limit rests on makes
    /// everything anew.
    fn objects_changed(&mut self, objects: &[StoredObject], touched: &DerivedChanges) {
        let is_about_jobs = |object: &StoredObject| {
            let is_global = object.name.is_empty() || object.name == HostName::global().as_str();
            matches!(
                object.kind,
                ObjectKind::ComplexTable | ObjectKind::Pe | ObjectKind::SchedulerConf
            ) || matches!(object.kind, ObjectKind::Project | ObjectKind::ShareTree)
                || matches!(object.kind, ObjectKind::ResourceQuota | ObjectKind::UserSet)
                || object.kind == ObjectKind::ClusterConf && is_global
        };
        if touched.access || objects.iter().any(is_about_jobs) {
            return self.rebuild();
        }
        for user in objects.iter().filter(|object| object.kind == ObjectKind::User) {
            self.reclass(&user.name);
        }
        if objects.iter().any(|object| object.kind == ObjectKind::HostGroup) {
            self.planned.recount(&self.state.config);
            self.gave_back(false);
            self.ahead.outdate(&self.state);
        }
        if objects
            .iter()
            .any(|object| matches!(object.kind, ObjectKind::Calendar | ObjectKind::Queue))
        {
            self.ahead.outdate_ends(&self.state);
        }
        for host in &touched.hosts {
            let resolved = &self.state.config.resolved;
            let instance = |queue: &QueueName| QueueInstanceName {
                queue: queue.clone(),
                host: host.clone(),
            };
            let of_host = self.state.config.queues.keys().map(instance);
            let of_host = of_host.filter(|instance| resolved.contains_key(instance)).collect();
            self.set_places(host, of_host);
            self.changed(host);
        }
    }

    /// The queue instances of a host are these.
    fn set_places(&mut self, host: &HostName, instances: Vec<QueueInstanceName>) {
        for id in self.instance_ids.set(host, instances) {
            self.standings.close(id);
            self.changes.instance(id);
        }
    }
}
