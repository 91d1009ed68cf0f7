//! Job submission verifiers: those of users, on the command line, in scripts and in files of
//! default options; and that of the cell, in all its accounts and failures.

use gridwright_tests::cell::{Cell, CommandOutput, CommandUser, Process, is_root, wait_until};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// A verifier that writes down what it reads and answers with the content of a file.
const RECORDER: &str = r#"#!/bin/sh
while IFS= read -r line; do
  printf '%s\n' "$line" >>"$0.log"
  case $line in
  START) echo SEND ENV; echo STARTED ;;
  BEGIN) cat "$0.answer" ;;
  QUIT) exit 0 ;;
  esac
done
"#;

/// Makes a verifier of the ordinary account that gives an answer.
fn verifier(cell: &Cell, name: &str, answer: &str) -> PathBuf {
    let path = cell.write(name, RECORDER, 0o755);
    cell.write(&format!("{name}.answer"), answer, 0o644);
    cell.write(&format!("{name}.log"), "", 0o644);
    path
}

/// Submits a held job by way of the verifier `j.sh` that gives this answer.
fn submit(cell: &Cell, answer: &str, words: &[&str]) -> CommandOutput {
    let path = verifier(cell, "j.sh", answer).display().to_string();
    cell.user(&[&["qsub", "-h", "-jsv", &path], words].concat())
}

/// The line of a job in `qstat -j`.
fn detail(cell: &Cell, job: &str, key: &str) -> String {
    let shown = cell.user(&["qstat", "-j", job]).ok().out;
    let value = shown
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .unwrap_or_default();
    value.trim_start_matches(':').trim().to_owned()
}

#[test]
fn a_verifier_of_a_user_accepts_corrects_and_rejects() {
    let cell = Cell::up();
    let plain = ["-b", "y", "-N", "plain", "sleep", "1"];
    let accepted = submit(&cell, "LOG INFO an info\nRESULT STATE ACCEPT all is well\n", &plain).ok();
    assert_eq!(accepted.out, "an info\nYour job 1 (\"plain\") has been submitted\n");
    assert_eq!(accepted.err, "");
    let log = cell.read("j.sh.log");
    let user = &cell.account().name;
    assert!(
        log.starts_with("START\nPARAM VERSION 1.0\nPARAM CONTEXT client\nPARAM CLIENT qsub\n"),
        "{log}"
    );
    assert!(log.contains(&format!("\nPARAM USER {user}\n")), "{log}");
    assert!(
        log.contains("\nPARAM CMDNAME sleep\nPARAM CMDARGS 1\nPARAM CMDARG0 1\nPARAM b y\nPARAM h u\n"),
        "{log}"
    );
    assert!(log.ends_with("\nPARAM N plain\nENV ADD TERM \nBEGIN\nQUIT\n"), "{log}");

    let answer = "PARAM N corrected\nPARAM l_hard h_rt=77\nPARAM CMDARGS 2\nPARAM CMDARG0 new0\nPARAM CMDARG1 new one\n\
        ENV ADD JSVVAR hello\nENV DEL FOO\nRESULT STATE CORRECT changed it\n";
    let corrected = submit(&cell, answer, &[&["-v", "FOO=1,BAR=a b"], &plain[..]].concat()).ok();
    assert_eq!(corrected.out, "Your job 2 (\"corrected\") has been submitted\n");
    assert_eq!(detail(&cell, "2", "hard resource_list"), "h_rt=77");
    assert_eq!(detail(&cell, "2", "job_args"), "new0,new one");
    assert_eq!(detail(&cell, "2", "env_list"), "BAR=a b,JSVVAR=hello");
}

