//! The directories of a new cell, and the files that site scripts expect below `SGE_ROOT`, on the
//! master's host and on the others.

use super::{InitError, unwritable};
use crate::layout::{CELL_NAME, Layout};
use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use proto::host::arch;
use proto::id::{HostName, UserName};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::Path;

/// Files of `default/common` that the master writes, beside `accounting`. It makes none there
/// itself.
const WRITTEN_BY_THE_MASTER: [&str; 3] = ["reporting", "schedd_runlog", "schedule"];

/// Write permission of group and others.
const WRITABLE: u32 = 0o022;

/// The names that the one program answers to.
const COMMANDS: &[&str] = &[
    "qsub",
    "qstat",
    "qconf",
    "qhost",
    "qdel",
    "qalter",
    "qhold",
    "qrls",
    "qmod",
    "qacct",
    "qselect",
    "qquota",
    "qrsub",
    "qrdel",
    "qrstat",
    "qsched",
    "qevent",
    "qresub",
    "qping",
    "qrsh",
    "qlogin",
    "qsh",
    "qmake",
    "gridwright",
];

/// Parallel environments for message passing libraries, below `mpi`: each can be made with
/// `qconf -Ap`, changed or as it is.
pub(super) const MPI_TEMPLATES: [(&str, &str); 4] = [
    ("openmpi.template", include_str!("mpi/openmpi.template")),
    ("mpich.template", include_str!("mpi/mpich.template")),
    ("intelmpi.template", include_str!("mpi/intelmpi.template")),
    ("mvapich.template", include_str!("mpi/mvapich.template")),
];

/// Helpers that site scripts call, below `utilbin/ARCH`, with their texts. gethostbyaddr is
/// gethostbyname by another name.
const HELPERS: [(&str, &str); 7] = [
    ("checkuser", include_str!("utilbin/checkuser")),
    ("filestat", include_str!("utilbin/filestat")),
    ("gethostbyaddr", include_str!("utilbin/gethostbyname")),
    ("gethostbyname", include_str!("utilbin/gethostbyname")),
    ("gethostname", GETHOSTNAME),
    ("now", include_str!("utilbin/now")),
    ("uidgid", include_str!("utilbin/uidgid")),
];

/// What job submission verifiers include, below `util/resources/jsv`, and examples with the rights
/// of programs.
pub(super) const JSV_FILES: [(&str, &str, u32); 8] = [
    ("jsv_include.sh", include_str!("jsv/jsv_include.sh"), 0o644),
    ("jsv_include.tcl", include_str!("jsv/jsv_include.tcl"), 0o644),
    ("JSV.pm", include_str!("jsv/JSV.pm"), 0o644),
    ("JSV.py", include_str!("jsv/JSV.py"), 0o644),
    ("jsv.sh", include_str!("jsv/jsv.sh"), 0o755),
    ("jsv.tcl", include_str!("jsv/jsv.tcl"), 0o755),
    ("jsv.pl", include_str!("jsv/jsv.pl"), 0o755),
    ("jsv.py", include_str!("jsv/jsv.py"), 0o755),
];

/// What the files for site scripts say of a cell.
pub(super) struct ClassicFiles<'a> {
    /// The master's host.
    pub master_host: &'a HostName,
    /// The master's UDP port.
    pub port: u16,
    /// The user who administers the cell.
    pub user: &'a UserName,
}

/// Makes every directory, with the rights that its content needs.
pub(super) fn make_directories(layout: &Layout) -> Result<(), InitError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(layout.dir())
        .map_err(unwritable(layout.dir()))?;
    let top = open_ours(layout.dir())?;
    top.set_permissions(Permissions::from_mode(0o755))
        .map_err(unwritable(layout.dir()))?;
    for (name, mode) in [
        ("etc", 0o755),
        ("master", 0o700),
        ("agent", 0o700),
        ("accounting", 0o755),
        ("tasks", 0o755),
        ("run", 0o755),
        ("log", 0o755),
    ] {
        make_directory(&layout.dir().join(name), mode)?;
    }
    // One for each daemon: nobody makes names where another one writes. systemd-tmpfiles(8) may
    // have made them for the accounts of the daemons before the cell; nothing is written there
    // here.
    for daemon in ["launcher", "master", "agent"] {
        let path = layout.dir().join("run").join(daemon);
        if !is_directory(&path) {
            make_directory(&path, 0o755)?;
        }
    }
    Ok(())
}

