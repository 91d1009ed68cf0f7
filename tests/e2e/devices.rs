//! Devices of resource maps: from the map of a host to what a job can open, and from a sensor to
//! who gets which id.

use gridwright_tests::cell::{Cell, CommandOutput, CommandUser, available, is_root, wait_until};
use std::fs;

const UUIDS: [&str; 2] = [
    "GPU-11111111-2222-3333-4444-555555555555",
    "GPU-61111111-2222-3333-4444-555555555555",
];

/// Devices that every machine has stand for GPUs.
fn map(host_devices: [&str; 2]) -> String {
    let ids = ["a", "b"].iter().zip(host_devices).zip(UUIDS);
    let ids = ids.map(|((id, device), uuid)| format!("{id}[devices={device}:rw,uuid={uuid}]"));
    format!("gpu=2({})", ids.collect::<Vec<_>>().join(" "))
}

/// A cell of root whose host has a map of two devices.
fn cell_with(map: &str) -> (Cell, String) {
    let cell = Cell::up();
    let host = cell.admin(&["qconf", "-sel"]).ok().out.trim().to_owned();
    cell.add_complex(
        "gpu gpu RSMAP <= YES YES 0 0\ndevices devices STRING == NO NO NONE 0\nuuid uuid STRING == NO NO NONE 0",
    );
    cell.admin(&["qconf", "-mattr", "exechost", "complex_values", map, &host])
        .ok();
    (cell, host)
}

fn keeps_devices(cell: &Cell) -> bool {
    let limits = fs::read_to_string(cell.dir().join("run/launcher/limits")).unwrap_or_default();
    limits.contains("devices of resource maps: kept")
}

const TRY: &str = "#!/bin/sh\nfor device in full zero null; do\n\
    (exec 3<>/dev/$device) 2>/dev/null && echo opens $device\ndone\n\
    echo ids $SGE_HGR_gpu of $CUDA_VISIBLE_DEVICES in $CUDA_DEVICE_ORDER\n";

#[test]
fn a_job_opens_the_device_of_its_id_and_no_other_job_does() {
    if !available("root", is_root()) {
        return;
    }
    let (cell, host) = cell_with(&map(["/dev/zero", "/dev/full"]));
    if !available("a kernel that keeps devices from tasks", keeps_devices(&cell)) {
        return;
    }
    let shown = cell.admin(&["qhost", "-F", "gpu", "-h", &host]).ok().out;
    assert!(shown.contains("hc:gpu=2.000000 (a b)"), "{shown}");
    let listed = cell.admin(&["qconf", "-se", &host]).ok().out;
    let joined = listed.replace("\\\n", "").split_whitespace().collect::<String>();
    assert!(
        joined.contains(&map(["/dev/zero", "/dev/full"]).replace(' ', "")),
        "{listed}"
    );
    let with = cell.run_script(TRY, &["-l", "gpu=1"]);
    let expected = format!("opens zero\nopens null\nids a of {} in PCI_BUS_ID\n", UUIDS[0]);
    assert_eq!(cell.output(&with), expected);
    let without = cell.run_script(TRY, &[]);
    assert_eq!(cell.output(&without), "opens null\nids of in\n");
    let both = cell.run_script(TRY, &["-l", "gpu=2"]);
    assert!(
        cell.output(&both)
            .starts_with("opens full\nopens zero\nopens null\nids a b of GPU-1")
    );
    // The doctor finds a file that is not there, and a job that is granted it does not start.
    let wrong = map(["/dev/no-such-device", "/dev/full"]);
    cell.admin(&["qconf", "-mattr", "exechost", "complex_values", &wrong, &host])
        .ok();
    let said = cell.admin(&["doctor", "--dir", &cell.dir_word()]).out;
    assert!(said.contains("gpu:a names /dev/no-such-device"), "{said}");
    let job = cell.submit(&["-l", "gpu=1", "-b", "y", "true"]);
    let reason = || cell.admin(&["qstat", "-f", "-explain", "E"]).out + &cell.state_of(&job);
    wait_until(reason, || {
        reason().contains("/dev/no-such-device, which the task is granted")
    });
    cell.admin(&["qdel", "-f", &job]);
}

#[test]
fn an_id_that_a_sensor_calls_ill_is_not_given_out_and_explain_says_so() {
    let map = format!("gpu=2(a[uuid={}] b[uuid={}])", UUIDS[0], UUIDS[1]);
    let (cell, host) = cell_with(&map);
    let sensor = "#!/bin/sh\nwhile read line; do\n[ \"$line\" = quit ] && exit 0\n\
        echo begin\necho \"$(uname -n):devices_ill:$(cat ILL)\"\necho end\ndone\n";
    let ill = cell.write_top("ill", &format!("{}=it is too hot\n", UUIDS[0]), 0o644);
    let text = sensor.replace("ILL", &ill.display().to_string());
    let program = cell.write_top("ill.sh", &text, 0o755).display().to_string();
    cell.set_global("load_sensor", &program);
    cell.set_global("load_report_time", "00:00:01");
    let free = || cell.user(&["qhost", "-F", "gpu", "-h", &host]).out;
    wait_until(free, || free().contains("hc:gpu=1.000000 (b)"));
    let one = cell.run_script("#!/bin/sh\necho $SGE_HGR_gpu\n", &["-l", "gpu=1"]);
    assert_eq!(cell.output(&one), "b\n");
    let two = cell.submit(&["-l", "gpu=2", "-b", "y", "true"]);
    let said = || cell.user(&["explain", &two]).out;
    wait_until(said, || said().contains("a is ill: it is too hot"));
    fs::write(&ill, format!("{}=unknown\n", "GPU-of-another-host")).expect("a file of the test");
    cell.accounted(&two, 1);
}

/// The program `nvidia-smi` of a host with one GPU.
const NVIDIA_SMI: &str = "#!/bin/sh\ncase $1 in\n\
    -q) echo 'GPU 00000000:3B:00.0'; echo '    Product Name : NVIDIA T4'; echo '    GPU UUID : GPU-1'\n\
    echo '    Minor Number : 0';;\n\
    -L) echo 'GPU 0: NVIDIA T4 (UUID: GPU-1)';;\nesac\n";

#[test]
fn the_map_of_a_host_is_suggested_and_missing_gpus_are_named() {
    let (cell, _) = cell_with("gpu=1(a[uuid=GPU-9])");
    let program = cell.write_top("nvidia-smi", NVIDIA_SMI, 0o755);
    let folder = program.parent().expect("a file is in a folder").display().to_string();
    let run = |words: &[&str]| {
        let mut command = cell.command(CommandUser::Admin, &cell.programs().gridwright());
        command.args(words).env("PATH", format!("{folder}:/usr/bin:/bin"));
        CommandOutput::run(command).out
    };
    let suggested = run(&["resources", "suggest"]);
    let line = "\ngpu=1(gpu0[devices=/dev/nvidia0:rw,uuid=GPU-1])\n";
    assert!(suggested.contains(line), "{suggested}");
    let said = run(&["doctor", "--dir", &cell.dir_word()]);
    for words in ["gpu:a has uuid=GPU-9", "no resource map of this host names GPU-1"] {
        assert!(said.contains(words), "{said}");
    }
    let none = cell.admin(&["resources", "suggest"]);
    assert_eq!(none.code, 1, "{none}");
}
