//! The sensors in `sensors/scripts`, each with a stand-in for the command it calls, and without
//! that command.

use crate::driver::{Directory, SensorRun};
use gridwright_sensors::protocol::{Action, Settings, Signal};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name)
}

/// A shipped script, its arguments, and the programs that it finds before everything else on its
/// PATH.
struct Case<'a> {
    script: &'a str,
    arguments: &'a [&'a str],
    stand_ins: &'a [(&'a str, &'a str)],
}

/// The values of the second answer.
fn values(case: &Case<'_>) -> BTreeMap<String, String> {
    let directory = Directory::new();
    for (name, text) in case.stand_ins {
        directory.program(name, text);
    }
    let search_path = format!("{}:/usr/bin:/bin", directory.path().display());
    // No deadline is of interest here, and a busy machine may take its time.
    let settings = Settings {
        interval_ms: 0,
        deadline_ms: 600_000,
        quit_wait_ms: 600_000,
        ..Settings::default()
    };
    let mut run = SensorRun::new(&shipped(case.script), case.arguments, &search_path, settings);
    run.until("the first answer", |run| run.transcript.blocks() == 1);
    run.request();
    run.until("the second answer", |run| run.transcript.blocks() == 2);
    let fresh = run.machine.values_for_report(run.now()).unwrap();
    run.stop();
    run.until("its end", |run| run.has(&Action::Ended));
    assert!(
        !run.has(&Action::SignalGroup(Signal::Terminate)),
        "{} ignores quit",
        case.script
    );
    assert_eq!(run.transcript.warnings(), 0, "{}", run.told.join("\n"));
    let host = |spec| format!("{spec:?}").to_lowercase();
    fresh
        .block
        .values()
        .iter()
        .map(|((spec, name), value)| (format!("{}:{name}", host(spec)), value.clone()))
        .collect()
}

fn check(case: &Case<'_>, expected: &[(&str, &str)]) {
    let expected: BTreeMap<String, String> = expected
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    assert_eq!(values(case), expected, "{}", case.script);
}

#[test]
fn logins_counts_each_user_once() {
    let who = "#!/bin/sh\necho 'ann  pts/0  2026-11-21 01:00 (a)'\necho 'bob  pts/1  2026-11-21 01:00'\necho 'ann  pts/2  2026-11-21 01:00'\n";
    check(
        &Case {
            script: "logins.sh",
            arguments: &[],
            stand_ins: &[("who", who)],
        },
        &[("this:logins", "2")],
    );
}

#[test]
fn logins_is_zero_where_nobody_is_logged_in_or_who_is_missing() {
    let empty = "#!/bin/sh\nexit 0\n";
    check(
        &Case {
            script: "logins.sh",
            arguments: &[],
            stand_ins: &[("who", empty)],
        },
        &[("this:logins", "0")],
    );
    let missing = "#!/bin/sh\necho 'who: not found' >&2\nexit 127\n";
    check(
        &Case {
            script: "logins.sh",
            arguments: &[],
            stand_ins: &[("who", missing)],
        },
        &[("this:logins", "0")],
    );
}

#[test]
fn diskfree_reports_each_directory_that_exists() {
    let df = "#!/bin/sh\necho 'Filesystem 1024-blocks Used Available Capacity Mounted on'\n\
              case $2 in /tmp) echo '/dev/vda 100 25 75 25% /tmp';; /) echo '/dev/vdb 1000 1 999 1% /';; esac\n";
    let case = Case {
        script: "diskfree.sh",
        arguments: &["/tmp", "/", "/does/not/exist"],
        stand_ins: &[("df", df)],
    };
    check(&case, &[("this:tmp_free", "75K"), ("this:root_free", "999K")]);
}

#[test]
fn diskfree_says_nothing_where_df_fails() {
    let df = "#!/bin/sh\necho 'df: not found' >&2\nexit 127\n";
    check(
        &Case {
            script: "diskfree.sh",
            arguments: &["/tmp"],
            stand_ins: &[("df", df)],
        },
        &[],
    );
}

const NVIDIA_SMI: &str = "#!/bin/sh\ncase $1 in\n\
    --query-gpu=*) echo '0, GPU-aaa, 1000, 97, NVIDIA A100-SXM4-40GB'\n\
    echo '1, GPU-bbb, 40000, 0, NVIDIA A100-SXM4-40GB'\n\
    echo '2, GPU-ccc, 39000, [N/A], NVIDIA A100 MIG';;\n\
    --query-compute-apps=*) echo GPU-aaa; echo GPU-aaa;;\nesac\n";

#[test]
fn nvidia_reports_all_gpus_and_which_are_free() {
    let case = Case {
        script: "nvidia.sh",
        arguments: &[],
        stand_ins: &[("nvidia-smi", NVIDIA_SMI)],
    };
    check(
        &case,
        &[
            ("this:gpu_count", "3"),
            ("this:gpu_free", "2"),
            ("this:gpu_mem_free", "40000M"),
            ("this:gpu_util", "48.5"),
            ("this:gpu.0.mem_free", "1000M"),
            ("this:gpu.0.util", "97"),
            ("this:gpu.0.name", "NVIDIA A100-SXM4-40GB"),
            ("this:gpu.1.mem_free", "40000M"),
            ("this:gpu.1.util", "0"),
            ("this:gpu.1.name", "NVIDIA A100-SXM4-40GB"),
            ("this:gpu.2.mem_free", "39000M"),
            ("this:gpu.2.name", "NVIDIA A100 MIG"),
        ],
    );
}

