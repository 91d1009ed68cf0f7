//! Requests of the master and of the other slots of a parallel job apart (`-scope`,
//! `ign_sreq_on_mhost`).

use super::lab::{Lab, check};
use proptest::prelude::*;

#[test]
fn the_master_and_the_others_each_have_what_they_ask_for() {
    // The example of the manual, smaller.
    check(
        "complex memory memory MEMORY <= YES YES 0 0
         complex gpu gpu INT <= YES YES 0 0
         conf job_load_adjustments NONE
         host io memory=2G | np_load_avg=0.1
         host a memory=8G gpu=4 | np_load_avg=0.2
         host b memory=16G gpu=4 | np_load_avg=0.3
         pe mpi 100 $fill_up
         queue io.q io,a slots=4
         queue compute.q a,b slots=4
         job 1 -pe mpi 6 -l h_rt=3600 -scope master -q io.q -l memory=1G -scope slave -q compute.q -l memory=4G,gpu=1
         pass
         = 1 io.q@io compute.q@a:2 compute.q@b:3
         job 2 -pe mpi 2 -scope master -q io.q -l memory=1G -scope slave -q compute.q -l memory=4G,gpu=1
         pass
         = 2 io.q@io compute.q@b
         job 3 -pe mpi 2 -scope master -q io.q -scope slave -q compute.q -l memory=4G
         pass
         = nothing
         ? 3 cannot run in PE \"mpi\" because it only offers 1 slots
         end 1
         pass
         = 3 io.q@io compute.q@a",
    );
}

#[test]
fn on_its_host_the_master_takes_its_own_and_the_others_theirs() {
    check(
        "complex mem mem INT <= YES YES 0 0
         host a mem=10
         pe mpi 100 $fill_up
         queue all.q a slots=9
         job 1 -pe mpi 1- -scope master -l mem=3 -scope slave -l mem=2
         pass
         = 1 all.q@a:4
         job 2 -pe mpi 1 -scope slave -l mem=2
         pass
         = 2 all.q@a
         job 3 -pe mpi 2 -scope slave -l mem=2
         pass
         = nothing
         ? 3 cannot run in PE \"mpi\" because it only offers 1 slots
         end 1
         pass
         = 3 all.q@a:2",
    );
}

#[test]
fn the_master_goes_where_it_leaves_most_room() {
    check(
        "complex mem mem INT <= YES YES 0 0
         conf job_load_adjustments NONE
         host a mem=4 | np_load_avg=0.1
         host b mem=4 | np_load_avg=0.2
         host c mem=9 | np_load_avg=0.3
         pe mpi 100 $fill_up
         pe robin 100 $round_robin
         pe two 100 2
         queue all.q a,b,c slots=4 pe_list=mpi,robin,two
         job 1 -pe mpi 13 -scope master -l mem=4 -scope slave -l mem=1
         pass
         = nothing
         ? 1 cannot run in PE \"mpi\" because it only offers 12 slots",
    );
    let job = |pe: &str, slots: &str, placed: &str| {
        check(&format!(
            "complex mem mem INT <= YES YES 0 0
             conf job_load_adjustments NONE
             host a mem=4 | np_load_avg=0.1
             host b mem=4 | np_load_avg=0.2
             host c mem=9 | np_load_avg=0.3
             pe mpi 100 $fill_up
             pe robin 100 $round_robin
             pe two 100 2
             queue all.q a,b,c slots=4 pe_list=mpi,robin,two
             job 1 -pe {pe} {slots} -scope master -l mem=4 -scope slave -l mem=1
             pass
             {placed}"
        ));
    };
    // On a or b the master leaves no room beside itself.
    job("mpi", "9", "= 1 all.q@a all.q@b:4 all.q@c:4");
    job("mpi", "1-", "= 1 all.q@c:4 all.q@a:4 all.q@b:4");
    job("mpi", "10", "= 1 all.q@c:2 all.q@a:4 all.q@b:4");
    job("robin", "12", "= 1 all.q@c:4 all.q@a:4 all.q@b:4");
    job("two", "2-", "= 1 all.q@c:2 all.q@a:2 all.q@b:2");
}

#[test]
fn slots_beside_the_master_are_spared_where_the_environment_says_so() {
    let job = |settings: &str, placed: &str| {
        check(&format!(
            "complex mem mem INT <= YES YES 0 0
             complex lic lic INT <= YES YES 0 0
             conf job_load_adjustments NONE
             global lic=2
             host a mem=5 | np_load_avg=0.1
             host b mem=5 | np_load_avg=0.2
             pe mpi 100 $fill_up {settings}
             queue io.q a slots=3
             queue all.q a,b slots=2
             job 1 -pe mpi 1- -scope master -q io.q -l mem=5 -scope slave -q all.q -l mem=2,lic=1
             pass
             {placed}"
        ));
    };
    job("", "= 1 io.q@a all.q@b:2");
    // Those beside the master need neither memory nor a licence nor their queue.
    job("ign_sreq_on_mhost=TRUE", "= 1 io.q@a:3 all.q@a:2 all.q@b:2");
}

