//! However a task ends, nothing is left of it: no process, no control group, no directory. The
//! long form has 10,000 processes.

use gridwright_tests::cell::{Cell, available, in_namespaces, is_root, long_or, wait_until};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Begins processes that all have the word $1 in their command line, says so in the file $2, and
/// goes on as $3 says.
const SCRIPT: &str = r#"#!/bin/sh
#$ -S /bin/sh
trap '' USR1 USR2 XCPU TERM INT HUP
# A crowd.
n=0; while [ $n -lt COUNT ]; do sleep $1 & n=$((n+1)); done
# Processes that leave session and parent.
setsid sh -c "setsid sleep $1 & exit 0" &
(setsid sh -c "(setsid sleep $1 &) & (trap '' TERM INT HUP; setsid sleep $1 &) & exit 0" &)
# A directory in which nothing can be removed by whoever does not look.
mkdir -p "$TMPDIR/a/b"; : > "$TMPDIR/a/b/c"; chmod 0 "$TMPDIR/a/b"
sleep 0.3
{ echo "$TMPDIR"; sed -n 's/^0:://p' /proc/self/cgroup; } > "$2.new"; mv "$2.new" "$2"
[ "$3" = stay ] || exit 0
while :; do sleep $1; done
"#;

/// How a task is brought to its end.
#[derive(Clone, Copy, Debug)]
enum TaskEnding {
    ByItself,
    Deleted,
    DeletedAfterNotice,
    DeletedByForce,
    ByClock,
    WithItsShepherd,
    WithShepherdAndLauncher,
}

impl TaskEnding {
    const ALL: [Self; 7] = [
        Self::ByItself,
        Self::Deleted,
        Self::DeletedAfterNotice,
        Self::DeletedByForce,
        Self::ByClock,
        Self::WithItsShepherd,
        Self::WithShepherdAndLauncher,
    ];

    /// Options of the job.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::DeletedAfterNotice => &["-notify"],
            Self::ByClock => long_or(&["-l", "h_rt=60"], &["-l", "h_rt=4"]),
            Self::ByItself
            | Self::Deleted
            | Self::DeletedByForce
            | Self::WithItsShepherd
            | Self::WithShepherdAndLauncher => &[],
        }
    }

    /// Ends the job, once it is ready.
    fn bring_about(self, cell: &Cell, job: &str) {
        let kill_shepherds = || {
            for pid in cell.shepherds() {
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
            }
        };
        match self {
            Self::ByItself | Self::ByClock => {}
            Self::Deleted | Self::DeletedAfterNotice => drop(cell.user(&["qdel", job]).ok()),
            Self::DeletedByForce => drop(cell.admin(&["qdel", "-f", job]).ok()),
            Self::WithItsShepherd => kill_shepherds(),
            Self::WithShepherdAndLauncher => {
                cell.kill("launcher");
                kill_shepherds();
                cell.bring_up(&[]).ok();
            }
        }
    }
}

/// The live processes with a word in their command line.
fn processes(word: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if let Some(pid) = pid
            && String::from_utf8_lossy(&line).contains(word)
        {
            found.push(pid);
        }
    }
    found
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// What a job said of itself.
struct Traces {
    tmpdir: PathBuf,
    /// The control group of its own, if it had one.
    group: Option<PathBuf>,
}

impl Traces {
    fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap();
        let mut lines = text.lines();
        let tmpdir = PathBuf::from(lines.next().unwrap());
        let group = lines.next().filter(|group| group.contains("gridwright"));
        Self {
            tmpdir,
            group: group.map(|group| PathBuf::from(format!("/sys/fs/cgroup{group}"))),
        }
    }

    fn are_gone(&self) -> bool {
        !self.tmpdir.exists() && self.group.as_ref().is_none_or(|group| !group.exists())
    }
}

/// Runs a job to such an end and waits until nothing of it is left.
fn ends_without_a_trace(cell: &Cell, ending: TaskEnding, count: usize) {
    // A number that no other test sleeps for.
    let mark = format!("9{}.{}", std::process::id(), ending as usize + 1);
    let before = names(&cell.dir().join("tasks"));
    let script = cell.write("crowd.sh", &SCRIPT.replace("COUNT", &count.to_string()), 0o755);
    let ready = cell.work().join(format!("ready.{}", ending as usize));
    let stay = if matches!(ending, TaskEnding::ByItself) {
        "go"
    } else {
        "stay"
    };
    let (script, file) = (script.display().to_string(), ready.display().to_string());
    let words = [ending.options(), &[script.as_str(), &mark, &file, stay]].concat();
    let job = cell.submit(&words);
    wait_until(|| cell.state_of(&job), || ready.exists());
    let traces = Traces::read(&ready);
    ending.bring_about(cell, &job);
    cell.accounted(&job, 1);
    wait_until(
        || format!("{ending:?}: {} processes are left", processes(&mark).len()),
        || processes(&mark).is_empty(),
    );
    wait_until(
        || format!("{ending:?}: {}, {:?}", traces.tmpdir.display(), traces.group),
        || traces.are_gone(),
    );
    let tasks = || names(&cell.dir().join("tasks"));
    wait_until(|| format!("{ending:?}: {:?}", tasks()), || tasks() == before);
}

#[test]
fn nothing_is_left_of_a_task_however_it_ends() {
    let cell = Cell::up();
    let count = long_or(10_000, 100);
    if count > 1000 {
        cell.set_global("execd_params", "H_MAXPROC=20000");
    }
    cell.admin(&["qconf", "-mattr", "queue", "notify", "1", "all.q"]).ok();
    for ending in TaskEnding::ALL {
        ends_without_a_trace(&cell, ending, count);
    }
}

#[test]
fn nothing_is_left_of_a_task_that_filled_its_disk() {
    if !available("root, who can mount", is_root()) {
        return;
    }
    if !in_namespaces("endings::nothing_is_left_of_a_task_that_filled_its_disk", "true") {
        return;
    }
    let cell = Cell::up();
    let small = cell.work().join("small");
    std::fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4m,mode=1777", "small"])
        .arg(&small)
        .status();
    assert!(mounted.is_ok_and(|status| status.success()));
    let place = small.display().to_string();
    cell.admin(&["qconf", "-mattr", "queue", "tmpdir", &place, "all.q"])
        .ok();
    let script = "#!/bin/sh\nmkdir \"$TMPDIR/d\"; cat /dev/zero > \"$TMPDIR/d/x\"; cat /dev/zero > \"$TMPDIR/y\"\n\
                  echo full > \"$1\"; while :; do echo more; sleep 97531; done\n";
    let script = cell.write("fill.sh", script, 0o755).display().to_string();
    let ready = cell.work().join("ready");
    let output = small.join("out").display().to_string();
    let file = ready.display().to_string();
    let job = cell.submit(&["-j", "y", "-o", &output, &script, &file]);
    wait_until(|| cell.state_of(&job), || ready.exists());
    cell.user(&["qdel", &job]).ok();
    cell.accounted(&job, 1);
    wait_until(|| format!("{:?}", names(&small)), || names(&small).is_empty());
    assert!(processes("97531").is_empty());
    let _ = Command::new("umount").arg("--lazy").arg(&small).status();
}
