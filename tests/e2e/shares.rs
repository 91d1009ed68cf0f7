//! Two users who burn processor time share it as a share tree says, also where master and agent
//! were killed meanwhile.

use gridwright_tests::cell::{
    Account, Cell, CellPlan, CommandOutput, CommandUser, PATIENCE, available, is_root, wait_for,
};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

/// Burns a second of processor time, or what it gets of one in three.
const BURN: &str = "#!/bin/sh
end=$(($(date +%s) + 3))
while [ \"$(cut -d' ' -f14 /proc/$$/stat)\" -lt 100 ] && [ \"$(date +%s)\" -lt $end ]; do
  i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done
done
";

/// Jobs of the user who begins, and of the other one.
const JOBS: [u32; 2] = [200, 200];

fn tree(users: [&str; 2]) -> String {
    let leaf = |id: u32, name: &str| format!("id={id}\nname={name}\ntype=0\nshares=50\nchildnodes=NONE\n");
    format!(
        "id=0\nname=Root\ntype=0\nshares=1\nchildnodes=1,2\n{}{}",
        leaf(1, users[0]),
        leaf(2, users[1])
    )
}

/// What a user has of all decayed usage, in millionths, and seconds of processor time ever.
fn share(cell: &Cell, user: &str) -> (i64, f64) {
    let text = cell.admin(&["shares", "-fmt", "json"]).ok().out;
    let shares: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let nodes = shares["shares"].as_array().expect("nodes");
    let node = nodes
        .iter()
        .find(|node| node["path"] == format!("/{user}"))
        .expect("a leaf of the user");
    let number = |name: &str| node[name].as_i64().expect("a number");
    (number("actual_share"), number("ltcpu") as f64 / 1e6)
}

/// Seconds of processor time in the accounting of a user.
fn accounted(cell: &Cell, user: &str) -> f64 {
    let file = std::fs::read_to_string(cell.dir().join("default/common/accounting")).unwrap_or_default();
    let fields = file.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let own = fields.filter(|fields| fields.get(3) == Some(&user));
    own.filter_map(|fields| fields.get(36)?.parse::<f64>().ok()).sum()
}

/// Has the users share the cell by the processor time that they use.
fn share_by_processor_time(cell: &Cell, users: &[String; 2]) {
    let tree = cell
        .write_top("tree", &tree([&users[0], &users[1]]), 0o644)
        .display()
        .to_string();
    for user in users {
        let text = format!("name {user}\noticket 0\nfshare 0\ndelete_time 0\ndefault_project NONE\n");
        let file = cell.write_top("user", &text, 0o644).display().to_string();
        cell.admin(&["qconf", "-Auser", &file]).ok();
    }
    cell.admin(&["qconf", "-Astree", &tree]).ok();
    cell.set_global("load_report_time", "0:0:1");
    for (name, value) in [
        ("schedule_interval", "0:0:1"),
        ("weight_tickets_share", "10000"),
        ("weight_ticket", "1"),
        ("weight_urgency", "0"),
        ("weight_priority", "0"),
        ("halflife_decay_list", "cpu=1:mem=1:io=1"),
    ] {
        cell.set_scheduler(name, value);
    }
}

#[test]
fn two_users_who_burn_processor_time_come_to_half_each_over_a_kill_of_master_and_agent() {
    if !available("a second account", is_root()) {
        return;
    }
    let cell = Cell::with(CellPlan::default().slots(2));
    let other = Account::another();
    // Temporary directories of jobs of both are made there.
    let open = std::fs::Permissions::from_mode(0o1777);
    std::fs::set_permissions(cell.work(), open).expect("the working directory is ours");
    let users = [cell.account().name.clone(), other.name.clone()];
    share_by_processor_time(&cell, &users);
    let burn = cell.write_top("burn", BURN, 0o755).display().to_string();
    let submit = |user: usize| {
        let mut command = cell.command(CommandUser::Admin, &cell.programs().gridwright());
        let account = if user == 0 { cell.account() } else { &other };
        command.uid(account.uid).gid(account.gid).current_dir("/");
        command
            .env("HOME", &account.home)
            .env("USER", &account.name)
            .env("LOGNAME", &account.name);
        command.args(["qsub", "-terse", "-o", "/dev/null", "-j", "y", "-b", "y", &burn]);
        CommandOutput::run(command).ok();
    };
    (0..JOBS[0]).for_each(|_| submit(0));
    // The first one has the machine for a while.
    let ahead = || share(&cell, &users[0]).1 >= 5.0;
    let told = || cell.admin(&["shares"]).out + &cell.admin(&["qstat", "-u", "*"]).out;
    assert!(wait_for(PATIENCE, ahead), "{}", told());
    assert_eq!(share(&cell, &users[0]).0, 1_000_000);
    (0..JOBS[1]).for_each(|_| submit(1));
    let has_begun = || share(&cell, &users[1]).0 > 200_000;
    assert!(wait_for(PATIENCE, has_begun), "{}", told());
    cell.kill("agent");
    cell.kill("master");
    cell.bring_up(&[]).ok();
    let is_even = || (share(&cell, &users[1]).0 - 500_000).abs() <= 30_000;
    assert!(wait_for(2 * PATIENCE, is_even), "half within 3 %: {}", told());
    cell.admin(&["qdel", "-u", &users.join(",")]).ok();
    let is_idle = || cell.admin(&["qstat", "-u", "*"]).ok().out.is_empty();
    assert!(wait_for(PATIENCE, is_idle), "{}", cell.admin(&["qstat", "-u", "*"]).out);
    for user in &users {
        // What is shown is as of the last pass.
        let both = || (share(&cell, user).1, accounted(&cell, user));
        let is_same = || both().0 - both().1 < 0.01 && both().1 - both().0 < 0.01;
        assert!(
            wait_for(PATIENCE, is_same),
            "{user}: charged and accounted {:?}",
            both()
        );
    }
}
