//! Tasks per second, from the submission to the last line of the accounting file.

use crate::clock::{tell, time_until};
use crate::usage;
use gridwright_tests::cell::{Cell, CellPlan};
use std::fs::File;
use std::io::Read;
use std::time::Instant;

/// How a task is started.
const SHELLS: [(&str, &[&str]); 2] = [
    ("direct", &["-shell", "n"]),
    ("through sh", &["-shell", "y", "-S", "/bin/sh"]),
];

/// Arrays of `/bin/true` on one host with few and with many slots.
pub fn arrays(tasks: u32) {
    for slots in [2, 50] {
        for (how, words) in SHELLS {
            let cell = Cell::with(CellPlan::default().slots(slots));
            let mut accounting = Accounting::of_cell(&cell);
            let (range, before) = (format!("1-{tasks}"), usage::of_daemons(&cell));
            let begin = Instant::now();
            cell.submit(&[&["-t", &range, "-b", "y", "-o", "/dev/null"], words, &["/bin/true"]].concat());
            let took = time_until("accounting of the array", begin, || accounting.lines() >= tasks);
            let more = usage::per_piece(before, usage::of_daemons(&cell), tasks);
            accounting.all_succeeded();
            let what = format!("array of {tasks}, {slots} slots, {how}");
            tell(&what, f64::from(tasks) / took.as_secs_f64(), "tasks/s", &more);
        }
    }
}

/// Separate submissions, one command after the other.
pub fn separate(jobs: u32) {
    let cell = Cell::with(CellPlan::default().slots(50));
    let mut accounting = Accounting::of_cell(&cell);
    let before = usage::of_daemons(&cell);
    let begin = Instant::now();
    for _ in 0..jobs {
        cell.submit(&["-b", "y", "-o", "/dev/null", "-shell", "n", "/bin/true"]);
    }
    let submitted = begin.elapsed();
    let took = time_until("accounting of the jobs", begin, || accounting.lines() >= jobs);
    let more = usage::per_piece(before, usage::of_daemons(&cell), jobs);
    accounting.all_succeeded();
    tell(
        &format!("{jobs} qsub one after the other"),
        f64::from(jobs) / submitted.as_secs_f64(),
        "jobs/s",
        "",
    );
    tell(
        &format!("{jobs} qsub until accounted"),
        f64::from(jobs) / took.as_secs_f64(),
        "jobs/s",
        &more,
    );
}

/// The accounting file, read as it grows.
pub struct Accounting {
    path: std::path::PathBuf,
    file: Option<File>,
    text: Vec<u8>,
}

impl Accounting {
    /// That of a cell.
    pub fn of_cell(cell: &Cell) -> Self {
        Self {
            path: cell.dir().join("default/common/accounting"),
            file: None,
            text: Vec::new(),
        }
    }

    /// Complete lines up to now.
    pub fn lines(&mut self) -> u32 {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        if let Some(file) = &mut self.file {
            file.read_to_end(&mut self.text)
                .expect("the accounting file can be read");
        }
        let lines = self.text.iter().filter(|&&byte| byte == b'\n').count();
        lines.try_into().unwrap_or(u32::MAX)
    }

    /// Every record says that the program ran and ended well: otherwise the figure means nothing.
    pub fn all_succeeded(&self) {
        for line in String::from_utf8_lossy(&self.text).lines() {
            let fields: Vec<&str> = line.split(':').collect();
            // accounting(5): field 12 is `failed`, 13 `exit_status`.
            assert_eq!(fields.get(11..13), Some(&["0", "0"][..]), "a task failed: {line}");
        }
    }
}
