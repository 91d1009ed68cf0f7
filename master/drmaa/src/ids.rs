//! Job identifiers: `N`, and `N.T` for a task of an array job.

use crate::error::{DrmaaError, Errno};
use proto::id::{JobNumber, TaskId};
use std::fmt;

/// The identifier that stands for any job of the session.
pub const SESSION_ANY: &str = "DRMAA_JOB_IDS_SESSION_ANY";

/// The identifier that stands for all jobs of the session.
pub const SESSION_ALL: &str = "DRMAA_JOB_IDS_SESSION_ALL";

/// A job, or a task of an array job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    /// The job.
    pub number: JobNumber,
    /// The task; `None` for a job that is not an array, or for a whole array.
    pub task: Option<TaskId>,
}

impl JobId {
    /// Reads an identifier.
    ///
    /// # Errors
    /// `InvalidArgument` for a text that is not one.
    pub fn parse(text: &str) -> Result<Self, DrmaaError> {
        Self::read(text).ok_or_else(|| {
            DrmaaError::new(
                Errno::InvalidArgument,
                format!("Job id, \"{text}\", is not a valid job id"),
            )
        })
    }

    fn read(text: &str) -> Option<Self> {
        let (number, task) = match text.split_once('.') {
            Some((number, task)) => (number, Some(natural(task)?)),
            None => (text, None),
        };
        Some(Self {
            number: JobNumber(natural(number)?),
            task: task.map(TaskId),
        })
    }
}

/// Reads a number above zero, in digits alone. A number that no job can have is the largest one.
fn natural(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u32::MAX)).filter(|number| *number > 0)
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.task {
            Some(task) => write!(f, "{}.{task}", self.number),
            None => write!(f, "{}", self.number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_reads_back_from_its_text() {
        for text in ["1", "657.1", "9999999.75000"] {
            assert_eq!(JobId::parse(text).unwrap().to_string(), text);
        }
        for bad in [
            "",
            "xyz",
            "0",
            "1.",
            ".1",
            "1.x",
            "-1",
            "1.2.3",
            "+1",
            " 1",
            SESSION_ALL,
        ] {
            let error = JobId::parse(bad).unwrap_err();
            assert_eq!(error.errno, Errno::InvalidArgument);
            assert_eq!(error.text, format!("Job id, \"{bad}\", is not a valid job id"));
        }
        assert!(JobId::parse("99999999999999").is_ok());
    }
}