#[test]
fn a_master_that_is_no_task_has_a_slot_of_its_own_request() {
    check(
        "complex mem mem INT <= YES YES 0 0
         host a mem=7
         pe mpi 100 $fill_up job_is_first_task=FALSE
         queue all.q a slots=9
         job 1 -pe mpi 1- -scope master -l mem=3 -scope slave -l mem=2
         pass
         = 1 all.q@a:2
         job 2 -l mem=1
         pass
         = nothing
         ? 2 (-l mem=1) cannot run at host \"a\" because it offers only hc:mem=0.000000
         end 1
         pass
         = 2 all.q@a",
    );
    // It need not be where the tasks are.
    check(
        "conf job_load_adjustments NONE
         host io | np_load_avg=0.1
         host a | np_load_avg=0.2
         host b | np_load_avg=0.3
         pe mpi 100 $fill_up job_is_first_task=FALSE
         pe two 100 2 job_is_first_task=FALSE
         queue io.q io,a slots=1 pe_list=mpi,two
         queue compute.q a,b slots=3 pe_list=mpi,two
         quota r queues io.q to slots=9
         job 1 -pe mpi 4 -scope master -q io.q -scope slave -q compute.q
         pass
         = 1 io.q@io:0 compute.q@a:3 compute.q@b
         job 2 -pe two 2 -scope master -q io.q -scope slave -q compute.q
         pass
         = 2 io.q@a:0 compute.q@b:2
         job 3 -pe mpi 1 -scope master -q io.q -scope slave -q compute.q
         pass
         = nothing
         end 1
         pass
         = 3 io.q@io:0 compute.q@a",
    );
}

#[test]
fn it_is_said_what_the_master_lacks_and_what_the_others_do() {
    let job = |requests: &str, why: &str| {
        check(&format!(
            "complex mem mem INT <= YES YES 0 0
             host a mem=4
             pe mpi 100 $fill_up
             queue all.q a slots=4
             job 1 -pe mpi 2 {requests}
             pass
             = nothing
             ? 1 ({requests}) cannot run at host \"a\" because it offers only {why}"
        ));
    };
    job("-scope master -l mem=9", "hc:mem=4.000000");
    job(
        "-l h_rt=9 -scope master -l mem=9 -scope slave -l mem=1",
        "hc:mem=4.000000",
    );
    job("-scope slave -l mem=9", "hc:mem=4.000000");
    check(
        "host a
         pe mpi 100 $fill_up
         queue all.q a slots=4
         queue b.q a slots=4 pe_list=NONE
         job 1 -pe mpi 2 -scope slave -q b.q
         pass
         = nothing
         ? 1 cannot run in queue \"all.q@a\" because it is not contained in its slave queue list (-scope slave -q)
         ? 1 cannot run in PE \"mpi\" because it only offers 1 slots",
    );
}

#[test]
fn attributes_of_every_kind_count_for_those_who_ask() {
    check(
        "complex card card INT <= YES HOST 0 0
         complex once once INT <= YES JOB 0 0
         complex excl excl BOOL EXCL YES YES 0 0
         complex kind kind STRING == YES NO NONE 0
         complex must must INT <= FORCED YES 0 0
         conf job_load_adjustments NONE
         host a card=1 once=5 excl=true kind=head | np_load_avg=0.1
         host b card=3 once=1 kind=node | np_load_avg=0.2
         host c card=2 kind=node must=9 excl=true | np_load_avg=0.3
         pe mpi 100 $round_robin
         queue all.q a,b,c slots=3
         job 1 -pe mpi 3 -scope master -l kind=head -scope slave -l kind=node,card=2
         pass
         = 1 all.q@a all.q@b:2
         end 1
         job 2 -pe mpi 3 -scope master -l kind=node,once=1 -scope slave -l must=1
         pass
         = 2 all.q@b all.q@c:2
         end 2
         job 3 -pe mpi 3 -scope master -l once=5 -scope slave -l must=1
         pass
         = 3 all.q@a all.q@c:2
         end 3
         job 4 -pe mpi 4 -scope master -l must=1 -q all.q@c
         pass
         = 4 all.q@c all.q@a:2 all.q@b
         job 5 -pe mpi 2 -scope slave -l excl
         pass
         = nothing
         end 4
         pass
         = 5 all.q@a:2
         job 6
         pass
         = 6 all.q@b
         job 7 -pe mpi 2 -scope master -l excl -l kind=head
         pass
         = nothing
         end 5
         pass
         = 7 all.q@a all.q@b",
    );
}

