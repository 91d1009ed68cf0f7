//! How tasks start: scripts, shells, files, directories, users, procedures.

use super::cell::{Cell, direct, failed, tmpdir};
use nix::sys::memfd::{MFdFlags, memfd_create};
use proto::launch::{EndCause, FailedCodes, Notice, OutputPath, Procedure, Request, SensorSpec, StartMode};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;

#[test]
fn exit_codes_and_signals_are_reported_as_they_are() {
    let mut cell = Cell::start();
    for code in [0, 3, 99, 100, 255] {
        let result = cell.run(&format!("exit {code}"));
        assert_eq!(
            (result.cause, result.executed, result.limit),
            (EndCause::Exited(code), true, None)
        );
    }
    let result = cell.run("kill -9 $$");
    assert_eq!(result.cause, EndCause::Signalled { signal: 9, core: false });
    assert_eq!(result.limit, None);
}

#[test]
fn scripts_start_as_their_mode_says() {
    let mut cell = Cell::start();
    let cases = [
        (
            StartMode::UnixBehavior,
            "#!/bin/bash -l\nshopt -q login_shell && echo \"login $BASH $1\"\n",
            "login /bin/bash a b\n",
        ),
        (
            StartMode::UnixBehavior,
            "echo \"plain ${BASH:-no} $1\"\n",
            "plain no a b\n",
        ),
        (
            StartMode::PosixCompliant,
            "#!/bin/bash\necho \"posix ${BASH:-no} $1\"\n",
            "posix no a b\n",
        ),
        (StartMode::ScriptFromStdin, "echo \"stdin $1\"\n", "stdin a b\n"),
    ];
    let in_csh = [(
        StartMode::UnixBehavior,
        "#!/bin/csh -f\nset x = 4\necho csh $x $1:q\n",
        "csh 4 a b\n",
    )];
    let csh = if std::path::Path::new("/bin/csh").exists() {
        in_csh.as_slice()
    } else {
        &[]
    };
    for (mode, script, expected) in cases.into_iter().chain(csh.iter().copied()) {
        let document = cell.script_document(mode, "/bin/sh", &["a b"]);
        let result = cell.run_script(document, script);
        assert_eq!(
            (&result.cause, cell.output(&result, 'o').as_str()),
            (&EndCause::Exited(0), expected),
            "{script}"
        );
    }
}

#[test]
fn a_script_knows_its_spooled_name_and_nobody_else_can_read_it() {
    let mut cell = Cell::start();
    let document = cell.script_document(StartMode::UnixBehavior, "/bin/sh", &[]);
    let result = cell.run_script(document, "echo $0; stat -c %a $0\n");
    let output = cell.output(&result, 'o');
    assert!(
        output.ends_with(&format!("job_scripts/{}\n500\n", result.key.seq.0)),
        "{output}"
    );
}

#[test]
fn a_script_that_could_still_change_is_refused() {
    let mut cell = Cell::start();
    let path = cell.dir.join("script");
    fs::write(&path, "true\n").unwrap();
    let open = memfd_create(c"script", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING).unwrap();
    for given in [
        open,
        fs::File::open(&path).unwrap().into(),
        std::io::pipe().unwrap().0.into(),
    ] {
        let document = cell.script_document(StartMode::UnixBehavior, "/bin/sh", &[]);
        let key = cell.launch_with(document, &given);
        assert!(cell.refused(key).contains("sealed"));
    }
    let document = cell.script_document(StartMode::UnixBehavior, "/bin/sh", &[]);
    let key = cell.launch_script(document, &"\n".repeat(proto::launch::MAX_SCRIPT_BYTES as usize + 1));
    assert!(cell.refused(key).contains("bytes"));
}

#[test]
fn what_a_task_leaves_behind_is_for_its_agent_alone() {
    let mut cell = Cell::start();
    let document = cell.shell("true");
    let result = cell.run_document(document);
    let folder = cell.dir.join("tasks").join(result.key.to_string());
    let mode =
        |path: &std::path::Path| std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions());
    let others = mode(&folder.join("record")) & 0o777;
    let wanted = if nix::unistd::Uid::effective().is_root() {
        0o640
    } else {
        0o600
    };
    assert_eq!(
        (others, mode(&folder) & 0o007),
        (wanted, if wanted == 0o600 { 0 } else { 1 })
    );
}

