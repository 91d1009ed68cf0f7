//! Lines into blocks: what a sensor has said, without regard to time (sensors/README.md "What is
//! tolerated").

use crate::host::{HostSpec, SelfNames};
use crate::protocol::assembler::{Assembler, Line};
use crate::protocol::line::{Doubt, Fault, Meaning, Value, understand};
use crate::protocol::warning::{WarningKind, excerpt};
use crate::report::HostValues;
use proto::id::AttributeName;

/// How much of a sensor's output is kept. Raising a limit costs that much memory for each sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one line; 10,000, as in 8.1.9.
    pub line_bytes: usize,
    /// Values of one block; 10,000.
    pub block_values: usize,
    /// Bytes of the names and values of one block; 1 MiB.
    pub block_bytes: usize,
    /// Blocks that are announced in ten seconds; 100. Of more, only the newest counts.
    pub blocks_per_10s: u32,
    /// Bytes that are read in ten seconds until the driver pauses; 1 MiB. It bounds the processor
    /// time that a flood costs.
    pub bytes_per_10s: usize,
    /// Lines of standard error that are kept; 20.
    pub stderr_lines: usize,
    /// Bytes of one such line; 1,000.
    pub stderr_line_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: 10_000,
            block_values: 10_000,
            block_bytes: 1 << 20,
            blocks_per_10s: 100,
            bytes_per_10s: 1 << 20,
            stderr_lines: 20,
            stderr_line_bytes: 1_000,
        }
    }
}

/// The values between `begin` and `end`; of two for one host and name the last counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    values: HostValues,
    long_lines: LongLines,
}

/// Lines of a block that are longer than a line may be. Their values are incomplete, so they do not
/// count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongLines {
    /// How many.
    pub count: u64,
    /// The beginning of the first, quoted.
    pub first: String,
}

impl Block {
    /// The values by host and name.
    pub fn values(&self) -> &HostValues {
        &self.values
    }

    /// The lines that were too long for their values to count.
    pub fn long_lines(&self) -> &LongLines {
        &self.long_lines
    }

    /// The value of `name` for `host`.
    pub fn value(&self, host: &HostSpec, name: &str) -> Option<&str> {
        self.values
            .get(&(host.clone(), AttributeName::from(name)))
            .map(String::as_str)
    }
}

/// What was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolItem {
    /// One line and what it means.
    Line(Line, Meaning),
    /// A complete block.
    Block(Block),
    /// Something to warn about.
    Warning(WarningKind, String),
}

/// A block in the making.
#[derive(Debug, Default)]
struct Draft {
    block: Block,
    bytes: usize,
    lines: usize,
}

/// Reads one sensor's standard output, from the start of its process to its end.
///
/// Invariant: what it keeps stays within the limits it was made with, whatever is fed.
#[derive(Debug)]
pub struct Reader {
    assembler: Assembler,
    limits: Limits,
    names: SelfNames,
    /// The block since its opener.
    open: Option<Draft>,
    /// Data without an opener: a block if `end` follows, dropped if an opener does.
    held: Draft,
    /// Whether a request is unanswered: then a lone `end` is an empty block.
    is_answer_due: bool,
}

impl Reader {
    /// A reader at the start of the stream.
    pub fn new(limits: Limits, names: SelfNames) -> Self {
        let assembler = Assembler::new(limits.line_bytes);
        Self {
            assembler,
            limits,
            names,
            open: None,
            held: Draft::default(),
            is_answer_due: false,
        }
    }

    /// Notes that a request was sent.
    pub fn request_sent(&mut self) {
        self.is_answer_due = true;
    }

    /// Takes the next bytes and hands what they complete to `hear`.
    pub fn feed(&mut self, bytes: &[u8], mut hear: impl FnMut(ProtocolItem)) {
        let mut lines = Vec::new();
        self.assembler.push(bytes, |line| lines.push(line));
        for line in lines {
            self.take(line, &mut hear);
        }
    }

    /// Ends the stream: a last line without a newline counts.
    pub fn finish(&mut self, mut hear: impl FnMut(ProtocolItem)) {
        if let Some(line) = self.assembler.finish() {
            self.take(line, &mut hear);
        }
    }

