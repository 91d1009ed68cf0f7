//! Ordinary accounts for jobs: made for the test when root runs it, else the caller's own.

use super::temp::run;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{Gid, Uid, User};
use std::fs::OpenOptions;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// An ordinary account. One that was made for the test is removed with it.
#[derive(Debug)]
pub struct Account {
    /// Login name.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Home directory.
    pub home: PathBuf,
    made: AccountSource,
}

/// Where an account comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccountSource {
    /// It was there.
    Not,
    /// By useradd(8).
    ForTheTest,
    /// In the files of libnss-extrausers, which only hosts ask that say so.
    InExtraUsers,
}

/// The files of the name service module libnss-extrausers.
const EXTRA_USERS: [&str; 2] = ["/var/lib/extrausers/passwd", "/var/lib/extrausers/group"];

/// The account that the cells of this process share while one of them lives.
static SHARED: Mutex<Weak<Account>> = Mutex::new(Weak::new());

impl Account {
    /// The account of this process.
    ///
    /// # Panics
    /// If root cannot make one.
    pub fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let account = Arc::new(Self::new());
            *shared = Arc::downgrade(&account);
            account
        })
    }

    /// Another one, of which there may be several: only root can make it.
    ///
    /// # Panics
    /// If root cannot make it, or somebody else asks.
    pub fn another() -> Self {
        let account = Self::new();
        assert!(account.is_made(), "only root makes accounts");
        account
    }

    fn new() -> Self {
        let uid = Uid::effective();
        if !uid.is_root() {
            let user = User::from_uid(uid)
                .ok()
                .flatten()
                .expect("the caller of a test is known to the name service");
            return Self::from(user, AccountSource::Not);
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("gwt{}x{}", run(), COUNT.fetch_add(1, Ordering::Relaxed));
        let made = Command::new("useradd")
            .args(["--create-home", "--shell", "/bin/bash", &name])
            .output();
        let made = made.unwrap_or_else(|error| panic!("useradd: {error}"));
        assert!(
            made.status.success(),
            "useradd {name}: {}",
            String::from_utf8_lossy(&made.stderr)
        );
        let user = User::from_name(&name)
            .ok()
            .flatten()
            .expect("useradd has made the account");
        Self::from(user, AccountSource::ForTheTest)
    }

    fn from(user: User, made: AccountSource) -> Self {
        Self {
            name: user.name,
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            home: user.dir,
            made,
        }
    }

    /// An account that only libnss-extrausers knows, with a home directory at `home`.
    ///
    /// # Panics
    /// If root cannot make it.
    pub fn in_extra_users(home: &Path) -> Arc<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let uid = (40_000..60_000)
            .rev()
            .skip(number as usize)
            .find(|uid| User::from_uid(Uid::from_raw(*uid)) == Ok(None));
        let uid = uid.expect("there is a free uid");
        let name = format!("gwx{}x{number}", run());
        let account = Self {
            name,
            uid,
            gid: uid,
            home: home.to_owned(),
            made: AccountSource::InExtraUsers,
        };
        let Self { name, .. } = &account;
        let lines = [
            format!("{name}:x:{uid}:{uid}::{}:/bin/sh\n", home.display()),
            format!("{name}:x:{uid}:\n"),
        ];
        for (file, line) in EXTRA_USERS.iter().zip(lines) {
            edit(file, |text| text + &line);
        }
        std::fs::create_dir(home).unwrap_or_else(|error| panic!("{}: {error}", home.display()));
        account.own(home);
        Arc::new(account)
    }

    /// Whether it is another one than the caller's.
    pub fn is_made(&self) -> bool {
        self.made != AccountSource::Not
    }

    /// Gives a file to the account.
    ///
    /// # Panics
    /// If the system refuses that.
    pub fn own(&self, path: &Path) {
        nix::unistd::chown(path, Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Ends all processes of an account that was made for the test.
    pub fn end_processes(&self) {
        if self.is_made() {
            super::process::end_all_under(self.uid);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.end_processes();
        match self.made {
            AccountSource::Not => {}
            // Nothing is left to do about an account that cannot be removed.
            AccountSource::ForTheTest => drop(
                Command::new("userdel")
                    .args(["--force", "--remove", &self.name])
                    .output(),
            ),
            AccountSource::InExtraUsers => {
                let is_other = |line: &&str| line.split(':').next() != Some(&self.name);
                for file in EXTRA_USERS {
                    edit(file, |text| {
                        text.lines().filter(is_other).flat_map(|line| [line, "\n"]).collect()
                    });
                }
            }
        }
    }
}

/// Changes a file that tests of several processes change.
fn edit(path: &str, change: impl FnOnce(String) -> String) {
    let open = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    let file = open.unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut file = Flock::lock(file, FlockArg::LockExclusive).expect("a lock of a file of ours");
    let mut text = String::new();
    file.read_to_string(&mut text).expect("it is text");
    let text = change(text);
    file.set_len(0).and_then(|()| file.rewind()).expect("root may write it");
    file.write_all(text.as_bytes()).expect("root may write it");
}
