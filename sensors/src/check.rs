//! What `gridwright sensor check` says about a run of a sensor, line by line.
//!
//! The agent runs the sensor as it always does, with
//! [`Trace::Lines`](crate::protocol::Trace::Lines), and records what it did and saw; this module
//! turns the record into text and a verdict. Deliberately absent: the running.

use crate::host::HostSpec;
use crate::judge::{AttributeTypes, ValueFault, judge};
use crate::protocol::{Action, Block, Doubt, Exit, Meaning, Request, Signal, Value, WarningKind};
use proto::amount::Type;
use proto::id::{AttributeName, HostName};
use proto::time::Tick;
use std::collections::BTreeSet;

/// Lines of the sensor that are shown; the rest of a flood is counted.
const LINES_SHOWN: usize = 200;

/// Things that are wrong and named at the end.
const COMPLAINTS: usize = 20;

/// Characters of a line that are shown.
const CHARS_SHOWN: usize = 160;

/// A checked run: counts, and what to say at its end. What happened is told as it happens, so that
/// a flood costs no memory.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    start: Option<Tick>,
    blocks: usize,
    warnings: usize,
    /// The first warning of each kind, in the order in which they came; of values, the first of
    /// each name.
    first: Vec<Complaint>,
    /// The facts about the cell against which values are checked.
    cell: Option<CellFacts>,
    /// When the sensor was last asked.
    requested_at: Option<Tick>,
    /// Lines of the sensor so far.
    lines: usize,
}

/// The facts about the cell in which a sensor is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellFacts {
    /// The attributes of its complex.
    pub types: AttributeTypes,
    /// Its execution hosts.
    pub hosts: BTreeSet<HostName>,
    /// `load_report_time` in milliseconds; 0 if it is not known.
    pub report_interval_ms: u64,
}

impl CellFacts {
    /// Reads lines `type NAME TYPE`, `host NAME` and `interval SECONDS`; others are skipped.
    pub fn parse(text: &str) -> CellFacts {
        let mut facts = CellFacts::default();
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["type", name, r#type] => {
                    let read = Type::parse(r#type).map(|r#type| (AttributeName::from(*name), r#type));
                    facts.types.extend(read);
                }
                ["host", name] => drop(facts.hosts.insert(HostName::new(name))),
                ["interval", seconds] => {
                    facts.report_interval_ms = seconds.parse().map_or(0, |seconds: u64| seconds * 1000)
                }
                _ => {}
            }
        }
        facts
    }
}

/// Something that is wrong with a sensor.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Complaint {
    flaw: Flaw,
    /// The value that is meant, if one is.
    name: Option<AttributeName>,
    text: String,
}

/// A fault of a sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// It does not keep the protocol.
    Protocol(WarningKind),
    /// The cell cannot use a value.
    Value(ValueFault),
    /// It reports for a host that the cell does not have.
    Stranger,
    /// An answer takes longer than the time between two reports.
    Slow,
}

/// How a checked sensor did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing to say against it.
    Good,
    /// It works, and something should be mended.
    Warned,
    /// It delivered no block, or none in time, or could not be started.
    Failed,
}

impl Verdict {
    /// The exit code of the command: 0 for a sensor that works, 1 for one that does not.
    pub fn exit_code(self) -> u8 {
        match self {
            Verdict::Good | Verdict::Warned => 0,
            Verdict::Failed => 1,
        }
    }
}

impl Transcript {
    /// The record of a run that has not begun. Without facts about the cell, names and types of
    /// values are not judged.
    pub fn new(cell: Option<CellFacts>) -> Self {
        Self {
            cell,
            ..Self::default()
        }
    }

    /// Takes what the machine asked for at `now`, and tells it: seconds since the start, who (`->`
    /// to the sensor, `<-` from it, `!!` a warning), what, and what it was understood to mean.
    pub fn actions(&mut self, actions: &[Action], now: Tick) -> Vec<String> {
        actions.iter().flat_map(|action| self.action(action, now)).collect()
    }

    /// Takes the end of the process at `now`, and tells it.
    pub fn exited(&mut self, exit: Exit, now: Tick) -> Vec<String> {
        self.timed(vec![format!("<- ended with {exit}")], now)
    }

