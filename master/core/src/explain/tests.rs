//! What `gridwright explain` says.

mod reasons;

use super::{PositionAnswer, Question, explain, place, scheduling_info};
use crate::sched::tests::lab::Lab;
use proto::id::SubmitSeq;
use proto::time::Zone;
use proto::wire::view::{Explanation, OrderPosition, PriorityNumbers};

fn explained(script: &str, job: u64) -> Explanation {
    let mut lab = Lab::new();
    script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .for_each(|line| lab.line(line));
    explained_in(&lab, job)
}

fn explained_in(lab: &Lab, job: u64) -> Explanation {
    explain(
        &mut lab.findings(),
        Question {
            seq: SubmitSeq(job),
            tasks: &[],
            zone: &Zone::utc(),
        },
    )
}

#[test]
fn scheduling_info_is_shown_for_the_jobs_that_the_configuration_names() {
    let full = "queue instance \"all.q@a\" dropped because it is full";
    let all = "All queues dropped because of overload or full";
    let held = "Job is in hold state";
    let listed = "(Scheduler job information not available for every job)";
    for (value, lines) in [
        ("true", &[full, all, held][..]),
        ("false", &["(Collecting of scheduler job information is turned off)"]),
        ("job_list 2,7", &[listed, full, all, held]),
        ("job_list 7", &[listed, full, all]),
    ] {
        let script = "host a\nqueue all.q a slots=1\njob 1\njob 2 -h\npass";
        let mut lab = Lab::new();
        script.lines().for_each(|line| lab.line(line));
        lab.line(&format!("conf schedd_job_info {value}"));
        assert_eq!(scheduling_info(&mut lab.findings(), SubmitSeq(2)), lines, "{value}");
    }
}

#[test]
fn a_host_with_several_queues_is_counted_once() {
    let explanation = explained(
        "complex mem mem INT <= YES YES 0 0
         host a mem=4
         host b mem=2
         pe mpi 9 $fill_up
         queue all.q a,b slots=4
         queue io.q a,b slots=4
         job 1 -pe mpi 2 -scope master -l mem=9 -scope slave -l mem=7
         pass",
        1,
    );
    let reason = explanation
        .reasons
        .iter()
        .find(|reason| reason.level == "host")
        .unwrap();
    assert_eq!(
        (reason.count, reason.examples.as_slice()),
        (2, &["a".to_owned(), "b".to_owned()][..])
    );
    assert_eq!(
        reason.needed.as_deref(),
        Some("7"),
        "the slaves are nearer to it than the master"
    );
}

#[test]
fn the_nearest_miss_comes_first_with_its_numbers() {
    let explanation = explained(
        "complex mem mem MEMORY <= YES YES 0 0
         host a mem=8G
         host b mem=16G
         host c
         queue all.q a,b,c slots=4
         job 1 -l mem=10G
         pass
         job 2 -l mem=9G
         pass
         wait 3",
        2,
    );
    let first = &explanation.reasons[0];
    assert_eq!(
        first.text,
        "(-l mem=9G) cannot run at host \"a\" because it offers only mem=8.000G"
    );
    assert_eq!((first.level.as_str(), first.count), ("host", 2));
    assert_eq!(first.examples, ["a", "b"]);
    assert_eq!(first.needed.as_deref(), Some("9.000G"));
    assert_eq!(first.free.as_deref(), Some("8.000G"));
    assert_eq!(first.capacity.as_deref(), Some("8.000G"));
    assert_eq!(first.hint, None, "b has 16G");
    assert_eq!(
        explanation.reasons[1].text,
        "(-l mem=9G) cannot run in queue \"all.q@c\" because job requests unknown resource (mem)"
    );
    assert_eq!(
        explanation.summary,
        "No queue instance can take it now; what it needs may become free."
    );
}

