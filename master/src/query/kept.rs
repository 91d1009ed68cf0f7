//! `qsched`: what the scheduler keeps for tasks that wait.

use super::parts;
use crate::model::Model;
use master_core::ledger::Grant;
use master_core::sched::Reservation;
use master_core::sched::report::schedule_file;
use proto::amount::{Amount, Type};
use proto::id::{SubmitSeq, TaskId};
use proto::time::Now;
use proto::wire::client::Reply;
use proto::wire::view::{Data, KeptTask, KeptUse};

/// Tasks in one reply: each may have a line for every host.
const TASKS_IN_REPLY: usize = 100;

/// The attribute that `qsched` shows beside slots.
const H_VMEM: &str = "h_vmem";

/// The answer to [`proto::wire::client::Query::Kept`].
pub(super) fn tasks(model: &Model) -> Vec<Reply> {
    let now = model.statics.clock.now();
    let mut kept: Vec<_> = model.scheduling.reservations.iter().collect();
    kept.sort_by_key(|((seq, task), reservation)| (reservation.at, *seq, *task));
    let tasks = kept
        .into_iter()
        .filter_map(|(key, reservation)| view(model, *key, reservation, now))
        .collect();
    parts(tasks, TASKS_IN_REPLY, |tasks| Reply::data(Data::Kept(tasks)))
}

/// What is kept for one task; none of a job that has left since.
fn view(model: &Model, (seq, task): (SubmitSeq, TaskId), kept: &Reservation, now: Now) -> Option<KeptTask> {
    let (state, config) = (&model.state, &model.state.config);
    let job = state.jobs.get(&seq)?;
    let booking = state.booking(&job.spec, Grant::of_slots(&kept.granted, kept.pe.as_ref()), kept.at);
    let uses = schedule_file::uses(config, &booking).into_iter().map(|one| KeptUse {
        level: one.level,
        object: one.object,
        resource: one.resource,
        amount: one.amount.print(one.r#type),
    });
    let h_vmem = booking.requested(H_VMEM).unwrap_or(Amount::ZERO).print(Type::Memory);
    Some(KeptTask {
        job: job.number,
        task,
        user: job.spec.owner.user.clone(),
        start: schedule_file::wall(now, kept.at),
        end: kept
            .length_ms
            .map(|length_ms| schedule_file::wall(now, kept.at.plus_ms(length_ms))),
        slots: booking.granted().iter().map(|part| part.slots).sum(),
        h_vmem,
        uses: uses.collect(),
    })
}
