//! Whether the first hosts decide which slots a parallel job gets, so that no other need be looked
//! at. This exists only for speed.

use super::hosts::{HostRoom, MasterRoom};
use super::spread::SlotMaximum;
use proto::pe::AllocationRule;
use proto::request::SlotRange;

/// Whether later hosts could change the result of [`spread`](super::spread::spread). They cannot
/// once the first place for the master, with the room beside it, has as many slots as the job may
/// have at most.
///
/// It is used only where the job may be on any number of hosts. Quotas are judged separately
/// ([`leave_enough`](super::quotas::leave_enough)).
#[derive(Debug)]
pub struct SpreadCutoff {
    rule: AllocationRule,
    /// The most slots that the job gets.
    slots: u32,
    most_elsewhere: u32,
    master: Option<MasterRoom>,
    /// Slots on other hosts than the master's; with `$round_robin`, one of each host.
    elsewhere: u32,
}

impl SpreadCutoff {
    /// Begins before the first host. `None` if no number of slots is possible for the job.
    pub fn new(rule: AllocationRule, range: &SlotRange, most: SlotMaximum) -> Option<SpreadCutoff> {
        let largest = range.largest_within(most.in_all)?;
        let slots = match rule {
            AllocationRule::Fixed(each) => {
                let portions = largest.checked_div(each)?;
                (1..=portions)
                    .rev()
                    .map(|portions| portions * each)
                    .find(|slots| range.contains(*slots))?
            }
            AllocationRule::PeSlots | AllocationRule::FillUp | AllocationRule::RoundRobin => largest,
        };
        Some(SpreadCutoff {
            rule,
            slots,
            most_elsewhere: most.elsewhere,
            master: None,
            elsewhere: 0,
        })
    }

    /// Adds the next host, and returns whether the hosts so far are enough.
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

#[cfg(test)]
mod tests {
    use super::super::spread::spread;
    use super::*;
    use proptest::prelude::*;
    use proto::id::QueueInstanceName;

    fn room(at: usize, slots: u32, master: Option<(u32, u32)>) -> HostRoom {
        let host = format!("h{at}");
        let instance = QueueInstanceName {
            queue: "all.q".into(),
            host: host.as_str().into(),
        };
        let master = master.map(|(own, more)| MasterRoom {
            at: 0,
            own,
            in_instance: own + more,
            slots: own + more,
        });
        HostRoom {
            instances: vec![(instance, slots)],
            slots,
            master,
            others: Vec::new(),
            companions: None,
        }
    }

    fn rules() -> impl Strategy<Value = AllocationRule> {
        let plain = [
            AllocationRule::PeSlots,
            AllocationRule::FillUp,
            AllocationRule::RoundRobin,
        ];
        prop_oneof![3 => prop::sample::select(plain.to_vec()), 2 => (1u32..4).prop_map(AllocationRule::Fixed)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn hosts_behind_those_that_are_enough_change_nothing(
            rule in rules(),
            range in prop::sample::select(vec!["1", "2", "4", "6", "2-4", "1-20", "2,4,8", "3-5,7"]),
            (in_all, elsewhere) in (1u32..12, prop_oneof![Just(u32::MAX), 0u32..6]),
            hosts in prop::collection::vec((0u32..5, prop::option::weighted(0.7, (0u32..2, 0u32..4))), 1..12),
        ) {
            let range: SlotRange = range.parse().unwrap();
            let most = SlotMaximum { in_all, elsewhere };
            let hosts: Vec<HostRoom> = hosts.into_iter().enumerate().map(|(at, (slots, master))| room(at, slots, master)).collect();
            let Some(mut enough) = SpreadCutoff::new(rule, &range, most) else { return Ok(()) };
            if let Some(last) = hosts.iter().position(|host| enough.add(host)) {
                let few = spread(rule, &range, most, &hosts[..=last]);
                prop_assert!(few.is_ok());
                prop_assert_eq!(few, spread(rule, &range, most, &hosts));
            }
        }
    }
}
