//! `gridwright-agent sensor-check`: one load sensor through the whole protocol, as the agent would
//! run it, line by line.

use crate::Failure;
use crate::clock;
use crate::sensors::{self, Output, Process, check_file};
use ::sensors::check::{CellFacts, Transcript};
use ::sensors::config::{SensorSpec, parse_load_sensor};
use ::sensors::launch::command_line;
use ::sensors::protocol::{Action, Exit, Health, Machine, Settings, Signal, Trace};
use ::sensors::safety::Uid;
use nix::unistd::{Gid, Pid, User};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use std::collections::VecDeque;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::sleep;

/// Requests that a sensor is given before it is told to quit.
const REQUESTS: usize = 2;

/// Milliseconds between them: state that a sensor keeps in its process shows in the second.
const INTERVAL_MS: u64 = 1000;

/// How a sensor is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensorCheckOptions {
    /// The program with its arguments, as `load_sensor` would have it.
    pub sensor: String,
    /// The state directory whose name it is told.
    pub dir: PathBuf,
    /// Under whom it runs: `NAME` or `UID:GID`; only root can choose.
    pub user: Option<String>,
    /// Seconds that an answer may take; 60 by default.
    pub deadline_s: Option<u32>,
    /// The facts about the cell against which values are checked.
    pub cell: Option<CellFacts>,
}

/// Runs the sensor and prints what was understood. The exit code says whether it can be used.
///
/// # Errors
/// What keeps it from being run at all.
pub fn run(options: &SensorCheckOptions) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::new)?;
    let outcome = runtime.block_on(check(options));
    runtime.shutdown_background();
    let transcript = outcome?;
    tell(&transcript.summary());
    Ok(ExitCode::from(transcript.verdict().exit_code()))
}

/// Prints as it happens. Whoever does not read on is no error.
fn tell(lines: &[String]) {
    let mut out = std::io::stdout().lock();
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
}

/// Under whom the sensor runs.
struct Account {
    uid: u32,
    /// None where it is this process's own.
    change_to: Option<(u32, u32)>,
}

async fn check(options: &SensorCheckOptions) -> Result<Transcript, Failure> {
    let path = std::fs::canonicalize(options.sensor.split_whitespace().next().unwrap_or_default());
    let rest = options.sensor.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
    let path = path.map_err(|error| {
        let refusal = Diagnostic::new(Code::SystemRefused, "the load sensor cannot be read").at(&options.sensor);
        Failure::refusal(
            &refusal
                .why(error.to_string())
                .fix("name its file, as load_sensor would"),
        )
    })?;
    let entry = format!("{} {rest}", path.display());
    let specs = parse_load_sensor(&entry).map_err(|refusal| Failure::refusal(&refusal))?;
    let [spec] = specs.as_slice() else {
        return Err(Failure::text(format!("{entry}: name one sensor")));
    };
    let account = account(options.user.as_deref())?;
    check_file(&spec.path, Uid(account.uid)).await.map_err(|why| {
        let refusal = Diagnostic::new(Code::BadValue, format!("load sensor {spec} would be refused: {why}"));
        Failure::refusal(&refusal.fix("name a program that only root, or the user of the sensors, can write"))
    })?;
    let host = HostName::new(&own_host());
    let settings = settings(options.deadline_s);
    let deadline_s = settings.deadline_ms / 1000;
    let (uid, path) = (account.uid, &spec.path);
    tell(&[format!(
        "checking {path} as uid {uid}: {REQUESTS} requests, {deadline_s} s for each answer"
    )]);
    let check = Check {
        spec: spec.clone(),
        account,
        environment: sensors::environment(&options.dir.display().to_string(), &host),
        machine: Machine::new(settings, sensors::self_names(&host), clock::tick()),
        transcript: Transcript::new(options.cell.clone()),
        running: None,
    };
    Ok(check.run().await)
}

/// As the agent would have it, but asked more often. Who must not take long to answer must not take
/// longer to leave.
fn settings(deadline_s: Option<u32>) -> Settings {
    let usual = Settings {
        interval_ms: INTERVAL_MS,
        trace: Trace::Lines,
        ..Settings::default()
    };
    let deadline_ms = deadline_s.map_or(usual.deadline_ms, |seconds| u64::from(seconds) * 1000);
    Settings {
        deadline_ms,
        quit_wait_ms: usual.quit_wait_ms.min(deadline_ms),
        ..usual
    }
}

fn own_host() -> String {
    nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .unwrap_or_default()
}

fn account(user: Option<&str>) -> Result<Account, Failure> {
    let own = nix::unistd::geteuid();
    let wanted = match user {
        None if own.is_root() => "gridwright-sensor",
        None => {
            return Ok(Account {
                uid: own.as_raw(),
                change_to: None,
            });
        }
        Some(user) => user,
    };
    let ids = match wanted.split_once(':') {
        Some((uid, gid)) => uid.parse().ok().zip(gid.parse().ok()),
        None => User::from_name(wanted)
            .ok()
            .flatten()
            .map(|user| (user.uid.as_raw(), Gid::as_raw(user.gid))),
    };
    let (uid, gid) = ids.ok_or_else(|| {
        let refusal = Diagnostic::new(Code::BadValue, format!("user {wanted} is not known here"));
        Failure::refusal(&refusal.fix("name the user of the cell's sensors with --user NAME or --user UID:GID"))
    })?;
    match (uid == own.as_raw(), own.is_root()) {
        (true, _) => Ok(Account { uid, change_to: None }),
        (false, true) => Ok(Account {
            uid,
            change_to: Some((uid, gid)),
        }),
        (false, false) => Err(Failure::text(format!("only root can run a sensor as {wanted}"))),
    }
}