    fn action(&mut self, action: &Action, now: Tick) -> Vec<String> {
        match action {
            Action::Block(block) => {
                self.blocks += 1;
                let mut lines = describe_block(block);
                lines.extend(self.judge(block, now).into_iter().map(|text| format!("!! {text}")));
                return self.timed(lines, now);
            }
            Action::Warn(warning) => {
                let (flaw, text) = (Flaw::Protocol(warning.kind), warning.text.clone());
                self.complain(Complaint { flaw, name: None, text });
            }
            Action::Write(Request::Collect) => self.requested_at = Some(now),
            Action::Line { .. } | Action::Stderr(_) => {
                self.lines += 1;
                if self.lines == LINES_SHOWN + 1 {
                    return self.timed(vec!["<- … (further lines are counted and not shown)".to_owned()], now);
                }
                if self.lines > LINES_SHOWN {
                    return Vec::new();
                }
            }
            Action::Start
            | Action::Write(Request::Quit)
            | Action::CloseStdin
            | Action::SignalGroup(_)
            | Action::Health { .. }
            | Action::Ended => {}
        }
        self.timed(describe_action(action), now)
    }

    fn complain(&mut self, complaint: Complaint) {
        self.warnings += 1;
        let is_new = |known: &Complaint| (known.flaw, &known.name) != (complaint.flaw, &complaint.name);
        if self.first.len() < COMPLAINTS && self.first.iter().all(is_new) {
            self.first.push(complaint);
        }
    }

    /// Returns complaints about values of a block that the cell cannot use, and about a block that
    /// is too late for a report.
    fn judge(&mut self, block: &Block, now: Tick) -> Vec<String> {
        let Some(cell) = &self.cell else { return Vec::new() };
        let verdicts = judge(block.values(), &cell.types);
        let faulty = verdicts.faulty.iter().map(|value| Complaint {
            flaw: Flaw::Value(value.fault),
            name: Some(value.name.clone()),
            text: value.to_string(),
        });
        let others = block.values().keys().filter_map(|(host, _)| match host {
            HostSpec::Other(host) if !cell.hosts.contains(host) => Some(host.clone()),
            HostSpec::Other(_) | HostSpec::This | HostSpec::Global => None,
        });
        let strangers = others.collect::<BTreeSet<_>>().into_iter().map(|host| Complaint {
            flaw: Flaw::Stranger,
            name: Some(AttributeName::from(host.as_str())),
            text: format!("values for host {host}: it is no execution host of the cell"),
        });
        let took_ms = self.requested_at.map_or(0, |at| now.since_ms(at));
        let interval_ms = cell.report_interval_ms;
        let slow = (interval_ms > 0 && took_ms > interval_ms).then(|| Complaint {
            flaw: Flaw::Slow,
            name: None,
            text: format!(
                "an answer took {} s, longer than load_report_time ({} s)",
                took_ms / 1000,
                interval_ms / 1000
            ),
        });
        let complaints: Vec<Complaint> = faulty.chain(strangers).chain(slow).collect();
        let texts = complaints.iter().map(|complaint| shown(&complaint.text)).collect();
        complaints.into_iter().for_each(|complaint| self.complain(complaint));
        texts
    }

    fn timed(&mut self, lines: Vec<String>, now: Tick) -> Vec<String> {
        let ms = now.since_ms(*self.start.get_or_insert(now));
        lines
            .into_iter()
            .map(|line| format!("{:>4}.{:03}  {line}", ms / 1000, ms % 1000))
            .collect()
    }

    /// How many complete blocks were delivered.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// How many things were warned about.
    pub fn warnings(&self) -> usize {
        self.warnings
    }

    /// The judgement over the whole run.
    pub fn verdict(&self) -> Verdict {
        let is_too_slow = self
            .first
            .iter()
            .any(|first| first.flaw == Flaw::Protocol(WarningKind::NoAnswer));
        match (self.blocks, self.warnings) {
            // What came after the deadline helps nobody: the agent would end the sensor each time.
            (_, _) if is_too_slow => Verdict::Failed,
            (0, _) => Verdict::Failed,
            (_, 0) => Verdict::Good,
            _ => Verdict::Warned,
        }
    }

