//! Where each job stands in the queue of the order phase, and the numbers behind it.

use crate::collections::paged::PagedMap;
use crate::matching::formula::free_slots;
use crate::matching::{Cluster, Mode};
use crate::policy::class::ClassTasks;
use crate::policy::targets::{LeafUsage, Participants, Targets};
use crate::policy::tree::Tree;
use crate::policy::{Class, Classes, TreeTargets};
use crate::sched::model::Model;
use crate::sched::order::numbers::{TaskPhase, numbers};
use crate::sched::order::queue::{Bucket, BucketId, JobStanding};
use crate::sched::order::urgency::{Range, Urgency};
use crate::state::job::Job;
use proto::id::SubmitSeq;
use proto::time::Now;
use proto::wire::view::PriorityNumbers;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

/// The priority numbers of all jobs; many have the same.
#[derive(Clone, Debug, Default)]
pub struct Priorities {
    /// Of their pending tasks, or of their running ones if no other may start.
    pub jobs: PagedMap<SubmitSeq, Arc<PriorityNumbers>>,
    /// Of the running tasks of jobs of which others may start.
    pub running: PagedMap<SubmitSeq, Arc<PriorityNumbers>>,
}

/// Priority numbers as they are listed, job by job, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    priorities: Priorities,
    /// The last job that is in it.
    last: Option<SubmitSeq>,
    /// Numbers that several jobs may have.
    known: BTreeSet<Arc<PriorityNumbers>>,
}

/// The most different numbers that are looked through for each job. Where more differ, as by
/// waiting time, hardly any are the same.
const KNOWN_MAX: usize = 4_096;

impl Listing {
    /// Whether nothing is in it yet.
    pub(crate) fn is_new(&self) -> bool {
        self.last.is_none()
    }

    /// What has been listed.
    pub fn finish(self) -> Priorities {
        self.priorities
    }

    /// Numbers, shared with other jobs.
    fn shared(&mut self, numbers: PriorityNumbers) -> Arc<PriorityNumbers> {
        if let Some(known) = self.known.get(&numbers) {
            return known.clone();
        }
        let new = Arc::new(numbers);
        if self.known.len() < KNOWN_MAX {
            self.known.insert(new.clone());
        }
        new
    }
}

impl Model {
    /// The priority numbers of a job: of its next pending task, or of each of its running ones.
    pub fn priority_of(&self, seq: SubmitSeq, of: TaskPhase, now: Now) -> PriorityNumbers {
        numbers(
            &self.state,
            &self.queue,
            seq,
            of,
            self.queue.range(&self.state, now),
            now,
        )
    }

    /// Goes on with a listing by at most `count` jobs; whether all are in it. Each job has the
    /// numbers of the moment, as [`Model::priority_of`] says, at less cost for all of them
    /// together: of its pending tasks, or of its running ones if no other may start; and those of
    /// the running ones of jobs that have both.
    pub(crate) fn list(&self, listing: &mut Listing, count: usize, now: Now) -> bool {
        let range = self.queue.range(&self.state, now);
        let numbers = |seq: SubmitSeq, of: TaskPhase| numbers(&self.state, &self.queue, seq, of, range, now);
        let from = listing.last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut left = count;
        for (seq, job) in self.state.jobs.range((from, Bound::Unbounded)) {
            if left == 0 {
                return false;
            }
            left -= 1;
            let filed = self.queue.filed(*seq);
            let is_only_running = filed.is_some_and(|filed| filed.rests == JobStanding::Running) && !job.has_pending();
            if filed.is_some_and(|filed| filed.tasks.running > 0) && !is_only_running {
                let of_running = listing.shared(numbers(*seq, TaskPhase::Running));
                listing.priorities.running.insert(*seq, of_running);
            }
            let own = listing.shared(numbers(
                *seq,
                if is_only_running {
                    TaskPhase::Running
                } else {
                    TaskPhase::Pending
                },
            ));
            listing.priorities.jobs.insert(*seq, own);
            listing.last = Some(*seq);
        }
        true
    }

    /// Computes the tickets of all tasks anew if the classes or the number of free slots have
    /// changed, and always while the share tree is in use.
    pub(crate) fn price(&mut self, now: Now) {
        // A task more than could start now.
        let most = self.free_slots(self.rules.most_tasks, now) + 1;
        let is_other = self.queue.classes.take_changed() | self.queue.has_other_room(most);
        if is_other || self.rules.sharing.is_some() {
            let aims = self.aims(now);
            self.queue.price(&self.rules, aims.as_ref(), most);
        }
    }

    /// Whether so many tasks have been planned since tickets were priced that others are next to
    /// have some of their own.
    pub(crate) fn owes_pricing(&self) -> bool {
        self.queue.prices().planned >= self.rules.priced_tasks()
    }

    /// How many slots are free in queue instances that take jobs; more than `most` are not counted.
    fn free_slots(&mut self, most: usize, now: Now) -> usize {
        if self.queue.classes.is_empty() {
            return most;
        }
        let cluster = Cluster {
            planned: Some(&self.planned),
            now: now.tick,
            ..Cluster::of_state(&self.state, &self.observations, Mode::Now)
        };
        self.standings.refresh(&cluster, &self.instance_ids);
        let mut free = 0;
        for standing in self.standings.iter() {
            let slots = free_slots(&cluster, &cluster.site(&standing.instance)).unwrap_or(0);
            free += usize::try_from(slots).unwrap_or(0);
            if free >= most {
                return most;
            }
        }
        free
    }

