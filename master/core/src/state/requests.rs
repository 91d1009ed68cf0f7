//! The form in which a state keeps requests of jobs and reservations: canonical by the complex as
//! it is now, with a queue in front of each host. Submissions bring requests to it. Those in logs
//! and snapshots of earlier versions, and those that a change of the complex concerns, are brought
//! to it here.

use super::State;
use super::job::Job;
use proto::common::Common;
use proto::complex::Complex;
use proto::id::SubmitSeq;
use proto::job::{JobSpec, Requests};
use proto::reservation::ReservationSpec;
use std::sync::Arc;

/// Requests in the form in which they are kept. `None` if they are in it.
pub(super) fn renewed(complex: &Complex, requests: &Requests) -> Option<Requests> {
    let mut renewed = requests.clone();
    renewed.make_canonical(complex);
    let Requests {
        hard_queues,
        soft_queues,
        master_queues,
        slave_queues,
        ..
    } = &mut renewed;
    let lists = [hard_queues, soft_queues, master_queues, slave_queues];
    lists.into_iter().flatten().for_each(write_queue_out);
    (renewed != *requests).then_some(renewed)
}

/// Earlier versions accepted `@host` and `@@group` for all queues there.
fn write_queue_out(pattern: &mut String) {
    if pattern.starts_with('@') {
        pattern.insert(0, '*');
    }
}

/// The description of a job with its requests in the form in which they are kept.
pub(super) fn kept(complex: &Complex, spec: &Arc<JobSpec>) -> Arc<JobSpec> {
    match renewed(complex, &spec.requests) {
        Some(requests) => Arc::new(JobSpec {
            requests: requests.into(),
            ..(**spec).clone()
        }),
        None => spec.clone(),
    }
}

/// The description of a reservation with its requests in the form in which they are kept.
pub(super) fn kept_reservation(complex: &Complex, spec: &Arc<ReservationSpec>) -> Arc<ReservationSpec> {
    match renewed(complex, &spec.requests) {
        Some(requests) => Arc::new(ReservationSpec {
            requests,
            ..(**spec).clone()
        }),
        None => spec.clone(),
    }
}

impl State {
    /// Brings all requests to the form in which they are kept, after a change of the complex.
    pub(super) fn renew_requests(&mut self) {
        let renewed = self.index.commons.renewable(&self.config.complex);
        let concerned = |job: &Job| Some((job.seq, renewed.get(&job.spec.requests)?.clone()));
        let concerned: Vec<(SubmitSeq, Common<Requests>)> = match renewed.is_empty() {
            true => Vec::new(),
            false => self.jobs.values().filter_map(concerned).collect(),
        };
        for (seq, requests) in concerned {
            let mut job = self.jobs.remove(&seq).expect("it was found just now");
            self.index.remove_job(&job);
            // Other jobs may still have the old requests, so these are not looked up among them.
            job.spec = self.index.commons.shared(&Arc::new(JobSpec {
                requests,
                ..(*job.spec).clone()
            }));
            self.index.add_job(&self.config.complex, &job);
            self.jobs.insert(seq, job);
        }
        self.renew_others();
    }

    /// Brings the requests of finished jobs and of reservations to the form in which they are kept.
    pub(super) fn renew_others(&mut self) {
        let complex = &self.config.complex;
        self.finished
            .iter_mut()
            .for_each(|job| job.spec = kept(complex, &job.spec));
        self.reservations
            .values_mut()
            .for_each(|known| known.spec = kept_reservation(complex, &known.spec));
    }
}