/// Whether there is a directory, which a link to one is not.
fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Opens the cell's directory, which may be reached by a link, and refuses it if somebody else can
/// make names there: the files below it are written by name. It is judged after it was made,
/// because another user may have made it meanwhile.
pub(super) fn open_ours(dir: &Path) -> Result<File, InitError> {
    let flags = OFlag::O_DIRECTORY.bits();
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(dir)
        .map_err(unwritable(dir))?;
    let found = folder.metadata().map_err(unwritable(dir))?;
    let why = if found.uid() != geteuid().as_raw() {
        format!("it belongs to uid {}", found.uid())
    } else if geteuid().is_root() && found.mode() & WRITABLE != 0 {
        "others than root can write to it".to_owned()
    } else {
        return Ok(folder);
    };
    Err(InitError::Foreign {
        path: dir.to_owned(),
        why,
    })
}

/// The directories that every host of a cell has for site scripts.
fn make_classic_directories(layout: &Layout) -> Result<(), InitError> {
    let arch = arch();
    let below = ["bin", CELL_NAME, "mpi", "util", "utilbin"].map(str::to_owned);
    let deeper = [
        format!("bin/{arch}"),
        format!("{CELL_NAME}/common"),
        format!("utilbin/{arch}"),
        "util/resources".to_owned(),
        "util/resources/jsv".to_owned(),
    ];
    below
        .iter()
        .chain(&deeper)
        .try_for_each(|name| make_directory(&layout.dir().join(name), 0o755))
}

/// Makes a directory, or takes one that this user made: in another's, files could be links to
/// anywhere.
pub(super) fn make_directory(path: &Path, mode: u32) -> Result<(), InitError> {
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(unwritable(path)(error)),
        Ok(()) | Err(_) => {}
    }
    let flags = (OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits();
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(unwritable(path))?;
    let uid = folder.metadata().map_err(unwritable(path))?.uid();
    if uid != geteuid().as_raw() {
        let why = io::Error::other(format!("the directory belongs to uid {uid}"));
        return Err(unwritable(path)(why));
    }
    folder
        .set_permissions(Permissions::from_mode(mode))
        .map_err(unwritable(path))
}

/// Sets the rights of a file, whatever the process's umask is.
pub(super) fn set_mode(path: &Path, mode: u32) -> Result<(), InitError> {
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(unwritable(path))
}

/// Writes a file that is never seen with other rights than these.
pub(super) fn write(path: &Path, text: &str, mode: u32) -> Result<(), InitError> {
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .custom_flags(OFlag::O_NOFOLLOW.bits());
    let mut file = options.open(path).map_err(unwritable(path))?;
    file.set_permissions(Permissions::from_mode(mode))
        .map_err(unwritable(path))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(unwritable(path))
}

/// The files and links that scripts written for Grid Engine look for, on every host; what is there
/// is overwritten. The accounting file is not among them: it is the master's.
pub(super) fn write_classic_files(layout: &Layout, classic: &ClassicFiles<'_>) -> Result<(), InitError> {
    open_ours(layout.dir())?;
    make_classic_directories(layout)?;
    let arch = arch();
    let dir = layout.dir();
    write(&layout.common("settings.sh"), &settings_sh(dir, classic.port), 0o644)?;
    write(&layout.common("settings.csh"), &settings_csh(dir, classic.port), 0o644)?;
    // Administrators edit it.
    if !layout.common("bootstrap").exists() {
        write(&layout.common("bootstrap"), &bootstrap(classic.user), 0o644)?;
    }
    write(
        &layout.common("act_qmaster"),
        &format!("{}\n", classic.master_host),
        0o644,
    )?;
    write(&dir.join("util/arch"), &format!("#!/bin/sh\necho {arch}\n"), 0o755)?;
    write_helpers(&dir.join("utilbin").join(arch))?;
    MPI_TEMPLATES
        .iter()
        .try_for_each(|(name, text)| write(&dir.join("mpi").join(name), text, 0o644))?;
    JSV_FILES
        .iter()
        .try_for_each(|(name, text, mode)| write(&dir.join("util/resources/jsv").join(name), text, *mode))?;
    super::library::link_library(dir)?;
    link_commands(&dir.join("bin").join(arch))
}

/// Writes the helpers. `loadcheck` needs the agent's way to measure load.
pub(super) fn write_helpers(utilbin: &Path) -> Result<(), InitError> {
    for (name, text) in HELPERS {
        let text = text.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        write(&utilbin.join(name), &text, 0o755)?;
    }
    link(&utilbin.join("loadcheck"), "gridwright-agent")
}

