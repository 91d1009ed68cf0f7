//! What `gridwright sensor check` says about a run of a sensor, line by line.
//!
//! The agent runs the sensor as it always does, with [`Trace::Lines`](crate::protocol::Trace::Lines), and records what it
//! did and saw; this module turns the record into text and a verdict. Deliberately absent: the running.

use crate::host::HostSpec;
use crate::protocol::{Action, Block, Doubt, Exit, Meaning, Request, Signal, Value};
use proto::time::Tick;

/// One thing that happened in a checked run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The machine asked for this.
    Action(Action),
    /// The process ended.
    Exited(Exit),
}

/// A checked run: what happened when, in order.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    events: Vec<(Tick, Event)>,
}

/// How a checked sensor did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing to say against it.
    Good,
    /// It works, and something should be mended.
    Warned,
    /// It delivered no block, or could not be started.
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
    /// Adds what the machine asked for at `now`.
    pub fn actions(&mut self, actions: &[Action], now: Tick) {
        self.events.extend(actions.iter().map(|action| (now, Event::Action(action.clone()))));
    }

    /// Adds the end of the process at `now`.
    pub fn exited(&mut self, exit: Exit, now: Tick) {
        self.events.push((now, Event::Exited(exit)));
    }

    /// How many complete blocks were delivered.
    pub fn blocks(&self) -> usize {
        self.events.iter().filter(|(_, event)| matches!(event, Event::Action(Action::Block(_)))).count()
    }

    /// How many things were warned about.
    pub fn warnings(&self) -> usize {
        self.events.iter().filter(|(_, event)| matches!(event, Event::Action(Action::Warn(_)))).count()
    }

    /// The judgement over the whole run.
    pub fn verdict(&self) -> Verdict {
        match (self.blocks(), self.warnings()) {
            (0, _) => Verdict::Failed,
            (_, 0) => Verdict::Good,
            _ => Verdict::Warned,
        }
    }

    /// The run as text, one line for each thing: seconds since the start, who (`->` to the sensor, `<-` from it, `!!` a
    /// warning), what, and what it was understood to mean; then a summary.
    pub fn text(&self) -> Vec<String> {
        let start = self.events.first().map_or(Tick(0), |(now, _)| *now);
        let mut lines = Vec::new();
        for (now, event) in &self.events {
            let ms = now.since_ms(start);
            let said = describe(event).into_iter();
            lines.extend(said.map(|line| format!("{:>4}.{:03}  {line}", ms / 1000, ms % 1000)));
        }
        lines.push(self.summary());
        lines
    }

    fn summary(&self) -> String {
        let counts = format!("complete blocks: {}, warnings: {}", self.blocks(), self.warnings());
        match self.verdict() {
            Verdict::Good => format!("good: {counts}"),
            Verdict::Warned => format!("works, with warnings: {counts}"),
            Verdict::Failed => format!("does not work: {counts}"),
        }
    }
}

fn describe(event: &Event) -> Vec<String> {
    match event {
        Event::Exited(exit) => vec![format!("<- ended with {exit}")],
        Event::Action(action) => describe_action(action),
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
        Action::Block(block) => return describe_block(block),
        Action::Warn(warning) => format!("!! {}", warning.text),
        Action::Health { from, to } => format!("-- {from} -> {to}"),
        Action::Stderr(text) => format!("<- (standard error) {text}"),
        Action::Line { text, meaning } => format!("<- {:<40} {}", text.trim_end(), describe_meaning(meaning)),
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
            format!("{name} = {text:?} for {}{doubt}", describe_host(host))
        }
        Meaning::NoValue { host, name } => format!("{name} has no value for {}", describe_host(host)),
        Meaning::NotUnderstood(fault) => format!("ignored, because {}", fault.as_str()),
    }
}

fn describe_block(block: &Block) -> Vec<String> {
    let count = block.values().len();
    let head = format!("== a complete block with {count} value{}", if count == 1 { "" } else { "s" });
    let values = block.values().iter().map(|((host, name), text)| {
        let note = match name.as_str() {
            name if name.starts_with("np_load_") => ", has no effect: it is computed from the load and num_proc",
            name if is_built_in(name) => ", overrides the built-in value",
            _ => "",
        };
        format!("==   {name}={text} for {}{note}", describe_host(host))
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

    fn run(output: &str) -> Transcript {
        let settings = Settings { trace: Trace::Lines, ..Settings::default() };
        let names = SelfNames::new(&"vm".into(), [], Domains::Compare);
        let mut machine = Machine::new(settings, names, Tick(0));
        let mut transcript = Transcript::default();
        transcript.actions(&machine.tick(Tick(0)), Tick(0));
        transcript.actions(&machine.started(Tick(0)), Tick(0));
        transcript.actions(&machine.bytes(output.as_bytes(), Tick(250)), Tick(250));
        transcript.actions(&machine.stop(Tick(1250)), Tick(1250));
        transcript.exited(Exit::Status(0), Tick(1260));
        transcript.actions(&machine.exited(Exit::Status(0), Tick(1260)), Tick(1260));
        transcript
    }

    #[test]
    fn a_run_reads_line_by_line() {
        let transcript = run("begin\nvm:logins:4\noops\nglobal:load_avg:1\nend\n");
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
        ];
        assert_eq!(transcript.text(), expected);
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
            assert_eq!(run(output).verdict(), verdict, "{output:?}");
            assert_eq!(verdict.exit_code(), exit_code);
        }
    }
}
