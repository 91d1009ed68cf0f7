//! What objects and queue instances were before each event, and which changes an event made.

use super::difference;
use super::jobs::{JobSummary, PresentJobs};
use crate::store::{EventHead, StoreError, UndecodedEvent};
use master_core::event::{Actor, Event, InstanceState, StoredObject};
use master_core::stream::by;
use proto::id::{QueueInstanceName, UserName};
use proto::object::{Fields, ObjectKind};
use proto::wire::view::{ChangeAction, ChangeView};
use std::collections::BTreeMap;

/// The events that changes come from, by the names of their kinds in the log.
pub(super) const KINDS: &[&str] = &[
    "job-submitted",
    "job-altered",
    "job-finished",
    "holds-changed",
    "tasks-deleted",
    "task-deletion-requested",
    "task-reschedule-requested",
    "task-migration-requested",
    "task-suspended",
    "error-cleared",
    "instance-changed",
    "objects-changed",
    "host-revoked",
    "host-tasks-bound",
    "token-created",
    "token-revoked",
    "usage-cleared",
];

/// How much of the hash of a token names it, as in `gridwright token list`.
const TOKEN_ID: usize = 12;

/// The things of a cell as the log has them so far.
#[derive(Default)]
pub(super) struct Tracker {
    /// Whether the log has every event of the cell: then what it does not have is new.
    pub(super) knows_all: bool,
    objects: BTreeMap<(ObjectKind, String), Fields>,
    instances: BTreeMap<QueueInstanceName, InstanceState>,
    jobs: PresentJobs,
    /// How many events of users were about jobs whose submission the log does not have.
    pub(super) of_older_jobs: u64,
}

impl Tracker {
    /// Follows an event, and returns the changes that it made.
    ///
    /// # Errors
    /// `UnknownEvent`, `Damaged`.
    pub(super) fn follow(&mut self, stored: &UndecodedEvent<'_>) -> Result<Vec<ChangeView>, StoreError> {
        let head = &stored.head;
        if JobSummary::KINDS.contains(&stored.kind) {
            let summary: JobSummary = stored.fields()?;
            if self.jobs.is_altered_unknown(&head.actor, &summary) {
                self.of_older_jobs += 1;
            }
            let change = self.jobs.summary(&head.actor, summary);
            return Ok(change.map(|change| change.view(head)).into_iter().collect());
        }
        let event = stored.event()?;
        if let Event::ObjectsChanged(objects) = &event {
            let changes = objects.iter().filter_map(|object| self.object(head, object));
            return Ok(changes.collect());
        }
        if let Event::InstanceChanged { instance, state } = &event {
            return Ok(self.instance(head, instance, state));
        }
        if self.jobs.is_of_unknown(&head.actor, &event) {
            self.of_older_jobs += 1;
        }
        if let Some(change) = self.jobs.follow(&head.actor, &event) {
            return Ok(vec![change.view(head)]);
        }
        Ok(other(head, &event).into_iter().collect())
    }

    /// An object that is new, different or gone; `None` if it is as it was.
    fn object(&mut self, head: &EventHead, object: &StoredObject) -> Option<ChangeView> {
        let StoredObject { kind, name, fields } = object;
        let key = (*kind, name.clone());
        let old = match fields {
            Some(fields) => self.objects.insert(key, fields.clone()),
            None => self.objects.remove(&key),
        };
        let action = match (&old, fields) {
            (_, None) => ChangeAction::Deleted,
            (None, Some(_)) if self.knows_all => ChangeAction::Added,
            (_, Some(_)) => ChangeAction::Modified,
        };
        let is_earlier_unknown = old.is_none() && action != ChangeAction::Added;
        let (fields, more_fields) = if is_earlier_unknown {
            (Vec::new(), 0)
        } else {
            difference::between(old.as_ref(), fields.as_ref())
        };
        let is_same = action == ChangeAction::Modified && fields.is_empty() && !is_earlier_unknown;
        (!is_same).then(|| ChangeView {
            fields,
            more_fields,
            is_earlier_unknown,
            ..change(head, action, kind.as_str(), name.clone())
        })
    }

    /// What a user did to a queue instance. Its errors, its calendar and other queues change it,
    /// too: that is nobody's change.
    fn instance(&mut self, head: &EventHead, instance: &QueueInstanceName, state: &InstanceState) -> Vec<ChangeView> {
        let old = self.instances.insert(instance.clone(), state.clone());
        // In a whole log, an instance that is not here has the state of a new one.
        if self.knows_all && *state == InstanceState::default() {
            self.instances.remove(instance);
        }
        if !matches!(head.actor, Actor::User { .. }) {
            return Vec::new();
        }
        if old.is_none() && !self.knows_all {
            return vec![ChangeView {
                is_earlier_unknown: true,
                ..change(head, ChangeAction::Modified, "queue instance", instance.to_string())
            }];
        }
        let old = old.unwrap_or_default();
        let pairs = [
            (
                old.disabled,
                state.disabled,
                ChangeAction::Disabled,
                ChangeAction::Enabled,
            ),
            (
                old.suspended,
                state.suspended,
                ChangeAction::Suspended,
                ChangeAction::Resumed,
            ),
        ];
        let mut actions: Vec<ChangeAction> = pairs
            .into_iter()
            .filter(|(before, after, ..)| before != after)
            .map(|(_, after, set, unset)| if after { set } else { unset })
            .collect();
        if !old.errors.is_empty() && state.errors.is_empty() {
            actions.push(ChangeAction::ErrorCleared);
        }
        let of = |action| change(head, action, "queue instance", instance.to_string());
        actions.into_iter().map(of).collect()
    }
}

/// Changes of hosts, tokens and usage that users make.
fn other(head: &EventHead, event: &Event) -> Option<ChangeView> {
    let token = |hash: &str| hash.chars().take(TOKEN_ID).collect::<String>();
    let (action, kind, name) = if let Event::HostRevoked { host } = event {
        (ChangeAction::Revoked, "host", host.to_string())
    } else if let Event::HostTasksBound { host, mark: None } = event {
        (ChangeAction::Rebound, "host", host.to_string())
    } else if let Event::TokenCreated(grant) = event {
        (ChangeAction::Added, "join token", token(&grant.hash))
    } else if let Event::TokenRevoked { hash } = event {
        (ChangeAction::Revoked, "join token", token(hash))
    } else if let Event::UsageCleared { users } = event {
        let users: Vec<&str> = users.iter().map(UserName::as_str).collect();
        (ChangeAction::Forgotten, "usage", users.join(","))
    } else {
        return None;
    };
    Some(change(head, action, kind, name))
}

/// A change of something, without more about it.
pub(super) fn change(head: &EventHead, action: ChangeAction, kind: &str, name: String) -> ChangeView {
    ChangeView {
        seq: head.seq,
        at: head.now.wall,
        by: by(&head.actor),
        action,
        kind: kind.to_owned(),
        name,
        with: Vec::new(),
        others: 0,
        owner: None,
        tasks: 0,
        fields: Vec::new(),
        more_fields: 0,
        is_earlier_unknown: false,
    }
}
