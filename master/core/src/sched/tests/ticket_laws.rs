//! What holds for tickets whatever the shares, the tree and the jobs.

use super::lab::Lab;
use crate::sched::TaskPhase;
use proptest::prelude::*;
use proto::id::SubmitSeq;
use proto::wire::view::PriorityNumbers;
use std::collections::BTreeMap;

/// All tickets of a pool.
const POOL: i64 = 1_000_000;

/// A job: its user, its project if any, its shares, and whether it is an array.
type TicketJob = (u8, Option<u8>, u32, bool);

fn asked() -> impl Strategy<Value = TicketJob> {
    (
        0..4u8,
        proptest::option::of(0..2u8),
        prop_oneof![Just(0u32), 1..50u32],
        any::<bool>(),
    )
}

/// Four users, two projects and a tree of them, with as many slots as are said, and a pass.
fn cell(shares: &[u32], jobs: &[TicketJob], slots: usize, functional: i64, tree: i64) -> Lab {
    let mut lab = Lab::new();
    for line in [
        "conf weight_ticket 1".to_owned(),
        format!("conf weight_tickets_functional {functional}"),
        format!("conf weight_tickets_share {tree}"),
        "host a".to_owned(),
        format!("queue all.q a slots={slots}"),
        format!("project p0 {}", shares[4]),
        format!("project p1 {}", shares[5]),
        format!(
            "tree u0={} u1={} default={} p0!={} p1!=7 p1/u0=1 p1/default=2",
            shares[0], shares[1], shares[2], shares[5]
        ),
    ] {
        lab.line(&line);
    }
    for (user, shares) in shares.iter().enumerate().take(4) {
        lab.line(&format!("user u{user} {shares}"));
    }
    for (number, (user, project, share, is_array)) in (1..).zip(jobs) {
        let project = project.map_or_else(String::new, |project| format!("-P p{project}"));
        let array = if *is_array { "-t 1-3:1" } else { "" };
        lab.line(&format!("job {number} -u u{user} {project} -js {share} {array}"));
    }
    lab.pass();
    lab.placed.clear();
    lab.pass();
    lab.placed.clear();
    lab
}

fn numbers(lab: &Lab, of: TaskPhase) -> BTreeMap<SubmitSeq, PriorityNumbers> {
    let model = lab.scheduler.model();
    let jobs = model
        .state()
        .jobs
        .iter()
        .filter(|(_, job)| of == TaskPhase::Pending || job.active > 0);
    jobs.map(|(seq, _)| (*seq, model.priority_of(*seq, of, lab.now)))
        .collect()
}

/// The tickets of all running tasks, functional and of the share tree. What is behind the point is
/// not told.
fn running(lab: &Lab) -> (i64, i64) {
    let tasks = |seq: &SubmitSeq| i64::from(lab.state().jobs[seq].active);
    let all = numbers(lab, TaskPhase::Running);
    all.iter().fold((0, 0), |(f, s), (seq, numbers)| {
        (f + numbers.ftckt * tasks(seq), s + numbers.stckt * tasks(seq))
    })
}

