//! Real cells for tests: the built programs, a directory of their own, an ordinary account for
//! jobs, and no trace left behind.
//!
//! Deliberately absent: building, which `cargo build --workspace` does before, and fixed waits:
//! whatever is waited for is observed, with a deadline.

mod account;
mod clock;
mod network;
mod preload;
mod process;
mod programs;
mod quota;
mod record;
mod said;
mod temp;
mod wait;

pub use account::Account;
pub use clock::Clock;
pub use network::Network;
pub use process::{Process, resident_kib};
pub use programs::Programs;
pub use quota::Quota;
pub use record::{Record, records};
pub use said::CommandOutput;
pub use temp::{TempDir, run};
pub use wait::{PATIENCE, wait_for, wait_until};

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// As whom a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandUser {
    /// Who brought the cell up.
    Admin,
    /// The ordinary account of the test.
    User,
}

/// How a cell is to be.
#[derive(Clone, Debug)]
pub struct CellPlan {
    /// Who brings it up; only root can choose.
    pub owner: CommandUser,
    /// The name of its state directory, which may be long.
    pub name: String,
    /// Further words for `gridwright up`.
    pub words: Vec<String>,
}

impl Default for CellPlan {
    fn default() -> Self {
        let words = ["--slots", "4"].map(str::to_owned).into();
        Self {
            owner: CommandUser::Admin,
            name: "cell".to_owned(),
            words,
        }
    }
}

impl CellPlan {
    /// The same with another number of slots.
    pub fn slots(mut self, slots: u32) -> Self {
        self.words = vec!["--slots".to_owned(), slots.to_string()];
        self
    }

    /// The same, brought up by the ordinary account.
    pub fn owned_by_the_user(mut self) -> Self {
        self.owner = CommandUser::User;
        self
    }
}

/// Where the processes of a cell run.
#[derive(Clone, Debug)]
enum ProcessPlace {
    /// In the network of the test.
    Here,
    /// In a network namespace, under a host name of its own.
    Host(Arc<Network>, String),
}

/// The part of a cell that one machine has: its state directory, and how to run commands there.
/// Dropped, its jobs, daemons and files are gone.
pub struct Cell {
    dir: PathBuf,
    owner: CommandUser,
    place: ProcessPlace,
    programs: Arc<Programs>,
    account: Arc<Account>,
    temp: Arc<TempDir>,
}

impl Cell {
    /// A cell of four slots, brought up by whoever runs the test.
    pub fn up() -> Self {
        Self::with(CellPlan::default())
    }

    /// A cell as planned, up and with its first load report.
    pub fn with(plan: CellPlan) -> Self {
        let words = plan.words.clone();
        let cell = Self::prepare(plan);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        cell.bring_up(&words).ok();
        cell.keep_temporary_directories_apart();
        cell.limit_address_space();
        cell
    }

    /// Where a new cell limits memory in use, tests expect what 8.1.9 limits unless they say
    /// otherwise.
    fn limit_address_space(&self) {
        let shown = self.admin(&["qconf", "-sconf", "global"]).ok().out;
        if shown.contains("H_VMEM=memory") {
            self.set_global("execd_params", "none");
        }
    }

    /// Two cells on one machine would share `/tmp/JOB.TASK.QUEUE`.
    pub fn keep_temporary_directories_apart(&self) {
        let dir = self.work().display().to_string();
        self.admin(&["qconf", "-mattr", "queue", "tmpdir", &dir, "all.q"]).ok();
    }

    /// The place of a cell that is not up yet.
    pub fn prepare(plan: CellPlan) -> Self {
        let (temp, account) = (Arc::new(TempDir::new()), Account::shared());
        let dir = temp.path().join("state");
        make_dir(&dir, (plan.owner == CommandUser::User).then_some(&account));
        make_dir(&temp.path().join("work"), Some(&account));
        let programs = Arc::new(Programs::find(temp.path()));
        Self {
            dir: dir.join(plan.name),
            owner: plan.owner,
            place: ProcessPlace::Here,
            programs,
            account,
            temp,
        }
    }

    /// The place of a further cell, or of another machine's part of this one, on a host of
    /// `network`.
    pub fn on(network: &Arc<Network>, host: &str) -> Self {
        let mut cell = Self::prepare(CellPlan::default());
        cell.place = ProcessPlace::Host(network.clone(), host.to_owned());
        cell
    }

