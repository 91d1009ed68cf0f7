//! Answers that somebody waits for: each question gets a number, and its answer is given under that
//! number.

use master_core::effect::ReplyTo;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;

/// The waiting questions of one kind.
#[derive(Debug)]
pub struct Replies<T> {
    next: AtomicU64,
    waiting: Mutex<BTreeMap<ReplyTo, oneshot::Sender<T>>>,
}

impl<T> Default for Replies<T> {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
        }
    }
}

impl<T> Replies<T> {
    /// A new number, and the channel of its answer.
    pub fn expect(&self) -> (ReplyTo, oneshot::Receiver<T>) {
        let to = ReplyTo(self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = oneshot::channel();
        self.waiting().insert(to, sender);
        (to, receiver)
    }

    /// Gives an answer. If nobody waits any more it is dropped: its event is durable, and a repeat
    /// gets it.
    pub fn answer(&self, to: ReplyTo, answer: T) {
        if let Some(sender) = self.waiting().remove(&to) {
            let _ = sender.send(answer);
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, BTreeMap<ReplyTo, oneshot::Sender<T>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
