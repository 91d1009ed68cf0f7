//! Who is next, if each winner makes the next task of its class worth less: the largest first, again and again.
//!
//! A value that was looked up once can only have become smaller since, because tickets are divided among more and more tasks. So the
//! largest known value is looked up anew, and it wins if it is still the largest: most classes are looked at once.

use super::class::ClassId;
use proto::id::SubmitSeq;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A number of tickets in an order. It is never not a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value(pub f64);

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The first task of each class: the largest value wins, then the job that was submitted first.
#[derive(Debug, Default)]
pub struct Contest {
    heads: BinaryHeap<(Value, Reverse<SubmitSeq>, Reverse<ClassId>)>,
}

impl Contest {
    /// The first task of a class takes part.
    pub fn enter(&mut self, value: f64, seq: SubmitSeq, class: ClassId) {
        self.heads.push((Value(value), Reverse(seq), Reverse(class)));
    }

    /// The class whose first task wins. `value` says what that of a class is worth by now, which is no more than it was.
    pub fn next(&mut self, mut value: impl FnMut(ClassId) -> f64) -> Option<ClassId> {
        loop {
            let (known, seq, Reverse(class)) = self.heads.pop()?;
            let now = Value(value(class));
            if now >= known || self.heads.peek().is_none_or(|next| (now, seq, Reverse(class)) >= *next) {
                return Some(class);
            }
            self.heads.push((now, seq, Reverse(class)));
        }
    }
}