    /// The same for another ordinary account.
    pub fn of_account(mut self, account: &Arc<Account>) -> Self {
        account.own(&self.work());
        self.account = account.clone();
        self
    }

    /// Runs `gridwright up --detach` with further words; they settle the port and the patience
    /// unless they name one.
    pub fn bring_up(&self, words: &[&str]) -> CommandOutput {
        let (dir, patience) = (self.dir_word(), PATIENCE.as_secs().to_string());
        let mut all = vec!["up", "--dir", &dir, "--detach"];
        if !words.contains(&"--wait") {
            all.extend(["--wait", patience.as_str()]);
        }
        if !words.contains(&"--port") {
            all.extend(["--port", "0"]);
        }
        all.extend(words);
        self.run(CommandUser::Admin, &all)
    }

    /// Starts `gridwright up` in the foreground.
    pub fn bring_up_in_the_foreground(&self, words: &[&str]) -> Process {
        let mut command = self.command(CommandUser::Admin, &self.programs.gridwright());
        command.args(["up", "--dir", &self.dir_word()]).args(words);
        Process::start(command, &self.top().join("up.out"))
    }

    /// Runs `gridwright down` with further words.
    pub fn down(&self, words: &[&str]) -> CommandOutput {
        let dir = self.dir_word();
        self.run(CommandUser::Admin, &[&["down", "--dir", dir.as_str()], words].concat())
    }

    /// Runs a command of `gridwright`, which is each q* command too.
    pub fn run(&self, who: CommandUser, words: &[&str]) -> CommandOutput {
        let mut command = self.command(who, &self.programs.gridwright());
        command.args(words);
        CommandOutput::run(command)
    }

    /// The same for who brought the cell up.
    pub fn admin(&self, words: &[&str]) -> CommandOutput {
        self.run(CommandUser::Admin, words)
    }

    /// The same for the ordinary account.
    pub fn user(&self, words: &[&str]) -> CommandOutput {
        self.run(CommandUser::User, words)
    }

    /// A command in this cell's place, environment and working directory.
    pub fn command(&self, who: CommandUser, program: &Path) -> Command {
        let account = (self.owner == CommandUser::User || who == CommandUser::User).then_some(&self.account);
        let mut command = match &self.place {
            ProcessPlace::Here => {
                let mut command = Command::new(program);
                if let Some(account) = account.filter(|account| account.is_made()) {
                    command.uid(account.uid).gid(account.gid);
                }
                command
            }
            ProcessPlace::Host(network, host) => network.command(host, account.map(AsRef::as_ref), program),
        };
        command
            .env_clear()
            .envs([("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")]);
        command
            .env("GRIDWRIGHT_DIR", &self.dir)
            .env("SGE_ROOT", &self.dir)
            .env("SGE_CELL", "default");
        if let Some(account) = account {
            command
                .env("HOME", &account.home)
                .env("USER", &account.name)
                .env("LOGNAME", &account.name);
        }
        command.current_dir(self.work());
        command
    }

    /// Submits a job of the ordinary account, in the working directory and with one output file;
    /// returns its number.
    pub fn submit(&self, words: &[&str]) -> String {
        let said = self
            .user(&[&["qsub", "-terse", "-cwd", "-j", "y"], words].concat())
            .ok();
        said.out.trim().split('.').next().unwrap_or_default().to_owned()
    }

    /// Submits a script of the ordinary account and waits for the accounting of its one task.
    pub fn run_script(&self, text: &str, words: &[&str]) -> Record {
        let name = format!("job-{}.sh", self.temp.number());
        self.write(&name, text, 0o755);
        let job = self.submit(&[words, &[name.as_str()]].concat());
        self.accounted(&job, 1).remove(0)
    }

    /// Waits until accounting has `count` records of a job.
    pub fn accounted(&self, job: &str, count: usize) -> Vec<Record> {
        let mut found = Vec::new();
        let what = || format!("{count} accounting records of job {job}; {}", self.state_of(job));
        wait_until(what, || {
            found = records(&self.user(&["qacct", "-j", job]).out);
            found.len() >= count
        });
        assert_eq!(found.len(), count, "records of job {job}: {found:?}");
        found
    }

