//! Warnings of requests that can never be had, kept by request: to find one, every queue instance
//! may have to be asked. This exists only for speed: without it the answers are the same.

use crate::matching::is_static_load;
use crate::observe::{Observation, Observations};
use proto::common::Common;
use proto::job::{JobSpec, Owner, Requests};
use proto::wire::client::Answer;
use std::collections::BTreeMap;

/// The most requests whose verdict is kept. When there are as many, all are forgotten.
const REQUESTS_MAX: usize = 500;

/// The longest request that is kept, in bytes of its options.
const REQUEST_BYTES_MAX: usize = 4_096;

/// Everything of a job on which its verdict rests, apart from the configuration and the hosts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VerdictKey {
    requests: Common<Requests>,
    owner: Common<Owner>,
    project: Option<String>,
    checkpoint: Option<String>,
    immediate: bool,
}

impl VerdictKey {
    /// The question of a job that asks for `options`. `None` if its verdict is not kept: that of a
    /// job of an advance reservation rests on the reservation too.
    pub fn of(spec: &JobSpec, options: &str) -> Option<VerdictKey> {
        let is_kept = spec.reservation.is_none() && options.len() <= REQUEST_BYTES_MAX;
        is_kept.then(|| VerdictKey {
            requests: spec.requests.clone(),
            owner: spec.owner.clone(),
            project: spec.project.clone(),
            checkpoint: spec.checkpoint.clone(),
            immediate: spec.immediate,
        })
    }
}

/// The warnings of requests, `None` for those that some queue instance can meet.
///
/// Invariant: nothing has changed since on which one of them rests. These are the configuration,
/// which values hosts report, the values that never change, and which hosts are heard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdicts(BTreeMap<VerdictKey, Option<Answer>>);

impl Verdicts {
    /// The verdict on a request, if it is known.
    pub fn get(&self, question: &VerdictKey) -> Option<Option<Answer>> {
        self.0.get(question).cloned()
    }

    /// Keeps the verdict on a request.
    pub fn keep(&mut self, question: VerdictKey, verdict: Option<Answer>) {
        if self.0.len() >= REQUESTS_MAX {
            self.0.clear();
        }
        self.0.insert(question, verdict);
    }

    /// Forgets all verdicts, because the configuration changes.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Forgets all verdicts if they rest on something that an observation changes. `known` is
    /// everything that was observed before.
    pub fn observe(&mut self, known: &Observations, observation: &Observation) {
        if !self.0.is_empty() && is_concerned(known, observation) {
            self.0.clear();
        }
    }
}

fn is_concerned(known: &Observations, observation: &Observation) -> bool {
    match observation {
        Observation::Load { host, report, .. } => {
            let is_heard = known
                .hosts
                .get(host)
                .is_some_and(|host| host.reported.is_some() && !host.unheard);
            let mut values = report.values.iter().flat_map(|(subject, of_subject)| {
                let loads = known.load.get(subject);
                of_subject
                    .iter()
                    .map(move |(name, text)| (loads.and_then(|loads| loads.get(name)), name, text))
            });
            let is_like_before = values.all(|(entry, name, text)| {
                let may_change = !is_static_load(name.as_str());
                entry.is_some_and(|entry| entry.reporter == *host && (may_change || entry.text == *text))
            });
            let has_less = report.withdrawn.values().any(|names| !names.is_empty());
            report.full || has_less || !is_heard || !is_like_before
        }
        Observation::Contact { .. } | Observation::Unheard { .. } => true,
        Observation::LoadRefused { .. }
        | Observation::Unfit { .. }
        | Observation::Usage(_)
        | Observation::Sensors { .. } => false,
    }
}

#[cfg(test)]
impl Verdicts {
    /// How many verdicts are kept.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::tests::lab::plain_spec;
    use proto::id::ReservationId;
    use proto::request::ResourceList;

    fn asks(text: &str) -> JobSpec {
        let hard = ResourceList::parse(text).unwrap().into();
        JobSpec {
            requests: Requests {
                hard,
                ..Requests::default()
            }
            .into(),
            ..plain_spec()
        }
    }

    #[test]
    fn a_verdict_is_that_of_equal_requests_and_few_are_kept() {
        let mut verdicts = Verdicts::default();
        let question = |spec: &JobSpec| VerdictKey::of(spec, "-l a=1").unwrap();
        let warning = Answer::Done("never".to_owned());
        verdicts.keep(question(&asks("a=1")), Some(warning.clone()));
        verdicts.keep(question(&asks("a=2")), None);
        assert_eq!(verdicts.get(&question(&asks("a=1"))), Some(Some(warning)));
        assert_eq!(verdicts.get(&question(&asks("a=2"))), Some(None));
        let mut owner = (*plain_spec().owner).clone();
        owner.group = "another".to_owned();
        for other in [
            asks("a=3"),
            JobSpec {
                project: Some("p".to_owned()),
                ..asks("a=1")
            },
            JobSpec {
                checkpoint: Some("c".to_owned()),
                ..asks("a=1")
            },
            JobSpec {
                immediate: true,
                ..asks("a=1")
            },
            JobSpec {
                owner: owner.into(),
                ..asks("a=1")
            },
        ] {
            assert_eq!(verdicts.get(&question(&other)), None);
        }
        for number in 0..2 * REQUESTS_MAX {
            verdicts.keep(question(&asks(&format!("a={number}"))), None);
            assert!(verdicts.len() <= REQUESTS_MAX);
        }
        assert_eq!(VerdictKey::of(&asks("a=1"), &"a".repeat(REQUEST_BYTES_MAX + 1)), None);
        let reserved = JobSpec {
            reservation: Some(ReservationId(1)),
            ..asks("a=1")
        };
        assert_eq!(VerdictKey::of(&reserved, "-l a=1"), None);
    }
}
