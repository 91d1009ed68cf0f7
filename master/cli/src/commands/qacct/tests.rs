//! Blocks and tables of `qacct`, compared with what 8.1.9 printed.

mod files;

use super::entry::AccountingEntry;
use super::select::Selection;
use super::{QACCT, block, file, not_found, table};
use crate::output::time::Clock;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use proto::accounting::AccountingRecord;
use proto::id::QueueInstanceName;
use proto::usage::{Evidence, LimitHit};
use std::collections::BTreeSet;

/// Lines of an accounting file: a job that was killed, one with exit status 100, and tasks of an
/// array.
const LINES: [&str; 4] = [
    "all.q:vm:u1:u1:run1:1:sge:0:1795223362:1795223396:1795223649:100:137:253:0.005:0.005:4672.000000:0:0:0:0:477:0:0:0.000000:40:0:0:0:8:32:NONE:defaultdepartment:NONE:1:0:0.010:0.000000:0.000038:NONE:0.000000:NONE:3526656.000000:0:0",
    "all.q:vm:u1:u1:x100.sh:205:sge:0:1795225482:1795225483:1795225483:30:100:0:0.031:0.005:7908.000000:0:0:0:0:2777:0:0:0.000000:32:0:0:0:14:8:NONE:defaultdepartment:NONE:1:0:0.036:0.000000:0.000000:-q all.q:0.000000:NONE:0.000000:0:0",
    "sus.q:vm:u2:u2:arrp:12:sge:0:1795223364:1795223395:1795223405:0:0:10:1.500:0.250:100.000000:0:0:0:0:1:0:0:0.000000:0:0:0:0:1:0:NONE:defaultdepartment:smp:2:1:1.750:0.500000:0.000000:-pe smp 2:0.000000:NONE:0.000000:0:0",
    "sus.q:vm:u2:u2:arrp:12:sge:0:1795223364:0:0:26:0:0:0.000:0.000:0.000000:0:0:0:0:0:0:0:0.000000:0:0:0:0:0:0:NONE:defaultdepartment:NONE:1:2:0.000:0.000000:0.000000:NONE:0.000000:NONE:0.000000:0:0",
];

fn entries() -> Vec<AccountingEntry> {
    LINES.iter().map(|line| file::entry(line).unwrap()).collect()
}

/// The record of a job that was killed.
pub fn record() -> AccountingRecord {
    entries().swap_remove(0).record
}

fn utc() -> Clock {
    Clock::new(TimeZone::UTC)
}

fn selection(line: &str) -> Selection {
    let parsed = QACCT
        .parse(line.split_whitespace().map(str::to_owned).collect())
        .unwrap();
    Selection::from_command_line(&parsed, &utc()).unwrap()
}

fn chosen(line: &str) -> Vec<u32> {
    selection(line)
        .choose(entries())
        .iter()
        .map(|entry| entry.record.job_number.0 * 10 + entry.record.task_number)
        .collect()
}

fn table_of(line: &str) -> String {
    let mut selection = selection(line);
    let chosen = selection.choose(entries());
    table::text(sums(&chosen, &selection))
}

#[test]
fn a_block_is_that_of_8_1_9_with_the_unit_of_maxrss_put_right() {
    let expected = r##"==============================================================
qname        all.q               
hostname     vm                  
group        u1                  
owner        u1                  
project      NONE                
department   defaultdepartment   
jobname      run1                
jobnumber    1                   
taskid       undefined
account      sge                 
priority     0                   
qsub_time    Sat Nov 21 01:09:22 2026
start_time   Sat Nov 21 01:09:56 2026
end_time     Sat Nov 21 01:14:09 2026
granted_pe   NONE                
slots        1                   
failed       100 : assumedly after job
exit_status  137                  (Killed)
ru_wallclock 253s
ru_utime     0.005s
ru_stime     0.005s
ru_maxrss    4.562MB
ru_ixrss     0.000B
ru_ismrss    0.000B
ru_idrss     0.000B
ru_isrss     0.000B
ru_minflt    477                 
ru_majflt    0                   
ru_nswap     0                   
ru_inblock   0                   
ru_oublock   40                  
ru_msgsnd    0                   
ru_msgrcv    0                   
ru_nsignals  0                   
ru_nvcsw     8                   
ru_nivcsw    32                  
cpu          0.010s
mem          0.000Bs
io           39.846KB
iow          0.000s
maxvmem      3.363MB
arid         undefined
ar_sub_time  undefined
category     NONE
"##;
    assert_eq!(block::render(&entries()[..1], &utc()), expected);
}

