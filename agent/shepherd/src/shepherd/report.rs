//! What a child tells its shepherd between fork and execve, over a pipe that execve closes.
//!
//! `U`: the user's own files come next. `W`: one of them is a named pipe, and its other end is
//! waited for. `S` bytes (eight): so long is standard error. `L` index errno (four bytes each): a
//! limit was refused. `A`: the processors of the binding were refused. `F` failure: the set-up
//! failed. `Y` errno: a last step failed. `G`: execve comes next. `X` errno failure: execve failed.
//! So `G` at the end means that the program runs, and silence that the child died. The writer
//! allocates nothing, since an address-space limit may be in force already.

use proto::launch::pairs::Record;
use proto::launch::{FailedCodes, Failure, HostRefusedLimit, ProcessLimit};
use std::io;
use std::os::fd::OwnedFd;

/// The child's side.
pub struct Reporter {
    pipe: OwnedFd,
}

impl Reporter {
    /// Wraps the writing end.
    pub fn new(pipe: OwnedFd) -> Self {
        Reporter { pipe }
    }

    /// The set-up failed.
    pub fn failed(&self, failure: &Failure) {
        self.write(b"F");
        self.write(&failure.encode());
    }

    /// From here on the user's own files are touched, which may hang by the user's fault.
    pub fn at_users_files(&self) {
        self.write(b"U");
    }

    /// A named pipe is opened next: the job runs, and waits until somebody opens the other end.
    pub fn waits_for_peer(&self) {
        self.write(b"W");
    }

    /// Standard error is a file of this length before the job writes to it.
    pub fn error_file(&self, bytes: u64) {
        self.write(b"S");
        self.write(&bytes.to_le_bytes());
    }

    /// `setrlimit` refused a limit of the document.
    pub fn limit_refused(&self, index: usize, errno: i32) {
        // A document has fewer limits than that: its pairs are counted.
        let [e, f, g, h] = u32::try_from(index).unwrap_or(u32::MAX).to_le_bytes();
        let [a, b, c, d] = errno.to_le_bytes();
        self.write(&[b'L', e, f, g, h, a, b, c, d]);
    }

    /// The kernel refused the processors of the binding.
    pub fn binding_refused(&self) {
        self.write(b"A");
    }

    /// The next call is execve.
    pub fn executing(&self) {
        self.write(b"G");
    }

    /// execve failed; `failure` was encoded before.
    pub fn exec_failed(&self, errno: i32, failure: &[u8]) {
        let [a, b, c, d] = errno.to_le_bytes();
        self.write(&[b'X', a, b, c, d]);
        self.write(failure);
    }

    /// A step between the limits and execve failed.
    pub fn step_failed(&self, errno: i32) {
        let [a, b, c, d] = errno.to_le_bytes();
        self.write(&[b'Y', a, b, c, d]);
    }

    fn write(&self, bytes: &[u8]) {
        // A shepherd that is gone cannot be told; the child ends in any case.
        let _ = nix::unistd::write(&self.pipe, bytes);
    }
}

/// What a child reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetupReport {
    /// Limits that were refused.
    pub refused: Vec<HostRefusedLimit>,
    /// Whether the processors of the binding were refused.
    pub unbound: bool,
    /// Why the program does not run; `None` if it does.
    pub failure: Option<Failure>,
    /// Whether the child died without a word about why.
    pub died: bool,
    /// The length of standard error before the job wrote to it, if it is a file.
    pub error_file_bytes: Option<u64>,
}