#[test]
fn a_windows_line_end_in_the_first_line_is_named() {
    let mut cell = Cell::start();
    let document = cell.script_document(StartMode::UnixBehavior, "/bin/sh", &[]);
    let result = cell.run_script(document, "#!/bin/bash\r\necho\r\n");
    let (code, text) = failed(&result);
    assert!(
        code == FailedCodes::NO_SHELL && text.contains("CR LF") && !result.executed,
        "{text}"
    );
}

#[test]
fn output_is_appended_and_a_directory_gets_the_default_name() {
    let mut cell = Cell::start();
    fs::write(cell.work.join("log"), "old\n").unwrap();
    nix::unistd::chown(&cell.work.join("log"), Some(cell.account.uid.into()), None).unwrap();
    let mut document = cell.shell("echo new; echo bad >&2");
    document.streams.stdout.path = "log".into();
    document.streams.merge = true;
    cell.run_document(document);
    assert_eq!(fs::read_to_string(cell.work.join("log")).unwrap(), "old\nnew\nbad\n");
    let mut document = cell.shell("echo here");
    document.streams.stdout = OutputPath {
        path: cell.work.to_string_lossy().into_owned(),
        default_name: "named".into(),
    };
    cell.run_document(document);
    assert_eq!(fs::read_to_string(cell.work.join("named")).unwrap(), "here\n");
}

#[test]
fn the_users_own_mistakes_have_the_codes_of_grid_engine() {
    let mut cell = Cell::start();
    let mut no_folder = cell.shell("true");
    no_folder.working_directory = "/nonexistent/folder".into();
    let mut no_output = cell.shell("true");
    no_output.streams.stdout.path = "/nonexistent/file".into();
    let mut no_input = cell.shell("true");
    no_input.streams.stdin = Some("missing".into());
    let mut no_shell = cell.shell("true");
    no_shell.start = proto::launch::Start::Command {
        shell: "/bin/nosuch".into(),
        login: false,
        argv: vec![],
    };
    let closed = cell.work.join("closed");
    fs::write(&closed, "").unwrap();
    nix::unistd::chown(&closed, Some(cell.account.uid.into()), None).unwrap();
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o400)).unwrap();
    let mut closed_output = cell.shell("true");
    closed_output.streams.stdout.path = "closed".into();
    let no_program = cell.document(direct(&["nosuchprogram"]));
    let cases = [
        (no_folder, FailedCodes::NO_CWD),
        (no_output, FailedCodes::OPEN_FILE),
        (closed_output, FailedCodes::OPEN_FILE),
        (no_input, FailedCodes::OPEN_FILE),
        (no_shell, FailedCodes::NO_SHELL),
        (no_program, FailedCodes::NO_SHELL),
    ];
    for (document, code) in cases {
        let result = cell.run_document(document);
        assert_eq!((failed(&result).0, result.executed), (code, false), "{result:?}");
    }
}

#[test]
fn unknown_users_and_disagreeing_numbers_are_refused_with_both_numbers() {
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    let mut cell = Cell::start();
    let mut document = cell.shell("true");
    document.account.user = "no-such-user".into();
    let result = cell.run_document(document);
    assert!(failed(&result).1.contains("unknown on this host"));
    let mut document = cell.shell("true");
    document.account.uid += 1;
    let (theirs, ours) = (document.account.uid, cell.account.uid);
    let result = cell.run_document(document);
    let (code, text) = failed(&result);
    assert!(
        text.contains(&theirs.to_string()) && text.contains(&ours.to_string()),
        "{text}"
    );
    assert_eq!(code, FailedCodes::NO_USER);
    let mut document = cell.shell("true");
    // Root's group would be below min_gid; this one belongs to nobody here.
    document.account.gid = 64_990;
    let result = cell.run_document(document);
    let (code, text) = failed(&result);
    assert!(
        text.contains("64990") && text.contains(&cell.account.gid.to_string()),
        "{text}"
    );
    assert_eq!((code, result.executed), (FailedCodes::NO_USER, false));
    let mut document = cell.shell("true");
    document.account.uid = 0;
    let key = cell.launch(document);
    assert!(cell.refused(key).contains("min_uid"));
}