#[test]
fn failures_signals_and_unknown_times_have_words() {
    let text = block::render(&entries(), &utc());
    for line in [
        "failed       30  : application error returned",
        "failed       0    ",
        "failed       26  : opening input/output file",
        "exit_status  100                 ",
        "ru_maxrss    7.723MB",
        "category     -q all.q",
        "taskid       2                   ",
        "start_time   -/-",
        "mem          512.000MBs",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} in\n{text}");
    }
}

#[test]
fn the_address_space_of_a_job_that_was_not_measured_is_said_to_be_unknown() {
    let mut entry = entries().remove(0);
    entry.record.usage.maxvmem_bytes = 0;
    let unmeasured = "\nunmeasured   address space: the job ended before it was measured\n";
    let shows = |entry: &AccountingEntry| block::render(std::slice::from_ref(entry), &utc()).contains(unmeasured);
    assert!(!shows(&entry), "a record of 8.1.9");
    entry.record.usage.maxrss_bytes = 8 << 20;
    assert!(shows(&entry));
    let text = block::render(std::slice::from_ref(&entry), &utc());
    assert!(text.contains("\npeak_rss     8.000MB\n"), "{text}");
    for word in ["maxvmem", "maxrss"] {
        assert_eq!(
            text.lines().filter(|line| line.contains(word)).count(),
            1,
            "grep {word}:\n{text}"
        );
    }
    let own = ["peak_rss ", "unmeasured "].map(|name| text.lines().find(|line| line.starts_with(name)).unwrap());
    for (field, _) in proto::accounting::FIELDS {
        assert!(own.iter().all(|line| !line.contains(field)), "{field}: {own:?}");
    }
    entry.record.usage.maxvmem_bytes = 9 << 20;
    assert!(!shows(&entry));
}

#[test]
fn the_limit_that_ended_a_job_is_told() {
    let mut entry = entries().remove(0);
    let record = &mut entry.record;
    record.reason = "killed:\nh_vmem".to_owned();
    record.limit = Some(LimitHit {
        limit: "h_vmem".to_owned(),
        value: 629_145_600,
        reached: 789_216_911,
        evidence: Evidence::Certain,
    });
    let text = block::render(std::slice::from_ref(&entry), &utc());
    let expected = "\nlimit        h_vmem=600.000M reached 752.656M (certain)\nreason       killed: h_vmem\n";
    assert!(text.ends_with(expected), "{text}");
    entry.record.limit = Some(LimitHit {
        limit: "h_rt".to_owned(),
        value: 60,
        reached: 61,
        evidence: Evidence::Likely,
    });
    let text = block::render(&[entry], &utc());
    assert!(
        text.contains("\nlimit        h_rt=00:01:00 reached 00:01:01 (likely)\n"),
        "{text}"
    );
}

