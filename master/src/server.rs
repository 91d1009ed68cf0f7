//! The sockets of the master: the Unix socket of commands and the QUIC port of agents.
//!
//! Bytes become typed inputs here, and a bad frame is refused here (ARCHITECTURE.md "One input").
//! The kernel or a certificate says who a peer is; the core decides what a peer may do.

pub mod agents;
mod events;
mod gather;
mod join;
mod readings;
mod session;
pub mod unix;

pub use readings::ReadingPlaces;

use crate::config::MasterConfig;
use crate::connections::Connections;
use crate::issuer::Issuer;
use crate::messages::{DriverInput, MoreRequest, Question, SubscribeRequest};
use crate::replies::Replies;
use crate::signs::Signs;
use crate::slaves::Slaves;
use master_core::effect::{ConnectionId, Input};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{CellId, HostName};
use proto::wire::client::Reply;
use quic::Shares;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;

/// What every conversation with a peer needs.
pub struct Desk {
    /// To the core thread.
    pub inputs: mpsc::Sender<DriverInput>,
    /// To the reader thread.
    pub questions: mpsc::Sender<Question>,
    /// To the reader thread, to continue long answers.
    pub more: mpsc::Sender<MoreRequest>,
    /// To the reader thread, for readers of the event stream.
    pub subscribers: mpsc::Sender<SubscribeRequest>,
    /// Answers to changes.
    pub replies: Arc<Replies<Reply>>,
    /// Answers to enrolments.
    pub joins: Arc<Replies<Result<(), Diagnostic>>>,
    /// Connected agents.
    pub connections: Arc<Connections>,
    /// Slave tasks and the streams that lead to them.
    pub slaves: Arc<Slaves>,
    /// Facts that all threads see at once.
    pub signs: Signs,
    /// The CA.
    pub issuer: Arc<Issuer>,
    /// Limits.
    pub config: MasterConfig,
    /// The database, for accounting records and the log.
    pub database: PathBuf,
    /// Places for clients that wait for jobs.
    pub waits: Shares,
    /// Places for clients that read the database.
    pub readings: ReadingPlaces,
    /// The cell.
    pub cell: CellId,
    /// The master's host.
    pub host: HostName,
    /// Its UDP port.
    pub port: u16,
    /// The last number given to a connection.
    pub last_connection: AtomicU64,
}

/// The core thread is gone: the master ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreExit;

impl Desk {
    /// A number for a new connection, never given before.
    fn new_connection(&self) -> ConnectionId {
        ConnectionId(self.last_connection.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Hands an input to the core. Waits while its queue is full.
    async fn input(&self, input: Input) -> Result<(), CoreExit> {
        self.inputs.send(DriverInput::Core(input)).await.map_err(|_| CoreExit)
    }

    /// Waits until all earlier inputs are durable.
    async fn until_durable(&self) -> Result<(), CoreExit> {
        let (to, answer) = self.replies.expect();
        self.inputs
            .send(DriverInput::Deliver(to, Box::default()))
            .await
            .map_err(|_| CoreExit)?;
        answer.await.map(drop).map_err(|_| CoreExit)
    }
}

/// A refusal because a limit is reached, with the key that sets it.
fn overloaded(what: String, key: &str) -> Diagnostic {
    let fix = format!("try again in a moment; {key} of etc/master.toml is the limit");
    Diagnostic::new(Code::Overloaded, what).fix(fix)
}
