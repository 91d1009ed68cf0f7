//! The keys of bookings that no running task has.

use proto::id::{CellId, ReservationId, SubmitSeq, TaskId, TaskKey};

/// The key under which a reservation's grant is booked: no job has the submission 0.
pub fn block_key(id: ReservationId) -> TaskKey {
    TaskKey {
        cell: CellId(0),
        seq: SubmitSeq(0),
        task: TaskId(id.0),
        pe_task: 0,
        attempt: 0,
    }
}

/// The reservation whose grant is booked under a key, if it is such a key.
pub fn block_of(key: TaskKey) -> Option<ReservationId> {
    (key.seq == SubmitSeq(0)).then_some(ReservationId(key.task.0))
}

/// The key under which a planned task is booked: it has no attempt yet.
pub(crate) fn plan_key(seq: SubmitSeq, task: TaskId) -> TaskKey {
    TaskKey {
        cell: CellId(0),
        seq,
        task,
        pe_task: 0,
        attempt: 0,
    }
}
