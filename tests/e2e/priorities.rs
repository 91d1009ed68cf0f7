//! Running jobs share their host by their tickets, with real processes (`reprioritize`).

use gridwright_tests::cell::{Cell, CellPlan, available, is_root, wait_until};

/// The nice value of a process, field 19 of its `stat`.
fn nice(pid: &str) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(16)?.parse().ok()
}

#[test]
fn busy_jobs_get_nice_values_by_their_tickets_and_lose_them_again() {
    // Nobody else may give a nice value back.
    if !available("root", is_root()) {
        return;
    }
    let cell = Cell::with(CellPlan::default().slots(2));
    cell.set_scheduler("schedule_interval", "0:0:1");
    cell.set_scheduler("reprioritize_interval", "0:0:1");
    cell.set_global("execd_params", "PTF_MAX_PRIORITY=2,PTF_MIN_PRIORITY=12");
    let busy = |name: &str| {
        let script = format!("#!/bin/sh\necho $$ > {name}.pid\nwhile :; do :; done\n");
        let script = cell.write(name, &script, 0o755).display().to_string();
        let job = cell.submit(&[&script]);
        cell.wait_for_state(&job, "r");
        let pid = || Some(cell.read(&format!("{name}.pid")).trim().to_owned()).filter(|pid| !pid.is_empty());
        wait_until(|| format!("no process of {name}"), || pid().is_some());
        (job, pid().expect("it was there just now"))
    };
    let (heavy, light) = (busy("heavy"), busy("light"));
    cell.admin(&["qalter", "-ot", "1000", &heavy.0]).ok();
    cell.admin(&["qalter", "-ot", "100", &light.0]).ok();
    let values = || (nice(&heavy.1), nice(&light.1));
    assert_eq!(values(), (Some(0), Some(0)), "it is off");
    cell.set_global("reprioritize", "1");
    wait_until(
        || format!("nice values {:?}", values()),
        || values() == (Some(2), Some(12)),
    );
    cell.set_global("reprioritize", "0");
    wait_until(
        || format!("nice values {:?}", values()),
        || values() == (Some(0), Some(0)),
    );
    cell.admin(&["qdel", &heavy.0, &light.0]).ok();
}
