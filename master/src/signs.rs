//! Facts that one thread shows to the others at once, past the queues between them.

use crate::reserve::DiskRoom;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The signs of a master, shared by its threads.
#[derive(Clone, Debug, Default)]
pub struct Signs {
    stopping: Arc<AtomicBool>,
    short: Arc<AtomicBool>,
}

impl Signs {
    /// The master is to end, also if the driver cannot take inputs.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether it is to end.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// What room the disk has now.
    pub fn has_room(&self, room: DiskRoom) {
        self.short.store(room == DiskRoom::Short, Ordering::Relaxed);
    }

    /// Whether the disk has too little room for what can wait.
    pub fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }
}
