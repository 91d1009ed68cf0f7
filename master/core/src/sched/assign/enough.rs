//! When the first hosts decide which slots a parallel job gets, so that the others need not be looked at.

use super::hosts::{HostRoom, MasterRoom};
use super::spread::Most;
use proto::pe::AllocationRule;
use proto::request::SlotRange;

/// Whether hosts that come later could change what [`spread`](super::spread::spread) gives: not once the first place for the master and
/// what is beside it have as many slots as the job may have at most.
///
/// Only where the hosts are all that counts: no quota, and no number of hosts that the job may not exceed.
#[derive(Debug)]
pub struct Enough {
    rule: AllocationRule,
    /// As many as the job gets at most.
    slots: u32,
    most_elsewhere: u32,
    master: Option<MasterRoom>,
    /// Slots on other hosts than the master's; for `$round_robin` one of each host.
    elsewhere: u32,
}

impl Enough {
    /// Of no host yet. None if there is no number of slots that the job may have.
    pub fn new(rule: AllocationRule, range: &SlotRange, most: Most) -> Option<Enough> {
        let largest = range.largest_within(most.in_all)?;
        let slots = match rule {
            AllocationRule::Fixed(each) => {
                let portions = largest.checked_div(each)?;
                (1..=portions).rev().map(|portions| portions * each).find(|slots| range.contains(*slots))?
            }
            AllocationRule::PeSlots | AllocationRule::FillUp | AllocationRule::RoundRobin => largest,
        };
        Some(Enough { rule, slots, most_elsewhere: most.elsewhere, master: None, elsewhere: 0 })
    }

    /// Takes the next host in, and says whether those so far are enough.
    pub fn add(&mut self, host: &HostRoom) -> bool {
        let (own, portion) = match self.rule {
            AllocationRule::PeSlots => return host.masters().any(|master| master.slots >= self.slots),
            AllocationRule::FillUp => (0, host.slots),
            AllocationRule::RoundRobin => (0, host.slots.min(1)),
            AllocationRule::Fixed(each) => (each, if host.slots >= each { each } else { 0 }),
        };
        let takes = |master: &MasterRoom| master.slots >= own || master.own == 0;
        match self.master.is_none().then(|| host.masters().find(takes)).flatten() {
            Some(master) => self.master = Some(master),
            None => self.elsewhere = self.elsewhere.saturating_add(portion),
        }
        let Some(master) = self.master else { return false };
        let with_master = match self.rule {
            AllocationRule::Fixed(each) if master.slots >= each => each,
            AllocationRule::Fixed(_) => 0,
            AllocationRule::RoundRobin => master.own,
            AllocationRule::FillUp | AllocationRule::PeSlots => master.slots,
        };
        let elsewhere = match self.rule {
            AllocationRule::Fixed(each) => self.elsewhere.min(self.most_elsewhere / each.max(1) * each),
            AllocationRule::FillUp | AllocationRule::RoundRobin | AllocationRule::PeSlots => {
                self.elsewhere.min(self.most_elsewhere)
            }
        };
        elsewhere.saturating_add(with_master) >= self.slots
    }
}