    /// Waits until a job, or a task of it, is in a state as `qstat` prints it.
    pub fn wait_for_state(&self, job: &str, state: &str) {
        wait_until(
            || format!("state {state} of job {job}; {}", self.state_of(job)),
            || {
                let listing = self.user(&["qstat", "-u", "*"]).out;
                listing.lines().any(|line| {
                    let mut words = line.split_whitespace();
                    words.next() == Some(job) && words.nth(3) == Some(state)
                })
            },
        );
    }

    /// What the cell knows about a job, for messages.
    pub fn state_of(&self, job: &str) -> String {
        let listing = self.user(&["qstat", "-u", "*"]);
        format!("qstat: {listing}\nexplain: {}", self.user(&["explain", job]))
    }

    /// The output file of a job that was submitted with `-cwd -j y`, once it has ended.
    pub fn output(&self, record: &Record) -> String {
        let name = format!("{}.o{}", record.value("jobname"), record.value("jobnumber"));
        self.read(&name)
    }

    /// The state directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The state directory as a word of a command.
    pub fn dir_word(&self) -> String {
        self.dir.display().to_string()
    }

    /// The working directory of jobs, which belongs to the ordinary account.
    pub fn work(&self) -> PathBuf {
        self.temp.path().join("work")
    }

    /// A directory that everybody can read and only the caller of the test can write.
    pub fn top(&self) -> &Path {
        self.temp.path()
    }

    /// The ordinary account.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The programs under test.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Writes a file of the ordinary account into the working directory.
    pub fn write(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.work().join(name);
        temp::write(&path, text, mode);
        self.account.own(&path);
        path
    }

    /// Writes a file of the caller of the test, beside the working directory.
    pub fn write_top(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.temp.path().join(name);
        temp::write(&path, text, mode);
        path
    }

    /// A file of the working directory; empty if it is not there.
    pub fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.work().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A log of the cell.
    pub fn log(&self, daemon: &str) -> String {
        std::fs::read_to_string(self.dir.join("log").join(format!("{daemon}.log"))).unwrap_or_default()
    }

    /// The process of `master`, `agent`, `launcher` or `sim`, as its pid file says.
    pub fn pid(&self, daemon: &str) -> i32 {
        let path = self.dir.join("run").join(daemon).join("pid");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        text.trim()
            .parse()
            .unwrap_or_else(|_| panic!("{} has no pid: {text:?}", path.display()))
    }

    /// Whether a daemon lives that is another process than `before`. The pid file is written just
    /// after the lock is taken.
    pub fn has_come_back(&self, daemon: &str, before: i32) -> bool {
        let text = std::fs::read_to_string(self.dir.join("run").join(daemon).join("pid")).unwrap_or_default();
        self.is_alive(daemon) && text.trim().parse::<i32>().is_ok_and(|pid| pid != before)
    }

    /// Whether a daemon lives: its lock is held.
    pub fn is_alive(&self, daemon: &str) -> bool {
        let Ok(lock) = std::fs::File::open(self.dir.join("run").join(daemon).join("lock")) else {
            return false;
        };
        nix::fcntl::Flock::lock(lock, nix::fcntl::FlockArg::LockExclusiveNonblock).is_err()
    }

    /// Kills a daemon with SIGKILL and does not wait for its end: it holds its lock until its
    /// memory is freed.
    pub fn start_to_kill(&self, daemon: &str) {
        process::kill(self.pid(daemon));
    }

    /// Kills a daemon with SIGKILL and waits until it is gone.
    pub fn kill(&self, daemon: &str) {
        self.start_to_kill(daemon);
        wait_until(|| format!("the end of the {daemon}"), || !self.is_alive(daemon));
    }

    /// The shepherds of tasks that run: children of launchers that name this directory, launchers
    /// excepted.
    pub fn shepherds(&self) -> Vec<i32> {
        process::shepherds(&self.dir_word())
    }

    /// Loads the cluster configuration with one parameter changed.
    pub fn set_global(&self, parameter: &str, value: &str) {
        let shown = self.admin(&["qconf", "-sconf", "global"]).ok().out;
        let joined = shown.replace("\\\n", " ");
        let kept = joined
            .lines()
            .filter(|line| line.split_whitespace().next() != Some(parameter));
        let text = kept
            .chain([format!("{parameter} {value}").as_str()])
            .fold(String::new(), |all, line| all + line + "\n");
        let file = self.write_top("global", &text, 0o644);
        self.admin(&["qconf", "-Mconf", &file.display().to_string()]).ok();
    }

