//! A job has the most slots that the requests of master and slaves leave room for.

use crate::sched::tests::lab::Lab;
use proptest::prelude::*;

/// What is random about a cell and its jobs.
#[derive(Clone, Debug)]
struct Case {
    /// The slots of `all.q` on a, b, c and of `io.q` on a, b.
    slots: [u32; 5],
    /// Of `mem`, `card` and `once` on each host.
    mem: [u32; 3],
    card: [u32; 3],
    once: [u32; 3],
    lic: u32,
    /// How much of `mem` a quota leaves on each host, if there is one.
    quota: Option<u32>,
    default: u32,
    rule: usize,
    spares: bool,
    is_first: bool,
    jobs: Vec<ScopeRequests>,
}

/// What a job asks for: of all slots, the master's and the others'.
#[derive(Clone, Debug)]
struct ScopeRequests {
    mem: [Option<u32>; 3],
    lic: [Option<u32>; 3],
    card: [Option<u32>; 3],
    once: [Option<u32>; 3],
    master_queue: Option<&'static str>,
    slave_queue: Option<&'static str>,
    least: u32,
}

const HOSTS: [&str; 3] = ["a", "b", "c"];
/// Each queue instance with its host.
const INSTANCES: [(&str, usize); 5] = [
    ("all.q@a", 0),
    ("all.q@b", 1),
    ("all.q@c", 2),
    ("io.q@a", 0),
    ("io.q@b", 1),
];
const RULES: [&str; 4] = ["$fill_up", "$round_robin", "$pe_slots", "2"];
const MOST: u32 = 7;

/// The slots in each queue instance, and in which the master is.
#[derive(Clone, Debug, PartialEq)]
struct Layout {
    slots: [u32; 5],
    master: usize,
}

impl Case {
    fn lab(&self) -> Lab {
        let mut lab = Lab::new();
        let rule = RULES[self.rule];
        let flag = |is_set: bool| if is_set { "TRUE" } else { "FALSE" };
        for line in [
            format!("complex mem mem INT <= YES YES {} 0", self.default),
            "complex lic lic INT <= YES YES 0 0".to_owned(),
            "complex card card INT <= YES HOST 0 0".to_owned(),
            "complex once once INT <= YES JOB 0 0".to_owned(),
            "conf job_load_adjustments NONE".to_owned(),
            format!("global lic={}", self.lic),
        ] {
            lab.line(&line);
        }
        for (at, host) in HOSTS.iter().enumerate() {
            let (mem, card, once) = (self.mem[at], self.card[at], self.once[at]);
            lab.line(&format!(
                "host {host} mem={mem} card={card} once={once} | np_load_avg=0.{}",
                at + 1
            ));
        }
        let (spares, first) = (flag(self.spares), flag(self.is_first));
        lab.line(&format!(
            "pe mpi 100 {rule} ign_sreq_on_mhost={spares} job_is_first_task={first}"
        ));
        let [a, b, c, io_a, io_b] = self.slots;
        lab.line(&format!("queue all.q a,b,c slots={a},[b={b}],[c={c}]"));
        lab.line(&format!("queue io.q a,b slots={io_a},[b={io_b}] seq_no=5"));
        if let Some(most) = self.quota {
            lab.line(&format!("quota r hosts {{*}} to mem={most}"));
        }
        lab
    }

    /// Whether the jobs fit together where they are.
    fn fits(&self, placed: &[(&ScopeRequests, Layout)]) -> bool {
        let uses: Vec<[[u32; 5]; 3]> = placed.iter().map(|(asks, layout)| self.uses(asks, layout)).collect();
        let on = |host: usize, attribute: usize| uses.iter().map(|used| used[attribute][host]).sum::<u32>();
        let lic: u32 = uses.iter().map(|used| used[0][3]).sum();
        let slots = |at: usize| {
            let of = |(_, layout): &(&ScopeRequests, Layout)| layout.slots[at] + self.extra_at(layout, at);
            placed.iter().map(of).sum::<u32>()
        };
        (0..3).all(|host| {
            on(host, 0) <= self.mem[host].min(self.quota.unwrap_or(u32::MAX))
                && on(host, 1) <= self.card[host]
                && on(host, 2) <= self.once[host]
        }) && lic <= self.lic
            && (0..5).all(|at| slots(at) <= self.slots[at])
            && placed.iter().all(|(asks, layout)| self.is_allowed(asks, layout))
    }

    fn extra_at(&self, layout: &Layout, at: usize) -> u32 {
        u32::from(!self.is_first && layout.master == at)
    }

