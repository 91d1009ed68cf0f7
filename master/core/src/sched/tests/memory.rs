//! What categories and standings remember never hides a place: after any stream of changes a pass
//! leaves nothing that fits, as the matcher finds it who asks every queue instance about every job
//! and remembers nothing. [`Lab::pass`] asserts that. And it places the very tasks in the very
//! places that the [`reference`](super::reference) does.

use super::lab::Lab;
use super::later::{PromiseCheck, check};
use super::reference::turns;
use proptest::prelude::*;

const JOBS: [&str; 28] = [
    "",
    "-l lic=1",
    "-l lic=2 -p 10",
    "-l mem=1G",
    "-l mem=3G,lic=1 -u u2",
    "-l excl",
    "-l mem_free=2G",
    "-l mem_free=4G,mem=1G",
    "-q short.q",
    "-q all.q@b -soft -l mem_free=3G",
    "-soft -q short.q -l excl",
    "-soft -l lic=2",
    "-pe fill 2-6",
    "-pe smp 3 -l mem=1G",
    "-t 1-4:1 -l lic=1",
    "-pe robin 2- -soft -q short.q",
    "-R -l lic=3,h_rt=50",
    "-l lic=1,h_rt=20",
    "-R -pe fill 5-7 -l h_rt=100",
    "-R -pe robin 4 -l h_rt=30 -p 5",
    "-R -t 1-2:1 -l mem=4G,h_rt=40",
    "-R -pe two 4 -l mem=1G,h_rt=10 -u u2",
    "-now",
    "-now -t 1-3:1 -l mem=1G",
    "-now -pe fill 2-4 -u u2",
    "-now -t 1-4:1 -tc 3",
    "-masterq short.q -pe robin 2-4",
    "-t 1-3:1 -tc 2 -soft -q short.q -u u2",
];

/// Jobs of which many are alike, so that one after the other starts where the one before did.
const JOBS_ALIKE: [&str; 14] = [
    "",
    "",
    "",
    "-l mem=1G",
    "-l mem=1G",
    "-l mem=2G -p 5",
    "-l mem_free=1G",
    "-l mem=1G,mem_free=2G -u u2",
    "-t 1-3:1",
    "-q all.q",
    "-soft -q short.q",
    "-pe smp 2",
    "-now",
    "-l lic=1",
];

/// Nothing is offered for the whole cluster, and no load is adjusted.
const LOCAL: &str = "complex excl excl BOOL == YES NO 0 0
global
conf job_load_adjustments NONE
queue all.q a,b,c slots=7,[b=2] pe_list=smp";

const CHANGES: [&str; 20] = [
    "load a mem_free=1G np_load_avg=1.9",
    "load a mem_free=6G np_load_avg=0.2",
    "load b mem_free=3G np_load_avg=0.6",
    "load c mem_free=9G np_load_avg=0.1",
    "disable all.q@a",
    "enable all.q@a",
    "disable short.q@b",
    "enable short.q@b",
    "lose c",
    "find c",
    "global lic=1",
    "global lic=5",
    "quota r users {*} to slots=3",
    "quota r hosts {*} to slots=2",
    "quota r hosts a,b to slots=3",
    "quota r",
    "wait 20",
    "queue short.q a,b slots=2 seq_no=5 pe_list=fill,robin,smp complex_values=lic=1",
    "queue short.q a,b,c slots=1 seq_no=5 pe_list=fill,smp",
    "host a mem=2G | mem_free=5G np_load_avg=0.4",
];

const SETTINGS: [&str; 8] = [
    "conf job_load_adjustments NONE",
    "conf job_load_adjustments np_load_avg=0.50",
    "conf load_formula slots",
    "conf queue_sort_method seqno",
    "conf maxujobs 5",
    "conf maxujobs 2",
    "conf max_reservation 3",
    "",
];

/// Jobs that say how long they run, and some for which slots are kept.
const JOBS_AHEAD: [&str; 16] = [
    "-l h_rt=10",
    "-l h_rt=35,lic=1",
    "-l h_rt=20,mem=2G -u u2",
    "-pe fill 3 -l h_rt=25",
    "-pe smp 2 -l h_rt=50",
    "-t 1-4:1 -l h_rt=15",
    "-l h_rt=5 -p 3",
    "-R -l lic=3,h_rt=50",
    "-R -pe fill 5-7 -l h_rt=100",
    "-R -pe robin 4 -l h_rt=30 -p 5",
    "-R -t 1-2:1 -l mem=4G,h_rt=40",
    "-R -pe two 4 -l mem=1G,h_rt=10 -u u2",
    "-R -pe smp 3 -l h_rt=20 -p 2",
    "-R -l excl,h_rt=20",
    "-R -pe fill 8 -l h_rt=60 -p 9",
    "-now -pe fill 2-4 -l h_rt=30",
];

