//! Core binding from the option to the kernel.

use gridwright_tests::cell::{Cell, CellPlan, wait_until};

/// Says what the job knows of its cores, and stays until it is deleted.
const SHOW: &str = "#!/bin/sh\necho binding=$SGE_BINDING\ngrep Cpus_allowed_list /proc/self/status\n\
    test -n \"$PE_HOSTFILE\" && cat $PE_HOSTFILE\necho shown\nexec sleep 600\n";

/// Two processors at least: the first core of the host and one more.
fn has_cores(cell: &Cell) -> bool {
    topology(cell, "m_topology").matches('C').count() > 1
}

/// A load value of the host.
fn topology(cell: &Cell, name: &str) -> String {
    let shown = cell.user(&["qhost", "-F", name]).ok().out;
    let value = shown.split_once(&format!("hl:{name}=")).map(|(_, rest)| rest);
    value
        .and_then(|rest| rest.lines().next())
        .unwrap_or_default()
        .to_owned()
}

/// Submits the job, and waits until it has said what it knows.
fn shown(cell: &Cell, options: &[&str]) -> (String, String) {
    cell.write("show.sh", SHOW, 0o755);
    let job = cell.submit(&[options, &["-cwd", "-j", "y", "show.sh"]].concat());
    let output = || std::fs::read_to_string(cell.work().join(format!("show.sh.o{job}"))).unwrap_or_default();
    wait_until(|| cell.state_of(&job), || output().ends_with("shown\n"));
    let text = output();
    (job, text)
}

#[test]
fn a_bound_job_has_cores_of_its_own_which_are_free_again_when_it_is_gone() {
    let cell = Cell::with(CellPlan::default().slots(8));
    wait_until(
        || cell.user(&["qhost", "-F"]).out,
        || !topology(&cell, "m_topology").is_empty(),
    );
    if !gridwright_tests::cell::available("a host of two cores", has_cores(&cell)) {
        return;
    }
    let all = topology(&cell, "m_topology");
    let (first, text) = shown(&cell, &["-binding", "linear:1"]);
    assert!(!text.contains("binding=\n"), "{text}");
    let (second, other) = shown(&cell, &["-binding", "set", "linear:1"]);
    let line = |text: &str, start: &str| text.lines().find(|line| line.starts_with(start)).map(str::to_owned);
    assert_ne!(line(&text, "Cpus"), line(&other, "Cpus"), "cores of its own");
    let (env, free) = shown(&cell, &["-binding", "env", "linear:9999"]);
    assert!(free.contains("binding=\n"), "it runs all the same: {free}");
    let why = cell.user(&["explain", &env]).ok().out;
    assert!(
        why.contains("not bound to cores on") && why.contains("it asks for 9999 free cores"),
        "{why}"
    );
    let detail = cell.user(&["qstat", "-j", &first]).ok().out;
    assert!(
        detail.contains("binding:                    set linear:1\n"),
        "{detail}"
    );
    assert!(detail.contains("binding       1:            Sc"), "{detail}");
    assert!(!cell.user(&["qstat", "-ncb", "-j", &first]).ok().out.contains("binding"));
    assert_ne!(topology(&cell, "m_topology_inuse"), all);
    for daemon in ["master", "agent"] {
        cell.kill(daemon);
        cell.bring_up(&[]).ok();
        let in_use = || topology(&cell, "m_topology_inuse");
        wait_until(in_use, || in_use().contains('c'));
    }
    for job in [&first, &second, &env] {
        cell.user(&["qdel", job]).ok();
    }
    wait_until(
        || topology(&cell, "m_topology_inuse"),
        || topology(&cell, "m_topology_inuse") == all,
    );
}

#[test]
fn a_parallel_environment_that_binds_is_told_its_cores_in_the_host_file() {
    let cell = Cell::with(CellPlan::default().slots(8));
    wait_until(
        || cell.user(&["qhost", "-F"]).out,
        || !topology(&cell, "m_topology").is_empty(),
    );
    if !gridwright_tests::cell::available("a host of two cores", has_cores(&cell)) {
        return;
    }
    let (_, text) = shown(&cell, &["-pe", "smp", "2", "-binding", "pe", "linear"]);
    assert!(text.contains(" 0,0:0,1\n"), "{text}");
    let (_, text) = shown(&cell, &["-pe", "smp", "2"]);
    assert!(text.contains(" UNDEFINED\n") && text.contains("binding=\n"), "{text}");
}
