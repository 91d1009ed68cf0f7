//! `subordinate_list` of a queue: which queues of the same host give way to it, and when
//! (`queue_conf(5)`, ALGORITHMS.md section 16).

use crate::id::QueueName;
use crate::object::value::{self, MalformedValue, is_none, stored_as_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The queues whose jobs give way to those of this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Subordinates {
    /// Whole queues are suspended: `low.q=2,other.q`.
    Queues(Vec<SubordinateQueue>),
    /// Single tasks are suspended: `slots=4(low1.q:0:sr, low2.q:1:lr)`.
    Slots {
        /// The most slots of this queue and all below it that may be at work.
        most: u32,
        /// The queues below it.
        queues: Vec<SlotwiseQueue>,
    },
}

/// A queue that is suspended as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubordinateQueue {
    /// The queue.
    pub queue: QueueName,
    /// From how many used slots of the superordinate instance on; all of its slots if none is
    /// given.
    pub threshold: Option<u32>,
}

/// A queue of which single tasks are suspended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotwiseQueue {
    /// The queue.
    pub queue: QueueName,
    /// Tasks of the queue with the highest number go first.
    pub seq_no: u32,
    /// Which of its tasks goes first.
    pub action: PreemptionOrder,
}

/// Which task of a queue gives way first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreemptionOrder {
    /// `sr`: the one that has run for the shortest time.
    #[default]
    ShortestRunning,
    /// `lr`: the one that has run for the longest time.
    LongestRunning,
}

impl Subordinates {
    /// The queues that are named.
    pub fn names(&self) -> Vec<&QueueName> {
        match self {
            Subordinates::Queues(queues) => queues.iter().map(|entry| &entry.queue).collect(),
            Subordinates::Slots { most: _, queues } => queues.iter().map(|entry| &entry.queue).collect(),
        }
    }
}

impl FromStr for Subordinates {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        let text = text.trim_ascii();
        let read = match slotwise(text) {
            Some((most, list)) => Subordinates::Slots {
                most: count(most)?,
                queues: slotwise_queues(list)?,
            },
            None => Subordinates::Queues(words(text).map(subordinate).collect::<Result<_, _>>()?),
        };
        let names = read.names();
        if names.is_empty() {
            return Err(expected());
        }
        match names
            .iter()
            .enumerate()
            .find(|(index, name)| names[..*index].contains(name))
        {
            Some((_, twice)) => Err(MalformedValue::new(format!("{twice} once"))),
            None => Ok(read),
        }
    }
}

fn expected() -> MalformedValue {
    MalformedValue::new("QUEUE[=SLOTS],... or slots=N(QUEUE[:SEQ_NO[:sr|lr]],...)")
}

/// The parts of `slots=N(…)`.
fn slotwise(text: &str) -> Option<(&str, &str)> {
    let (head, list) = text.split_once('(')?;
    let (word, most) = head.split_once('=')?;
    let list = list.trim_ascii_end().strip_suffix(')')?;
    word.trim_ascii()
        .eq_ignore_ascii_case("slots")
        .then_some((most.trim_ascii(), list))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ', '\t', '\n']).filter(|word| !word.is_empty())
}

fn subordinate(word: &str) -> Result<SubordinateQueue, MalformedValue> {
    let (queue, threshold) = match word.split_once('=') {
        Some((queue, threshold)) => (queue, Some(count(threshold)?)),
        None => (word, None),
    };
    Ok(SubordinateQueue {
        queue: queue_name(queue)?,
        threshold,
    })
}

fn slotwise_queues(list: &str) -> Result<Vec<SlotwiseQueue>, MalformedValue> {
    words(list).map(slotwise_queue).collect()
}

fn slotwise_queue(word: &str) -> Result<SlotwiseQueue, MalformedValue> {
    let mut queue = SlotwiseQueue {
        queue: QueueName::from(""),
        seq_no: 0,
        action: PreemptionOrder::default(),
    };
    let mut parts = word.split(':');
    queue.queue = queue_name(parts.next().unwrap_or_default())?;
    let mut rest = parts.peekable();
    if let Some(number) = rest.next_if(|part| part.starts_with(|letter: char| letter.is_ascii_digit())) {
        queue.seq_no = number
            .parse()
            .map_err(|_| MalformedValue::new("a sequence number behind the queue"))?;
    }
    if let Some(action) = rest.next() {
        queue.action = match action.to_ascii_lowercase().as_str() {
            "sr" => PreemptionOrder::ShortestRunning,
            "lr" => PreemptionOrder::LongestRunning,
            _ => {
                return Err(MalformedValue::new(
                    "sr (shortest running first) or lr (longest running first)",
                ));
            }
        };
    }
    if rest.next().is_some() {
        Err(expected())
    } else {
        Ok(queue)
    }
}

fn queue_name(text: &str) -> Result<QueueName, MalformedValue> {
    if is_none(text) {
        Err(expected())
    } else {
        value::name(text)
    }
}

fn count(text: &str) -> Result<u32, MalformedValue> {
    value::bounded::<1, 9_999_999, u32>(text).map_err(|_| MalformedValue::new("a number of slots from 1 to 9999999"))
}

impl fmt::Display for Subordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subordinates::Queues(queues) => {
                let words: Vec<String> = queues.iter().map(ToString::to_string).collect();
                f.pad(&words.join(","))
            }
            Subordinates::Slots { most, queues } => {
                let words: Vec<String> = queues.iter().map(ToString::to_string).collect();
                f.pad(&format!("slots={most}({})", words.join(", ")))
            }
        }
    }
}

impl fmt::Display for SubordinateQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.threshold {
            Some(threshold) => write!(f, "{}={threshold}", self.queue),
            None => self.queue.fmt(f),
        }
    }
}

impl fmt::Display for SlotwiseQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = match self.action {
            PreemptionOrder::ShortestRunning => "sr",
            PreemptionOrder::LongestRunning => "lr",
        };
        write!(f, "{}:{}:{action}", self.queue, self.seq_no)
    }
}

stored_as_text!(Subordinates);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_printed() {
        for (written, printed) in [
            ("low.q", "low.q"),
            ("low.q=2", "low.q=2"),
            ("low.q=2, other.q", "low.q=2,other.q"),
            ("low.q=2 other.q=1", "low.q=2,other.q=1"),
            ("slots=2(B.q)", "slots=2(B.q:0:sr)"),
            ("slots=2(B.q:1, C.q:2)", "slots=2(B.q:1:sr, C.q:2:sr)"),
            ("slots=4(low1:0:sr,low2:1:LR)", "slots=4(low1:0:sr, low2:1:lr)"),
            ("SLOTS = 4( low1:lr )", "slots=4(low1:0:lr)"),
        ] {
            let read: Subordinates = written.parse().unwrap();
            assert_eq!(read.to_string(), printed);
            assert_eq!(printed.parse(), Ok(read));
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in [
            "",
            "low.q=0",
            "low.q=x",
            "a,a",
            "slots=0(a)",
            "slots=2()",
            "slots=2(a:1:xx)",
            "slots=2(a:1:sr:2)",
            "a/b",
        ] {
            assert!(text.parse::<Subordinates>().is_err(), "{text}");
        }
    }
}