#[test]
fn sums_are_printed_in_all_or_by_columns() {
    let rule = |length: usize| "=".repeat(length);
    let total = format!(
        "Total System Usage\n    WALLCLOCK         UTIME         STIME           CPU             MEMORY                 IO                IOW\n{}\n          263         1.536         0.260         1.796              0.500              0.000              0.000\n",
        rule(112)
    );
    assert_eq!(table_of(""), total);
    assert!(
        table_of("-b 203001010000").ends_with(&format!("{}\n", rule(112))),
        "no row without records"
    );
    let owners = format!(
        "OWNER     WALLCLOCK         UTIME         STIME           CPU             MEMORY                 IO                IOW\n{}\nu1              253         0.036         0.010         0.046              0.000              0.000              0.000\nu2               10         1.500         0.250         1.750              0.500              0.000              0.000\n",
        rule(118)
    );
    assert_eq!(table_of("-o"), owners);
    let nobody = format!(
        "OWNER      WALLCLOCK         UTIME         STIME           CPU             MEMORY                 IO                IOW\n{}\n",
        rule(119)
    );
    assert_eq!(table_of("-o nosuch"), nobody);
    let slots = format!(
        "SLOTS    WALLCLOCK         UTIME         STIME           CPU             MEMORY                 IO                IOW\n{}\n    2           10         1.500         0.250         1.750              0.500              0.000              0.000\n",
        rule(117)
    );
    assert_eq!(table_of("-slots 2"), slots);
    let heading = |line: &str| table_of(line).lines().next().unwrap_or_default().to_owned();
    assert!(heading("-o -h -q").starts_with("HOST CLUSTER QUEUE OWNER     WALLCLOCK"));
    assert!(heading("-q all.q").starts_with("HOST CLUSTER QUEUE     WALLCLOCK"));
    assert!(heading("-pe smp").starts_with("PE      WALLCLOCK"));
    let within = table_of("-ar");
    assert!(within.starts_with("AR        WALLCLOCK         UTIME"), "{within}");
    assert_eq!(within.lines().nth(1), Some(rule(118).as_str()));
    assert!(
        within.lines().nth(2).is_some_and(|row| row.starts_with("    0 ")),
        "{within}"
    );
    assert!(heading("-D").starts_with("DEPARTMENT            WALLCLOCK"));
}

#[test]
fn rows_as_json_name_their_columns() {
    let mut selection = selection("-o -q");
    let chosen = selection.choose(entries());
    let rows = table::json(sums(&chosen, &selection));
    assert_eq!(
        (&rows[0]["group"]["owner"], &rows[0]["group"]["cluster_queue"]),
        (&"u1".into(), &"all.q".into())
    );
}

#[test]
fn options_select_records() {
    for (line, expected) in [
        ("-j 1,205", vec![10, 2050]),
        ("-j arrp", vec![121, 122]),
        ("-j 12 -t 2", vec![122]),
        ("-j run*", vec![10]),
        ("-j -o u2", vec![121, 122]),
        ("-q sus.q@vm", vec![121, 122]),
        ("-q s*", vec![121, 122]),
        ("-h VM -slots 2", vec![121]),
        ("-pe", vec![10, 2050, 121, 122]),
        ("-pe smp", vec![121]),
        ("-o u*", vec![]),
        ("-A s*", vec![]),
        ("-j !run1", vec![]),
        ("-slots 02", vec![121]),
        ("-q sus.*@v*", vec![121, 122]),
        ("-q @vm", vec![]),
        ("-g 0", vec![]),
        ("-b 202611210140", vec![2050]),
        ("-b 202611200140 -d 1", vec![10, 121]),
        ("-b 202611200000 -d 1", vec![]),
        ("-b 202611210140 -d 0", vec![]),
        ("-e 202611210140 -d 1", vec![10, 121]),
        ("-e 202611230000 -d 1", vec![]),
        ("-d 1 -b 202611200000 -e 202611210140", vec![10, 121]),
        ("-e 202611210110 -o u1", vec![10]),
        ("-e 202611210110 -E -o u1", vec![]),
        ("-g u1 -A sge -P NONE -D defaultdepartment", vec![10, 2050]),
    ] {
        assert_eq!(chosen(line), expected, "{line}");
    }
}

#[test]
fn records_of_queues_that_are_gone_are_counted() {
    let instance = |queue: &str| QueueInstanceName {
        queue: queue.into(),
        host: "vm".into(),
    };
    let mut selection = selection("-l h_rt=15");
    selection.only_in(&[[instance("all.q")].into(), [instance("all.q")].into()]);
    // One of the other two never started.
    assert_eq!((selection.choose(entries()).len(), selection.ignored()), (2, 1));
}

#[test]
fn what_is_not_found_is_told_in_the_words_that_programs_look_for() {
    assert_eq!(
        not_found("999999", &selection("-j 999999")),
        "error: job id 999999 not found"
    );
    assert_eq!(not_found("x", &selection("-j x")), "error: job name x not found");
    assert_eq!(
        not_found("203", &selection("-j 203 -t 1")),
        "error: Job-array tasks 203.1-1:1 not found"
    );
}