/// A process with its pipes.
struct RunningSensor {
    child: Child,
    pid: i32,
    pipes: Process,
}

/// One checked run.
struct Check {
    spec: SensorSpec,
    account: Account,
    environment: Vec<String>,
    machine: Machine,
    transcript: Transcript,
    running: Option<RunningSensor>,
}

enum Event {
    Output(Output),
    Exited(Exit),
    Timer,
}

impl Check {
    async fn run(mut self) -> Transcript {
        let mut is_ended = self.tick();
        while !is_ended {
            let event = self.next().await;
            is_ended = self.take(event) || self.go_on() || self.tick();
        }
        self.transcript
    }

    async fn next(&mut self) -> Event {
        let now = clock::tick();
        let read_out = self.machine.pause_until(now).is_none();
        // The next request is due by its interval; the machine's own timers are for what goes
        // wrong.
        let timer = self
            .machine
            .next_timer()
            .into_iter()
            .chain([now.plus_ms(INTERVAL_MS / 10)])
            .min();
        let timer = sleep(timer.map_or(Duration::ZERO, clock::until));
        match &mut self.running {
            None => {
                timer.await;
                Event::Timer
            }
            Some(RunningSensor { child, pipes, pid: _ }) => tokio::select! {
                biased;
                // Only once the pipes are silent does the end of the process count.
                output = pipes.output(read_out) => Event::Output(output),
                status = child.wait() => Event::Exited(match status {
                    Ok(status) => match status.code() {
                        Some(code) => Exit::Status(code),
                        None => Exit::Signal(status.signal().unwrap_or_default()),
                    },
                    Err(_) => Exit::Status(-1),
                }),
                () = timer => Event::Timer,
            },
        }
    }

    /// Whether the sensor has ended for good.
    fn take(&mut self, event: Event) -> bool {
        let now = clock::tick();
        let actions = match event {
            Event::Output(Output::Out(bytes)) => self.machine.bytes(&bytes, now),
            Event::Output(Output::OutEnd) => self.machine.eof(now),
            Event::Output(Output::Err(bytes)) => self.machine.stderr(&bytes, now),
            Event::Exited(exit) => {
                tell(&self.transcript.exited(exit, now));
                let actions = self.machine.exited(exit, now);
                let is_ended = self.perform(actions);
                self.running = None;
                return is_ended;
            }
            Event::Timer => Vec::new(),
        };
        self.perform(actions)
    }

    /// Asks again, or ends the run when enough was seen; whether the sensor has ended for good.
    fn go_on(&mut self) -> bool {
        let now = clock::tick();
        let has_failed = match self.machine.status(now).health {
            Health::Failing | Health::TimedOut | Health::BufferingSuspected => true,
            Health::Starting | Health::Running | Health::Stopped => false,
        };
        let actions = if has_failed || self.transcript.blocks() >= REQUESTS {
            self.machine.stop(now)
        } else {
            self.machine.request(now)
        };
        self.perform(actions)
    }

    fn tick(&mut self) -> bool {
        let actions = self.machine.tick(clock::tick());
        self.perform(actions)
    }

    fn perform(&mut self, actions: Vec<Action>) -> bool {
        tell(&self.transcript.actions(&actions, clock::tick()));
        let mut is_ended = false;
        let mut queue = VecDeque::from(actions);
        while let Some(action) = queue.pop_front() {
            match action {
                Action::Start => {
                    let more = self.start();
                    tell(&self.transcript.actions(&more, clock::tick()));
                    queue.extend(more);
                }
                Action::Write(request) => {
                    if let Some(running) = &self.running {
                        running.pipes.write(request.as_bytes());
                    }
                }
                Action::CloseStdin => {
                    if let Some(running) = &mut self.running {
                        running.pipes.close_stdin();
                    }
                }
                Action::SignalGroup(signal) => self.signal(signal),
                Action::Ended => is_ended = true,
                Action::Block(_)
                | Action::Warn(_)
                | Action::Health { .. }
                | Action::Stderr(_)
                | Action::Line { .. } => {}
            }
        }
        is_ended
    }

    fn start(&mut self) -> Vec<Action> {
        let now = clock::tick();
        match self.spawn() {
            Ok(running) => {
                self.running = Some(running);
                self.machine.started(now)
            }
            Err(error) => self.machine.start_failed(&error.to_string(), now),
        }
    }

    fn spawn(&self) -> std::io::Result<RunningSensor> {
        let (pipes, [stdin, stdout, stderr]) = Process::new()?;
        let words = command_line(&self.spec);
        let mut command = std::process::Command::new(&words[0]);
        command.args(&words[1..]).env_clear().current_dir("/").process_group(0);
        command.envs(self.environment.iter().filter_map(|entry| entry.split_once('=')));
        command
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(stderr));
        if let Some((uid, gid)) = self.account.change_to {
            command.uid(uid).gid(gid);
        }
        let child = Command::from(command).kill_on_drop(true).spawn()?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
        Ok(RunningSensor { child, pid, pipes })
    }

    fn signal(&self, signal: Signal) {
        let Some(RunningSensor { pid, .. }) = &self.running else {
            return;
        };
        let signal = match signal {
            Signal::Terminate => nix::sys::signal::Signal::SIGTERM,
            Signal::Kill => nix::sys::signal::Signal::SIGKILL,
        };
        // That nobody is left in the group is no failure.
        let _ = nix::sys::signal::killpg(Pid::from_raw(*pid), signal);
    }
}
