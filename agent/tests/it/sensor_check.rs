//! What the author of a sensor is told.

use crate::cell::Directory;
use crate::sensors::{GOOD, program};
use std::process::{Command, Output};

fn check(path: &str) -> Output {
    let uid = nix::unistd::getuid();
    let user = format!("{uid}:{}", nix::unistd::getgid());
    Command::new(env!("CARGO_BIN_EXE_gridwright-agent"))
        .args(["sensor-check", path, "--user", &user])
        .output()
        .unwrap()
}

#[test]
fn a_good_sensor_is_asked_twice_and_told_to_quit() {
    let directory = Directory::new();
    let output = check(&program(directory.path(), "good", GOOD));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("report your values").count(), 2, "{text}");
    assert!(text.contains("-> quit") && text.contains("exit status 0"), "{text}");
    assert!(
        text.lines().last().unwrap().starts_with("good: complete blocks: 2"),
        "{text}"
    );
    assert!(text.starts_with("checking "), "{text}");
}

#[test]
fn a_sensor_that_dies_at_once_fails_the_check() {
    let directory = Directory::new();
    let output = check(&program(
        directory.path(),
        "dies",
        "#!/bin/sh\necho no licence server >&2\nexit 3\n",
    ));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("no licence server") && text.contains("exit status 3"),
        "{text}"
    );
}

#[test]
fn a_script_that_does_not_exist_is_named() {
    let output = check("/no/such/sensor");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("/no/such/sensor"));
}
