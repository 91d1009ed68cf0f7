//! Devices that are kept from tasks, on hosts where root can do so. Elsewhere a task that needs it
//! does not start, which is tested everywhere.

use super::cell::{Cell, failed};
use proto::launch::LaunchDocument;
use std::fs;

/// A task of whose devices the maps of its host name three: it has one, may read the second, and
/// does not have the third.
fn with_devices(cell: &mut Cell, command: &str) -> LaunchDocument {
    LaunchDocument {
        own_group: Some(true),
        devices_granted: ["/dev/null:rw", "/dev/zero:r"].map(str::to_owned).to_vec(),
        devices_withheld: vec!["/dev/full".to_owned()],
        ..cell.shell(command)
    }
}

fn keeps_devices(cell: &Cell) -> bool {
    let limits = fs::read_to_string(cell.dir.join("run/launcher/limits")).unwrap();
    limits.contains("devices of resource maps: kept")
}

#[test]
fn a_task_opens_its_own_devices_and_those_that_no_map_names_and_no_other() {
    let mut cell = Cell::start();
    if !keeps_devices(&cell) {
        return;
    }
    let command = "for how in '</dev/full' '>/dev/full' '</dev/zero' '>/dev/zero' '</dev/urandom' '>/dev/null'; do \
                   (eval \"exec 3$how\") 2>/dev/null && echo \"$how\"; done; true";
    let document = with_devices(&mut cell, command);
    let result = cell.run_document(document);
    assert_eq!(
        cell.output(&result, 'o'),
        "</dev/zero\n</dev/urandom\n>/dev/null\n",
        "{result:?}"
    );
    // The wall is the task's own: the next one has the devices that its maps do not name.
    let result = cell.run("exec 3</dev/full && echo open");
    assert_eq!(cell.output(&result, 'o'), "open\n");
}

#[test]
fn a_task_from_which_devices_cannot_be_kept_does_not_start() {
    let mut cell = Cell::start();
    let document = LaunchDocument {
        own_group: None,
        ..with_devices(&mut cell, "echo it runs > trace")
    };
    let result = cell.run_document(document);
    let (code, text) = failed(&result);
    assert_eq!(code, proto::launch::FailedCodes::BEFORE_PROLOG, "{text}");
    assert!(text.contains("it has no control group"), "{text}");
    assert!(!cell.work.join("trace").exists());
}

#[test]
fn a_task_does_not_start_without_a_device_that_it_is_granted() {
    let mut cell = Cell::start();
    if !keeps_devices(&cell) {
        return;
    }
    for (granted, why) in [
        ("/dev/no-such-device:rw", "cannot be found"),
        ("/etc/passwd:r", "is not a device"),
    ] {
        let document = LaunchDocument {
            devices_granted: vec![granted.to_owned()],
            ..with_devices(&mut cell, "true")
        };
        let result = cell.run_document(document);
        let (_, text) = failed(&result);
        assert!(text.contains(why), "{granted}: {text}");
    }
}
