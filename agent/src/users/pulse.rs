//! Whether the master is still there. The transport believes in a silent connection for the better
//! part of a minute; who waits for an answer learns within seconds that none will come.

use proto::wire::agent::Vouch;
use proto::wire::frame::Kind;
use quic::{Connection, FrameLimits};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long a master may leave what was sent to it without any sign that it arrived. A longer time
/// lets users wait, a shorter one takes lost packets for a lost master.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// A master that was heard within this time needs no new sign of life.
const FRESH: Duration = Duration::from_secs(2);

/// How long an answer may be due before the master is asked for a sign of life.
pub(super) const DUE: Duration = Duration::from_secs(3);

/// How often is looked whether a sign has come.
const LOOK: Duration = Duration::from_millis(5);

/// When something was heard on a connection last.
#[derive(Clone, Default)]
pub(super) struct Pulse(Arc<Mutex<Option<(usize, Instant)>>>);

impl Pulse {
    /// Whether something comes on a connection after the first `before` datagrams, within
    /// [`SILENCE`]. Something that is answered was sent just now.
    pub(super) async fn beats(&self, connection: &Connection, before: u64) -> bool {
        let end = Instant::now() + SILENCE;
        while !self.is_fresh(connection) {
            if connection.received_datagrams() != before {
                *self.last() = Some((connection.id(), Instant::now()));
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            sleep(LOOK).await;
        }
        true
    }

    /// Whether a connection is silent although the master was asked for a sign: a stream on which
    /// nothing follows.
    pub(super) async fn is_gone(&self, connection: &Connection, vouch: &Vouch) -> bool {
        *self.last() = None;
        let before = connection.received_datagrams();
        let Ok(Ok((mut stream, _answer))) = timeout(SILENCE, connection.open_bi(FrameLimits::REPLY)).await else {
            // Without a stream nothing is known; a connection that has ended is noticed elsewhere.
            return false;
        };
        stream.send(Kind::Hello, 0, vouch).await.is_ok() && !self.beats(connection, before).await
    }

    fn is_fresh(&self, connection: &Connection) -> bool {
        self.last()
            .is_some_and(|(id, at)| id == connection.id() && at.elapsed() < FRESH)
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<(usize, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
