use super::*;

fn member(queue: &str, depth: u32, seq_no: u32, action: PreemptionOrder) -> Member {
    Member {
        queue: queue.into(),
        depth,
        seq_no,
        action,
    }
}

fn key(number: u64) -> TaskKey {
    TaskKey {
        cell: CellId(1),
        seq: SubmitSeq(number),
        task: TaskId(1),
        pe_task: 0,
        attempt: 1,
    }
}

/// A task `NUMBER queue:slots`, older than those with a higher number; `-` in front has given way,
/// `x` is suspended otherwise.
fn task(text: &str) -> HostTask {
    let (mark, text) = match text.strip_prefix(['-', 'x']) {
        Some(rest) => (&text[..1], rest),
        None => ("", text),
    };
    let (number, place) = text.split_once(' ').unwrap();
    let (queue, slots) = place.split_once(':').unwrap();
    let number: u64 = number.parse().unwrap();
    HostTask {
        key: key(number),
        placed: Tick(number),
        slots: BTreeMap::from([(queue.into(), slots.parse().unwrap())]),
        stopped: mark == "x",
        preempted: mark == "-",
        may_give_way: true,
    }
}

/// The numbers of the tasks that give way.
fn gives_way(trees: &[QueueTree], tasks: &[&str]) -> Vec<u64> {
    let settled = settle(trees, tasks.iter().map(|text| task(text)).collect());
    settled
        .iter()
        .filter(|task| task.preempted)
        .map(|task| task.key.seq.0)
        .collect()
}

#[test]
fn tasks_give_way_and_go_on_as_the_manual_tells() {
    use PreemptionOrder::{LongestRunning, ShortestRunning};
    let pair = [QueueTree {
        most: 2,
        members: vec![member("a", 0, 0, ShortestRunning), member("b", 1, 0, ShortestRunning)],
    }];
    let longest = [QueueTree {
        most: 2,
        members: vec![member("a", 0, 0, ShortestRunning), member("b", 1, 0, LongestRunning)],
    }];
    let siblings = [QueueTree {
        most: 2,
        members: vec![
            member("a", 0, 0, ShortestRunning),
            member("b", 1, 1, ShortestRunning),
            member("c", 1, 2, ShortestRunning),
        ],
    }];
    // Three levels: b over c allows two, a over b and c three.
    let chain = [
        QueueTree {
            most: 2,
            members: vec![member("b", 0, 0, ShortestRunning), member("c", 1, 0, ShortestRunning)],
        },
        QueueTree {
            most: 3,
            members: vec![
                member("a", 0, 0, ShortestRunning),
                member("b", 1, 0, ShortestRunning),
                member("c", 2, 0, ShortestRunning),
            ],
        },
    ];
    for (trees, tasks, expected) in [
        (&pair[..], &["1 b:1", "2 b:1"][..], &[][..]),
        (&pair, &["1 b:1", "2 b:1", "3 a:1"], &[2]),
        (&pair, &["1 b:1", "2 b:1", "3 a:1", "4 a:1", "5 a:1"], &[1, 2]),
        (&pair, &["1 b:1", "-2 b:1", "3 a:1"], &[2]),
        (&pair, &["1 b:1", "-2 b:1"], &[]),
        (&pair, &["-1 b:1", "-2 b:1", "3 a:1"], &[2]),
        // What is suspended for another cause is not at work.
        (&pair, &["x1 b:1", "2 b:1", "3 a:1"], &[]),
        (&longest, &["1 b:1", "2 b:1", "3 a:1"], &[1]),
        (&longest, &["-1 b:1", "-2 b:1", "3 a:1"], &[1]),
        // The highest number first, also when the newest task came elsewhere.
        (&siblings, &["1 a:1", "2 c:1", "3 b:1"], &[2]),
        (&siblings, &["1 a:1", "-2 c:1", "-3 b:1"], &[2]),
        // A parallel task gives way as a whole; then there is room for a smaller one.
        (&pair, &["1 b:2", "2 a:1"], &[1]),
        (&pair, &["1 a:1", "2 b:2", "-3 b:1"], &[2]),
        // The deepest first, in each tree and then in the one above.
        (&chain, &["1 c:1", "2 c:1", "3 b:1"], &[2]),
        (&chain, &["1 c:1", "2 b:1", "3 a:1", "4 a:1"], &[1]),
        (&chain, &["1 c:1", "2 b:1", "3 b:1", "4 a:1"], &[1]),
        (&chain, &["-1 c:1", "-2 b:1", "3 a:1", "4 a:1"], &[1]),
    ] {
        assert_eq!(gives_way(trees, tasks), expected, "{tasks:?}");
    }
}

#[test]
fn an_instance_whose_next_task_would_give_way_is_known() {
    use PreemptionOrder::{LongestRunning, ShortestRunning};
    for (action, tasks, expected) in [
        (ShortestRunning, &["1 b:1"][..], false),
        (ShortestRunning, &["1 b:1", "2 a:1"], true),
        (ShortestRunning, &["1 a:1", "2 a:1"], true),
        // Another task gives way in its place.
        (LongestRunning, &["1 b:1", "2 a:1"], false),
        (LongestRunning, &["1 a:1", "2 a:1"], true),
    ] {
        let trees = [QueueTree {
            most: 2,
            members: vec![member("a", 0, 0, action), member("b", 1, 0, action)],
        }];
        let tasks: Vec<HostTask> = tasks.iter().map(|text| task(text)).collect();
        assert_eq!(would_give_way(&trees, &tasks, &"b".into()), expected, "{action:?}");
    }
}
