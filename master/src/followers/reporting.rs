//! The reporting file, reporting(5): a record for each step in the life of jobs, and for the use of
//! queues and hosts, for tools that follow a cell.
//!
//! Written where `reporting_params` says `reporting=true`. The database has what matters; lines
//! that were not written when the master was killed are lost, as in 8.1.9: at most those of
//! `flush_time`.

mod lines;
mod reservations;
#[cfg(test)]
mod tests;

use lines::Lines;
use master_core::event::{Event, Record};
use master_core::observe::{Observation, Observations};
use master_core::state::State;
use proto::conf::ReportingParams;
use proto::id::ReservationId;
use proto::job::GrantedSlots;
use proto::time::{Now, Tick};
use proto::wire::view::ShareNode;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// Bytes that wait for the next write; more are written at once.
const WAITING_MAX: usize = 1 << 20;

/// The file, and what waits to be written to it.
pub struct ReportingFile {
    path: PathBuf,
    /// The master's host, by which it is named in records.
    host: String,
    waiting: String,
    /// `reporting_params` as they are now.
    params: ReportingParams,
    /// The slots that the event at hand takes or frees.
    touched: Vec<GrantedSlots>,
    /// The advance reservations of which it was told that something in them fails.
    failing: BTreeSet<ReservationId>,
    /// When what waits is written; none if nothing waits.
    due: Option<Instant>,
    /// When the shares were last written.
    shares_at: Option<Tick>,
    /// Whether the last write failed, so that the log has been told.
    is_failing: bool,
}

impl ReportingFile {
    /// The file of this path; it is made with its first line.
    pub fn new(path: PathBuf, host: String, state: &State) -> Self {
        let params = state.config.settings.reporting();
        let (waiting, touched, failing) = (String::new(), Vec::new(), BTreeSet::new());
        Self {
            path,
            host,
            waiting,
            params,
            touched,
            failing,
            due: None,
            shares_at: None,
            is_failing: false,
        }
    }

    /// `reporting_params` as they are now.
    pub fn params(&self) -> &ReportingParams {
        &self.params
    }

    /// When [`ReportingFile::flush`] is to be called; none if nothing waits.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Notes what an event says that is still to be seen in the state before it.
    pub fn before(&mut self, state: &State, record: &Record) {
        if !self.params.reporting {
            return;
        }
        if let Event::TaskPlaced { granted, .. } = &record.event {
            self.touched.clone_from(granted);
        } else if let Event::TaskEnded { key, .. } = &record.event {
            let placed = state.placed(*key);
            self.touched = placed.map_or_else(Vec::new, |(.., placement)| placement.granted.clone());
        }
        self.reservations_before(state, record);
        self.note(state, |lines| lines.of_event(record));
    }

    /// Notes what an event has led to in the state behind it.
    pub fn after(&mut self, state: &State, observations: &Observations, record: &Record) {
        if matches!(record.event, Event::ObjectsChanged(_)) {
            self.params = state.config.settings.reporting();
        }
        let touched = std::mem::take(&mut self.touched);
        if !touched.is_empty() {
            self.note(state, |lines| lines.of_consumables(record.now.wall.seconds(), &touched));
        }
        self.reservations_after(state, observations, record);
    }

    /// Notes a load report, which is folded already.
    pub fn observed(&mut self, state: &State, observations: &Observations, observation: &Observation, now_s: i64) {
        match observation {
            Observation::Load { host, .. } => self.note(state, |lines| lines.of_load(observations, host, now_s)),
            Observation::Contact { .. } | Observation::Unheard { .. } => self.failures(state, observations, now_s),
            Observation::Usage(_)
            | Observation::Sensors { .. }
            | Observation::LoadRefused { .. }
            | Observation::Unfit { .. } => {}
        }
    }

    /// Notes what the parts of the share tree are entitled to and have used, if it is time
    /// (`sharelog`).
    pub fn shares(&mut self, state: &State, nodes: &[ShareNode], now: Now) {
        let interval_ms = self.params.sharelog_s.saturating_mul(1000);
        let is_recent = self.shares_at.is_some_and(|at| now.tick.since_ms(at) < interval_ms);
        if interval_ms == 0 || nodes.is_empty() || is_recent {
            return;
        }
        self.shares_at = Some(now.tick);
        self.note(state, |lines| {
            nodes.iter().for_each(|node| lines.of_share(node, now.wall.seconds()))
        });
    }

    fn note(&mut self, cell: &State, add: impl FnOnce(&mut Lines<'_>)) {
        if !self.params.reporting {
            return;
        }
        add(&mut Lines {
            out: &mut self.waiting,
            master: &self.host,
            cell,
            params: &self.params,
        });
        if self.waiting.is_empty() {
            return;
        }
        self.due
            .get_or_insert_with(|| Instant::now() + Duration::from_secs(self.params.flush_time_s));
        if self.waiting.len() > WAITING_MAX {
            self.flush();
        }
    }

    /// Writes what waits. A file that somebody moved away is begun anew; what cannot be written is
    /// lost.
    pub fn flush(&mut self) {
        self.due = None;
        let text = std::mem::take(&mut self.waiting);
        if text.is_empty() {
            return;
        }
        let written = self.write(&text);
        match (&written, self.is_failing) {
            (Err(error), false) => tracing::error!("cannot write {}, records are lost: {error}", self.path.display()),
            (Ok(()), true) => tracing::info!("{} can be written again", self.path.display()),
            (Err(_), true) | (Ok(()), false) => {}
        }
        self.is_failing = written.is_err();
    }

    fn write(&self, text: &str) -> io::Result<()> {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)?
            .write_all(text.as_bytes())
    }
}
