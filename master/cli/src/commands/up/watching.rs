//! A cell in the foreground: its daemons are started again when they end.

use super::signals::Signals;
use super::{Cell, is_marked};
use crate::commands::{Outcome, down};
use crate::daemons::{Daemon, POLL};
use crate::{exit, output};
use proto::wire::view::CellStatus;
use std::io::IsTerminal;
use std::process::Child;
use std::time::{Duration, Instant};

/// How often the live status line is renewed.
const STATUS_EVERY: Duration = Duration::from_secs(1);

impl Cell {
    /// Shows a status line and starts again what dies, until a signal or `gridwright down` ends the
    /// cell.
    pub(super) fn watch(&mut self, signals: &mut Signals) -> Outcome {
        let terminal = std::io::stdout().is_terminal();
        let mut next_status = Instant::now();
        loop {
            if is_marked(&self.dir) {
                return Ok(exit::OK);
            }
            self.reap();
            self.start_again();
            if terminal && Instant::now() >= next_status {
                next_status = Instant::now() + STATUS_EVERY;
                if let Some(status) = self.status() {
                    // Nobody watches any more: the cell goes on.
                    let _ = output::raw(&status_line(&status));
                }
            }
            if signals.comes_within(POLL * 10) {
                down::end_daemons(&self.dir)?;
                output::data(&format!("\ncell down in {}; running jobs go on\n", self.dir.display()));
                return Ok(exit::OK);
            }
        }
    }

    /// Takes note of the daemons that ended, so that the machine keeps no zombies of them, and says
    /// which they are.
    fn reap(&mut self) {
        let ended = |(daemon, child): &mut (Daemon, Child)| Some((*daemon, child.try_wait().ok().flatten()?));
        let ends: Vec<_> = self.children.iter_mut().filter_map(ended).collect();
        self.children
            .retain_mut(|(_, child)| !matches!(child.try_wait(), Ok(Some(_))));
        for (daemon, status) in ends {
            let log = daemon.log(&self.dir);
            let text = format!(
                "the {} ended ({status}) and is started again; its log: {}",
                daemon.name(),
                log.display()
            );
            self.say_once(daemon, &text);
        }
    }

    /// Starts the daemons that are gone, each at most once a second. One that cannot be started is
    /// tried again, and so are the others.
    fn start_again(&mut self) {
        for daemon in self.gone() {
            if !self.restarts.is_due(daemon, Instant::now()) {
                continue;
            }
            if !self.restarts.has_start(daemon) {
                self.say_once(daemon, &format!("the {} is gone and is started again", daemon.name()));
            }
            if let Err(fail) = self.spawn(daemon) {
                let why = fail.diagnostic;
                self.say_once(
                    daemon,
                    &format!("the {} cannot be started and is tried again: {why}", daemon.name()),
                );
            }
        }
    }

    fn say_once(&mut self, daemon: Daemon, text: &str) {
        if self.restarts.is_news(daemon, text, Instant::now()) {
            output::note(text);
        }
    }
}

fn status_line(status: &CellStatus) -> String {
    format!(
        "\r{} of {} hosts report, {} running, {} pending, event {}   ",
        status.hosts_reporting, status.hosts, status.running, status.pending, status.event_seq
    )
}
