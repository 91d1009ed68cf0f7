//! Interactive jobs: `qrsh COMMAND` with its streams, its exit codes and its ends.

use gridwright_tests::cell::{Cell, CommandUser, wait_until};
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// What a command did.
#[derive(Debug, PartialEq, Eq)]
struct SessionOutput {
    code: Option<i32>,
    out: Vec<u8>,
    err: String,
}

/// `qrsh` of the ordinary account with these words, its three streams in pipes.
fn start(cell: &Cell, words: &[&str]) -> Child {
    let mut command: Command = cell.command(CommandUser::User, &cell.programs().gridwright());
    command.arg("qrsh").args(words).env("TERM", "xterm");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started")
}

/// Runs it to its end with this input.
fn qrsh(cell: &Cell, words: &[&str], input: &[u8]) -> SessionOutput {
    let mut child = start(cell, words);
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A command that does not read its input is not a fault here.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("waited for");
    writer.join().expect("written");
    SessionOutput {
        code: output.status.code(),
        out: output.stdout,
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn said(code: i32, out: &str, err: &str) -> SessionOutput {
    SessionOutput {
        code: Some(code),
        out: out.as_bytes().to_vec(),
        err: err.to_owned(),
    }
}

fn is_empty(cell: &Cell) -> bool {
    cell.user(&["qstat", "-u", "*"]).out.is_empty()
}

#[test]
fn a_command_has_the_streams_and_gives_the_exit_code_of_its_job() {
    let cell = Cell::up();
    let check = |words: &[&str], input: &str, expected: SessionOutput| {
        assert_eq!(qrsh(&cell, words, input.as_bytes()), expected, "{words:?}");
    };
    check(
        &["cat; echo oops >&2; exit 7"],
        "no line end",
        said(7, "no line end", "oops\n"),
    );
    check(&["sh", "-c", "echo a b; exit 3"], "", said(3, "\n", ""));
    check(
        &["-noshell", "printf", "[%s]", "a b", "$HOME"],
        "",
        said(0, "[a b][$HOME]", ""),
    );
    check(&["-nostdin", "cat"], "not passed on", said(0, "", ""));
    for code in [0, 1, 2, 25, 99, 126, 129, 137, 254, 255] {
        check(&["exit", &code.to_string()], "", said(code, "", ""));
    }
    check(&["kill -TERM $$"], "", said(143, "", ""));
    check(&["kill -KILL $$"], "", said(137, "", ""));
    let path = cell.write(
        "show.sh",
        "#!/bin/sh\n#$ -N named -v A=directive\nprintf '[%s]' \"$@\" $JOB_NAME $A\n",
        0o644,
    );
    let script = path.display().to_string();
    check(
        &["-b", "n", &script, "a b", "x"],
        "",
        said(0, "[a][b][x][named][directive]", ""),
    );
    let missing = qrsh(&cell, &["/nonexistent/command"], b"");
    assert_eq!(missing.code, Some(127), "{missing:?}");
    let script = "echo $JOB_SCRIPT $JOB_NAME $QRSH_COMMAND $TERM $A; pwd; umask";
    let home = cell.account().home.display().to_string();
    let shown =
        format!("QRSH echo echo $JOB_SCRIPT $JOB_NAME $QRSH_COMMAND $TERM $A; pwd; umask xterm 1\n{home}\n0022\n");
    let expected = format!("{}\n", shown.trim_end());
    let found = qrsh(&cell, &["-v", "A=1", script], b"");
    assert_eq!(String::from_utf8_lossy(&found.out), expected, "{found:?}");
}

#[test]
fn bytes_flow_in_both_directions_whether_they_are_read_or_not() {
    let cell = Cell::up();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    let through = qrsh(&cell, &["cat"], &bytes);
    assert_eq!(
        (through.code, through.out == bytes),
        (Some(0), true),
        "{} bytes",
        through.out.len()
    );
    assert_eq!(qrsh(&cell, &["true"], &bytes[..200_000]), said(0, "", ""));
    assert_eq!(qrsh(&cell, &["wc", "-c"], &bytes), said(0, "3000000\n", ""));
    // A pipe that never closes does not hold up the end.
    let mut open = start(&cell, &["echo", "done"]);
    let _kept = open.stdin.take();
    let mut out = String::new();
    open.stdout
        .take()
        .expect("piped")
        .read_to_string(&mut out)
        .expect("read");
    assert_eq!((out.as_str(), open.wait().expect("ended").code()), ("done\n", Some(0)));
    // Nobody reads the output any more.
    let mut endless = start(&cell, &["yes"]);
    let mut first = [0; 10];
    endless
        .stdout
        .take()
        .expect("piped")
        .read_exact(&mut first)
        .expect("read");
    assert_eq!(endless.wait().expect("ended").code(), Some(141));
    wait_until(|| cell.user(&["qstat", "-u", "*"]).out, || is_empty(&cell));
}

#[test]
fn a_job_that_cannot_start_at_once_is_given_up_and_the_command_says_so() {
    let cell = Cell::up();
    let texts = qrsh(&cell, &["-verbose", "true"], b"");
    let host = cell.admin(&["qconf", "-sel"]).out.trim().to_owned();
    let expected = format!(
        "waiting for interactive job to be scheduled ...\nYour interactive job 1 has been successfully scheduled.\n\
         Establishing builtin session to host {host} ...\n"
    );
    assert_eq!(texts, said(0, "Your job 1 (\"true\") has been submitted\n", &expected));
    cell.admin(&["qconf", "-mattr", "queue", "slots", "0", "all.q"]).ok();
    let refusal = "Your \"qrsh\" request could not be scheduled, try again later.\n";
    assert_eq!(qrsh(&cell, &["true"], b""), said(1, "", refusal));
    let expected = format!("waiting for interactive job to be scheduled ...{refusal}");
    let verbose = qrsh(&cell, &["-verbose", "hostname"], b"");
    assert_eq!(
        verbose,
        said(1, "Your job 3 (\"hostname\") has been submitted\n", &expected)
    );
    assert!(is_empty(&cell));
    // With -now n it waits, until it is deleted.
    let waiting = start(&cell, &["-now", "n", "true"]);
    cell.wait_for_state("4", "qw");
    cell.user(&["qdel", "4"]).ok();
    let output = waiting.wait_with_output().expect("ended");
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(1), refusal.as_bytes())
    );
}