#[test]
fn the_nearest_of_many_hosts_is_told_whichever_it_is_in_few_lines() {
    let mut script = "complex mem mem MEMORY <= YES YES 0 0\n".to_owned();
    let name = |n: u32| format!("h{n:04}");
    for n in 0..2000 {
        script += &format!(
            "host {} mem={}M\n",
            name(n),
            if n == 1500 { 8000 } else { 1000 + n % 7 }
        );
    }
    let hosts: Vec<String> = (0..2000).map(name).collect();
    script += &format!("queue all.q {} slots=4\njob 1 -l mem=9000M\npass\n", hosts.join(","));
    let mut lab = Lab::new();
    script.lines().for_each(|line| lab.line(line));
    let explanation = explained_in(&lab, 1);
    let first = &explanation.reasons[0];
    assert_eq!(
        (explanation.reasons.len(), first.count, first.examples[0].as_str()),
        (1, 2000, "h1500")
    );
    assert_eq!(first.free.as_deref(), Some("7.812G"));
    assert_eq!(
        first.hint.as_deref(),
        Some("there is never more than 7.812G: ask for less")
    );
    let lines = scheduling_info(&mut lab.findings(), SubmitSeq(1));
    assert!(lines.len() < 30, "{}", lines.len());
    assert_eq!(
        lines.last().unwrap(),
        "and 1980 more of this kind; nearest: (-l mem=9000M) cannot run at host \"h1500\" because it offers only \
         hc:mem=7.812G: needed 8.789G, free 7.812G, capacity 7.812G"
    );
}

#[test]
fn a_job_that_is_held_is_told_so() {
    let explanation = explained("host a\nqueue all.q a slots=4\njob 1 -h\npass", 1);
    assert_eq!(explanation.summary, "It may not start yet.");
    assert_eq!(explanation.reasons[0].text, "it is held: user hold (u)");
}

#[test]
fn a_request_that_nothing_can_meet_is_told_so() {
    let explanation = explained("host a\nqueue all.q a slots=4\njob 1 -l num_proc=99\npass", 1);
    assert_eq!(
        explanation.summary,
        "No queue instance can take it as the cluster is configured; waiting alone will not help."
    );
}

#[test]
fn a_cell_without_hosts_says_that() {
    let explanation = explained("queue all.q a slots=4\njob 1", 1);
    assert_eq!(explanation.summary, "No execution host is connected.");
}

#[test]
fn a_request_above_a_limit_is_told_although_the_queue_is_full() {
    let explanation = explained(
        "complex lic lic INT <= YES YES 0 0
         global lic=2
         host a
         queue all.q a slots=1 h_rt=1:0:0
         job 1 -l lic=1
         pass
         job 2 -l h_rt=2:0:0
         pass",
        2,
    );
    let texts: Vec<&str> = explanation.reasons.iter().map(|reason| reason.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "(-l h_rt=7200) cannot run in queue \"all.q@a\" because it offers only h_rt=01:00:00",
            "queue instance \"all.q@a\" dropped because it is full",
        ]
    );
    assert!(
        explanation.summary.ends_with("waiting alone will not help."),
        "{}",
        explanation.summary
    );
}

#[test]
fn more_than_there_will_ever_be_is_not_waited_for() {
    for (job, waits) in [
        ("-l lic=2", true),
        ("-l lic=3", false),
        ("-pe smp 2", true),
        ("-pe smp 5", false),
    ] {
        let script = format!(
            "complex lic lic INT <= YES YES 0 0
             global lic=2
             host a
             pe smp 99 $pe_slots
             queue all.q a slots=4
             job 1 -l lic=1
             job 2 -pe smp 2
             pass
             job 3 {job}
             pass"
        );
        let summary = explained(&script, 3).summary;
        assert_eq!(summary.ends_with("may become free."), waits, "{job}: {summary}");
    }
}

#[test]
fn a_job_that_waits_for_a_reservation_of_another_says_so_and_that_one_when_it_starts() {
    let script = "complex lic lic INT <= YES YES 0 0
        global lic=5
        host a
        queue all.q a slots=50
        conf max_reservation 10
        job 1 -l lic=4,h_rt=30
        job 2 -R -l lic=5,h_rt=30
        job 3 -p -9 -l lic=1
        pass";
    let kept = explained(script, 2);
    assert_eq!(kept.starts, Some(proto::time::Wall(1_800_000_090_000)));
    assert_eq!(kept.kept.len(), 1);
    assert_eq!(kept.reasons[0].needed.as_deref(), Some("5"));
    let held_back = explained(script, 3);
    assert!(
        held_back.summary.contains("kept for jobs of higher priority"),
        "{held_back:?}"
    );
    assert_eq!(held_back.starts, None);
}

