//! Jobs that make more processes than anybody wants.

use crate::stage::{Attack, Requirement};
use gridwright_tests::cell::{Account, Cell, long_or, wait_until};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "fork-bomb",
        claim: "a fork bomb within its limit of processes is gone after qdel, and others run meanwhile",
        needs: &[Requirement::Root],
        run: fork_bomb,
    },
    Attack {
        name: "many-processes",
        claim: "hundreds of processes that ignore SIGTERM in sessions of their own are gone after qdel",
        needs: &[Requirement::Root],
        run: many_processes,
    },
];

/// Processes of a uid, zombies excepted.
fn processes_of(uid: u32) -> usize {
    let entries = std::fs::read_dir("/proc").expect("/proc is there").flatten();
    let is_its = |entry: &std::fs::DirEntry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let lives = stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| !rest.trim_start().starts_with('Z'));
        lives && !stat.is_empty() && entry.metadata().is_ok_and(|found| found.uid() == uid)
    };
    entries.filter(is_its).count()
}

/// A cell whose jobs run as an account that nobody else has.
fn cell_of_its_own() -> Cell {
    Cell::up().of_account(&Arc::new(Account::another()))
}

fn fork_bomb() {
    let cell = cell_of_its_own();
    // The limit is the uid's, so it bounds what the test does to its machine, too.
    let bomb = format!(
        "#!/bin/bash\nulimit -u {}\necho up >up\nbomb() {{ bomb | bomb & }}\nbomb\nsleep 1000\n",
        long_or(400, 100)
    );
    cell.write("bomb.sh", &bomb, 0o755);
    let job = cell.submit(&["-o", "/dev/null", "bomb.sh"]);
    wait_until(|| cell.state_of(&job), || cell.read("up") == "up\n");
    let count = || processes_of(cell.account().uid);
    wait_until(|| format!("{} processes", count()), || count() > 30);
    cell.admin(&["qstat", "-u", "*"]).ok();
    cell.user(&["qdel", &job]).ok();
    cell.accounted(&job, 1);
    wait_until(|| format!("{} processes are left", count()), || count() == 0);
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

fn many_processes() {
    let cell = cell_of_its_own();
    let count = long_or(5000, 500);
    let script = format!(
        "#!/bin/bash\ntrap '' TERM XCPU USR1 USR2\nfor n in $(seq {count}); do setsid sleep 1000 & done\necho up >up\nwait\n"
    );
    cell.write("many.sh", &script, 0o755);
    let job = cell.submit(&["-o", "/dev/null", "many.sh"]);
    let running = || processes_of(cell.account().uid);
    wait_until(
        || format!("{} of {count} processes", running()),
        || cell.read("up") == "up\n" && running() >= count,
    );
    cell.user(&["qdel", &job]).ok();
    let record = cell.accounted(&job, 1).remove(0);
    wait_until(|| format!("{} processes are left", running()), || running() == 0);
    assert_eq!(record.number("failed"), 100, "{record:?}");
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}