const CHANGES_AHEAD: [&str; 12] = [
    "wait 3",
    "wait 8",
    "wait 8",
    "wait 20",
    "disable all.q@a",
    "enable all.q@a",
    "global lic=5",
    "global lic=3",
    "lose c",
    "find c",
    "quota r users {*} to slots=5",
    "quota r",
];

/// The same of jobs that are much alike: they start without a look where nothing is kept, and what
/// is kept for one is found beside that of the one before.
const JOBS_ALIKE_AHEAD: [&str; 14] = [
    "-l h_rt=10",
    "-l h_rt=10",
    "-l h_rt=10",
    "-l h_rt=25,mem=1G",
    "-l h_rt=25,mem=1G",
    "-l h_rt=60",
    "-l h_rt=40 -u u2 -p 2",
    "-R -l h_rt=30",
    "-R -l h_rt=30",
    "-R -l h_rt=20,mem=2G -p 3",
    "-R -l h_rt=20,mem=2G",
    "-R -l h_rt=30 -soft -q short.q",
    "-R -pe smp 5 -l h_rt=50",
    "-R -pe smp 5 -l h_rt=50 -p 1",
];

/// What makes of [`LOCAL`] a cluster where reservations are made.
const AHEAD: &str = "conf max_reservation 20\nconf params DURATION_OFFSET=0";

/// Parallel jobs on more hosts than they need, under quotas and not.
const JOBS_PARALLEL: [&str; 18] = [
    "",
    "-l mem=1G",
    "-pe smp 2",
    "-pe smp 2",
    "-pe smp 2-3",
    "-pe smp 3 -l mem=1G -u u2",
    "-pe fill 2",
    "-pe fill 4",
    "-pe fill 4-9 -u u2",
    "-pe fill 3,5,7 -l mem=1G",
    "-pe robin 3",
    "-pe robin 2-5",
    "-pe two 4",
    "-pe two 2-9 -l mem=2G",
    "-pe * 3 -p 4",
    "-pe [fr]* 2-6 -soft -q short.q",
    "-masterq short.q -pe fill 4",
    "-t 1-3:1 -pe robin 2 -l lic=1",
];

const CHANGES_PARALLEL: [&str; 14] = [
    "load d mem_free=1G np_load_avg=1.9",
    "load d mem_free=6G np_load_avg=0.2",
    "disable all.q@e",
    "enable all.q@e",
    "lose f",
    "find f",
    "global lic=1",
    "quota r users {*} to slots=9",
    "quota r hosts {*} to slots=2",
    "quota r hosts {*} to slots=3",
    "quota r hosts a,b,d,e to slots=5",
    "quota r users {*} hosts {*} to slots=2",
    "quota r pes fill to slots=6",
    "quota r",
];

/// Nine hosts, some with two queue instances.
const MANY: &str = "host d mem=6G
host e mem=4G
host f
host g mem=8G
host h
host i mem=2G
queue all.q a,b,c,d,e,f,g,h,i slots=2,[b=1],[g=3],[i=4] pe_list=fill,robin,smp,two
queue short.q d,g,h slots=2 seq_no=5 pe_list=fill,smp";

const SETTINGS_PARALLEL: [&str; 3] = [
    "conf job_load_adjustments NONE",
    "conf job_load_adjustments np_load_avg=0.50",
    "conf queue_sort_method seqno",
];

/// Changes that leave it so.
const CHANGES_LOCAL_AHEAD: [&str; 9] = [
    "wait 3",
    "wait 8",
    "wait 8",
    "wait 20",
    "disable all.q@a",
    "enable all.q@a",
    "lose c",
    "find c",
    "conf max_reservation 5",
];

const SETTINGS_AHEAD: [&str; 3] = [
    "conf max_reservation 20\nconf params DURATION_OFFSET=0",
    "conf max_reservation 2\nconf params DURATION_OFFSET=0\nconf maxujobs 4",
    "conf max_reservation 5\nconf params DURATION_OFFSET=4\nconf schedule_interval 0:0:2",
];

/// One thing that happens.
#[derive(Clone, Debug)]
enum LabStep {
    Job(&'static str),
    Change(&'static str),
    End(prop::sample::Index),
    Pass,
}

fn step(jobs: &'static [&'static str], changes: &'static [&'static str]) -> impl Strategy<Value = LabStep> {
    prop_oneof![
        3 => prop::sample::select(jobs).prop_map(LabStep::Job),
        3 => prop::sample::select(changes).prop_map(LabStep::Change),
        2 => any::<prop::sample::Index>().prop_map(LabStep::End),
        2 => Just(LabStep::Pass),
    ]
}

