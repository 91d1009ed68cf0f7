//! The connection to the master: hello, control stream, and coming back when it breaks.
//!
//! The driver hears things in the order in which they come over the wire: open, welcome, messages,
//! lost. Load reports and the streams of users use the connection directly, through
//! [`Link::online`].

mod outgoing;
mod renewal;
mod session;

use crate::backoff::Backoff;
use crate::layout::Layout;
use crate::messages::DriverInput;
use proto::id::HostName;
use quic::{Client, CloseCode, ConnectError, Connection, MasterAddress};
use renewal::Renewal;
use session::SessionEnd;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

/// The pause before the first attempt to come back, and the longest between two. A longer one
/// spares the master of a large cell, a shorter one lets a host run jobs again sooner.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(10);

/// A connection that lived this long was a good one: the next pause is the first again.
const GOOD_LIFE: Duration = Duration::from_secs(10);

/// How long a stopping agent waits until the master knows.
const GOODBYE: Duration = Duration::from_millis(200);

/// Where connections of users come from and reports go to.
pub type ConnectionWatch = watch::Receiver<Option<Connection>>;

/// What the link of one host is made of.
pub struct Link {
    /// This host.
    pub host: HostName,
    /// The master's address as configured.
    pub master: MasterAddress,
    /// Dials out with this host's certificate.
    pub client: Client,
    /// Where certificates are kept, for their renewal; none for simulated hosts.
    pub layout: Option<Layout>,
    /// The core.
    pub driver: mpsc::Sender<DriverInput>,
    /// The present connection, for reports and users.
    pub online: watch::Sender<Option<Connection>>,
    /// True once the tasks of this host are known: there is no hello before.
    pub ready: watch::Receiver<bool>,
    /// True once the agent ends.
    pub stop: watch::Receiver<bool>,
    /// Woken when somebody cannot wait for the next attempt.
    pub hurry: Arc<Notify>,
    /// How many hosts of this process may be in a handshake at once.
    pub handshakes: Arc<Semaphore>,
}

impl Link {
    /// Connects, again and again, until the agent ends.
    pub async fn run(mut self) {
        let mut stop = self.stop.clone();
        let work = async {
            // The sender is gone only with the driver.
            if self.ready.wait_for(|ready| *ready).await.is_ok() {
                self.stay_connected().await;
            }
        };
        tokio::select! {
            () = work => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        if let Some(connection) = self.online.send_replace(None) {
            connection.close(CloseCode::Done, "the agent ends");
            // The peer needs a moment to hear it; it finds out by itself otherwise.
            let _ = timeout(GOODBYE, connection.closed()).await;
            sleep(GOODBYE).await;
        }
    }

    async fn stay_connected(&mut self) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LAST_PAUSE);
        let addresses = addresses(&self.master, &self.host).into_iter().cycle();
        let mut last_words = String::new();
        for address in addresses {
            let begin = Instant::now();
            let end = self.session(&address).await;
            self.online.send_replace(None);
            if matches!(end, SessionEnd::AgentEnds) || self.driver.send(DriverInput::MasterLost).await.is_err() {
                return;
            }
            // The same reason again is no news.
            let words = end.to_string();
            if words != last_words {
                tracing::warn!("master {}: {words}", self.master);
                last_words = words;
            }
            if begin.elapsed() >= GOOD_LIFE {
                backoff.reset();
                last_words.clear();
            }
            tokio::select! {
                () = sleep(backoff.pause()) => {}
                () = self.hurry.notified() => backoff.reset(),
            }
        }
    }

    async fn session(&mut self, address: &MasterAddress) -> SessionEnd {
        let Ok(permit) = self.handshakes.clone().acquire_owned().await else {
            return SessionEnd::AgentEnds;
        };
        let connection = match self.client.connect(address).await {
            Ok(connection) => connection,
            Err(error) => return refused(&error),
        };
        let control = match session::hello(&connection, &self.driver).await {
            Ok(control) => control,
            Err(end) => return end,
        };
        drop(permit);
        tracing::info!("connected to the master at {}", connection.remote_address());
        self.online.send_replace(Some(connection.clone()));
        let renewal = Renewal {
            layout: self.layout.as_ref(),
            connection: &connection,
        };
        tokio::select! {
            end = session::converse(&connection, control, &self.driver) => end,
            client = renewal.run(&self.client) => {
                self.client = client;
                SessionEnd::Renewed
            }
        }
    }
}

fn refused(error: &ConnectError) -> SessionEnd {
    SessionEnd::NotConnected(error.diagnostic())
}

/// Where to try, in turn. On the master's own host the loopback address comes first: it needs no
/// name service and no route.
fn addresses(master: &MasterAddress, host: &HostName) -> Vec<MasterAddress> {
    let named = HostName::new(&master.host);
    if named.short() != host.short() {
        return vec![master.clone()];
    }
    let local = MasterAddress {
        host: "127.0.0.1".to_owned(),
        port: master.port,
    };
    vec![local, master.clone()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_the_masters_own_host_loopback_is_tried_first() {
        let master = MasterAddress {
            host: "m.example.org".to_owned(),
            port: 6444,
        };
        let tried = |host: &str| -> Vec<String> {
            addresses(&master, &HostName::new(host))
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        assert_eq!(tried("m"), ["127.0.0.1 udp/6444", "m.example.org udp/6444"]);
        assert_eq!(tried("node1"), ["m.example.org udp/6444"]);
    }
}