/// A stand-in that knows all figures. The second GPU is hot, the third has errors and is divided,
/// the fourth is lost.
const NVIDIA_SMI_OF_ILL: &str = "#!/bin/sh\ncase $1 in\n\
    --query-gpu=index,uuid,memory.free*) for n in 0 1 2; do echo \"$n, GPU-$n, 1000, 0, NVIDIA A100\"; done\n\
    echo '3, GPU-3, [GPU is lost], [GPU is lost], NVIDIA A100';;\n\
    --query-gpu=*) echo '0, GPU-0, 40960, 40, 0, 0000:3B:00.0'; echo '1, GPU-1, 40960, 96, [N/A], 0000:3C:00.0'\n\
    echo '2, GPU-2, 40960, 40, 2, 0000:3D:00.0';;\n\
    -L) echo 'GPU 1: NVIDIA A100 (UUID: GPU-1)'; echo 'GPU 2: NVIDIA A100 (UUID: GPU-2)'\n\
    echo '  MIG 1g.5gb      Device  0: (UUID: MIG-x)'; echo '  MIG 1g.5gb      Device  1: (UUID: MIG-y)';;\nesac\n";

#[test]
fn nvidia_names_the_gpus_that_are_ill_with_the_reason() {
    let of = |arguments: &[&str]| {
        let case = Case {
            script: "nvidia.sh",
            arguments,
            stand_ins: &[("nvidia-smi", NVIDIA_SMI_OF_ILL)],
        };
        values(&case)
    };
    let found = of(&[]);
    for (name, value) in [
        ("gpu_free", "1"),
        ("gpu.1.temp", "96"),
        ("gpu.2.ecc", "2"),
        ("gpu.2.mig", "MIG-x;MIG-y"),
        ("gpu.2.mem_total", "40960M"),
        ("devices_ill.1", "GPU-1=96 degrees Celsius"),
        (
            "devices_ill.2",
            "GPU-2=2 uncorrected ECC errors;MIG-x=2 uncorrected ECC errors;MIG-y=2 uncorrected ECC errors",
        ),
        ("devices_ill.3", "GPU-3=the driver cannot ask it"),
    ] {
        assert_eq!(
            found.get(&format!("this:{name}")).map(String::as_str),
            Some(value),
            "{name}"
        );
    }
    let found = of(&["hot=100", "ecc=3"]);
    let ill = found.get("this:devices_ill.1").map(String::as_str);
    assert_eq!(ill, Some("GPU-3=the driver cannot ask it"));
    assert!(!found.contains_key("this:devices_ill.2"), "{found:?}");
}

#[test]
fn nvidia_calls_a_gpu_ill_that_the_driver_no_longer_lists() {
    let falling = "#!/bin/sh\nmarker=$(dirname \"$0\")/asked\ncase $1 in\n\
        --query-gpu=index,uuid,memory.free*) echo '0, GPU-a, 1000, 0, A'\n\
        [ -e \"$marker\" ] || echo '1, GPU-b, 1000, 0, A'; : >\"$marker\";;\nesac\n";
    let found = values(&Case {
        script: "nvidia.sh",
        arguments: &[],
        stand_ins: &[("nvidia-smi", falling)],
    });
    let ill = found.get("this:devices_ill.1").map(String::as_str);
    assert_eq!(ill, Some("GPU-b=the driver no longer lists it"));
    assert_eq!(found.get("this:gpu_count").map(String::as_str), Some("1"));
}

#[test]
fn nvidia_reports_no_gpu_where_the_driver_fails_or_is_missing() {
    let broken =
        "#!/bin/sh\necho \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\"\nexit 9\n";
    check(
        &Case {
            script: "nvidia.sh",
            arguments: &[],
            stand_ins: &[("nvidia-smi", broken)],
        },
        &[("this:gpu_count", "0")],
    );
    check(
        &Case {
            script: "nvidia.sh",
            arguments: &[],
            stand_ins: &[],
        },
        &[("this:gpu_count", "0")],
    );
}

const LMUTIL: &str = "#!/bin/sh\ncat <<'END'\n\
lmutil - Copyright (c) 1989-2015 Flexera Software LLC. All Rights Reserved.\n\
License server status: 27000@lic1\n\
    lic1: license server UP (MASTER) v11.13\n\
Users of MATLAB:  (Total of 10 licenses issued;  Total of 3 licenses in use)\n\
  \"MATLAB\" v39, vendor: MLM\n\
    ann node1 /dev/tty (v39) (lic1/27000 101), start Fri 11/20 9:00\n\
Users of Signal_Toolbox:  (Total of 1 license issued;  Total of 1 license in use)\n\
Users of MATLAB:  (Total of 5 licenses issued;  Total of 0 licenses in use)\n\
Users of BROKEN:  (Error: 4 licenses, unsupported by licensed server)\n\
END\n";

#[test]
fn flexlm_reports_free_licences_for_the_cluster() {
    let stand_ins = [("lmutil", LMUTIL)];
    let case = Case {
        script: "flexlm.sh",
        arguments: &[],
        stand_ins: &stand_ins,
    };
    check(&case, &[("global:matlab", "12"), ("global:signal_toolbox", "0")]);
    let one = Case {
        script: "flexlm.sh",
        arguments: &["27000@lic1", "MATLAB"],
        stand_ins: &stand_ins,
    };
    check(&one, &[("global:matlab", "12")]);
}

#[test]
fn flexlm_reports_nothing_where_the_server_is_away_or_lmutil_is_missing() {
    let away = "#!/bin/sh\necho 'lmgrd is not running: License server machine is down'\nexit 1\n";
    check(
        &Case {
            script: "flexlm.sh",
            arguments: &[],
            stand_ins: &[("lmutil", away)],
        },
        &[],
    );
    check(
        &Case {
            script: "flexlm.sh",
            arguments: &[],
            stand_ins: &[],
        },
        &[],
    );
}