    /// Sets a value of the scheduler configuration.
    pub fn set_scheduler(&self, parameter: &str, value: &str) {
        let conf = self.admin(&["qconf", "-ssconf"]).ok().out;
        let is_meant = |line: &&str| line.split_whitespace().next() == Some(parameter);
        let line = format!("{parameter} {value}");
        let text = conf.lines().filter(|line| !is_meant(line)).chain([line.as_str()]);
        let text = text.fold(String::new(), |all, line| all + line + "\n");
        let file = self.write_top("sconf", &text, 0o644).display().to_string();
        self.admin(&["qconf", "-Msconf", &file]).ok();
    }

    /// Adds lines to the complex.
    pub fn add_complex(&self, lines: &str) {
        let table = self.admin(&["qconf", "-sc"]).ok().out;
        let file = self.write_top("complex", &format!("{table}{lines}\n"), 0o644);
        self.admin(&["qconf", "-Mc", &file.display().to_string()]).ok();
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tell_about_the_failure();
        }
        if self.is_alive("master") || self.is_alive("agent") || self.is_alive("launcher") {
            let _ = self.down(&[]);
        }
        process::end_all_of(&self.temp.path().display().to_string());
        if Arc::strong_count(&self.account) == 1 {
            self.account.end_processes();
        }
    }
}

impl Cell {
    /// What one wants to know about a test that failed.
    fn tell_about_the_failure(&self) {
        for daemon in ["master", "agent", "launcher"] {
            let log = self.log(daemon);
            let lines: Vec<&str> = log.lines().collect();
            eprintln!(
                "--- the end of {daemon}.log\n{}",
                lines[lines.len().saturating_sub(15)..].join("\n")
            );
        }
    }
}

/// Whether a test can run that needs `what`. With `GRIDWRIGHT_TESTS_STRICT` set it has to be there.
///
/// # Panics
/// If it is not there and must be.
pub fn available(what: &str, is_there: bool) -> bool {
    let strict = std::env::var_os("GRIDWRIGHT_TESTS_STRICT").is_some();
    assert!(
        is_there || !strict,
        "{what} is missing, and GRIDWRIGHT_TESTS_STRICT is set"
    );
    if !is_there {
        eprintln!("skipped: {what} is missing");
    }
    is_there
}

/// Runs the test `name` of this program again, alone and in mount and process namespaces of its
/// own, after the shell commands `before`. Answers whether this is that run; where it is not, the
/// test is over.
///
/// # Panics
/// If that run fails.
pub fn in_namespaces(name: &str, before: &str) -> bool {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    if std::env::var_os(temp::INSIDE).is_some() {
        return true;
    }
    let called = format!("{}i{}", run(), COUNT.fetch_add(1, Ordering::Relaxed));
    let me = std::env::current_exe().expect("a program has a path");
    // The shell stays: as process 1 it reaps what daemons leave behind.
    let script = format!("set -e; {before}; \"$0\" --exact --nocapture {name}; exit $?");
    let mut command = Command::new("unshare");
    command
        .args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            &script,
        ])
        .arg(me);
    let output = command
        .env(temp::INSIDE, called)
        .output()
        .unwrap_or_else(|error| panic!("unshare: {error}"));
    let said = String::from_utf8_lossy(&output.stdout);
    let is_good = output.status.success() && said.contains("1 passed");
    assert!(is_good, "{said}{}", String::from_utf8_lossy(&output.stderr));
    false
}

/// Whether the test runs as root, as some must.
pub fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

/// The longer form of a test, which the scripts in `tests/long` ask for, or the one of every
/// change.
pub fn long_or<T>(long: T, short: T) -> T {
    if std::env::var_os("GRIDWRIGHT_TESTS_LONG").is_some() {
        long
    } else {
        short
    }
}

fn make_dir(path: &Path, owner: Option<&Arc<Account>>) {
    std::fs::create_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if let Some(owner) = owner {
        owner.own(path);
    }
}
