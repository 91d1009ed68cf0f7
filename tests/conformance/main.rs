//! The recorded cases of a real Grid Engine 8.1.9, replayed: same commands, same users, one cell a
//! folder, and what came back compared with what was recorded. `cargo test -p gridwright-tests
//! --test conformance -- --nocapture` prints what agrees, what differs by design (a row of
//! master/COMPATIBILITY.md each) and what is missing; `GRIDWRIGHT_CONFORMANCE=05sub` replays one
//! folder, and `GRIDWRIGHT_CONFORMANCE_KEEP=DIR` keeps what came back, one file a case.
//!
//! Normalised on both sides, in `conformance/normalise.rs`: dates and times, job numbers in the
//! answer to a submission, values of load and usage, priorities other than 0 (in `28` to `31` every
//! digit of them is compared), process numbers. Not compared at all: `env_list` and `TERM` of the
//! submitting shell, `peak_rss` of `qacct` and `pressure` of `qstat -j`, which are ours, a sensor
//! value that had been left over, the order of load values and which of ours 8.1.9 does not have,
//! what the daemons tell `qping` about themselves, and how often it was told; that `qconf` could
//! not read a file of its own in `/tmp`, and a line of stderr that is the one before it once more.
//! Ours and ignored: lines of stderr that begin with two blanks (where, why, fix). Refusals of
//! commands that change jobs and queues are on our stderr and were on stdout: they are compared
//! wherever they are. Queue instances are listed by sequence number and name, and were in the order
//! of their making. The host is called `vm` and the users `u1 u2 u3`, in name spaces of the test's
//! own.
//!
//! Where an answer differs by design (`@ design`), ours is in `captures/ours` and compared instead,
//! so that nothing of it changes unseen; `GRIDWRIGHT_CONFORMANCE_WRITE=1` writes those files. Such
//! cases count as ones that do not agree.
//!
//! Deliberately absent: a form for an ordinary user, as the cases need three users and root; what
//! the other issues bring (`@ later` in `captures/`), which is counted and printed all the same.

mod case;
mod cell;
mod import;
mod normalise;
mod numbers;
mod report;

use case::{Answer, Case, Step, Verdict};
use cell::Cell;
use report::{Outcome, Report};
use std::collections::{BTreeMap, BTreeSet};

/// The folders of captures. Those in one row share a cell, as the later one takes up what the
/// earlier one left.
const CELLS: [&[&str]; 34] = [
    &["02conf"],
    &["03load"],
    &["09mc"],
    &["05sub"],
    &["06stat", "06mod"],
    &["06alter"],
    &["06acct"],
    &["10calendar"],
    &["11access"],
    &["12project"],
    &["13user"],
    &["14tree"],
    &["15ckpt"],
    &["16rqs"],
    &["17attr"],
    &["18hosts"],
    &["19deny"],
    &["20states"],
    &["21sched"],
    &["22sched"],
    &["23sched"],
    &["24sched"],
    &["25words"],
    &["26events"],
    &["27ar"],
    &["28tickets"],
    &["29shares"],
    &["30views"],
    &["31sched"],
    &["32sched"],
    &["33sched"],
    &["34schedule"],
    &["35binding"],
    &["35jsv"],
];

/// The folders whose jobs run on four simulated hosts.
const SIMULATED: [&str; 11] = [
    "21sched",
    "22sched",
    "23sched",
    "24sched",
    "28tickets",
    "29shares",
    "30views",
    "31sched",
    "32sched",
    "33sched",
    "34schedule",
];

/// Of all cases that are covered, so many in a hundred have to agree.
const REQUIRED_PERCENT: usize = 86;

/// Set: what we answer where it differs by design is written down.
const WRITE: &str = "GRIDWRIGHT_CONFORMANCE_WRITE";

