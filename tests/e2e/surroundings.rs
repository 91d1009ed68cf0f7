//! Hosts that stand in a job's way: file systems that refuse root, users from other sources,
//! control groups, a `/proc` that hides.

use gridwright_tests::cell::{Account, Cell, Network, available, in_namespaces, is_root, records, run, wait_until};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

fn has(program: &str) -> bool {
    ["/usr/bin", "/usr/sbin", "/bin", "/sbin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists())
}

/// A mount of the account's own, which the kernel hides from every other uid, root's too. Dropped,
/// it is gone.
struct OwnMount(PathBuf);

impl OwnMount {
    fn of_cell(cell: &Cell, at: &Path) -> Self {
        let behind = cell.top().join("behind");
        std::fs::create_dir(&behind).unwrap();
        cell.account().own(&behind);
        let mut bindfs = Command::new("bindfs");
        bindfs.args([
            "--no-allow-other".as_ref(),
            "-ononempty".as_ref(),
            behind.as_os_str(),
            at.as_os_str(),
        ]);
        bindfs.uid(cell.account().uid).gid(cell.account().gid);
        let output = bindfs.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self(at.to_owned())
    }
}

impl Drop for OwnMount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Runs a shell command as the account, in a directory.
fn as_the_account(cell: &Cell, folder: &Path, script: &str) -> String {
    let mut command = cell.command(gridwright_tests::cell::CommandUser::User, "/bin/sh".as_ref());
    let gridwright = cell.programs().gridwright();
    let output = command
        .args(["-ec", script])
        .arg(gridwright)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_home_that_refuses_root_is_no_obstacle() {
    if !available(
        "root, bindfs and /dev/fuse",
        is_root() && has("bindfs") && Path::new("/dev/fuse").exists(),
    ) {
        return;
    }
    // The device is root's on some machines; here is one for everybody, seen by this test alone.
    let device = "d=$(mktemp -d); mknod -m 666 $d/fuse c 10 229; mount --bind $d/fuse /dev/fuse; rm -r $d";
    if !in_namespaces("surroundings::a_home_that_refuses_root_is_no_obstacle", device) {
        return;
    }
    let cell = Cell::up();
    let home = cell.account().home.clone();
    let _mount = OwnMount::of_cell(&cell, &home);
    assert!(std::fs::read_dir(&home).is_err(), "root sees the mount of another user");
    cell.admin(&["qconf", "-mattr", "queue", "prolog", "/bin/pwd", "all.q"])
        .ok();
    let script = "echo 'read line; pwd; echo $line; echo $SGE_STDOUT_PATH' >job.sh; echo input >in";
    as_the_account(&cell, &home, script);
    // Once in the home directory by default, once as the directory of the submission.
    for words in ["-o out1", "-cwd -o out2"] {
        let submit = format!("$0 qsub -terse -j y {words} -i $HOME/in job.sh");
        let job = as_the_account(&cell, &home, &submit);
        let record = cell.accounted(&job, 1).remove(0);
        assert_eq!(
            (record.value("failed"), record.value("exit_status")),
            ("0", "0"),
            "{record:?}"
        );
        let name = words.rsplit(' ').next().unwrap();
        let shown = home.display();
        let expected = format!("{shown}\n{shown}\ninput\n{shown}/{name}");
        assert_eq!(as_the_account(&cell, &home, &format!("cat {name}")), expected);
    }
}

/// A name service that asks libnss-extrausers behind the usual files.
const WITH_EXTRA_USERS: &str = "passwd: files extrausers\ngroup: files extrausers\nhosts: files dns\n";

fn has_extra_users() -> bool {
    let below = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut folders = below.chain([PathBuf::from("/usr/lib")]);
    folders.any(|folder| folder.join("libnss_extrausers.so.2").exists())
}

#[test]
fn a_user_of_another_name_service_module_runs_where_it_is_known_and_nowhere_else() {
    if !available(
        "root, iproute2 and libnss-extrausers",
        is_root() && has("ip") && has_extra_users(),
    ) {
        return;
    }
    let network = Arc::new(Network::with_hosts(&["h1", "h2"]));
    network.lay_over_etc("h1", "nsswitch.conf", WITH_EXTRA_USERS);
    let cell = Cell::on(&network, "h1");
    let account = Account::in_extra_users(&cell.top().join("home"));
    let cell = cell.of_account(&account);
    cell.bring_up(&["--slots", "2", "--port", "6444"]).ok();
    cell.keep_temporary_directories_apart();
    let other = Cell::on(&network, "h2");
    let token = cell.admin(&["token"]).ok().out;
    other
        .admin(&["join", "h1:6444", token.trim(), "--dir", &other.dir_word()])
        .ok();
    let record = cell.run_script("#!/bin/sh\nid -un; id -gn; echo $HOME $LOGNAME\n", &["-q", "all.q@h1"]);
    assert_eq!(
        (record.value("owner"), record.value("exit_status")),
        (account.name.as_str(), "0"),
        "{record:?}"
    );
    let Account { name, home, .. } = &*account;
    assert_eq!(
        cell.output(&record),
        format!("{name}\n{name}\n{} {name}\n", home.display())
    );
    let stranger = cell.submit(&["-q", "all.q@h2", "-b", "y", "true"]);
    cell.wait_for_state(&stranger, "Eqw");
    let detail = cell.user(&["qstat", "-j", &stranger]).ok().out;
    assert!(
        detail.contains(&format!("user \"{name}\" is unknown on this host")),
        "{detail}"
    );
    assert_eq!(cell.accounted(&stranger, 1)[0].number("failed"), 17);
    let listing = cell.admin(&["qstat", "-f"]).ok().out;
    let queue = listing.lines().find(|line| line.starts_with("all.q@h2")).unwrap();
    assert_eq!(
        queue.split_whitespace().count(),
        5,
        "the queue has no state letter: {queue}"
    );
}

/// A control group with a memory limit, of either version, made for the test.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    fn new() -> Option<Self> {
        let name = format!("gridwright-test-{}", run());
        let first = Path::new("/sys/fs/cgroup/memory");
        if first.join("memory.limit_in_bytes").exists() {
            let group = first.join(name);
            return std::fs::create_dir(&group).ok().map(|()| Self(group));
        }
        let unified = Path::new("/sys/fs/cgroup");
        let controllers = std::fs::read_to_string(unified.join("cgroup.subtree_control")).ok()?;
        let group = unified.join(name);
        controllers
            .split_whitespace()
            .find(|controller| *controller == "memory")?;
        std::fs::create_dir(&group).ok()?;
        let group = Self(group);
        std::fs::write(group.0.join("cgroup.subtree_control"), "+memory").ok()?;
        Some(group)
    }

    fn groups_of_tasks(&self) -> usize {
        let entries = std::fs::read_dir(&self.0).unwrap().flatten();
        entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .count()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn the_control_group_of_a_task_enforces_memory_alone_and_goes_with_the_task() {
    let group = if is_root() { MemoryGroup::new() } else { None };
    if !available("root and a writable memory control group", group.is_some()) {
        return;
    }
    let group = group.unwrap();
    let cell = Cell::up();
    // Without samples nobody else enforces.
    cell.set_global("execd_params", "PDC_INTERVAL=NEVER");
    let path = cell.dir().join("etc/agent.toml");
    let settings = std::fs::read_to_string(&path).unwrap();
    let kept = settings.lines().filter(|line| !line.starts_with("cgroup_parent"));
    let line = format!("cgroup_parent = \"{}\"", group.0.display());
    let text = [line.as_str()].into_iter().chain(kept).collect::<Vec<_>>().join("\n");
    std::fs::write(&path, text).unwrap();
    cell.kill("agent");
    cell.bring_up(&[]).ok();
    let hold =
        |mib: u32| format!("#!/bin/sh\n#$ -l h_rss=64M\nperl -e 'my $x = \"x\" x ({mib} << 20); print \"held\\n\"'\n");
    let over = cell.run_script(&hold(200), &[]);
    assert!(
        over.value("limit").contains("h_rss") && over.number("failed") == 37,
        "{over:?}"
    );
    let within = cell.run_script(&hold(10), &[]);
    assert_eq!((within.value("failed"), cell.output(&within).as_str()), ("0", "held\n"));
    // A process that leaves its session and parent stays in the group.
    let daemon = cell.run_script("#!/bin/sh\nsetsid sleep 1000 >&- 2>&- &\ncat /proc/self/cgroup\n", &[]);
    assert!(
        cell.output(&daemon).contains("/gridwright-test-"),
        "{}",
        cell.output(&daemon)
    );
    wait_until(
        || "the end of the control groups".to_owned(),
        || group.groups_of_tasks() == 0,
    );
    // The cell can do without them.
    cell.set_global("execd_params", "USE_CGROUPS=false");
    let without = cell.run_script("#!/bin/sh\ncat /proc/self/cgroup\n", &[]);
    assert!(
        !cell.output(&without).contains("/gridwright-test-"),
        "{}",
        cell.output(&without)
    );
    cell.set_global("execd_params", "USE_CGROUPS=true");
    let with = cell.run_script("#!/bin/sh\ncat /proc/self/cgroup\n", &[]);
    assert!(
        cell.output(&with).contains("/gridwright-test-"),
        "{}",
        cell.output(&with)
    );
    wait_until(
        || "the end of the control groups".to_owned(),
        || group.groups_of_tasks() == 0,
    );
}

#[test]
fn limits_hold_without_any_daemon_where_proc_hides_other_users() {
    if !available("root and util-linux", is_root() && has("unshare")) {
        return;
    }
    let hide = "mount -o remount,hidepid=2 /proc";
    if !in_namespaces(
        "surroundings::limits_hold_without_any_daemon_where_proc_hides_other_users",
        hide,
    ) {
        return;
    }
    let cell = Cell::up();
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(
        mounts
            .lines()
            .any(|line| line.contains(" /proc ") && line.contains("hidepid")),
        "{mounts}"
    );
    let script = "#!/bin/sh\n#$ -l h_vmem=100M\nwhile [ ! -e go ]; do sleep 0.1; done\n\
                  for n in 1 2 3; do perl -e 'my $x = \"x\" x (30 << 20); sleep 1000' & done\nwait\n";
    cell.write("job.sh", script, 0o755);
    let job = cell.submit(&["job.sh"]);
    cell.wait_for_state(&job, "r");
    let shepherd = cell.shepherds()[0];
    ["agent", "launcher", "master"]
        .iter()
        .for_each(|daemon| cell.kill(daemon));
    cell.write("go", "", 0o644);
    let is_gone = || !Path::new(&format!("/proc/{shepherd}")).exists();
    wait_until(|| "the end of the shepherd".to_owned(), is_gone);
    cell.bring_up(&[]).ok();
    let record = cell.accounted(&job, 1).remove(0);
    assert!(
        record.value("limit").contains("h_vmem") && record.number("failed") == 37,
        "{record:?}"
    );
    assert_eq!(records(&cell.user(&["qacct", "-j", &job]).out).len(), 1);
}
