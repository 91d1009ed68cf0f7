//! The room that resource quotas leave on hosts, for a parallel job whose slots are laid out by a
//! rule.
//!
//! Hosts and instances share limits, so slots that one of them takes are missing on the next. Slots
//! are therefore taken from the quotas in the very order in which the rule will hand them out. The
//! rule can then use the rest as if there were no quotas.

use super::hosts::{HostRoom, MasterRoom};
use super::spread::SlotMaximum;
use crate::matching::quota::QuotaBudget;
use proto::id::QueueInstanceName;
use proto::pe::AllocationRule;
use proto::request::SlotRange;

/// The most places for the master that are tried while there are too few slots after it: on large
/// cells not all can be tried.
const MASTERS_MAX: usize = 8;

/// The hosts after which no other place for the master is tried; and the queue instances, or pairs
/// of them, that are looked at for a slot that could move, per place of the master. Large cells may
/// have millions of pairs.
const LOOKS_MAX: usize = 10_000;

/// The hosts with the room that the quotas leave for at most `most` slots that the job accepts.
/// `extra` is the slot of a master that is not a task. If `masters_differ`, other places for the
/// master are tried as long as there are fewer slots than that; otherwise the first that leaves
/// enough is taken, because all leave much the same.
pub fn within(
    budget: &mut QuotaBudget<'_>,
    rule: AllocationRule,
    wanted: &SlotRange,
    most: SlotMaximum,
    (extra, masters_differ): (u32, bool),
    hosts: Vec<HostRoom>,
) -> Vec<HostRoom> {
    let (most, elsewhere) = (wanted.largest().min(most.in_all), most.elsewhere);
    let enough = if masters_differ { most } else { wanted.least() };
    if budget.is_boundless() {
        return hosts;
    }
    if rule == AllocationRule::PeSlots {
        return each_alone(budget, most, extra, &hosts);
    }
    let least = if let AllocationRule::Fixed(each) = rule {
        each
    } else {
        1
    };
    let (mut best, mut tried) = (None, 0);
    for (at, master) in seats(&hosts, least) {
        let needed = master.own + extra;
        // Used-up quotas are so for every place: a trial for each would cost the square of the
        // hosts.
        if budget.most(&hosts[at].instances[master.at].0, needed, true) < needed {
            continue;
        }
        let mut trial = budget.clone();
        let mut plan = Plan::new(&hosts, elsewhere);
        if !plan.master(&mut trial, at, master, extra) {
            budget.note(trial);
            continue;
        }
        let is_placed = match rule {
            AllocationRule::Fixed(each) => plan.portions(&mut trial, each, most, at),
            AllocationRule::RoundRobin => plan.round_robin(&mut trial, most),
            AllocationRule::FillUp | AllocationRule::PeSlots => plan.fill_up(&mut trial, most),
        };
        budget.note(trial);
        if !is_placed {
            continue;
        }
        tried += 1;
        let slots = plan.in_all;
        if best.as_ref().is_none_or(|(most, _)| slots > *most) {
            best = Some((slots, plan.rooms()));
        }
        // Each try looks at all hosts.
        if slots >= enough || tried == MASTERS_MAX || tried * hosts.len() >= LOOKS_MAX {
            break;
        }
    }
    best.map_or_else(Vec::new, |(_, rooms)| rooms)
}