#[test]
fn commands_answer_as_recorded() {
    if !gridwright_tests::cell::available("root", gridwright_tests::cell::is_root()) {
        return;
    }
    let _private = cell::enter_name_spaces();
    let wanted = std::env::var("GRIDWRIGHT_CONFORMANCE").ok();
    let mut report = Report::default();
    let is_wanted = |folder: &&str| wanted.as_deref().is_none_or(|wanted| *folder == wanted);
    for folders in CELLS.iter().filter(|folders| folders.iter().any(is_wanted)) {
        replay(folders, &mut report);
    }
    // What is wrong is printed alone: logs of automatic runs are cut.
    assert!(
        report.different().is_empty(),
        "no longer as recorded:\n{}",
        report.different().join("\n")
    );
    print!("{report}");
    let percent = report.percent_agreed();
    assert!(
        wanted.is_some() || percent >= REQUIRED_PERCENT,
        "only {percent} of 100 cases agree"
    );
}

/// How a cell with simulated hosts is brought up: four, with the load values that the hosts of the
/// recording had.
fn simulated() -> String {
    format!(
        "--slots 4 --sim-hosts 4 --sim-load {}",
        case::path("22sched.load").with_extension("").display()
    )
}

/// Replays folders in a fresh cell.
fn replay(folders: &[&str], report: &mut Report) {
    let is_simulated = folders.iter().any(|folder| SIMULATED.contains(folder));
    let cell = if is_simulated {
        Cell::up_with(&simulated())
    } else {
        Cell::up()
    };
    for folder in folders {
        let mut ours = case::ours(folder);
        let mut by_design = BTreeSet::new();
        for step in case::read(folder) {
            match step {
                Step::Prepare { user, command } => cell.prepare(user.as_deref(), &command),
                Step::Case(case) => {
                    let outcome = judge(&cell, folder, &case, &mut ours);
                    if matches!(outcome, Outcome::AsOurs) {
                        by_design.insert(case.name.clone());
                    }
                    report.add(folder, &case, outcome);
                }
            }
        }
        ours.retain(|name, _| by_design.contains(name));
        write(folder, &ours);
    }
}

/// Runs a case unless it is marked as one that cannot be, and says how the answer compares.
fn judge(cell: &Cell, folder: &str, case: &Case, ours: &mut BTreeMap<String, Answer>) -> Outcome {
    if matches!(case.verdict, Verdict::Missing(_) | Verdict::Later(_)) {
        return Outcome::NotRun;
    }
    let answer = cell.run(case.user.as_deref(), case.instead.as_ref().unwrap_or(&case.command));
    keep(folder, case, &answer);
    let Some(difference) = normalise::first_difference(case, &case.recorded, &answer) else {
        return Outcome::Same;
    };
    if matches!(case.verdict, Verdict::Agrees) {
        return Outcome::Differs(difference);
    }
    if std::env::var_os(WRITE).is_some() {
        ours.insert(case.name.clone(), normalise::answer(case, &answer));
    }
    let Some(ours) = ours.get(&case.name) else {
        return Outcome::Differs(format!(
            "captures/ours does not say what we answer; {WRITE}=1 writes it"
        ));
    };
    normalise::first_difference(case, ours, &answer).map_or(Outcome::AsOurs, Outcome::Differs)
}

/// Keeps what we answer where that differs by design, for [`WRITE`]. What differs no longer is left
/// out.
fn write(folder: &str, ours: &BTreeMap<String, Answer>) {
    if std::env::var_os(WRITE).is_none() {
        return;
    }
    let mut text =
        format!("What we answer where captures/{folder}.txt says `@ design`, normalised; written by {WRITE}=1.\n");
    for (name, Answer { exit, stdout, stderr }) in ours {
        text += &format!("\n# {name}\n= {exit}\n");
        stdout.iter().for_each(|line| text += &format!("> {line}\n"));
        stderr.iter().for_each(|line| text += &format!("! {line}\n"));
    }
    std::fs::write(case::path(&format!("ours/{folder}")), text).expect("captures/ours can be written");
}

/// Writes an answer where whoever looks for a difference wants it.
fn keep(folder: &str, case: &Case, answer: &Answer) {
    let Some(dir) = std::env::var_os("GRIDWRIGHT_CONFORMANCE_KEEP") else {
        return;
    };
    let Answer { exit, stdout, stderr } = answer;
    let text = format!(
        "$ {}\n= {exit}\n{}\n--- stderr\n{}\n",
        case.command,
        stdout.join("\n"),
        stderr.join("\n")
    );
    let path = std::path::Path::new(&dir).join(format!("{folder}-{}", case.name.replace('/', "_")));
    std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
