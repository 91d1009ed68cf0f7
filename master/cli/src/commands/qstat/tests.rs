//! Layouts of `qstat`, compared with what 8.1.9 printed.

mod details;
mod documents;
mod everything;
mod scopes;
mod stored;

use super::columns::ColumnSet;
use super::options::{Options, View};
use super::{full, list, shown, summary, xml};
use crate::commands::ask::Format;
use crate::commands::captured::{self, at};
use crate::output::time::Clock;
use crate::output::xml::tests::assert_well_formed;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use proto::amount::Type;
use proto::diagnostic::Code;
use proto::job::{Condition, Holds, Phase};
use proto::request::TaskRange;
use proto::wire::client::{HoldFilter, JobStates};
use proto::wire::view::{JobRow, PriorityNumbers, QueueView};

/// The options of a command line, asked by `root`.
fn options(line: &str) -> Options {
    let parsed = super::QSTAT
        .parse(line.split_whitespace().map(str::to_owned).collect())
        .unwrap();
    Options::from_command_line(&parsed, "root").unwrap()
}

fn utc() -> Clock {
    Clock::new(TimeZone::UTC)
}

fn plain(line: &str) -> String {
    list::render(&captured::jobs(), &[], &options(line), &utc())
}

fn by_queue(line: &str) -> String {
    full::render(&captured::queues(), &captured::jobs(), &options(line), &utc())
}

/// The lines of a listing that begin with a job's number.
fn lines_of(text: &str, job: u32) -> Vec<&str> {
    text.lines()
        .filter(|line| line.split_whitespace().next() == Some(&job.to_string()))
        .collect()
}

#[test]
fn plain_listing_has_the_columns_and_the_order_of_8_1_9() {
    let expected = r##"job-ID  prior   name       user         state submit/start at     queue                          slots ja-task-ID 
-----------------------------------------------------------------------------------------------------------------
      1 0.25028 run1       u1           s     11/21/2026 01:09:55 all.q@vm                           1        
      2 0.26088 arr        u1           r     11/21/2026 01:09:55 all.q@vm                           1 1
      4 0.75000 par        u1           r     11/21/2026 01:09:24 all.q@vm                           2        
      5 0.26074 longjobnam u1           r     11/21/2026 01:09:55 all.q@vm                           1        
     12 0.26061 arrp       u2           r     11/21/2026 01:09:55 all.q@vm                           1 1
     12 0.26061 arrp       u2           r     11/21/2026 01:09:58 all.q@vm                           1 2
     12 0.26061 arrp       u2           r     11/21/2026 01:09:58 all.q@vm                           1 3
     12 0.26061 arrp       u2           tS    11/21/2026 01:10:42 sus.q@vm                           1 4
      7 0.26061 soft       u2           qw    11/21/2026 01:09:24                                    1        
     12 0.26061 arrp       u2           qw    11/21/2026 01:09:24                                    1 5-10:1
      9 0.25000 err        u2           Eqw   11/21/2026 01:09:24                                    1        
     13 0.25000 insus      u3           qw    11/21/2026 01:10:42                                    1        
      2 0.00000 arr        u1           qw    11/21/2026 01:09:22                                    1 3,5
      3 0.00000 held       u1           hqw   11/21/2026 01:09:22                                    1        
      6 0.00000 dep        u2           hqw   11/21/2026 01:09:23                                    1        
      8 0.00000 later      u2           qw    11/21/2026 01:09:24                                    1        
"##;
    assert_eq!(plain(""), expected);
    assert_eq!(list::render(&[], &[], &options(""), &utc()), "");
}

#[test]
fn the_load_column_is_named_after_the_value_that_the_environment_asks_for() {
    let mut options = options("-f");
    options.queues.load_value = "mem_free_of_this".to_owned();
    let mut queues = captured::queues();
    queues.truncate(1);
    queues[0].load_avg = Some("22.142G".to_owned());
    let text = full::render(&queues, &[], &options, &utc());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "queuename                      qtype resv/used/tot. mem_free arch          states"
    );
    assert_eq!(
        lines[2],
        "all.q@vm                       BIP   0/8/8          22.142G  lx-amd64      "
    );
}

