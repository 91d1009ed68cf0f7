//! Somebody with a login on a host of the cell and nothing more.

use crate::attacker::{Attacker, stranger};
use crate::boundary::bystander;
use crate::launch::socket;
use crate::stage::{Attack, Requirement};
use gridwright_tests::cell::{Account, Cell, CommandOutput, CommandUser, long_or, resident_kib, wait_for, wait_until};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "foreign-locks",
        claim: "no user keeps a daemon from starting again by a lock, and up believes no lock of a stranger",
        needs: &[Requirement::Root],
        run: foreign_locks,
    },
    Attack {
        name: "knocking",
        claim: "refused connections on the sockets write a bounded number of lines",
        needs: &[Requirement::Root],
        run: knocking,
    },
    Attack {
        name: "sitting",
        claim: "a user's idle connections keep nobody else waiting",
        needs: &[Requirement::Root],
        run: sitting,
    },
    Attack {
        name: "control-characters",
        claim: "no command and no log prints a control character that a user chose",
        needs: &[],
        run: control_characters,
    },
    Attack {
        name: "forged-lines",
        claim: "a line break in an argument makes no line of its own in listings and logs",
        needs: &[],
        run: forged_lines,
    },
    Attack {
        name: "foreign-environment",
        claim: "values of a job's environment are shown to its owner and to operators alone",
        needs: &[Requirement::Root],
        run: foreign_environment,
    },
    Attack {
        name: "script-bytes",
        claim: "held scripts stay out of the master's memory, and their room is given back",
        needs: &[],
        run: script_bytes,
    },
    Attack {
        name: "foreign-output",
        claim: "-o writes into no file that is not the user's, nor through a link to one",
        needs: &[Requirement::Root],
        run: foreign_output,
    },
    Attack {
        name: "squatted-tmpdir",
        claim: "a temporary directory that somebody made before is not the job's",
        needs: &[Requirement::Root],
        run: squatted_tmpdir,
    },
    Attack {
        name: "root-procedure",
        claim: "nothing of a job's environment reaches a procedure of root",
        needs: &[Requirement::Root],
        run: root_procedure,
    },
    Attack {
        name: "readable-files",
        claim: "keys, database, records and scripts are not readable, and nothing of a cell is writable or setuid",
        needs: &[Requirement::Root],
        run: readable_files,
    },
    Attack {
        name: "hangup",
        claim: "SIGHUP ends no daemon and opens the logs anew",
        needs: &[],
        run: hangup,
    },
    Attack {
        name: "marked-strangers",
        claim: "what has a task's mark and another uid outlives the task",
        needs: &[Requirement::Root],
        run: marked_strangers,
    },
];

/// A command of `gridwright` as another account than the cell's.
fn as_account(cell: &Cell, account: &Account, words: &[&str]) -> CommandOutput {
    let mut command = cell.command(CommandUser::Admin, &cell.programs().gridwright());
    command.args(words).uid(account.uid).gid(account.gid).current_dir("/");
    command
        .env("HOME", &account.home)
        .env("USER", &account.name)
        .env("LOGNAME", &account.name);
    CommandOutput::run(command)
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir {
                files_below(&entry.path())
            } else {
                vec![entry.path()]
            }
        })
        .collect()
}

fn bytes_below(dir: &Path) -> u64 {
    files_below(dir)
        .iter()
        .filter_map(|path| std::fs::symlink_metadata(path).ok())
        .map(|found| found.len())
        .sum()
}

/// Words: a directory. Takes a lock of every file below it that it can open, as soon as that is
/// free, and keeps it.
pub fn hold_locks(words: &[String]) {
    let locks = files_below(Path::new(&words[0]));
    let opened: Vec<File> = locks
        .iter()
        .filter(|path| path.display().to_string().ends_with("lock"))
        .filter_map(|path| File::open(path).ok())
        .collect();
    println!("{} opened", opened.len());
    let holders: Vec<_> = opened
        .into_iter()
        .map(|file| std::thread::spawn(move || Flock::lock(file, FlockArg::LockShared).map(std::mem::forget).is_ok()))
        .collect();
    holders.into_iter().for_each(|holder| drop(holder.join()));
    loop {
        std::thread::park();
    }
}

