//! What Gridwright costs a node: idle daemons with sensors, control groups of tasks, and sampling.

use crate::clock::{median, tell, time_until};
use crate::talk::Talk;
use crate::usage::{cpu_ms, memory_kib};
use gridwright_tests::cell::{Cell, CellPlan};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Values of each of the two sensors.
const VALUES: u32 = 10;

/// How often each way is measured, in turn with the other.
const TURNS: usize = 3;

/// The unit of CPU time in `proc(5)`: a hundredth of a second for every Linux program.
const TICK_MS: f64 = 10.0;

/// Processes of the task that is sampled.
const PROCESSES: u32 = 1_000;

/// CPU and memory of agent, launcher and holder over `time`: a report each ten seconds, with twenty
/// values of two sensors beside the usual ones.
pub fn idle(time: Duration) {
    let cell = Cell::with(CellPlan::default());
    cell.set_global("load_report_time", "00:00:10");
    let attributes = (0..2 * VALUES).map(|n| format!("value{n} value{n} DOUBLE <= NO NO 0 0\n"));
    cell.add_complex(attributes.collect::<String>().trim_end());
    let sensors = [0, 1].map(|n| sensor(&cell, n));
    cell.set_global("load_sensor", &sensors.join(","));
    let last = format!("value{}", 2 * VALUES - 1);
    let reported = || cell.admin(&["qhost", "-F", &last]).out.contains(&format!("hl:{last}="));
    time_until("the first values of the sensors", Instant::now(), reported);
    let holder = Holder::start(&cell);
    let pids = [
        ("agent", cell.pid("agent")),
        ("launcher", cell.pid("launcher")),
        ("holder", holder.process.id().cast_signed()),
    ];
    // What start-up costs is not idling.
    std::thread::sleep(Duration::from_secs(5));
    let before = pids.map(|(_, pid)| cpu_ms(pid));
    std::thread::sleep(time);
    let (mut all_ms, mut all_kib) = (0.0, 0);
    for ((daemon, pid), before) in pids.into_iter().zip(before) {
        let (rss, pss) = memory_kib(pid);
        let used = (cpu_ms(pid) - before) / time.as_secs_f64();
        (all_ms, all_kib) = (all_ms + used, all_kib + pss);
        tell(
            &format!("node: idle {daemon}"),
            used,
            "ms/s",
            &format!("RSS {rss} KiB, PSS {pss} KiB"),
        );
    }
    let more = format!("PSS {all_kib} KiB, over {} s", time.as_secs());
    tell("node: idle, all three", all_ms, "ms/s", &more);
}

/// A sensor with values of its own.
fn sensor(cell: &Cell, n: u32) -> String {
    let values = (n * VALUES..(n + 1) * VALUES).map(|value| format!("echo \"$HOST:value{value}:1.5\"\n"));
    let text = format!(
        "#!/bin/sh\nHOST=$(uname -n)\nwhile read request; do\n[ \"$request\" = quit ] && exit 0\necho begin\n{}echo end\ndone\n",
        values.collect::<String>()
    );
    cell.write_top(&format!("sensor{n}.sh"), &text, 0o755)
        .display()
        .to_string()
}

/// `gridwright-shepherd hold`, in a group as its unit gives it one.
struct Holder {
    process: Child,
    groups: Vec<PathBuf>,
}

impl Holder {
    fn start(cell: &Cell) -> Self {
        let root = [Path::new("/sys/fs/cgroup/unified"), Path::new("/sys/fs/cgroup")];
        let root = root.into_iter().find(|root| root.join("cgroup.procs").exists());
        let root = root.expect("the holder needs control groups of the second version");
        let top = root.join(format!("gridwright-bench-{}", std::process::id()));
        let unit = top.join("gridwright-jobs.service");
        std::fs::create_dir_all(&unit).expect("root may make groups");
        let program = cell.programs().dir().join("gridwright-shepherd");
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "echo $$ >\"$0\" && exec \"$@\""])
            .arg(unit.join("cgroup.procs"));
        command.arg(program).args(["hold", "--dir", &cell.dir_word()]);
        let process = command.stdin(Stdio::null()).spawn().expect("a shell starts");
        let inside = unit.join("holder");
        time_until("the holder", Instant::now(), || inside.exists());
        Self {
            process,
            groups: vec![inside, unit, top],
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // A group can be removed a moment after its last process.
        for group in &self.groups {
            time_until("the end of the holder", Instant::now(), || {
                std::fs::remove_dir(group).is_ok()
            });
        }
    }
}

