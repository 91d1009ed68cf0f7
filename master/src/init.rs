//! `gridwright-master init`: makes a new cell in a directory.
//!
//! A cell comes to be in one step that can be repeated: until `etc/cell.toml` is there, which is
//! written last, a directory holds no cell and what a broken attempt left is overwritten. The
//! master's database is complete before that.

mod identity;
#[cfg(test)]
mod libraries;
mod library;
mod objects;
#[cfg(test)]
mod tests;
mod tree;

use crate::clock::wall_now;
use crate::config::{self, AGENT_KEYS, CELL_KEYS, CellConfig, ConfigError, MASTER_KEYS};
use crate::layout::Layout;
use crate::store::{Store, StoreError};
use identity::Identity;
use master_core::core::Core;
use master_core::effect::Step;
use master_core::event::{Actor, Event, Record};
use proto::id::{CellId, EventSeq, HostName, UserName};
use proto::limit::VmemMeaning;
use proto::time::{Now, Tick, Wall};
use quic::Serial;
use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tree::ClassicFiles;

/// The UDP port of the master unless `SGE_QMASTER_PORT` or `--port` says otherwise.
pub const DEFAULT_PORT: u16 = 6444;

/// What the new cell is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The state directory.
    pub dir: PathBuf,
    /// The master's UDP port.
    pub port: u16,
    /// Slots of `all.q` on each host.
    pub slots: u32,
    /// This host's name.
    pub host: HostName,
    /// The user who makes the cell and manages it, beside root.
    pub user: UserName,
    /// What `h_vmem` limits.
    pub vmem: VmemMeaning,
}

/// The directory and the unit files of a cell whose tasks get their groups from systemd.
const DIRECTORY_OF_UNITS: &str = "/var/lib/gridwright";
const UNIT_FILES: [&str; 3] = [
    "/usr/lib/systemd/system/gridwright-jobs.service",
    "/lib/systemd/system/gridwright-jobs.service",
    "/etc/systemd/system/gridwright-jobs.service",
];

/// What `h_vmem` limits in a new cell: memory, if this host can limit that for its jobs.
pub fn vmem_of_host(dir: &Path) -> VmemMeaning {
    let groups = Path::new("/sys/fs/cgroup");
    let is_root = nix::unistd::Uid::effective().is_root();
    let can = if Path::new("/run/systemd/system").is_dir() {
        // systemd passes each controller that it has on to the unit.
        let has_unit = UNIT_FILES.iter().any(|file| Path::new(file).is_file());
        has_unit && dir == Path::new(DIRECTORY_OF_UNITS) && limits_memory(groups, "cgroup.controllers")
    } else {
        // Groups are made in the group of the launcher, which is the one of this process.
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
        own.is_some_and(|own| limits_memory(groups, &format!("{own}/cgroup.subtree_control")))
    };
    if is_root && can {
        VmemMeaning::Memory
    } else {
        VmemMeaning::Address
    }
}

/// Whether a list of controllers of the second version has memory.
fn limits_memory(groups: &Path, list: &str) -> bool {
    let roots = [groups.to_owned(), groups.join("unified")];
    let root = roots.iter().find(|root| root.join("cgroup.controllers").is_file());
    let text = root.and_then(|root| std::fs::read_to_string(root.join(list.trim_start_matches('/'))).ok());
    text.is_some_and(|text| text.split_ascii_whitespace().any(|name| name == "memory"))
}

