//! The place of a pending job in the order in which jobs are looked at: what its priority is made
//! of, and who is in front of it.

use crate::sched::algorithm::Algorithm;
use crate::state::State;
use crate::state::eligible::{eligible_tasks, job_eligible, resting, user_eligible};
use crate::state::job::Job;
use proto::id::{JobNumber, SubmitSeq, UserName};
use proto::time::{Now, Wall};
use proto::wire::view::{JobInFront, OrderPosition, PriorityNumbers, PriorityTerm};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Jobs in front that are named.
const SHOWN: usize = 5;

/// What is told of a job's place in the order.
#[derive(Debug)]
pub enum PositionAnswer {
    /// Nothing: all of its tasks have been given to hosts, or it is gone.
    Nothing,
    /// It has none, and why.
    Apart(OrderPosition),
    /// What is found when each job has been looked at.
    Counted(Box<PositionCount>),
}

/// Where a job is in the order. `mine` are its priority numbers of the last pass.
pub fn place(state: &State, mine: &PriorityNumbers, seq: SubmitSeq, now: Now) -> PositionAnswer {
    let Some(job) = state.jobs.get(&seq) else {
        return PositionAnswer::Nothing;
    };
    let known = OrderPosition {
        prior: mine.prior,
        terms: terms(state, job, mine),
        ..OrderPosition::default()
    };
    let apart = match job_eligible(state, job, now.wall).and_then(|()| user_eligible(state, job)) {
        Err(why) => Some(why.text(state)),
        Ok(()) if eligible_tasks(state, job, now).next().is_some() => None,
        Ok(()) if resting(job, now).is_some() => Some("it asked to be run again".to_owned()),
        Ok(()) if job.tasks.values().any(|task| task.place.error().is_some()) => Some("it is in error".to_owned()),
        Ok(()) if !job.untouched.is_empty() || job.spec.holds.any() => Some("it is held".to_owned()),
        Ok(()) => return PositionAnswer::Nothing,
    };
    if let Some(why) = apart {
        let remark = format!(
            "none while it may not start ({why}): it is not looked at, and its urgency and tickets do not count"
        );
        return PositionAnswer::Apart(OrderPosition {
            remark: Some(remark),
            ..known
        });
    }
    match Algorithm::from_conf(&state.config.scheduler) {
        Algorithm::Default => PositionAnswer::Counted(Box::new(PositionCount::new(job, known, now))),
        Algorithm::Fcfs => PositionAnswer::Apart(without_place(
            known,
            "jobs start in the order of their submission (algorithm fcfs)",
        )),
        Algorithm::External => PositionAnswer::Apart(without_place(
            known,
            "a scheduler outside the master places jobs (algorithm external)",
        )),
    }
}

/// The numbers of a job where something else than priorities decides.
fn without_place(known: OrderPosition, why: &str) -> OrderPosition {
    OrderPosition {
        remark: Some(format!("not by priority: {why}")),
        ..known
    }
}

/// What jobs are ordered by: the smallest is first.
type Key = (Reverse<i64>, Wall, JobNumber);

fn key(job: &Job, prior: i64) -> Key {
    (Reverse(prior), job.submitted, job.number)
}

fn is_in_order(state: &State, job: &Job, now: Now) -> bool {
    let is_looked_at = job_eligible(state, job, now.wall)
        .and_then(|()| user_eligible(state, job))
        .is_ok();
    is_looked_at && eligible_tasks(state, job, now).next().is_some()
}

/// The place among all pending jobs that are looked at, while they are counted.
#[derive(Debug)]
pub struct PositionCount {
    mine: Key,
    now: Now,
    known: OrderPosition,
    in_front: u64,
    of: u64,
    nearest: BTreeMap<Key, JobInFront>,
    users: BTreeMap<UserName, u64>,
}

impl PositionCount {
    fn new(job: &Job, known: OrderPosition, now: Now) -> Self {
        let mine = key(job, known.prior);
        Self {
            mine,
            now,
            known,
            in_front: 0,
            of: 0,
            nearest: BTreeMap::new(),
            users: BTreeMap::new(),
        }
    }

    /// Looks at a job, of which each is to be shown once; `prior` is its priority.
    pub fn look(&mut self, state: &State, other: &Job, prior: i64) {
        if !is_in_order(state, other, self.now) {
            return;
        }
        self.of += 1;
        let its = key(other, prior);
        if its >= self.mine {
            return;
        }
        self.in_front += 1;
        let owner = &other.spec.owner.user;
        match self.users.get_mut(owner) {
            Some(count) => *count += 1,
            None => drop(self.users.insert(owner.clone(), 1)),
        }
        if self.nearest.len() < SHOWN || self.nearest.first_key_value().is_some_and(|(first, _)| *first < its) {
            self.nearest.insert(
                its,
                JobInFront {
                    job: other.number,
                    owner: owner.clone(),
                    prior,
                },
            );
        }
        if self.nearest.len() > SHOWN {
            self.nearest.pop_first();
        }
    }

    /// What was found so far.
    pub fn place(&self) -> OrderPosition {
        let mut users: Vec<_> = self.users.iter().map(|(user, count)| (user.clone(), *count)).collect();
        users.sort_by_key(|(_, count)| Reverse(*count));
        users.truncate(SHOWN);
        let in_front = self.nearest.values().rev().cloned().collect();
        let place = Some(self.in_front + 1);
        OrderPosition {
            place,
            of: self.of,
            in_front,
            users_in_front: users,
            ..self.known.clone()
        }
    }
}

/// The three terms of a priority.
fn terms(state: &State, job: &Job, numbers: &PriorityNumbers) -> Vec<PriorityTerm> {
    let conf = &state.config.scheduler;
    let of = |name: &str, raw: i64, parts: &[(&str, i64)], normalised: i64, weight: i64| PriorityTerm {
        name: name.to_owned(),
        raw,
        parts: parts
            .iter()
            .map(|(name, number)| ((*name).to_owned(), *number))
            .collect(),
        normalised,
        weight,
        value: product(normalised, weight),
    };
    let whole = |number: i64| number.saturating_mul(1_000_000);
    let PriorityNumbers {
        npprior,
        nurg,
        ntckts,
        urg,
        rrcontr,
        wtcontr,
        dlcontr,
        ..
    } = *numbers;
    let PriorityNumbers {
        tckts,
        otckt,
        ftckt,
        stckt,
        ..
    } = *numbers;
    let urgent = [("resources", rrcontr), ("waiting", wtcontr), ("deadline", dlcontr)];
    let ticketed = [
        ("override", whole(otckt)),
        ("functional", whole(ftckt)),
        ("share tree", whole(stckt)),
    ];
    vec![
        of(
            "posix priority",
            whole(i64::from(job.spec.priority)),
            &[],
            npprior,
            conf.weight_priority.millionths(),
        ),
        of("urgency", urg, &urgent, nurg, conf.weight_urgency.millionths()),
        of(
            "tickets",
            whole(tckts),
            &ticketed,
            ntckts,
            conf.weight_ticket.millionths(),
        ),
    ]
}

/// Two numbers in millionths multiplied, rounded to nearest.
fn product(one: i64, other: i64) -> i64 {
    let product = (i128::from(one) * i128::from(other) + 500_000).div_euclid(1_000_000);
    i64::try_from(product).unwrap_or(i64::MAX)
}
