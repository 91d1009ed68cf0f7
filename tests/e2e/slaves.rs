//! Slave tasks of parallel jobs over several hosts, each in a network namespace with an agent of
//! its own.

use crate::hosts::{can_have_hosts, join, master, reports, token};
use gridwright_tests::cell::{Cell, CommandOutput, CommandUser, Network, Record, available, wait_until};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// A master on `h1` and further hosts, two slots each, and the parallel environment `mpi` with two
/// slots on a host and these settings.
pub(crate) struct MpiCluster {
    pub(crate) master: Cell,
    others: Vec<Cell>,
}

impl MpiCluster {
    pub(crate) fn new(names: &[&str], settings: &[(&str, &str)]) -> Self {
        let network = Arc::new(Network::with_hosts(names));
        let master = master(&network);
        let others: Vec<Cell> = names[1..].iter().map(|name| Cell::on(&network, name)).collect();
        for (cell, name) in others.iter().zip(&names[1..]) {
            join(cell, &token(&master, &[])).ok();
            wait_until(|| master.admin(&["qhost"]).out, || reports(&master, name));
        }
        master.admin(&["qconf", "-mattr", "queue", "slots", "2", "all.q"]).ok();
        let cluster = Self { master, others };
        cluster.set(&[&[("allocation_rule", "2"), ("control_slaves", "TRUE")], settings].concat());
        cluster
    }

    fn set(&self, settings: &[(&str, &str)]) {
        for (name, value) in settings {
            self.master.admin(&["qconf", "-mattr", "pe", name, value, "mpi"]).ok();
        }
    }

    /// A parallel job whose master is on `h1`; its number.
    fn submit(&self, slots: &str, script: &str) -> String {
        self.submit_in("mpi", slots, script)
    }

    /// The same in another parallel environment.
    fn submit_in(&self, pe: &str, slots: &str, script: &str) -> String {
        self.master.write(
            "job.sh",
            &format!("#!/bin/sh\nPATH=$SGE_ROOT/bin/$ARC:$PATH\n{script}\n"),
            0o755,
        );
        self.master
            .submit(&["-pe", pe, slots, "-masterq", "all.q@h1", "job.sh"])
    }

    /// What a job of one task has printed, once it has ended.
    fn output_of(&self, job: &str) -> String {
        let gone = || !self.master.user(&["qstat", "-u", "*"]).out.contains(job);
        wait_until(|| self.master.state_of(job), gone);
        self.master.read(&format!("job.sh.o{job}"))
    }

    pub(crate) fn output(&self, slots: &str, script: &str) -> String {
        self.output_of(&self.submit(slots, script))
    }
}

#[test]
fn a_slave_task_has_its_streams_its_status_and_the_environment_of_the_job_on_its_host() {
    if !can_have_hosts() {
        return;
    }
    let cluster = MpiCluster::new(&["h1", "h2"], &[]);
    let script = r#"
        echo "first line" | qrsh -inherit -v COLOUR=red h2 'read line; echo "$line at $(uname -n) $COLOUR"; echo oops >&2; exit 7' 2>"$TMPDIR/errors"
        echo "status $?"
        cat "$TMPDIR/errors"
        qrsh -inherit -nostdin h2 'cat; kill -TERM $$'
        echo "status $?"
        SHADE=dark qrsh -inherit -nostdin -V h2 'echo $JOB_ID $NHOSTS $NSLOTS $PE $SHADE $(wc -l <$PE_HOSTFILE) $(uname -n)'
        qrsh -inherit -nostdin -noshell h2 /bin/echo 'a  b' '$HOME'
        qrsh -inherit h2 'qrsh=$SGE_ROOT/bin/$ARC/qrsh; $qrsh -inherit -nostdin h1 uname -n; [ -d "$TMPDIR" ] && echo own directory'
        head -c 300000 /dev/zero | qrsh -inherit h2 'cat; exit 3' | wc -c
        qrsh -inherit -nostdin h2 no-such-command 2>/dev/null
        echo "status $?"
    "#;
    let said = cluster.output("4", script);
    let job = "1";
    let expected = format!(
        "first line at h2 red\nstatus 7\noops\nstatus 143\n{job} 2 4 mpi dark 2 h2\na  b $HOME\nh1\nown directory\n300000\nstatus 127\n"
    );
    assert_eq!(said, expected);
    for cell in [&cluster.master, &cluster.others[0]] {
        let pipes = || std::fs::read_dir(cell.dir().join("agent/slaves")).map_or(0, Iterator::count);
        wait_until(|| format!("{} pipes are left", pipes()), || pipes() == 0);
    }
}