/// Whether later hosts change nothing in the result of [`within`]: by the rule alone, the first
/// place for the master that the quotas allow has as many slots on these hosts as are wanted at
/// most.
pub fn leave_enough(
    budget: &QuotaBudget<'_>,
    rule: AllocationRule,
    wanted: &SlotRange,
    most: SlotMaximum,
    extra: u32,
    hosts: &[HostRoom],
) -> bool {
    if budget.is_boundless() {
        return true;
    }
    let (elsewhere, most) = (most.elsewhere, wanted.largest().min(most.in_all));
    let mut budget = budget.clone();
    let least = match rule {
        AllocationRule::PeSlots => {
            return each_alone(&mut budget, most, extra, hosts)
                .iter()
                .any(|room| room.slots >= most);
        }
        AllocationRule::Fixed(each) => each,
        AllocationRule::FillUp | AllocationRule::RoundRobin => 1,
    };
    for (at, master) in seats(hosts, least) {
        let needed = master.own + extra;
        if budget.most(&hosts[at].instances[master.at].0, needed, true) < needed {
            continue;
        }
        let (mut plan, mut trial) = (Plan::new(hosts, elsewhere), budget.clone());
        if !plan.master(&mut trial, at, master, extra) {
            continue;
        }
        match rule {
            AllocationRule::Fixed(each) if !plan.portions(&mut trial, each, most, at) => continue,
            AllocationRule::Fixed(each) => return plan.in_all.saturating_add(each) > most,
            AllocationRule::RoundRobin => plan.first_round(&mut trial, most),
            AllocationRule::FillUp | AllocationRule::PeSlots => plan.in_order(&mut trial, most),
        }
        return plan.in_all >= most;
    }
    false
}

/// The places for the master, for a rule that uses at least so many slots of a host.
fn seats(hosts: &[HostRoom], least: u32) -> impl Iterator<Item = (usize, MasterRoom)> {
    let all = hosts.iter().enumerate();
    let all = all.flat_map(|(at, host)| host.masters().map(move |master| (at, master)));
    all.filter(move |(_, master)| master.slots >= least || master.own == 0)
}

/// Each host as if the whole job were there. If nobody asks for reasons, hosts with no more room
/// than one before them are left out, because the first with most is taken.
fn each_alone(budget: &mut QuotaBudget<'_>, most: u32, extra: u32, hosts: &[HostRoom]) -> Vec<HostRoom> {
    let mut rooms: Vec<HostRoom> = Vec::new();
    let mut found = 0;
    for host in hosts {
        let Some(at_best) = host.masters().map(|master| master.slots.min(most)).max() else {
            continue;
        };
        if at_best <= found && !budget.explains() {
            continue;
        }
        let mut best: Option<HostRoom> = None;
        for master in host.masters() {
            let mut trial = budget.clone();
            let mut plan = Plan::new(std::slice::from_ref(host), 0);
            if plan.master(&mut trial, 0, master, extra) {
                plan.fill_up(&mut trial, most);
                let more = |room: &HostRoom| best.as_ref().is_none_or(|best| room.slots > best.slots);
                best = plan.rooms().pop().filter(more).or(best);
            }
            budget.note(trial);
        }
        found = best.as_ref().map_or(found, |best| found.max(best.slots));
        rooms.extend(best);
    }
    rooms
}

/// The slots taken so far, by host and instance.
struct Plan<'a> {
    hosts: &'a [HostRoom],
    taken: Vec<Vec<u32>>,
    /// The sum of these.
    in_all: u32,
    master: Option<(usize, MasterRoom)>,
    /// The most slots on other hosts than the master's.
    elsewhere: u32,
    /// The rest of [`LOOKS_MAX`].
    looks: usize,
}