    /// The slots in an instance that are not the master's, and whether they are spared.
    fn others(&self, asks: &ScopeRequests, layout: &Layout, at: usize) -> (u32, bool) {
        let slots = layout.slots[at] + self.extra_at(layout, at) - u32::from(layout.master == at);
        let is_beside = INSTANCES[at].1 == INSTANCES[layout.master].1;
        (slots, self.spares && is_beside && asks.is_apart())
    }

    /// What a job takes: of `mem`, `card`, `once` on each host, and of `lic` in all behind the
    /// first.
    fn uses(&self, asks: &ScopeRequests, layout: &Layout) -> [[u32; 5]; 3] {
        let mut used = [[0; 5]; 3];
        let master = INSTANCES[layout.master].1;
        let mut slaves_on = [0; 3];
        for (at, (_, host)) in INSTANCES.iter().enumerate() {
            let (others, is_spared) = self.others(asks, layout, at);
            slaves_on[*host] += if is_spared { 0 } else { others };
            for (requests, place, default) in [(asks.mem, *host, self.default), (asks.lic, 3, 0)] {
                let [all, of_master, of_slaves] = requests;
                let is_apart = of_master.is_some() || of_slaves.is_some();
                let each = if is_apart { [of_master, of_slaves] } else { [all; 2] };
                let [of_master, of_slave] = each.map(|amount| amount.unwrap_or(default));
                let of_other = if is_apart && is_spared { 0 } else { of_slave };
                used[0][place] += others * of_other + u32::from(layout.master == at) * of_master;
            }
        }
        for (host, slaves) in slaves_on.iter().enumerate() {
            let is_used = layout
                .slots
                .iter()
                .zip(INSTANCES)
                .any(|(slots, (_, on))| on == host && *slots > 0)
                || host == master;
            let [all, of_master, of_slaves] = asks.card.map(Option::unwrap_or_default);
            used[1][host] =
                u32::from(is_used) * all + u32::from(host == master) * of_master + u32::from(*slaves > 0) * of_slaves;
        }
        used[2][master] = asks.once[0].or(asks.once[1]).unwrap_or(0);
        used
    }

    /// What queue lists and the rule of the environment say.
    fn is_allowed(&self, asks: &ScopeRequests, layout: &Layout) -> bool {
        let on_host = |host: usize| -> u32 {
            layout
                .slots
                .iter()
                .zip(INSTANCES)
                .filter(|(_, (_, on))| *on == host)
                .map(|(slots, _)| slots)
                .sum()
        };
        // $pe_slots keeps the master with the others.
        let master = INSTANCES[layout.master].1;
        let is_used = |host: &usize| on_host(*host) > 0 || RULES[self.rule] == "$pe_slots" && *host == master;
        let hosts: Vec<u32> = (0..3).filter(is_used).map(on_host).collect();
        let is_in = |list: Option<&str>, at: usize| list.is_none_or(|queue| INSTANCES[at].0.starts_with(queue));
        is_in(asks.master_queue, layout.master)
            && (0..5).all(|at| {
                let (others, is_spared) = self.others(asks, layout, at);
                others == 0 || is_spared || is_in(asks.slave_queue, at)
            })
            && match RULES[self.rule] {
                "$pe_slots" => hosts.len() == 1,
                "2" => hosts.iter().all(|slots| *slots == 2),
                _ => true,
            }
    }

    /// The most slots that a job can have beside others: every layout is tried.
    fn most(&self, placed: &[(&ScopeRequests, Layout)], asks: &ScopeRequests) -> u32 {
        let mut most = 0;
        let mut slots = [0; 5];
        loop {
            let sum = slots.iter().sum::<u32>();
            if (asks.least..=MOST).contains(&sum) && sum > most {
                let fits = |master: usize| {
                    let mut all = placed.to_vec();
                    all.push((asks, Layout { slots, master }));
                    (slots[master] > 0 || !self.is_first && asks.is_apart()) && self.fits(&all)
                };
                most = if (0..5).any(fits) { sum } else { most };
            }
            let Some(at) = (0..5).find(|at| slots[*at] < self.slots[*at]) else {
                return most;
            };
            slots[..at].fill(0);
            slots[at] += 1;
        }
    }
}

impl ScopeRequests {
    fn is_apart(&self) -> bool {
        let lists = [self.mem, self.lic, self.card, self.once];
        lists.iter().any(|list| list[1].is_some() || list[2].is_some()) || self.slave_queue.is_some()
    }

