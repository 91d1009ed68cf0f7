//! The tickets of running tasks, by which their hosts share themselves out.

use crate::sched::model::Model;
use proto::id::TaskKey;
use std::collections::BTreeSet;

impl Model {
    /// The tickets of every task on a host, in millionths, as they were computed last.
    pub fn running_tickets(&self) -> Vec<(TaskKey, i64)> {
        let index = &self.state.index;
        let keys: BTreeSet<TaskKey> = index.hosts().flat_map(|host| index.on_host(host)).collect();
        let tickets = |key: &TaskKey| {
            let class = self.queue.bucket(key.seq).map(|bucket| self.queue.at(bucket).class);
            class.map_or(0, |class| (self.queue.prices().of_running(class).sum() * 1e6) as i64)
        };
        keys.into_iter().map(|key| (key, tickets(&key))).collect()
    }
}