impl<'a> Plan<'a> {
    fn new(hosts: &'a [HostRoom], elsewhere: u32) -> Plan<'a> {
        Plan {
            hosts,
            taken: hosts.iter().map(|host| vec![0; host.instances.len()]).collect(),
            in_all: 0,
            master: None,
            elsewhere,
            looks: LOOKS_MAX,
        }
    }

    /// The slots of the master itself.
    fn master(&mut self, budget: &mut QuotaBudget<'_>, host: usize, room: MasterRoom, extra: u32) -> bool {
        let is_taken = budget.take(&self.hosts[host].instances[room.at].0, room.own + extra, true);
        if is_taken {
            self.taken[host][room.at] = room.own;
            self.in_all += room.own;
            self.master = Some((host, room));
        }
        is_taken
    }

    fn on_host(&self, host: usize) -> u32 {
        self.taken[host].iter().sum()
    }

    /// Gives back the slots that were taken on a host.
    fn clear(&mut self, host: usize) {
        self.in_all -= self.on_host(host);
        self.taken[host].fill(0);
    }

    /// The room of a host, as the master leaves it.
    fn room(&self, host: usize) -> (u32, Option<MasterRoom>) {
        let master = self.master.filter(|(at, _)| *at == host).map(|(_, master)| master);
        (master.map_or(self.hosts[host].slots, |master| master.slots), master)
    }

    /// The number of further slots that a host may have, given all that other hosts have.
    fn spare(&self, host: usize) -> u32 {
        match self.master {
            Some((of_master, _)) if of_master != host && self.elsewhere < u32::MAX => {
                self.elsewhere.saturating_sub(self.in_all - self.on_host(of_master))
            }
            Some(_) | None => u32::MAX,
        }
    }

    /// Takes at most so many further slots on a host, and returns how many.
    fn add(&mut self, budget: &mut QuotaBudget<'_>, host: usize, most: u32) -> u32 {
        let (room, master) = self.room(host);
        let mut left = most.min(room.saturating_sub(self.on_host(host))).min(self.spare(host));
        let wanted = left;
        for (at, (instance, slots)) in self.hosts[host].instances.iter().enumerate() {
            let slots = master.map_or(*slots, |master| self.hosts[host].beside(master, at));
            let free = slots.saturating_sub(self.taken[host][at]).min(left);
            if free == 0 {
                continue;
            }
            let taken = budget.most(instance, free, false);
            if taken > 0 && budget.take(instance, taken, false) {
                self.taken[host][at] += taken;
                self.in_all += taken;
                left -= taken;
            }
        }
        wanted - left
    }

    fn name(&self, (host, at): (usize, usize)) -> &'a QueueInstanceName {
        &self.hosts[host].instances[at].0
    }

    /// Whether an instance has as many slots as it could.
    fn is_full(&self, (host, at): (usize, usize)) -> bool {
        let of_host = &self.hosts[host];
        let room = self
            .room(host)
            .1
            .map_or(of_host.instances[at].1, |master| of_host.beside(master, at));
        self.taken[host][at] >= room
    }

    /// Moves a slot to another instance of its host, if that makes room in the quotas for a slot on
    /// a host that has room otherwise. Returns false if nothing can be moved.
    ///
    /// By the order of the rule, the first hosts may take from a quota what others need more. If
    /// all instances of a host are under the same quotas, there is nothing to gain.
    fn exchange(&mut self, budget: &mut QuotaBudget<'_>) -> bool {
        if self.hosts.iter().all(|host| host.instances.len() < 2) {
            return false;
        }
        let of_host = |(host, room): (usize, &HostRoom)| (0..room.instances.len()).map(move |at| (host, at));
        let places: Vec<(usize, usize)> = self.hosts.iter().enumerate().flat_map(of_host).collect();
        // One instance stands for all that the same quotas keep out.
        let mut wanting: Vec<(usize, usize)> = Vec::new();
        for place in places.iter().copied() {
            if self.has_looked_enough(1 + wanting.len()) {
                break;
            }
            let has_room =
                !self.is_full(place) && self.on_host(place.0) < self.room(place.0).0 && self.spare(place.0) > 0;
            let is_kept_out = has_room && budget.most(self.name(place), 1, false) == 0;
            if is_kept_out
                && !wanting
                    .iter()
                    .any(|other| budget.are_alike(self.name(*other), self.name(place)))
            {
                wanting.push(place);
            }
        }
        let moves = wanting
            .iter()
            .flat_map(|to| places.iter().map(move |from| (*from, *to)));
        for (from, to) in moves {
            if self.has_looked_enough(1) {
                return false;
            }
            let of_master = self.master.is_some_and(|(host, master)| (host, master.at) == from);
            let own = self.master.filter(|_| of_master).map_or(0, |(_, master)| master.own);
            let is_spare = self.taken[from.0][from.1] > own;
            if is_spare && budget.are_alike(self.name(from), self.name(to)) && self.move_one(budget, from, to) {
                return true;
            }
        }
        false
    }