/// Reads everything that came over the pipe until it was closed.
pub fn parse(mut bytes: &[u8], limits: &[ProcessLimit]) -> SetupReport {
    let mut report = SetupReport::default();
    let mut executing = false;
    while let Some((&tag, rest)) = bytes.split_first() {
        match (tag, rest) {
            (b'L', [e, f, g, h, a, b, c, d, rest @ ..]) => {
                let errno = i32::from_le_bytes([*a, *b, *c, *d]);
                let index = u32::from_le_bytes([*e, *f, *g, *h]) as usize;
                if let Some(&ProcessLimit { resource, soft, hard }) = limits.get(index) {
                    report.refused.push(HostRefusedLimit {
                        resource,
                        soft,
                        hard,
                        errno,
                    });
                }
                bytes = rest;
            }
            (b'U' | b'W', rest) => bytes = rest,
            (b'A', rest) => {
                report.unbound = true;
                bytes = rest;
            }
            (b'S', [a, b, c, d, e, f, g, h, rest @ ..]) => {
                report.error_file_bytes = Some(u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]));
                bytes = rest;
            }
            (b'G', rest) => {
                executing = true;
                bytes = rest;
            }
            (b'F', failure) => {
                report.failure = Some(Failure::decode(failure).unwrap_or_else(|_| unknown(0)));
                return report;
            }
            (b'X', [a, b, c, d, failure @ ..]) => {
                report.failure = Some(exec_failure(i32::from_le_bytes([*a, *b, *c, *d]), failure));
                return report;
            }
            (b'Y', [a, b, c, d, ..]) => {
                report.failure = Some(unknown(i32::from_le_bytes([*a, *b, *c, *d])));
                return report;
            }
            _ => {
                report.failure = Some(unknown(0));
                return report;
            }
        }
    }
    if !executing {
        let text = "the child died before it could execute the program".to_owned();
        report.failure = Some(Failure {
            failed: FailedCodes::BEFORE_JOB,
            text,
            errno: 0,
            path: String::new(),
        });
        report.died = true;
    }
    report
}

/// Whether a child has said that it waits for the other end of a named pipe.
pub fn is_waiting(bytes: &[u8]) -> bool {
    bytes.starts_with(b"UW")
}

/// Whether a child has said that it had come to the user's own files.
pub fn is_at_users_files(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'U')
}

fn exec_failure(errno: i32, failure: &[u8]) -> Failure {
    let mut failure = Failure::decode(failure).unwrap_or_else(|_| unknown(errno));
    failure.errno = errno;
    failure.text = format!("{}: {}", failure.text, io::Error::from_raw_os_error(errno));
    failure
}

fn unknown(errno: i32) -> Failure {
    let text = format!(
        "the last step before execve failed: {}",
        io::Error::from_raw_os_error(errno)
    );
    Failure {
        failed: FailedCodes::BEFORE_JOB,
        text,
        errno,
        path: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::launch::{BoundValue, Resource};

    #[test]
    fn refused_limits_and_the_failure_of_execve_are_both_read() {
        let limit = ProcessLimit {
            resource: Resource::Core,
            soft: BoundValue::Infinity,
            hard: BoundValue::Infinity,
        };
        let failure = Failure {
            failed: 27,
            text: "cannot execute".into(),
            errno: 0,
            path: "/x".into(),
        };
        // The three hundredth limit: more than a byte counts.
        let limits = [
            [limit; 299].as_slice(),
            &[ProcessLimit {
                resource: Resource::Stack,
                ..limit
            }],
        ]
        .concat();
        let mut bytes = vec![b'L', 43, 1, 0, 0, 1, 0, 0, 0, b'G', b'X', 2, 0, 0, 0];
        bytes.extend_from_slice(&failure.encode());
        let report = parse(&bytes, &limits);
        assert_eq!(
            report
                .refused
                .iter()
                .map(|refused| refused.resource)
                .collect::<Vec<_>>(),
            [Resource::Stack]
        );
        let failure = report.failure.expect("a failure");
        assert_eq!((failure.failed, failure.errno), (27, 2));
    }

    #[test]
    fn only_the_last_word_before_execve_means_that_the_program_runs() {
        assert_eq!(parse(b"G", &[]), SetupReport::default());
        assert_eq!(parse(b"UG", &[]), SetupReport::default());
        assert!(parse(&[], &[]).failure.is_some());
    }

    #[test]
    fn a_child_that_waits_for_a_pipe_says_so_before_and_goes_on_or_dies() {
        assert!(is_waiting(b"UW") && !is_waiting(b"U") && !is_waiting(b"G"));
        let report = parse(b"UWS\x02\x01\0\0\0\0\0\0WG", &[]);
        assert_eq!(
            report,
            SetupReport {
                error_file_bytes: Some(258),
                ..SetupReport::default()
            }
        );
        assert!(parse(b"UW", &[]).died);
    }
}
