//! The state directory of a cell: which file is where (ARCHITECTURE.md "Storage").
//!
//! ```text
//! DIR/etc/cell.toml          what all daemons of the cell agree on; readable by everybody
//! DIR/etc/master.toml        settings of the master, every key with its meaning
//! DIR/etc/agent.toml         settings of this machine's agent
//! DIR/etc/directory          which directory this is, by the launcher: no daemon runs in a copy
//! DIR/master/state.db        event log, snapshots, accounting records (SQLite; with -wal and -shm)
//! DIR/master/reserve         room that is given up for the event log when the disk is full
//! DIR/master/ca.crt ca.key   the cluster CA; whoever reads the key can admit hosts
//! DIR/master/master.crt .key what the master serves with
//! DIR/master/tickets.key     keys of TLS session tickets
//! DIR/agent/host.crt .key    certificate and key of this machine's agent
//! DIR/agent/ca.crt           the CA that the agent trusts
//! DIR/accounting/            accounting, accounting.jsonl, and what they were turned over to
//! DIR/tasks/                 one directory a task, made by the launcher; marks: by which the
//!                            master knows this directory again
//! DIR/run/NAME/              one directory for each daemon, which alone makes files there:
//!                            launcher, master, agent, sim
//! DIR/run/master/lock        held while the master lives
//! DIR/run/master/pid         its process id, for people
//! DIR/run/master/master.sock commands talk to the master here
//! DIR/run/master/ready       exists while the master answers
//! DIR/log/master.log         its log, where asked for; master.log.1 and .2 are what was before
//! DIR/bin/ARCH/              links of the q* names to the gridwright program
//! DIR/lib/ARCH/              libdrmaa.so, if this host has it, and pkgconfig/drmaa.pc
//! DIR/include/drmaa.h        its header
//! DIR/default/common/        settings.sh settings.csh bootstrap act_qmaster accounting reporting
//!                            schedd_runlog schedule; accounting is a link to the one above
//! DIR/mpi/                   parallel environments for message passing libraries, for qconf -Ap
//! DIR/util/arch              prints ARCH
//! DIR/utilbin/ARCH/          now, filestat, checkuser, uidgid, gethostname, gethostbyname,
//!                            gethostbyaddr; loadcheck is a link to the agent's program
//! ```
//!
//! Keys are readable by their owner only, directories that hold them too.

use folder::Folder;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the one cell below a state directory, as `SGE_CELL` has it.
pub const CELL_NAME: &str = "default";

/// The paths below a state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    dir: PathBuf,
}

impl Layout {
    /// The layout below `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The state directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// `etc/NAME`.
    pub fn etc(&self, name: &str) -> PathBuf {
        self.dir.join("etc").join(name)
    }

    /// `master/NAME`.
    pub fn master(&self, name: &str) -> PathBuf {
        self.dir.join("master").join(name)
    }

    /// `agent/NAME`.
    pub fn agent(&self, name: &str) -> PathBuf {
        self.dir.join("agent").join(name)
    }

    /// The master's own directory `run/master`, which is made if it is missing.
    ///
    /// # Errors
    /// If it belongs to another user, or cannot be made.
    pub fn folder(&self) -> io::Result<Folder> {
        let run = self.dir.join("run");
        let path = run.join("master");
        let opened = std::fs::create_dir_all(&run).and_then(|()| Folder::open(&path));
        opened.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }

    /// `accounting/NAME`.
    pub fn accounting(&self, name: &str) -> PathBuf {
        self.dir.join("accounting").join(name)
    }

    /// `default/common/NAME`.
    pub fn common(&self, name: &str) -> PathBuf {
        self.dir.join(CELL_NAME).join("common").join(name)
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.master("state.db")
    }
}
