//! Users are charged for what their jobs really use, once, also where the master was killed
//! meanwhile.

use gridwright_tests::cell::{Cell, CellPlan, wait_until};

/// Seconds of processor time that the account has used, decayed and in all, as the newest line of
/// `sharelog` about it tells.
fn used(cell: &Cell) -> Option<(f64, f64)> {
    let log = std::fs::read_to_string(cell.dir().join("default/common/reporting")).ok()?;
    let mine = format!("/default/{}", cell.account().name);
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let last = log
        .lines()
        .map(fields)
        .rfind(|fields| fields[1] == "sharelog" && fields[4] == mine)?;
    Some((last[15].parse().ok()?, last[18].parse().ok()?))
}

#[test]
fn use_is_charged_once_over_a_kill_of_the_master_and_forgotten_on_demand() {
    let cell = Cell::with(CellPlan::default().slots(1));
    let tree =
        "id=0\nname=Root\ntype=0\nshares=1\nchildnodes=1\nid=1\nname=default\ntype=0\nshares=1\nchildnodes=NONE\n";
    let tree = cell.write_top("tree", tree, 0o644).display().to_string();
    cell.admin(&["qconf", "-Astree", &tree]).ok();
    cell.set_scheduler("schedule_interval", "0:0:1");
    cell.set_scheduler("weight_tickets_share", "1000");
    cell.set_scheduler("halflife_decay_list", "cpu=1");
    cell.set_global("load_report_time", "0:0:1");
    cell.set_global(
        "reporting_params",
        "accounting=true reporting=true flush_time=0:0:1 sharelog=0:0:1",
    );
    let job = cell.submit(&[&cell
        .write("busy", "#!/bin/sh\nwhile :; do :; done\n", 0o755)
        .display()
        .to_string()]);
    cell.wait_for_state(&job, "r");
    // What decays was charged.
    let has_decayed = || used(&cell).is_some_and(|(left, all)| left + 0.01 < all);
    wait_until(|| format!("a charge; {:?}", used(&cell)), has_decayed);
    let (_, before) = used(&cell).expect("it was told");
    cell.kill("master");
    cell.bring_up(&[]).ok();
    wait_until(
        || format!("more than {before}"),
        || used(&cell).is_some_and(|(_, all)| all > before),
    );
    cell.admin(&["qdel", &job]).ok();
    let record = &cell.accounted(&job, 1)[0];
    let accounted: f64 = record.value("cpu").trim_end_matches('s').parse().expect("seconds");
    let is_same = || used(&cell).is_some_and(|(_, all)| (all - accounted).abs() < 0.001);
    wait_until(|| format!("{accounted} s and not {:?}", used(&cell)), is_same);
    cell.admin(&["qconf", "-clearusage"]).ok();
    // Who has used nothing and has no job stands in no line: the newest one about the tree is later
    // then.
    let log = || std::fs::read_to_string(cell.dir().join("default/common/reporting")).unwrap_or_default();
    let last = |path: &str| log().rfind(&format!(":{path}:"));
    let since_said = || last("/default")?.checked_sub(last(&format!("/default/{}", cell.account().name))?);
    let is_forgotten = || since_said().is_some_and(|bytes| bytes > 1_000);
    wait_until(
        || format!("nothing and not {:?}", used(&cell)),
        || is_forgotten() || used(&cell).is_some_and(|(_, all)| all == 0.0),
    );
}