#[test]
fn running_tasks_follow_the_order_of_the_queues_that_were_read() {
    let options = options("-urg");
    assert!(options.by_queue && self::options("-q all.q").by_queue && !self::options("-ext").by_queue);
    let queues = |order: &[QueueView]| {
        let text = list::render(&captured::jobs(), order, &options, &utc());
        let mut names: Vec<_> = text
            .split_whitespace()
            .filter(|word| word.contains(".q@"))
            .map(str::to_owned)
            .collect();
        names.dedup();
        names
    };
    let mut order = captured::queues();
    order.sort_by_key(|queue| queue.queue.as_str() == "all.q");
    assert_eq!(queues(&order), ["sus.q@vm", "all.q@vm"]);
    assert_eq!(queues(&[]), ["all.q@vm", "sus.q@vm"]);
}

#[test]
fn listing_by_queue_frames_pending_jobs() {
    let expected = r##"queuename                      qtype resv/used/tot. load_avg arch          states
---------------------------------------------------------------------------------
all.q@vm                       BIP   0/8/8          5.51     lx-amd64      
      1 0.25028 run1       u1           s     11/21/2026 01:09:55     1        
      2 0.26088 arr        u1           r     11/21/2026 01:09:55     1 1
      4 0.75000 par        u1           r     11/21/2026 01:09:24     2        
      5 0.26074 longjobnam u1           r     11/21/2026 01:09:55     1        
     12 0.26061 arrp       u2           r     11/21/2026 01:09:55     1 1
     12 0.26061 arrp       u2           r     11/21/2026 01:09:58     1 2
     12 0.26061 arrp       u2           r     11/21/2026 01:09:58     1 3
---------------------------------------------------------------------------------
sus.q@vm                       BIP   0/1/1          5.51     lx-amd64      s
     12 0.26061 arrp       u2           tS    11/21/2026 01:10:42     1 4
---------------------------------------------------------------------------------
dis.q@vm                       IP    0/0/3          5.51     lx-amd64      d

############################################################################
 - PENDING JOBS - PENDING JOBS - PENDING JOBS - PENDING JOBS - PENDING JOBS
############################################################################
      7 0.26061 soft       u2           qw    11/21/2026 01:09:24     1        
     12 0.26061 arrp       u2           qw    11/21/2026 01:09:24     1 5-10:1
      9 0.25000 err        u2           Eqw   11/21/2026 01:09:24     1        
     13 0.25000 insus      u3           qw    11/21/2026 01:10:42     1        
      2 0.00000 arr        u1           qw    11/21/2026 01:09:22     1 3,5
      3 0.00000 held       u1           hqw   11/21/2026 01:09:22     1        
      6 0.00000 dep        u2           hqw   11/21/2026 01:09:23     1        
      8 0.00000 later      u2           qw    11/21/2026 01:09:24     1        
"##;
    assert_eq!(by_queue("-f"), expected);
    assert_eq!(full::render(&[], &[], &options("-f"), &utc()), "");
}

#[test]
fn empty_queues_are_hidden_on_request() {
    let text = by_queue("-f -ne");
    assert!(text.contains("sus.q@vm") && !text.contains("dis.q@vm"), "{text}");
}

#[test]
fn every_array_task_has_a_line_on_request() {
    let text = plain("-g d");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.contains(" qw ") && line.contains(" arr"))
        .collect();
    let expected = r##"     12 0.26061 arrp       u2           qw    11/21/2026 01:09:24                                    1 5
     12 0.26061 arrp       u2           qw    11/21/2026 01:09:24                                    1 6
     12 0.26061 arrp       u2           qw    11/21/2026 01:09:24                                    1 7
     12 0.26061 arrp       u2           qw    11/21/2026 01:09:24                                    1 8
     12 0.26061 arrp       u2           qw    11/21/2026 01:09:24                                    1 9
     12 0.26061 arrp       u2           qw    11/21/2026 01:09:24                                    1 10
      2 0.00000 arr        u1           qw    11/21/2026 01:09:22                                    1 3
      2 0.00000 arr        u1           qw    11/21/2026 01:09:22                                    1 5
