use super::*;
use crate::config::{CellConfig, MasterConfig};
use crate::replay::replay;
use crate::testing::TempDir;
use proto::limit::VmemMeaning;
use proto::object::Fields;
use proto::pe::{AllocationRule, ParallelEnvironment};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

fn made(dir: &TempDir) -> (Layout, CellId) {
    let plan = Plan {
        dir: dir.path().join("it's a cell!"),
        port: 7_000,
        slots: 3,
        host: HostName::new("node1"),
        user: UserName::from("alice"),
        vmem: VmemMeaning::Memory,
    };
    let cell = init(&plan).unwrap();
    assert!(matches!(init(&plan), Err(InitError::Exists { .. })));
    (Layout::new(plan.dir), cell)
}

#[test]
fn a_new_cell_has_its_objects_and_its_first_host() {
    let dir = TempDir::new("init");
    let (layout, cell) = made(&dir);
    let state = replay(&Store::open(&layout.database()).unwrap()).unwrap().state;
    assert_eq!(state.cell, cell);
    let config = &state.config;
    let (instance, settings) = config.resolved.first_key_value().unwrap();
    assert_eq!((instance.to_string().as_str(), settings.slots), ("all.q@node1", 3));
    assert!(settings.load_thresholds.is_empty() && config.scheduler.job_load_adjustments.is_empty());
    assert_eq!(
        config.pes.keys().map(|pe| pe.as_str()).collect::<Vec<_>>(),
        ["make", "mpi", "smp"]
    );
    assert_eq!(
        config.managers.iter().map(|user| user.as_str()).collect::<Vec<_>>(),
        ["alice", "root"]
    );
    let lists = [&config.admin_hosts, &config.submit_hosts].map(|hosts| hosts.contains("node1"));
    assert_eq!((lists, config.exec_hosts.len()), ([true, true], 2));
    assert_eq!(state.certificates["node1"].len(), 1);
    let node1 = HostName::new("node1");
    assert_eq!(config.settings_of(&node1).execd().h_vmem, VmemMeaning::Memory);
}

#[test]
fn memory_can_be_limited_where_the_second_version_has_the_controller() {
    let dir = TempDir::new("groups");
    let root = dir.path();
    let children = "job/cgroup.subtree_control";
    assert!(!limits_memory(root, children));
    std::fs::create_dir_all(root.join("unified/job")).unwrap();
    std::fs::write(root.join("unified/cgroup.controllers"), "cpu memory pids\n").unwrap();
    assert!(limits_memory(root, "cgroup.controllers"));
    // The host has the controller, and does not pass it on to groups below this one.
    std::fs::write(root.join("unified").join(children), "cpu\n").unwrap();
    assert!(!limits_memory(root, children));
    std::fs::write(root.join("unified").join(children), "cpu memory\n").unwrap();
    assert!(limits_memory(root, children));
}

#[test]
fn keys_are_for_their_owner_alone() {
    let dir = TempDir::new("init");
    let (layout, _) = made(&dir);
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for name in ["ca.key", "master.key", "tickets.key", "state.db"] {
        assert_eq!(mode(layout.master(name)), 0o600, "{name}");
    }
    assert_eq!(
        (
            mode(layout.agent("host.key")),
            mode(layout.master("")),
            mode(layout.agent(""))
        ),
        (0o600, 0o700, 0o700)
    );
}

#[test]
fn the_written_configuration_reads_back() {
    let dir = TempDir::new("init");
    let (layout, cell) = made(&dir);
    let read = CellConfig::read(&layout.etc("cell.toml")).unwrap();
    assert_eq!(
        (read.cell, read.port, read.master_host.as_str()),
        (cell, 7_000, "node1")
    );
    MasterConfig::read(&layout.etc("master.toml")).unwrap();
}

#[test]
fn site_scripts_find_what_they_look_for() {
    let dir = TempDir::new("init");
    let (layout, _) = made(&dir);
    let script = ". \"$1/default/common/settings.sh\" && echo \"$SGE_ROOT|$SGE_CELL|$SGE_QMASTER_PORT|$SGE_ARCH\" && command -v qsub";
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(layout.dir())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (root, arch) = (layout.dir().display(), proto::host::arch());
    // The link leads to a program that a test build need not have.
    assert_eq!(
        text.lines().next(),
        Some(format!("{root}|default|7000|{arch}").as_str())
    );
    assert_eq!(
        std::fs::read_to_string(layout.common("act_qmaster")).unwrap(),
        "node1\n"
    );
    assert!(layout.dir().join("bin").join(arch).join("qstat").is_symlink());
    let bootstrap = std::fs::read_to_string(layout.common("bootstrap")).unwrap();
    assert!(bootstrap.starts_with("admin_user              alice\n"), "{bootstrap}");
}

#[test]
fn the_parallel_environments_for_message_passing_can_be_made_as_they_are() {
    let dir = TempDir::new("init");
    let (layout, _) = made(&dir);
    for (name, _) in tree::MPI_TEMPLATES {
        let text = std::fs::read_to_string(layout.dir().join("mpi").join(name)).unwrap();
        let pe = ParallelEnvironment::from_fields(&Fields::parse(&text).unwrap()).unwrap();
        assert_eq!(format!("{}.template", pe.name), name);
        let settings = (pe.control_slaves.0, pe.job_is_first_task.0, pe.allocation_rule);
        assert_eq!(settings, (true, false, AllocationRule::FillUp), "{name}");
    }
}