#[test]
fn what_was_not_granted_is_refused_with_the_reason() {
    if !can_have_hosts() {
        return;
    }
    let cluster = MpiCluster::new(&["h1", "h2"], &[]);
    let MpiCluster { master, .. } = &cluster;
    let refused = |job: &str, why: &str| format!("error: executing task of job {job} failed: {why}\n");
    let said = cluster.output("2", "qrsh -inherit h2 true; echo status $?");
    assert!(
        said.starts_with(&refused("1", "host h2 was not granted to it")),
        "{said}"
    );
    assert!(
        said.ends_with("fix: use the hosts in $PE_HOSTFILE: h1\nstatus 1\n"),
        "{said}"
    );
    // The job itself takes one of two slots, the first slave task the other one.
    let nested = "qrsh -inherit h1 'qrsh=$SGE_ROOT/bin/$ARC/qrsh; $qrsh -inherit h1 true; echo status $?'; qrsh -inherit h1 echo free";
    let said = cluster.output("2", nested);
    // The two streams of a slave task are two: what comes first on them is not told.
    assert!(
        said.contains(&refused("2", "no slot is free on host h1")) && said.contains("status 1\n"),
        "{said}"
    );
    assert!(said.ends_with("free\n"), "{said}");
    // Now the job has a slot of its own beside.
    cluster.set(&[("job_is_first_task", "FALSE")]);
    master.admin(&["qconf", "-mattr", "queue", "slots", "3", "all.q"]).ok();
    assert_eq!(cluster.output("2", nested), "status 0\nfree\n");
    cluster.set(&[("control_slaves", "FALSE")]);
    let said = cluster.output("2", "qrsh -inherit h1 true; echo status $?");
    assert!(
        said.starts_with(&refused("4", "control_slaves of parallel environment mpi is FALSE")),
        "{said}"
    );
    assert!(said.ends_with("status 1\n"), "{said}");
    cluster.set(&[("control_slaves", "TRUE")]);
    master
        .user(&["qrsh", "-inherit", "h1", "true"])
        .refused(&["inside of a running parallel job only", "JOB_ID is not set"]);
    let job = cluster.submit("2", "env >variables; while [ ! -e go ]; do sleep 0.1; done");
    wait_until(
        || master.state_of(&job),
        || master.read("variables").contains("GRIDWRIGHT_TASK_KEY"),
    );
    let mut forged = master.command(CommandUser::User, &master.programs().gridwright());
    let variables = master.read("variables");
    let task = variables
        .lines()
        .find_map(|line| line.strip_prefix("GRIDWRIGHT_TASK_KEY="))
        .unwrap();
    forged
        .args(["qrsh", "-inherit", "h1", "true"])
        .envs([("JOB_ID", job.as_str()), ("GRIDWRIGHT_TASK_KEY", task)]);
    CommandOutput::run(forged).refused(&["this command is no process of a running job", "fix:"]);
    master.write("go", "", 0o644);
    master.accounted(&job, 1);
}

#[test]
fn a_slave_task_and_its_command_outlive_the_daemons_between_them() {
    if !can_have_hosts() {
        return;
    }
    let cluster = MpiCluster::new(&["h1", "h2"], &[("accounting_summary", "TRUE")]);
    let MpiCluster { master, others } = &cluster;
    let wait = |name: &str| format!("while [ ! -e {name} ]; do sleep 0.1; done");
    let slave = format!(
        "echo begun; {}; echo middle; {}; echo end; exit 5",
        wait("first"),
        wait("second")
    );
    let job = cluster.submit("4", &format!("qrsh -inherit -nostdin h2 '{slave}'; echo status $?"));
    let output = || master.read(&format!("job.sh.o{job}"));
    wait_until(|| master.state_of(&job), || output() == "begun\n");
    others[0].kill("agent");
    others[0].bring_up(&[]).ok();
    master.write("first", "", 0o644);
    wait_until(output, || output() == "begun\nmiddle\n");
    for daemon in ["agent", "master"] {
        master.kill(daemon);
        master.bring_up(&[]).ok();
    }
    master.write("second", "", 0o644);
    let record = master.accounted(&job, 1).remove(0);
    assert_eq!(output(), "begun\nmiddle\nend\nstatus 5\n");
    assert_eq!((record.value("slots"), record.value("pe_taskid")), ("4", ""));
}

