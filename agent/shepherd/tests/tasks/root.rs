//! Programs that root, or a sensor's user, runs on the word of an agent that may have been taken
//! over.

use super::cell::{Cell, direct, failed};
use nix::unistd::{Uid, chown};
use proto::launch::{Blame, EndCause, LaunchDocument, LaunchResult, Notice, Procedure, Request, SensorSpec};
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

fn root_at(command: &str) -> Option<Procedure> {
    Some(Procedure {
        user: Some("root".into()),
        command: command.into(),
        timeout_s: 30,
    })
}

fn with_prolog(cell: &mut Cell, command: &str) -> LaunchDocument {
    let mut document = cell.shell("true");
    document.prolog = root_at(command);
    document
}

fn write_script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// A folder of root's beside the cell, and what a cell lists of it.
struct RootFolder {
    folder: PathBuf,
}

impl RootFolder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("gridwright-root-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        RootFolder { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for RootFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn root_runs_only_what_the_hosts_own_file_lists() {
    let mut cell = Cell::start();
    let document = with_prolog(&mut cell, "/bin/true");
    let key = cell.launch(document);
    if Uid::effective().is_root() {
        assert!(cell.refused(key).contains("etc/root-commands"));
        assert_eq!(
            cell.blamed(key),
            Blame::Queue,
            "no job chose the procedures of its queue"
        );
    } else {
        cell.ended(key);
    }
}

#[test]
fn the_list_of_commands_is_read_again_when_it_changes() {
    if !Uid::effective().is_root() {
        return;
    }
    let mut cell = Cell::start_with(&[("root-commands", "/bin/false\n")]);
    let list = cell.dir.join("etc/root-commands");
    let blame_of_true = |cell: &mut Cell| {
        let document = with_prolog(cell, "/bin/true");
        let key = cell.launch(document);
        cell.hear(|notice| match notice {
            Notice::Refused {
                key: Some(refused),
                text,
                ..
            } if *refused == key => Some(Some(text.clone())),
            Notice::Ended(result) if result.key == key => Some(None),
            _ => None,
        })
    };
    assert!(blame_of_true(&mut cell).is_some_and(|text| text.contains("not listed")));
    fs::write(&list, "/bin/false\n/bin/true\n").unwrap();
    assert_eq!(blame_of_true(&mut cell), None);
    fs::set_permissions(&list, Permissions::from_mode(0o666)).unwrap();
    assert!(blame_of_true(&mut cell).is_some(), "others could have written it");
    fs::remove_file(&list).unwrap();
    assert!(blame_of_true(&mut cell).is_some());
}

#[test]
fn a_prolog_of_root_adds_variables_for_the_job() {
    if !Uid::effective().is_root() {
        return;
    }
    let site = RootFolder::new("additions");
    let lines = [
        "GPU=0,3",
        "TMPDIR=/scratch",
        "JOB_ID=99",
        "no variable",
        "PATH=/site:/bin:/usr/bin",
    ];
    let writes: String = lines
        .iter()
        .map(|line| format!("echo '{line}' >> $SGE_JOB_SPOOL_DIR/environment\n"))
        .collect();
    write_script(&site.folder.join("prolog"), &format!("#!/bin/sh\n{writes}"));
    let mut cell = Cell::start_with(&[("root-commands", &site.path("prolog"))]);
    let mut document = cell.shell("echo $GPU $TMPDIR $JOB_ID $PATH; grep -c ^GPU= $SGE_JOB_SPOOL_DIR/environment");
    document.environment.push("TMPDIR=/tmp".into());
    document.prolog = root_at(&site.path("prolog"));
    let result = cell.run_document(document);
    assert_eq!(cell.output(&result, 'o'), "0,3 /scratch 1 /site:/bin:/usr/bin\n1\n");
}

/// Each procedure in front of the job finds what the one before has added.
#[test]
fn the_start_of_a_parallel_environment_sees_what_the_prolog_added() {
    if !Uid::effective().is_root() {
        return;
    }
    let site = RootFolder::new("between");
    write_script(
        &site.folder.join("prolog"),
        "#!/bin/sh\necho GPU=0,3 >> $SGE_JOB_SPOOL_DIR/environment\n",
    );
    write_script(&site.folder.join("start"), "#!/bin/sh\necho start $GPU\n");
    let mut cell = Cell::start_with(&[("root-commands", &site.path("prolog"))]);
    let mut document = cell.shell("echo job $GPU");
    document.prolog = root_at(&site.path("prolog"));
    document.pe_start = Some(Procedure {
        user: None,
        command: site.path("start"),
        timeout_s: 30,
    });
    let result = cell.run_document(document);
    assert_eq!(cell.output(&result, 'o'), "start 0,3\njob 0,3\n");
}

