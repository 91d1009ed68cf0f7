//! Load reports: full after each connection and when the master asks, then only what changed, with
//! withdrawn values named.

mod sent_values;

use crate::link::ConnectionWatch;
use crate::messages::DriverInput;
use crate::sensors::{Answer, SampledBlock, SensorAnswers};
use ::sensors::collector::{self, Collector, Values};
use ::sensors::judge::{AttributeTypes, FaultyValue, ValueFault, Verdicts, judge};
use ::sensors::memory::MemFree;
use ::sensors::protocol::LongLines;
use ::sensors::report::merge;
use proto::id::{AttributeName, HostName};
use proto::load::{SensorStatus, ValueFaults};
use proto::wire::agent::{AgentConfig, AgentMessage};
use proto::wire::frame::Kind;
use quic::{Connection, StreamError};
use sent_values::SentValues;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// The interval where the master names none: the default of `load_report_time`.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(40);

/// Faults of values that are logged, of all sensors together.
const FAULTS_LOGGED: usize = 1000;

/// Where a host's own values come from.
pub enum Source {
    /// This machine, asked for each report.
    Machine(Box<MachineValues>),
    /// Values that many simulated hosts share.
    Shared(watch::Receiver<Arc<Values>>),
}

/// Values of this machine.
#[derive(Default)]
pub struct MachineValues {
    collector: Option<(MemFree, Collector)>,
    /// Sources that have failed, so that each failure is logged once.
    failed: BTreeSet<&'static str>,
}

/// Reports the load of one host.
pub struct Reporter {
    /// The host.
    pub host: HostName,
    /// Its own values.
    pub source: Source,
    /// Its load sensors; none for simulated hosts.
    pub sensors: Option<SensorAnswers>,
    /// The connection to report on.
    pub online: ConnectionWatch,
    /// The interval, and how memory is counted.
    pub config: watch::Receiver<AgentConfig>,
    /// Woken when the master wants a full report.
    pub report_now: Arc<Notify>,
    /// Takes the health of sensors to the master.
    pub driver: mpsc::Sender<DriverInput>,
    /// Values that the cell cannot use, as far as they were logged.
    pub faults: LoggedFaults,
}

/// Why the next report is due.
enum ReportCause {
    Interval,
    Asked,
    NewConnection,
    Never,
}

impl Reporter {
    /// Reports until the link or the driver is gone.
    pub async fn run(mut self) {
        let started = Instant::now();
        loop {
            let connection = match self.online.wait_for(Option::is_some).await {
                Ok(online) => online.clone(),
                Err(_) => return,
            };
            let Some(connection) = connection else { continue };
            if self.serve(&connection, started).await.is_err() {
                return;
            }
        }
    }

    /// Reports on one connection; an error once there is nobody to report for.
    async fn serve(&mut self, connection: &Connection, started: Instant) -> Result<(), ()> {
        let mut ledger = SentValues::new(self.host.clone());
        loop {
            let begin = Instant::now();
            if let Err(error) = self.report(connection, &mut ledger, started).await {
                tracing::debug!("a load report was not sent: {error}");
                return self.online.changed().await.map_err(drop);
            }
            match self.until_due(begin).await {
                ReportCause::Interval => {}
                ReportCause::Asked => ledger = ledger.for_full_report(),
                ReportCause::NewConnection => return Ok(()),
                ReportCause::Never => return Err(()),
            }
        }
    }

    /// Waits for the next report after one that was begun at `last`; a changed interval counts at
    /// once.
    async fn until_due(&mut self, last: Instant) -> ReportCause {
        loop {
            let next = last + interval(&self.config.borrow_and_update());
            let changed = tokio::select! {
                () = sleep_until(next) => return ReportCause::Interval,
                () = self.report_now.notified() => return ReportCause::Asked,
                changed = self.online.changed() => {
                    return if changed.is_ok() { ReportCause::NewConnection } else { ReportCause::Never };
                }
                changed = self.config.changed() => changed,
            };
            if changed.is_err() {
                return ReportCause::Never;
            }
        }
    }

