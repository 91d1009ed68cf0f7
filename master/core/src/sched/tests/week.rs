//! The four uses of the policies in Grid Engine's own document on them, each over a simulated week
//! of ten slots: what is aimed at, what came out, and how far that may be from it.

use super::lab::Lab;
use std::collections::BTreeMap;

/// Slots.
const SLOTS: usize = 10;
/// Hours of a week.
const WEEK: u32 = 168;

/// A week with jobs of one to five hours.
struct Week {
    lab: Lab,
    hour: u32,
    last: u32,
    /// The last number that was drawn.
    drawn: u64,
    /// The kind of each job, and when those that run began and end.
    kinds: BTreeMap<u32, &'static str>,
    running: BTreeMap<u32, (u32, u32)>,
    /// Slot hours by kind.
    hours: BTreeMap<&'static str, u32>,
    /// Of the last pass.
    started: Vec<u32>,
}

impl Week {
    fn new(conf: &str) -> Week {
        let mut lab = Lab::new();
        let fixed = format!("host a\nqueue all.q a slots={SLOTS}");
        conf.lines()
            .chain(fixed.lines())
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .for_each(|line| lab.line(line));
        let (kinds, running, hours) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Week {
            lab,
            hour: 0,
            last: 0,
            drawn: 1,
            kinds,
            running,
            hours,
            started: Vec::new(),
        }
    }

    /// A number below another, the same in every run.
    fn draw(&mut self, below: u64) -> u64 {
        self.drawn = self
            .drawn
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.drawn >> 33) % below
    }

    fn submit(&mut self, kind: &'static str, options: &str) {
        self.last += 1;
        self.lab.line(&format!("job {} {options}", self.last));
        self.kinds.insert(self.last, kind);
    }

    /// Jobs of a kind that wait.
    fn waiting(&self, kind: &str) -> usize {
        self.kinds
            .iter()
            .filter(|(job, of)| **of == kind && !self.running.contains_key(job))
            .count()
    }

    /// Keeps so many jobs of a kind waiting.
    fn keep_waiting(&mut self, kind: &'static str, options: &str, count: usize) {
        while self.waiting(kind) < count {
            self.submit(kind, options);
        }
    }

    /// Lets what is over end, starts what may start, and lets an hour pass.
    fn next_hour(&mut self) {
        let over: Vec<u32> = self
            .running
            .iter()
            .filter(|(_, (_, end))| *end <= self.hour)
            .map(|(job, _)| *job)
            .collect();
        for job in over {
            self.lab.end(&job.to_string());
            self.running.remove(&job);
            self.kinds.remove(&job);
        }
        self.lab.place();
        let placed = std::mem::take(&mut self.lab.placed);
        self.started = placed
            .iter()
            .filter_map(|text| text.split(' ').next()?.parse().ok())
            .collect();
        for job in self.started.clone() {
            let length = 1 + self.draw(5) as u32;
            self.running.insert(job, (self.hour, self.hour + length));
        }
        self.hour += 1;
        self.lab.wait(3600);
        for (job, (begin, _)) in self.running.clone() {
            *self.hours.entry(self.kinds[&job]).or_default() += 1;
            self.lab
                .charge(&job.to_string(), u64::from(self.hour - begin) * 3_600_000);
        }
    }

    /// The part that a kind had of all slot hours.
    fn part(&self, kind: &str) -> f64 {
        let all: u32 = self.hours.values().sum();
        f64::from(self.hours.get(kind).copied().unwrap_or(0)) / f64::from(all)
    }

    fn assert_part(&self, kind: &str, aim: f64, tolerance: f64) {
        let part = self.part(kind);
        assert!(
            (part - aim).abs() <= tolerance,
            "{kind}: {part:.4}, aimed at {aim} within {tolerance}"
        );
    }
}

/// Classes of jobs by resources that have an urgency. Aim: nothing of a lower class starts while
/// something of a higher one waits. Always.
#[test]
fn classes_of_jobs_by_the_urgency_of_a_resource() {
    let mut week = Week::new(
        "complex high high BOOL == YES NO 0 100000
         complex middle middle BOOL == YES NO 0 10000
         global high=true,middle=true
         conf weight_urgency 1
         conf weight_priority 0
         conf weight_ticket 0",
    );
    let classes = [("high", "-l high=true"), ("middle", "-l middle=true"), ("low", "")];
    while week.hour < WEEK {
        for (kind, options) in classes {
            for _ in 0..week.draw(4) {
                week.submit(kind, options);
            }
        }
        week.next_hour();
        let kinds: Vec<&str> = week.started.iter().map(|job| week.kinds[job]).collect();
        if week.waiting("high") > 0 {
            assert!(
                kinds.iter().all(|kind| *kind == "high"),
                "hour {}: {kinds:?} start and high ones wait",
                week.hour
            );
        }
        if week.waiting("middle") > 0 {
            assert!(
                !kinds.contains(&"low"),
                "hour {}: {kinds:?} start and middle ones wait",
                week.hour
            );
        }
    }
    assert!(week.part("high") > 0.3, "the higher classes get what they ask for");
}

