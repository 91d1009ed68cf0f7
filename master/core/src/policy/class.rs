//! Classes of jobs that the policies do not tell apart, and which jobs and how many running tasks
//! each has.

use super::rules::{DEPARTMENT, JOB, PROJECT, TicketRules, USER};
use super::tree::Leaf;
use crate::config::Configuration;
use crate::state::job::Job;
use proto::id::{SubmitSeq, UserName};
use std::collections::{BTreeMap, BTreeSet};

/// The number of a class. That of a class without jobs is given out again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassId(u32);

impl ClassId {
    /// Its place in tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A user, project or department with what it has of shares and override tickets. With other
/// numbers it is another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    name: String,
    shares: u32,
    tickets: u32,
}

/// All that decides about the tickets of a job, but for when it was submitted. What has no effect
/// is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    /// Its user, project and department, as far as they have shares or override tickets.
    objects: [Option<Object>; 3],
    job_shares: u32,
    override_tickets: u32,
    leaf: Option<Leaf>,
    /// Its owner, while `maxujobs` may keep all jobs of one owner from starting.
    owner: Option<UserName>,
}

impl Class {
    /// The class of a job.
    pub fn of_job(config: &Configuration, rules: &TicketRules, job: &Job) -> Class {
        let spec = &job.spec;
        let counts = |kind: usize| {
            rules
                .functional
                .is_some_and(|functional| functional.weights[kind] > 0.0)
        };
        let object = |kind: usize, name: &str, shares: u32, tickets: u32| {
            let shares = if counts(kind) { shares } else { 0 };
            (shares > 0 || tickets > 0).then(|| Object {
                name: name.to_owned(),
                shares,
                tickets,
            })
        };
        let user = config.users.get(spec.owner.user.as_str());
        let project = spec.project.as_ref().and_then(|name| config.projects.get(name));
        let department = config.user_sets.get(config.access.department_of(&spec.owner));
        let tree = rules.sharing.as_ref().map(|sharing| &sharing.tree);
        let leaf = tree.and_then(|tree| tree.leaf(spec.owner.user.as_str(), spec.project.as_deref()));
        Class {
            objects: [
                user.and_then(|user| object(USER, &user.name, user.fshare, user.oticket)),
                project.and_then(|project| object(PROJECT, &project.name, project.fshare, project.oticket)),
                department.and_then(|set| object(DEPARTMENT, &set.name, set.fshare, set.oticket)),
            ],
            job_shares: if counts(JOB) || leaf.is_some() {
                spec.job_share
            } else {
                0
            },
            override_tickets: spec.override_tickets,
            leaf,
            owner: (config.scheduler.maxujobs > 0).then(|| spec.owner.user.clone()),
        }
    }

    /// Whether its jobs have no tickets whatever happens.
    fn is_without(&self) -> bool {
        let Class {
            objects,
            job_shares,
            override_tickets,
            leaf,
            owner: _,
        } = self;
        objects.iter().all(Option::is_none) && (*job_shares, *override_tickets) == (0, 0) && leaf.is_none()
    }
}

/// How a job counts in its class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassTasks {
    /// Tasks that may start, as far as they are to have tickets.
    pub waiting: u32,
    /// Tasks that run and count.
    pub running: u32,
    /// The slots that each asks for at least.
    pub slots: u32,
}

impl ClassTasks {
    fn running_slots(self) -> u64 {
        u64::from(self.running) * u64::from(self.slots)
    }
}

/// What a class has of an object, a user say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stake {
    /// Which of the objects of its kind it is.
    pub place: usize,
    /// Its functional shares.
    pub shares: f64,
    /// Its override tickets.
    pub tickets: f64,
}

/// A class that has jobs.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// Its user, project and department.
    pub stakes: [Option<Stake>; 3],
    /// `-js` of each job.
    pub job_shares: f64,
    /// `-ot` of each job.
    pub override_tickets: f64,
    /// Where it is in the share tree.
    pub leaf: Option<Leaf>,
    /// Jobs with tasks that may start, oldest first.
    pub pending: BTreeSet<SubmitSeq>,
    /// How many tasks of theirs are to have tickets.
    pub waiting: u64,
    /// Whether their owner may start nothing more: pending tasks have no tickets then, and do not
    /// count.
    is_shut: bool,
    /// How many tasks run that count: suspended ones do not, unless their queue is what is
    /// suspended.
    pub running: u32,
    /// The slots that those asked for at least.
    pub running_slots: u64,
    /// Its jobs, whatever their state.
    jobs: usize,
    class: Class,
}

impl Members {
    /// Whether it has pending tasks that are to have tickets.
    pub fn is_waiting(&self) -> bool {
        !self.is_shut && !self.pending.is_empty()
    }

    /// How many pending tasks are to have tickets.
    pub fn waiting_tasks(&self) -> u64 {
        if self.is_shut { 0 } else { self.waiting }
    }
}