#[test]
fn nothing_is_added_if_all_procedures_together_add_too_much() {
    if !Uid::effective().is_root() {
        return;
    }
    let site = RootFolder::new("much");
    for name in ["prolog", "start"] {
        let adds = format!("seq -f '{name}_%g=1' 600 >> $SGE_JOB_SPOOL_DIR/environment");
        write_script(&site.folder.join(name), &format!("#!/bin/sh\n{adds}\n"));
    }
    let listed = format!("{}\n{}", site.path("prolog"), site.path("start"));
    let mut cell = Cell::start_with(&[("root-commands", &listed)]);
    for (start, expected) in [(None, "600\n"), (root_at(&site.path("start")), "0\n")] {
        let mut document = cell.shell("env | grep -Ec '^(prolog|start)_'; true");
        (document.prolog, document.pe_start) = (root_at(&site.path("prolog")), start);
        let result = cell.run_document(document);
        assert_eq!(cell.output(&result, 'o'), expected);
    }
}

#[test]
fn what_a_prolog_of_root_gives_away_is_not_the_next_tasks() {
    if !Uid::effective().is_root() {
        return;
    }
    let site = RootFolder::new("given");
    let gives = "#!/bin/sh\nchmod 777 $SGE_JOB_SPOOL_DIR\nchmod 666 $SGE_JOB_SPOOL_DIR/error\n";
    write_script(&site.folder.join("prolog"), gives);
    let mut cell = Cell::start_with(&[("root-commands", &site.path("prolog"))]);
    let mut document = cell.shell("true");
    document.prolog = root_at(&site.path("prolog"));
    let first = cell.run_document(document).key;
    cell.send(&Request::Forget { key: first });
    cell.hear(|notice| matches!(notice, Notice::Forgotten { key } if *key == first).then_some(()));
    let modes = cell.run("stat -c '%a %U %h' $SGE_JOB_SPOOL_DIR $SGE_JOB_SPOOL_DIR/error");
    assert_eq!(cell.output(&modes, 'o'), "755 root 2\n644 root 1\n");
}

#[test]
fn a_user_neither_adds_variables_nor_reads_those_of_others() {
    if !Uid::effective().is_root() {
        return;
    }
    let mut cell = Cell::start();
    let mut document = cell.shell("sleep 600");
    let attempt = "/bin/sh -c echo$IFS'X=1'>>$SGE_JOB_SPOOL_DIR/environment";
    document.prolog = Some(Procedure {
        user: None,
        command: attempt.into(),
        timeout_s: 30,
    });
    let key = cell.launch(document);
    let result = cell.ended(key);
    assert!(
        matches!(result.cause, EndCause::FailedToStart(_)),
        "root alone writes there: {result:?}"
    );
    let document = cell.shell("echo started > started; sleep 600");
    let key = cell.launch(document);
    cell.executed(key);
    let spool = cell.dir.join(format!("tasks/{key}/active"));
    let names = ["config", "environment", "error", "exit_status", "pid"];
    names
        .iter()
        .for_each(|name| assert!(spool.join(name).is_file(), "{name}"));
    let read_as = |uid: u32, name: &str| {
        let path = spool.join(name);
        let command = [
            "setpriv",
            "--clear-groups",
            "--reuid",
            &uid.to_string(),
            "--regid",
            &uid.to_string(),
            "cat",
        ];
        std::process::Command::new(command[0])
            .args(&command[1..])
            .arg(path)
            .output()
            .unwrap()
            .status
            .success()
    };
    let (own, other) = (cell.account.uid, 64_990);
    assert_eq!(
        (read_as(own, "environment"), read_as(other, "environment")),
        (true, false)
    );
    assert_eq!((read_as(own, "config"), read_as(other, "config")), (true, true));
    cell.order(key, proto::launch::TaskOrder::Kill);
    cell.ended(key);
}

