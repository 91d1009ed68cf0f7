//! A contest in rounds: the largest value wins, and each winner makes the next task of its class
//! worth less.
//!
//! A value can only shrink after it was computed, because tickets are divided among more and more
//! tasks. So the largest known value is computed anew, and it wins if it is still the largest: most
//! classes are computed once.

use super::class::ClassId;
use proto::id::SubmitSeq;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A number of tickets with an order. It is never NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TicketValue(pub f64);

impl Eq for TicketValue {}

impl PartialOrd for TicketValue {
    fn partial_cmp(&self, other: &TicketValue) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TicketValue {
    fn cmp(&self, other: &TicketValue) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The first task of each class. The largest value wins, then the largest rank, then the job that
/// was submitted first.
#[derive(Debug, Default)]
pub struct Contest {
    heads: BinaryHeap<(TicketValue, TicketValue, Reverse<SubmitSeq>, Reverse<ClassId>)>,
}

impl Contest {
    /// Enters the first task of a class.
    pub fn enter(&mut self, value: f64, seq: SubmitSeq, class: ClassId) {
        self.enter_ranked(value, 0.0, seq, class);
    }

    /// Enters the first task of a class. The rank decides between equal values.
    pub fn enter_ranked(&mut self, value: f64, rank: f64, seq: SubmitSeq, class: ClassId) {
        let head = (TicketValue(value), TicketValue(rank), Reverse(seq), Reverse(class));
        self.heads.push(head);
    }

    /// The class whose first task wins. `value` returns the present value of a class, which is at
    /// most the one before.
    pub fn next(&mut self, mut value: impl FnMut(ClassId) -> f64) -> Option<ClassId> {
        loop {
            let (known, rank, seq, Reverse(class)) = self.heads.pop()?;
            let now = TicketValue(value(class));
            let head = (now, rank, seq, Reverse(class));
            if now >= known || self.heads.peek().is_none_or(|next| head >= *next) {
                return Some(class);
            }
            self.heads.push(head);
        }
    }
}
