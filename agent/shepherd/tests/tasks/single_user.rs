//! All of these tests again as an ordinary user runs them: everything under one uid, without a
//! right of root.

use super::account::Account;
use super::cell::PROGRAM;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

#[test]
fn the_form_of_an_ordinary_user_passes_every_test() {
    if !nix::unistd::Uid::effective().is_root() {
        // This run is the one.
        return;
    }
    let account = Account::take();
    let dir = std::env::temp_dir().join(format!("gridwright-single-user-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    chown(&dir, Some(account.uid), Some(account.gid)).unwrap();
    // A checkout of root's may be closed to others.
    let [tests, program] = [std::env::current_exe().unwrap(), PROGRAM.into()].map(|from: std::path::PathBuf| {
        let to = dir.join(from.file_name().unwrap());
        fs::copy(from, &to).unwrap();
        to
    });
    let mut command = Command::new(tests);
    command.uid(account.uid).gid(account.gid).current_dir(&dir).env_clear();
    command.envs([
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/"),
        ("USER", &account.name),
    ]);
    command.env("TMPDIR", &dir).env("GRIDWRIGHT_SHEPHERD", program);
    // A pipe would stay open as long as any process that a failed test left behind.
    let [out, err] = ["out", "err"].map(|name| dir.join(name));
    command
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&err).unwrap());
    let status = command.status().unwrap();
    let [out, err] = [out, err].map(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned());
    assert!(status.success(), "{out}{err}");
    fs::remove_dir_all(&dir).unwrap();
}
