//! The usage of users and projects, as their jobs are charged (ALGORITHMS.md section 11.1).
//!
//! An account belongs to a user in a project, or outside of any. The usage of a user or project is
//! a sum of accounts. An attempt is charged when it ends and, so that long tasks count and decay
//! while they run, at checkpoints before: each time with the usage since the last one. Everything
//! here follows from events alone, in whole numbers.

use super::State;
use super::decay::{Decay, DecayRule, decayed};
use super::job::Job;
use proto::host::Scaling;
use proto::id::{SubmitSeq, TaskKey, UserName};
use proto::policy::UsageWeights;
use proto::time::{Now, Tick};
use proto::usage::Consumption;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The account that is charged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Account {
    /// The owner of the jobs.
    pub user: UserName,
    /// Their project, if they have one.
    pub project: Option<Arc<str>>,
}

impl Account {
    /// The account of a job.
    pub fn of_job(job: &Job) -> Self {
        let project = job.spec.project.as_deref().map(Arc::from);
        Self {
            user: job.spec.owner.user.clone(),
            project,
        }
    }
}

/// Scaled usage, in millionths of the measured unit: milliseconds, KiB times milliseconds, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amounts {
    /// Processor time.
    pub cpu: u128,
    /// Memory over time.
    pub mem: u128,
    /// Input and output.
    pub io: u128,
}

impl Amounts {
    /// The usage of a host after scaling.
    pub fn scaled(consumed: Consumption, scaling: Option<&Scaling>) -> Self {
        let times = |number: u64, kind: &str| {
            let factor = scaling.map_or(1_000_000, |scaling| scaling.factor(kind).0);
            u128::from(number) * u128::try_from(factor).unwrap_or(0)
        };
        Self {
            cpu: times(consumed.cpu_ms, "cpu"),
            mem: times(consumed.mem_kib_ms, "mem"),
            io: times(consumed.io_bytes, "io"),
        }
    }

    /// The sum of both.
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u128::saturating_add)
    }

    /// The difference.
    pub fn less(self, other: Self) -> Self {
        self.with(other, u128::saturating_sub)
    }

    /// Whether it is nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    fn with(self, other: Self, both: fn(u128, u128) -> u128) -> Self {
        Self {
            cpu: both(self.cpu, other.cpu),
            mem: both(self.mem, other.mem),
            io: both(self.io, other.io),
        }
    }

    /// In millionths of seconds of processor time, of GB seconds and of GB.
    fn units(self) -> Units {
        let whole = |number: u128| i128::try_from(number).unwrap_or(i128::MAX);
        Units {
            cpu: whole(self.cpu / 1_000),
            mem: whole(self.mem / (1_000 << 20)),
            io: whole(self.io >> 30),
        }
    }
}

/// The charges of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountCharges {
    /// The decayed sum as of `at`.
    left: Amounts,
    /// The sum without decay.
    lifetime: Amounts,
    /// The charges of running attempts.
    running: Amounts,
    at: Tick,
}

impl AccountCharges {
    /// The decayed sum now.
    fn left(&self, decay: &Decay, now: Tick) -> Amounts {
        let left = |fading, left, running| match fading {
            DecayRule::Never => left,
            DecayRule::HalfLife(ms) => decayed(left, self.at, now, ms),
            DecayRule::WithJob => running,
        };
        Amounts {
            cpu: left(decay.cpu, self.left.cpu, self.running.cpu),
            mem: left(decay.mem, self.left.mem, self.running.mem),
            io: left(decay.io, self.left.io, self.running.io),
        }
    }

    fn settle(&mut self, decay: &Decay, now: Tick) {
        self.left = self.left(decay, now);
        self.at = self.at.max(now);
    }

    fn add(&mut self, amounts: Amounts) {
        self.left = self.left.plus(amounts);
        self.lifetime = self.lifetime.plus(amounts);
    }
}

/// The charges of a running attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct AttemptCharges {
    /// Its usage as measured.
    consumed: Consumption,
    /// The part of it in `running` of its account.
    counted: Amounts,
}

/// The accounts, and the charges of running attempts.
///
/// Invariants, checked by [`State::check`]: `paid` has only attempts and slave tasks that are on a
/// host; `running` of each account is the sum of their charges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounts {
    accounts: BTreeMap<Account, AccountCharges>,
    paid: BTreeMap<TaskKey, AttemptCharges>,
}

impl Accounts {
    /// Every account that was ever charged, in order.
    pub fn names(&self) -> impl Iterator<Item = &Account> {
        self.accounts.keys()
    }