#[test]
fn a_host_that_joined_gets_what_site_scripts_look_for() {
    let dir = TempDir::new("tree");
    let layout = Layout::new(dir.path().join("joined"));
    std::fs::create_dir_all(layout.etc("")).unwrap();
    let cell = "cell = \"00000000000000ab\"\nmaster_host = \"boss\"\nport = 7001\n";
    std::fs::write(layout.etc("cell.toml"), cell).unwrap();
    std::fs::write(
        layout.etc("agent.toml"),
        "# The name.\nhost = \"node7\"\n\n#host = \"\"\n",
    )
    .unwrap();
    for _ in 0..2 {
        write_tree(layout.dir(), &UserName::from("alice")).unwrap();
    }
    assert_eq!(std::fs::read_to_string(layout.common("act_qmaster")).unwrap(), "boss\n");
    assert!(
        std::fs::read_to_string(layout.common("settings.sh"))
            .unwrap()
            .contains("SGE_QMASTER_PORT=7001;")
    );
    assert!(!layout.common("accounting").exists() && !layout.master("").exists());
    let arch = proto::host::arch();
    assert!(layout.dir().join("bin").join(arch).join("qstat").is_symlink());
    let said = |program: &str, argument: &str| {
        let output = Command::new(layout.dir().join(program)).arg(argument).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(said("util/arch", ""), format!("{arch}\n"));
    assert_eq!(said(&format!("utilbin/{arch}/gethostname"), "-name"), "node7\n");
    assert!(layout.dir().join("utilbin").join(arch).join("loadcheck").is_symlink());
}

#[test]
fn the_helpers_of_site_scripts_answer_as_those_of_grid_engine() {
    let dir = TempDir::new("helpers");
    tree::write_helpers(dir.path()).unwrap();
    std::fs::write(dir.path().join("file"), "x").unwrap();
    tree::set_mode(&dir.path().join("file"), 0o640).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let usage = format!("Version: Gridwright {version}\nusage: gethostbyaddr [-help|-name|-aname|-all]x.x.x.x\n");
    let unresolved =
        "error resolving host \"no.such.host.invalid\": can't resolve host name (h_errno = HOST_NOT_FOUND)\n";
    for (line, code, out, err) in [
        ("filestat -mode file", 0, "640\n", ""),
        (
            "filestat -uid nosuch",
            1,
            "",
            "stat failed: No such file or directory\n",
        ),
        (
            "filestat file",
            1,
            "",
            "usage: filestat -uid|-gid|-mode|-atime|-mtime|-ctime|-owner file\n",
        ),
        ("checkuser -check root", 0, "", ""),
        ("checkuser -uid root", 0, "0\n", ""),
        ("checkuser -gid root", 0, "0\n", ""),
        ("checkuser -check 0", 1, "", ""),
        (
            "checkuser root",
            1,
            "",
            "usage: checkuser [-check name]|[-uid name]|[-gid name]\n",
        ),
        ("uidgid -uid -gid", 1, "", "usage: uidgid -uid|-gid|-euid|-egid\n"),
        ("gethostbyname -name localhost", 0, "localhost\n", ""),
        ("gethostbyaddr -name 127.0.0.1", 0, "localhost\n", ""),
        ("gethostbyname -name no.such.host.invalid", 1, "", unresolved),
        ("gethostbyaddr -help", 1, "", &usage),
    ] {
        let mut words = line.split(' ');
        let program = dir.path().join(words.next().unwrap());
        let output = Command::new(program)
            .args(words)
            .current_dir(dir.path())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(
            (output.status.code(), &*text(&output.stdout), &*text(&output.stderr)),
            (Some(code), out, err),
            "{line}"
        );
    }
    let now = Command::new(dir.path().join("now")).output().unwrap();
    assert!(
        String::from_utf8_lossy(&now.stdout)
            .trim()
            .parse::<u64>()
            .is_ok_and(|now| now > 1_700_000_000)
    );
}

#[test]
fn a_directory_of_no_cell_gets_no_tree() {
    let dir = TempDir::new("tree");
    assert!(matches!(
        write_tree(dir.path(), &UserName::from("alice")),
        Err(InitError::Config(_))
    ));
}

#[test]
fn a_directory_in_which_others_make_names_is_refused_and_left_as_it_is() {
    let dir = TempDir::new("init-open");
    let set = |mode| std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    set(0o777);
    let layout = Layout::new(dir.path());
    let outcome = tree::make_directories(&layout);
    if nix::unistd::geteuid().is_root() {
        assert!(matches!(&outcome, Err(InitError::Foreign { .. })), "{outcome:?}");
        assert_eq!(
            std::fs::metadata(dir.path()).unwrap().permissions().mode() & 0o777,
            0o777
        );
        set(0o755);
        std::os::unix::fs::chown(dir.path(), Some(4321), None).unwrap();
        let foreign = tree::open_ours(dir.path()).unwrap_err().to_string();
        assert!(
            foreign.contains("belongs to uid 4321") && foreign.contains("chown root"),
            "{foreign}"
        );
    } else {
        outcome.unwrap();
    }
}

#[test]
fn directories_of_daemons_that_systemd_has_made_are_left_to_their_accounts() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let dir = TempDir::new("init-tmpfiles");
    let run = dir.path().join("run").join("master");
    std::fs::create_dir_all(&run).unwrap();
    std::os::unix::fs::chown(&run, Some(4321), None).unwrap();
    tree::make_directories(&Layout::new(dir.path())).unwrap();
    assert_eq!(
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&run).unwrap()),
        4321
    );
}
