//! What events make of jobs as a whole and of their pending tasks.

use super::super::State;
use super::super::job::{ENDED_KEPT, FinishedJob, FinishedTask, Job, Task, TaskPlace, changed_holds};
use super::super::usage::Account;
use crate::collections::ranges::TaskRanges;
use crate::collections::seldom::SparseBox;
use proto::id::{HostName, JobNumber, SubmitSeq, TaskId};
use proto::job::{HoldChange, JobSpec};
use proto::request::TaskRange;
use proto::time::{Tick, Wall};
use proto::usage::FailedCode;
use std::collections::BTreeSet;
use std::sync::Arc;

impl State {
    /// The job an event is about.
    pub(super) fn job_mut(&mut self, seq: SubmitSeq) -> &mut Job {
        self.jobs
            .get_mut(&seq)
            .expect("an event names a job that is not finished")
    }

    fn existing(&self, jobs: &[SubmitSeq]) -> BTreeSet<SubmitSeq> {
        jobs.iter().copied().filter(|seq| self.jobs.contains_key(seq)).collect()
    }

    pub(super) fn add_job(
        &mut self,
        seq: SubmitSeq,
        number: JobNumber,
        spec: &Arc<JobSpec>,
        waits: (&[SubmitSeq], &[SubmitSeq]),
    ) {
        assert!(seq > self.last_submit, "submissions are counted upwards");
        assert!(
            self.by_number.insert(number, seq).is_none(),
            "a job number names one job at a time"
        );
        let job = Job {
            seq,
            number,
            spec: self.index.commons.kept(&self.config.complex, spec),
            version: 0,
            submitted: self.now.wall,
            submitted_tick: self.now.tick,
            waits_for: self.existing(waits.0).into(),
            array_waits_for: self.existing(waits.1).into(),
            untouched: TaskRanges::all(spec.array),
            tasks: SparseBox::default(),
            ready: SparseBox::default(),
            active: 0,
            failed: false,
            ended: SparseBox::default(),
        };
        self.last_submit = seq;
        // A job that a verifier looked at for long has a lower number than those that overtook it.
        if !number.is_before(self.last_number) {
            self.last_number = number;
        }
        self.index.add_job(&self.config.complex, &job);
        self.jobs.insert(seq, job);
    }

    pub(super) fn alter_job(&mut self, seq: SubmitSeq, spec: &Arc<JobSpec>, waits: (&[SubmitSeq], &[SubmitSeq])) {
        let (waits_for, array_waits_for) = (self.existing(waits.0), self.existing(waits.1));
        let mut job = self
            .jobs
            .remove(&seq)
            .expect("an event names a job that is not finished");
        assert!(
            job.spec.owner == spec.owner && job.spec.array == spec.array,
            "owner and tasks of a job stay as they are"
        );
        let account = Account::of_job(&job);
        self.index.remove_job(&job);
        job.spec = self.index.commons.kept(&self.config.complex, spec);
        job.version += 1;
        (job.waits_for, job.array_waits_for) = (waits_for.into(), array_waits_for.into());
        self.index.add_job(&self.config.complex, &job);
        self.jobs.insert(seq, job);
        self.move_running(seq, &account);
    }

    /// Where all untouched tasks are meant they stay one range; else those that are meant get a
    /// condition of their own.
    pub(super) fn change_holds(&mut self, seq: SubmitSeq, tasks: &[TaskRange], change: HoldChange) {
        let now = self.now.tick;
        let job = self.job_mut(seq);
        let named = TaskRanges::of_job(job.spec.array, tasks);
        for (_, state) in job.tasks.iter_mut().filter(|(task, _)| named.contains(**task)) {
            state.holds = changed_holds(state.holds, change);
        }
        let meant = job.untouched.intersection(tasks);
        let holds = changed_holds(job.spec.holds, change);
        if meant.len() == job.untouched.len() {
            Arc::make_mut(&mut job.spec).holds = holds;
        } else {
            let fresh = Task {
                holds,
                ..job.fresh_task()
            };
            job.untouched.take_ranges(&meant.ranges());
            job.tasks.extend(meant.iter().map(|task| (task, fresh.clone())));
        }
        job.ready = job.found_ready(now);
    }