"##;
    assert_eq!(lines.join("\n") + "\n", expected);
}

#[test]
fn every_slot_has_a_line_on_request() {
    let expected = r##"job-ID  prior   name       user         state submit/start at     queue                          master ja-task-ID 
------------------------------------------------------------------------------------------------------------------
      1 0.25028 run1       u1           s     11/21/2026 01:09:55 all.q@vm                       MASTER        
      2 0.26088 arr        u1           r     11/21/2026 01:09:55 all.q@vm                       MASTER 1
      4 0.75000 par        u1           r     11/21/2026 01:09:24 all.q@vm                       MASTER        
                                                                  all.q@vm                       SLAVE         
      5 0.26074 longjobnam u1           r     11/21/2026 01:09:55 all.q@vm                       MASTER        
     12 0.26061 arrp       u2           r     11/21/2026 01:09:55 all.q@vm                       MASTER 1
     12 0.26061 arrp       u2           r     11/21/2026 01:09:58 all.q@vm                       MASTER 2
     12 0.26061 arrp       u2           r     11/21/2026 01:09:58 all.q@vm                       MASTER 3
     12 0.26061 arrp       u2           tS    11/21/2026 01:10:42 sus.q@vm                       MASTER 4
      7 0.26061 soft       u2           qw    11/21/2026 01:09:24                                              
     12 0.26061 arrp       u2           qw    11/21/2026 01:09:24                                       5-10:1
      9 0.25000 err        u2           Eqw   11/21/2026 01:09:24                                              
     13 0.25000 insus      u3           qw    11/21/2026 01:10:42                                              
      2 0.00000 arr        u1           qw    11/21/2026 01:09:22                                       3,5
      3 0.00000 held       u1           hqw   11/21/2026 01:09:22                                              
      6 0.00000 dep        u2           hqw   11/21/2026 01:09:23                                              
      8 0.00000 later      u2           qw    11/21/2026 01:09:24                                              
"##;
    assert_eq!(plain("-g t"), expected);
    let subtasks = plain("-t");
    let heading = "master ja-task-ID task-ID state cpu        mem     io      stat failed ";
    assert!(subtasks.lines().next().unwrap().ends_with(heading));
    assert_eq!(subtasks.lines().nth(1).unwrap().len(), 167);
    assert!(by_queue("-f -g t").contains(
        "\n      4 0.75000 par        u1           r     11/21/2026 01:09:24 MASTER        \n                                                                  SLAVE         \n"
    ));
}

#[test]
fn requests_stand_below_the_job() {
    let text = plain("-r");
    for expected in [
        r##"      4 0.75000 par        u1           r     11/21/2026 01:09:24 all.q@vm                           2        
       Full jobname:     par
       Master Queue:     all.q@vm
       Requested PE:     mpi 2
       Granted PE:       mpi 2
       Hard Resources:   
       Soft Resources:   
       Binding:          NONE
"##,
        r##"      5 0.26074 longjobnam u1           r     11/21/2026 01:09:55 all.q@vm                           1        
       Full jobname:     longjobname_exceeding_ten
       Master Queue:     all.q@vm
       Hard Resources:   mem_free=1G (0.000000)
       Soft Resources:   
       Binding:          NONE
"##,
        r##"      7 0.26061 soft       u2           qw    11/21/2026 01:09:24                                    1        
       Full jobname:     soft
       Hard Resources:   mem_free=999T (0.000000)
       Soft Resources:   lsa=5
       Binding:          NONE
"##,
        r##"     13 0.25000 insus      u3           qw    11/21/2026 01:10:42                                    1        
       Full jobname:     insus
       Hard Resources:   
       Soft Resources:   
       Hard requested queues: sus.q
       Binding:          NONE
"##,
        r##"      6 0.00000 dep        u2           hqw   11/21/2026 01:09:23                                    1        
       Full jobname:     dep
       Hard Resources:   
       Soft Resources:   
       Predecessor Jobs (request): 1
       Predecessor Jobs: 1
       Binding:          NONE
"##,
    ] {
        assert!(text.contains(expected), "{expected}in\n{text}");
    }
    assert!(!plain("-r -ncb").contains("Binding"));
}