#[test]
fn the_end_of_the_command_is_the_end_of_its_job_and_the_other_way_round() {
    let cell = Cell::up();
    for (job, signal, code) in [
        ("1", Signal::SIGINT, Some(0)),
        ("2", Signal::SIGTERM, Some(0)),
        ("3", Signal::SIGKILL, None),
    ] {
        let mut child = start(&cell, &["sleep", "600"]);
        cell.wait_for_state(job, "r");
        kill(Pid::from_raw(child.id().cast_signed()), signal).expect("sent");
        assert_eq!(child.wait().expect("ended").code(), code, "{signal}");
        wait_until(|| cell.user(&["qstat"]).out, || is_empty(&cell));
        assert_eq!(cell.accounted(job, 1)[0].number("exit_status"), 137, "{signal}");
    }
    let deleted = start(&cell, &["echo begun; sleep 600"]);
    cell.wait_for_state("4", "r");
    cell.user(&["qdel", "4"]).ok();
    let output = deleted.wait_with_output().expect("ended");
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(137), &b"begun\n"[..])
    );
    let limited = qrsh(&cell, &["-l", "h_rt=1", "sleep", "600"], b"");
    assert_eq!(limited.code, Some(137), "{limited:?}");
    let record = &cell.accounted("5", 1)[0];
    assert!(record.value("failed").starts_with("37"), "{record:?}");
}

#[test]
fn a_session_outlives_its_master_without_losing_or_doubling_a_byte() {
    let cell = Cell::up();
    let script =
        "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); [ $((i % 20)) = 0 ] && sleep 0.1; done; exit 5";
    let child = start(&cell, &[script]);
    cell.wait_for_state("1", "r");
    cell.kill("master");
    cell.bring_up(&[]).ok();
    let output = child.wait_with_output().expect("ended");
    let expected: String = (0..2000).map(|number| format!("line {number}\n")).collect();
    assert_eq!(
        output.status.code(),
        Some(5),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.stdout == expected.as_bytes(), "{} bytes", output.stdout.len());
}