#[test]
fn a_slave_task_ends_with_its_command_and_with_its_job() {
    if !can_have_hosts() {
        return;
    }
    let cluster = MpiCluster::new(&["h1", "h2"], &[]);
    let MpiCluster { master, .. } = &cluster;
    let forever = "echo $$ >>pids; exec sleep 1000";
    let started = |count: usize| {
        wait_until(|| master.read("pids"), || master.read("pids").lines().count() == count);
    };
    let alive = || {
        let pids = master.read("pids");
        pids.lines().filter(|pid| Path::new("/proc").join(pid).exists()).count()
    };
    let script = format!(
        "qrsh -inherit -nostdin h2 '{forever}' & qrsh -inherit -nostdin h2 '{forever}' & while [ ! -e kill ]; do sleep 0.1; done; kill $!; wait $!; echo status $?; while [ ! -e go ]; do sleep 0.1; done"
    );
    let job = cluster.submit("4", &script);
    started(2);
    master.write("kill", "", 0o644);
    wait_until(|| master.read("pids"), || alive() == 1);
    master.write("go", "", 0o644);
    master.accounted(&job, 3);
    assert_eq!(alive(), 0);
    assert!(master.read(&format!("job.sh.o{job}")).ends_with("status 143\n"));
    let job = cluster.submit(
        "4",
        &format!("qrsh -inherit -nostdin h1 '{forever}' & qrsh -inherit -nostdin h2 '{forever}' & {forever}"),
    );
    started(5);
    assert_eq!(alive(), 3);
    master.user(&["qdel", &job]).ok();
    master.accounted(&job, 3);
    assert_eq!(alive(), 0);
}

#[test]
fn the_procedures_of_a_parallel_environment_are_told_where_the_job_runs() {
    let cell = Cell::up();
    let script = cell.write(
        "procedure",
        "#!/bin/sh\necho \"$@\"; cat $2; echo as $(id -un) in $(pwd)\n",
        0o755,
    );
    let words = "$pe_hostfile $host $job_owner $job_id $job_name $pe $pe_slots $processors $queue";
    let procedure = |name: &str| format!("{} {name} {words}", script.display());
    let user = cell.account().name.clone();
    for (attribute, value) in [
        ("start_proc_args", procedure("start")),
        ("stop_proc_args", format!("{user}@{}", procedure("stop"))),
        ("slots", "4".to_owned()),
    ] {
        cell.admin(&["qconf", "-mattr", "pe", attribute, &value, "smp"]).ok();
    }
    let record = cell.run_script(
        "#!/bin/sh\necho job; cat $PE_HOSTFILE\n",
        &["-pe", "smp", "3", "-N", "p"],
    );
    let host = record.value("hostname");
    let said = cell.read("p.po1");
    let lines: Vec<&str> = said.lines().collect();
    let told = |name: &str, line: &str| {
        let path = line
            .strip_prefix(&format!("{name} "))
            .and_then(|rest| rest.split(' ').next())
            .unwrap();
        assert_eq!(line, format!("{name} {path} {host} {user} 1 p smp 3 UNDEFINED all.q"));
        assert!(path.ends_with("/pe_hostfile"), "{path}");
    };
    let slots = format!("{host} 3 all.q@{host} UNDEFINED");
    let place = format!("as {user} in {}", cell.work().display());
    told("start", lines[0]);
    assert_eq!(lines[1..3], [&slots, &place], "{said}");
    told("stop", lines[3]);
    assert_eq!(lines[4..], [&slots, &place], "{said}");
    assert_eq!(cell.output(&record), format!("job\n{slots}\n"));
    assert_eq!((record.value("failed"), record.value("exit_status")), ("0", "0"));
}

/// A program of OpenMPI: each rank says where it is, uses a second of processor time, and with an
/// argument goes on for ever.
const RANKS: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, size, sum = 0;
    char host[256] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host - 1);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d on %s, sum %d\n", rank, size, host, sum);
    fflush(stdout);
    while (clock() < CLOCKS_PER_SEC || argc > 1) {}
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
"#;

/// Processes of a program.
fn processes(path: &Path) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let is_its = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == *path);
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_its))
        .count()
}