#[test]
fn what_a_verifier_of_a_user_gets_wrong_is_refused_in_the_words_of_8_1_9() {
    let cell = Cell::up();
    let plain = ["-b", "y", "-N", "plain", "sleep", "1"];
    for (answer, code, expected) in [
        (
            "RESULT STATE REJECT not today\n",
            1,
            "Unable to run job: not today\nExiting.\n",
        ),
        (
            "RESULT STATE REJECT_WAIT come back later\n",
            1,
            "Unable to run job: come back later\nExiting.\n",
        ),
        (
            "RESULT STATE REJECT\n",
            1,
            "Unable to run job: JSV rejected job\nExiting.\n",
        ),
        (
            "RESULT STATE MAYBE\n",
            1,
            "Unable to run job: JSV sent unknown result \"MAYBE\"\nExiting.\n",
        ),
        (
            "ERROR something broke\n",
            1,
            "Unable to run job: master got unknown command from JSV: \"ERROR\"\nExiting.\n",
        ),
        (
            "PARAM USER root\nRESULT STATE CORRECT\n",
            1,
            "Unable to run job: JSV tries to modify read-only parameter \"USER\"\n\
             unable to allocate memory for binding during JSV execution\nExiting.\n",
        ),
        (
            "PARAM p abc\nRESULT STATE CORRECT\n",
            1,
            "Unable to run job: invalid priority \"abc\".  Must be an integer from -1023 to 1024\n\
             unable to allocate memory for binding during JSV execution\nExiting.\n",
        ),
        (
            "PARAM N 1bad\nRESULT STATE CORRECT\n",
            1,
            "Unable to run job: denied: \"1bad\" is not a valid object name (cannot start with a digit)\nExiting.\n",
        ),
    ] {
        let refused = submit(&cell, answer, &plain);
        assert_eq!((refused.code, refused.out.as_str()), (code, ""), "{refused}");
        assert!(refused.err.starts_with(expected), "{refused}");
    }
}

