//! What the master and the slaves of a parallel job ask for apart, from the command line to what
//! hosts have left (`-scope`, `ign_sreq_on_mhost`).

use crate::hosts::{can_have_hosts, join, master, reports, token};
use gridwright_tests::cell::{Cell, Network, Record, wait_until};
use std::sync::Arc;

/// Makes a queue like `all.q`.
fn add_queue(cell: &Cell, name: &str, hosts: &str, slots: &str) {
    let like = cell.admin(&["qconf", "-sq", "all.q"]).ok().out;
    let changed = |line: &str| match line.split_whitespace().next() {
        Some("qname") => format!("qname {name}\n"),
        Some("hostlist") => format!("hostlist {hosts}\n"),
        Some("slots") => format!("slots {slots}\n"),
        _ => format!("{line}\n"),
    };
    let text: String = like.lines().map(changed).collect();
    let file = cell.write_top(name, &text, 0o644).display().to_string();
    cell.admin(&["qconf", "-Aq", &file]).ok();
}

fn set_pe(cell: &Cell, name: &str, value: &str) {
    cell.admin(&["qconf", "-mattr", "pe", name, value, "mpi"]).ok();
}

/// What a host has left of consumables, in the order of the complex.
fn left(cell: &Cell, host: &str, names: &str) -> String {
    let listing = cell.user(&["qhost", "-F", names, "-h", host]).ok().out;
    let words = listing.split_whitespace().filter_map(|word| word.strip_prefix("hc:"));
    words.collect::<Vec<_>>().join(" ")
}

