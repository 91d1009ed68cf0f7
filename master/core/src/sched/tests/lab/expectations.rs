//! What a script expects of its cell, and what holds in every cell.

use super::{Lab, place_text};
use crate::explain::scheduling_info;
use crate::matching::Demand;
use crate::sched::TaskPhase;
use crate::state::eligible::{IneligibleReason, eligible, eligible_tasks, job_eligible};
use crate::state::reservation::AdvanceReservation;
use proto::id::{ReservationId, SubmitSeq, TaskId};

impl Lab {
    /// Tickets as `qstat -ext` shows them: without what is behind the point.
    pub(super) fn expect_tickets(&self, job: &str, expected: &[&str]) {
        let (of, expected) = if expected[0] == "r" {
            (TaskPhase::Running, &expected[1..])
        } else {
            (TaskPhase::Pending, expected)
        };
        let numbers = self
            .scheduler
            .model()
            .priority_of(SubmitSeq(job.parse().unwrap()), of, self.now);
        let found = [numbers.otckt, numbers.ftckt, numbers.stckt].map(|tickets| tickets.to_string());
        assert_eq!(found.join(" "), expected.join(" "), "tickets of job {job}");
    }

    pub(super) fn expect_node(&self, path: &str, expected: &[&str]) {
        let nodes = self.scheduler.model().share_nodes(self.now);
        let node = nodes.iter().find(|node| node.path == path).unwrap();
        let tasks = i64::try_from(node.job_count).unwrap();
        let found = [
            tasks,
            node.total,
            node.long_target_share,
            node.short_target_share,
            node.actual_share,
        ];
        assert_eq!(
            found.map(|number| number.to_string()).join(" "),
            expected.join(" "),
            "of {path}"
        );
    }

    pub(super) fn expect_reservation(&self, name: &str, expected: &str) {
        let (seq, task) = name.split_once('.').unwrap_or((name, "1"));
        let key = (SubmitSeq(seq.parse().unwrap()), TaskId(task.parse().unwrap()));
        let text = self
            .scheduler
            .model()
            .reservations()
            .get(&key)
            .map_or("nothing".to_owned(), |kept| {
                let places: Vec<String> = kept.granted.iter().map(place_text).collect();
                format!("+{} {}", kept.at.since_ms(self.now.tick) / 1000, places.join(" "))
            });
        assert_eq!(text, expected, "of job {name}");
    }

    pub(super) fn expect_quota(&self, row: &str) {
        let rows = self.quotas();
        let is_there = if row == "nothing" {
            rows.is_empty()
        } else {
            rows.iter().any(|known| known == row)
        };
        assert!(is_there, "no row {row:?} among {rows:#?}");
    }

    pub(super) fn expect_grant(&self, id: &str, expected: &str) {
        let known = self.state().reservations.get(&ReservationId(id.parse().unwrap()));
        let places = |known: &AdvanceReservation| known.granted.iter().map(place_text).collect::<Vec<_>>().join(" ");
        assert_eq!(
            known.map_or("nothing".to_owned(), places),
            expected,
            "of reservation {id}"
        );
    }

    /// The tasks that may start are those that the check of orders lets start, asked one by one.
    pub(super) fn assert_tasks_are_found(&self) {
        let state = self.state();
        for job in state
            .jobs
            .values()
            .filter(|job| job_eligible(state, job, self.now.wall).is_ok())
        {
            let found: Vec<TaskId> = eligible_tasks(state, job, self.now).collect();
            let present = job.present();
            let may_start = |task: &TaskId| {
                let verdict = eligible(state, job, *task, self.now);
                matches!(verdict, Ok(()) | Err(IneligibleReason::UserJobs(_)))
            };
            let plain: Vec<TaskId> = present.iter().filter(may_start).collect();
            assert_eq!(found, plain, "of job {}", job.number);
        }
    }

    /// What counts tell of a job is what its tasks say one by one.
    pub(super) fn assert_counts(&self) {
        let model = self.scheduler.model();
        for job in model.state().jobs.values() {
            for most in [1, 3, 1_000] {
                let named = model.startable(job, self.now, most).len();
                assert_eq!(
                    model.count_startable(job, model.plans_of(job.seq), self.now, most),
                    named,
                    "job {}",
                    job.number
                );
            }
        }
    }

    /// What waits after a pass has a reason, as the matcher finds it who asks every queue instance
    /// about every job.
    pub(super) fn assert_nothing_fits(&self) {
        let model = self.scheduler.model();
        let mut findings = self.findings();
        for job in model.state().jobs.values() {
            if model.startable(job, self.now, 1).is_empty() || model.is_owner_full(job.seq) {
                continue;
            }
            let demand = Demand::of_job(model.state(), job);
            // Under a quota it depends on the order of the hosts what a parallel job is offered:
            // that is greedy.
            if demand.pe.is_some() && model.state().config.enabled_quotas().next().is_some() {
                continue;
            }
            assert!(
                !findings.reasons_of(job, &demand).is_empty(),
                "job {} could have been started",
                job.number
            );
        }
    }

    pub(super) fn threshold_suspended(&self) -> String {
        let names: Vec<String> = self
            .state()
            .index
            .threshold_suspended()
            .map(|key| key.seq.0.to_string())
            .collect();
        if names.is_empty() {
            "-".to_owned()
        } else {
            names.join(" ")
        }
    }

    pub(super) fn expect_info(&self, job: &str, line: &str) {
        let seq = SubmitSeq(job.parse().unwrap());
        let lines = scheduling_info(&mut self.findings(), seq);
        assert!(
            lines.iter().any(|known| known == line),
            "no line {line:?} among {lines:#?}"
        );
    }
}
