//! `-sync y` and `-now y`: waiting for what becomes of the job.

use crate::client::Client;
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::JobNumber;
use proto::wire::client::Query;
use proto::wire::view::{Data, EndedTask};

/// Waits until every task has left and tells how; the exit code is the job's: of an array the first that is not 0.
pub fn until_ended(client: &mut Client, job: JobNumber, is_array: bool, immediate: bool, sync: bool) -> Outcome {
    if immediate && !sync {
        output::note("Waiting for immediate job to be scheduled.");
        return until_placed(client, job);
    }
    let reply = client.query(Query::Wait { job })?;
    let Some(Data::Ended(tasks)) = reply.data else {
        return Err(Diagnostic::new(Code::UnknownJob, format!("error: job {job} is not known any more")).into());
    };
    if immediate && tasks.iter().all(|task| task.deleted) {
        return Ok(not_scheduled());
    }
    let code = tasks.iter().map(exit_code).find(|code| *code != exit::OK).unwrap_or(exit::OK);
    for task in &tasks {
        tell(job, is_array, task);
    }
    Ok(code)
}

/// Waits until an immediate job runs or was given up.
fn until_placed(client: &mut Client, job: JobNumber) -> Result<u8, Fail> {
    let reply = client.query(Query::WaitPlaced { job })?;
    match reply.data {
        Some(Data::Ended(tasks)) if tasks.iter().all(|task| task.deleted) => Ok(not_scheduled()),
        _ => {
            output::note(&format!("\nYour immediate job {job} has been successfully scheduled."));
            Ok(exit::OK)
        }
    }
}

fn not_scheduled() -> u8 {
    output::note("\nYour qsub request could not be scheduled; try again later.");
    exit::FAILED
}

fn exit_code(task: &EndedTask) -> u8 {
    if task.deleted { exit::FAILED } else { u8::try_from(task.exit_status).unwrap_or(u8::MAX) }
}

fn tell(job: JobNumber, is_array: bool, task: &EndedTask) {
    let name = if is_array { format!("{job}.{}", task.task) } else { job.to_string() };
    if task.deleted {
        output::note(&format!("Unable to run job {name}."));
    } else if let Some(signal) = task.signal {
        output::note(&format!("Job {name} exited because of signal SIG{}.", signal_name(signal)));
    } else if task.exit_status == 0 {
        output::data(&format!("Job {name} exited with exit code 0.\n"));
    } else {
        output::note(&format!("Job {name} exited with exit code {}.", task.exit_status));
    }
}

/// The signal's name without `SIG`.
fn signal_name(number: u8) -> String {
    let known = nix::sys::signal::Signal::try_from(i32::from(number)).ok();
    known.map_or_else(|| number.to_string(), |signal| signal.as_str().trim_start_matches("SIG").to_owned())
}
