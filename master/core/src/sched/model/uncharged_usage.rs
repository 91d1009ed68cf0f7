//! The use of running tasks since they were charged last, by account. It is kept with each
//! observation, so that no pass adds it up.

use crate::event::Event;
use crate::observe::Observations;
use crate::sched::model::Model;
use crate::state::State;
use crate::state::usage::{Account, Amounts, DecayedUsage};
use proto::id::TaskKey;
use proto::object::ObjectKind;
use proto::time::Now;
use std::collections::BTreeMap;

/// Use that is known and not charged yet.
///
/// Invariant: `sums` is the sum of `tasks` for each account; neither holds zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnchargedUsage {
    tasks: BTreeMap<TaskKey, (Account, Amounts)>,
    sums: BTreeMap<Account, Amounts>,
}

impl Model {
    /// The decayed charges of an account, with the use of its running tasks since they were
    /// charged.
    pub fn used(&self, account: &Account, now: Now) -> DecayedUsage {
        self.state.used(account, self.live.of_account(account), now)
    }

    /// Every account that has used something.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        let charged = &self.state.usage;
        charged
            .names()
            .chain(self.live.accounts().filter(|account| !charged.has(account)))
    }
}

impl UnchargedUsage {
    /// The uncharged use of an account.
    pub(crate) fn of_account(&self, account: &Account) -> Amounts {
        self.sums.get(account).copied().unwrap_or_default()
    }

    /// The accounts with uncharged use.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.sums.keys()
    }

    /// Follows an event that was folded.
    pub(crate) fn follow(&mut self, state: &State, observations: &Observations, event: &Event) {
        let mut refresh = |keys: Vec<TaskKey>| self.refresh(state, observations, keys);
        #[allow(
            clippy::wildcard_enum_match_arm,
            reason = "events without usage, account or factors change nothing"
        )]
        match event {
            Event::TaskEnded { key, .. } | Event::SlaveEnded { key, .. } => refresh(vec![*key]),
            Event::UsageCharged { tasks } => refresh(tasks.iter().map(|(key, _)| *key).collect()),
            // Its account may have changed.
            Event::JobAltered { seq, .. } => {
                let placed = state.jobs.get(seq).into_iter().flat_map(|job| job.placements());
                refresh(placed.flat_map(|(_, placement)| placement.keys()).collect());
            }
            // The factors of a host may have changed.
            Event::ObjectsChanged(objects) if objects.iter().any(|object| object.kind == ObjectKind::ExecHost) => {
                refresh(observations.usage.keys().copied().collect());
            }
            _ => {}
        }
    }

    /// Updates the use of attempts and slave tasks. Those that are not on a host have none.
    pub(crate) fn refresh(&mut self, state: &State, observations: &Observations, keys: Vec<TaskKey>) {
        for key in keys {
            if let Some((account, before)) = self.tasks.remove(&key) {
                let left = self.of_account(&account).less(before);
                self.set(account, left);
            }
            let known = observations.usage.get(&key).filter(|_| state.host_of(key).is_some());
            let (Some(usage), Some(account)) = (known, state.account_of(key.seq)) else {
                continue;
            };
            let amounts = state.scaled(key, state.usage.beyond_paid(key, (*usage).into()));
            if !amounts.is_none() {
                let sum = self.of_account(&account).plus(amounts);
                self.set(account.clone(), sum);
                self.tasks.insert(key, (account, amounts));
            }
        }
    }

    fn set(&mut self, account: Account, amounts: Amounts) {
        if amounts.is_none() {
            self.sums.remove(&account);
        } else {
            self.sums.insert(account, amounts);
        }
    }
}
