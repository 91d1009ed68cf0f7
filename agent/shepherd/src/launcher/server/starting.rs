//! From the requests of one round to shepherds at work.

use super::health::{no_shepherd, refused, unrecorded};
use super::{Child, PendingStart, Server};
use crate::account::Identity;
use crate::launcher::connection::Connection;
use crate::launcher::rules::Refusal;
use crate::launcher::shepherds::ForkedShepherd;
use crate::shepherd::burial::Traces;
use crate::shepherd::{self, User};
use crate::sys::{self, Fork};
use crate::task_dir::TaskDir;
use proto::id::TaskKey;
use proto::launch::{LaunchDocument, Notice};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

impl Server {
    /// Starts what is waiting to be started, once it is on record.
    pub(super) fn start_all(&mut self) -> Vec<Notice> {
        let starting = std::mem::take(&mut self.starting);
        if starting.is_empty() {
            return Vec::new();
        }
        let keys: Vec<TaskKey> = starting.iter().map(|start| start.document.key).collect();
        let recorded = self.journal.release(&keys).map_err(|error| unrecorded(&error));
        self.health.is_journal_stuck = recorded.is_err();
        let each = starting.into_iter().map(|PendingStart { document, attached }| {
            let key = document.key;
            let started = recorded.clone().and_then(|()| {
                let started = self.start(document, attached);
                self.health.is_without_processes = started.is_err();
                started.map_err(|error| no_shepherd(&error))
            });
            match started {
                Ok(()) => Notice::Accepted { key },
                Err(text) => {
                    self.drop_task(&key);
                    self.journal.forget(&key);
                    // An empty directory of our own; if it stays, the next launcher records a start
                    // that failed.
                    let _ = TaskDir::new(&key).remove();
                    refused(key, Refusal::of_host(text))
                }
            }
        });
        each.collect()
    }

    /// Gives the task to a shepherd of the same user that has just become idle, else to a new one.
    fn start(&mut self, mut document: LaunchDocument, attached: Vec<OwnedFd>) -> io::Result<()> {
        let key = document.key;
        if !self.host.rules.single_user && document.account.tracking_gid.is_none() {
            document.account.tracking_gid = self.tracking.give(key);
        }
        if self.host.groups.refresh(&self.host.folder, self.host.rules.single_user) {
            // An idle shepherd has the place that was known when it was forked.
            self.shepherds.dismiss_idle();
        }
        let traces = Some(Traces::from_document(&document));
        self.tasks.entry(key).or_default().traces = traces;
        let identity = self.identities.recall(&document.account.user);
        while let Some(token) = identity
            .as_ref()
            .and_then(|identity| self.shepherds.take_idle(identity))
        {
            match self.shepherds.give(token, key, &document, &attached) {
                Ok(pid) => {
                    self.children.insert(pid, Child::Shepherd(Some(key)));
                    self.begin(key, token);
                    return Ok(());
                }
                // It is gone, or goes with its socket, and its end will be reaped.
                Err(_) => self.shepherds.remove(token),
            }
        }
        self.fork_shepherd(document, attached, identity)
    }

    fn fork_shepherd(
        &mut self,
        document: LaunchDocument,
        attached: Vec<OwnedFd>,
        identity: Option<Identity>,
    ) -> io::Result<()> {
        let key = document.key;
        let (ours, theirs) = UnixStream::pair()?;
        // All that can fail comes before the fork: a start that is refused has no shepherd.
        let connection = Connection::new(ours)?;
        let token = self.watch(&connection)?;
        let user = User {
            identity: identity.clone(),
            teller: self.identities.teller(),
        };
        match sys::fork()? {
            Fork::Child => shepherd::run(self.host.clone(), user, document, attached, theirs),
            Fork::Parent(pid) => {
                self.children.insert(pid, Child::Shepherd(Some(key)));
                self.shepherds
                    .add(token, key, connection, Some(ForkedShepherd { pid, identity }));
                self.begin(key, token);
                Ok(())
            }
        }
    }

    /// The task has a shepherd that can be reached.
    pub(super) fn begin(&mut self, key: TaskKey, token: u64) {
        let task = self.tasks.entry(key).or_default();
        task.token = Some(token);
        if let Some(order) = task.waiting.take() {
            // What fails here is the end of the shepherd, which is on its way as a notice of its
            // own.
            let _ = self.signal(key, order);
        }
    }
}