#[test]
fn the_environment_is_the_documents_and_what_the_host_knows() {
    let mut cell = Cell::start();
    let document = cell.document(direct(&["env"]));
    let result = cell.run_document(document);
    let output = cell.output(&result, 'o');
    let mut names: Vec<&str> = output.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    let ours = ["GRIDWRIGHT_TASK_KEY", "HOME", "JOB_ID", "LOGNAME", "PATH"];
    let paths = [
        "SGE_CWD_PATH",
        "SGE_JOB_SPOOL_DIR",
        "SGE_STDERR_PATH",
        "SGE_STDIN_PATH",
        "SGE_STDOUT_PATH",
    ];
    assert_eq!(names, [ours.as_slice(), &paths, &["SHELL", "USER"]].concat());
}

/// What the job prints of its paths, each without the working directory in front.
fn told_paths(cell: &mut Cell, change: impl FnOnce(&mut Cell, &mut proto::launch::LaunchDocument)) -> Vec<String> {
    let script =
        "for path in $SGE_CWD_PATH/ $SGE_STDIN_PATH $SGE_STDOUT_PATH $SGE_STDERR_PATH; do echo $path; done >told";
    let mut document = cell.shell(script);
    document.environment.push("SGE_STDOUT_PATH=/of/another/job".into());
    change(cell, &mut document);
    let folder = format!("{}/", cell.work.display());
    assert_eq!(cell.run_document(document).cause, EndCause::Exited(0));
    let told = fs::read_to_string(cell.work.join("told")).unwrap();
    told.lines()
        .map(|line| line.strip_prefix(&folder).unwrap_or(line).to_owned())
        .collect()
}

#[test]
fn a_job_is_told_the_full_paths_of_its_directory_and_files() {
    let mut cell = Cell::start();
    let told = told_paths(&mut cell, |_, _| {});
    assert_eq!(told, ["", "/dev/null", "job.o1", "job.e1"]);
    let told = told_paths(&mut cell, |cell, document| {
        fs::write(cell.work.join("in"), "").unwrap();
        document.streams.stdin = Some("in".into());
        document.streams.stdout.path = cell.work.display().to_string();
        document.streams.merge = true;
    });
    assert_eq!(told, ["", "in", "job.o2", "job.o2"]);
    let told = told_paths(&mut cell, |_, document| {
        document.streams.stdout.path = "/dev/null".into()
    });
    assert_eq!(told, ["", "/dev/null", "/dev/null", "job.e3"]);
}

#[test]
fn a_temporary_directory_lives_as_long_as_the_task() {
    let mut cell = Cell::start();
    let mut document = cell.shell("mkdir -p scratch/7.1.all.q/deep/er && echo x > scratch/7.1.all.q/deep/file");
    let base = cell.work.join("scratch");
    fs::create_dir(&base).unwrap();
    nix::unistd::chown(&base, Some(cell.account.uid.into()), None).unwrap();
    document.tmpdir = tmpdir(&base.to_string_lossy(), "7.1.all.q");
    let result = cell.run_document(document);
    assert_eq!(result.cause, EndCause::Exited(0));
    assert!(base.exists() && !base.join("7.1.all.q").exists());
}

#[test]
fn a_temporary_directory_is_removed_without_the_groups_of_root() {
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    let mut cell = Cell::start_with_groups(&[64_991]);
    // Only the group of the launcher's caller may write here, so the task's user cannot remove the
    // directory.
    let shared = cell.dir.join("shared");
    fs::create_dir_all(shared.join("7.1.all.q")).unwrap();
    nix::unistd::chown(&shared, None, Some(64_991.into())).unwrap();
    nix::unistd::chown(&shared.join("7.1.all.q"), Some(cell.account.uid.into()), None).unwrap();
    fs::set_permissions(&shared, std::os::unix::fs::PermissionsExt::from_mode(0o775)).unwrap();
    let mut document = cell.shell("true");
    document.tmpdir = tmpdir(&shared.to_string_lossy(), "7.1.all.q");
    assert_eq!(cell.run_document(document).cause, EndCause::Exited(0));
    assert!(shared.join("7.1.all.q").exists());
}

