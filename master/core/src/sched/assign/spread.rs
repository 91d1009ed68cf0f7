//! The rules by which the slots of a parallel job spread over hosts. Arithmetic only.

use super::hosts::{HostRoom, MasterRoom};
use proto::job::GrantedSlots;
use proto::pe::AllocationRule;
use proto::request::SlotRange;

/// The most slots that a job may have.
#[derive(Clone, Copy, Debug)]
pub struct SlotMaximum {
    /// Wherever they are.
    pub in_all: u32,
    /// On other hosts than the master's.
    pub elsewhere: u32,
}

/// The slots of a job, the master first: as many as `range` accepts, `most` allows and the hosts
/// have.
///
/// The master is on the first host that can take it and leaves room for most slots, and one slot
/// there is kept for it.
///
/// # Errors
/// With the most slots that the rule could place, if no number of the range can be.
pub fn spread(
    rule: AllocationRule,
    range: &SlotRange,
    most: SlotMaximum,
    hosts: &[HostRoom],
) -> Result<Vec<GrantedSlots>, u32> {
    match rule {
        AllocationRule::PeSlots => on_one_host(range, most.in_all, hosts),
        AllocationRule::FillUp => over_hosts(range, most, hosts, fill_up_with_master),
        AllocationRule::RoundRobin => over_hosts(range, most, hosts, round_robin),
        AllocationRule::Fixed(each) => in_portions(each, range, most, hosts),
    }
}

/// A place for the master: the host by its number, and how it takes the master.
#[derive(Clone, Copy)]
struct Seat {
    host: usize,
    room: MasterRoom,
}

/// Slots that are kept for the master on its host.
#[derive(Clone, Copy)]
struct MasterSlots {
    host: usize,
    slots: u32,
}

fn seats(hosts: &[HostRoom]) -> impl Iterator<Item = Seat> {
    let all = hosts.iter().enumerate();
    all.flat_map(|(host, room)| room.masters().map(move |room| Seat { host, room }))
}

/// The first place for the master with which the job has most slots, and their number. `offered`
/// gives the slots for a place.
///
/// # Errors
/// With the most that is offered, if no number of the range is.
fn best_seat(
    range: &SlotRange,
    most: u32,
    hosts: &[HostRoom],
    offered: impl Fn(Seat) -> u32,
) -> Result<(Seat, u32), u32> {
    let (mut best, mut most_offered) = (None, 0);
    for seat in seats(hosts) {
        let offered = offered(seat).min(most);
        if offered <= most_offered {
            continue;
        }
        most_offered = offered;
        let slots = range.largest_within(offered).unwrap_or(0);
        if slots > best.map_or(0, |(_, slots)| slots) {
            best = Some((seat, slots));
            if range.largest_within(most) == Some(slots) {
                break;
            }
        }
    }
    best.ok_or(most_offered)
}

fn on_one_host(range: &SlotRange, most: u32, hosts: &[HostRoom]) -> Result<Vec<GrantedSlots>, u32> {
    let (Seat { host: _, room: best }, slots) = best_seat(range, most, hosts, |seat| seat.room.slots)?;
    // The first of the places with room for as many.
    let seat = seats(hosts).find(|seat| seat.room.slots >= slots).ok_or(best.slots)?;
    Ok(master_first(&[(&hosts[seat.host], slots)], 0, seat.room))
}

/// Spreads the largest feasible number by a rule that can use all the room.
fn over_hosts(
    range: &SlotRange,
    most: SlotMaximum,
    hosts: &[HostRoom],
    rule: fn(u32, &[u32], MasterSlots) -> Vec<u32>,
) -> Result<Vec<GrantedSlots>, u32> {
    let all: u64 = hosts.iter().map(|host| u64::from(host.slots)).sum();
    let elsewhere = |seat: Seat| {
        let others = all - u64::from(hosts[seat.host].slots);
        u32::try_from(others).unwrap_or(u32::MAX).min(most.elsewhere)
    };
    let offered = |seat: Seat| elsewhere(seat).saturating_add(seat.room.slots);
    let (seat, slots) = best_seat(range, most.in_all, hosts, offered)?;
    let mut left = most.elsewhere;
    let rooms = hosts.iter().enumerate().map(|(index, host)| {
        if index == seat.host {
            return seat.room.slots;
        }
        let room = host.slots.min(left);
        left -= room;
        room
    });
    let rooms: Vec<u32> = rooms.collect();
    Ok(granted(
        hosts,
        &rule(
            slots,
            &rooms,
            MasterSlots {
                host: seat.host,
                slots: seat.room.own,
            },
        ),
        seat,
    ))
}

