//! `gridwright-agent join`: this host enrols with a token and gets its certificates.

use crate::config::{self, DEFAULT_PORT};
use crate::layout::Layout;
use crate::{Failure, identity};
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid, getegid, geteuid, setegid, seteuid};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::wire::agent::PROTOCOL_VERSION;
use proto::wire::frame::Kind;
use proto::wire::join::{JoinReply, JoinRequest};
use quic::{Client, CloseCode, HostKey, IdentityError, JoinToken, MasterAddress, PeerIdentity, StreamError};
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long the master may take to answer at all, and then to decide.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
const REPLY_DEADLINE: Duration = Duration::from_secs(30);

/// Write permission of group and others.
const WRITABLE: u32 = 0o022;

/// The most that is read of a certificate.
const CERTIFICATE_BYTES: u64 = 1 << 20;

/// How long the end of the connection may take to leave this machine.
const GOODBYE: Duration = Duration::from_millis(100);

/// Whom this host joins, and as what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinOptions {
    /// `MASTER` or `MASTER:PORT`.
    pub master: String,
    /// The token, as it was shown.
    pub token: String,
    /// The state directory; it is made.
    pub dir: PathBuf,
    /// The name of this host, where it is not the one that `hostname` says.
    pub host: Option<String>,
}

/// Joins, and says what was written and how to start.
///
/// # Errors
/// The refusal with its remedy.
pub fn run(options: &JoinOptions) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::new)?;
    let outcome = runtime.block_on(join(options));
    runtime.shutdown_background();
    let (host, layout) = outcome.map_err(|refusal| Failure::refusal(&refusal))?;
    let dir = layout.root();
    println!("host {host} has joined; its certificates are in {dir}/agent, its settings in {dir}/etc/agent.toml");
    println!("start it with: gridwright-shepherd launch --dir {dir} & gridwright-agent run --dir {dir} --daemon &");
    println!("or, where the units are installed: systemctl enable --now gridwright-launcher gridwright-agent");
    Ok(())
}

async fn join(options: &JoinOptions) -> Result<(HostName, Layout), Diagnostic> {
    let bad_token = |bad: quic::BadToken| {
        Diagnostic::new(Code::BadToken, bad.to_string())
            .fix("copy the whole token, or ask an administrator for one: gridwright token create")
    };
    let token: JoinToken = options.token.parse().map_err(bad_token)?;
    let master = address(&options.master)?;
    let host = host_name(options.host.as_deref())?;
    let (layout, made) = make_directories(&options.dir).map_err(|error| unwritable(&options.dir, &error))?;
    let outcome = enrol_here(options, &token, &master, &host, &layout).await;
    if outcome.is_err() {
        // A join that was refused leaves nothing; what is not empty stays.
        made.iter().rev().for_each(|dir| drop(std::fs::remove_dir(dir)));
    }
    outcome.map(|host| (host, layout))
}

/// Asks the master, and writes what it answers.
async fn enrol_here(
    options: &JoinOptions,
    token: &JoinToken,
    master: &MasterAddress,
    host: &HostName,
    layout: &Layout,
) -> Result<HostName, Diagnostic> {
    refuse_another_cell(layout, token)?;
    let key = HostKey::generate().map_err(|error| bad_key(&error))?;
    let csr = key.csr_pem().map_err(|error| bad_key(&error))?;
    let connection = Client::join(master, token.ca_fingerprint(), CONNECT_DEADLINE)
        .await
        .map_err(|error| error.diagnostic())?;
    let request = JoinRequest {
        version: PROTOCOL_VERSION,
        token: options.token.trim().to_owned(),
        host: host.clone(),
        csr,
    };
    let enrolment = timeout(REPLY_DEADLINE, enrol(&connection, &request)).await;
    connection.close(CloseCode::Done, "the answer is here");
    // The transport needs a moment to say so; without it the master waits for nothing.
    sleep(GOODBYE).await;
    let reply = enrolment.map_err(|_| broken(&"it did not answer in time"))??;
    let host = PeerIdentity::from_pem(&reply.certificate)
        .map_err(|error| bad_key(&error))?
        .host;
    write(layout, &host, master, &key, &reply).map_err(|error| unwritable(layout.dir(), &error))?;
    Ok(host)
}