#[test]
fn what_the_whole_cluster_has_for_hosts_goes_to_the_master_and_to_the_hosts_of_slaves() {
    // Both sides may ask for an attribute of kind HOST where the complex has changed since.
    check(
        "complex lic lic INT <= YES YES 0 0
         conf job_load_adjustments NONE
         global lic=3
         host a | np_load_avg=0.1
         host b | np_load_avg=0.2
         host c | np_load_avg=0.3
         pe mpi 100 $round_robin job_is_first_task=FALSE
         queue all.q a,b,c slots=2
         job 1 -pe mpi 2- -scope master -l lic=1 -scope slave -l lic=1
         complex lic lic INT <= YES HOST 0 0
         pass
         = 1 all.q@a all.q@b:2
         end 1
         global lic=2
         job 2 -pe mpi 3 -scope master -l lic=1 -scope slave -l lic=1
         pass
         = nothing
         job 3 -pe mpi 1 -scope master -l lic=1 -scope slave -l lic=1
         pass
         = 3 all.q@a",
    );
}

#[test]
fn defaults_are_taken_by_those_who_do_not_ask() {
    check(
        "complex mem mem INT <= YES YES 2 0
         host a mem=9
         pe mpi 100 $fill_up
         queue all.q a slots=9
         job 1 -pe mpi 3 -scope master -l mem=3
         pass
         = 1 all.q@a:3
         job 2
         pass
         = 2 all.q@a
         job 3
         pass
         = nothing
         ? 3 (-l NONE) cannot run at host \"a\" because it offers only hc:mem=0.000000",
    );
}

#[test]
fn quotas_count_what_each_takes() {
    check(
        "complex mem mem INT <= YES YES 0 0
         conf job_load_adjustments NONE
         host a mem=99 | np_load_avg=0.1
         host b mem=99 | np_load_avg=0.2
         pe mpi 100 $fill_up
         pe spare 100 $fill_up ign_sreq_on_mhost=TRUE
         queue all.q a,b slots=9 pe_list=mpi,spare
         quota r hosts {*} to mem=8
         job 1 -pe mpi 1- -scope master -l mem=5 -scope slave -l mem=2
         pass
         = 1 all.q@a:2 all.q@b:4
         job 2 -l mem=2
         pass
         = nothing
         job 3 -l mem=1
         pass
         = 3 all.q@a
         end 1
         end 3
         pass
         = 2 all.q@a
         end 2
         job 4 -pe spare 11 -scope master -l mem=7 -scope slave -l mem=4
         pass
         = 4 all.q@a:9 all.q@b:2
         % r/1 mem=7/8 hosts a
         % r/1 mem=8/8 hosts b",
    );
}

#[test]
fn a_reservation_is_made_for_both() {
    check(
        "complex mem mem INT <= YES YES 0 0
         conf job_load_adjustments NONE
         conf max_reservation 10
         host a mem=4 | np_load_avg=0.1
         host b mem=4 | np_load_avg=0.2
         pe mpi 100 $fill_up
         queue all.q a,b slots=4
         job 1 -l mem=3,h_rt=100 -q all.q@a
         job 2 -l mem=2,h_rt=50 -q all.q@b
         pass
         = 1 all.q@a
         = 2 all.q@b
         job 3 -R -pe mpi 2 -l h_rt=10 -scope master -l mem=4 -scope slave -l mem=1
         job 4 -pe mpi 2 -l h_rt=60 -scope master -l mem=1 -scope slave -l mem=1 -p -10
         job 5 -pe mpi 2 -l h_rt=40 -scope master -l mem=1 -scope slave -l mem=2 -p -20
         pass
         = 5 all.q@a all.q@b
         @ 3 +110 all.q@b all.q@a",
    );
}

#[test]
fn within_an_advance_reservation_both_take_of_what_it_has() {
    check(
        "complex mem mem INT <= YES YES 0 0
         conf job_load_adjustments NONE
         host a mem=9 | np_load_avg=0.1
         host b mem=9 | np_load_avg=0.2
         pe mpi 100 $round_robin
         queue all.q a,b slots=4
         reserve 1 0 500 -pe mpi 4 -l mem=2
         ! 1 all.q@a:2 all.q@b:2
         begin 1
         job 1 -ar 1 -pe mpi 3 -scope master -l mem=3 -scope slave -l mem=2
         job 2 -ar 1 -pe mpi 3 -scope master -l mem=4 -scope slave -l mem=2
         job 3 -ar 1 -pe mpi 1 -scope master -l mem=1
         pass
         = 1 all.q@a all.q@b:2
         = 3 all.q@a
         end 1
         pass
         = nothing
         ? 2 cannot run in PE \"mpi\" because it only offers 2 slots
         end 3
         pass
         = 2 all.q@a all.q@b:2",
    );
}

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