/// A terminal of the test, and a command on it.
struct OnTerminal {
    master: File,
    slave: OwnedFd,
    child: Child,
    shown: mpsc::Receiver<Vec<u8>>,
    seen: String,
}

impl OnTerminal {
    fn start(cell: &Cell, command: &str, words: &[&str]) -> Self {
        let pair = openpty(None, None).expect("a terminal");
        let mut process: Command = cell.command(CommandUser::User, &cell.programs().gridwright());
        process.arg(command).args(words).env("TERM", "xterm");
        let end = || Stdio::from(pair.slave.try_clone().expect("cloned"));
        let child = process
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("started");
        let (to_test, shown) = mpsc::channel();
        let mut screen: File = pair.master.try_clone().expect("cloned").into();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count) = screen.read(&mut chunk) {
                if to_test.send(chunk[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            master: pair.master.into(),
            slave: pair.slave,
            child,
            shown,
            seen: String::new(),
        }
    }

    fn type_line(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).expect("typed");
    }

    /// Reads until a text is on the screen.
    fn read_until(&mut self, text: &str) {
        while !self.seen.contains(text) {
            match self.shown.recv_timeout(Duration::from_secs(60)) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("{text:?} is not on the screen:\n{}", self.seen),
            }
        }
    }

    /// Waits for the end; the terminal is as it was before then.
    fn end(mut self) -> Option<i32> {
        let status = self.child.wait().expect("ended");
        let settings = tcgetattr(&self.slave).expect("a terminal");
        assert!(settings.local_flags.contains(LocalFlags::ICANON | LocalFlags::ECHO));
        status.code()
    }
}

#[test]
fn a_login_has_a_terminal_of_the_size_of_the_window_and_gives_this_one_back() {
    let cell = Cell::up();
    let mut login = OnTerminal::start(&cell, "qlogin", &[]);
    login.read_until("Establishing builtin session to host");
    login.type_line("PS1=; stty -echo; echo begun; tty; stty size\n");
    login.read_until("begun\r\n");
    login.read_until("/dev/pts/");
    login.type_line("echo $0 $JOB_NAME $TERM\n");
    login.read_until("QLOGIN xterm\r\n");
    login.type_line("sh -c 'trap \"echo interrupted\" INT; echo trapped; sleep 600'\n");
    login.read_until("trapped\r\n");
    cell.wait_for_state("1", "r");
    login.type_line("\x03");
    login.read_until("interrupted\r\n");
    login.type_line("exit 6\n");
    assert_eq!(login.end(), Some(6));
    let mut left = OnTerminal::start(&cell, "qrsh", &["-pty", "y", "echo begun; trap '' INT; sleep 600"]);
    left.read_until("begun\r\n");
    left.type_line("\r~.");
    left.read_until("Connection to job 2 closed.");
    assert_eq!(left.end(), Some(1));
    let mut deleted = OnTerminal::start(&cell, "qrsh", &[]);
    cell.wait_for_state("3", "r");
    deleted.type_line("echo be''gun\n");
    deleted.read_until("begun\r\n");
    cell.user(&["qdel", "3"]).ok();
    assert_eq!(deleted.end(), Some(137));
}

#[test]
fn a_terminal_without_one_here_reads_what_is_piped_to_it() {
    let cell = Cell::up();
    let found = qrsh(&cell, &["-pty", "y", "stty -echo; cat; exit 5"], b"one\ntwo");
    let shown = String::from_utf8_lossy(&found.out).into_owned();
    assert_eq!(found.code, Some(5), "{found:?}");
    assert!(shown.contains("one\r\n") && shown.contains("two"), "{shown:?}");
    assert_eq!(
        qrsh(&cell, &["-pty", "y", "test -t 0 && test -t 1 && test -t 2"], b"").code,
        Some(0)
    );
    // Without a terminal on either side the login shell reads its commands from the pipe.
    let piped = qrsh(&cell, &[], b"echo hi; exit 4\n");
    assert_eq!((piped.code, piped.out.as_slice()), (Some(4), &b"hi\n"[..]), "{piped:?}");
    // All output of a terminal arrives.
    let many = qrsh(&cell, &["-pty", "y", "seq 1 20000"], b"");
    assert_eq!(String::from_utf8_lossy(&many.out).lines().count(), 20_000);
}
