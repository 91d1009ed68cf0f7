//! The conversation with a verifier, as a machine without I/O: lines of the verifier go in, steps
//! come out.
//!
//! The other side says `START`, and the verifier answers `SEND ENV` if it wants the environment of
//! the job, then `STARTED`. It gets the job ([`super::offer`]) up to `BEGIN`, answers with changes
//! and log lines, and ends with `RESULT STATE ACCEPT|CORRECT|REJECT|REJECT_WAIT`. Then comes the
//! `START` of the next job, or `QUIT`.
//!
//! Words are upper case, and blanks part them. The rest of a line is its value, as it stands.
//! Grid Engine 8.1.9 applies changes that come with `ACCEPT` too, and so does this.

#[cfg(test)]
mod tests;

use proto::diagnostic::{Code, Diagnostic};
use serde::{Deserialize, Serialize};

/// The most bytes of one line.
pub const LINE_BYTES_MAX: usize = 512 << 10;

/// The most bytes of the answer to one job.
pub const ANSWER_BYTES_MAX: usize = 4 << 20;

/// The most lines of `LOG` for one job.
pub const LOG_LINES_MAX: usize = 1_000;

/// Parameters that say where a job comes from. No verifier may change them.
const READ_ONLY: [&str; 6] = ["VERSION", "CONTEXT", "CLIENT", "USER", "GROUP", "JOB_ID"];

/// The answer to one job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsvAnswer {
    /// What the verifier changed, in its order.
    pub changes: Vec<JsvChange>,
    /// The reason of a rejection. `None` means that the job is accepted.
    pub rejection: Option<String>,
}

/// One change of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JsvChange {
    /// `PARAM`: sets a parameter, or deletes it where there is no value.
    Parameter {
        /// Its name, such as `l_hard`.
        name: String,
        /// Its value.
        value: Option<String>,
    },
    /// `ENV ADD` and `ENV MOD`: sets a variable of the job.
    SetVariable {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// `ENV DEL`: removes a variable of the job.
    DeleteVariable {
        /// Its name.
        name: String,
    },
}

/// A line of `LOG`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsvLogLine {
    /// `INFO`, `WARNING`, `ERROR`, or another word.
    pub kind: String,
    /// The text.
    pub text: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JsvFault {
    /// A line that begins with another word than expected here.
    #[error("master got unknown command from JSV: \"{0}\"")]
    UnknownCommand(String),
    /// A result that does not exist.
    #[error("JSV sent unknown result \"{0}\"")]
    UnknownResult(String),
    /// A change of what nobody may change.
    #[error("JSV tries to modify read-only parameter \"{0}\"")]
    ReadOnly(String),
    /// Lines on standard error.
    #[error("{}", stderr_words(.0))]
    Stderr(Vec<String>),
    /// Twice it ended, or was late.
    #[error("got no response from JSV script \"{script}\"")]
    NoResponse {
        /// The program.
        script: String,
        /// What happened the second time.
        why: String,
    },
    /// The program cannot be started.
    #[error("JSV \"{script}\" cannot be started")]
    NotStarted {
        /// The program.
        script: String,
        /// The reason of the system.
        why: String,
    },
    /// A line without end.
    #[error("JSV sent a line of more than {LINE_BYTES_MAX} bytes")]
    LongLine,
    /// An answer without end.
    #[error("JSV sent more than {ANSWER_BYTES_MAX} bytes or {LOG_LINES_MAX} lines of LOG about one job")]
    LongAnswer,
}

impl JsvFault {
    /// The refusal of the job.
    pub fn diagnostic(&self) -> Diagnostic {
        let refusal = Diagnostic::new(Code::JobRejected, self.to_string());
        match self {
            JsvFault::UnknownCommand(_) => {
                refusal.fix("the verifier may say SEND, STARTED, PARAM, ENV, LOG and RESULT")
            }
            JsvFault::UnknownResult(_) => {
                refusal.fix("it may be ACCEPT, CORRECT, REJECT or REJECT_WAIT, in upper case")
            }
            JsvFault::ReadOnly(_) => refusal.fix("a verifier may reject a job, but not say who submits it"),
            JsvFault::Stderr(_) => {
                refusal.fix("run the verifier by hand; what it has to say belongs into lines of LOG on standard output")
            }
            JsvFault::NoResponse { why, .. } => refusal
                .why(why.clone())
                .fix("run the verifier by hand: say START to it, and it has to answer STARTED"),
            JsvFault::NotStarted { why, .. } => refusal.why(why.clone()),
            JsvFault::LongLine | JsvFault::LongAnswer => refusal.fix("look for a loop in the verifier"),
        }
    }
}

/// The words of 8.1.9 for lines on standard error.
fn stderr_words(lines: &[String]) -> String {
    let all: String = lines.iter().map(|line| format!("JSV stderr: {line}\n")).collect();
    let last = lines.last().map_or("", String::as_str);
    format!("{all}JSV stderr is - {last}")
}