    /// As options of `qsub`.
    fn text(&self) -> String {
        let mut text = format!("-pe mpi {}-{MOST}", self.least);
        for (side, scope) in ["global", "master", "slave"].into_iter().enumerate() {
            let lists = [
                ("mem", self.mem),
                ("lic", self.lic),
                ("card", self.card),
                ("once", self.once),
            ];
            text += &format!(" -scope {scope}");
            for (name, amount) in lists.iter().filter_map(|(name, list)| Some((name, list[side]?))) {
                text += &format!(" -l {name}={amount}");
            }
            let queue = [None, self.master_queue, self.slave_queue][side];
            text += &queue.map_or_else(String::new, |queue| format!(" -q {queue}"));
        }
        text
    }
}

fn layout(text: &str) -> Layout {
    let (mut slots, mut master) = ([0; 5], None);
    for part in text.split(' ').skip(1) {
        let at = INSTANCES
            .iter()
            .position(|(name, _)| part.split(':').next() == Some(name))
            .unwrap();
        slots[at] = part.split_once(':').map_or(1, |(_, slots)| slots.parse().unwrap());
        master.get_or_insert(at);
    }
    Layout {
        slots,
        master: master.unwrap(),
    }
}

/// Requests in one scope, or in those of master and slave.
fn apart(most: u32) -> impl Strategy<Value = [Option<u32>; 3]> {
    let amount = 0..=most;
    prop_oneof![
        2 => Just([None; 3]),
        1 => amount.clone().prop_map(|all| [Some(all), None, None]),
        2 => amount.clone().prop_map(|master| [None, Some(master), None]),
        2 => amount.clone().prop_map(|slave| [None, None, Some(slave)]),
        4 => (amount.clone(), amount).prop_map(|(master, slave)| [None, Some(master), Some(slave)]),
    ]
}

/// Requests in one scope alone.
fn once(most: u32, scopes: usize) -> impl Strategy<Value = [Option<u32>; 3]> {
    (0..=scopes, 1..=most).prop_map(move |(scope, amount)| {
        let mut all = [None; 3];
        if scope < scopes {
            all[scope] = Some(amount);
        }
        all
    })
}

fn asks() -> impl Strategy<Value = ScopeRequests> {
    let queue = || prop_oneof![3 => Just(None), 1 => Just(Some("io.q")), 1 => Just(Some("all.q"))];
    (apart(4), apart(3), once(2, 3), once(2, 2), queue(), queue(), 1u32..4).prop_map(
        |(mem, lic, card, once, master_queue, slave_queue, least)| ScopeRequests {
            mem,
            lic,
            card,
            once,
            master_queue,
            slave_queue,
            least,
        },
    )
}

fn case() -> impl Strategy<Value = Case> {
    let host = |most: u32| proptest::array::uniform3(0..=most);
    (
        (proptest::array::uniform5(1u32..4), host(9), host(3), host(3)),
        (
            0u32..12,
            prop_oneof![Just(0u32), Just(1)],
            0usize..4,
            any::<bool>(),
            any::<bool>(),
        ),
        prop_oneof![2 => Just(None), 1 => (0u32..9).prop_map(Some)],
        proptest::collection::vec(asks(), 1..4),
    )
        .prop_map(
            |((slots, mem, card, once), (lic, default, rule, spares, is_first), quota, jobs)| Case {
                slots,
                mem,
                card,
                once,
                lic,
                quota,
                default,
                rule,
                spares,
                is_first,
                jobs,
            },
        )
}

proptest! {
    #![proptest_config(crate::testing::cases(256))]

    /// Every job gets the most slots that there can be, nothing is given out twice, and what is
    /// given back is there again.
    #[test]
    fn a_job_has_the_most_slots_that_both_kinds_leave_room_for(case in case()) {
        let mut lab = case.lab();
        let mut placed: Vec<(&ScopeRequests, Layout)> = Vec::new();
        for (number, asks) in case.jobs.iter().enumerate() {
            lab.line(&format!("job {} {}", number + 1, asks.text()));
            lab.pass();
            let now = std::mem::take(&mut lab.placed);
            let most = case.most(&placed, asks);
            let got = now.first().map(|text| layout(text));
            let slots = got.as_ref().map_or(0, |layout| layout.slots.iter().sum());
            prop_assert_eq!(slots, most, "{} is placed on {:?}", asks.text(), got);
            if let Some(layout) = got {
                placed.push((asks, layout));
                prop_assert!(case.fits(&placed), "{:?}", placed);
            }
        }
        let running = lab.state().jobs.values().filter(|job| job.placements().count() > 0);
        let running: Vec<String> = running.map(|job| job.seq.0.to_string()).collect();
        running.iter().for_each(|number| lab.end(number));
        prop_assert_eq!(lab.state().ledger.bookings().count(), 0);
        lab.state().ledger.check();
    }
}
