//! `gridwright-master jsv`: runs verifiers as another account than the master's.
//!
//! The master has no privilege and cannot change its account. So each account that is to run a
//! verifier runs this program itself, behind a socket that the master alone may use; no process of
//! root is involved. It runs none but the scripts that its command line names: whoever takes over
//! the master cannot choose programs of that account.
//!
//! A connection is one process of the verifier. Requests and replies are lines of JSON; the process
//! ends with the connection.

use super::account;
use super::seat::JobInput;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, getsockopt, recv, sockopt};
use nix::unistd::{User, geteuid};
use proto::diagnostic::{Code, Diagnostic};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use verifier::dialog::{ANSWER_BYTES_MAX, JsvAnswer, JsvFault, JsvLogLine};
use verifier::offer::JsvOffer;
use verifier::process::Verifier;

/// Where the sockets are below the directory of the cell, one for each account: `ACCOUNT.sock`.
const SOCKETS: &str = "run/jsv";

/// The variable with which the unit of the master names another directory.
const SOCKETS_VARIABLE: &str = "GRIDWRIGHT_JSV_SOCKETS";

/// The most bytes of a request, and of the replies to one.
const MESSAGE_BYTES: u64 = 4 * ANSWER_BYTES_MAX as u64;

/// How much longer than the verifier a relay may take.
const RELAY_PATIENCE: Duration = Duration::from_secs(10);

/// Processes that one relay runs at the same time.
const CONNECTIONS: usize = 16;

/// What the master asks.
#[derive(Debug, Serialize, Deserialize)]
struct RelayRequest {
    script: String,
    root: String,
    patience_ms: u64,
    offer: JsvOffer,
}

/// What a relay says about it: log lines, then one of the others.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RelayReply {
    Log(JsvLogLine),
    Answer(JsvAnswer),
    Fault(JsvFault),
    NotAdmitted(Vec<String>),
}

/// What the command line of a relay says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayOptions {
    /// The scripts that it runs.
    pub scripts: Vec<String>,
    /// The account of the master, by name or number.
    pub master: String,
    /// The socket that it makes. `None` means that standard input is the socket.
    pub listen: Option<PathBuf>,
}

/// The master's side of a connection.
pub(super) struct RelayClient {
    user: String,
    stream: Option<BufReader<UnixStream>>,
}

impl RelayClient {
    pub(super) fn new(user: &str) -> Self {
        Self {
            user: user.to_owned(),
            stream: None,
        }
    }

    /// Asks about a job. After any error the connection is closed, and the process ends with it.
    pub(super) async fn verify(
        &mut self,
        input: &JobInput<'_>,
        log: &mut (dyn FnMut(JsvLogLine) + Send),
    ) -> Result<JsvAnswer, Diagnostic> {
        let limit = input.patience * 2 + RELAY_PATIENCE;
        match timeout(limit, self.talk(input, log)).await {
            Ok(Ok((stream, answered))) => {
                self.stream = Some(stream);
                answered
            }
            Ok(Err(error)) => Err(self.unreachable(input.root, error.to_string())),
            Err(_) => Err(self.unreachable(input.root, format!("no answer within {} s", limit.as_secs()))),
        }
    }

