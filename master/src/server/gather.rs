//! What a reader of the event stream wants told together: news of some seconds, of each thing that
//! changes often the latest alone.

use proto::id::{AttributeName, HostName, QueueInstanceName, SubmitSeq};
use proto::wire::stream::{Change, Item};
use std::collections::BTreeMap;

/// News that wait for their time; with so many they are sent at once.
const GATHERED_MAX: usize = 10_000;

/// Things of which the latest news replace what was told before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Load(HostName),
    Contact(HostName),
    Instances(HostName),
    Instance(QueueInstanceName),
    Job(SubmitSeq),
    Pass,
}

/// News in the order in which they came.
///
/// Invariant: `latest` names the place of the only news of its subject among `items`.
#[derive(Debug, Default)]
pub(super) struct NewsQueue {
    items: BTreeMap<u64, Item>,
    latest: BTreeMap<Subject, u64>,
    count: u64,
}

impl NewsQueue {
    /// Takes news in. What was waiting of the same subject is replaced, and told where the later
    /// news stand.
    pub(super) fn add(&mut self, mut item: Item) {
        self.count += 1;
        if let Some(subject) = subject(&item.change) {
            let before = self
                .latest
                .insert(subject, self.count)
                .and_then(|place| self.items.remove(&place));
            if let Some(before) = before {
                merge(before.change, &mut item.change);
            }
        }
        self.items.insert(self.count, item);
    }

    /// Whether there is no room for more.
    pub(super) fn is_full(&self) -> bool {
        self.items.len() >= GATHERED_MAX
    }

    /// All that waits, in order.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Item> + use<> {
        std::mem::take(self).items.into_values()
    }
}

/// What news are about, if later ones replace them.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "later news replace only what these are about"
)]
fn subject(change: &Change) -> Option<Subject> {
    match change {
        Change::Load { host, .. } => Some(Subject::Load(host.clone())),
        Change::Contact { host, .. } => Some(Subject::Contact(host.clone())),
        Change::Instances { host, .. } => Some(Subject::Instances(host.clone())),
        Change::InstanceChanged { instance, .. } => Some(Subject::Instance(instance.clone())),
        Change::JobChanged { job, .. } => Some(Subject::Job(*job)),
        Change::PassWanted {} => Some(Subject::Pass),
        _ => None,
    }
}

/// Load values that an earlier report told and a later one does not.
fn merge(before: Change, after: &mut Change) {
    let Change::Load {
        full: was_full,
        values: known,
        withdrawn: gone,
        ..
    } = before
    else {
        return;
    };
    let Change::Load {
        full,
        values,
        withdrawn,
        ..
    } = after
    else {
        return;
    };
    if *full {
        return;
    }
    *full = was_full;
    let is_withdrawn =
        |withdrawn: &BTreeMap<HostName, Vec<AttributeName>>, subject: &HostName, name: &AttributeName| {
            withdrawn.get(subject).is_some_and(|names| names.contains(name))
        };
    for (subject, named) in known {
        for (name, value) in named {
            if !is_withdrawn(withdrawn, &subject, &name) {
                values.entry(subject.clone()).or_default().entry(name).or_insert(value);
            }
        }
    }
    for (subject, names) in gone {
        for name in names {
            let is_back = values.get(&subject).is_some_and(|named| named.contains_key(&name));
            if !is_back && !is_withdrawn(withdrawn, &subject, &name) {
                withdrawn.entry(subject.clone()).or_default().push(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::id::EventSeq;
    use proto::time::Wall;
    use proto::wire::stream::Source;

    fn item(seq: u64, change: Change) -> Item {
        Item {
            seq: EventSeq(seq),
            time: Wall(0),
            source: Source::Soft,
            by: "master".to_owned(),
            job: None,
            change,
        }
    }

    fn load(full: bool, values: &[(&str, &str)], withdrawn: &[&str]) -> Change {
        let host = || HostName::new("h1");
        let values = values
            .iter()
            .map(|(name, value)| (AttributeName::from(*name), (*value).to_owned()))
            .collect();
        let withdrawn = withdrawn.iter().map(|name| AttributeName::from(*name)).collect();
        Change::Load {
            host: host(),
            full,
            values: BTreeMap::from([(host(), values)]),
            withdrawn: BTreeMap::from([(host(), withdrawn)]),
        }
    }

    #[test]
    fn of_what_changes_often_the_latest_is_told_and_of_all_else_everything() {
        let contact = |host: &str, connected| Change::Contact {
            host: HostName::new(host),
            connected,
        };
        let ended = |job| Change::JobFinished { job: SubmitSeq(job) };
        let mut gathered = NewsQueue::default();
        let news = [
            contact("h1", false),
            ended(1),
            contact("h2", true),
            contact("h1", true),
            ended(1),
        ];
        news.into_iter()
            .zip(1..)
            .for_each(|(change, seq)| gathered.add(item(seq, change)));
        let told: Vec<(u64, Change)> = gathered.take().map(|item| (item.seq.0, item.change)).collect();
        assert_eq!(
            told,
            [
                (2, ended(1)),
                (3, contact("h2", true)),
                (4, contact("h1", true)),
                (5, ended(1))
            ]
        );
        assert_eq!(gathered.take().count(), 0);
    }

    #[test]
    fn load_values_are_put_together() {
        let mut gathered = NewsQueue::default();
        gathered.add(item(1, load(true, &[("a", "1"), ("b", "1"), ("c", "1")], &[])));
        gathered.add(item(2, load(false, &[("a", "2")], &["b"])));
        gathered.add(item(3, load(false, &[("a", "3"), ("d", "3")], &[])));
        let told: Vec<Change> = gathered.take().map(|item| item.change).collect();
        assert_eq!(told, [load(true, &[("a", "3"), ("c", "1"), ("d", "3")], &["b"])]);
        gathered.add(item(4, load(false, &[], &["a"])));
        gathered.add(item(5, load(false, &[("a", "5")], &[])));
        gathered.add(item(6, load(true, &[("z", "6")], &[])));
        let told: Vec<Change> = gathered.take().map(|item| item.change).collect();
        assert_eq!(told, [load(true, &[("z", "6")], &[])]);
    }
}
