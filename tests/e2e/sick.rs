//! Hosts that cannot start jobs: what it costs the jobs, which is nothing, and how everybody sees
//! it.

use crate::hosts::{can_have_hosts, join, master, submit_on, token};
use gridwright_tests::cell::{Cell, CellPlan, CommandUser, Network, available, is_root, wait_until};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// A small file system that can be filled. It goes with the test.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one over a directory of a cell that is down.
    fn over(directory: PathBuf) -> Self {
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "small"])
            .arg(&directory)
            .status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "a small file system at {}",
            directory.display()
        );
        Self(directory)
    }

    fn filler(&self) -> PathBuf {
        self.0.join(".filler")
    }

    /// Takes every byte that is left.
    fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while filler.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// A cell whose tasks have a small disk of their own.
fn cell_with_a_small_disk(slots: u32) -> (Cell, SmallDisk) {
    let cell = Cell::with(CellPlan::default().slots(slots));
    cell.down(&[]).ok();
    let disk = SmallDisk::over(cell.dir().join("tasks"));
    cell.bring_up(&[]).ok();
    (cell, disk)
}

fn can_mount() -> bool {
    available("root", is_root())
}

/// The lines about queue instances with the reasons of their errors.
fn instances(cell: &Cell) -> String {
    cell.user(&["qstat", "-f", "-explain", "E"]).out
}

/// Whether the instance of `all.q` on a host is in error.
fn is_in_error(cell: &Cell, host: &str) -> bool {
    let listing = cell.user(&["qselect", "-qs", "E"]).out;
    listing.lines().any(|line| line.trim() == format!("all.q@{host}"))
}

#[test]
fn a_full_disk_of_tasks_closes_the_host_by_itself_and_no_job_goes_into_error() {
    if !can_mount() {
        return;
    }
    let (cell, disk) = cell_with_a_small_disk(4);
    disk.fill();
    let jobs: Vec<String> = (0..40).map(|_| cell.submit(&["-b", "y", "true"])).collect();
    let reason = "no space left on the disk of tasks/";
    wait_until(|| instances(&cell), || instances(&cell).contains(reason));
    let listing = instances(&cell);
    assert!(listing.contains("QERROR because host"), "{listing}");
    assert!(!cell.user(&["qstat"]).out.contains("Eqw"), "{}", cell.user(&["qstat"]));
    let why = cell.user(&["explain", &jobs[39]]).out;
    assert!(why.contains("cannot start jobs") && why.contains(reason), "{why}");
    let doctor = cell.admin(&["doctor", "--dir", &cell.dir_word()]);
    assert!(
        doctor.code == 1 && doctor.out.contains("BAD  space") && doctor.out.contains("BAD  starts"),
        "{doctor}"
    );
    for (daemon, line) in [
        ("master", "cannot start jobs and gets none"),
        ("agent", "this host cannot start jobs"),
    ] {
        assert!(
            cell.log(daemon)
                .lines()
                .any(|text| text.contains("WARN") && text.contains(line)),
            "{daemon}.log"
        );
    }
    assert!(cell.log("agent").contains("is nearly full"), "{}", cell.log("agent"));
    disk.free();
    for job in &jobs {
        assert_eq!(cell.accounted(job, 1)[0].value("failed"), "0", "job {job}");
    }
    wait_until(|| instances(&cell), || !instances(&cell).contains("QERROR"));
}

#[test]
fn jobs_that_run_when_the_disk_of_tasks_fills_up_are_accounted_all_the_same() {
    if !can_mount() {
        return;
    }
    let (cell, disk) = cell_with_a_small_disk(8);
    cell.write(
        "job.sh",
        "#!/bin/sh\necho start >>started.$JOB_ID\nwhile [ ! -e go ]; do sleep 0.1; done\nexit 3\n",
        0o755,
    );
    // The records are of different lengths: some end just before the end of a block.
    let start = |size: usize| cell.submit(&["-v", &format!("LONG={}", "x".repeat(500 * size)), "job.sh"]);
    let jobs: Vec<String> = (0..8).map(start).collect();
    for job in &jobs {
        wait_until(
            || cell.state_of(job),
            || !cell.read(&format!("started.{job}")).is_empty(),
        );
    }
    disk.fill();
    cell.write("go", "", 0o644);
    for job in &jobs {
        assert_eq!(cell.accounted(job, 1)[0].value("exit_status"), "3", "job {job}");
    }
    assert!(
        !cell.log("launcher").contains("waits for disk space"),
        "{}",
        cell.log("launcher")
    );
}