    pub(super) fn delete_tasks(&mut self, seq: SubmitSeq, tasks: &[TaskRange]) {
        let now = self.now.tick;
        let job = self.job_mut(seq);
        let untouched = job.untouched.intersection(tasks);
        job.untouched.take_ranges(tasks);
        let named = TaskRanges::of_job(job.spec.array, tasks);
        let own: Vec<TaskId> = job.tasks.keys().copied().filter(|task| named.contains(*task)).collect();
        for task in &own {
            let state = job.tasks.remove(task).expect("it was found just now");
            assert!(
                state.place.placement().is_none(),
                "only pending tasks are deleted at once"
            );
        }
        job.ready = job.found_ready(now);
        let skipped = (untouched.len() as usize).saturating_sub(ENDED_KEPT);
        untouched
            .iter()
            .skip(skipped)
            .chain(own)
            .for_each(|task| job.remember(deleted(task)));
    }

    pub(super) fn clear_errors(&mut self, seq: SubmitSeq, tasks: &[TaskRange]) {
        let now = self.now.tick;
        let job = self.job_mut(seq);
        job.failed = false;
        let named = TaskRanges::of_job(job.spec.array, tasks);
        for (_, state) in job.tasks.iter_mut().filter(|(task, _)| named.contains(**task)) {
            if let TaskPlace::Pending { error } = &mut state.place {
                *error = None;
            }
        }
        job.ready = job.found_ready(now);
    }

    /// Takes a job out, lets go what waited for it unless it failed, and remembers it for a while.
    pub(super) fn finish_job(&mut self, seq: SubmitSeq) {
        let job = self
            .jobs
            .remove(&seq)
            .expect("an event names a job that is not finished");
        assert!(job.is_empty(), "a job is finished when its last task has left");
        self.index.remove_job(&job);
        self.by_number.remove(&job.number);
        let hosts: Vec<HostName> = self.unconfirmed_hosts(seq).cloned().collect();
        hosts
            .iter()
            .for_each(|host| self.forget_unconfirmed(host, |key| key.seq == seq));
        if !job.failed {
            self.release_successors(seq);
        }
        let Job {
            number,
            spec,
            submitted,
            ended,
            ..
        } = job;
        let tasks = ended.into_inner().into();
        self.finished.push_back(FinishedJob {
            seq,
            number,
            spec,
            submitted,
            ended: self.now.wall,
            tasks,
        });
        let kept = self.config.settings.finished_jobs as usize;
        while self.finished.len() > kept {
            self.finished.pop_front();
        }
    }

    fn release_successors(&mut self, seq: SubmitSeq) {
        let successors: Vec<SubmitSeq> = self.index.successors(seq).collect();
        for successor in successors {
            let mut job = self.jobs.remove(&successor).expect("the index names jobs that exist");
            self.index.remove_job(&job);
            job.waits_for.remove(&seq);
            job.array_waits_for.remove(&seq);
            self.index.add_job(&self.config.complex, &job);
            self.jobs.insert(successor, job);
        }
    }
}

impl Job {
    /// A task that gets a condition of its own for the first time.
    pub(super) fn fresh_task(&self) -> Task {
        Task {
            place: TaskPlace::Pending { error: None },
            holds: self.spec.holds,
            attempts: 0,
            since: self.submitted,
            restarted: false,
            saved_pid: None,
            reruns: 0,
            starts_from: Tick(0),
        }
    }

    /// Keeps how a task ended, and forgets the oldest beyond [`ENDED_KEPT`].
    pub(super) fn remember(&mut self, task: FinishedTask) {
        self.ended.push_back(task);
        if self.ended.len() > ENDED_KEPT {
            self.ended.pop_front();
        }
    }
}

fn deleted(task: TaskId) -> FinishedTask {
    FinishedTask {
        task,
        exit_status: 0,
        failed: FailedCode::NO,
        deleted: true,
        granted: Vec::new(),
        started: Wall(0),
    }
}
