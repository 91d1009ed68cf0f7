//! Long scripts of jobs lie in the database, not in memory: the state, the log and snapshots hold
//! their checksum and size.
//!
//! A submission comes in with its script, which is exchanged for its checksum before the core sees
//! it; the row is written in the transaction of the event that makes the job. A description goes
//! out to an agent with the script in its place again. Which scripts are in use follows from the
//! jobs of the state alone.

use crate::store::{ScriptChanges, Store, StoreError, script_digest};
use master_core::effect::{Input, VerificationId, VerificationOrder};
use master_core::event::{Event, Record};
use master_core::state::State;
use proto::id::SubmitSeq;
use proto::job::{JobSpec, Program, ScriptDigest, StoredScript};
use proto::wire::client::Command;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Bytes up to which a script stays with its job: a row of its own would cost more.
const SHORT_BYTES: usize = 4_096;

/// Bytes of scripts that were read last and are kept for the next host of the same job.
const CACHE_BYTES: usize = 32 << 20;

/// A stored script cannot be sent to a host.
#[derive(Debug, thiserror::Error)]
enum ScriptError {
    #[error("it is missing from the database")]
    Missing,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The scripts that jobs use, and scripts of submissions that are not stored yet.
#[derive(Debug, Default)]
pub struct Scripts {
    of_job: BTreeMap<SubmitSeq, ScriptDigest>,
    /// The number of jobs that use each script. It is never 0.
    uses: BTreeMap<ScriptDigest, u32>,
    /// Scripts of submissions whose events are not stored yet.
    fresh: BTreeMap<ScriptDigest, Arc<[u8]>>,
    /// Scripts that lost their last job. Messages of the same turn may still need them, so their
    /// rows go with the next one.
    unused: BTreeSet<ScriptDigest>,
    /// Scripts of jobs that the verifier of the cell looks at.
    held: BTreeMap<VerificationId, (ScriptDigest, Arc<[u8]>)>,
    cache: VecDeque<(ScriptDigest, Arc<[u8]>)>,
    /// Whether rows were dropped whose room the database may still have.
    has_left_room: bool,
}

impl Scripts {
    /// Collects the scripts of the jobs of a state. Drops all other scripts from the database.
    ///
    /// # Errors
    /// See [`Store::scripts`].
    pub fn collect(state: &State, store: &mut Store) -> Result<Self, StoreError> {
        let mut scripts = Self::default();
        for job in state.jobs.values() {
            scripts.enter(job.seq, &job.spec);
        }
        let left: Vec<_> = store
            .scripts()?
            .into_iter()
            .filter(|digest| !scripts.uses.contains_key(digest))
            .collect();
        if !left.is_empty() {
            store.drop_scripts(left)?;
        }
        Ok(scripts)
    }

    /// Takes a long script out of a submission.
    pub fn take_out(&mut self, mut input: Input) -> Input {
        let Input::Command { command, .. } = &mut input else {
            return input;
        };
        let Command::Submit(spec) = &mut **command else {
            return input;
        };
        let Program::Script { path, content } = &mut spec.program else {
            return input;
        };
        if content.len() > SHORT_BYTES {
            let script = StoredScript {
                digest: script_digest(content),
                bytes: content.len() as u64,
            };
            self.fresh.insert(script.digest, content.clone());
            spec.program = Program::Stored {
                path: std::mem::take(path),
                script: Box::new(script),
            };
        }
        input
    }

    /// Keeps the script of a job while the verifier of the cell looks at it: the job that it was
    /// copied from may end meanwhile.
    pub fn hold(&mut self, order: &VerificationOrder, store: &Store) {
        let Program::Stored { script, .. } = &order.spec.program else {
            return;
        };
        let fresh = self.fresh.get(&script.digest).cloned();
        // Of a script that is lost, the job says so where it runs.
        if let Some(content) = fresh.or_else(|| self.content(&script.digest, store).ok()) {
            self.held.insert(order.id, (script.digest, content));
        }
    }

    /// Has the scripts of a request at hand, one of whose jobs the verifier has looked at.
    pub fn bring_back(&mut self, id: VerificationId) {
        let of_request = self.held.range(jobs_of(id)).map(|(_, script)| script.clone());
        self.fresh.extend(of_request.collect::<Vec<_>>());
    }