/// Objects of one kind, by number. A number without jobs is given out again.
#[derive(Clone, Debug, Default)]
struct ObjectNumbers {
    by_object: BTreeMap<Object, (usize, usize)>,
    free: Vec<usize>,
    size: usize,
}

impl ObjectNumbers {
    fn enter(&mut self, object: &Object) -> usize {
        if let Some((place, classes)) = self.by_object.get_mut(object) {
            *classes += 1;
            return *place;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.size += 1;
            self.size - 1
        });
        self.by_object.insert(object.clone(), (place, 1));
        place
    }

    fn leave(&mut self, object: &Object) {
        let (place, classes) = self.by_object.get_mut(object).expect("a class leaves what it entered");
        *classes -= 1;
        if *classes == 0 {
            self.free.push(*place);
            self.by_object.remove(object);
        }
    }
}

/// The classes of all jobs.
///
/// Invariant: `by_class` leads to exactly the members with jobs; the first class, which has no
/// tickets, is always there and keeps no jobs.
#[derive(Clone, Debug)]
pub struct Classes {
    by_class: BTreeMap<Class, ClassId>,
    members: Vec<Members>,
    free: Vec<ClassId>,
    objects: [ObjectNumbers; 3],
    is_changed: bool,
}

impl Default for Classes {
    fn default() -> Self {
        Classes {
            by_class: BTreeMap::new(),
            members: vec![Members::default()],
            free: Vec::new(),
            objects: Default::default(),
            is_changed: true,
        }
    }
}

impl Classes {
    /// The class of jobs without tickets.
    pub const WITHOUT: ClassId = ClassId(0);

    /// Counts a job in a class.
    pub fn enter(&mut self, class: Class) -> ClassId {
        if class.is_without() {
            return Classes::WITHOUT;
        }
        let known = self.by_class.get(&class).copied();
        let id = known.unwrap_or_else(|| self.create(class));
        self.members[id.index()].jobs += 1;
        id
    }

    fn create(&mut self, class: Class) -> ClassId {
        let mut stakes = [None; 3];
        for (kind, object) in class.objects.iter().enumerate() {
            stakes[kind] = object.as_ref().map(|object| Stake {
                place: self.objects[kind].enter(object),
                shares: f64::from(object.shares),
                tickets: f64::from(object.tickets),
            });
        }
        let members = Members {
            stakes,
            job_shares: f64::from(class.job_shares),
            override_tickets: f64::from(class.override_tickets),
            leaf: class.leaf.clone(),
            class: class.clone(),
            ..Members::default()
        };
        let id = self.free.pop().unwrap_or_else(|| {
            self.members.push(Members::default());
            ClassId(u32::try_from(self.members.len() - 1).expect("fewer classes than jobs"))
        });
        self.members[id.index()] = members;
        self.by_class.insert(class, id);
        id
    }

    /// A job is no longer in a class, in which none of its tasks counts any more.
    pub fn leave(&mut self, id: ClassId) {
        if id == Classes::WITHOUT {
            return;
        }
        let members = &mut self.members[id.index()];
        members.jobs -= 1;
        if members.jobs == 0 {
            let Members { class, .. } = std::mem::take(members);
            self.by_class.remove(&class);
            class.objects.iter().enumerate().for_each(|(kind, object)| {
                object.iter().for_each(|object| self.objects[kind].leave(object));
            });
            self.free.push(id);
        }
    }

    /// How a job counts in its class now, and how it did before.
    pub fn count(&mut self, id: ClassId, seq: SubmitSeq, before: ClassTasks, now: ClassTasks) {
        if id == Classes::WITHOUT || before == now {
            return;
        }
        let members = &mut self.members[id.index()];
        members.running = members.running - before.running + now.running;
        members.running_slots = members.running_slots - before.running_slots() + now.running_slots();
        members.waiting = members.waiting - u64::from(before.waiting) + u64::from(now.waiting);
        if now.waiting > 0 {
            members.pending.insert(seq);
        } else {
            members.pending.remove(&seq);
        }
        self.is_changed = true;
    }

    /// The owner of the jobs of a class may start nothing more, or may again.
    pub fn shut(&mut self, id: ClassId, is_shut: bool) {
        let members = &mut self.members[id.index()];
        if id != Classes::WITHOUT && members.is_shut != is_shut {
            members.is_shut = is_shut;
            self.is_changed |= !members.pending.is_empty();
        }
    }

    /// Whether anything has changed since this was asked last.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Whether no job has tickets.
    pub fn is_empty(&self) -> bool {
        self.by_class.is_empty()
    }

    /// How many numbers classes have at the most.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// How many objects of each kind there are at the most.
    pub fn objects(&self) -> [usize; 3] {
        [USER, PROJECT, DEPARTMENT].map(|kind| self.objects[kind].size)
    }

    /// A class.
    pub fn get(&self, id: ClassId) -> &Members {
        &self.members[id.index()]
    }

    /// The classes that have jobs.
    pub fn iter(&self) -> impl Iterator<Item = (ClassId, &Members)> {
        self.by_class.values().map(|id| (*id, &self.members[id.index()]))
    }
}