#[test]
fn verifiers_of_users_come_one_after_the_other_from_the_command_line_to_the_cell() {
    let cell = Cell::up();
    let path = |name: &str| cell.work().join(name).display().to_string();
    for name in ["a", "b", "script", "here", "cell"] {
        // Each adds itself to the context that it is shown, which tells the order.
        let text = format!(
            "#!/bin/sh\nc=\nwhile read -r w r; do case $w in START) echo STARTED;; PARAM) case $r in 'ac '*) c=${{r#ac }},;; esac;;\n\
             BEGIN) echo \"PARAM ac ${{c}}{name}=1\"; echo RESULT STATE CORRECT;; QUIT) exit;; esac; done\n"
        );
        cell.write(name, &text, 0o755);
    }
    cell.write(".sge_request", &format!("-jsv {}\n", path("here")), 0o644);
    let common = cell.dir().join("default/common/sge_request");
    std::fs::write(&common, format!("-jsv {}\n", path("cell"))).unwrap();
    cell.write("job.sh", &format!("#!/bin/sh\n#$ -jsv {}\n", path("script")), 0o755);
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let submit = |line: String| {
        let words = words(&line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        cell.user(&[&["qsub", "-h"], &words[..]].concat()).ok();
    };
    submit(format!("-jsv {} -jsv script:{} job.sh", path("a"), path("b")));
    assert_eq!(detail(&cell, "1", "context"), "b=1,a=1,script=1,here=1,cell=1");
    submit(format!("-clear -jsv {} -b y true", path("a")));
    assert_eq!(detail(&cell, "2", "context"), "a=1");

    let missing = cell.user(&["qsub", "-jsv", "/nonexistent/j.sh", "job.sh"]);
    assert_eq!(missing.code, 3, "{missing}");
    assert!(
        missing
            .err
            .starts_with("qsub: JSV \"/nonexistent/j.sh\" is either not a file or not executable\n"),
        "{missing}"
    );
    let typed = cell.user(&["qsub", "-jsv", &format!("foo:{}", path("a")), "job.sh"]);
    assert_eq!(typed.code, 3, "{typed}");
    assert!(
        typed.err.starts_with("qsub: type \"foo\" in JSV URL is invalid\n"),
        "{typed}"
    );
    let as_other = cell.user(&["qsub", "-jsv", &format!("root@{}", path("a")), "job.sh"]);
    assert_eq!(as_other.code, 3, "{as_other}");
    assert!(
        as_other
            .err
            .starts_with("qsub: specifying user is not allowed in client JSV URLs\n"),
        "{as_other}"
    );
    cell.user(&["qsub", "-verify", "-jsv", &path("a"), "-b", "y", "true"])
        .ok();
}

#[test]
fn a_verifier_of_a_user_that_does_not_answer_is_a_refusal() {
    let cell = Cell::up();
    let submit = |text: &str| {
        let path = cell.write("j.sh", text, 0o755).display().to_string();
        let mut command = cell.command(CommandUser::User, &cell.programs().gridwright());
        command.env("SGE_JSV_TIMEOUT", "1");
        command.args(["qsub", "-h", "-jsv", &path, "-b", "y", "true"]);
        CommandOutput::run(command)
    };
    let path = cell.work().join("j.sh").display().to_string();
    for text in [
        "#!/bin/sh\nsleep 600\n",
        "#!/bin/sh\nread a\necho STARTED\nsleep 600\n",
        "#!/bin/sh\nread a\nexit 3\n",
    ] {
        let refused = submit(text);
        assert_eq!((refused.code, refused.out.as_str()), (1, ""), "{refused}");
        let expected = format!("Unable to run job: got no response from JSV script \"{path}\"\nExiting.\n");
        assert!(refused.err.starts_with(&expected), "{refused}");
    }
    let complaining = submit("#!/bin/sh\nread a\necho STARTED\necho to stderr >&2\necho RESULT STATE ACCEPT\nread a\n");
    let expected =
        "error: JSV stderr: to stderr\nUnable to run job: JSV stderr: to stderr\nJSV stderr is - to stderr\nExiting.\n";
    assert!(complaining.err.starts_with(expected), "{complaining}");
    assert_eq!(cell.user(&["qstat", "-u", "*"]).ok().out, "");
}

/// A verifier of a cell: the name of a job says what happens to it. It notes its starts and the
/// numbers of jobs.
const OF_THE_CELL: &str = r#"#!/bin/sh
echo "start $(id -u)" >>"$0.log"
while read -r w r; do
  case $w in
  START) echo STARTED ;;
  PARAM) case $r in 'N '*) N=${r#N } ;; 'JOB_ID '*) J=${r#JOB_ID } ;; 'CLIENT '*) C=${r#CLIENT } ;; esac ;;
  BEGIN)
    echo "job $J $N $C" >>"$0.log"
    case $N in
    bad) echo RESULT STATE REJECT not today ;;
    foul) echo PARAM USER root; echo PARAM N stolen; echo RESULT STATE ACCEPT ;;
    dead) exit 3 ;;
    mute) sleep 600 ;;
    loud) echo to stderr >&2; echo RESULT STATE ACCEPT ;;
    *) echo LOG WARNING saw $N; echo PARAM ac seen=$J; echo RESULT STATE CORRECT ;;
    esac ;;
  QUIT) echo quit >>"$0.log"; exit 0 ;;
  esac
done
"#;

/// Makes a verifier that every account can run and that can note what it does.
fn verifier_of_the_cell(cell: &Cell) -> PathBuf {
    let path = cell.write_top("cell.sh", OF_THE_CELL, 0o755);
    cell.write_top("cell.sh.log", "", 0o666);
    path
}

fn noted(cell: &Cell) -> String {
    std::fs::read_to_string(cell.top().join("cell.sh.log")).unwrap()
}

fn submit_named(cell: &Cell, name: &str) -> CommandOutput {
    cell.user(&["qsub", "-h", "-b", "y", "-N", name, "true"])
}