fn foreign_locks() {
    let cell = Cell::up();
    let holder = Attacker::stranger().start(&cell, "hold-locks", &[&cell.dir_word()]);
    wait_until(|| holder.printed(), || holder.printed().contains("opened"));
    for daemon in ["launcher", "agent", "master"] {
        let before = cell.pid(daemon);
        cell.start_to_kill(daemon);
        let up = cell.bring_up(&["--wait", "60"]);
        assert_eq!(up.code, 0, "after the end of the {daemon}, {}: {up}", holder.printed());
        assert!(
            cell.has_come_back(daemon, before),
            "up says that all is well without a {daemon}: {up}"
        );
    }
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

/// Words: a number and sockets. Connects so often to each, as fast as it can.
pub fn knock(words: &[String]) {
    let count: u32 = words[0].parse().expect("a number");
    let mut held = Vec::new();
    for path in &words[1..] {
        for n in 0..count {
            match UnixStream::connect(path) {
                // Some stay, so that the user's share of the places is taken.
                Ok(stream) if n < 600 => held.push(stream),
                Ok(_) | Err(_) => {}
            }
        }
    }
    println!("{} held", held.len());
}

/// Bytes of log that a connection may cost where there are many: a line has more than a hundred, so
/// most have none.
const LOGGED: u64 = 30;

fn knocking() {
    let cell = Cell::up();
    let logs = cell.dir().join("log");
    let before = bytes_below(&logs);
    let sockets = ["master.sock", "agent.sock", "launcher.sock"].map(|name| socket(&cell, name).display().to_string());
    let count: u64 = long_or(50_000, 5_000);
    let count_word = count.to_string();
    let words: Vec<&str> = [count_word.as_str()]
        .into_iter()
        .chain(sockets.iter().map(String::as_str))
        .collect();
    Attacker::stranger().play(&cell, "knock", &words).ok();
    let grown = bytes_below(&logs) - before;
    assert!(
        grown < 3 * count * LOGGED,
        "{count} connections to each socket wrote {grown} bytes into the logs"
    );
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

/// Words: a number and sockets. Connects so often to each and says nothing.
pub fn sit(words: &[String]) {
    let count: usize = words[0].parse().expect("a number");
    let mut held = Vec::new();
    for path in &words[1..] {
        held.extend((0..count).filter_map(|_| UnixStream::connect(path).ok()));
    }
    println!("{} sit", held.len());
    loop {
        std::thread::park();
    }
}

fn sitting() {
    let cell = Cell::up();
    let sockets = ["master.sock", "agent.sock"].map(|name| socket(&cell, name).display().to_string());
    let sitters: Vec<_> = (0..long_or(5, 2))
        .map(|_| Attacker::stranger().start(&cell, "sit", &["400", &sockets[0], &sockets[1]]))
        .collect();
    for sitter in &sitters {
        wait_until(|| sitter.printed(), || sitter.printed().contains(" sit"));
    }
    cell.user(&["qstat"]).ok();
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

/// What a terminal would obey.
const EVIL: &str = "\u{1b}[31mEVIL\u{7}\u{9b}1m";

#[track_caller]
fn is_plain(what: &str, text: &str) {
    let evil = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    assert!(evil.is_none(), "{what} prints {evil:?}: {text:?}");
}

fn control_characters() {
    let cell = Cell::up();
    let (variable, context, path) = (format!("SECRET={EVIL}"), format!("key={EVIL}"), format!("/tmp/{EVIL}"));
    let options: [&[&str]; 8] = [
        &["-N", EVIL],
        &["-A", EVIL],
        &["-ac", &context],
        &["-v", &variable],
        &["-o", &path],
        &["-M", EVIL, "-m", "bea"],
        &["-q", EVIL],
        &["-l", &variable],
    ];
    for option in options {
        let words = [&["qsub", "-terse"], option, &["-b", "y", "true", EVIL]].concat();
        let said = cell.user(&words);
        is_plain("qsub", &said.err);
        let Some(job) = Some(said.out.trim().to_owned()).filter(|job| said.code == 0 && !job.is_empty()) else {
            continue;
        };
        let shown: [&[&str]; 7] = [
            &["qstat", "-u", "*"],
            &["qstat", "-f", "-u", "*"],
            &["qstat", "-r"],
            &["qstat", "-ext"],
            &["qstat", "-j", &job],
            &["explain", &job],
            &["qalter", "-p", "-1", &job],
        ];
        for words in shown {
            let said = cell.user(words);
            is_plain(&words.join(" "), &(said.out + &said.err));
        }
        cell.user(&["qdel", &job]);
        let said = cell.user(&["qacct", "-j", &job]);
        is_plain("qacct", &(said.out + &said.err));
    }
    let done = cell.submit(&["-N", "plain", "-b", "y", "true", EVIL]);
    cell.accounted(&done, 1);
    let listed = cell.user(&["qacct", "-j"]);
    is_plain("qacct", &(listed.out + &listed.err));
    for daemon in ["master", "agent", "launcher"] {
        is_plain(&format!("the log of the {daemon}"), &cell.log(daemon));
    }
}

fn forged_lines() {
    let cell = Cell::up();
    let forged = "hard resource_list:         forged=1";
    let (path, mail, word) = (
        format!("/tmp/x\n{forged}"),
        format!("x@y\n{forged}"),
        format!("word\n{forged}"),
    );
    let options: [&[&str]; 3] = [&["-o", &path], &["-m", "bea", "-M", &mail], &["-N", "plain"]];
    for option in options {
        let said = cell.user(&[&["qsub", "-terse", "-h"], option, &["-b", "y", "true", &word]].concat());
        let job = said.out.trim().to_owned();
        let shown = cell.user(&["qstat", "-j", if job.is_empty() { "1" } else { &job }]).out;
        assert!(!shown.lines().any(|line| line == forged), "{shown}");
        cell.user(&["qrls", &job]);
    }
    let done = cell.submit(&["-N", "last", "-b", "y", "true"]);
    cell.accounted(&done, 1);
    for daemon in ["master", "agent"] {
        assert!(
            !cell.log(daemon).lines().any(|line| line.starts_with(forged)),
            "{}",
            cell.log(daemon)
        );
    }
}

fn foreign_environment() {
    let cell = Cell::up();
    let other = Account::another();
    let job = cell.submit(&["-h", "-v", "SECRET=hunter2", "-b", "y", "true"]);
    assert!(
        cell.user(&["qstat", "-j", &job]).ok().out.contains("SECRET=hunter2"),
        "the owner sees it"
    );
    assert!(
        cell.admin(&["qstat", "-j", &job]).ok().out.contains("SECRET=hunter2"),
        "an operator sees it"
    );
    let shown: [&[&str]; 6] = [
        &["qstat", "-j", &job],
        &["qstat", "-j", &job, "-xml"],
        &["qstat", "-j", &job, "-fmt", "json"],
        &["qstat", "-r", "-u", "*"],
        &["explain", &job],
        &["events", "--from", "1", "--fmt", "json"],
    ];
    for words in shown {
        let said = as_account(&cell, &other, words);
        assert!(!said.out.contains("hunter2") && !said.err.contains("hunter2"), "{said}");
    }
    let said = as_account(&cell, &other, &["qresub", &job]);
    assert!(said.code != 0, "another one's job is submitted again: {said}");
}

fn script_bytes() {
    let cell = Cell::up();
    let (count, bytes) = long_or((30, 12 << 20), (24, 4 << 20));
    let master = cell.pid("master");
    let (before, disk) = (resident_kib(master), bytes_below(&cell.dir().join("master")));
    let mut jobs = Vec::new();
    for n in 0..count {
        let text = format!("#!/bin/sh\n# {n}\n{}\n", "#".repeat(bytes));
        let script = cell.write(&format!("large{n}.sh"), &text, 0o755).display().to_string();
        let said = cell.user(&["qsub", "-terse", "-h", &script]);
        assert!(said.code == 0 || said.err.contains("fix:"), "{said}");
        jobs.extend((said.code == 0).then(|| said.out.trim().to_owned()));
    }
    // What one submission takes for a moment is not given back at once; what all of them have
    // together would be more.
    let allowed = u64::try_from((count * bytes) >> 11).expect("a size");
    let now = || resident_kib(master);
    let what = || {
        format!(
            "{} scripts of {bytes} bytes: {before} KiB, then {} KiB",
            jobs.len(),
            now()
        )
    };
    wait_until(what, || now() < before + allowed);
    let words: Vec<&str> = ["qdel"].into_iter().chain(jobs.iter().map(String::as_str)).collect();
    cell.user(&words).ok();
    let all = u64::try_from(jobs.len() * bytes).expect("a size");
    let left = || bytes_below(&cell.dir().join("master")).saturating_sub(disk);
    wait_until(
        || format!("the room of {all} bytes; {} are left", left()),
        || left() < all / 2,
    );
}

fn foreign_output() {
    let cell = Cell::up();
    let secret = cell.write_top("secret", "root's\n", 0o600);
    let link = cell.work().join("link");
    symlink(&secret, &link).expect("the directory is ours");
    let passwd = std::fs::read("/etc/passwd").expect("everybody reads it");
    let database = cell.dir().join("master/state.db").display().to_string();
    let run = cell.dir().join("run/mine").display().to_string();
    let targets = [
        "/etc/passwd",
        &secret.display().to_string(),
        &link.display().to_string(),
        &database,
        &run,
        "/proc/1/environ",
        "/root/output",
    ];
    for target in targets {
        let said = cell
            .user(&["qsub", "-terse", "-j", "y", "-o", target, "-b", "y", "echo", "written"])
            .ok();
        let job = said.out.trim().to_owned();
        cell.wait_for_state(&job, "Eqw");
        cell.user(&["qdel", &job]).ok();
    }
    assert_eq!(std::fs::read_to_string(&secret).expect("root reads it"), "root's\n");
    let after = std::fs::read("/etc/passwd").expect("everybody reads it");
    assert!(after.len() >= passwd.len().min(10) && !String::from_utf8_lossy(&after).contains("\nwritten"));
    assert!(!Path::new("/root/output").exists() && !Path::new(&run).exists());
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
}

fn squatted_tmpdir() {
    let cell = Cell::up();
    let shared = cell.top().join("shared");
    std::fs::create_dir(&shared).expect("the directory is ours");
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o1777)).expect("it is ours");
    cell.admin(&[
        "qconf",
        "-rattr",
        "queue",
        "tmpdir",
        &shared.display().to_string(),
        "all.q",
    ])
    .ok();
    let trap = cell.top().join("trap");
    std::fs::create_dir(&trap).expect("the directory is ours");
    std::fs::set_permissions(&trap, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    let evil = stranger();
    let owned = |path: &Path| std::os::unix::fs::lchown(path, Some(evil), Some(evil)).expect("root gives it away");
    for number in 1..=3 {
        let place = shared.join(format!("{number}.1.all.q"));
        match number {
            1 => std::fs::create_dir(&place).expect("nobody has it"),
            2 => symlink(&trap, &place).expect("nobody has it"),
            _ => std::fs::write(&place, "").expect("nobody has it"),
        }
        if number == 1 {
            std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
        }
        owned(&place);
        let record = cell.run_script(
            "#!/bin/sh\nstat -c '%u %a %F' $TMPDIR; echo mine > $TMPDIR/mine\n",
            &["-j", "y"],
        );
        assert_eq!(record.value("jobnumber"), number.to_string());
        let expected = format!("{} 700 directory\n", cell.account().uid);
        assert_eq!(cell.output(&record), expected, "{record:?}");
    }
    assert_eq!(std::fs::read_dir(&trap).expect("it is there").count(), 0);
}

fn root_procedure() {
    let cell = Cell::up();
    let told = cell.write_top("told", "", 0o600);
    let prolog = cell.write_top("prolog", &format!("#!/bin/sh\nenv >{}\n", told.display()), 0o755);
    std::fs::write(cell.dir().join("etc/root-commands"), format!("{}\n", prolog.display())).expect("root writes it");
    cell.kill("launcher");
    cell.bring_up(&[]).ok();
    cell.admin(&[
        "qconf",
        "-rattr",
        "queue",
        "prolog",
        &format!("root@{}", prolog.display()),
        "all.q",
    ])
    .ok();
    let names = [
        "LD_PRELOAD",
        "LD_AUDIT",
        "BASH_ENV",
        "ENV",
        "IFS",
        "PS4",
        "PERL5LIB",
        "PYTHONPATH",
        "HOME",
        "PATH",
        "SGE_ROOT",
    ];
    let given: Vec<String> = names.iter().map(|name| format!("{name}=/tmp/evil")).collect();
    let record = cell.run_script("#!/bin/sh\ntrue\n", &["-v", &given.join(",")]);
    let told = std::fs::read_to_string(&told).expect("root reads it");
    assert!(told.contains("PATH=") && !told.contains("evil"), "{told}\n{record:?}");
}

/// Words: a directory. Prints every file below it that its uid reads, and every one that it writes.
pub fn read(words: &[String]) {
    for path in files_below(Path::new(&words[0])) {
        if !path.is_file() {
            continue;
        }
        if File::open(&path).is_ok() {
            println!("reads {}", path.display());
        }
        if File::options().append(true).open(&path).is_ok() {
            println!("writes {}", path.display());
        }
    }
}

/// Files of a cell that strangers must not read: what their names end with.
const SECRETS: [&str; 9] = [
    ".key",
    "state.db",
    "state.db-wal",
    "state.db-shm",
    "record",
    "journal",
    "lock",
    "script",
    "tokens",
];

fn readable_files() {
    let cell = Cell::up();
    cell.write("job.sh", "#!/bin/sh\necho up\nsleep 1000\n", 0o755);
    let job = cell.submit(&["job.sh"]);
    cell.wait_for_state(&job, "r");
    let said = Attacker::stranger().play(&cell, "read", &[&cell.dir_word()]).ok().out;
    let secrets: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("writes ") || SECRETS.iter().any(|end| line.ends_with(end)))
        .filter(|line| !line.contains("/agent/slaves/"))
        .collect();
    assert!(secrets.is_empty(), "a stranger {}", secrets.join(", "));
    assert!(
        said.contains("settings.sh"),
        "a stranger reads what is for everybody: {said}"
    );
    for path in files_below(cell.dir()) {
        let Ok(found) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        let is_plain = !found.file_type().is_file() || found.mode() & 0o6002 == 0;
        assert!(is_plain, "{} has mode {:o}", path.display(), found.mode());
    }
}

/// Puts a log aside and an empty one in its place, as a program that turns logs over does.
fn turn_over(log: &Path) {
    let found = std::fs::metadata(log).expect("the log is there");
    std::fs::rename(log, log.with_extension("old")).expect("the directory is ours");
    let empty = File::create(log).expect("the directory is ours");
    empty
        .set_permissions(std::fs::Permissions::from_mode(found.mode() & 0o777))
        .expect("it is ours");
    std::os::unix::fs::chown(log, Some(found.uid()), Some(found.gid())).expect("it was its owner's, or is ours");
}

fn hangup() {
    let cell = Cell::up();
    // What else has to be started again, so that the daemon has something to say.
    for (daemon, other) in [("master", "agent"), ("agent", "master"), ("launcher", "agent")] {
        let before = cell.pid(daemon);
        let log = cell.dir().join("log").join(format!("{daemon}.log"));
        turn_over(&log);
        kill(Pid::from_raw(before), Signal::SIGHUP).expect("the daemon lives");
        cell.kill(other);
        cell.bring_up(&[]).ok();
        // A launcher says nothing while all is well.
        let says = || daemon == "launcher" || std::fs::metadata(&log).is_ok_and(|found| found.len() > 0);
        wait_until(|| format!("a line in the new {}", log.display()), says);
        assert!(
            cell.is_alive(daemon) && cell.pid(daemon) == before,
            "the {daemon} has ended"
        );
        assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
        assert!(
            cell.is_alive(daemon) && cell.pid(daemon) == before,
            "the {daemon} has ended"
        );
    }
}

fn marked_strangers() {
    let cell = Cell::up();
    cell.write(
        "job.sh",
        "#!/bin/sh\necho $GRIDWRIGHT_TASK_KEY >key\nsleep 1000\n",
        0o755,
    );
    let job = cell.submit(&["job.sh"]);
    wait_until(|| cell.state_of(&job), || cell.read("key").ends_with('\n'));
    let mark = ("GRIDWRIGHT_TASK_KEY", cell.read("key").trim().to_owned());
    let mut strangers: Vec<_> = [0, stranger()]
        .map(|uid| bystander(&cell, uid, std::slice::from_ref(&mark)))
        .into();
    for shepherd in cell.shepherds() {
        kill(Pid::from_raw(shepherd), Signal::SIGKILL).expect("root may");
    }
    cell.accounted(&job, 1);
    let any_ended = || strangers.iter_mut().any(|process| process.ended().is_some());
    assert!(
        !wait_for(Duration::from_secs(2), any_ended),
        "the end of a task took a stranger along"
    );
}
