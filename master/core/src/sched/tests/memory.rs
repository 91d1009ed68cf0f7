//! What categories and standings remember never hides a place: after any stream of changes a pass leaves nothing that fits, as the
//! matcher finds it who asks every queue instance about every job and remembers nothing. [`Lab::pass`] asserts that. And it places
//! the very tasks in the very places that the [`reference`](super::reference) does.

use super::lab::Lab;
use proptest::prelude::*;

const JOBS: [&str; 19] = [
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
];

const CHANGES: [&str; 18] = [
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
    "quota r",
    "wait 20",
    "queue short.q a,b slots=2 seq_no=5 pe_list=fill,robin,smp complex_values=lic=1",
    "queue short.q a,b,c slots=1 seq_no=5 pe_list=fill,smp",
    "host a mem=2G | mem_free=5G np_load_avg=0.4",
];

const SETTINGS: [&str; 7] = [
    "conf job_load_adjustments NONE",
    "conf job_load_adjustments np_load_avg=0.50",
    "conf load_formula slots",
    "conf queue_sort_method seqno",
    "conf maxujobs 5",
    "conf max_reservation 3",
    "",
];

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Job(&'static str),
    Change(&'static str),
    End(prop::sample::Index),
    Pass,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => prop::sample::select(&JOBS[..]).prop_map(Step::Job),
        3 => prop::sample::select(&CHANGES[..]).prop_map(Step::Change),
        2 => any::<prop::sample::Index>().prop_map(Step::End),
        2 => Just(Step::Pass),
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
        "queue all.q a,b,c slots=3,[b=2] pe_list=smp,fill,robin",
        "queue short.q a,b slots=2 seq_no=5 pe_list=fill,robin complex_values=lic=1",
        setting,
    ]
    .into_iter()
    .filter(|line| !line.is_empty())
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

/// A pass, which places what the reference places where that knows what counts.
fn pass(lab: &mut Lab) {
    let conf = &lab.state().config.scheduler;
    let is_known = conf.max_reservation == 0 && conf.maxujobs == 0;
    let expected = super::reference::placements(lab);
    let before = lab.placed.len();
    lab.pass();
    if is_known {
        assert_eq!(lab.placed[before..], expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_pass_leaves_nothing_that_fits(
        setting in prop::sample::select(&SETTINGS[..]),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut lab = cluster(setting);
        let mut number = 0;
        for step in steps {
            match step {
                Step::Job(words) => {
                    number += 1;
                    lab.line(&format!("job {number} {words}"));
                }
                Step::Change(line) => lab.line(line),
                Step::End(which) => end_one(&mut lab, &which),
                Step::Pass => pass(&mut lab),
            }
        }
        pass(&mut lab);
        lab.state().check();
    }
}