/// What a line led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialogStep {
    /// Nothing to do.
    Read,
    /// The verifier has started: the job is to be sent.
    Offer {
        /// Whether it wants the environment too.
        with_environment: bool,
    },
    /// Something for the log.
    Log(JsvLogLine),
    /// The answer is complete.
    Decided(JsvAnswer),
}

/// How far the conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Starting,
    Deciding,
}

/// The conversation about one job, after `START` was said.
#[derive(Debug)]
pub struct Dialog {
    stage: Stage,
    with_environment: bool,
    answer: JsvAnswer,
    bytes: usize,
    log_lines: usize,
}

impl Default for Dialog {
    fn default() -> Self {
        Self {
            stage: Stage::Starting,
            with_environment: false,
            answer: JsvAnswer::default(),
            bytes: 0,
            log_lines: 0,
        }
    }
}

impl Dialog {
    /// Takes in one line, without its line break.
    ///
    /// # Errors
    /// A line that has no meaning here, or one too much. The conversation is over then: what the
    /// verifier says next must not be taken for the answer about another job.
    pub fn line(&mut self, line: &str) -> Result<DialogStep, JsvFault> {
        self.bytes += line.len();
        if self.bytes > ANSWER_BYTES_MAX {
            return Err(JsvFault::LongAnswer);
        }
        let (command, rest) = split_word(line);
        match (self.stage, command) {
            (_, "") => Ok(DialogStep::Read),
            (_, "LOG") => self.log(rest),
            (Stage::Starting, "SEND") if split_word(rest).0 == "ENV" => {
                self.with_environment = true;
                Ok(DialogStep::Read)
            }
            (Stage::Starting, "STARTED") => {
                self.stage = Stage::Deciding;
                Ok(DialogStep::Offer {
                    with_environment: self.with_environment,
                })
            }
            (Stage::Deciding, "PARAM") => self.parameter(rest),
            (Stage::Deciding, "ENV") => self.variable(rest),
            (Stage::Deciding, "RESULT") => self.result(rest),
            (Stage::Starting | Stage::Deciding, unknown) => Err(JsvFault::UnknownCommand(shortened(unknown))),
        }
    }

    fn log(&mut self, rest: &str) -> Result<DialogStep, JsvFault> {
        self.log_lines += 1;
        if self.log_lines > LOG_LINES_MAX {
            return Err(JsvFault::LongAnswer);
        }
        let (kind, text) = split_word(rest);
        Ok(DialogStep::Log(JsvLogLine {
            kind: shortened(kind),
            text: text.trim_end_matches([' ', '\t']).to_owned(),
        }))
    }

    fn parameter(&mut self, rest: &str) -> Result<DialogStep, JsvFault> {
        let (name, value) = split_word(rest);
        if READ_ONLY.contains(&name) {
            return Err(JsvFault::ReadOnly(name.to_owned()));
        }
        self.answer.changes.push(JsvChange::Parameter {
            name: name.to_owned(),
            value: (!value.is_empty()).then(|| value.to_owned()),
        });
        Ok(DialogStep::Read)
    }

    fn variable(&mut self, rest: &str) -> Result<DialogStep, JsvFault> {
        let (action, rest) = split_word(rest);
        let (name, value) = split_word(rest);
        let (name, value) = (name.to_owned(), value.to_owned());
        self.answer.changes.push(match action {
            "ADD" | "MOD" if !name.is_empty() => JsvChange::SetVariable { name, value },
            "DEL" if !name.is_empty() => JsvChange::DeleteVariable { name },
            _ => return Err(JsvFault::UnknownCommand("ENV".to_owned())),
        });
        Ok(DialogStep::Read)
    }

    fn result(&mut self, rest: &str) -> Result<DialogStep, JsvFault> {
        let (word, rest) = split_word(rest);
        if word != "STATE" {
            return Err(JsvFault::UnknownResult(shortened(word)));
        }
        let (state, message) = split_word(rest);
        let mut answer = std::mem::take(&mut self.answer);
        answer.rejection = match state {
            "ACCEPT" | "CORRECT" => None,
            "REJECT" | "REJECT_WAIT" if message.is_empty() => Some("JSV rejected job".to_owned()),
            "REJECT" | "REJECT_WAIT" => Some(message.to_owned()),
            _ => return Err(JsvFault::UnknownResult(shortened(state))),
        };
        Ok(DialogStep::Decided(answer))
    }
}

/// The first word of a line, and what follows the blanks behind it.
fn split_word(text: &str) -> (&str, &str) {
    let blank = [' ', '\t'];
    let text = text.trim_start_matches(blank);
    match text.split_once(blank) {
        Some((word, rest)) => (word, rest.trim_start_matches(blank)),
        None => (text, ""),
    }
}

/// A word of a message, cut where it would hide the message.
fn shortened(word: &str) -> String {
    word.chars().take(100).collect()
}
