//! What users are charged with, added up apart from the code under test: the use in the accounting
//! records of attempts that have ended, and what those that run were charged with last.

use super::slaves::task_of;
use master_core::event::{Event, Record};
use master_core::state::State;
use master_core::state::usage::{Account, Amounts};
use proto::id::TaskKey;
use proto::usage::Consumption;
use std::collections::BTreeMap;

/// The sums. No host of the workload scales usage, and no job changes its project.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    ended: BTreeMap<Account, [u128; 3]>,
    running: BTreeMap<Account, BTreeMap<TaskKey, Consumption>>,
    /// What slave tasks used that is a part of the record of their job.
    summed_up: BTreeMap<TaskKey, Consumption>,
    /// Both together, from event to event.
    sums: BTreeMap<Account, [u128; 3]>,
}

impl Accounts {
    /// Notes a durable event that led to this state, and compares the accounts that it touched.
    pub(super) fn read(&mut self, record: &Record, after: &State) {
        match &record.event {
            Event::UsageCharged { tasks } => {
                for (key, consumed) in tasks {
                    let account = after.account_of(key.seq).expect("what is charged is there");
                    let before = self.running.entry(account.clone()).or_default().insert(*key, *consumed);
                    let before = before.unwrap_or_default();
                    add(self.sums.entry(account).or_default(), consumed.since(before));
                    assert_eq!(
                        before.since(*consumed),
                        Consumption::default(),
                        "{key} has used less than before"
                    );
                }
                tasks.iter().for_each(|(key, _)| self.compare(*key, after));
            }
            Event::TaskEnded { key, record, .. } => {
                let account = after.account_of(key.seq).expect("a job finishes after its last task");
                let running = self
                    .running
                    .entry(account.clone())
                    .or_default()
                    .remove(key)
                    .unwrap_or_default();
                let of_slaves = self.summed_up.remove(key).unwrap_or_default();
                let used = record
                    .as_ref()
                    .map_or_else(Consumption::default, |record| record.usage.into());
                let used = used.since(of_slaves);
                assert_eq!(
                    running.since(used),
                    Consumption::default(),
                    "accounting tells less of {key} than was charged"
                );
                add(self.sums.entry(account.clone()).or_default(), used.since(running));
                add(self.ended.entry(account).or_default(), used);
                self.compare(*key, after);
            }
            Event::SlaveEnded { key, record, usage, .. } => {
                let account = after.account_of(key.seq).expect("a job finishes after its last task");
                let running = self
                    .running
                    .entry(account.clone())
                    .or_default()
                    .remove(key)
                    .unwrap_or_default();
                let used = Consumption::from(*usage);
                assert_eq!(
                    running.since(used),
                    Consumption::default(),
                    "accounting tells less of {key} than was charged"
                );
                add(self.sums.entry(account.clone()).or_default(), used.since(running));
                add(self.ended.entry(account).or_default(), used);
                if record.is_none() {
                    let sum = self.summed_up.entry(task_of(*key)).or_default();
                    *sum = Consumption {
                        cpu_ms: sum.cpu_ms + used.cpu_ms,
                        mem_kib_ms: sum.mem_kib_ms + used.mem_kib_ms,
                        io_bytes: sum.io_bytes + used.io_bytes,
                    };
                }
                self.compare(*key, after);
            }
            _ => {}
        }
    }

    fn compare(&self, key: TaskKey, state: &State) {
        let account = state.account_of(key.seq).expect("its job is there");
        let [cpu, mem, io] = self
            .sums
            .get(&account)
            .copied()
            .unwrap_or_default()
            .map(|sum| sum * 1_000_000);
        assert_eq!(
            state.usage.lifetime(&account),
            Amounts { cpu, mem, io },
            "what {account:?} was charged with"
        );
    }

    /// The sums are those over all tasks.
    pub(super) fn audit(&self, state: &State) {
        for (account, sum) in &self.sums {
            let mut anew = self.ended.get(account).copied().unwrap_or_default();
            self.running
                .get(account)
                .into_iter()
                .flat_map(BTreeMap::values)
                .for_each(|used| add(&mut anew, *used));
            assert_eq!(*sum, anew, "the sums of this simulator itself");
            let [cpu, mem, io] = anew.map(|sum| sum * 1_000_000);
            assert_eq!(
                state.usage.lifetime(account),
                Amounts { cpu, mem, io },
                "what {account:?} was charged with"
            );
        }
    }
}

fn add(sums: &mut [u128; 3], used: Consumption) {
    for (sum, used) in sums.iter_mut().zip([used.cpu_ms, used.mem_kib_ms, used.io_bytes]) {
        *sum += u128::from(used);
    }
}
