//! Override tickets, which administrators give to users, projects, departments and single jobs
//! (ALGORITHMS.md section 10.3).

use super::class::{ClassId, Classes, Members};
use super::greedy::Contest;
use super::line::Line;
use super::prices::Ladder;
use super::pricing::Counts;
use std::collections::BTreeMap;

/// The tickets of a task, given the number of tasks that count for each of its objects.
fn tickets(members: &Members, counts: &Counts, is_shared: bool, more: f64) -> f64 {
    let stakes = members
        .stakes
        .iter()
        .enumerate()
        .filter_map(|(kind, stake)| Some((kind, stake.as_ref()?)));
    let parts = stakes.map(|(kind, stake)| stake.tickets / counts.divisor(kind, stake.place, is_shared, more));
    members.override_tickets + parts.sum::<f64>()
}

/// The override tickets of each running task of a class.
pub fn of_running(members: &Members, counts: &Counts, is_shared: bool) -> f64 {
    tickets(members, counts, is_shared, 0.0)
}

/// The override tickets of pending tasks: each as if it ran next, the largest first, so that later
/// ones share with one more task. Of equal ones, the task with more tickets of the policies
/// `before` this one is first. At most `most` are computed one by one.
pub fn of_pending(
    classes: &Classes,
    lines: &mut BTreeMap<ClassId, Line<'_>>,
    mut counts: Counts,
    is_shared: bool,
    most: usize,
    before: impl Fn(ClassId, usize) -> f64,
) -> BTreeMap<ClassId, Ladder> {
    let mut found: BTreeMap<ClassId, Ladder> = BTreeMap::new();
    let mut contest = Contest::default();
    for (id, line) in lines.iter_mut() {
        let members = classes.get(*id);
        let has_any =
            members.override_tickets > 0.0 || members.stakes.iter().flatten().any(|stake| stake.tickets > 0.0);
        if let Some(first) = line.get(0).filter(|_| has_any) {
            let value = tickets(members, &counts, is_shared, 1.0);
            contest.enter_ranked(value, before(*id, 0), first.seq, *id);
        }
    }
    for _ in 0..most {
        let Some(id) = contest.next(|id| tickets(classes.get(id), &counts, is_shared, 1.0)) else {
            break;
        };
        let members = classes.get(id);
        let ladder = found.entry(id).or_default();
        ladder.push(tickets(members, &counts, is_shared, 1.0));
        counts.add(members);
        let place = ladder.count();
        if let Some(next) = lines.get_mut(&id).and_then(|line| line.get(place)) {
            let value = tickets(members, &counts, is_shared, 1.0);
            contest.enter_ranked(value, before(id, place), next.seq, id);
        }
    }
    found
}
