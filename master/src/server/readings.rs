//! Questions that are answered from the database, beside the reader thread and part by part.
//!
//! A question keeps a place only while it reads a part, so a client that is slow keeps nobody from
//! reading. `qacct` and `gridwright changes` have places of their own: a question about changes
//! reads the whole log, and accounting records do not wait for that.

use crate::query::{Accounting, Changes};
use proto::diagnostic::{Code, Diagnostic};
use proto::job::Owner;
use proto::wire::client::{AccountingFilter, ChangeFilter, Reply};
use quic::{Share, ShareRefusal, Shares};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinError;

/// Questions about changes that read a part at the same time.
const CHANGES_READERS: usize = 2;

/// Questions about changes that are under way, for all users together. Each holds the objects and
/// the jobs of the cell, and an answer of up to 8 MiB.
const CHANGES_ALL: usize = 32;

/// Questions about changes that are under way for one user.
const CHANGES_PER_USER: usize = 2;

/// The places of all questions to the database.
pub struct ReadingPlaces {
    accounting: Arc<Semaphore>,
    changes: Arc<Semaphore>,
    changes_under_way: Shares,
}

impl ReadingPlaces {
    /// Places for so many questions about accounting records that read at the same time.
    pub fn new(accounting_readers: usize) -> Self {
        Self {
            accounting: Arc::new(Semaphore::new(accounting_readers)),
            changes: Arc::new(Semaphore::new(CHANGES_READERS)),
            changes_under_way: Shares::new(CHANGES_ALL, CHANGES_PER_USER),
        }
    }

    /// A question about accounting records.
    pub(super) fn accounting(&self, database: &Path, filter: AccountingFilter) -> DatabaseReading {
        DatabaseReading {
            places: self.accounting.clone(),
            question: DatabaseQuestion::Accounting(Box::new(Accounting::new(database.to_owned(), filter))),
        }
    }

    /// A question about changes.
    ///
    /// # Errors
    /// The user, or all users together, have as many of them under way as they may have.
    pub(super) fn changes(
        &self,
        database: &Path,
        filter: ChangeFilter,
        asker: &Owner,
    ) -> Result<DatabaseReading, Diagnostic> {
        let share = self.changes_under_way.take(asker.uid).map_err(|full| {
            let what = match full {
                ShareRefusal::All { limit } => format!("{limit} commands read the changes of the cell already"),
                ShareRefusal::Each { limit } => {
                    format!(
                        "{limit} commands of {} read the changes of the cell already",
                        asker.user
                    )
                }
            };
            Diagnostic::new(Code::Overloaded, what).fix("wait until one of them has ended, or end one")
        })?;
        Ok(DatabaseReading {
            places: self.changes.clone(),
            question: DatabaseQuestion::Changes(Box::new(Changes::new(database.to_owned(), filter)), share),
        })
    }
}

/// One question, while it is answered.
pub(super) struct DatabaseReading {
    places: Arc<Semaphore>,
    question: DatabaseQuestion,
}

enum DatabaseQuestion {
    Accounting(Box<Accounting>),
    /// The share is free again when the question is dropped.
    Changes(Box<Changes>, Share),
}

impl DatabaseReading {
    /// Reads the next part of the answer, when its turn has come. Returns it with the rest of the
    /// question if there is more; `None` if the client has gone before.
    ///
    /// # Errors
    /// The reading failed in a way that is a bug.
    pub(super) async fn next(
        mut self,
        gone: &mut watch::Receiver<()>,
    ) -> Result<Option<(Reply, Option<Self>)>, JoinError> {
        let place = tokio::select! {
            biased;
            // Nothing is ever sent here: it ends with the half of the session that reads.
            _ = gone.changed() => return Ok(None),
            place = self.places.clone().acquire_owned() => place,
        };
        let part = tokio::task::spawn_blocking(move || {
            let _place = place;
            let reply = self.question.part();
            let rest = reply.more.then_some(self);
            (reply, rest)
        });
        part.await.map(Some)
    }
}

impl DatabaseQuestion {
    /// The next part of the answer; the last one is without `more`. Blocks while it reads.
    fn part(&mut self) -> Reply {
        match self {
            DatabaseQuestion::Accounting(question) => question.part(),
            DatabaseQuestion::Changes(question, _share) => question.part(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::testing::{TempDir, cell_events, spec};

    fn owner(uid: u32) -> Owner {
        Owner {
            uid,
            ..Owner::clone(&spec().owner)
        }
    }

    fn database(dir: &TempDir, jobs: u64) -> std::path::PathBuf {
        let path = dir.path().join("cell.db");
        Store::create(&path).unwrap().append(&cell_events(jobs)).unwrap();
        path
    }

    #[test]
    fn a_user_has_two_questions_about_changes_under_way_and_others_have_theirs() {
        let places = ReadingPlaces::new(1);
        let ask = |uid| places.changes(Path::new("nowhere"), ChangeFilter::default(), &owner(uid));
        let own = (ask(1).unwrap(), ask(1).unwrap());
        let Err(refusal) = ask(1) else {
            panic!("a third question was taken")
        };
        assert_eq!(refusal.code, Code::Overloaded);
        assert!(refusal.what.starts_with("2 commands of "), "{}", refusal.what);
        assert!(ask(2).is_ok(), "another user has places");
        drop(own);
        assert!(ask(1).is_ok(), "places of questions that ended are free");
    }

    #[tokio::test]
    async fn a_client_that_has_gone_is_not_read_for() {
        let dir = TempDir::new("readings");
        let path = database(&dir, 20_000);
        let places = ReadingPlaces::new(1);
        let (here, mut gone) = watch::channel(());
        let ask = || places.changes(&path, ChangeFilter::default(), &owner(1)).unwrap();
        let Some((part, Some(rest))) = ask().next(&mut gone).await.unwrap() else {
            panic!("the log is longer than a part")
        };
        assert!(part.more);
        drop(here);
        assert!(rest.next(&mut gone).await.unwrap().is_none());
        let places_left = (ask(), ask());
        drop(places_left);
    }

    #[tokio::test]
    async fn accounting_records_do_not_wait_for_changes() {
        let dir = TempDir::new("readings");
        let path = database(&dir, 10);
        let places = ReadingPlaces::new(1);
        let (_here, mut gone) = watch::channel(());
        let all = u32::try_from(CHANGES_READERS).unwrap();
        let _taken = places.changes.clone().acquire_many_owned(all).await.unwrap();
        let question = places.accounting(&path, AccountingFilter::default());
        assert!(question.next(&mut gone).await.unwrap().is_some());
    }
}