#[test]
fn the_verifier_of_a_cell_sees_every_job_once() {
    let cell = Cell::up();
    let path = verifier_of_the_cell(&cell);
    cell.set_global("jsv_url", &path.display().to_string());
    submit_named(&cell, "good").ok();
    assert_eq!(detail(&cell, "1", "context"), "seen=1");
    let refused = submit_named(&cell, "bad");
    assert_eq!(refused.code, 1, "{refused}");
    assert!(
        refused.err.starts_with("Unable to run job: not today\nExiting.\n"),
        "{refused}"
    );
    cell.user(&["qresub", "-h", "u", "1"]).ok();
    assert_eq!(detail(&cell, "3", "context"), "seen=3");
    let expected = "job 1 good qmaster\njob 2 bad qmaster\njob 3 good qmaster\n";
    assert!(noted(&cell).ends_with(expected), "{}", noted(&cell));
    assert_eq!(noted(&cell).matches("start").count(), 1, "one process for all");
    assert!(
        cell.log("master").contains("saw good"),
        "a warning is in the log of the master"
    );

    // Replay runs none: the log has what it decided.
    cell.kill("master");
    cell.bring_up(&[]).ok();
    assert_eq!(detail(&cell, "3", "context"), "seen=3");
    assert_eq!(noted(&cell).matches("job ").count(), 3);

    let altered = cell.user(&["qalter", "-l", "h_rt=5", "1"]);
    altered.refused(&["rejected due to jsv_allowed_mod configuration which does not allow: l_hard"]);
    cell.user(&["qalter", "-N", "other", "1"]).ok();
    cell.user(&["qrls", "1"]).ok();

    submit_named(&cell, "again").ok();
    cell.set_global("jsv_url", "none");
    wait_until(|| noted(&cell), || noted(&cell).ends_with("quit\n"));
    submit_named(&cell, "bad").ok();
}

/// Long scripts lie in the database, and wait for the verifier in memory.
#[test]
fn a_long_script_runs_after_the_verifier_has_seen_it() {
    let cell = Cell::up();
    let path = verifier_of_the_cell(&cell);
    cell.set_global("jsv_url", &path.display().to_string());
    let text = format!("#!/bin/sh\n# {}\necho ran\n", "x".repeat(10_000));
    let record = cell.run_script(&text, &[]);
    assert_eq!(cell.output(&record), "ran\n");
}

#[test]
fn a_verifier_of_a_cell_that_fails_refuses_the_job_and_no_other() {
    let cell = Cell::up();
    let path = verifier_of_the_cell(&cell);
    let name = path.display().to_string();
    cell.set_global("qmaster_params", "JSV_TIMEOUT=1");
    cell.set_global("jsv_url", &name);
    let silent = format!("got no response from JSV script \"{name}\"");
    for (job, expected) in [
        ("foul", "JSV tries to modify read-only parameter \"USER\""),
        ("dead", &*silent),
        ("mute", &silent),
        ("loud", "JSV stderr: to stderr\nJSV stderr is - to stderr"),
    ] {
        let refused = submit_named(&cell, job);
        assert_eq!((refused.code, refused.out.as_str()), (1, ""), "{refused}");
        assert!(
            refused
                .err
                .starts_with(&format!("Unable to run job: {expected}\nExiting.\n")),
            "{refused}"
        );
        let next = submit_named(&cell, "bad");
        assert!(
            next.err.starts_with("Unable to run job: not today\n"),
            "the next one is judged anew: {next}"
        );
        submit_named(&cell, "good").ok();
    }
    // A new version takes over with the next job.
    let new = cell.write_top("new.sh", &OF_THE_CELL.replace("not today", "not tomorrow"), 0o755);
    std::fs::rename(new, &path).unwrap();
    submit_named(&cell, "bad").refused(&["Unable to run job: not tomorrow\n"]);
    std::fs::remove_file(&path).unwrap();
    submit_named(&cell, "good").refused(&["Unable to run job: JSV stderr: /bin/sh: 1: ", "cell.sh: not found"]);
}

