//! What users are charged with, added up apart from the code under test: the use in the accounting records of attempts that have ended,
//! and what those that run were charged with last.

use master_core::event::{Event, Record};
use master_core::state::State;
use master_core::state::usage::{Account, Amounts};
use proto::id::TaskKey;
use proto::usage::Consumed;
use std::collections::BTreeMap;

/// The sums. No host of the workload scales usage, and no job changes its project.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    ended: BTreeMap<Account, [u128; 3]>,
    running: BTreeMap<Account, BTreeMap<TaskKey, Consumed>>,
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
                    assert_eq!(before.since(*consumed), Consumed::default(), "{key} has used less than before");
                }
                tasks.iter().for_each(|(key, _)| self.compare(*key, after));
            }
            Event::TaskEnded { key, record, .. } => {
                let account = after.account_of(key.seq).expect("a job finishes after its last task");
                let running = self.running.entry(account.clone()).or_default().remove(key).unwrap_or_default();
                let used = record.as_ref().map_or_else(Consumed::default, |record| record.usage.into());
                assert_eq!(running.since(used), Consumed::default(), "accounting tells less of {key} than was charged");
                add(self.ended.entry(account).or_default(), used);
                self.compare(*key, after);
            }
            _ => {}
        }
    }

    fn compare(&self, key: TaskKey, state: &State) {
        let account = state.account_of(key.seq).expect("its job is there");
        let mut sums = self.ended.get(&account).copied().unwrap_or_default();
        self.running.get(&account).into_iter().flat_map(BTreeMap::values).for_each(|used| add(&mut sums, *used));
        let [cpu, mem, io] = sums.map(|sum| sum * 1_000_000);
        assert_eq!(state.usage.lifetime(&account), Amounts { cpu, mem, io }, "what {account:?} was charged with");
    }
}

fn add(sums: &mut [u128; 3], used: Consumed) {
    for (sum, used) in sums.iter_mut().zip([used.cpu_ms, used.mem_kib_ms, used.io_bytes]) {
        *sum += u128::from(used);
    }
}
