//! `default/common/schedd_runlog`: what a scheduling pass found out, where `qconf -tsm` asked for
//! it.

use crate::model::Model;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use master_core::explain;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

/// Jobs of which a run log tells; a large cluster has more than anybody reads.
const JOBS_MAX: usize = 1_000;

/// Appends one pass to the file.
///
/// # Errors
/// The system's.
pub(super) fn append(model: &Model, path: &Path) -> io::Result<()> {
    let now = Timestamp::now().to_zoned(TimeZone::system());
    let text = lines(model, &now.strftime("%a %b %e %H:%M:%S %Y").to_string());
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?
        .write_all(text.as_bytes())
}

/// The lines of one pass, each behind the time: what is out of service, and then why each pending
/// job waits.
fn lines(model: &Model, time: &str) -> String {
    let mut findings = model.findings();
    let mut text = String::new();
    let mut put = |line: &str| {
        // A string takes everything.
        let _ = writeln!(text, "{time}|{line}");
    };
    put("-------------START-SCHEDULER-RUN-------------");
    explain::cluster_info(&mut findings).iter().for_each(|line| put(line));
    for job in model.state.jobs.values().take(JOBS_MAX) {
        for line in explain::job_info(&mut findings, job) {
            put(&format!(
                "Job {} {}",
                job.number,
                line.strip_prefix("Job ").or(line.strip_prefix("job ")).unwrap_or(&line)
            ));
        }
    }
    put("--------------STOP-SCHEDULER-RUN-------------");
    text
}
