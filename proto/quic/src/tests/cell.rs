//! A small cell for tests: its CA, a master on a free port, certificates of any age.

use crate::transport::wall_now;
use crate::*;
use proto::id::{CellId, HostName};
use proto::time::Wall;
use proto::wire::frame::Kind;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// What a certificate of a cell is made with, before a server runs.
pub(super) struct Authority {
    pub(super) id: CellId,
    pub(super) ca: ClusterCa,
    pub(super) now: Wall,
}

/// A running master.
pub(super) struct Cell {
    authority: Authority,
    pub(super) server: Server,
    pub(super) tickets: TicketKeys,
    revoked: Arc<Mutex<BTreeSet<Serial>>>,
}

impl std::ops::Deref for Cell {
    type Target = Authority;
    fn deref(&self) -> &Authority {
        &self.authority
    }
}

impl Authority {
    pub(super) fn new() -> Self {
        let (id, now) = (CellId(0xce11), wall_now());
        Self {
            id,
            ca: ClusterCa::create(id, now).unwrap(),
            now,
        }
    }

    fn days_ago(&self, days: i64) -> Wall {
        Wall::from_seconds(self.now.seconds() - days * 86_400)
    }

    pub(super) fn sign(&self, csr: &str, host: &str) -> String {
        self.ca
            .sign_csr(csr, &HostName::new(host), self.now, DEFAULT_VALIDITY_S)
            .unwrap()
    }

    pub(super) fn host(&self, name: &str) -> Credentials {
        self.host_issued_days_ago(name, 0)
    }

    pub(super) fn host_issued_days_ago(&self, name: &str, days: i64) -> Credentials {
        let (key, host, then) = (HostKey::generate().unwrap(), HostName::new(name), self.days_ago(days));
        let certificate = self
            .ca
            .sign_csr(&key.csr_pem().unwrap(), &host, then, DEFAULT_VALIDITY_S)
            .unwrap();
        self.credentials(&certificate, &key)
    }

    pub(super) fn master_issued_days_ago(&self, days: i64) -> Credentials {
        let (key, host, then) = (
            HostKey::generate().unwrap(),
            HostName::new("master"),
            self.days_ago(days),
        );
        let certificate = self
            .ca
            .sign_master_csr(&key.csr_pem().unwrap(), &host, then, DEFAULT_VALIDITY_S)
            .unwrap();
        self.credentials(&certificate, &key)
    }

    fn credentials(&self, certificate: &str, key: &HostKey) -> Credentials {
        Credentials::from_pem(certificate, &key.to_pem(), &self.ca.certificate().to_pem()).unwrap()
    }
}

impl Cell {
    pub(super) fn start() -> Self {
        Self::start_with(|authority| authority.master_issued_days_ago(0))
    }

    /// Starts a master that serves with what `make` gives.
    pub(super) fn start_with(make: impl FnOnce(&Authority) -> Credentials) -> Self {
        let authority = Authority::new();
        let tickets = TicketKeys::generate(authority.now).unwrap();
        let revoked = Arc::new(Mutex::new(BTreeSet::new()));
        let known = revoked.clone();
        let admission: Admission = Arc::new(move |peer| match known.lock().unwrap().contains(&peer.serial) {
            false => Verdict::Admit,
            true => Verdict::Refuse {
                why: format!("{} was revoked", peer.serial),
            },
        });
        let listen = "127.0.0.1:0".parse().unwrap();
        let limits = ServerLimits::default();
        let server = Server::bind(listen, &make(&authority), tickets.clone(), limits, admission).unwrap();
        Self {
            authority,
            server,
            tickets,
            revoked,
        }
    }

    pub(super) fn address(&self) -> MasterAddress {
        MasterAddress {
            host: "127.0.0.1".to_owned(),
            port: self.server.local_addr().unwrap().port(),
        }
    }

    /// Both ends of a new connection, the host's first.
    pub(super) async fn connect(&self, client: &Client) -> (Connection, Connection) {
        let address = self.address();
        let (near, far) = tokio::join!(client.connect(&address), self.server.accept());
        match far {
            Some(AcceptedConnection::Host(far)) => (near.unwrap(), far),
            other => panic!("a host was expected: {other:?}"),
        }
    }

    pub(super) fn revoke(&self, serial: Serial) {
        self.revoked.lock().unwrap().insert(serial);
        assert_eq!(self.server.revoke(serial), 1);
    }
}

/// One request and its reply on a new stream.
pub(super) async fn echo(near: &Connection, far: &Connection) {
    let ask = async {
        let (mut sender, mut receiver) = near.open_bi(FrameLimits::CONTROL).await.unwrap();
        sender.send(Kind::Request, 5, &"ping").await.unwrap();
        receiver.recv().await.unwrap().unwrap()
    };
    let answer = async {
        let (mut sender, mut receiver) = far.accept_bi(FrameLimits::CONTROL).await.unwrap();
        let request = receiver.recv().await.unwrap().unwrap();
        sender
            .send(Kind::Reply, request.id, &request.message::<String>().unwrap())
            .await
            .unwrap();
    };
    let (reply, ()) = tokio::join!(ask, answer);
    assert_eq!(
        (reply.kind, reply.id, reply.message::<String>().unwrap().as_str()),
        (Kind::Reply, 5, "ping")
    );
}

/// The error of an attempt that must fail.
pub(super) fn refusal<T>(result: Result<T, ConnectError>) -> ConnectError {
    result.err().expect("the attempt must be refused")
}

pub(super) fn host_of(credentials: &Credentials) -> &str {
    credentials.identity().host.as_str()
}
