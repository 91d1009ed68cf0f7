//! Answers that are waited for: who asks gets a number, and whoever has the answer gives it under that number.

use master_core::effect::ReplyTo;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;

/// Those who wait for an answer of one kind.
#[derive(Debug)]
pub struct Pending<T> {
    next: AtomicU64,
    waiting: Mutex<BTreeMap<ReplyTo, oneshot::Sender<T>>>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { next: AtomicU64::new(1), waiting: Mutex::default() }
    }
}

impl<T> Pending<T> {
    /// A new number, and where its answer will come.
    pub fn expect(&self) -> (ReplyTo, oneshot::Receiver<T>) {
        let to = ReplyTo(self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = oneshot::channel();
        self.waiting().insert(to, sender);
        (to, receiver)
    }

    /// Gives an answer. One that nobody waits for any more is dropped: its event is durable, and a repeat gets it.
    pub fn answer(&self, to: ReplyTo, answer: T) {
        if let Some(sender) = self.waiting().remove(&to) {
            let _ = sender.send(answer);
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, BTreeMap<ReplyTo, oneshot::Sender<T>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
