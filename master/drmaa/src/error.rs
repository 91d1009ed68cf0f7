//! The error codes of the binding, and their texts.

use proto::diagnostic::{Code, Diagnostic};
use std::ffi::CStr;

/// Declares the codes in their order: variant and text.
macro_rules! errnos {
    ($($(#[$doc:meta])* $variant:ident $text:literal)*) => {
        /// `DRMAA_ERRNO_…`, in the order of `drmaa.h`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Errno { $($(#[$doc])* $variant,)* }

        impl Errno {
            /// Every code, in the order of their numbers.
            pub const ALL: &[Errno] = &[$(Errno::$variant,)*];

            /// The text of `drmaa_strerror`.
            pub fn text(self) -> &'static CStr {
                match self { $(Errno::$variant => $text,)* }
            }
        }
    };
}

errnos! {
    /// No error.
    Success c"Routine returned normally with success."
    /// A fault of the library or of the system.
    Internal c"Unexpected or internal DRMAA error like memory allocation, system call failure, etc."
    /// The master does not answer.
    Communication c"Could not contact DRM system"
    /// The user may not do this.
    Authorization c"The specified request is not processed successfully due to authorization failure."
    /// An argument is wrong.
    InvalidArgument c"The input value for an argument is invalid."
    /// There is no session.
    NoActiveSession c"No active session"
    /// No memory.
    NoMemory c"failed allocating memory"
    /// The contact string is wrong.
    InvalidContact c"Initialization failed due to invalid contact string."
    /// The default contact string does not work.
    DefaultContact c"DRMAA could not use the default contact string to connect to DRM system."
    /// There is no default contact string.
    NoDefaultContact c"No default contact string was provided or selected."
    /// The session cannot be opened.
    InitFailed c"Initialization failed due to failure to init DRM system."
    /// There is a session already.
    AlreadyActive c"Initialization failed due to existing DRMAA session."
    /// The session cannot be closed.
    ExitFailed c"DRM system disengagement failed."
    /// The form of an attribute is wrong.
    AttributeFormat c"The format for the job attribute value is invalid."
    /// The value of an attribute is wrong, or it is not set.
    AttributeValue c"The value for the job attribute is invalid."
    /// Attributes contradict each other.
    Conflict c"The value of this attribute is conflicting with a previously set attributes."
    /// The same call may succeed later.
    TryLater c"Could not pass job now to DRM system. A retry may succeed however (saturation)."
    /// The job was refused.
    Denied c"The DRM system rejected the job. The job will never be accepted due to DRM configuration or job template settings."
    /// The session has no such job.
    InvalidJob c"The job specified by the 'jobid' does not exist."
    /// The job is not suspended.
    ResumeState c"The job has not been suspended. The RESUME request will not be processed."
    /// The job does not run.
    SuspendState c"The job has not been running, and it cannot be suspended."
    /// The job cannot be held.
    HoldState c"The job cannot be moved to a HOLD state."
    /// The job is not held.
    ReleaseState c"The job is not in a HOLD state."
    /// The time was up.
    Timeout c"time-out condition"
    /// The job has ended, and never ran.
    NoUsage c"no usage information was returned for the completed job"
    /// The end of a list.
    NoMoreElements c"no more elements are contained in the opaque string vector"
}

impl Errno {
    /// The number of `drmaa.h`.
    pub fn code(self) -> i32 {
        self as i32
    }

    /// The code of a number.
    pub fn of_code(code: i32) -> Option<Self> {
        usize::try_from(code).ok().and_then(|at| Self::ALL.get(at)).copied()
    }
}

/// The outcome of a call that is not success: the code, and the text of the diagnosis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrmaaError {
    /// The code.
    pub errno: Errno,
    /// The diagnosis; may be empty, as it is of some calls of 8.1.9.
    pub text: String,
}

impl DrmaaError {
    /// An error with a diagnosis of its own.
    pub fn new(errno: Errno, text: impl Into<String>) -> Self {
        Self {
            errno,
            text: text.into(),
        }
    }

    /// An error without a diagnosis.
    pub fn silent(errno: Errno) -> Self {
        Self::new(errno, "")
    }

    /// A refused submission.
    pub fn of_submission(refusal: &Diagnostic) -> Self {
        let denied = if refusal.code == Code::JobLimit {
            Errno::TryLater
        } else {
            Errno::Denied
        };
        let errno = communication(refusal.code).unwrap_or(denied);
        Self::new(errno, explained(refusal))
    }

    /// A refused question, or change of a job.
    pub fn of_refusal(refusal: &Diagnostic) -> Self {
        let errno = match refusal.code {
            Code::UnknownJob => Errno::InvalidJob,
            Code::NotPermitted | Code::HostNotPermitted | Code::UnknownUser => Errno::Authorization,
            code => communication(code).unwrap_or(Errno::Internal),
        };
        Self::new(errno, explained(refusal))
    }
}

impl From<Errno> for DrmaaError {
    fn from(errno: Errno) -> Self {
        Self::new(errno, errno.text().to_string_lossy())
    }
}

/// Codes that say that the master was not reached.
fn communication(code: Code) -> Option<Errno> {
    match code {
        Code::NoMaster | Code::OutcomeUnknown => Some(Errno::Communication),
        Code::Overloaded => Some(Errno::TryLater),
        _other => None,
    }
}

/// What was refused, in the words that programs know, with the reason where the words need one.
fn explained(refusal: &Diagnostic) -> String {
    if refusal.why.is_empty() {
        refusal.what.clone()
    } else {
        format!("{}: {}", refusal.what, refusal.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_numbers_of_the_binding() {
        for (errno, code) in [
            (Errno::Success, 0),
            (Errno::InvalidArgument, 4),
            (Errno::AlreadyActive, 11),
            (Errno::Denied, 17),
            (Errno::InvalidJob, 18),
            (Errno::NoMoreElements, 25),
        ] {
            assert_eq!((errno.code(), Errno::of_code(code)), (code, Some(errno)));
        }
        assert_eq!((Errno::of_code(26), Errno::of_code(-1)), (None, None));
    }

    #[test]
    fn a_refusal_has_the_code_of_its_cause() {
        for (code, submission, other) in [
            (Code::UnknownResource, Errno::Denied, Errno::Internal),
            (Code::JobLimit, Errno::TryLater, Errno::Internal),
            (Code::NoMaster, Errno::Communication, Errno::Communication),
            (Code::UnknownJob, Errno::Denied, Errno::InvalidJob),
            (Code::NotPermitted, Errno::Denied, Errno::Authorization),
        ] {
            let refusal = Diagnostic::new(code, "no");
            assert_eq!(DrmaaError::of_submission(&refusal).errno, submission, "{code}");
            assert_eq!(DrmaaError::of_refusal(&refusal).errno, other, "{code}");
        }
    }
}