    /// Counts looks. Returns true once there were enough.
    fn has_looked_enough(&mut self, looks: usize) -> bool {
        self.looks = self.looks.saturating_sub(looks);
        self.looks == 0
    }

    /// Moves a slot to another instance of its host, and takes one elsewhere. Returns false, with
    /// nothing done, if that is not possible.
    fn move_one(&mut self, budget: &mut QuotaBudget<'_>, from: (usize, usize), to: (usize, usize)) -> bool {
        for at in (0..self.taken[from.0].len()).filter(|at| *at != from.1) {
            let over = (from.0, at);
            // A trial costs as much as there are hosts.
            if self.is_full(over) || self.has_looked_enough(self.hosts.len()) {
                continue;
            }
            let mut trial = budget.clone();
            trial.give_back(self.name(from), 1);
            if trial.take(self.name(over), 1, false) && trial.take(self.name(to), 1, false) {
                *budget = trial;
                self.taken[from.0][from.1] -= 1;
                self.taken[over.0][over.1] += 1;
                self.taken[to.0][to.1] += 1;
                self.in_all += 1;
                return true;
            }
        }
        false
    }

    fn fill_up(&mut self, budget: &mut QuotaBudget<'_>, most: u32) -> bool {
        self.in_order(budget, most);
        while self.in_all < most && self.exchange(budget) {}
        true
    }

    /// As many as fit on a host, then the next one.
    fn in_order(&mut self, budget: &mut QuotaBudget<'_>, most: u32) {
        for host in 0..self.hosts.len() {
            let left = most.saturating_sub(self.in_all);
            if left == 0 {
                break;
            }
            self.add(budget, host, left);
        }
    }

    fn round_robin(&mut self, budget: &mut QuotaBudget<'_>, most: u32) -> bool {
        let mut open: Vec<usize> = (0..self.hosts.len()).collect();
        self.first_round(budget, most);
        while self.in_all < most && !open.is_empty() {
            open.retain(|host| self.in_all >= most || self.add(budget, *host, 1) > 0);
        }
        while self.in_all < most && self.exchange(budget) {}
        true
    }

    /// One on each host except the master's, which has a slot already.
    fn first_round(&mut self, budget: &mut QuotaBudget<'_>, most: u32) {
        for host in 0..self.hosts.len() {
            if self.in_all >= most {
                break;
            }
            if self.master.is_none_or(|(at, master)| at != host || master.own == 0) {
                self.add(budget, host, 1);
            }
        }
    }

    /// Exactly `each` slots on a host or none. Returns false if those of the master have no room.
    fn portions(&mut self, budget: &mut QuotaBudget<'_>, each: u32, most: u32, master: usize) -> bool {
        let own = self.on_host(master);
        let mut trial = budget.clone();
        if self.add(&mut trial, master, each - own) == each - own {
            *budget = trial;
        } else {
            budget.note(trial);
            if own > 0 {
                return false;
            }
            self.clear(master);
        }
        for host in (0..self.hosts.len()).filter(|host| *host != master) {
            if self.in_all.saturating_add(each) > most {
                break;
            }
            let mut trial = budget.clone();
            if self.add(&mut trial, host, each) == each {
                *budget = trial;
            } else {
                budget.note(trial);
                self.clear(host);
            }
        }
        true
    }

    /// What was taken, as room.
    fn rooms(self) -> Vec<HostRoom> {
        let rooms = self
            .hosts
            .iter()
            .zip(&self.taken)
            .enumerate()
            .map(|(index, (host, taken))| {
                let slots = taken.iter().sum();
                let room = self.room(index).1;
                HostRoom {
                    instances: host
                        .instances
                        .iter()
                        .zip(taken)
                        .map(|((name, _), slots)| (name.clone(), *slots))
                        .collect(),
                    slots,
                    master: room.map(|room| MasterRoom {
                        in_instance: taken[room.at],
                        slots,
                        ..room
                    }),
                    others: Vec::new(),
                    companions: None,
                }
            });
        rooms.filter(|host| host.slots > 0 || host.master.is_some()).collect()
    }
}