#[test]
fn extended_listing_shows_usage_and_tickets() {
    let expected = r##"job-ID  prior   ntckts  name       user         project          department state cpu        mem     io      tckts ovrts otckt ftckt stckt share queue                          slots ja-task-ID 
------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------
      1 0.25028 0.50000 run1       u1           NA               defaultdep s     0:00:00:00 0.00000 0.00004     0     0     0     0     0 0.00  all.q@vm                           1        
      2 0.26088 0.50000 arr        u1           NA               defaultdep r     0:00:00:00 0.00000 0.00004     0     0     0     0     0 0.00  all.q@vm                           1 1
      4 0.75000 0.50000 par        u1           NA               defaultdep r     0:00:00:00 0.00000 0.00004     0     0     0     0     0 0.00  all.q@vm                           2        
      5 0.26074 0.50000 longjobnam u1           NA               defaultdep r     0:00:00:00 0.00000 0.00004     0     0     0     0     0 0.00  all.q@vm                           1        
     12 0.26061 0.50000 arrp       u2           NA               defaultdep r     0:00:00:00 0.00000 0.00004     0     0     0     0     0 0.00  all.q@vm                           1 1
     12 0.26061 0.50000 arrp       u2           NA               defaultdep r     0:00:00:00 0.00000 0.00004     0     0     0     0     0 0.00  all.q@vm                           1 2
     12 0.26061 0.50000 arrp       u2           NA               defaultdep r     0:00:00:00 0.00000 0.00004     0     0     0     0     0 0.00  all.q@vm                           1 3
     12 0.26061 0.50000 arrp       u2           NA               defaultdep tS    NA         NA      NA          0     0     0     0     0 0.00  sus.q@vm                           1 4
      7 0.26061 0.50000 soft       u2           NA               defaultdep qw                                   0     0     0     0     0 0.00                                     1        
     12 0.26061 0.50000 arrp       u2           NA               defaultdep qw                                   0     0     0     0     0 0.00                                     1 5-10:1
      9 0.25000 0.50000 err        u2           NA               defaultdep Eqw                                  0     0     0     0     0 0.00                                     1        
     13 0.25000 0.50000 insus      u3           NA               defaultdep qw                                   0     0     0     0     0 0.00                                     1        
      2 0.00000 0.00000 arr        u1           NA               defaultdep qw                                   0     0     0     0     0 0.00                                     1 3,5
      3 0.00000 0.00000 held       u1           NA               defaultdep hqw                                  0     0     0     0     0 0.00                                     1        
      6 0.00000 0.00000 dep        u2           NA               defaultdep hqw                                  0     0     0     0     0 0.00                                     1        
      8 0.00000 0.00000 later      u2           NA               defaultdep qw                                   0     0     0     0     0 0.00                                     1        
"##;
    assert_eq!(plain("-ext"), expected);
}

#[test]
fn urgency_and_priority_add_their_columns() {
    let urgency = plain("-urg");
    assert_eq!(urgency.lines().nth(1).unwrap().len(), 177);
    assert_eq!(
        lines_of(&urgency, 1),
        [
            r##"      1 0.25028 0.00056     1011     1000       11        0 run1       u1           s     11/21/2026 01:09:55                     all.q@vm                           1        "##
        ]
    );
    let all = plain("-ext -urg -pri");
    let expected = r##"job-ID  prior   nurg    npprior ntckts  urg      rrcontr  wtcontr  dlcontr   ppri name       user         project          department state submit/start at      deadline           cpu        mem     io      tckts ovrts otckt ftckt stckt share queue                          slots ja-task-ID 
---------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------"##;
    assert!(all.starts_with(expected), "{all}");
    assert_eq!(
        lines_of(&all, 1),
        [
            r##"      1 0.25028 0.00056 0.50000 0.50000     1011     1000       11        0     0 run1       u1           NA               defaultdep s     11/21/2026 01:09:55                     0:00:00:00 0.00000 0.00004     0     0     0     0     0 0.00  all.q@vm                           1        "##
        ]
    );
    let priority = by_queue("-f -pri");
    assert_eq!(
        lines_of(&priority, 1),
        [
            r##"      1 0.25028 0.00056 0.50000 0.50000     0 run1       u1           s     11/21/2026 01:09:55     1        "##
        ]
    );
}