/// The lines of `qstat -j` that say what a job asks for, each with single blanks.
fn lists(cell: &Cell, job: &str) -> Vec<String> {
    let detail = cell.user(&["qstat", "-j", job]).ok().out;
    let asks = |line: &&str| {
        line.split(':')
            .next()
            .is_some_and(|key| key.ends_with("_list") && key != "mail_list")
    };
    detail
        .lines()
        .filter(asks)
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// `h1` with one slot of `io.q` and one of `compute.q`, and `h2` with two of `compute.q`; each with
/// memory and cards.
struct ScopeCluster {
    master: Cell,
    _other: Cell,
}

impl ScopeCluster {
    fn up() -> Self {
        let network = Arc::new(Network::with_hosts(&["h1", "h2"]));
        let master = master(&network);
        let other = Cell::on(&network, "h2");
        join(&other, &token(&master, &[])).ok();
        wait_until(|| master.admin(&["qhost"]).out, || reports(&master, "h2"));
        // Of these two queues alone is it known who is where.
        master.admin(&["qmod", "-d", "all.q"]).ok();
        add_queue(&master, "io.q", "h1", "1");
        add_queue(&master, "compute.q", "h1 h2", "1,[h2=2]");
        master.add_complex("mem mem MEMORY <= YES YES 0 0\ngpu gpu RSMAP <= YES YES 0 0");
        for (host, values) in [("h1", "mem=4G,gpu=2(a b)"), ("h2", "mem=8G,gpu=4(0 1 2 3)")] {
            master
                .admin(&["qconf", "-mattr", "exechost", "complex_values", values, host])
                .ok();
        }
        Self { master, _other: other }
    }

    /// A job in four slots that says on each of its hosts which limit and which cards it has, and
    /// ends once there is a file `go`; its number.
    fn submit(&self, requests: &str) -> String {
        let words: Vec<&str> = ["-pe", "mpi", "4"].into_iter().chain(requests.split(' ')).collect();
        let say = "echo $(uname -n): $(ulimit -v) cards $SGE_HGR_gpu";
        let script = format!(
            "#!/bin/sh\nPATH=$SGE_ROOT/bin/$ARC:$PATH\n{say}\n\
             for host in h1 h2; do qrsh -inherit -nostdin $host '{say}'; done\n\
             while [ ! -e go ]; do sleep 0.1; done\n"
        );
        self.master.write("job.sh", &script, 0o755);
        self.master.submit(&[&words[..], &["job.sh"]].concat())
    }

    /// The lines that a job has printed, once there are three.
    fn said(&self, job: &str) -> Vec<String> {
        let output = || self.master.read(&format!("job.sh.o{job}"));
        wait_until(
            || self.master.state_of(job) + &output(),
            || output().lines().count() >= 3,
        );
        output().lines().map(str::to_owned).collect()
    }

    /// Lets a job end, and waits until all that it had is there again.
    fn end(&self, job: &str) -> Record {
        self.master.write("go", "", 0o644);
        let record = self
            .master
            .accounted(job, 3)
            .into_iter()
            .find(|record| record.value("pe_taskid").is_empty());
        std::fs::remove_file(self.master.work().join("go")).expect("it was written");
        self.have_left(["mem=4.000G gpu=2.000000", "mem=8.000G gpu=4.000000"]);
        record.expect("the job has a record of its own")
    }

    /// Waits until the two hosts have this left.
    fn have_left(&self, expected: [&str; 2]) {
        let left = || ["h1", "h2"].map(|host| left(&self.master, host, "mem,gpu"));
        wait_until(
            || format!("{expected:?} are left, not {:?}", left()),
            || left() == expected,
        );
    }
}

#[test]
fn master_and_slaves_have_what_each_asked_for_and_it_outlives_the_daemon() {
    if !can_have_hosts() {
        return;
    }
    let cluster = ScopeCluster::up();
    let ScopeCluster { master, .. } = &cluster;
    // Limits are those of the kinds that are there: h_vmem is charged nowhere.
    let job = cluster.submit(
        "-l h_rt=600 -scope master -q io.q -l mem=1G,h_vmem=1G -scope slave -q compute.q -l mem=2G,h_vmem=2G,gpu=1",
    );
    // On its own host the job has the limit of both slots there.
    let said = cluster.said(&job);
    assert_eq!(
        said,
        ["h1: 3145728 cards a", "h1: 2097152 cards a", "h2: 4194304 cards 0 1"]
    );
    let asked = [
        "hard resource_list: h_rt=600",
        "master_hard_resource_list: mem=1G,h_vmem=1G",
        "slave_hard_resource_list: mem=2G,h_vmem=2G,gpu=1",
        "slave_hard_queue_list: compute.q",
        "master hard queue_list: io.q",
    ];
    assert_eq!(lists(master, &job), asked);
    let taken = ["mem=1.000G gpu=1.000000", "mem=4.000G gpu=2.000000"];
    cluster.have_left(taken);
    master.kill("master");
    master.bring_up(&[]).ok();
    wait_until(|| master.admin(&["qhost"]).out, || reports(master, "h2"));
    cluster.have_left(taken);
    assert_eq!(lists(master, &job), asked);
    let record = cluster.end(&job);
    assert_eq!(
        (record.value("qname"), record.value("hostname"), record.value("slots")),
        ("io.q", "h1", "4")
    );
    let category = "-masterq io.q -l h_rt=600 -pe mpi 4 -scope master -l h_vmem=1G,mem=1G \
        -scope slave -l gpu=1,h_vmem=2G,mem=2G -scope slave -q compute.q";
    assert_eq!(record.value("category"), category);

    // What is beside the master finds no memory, unless it needs none.
    let job = cluster.submit(
        "-l h_rt=600 -scope master -q io.q -l mem=4G,h_vmem=1G -scope slave -q compute.q -l mem=3G,h_vmem=2G,gpu=2",
    );
    let waits = || master.user(&["qstat", "-j", &job]).out;
    wait_until(waits, || {
        waits().contains("cannot run in PE \"mpi\" because it only offers 3 slots")
    });
    set_pe(master, "ign_sreq_on_mhost", "TRUE");
    assert_eq!(
        cluster.said(&job),
        ["h1: 1048576 cards", "h1: unlimited cards", "h2: 4194304 cards 0 1 2 3"]
    );
    cluster.have_left(["mem=0.000 gpu=2.000000", "mem=2.000G gpu=0.000000"]);
    // What runs keeps what it was given.
    set_pe(master, "ign_sreq_on_mhost", "FALSE");
    cluster.have_left(["mem=0.000 gpu=2.000000", "mem=2.000G gpu=0.000000"]);
    cluster.end(&job);
}

/// A cell of one host, with memory and per job licences for all of it.
fn small_cell() -> Cell {
    let cell = Cell::up();
    cell.add_complex("mem mem MEMORY <= YES YES 0 0\nlic lic INT <= YES JOB 0 0\ndev dev INT <= YES HOST 0 0");
    cell.admin(&[
        "qconf",
        "-mattr",
        "exechost",
        "complex_values",
        "mem=4G,lic=2,dev=2",
        "global",
    ])
    .ok();
    cell
}

#[test]
fn lines_of_a_script_ask_in_scopes_and_qalter_changes_and_forgets_them() {
    let cell = small_cell();
    let script = "#!/bin/sh\n#$ -pe mpi 2 -l h_rt=600\n#$ -scope master -q all.q -l mem=1G\n\
                  #$ -scope slave -l mem=9G,dev=1\necho $NSLOTS\n";
    cell.write("lines.sh", script, 0o755);
    // What the script says last holds for the script alone.
    let job = cell.submit(&["-l", "lic=1", "lines.sh"]);
    let others = |slaves: &[&'static str]| {
        let first = [
            "hard resource_list: h_rt=600,lic=1",
            "master_hard_resource_list: mem=1G",
        ];
        [&first, slaves, &["master hard queue_list: all.q"]].concat()
    };
    assert_eq!(lists(&cell, &job), others(&["slave_hard_resource_list: mem=9G,dev=1"]));
    let explained = || cell.user(&["explain", &job]).out;
    let asked = "(-l h_rt=600,lic=1 -scope master -l mem=1G -scope slave -l dev=1,mem=9G)";
    wait_until(explained, || {
        explained().contains(&format!("{asked} cannot run globally"))
    });
    assert!(
        explained().contains("mem: needed 9.000G, free 3.000G"),
        "{}",
        explained()
    );
    cell.user(&["qhold", &job]).ok();
    let said = cell
        .user(&["qalter", "-scope", "slave", "-l", "", "-q", "all.q", &job])
        .ok();
    for list in ["slave hard resource list", "slave hard queue list"] {
        assert!(said.out.contains(&format!("modified {list} of job {job}")), "{said}");
    }
    assert_eq!(lists(&cell, &job), others(&["slave_hard_queue_list: all.q"]));
    cell.user(&["qalter", "-scope", "slave", "-l", "mem=9G", "-q", "", &job])
        .ok();
    assert_eq!(lists(&cell, &job), others(&["slave_hard_resource_list: mem=9G"]));
    cell.user(&["qrls", &job]).ok();
    wait_until(explained, || {
        explained().contains("-scope slave -l mem=9G) cannot run globally")
    });
    cell.user(&["qalter", "-scope", "slave", "-l", "mem=1G", &job]).ok();
    let record = cell.accounted(&job, 1).remove(0);
    assert_eq!((cell.output(&record).as_str(), record.value("failed")), ("2\n", "0"));
    // A master that has no room is named as well.
    let job = cell.submit(&["-pe", "mpi", "2", "-scope", "master", "-l", "mem=5G", "-b", "y", "true"]);
    let explained = || cell.user(&["explain", &job]).out;
    wait_until(explained, || {
        explained().contains("(-scope master -l mem=5G) cannot run globally")
    });
    assert!(
        explained().contains("mem: needed 5.000G, free 4.000G"),
        "{}",
        explained()
    );
}

/// Options of `qsub` that are refused, the exit code, and words of the answer.
const REFUSED: [(&str, i32, &[&str]); 10] = [
    (
        "-scope slave -l mem=1G",
        1,
        &[
            "not allowed for non-parallel jobs",
            "where: -scope",
            "fix: name a parallel",
        ],
    ),
    (
        "-scope slave -q all.q",
        1,
        &[
            "not allowed for non-parallel jobs",
            "where: -scope",
            "fix: name a parallel",
        ],
    ),
    (
        "-scope master -q all.q",
        1,
        &["specification of master queue is not allowed", "fix:"],
    ),
    (
        "-pe mpi 2 -scope slaves -l mem=1G",
        7,
        &["\"-scope slaves\"", "fix: write global, master or slave"],
    ),
    (
        "-pe mpi 2 -scope master -soft -l mem=1G",
        7,
        &[
            "\"-l mem=1G\"",
            "-soft and -scope master",
            "where: -l mem=1G",
            "why: soft requests",
            "fix: put -hard",
        ],
    ),
    (
        "-pe mpi 2 -l mem=1G -scope slave -l mem=2G",
        1,
        &[
            "resource \"mem\"",
            "in global scope and in slave scope",
            "where: -scope slave -l mem=2G",
            "why:",
            "fix: take",
        ],
    ),
    (
        "-pe mpi 2 -scope slave -l lic=1",
        1,
        &[
            "per job resource \"lic\"",
            "where: -scope slave -l lic=1",
            "why:",
            "fix:",
        ],
    ),
    (
        "-pe mpi 2 -scope master -l dev=1 -scope slave -l dev=1",
        1,
        &[
            "per host resource \"dev\"",
            "where: -scope slave -l dev=1",
            "why:",
            "fix:",
        ],
    ),
    (
        "-pe mpi 2 -scope slave -l nosuch=1",
        1,
        &["unknown resource \"nosuch\"", "where: -scope slave -l nosuch=1"],
    ),
    (
        "-pe mpi 2 -scope master -l mem=lots",
        1,
        &["not a memory value", "where: -scope master -l mem=lots", "fix:"],
    ),
];

#[test]
fn what_scopes_and_environments_cannot_have_is_refused_with_where_and_why() {
    let cell = small_cell();
    for (options, code, words) in REFUSED {
        let all: Vec<&str> = ["qsub"]
            .into_iter()
            .chain(options.split(' '))
            .chain(["-b", "y", "true"])
            .collect();
        let said = cell.user(&all);
        assert_eq!(said.code, code, "{said}");
        said.refused(words);
    }
    let job = cell.submit(&["-h", "-pe", "mpi", "2", "-l", "mem=1G", "-b", "y", "true"]);
    let altered = cell.user(&["qalter", "-scope", "master", "-l", "mem=2G", &job]);
    altered.refused(&[
        "in global scope and in master scope",
        "where: -scope master -l mem=2G",
        "fix:",
    ]);
    assert_eq!(lists(&cell, &job), ["hard resource_list: mem=1G"]);
    let shown = || cell.admin(&["qconf", "-sp", "mpi"]).ok().out;
    let plain = shown();
    set_pe(&cell, "ign_sreq_on_mhost", "TRUE");
    let before = shown();
    let added = before.lines().filter(|line| !plain.lines().any(|known| known == *line));
    let added: Vec<Vec<&str>> = added.map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(added, [["ign_sreq_on_mhost", "TRUE"]], "{before}");
    for key in ["master_forks_slaves", "daemon_forks_slaves"] {
        let said = cell.admin(&["qconf", "-mattr", "pe", key, "TRUE", "mpi"]);
        said.refused(&[
            &format!("{key} TRUE of a parallel environment is not supported yet"),
            "fix:",
        ]);
    }
    assert_eq!(shown(), before);
    // What `qconf -sp` shows is taken in again.
    let file = cell.write_top("pe", &before, 0o644).display().to_string();
    set_pe(&cell, "ign_sreq_on_mhost", "FALSE");
    assert_eq!(shown(), plain);
    cell.admin(&["qconf", "-Mp", &file]).ok();
    assert_eq!(shown(), before);
}