    /// The judgement as text: whether it works, and each thing that is wrong with its remedy.
    pub fn summary(&self) -> Vec<String> {
        let hidden = self.lines.saturating_sub(LINES_SHOWN);
        let hidden = if hidden > 0 {
            format!(", lines not shown: {hidden}")
        } else {
            String::new()
        };
        let counts = format!("complete blocks: {}, warnings: {}{hidden}", self.blocks, self.warnings);
        let head = match self.verdict() {
            Verdict::Good => format!("good: {counts}"),
            Verdict::Warned => format!("works, with warnings: {counts}"),
            Verdict::Failed => format!("does not work: {counts}"),
        };
        let reasons = self.first.iter().flat_map(|first| {
            [
                format!("  why: {}", shown(&first.text)),
                format!("  fix: {}", first.flaw.remedy()),
            ]
        });
        std::iter::once(head).chain(reasons).collect()
    }
}

impl Flaw {
    /// Returns the remedy for the author of the sensor.
    fn remedy(self) -> &'static str {
        match self {
            Flaw::Protocol(kind) => remedy(kind),
            Flaw::Value(ValueFault::UnknownAttribute) => {
                "write the full name of an attribute of qconf -sc, or have it added: qconf -mc"
            }
            Flaw::Value(ValueFault::NotOfType(_)) => {
                "print a value of the attribute's type (qconf -sc shows it), and leave the line out where there is none"
            }
            Flaw::Stranger => "report for $HOST, for global, or for execution hosts (qconf -sel)",
            Flaw::Slow => {
                "collect in the background and answer at once, or give it an interval_s in a [[sensor]] section of etc/agent.toml"
            }
        }
    }
}

/// What its author can do about a warning.
fn remedy(kind: WarningKind) -> &'static str {
    match kind {
        WarningKind::NotUnderstood => "write each value as host:name:value, and everything else to standard error",
        WarningKind::LineTooLong => "end each line with a newline and keep it short",
        WarningKind::EmptyValue => "leave the line out where there is no value",
        WarningKind::EmptyHost => "begin the line with $HOST, or with global for the whole cluster",
        WarningKind::DataBeforeBegin | WarningKind::NoBegin => "print begin before the first value",
        WarningKind::UnfinishedBlock => "print end after the last value",
        WarningKind::StrayEnd => "print end once, after the values",
        WarningKind::BlockTooLarge => "report fewer or shorter values",
        WarningKind::TooFast => "wait for a line on standard input before each block",
        WarningKind::NoAnswer => {
            "answer each line from standard input with begin, the values and end; where that has to take longer, \
             give it a deadline_s in a [[sensor]] section of etc/agent.toml"
        }
        WarningKind::Buffering => "flush after end: stdbuf -oL PROGRAM, $|=1 in perl, flush=True in python",
        WarningKind::ClosedOutput => "keep standard output open while the sensor lives",
        WarningKind::Ended => "read requests in a loop until quit; what went wrong is on its standard error above",
        WarningKind::EndsAfterAnswer => {
            "read the next request instead of ending, so that it need not be started each time"
        }
        WarningKind::NotStarted => "check the path, the mode, and the interpreter that the first line names",
        WarningKind::IgnoredQuit => "end on the line quit, and at the end of the input",
    }
}

/// A text of the sensor as a terminal can bear it: no control characters, not endless.
fn shown(text: &str) -> String {
    let escaped = |c: char| {
        if c.is_control() {
            c.escape_default().collect()
        } else {
            String::from(c)
        }
    };
    let kept: String = text.chars().take(CHARS_SHOWN).map(escaped).collect();
    if text.chars().nth(CHARS_SHOWN).is_some() {
        kept + "…"
    } else {
        kept
    }
}