#[test]
fn rules_of_the_extended_full_listing_are_longer() {
    let text = by_queue("-f -ext");
    assert_eq!(text.lines().nth(1).unwrap().len(), 189);
    assert_eq!(text.lines().find(|line| line.starts_with('#')).unwrap().len(), 186);
    let expected = r##"      1 0.25028 0.50000 run1       u1           NA               defaultdep s     0:00:00:00 0.00000 0.00004     0     0     0     0     0 0.00      1        "##;
    assert_eq!(lines_of(&text, 1), [expected]);
}

#[test]
fn cluster_queues_are_summed_up() {
    let summaries = summary::cluster_queues(&captured::queues(), &[]);
    let expected = r##"CLUSTER QUEUE                   CQLOAD   USED    RES  AVAIL  TOTAL aoACDS  cdsuE  
--------------------------------------------------------------------------------
all.q                             2.76      8      0      0      8      0      0 
dis.q                             2.76      0      0      0      3      0      3 
sus.q                             2.76      1      0      0      1      0      1 
"##;
    assert_eq!(summary::text(&summaries, ColumnSet::default()), expected);
    let expected = r##"<?xml version='1.0'?>
<job_info  xmlns:xsd="http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/qstat.xsd">
  <cluster_queue_summary>
    <name>all.q</name>
    <load>2.75659</load>
    <used>8</used>
    <resv>0</resv>
    <available>0</available>
    <total>8</total>
    <temp_disabled>0</temp_disabled>
    <manual_intervention>0</manual_intervention>
  </cluster_queue_summary>
  <cluster_queue_summary>
    <name>dis.q</name>
    <load>2.75659</load>
    <used>0</used>
    <resv>0</resv>
    <available>0</available>
    <total>3</total>
    <temp_disabled>0</temp_disabled>
    <manual_intervention>3</manual_intervention>
  </cluster_queue_summary>
  <cluster_queue_summary>
    <name>sus.q</name>
    <load>2.75659</load>
    <used>1</used>
    <resv>0</resv>
    <available>0</available>
    <total>1</total>
    <temp_disabled>0</temp_disabled>
    <manual_intervention>1</manual_intervention>
  </cluster_queue_summary>
</job_info>
"##;
    assert_eq!(summary::xml(&summaries, ColumnSet::default()), expected);
    assert_eq!(summary::text(&[], ColumnSet::default()), "");
}

#[test]
fn a_summary_in_full_counts_the_slots_in_each_state() {
    let summaries = summary::cluster_queues(&captured::queues(), &[]);
    let columns = options("-g c -ext").columns;
    let text = summary::text(&summaries, columns);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with(" aoACDS  cdsuE      s     A     S     C     u     a     d     D     c     o     E"));
    assert_eq!(lines[1], "-".repeat(146));
    assert!(lines[3].ends_with("      0      3     0     0     0     0     0     0     3     0     0     0     0 "));
    assert!(lines[4].ends_with("      0      1     1     0     0     0     0     0     0     0     0     0     0 "));
    assert!(
        lines
            .iter()
            .filter(|line| !line.starts_with('-'))
            .all(|line| line.len() == lines[0].len())
    );
    let xml = summary::xml(&summaries, columns);
    assert!(xml.contains("    <disabled_manual>3</disabled_manual>\n"), "{xml}");
}