#[test]
fn a_wish_for_a_reservation_that_is_vain_names_the_setting() {
    let script = "host a
        queue all.q a slots=1
        job 1
        pass
        job 2 -R";
    let texts = |script: &str| -> Vec<String> {
        explained(script, 2)
            .reasons
            .into_iter()
            .map(|reason| reason.text)
            .collect()
    };
    assert!(
        texts(script).iter().any(|text| text.contains("max_reservation")),
        "{:?}",
        texts(script)
    );
    let script = format!("{script}\nconf max_reservation 1");
    assert!(
        texts(&script).iter().any(|text| text.contains("default_duration")),
        "{:?}",
        texts(&script)
    );
    let script = format!("{script}\nconf default_duration 1:0:0");
    assert!(
        !texts(&script).iter().any(|text| text.contains("-R y")),
        "{:?}",
        texts(&script)
    );
}

/// The place of a job where the priority of each is its number of tenths.
fn placed(script: &str, tenths: &[i64], job: u64) -> Option<OrderPosition> {
    let mut lab = Lab::new();
    script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .for_each(|line| lab.line(line));
    let numbers = |seq: SubmitSeq| {
        let prior = tenths[usize::try_from(seq.0).unwrap() - 1] * 100_000;
        PriorityNumbers {
            prior,
            npprior: 500_000,
            nurg: 250_000,
            urg: 1_005_000_000,
            ftckt: 7,
            tckts: 7,
            ..Default::default()
        }
    };
    match place(lab.state(), &numbers(SubmitSeq(job)), SubmitSeq(job), lab.now) {
        PositionAnswer::Nothing => None,
        PositionAnswer::Apart(place) => Some(place),
        PositionAnswer::Counted(mut counting) => {
            let jobs = lab.state().jobs.values();
            jobs.for_each(|other| counting.look(lab.state(), other, numbers(other.seq).prior));
            Some(counting.place())
        }
    }
}

#[test]
fn the_place_of_a_job_counts_those_that_are_looked_at_before_it() {
    let script = "host a
        queue all.q a slots=1
        job 1
        pass
        job 2
        job 3
        job 4 -h
        job 5
        job 6";
    let last = placed(script, &[9, 3, 5, 9, 3, 4], 5).unwrap();
    assert_eq!((last.place, last.of, last.remark.clone()), (Some(4), 4, None));
    let jobs: Vec<_> = last.in_front.iter().map(|job| (job.job.0, job.prior)).collect();
    assert_eq!(
        jobs,
        [(2, 300_000), (6, 400_000), (3, 500_000)],
        "the earlier one of two that are equal is in front"
    );
    assert_eq!(last.users_in_front.iter().map(|(_, count)| *count).sum::<u64>(), 3);
    assert_eq!(placed(script, &[9, 3, 5, 9, 3, 4], 3).unwrap().place, Some(1));
    let terms: Vec<_> = last
        .terms
        .iter()
        .map(|term| (term.name.as_str(), term.raw, term.value))
        .collect();
    let expected = [
        ("posix priority", 0, 500_000),
        ("urgency", 1_005_000_000, 25_000),
        ("tickets", 7_000_000, 0),
    ];
    assert_eq!(terms, expected);
}

#[test]
fn a_job_that_is_not_looked_at_has_no_place_and_says_why() {
    let script = "host a
        queue all.q a slots=9
        job 1 -t 1-3 -tc 1
        job 2 -h
        job 3 -after 60
        job 4
        pass";
    let why = |job| placed(script, &[5; 4], job).unwrap().remark.unwrap();
    assert!(why(1).contains("as many as -tc allows"), "{}", why(1));
    assert!(why(2).contains("held"), "{}", why(2));
    assert!(why(3).contains("start time"), "{}", why(3));
    assert_eq!(placed(script, &[5; 4], 4), None, "it runs");
    let fcfs = placed(&format!("{script}\nconf algorithm fcfs\njob 5 -l arch=foo"), &[5; 5], 5);
    assert!(fcfs.is_some_and(|place| place.place.is_none() && place.remark.unwrap().contains("fcfs")));
}

#[test]
fn what_is_kept_for_a_job_does_not_stand_against_it() {
    let script = "host a
        pe mpi 9 $fill_up
        queue all.q a slots=4
        conf max_reservation 10
        job 1 -t 1-3 -l h_rt=30
        pass
        job 2 -R -pe mpi 4 -l h_rt=100
        pass";
    let explanation = explained(script, 2);
    assert!(explanation.starts.is_some());
    let texts: Vec<_> = explanation.reasons.iter().map(|reason| reason.text.as_str()).collect();
    assert!(
        texts.contains(&"cannot run in PE \"mpi\": suitable queues have 1 slots for it, and 4 are needed"),
        "{texts:?}"
    );
}