    /// What the parts of the share tree are to get now, if the policy is on.
    fn aims(&self, now: Now) -> Option<TreeTargets> {
        let sharing = self.rules.sharing.as_ref()?;
        let usage = self.usage(&sharing.tree, now);
        let targets = |among: Participants| Targets::new(sharing, &self.queue.classes, &usage, among);
        Some(TreeTargets {
            pending: targets(Participants::All),
            running: targets(Participants::Running),
        })
    }

    /// What was used below each node of the share tree.
    pub(crate) fn usage(&self, tree: &Tree, now: Now) -> LeafUsage {
        let weights = self.state.config.scheduler.usage_weight_list;
        let mut usage = LeafUsage::default();
        for account in self.accounts() {
            let used = self.used(account, now).weighted(&weights);
            usage.add(
                tree,
                account.user.as_str(),
                account.project.as_deref(),
                used as f64 / 1e6,
            );
        }
        usage
    }

    /// Marks a job of which nothing may start as [`JobStanding::Apart`], until an event or its
    /// start time files it again. The start time is noted anew, because it lies ahead once more if
    /// the clock was set back.
    pub(crate) fn set_aside(&mut self, seq: SubmitSeq, now: Now) {
        if let Some(bucket) = self.queue.bucket(seq) {
            self.queue.file(seq, bucket, JobStanding::Apart, ClassTasks::default());
        }
        if let Some(job) = self.state.jobs.get(&seq) {
            self.alarms.note(job, now);
        }
    }

    /// Brings tickets and the order of the pending jobs to what they are now.
    pub(crate) fn refresh_queue(&mut self, range: Option<Range>, now: Now) {
        self.price(now);
        self.queue.refresh(&self.state, range, now);
    }

    /// Files all jobs of a user anew, because the user object, with its shares and override
    /// tickets, has changed.
    pub(crate) fn reclass(&mut self, user: &str) {
        let jobs: Vec<SubmitSeq> = self.state.index.jobs_of(&user.into()).collect();
        for seq in jobs {
            self.forget(seq);
            self.refile(seq);
        }
    }

    /// Files a job where it belongs now. What it asks for is looked up once, until
    /// [`Model::forget`].
    pub(crate) fn refile(&mut self, seq: SubmitSeq) {
        let Some(job) = self.state.jobs.get(&seq) else {
            return self.forget(seq);
        };
        let limit = self.state.config.scheduler.maxujobs;
        let owner = Some(&job.spec.owner.user).filter(|_| limit > 0);
        if let Some(owner) = owner {
            self.queue.set_full(owner, self.state.index.active_of(owner) >= limit);
        }
        self.alarms.note(job, self.time);
        let id = self.queue.bucket(seq).unwrap_or_else(|| {
            let (category, resources) = self.categories.enter(&self.state, job);
            let urgency = Urgency {
                resources,
                deadline: job.spec.deadline,
            };
            let reserve = job.spec.reserve && !job.spec.immediate && job.spec.reservation.is_none();
            let immediate = job.spec.immediate || job.spec.reservation.is_some();
            let class = self
                .queue
                .classes
                .enter(Class::of_job(&self.state.config, &self.rules, job));
            let bucket = Bucket {
                class,
                category,
                urgency,
                priority: job.spec.priority,
                reserve,
                immediate,
            };
            self.queue.number(bucket, owner)
        });
        let (rests, tasks) = self.counts(job, id, self.plans_of(seq));
        self.queue.file(seq, id, rests, tasks);
    }

    /// How a job of a bucket counts now, of which so many tasks are planned.
    pub(crate) fn counts(&self, job: &Job, id: BucketId, planned: u32) -> (JobStanding, ClassTasks) {
        let class = self.queue.at(id).class;
        let most = if class == Classes::WITHOUT || job.spec.array.is_none() {
            1
        } else {
            self.rules.most_tasks
        };
        // Tasks that `-tc` keeps back have no tickets, and take none from others.
        let most = most.min(self.room_beside(job, planned)).max(1);
        let waiting = u32::try_from(self.count_startable(job, planned, self.time, most)).unwrap_or(u32::MAX);
        let on_host = job.active.saturating_add(planned);
        let rests = if waiting > 0 {
            JobStanding::Pending
        } else if on_host > 0 {
            JobStanding::Running
        } else {
            JobStanding::Apart
        };
        let running = on_host.saturating_sub(self.state.index.suspended_of(job.seq));
        // What it asks for is not looked at where nobody asks.
        let has_tickets = class != Classes::WITHOUT;
        let pe = if has_tickets {
            job.spec.requests.pe.as_ref()
        } else {
            None
        };
        let slots = pe.map_or(1, |pe| pe.slots.least());
        (
            rests,
            ClassTasks {
                waiting,
                running,
                slots,
            },
        )
    }

    /// Forgets what a job asks for, and the job if it is gone.
    pub(crate) fn forget(&mut self, seq: SubmitSeq) {
        if let Some(bucket) = self.queue.take(seq) {
            self.categories.leave(bucket.category);
        }
        if !self.state.jobs.contains_key(&seq) {
            self.alarms.forget(seq);
        }
    }
}
