//! Log lines of master and agent: which are written, what stands in them, and where they go.
//!
//! Every line passes [`format::Lines`], so that no caller has to think of it: what a peer can cause
//! again and again is bounded, and a value from outside cannot make a line of its own.
//! [`file::LogFile`] keeps the file short. The launcher has its own twin of that: its list of
//! libraries is complete without this one.

mod file;
mod format;

use file::LogFile;
use format::Lines;
use proto::diagnostic::{Code, Diagnostic};
use proto::log::{VARIABLE, check_filter};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use tracing_subscriber::EnvFilter;

/// The log file of this process. It is empty if lines go to standard error.
static FILE: OnceLock<Mutex<LogFile>> = OnceLock::new();

/// Begins to log: to `file`, or to standard error.
///
/// # Errors
/// `GRIDWRIGHT_LOG` is not understood, or the file cannot be opened.
pub fn start(file: Option<&Path>) -> Result<(), Diagnostic> {
    let filter = filter()?;
    if let Some(path) = file {
        let opened = LogFile::open(path).map_err(|error| {
            Diagnostic::new(Code::SystemRefused, "error: cannot open the log")
                .at(path.display().to_string())
                .why(error.to_string())
                .fix("let it be a plain file that this daemon's user may write, in a directory where no other user makes names")
        })?;
        // A second start in one process goes on with the first file.
        let _ = FILE.set(Mutex::new(opened));
    }
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .event_format(Lines::default())
        .with_writer(|| Sink)
        .init();
    Ok(())
}

/// Sets the size in bytes from which on the log file is turned over: two older ones of that size
/// are kept.
pub fn limit_bytes(bytes: u64) {
    if let Some(file) = FILE.get() {
        file.lock().unwrap_or_else(PoisonError::into_inner).limit(bytes);
    }
}

/// Goes on in the file that has the log's name now: at SIGHUP, after another program has renamed
/// the log.
pub fn reopen() {
    let Some(file) = FILE.get() else {
        return tracing::info!("SIGHUP: the log goes to standard error, which stays open");
    };
    let outcome = file.lock().unwrap_or_else(PoisonError::into_inner).reopen();
    match outcome {
        Ok(()) => tracing::info!("SIGHUP: the log was opened anew"),
        Err(error) => tracing::error!(
            "SIGHUP: the log cannot be opened anew: {error}; lines still go to the old file. Make the new one for this daemon's user and \
             send SIGHUP again"
        ),
    }
}

fn filter() -> Result<EnvFilter, Diagnostic> {
    let Some(text) = std::env::var_os(VARIABLE) else {
        return Ok(EnvFilter::new("info"));
    };
    let text = text.to_string_lossy();
    check_filter(&text)?;
    EnvFilter::try_new(&*text).map_err(|error| Diagnostic::new(Code::BadValue, format!("error: {VARIABLE}: {error}")))
}

/// Where lines go, each with one call.
struct Sink;

impl Write for Sink {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match FILE.get() {
            Some(file) => file.lock().unwrap_or_else(PoisonError::into_inner).write(line),
            None => io::stderr().write(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
