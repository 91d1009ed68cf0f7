//! Requests to the master from any number of threads: each takes a connection of its own, and waits
//! for a master that is away.

use crate::error::DrmaaError;
use cli::library::{CellAddress, Client};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::{Answer, Command, Query, Reply};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a master that is away is looked for.
pub const LOOK_FOR: Duration = Duration::from_secs(60);

/// The pause between two attempts.
pub const PAUSE: Duration = Duration::from_millis(200);

/// The name under which the master sees this library.
pub const PROGRAM: &str = "drmaa";

/// Connections of one session at most; further requests wait for a free one.
const CONNECTIONS: usize = 8;

/// The connections of a session.
pub struct Requests {
    address: CellAddress,
    pool: Mutex<ConnectionPool>,
    is_free: Condvar,
}

#[derive(Default)]
struct ConnectionPool {
    idle: Vec<Client>,
    /// Connections that are idle or in use.
    open: usize,
}

impl Requests {
    /// No connection yet.
    pub fn new(address: CellAddress) -> Self {
        Self {
            address,
            pool: Mutex::default(),
            is_free: Condvar::new(),
        }
    }

    /// The cell.
    pub fn address(&self) -> &CellAddress {
        &self.address
    }

    /// Changes something, once.
    ///
    /// # Errors
    /// `Communication` if the master does not answer in time.
    pub fn change(&self, command: &Command) -> Result<Reply, Diagnostic> {
        self.ask(|client| client.change(command.clone()))
    }

    /// Asks something.
    ///
    /// # Errors
    /// `Communication` if the master does not answer in time.
    pub fn query(&self, query: &Query) -> Result<Reply, Diagnostic> {
        self.ask(|client| client.query(query.clone()))
    }

    fn ask(&self, request: impl Fn(&mut Client) -> Result<Reply, Diagnostic>) -> Result<Reply, Diagnostic> {
        let give_up = Instant::now() + LOOK_FOR;
        loop {
            let refusal = match self.attempt(&request) {
                Ok(reply) => match not_taken(&reply) {
                    Some(refusal) => refusal.clone(),
                    None => return Ok(reply),
                },
                Err(refusal) => refusal,
            };
            if !is_passing(refusal.code) || Instant::now() >= give_up {
                return Err(refusal);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn attempt(&self, request: impl Fn(&mut Client) -> Result<Reply, Diagnostic>) -> Result<Reply, Diagnostic> {
        let mut place = self.take();
        let mut client = match place.client.take() {
            Some(client) => client,
            None => Client::connect(&self.address, PROGRAM)?.with_raw_values(),
        };
        let reply = request(&mut client)?;
        // A connection that failed is not used again.
        place.client = Some(client);
        Ok(reply)
    }

    /// Takes an idle connection, or room for a new one.
    fn take(&self) -> ConnectionPlace<'_> {
        let mut pool = self.lock();
        loop {
            if let Some(client) = pool.idle.pop() {
                return ConnectionPlace {
                    requests: self,
                    client: Some(client),
                };
            }
            if pool.open < CONNECTIONS {
                pool.open += 1;
                return ConnectionPlace {
                    requests: self,
                    client: None,
                };
            }
            pool = self.is_free.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionPool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for one connection, given back when it is dropped.
struct ConnectionPlace<'a> {
    requests: &'a Requests,
    client: Option<Client>,
}

impl Drop for ConnectionPlace<'_> {
    fn drop(&mut self) {
        let mut pool = self.requests.lock();
        match self.client.take() {
            Some(client) => pool.idle.push(client),
            None => pool.open -= 1,
        }
        self.requests.is_free.notify_one();
    }
}

/// Whether the same request may succeed in a moment. An unknown outcome is not repeated: the client
/// has repeated the request under its id for a minute.
fn is_passing(code: Code) -> bool {
    matches!(code, Code::NoMaster | Code::Overloaded)
}

/// The refusal of a daemon that took nothing.
fn not_taken(reply: &Reply) -> Option<&Diagnostic> {
    match reply.answers.as_slice() {
        [Answer::Refused(refusal)] if is_passing(refusal.code) => Some(refusal),
        _answers => None,
    }
}

/// The first refusal of a reply, as an error.
///
/// # Errors
/// By `error`, if the reply has a refusal.
pub fn accepted(reply: Reply, error: fn(&Diagnostic) -> DrmaaError) -> Result<Reply, DrmaaError> {
    match reply.answers.iter().find_map(Answer::refusal) {
        Some(refusal) => Err(error(refusal)),
        None => Ok(reply),
    }
}