    async fn talk(
        &mut self,
        input: &JobInput<'_>,
        log: &mut (dyn FnMut(JsvLogLine) + Send),
    ) -> io::Result<(BufReader<UnixStream>, Result<JsvAnswer, Diagnostic>)> {
        let mut stream = match self.stream.take().filter(is_open) {
            Some(stream) => stream,
            None => BufReader::new(self.connect(input.root).await?),
        };
        let request = RelayRequest {
            script: input.url.path.clone(),
            root: input.root.display().to_string(),
            patience_ms: u64::try_from(input.patience.as_millis()).unwrap_or(u64::MAX),
            offer: input.offer.clone(),
        };
        let mut bytes = serde_json::to_vec(&request)?;
        bytes.push(b'\n');
        stream.get_mut().write_all(&bytes).await?;
        let mut replies = (&mut stream).take(MESSAGE_BYTES);
        loop {
            let mut line = Vec::new();
            if replies.read_until(b'\n', &mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let answered = match serde_json::from_slice(&line)? {
                RelayReply::Log(line) => {
                    log(line);
                    continue;
                }
                RelayReply::Answer(answer) => Ok(answer),
                RelayReply::Fault(fault) => Err(fault.diagnostic()),
                RelayReply::NotAdmitted(admitted) => Err(not_admitted(&self.user, &request.script, &admitted)),
            };
            return Ok((stream, answered));
        }
    }

    /// Connects, and checks whose socket it is: systemd's, or that of the account.
    async fn connect(&self, root: &Path) -> io::Result<UnixStream> {
        let stream = UnixStream::connect(socket_of(root, &self.user)).await?;
        let peer = getsockopt(&stream.as_fd(), sockopt::PeerCredentials)?.uid();
        let account = User::from_name(&self.user)?;
        let is_right = peer == 0 || account.is_some_and(|account| account.uid.as_raw() == peer);
        match is_right {
            true => Ok(stream),
            false => Err(io::Error::other(format!("the socket belongs to uid {peer}"))),
        }
    }

    fn unreachable(&self, root: &Path, why: String) -> Diagnostic {
        let user = &self.user;
        let what = format!("the job submission verifier of account {user} is not reached");
        let fix = format!("systemctl enable --now gridwright-jsv@{user}.socket on the master's host");
        Diagnostic::new(Code::JobRejected, what)
            .at(socket_of(root, user).display().to_string())
            .why(why)
            .fix(fix)
    }
}

/// Whether the other side of a connection is there, and has said nothing that nobody asked for.
fn is_open(stream: &BufReader<UnixStream>) -> bool {
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    let waiting = recv(stream.get_ref().as_raw_fd(), &mut [0; 1], flags);
    stream.buffer().is_empty() && waiting == Err(Errno::EAGAIN)
}

fn socket_of(root: &Path, user: &str) -> PathBuf {
    let folder = std::env::var_os(SOCKETS_VARIABLE).map_or_else(|| root.join(SOCKETS), PathBuf::from);
    folder.join(format!("{user}.sock"))
}

fn not_admitted(user: &str, script: &str, admitted: &[String]) -> Diagnostic {
    let what = format!("the job submission verifier {script} is not run as {user}");
    let why = match admitted {
        [] => format!("gridwright-jsv@{user}.service admits no script"),
        _ => format!("gridwright-jsv@{user}.service admits {} alone", admitted.join(", ")),
    };
    let fix = format!("add --script {script} there: systemctl edit gridwright-jsv@{user}");
    Diagnostic::new(Code::JobRejected, what).why(why).fix(fix)
}

/// Serves until it is ended.
///
/// # Errors
/// If this is root, there is no such master, or the socket cannot be had.
pub fn serve(options: &RelayOptions) -> io::Result<()> {
    if geteuid().is_root() {
        return Err(io::Error::other(
            "job submission verifiers are not run as root: use another account",
        ));
    }
    let master = match options.master.parse() {
        Ok(uid) => uid,
        Err(_) => User::from_name(&options.master)?
            .ok_or_else(|| io::Error::other(format!("there is no account {}", options.master)))?
            .uid
            .as_raw(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = listen(options.listen.as_deref())?;
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let (stream, _) = listener.accept().await?;
            let peer = getsockopt(&stream.as_fd(), sockopt::PeerCredentials)?.uid();
            // Closed at once: others have nothing to ask here.
            if let Some(place) = places.clone().try_acquire_owned().ok().filter(|_| peer == master) {
                let scripts = options.scripts.clone();
                tokio::spawn(async move {
                    let _place = place;
                    // The master notices an end of the connection by itself.
                    let _ = converse(stream, &scripts).await;
                });
            }
        }
    })
}

fn listen(path: Option<&Path>) -> io::Result<UnixListener> {
    let Some(path) = path else {
        let listener = std::os::unix::net::UnixListener::from(io::stdin().as_fd().try_clone_to_owned()?);
        listener.set_nonblocking(true)?;
        return UnixListener::from_std(listener);
    };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    // Each connection is asked who it is.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// Answers the requests of one connection, and ends the verifier with it.
async fn converse(stream: UnixStream, scripts: &[String]) -> io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut reading = BufReader::new(reading);
    let mut verifier: Option<Verifier> = None;
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut reading).take(MESSAGE_BYTES);
        if limited.read_until(b'\n', &mut line).await? == 0 || line.last() != Some(&b'\n') {
            break;
        }
        let request: RelayRequest = serde_json::from_slice(&line)?;
        if !scripts.contains(&request.script) {
            say(&mut writing, &RelayReply::NotAdmitted(scripts.to_vec())).await?;
            continue;
        }
        let patience = Duration::from_millis(request.patience_ms);
        let known = verifier.take().filter(|known| known.launch().script == request.script);
        let mut known = known
            .unwrap_or_else(|| Verifier::new(account::launch(&request.script, Path::new(&request.root), patience)));
        known.set_patience(patience);
        let mut logged = Vec::new();
        let answered = known.verify(&request.offer, &mut |line| logged.push(line)).await;
        verifier = Some(known);
        for line in logged {
            say(&mut writing, &RelayReply::Log(line)).await?;
        }
        let reply = answered.map_or_else(RelayReply::Fault, RelayReply::Answer);
        say(&mut writing, &reply).await?;
    }
    if let Some(ended) = verifier.as_mut().and_then(Verifier::quit) {
        // It is killed if it does not end.
        let _ = ended.await;
    }
    Ok(())
}

async fn say(writing: &mut (impl tokio::io::AsyncWrite + Unpin), reply: &RelayReply) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(reply)?;
    bytes.push(b'\n');
    writing.write_all(&bytes).await
}