/// What is said of the slots of a job on the best host: the sentence, then
/// `attribute: needed, free, capacity`.
fn no_more(script: &str, job: u64) -> Vec<String> {
    let told = explained(script, job)
        .reasons
        .into_iter()
        .filter(|reason| reason.text.contains(" there, because "));
    let number = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
    let numbers = told.map(|reason| {
        let (attribute, needed) = (number(reason.attribute), number(reason.needed));
        format!(
            "{} | {attribute}: {needed}, {}, {}",
            reason.text,
            number(reason.free),
            number(reason.capacity)
        )
    });
    numbers.collect()
}

/// Options of a parallel job, and what leaves it no more slots.
const NO_MORE: [(&str, &[&str]); 10] = [
    ("-pe smp 2 -l mem=4G", &[]),
    (
        "-pe smp 4 -l mem=3G",
        &[
            "(-l mem=3G) finds 2 slots at host \"b\" in PE \"smp\" and needs 4 there, because it offers only mem=8.000G \
           | mem: 12.000G, 8.000G, 8.000G",
        ],
    ),
    (
        "-pe smp 9-12",
        &[
            "finds 8 slots in queue \"all.q@a\" in PE \"smp\" and needs 9 there, because it offers only \
           slots=8 | slots: 9, 8, 8",
        ],
    ),
    (
        "-pe mpi 10 -l mem=3G",
        &[
            "(-l mem=3G) finds 2 slots at host \"b\" in PE \"mpi\" and needs 7 there, because it offers only mem=8.000G \
           | mem: 21.000G, 8.000G, 8.000G",
        ],
    ),
    (
        "-pe two 6 -l mem=3G",
        &[
            "(-l mem=3G) finds 1 slots at host \"a\" in PE \"two\" and needs 2 there, because it offers only mem=4.000G \
           | mem: 6.000G, 4.000G, 4.000G",
        ],
    ),
    ("-pe two 8 -l mem=1G", &[]),
    (
        "-pe four 4 -l mem=3G",
        &[
            "(-l mem=3G) finds 2 slots at host \"b\" in PE \"four\" and needs 4 there, because it offers only \
           mem=8.000G | mem: 12.000G, 8.000G, 8.000G",
        ],
    ),
    (
        "-pe apart 2 -l mem=3G",
        &[
            "(-l mem=3G) finds 2 slots at host \"b\" in PE \"apart\" and needs 3 there, because it offers only \
           mem=8.000G | mem: 9.000G, 8.000G, 8.000G",
        ],
    ),
    (
        "-pe smp 2 -l lic=1",
        &[
            "(-l lic=1) finds 0 slots at host \"a\" in PE \"smp\" and needs 2 there, because it offers only \
           lic=0 | lic: 1, 0, 0",
        ],
    ),
    ("-pe small 4", &[]),
];

#[test]
fn a_parallel_job_is_told_which_request_leaves_no_more_slots_on_the_best_host() {
    let cell = "complex mem mem MEMORY <= YES YES 0 0
         complex lic lic INT <= YES JOB 0 0
         conf job_load_adjustments NONE
         host a mem=4G,lic=0
         host b mem=8G,lic=0
         host c mem=8G,lic=0
         pe smp 99 $pe_slots
         pe mpi 99 $fill_up
         pe two 99 2
         pe four 99 4
         pe apart 99 $pe_slots job_is_first_task=FALSE
         pe small 3 $fill_up
         queue all.q a,b,c slots=8 pe_list=smp,mpi,two,four,apart,small";
    for (job, expected) in NO_MORE {
        assert_eq!(no_more(&format!("{cell}\njob 1 {job}\npass"), 1), expected, "{job}");
    }
}

#[test]
fn a_threshold_that_leaves_a_parallel_job_no_more_slots_is_told_with_the_load() {
    let script = "conf job_load_adjustments np_load_avg=0.50
         host a | num_proc=1 np_load_avg=0.5
         pe smp 99 $pe_slots
         queue all.q a slots=8 load_thresholds=np_load_avg=1.75
         job 1 -pe smp 4
         pass";
    assert_eq!(
        no_more(script, 1),
        [
            "finds 3 slots in queue \"all.q@a\" in PE \"smp\" and needs 4 there, because more would bring np_load_avg \
          from 0.5 to 1.75 | np_load_avg: 1.75, 0.5, -"
        ]
    );
}