async fn enrol(connection: &quic::JoinConnection, request: &JoinRequest) -> Result<JoinReply, Diagnostic> {
    let failed = |error: StreamError| broken(&error);
    let (mut sender, mut receiver) = connection.open().await.map_err(failed)?;
    sender.send(Kind::Request, 1, request).await.map_err(failed)?;
    let frame = receiver
        .recv()
        .await
        .map_err(failed)?
        .ok_or_else(|| broken(&"it went without an answer"))?;
    if frame.kind == Kind::Refusal {
        let refusal: Diagnostic = frame.message().map_err(|error| error.diagnostic())?;
        return Err(with_remedy(refusal, &request.host));
    }
    frame.message().map_err(|error| error.diagnostic())
}

/// A refusal of the master that names no remedy gets the one that its code suggests.
#[allow(clippy::wildcard_enum_match_arm, reason = "most codes suggest nothing")]
fn with_remedy(refusal: Diagnostic, host: &HostName) -> Diagnostic {
    if !refusal.fix.is_empty() {
        return refusal;
    }
    let fix = match refusal.code {
        Code::AlreadyExists => {
            format!("give another name with --host, or revoke the old {host}: gridwright host revoke {host}")
        }
        Code::BadToken => "ask an administrator for a new token: gridwright token create".to_owned(),
        _ => "see the master's log for the reason".to_owned(),
    };
    refusal.fix(fix)
}

/// `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`. Without a port that of `SGE_QMASTER_PORT`, else 6444.
fn address(text: &str) -> Result<MasterAddress, Diagnostic> {
    let bad = || {
        Diagnostic::new(Code::BadSyntax, format!("{text:?} is not MASTER or MASTER:PORT"))
            .fix("give the master's host name, as in: gridwright join master.example.org TOKEN")
    };
    let (host, port) = match text.rsplit_once(':') {
        // An address of version 6 without a port has colons, too.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        Some(_) | None => (text, None),
    };
    let port = match port {
        Some(port) => port.parse().map_err(|_| bad())?,
        None => std::env::var("SGE_QMASTER_PORT")
            .ok()
            .and_then(|port| port.parse().ok())
            .unwrap_or(DEFAULT_PORT),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        Err(bad())
    } else {
        Ok(MasterAddress {
            host: host.to_owned(),
            port,
        })
    }
}

/// The name that was given, or the first part of what `hostname` says.
fn host_name(given: Option<&str>) -> Result<HostName, Diagnostic> {
    let own = || {
        nix::unistd::gethostname()
            .ok()
            .and_then(|name| name.into_string().ok())
            .unwrap_or_default()
    };
    let name = match given {
        Some(name) => HostName::new(name),
        None => HostName::new(own().split('.').next().unwrap_or_default()),
    };
    match name.as_str() {
        "" | "localhost" | "global" => Err(Diagnostic::new(
            Code::BadValue,
            format!("{name:?} cannot name a host of a cell"),
        )
        .fix("give this machine a name with hostnamectl, or use --host NAME")),
        _ => Ok(name),
    }
}

/// The directories of a host, and those that were not there before, outer ones first.
fn make_directories(dir: &Path) -> io::Result<(Layout, Vec<PathBuf>)> {
    nix::sys::stat::umask(Mode::from_bits_truncate(0o022));
    let mut missing: Vec<PathBuf> = dir
        .ancestors()
        .filter(|dir| !dir.exists())
        .map(Path::to_owned)
        .collect();
    missing.reverse();
    std::fs::create_dir_all(dir)?;
    let found = std::fs::metadata(dir)?;
    if found.uid() != geteuid().as_raw() {
        return Err(io::Error::other(format!(
            "the directory belongs to uid {}",
            found.uid()
        )));
    }
    if geteuid().is_root() && found.mode() & WRITABLE != 0 {
        return Err(io::Error::other(
            "others than root can write to the directory: chmod go-w is missing",
        ));
    }
    let below = ["etc", "agent", "run", "log", "tasks"].map(|name| dir.join(name));
    missing.extend(below.iter().filter(|dir| !dir.exists()).cloned());
    below.iter().try_for_each(std::fs::create_dir_all)?;
    Ok((Layout::new(dir)?, missing))
}

