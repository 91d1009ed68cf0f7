//! The master's own certificate: renewed with the same key, at start and while the master runs,
//! before it ends (ARCHITECTURE.md "Transport and identity").

use crate::clock::wall_now;
use crate::issuer::{Issuer, KeyError, master_credentials};
use crate::layout::Layout;
use proto::time::Wall;
use quic::{PeerIdentity, Server};
use std::sync::Arc;
use std::time::Duration;

/// How often the age of the certificate is looked at. A third of its life, four months, is left for
/// the first success.
const LOOK: Duration = Duration::from_secs(3_600);

/// Keeps the certificate that a server shows to its hosts in time.
pub struct Renewal {
    layout: Layout,
    issuer: Arc<Issuer>,
    server: Arc<Server>,
    served: PeerIdentity,
}

impl Renewal {
    /// `served` is what the server was bound with.
    pub fn new(layout: Layout, issuer: Arc<Issuer>, server: Arc<Server>, served: PeerIdentity) -> Self {
        Self {
            layout,
            issuer,
            server,
            served,
        }
    }

    /// Looks after the certificate, for ever.
    pub async fn keep(mut self) {
        loop {
            tokio::time::sleep(LOOK).await;
            if let Err(error) = self.look(wall_now()) {
                tracing::warn!(
                    "the master's certificate was not renewed: {}",
                    crate::error_chain(&error)
                );
            }
        }
    }

    /// Renews the certificate if less than a third of its life is left. Open connections stay.
    fn look(&mut self, now: Wall) -> Result<(), KeyError> {
        if !self.served.needs_renewal(now) {
            return Ok(());
        }
        let credentials = master_credentials(&self.layout, self.issuer.ca(), now)?;
        self.server
            .replace_credentials(&credentials)
            .map_err(KeyError::NotServed)?;
        self.served = credentials.identity().clone();
        tracing::info!("the master's certificate was renewed, it is {} now", self.served.serial);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init::{Plan, init};
    use crate::issuer::read_ca;
    use crate::testing::TempDir;
    use crate::tickets::Tickets;
    use proto::id::{HostName, UserName};
    use proto::limit::VmemMeaning;
    use quic::{Client, Credentials, HostKey, MasterAddress, ServerLimits, Verdict};
    use tokio::sync::mpsc;

    const DAY_MS: i64 = 86_400_000;

    fn new_cell(dir: &TempDir) -> Layout {
        let dir = dir.path().join("cell");
        let (host, user) = (HostName::new("node1"), UserName::from("alice"));
        init(&Plan {
            dir: dir.clone(),
            port: 7_000,
            slots: 1,
            host,
            user,
            vmem: VmemMeaning::Address,
        })
        .unwrap();
        Layout::new(dir)
    }

    /// Gives the cell a master's certificate of so many days ago.
    fn age(layout: &Layout, days: i64) {
        let key = std::fs::read_to_string(layout.master("master.key")).unwrap();
        let csr = HostKey::from_pem(&key).unwrap().csr_pem().unwrap();
        let made = Wall(wall_now().0 - days * DAY_MS);
        let host = HostName::new("node1");
        let old = read_ca(layout)
            .unwrap()
            .sign_master_csr(&csr, &host, made, quic::DEFAULT_VALIDITY_S)
            .unwrap();
        std::fs::write(layout.master("master.crt"), old).unwrap();
    }

    /// A server that shows the certificate in the file, however old.
    fn serve(layout: &Layout) -> (Arc<Server>, PeerIdentity) {
        let read = |name: &str| std::fs::read_to_string(layout.master(name)).unwrap();
        let credentials = Credentials::from_pem(&read("master.crt"), &read("master.key"), &read("ca.crt")).unwrap();
        let keys = Tickets::read(layout).unwrap().keys();
        let admission: quic::Admission = Arc::new(|_| Verdict::Admit);
        let address = "127.0.0.1:0".parse().unwrap();
        let server = Server::bind(address, &credentials, keys, ServerLimits::default(), admission).unwrap();
        (Arc::new(server), credentials.identity().clone())
    }

    /// What a host that connects now is shown.
    async fn shown(layout: &Layout, server: &Server) -> PeerIdentity {
        let read = |name: &str| std::fs::read_to_string(layout.agent(name)).unwrap();
        let host = Credentials::from_pem(&read("host.crt"), &read("host.key"), &read("ca.crt")).unwrap();
        let port = server.local_addr().unwrap().port();
        let master = MasterAddress {
            host: "127.0.0.1".to_owned(),
            port,
        };
        Client::new(&host)
            .unwrap()
            .connect(&master)
            .await
            .unwrap()
            .peer()
            .clone()
    }

    #[tokio::test]
    async fn a_running_master_shows_a_new_certificate_before_the_old_one_ends() {
        let dir = TempDir::new("renewal");
        let layout = new_cell(&dir);
        age(&layout, 300);
        let (server, old) = serve(&layout);
        let issuer = Arc::new(Issuer::new(
            Arc::new(read_ca(&layout).unwrap()),
            365,
            mpsc::channel(1).0,
        ));
        let mut renewal = Renewal::new(layout.clone(), issuer, server.clone(), old.clone());
        assert_eq!(shown(&layout, &server).await.serial, old.serial);
        renewal.look(wall_now()).unwrap();
        let new = shown(&layout, &server).await;
        assert!(new.not_after.0 > old.not_after.0 + 299 * DAY_MS);
        let kept = PeerIdentity::from_pem(&std::fs::read_to_string(layout.master("master.crt")).unwrap()).unwrap();
        assert_eq!(kept.serial, new.serial);
        renewal.look(wall_now()).unwrap();
        assert_eq!(
            shown(&layout, &server).await.serial,
            new.serial,
            "a fresh certificate stays"
        );
    }

    #[test]
    fn a_key_or_certificate_that_cannot_be_used_is_named() {
        let dir = TempDir::new("bad-keys");
        let layout = new_cell(&dir);
        for name in ["ca.crt", "ca.key", "master.crt", "master.key"] {
            let path = layout.master(name);
            let whole = std::fs::read(&path).unwrap();
            std::fs::write(&path, "garbage").unwrap();
            let served = read_ca(&layout).and_then(|ca| crate::issuer::master_credentials(&layout, &ca, wall_now()));
            let told = served.unwrap_err().to_string();
            assert!(told.contains(&path.display().to_string()), "{name}: {told}");
            std::fs::write(&path, whole).unwrap();
        }
    }
}