fn cluster(setting: &str) -> Lab {
    let mut lab = Lab::new();
    for line in [
        "complex lic lic INT <= YES YES 0 0",
        "complex mem mem MEMORY <= YES YES 512M 0",
        "complex excl excl BOOL EXCL YES YES 0 0",
        "global lic=3",
        "host a mem=6G excl=true | mem_free=5G",
        "host b mem=4G | mem_free=3G np_load_avg=0.3",
        "host c excl=true | mem_free=9G np_load_avg=0.1",
        "pe smp 9 $pe_slots",
        "pe fill 9 $fill_up",
        "pe robin 9 $round_robin",
        "pe two 8 2",
        "queue all.q a,b,c slots=3,[b=2] pe_list=smp,fill,robin,two",
        "queue short.q a,b slots=2 seq_no=5 pe_list=fill,robin complex_values=lic=1",
    ]
    .into_iter()
    .chain(setting.lines())
    {
        lab.line(line);
    }
    lab
}

fn end_one(lab: &mut Lab, which: &prop::sample::Index) {
    let running: Vec<String> = lab
        .state()
        .jobs
        .values()
        .flat_map(|job| job.placements().map(|(task, _)| format!("{}.{task}", job.seq.0)))
        .collect();
    if !running.is_empty() {
        lab.end(which.get(running.as_slice()).as_str());
    }
}

/// A pass, which does what the reference does, or keeps what may be kept.
fn pass(lab: &mut Lab, asked: PromiseCheck) {
    let expected = super::reference::outcome(lab);
    let (before, line) = (lab.placed.len(), turns(lab));
    lab.pass();
    if lab.state().config.scheduler.max_reservation > 0 {
        return check(lab, asked, line);
    }
    let is_rejection = |line: &&String| line.ends_with(" rejected");
    let (rejected, placed): (Vec<&String>, Vec<&String>) = lab.placed[before..].iter().partition(is_rejection);
    assert_eq!(placed, expected.placed.iter().collect::<Vec<_>>());
    let (count, rejected) = (rejected.len(), rejected.into_iter().cloned().collect());
    assert_eq!((count, &expected.rejected), (expected.rejected.len(), &rejected));
}

/// Lets everything happen, with a pass at the end.
fn happen(setting: &str, budget: usize, steps: Vec<LabStep>, asked: PromiseCheck) {
    let mut lab = cluster(setting);
    lab.budget = budget;
    let mut number = 0;
    for step in steps {
        match step {
            LabStep::Job(words) => {
                number += 1;
                lab.line(&format!("job {number} {words}"));
            }
            LabStep::Change(line) => lab.line(line),
            LabStep::End(which) => end_one(&mut lab, &which),
            LabStep::Pass => pass(&mut lab, asked),
        }
    }
    pass(&mut lab, asked);
    lab.state().check();
}

proptest! {
    #![proptest_config(crate::testing::cases(1000))]

    #[test]
    fn a_pass_leaves_nothing_that_fits(
        setting in prop::sample::select(&SETTINGS[..]),
        steps in proptest::collection::vec(step(&JOBS, &CHANGES), 1..60),
    ) {
        happen(setting, 3, steps, PromiseCheck::Place);
    }

    #[test]
    fn starts_that_are_filed_together_are_those_that_are_made_one_by_one(
        budget in prop::sample::select(vec![4usize, 1_000]),
        steps in proptest::collection::vec(step(&JOBS_ALIKE, &CHANGES), 1..90),
    ) {
        happen(LOCAL, budget, steps, PromiseCheck::Place);
    }

    #[test]
    fn starts_that_need_no_look_and_searches_that_go_on_heed_what_is_kept(
        budget in prop::sample::select(vec![4usize, 1_000]),
        steps in proptest::collection::vec(step(&JOBS_ALIKE_AHEAD, &CHANGES_LOCAL_AHEAD), 1..80),
    ) {
        happen(&format!("{LOCAL}\n{AHEAD}"), budget, steps, PromiseCheck::PlaceAndTime);
    }

    #[test]
    fn what_a_pass_keeps_will_be_there_and_would_not_be_earlier(
        setting in prop::sample::select(&SETTINGS_AHEAD[..]),
        steps in proptest::collection::vec(step(&JOBS_AHEAD, &CHANGES_AHEAD), 1..60),
    ) {
        happen(setting, 3, steps, PromiseCheck::PlaceAndTime);
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(300))]

    #[test]
    fn parallel_jobs_that_look_at_the_first_hosts_alone_go_where_they_go_who_look_at_all(
        setting in prop::sample::select(&SETTINGS_PARALLEL[..]),
        steps in proptest::collection::vec(step(&JOBS_PARALLEL, &CHANGES_PARALLEL), 1..60),
    ) {
        happen(&format!("{MANY}\n{setting}"), 3, steps, PromiseCheck::Place);
    }
}