    /// Forgets the scripts of a request that has been decided.
    pub fn let_go(&mut self, id: VerificationId) {
        let decided: Vec<_> = self.held.range(jobs_of(id)).map(|(id, _)| *id).collect();
        for id in decided {
            self.held.remove(&id);
        }
    }

    /// Returns the scripts that the database stores and drops with these events.
    pub fn follow<R: Borrow<Record>>(&mut self, records: &[R]) -> ScriptChanges {
        let mut changes = ScriptChanges::default();
        let before = std::mem::take(&mut self.unused);
        for record in records {
            let event = &record.borrow().event;
            if let Event::JobSubmitted { seq, spec, .. } = event {
                self.enter(*seq, spec);
                if let Program::Stored { script, .. } = &spec.program
                    && let Some(body) = self.fresh.remove(&script.digest)
                {
                    changes.kept.push((script.digest, body));
                }
            } else if let Event::JobFinished { seq } = event {
                self.leave(*seq);
            }
        }
        changes.dropped = before
            .into_iter()
            .filter(|digest| !self.uses.contains_key(digest))
            .collect();
        self.has_left_room |= !changes.dropped.is_empty();
        self.cache.retain(|(digest, _)| !changes.dropped.contains(digest));
        self.forget_refused();
        changes
    }

    /// Forgets scripts whose submissions were refused: those that no event of the turn has taken.
    pub fn forget_refused(&mut self) {
        self.fresh.clear();
    }

    /// Whether there are scripts that no job needs any more.
    pub fn has_unused(&self) -> bool {
        !self.unused.is_empty()
    }

    /// Whether the database may have room that scripts have left.
    pub fn has_left_room(&self) -> bool {
        self.has_left_room
    }

    /// Some of that room was given back, and there may be `more`.
    pub fn gave_back(&mut self, more: bool) {
        self.has_left_room = more;
    }

    /// A description as an agent gets it: with the script in its place.
    pub fn put_in(&mut self, spec: &Arc<JobSpec>, store: &Store) -> Arc<JobSpec> {
        let Program::Stored { path, script } = &spec.program else {
            return spec.clone();
        };
        let content = self.content(&script.digest, store).unwrap_or_else(|error| {
            let why = crate::error_chain(&error);
            tracing::error!(
                "the script of job \"{}\" of {} cannot be sent: {why}",
                spec.name,
                spec.owner.user
            );
            lost(&why)
        });
        let program = Program::Script {
            path: path.clone(),
            content,
        };
        Arc::new(JobSpec {
            program,
            ..(**spec).clone()
        })
    }

    fn content(&mut self, digest: &ScriptDigest, store: &Store) -> Result<Arc<[u8]>, ScriptError> {
        if let Some((_, content)) = self.cache.iter().find(|(known, _)| known == digest) {
            return Ok(content.clone());
        }
        let content = store.script(digest)?.ok_or(ScriptError::Missing)?;
        self.cache.push_back((*digest, content.clone()));
        while self.cache.iter().map(|(_, content)| content.len()).sum::<usize>() > CACHE_BYTES && self.cache.len() > 1 {
            self.cache.pop_front();
        }
        Ok(content)
    }

    fn enter(&mut self, job: SubmitSeq, spec: &JobSpec) {
        if let Program::Stored { script, .. } = &spec.program {
            self.of_job.insert(job, script.digest);
            *self.uses.entry(script.digest).or_default() += 1;
        }
    }

    fn leave(&mut self, job: SubmitSeq) {
        let Some(digest) = self.of_job.remove(&job) else { return };
        let uses = self.uses.get_mut(&digest).expect("the script of a job is in use");
        *uses -= 1;
        if *uses == 0 {
            self.uses.remove(&digest);
            self.unused.insert(digest);
        }
    }
}

/// All jobs of the request of one.
fn jobs_of(id: VerificationId) -> RangeInclusive<VerificationId> {
    VerificationId { copy: 0, ..id }..=VerificationId { copy: u32::MAX, ..id }
}

/// Runs in the place of a script that is lost: the job goes into error with the reason in its
/// output, and never counts as done.
fn lost(why: &str) -> Arc<[u8]> {
    let why: String = why
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || " .,:/-".contains(*character))
        .collect();
    Arc::from(
        format!("#!/bin/sh\necho 'gridwright: the script of this job is lost: {why}' >&2\nexit 100\n").into_bytes(),
    )
}