#[test]
fn procedures_follow_their_exit_code_rules() {
    let mut cell = Cell::start();
    let procedure = |command: &str| {
        Some(Procedure {
            user: None,
            command: command.into(),
            timeout_s: 30,
        })
    };
    let mut document = cell.shell("echo job");
    document.prolog = procedure("/bin/echo prolog");
    document.epilog = procedure("/bin/echo epilog");
    let result = cell.run_document(document);
    assert_eq!(cell.output(&result, 'o'), "prolog\njob\nepilog\n");
    for (script, code) in [("exit1", 8), ("exit99", 25), ("exit100", 30)] {
        let path = cell.work.join(script);
        fs::write(
            &path,
            format!("#!/bin/sh\nexit {}\n", script.trim_start_matches("exit")),
        )
        .unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut document = cell.shell("echo job");
        document.prolog = procedure(&path.to_string_lossy());
        document.epilog = procedure("/bin/echo epilog");
        let result = cell.run_document(document);
        assert_eq!(
            (failed(&result).0, cell.output(&result, 'o').as_str()),
            (code, "epilog\n")
        );
    }
    let mut document = cell.shell("exit 5");
    document.epilog = procedure("/bin/false");
    let result = cell.run_document(document);
    assert_eq!(
        (&result.cause, result.after.map(|failure| failure.failed)),
        (&EndCause::Exited(5), Some(FailedCodes::EPILOG))
    );
}

#[test]
fn procedures_of_the_parallel_environment_have_files_of_their_own() {
    let mut cell = Cell::start();
    let procedure = |words: &str| {
        let command = format!("/bin/echo {words} $stdin_path $stdout_path $stderr_path $merge_stderr");
        Some(Procedure {
            user: None,
            command,
            timeout_s: 30,
        })
    };
    let mut document = cell.shell("cat; echo $SGE_STDOUT_PATH");
    (document.prolog, document.pe_start, document.pe_stop) =
        (procedure("prolog"), procedure("start"), procedure("stop"));
    fs::write(cell.work.join("a file"), "input\n").unwrap();
    document.streams.stdin = Some("a file".into());
    let mut own = document.streams.clone();
    for (output, kind) in [(&mut own.stdout, "po"), (&mut own.stderr, "pe")] {
        output.default_name = format!("job.{kind}{}", document.job_number);
    }
    document.pe_streams = Some(own);
    let number = document.job_number;
    assert_eq!(cell.run_document(document.clone()).cause, EndCause::Exited(0));
    let work = cell.work.display().to_string();
    let read = |name: String| fs::read_to_string(cell.work.join(name)).unwrap();
    let files = |kind: &str| format!("/dev/null {work}/job.{kind}o{number} {work}/job.{kind}e{number} 0");
    assert_eq!(
        read(format!("job.o{number}")),
        format!("prolog {}\ninput\n{work}/job.o{number}\n", files(""))
    );
    assert_eq!(
        read(format!("job.po{number}")),
        format!("start {0}\nstop {0}\n", files("p"))
    );
    assert_eq!(read(format!("job.pe{number}")), "");
}

#[test]
fn a_job_is_told_its_file_in_a_directory_that_ends_with_a_slash() {
    let mut cell = Cell::start();
    let mut document = cell.shell("echo $SGE_STDOUT_PATH");
    let work = cell.work.display().to_string();
    document.streams.stdout.path = format!("{work}/");
    let file = cell.work.join(&document.streams.stdout.default_name);
    cell.run_document(document);
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{}\n", file.display()));
}

/// A procedure that takes its time and says so at its end.
fn slow_procedure(cell: &Cell) -> Option<Procedure> {
    let path = cell.work.join("slow");
    fs::write(&path, "#!/bin/sh\nsleep 2\necho done\n").unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    Some(Procedure {
        user: None,
        command: path.to_string_lossy().into_owned(),
        timeout_s: 30,
    })
}

#[test]
fn the_epilog_of_a_task_that_was_killed_runs_to_its_end() {
    let mut cell = Cell::start();
    let mut document = cell.shell("sleep 60");
    document.epilog = slow_procedure(&cell);
    let key = cell.launch(document);
    cell.executed_of(key);
    cell.order(key, proto::launch::TaskOrder::Kill);
    let result = cell.ended(key);
    assert_eq!(
        (result.after.as_ref(), cell.output(&result, 'o').as_str()),
        (None, "done\n")
    );
}

#[test]
fn the_epilog_is_not_on_the_clock_of_the_job() {
    let mut cell = Cell::start();
    let mut document = cell.shell("true");
    document.epilog = slow_procedure(&cell);
    document.task_limits.h_rt_s = Some(1);
    let result = cell.run_document(document);
    assert_eq!(
        (result.cause.clone(), result.limit.as_ref(), result.after.as_ref()),
        (EndCause::Exited(0), None, None)
    );
    assert_eq!(cell.output(&result, 'o'), "done\n");
}

