//! An ordinary account for jobs: made for the test when root runs it, else the caller's own.

use nix::unistd::{Gid, Uid, User};
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
    made: bool,
}

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

    fn new() -> Self {
        let uid = Uid::effective();
        if !uid.is_root() {
            let user = User::from_uid(uid).ok().flatten().expect("the caller of a test is known to the name service");
            return Self::from(user, false);
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("gwt{}x{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let made = Command::new("useradd").args(["--create-home", "--shell", "/bin/bash", &name]).output();
        let made = made.unwrap_or_else(|error| panic!("useradd: {error}"));
        assert!(made.status.success(), "useradd {name}: {}", String::from_utf8_lossy(&made.stderr));
        let user = User::from_name(&name).ok().flatten().expect("useradd has made the account");
        Self::from(user, true)
    }

    fn from(user: User, made: bool) -> Self {
        Self { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw(), home: user.dir, made }
    }

    /// Whether it is another one than the caller's.
    pub fn is_made(&self) -> bool {
        self.made
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
        if self.made {
            super::process::end_all_under(self.uid);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if self.made {
            self.end_processes();
            // Nothing is left to do about an account that cannot be removed.
            let _ = Command::new("userdel").args(["--force", "--remove", &self.name]).output();
        }
    }
}