proptest! {
    #![proptest_config(crate::testing::cases(60))]

    #[test]
    fn parts_of_a_priority_lie_between_nothing_and_one(
        shares in prop::collection::vec(0..500u32, 6), jobs in prop::collection::vec(asked(), 1..12), slots in 0..8usize,
    ) {
        let lab = cell(&shares, &jobs, slots, POOL, POOL);
        for of in [TaskPhase::Pending, TaskPhase::Running] {
            for (seq, numbers) in numbers(&lab, of) {
                for part in [numbers.npprior, numbers.nurg, numbers.ntckts, numbers.share] {
                    prop_assert!((0..=1_000_000).contains(&part), "job {}: {numbers:?}", seq.0);
                }
            }
        }
    }

    #[test]
    fn running_tasks_have_all_tickets_of_a_pool(
        shares in prop::collection::vec(1..500u32, 6), jobs in prop::collection::vec(asked(), 1..12), slots in 1..8usize,
    ) {
        let lab = cell(&shares, &jobs, slots, POOL, POOL);
        let (functional, tree) = running(&lab);
        let tasks: i64 = lab.state().jobs.values().map(|job| i64::from(job.active)).sum();
        prop_assert!((POOL - tasks..=POOL).contains(&functional), "functional {functional} of {tasks} tasks");
        prop_assert!((POOL - 2 * tasks..=POOL).contains(&tree), "share tree {tree} of {tasks} tasks");
    }

    #[test]
    fn entitlements_and_targets_of_siblings_add_up_to_that_of_their_parent(
        shares in prop::collection::vec(1..500u32, 6), jobs in prop::collection::vec(asked(), 1..12), slots in 0..8usize,
    ) {
        let lab = cell(&shares, &jobs, slots, 0, POOL);
        let nodes = lab.scheduler.model().share_nodes(lab.now);
        for parent in &nodes {
            let prefix = if parent.path == "/" { "/".to_owned() } else { format!("{}/", parent.path) };
            let children: Vec<_> = nodes.iter().filter(|node| node.depth == parent.depth + 1 && node.path.starts_with(&prefix)).collect();
            if children.is_empty() {
                continue;
            }
            let sums = |of: fn(&proto::wire::view::ShareNode) -> i64| children.iter().map(|node| of(node)).sum::<i64>();
            for (parent, sum) in [
                (parent.total, sums(|node| node.total)),
                (parent.long_target_share, sums(|node| node.long_target_share)),
                (parent.short_target_share, sums(|node| node.short_target_share)),
            ] {
                prop_assert!((parent - sum).abs() <= 6, "{parent} and {sum} below {prefix}: {nodes:#?}");
            }
        }
    }

    #[test]
    fn the_order_of_submission_decides_only_between_equal_jobs(
        shares in prop::collection::vec(1..500u32, 6), mut jobs in prop::collection::vec(asked(), 1..10), at in 0..9usize,
    ) {
        // Equal in all but their number: swapped, they swap what they have.
        let equal = jobs[at % jobs.len()];
        jobs.push(equal);
        let tickets = |jobs: &[TicketJob]| -> Vec<(TicketJob, i64)> {
            let found = numbers(&cell(&shares, jobs, 0, POOL, 0), TaskPhase::Pending);
            let mut found: Vec<_> = jobs.iter().copied().zip(found.values().map(|numbers| numbers.ftckt)).collect();
            found.sort();
            found
        };
        let first = tickets(&jobs);
        let last = jobs.len() - 1;
        jobs.swap(at % last, last);
        prop_assert_eq!(first, tickets(&jobs));
    }

    #[test]
    fn more_shares_never_mean_fewer_tickets(
        shares in prop::collection::vec(1..500u32, 6), jobs in prop::collection::vec(asked(), 1..12), more in 1..500u32,
    ) {
        // Of users alone: what a job has by other shares than those of its user does not count
        // here.
        let plain: Vec<TicketJob> = jobs.iter().map(|(user, _, _, is_array)| (*user, None, 0, *is_array)).collect();
        let of = |shares: &[u32]| {
            let mut lab = Lab::new();
            for line in ["conf weight_ticket 1", "conf weight_tickets_functional 1000000", "host a", "queue all.q a slots=0"] {
                lab.line(line);
            }
            for (user, shares) in shares.iter().enumerate().take(4) {
                lab.line(&format!("user u{user} {shares}"));
            }
            for (number, (user, _, _, is_array)) in (1..).zip(&plain) {
                lab.line(&format!("job {number} -u u{user} {}", if *is_array { "-t 1-3:1" } else { "" }));
            }
            lab.pass();
            numbers(&lab, TaskPhase::Pending)
        };
        let before = of(&shares);
        let mut raised = shares.clone();
        raised[0] += more;
        let after = of(&raised);
        for (number, (user, ..)) in (1..).zip(&plain).filter(|(_, (user, ..))| *user == 0) {
            let seq = SubmitSeq(number);
            prop_assert!(after[&seq].ftckt + 1 >= before[&seq].ftckt, "job {number} of u{user}: {:?} then {:?}", before[&seq], after[&seq]);
        }
    }

    #[test]
    fn tasks_of_one_user_divide_override_tickets_in_the_order_of_the_policies_before(
        shares in prop::collection::vec(0..20u32, 1..8), functional_first in any::<bool>(),
    ) {
        let mut lab = Lab::new();
        let hierarchy = if functional_first { "FO" } else { "OF" };
        for line in [
            "conf weight_ticket 1", "conf weight_tickets_functional 1000000", "conf weight_user 0", "conf weight_project 0",
            "conf weight_department 0", "conf weight_job 1", "host a", "queue all.q a slots=0", "user u0 0 840",
            &format!("conf policy_hierarchy {hierarchy}"),
        ] {
            lab.line(line);
        }
        for (number, share) in (1..).zip(&shares) {
            lab.line(&format!("job {number} -u u0 -js {share}"));
        }
        lab.pass();
        let mut order: Vec<usize> = (0..shares.len()).collect();
        if functional_first {
            order.sort_by_key(|job| std::cmp::Reverse(shares[*job]));
        }
        let numbers = numbers(&lab, TaskPhase::Pending);
        for (job, divisor) in order.into_iter().zip(1..) {
            let seq = SubmitSeq(job as u64 + 1);
            prop_assert_eq!(numbers[&seq].otckt, 840 / divisor, "job {} of {:?}", job + 1, &shares);
        }
    }
}