    /// Whether an account was charged.
    pub fn has(&self, account: &Account) -> bool {
        self.accounts.contains_key(account)
    }

    /// Whether a user was charged, in any project.
    pub fn has_user(&self, user: &str) -> bool {
        let first = Account {
            user: user.into(),
            project: None,
        };
        self.accounts
            .range(first..)
            .next()
            .is_some_and(|(account, _)| account.user.as_str() == user)
    }

    /// The part of an attempt's usage that was charged before its end.
    pub fn paid(&self, key: TaskKey) -> Consumption {
        self.paid
            .get(&key)
            .map_or_else(Consumption::default, |paid| paid.consumed)
    }

    /// The usage of an attempt beyond its charges.
    pub fn beyond_paid(&self, key: TaskKey, consumed: Consumption) -> Consumption {
        consumed.since(self.paid(key))
    }

    /// The charges of an account without decay.
    pub fn lifetime(&self, account: &Account) -> Amounts {
        self.accounts
            .get(account)
            .map_or_else(Amounts::default, |charged| charged.lifetime)
    }

    /// The decayed charges now.
    pub fn left(&self, account: &Account, decay: &Decay, now: Tick) -> Amounts {
        self.accounts
            .get(account)
            .map_or_else(Amounts::default, |charged| charged.left(decay, now))
    }

    /// Decays everything by rules that end now.
    pub(super) fn settle(&mut self, decay: &Decay, now: Tick) {
        self.accounts
            .values_mut()
            .for_each(|charged| charged.settle(decay, now));
    }

    fn account(&mut self, account: &Account, decay: &Decay, now: Tick) -> &mut AccountCharges {
        let charged = self.accounts.entry(account.clone()).or_insert_with(|| AccountCharges {
            at: now,
            ..AccountCharges::default()
        });
        charged.settle(decay, now);
        charged
    }
}

impl State {
    /// The account that an attempt or slave task of an unfinished job is charged to.
    pub fn account_of(&self, seq: SubmitSeq) -> Option<Account> {
        self.jobs.get(&seq).map(Account::of_job)
    }

    /// The scaled usage of an attempt or slave task where it runs.
    pub fn scaled(&self, key: TaskKey, consumed: Consumption) -> Amounts {
        let host = self.host_of(key).and_then(|host| self.config.exec_hosts.get(host));
        Amounts::scaled(consumed, host.map(|host| &host.usage_scaling))
    }

    /// Charges running attempts with their usage so far.
    pub(super) fn charge(&mut self, tasks: &[(TaskKey, Consumption)]) {
        for (key, consumed) in tasks {
            assert!(
                self.host_of(*key).is_some(),
                "what is charged before its end is on a host"
            );
            let (amounts, account, decay) = self.due(*key, *consumed);
            let paid = self.usage.paid.entry(*key).or_default();
            paid.consumed = paid.consumed.max(*consumed);
            paid.counted = paid.counted.plus(amounts);
            let charged = self.usage.account(&account, &decay, self.now.tick);
            charged.add(amounts);
            charged.running = charged.running.plus(amounts);
        }
    }

    /// Charges an attempt or slave task that ends now with its whole usage. One that never ran has
    /// none.
    pub(super) fn charge_end(&mut self, key: TaskKey, consumed: Consumption) {
        let (amounts, account, decay) = self.due(key, consumed);
        let counted = self
            .usage
            .paid
            .remove(&key)
            .map_or_else(Amounts::default, |paid| paid.counted);
        if amounts.is_none() && counted.is_none() {
            return;
        }
        let charged = self.usage.account(&account, &decay, self.now.tick);
        charged.add(amounts);
        charged.running = charged.running.less(counted);
    }

    /// The charge of an attempt with this usage, its account, and how it decays.
    fn due(&self, key: TaskKey, consumed: Consumption) -> (Amounts, Account, Decay) {
        let account = self
            .account_of(key.seq)
            .expect("what is charged is of a job that has not finished");
        let amounts = self.scaled(key, self.usage.beyond_paid(key, consumed));
        (amounts, account, Decay::from_conf(&self.config.scheduler))
    }

    /// Moves a job to another project: its charges so far stay, and its running attempts count
    /// there now.
    pub(super) fn move_running(&mut self, seq: SubmitSeq, from: &Account) {
        let to = self.account_of(seq).expect("an altered job has not finished");
        if *from == to {
            return;
        }
        let counted = self
            .paid_of(seq)
            .map(|(_, paid)| paid.counted)
            .fold(Amounts::default(), Amounts::plus);
        if counted.is_none() {
            return;
        }
        let (decay, now) = (Decay::from_conf(&self.config.scheduler), self.now.tick);
        let old = self.usage.account(from, &decay, now);
        old.running = old.running.less(counted);
        let new = self.usage.account(&to, &decay, now);
        new.running = new.running.plus(counted);
    }