/// Does something in `agent/` with the rights of its owner. Root has given it to the agent's
/// account on a host that joined before, and what root opens by name there could be a link to
/// anywhere.
fn as_owner<T>(layout: &Layout, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let flags = (OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits();
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(layout.dir().join("agent"))?
        .metadata()?;
    let own = (geteuid(), getegid());
    if !own.0.is_root() || folder.uid() == own.0.as_raw() {
        return work();
    }
    nix::unistd::setgroups(&[])?;
    setegid(Gid::from_raw(folder.gid()))?;
    seteuid(Uid::from_raw(folder.uid()))?;
    let outcome = work();
    seteuid(own.0)?;
    setegid(own.1)?;
    outcome
}

/// A host that is in another cell already would be in none of the two afterwards.
fn refuse_another_cell(layout: &Layout, token: &JoinToken) -> Result<(), Diagnostic> {
    let present = as_owner(layout, || read_certificate(&layout.agent("host.crt"))).ok();
    let present = present.and_then(|certificate| PeerIdentity::from_pem(&certificate).ok());
    match present {
        Some(identity) if identity.cell != token.cell() => {
            let what = format!("this directory belongs to another cell, as host {}", identity.host);
            Err(Diagnostic::new(Code::WrongCell, what)
                .at(layout.agent("host.crt").display().to_string())
                .fix("use another --dir, or end its daemons and remove this one"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Reads a certificate that the agent's account may have replaced: a link is not followed, and a
/// named pipe is not waited for.
fn read_certificate(path: &Path) -> io::Result<String> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.take(CERTIFICATE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn write(layout: &Layout, host: &HostName, master: &MasterAddress, key: &HostKey, reply: &JoinReply) -> io::Result<()> {
    let cell = format!(
        "# What all daemons of this cell agree on.\ncell = \"{:016x}\"\nmaster_host = {}\nport = {}\n",
        reply.cell.0,
        toml::Value::String(reply.master_host.to_string()),
        master.port
    );
    let own = |name: &str, text: &str, mode| as_owner(layout, || identity::write_file(&layout.agent(name), text, mode));
    own("host.key", &key.to_pem(), 0o600)?;
    own("ca.crt", &reply.ca, 0o644)?;
    identity::write_file(&layout.etc("agent.toml"), &config::document(host, master), 0o644)?;
    identity::write_file(&layout.etc("cell.toml"), &cell, 0o644)?;
    // Last: with it the host is complete.
    own("host.crt", &reply.certificate, 0o644)
}

fn bad_key(error: &IdentityError) -> Diagnostic {
    Diagnostic::new(Code::BadCertificate, "this host cannot get a certificate").why(error.to_string())
}

fn broken(error: &dyn std::fmt::Display) -> Diagnostic {
    Diagnostic::new(Code::NoMaster, "the master did not answer the enrolment")
        .why(error.to_string())
        .fix("try again; the master's log has the reason")
}

fn unwritable(dir: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::new(Code::SystemRefused, "the files of this host cannot be written")
        .at(dir.display().to_string())
        .why(error.to_string())
        .fix("use --dir with a directory that you may write, or join as root")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_is_named_with_and_without_its_port() {
        let shown = |text: &str| address(text).map(|address| address.to_string()).ok();
        assert_eq!(shown("m:7000").as_deref(), Some("m udp/7000"));
        assert_eq!(shown("[fd00::1]:7000").as_deref(), Some("fd00::1 udp/7000"));
        assert_eq!(address("fd00::1").unwrap().host, "fd00::1");
        assert_eq!(shown("m:x"), None);
        assert_eq!(shown(":7000"), None);
    }

    #[test]
    fn a_certificate_that_is_a_named_pipe_or_a_link_is_not_read() {
        let dir = std::env::temp_dir().join(format!("gridwright-agent-join-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let certificate = dir.join("host.crt");
        nix::unistd::mkfifo(&certificate, Mode::S_IRUSR).unwrap();
        assert!(read_certificate(&certificate).is_err());
        std::fs::write(dir.join("other"), "kept").unwrap();
        std::os::unix::fs::symlink("other", dir.join("link")).unwrap();
        assert!(read_certificate(&dir.join("link")).is_err());
        assert_eq!(read_certificate(&dir.join("other")).unwrap(), "kept");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn root_joins_in_no_directory_that_others_may_write() {
        use std::os::unix::fs::PermissionsExt;
        let dir = std::env::temp_dir().join(format!("gridwright-agent-join-open-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
        let outcome = make_directories(&dir);
        assert_eq!(outcome.is_err(), geteuid().is_root());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn names_that_every_machine_has_are_refused() {
        assert!(host_name(Some("localhost")).is_err());
        assert_eq!(
            host_name(Some("Node1.Example.Org")).unwrap().as_str(),
            "node1.example.org"
        );
    }
}