#[test]
fn a_host_without_a_launcher_says_so_and_its_jobs_run_elsewhere() {
    if !can_have_hosts() {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2"]));
    let (master, other) = (master(&network), Cell::on(&network, "h2"));
    join(&other, &token(&master, &[])).ok();
    assert!(!is_in_error(&master, "h2"));
    other.kill("launcher");
    wait_until(|| instances(&master), || is_in_error(&master, "h2"));
    assert!(
        instances(&master).contains("host h2 cannot start jobs: its launcher does not run"),
        "{}",
        instances(&master)
    );
    let job = master.submit(&["-t", "1-8", "-b", "y", "true"]);
    assert!(
        master
            .accounted(&job, 8)
            .iter()
            .all(|record| record.value("hostname") == "h1")
    );
    let [kept, dropped] = ["sleep", "true"].map(|command| submit_on(&master, "h2", &["-b", "y", command, "0"]));
    let why = master.user(&["explain", &kept]).out;
    assert!(why.contains("its launcher does not run"), "{why}");
    master.user(&["qdel", &dropped]).ok();
    let listing = master.user(&["qstat"]).out;
    let is_listed = |job: &str| listing.lines().any(|line| line.split_whitespace().next() == Some(job));
    assert!(is_listed(&kept) && !is_listed(&dropped), "{listing}");
    other.bring_up(&[]).ok();
    assert_eq!(master.accounted(&kept, 1)[0].value("hostname"), "h2");
    wait_until(|| instances(&master), || !is_in_error(&master, "h2"));
}

#[test]
fn a_host_whose_journal_of_tasks_cannot_be_written_starts_nothing_and_goes_on_by_itself() {
    let cell = Cell::up();
    let first = cell.submit(&["-b", "y", "true"]);
    cell.accounted(&first, 1);
    cell.down(&[]).ok();
    // The journal that is there has no room, and no other one can be made: a directory has its
    // name.
    let (journal, draft) = (cell.dir().join("tasks/journal"), cell.dir().join("tasks/journal.new"));
    let mut bytes = std::fs::read(&journal).unwrap();
    bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap());
    std::fs::write(&journal, &bytes).unwrap();
    std::fs::create_dir(&draft).unwrap();
    cell.bring_up(&[]).ok();
    let job = cell.submit(&["-b", "y", "true"]);
    let reason = "the start cannot be recorded";
    wait_until(|| instances(&cell), || instances(&cell).contains(reason));
    let states = cell.user(&["qstat"]).out;
    assert!(!states.contains("Eqw"), "{states}");
    assert!(
        cell.user(&["explain", &job]).out.contains(reason),
        "{}",
        cell.user(&["explain", &job])
    );
    std::fs::remove_dir(&draft).unwrap();
    assert_eq!(cell.accounted(&job, 1)[0].value("failed"), "0");
    wait_until(|| instances(&cell), || !instances(&cell).contains("QERROR"));
}

#[test]
fn the_log_warns_of_an_agent_that_is_gone_and_says_nothing_of_a_doctor() {
    let cell = Cell::up();
    let before = cell.log("master");
    cell.admin(&["doctor", "--dir", &cell.dir_word()]).ok();
    assert_eq!(cell.log("master"), before);
    cell.kill("agent");
    let gone = |line: &str| line.contains("WARN") && line.contains("the agent of host") && line.contains("is gone");
    wait_until(|| cell.log("master"), || cell.log("master").lines().any(gone));
    assert!(!cell.log("master").contains("ByPeer"), "{}", cell.log("master"));
}

#[test]
fn the_agents_log_warns_at_once_of_a_sensor_that_is_not_started() {
    let cell = Cell::up();
    let sensor: &Path = Path::new("/no/such/sensor");
    cell.set_global("load_sensor", &sensor.display().to_string());
    let told = |line: &str| line.contains("WARN") && line.contains("/no/such/sensor is not started");
    wait_until(
        || cell.run(CommandUser::Admin, &["sensor", "status"]).out,
        || cell.log("agent").lines().any(told),
    );
}