    /// Whether a block has begun and is not complete.
    pub fn is_mid_block(&self) -> bool {
        self.open.is_some() || self.held.lines > 0
    }

    fn take(&mut self, line: Line, hear: &mut impl FnMut(ProtocolItem)) {
        let meaning = understand(&line, &self.names);
        hear(ProtocolItem::Line(line.clone(), meaning.clone()));
        match &meaning {
            Meaning::Blank => {}
            Meaning::Opener => self.begin(hear),
            Meaning::End => self.end(hear),
            Meaning::Value(value, doubt) => {
                if let Some(Doubt::EmptyHost) = doubt {
                    let text = format!("empty host field taken for this host: {}", excerpt(&line.text));
                    hear(ProtocolItem::Warning(WarningKind::EmptyHost, text));
                }
                self.put(value.clone(), hear);
            }
            Meaning::NoValue { host, name } => {
                hear(ProtocolItem::Warning(
                    WarningKind::EmptyValue,
                    format!("{name} has no value: {}", excerpt(&line.text)),
                ));
                let draft = self.draft();
                draft.lines += 1;
                draft.block.values.remove(&(host.clone(), name.clone()));
            }
            Meaning::NotUnderstood(fault) => {
                if *fault == Fault::TooLong {
                    let long_lines = &mut self.draft().block.long_lines;
                    if long_lines.count == 0 {
                        long_lines.first = excerpt(&line.text);
                    }
                    long_lines.count += 1;
                }
                hear(not_understood(&line, *fault));
            }
        }
    }

    fn draft(&mut self) -> &mut Draft {
        self.open.as_mut().unwrap_or(&mut self.held)
    }

    fn put(&mut self, value: Value, hear: &mut impl FnMut(ProtocolItem)) {
        let Limits {
            block_values,
            block_bytes,
            ..
        } = self.limits;
        let Value { host, name, text } = value;
        let size = name.as_str().len() + text.len();
        let draft = self.draft();
        draft.lines += 1;
        let is_full = draft.block.values.len() >= block_values || draft.bytes.saturating_add(size) > block_bytes;
        if is_full {
            let text = format!("a block may have {block_values} values and {block_bytes} bytes; the rest is dropped");
            hear(ProtocolItem::Warning(WarningKind::BlockTooLarge, text));
            return;
        }
        draft.bytes += size;
        draft.block.values.insert((host, name), text);
    }

    fn begin(&mut self, hear: &mut impl FnMut(ProtocolItem)) {
        let held = std::mem::take(&mut self.held);
        if held.lines > 0 {
            let text = format!("{} lines of data before `begin` dropped", held.lines);
            hear(ProtocolItem::Warning(WarningKind::DataBeforeBegin, text));
        }
        if self.open.replace(Draft::default()).is_some() {
            let text = "a block without `end` dropped, because another one began".to_owned();
            hear(ProtocolItem::Warning(WarningKind::UnfinishedBlock, text));
        }
    }

    fn end(&mut self, hear: &mut impl FnMut(ProtocolItem)) {
        let draft = match self.open.take() {
            Some(draft) => draft,
            None if self.held.lines > 0 || self.is_answer_due => {
                hear(ProtocolItem::Warning(
                    WarningKind::NoBegin,
                    "a block without `begin`; it counts".to_owned(),
                ));
                std::mem::take(&mut self.held)
            }
            None => {
                hear(ProtocolItem::Warning(
                    WarningKind::StrayEnd,
                    "`end` without a block ignored".to_owned(),
                ));
                return;
            }
        };
        self.is_answer_due = false;
        hear(ProtocolItem::Block(draft.block));
    }
}

fn not_understood(line: &Line, fault: Fault) -> ProtocolItem {
    let kind = match fault {
        Fault::TooLong => WarningKind::LineTooLong,
        Fault::FewerThanThreeParts | Fault::EmptyName | Fault::BlankInHost | Fault::BlankInName => {
            WarningKind::NotUnderstood
        }
    };
    ProtocolItem::Warning(
        kind,
        format!("line ignored, because {}: {}", fault.as_str(), excerpt(&line.text)),
    )
}

#[cfg(test)]
mod tests;
