//! One process of a verifier and its three streams.

use super::Launch;
use super::lines::LineBuffer;
use crate::dialog::{Dialog, DialogStep, JsvAnswer, JsvFault, JsvLogLine};
use crate::offer::JsvOffer;
use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use proto::text;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How much is read at once.
const CHUNK_BYTES: usize = 4 << 10;

/// The most lines of standard error that a refusal tells.
const STDERR_LINES_MAX: usize = 100;

/// The most bytes of one of them.
const STDERR_LINE_BYTES_MAX: usize = 1_000;

/// A pause in standard error that ends a message.
const STDERR_PAUSE: Duration = Duration::from_millis(200);

/// How long a process may run on after `QUIT`.
const GRACE: Duration = Duration::from_secs(2);

/// A process that runs, or has ended and is not known to.
#[derive(Debug)]
pub(super) struct RunningScript {
    script: String,
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    lines: LineBuffer,
    is_stderr_open: bool,
    /// Whether it may go on when this is dropped.
    is_left: bool,
}

impl RunningScript {
    /// Starts the program by way of the shell, which looks for a name without a slash in `PATH`,
    /// runs a script without a first line `#!`, and says in the words that 8.1.9 passes on what it
    /// cannot find. The process leads a group of its own.
    pub(super) fn start(launch: &Launch) -> Result<Self, JsvFault> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(text::to_os(&shell_word(&launch.script)));
        if launch.has_own_environment {
            command.env_clear();
        }
        let os = |(name, value): &(String, String)| (text::to_os(name), text::to_os(value));
        command.envs(launch.environment.iter().map(os));
        if let Some(directory) = &launch.directory {
            command.current_dir(directory);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let not_started = |why: String| JsvFault::NotStarted {
            script: launch.script.clone(),
            why,
        };
        let mut child = command.spawn().map_err(|error| not_started(error.to_string()))?;
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok(Self {
                script: launch.script.clone(),
                child,
                stdin,
                stdout,
                stderr,
                lines: LineBuffer::default(),
                is_stderr_open: true,
                is_left: false,
            }),
            _ => Err(not_started("it has no pipes".to_owned())),
        }
    }

    /// The conversation about one job.
    pub(super) async fn ask(
        &mut self,
        offer: &JsvOffer,
        log: &mut (dyn FnMut(JsvLogLine) + Send),
    ) -> Result<JsvAnswer, JsvFault> {
        let mut dialog = Dialog::default();
        let mut unsent = b"START\n".to_vec();
        loop {
            while let Some(line) = self.lines.next_line()? {
                match dialog.line(&line)? {
                    DialogStep::Read => {}
                    DialogStep::Offer { with_environment } => {
                        unsent.extend_from_slice(&text::to_bytes(&offer.lines(with_environment)));
                    }
                    DialogStep::Log(line) => log(line),
                    DialogStep::Decided(answer) => return self.unless_complaining(answer).await,
                }
            }
            self.exchange(&mut unsent).await?;
        }
    }

    /// Writes some of what is to be sent, or reads some of what comes, whichever is possible first.
    async fn exchange(&mut self, unsent: &mut Vec<u8>) -> Result<(), JsvFault> {
        let (mut out, mut errors) = ([0; CHUNK_BYTES], [0; CHUNK_BYTES]);
        tokio::select! {
            biased;
            read = self.stderr.read(&mut errors), if self.is_stderr_open => match read {
                Ok(0) | Err(_) => self.is_stderr_open = false,
                Ok(count) => return Err(self.complaint(errors[..count].to_vec()).await),
            },
            read = self.stdout.read(&mut out) => match read {
                Ok(0) | Err(_) => return Err(self.ended().await),
                Ok(count) => self.lines.push(&out[..count]),
            },
            written = self.stdin.write(unsent), if !unsent.is_empty() => match written {
                Ok(count) => drop(unsent.drain(..count)),
                // It reads nothing any more: what it says, or its end, tells why.
                Err(_) => unsent.clear(),
            },
        }
        Ok(())
    }

    /// The answer, unless the process wrote to standard error before it gave it.
    async fn unless_complaining(&mut self, answer: JsvAnswer) -> Result<JsvAnswer, JsvFault> {
        match available(&self.stderr) {
            Some(bytes) if !bytes.is_empty() => Err(self.complaint(bytes).await),
            Some(_) | None => Ok(answer),
        }
    }

    /// The process has closed its standard output.
    async fn ended(&mut self) -> JsvFault {
        let complaint = self.stderr_lines(Vec::new()).await;
        if !complaint.is_empty() {
            return JsvFault::Stderr(complaint);
        }
        let why = match timeout(STDERR_PAUSE, self.child.wait()).await {
            Ok(Ok(status)) => format!("it ended: {status}"),
            Ok(Err(_)) | Err(_) => "it closed its standard output".to_owned(),
        };
        JsvFault::NoResponse {
            script: self.script.clone(),
            why,
        }
    }

    async fn complaint(&mut self, begun: Vec<u8>) -> JsvFault {
        JsvFault::Stderr(self.stderr_lines(begun).await)
    }

    /// The lines of standard error up to its end or to a pause.
    async fn stderr_lines(&mut self, mut bytes: Vec<u8>) -> Vec<String> {
        let mut chunk = [0; CHUNK_BYTES];
        while bytes.len() < STDERR_LINES_MAX * STDERR_LINE_BYTES_MAX {
            match timeout(STDERR_PAUSE, self.stderr.read(&mut chunk)).await {
                Ok(Ok(count)) if count > 0 => bytes.extend_from_slice(&chunk[..count]),
                Ok(_) | Err(_) => break,
            }
        }
        let line = |line: &[u8]| {
            let end = line.len().min(STDERR_LINE_BYTES_MAX);
            text::from_bytes(&line[..end]).trim().to_owned()
        };
        let lines = bytes.split(|byte| *byte == b'\n').map(line);
        lines.filter(|line| !line.is_empty()).take(STDERR_LINES_MAX).collect()
    }

    /// The process, if it can be asked about another job: it runs, and has said nothing that nobody
    /// asked for. Any other is killed.
    pub(super) fn if_idle(self) -> Option<Self> {
        let is_idle = self.lines.is_empty()
            && available(&self.stdout).is_some_and(|bytes| bytes.is_empty())
            && available(&self.stderr).is_none_or(|bytes| bytes.is_empty());
        is_idle.then_some(self)
    }

    /// Says `QUIT`, and kills what still runs a moment later.
    pub(super) fn quit(self) -> JoinHandle<()> {
        let mut running = self;
        tokio::spawn(async move {
            let ending = async {
                // It may have ended meanwhile.
                let _ = running.stdin.write_all(b"QUIT\n").await;
                let _ = running.child.wait().await;
            };
            let _ = timeout(GRACE, ending).await;
        })
    }

    /// Says `QUIT`, and lets the process go on for as long as it likes.
    pub(super) fn leave(mut self) {
        // A pipe that is full belongs to a process that reads nothing.
        let _ = nix::unistd::write(&self.stdin, b"QUIT\n");
        self.is_left = true;
    }
}

impl Drop for RunningScript {
    /// Kills the process and those that it has started.
    fn drop(&mut self) {
        if !self.is_left {
            kill_group(&self.child);
        }
    }
}

/// Kills the group that a process leads, as long as it was not waited for.
fn kill_group(child: &Child) {
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
        // It may have ended meanwhile.
        let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

/// What a pipe holds at this moment, at most one chunk. `None` means that it is closed.
fn available(stream: &impl AsFd) -> Option<Vec<u8>> {
    let mut chunk = vec![0; CHUNK_BYTES];
    match nix::unistd::read(stream, &mut chunk) {
        Ok(0) => None,
        Ok(count) => {
            chunk.truncate(count);
            Some(chunk)
        }
        Err(Errno::EAGAIN | Errno::EINTR) => Some(Vec::new()),
        Err(_) => None,
    }
}

/// A path as one word of the shell.
fn shell_word(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%".contains(&byte);
    match path.bytes().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}
