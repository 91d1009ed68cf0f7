//! The rules by which the slots of a parallel job spread over hosts. Arithmetic only.

use super::hosts::HostRoom;
use proto::job::Granted;
use proto::pe::AllocationRule;
use proto::request::SlotRange;

/// The slots of a job: as many as `range` accepts, `most` allows and the hosts have, the master first.
///
/// The master is on the first host that can take it, and one slot there is kept for it.
///
/// # Errors
/// With the most slots that the rule could place, if no number of the range can be.
pub fn spread(rule: AllocationRule, range: &SlotRange, most: u32, hosts: &[HostRoom]) -> Result<Vec<Granted>, u32> {
    match rule {
        AllocationRule::PeSlots => on_one_host(range, most, hosts),
        AllocationRule::FillUp => over_hosts(range, most, hosts, fill_up_with_master),
        AllocationRule::RoundRobin => over_hosts(range, most, hosts, round_robin),
        AllocationRule::Fixed(each) => in_portions(each, range, most, hosts),
    }
}

fn on_one_host(range: &SlotRange, most: u32, hosts: &[HostRoom]) -> Result<Vec<Granted>, u32> {
    let room = |host: &HostRoom| host.master.map_or(0, |master| master.slots.min(most));
    let offered = hosts.iter().map(room).max().unwrap_or(0);
    let slots = range.largest_within(offered).ok_or(offered)?;
    let host = hosts.iter().find(|host| room(host) >= slots).ok_or(offered)?;
    Ok(master_first(&[(host, slots)], 0))
}

/// Spreads the largest number that is feasible by a rule that uses up all the room if it has to.
fn over_hosts(
    range: &SlotRange,
    most: u32,
    hosts: &[HostRoom],
    rule: fn(u32, &[u32], usize) -> Vec<u32>,
) -> Result<Vec<Granted>, u32> {
    let (master, rooms) = rooms_with_master(hosts).ok_or(0u32)?;
    let offered = rooms.iter().copied().fold(0, u32::saturating_add).min(most);
    let slots = range.largest_within(offered).ok_or(offered)?;
    Ok(granted(hosts, &rule(slots, &rooms, master), master))
}

/// Exactly `each` slots on every host that is used.
fn in_portions(each: u32, range: &SlotRange, most: u32, hosts: &[HostRoom]) -> Result<Vec<Granted>, u32> {
    let master = hosts.iter().position(|host| host.master.is_some_and(|master| master.slots >= each)).ok_or(0u32)?;
    let usable = |(index, host): (usize, &HostRoom)| index == master || host.slots >= each;
    let count = hosts.iter().enumerate().filter(|host| usable(*host)).count();
    let portions = (most / each).min(u32::try_from(count).unwrap_or(u32::MAX));
    let portions = (1..=portions).rev().find(|portions| range.contains(portions * each)).ok_or(portions * each)?;
    let mut left = portions - 1;
    let taken = hosts.iter().enumerate().map(|(index, host)| {
        let takes = index == master || (left > 0 && usable((index, host)));
        left -= u32::from(takes && index != master);
        if takes { each } else { 0 }
    });
    let taken: Vec<u32> = taken.collect();
    Ok(granted(hosts, &taken, master))
}

/// The host that takes the master, and the slots that each host then has.
fn rooms_with_master(hosts: &[HostRoom]) -> Option<(usize, Vec<u32>)> {
    let (index, slots) = hosts.iter().enumerate().find_map(|(index, host)| Some((index, host.master?.slots)))?;
    let mut rooms: Vec<u32> = hosts.iter().map(|host| host.slots).collect();
    rooms[index] = slots;
    Some((index, rooms))
}

/// As many as fit on a host, then the next one.
fn fill_up(slots: u32, rooms: &[u32]) -> Vec<u32> {
    let mut left = slots;
    let take = |room: &u32| {
        let taken = left.min(*room);
        left -= taken;
        taken
    };
    rooms.iter().map(take).collect()
}

/// As many as fit on a host, then the next one; one slot of the master's host is kept for it.
fn fill_up_with_master(slots: u32, rooms: &[u32], master: usize) -> Vec<u32> {
    let mut rooms = rooms.to_vec();
    rooms[master] -= 1;
    let mut taken = fill_up(slots - 1, &rooms);
    taken[master] += 1;
    taken
}

/// One on each host in turn; in the first round the master has its slot already.
fn round_robin(slots: u32, rooms: &[u32], master: usize) -> Vec<u32> {
    let mut taken = vec![0; rooms.len()];
    taken[master] = 1;
    let mut left = slots - 1;
    for round in 1..=rooms.iter().copied().max().unwrap_or(0) {
        if left == 0 {
            break;
        }
        for (taken, room) in taken.iter_mut().zip(rooms) {
            if left > 0 && *taken < round.min(*room) {
                *taken += 1;
                left -= 1;
            }
        }
    }
    taken
}

fn granted(hosts: &[HostRoom], taken: &[u32], master: usize) -> Vec<Granted> {
    let used: Vec<(&HostRoom, u32)> = hosts.iter().zip(taken.iter().copied()).filter(|(_, slots)| *slots > 0).collect();
    let before = taken[..master].iter().filter(|slots| **slots > 0).count();
    master_first(&used, before)
}

/// The slots of each host taken from its instances in their order, beginning with the host of the master, whose own instance
/// comes first and gives at least one.
fn master_first(used: &[(&HostRoom, u32)], master: usize) -> Vec<Granted> {
    let (host, slots) = used[master];
    let (at, most) = host.master.map_or((0, 1), |master| (master.at, master.in_instance));
    let mut rooms: Vec<u32> = host.instances.iter().map(|(_, room)| *room).collect();
    rooms[at] = rooms[at].min(most).saturating_sub(1);
    let mut taken = fill_up(slots - 1, &rooms);
    taken[at] += 1;
    let mut granted = part(host, &taken);
    let first = granted.iter().position(|part| part.instance == host.instances[at].0).unwrap_or(0);
    granted[..=first].rotate_right(1);
    for (_, (host, slots)) in used.iter().enumerate().filter(|(index, _)| *index != master) {
        let rooms: Vec<u32> = host.instances.iter().map(|(_, room)| *room).collect();
        granted.extend(part(host, &fill_up(*slots, &rooms)));
    }
    granted
}

fn part(host: &HostRoom, taken: &[u32]) -> Vec<Granted> {
    let parts = host.instances.iter().zip(taken).filter(|(_, slots)| **slots > 0);
    parts.map(|((instance, _), slots)| Granted { instance: instance.clone(), slots: *slots }).collect()
}