fn describe_action(action: &Action) -> Vec<String> {
    let line = match action {
        Action::Start => "-- start".to_owned(),
        Action::Write(Request::Collect) => "-> (empty line: report your values)".to_owned(),
        Action::Write(Request::Quit) => "-> quit".to_owned(),
        Action::CloseStdin => "-> (end of input)".to_owned(),
        Action::SignalGroup(Signal::Terminate) => "-> SIGTERM to the process group".to_owned(),
        // The sweep after every end is routine; a kill that mattered came with a warning.
        Action::SignalGroup(Signal::Kill) => return Vec::new(),
        // Told where it is judged.
        Action::Block(_) => return Vec::new(),
        Action::Warn(warning) => format!("!! {}", shown(&warning.text)),
        Action::Health { from, to } => format!("-- {from} -> {to}"),
        Action::Stderr(text) => format!("<- (standard error) {}", shown(text)),
        Action::Line { text, meaning } => format!("<- {:<40} {}", shown(text.trim_end()), describe_meaning(meaning)),
        Action::Ended => "-- done".to_owned(),
    };
    vec![line]
}

fn describe_meaning(meaning: &Meaning) -> String {
    match meaning {
        Meaning::Blank => "blank, ignored".to_owned(),
        Meaning::Opener => "a block begins".to_owned(),
        Meaning::End => "the block is complete".to_owned(),
        Meaning::Value(value, doubt) => {
            let Value { host, name, text } = value;
            let doubt = match doubt {
                Some(Doubt::EmptyHost) => " (the host field is empty)",
                None => "",
            };
            format!(
                "{} = \"{}\" for {}{doubt}",
                shown(name.as_str()),
                shown(text),
                describe_host(host)
            )
        }
        Meaning::NoValue { host, name } => format!("{} has no value for {}", shown(name.as_str()), describe_host(host)),
        Meaning::NotUnderstood(fault) => format!("ignored, because {}", fault.as_str()),
    }
}

fn describe_block(block: &Block) -> Vec<String> {
    let count = block.values().len();
    let head = format!(
        "== a complete block with {count} value{}",
        if count == 1 { "" } else { "s" }
    );
    let values = block.values().iter().map(|((host, name), text)| {
        let note = match name.as_str() {
            name if name.starts_with("np_load_") => ", has no effect: it is computed from the load and num_proc",
            name if is_built_in(name) => ", overrides the built-in value",
            _ => "",
        };
        format!(
            "==   {}={} for {}{note}",
            shown(name.as_str()),
            shown(text),
            describe_host(host)
        )
    });
    std::iter::once(head).chain(values).collect()
}

fn describe_host(host: &HostSpec) -> String {
    match host {
        HostSpec::This => "this host".to_owned(),
        HostSpec::Global => "the whole cluster".to_owned(),
        HostSpec::Other(host) => format!("host {host}"),
    }
}

