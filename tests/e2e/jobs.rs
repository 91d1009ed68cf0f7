//! Job scripts from the command line to the accounting record.

use gridwright_tests::cell::{Cell, CommandOutput, CommandUser, Record, available, is_root};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The reason in `qstat -j` of a job that has to go into error.
fn error_reason(cell: &Cell, job: &str) -> String {
    cell.wait_for_state(job, "Eqw");
    let detail = cell.user(&["qstat", "-j", job]).ok().out;
    detail
        .lines()
        .find(|line| line.starts_with("error reason"))
        .unwrap_or_default()
        .to_owned()
}

fn fields<'a>(record: &'a Record, names: [&str; 2]) -> [&'a str; 2] {
    names.map(|name| record.value(name))
}

#[test]
fn a_script_runs_under_its_limits_and_accounting_names_the_one_it_broke() {
    let cell = Cell::up();
    let script = "#!/bin/bash\n#$ -l h_vmem=300M,h_fsize=1M\nulimit -v; ulimit -f\n\
                  dd if=/dev/zero of=big bs=65536 count=${1:-64} status=none\n";
    let record = cell.run_script(script, &[]);
    assert_eq!(
        cell.output(&record).lines().take(2).collect::<Vec<_>>(),
        ["307200", "1024"]
    );
    assert!(
        record.value("limit").contains("h_fsize") && record.number("exit_status") == 153,
        "{record:?}"
    );
    assert_eq!(std::fs::metadata(cell.work().join("big")).unwrap().len(), 1 << 20);
    let within = cell.run_script(&script.replace(":-64", ":-8"), &[]);
    assert_eq!(fields(&within, ["failed", "exit_status"]), ["0", "0"]);
    assert!(!within.value("limit").contains("h_"), "{within:?}");
}

#[test]
fn a_csh_script_runs_in_csh() {
    if !available("/bin/csh", Path::new("/bin/csh").exists()) {
        return;
    }
    let cell = Cell::up();
    let script =
        "#!/bin/csh -f\n#$ -N in_csh\nset answer = 42\nif ( $answer == 42 ) echo csh $answer $JOB_NAME\nexit 3\n";
    let record = cell.run_script(script, &[]);
    assert_eq!(
        (cell.output(&record).as_str(), record.value("exit_status")),
        ("csh 42 in_csh\n", "3")
    );
}

/// A file of `/etc/profile.d`, removed with this value.
struct ProfileFile(PathBuf);

impl Drop for ProfileFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_script_of_a_login_shell_has_the_functions_of_profile_d() {
    let profiles = Path::new("/etc/profile.d");
    if !available("root and /etc/profile.d", is_root() && profiles.is_dir()) {
        return;
    }
    let cell = Cell::up();
    let name = format!("gridwright_e2e_{}", std::process::id());
    let file = ProfileFile(profiles.join(format!("{name}.sh")));
    std::fs::write(&file.0, format!("{name}() {{ echo \"loaded $1\"; }}\n")).unwrap();
    let record = cell.run_script(&format!("#!/bin/bash -l\n{name} module\n"), &[]);
    assert_eq!(cell.output(&record), "loaded module\n");
    let without = cell.run_script(&format!("#!/bin/bash\n{name} module\n"), &[]);
    assert_eq!(without.value("exit_status"), "127");
}

#[test]
fn exit_99_runs_the_job_again_and_exit_100_puts_it_into_error() {
    let cell = Cell::up();
    cell.write(
        "again.sh",
        "#!/bin/sh\necho $RESTARTED >>runs\n[ $RESTARTED = 1 ] || exit 99\n",
        0o755,
    );
    let again = cell.submit(&["again.sh"]);
    let records = cell.accounted(&again, 2);
    assert_eq!(
        (cell.read("runs").as_str(), records[0].number("failed")),
        ("0\n1\n", 25)
    );
    assert_eq!(fields(&records[1], ["failed", "exit_status"]), ["0", "0"]);
    cell.write("stop.sh", "#!/bin/sh\nexit 100\n", 0o755);
    let stop = cell.submit(&["stop.sh"]);
    assert!(error_reason(&cell, &stop).contains("100"));
    assert_eq!(cell.accounted(&stop, 1)[0].number("failed"), 30);
}

#[test]
fn a_users_mistake_puts_the_job_into_error_and_says_what_it_is() {
    let cell = Cell::up();
    cell.write("job.sh", "#!/bin/sh\ntrue\n", 0o755);
    cell.write("plain.sh", "true\n", 0o755);
    cell.write("windows.sh", "#!/bin/sh\r\ntrue\r\n", 0o755);
    let cases: [(&[&str], &str); 5] = [
        (&["-S", "/bin/nosuch", "plain.sh"], "/bin/nosuch"),
        (&["-wd", "/nonexistent/folder", "job.sh"], "/nonexistent/folder"),
        (&["-o", "/nonexistent/file", "job.sh"], "/nonexistent/file"),
        (&["-i", "missing-input", "job.sh"], "missing-input"),
        (&["windows.sh"], "CR LF"),
    ];
    for (words, named) in cases {
        let job = cell.submit(words);
        let reason = error_reason(&cell, &job);
        assert!(reason.contains(named), "{words:?}: {reason}");
    }
    let listing = cell.user(&["qstat", "-f"]).ok().out;
    let queue = listing.lines().find(|line| line.starts_with("all.q@")).unwrap();
    assert_eq!(
        queue.split_whitespace().count(),
        5,
        "the queue has no state letter: {queue}"
    );
}

