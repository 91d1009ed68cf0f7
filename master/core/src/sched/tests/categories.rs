//! Which jobs are of one category, and what it is called.

use super::lab::Lab;
use crate::matching::Demand;
use crate::sched::filter::category_key::CategoryKey;
use proto::id::SubmitSeq;
use proto::job::{JobSpec, Requests};
use proto::request::{ResourceList, ResourceRequest};
use std::sync::Arc;

fn resources(text: &str) -> Vec<ResourceRequest> {
    ResourceList::parse(text).unwrap().into()
}

/// The category of a parallel job with these lists of its own for master and slaves, and for the
/// queues of the slaves.
fn category(lab: &Lab, master: &str, slaves: &str, queues: &[&str]) -> CategoryKey {
    let mut job = lab.state().jobs[&SubmitSeq(1)].clone();
    let lists = Requests {
        master: resources(master),
        slaves: resources(slaves),
        slave_queues: queues.iter().map(|queue| (*queue).to_owned()).collect(),
        ..(*job.spec.requests).clone()
    };
    job.spec = Arc::new(JobSpec {
        requests: lists.into(),
        ..(*job.spec).clone()
    });
    CategoryKey::new(lab.state(), &job, &Demand::of_job(lab.state(), &job))
}

fn lab() -> Lab {
    let mut lab = Lab::new();
    for line in [
        "complex memory mem MEMORY <= YES YES 0 0",
        "complex gpu gpu INT <= YES YES 0 0",
        "host a",
        "queue all.q a slots=4",
        "pe mpi 100 $round_robin",
        "job 1 -pe mpi 4 -masterq all.q",
    ] {
        lab.line(line);
    }
    lab
}

#[test]
fn jobs_of_one_category_ask_for_the_same_in_each_scope() {
    let lab = lab();
    let of = |master, slaves, queues: &[&str]| category(&lab, master, slaves, queues);
    for (one, other) in [
        (of("memory=1G,gpu=2", "", &[]), of("gpu=2,mem=1024M", "", &[])),
        (of("", "memory=1G,gpu=2", &[]), of("", "gpu=2,mem=1024M", &[])),
        (of("", "", &["a.q", "b.q"]), of("", "", &["b.q", "a.q"])),
        (of("nosuch=1,memory=1G", "", &[]), of("memory=1G,nosuch=1", "", &[])),
    ] {
        assert_eq!(one, other);
    }
    let different = [
        of("", "", &[]),
        of("memory=1G", "", &[]),
        of("memory=2G", "", &[]),
        of("", "memory=1G", &[]),
        of("memory=1G", "memory=1G", &[]),
        of("nosuch=1", "", &[]),
        of("other=1", "", &[]),
        of("", "nosuch=1", &[]),
        of("", "", &["all.q"]),
        of("", "", &["b.q"]),
    ];
    for (index, one) in different.iter().enumerate() {
        assert!(
            different[index + 1..].iter().all(|other| one != other),
            "{}",
            one.text(&lab.state().config.complex)
        );
    }
}

#[test]
fn a_category_tells_what_each_scope_asks_for() {
    let lab = lab();
    let text = |key: CategoryKey| key.text(&lab.state().config.complex);
    assert_eq!(text(category(&lab, "", "", &[])), "-masterq all.q -pe mpi 4");
    let expected = "-masterq all.q -scope master -l memory=1G,nosuch -scope slave -l gpu=1,memory=4G \
        -scope slave -q a.q,b.q -pe mpi 4";
    assert_eq!(
        text(category(&lab, "nosuch=1,mem=1024M", "memory=4G,gpu=1", &["b.q", "a.q"])),
        expected
    );
}
