//! The units of systemd, as far as they can be judged without booting. `e2e/systemd.sh` boots them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Tenths of the exposure that `systemd-analyze security` may find in master and agent.
const EXPOSURE_TENTHS: &str = "20";

fn unit(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd").join(name)
}

/// Whether systemd-analyze is here. Where nothing may be skipped its absence is a failure.
fn can_analyze() -> bool {
    let is_here = Command::new("systemd-analyze").arg("--version").output().is_ok();
    assert!(
        is_here || std::env::var_os("GRIDWRIGHT_TESTS_STRICT").is_none(),
        "systemd-analyze is missing: install systemd"
    );
    is_here
}

#[test]
fn master_and_agent_are_exposed_little() {
    if !can_analyze() {
        return;
    }
    for name in ["gridwright-master.service", "gridwright-agent.service"] {
        let mut command = Command::new("systemd-analyze");
        command.args(["security", "--offline=yes", "--no-pager"]);
        command.arg(format!("--threshold={EXPOSURE_TENTHS}")).arg(unit(name));
        let judged = command.output().unwrap();
        let table = String::from_utf8_lossy(&judged.stdout);
        assert!(judged.status.success(), "{name}: {table}");
        assert_eq!(String::from_utf8_lossy(&judged.stderr), "", "{name}");
    }
}

/// Options that jobs would inherit from their launcher, or that keep setuid mailers from working.
const INHERITED: [&str; 12] = [
    "NoNewPrivileges=",
    "CapabilityBoundingSet=",
    "Restrict",
    "SystemCall",
    "Protect",
    "Private",
    "LockPersonality=",
    "MemoryDenyWriteExecute=",
    "ReadWritePaths=",
    "ReadOnlyPaths=",
    "InaccessiblePaths=",
    "UMask=",
];

#[test]
fn units_that_start_programs_of_users_hand_nothing_down_and_say_why() {
    for name in ["gridwright-launcher.service", "gridwright-mail@.service"] {
        let text = std::fs::read_to_string(unit(name)).unwrap();
        let option = text
            .lines()
            .find(|line| INHERITED.iter().any(|option| line.starts_with(option)));
        assert_eq!(option, None, "{name}");
        assert!(text.contains("must not be sandboxed: "), "{name} does not say why");
    }
}