/// A message passing library as Debian has it.
struct Library {
    /// Its parallel environment, as the templates of a cell name it.
    pe: &'static str,
    compiler: &'static str,
    starter: &'static str,
    /// What the starter has on hosts while ranks run there, and on how many of three.
    daemon: (&'static str, usize),
}

/// The program of ranks, compiled for an environment.
fn compile(master: &Cell, compiler: &Path) -> PathBuf {
    let source = master.write("ranks.c", RANKS, 0o644);
    let program = master.work().join("ranks");
    let compiled = Command::new(compiler)
        .arg("-o")
        .arg(&program)
        .arg(source)
        .output()
        .unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    program
}

/// What the ranks say, numbered along the granted slots.
fn ranks(granted: &[(&str, usize)]) -> Vec<String> {
    let of_ranks = granted
        .iter()
        .flat_map(|(host, slots)| std::iter::repeat_n(*host, *slots));
    of_ranks
        .enumerate()
        .map(|(rank, host)| format!("rank {rank} of 4 on {host}, sum 6"))
        .collect()
}

/// Each host has a record of its own, with the processor time of its ranks.
fn check_record(record: &Record, pe: &str, slots: usize) {
    let host = record.value("hostname");
    let task = if host == "h1" {
        String::new()
    } else {
        format!("1.{host}")
    };
    let cpu_s: f64 = record.value("cpu").trim_end_matches('s').parse().unwrap();
    // A starter does not wait for its daemons: what they still had to do when it ended was cut
    // short, as in 8.1.9.
    assert_eq!(
        (record.value("pe_taskid"), record.value("granted_pe")),
        (task.as_str(), pe),
        "{record:?}"
    );
    assert!(
        cpu_s >= slots as f64,
        "{cpu_s} s on {host} with {slots} slots: {record:?}"
    );
}

/// A program of four ranks runs over three hosts in the environment that the template makes, is
/// accounted on each and ended on each.
fn runs_over_three_hosts(library: &Library) {
    let Library {
        pe,
        compiler,
        starter,
        daemon,
    } = *library;
    let tools = [compiler, starter, daemon.0].map(|name| Path::new("/usr/bin").join(name));
    if !can_have_hosts() || !available(pe, tools.iter().all(|tool| tool.exists())) {
        return;
    }
    let cluster = MpiCluster::new(&["h1", "h2", "h3"], &[]);
    let MpiCluster { master, .. } = &cluster;
    let template = master.dir().join("mpi").join(format!("{pe}.template"));
    master.admin(&["qconf", "-Ap", template.to_str().unwrap()]).ok();
    master
        .admin(&["qconf", "-mattr", "pe", "allocation_rule", "$round_robin", pe])
        .ok();
    master.admin(&["qconf", "-aattr", "queue", "pe_list", pe, "all.q"]).ok();
    let program = compile(master, &tools[0]);
    // Our commands come first, as `gridwright env` puts them: Open MPI takes the first qrsh on
    // PATH, and another Grid Engine may have one.
    let ours = "PATH=$SGE_ROOT/bin/$ARC:/usr/bin:/bin";
    let job = cluster.submit_in(pe, "4", &format!("{ours}\ncat $PE_HOSTFILE; {starter} ./ranks"));
    let records = master.accounted(&job, 3);
    let said = master.read(&format!("job.sh.o{job}"));
    // Ranks are numbered along the hosts; which of them has two slots is a matter of their load.
    let granted = said
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(host, _)| host.starts_with('h'));
    let granted: Vec<(&str, usize)> = granted
        .map(|(host, rest)| (host, rest.split(' ').next().unwrap().parse().unwrap()))
        .collect();
    let expected = ranks(&granted);
    // Starters warn of their own race with the daemons that they start, now and then.
    let mut lines: Vec<&str> = said.lines().filter(|line| line.starts_with("rank ")).collect();
    lines.sort_unstable();
    assert_eq!((granted.len(), expected.len()), (3, 4), "{said}");
    assert_eq!(lines, expected, "{said}");
    for (host, slots) in granted {
        let record = records.iter().find(|record| record.value("hostname") == host);
        check_record(record.expect("each host has a record"), pe, slots);
    }
    let endless = cluster.submit_in(pe, "4", &format!("{ours}\nexec {starter} ./ranks for ever"));
    let running = || (processes(&program), processes(&tools[2]));
    wait_until(|| master.state_of(&endless), || running() == (4, daemon.1));
    master.user(&["qdel", &endless]).ok();
    master.accounted(&endless, 3);
    assert_eq!(running(), (0, 0));
}

#[test]
fn openmpi_of_debian_runs_over_three_hosts_is_accounted_on_each_and_ended_on_each() {
    runs_over_three_hosts(&Library {
        pe: "openmpi",
        compiler: "mpicc.openmpi",
        starter: "mpirun.openmpi",
        daemon: ("orted", 2),
    });
}

#[test]
fn mpich_of_debian_runs_over_three_hosts_is_accounted_on_each_and_ended_on_each() {
    runs_over_three_hosts(&Library {
        pe: "mpich",
        compiler: "mpicc.mpich",
        starter: "mpiexec.hydra",
        daemon: ("hydra_pmi_proxy", 3),
    });
}