#[test]
fn resources_stand_below_their_queue() {
    let mut queues = captured::queues();
    queues[0].resources = vec![
        captured::resource("mem_free", Type::Memory, ('h', 'l'), 23_774_789_632),
        captured::resource("slots", Type::Int, ('q', 'c'), 0),
        captured::resource("h_rt", Type::Time, ('q', 'f'), i64::MAX),
    ];
    queues[0].explain = vec!["alarm hl:np_load_avg=12.302979 load-threshold=0.1".to_owned()];
    let text = full::render(&queues, &[], &options("-F mem_free,slots,h_rt"), &utc());
    let expected = "\n\talarm hl:np_load_avg=12.302979 load-threshold=0.1\n\thl:mem_free=22.142G\n\tqc:slots=0\n\tqf:h_rt=infinity\n";
    assert!(text.contains(expected), "{text}");
    let document = xml::full(&queues, &[], &options("-F -xml"), &utc());
    assert!(document.contains("      <resource name=\"mem_free\" type=\"hl\">22.142G</resource>\n"));
}

#[test]
fn unknown_load_is_marked() {
    let mut queues = captured::queues();
    queues.truncate(1);
    (queues[0].load_avg, queues[0].arch, queues[0].states) = (None, None, "au".to_owned());
    let text = full::render(&queues, &[], &options("-f"), &utc());
    assert!(
        text.ends_with("all.q@vm                       BIP   0/8/8          -NA-     -NA-          au\n"),
        "{text}"
    );
}

#[test]
fn states_select_as_the_manual_says() {
    let states = |letters: &str| options(&format!("-s {letters}")).jobs.states;
    assert_eq!(options("").jobs.states, states("a"));
    assert_eq!(states("prs"), states("a"));
    assert!(states("z").finished && !states("z").pending);
    let user = states("hu");
    assert!(user.pending && !user.running && user.only_holds.user && !user.only_holds.operator);
    assert!(states("rhs").running && states("rhs").only_holds.system);
    assert!(user.held_on_hosts.user && !user.held_on_hosts.operator && !states("p").held_on_hosts.user);
    assert!(states("rhs").held_on_hosts.system && states("h").held_on_hosts.user);
    assert_eq!(states("hjhdha").held_on_hosts, HoldFilter::default());
    // All pending tasks, and those on hosts that are held.
    assert_eq!(
        states("ph"),
        JobStates {
            held_on_hosts: states("h").held_on_hosts,
            ..states("p")
        }
    );
    let parsed = super::QSTAT.parse(vec!["-s".to_owned(), "x".to_owned()]).unwrap();
    assert_eq!(Options::from_command_line(&parsed, "root").unwrap_err().exit, 1);
}

#[test]
fn holds_are_told_apart() {
    for (letters, expected) in [
        ("h", vec![3, 6, 8]),
        ("hu", vec![3]),
        ("hj", vec![6]),
        ("hd", vec![]),
        ("ho", vec![]),
        ("ha", vec![8]),
        ("hahu", vec![3, 8]),
    ] {
        let mut rows = captured::jobs();
        rows.iter_mut().for_each(|row| row.tasks.clear());
        options(&format!("-s {letters}")).keep_holds(&mut rows, at(0));
        let mut numbers: Vec<u32> = rows.iter().map(|row| row.number.0).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, expected, "{letters}");
    }
}

#[test]
fn jobs_are_those_of_the_caller_unless_users_are_named() {
    assert_eq!(options("").jobs.users, ["root"]);
    assert_eq!(options("-u u1,u2 -u $user").jobs.users, ["u1", "u2", "root"]);
}

#[test]
fn unknown_letters_are_refused() {
    for (line, code) in [
        ("-qs x", Code::BadValue),
        ("-explain x", Code::BadValue),
        ("-g x", Code::BadValue),
    ] {
        let parsed = super::QSTAT
            .parse(line.split(' ').map(str::to_owned).collect())
            .unwrap();
        assert_eq!(
            Options::from_command_line(&parsed, "root").unwrap_err().diagnostic.code,
            code
        );
    }
}