    async fn report(
        &mut self,
        connection: &Connection,
        ledger: &mut SentValues,
        started: Instant,
    ) -> Result<(), StreamError> {
        // What is asked for from here on is at most that old; only sensors that are not due have
        // older values.
        let sampled = Instant::now();
        let answers = match &self.sensors {
            Some(sensors) => sensors.ask().await,
            None => Vec::new(),
        };
        let own = self.own_values().await;
        let types = self.config.borrow().attribute_types.clone();
        let judged: Vec<Option<JudgedBlock<'_>>> = answers
            .iter()
            .map(|answer| JudgedBlock::from_answer(answer, &types))
            .collect();
        let blocks = || judged.iter().flatten();
        let all = merge(&own, blocks().map(|block| block.verdicts.usable.as_ref()));
        let mut report = ledger.next(&all);
        let now = Instant::now();
        report.sampled_ago_ms = milliseconds(now - sampled);
        report.up_ms = milliseconds(now - started);
        let ages = blocks().map(|block| (block.verdicts.usable.as_ref(), milliseconds(block.sampled.age(now))));
        report.older = ledger.older(ages, report.sampled_ago_ms);
        connection.send_report(Kind::Load, report.sequence, &report).await?;
        ledger.sent();
        let statuses = answers
            .iter()
            .zip(&judged)
            .map(|(answer, judged)| with_faults(answer, judged.as_ref()));
        let statuses: Vec<SensorStatus> = statuses.collect();
        for (answer, block) in answers.iter().zip(&judged) {
            let faulty = block.iter().flat_map(|block| &block.verdicts.faulty);
            faulty.for_each(|value| self.faults.log(&answer.status.command, value));
        }
        self.tell_health(statuses).await;
        Ok(())
    }

    async fn own_values(&mut self) -> Arc<Values> {
        let mem_free = match self.config.borrow().mem_free_classic {
            true => MemFree::Classic,
            false => MemFree::Available,
        };
        match &mut self.source {
            Source::Machine(machine) => Arc::new(machine.sample(mem_free).await),
            Source::Shared(values) => values.borrow().clone(),
        }
    }

    async fn tell_health(&mut self, statuses: Vec<SensorStatus>) {
        if self.sensors.is_some() {
            // The driver is gone only when the agent ends.
            let _ = self
                .driver
                .send(DriverInput::Soft(Box::new(AgentMessage::Sensors(statuses))))
                .await;
        }
    }
}

impl MachineValues {
    /// Asks the sources, which may take a moment, outside the tasks of the runtime.
    pub async fn sample(&mut self, mem_free: MemFree) -> Values {
        let collector = match self.collector.take() {
            Some((kind, collector)) if kind == mem_free => collector,
            Some(_) | None => Collector::new(collector::CollectorSettings {
                mem_free,
                ..collector::CollectorSettings::default()
            }),
        };
        let asked = tokio::task::spawn_blocking(move || {
            let mut collector = collector;
            let sample = collector.sample();
            (collector, sample)
        });
        let Ok((collector, sample)) = asked.await else {
            tracing::error!("the collector of load values failed");
            return Values::new();
        };
        self.collector = Some((mem_free, collector));
        for (source, error) in sample.failures() {
            if self.failed.insert(source) {
                tracing::warn!("load values of {source}: {error}");
            }
        }
        sample.values
    }
}

/// A block of a sensor, and which of its values the cell can use.
struct JudgedBlock<'a> {
    sampled: &'a SampledBlock,
    verdicts: Verdicts<'a>,
}

impl<'a> JudgedBlock<'a> {
    fn from_answer(answer: &'a Answer, types: &AttributeTypes) -> Option<Self> {
        let sampled = answer.values.as_ref()?;
        Some(Self {
            sampled,
            verdicts: judge(sampled.block.values(), types),
        })
    }
}

/// The health of a sensor with the faults of its values.
fn with_faults(answer: &Answer, judged: Option<&JudgedBlock<'_>>) -> SensorStatus {
    let faults = judged.map(|judged| {
        let block = &judged.sampled.block;
        with_long_lines(judged.verdicts.faults(block.values()), block.long_lines())
    });
    SensorStatus {
        faults: faults.unwrap_or_default(),
        ..answer.status.clone()
    }
}

/// Adds the lines that were too long: the cell cannot use a value that was cut.
fn with_long_lines(mut faults: ValueFaults, long_lines: &LongLines) -> ValueFaults {
    if long_lines.count > 0 {
        faults.count = faults.count.saturating_add(long_lines.count);
        faults.examples.insert(
            0,
            format!("a line is too long, and its value does not count: {}", long_lines.first),
        );
    }
    faults
}

/// Faults that were logged: each is told once, and not with each report.
#[derive(Default)]
pub struct LoggedFaults(BTreeSet<(String, AttributeName, ValueFault)>);

impl LoggedFaults {
    fn log(&mut self, sensor: &str, value: &FaultyValue) {
        let key = (sensor.to_owned(), value.name.clone(), value.fault);
        // A sensor that invents names does not fill the memory: those beyond are in its status.
        if self.0.len() < FAULTS_LOGGED && self.0.insert(key) {
            tracing::warn!("load sensor {sensor}: {value}");
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The interval between two reports.
fn interval(config: &AgentConfig) -> Duration {
    match config.report_interval_ms {
        0 => DEFAULT_INTERVAL,
        ms => Duration::from_millis(ms),
    }
}