#[test]
fn a_job_that_opens_a_named_pipe_runs_and_waits_for_its_other_end() {
    let mut cell = Cell::start();
    let pipe = cell.work.join("pipe");
    let make = || nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o666)).unwrap();
    make();
    fs::set_permissions(&pipe, Permissions::from_mode(0o666)).unwrap();
    let name = pipe.to_string_lossy().into_owned();
    let mut document = cell.shell("cat");
    document.streams.stdin = Some(name.clone());
    document.prolog = Some(Procedure {
        user: None,
        command: "/bin/true".into(),
        timeout_s: 30,
    });
    let key = cell.launch(document);
    cell.executed(key);
    fs::write(&pipe, "through\n").unwrap();
    let result = cell.ended(key);
    assert_eq!(
        (cell.output(&result, 'o').as_str(), result.cause),
        ("through\n", EndCause::Exited(0))
    );
    // An order ends one that waits in vain, and nothing was started.
    let mut document = cell.shell("touch started");
    document.streams.stdout.path = name;
    let key = cell.launch(document);
    cell.executed(key);
    cell.order(key, proto::launch::TaskOrder::Terminate);
    let result = cell.ended(key);
    assert_eq!(
        result.cause,
        EndCause::Signalled {
            signal: libc::SIGKILL,
            core: false
        }
    );
    assert!(result.ordered && !cell.work.join("started").exists());
}

#[test]
fn an_executable_file_without_a_first_line_is_the_shells() {
    let mut cell = Cell::start();
    let path = cell.work.join("plain");
    fs::write(&path, "echo $0 \"$@\"\n").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    let path = path.to_string_lossy().into_owned();
    let document = cell.document(direct(&[&path, "a b", "c"]));
    let result = cell.run_document(document);
    assert_eq!(cell.output(&result, 'o'), format!("{path} a b c\n"));
}

#[test]
fn the_epilog_reads_how_the_job_ended() {
    let mut cell = Cell::start();
    let mut document = cell.shell("exit 3");
    let epilog = cell.work.join("epilog");
    let text = "#!/bin/sh\necho $SGE_JOBEXIT_STAT $(cat $SGE_JOB_SPOOL_DIR/exit_status)\ngrep exit_status $SGE_JOB_SPOOL_DIR/usage\nls $SGE_JOB_SPOOL_DIR\n";
    fs::write(&epilog, text).unwrap();
    fs::set_permissions(&epilog, Permissions::from_mode(0o755)).unwrap();
    document.epilog = Some(Procedure {
        user: None,
        command: epilog.to_string_lossy().into_owned(),
        timeout_s: 30,
    });
    let result = cell.run_document(document);
    let names = "config\nenvironment\nerror\nexit_status\njob_pid\npid\nusage\n";
    assert_eq!(cell.output(&result, 'o'), format!("3 3\nexit_status=3\n{names}"));
    assert_eq!(result.note, None);
}

#[test]
fn the_reason_of_exit_status_100_begins_with_time_user_and_process() {
    let mut cell = Cell::start();
    let own = nix::unistd::Uid::effective();
    let is_stamped = |text: &str, end: &str| {
        let (time, rest) = text.split_at("11/26/2026 05:25:52".len());
        let (ids, said) = rest.split_once("]: ").unwrap();
        time.matches('/').count() == 2 && ids.starts_with(&format!(" [{own}:")) && said == end
    };
    let note = cell.run("exit 100").note.unwrap();
    assert!(is_stamped(&note, "exit_status of job start = 100"), "{note}");
    let mut document = cell.shell("true");
    document.prolog = Some(Procedure {
        user: None,
        command: "/bin/false".into(),
        timeout_s: 30,
    });
    let (_, text) = failed(&cell.run_document(document));
    assert!(is_stamped(&text, "exit_status of prolog = 1"), "{text}");
}