#[test]
fn values_that_do_not_read_are_refused() {
    for line in [
        "-b bad",
        "-d x",
        "-j 1 -t 0",
        "-j 1 -t a",
        "-t 1",
        "-slots x",
        "-ar x",
        "-d -1",
    ] {
        let parsed = QACCT
            .parse(line.split_whitespace().map(str::to_owned).collect())
            .unwrap();
        assert_eq!(
            Selection::from_command_line(&parsed, &utc()).unwrap_err().exit,
            1,
            "{line}"
        );
    }
}

#[test]
fn a_line_reads_back_as_it_is_written() {
    let mut record = entries().remove(2).record;
    record.usage.io_bytes = 1 << 30;
    let again = file::entry(&record.to_line()).unwrap();
    assert_eq!(again.record, record);
}

proptest! {
    #[test]
    fn no_line_panics(line in ".*", fields in proptest::collection::vec("[0-9.]{0,8}|[a-z]{0,3}", 45..47)) {
        let _ = file::entry(&line);
        if let Some(entry) = file::entry(&fields.join(":")) {
            let _ = block::render(&[entry], &utc());
        }
    }
}

#[test]
fn columns_stand_in_the_order_of_8_1_9_and_new_accounts_come_first() {
    let line = |account: &str, pe: &str, slots: &str| {
        LINES[0]
            .replace(":sge:", &format!(":{account}:"))
            .replace(":NONE:1:0:", &format!(":{pe}:{slots}:0:"))
    };
    let lines = [
        line("b", "smp", "10"),
        line("a", "smp", "10"),
        line("c", "mpi", "9"),
        line("b", "smp", "9"),
    ];
    let mut selection = selection("-A -pe -slots");
    let chosen = selection.choose(lines.iter().map(|line| file::entry(line).unwrap()).collect());
    let text = table::text(sums(&chosen, &selection));
    let starts: Vec<&str> = text.lines().map(|line| &line[..20]).collect();
    let rows = [
        "mpi     9 c         ",
        "smp     9 b         ",
        "smp    10 a         ",
        "smp    10 b         ",
    ];
    assert_eq!((starts[0], &starts[2..]), ("PE  SLOTS ACCOUNT   ", &rows[..]), "{text}");
}

#[test]
fn sums_are_rounded_once() {
    let line = LINES[0].replace(":0.005:0.005:", ":0.927512:0.000501:");
    let entry = file::entry(&line).unwrap();
    let block = block::render(std::slice::from_ref(&entry), &utc());
    assert!(
        block.contains("\nru_utime     0.928s\nru_stime     0.001s\n"),
        "{block}"
    );
    let mut selection = selection("");
    let chosen = selection.choose(vec![entry.clone(), entry]);
    let text = table::text(sums(&chosen, &selection));
    assert!(text.contains("         1.855         0.001 "), "{text}");
}

#[test]
fn a_block_names_the_reservation_that_the_job_ran_in() {
    let line = LINES[0].replace(":3526656.000000:0:0", ":3526656.000000:7:1795223300");
    let text = block::render(&[file::entry(&line).unwrap()], &utc());
    assert!(
        text.contains("\narid         7                   \nar_sub_time  Sat Nov 21 01:08:20 2026\n"),
        "{text}"
    );
}

#[test]
fn a_job_that_l_leaves_out_is_not_missing() {
    let mut selection = selection("-j 1,7 -l h_rt=15");
    selection.only_in(&[BTreeSet::new(), BTreeSet::new()]);
    assert_eq!(selection.choose(entries()).len(), 0);
    assert_eq!((selection.missing(), selection.ignored()), (vec!["7"], 1));
}

#[test]
fn a_host_group_means_the_queue_instances_that_it_has_now() {
    let mut selection = selection("-q *@@allhosts");
    assert_eq!(selection.group_pattern(), Some("*@@allhosts"));
    selection.resolve_group(
        [QueueInstanceName {
            queue: "sus.q".into(),
            host: "vm".into(),
        }]
        .into(),
    );
    assert_eq!(selection.choose(entries()).len(), 2);
}

fn sums(entries: &[AccountingEntry], selection: &Selection) -> table::Sums {
    let mut sums = table::Sums::new(selection.columns());
    entries.iter().for_each(|entry| sums.add(entry));
    sums
}