#[test]
fn an_environment_with_too_few_slots_left_is_told_with_all_of_them_and_no_host_is() {
    let script = "conf job_load_adjustments NONE
         host a
         pe smp 5 $pe_slots
         queue all.q a slots=8
         job 1 -pe smp 3
         pass
         job 2 -pe smp 4
         pass";
    let reasons = explained(script, 2).reasons;
    let told = reasons
        .iter()
        .map(|reason| (reason.text.as_str(), reason.free.as_deref(), reason.capacity.as_deref()));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [(
            "cannot run in PE \"smp\": it has 5 slots in all, 3 in use, and 4 are needed",
            Some("2"),
            Some("5")
        )],
        "5 of 8 slots are free on the host"
    );
}

#[test]
fn what_leaves_no_more_on_a_host_is_no_line_of_scheduling_info() {
    let mut lab = Lab::new();
    let script = "complex mem mem MEMORY <= YES YES 0 0\nhost a mem=8G\npe smp 9 $pe_slots\nqueue all.q a slots=8\n\
                  job 1 -pe smp 4 -l mem=3G\npass";
    script.lines().for_each(|line| lab.line(line));
    let lines = scheduling_info(&mut lab.findings(), SubmitSeq(1));
    assert_eq!(
        lines,
        ["cannot run in PE \"smp\" because it only offers 2 slots"],
        "as by 8.1.9"
    );
}

#[test]
fn a_quota_in_the_way_of_a_parallel_job_is_told_with_what_the_whole_job_needs() {
    let never = "the limit never allows so much: ask for less, or see qconf -srqs r";
    let [shown, of_u2] = ["u1", "u2"].map(|user| format!("qquota -u {user} shows what is in use"));
    let [shown, of_u2] = [Some(shown.as_str()), Some(of_u2.as_str())];
    for (quota, job, [needed, free, of], hint) in [
        ("hosts {*} to slots=2", "-pe smp 4", ["4", "2", "2"], Some(never)),
        ("hosts {*} to slots=2", "-pe mpi 6", ["6", "2", "2"], shown),
        ("hosts {*} to slots=1", "-pe two 4", ["2", "1", "1"], Some(never)),
        ("hosts {*} to slots=2", "-pe loose 2", ["3", "2", "2"], Some(never)),
        ("queues {*} to slots=5", "-pe mpi 8", ["8", "5", "5"], shown),
        ("queues {*} to slots=5", "-pe smp 6-8", ["6", "5", "5"], shown),
        (
            "queues all.q,io.q to mem=10G",
            "-pe mpi 4 -l mem=3G",
            ["12.000G", "7.000G", "10.000G"],
            shown,
        ),
        (
            "users {*} queues * to mem=10G",
            "-u u2 -pe mpi 3 -l mem=3G",
            ["9.000G", "7.000G", "10.000G"],
            of_u2,
        ),
        ("users u2 to slots=3", "-u u2 -pe mpi 3", ["3", "2", "3"], of_u2),
        ("users u2 to slots=3", "-u u2 -pe mpi 4", ["4", "2", "3"], Some(never)),
        (
            "hosts {*} to mem=3G",
            "-pe mpi 4 -l mem=2G",
            ["8.000G", "3.000G", "3.000G"],
            shown,
        ),
        ("queues all.q,io.q to slots=1", "", ["1", "0", "1"], shown),
    ] {
        let script = format!(
            "complex mem mem MEMORY <= YES YES 0 0
             conf job_load_adjustments NONE
             host a mem=99G
             host b mem=99G
             pe smp 99 $pe_slots
             pe mpi 99 $fill_up
             pe two 99 2
             pe loose 99 $pe_slots job_is_first_task=FALSE
             queue all.q a,b slots=8 pe_list=smp,mpi,two,loose
             queue io.q b slots=8 pe_list=NONE
             quota r {quota}
             job 1 -u u2 -q io.q -l mem=3G
             pass
             job 2 {job}
             pass"
        );
        let told = explained(&script, 2)
            .reasons
            .into_iter()
            .find(|reason| reason.level == "quota")
            .expect(job);
        let numbers = [told.needed, told.free, told.capacity].map(Option::unwrap);
        assert_eq!(
            (numbers.each_ref().map(String::as_str), told.hint.as_deref()),
            ([needed, free, of], hint),
            "{quota}: {job}"
        );
    }
}