#[test]
fn an_agent_does_not_choose_the_arguments_of_a_command_of_root() {
    if !Uid::effective().is_root() {
        return;
    }
    let lines = "/bin/echo alone\n/bin/echo job $job_id of $job_owner on $host\n/usr/bin/printf";
    let mut cell = Cell::start_with(&[("root-commands", lines)]);
    let owner = cell.account.name.clone();
    for number in 1..=2 {
        let document = with_prolog(&mut cell, &format!("/bin/echo job {number} of {owner} on node1"));
        let result = cell.run_document(document);
        assert_eq!(cell.output(&result, 'o'), format!("job {number} of {owner} on node1\n"));
    }
    let chosen = format!("/bin/echo job 99 of {owner} on node1");
    let option = format!("/bin/echo job 3 of {owner} on --help");
    for command in [
        "/bin/echo",
        "/bin/echo alone and more",
        &chosen,
        &option,
        "/usr/bin/printf /etc/shadow",
    ] {
        let document = with_prolog(&mut cell, command);
        let key = cell.launch(document);
        let text = cell.refused(key);
        assert!(text.contains("with other arguments"), "{command}: {text}");
        assert_eq!(cell.blamed(key), Blame::Queue);
    }
    // A program that is listed alone may be told the numbers of the task.
    let document = with_prolog(&mut cell, "/usr/bin/printf 8");
    let result = cell.run_document(document);
    assert_eq!(
        (&result.cause, cell.output(&result, 'o').as_str()),
        (&EndCause::Exited(0), "8")
    );
}

#[test]
fn a_script_of_root_finds_the_files_beside_it_and_may_be_named_by_a_link() {
    if !Uid::effective().is_root() {
        return;
    }
    let site = RootFolder::new("beside");
    fs::create_dir(site.folder.join("v1")).unwrap();
    write_script(
        &site.folder.join("v1/prolog"),
        "#!/bin/sh\n. $(dirname $0)/words\necho $WORD $(basename $0) \"$@\"\n",
    );
    fs::write(site.folder.join("v1/words"), "WORD=found\n").unwrap();
    symlink("v1", site.folder.join("current")).unwrap();
    let command = format!("{} a b", site.path("current/prolog"));
    let mut cell = Cell::start_with(&[("root-commands", &command)]);
    let document = with_prolog(&mut cell, &command);
    let result = cell.run_document(document);
    assert_eq!(
        (&result.cause, cell.output(&result, 'o').as_str()),
        (&EndCause::Exited(0), "found prolog a b\n")
    );
}

#[test]
fn root_runs_nothing_that_a_user_could_have_exchanged() {
    if !Uid::effective().is_root() {
        return;
    }
    let site = RootFolder::new("exchanged");
    let names = [
        "of-user/tool",
        "shared/tool",
        "tool-of-user",
        "open-tool",
        "link",
        "by-odd-shell",
    ];
    let lines: Vec<String> = names.iter().map(|name| site.path(name)).collect();
    let mut cell = Cell::start_with(&[("root-commands", &lines.join("\n"))]);
    let user = Some(cell.account.uid.into());
    let script = "#!/bin/sh\necho ran as $(id -u)\n";
    for folder in ["of-user", "shared", "good"] {
        fs::create_dir(site.folder.join(folder)).unwrap();
        write_script(&site.folder.join(folder).join("tool"), script);
    }
    chown(&site.folder.join("of-user"), user, None).unwrap();
    fs::set_permissions(site.folder.join("shared"), Permissions::from_mode(0o1777)).unwrap();
    for (name, mode) in [("tool-of-user", 0o755), ("open-tool", 0o775)] {
        write_script(&site.folder.join(name), script);
        fs::set_permissions(site.folder.join(name), Permissions::from_mode(mode)).unwrap();
    }
    chown(&site.folder.join("tool-of-user"), user, None).unwrap();
    symlink("good/tool", site.folder.join("link")).unwrap();
    nix::unistd::fchownat(
        nix::fcntl::AT_FDCWD,
        &site.folder.join("link"),
        user,
        None,
        nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW,
    )
    .unwrap();
    write_script(
        &site.folder.join("by-odd-shell"),
        &format!("#!{}\n", site.path("of-user/tool")),
    );
    for command in &lines {
        let document = with_prolog(&mut cell, command);
        let result: LaunchResult = cell.run_document(document);
        let (_, text) = failed(&result);
        assert!(text.starts_with(&format!("root@{command}: ")), "{command}: {text}");
        assert_eq!(cell.output(&result, 'o'), "", "{command}");
    }
}