/// Two projects by the functional policy, of which one submits four times as much and has more
/// users. Aim: half of the slots each. Within 2 %.
#[test]
fn two_projects_have_half_of_the_slots_each_at_any_time() {
    let mut week = Week::new(
        "project big 100
         project small 100
         conf weight_tickets_functional 10000
         conf weight_project 1
         conf weight_user 0
         conf weight_department 0
         conf weight_job 0
         conf weight_ticket 1
         conf weight_urgency 0
         conf weight_priority 0",
    );
    while week.hour < WEEK {
        for user in 1..=4 {
            let count = week.waiting("big") + 8;
            week.keep_waiting("big", &format!("-u b{user} -P big"), count.min(80));
        }
        week.keep_waiting("small", "-u s1 -P small", 10);
        week.next_hour();
    }
    week.assert_part("big", 0.5, 0.02);
}

/// Two projects by a share tree, of which one does nothing for two days. Aim: half of what was
/// used, each. What a project gets is inverse to what it has used, so it is the squares of use that
/// grow alike: 480 slot hours alone leave 54 to 46 of the 1,680 of a week, and decay brings them
/// nearer. Within 4 % of half as it counts, within 2 % of 46 % as it was.
#[test]
fn two_projects_have_half_of_the_week_each_though_one_comes_late() {
    let mut week = Week::new(
        "project early 0
         project late 0
         tree early!=1 late!=1
         conf weight_tickets_share 10000
         conf weight_ticket 1
         conf weight_urgency 0
         conf weight_priority 0",
    );
    while week.hour < WEEK {
        week.keep_waiting("early", "-u e1 -P early", 20);
        if week.hour >= 48 {
            week.keep_waiting("late", "-u l1 -P late", 20);
        }
        week.next_hour();
        if week.hour == 48 {
            week.assert_part("early", 1.0, 0.0);
        }
    }
    let nodes = week.lab.scheduler.model().share_nodes(week.lab.now);
    for path in ["/early", "/late"] {
        let node = nodes.iter().find(|node| node.path == path).expect("a node of the tree");
        assert!(
            (node.actual_share - 500_000).abs() <= 40_000,
            "{path} has {} of a million",
            node.actual_share
        );
    }
    week.assert_part("late", 0.46, 0.02);
}

/// `-p` over the urgency of a resource over equal shares of users. Aim: nothing starts while
/// something of more `-p`, or of equal `-p` and more urgency, waits: always; users whose jobs are
/// equal in that have equal parts. Of two who have equally many slots the one with the older job
/// gets the next, which is up to half of one slot of the five that are left for them: within 5 %.
#[test]
fn priorities_of_people_over_urgency_over_equal_shares_of_users() {
    let mut week = Week::new(
        "complex urgent urgent BOOL == YES NO 0 100000
         global urgent=true
         user u1 100
         user u2 100
         conf weight_tickets_functional 10000
         conf weight_user 1
         conf weight_project 0
         conf weight_department 0
         conf weight_job 0
         conf weight_priority 100
         conf weight_urgency 1
         conf weight_ticket 0.01",
    );
    while week.hour < WEEK {
        for (kind, options, most) in [
            ("ordered", "-p 100 -u u3", 2),
            ("urgent", "-p 0 -l urgent=true -u u4", 3),
        ] {
            for _ in 0..week.draw(most) {
                week.submit(kind, options);
            }
        }
        // Of two equal users one submits three times as much.
        week.keep_waiting("first", "-u u1", 30);
        week.keep_waiting("second", "-u u2", 10);
        week.next_hour();
        let kinds: Vec<&str> = week.started.iter().map(|job| week.kinds[job]).collect();
        if week.waiting("ordered") > 0 {
            assert!(
                kinds.iter().all(|kind| *kind == "ordered"),
                "hour {}: {kinds:?}",
                week.hour
            );
        }
        if week.waiting("urgent") > 0 {
            assert!(
                kinds.iter().all(|kind| ["ordered", "urgent"].contains(kind)),
                "hour {}: {kinds:?}",
                week.hour
            );
        }
    }
    let (first, second) = (week.part("first"), week.part("second"));
    assert!(
        (first / (first + second) - 0.5).abs() <= 0.05,
        "u1 {first:.3}, u2 {second:.3}"
    );
}