#[test]
fn formats_are_read_from_both_options() {
    for (line, format) in [("", Format::Text), ("-xml", Format::Xml), ("-fmt json", Format::Json)] {
        assert_eq!(options(line).format, format);
    }
}

#[test]
fn json_tells_state_letters() {
    let rows = shown::with_letters(&captured::jobs());
    let suspended = rows.iter().find(|row| row["number"] == 1).unwrap();
    assert_eq!(
        (&suspended["tasks"][0]["state"], &suspended["name"]),
        (&"s".into(), &"run1".into())
    );
    let failed = rows.iter().find(|row| row["number"] == 9).unwrap();
    assert_eq!(failed["pending"][0]["state"], "Eqw");
}

#[test]
fn finished_tasks_come_last() {
    let mut left = captured::job(11, "wcq", "u2", at(24), 250_000);
    left.pending.clear();
    left.tasks = vec![captured::task(&left, 1, "all.q", 1, proto::time::Wall(0))];
    left.tasks[0].granted.clear();
    left.tasks[0].condition = Condition {
        phase: Phase::Finished,
        ..Condition::default()
    };
    let text = list::render(&[left], &[], &options("-s z"), &utc());
    let expected = r##"     11 0.25000 wcq        u2           z     11/21/2026 01:09:24                                    1        "##;
    assert_eq!(text.lines().nth(2), Some(expected));
}

#[test]
fn the_last_list_of_an_option_counts_and_blanks_part_it() {
    let words = [
        "-F",
        "lic",
        "-F",
        "arch num_proc,,slots",
        "-qs",
        "d",
        "-qs",
        "aD",
        "-U",
        "u1",
    ];
    let parsed = super::QSTAT.parse(words.map(str::to_owned).into()).unwrap();
    let options = Options::from_command_line(&parsed, "root").unwrap();
    let attributes = ["arch", "num_proc", "slots"].map(str::to_owned).to_vec();
    assert_eq!(
        (options.queues.attributes, options.queues.states.as_str()),
        (Some(attributes), "aD")
    );
    assert_eq!(
        (options.queues.queues, options.jobs.queues),
        (vec![], vec!["*".to_owned()]),
        "-U asks what may run"
    );
    let parsed = super::QSTAT.parse(vec!["-j".to_owned(), "1 2,x*".to_owned()]).unwrap();
    let View::Details(targets) = Options::from_command_line(&parsed, "root").unwrap().view else {
        panic!()
    };
    assert_eq!(targets, ["1", "2", "x*"]);
}

/// An array of which tasks 1 to `tasks` have left.
fn left_array(tasks: u32) -> JobRow {
    let mut left = captured::job(12, "arrp", "u2", at(24), 0);
    left.array = TaskRange::parse("1-5").ok();
    left.pending.clear();
    left.tasks = (1..=tasks)
        .map(|number| {
            let mut task = captured::task(&left, number, "all.q", 1, at(55));
            task.condition = Condition {
                phase: Phase::Finished,
                ..Condition::default()
            };
            task
        })
        .collect();
    left
}

#[test]
fn tasks_of_an_array_that_have_left_share_a_line() {
    for (line, tasks, expected) in [("-s z", 2, "1,2"), ("-s z -g d", 5, "1-5:1")] {
        let rows = [left_array(tasks)];
        let text = list::render(&rows, &[], &options(line), &utc());
        let row = format!(
            "     12 0.00000 arrp       u2           z     11/21/2026 01:09:24{}1 {expected}",
            " ".repeat(36)
        );
        assert_eq!(text.lines().skip(2).collect::<Vec<_>>(), [row]);
        let document = xml::list(&rows, &[], &options(line), &utc());
        assert_eq!(document.matches("<job_list state=\"zombie\">").count(), 1);
        assert!(
            document.contains("<JB_submission_time>2026-11-21T01:09:24</JB_submission_time>"),
            "{document}"
        );
        assert!(document.contains(&format!("<tasks>{expected}</tasks>")), "{document}");
    }
}