fn is_built_in(name: &str) -> bool {
    const CHANGING: [&str; 11] = [
        "load_avg",
        "load_short",
        "load_medium",
        "load_long",
        "cpu",
        "mem_free",
        "mem_used",
        "swap_free",
        "swap_used",
        "virtual_free",
        "virtual_used",
    ];
    crate::collector::is_static(name) || CHANGING.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Domains, SelfNames};
    use crate::protocol::{Machine, Settings, Trace};

    /// A run with this output, as it was told.
    fn run(output: &str) -> (Transcript, Vec<String>) {
        run_in(None, output, 250)
    }

    /// Runs the check in a cell, with the output after `at_ms` milliseconds.
    fn run_in(cell: Option<CellFacts>, output: &str, at_ms: u64) -> (Transcript, Vec<String>) {
        let settings = Settings {
            trace: Trace::Lines,
            ..Settings::default()
        };
        let names = SelfNames::new(&"vm".into(), [], Domains::Compare);
        let mut machine = Machine::new(settings, names, Tick(0));
        let (mut transcript, mut told) = (Transcript::new(cell), Vec::new());
        let end = Tick(at_ms + 1000);
        told.extend(transcript.actions(&machine.tick(Tick(0)), Tick(0)));
        told.extend(transcript.actions(&machine.started(Tick(0)), Tick(0)));
        told.extend(transcript.actions(&machine.bytes(output.as_bytes(), Tick(at_ms)), Tick(at_ms)));
        told.extend(transcript.actions(&machine.stop(end), end));
        let end = end.plus_ms(10);
        told.extend(transcript.exited(Exit::Status(0), end));
        told.extend(transcript.actions(&machine.exited(Exit::Status(0), end), end));
        told.extend(transcript.summary());
        (transcript, told)
    }

    #[test]
    fn a_flood_is_counted_and_not_shown() {
        let (transcript, told) = run(&"junk\n".repeat(1000));
        assert!(told.len() < LINES_SHOWN + 20, "{}", told.len());
        assert!(
            transcript.summary()[0].ends_with("lines not shown: 800"),
            "{:?}",
            transcript.summary()
        );
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        let (_, told) = run("begin\nvm:\u{1b}[31mx:\u{7}1\nend\n\0\0\n");
        assert!(told.iter().all(|line| !line.contains(char::is_control)), "{told:?}");
    }

    #[test]
    fn a_run_reads_line_by_line() {
        let (_, told) = run("begin\nvm:logins:4\noops\nglobal:load_avg:1\nend\n");
        let expected = [
            "   0.000  -- start",
            "   0.000  -> (empty line: report your values)",
            "   0.250  <- begin                                    a block begins",
            "   0.250  <- vm:logins:4                              logins = \"4\" for this host",
            "   0.250  <- oops                                     ignored, because it is not of the form host:name:value",
            "   0.250  !! line ignored, because it is not of the form host:name:value: \"oops\"",
            "   0.250  <- global:load_avg:1                        load_avg = \"1\" for the whole cluster",
            "   0.250  <- end                                      the block is complete",
            "   0.250  == a complete block with 2 values",
            "   0.250  ==   logins=4 for this host",
            "   0.250  ==   load_avg=1 for the whole cluster, overrides the built-in value",
            "   0.250  -- starting -> running",
            "   1.250  -> quit",
            "   1.250  -> (end of input)",
            "   1.260  <- ended with exit status 0",
            "   1.260  -- running -> stopped",
            "   1.260  -- done",
            "works, with warnings: complete blocks: 1, warnings: 1",
            "  why: line ignored, because it is not of the form host:name:value: \"oops\"",
            "  fix: write each value as host:name:value, and everything else to standard error",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn values_that_the_cell_cannot_use_are_named_and_the_sensor_is_not_called_good() {
        let cell = CellFacts::parse("type slowval INT\ntype name STRING\nhost node2\ninterval 5\nnonsense\n");
        let output = "begin\nvm:slowval:abc\nvm:notdefined:3\nother:slowval:3\nnode2:slowval:3\nvm:name:abc\nend\n";
        let (transcript, told) = run_in(Some(cell.clone()), output, 250);
        assert_eq!(transcript.verdict(), Verdict::Warned);
        let reasons: Vec<&str> = told.iter().filter_map(|line| line.strip_prefix("  why: ")).collect();
        assert_eq!(
            reasons,
            [
                "notdefined for this host: the complex has no such attribute",
                "slowval for this host: \"abc\" is not of type INT",
                "values for host other: it is no execution host of the cell",
            ]
        );
        assert!(
            told.iter().any(|line| line.contains("!! slowval for this host")),
            "{told:?}"
        );
        let (transcript, _) = run_in(Some(cell.clone()), "begin\nvm:slowval:7\nend\n", 250);
        assert_eq!(transcript.verdict(), Verdict::Good);
        let (_, told) = run_in(Some(cell), "begin\nvm:slowval:7\nend\n", 8000);
        let why = "  why: an answer took 8 s, longer than load_report_time (5 s)";
        assert!(told.iter().any(|line| line == why), "{told:?}");
    }

    #[test]
    fn verdict_follows_from_blocks_and_warnings() {
        let cases = [
            ("begin\nvm:a:1\nend\n", Verdict::Good, 0),
            ("vm:a:1\nend\n", Verdict::Warned, 0),
            ("begin\nvm:a:1\n", Verdict::Failed, 1),
            ("", Verdict::Failed, 1),
        ];
        for (output, verdict, exit_code) in cases {
            assert_eq!(run(output).0.verdict(), verdict, "{output:?}");
            assert_eq!(verdict.exit_code(), exit_code);
        }
    }
}
