//! The shepherds that can be reached, and which of them are idle.
//!
//! A shepherd whose task was short and left nothing behind takes the next task of the same user: an
//! array of short tasks so costs one fork a task and not two. It is kept for [`IDLE_MS`] and no
//! longer than the name service's answer about its user.

use super::connection::Connection;
use crate::account::Identity;
use nix::sys::socket::{getsockopt, sockopt};
use proto::id::TaskKey;
use proto::launch::{LaunchDocument, Notice, Request};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

/// How long a shepherd waits for another task.
const IDLE_MS: u64 = 1_000;

/// The most shepherds that wait: more than start at once on any host.
const MAX_IDLE: usize = 64;

/// All of them, by the token of their sockets.
#[derive(Default)]
pub struct Shepherds {
    all: BTreeMap<u64, Shepherd>,
    /// Who is idle since when, the latest last.
    idle: Vec<(u64, u64)>,
}

struct Shepherd {
    key: Option<TaskKey>,
    connection: Connection,
    own: Option<ForkedShepherd>,
}

/// What is known of a shepherd that this launcher forked.
pub struct ForkedShepherd {
    /// The process.
    pub pid: i32,
    /// As whom the name service knew its user when it was forked; it serves tasks of no other.
    pub identity: Option<Identity>,
}

impl Shepherds {
    /// Adds one with its task.
    pub fn add(&mut self, token: u64, key: TaskKey, connection: Connection, own: Option<ForkedShepherd>) {
        self.all.insert(
            token,
            Shepherd {
                key: Some(key),
                connection,
                own,
            },
        );
    }

    /// Drops one. An idle one ends then.
    pub fn remove(&mut self, token: u64) {
        self.all.remove(&token);
        self.idle.retain(|(idle, _)| *idle != token);
    }

    /// The socket of one.
    pub fn connection(&mut self, token: u64) -> Option<&mut Connection> {
        self.all.get_mut(&token).map(|shepherd| &mut shepherd.connection)
    }

    /// The process of a shepherd. The kernel says it of those that another launcher forked.
    pub fn pid(&self, token: u64) -> Option<i32> {
        let shepherd = self.all.get(&token)?;
        let own = shepherd.own.as_ref().map(|own| own.pid);
        own.or_else(|| {
            getsockopt(shepherd.connection.stream(), sockopt::PeerCredentials)
                .ok()
                .map(|peer| peer.pid())
        })
    }

    /// The task of one.
    pub fn key(&self, token: u64) -> Option<TaskKey> {
        self.all.get(&token).and_then(|shepherd| shepherd.key)
    }

    /// What one has to say about its task, and whether it lives.
    pub fn hear(&mut self, token: u64) -> (Vec<(TaskKey, Notice)>, bool) {
        let Some(Shepherd { key, connection, .. }) = self.all.get_mut(&token) else {
            return (Vec::new(), true);
        };
        let is_alive = connection.fill().is_ok();
        let mut notices = Vec::new();
        loop {
            match connection.next::<Notice>() {
                Ok(Some(notice)) => notices.extend(key.map(|key| (key, notice))),
                Ok(None) => return (notices, is_alive),
                Err(_) => return (notices, false),
            }
        }
    }

    /// Notes that one has no task, and gives its pid if it may have another.
    pub fn rest(&mut self, token: u64, now: u64) -> Option<i32> {
        let shepherd = self.all.get_mut(&token)?;
        shepherd.key = None;
        let own = shepherd.own.as_ref()?;
        if own.identity.is_some() && self.idle.len() < MAX_IDLE {
            self.idle.push((token, now));
            return Some(own.pid);
        }
        let pid = own.pid;
        self.all.remove(&token);
        Some(pid)
    }

    /// An idle one that serves this user, no more idle.
    pub fn take_idle(&mut self, identity: &Identity) -> Option<u64> {
        let serves = |token: &u64| {
            let own = self.all.get(token).and_then(|shepherd| shepherd.own.as_ref());
            own.is_some_and(|own| own.identity.as_ref() == Some(identity))
        };
        let place = self.idle.iter().rposition(|(token, _)| serves(token))?;
        Some(self.idle.remove(place).0)
    }

    /// Gives one a task, and says which process it is.
    ///
    /// # Errors
    /// It is gone, or did not take the whole document at once; it is to be removed then, and ends
    /// without having begun.
    pub fn give(
        &mut self,
        token: u64,
        key: TaskKey,
        document: &LaunchDocument,
        attached: &[OwnedFd],
    ) -> io::Result<i32> {
        let gone = || io::Error::from(io::ErrorKind::NotConnected);
        let shepherd = self.all.get_mut(&token).ok_or_else(gone)?;
        let pid = shepherd.own.as_ref().ok_or_else(gone)?.pid;
        shepherd
            .connection
            .send_with(&Request::Launch(Box::new(document.clone())), attached)?;
        if shepherd.connection.has_unsent() {
            // Nobody waits for room here: a new shepherd gets the document by its fork.
            return Err(io::ErrorKind::WouldBlock.into());
        }
        shepherd.key = Some(key);
        Ok(pid)
    }

    /// When the first idle one has waited long enough.
    pub fn retire_at(&self) -> Option<u64> {
        self.idle.iter().map(|(_, since)| since + IDLE_MS).min()
    }

    /// Lets all idle ones go, and gives no other task to those that have one.
    pub fn dismiss_idle(&mut self) {
        for (token, _) in self.idle.drain(..) {
            self.all.remove(&token);
        }
        for own in self.all.values_mut().filter_map(|shepherd| shepherd.own.as_mut()) {
            own.identity = None;
        }
    }

    /// Lets those go that were idle for long enough.
    pub fn retire(&mut self, now: u64) {
        let old = self
            .idle
            .extract_if(.., |(_, since)| now.saturating_sub(*since) >= IDLE_MS);
        old.for_each(|(token, _)| drop(self.all.remove(&token)));
    }
}