#[test]
fn a_job_that_has_left_has_no_tickets_and_a_banner_of_its_own() {
    let rows = [left_array(5)];
    let text = full::render(&[], &rows, &options("-f -ext -s z"), &utc());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[2],
        " --  FINISHED JOBS  -  FINISHED JOBS  -  FINISHED JOBS  -  FINISHED JOBS  --  "
    );
    let tickets = "z                                   NA    NA    NA    NA    NA    NA     1 1-5:1";
    assert!(lines[4].ends_with(tickets), "{}", lines[4]);
    let document = xml::list(&rows, &[], &options("-ext -s z"), &utc());
    assert!(
        !document.contains("tickets") && !document.contains("JAT_share"),
        "{document}"
    );
}

#[test]
fn groups_of_one_job_stand_in_the_order_of_their_holds() {
    let mut array = captured::job(12, "arrp", "u2", at(24), 0);
    array.array = TaskRange::parse("1-9").ok();
    let held = |tasks: &str, letters: &str| {
        let has = |letter| letters.contains(letter);
        let mut group = captured::pending(tasks, at(24));
        group.holds = Holds {
            user: has('u'),
            operator: has('o'),
            system: has('s'),
        };
        group.condition.held = !letters.is_empty();
        group
    };
    let mut failed = held("9", "u");
    failed.condition.error = true;
    array.pending = vec![
        held("1", "u"),
        held("2", "o"),
        held("3", "uo"),
        held("4", "s"),
        held("5", "us"),
        held("6", "os"),
        held("7", "uos"),
        held("8", ""),
        failed,
    ];
    let rows = [array];
    let text = list::render(&rows, &[], &options(""), &utc());
    let tasks: Vec<&str> = text
        .lines()
        .skip(2)
        .filter_map(|line| line.rsplit(' ').next())
        .collect();
    assert_eq!(tasks, ["9", "8", "1", "2", "4", "3", "5", "6", "7"]);
}

#[test]
fn a_queue_in_states_of_both_kinds_counts_once_and_one_without_hosts_is_there() {
    let mut queues = captured::queues();
    queues[1].states = "aS".to_owned();
    queues[2].states = "aCd".to_owned();
    let text = summary::text(
        &summary::cluster_queues(&queues, &["e.q".to_owned()]),
        ColumnSet::default(),
    );
    let lines: Vec<&str> = text.lines().skip(3).collect();
    assert_eq!(
        lines,
        [
            "dis.q                             2.76      0      0      0      3      0      3 ",
            "e.q                               -NA-      0      0      0      0      0      0 ",
            "sus.q                             2.76      1      0      0      1      1      0 ",
        ]
    );
}

fn odd_row(name: String, owner: String, number: u32, prior: i64, slots: u32) -> JobRow {
    let mut row = captured::job(number, &name, &owner, at(i64::from(number)), prior);
    row.priority = PriorityNumbers {
        urg: prior,
        nurg: prior,
        otckt: prior,
        ftckt: prior,
        ..row.priority
    };
    row.project = Some(owner);
    row.requests.hard_queues = vec![name];
    row.tasks = vec![captured::task(&row, number.max(1), "all.q", slots, at(prior))];
    row
}

proptest! {
    #[test]
    fn no_name_and_no_number_panics_or_breaks_a_document(
        name in ".*", owner in ".*", number: u32, prior: i64, slots in 0_u32..20, bits in 0_u8..64,
    ) {
        let rows = [odd_row(name, owner, number, prior, slots)];
        let columns = ColumnSet {
            extended: bits & 1 > 0,
            urgency: bits & 2 > 0,
            priority: bits & 4 > 0,
            per_slot: bits & 8 > 0,
            subtasks: bits & 16 > 0,
            queue: true,
            requests: bits & 32 > 0,
            binding: true,
        };
        let mut options = options("");
        options.columns = columns;
        let _ = list::render(&rows, &[], &options, &utc());
        let _ = full::render(&captured::queues(), &rows, &options, &utc());
        assert_well_formed(&xml::list(&rows, &[], &options, &utc()));
        assert_well_formed(&xml::full(&captured::queues(), &rows, &options, &utc()));
    }
}
