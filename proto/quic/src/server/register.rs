//! The open connections of hosts by the serial of their certificates, for revocation.

use crate::connection::{CloseCode, Link};
use crate::identity::Serial;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Connections that one certificate may have open. More than one only while a host reconnects and
/// the master has not noticed yet that the old connection is dead.
const PER_CERTIFICATE: usize = 4;

/// Open connections by serial, in the order in which they came.
#[derive(Default)]
pub(super) struct Register(Mutex<LinkTable>);

#[derive(Default)]
struct LinkTable {
    last_id: u64,
    links: BTreeMap<(Serial, u64), Weak<Link>>,
}

/// The place of one connection, which leaves the register with it.
pub(super) struct RegisterEntry {
    register: Arc<Register>,
    key: (Serial, u64),
}

impl Register {
    /// Enters a connection.
    pub(super) fn enter(self: &Arc<Self>, serial: Serial, link: Weak<Link>) -> RegisterEntry {
        let mut places = self.lock();
        places.last_id += 1;
        let key = (serial, places.last_id);
        places.links.insert(key, link);
        RegisterEntry {
            register: self.clone(),
            key,
        }
    }

    /// Closes all connections of a certificate; returns how many.
    pub(super) fn close_all(&self, serial: Serial, code: CloseCode, reason: &str) -> usize {
        close(self.links(serial), code, reason)
    }

    /// Closes the oldest connections of a certificate that has too many.
    pub(super) fn keep_newest(&self, serial: Serial) {
        let mut links = self.links(serial);
        links.truncate(links.len().saturating_sub(PER_CERTIFICATE));
        close(links, CloseCode::Replaced, "the host has newer connections");
    }

    /// The open connections of a certificate, the oldest first. One that has ended stays in the
    /// register for as long as somebody holds it.
    fn links(&self, serial: Serial) -> Vec<Arc<Link>> {
        let mut links: Vec<Arc<Link>> = {
            let places = self.lock();
            places
                .links
                .range((serial, 0)..=(serial, u64::MAX))
                .filter_map(|(_, link)| link.upgrade())
                .collect()
        };
        links.retain(|link| link.close_reason().is_none());
        links
    }

    fn lock(&self) -> MutexGuard<'_, LinkTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Outside the register's lock: the last holder of a link takes that lock when it leaves.
fn close(links: Vec<Arc<Link>>, code: CloseCode, reason: &str) -> usize {
    links.iter().for_each(|link| link.close(code, reason));
    links.len()
}

impl Drop for RegisterEntry {
    fn drop(&mut self) {
        self.register.lock().links.remove(&self.key);
    }
}