#[test]
fn an_output_file_that_the_user_may_not_write_is_named() {
    if !is_root() {
        return;
    }
    let cell = Cell::up();
    let secret = cell.write_top("secret", "", 0o600).display().to_string();
    cell.write("job.sh", "#!/bin/sh\ntrue\n", 0o755);
    let job = cell.submit(&["-o", &secret, "job.sh"]);
    let reason = error_reason(&cell, &job);
    assert!(
        reason.contains(&secret) && reason.contains("Permission denied"),
        "{reason}"
    );
}

/// What a process has that its children inherit: rights, limits, mask, descriptors, names of
/// variables.
const INHERITED: &str = "grep -E '^(Cap|NoNewPrivs|Seccomp|SigIgn|SigBlk|Gid|Uid)' /proc/self/status; cat /proc/self/limits; \
                         umask; ls /proc/self/ns -l | sed 's/.*-> //'";

#[test]
fn a_job_inherits_nothing_of_the_daemons() {
    if !is_root() {
        return;
    }
    let cell = Cell::prepare(Default::default());
    let mut up = cell.command(CommandUser::Admin, "/bin/sh".as_ref());
    let gridwright = cell.programs().gridwright().display().to_string();
    let script = "ulimit -S -n 512; ulimit -S -s 4096; umask 077; exec 7</dev/null; SECRET=leaked \"$0\" up --dir \"$1\" --port 0 --detach";
    up.args(["-c", script, &gridwright, &cell.dir_word()])
        .env("SECRET", "leaked")
        .env("LD_LIBRARY_PATH", "/leaked");
    CommandOutput::run(up).ok();
    cell.keep_temporary_directories_apart();
    let record = cell.run_script(&format!("#!/bin/sh\n{INHERITED}\n"), &[]);
    // A test run in the background ignores signals, and su hands that on.
    let mut login = Command::new("env");
    login.args(["--default-signal", "su", "-", &cell.account().name, "-c", INHERITED]);
    let login = CommandOutput::run(login).ok().out;
    assert_eq!(cell.output(&record), login);
    // The fourth is the listing itself.
    let descriptors = cell.run_script("#!/bin/sh\nls /proc/self/fd\n", &[]);
    assert_eq!(cell.output(&descriptors), "0\n1\n2\n3\n");
    let environment = cell.run_script("#!/bin/sh\nenv\n", &[]);
    assert!(
        !cell.output(&environment).contains("leaked"),
        "{}",
        cell.output(&environment)
    );
}

#[test]
fn a_user_denied_on_the_host_is_an_error_of_the_job_and_not_of_the_queue() {
    if !is_root() {
        return;
    }
    let cell = Cell::up();
    let rules = cell.dir().join("etc/launcher.conf");
    let text = std::fs::read_to_string(&rules).unwrap();
    std::fs::write(&rules, format!("{text}deny_user {}\n", cell.account().name)).unwrap();
    cell.kill("launcher");
    cell.bring_up(&[]).ok();
    cell.write("job.sh", "#!/bin/sh\ntrue\n", 0o755);
    let job = cell.submit(&["job.sh"]);
    let reason = error_reason(&cell, &job);
    assert!(reason.contains(&cell.account().name), "{reason}");
}

#[test]
fn bytes_that_are_not_utf_8_and_exported_functions_reach_the_job_as_they_are() {
    let cell = Cell::up();
    let submission = r#"export OF_THE_SHELL=$'\xff'; greet() { echo "hello $1"; }; export -f greet
        printf '#!/bin/bash\n#$ -v IN_SCRIPT=c\xe9\nprintf %%s "$OF_THE_SHELL" "$NAMED" "$IN_SCRIPT" "$1" | od -An -tx1\ngreet you\n' >job.sh
        "$GRIDWRIGHT" qsub -terse -V -cwd -j y -o $'out\xfe' -v NAMED=$'n\xfd' job.sh $'arg\xf0'"#;
    let mut shell = cell.command(CommandUser::User, Path::new("/bin/bash"));
    shell.env("GRIDWRIGHT", cell.programs().gridwright());
    let said = shell.arg("-c").arg(submission).output().unwrap();
    let job = String::from_utf8(said.stdout).unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    cell.accounted(job.trim(), 1);
    let path = cell.work().join(std::ffi::OsStr::from_bytes(b"out\xfe"));
    assert_eq!(
        std::fs::read_to_string(path).unwrap(),
        " ff 6e fd 63 e9 61 72 67 f0\nhello you\n"
    );
    let mut show = cell.command(CommandUser::User, Path::new("/bin/bash"));
    show.env("GRIDWRIGHT", cell.programs().gridwright());
    let asked = "\"$GRIDWRIGHT\" qsub -verify -N $'n\\xff' job.sh; \"$GRIDWRIGHT\" qsub $'no\\xfe'";
    let shown = show.arg("-c").arg(asked).output().unwrap();
    assert!(
        shown.stdout.windows(2).any(|bytes| bytes == b"n\xff"),
        "{}",
        String::from_utf8_lossy(&shown.stdout)
    );
    assert!(
        shown.stderr.windows(3).any(|bytes| bytes == b"no\xfe"),
        "{}",
        String::from_utf8_lossy(&shown.stderr)
    );
}