#[test]
fn rules_that_others_could_have_written_keep_the_launcher_from_starting() {
    if !Uid::effective().is_root() {
        return;
    }
    let site = RootFolder::new("rules");
    fs::create_dir(site.folder.join("etc")).unwrap();
    let etc = site.folder.join("etc");
    let start = || {
        let mut command = std::process::Command::new(super::cell::PROGRAM);
        command.args(["launch", "--dir"]).arg(&site.folder).output().unwrap()
    };
    for (name, text) in [
        ("launcher.conf", "min_uid 2000\n"),
        ("root-commands", "/bin/true\n"),
        ("root-sensors", "/bin/true\n"),
    ] {
        fs::write(etc.join(name), text).unwrap();
        for (path, bad, good) in [(etc.join(name), 0o666, 0o644), (etc.clone(), 0o777, 0o755)] {
            fs::set_permissions(&path, Permissions::from_mode(bad)).unwrap();
            let output = start();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains(name), "{said}");
            fs::set_permissions(&path, Permissions::from_mode(good)).unwrap();
        }
        fs::remove_file(etc.join(name)).unwrap();
    }
}

/// What a sensor says on its standard error, and how it ended.
fn complaint(cell: &mut Cell, id: u64, path: &str) -> (String, i32) {
    let (input, _to_sensor) = std::io::pipe().unwrap();
    let (_from_sensor, output) = std::io::pipe().unwrap();
    let (mut errors, error) = std::io::pipe().unwrap();
    let user = cell.account.name.clone();
    let spec = SensorSpec {
        id,
        path: path.into(),
        args: vec![],
        user,
        environment: vec!["PATH=/bin:/usr/bin".into()],
    };
    cell.send_with(
        &Request::StartSensor(spec),
        &[input.as_raw_fd(), output.as_raw_fd(), error.as_raw_fd()],
    );
    let status = cell.hear(|notice| match notice {
        Notice::SensorEnded { id: found, status, .. } if *found == id => Some(*status),
        _ => None,
    });
    drop((input, output, error));
    let mut said = String::new();
    errors.read_to_string(&mut said).unwrap();
    (said, status)
}

#[test]
fn a_sensor_is_its_users_or_roots_with_every_directory_on_the_way() {
    if !Uid::effective().is_root() {
        return;
    }
    let site = RootFolder::new("sensor");
    let mut cell = Cell::start();
    let user = Some(cell.account.uid.into());
    let script = "#!/bin/sh\n. $(dirname $0)/words && exit $CODE\n";
    for folder in ["of-root", "of-user", "of-other", "shared"] {
        fs::create_dir(site.folder.join(folder)).unwrap();
        write_script(&site.folder.join(folder).join("sensor"), script);
        fs::write(site.folder.join(folder).join("words"), "CODE=7\n").unwrap();
    }
    chown(&site.folder.join("of-user"), user, None).unwrap();
    chown(&site.folder.join("of-other"), Some(64_990.into()), None).unwrap();
    fs::set_permissions(site.folder.join("shared"), Permissions::from_mode(0o1777)).unwrap();
    for (id, folder, refused) in [
        (1, "of-root", false),
        (2, "of-user", false),
        (3, "of-other", true),
        (4, "shared", true),
    ] {
        let (said, status) = complaint(&mut cell, id, &site.path(&format!("{folder}/sensor")));
        let expected = if refused { 127 } else { 7 };
        assert_eq!(
            (status, said.starts_with("gridwright: ")),
            (expected, refused),
            "{folder}: {said}"
        );
    }
    // A binary is executed by its descriptor.
    assert_eq!(complaint(&mut cell, 5, "/bin/false"), (String::new(), 1));
}

#[test]
fn a_procedure_of_root_has_no_descriptor_that_leads_to_more_than_its_own_directory() {
    if !Uid::effective().is_root() {
        return;
    }
    let mut cell = Cell::start_with(&[("root-commands", "/bin/ls /proc/self/fd")]);
    let mut document = cell.document(direct(&["true"]));
    document.prolog = root_at("/bin/ls /proc/self/fd");
    let result = cell.run_document(document);
    // The fourth is the listing itself.
    assert_eq!(cell.output(&result, 'o'), "0\n1\n2\n3\n");
}
