//! A verifier's process: started when it is first needed, asked about one job at a time, replaced
//! when its file changes, ended after each error.
//!
//! Each step is bounded. One job has [`Launch::patience`] from the start of the process or from
//! `START` to its result; a process that is late or ends is started anew once, as in 8.1.9. After
//! any error the process is killed with its group: the rest of a bad answer must not be taken for
//! the answer about the next job.

mod lines;
mod running;
#[cfg(test)]
mod tests;

use crate::dialog::{JsvAnswer, JsvFault, JsvLogLine};
use crate::offer::JsvOffer;
use running::RunningScript;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long a process may take for one job where nobody says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take to look at the file of a script.
const LOOK: Duration = Duration::from_secs(5);

/// How a verifier is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program. A name without a slash is looked for in `PATH`.
    pub script: String,
    /// Variables that it gets beside those of this process.
    pub environment: Vec<(String, String)>,
    /// Whether it gets nothing but [`Launch::environment`].
    pub has_own_environment: bool,
    /// Its working directory. `None` means that of this process.
    pub directory: Option<PathBuf>,
    /// How long it may take for one job.
    pub patience: Duration,
}

/// What tells one version of a script from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileMark {
    inode: u64,
    bytes: u64,
    changed_ns: (i64, i64),
}

/// One verifier with its process, if that runs.
#[derive(Debug)]
pub struct Verifier {
    launch: Launch,
    running: Option<(RunningScript, Option<FileMark>)>,
}

impl Verifier {
    /// A verifier that is started with the first job.
    pub fn new(launch: Launch) -> Self {
        Self { launch, running: None }
    }

    /// How it is started.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// Asks about one job. `log` gets the lines of `LOG` as they come.
    ///
    /// # Errors
    /// If there is no answer: the job is to be refused.
    pub async fn verify(
        &mut self,
        offer: &JsvOffer,
        log: &mut (dyn FnMut(JsvLogLine) + Send),
    ) -> Result<JsvAnswer, JsvFault> {
        let mark = self.look().await;
        if let Some((running, known)) = self.running.take() {
            match known == mark {
                true => self.running = running.if_idle().map(|running| (running, known)),
                false => drop(running.quit()),
            }
        }
        match self.attempt(mark, offer, log).await {
            Err(JsvFault::NoResponse { .. }) => self.attempt(mark, offer, log).await,
            answered => answered,
        }
    }

    /// Sets how long it may take for one job from now on.
    pub fn set_patience(&mut self, patience: Duration) {
        self.launch.patience = patience;
    }

    /// Says `QUIT` to the process, if there is one. If it still runs a moment later it is killed;
    /// what is returned ends then.
    pub fn quit(&mut self) -> Option<JoinHandle<()>> {
        self.running.take().map(|(running, _)| running.quit())
    }

    /// Leaves the process, if there is one, to end by itself after `QUIT`.
    pub fn leave(&mut self) {
        if let Some((running, _)) = self.running.take() {
            running.leave();
        }
    }

    async fn attempt(
        &mut self,
        mark: Option<FileMark>,
        offer: &JsvOffer,
        log: &mut (dyn FnMut(JsvLogLine) + Send),
    ) -> Result<JsvAnswer, JsvFault> {
        let mut running = match self.running.take() {
            Some((running, _)) => running,
            None => RunningScript::start(&self.launch)?,
        };
        match timeout(self.launch.patience, running.ask(offer, log)).await {
            Ok(Ok(answer)) => {
                self.running = running.if_idle().map(|running| (running, mark));
                Ok(answer)
            }
            Ok(Err(fault)) => Err(fault),
            Err(_) => {
                let why = format!("it did not answer within {} s", self.launch.patience.as_secs());
                Err(self.no_response(why))
            }
        }
    }

    fn no_response(&self, why: String) -> JsvFault {
        JsvFault::NoResponse {
            script: self.launch.script.clone(),
            why,
        }
    }

    /// Looks at the file. `None` where there is none to look at, or where the file system does not
    /// answer: the process tells then what is wrong.
    async fn look(&self) -> Option<FileMark> {
        let meta = timeout(LOOK, tokio::fs::metadata(proto::text::to_os(&self.launch.script))).await;
        let meta = meta.ok()?.ok()?;
        Some(FileMark {
            inode: meta.ino(),
            bytes: meta.size(),
            changed_ns: (meta.mtime(), meta.mtime_nsec()),
        })
    }
}