/// A cell cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The directory holds one already.
    #[error("{} holds a cell already", path.display())]
    Exists {
        /// Its file.
        path: PathBuf,
    },
    /// A file cannot be made.
    #[error("cannot write {}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// Others than the user who makes the cell can make names in its directory.
    #[error("{0} is somebody else's: {why}; run it as that user, or: chown root {0}; chmod go-w {0}", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// A key or certificate cannot be made.
    #[error("cannot make the keys of the cell")]
    Identity(#[from] quic::IdentityError),
    /// The system gives no random numbers.
    #[error("the system gave no random numbers")]
    NoRandomness,
    /// The database cannot be made.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What the cell's own file says cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Makes the cell.
///
/// # Errors
/// As [`InitError`]. What was written by then is overwritten by the next attempt.
pub fn init(plan: &Plan) -> Result<CellId, InitError> {
    let layout = Layout::new(&plan.dir);
    let marker = layout.etc("cell.toml");
    if marker.exists() {
        return Err(InitError::Exists { path: marker });
    }
    let (cell, now) = (CellId(random_number()?), wall_now());
    tree::make_directories(&layout)?;
    let identity = Identity::create(cell, &plan.host, now)?;
    identity.write(&layout)?;
    make_database(&layout, plan, cell, &identity, now)?;
    tree::write_classic_files(
        &layout,
        &ClassicFiles {
            master_host: &plan.host,
            port: plan.port,
            user: &plan.user,
        },
    )?;
    tree::make_files_of_master(&layout)?;
    write_configuration(&layout, plan)?;
    let set = [
        ("cell", format!("{:016x}", cell.0)),
        ("master_host", plan.host.to_string()),
        ("port", plan.port.to_string()),
    ];
    tree::write(
        &marker,
        &config::document("What all daemons of this cell agree on.", CELL_KEYS, &set),
        0o644,
    )?;
    Ok(cell)
}

/// Writes the files that site scripts and `gridwright env` look for into the directory of a host
/// that has joined, from its `etc/cell.toml`. It may be repeated.
///
/// # Errors
/// `Config` if the directory belongs to no cell, `Unwritable` if a file cannot be made.
pub fn write_tree(dir: &Path, user: &UserName) -> Result<(), InitError> {
    let layout = Layout::new(dir);
    let CellConfig {
        cell: _,
        master_host,
        port,
    } = CellConfig::read(&layout.etc("cell.toml"))?;
    tree::write_classic_files(
        &layout,
        &ClassicFiles {
            master_host: &master_host,
            port,
            user,
        },
    )
}

/// Makes every directory of a cell on its master's host, with the rights that its content needs.
///
/// # Errors
/// `Unwritable`, `Foreign`.
pub fn make_directories(layout: &Layout) -> Result<(), InitError> {
    tree::make_directories(layout)
}

/// Writes the files of a restored cell that follow from its settings, and empty ones for the master
/// to write.
///
/// # Errors
/// See [`write_tree`].
pub fn write_tree_of_master(dir: &Path, user: &UserName) -> Result<(), InitError> {
    write_tree(dir, user)?;
    tree::make_files_of_master(&Layout::new(dir))
}

/// The database with the first events of the cell.
fn make_database(layout: &Layout, plan: &Plan, cell: CellId, identity: &Identity, now: Wall) -> Result<(), InitError> {
    let path = layout.database();
    for leftover in ["state.db", "state.db-wal", "state.db-shm"] {
        let path = layout.master(leftover);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(InitError::Unwritable { path, source });
            }
            Ok(()) | Err(_) => {}
        }
    }
    let mut store = Store::create(&path)?;
    let certificate = (identity.agent_serial, identity.agent_not_after);
    store.append(&first_events(plan, cell, certificate, now))?;
    drop(store);
    tree::set_mode(&path, 0o600)
}

/// What the core says of a new cell, and the certificate of its first host.
fn first_events(plan: &Plan, cell: CellId, certificate: (Serial, Wall), now: Wall) -> Vec<Arc<Record>> {
    let now = Now {
        tick: Tick(0),
        wall: now,
    };
    let (core, Step { mut events, effects: _ }) = Core::create(cell, objects::first_objects(plan), now);
    let (serial, not_after) = certificate;
    events.push(Arc::new(Record {
        seq: EventSeq(core.state().last.0 + 1),
        now,
        actor: Actor::Master,
        request: None,
        event: Event::CertificateIssued {
            host: plan.host.clone(),
            serial: serial.to_string(),
            not_after,
        },
    }));
    events
}

#[cfg(test)]
pub(crate) fn first_events_of(plan: &Plan, cell: CellId, now: Wall) -> Vec<Record> {
    let serial = "000000000000000000000000000000ab"
        .parse()
        .expect("32 digits are a serial");
    let events = first_events(plan, cell, (serial, Wall(now.0 + 1)), now);
    events.into_iter().map(Arc::unwrap_or_clone).collect()
}

fn write_configuration(layout: &Layout, plan: &Plan) -> Result<(), InitError> {
    let master = config::document("Settings of the master.", MASTER_KEYS, &[]);
    tree::write(&layout.etc("master.toml"), &master, 0o644)?;
    let set = [
        ("host", plan.host.to_string()),
        ("master_host", plan.host.to_string()),
        ("port", plan.port.to_string()),
    ];
    let agent = config::document("Settings of this machine's agent.", AGENT_KEYS, &set);
    tree::write(&layout.etc("agent.toml"), &agent, 0o644)
}

fn random_number() -> Result<u64, InitError> {
    let mut bytes = [0; 8];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| InitError::NoRandomness)?;
    Ok(u64::from_be_bytes(bytes))
}

/// The name of this machine as `hostname` says it, in the canonical form: the part before the first
/// dot, in lower case.
pub fn this_host() -> HostName {
    let name = nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .unwrap_or_default();
    let host = HostName::new(name.split('.').next().unwrap_or_default());
    if host.as_str().is_empty() {
        HostName::new("localhost")
    } else {
        host
    }
}

/// How many processors this process may use.
pub fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> InitError {
    let path = path.to_owned();
    move |source| InitError::Unwritable { path, source }
}