/// Exactly `each` slots on every host that is used; a master without a slot of its own may be where
/// no others are.
fn in_portions(each: u32, range: &SlotRange, most: SlotMaximum, hosts: &[HostRoom]) -> Result<Vec<GrantedSlots>, u32> {
    let is_usable = |index: usize| hosts[index].slots >= each;
    let count = (0..hosts.len()).filter(|index| is_usable(*index)).count();
    let portions = |seat: Seat| {
        let others = u32::try_from(count - usize::from(is_usable(seat.host))).unwrap_or(u32::MAX);
        let elsewhere = others.min(most.elsewhere / each);
        match (seat.room.slots >= each, seat.room.own) {
            (true, _) => elsewhere.saturating_add(1).min(most.in_all / each),
            (false, 0) => elsewhere.min(most.in_all / each),
            (false, _) => 0,
        }
    };
    let accepted = |portions: u32| (1..=portions).rev().find(|portions| range.contains(portions * each));
    let (mut best, mut most_offered) = (None, 0);
    for seat in seats(hosts) {
        if portions(seat) > most_offered {
            most_offered = portions(seat);
            let more = accepted(most_offered).filter(|portions| best.is_none_or(|(_, known)| *portions > known));
            best = more.map(|portions| (seat, portions)).or(best);
        }
    }
    let (seat, portions) = best.ok_or(most_offered * each)?;
    let is_with_master = seat.room.slots >= each;
    let mut left = portions - u32::from(is_with_master);
    let taken = (0..hosts.len()).map(|index| {
        if index == seat.host {
            return if is_with_master { each } else { 0 };
        }
        let takes = left > 0 && is_usable(index);
        left -= u32::from(takes);
        if takes { each } else { 0 }
    });
    let taken: Vec<u32> = taken.collect();
    Ok(granted(hosts, &taken, seat))
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

/// As many as fit on a host, then the next one; the slot of the master is kept for it on its host.
fn fill_up_with_master(slots: u32, rooms: &[u32], kept: MasterSlots) -> Vec<u32> {
    let mut rooms = rooms.to_vec();
    rooms[kept.host] -= kept.slots;
    let mut taken = fill_up(slots - kept.slots, &rooms);
    taken[kept.host] += kept.slots;
    taken
}

/// One on each host in turn; in the first round the master has its slot already.
fn round_robin(slots: u32, rooms: &[u32], kept: MasterSlots) -> Vec<u32> {
    let mut taken = vec![0; rooms.len()];
    taken[kept.host] = kept.slots;
    let mut left = slots - kept.slots;
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

fn granted(hosts: &[HostRoom], taken: &[u32], seat: Seat) -> Vec<GrantedSlots> {
    let all = hosts.iter().zip(taken.iter().copied()).enumerate();
    let used = all
        .filter(|(index, (_, slots))| *slots > 0 || *index == seat.host)
        .map(|(_, used)| used);
    let used: Vec<(&HostRoom, u32)> = used.collect();
    let before = taken[..seat.host].iter().filter(|slots| **slots > 0).count();
    master_first(&used, before, seat.room)
}

/// The slots of each host taken from its instances in their order, beginning with the host of the
/// master, whose own instance comes first and gives at least the master's own.
fn master_first(used: &[(&HostRoom, u32)], master: usize, room: MasterRoom) -> Vec<GrantedSlots> {
    let (host, slots) = used[master];
    let mut rooms: Vec<u32> = (0..host.instances.len()).map(|at| host.beside(room, at)).collect();
    rooms[room.at] = rooms[room.at].saturating_sub(room.own);
    let mut taken = fill_up(slots - room.own, &rooms);
    let of_master = taken[room.at] + room.own;
    taken[room.at] = 0;
    let mut granted = vec![GrantedSlots {
        instance: host.instances[room.at].0.clone(),
        slots: of_master,
    }];
    granted.extend(part(host, &taken));
    for (_, (host, slots)) in used.iter().enumerate().filter(|(index, _)| *index != master) {
        let rooms: Vec<u32> = host.instances.iter().map(|(_, room)| *room).collect();
        granted.extend(part(host, &fill_up(*slots, &rooms)));
    }
    granted
}

fn part(host: &HostRoom, taken: &[u32]) -> Vec<GrantedSlots> {
    let parts = host.instances.iter().zip(taken).filter(|(_, slots)| **slots > 0);
    parts
        .map(|((instance, _), slots)| GrantedSlots {
            instance: instance.clone(),
            slots: *slots,
        })
        .collect()
}