    fn paid_of(&self, seq: SubmitSeq) -> impl Iterator<Item = (&TaskKey, &AttemptCharges)> {
        let first = TaskKey {
            cell: self.cell,
            seq,
            task: proto::id::TaskId(0),
            pe_task: 0,
            attempt: 0,
        };
        self.usage
            .paid
            .range(first..)
            .take_while(move |(key, _)| key.cell == self.cell && key.seq == seq)
    }

    /// Forgets the usage of users; of all if none is named. Earlier charges of running attempts are
    /// not charged again.
    pub(super) fn clear_usage(&mut self, users: &[UserName]) {
        let is_meant = |user: &UserName| users.is_empty() || users.contains(user);
        let jobs = &self.jobs;
        for (key, paid) in &mut self.usage.paid {
            if jobs.get(&key.seq).is_some_and(|job| is_meant(&job.spec.owner.user)) {
                paid.counted = Amounts::default();
            }
        }
        self.usage.accounts.retain(|account, _| !is_meant(&account.user));
    }

    /// The decayed charges of an account now, with its other usage.
    pub fn used(&self, account: &Account, live: Amounts, now: Now) -> DecayedUsage {
        let left = self
            .usage
            .left(account, &Decay::from_conf(&self.config.scheduler), now.tick)
            .plus(live);
        let Units { cpu, mem, io } = left.units();
        DecayedUsage {
            cpu,
            mem,
            io,
            lifetime: self.usage.lifetime(account).plus(live).units(),
        }
    }

    /// Asserts the invariants of the accounts.
    pub(super) fn check_usage(&self) {
        let mut running: BTreeMap<Account, Amounts> = BTreeMap::new();
        for (key, paid) in &self.usage.paid {
            assert!(
                self.host_of(*key).is_some(),
                "{key} was charged as running and is on no host"
            );
            let account = self
                .account_of(key.seq)
                .expect("what is on a host is of a job that has not finished");
            let sum = running.entry(account).or_default();
            *sum = sum.plus(paid.counted);
        }
        for (account, charged) in &self.usage.accounts {
            let sum = running.remove(account).unwrap_or_default();
            assert_eq!(
                charged.running, sum,
                "what {account:?} was charged with for running attempts"
            );
        }
        assert!(
            running.values().all(Amounts::is_none),
            "what was charged is in an account"
        );
    }
}

/// Usage in millionths of seconds of processor time, of GB seconds of memory and of GB of input and
/// output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// Processor time.
    pub cpu: i128,
    /// Memory over time.
    pub mem: i128,
    /// Input and output.
    pub io: i128,
}

/// The usage of one or several accounts: decayed, that of running jobs included. The units are
/// those of [`Units`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecayedUsage {
    /// Processor time.
    pub cpu: i128,
    /// Memory over time.
    pub mem: i128,
    /// Input and output.
    pub io: i128,
    /// The usage without decay, since the first job or `qconf -clearusage`.
    pub lifetime: Units,
}

impl DecayedUsage {
    /// The sum of both.
    pub fn plus(self, other: Self) -> Self {
        let lifetime = Units {
            cpu: self.lifetime.cpu.saturating_add(other.lifetime.cpu),
            mem: self.lifetime.mem.saturating_add(other.lifetime.mem),
            io: self.lifetime.io.saturating_add(other.lifetime.io),
        };
        Self {
            cpu: self.cpu.saturating_add(other.cpu),
            mem: self.mem.saturating_add(other.mem),
            io: self.io.saturating_add(other.io),
            lifetime,
        }
    }

    /// The usage as one number, in millionths: the mean of its kinds by `usage_weight_list`
    /// (ALGORITHMS.md section 11.1). 0 if no kind counts.
    pub fn weighted(&self, weights: &UsageWeights) -> i128 {
        let parts = [(self.cpu, weights.cpu), (self.mem, weights.mem), (self.io, weights.io)];
        let sum: i128 = parts.iter().map(|(_, weight)| i128::from(weight.0.0)).sum();
        let weigh = |(used, weight): &(i128, proto::object::value::Weight)| used.saturating_mul(i128::from(weight.0.0));
        parts
            .iter()
            .map(weigh)
            .fold(0, i128::saturating_add)
            .checked_div(sum)
            .unwrap_or(0)
    }
}
