//! Parameters of the configuration whose effect shows in a real cell only.

use gridwright_tests::cell::{Cell, CommandOutput, CommandUser, wait_until};

#[test]
fn an_idle_watcher_in_the_directory_of_binaries_is_a_load_sensor_if_it_is_wanted() {
    let cell = Cell::up();
    let binaries = std::fs::read_dir(cell.dir().join("bin"))
        .unwrap()
        .flatten()
        .next()
        .expect("one kind of machine");
    let text = |name: &str| {
        format!(
            "#!/bin/sh\nwhile read word; do test \"$word\" = quit && exit; echo begin; echo $HOST:{name}:7; echo end; done\n"
        )
    };
    cell.add_complex("idle idle INT <= YES NO 0 0\nmore more INT <= YES NO 0 0");
    for (program, value) in [("qidle", "idle"), ("qloadsensor", "more")] {
        let file = cell.write_top(program, &text(value), 0o755);
        std::fs::rename(file, binaries.path().join(program)).unwrap();
    }
    let value = |name: &str| cell.user(&["qhost", "-F", name]).ok().out;
    cell.set_global("load_report_time", "0:0:1");
    // The one needs no parameter, so what it says shows that the other is not run.
    wait_until(|| value("more"), || value("more").contains("hl:more=7"));
    assert!(!value("idle").contains("idle="), "{}", value("idle"));
    cell.set_global("execd_params", "USE_QIDLE=true");
    wait_until(|| value("idle"), || value("idle").contains("hl:idle=7"));
}

#[test]
fn jobs_inherit_what_the_agent_was_started_with_if_the_cell_wants_it() {
    let cell = Cell::up();
    cell.kill("agent");
    let mut command = cell.command(CommandUser::Admin, &cell.programs().gridwright());
    command
        .env("SITE_LICENCE", "1055@server")
        .env("NOTIFY_SOCKET", "/nowhere");
    command.args([
        "up",
        "--dir",
        &cell.dir().display().to_string(),
        "--detach",
        "--port",
        "0",
    ]);
    CommandOutput::run(command).ok();
    let script = "#!/bin/sh\necho $SITE_LICENCE,$NOTIFY_SOCKET,$JOB_NAME,$HOME\n";
    let printed = |cell: &Cell| cell.output(&cell.run_script(script, &["-N", "inherits"]));
    let home = cell.account().home.display().to_string();
    assert_eq!(printed(&cell), format!(",,inherits,{home}\n"));
    cell.set_global("execd_params", "INHERIT_ENV=true");
    assert_eq!(printed(&cell), format!("1055@server,,inherits,{home}\n"));
}

/// `tail` keeps a line without an end in memory.
const TEN_TIMES_20_MB: &str = "#!/bin/bash\n#$ -l h_vmem=100M\nulimit -v\n\
    for i in 1 2 3 4 5 6 7 8 9 10; do head -c 20M /dev/zero | tail -n 1 | sleep 600 & done\nwait\n";

#[test]
fn h_vmem_limits_memory_in_use_by_the_whole_task_if_the_cell_wants_it() {
    let cell = Cell::up();
    let shown = cell.admin(&["qconf", "-sconf", "global"]).ok().out;
    let kept = shown.lines().filter(|line| !line.starts_with("execd_params"));
    let text: String = kept
        .chain(["execd_params H_VMEM=swap"])
        .map(|line| format!("{line}\n"))
        .collect();
    let file = cell.write_top("global", &text, 0o644).display().to_string();
    let refused = cell.admin(&["qconf", "-Mconf", &file]);
    let said = refused.out + &refused.err;
    assert!(refused.code != 0 && said.contains("address or memory"), "{said}");
    cell.set_global("execd_params", "H_VMEM=memory");
    let limits = std::fs::read_to_string(cell.dir().join("run/launcher/limits")).unwrap();
    let record = cell.run_script(TEN_TIMES_20_MB, &[]);
    if limits.contains("H_VMEM=memory: not possible") {
        let said = record.value("not_set");
        assert!(said.contains("h_vmem limits address space"), "{record:?}");
        return;
    }
    assert_eq!(record.number("failed"), 37, "{record:?}");
    let limit = record.value("limit");
    assert!(
        limit.starts_with("h_vmem=100.000M reached") && limit.ends_with("(certain)"),
        "{limit}"
    );
    assert_eq!(cell.output(&record), "unlimited\n");
}

#[test]
fn the_master_ends_a_job_whose_time_is_over_on_an_unknown_host() {
    let cell = Cell::up();
    cell.set_global("max_unheard", "0:0:5");
    cell.set_global("qmaster_params", "ENABLE_ENFORCE_MASTER_LIMIT=true");
    cell.set_scheduler("params", "DURATION_OFFSET=0:0:1");
    let job = cell.submit(&["-l", "h_rt=3", "-b", "y", "sleep", "600"]);
    cell.wait_for_state(&job, "r");
    cell.kill("agent");
    let record = cell.accounted(&job, 1).remove(0);
    assert_eq!(record.number("failed"), 37, "{record:?}");
    assert!(record.value("limit").contains("h_rt"), "{record:?}");
    let first = record.value("failed").to_owned();
    cell.bring_up(&[]).ok();
    // The host ended it by itself; its word comes too late to count.
    let next = cell.run_script("#!/bin/sh\ntrue\n", &[]);
    assert_eq!(
        (next.value("failed"), cell.accounted(&job, 1).len()),
        ("0", 1),
        "{first}"
    );
}
