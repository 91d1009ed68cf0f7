//! The account that tasks run as in tests: made when the first test needs it, removed by the last.

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{Uid, User};
use std::fs::{File, OpenOptions};
use std::process::Command;

const NAME: &str = "gridwright-test";

/// A user of this host, for as long as the value lives.
pub struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    pub group: String,
    users: Option<File>,
}

fn open(name: &str) -> File {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(std::env::temp_dir().join(name))
        .unwrap()
}

fn making() -> Flock<File> {
    Flock::lock(open("gridwright-test-account.making"), FlockArg::LockExclusive)
        .map_err(|(_, errno)| errno)
        .unwrap()
}

impl Account {
    pub fn take() -> Self {
        if !Uid::effective().is_root() {
            let user = User::from_uid(Uid::effective()).unwrap().unwrap();
            return Self::from_user(&user, None);
        }
        let _making = making();
        let users = open("gridwright-test-account.users");
        hold_shared(&users);
        if User::from_name(NAME).unwrap().is_none() {
            let made = Command::new("useradd")
                .args(["--no-log-init", "--create-home", "--shell", "/bin/bash", NAME])
                .status();
            assert!(made.unwrap().success(), "useradd");
        }
        Self::from_user(&User::from_name(NAME).unwrap().unwrap(), Some(users))
    }

    fn from_user(user: &User, users: Option<File>) -> Self {
        let gid = user.gid.as_raw();
        let group = gridwright_shepherd::account::group_name(gid).unwrap_or_default();
        Account {
            name: user.name.clone(),
            uid: user.uid.as_raw(),
            gid,
            group,
            users,
        }
    }
}

/// A shared lock that lasts as long as the file is open.
fn hold_shared(file: &File) {
    let lock = Flock::lock(file.try_clone().unwrap(), FlockArg::LockShared)
        .map_err(|(_, errno)| errno)
        .unwrap();
    std::mem::forget(lock);
}

impl Drop for Account {
    fn drop(&mut self) {
        let Some(users) = self.users.take() else { return };
        let _making = making();
        if Flock::lock(users, FlockArg::LockExclusiveNonblock).is_ok() {
            let _ = Command::new("userdel")
                .args(["--remove", NAME])
                .stderr(std::process::Stdio::null())
                .status();
        }
    }
}