/// How long `tasks` tasks take to start together, with control groups and without, in turn; and
/// what a group adds to a task that runs alone.
pub fn groups(tasks: u32) {
    let cell = Cell::with(CellPlan::default().slots(tasks));
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        for (words, figures) in [("USE_CGROUPS=true", &mut with), ("USE_CGROUPS=false", &mut without)] {
            cell.set_global("execd_params", words);
            figures.push(start_of(&cell, tasks));
        }
    }
    let [with, without] = [with, without].map(median);
    let more = format!("{:.2} times the time without: {:.0} ms", with / without, without);
    tell(&format!("node: start of {tasks} tasks with groups"), with, "ms", &more);
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        for (words, figures) in [("USE_CGROUPS=true", &mut with), ("USE_CGROUPS=false", &mut without)] {
            cell.set_global("execd_params", words);
            figures.push(launcher_us(&cell, tasks));
        }
    }
    let [with, without] = [with, without].map(median);
    let more = format!("CPU of the launcher and its shepherds for a task: {with:.0} us, {without:.0} us without");
    tell("node: CPU of a task's group", with - without, "us", &more);
}

/// Milliseconds from `qsub` of an array until the master knows that all its tasks run.
fn start_of(cell: &Cell, tasks: u32) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    runtime.block_on(async {
        let mut talk = Talk::open(cell.dir()).await;
        let before = talk.status().await.started;
        let begin = Instant::now();
        let range = format!("1-{tasks}");
        let words = [
            "-t",
            &range,
            "-b",
            "y",
            "-o",
            "/dev/null",
            "-shell",
            "n",
            "/bin/sleep",
            "3600",
        ];
        let job = cell.submit(&words);
        while talk.status().await.started < before + u64::from(tasks) {
            assert!(begin.elapsed() < Duration::from_secs(600), "not within ten minutes");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let took = begin.elapsed();
        cell.admin(&["qdel", &job]).ok();
        let ended = Instant::now();
        while talk.status().await.running > 0 {
            assert!(ended.elapsed() < Duration::from_secs(600), "not within ten minutes");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        took.as_secs_f64() * 1e3
    })
}

/// Microseconds of CPU for each task of an array of `/bin/true`, of the launcher and of the
/// children that it has waited for: shepherds, and what they ran.
fn launcher_us(cell: &Cell, tasks: u32) -> f64 {
    let launcher = cell.pid("launcher");
    let before = family_ms(launcher);
    let range = format!("1-{tasks}");
    let job = cell.submit(&["-t", &range, "-b", "y", "-o", "/dev/null", "-shell", "n", "/bin/true"]);
    cell.accounted(&job, tasks as usize);
    (family_ms(launcher) - before) * 1e3 / f64::from(tasks)
}

/// CPU of a process and of the children that it has waited for, in milliseconds; `proc(5)`, fields
/// 14 to 17 of `stat`.
fn family_ms(pid: i32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the launcher runs");
    let fields = text.rsplit_once(')').expect("a name ends with a bracket").1;
    let ticks = fields.split_whitespace().skip(11).take(4);
    let ticks: f64 = ticks.filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks * TICK_MS
}

/// CPU of a shepherd whose task has a thousand processes, over `time`.
pub fn sampler(time: Duration) {
    let cell = Cell::with(CellPlan::default());
    let text =
        format!("#!/bin/sh\nn=1\nwhile [ $n -lt {PROCESSES} ]; do sleep 3600 & n=$((n + 1)); done\ntouch all\nwait\n");
    cell.write("many.sh", &text, 0o755);
    for words in ["USE_CGROUPS=true", "USE_CGROUPS=false"] {
        cell.set_global("execd_params", words);
        let job = cell.submit(&["-cwd", "-o", "/dev/null", "-j", "y", "many.sh"]);
        let all = cell.work().join("all");
        time_until("the processes of the task", Instant::now(), || all.exists());
        let shepherd = *cell.shepherds().first().expect("the task has a shepherd");
        std::thread::sleep(Duration::from_secs(3));
        let before = cpu_ms(shepherd);
        std::thread::sleep(time);
        let used = (cpu_ms(shepherd) - before) / time.as_secs_f64();
        let more = format!("{words}, {:.2} % of a core, over {} s", used / 10.0, time.as_secs());
        tell(&format!("node: sampling {PROCESSES} processes"), used, "ms/s", &more);
        cell.admin(&["qdel", &job]).ok();
        cell.accounted(&job, 1);
        std::fs::remove_file(all).expect("the task made it");
    }
}