/// Makes the files that the master writes in `default/common`, empty.
pub(super) fn make_files_of_master(layout: &Layout) -> Result<(), InitError> {
    make_accounting_file(layout)?;
    WRITTEN_BY_THE_MASTER
        .iter()
        .try_for_each(|name| write(&layout.common(name), "", 0o644))
}

/// Makes the accounting file in a directory of the master's own, where the master may turn it over,
/// and a link to it where site scripts look for it.
fn make_accounting_file(layout: &Layout) -> Result<(), InitError> {
    write(&layout.accounting("accounting"), "", 0o644)?;
    let link = layout.common("accounting");
    match fs::remove_file(&link) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(unwritable(&link)(error)),
        Ok(()) | Err(_) => {}
    }
    symlink("../../accounting/accounting", &link).map_err(unwritable(&link))
}

/// Links the q* names to the program that lies beside this one.
fn link_commands(bin: &Path) -> Result<(), InitError> {
    COMMANDS
        .iter()
        .try_for_each(|command| link(&bin.join(command), "gridwright"))
}

/// Makes a link to a program that lies beside this one.
fn link(path: &Path, program: &str) -> Result<(), InitError> {
    let own = std::env::current_exe().map_err(unwritable(path))?;
    relink(path, &own.with_file_name(program))
}

/// Makes a link, in place of an older one.
pub(super) fn relink(link: &Path, target: &Path) -> Result<(), InitError> {
    match fs::remove_file(link) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => return Err(unwritable(link)(source)),
        Ok(()) | Err(_) => {}
    }
    symlink(target, link).map_err(unwritable(link))
}

const GETHOSTNAME: &str = "\
#!/bin/sh
# Prints the name of this host as the cell knows it; -name and -aname print it alone.
name=$(sed -n 's/^host *= *\"\\(.*\\)\".*/\\1/p' \"${0%/*}/../../etc/agent.toml\" 2>/dev/null)
if [ -z \"$name\" ]; then
    name=$(hostname | tr '[:upper:]' '[:lower:]')
    name=${name%%.*}
fi
case \"$1\" in
-name|-aname) echo \"$name\" ;;
*) echo \"Hostname: $name\" ;;
esac
";

fn settings_sh(dir: &Path, port: u16) -> String {
    let dir = quoted(dir, false);
    format!(
        "SGE_ROOT={dir}; export SGE_ROOT\n\
         GRIDWRIGHT_DIR=\"$SGE_ROOT\"; export GRIDWRIGHT_DIR\n\
         SGE_CELL={CELL_NAME}; export SGE_CELL\n\
         SGE_CLUSTER_NAME=gridwright; export SGE_CLUSTER_NAME\n\
         SGE_QMASTER_PORT={port}; export SGE_QMASTER_PORT\n\
         SGE_ARCH=$(\"$SGE_ROOT/util/arch\"); export SGE_ARCH\n\
         PATH=\"$SGE_ROOT/bin/$SGE_ARCH:$PATH\"; export PATH\n"
    )
}

fn settings_csh(dir: &Path, port: u16) -> String {
    let dir = quoted(dir, true);
    format!(
        "setenv SGE_ROOT {dir}\n\
         setenv GRIDWRIGHT_DIR \"$SGE_ROOT\"\n\
         setenv SGE_CELL {CELL_NAME}\n\
         setenv SGE_CLUSTER_NAME gridwright\n\
         setenv SGE_QMASTER_PORT {port}\n\
         setenv SGE_ARCH `\"$SGE_ROOT\"/util/arch`\n\
         setenv PATH \"$SGE_ROOT/bin/$SGE_ARCH\":\"$PATH\"\n"
    )
}

/// A path as one word of a shell; csh expands `!` even inside quotes.
fn quoted(path: &Path, csh: bool) -> String {
    let text = path.to_string_lossy().replace('\'', r"'\''");
    if csh {
        format!("'{}'", text.replace('!', r"\!"))
    } else {
        format!("'{text}'")
    }
}

/// bootstrap(5), for tools that read it: what is fixed in Gridwright is said as it is.
fn bootstrap(user: &UserName) -> String {
    [
        ("admin_user", user.as_str()),
        ("default_domain", "none"),
        ("ignore_fqdn", "true"),
        ("spooling_method", "gridwright"),
        ("spooling_lib", "none"),
        ("spooling_params", "none"),
        ("binary_path", "bin"),
        ("qmaster_spool_dir", "master"),
        ("security_mode", "gridwright"),
        ("listener_threads", "2"),
        ("worker_threads", "1"),
        ("scheduler_threads", "1"),
        ("jvm_threads", "0"),
    ]
    .iter()
    .map(|(key, value)| format!("{key:<24}{value}\n"))
    .collect()
}