#[test]
fn a_verifier_that_is_not_there_does_not_come_into_the_configuration() {
    let cell = Cell::up();
    let path = verifier_of_the_cell(&cell).display().to_string();
    for (url, expected) in [
        (
            "/nonexistent/j.sh".to_owned(),
            "JSV \"/nonexistent/j.sh\" is either not a file or not executable",
        ),
        (format!("foo:{path}"), "type \"foo\" in JSV URL is invalid"),
        (
            format!("nosuchuser@{path}"),
            "user \"nosuchuser\" specified in JSV URL does not exist",
        ),
        (
            format!("root@{path}"),
            "user \"root\" specified in JSV URL is not allowed",
        ),
    ] {
        let text = cell.admin(&["qconf", "-sconf"]).ok().out;
        let line = |line: &str| match line.starts_with("jsv_url ") {
            true => format!("jsv_url {url}\n"),
            false => format!("{line}\n"),
        };
        let text: String = text.lines().map(line).collect();
        let file = cell.write_top("global", &text, 0o644).display().to_string();
        cell.admin(&["qconf", "-Mconf", &file]).refused(&[expected]);
    }
    assert!(
        cell.admin(&["qconf", "-sconf"])
            .ok()
            .out
            .contains("jsv_url                      none\n")
    );
}

#[test]
fn a_verifier_of_another_account_runs_as_that_account() {
    if !is_root() {
        return;
    }
    let cell = Cell::up();
    let path = verifier_of_the_cell(&cell);
    let (script, account) = (path.display().to_string(), cell.account());
    cell.set_global("jsv_url", &format!("{}@{script}", account.name));
    let refused = submit_named(&cell, "good");
    refused.refused(&[
        "Unable to run job: the job submission verifier of account",
        "is not reached",
    ]);
    let folder = cell.dir().join("run/jsv");
    std::fs::create_dir(&folder).unwrap();
    account.own(&folder);
    let socket = folder.join(format!("{}.sock", account.name));
    let master = std::fs::metadata(format!("/proc/{}", cell.pid("master")))
        .unwrap()
        .uid()
        .to_string();
    let start = |scripts: &[&str]| {
        let mut command = cell.command(CommandUser::User, &cell.programs().dir().join("gridwright-master"));
        command.args(["jsv", "--for", &master, "--listen", &socket.display().to_string()]);
        command.args(scripts);
        let process = Process::start(command, &cell.top().join("relay.out"));
        wait_until(|| process.printed(), || socket.exists());
        process
    };
    let relay = start(&[]);
    submit_named(&cell, "good").refused(&["is not run as", "admits no script"]);
    drop(relay);
    std::fs::remove_file(&socket).unwrap();
    let relay = start(&["--script", &script]);
    submit_named(&cell, "good").ok();
    submit_named(&cell, "bad").refused(&["Unable to run job: not today"]);
    let uid = std::fs::metadata(cell.work()).unwrap().uid();
    assert!(noted(&cell).contains(&format!("start {uid}\n")), "{}", noted(&cell));
    drop(relay);
}

/// The same scripts as sites write them, in each language that there is a library for.
#[test]
fn examples_in_every_language_run_on_both_sides() {
    let cell = Cell::up();
    let folder = cell.dir().join("util/resources/jsv");
    for (example, program) in [
        ("jsv.sh", "sh"),
        ("jsv.pl", "perl"),
        ("jsv.tcl", "tclsh"),
        ("jsv.py", "python3"),
    ] {
        if !gridwright_tests::cell::available(program, has_program(program)) {
            continue;
        }
        let path = folder.join(example).display().to_string();
        let submit = |words: &[&str]| cell.user(&[&["qsub", "-h", "-terse", "-b", "y"], words, &["true"]].concat());
        for side in ["client", "server"] {
            let jsv: &[&str] = if side == "client" { &["-jsv", &path] } else { &[] };
            cell.set_global("jsv_url", if side == "client" { "none" } else { &path });
            let number = submit(&[&["-l", "arch=lx-*"], jsv].concat()).ok().out;
            assert_eq!(
                detail(&cell, number.trim(), "hard resource_list"),
                "arch=lx-*,h_rt=3600",
                "{example} {side}"
            );
            let refused = submit(&[&["-l", "h_rt=604801"], jsv].concat());
            refused.refused(&["Unable to run job: a job may run for a week at most"]);
        }
    }
}

fn has_program(name: &str) -> bool {
    let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    path.split(':')
        .any(|folder| std::path::Path::new(folder).join(name).exists())
}