#[test]
fn a_root_procedure_opens_the_files_of_a_task_with_the_rights_of_its_user() {
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    let mut cell = Cell::start_with(&[("root-commands", "/bin/echo owned")]);
    let target = cell.dir.join("of-root");
    fs::write(&target, "").unwrap();
    let link = cell.work.join("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let mut document = cell.shell("true");
    document.streams.stdout.path = link.to_string_lossy().into_owned();
    document.prolog = Some(Procedure {
        user: Some("root".into()),
        command: "/bin/echo owned".into(),
        timeout_s: 5,
    });
    let result = cell.run_document(document);
    assert_eq!(fs::read_to_string(&target).unwrap(), "");
    assert_eq!(failed(&result).0, FailedCodes::OPEN_FILE);
}

#[test]
fn a_root_procedure_is_told_about_the_job_and_nothing_that_its_owner_could_turn_against_it() {
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    let mut cell = Cell::start_with(&[("root-commands", "/usr/bin/env")]);
    let mut document = cell.shell("true");
    let given = [
        "JOB_NAME=job",
        "HOME=/tmp",
        "SGE_ROOT=/tmp",
        "GIT_SSH=/tmp/x",
        "LD_AUDIT=/tmp/x.so",
        "TMPDIR=/tmp",
    ];
    document.environment.extend(given.map(str::to_owned));
    document.prolog = Some(Procedure {
        user: Some("root".into()),
        command: "/usr/bin/env".into(),
        timeout_s: 5,
    });
    let result = cell.run_document(document);
    let output = cell.output(&result, 'o');
    let mut lines: Vec<&str> = output
        .lines()
        .filter(|line| !line.starts_with("GRIDWRIGHT_TASK_KEY="))
        .collect();
    lines.sort_unstable();
    let (dir, work) = (cell.dir.display(), cell.work.display());
    let shell = nix::unistd::User::from_uid(0.into())
        .unwrap()
        .unwrap()
        .shell
        .display()
        .to_string();
    let expected = [
        format!("GRIDWRIGHT_DIR={dir}"),
        "HOME=/root".to_owned(),
        "JOB_ID=1".to_owned(),
        "JOB_NAME=job".to_owned(),
        "LOGNAME=root".to_owned(),
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
        format!("SGE_CWD_PATH={work}"),
        format!("SGE_JOB_SPOOL_DIR={dir}/tasks/{}/active", result.key),
        format!("SGE_ROOT={dir}"),
        format!("SGE_STDERR_PATH={work}/job.e1"),
        "SGE_STDIN_PATH=/dev/null".to_owned(),
        format!("SGE_STDOUT_PATH={work}/job.o1"),
        format!("SHELL={shell}"),
        "USER=root".to_owned(),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_repeated_launch_is_answered_with_what_it_did() {
    let mut cell = Cell::start();
    let document = cell.shell("echo once >> count");
    let key = cell.launch(document.clone());
    let first = cell.ended(key);
    cell.heard.clear();
    cell.launch(document);
    assert_eq!(cell.ended(key), first);
    assert_eq!(cell.read_when_there("count"), "once");
    cell.send(&Request::Forget { key });
    cell.hear(|notice| matches!(notice, Notice::Forgotten { .. }).then_some(()));
    assert_eq!(cell.list(), []);
}

#[test]
fn a_state_directory_with_a_long_name_works() {
    let deep = std::env::temp_dir()
        .join(format!("gridwright-{}", std::process::id()))
        .join("d".repeat(120));
    let mut cell = Cell::start_in(deep.clone());
    assert_eq!(cell.run("true").cause, EndCause::Exited(0));
    drop(cell);
    fs::remove_dir(deep.parent().unwrap()).unwrap();
}

#[test]
fn a_sensor_talks_over_the_descriptors_it_was_given() {
    let mut cell = Cell::start();
    let path = cell.dir.join("sensor");
    fs::write(&path, "read line; echo \"begin $ONLY\"; env | wc -l >&2; id -un >&2\n").unwrap();
    let (input, mut to_sensor) = std::io::pipe().unwrap();
    let (mut from_sensor, output) = std::io::pipe().unwrap();
    let (mut errors, error) = std::io::pipe().unwrap();
    let spec = SensorSpec {
        id: 7,
        path: path.to_string_lossy().into_owned(),
        args: vec![],
        user: cell.account.name.clone(),
        environment: vec!["ONLY=this".into(), "PATH=/bin:/usr/bin".into()],
    };
    let fds = [input.as_raw_fd(), output.as_raw_fd(), error.as_raw_fd()];
    cell.send_with(&Request::StartSensor(spec), &fds);
    drop((input, output, error));
    to_sensor.write_all(b"\n").unwrap();
    let (mut said, mut complained) = (String::new(), String::new());
    from_sensor.read_to_string(&mut said).unwrap();
    errors.read_to_string(&mut complained).unwrap();
    assert_eq!(said, "begin this\n");
    assert!(
        complained.ends_with(&format!("{}\n", cell.account.name)),
        "{complained}"
    );
    let status = cell.hear(|notice| match notice {
        Notice::SensorEnded { id: 7, status, .. } => Some(*status),
        _ => None,
    });
    assert_eq!(status, 0);
}
