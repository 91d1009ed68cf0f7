//! Limits while the job runs: the clock, the samples of the whole task, and the limit that is to
//! blame.

use super::child::{ChildCommand, LOOK_MS};
use super::control::MemoryLimit;
use super::ending::Action;
use super::evidence;
use super::evidence::{EndFacts, GroupFacts};
use super::probe::{self, Probe};
use super::sampler;
use super::supervisor::{ChildEnd, FIRST_SAMPLE_MS, RunningJob, Supervisor};
use crate::sys::{self, ReapedChild};
use proto::launch::{EndCause, HostEvidence, HostLimitHit, Notice, TaskOrder, TaskUsage};
use std::io;
use std::time::Instant;

/// The nice value of a shepherd on a host that gives it no other priority.
const HIGHEST_PRIORITY: i32 = -20;

impl Supervisor<'_> {
    /// Begins to look for many new processes, for a job whose memory is limited.
    pub(super) fn begin_probing(&mut self, now: u64) {
        let document = &self.context.document;
        let limits = &document.task_limits;
        let is_limited = limits.h_vmem_bytes.is_some() || limits.h_rss_bytes.is_some();
        if !is_limited || document.sample_interval_ms == 0 {
            return;
        }
        self.probe = Probe::new(now);
        if self.probe.is_none() {
            return;
        }
        // A task that makes processes without end must not keep its shepherd from ending it: the
        // shepherd is awake for some microseconds every few milliseconds, and what it starts is
        // ordinary again. Without the right to that it waits its turn.
        self.own_nice = sys::nice();
        let _ = sys::become_urgent().or_else(|_| sys::set_nice(HIGHEST_PRIORITY));
    }

    /// Gives the shepherd its ordinary scheduling policy back. The epilog runs after this.
    pub(super) fn end_probing(&mut self) {
        if self.probe.take().is_some() {
            // Both only give something back, so nothing forbids them.
            let _ = sys::become_ordinary();
            let _ = sys::set_nice(self.own_nice);
        }
    }

    pub(super) fn keep_limits(&mut self, now: u64) {
        let Some(mut job) = self.running() else { return };
        self.keep_clock(&job, now);
        let is_due = now >= job.next_sample;
        let must_sample = std::mem::take(&mut self.must_sample);
        let mut rested_at = 0;
        if is_due || must_sample {
            let before = self.sampler.usage().processes;
            let began = Instant::now();
            let control = &self.context.control;
            self.sampler
                .sample(&self.context.document.task_limits, control.memory());
            rested_at = probe::rested_at(sys::boot_ms(), began.elapsed());
            self.probe.iter_mut().for_each(|probe| probe.rest_until(rested_at));
            let grows = self.sampler.usage().processes > before + 1;
            self.probe
                .iter_mut()
                .filter(|_| must_sample)
                .for_each(|probe| probe.learn(now, grows));
            self.keep_sampled();
            self.keep_memory();
        }
        if is_due {
            self.probe.iter_mut().for_each(Probe::calm_down);
            self.plan_sample(&mut job, now);
        }
        job.next_sample = job.next_sample.max(rested_at);
        self.job = Some(job);
    }

    fn plan_sample(&mut self, job: &mut RunningJob, now: u64) {
        let interval = u64::from(self.context.document.sample_interval_ms);
        if job.sample_step >= interval {
            self.sampler.note_conditions(self.context.control.group());
            let notice = Notice::Usage {
                key: self.context.document.key,
                usage: *self.sampler.usage(),
            };
            self.peers.tell(&notice);
        }
        job.sample_step = (job.sample_step * 2).min(interval);
        let step = if self.is_near_a_limit() {
            job.sample_step.min(FIRST_SAMPLE_MS)
        } else {
            job.sample_step
        };
        job.next_sample = now + step;
    }

    fn keep_clock(&mut self, job: &RunningJob, now: u64) {
        if self.ending.is_settled() {
            return;
        }
        let limits = &self.context.document.task_limits;
        let termination = &self.context.document.termination;
        let ran_s = now.saturating_sub(job.started_boot_ms) / 1000;
        let reached = |limit: Option<u64>| limit.filter(|&limit| ran_s >= limit);
        let actions = if let Some(bound) = reached(limits.h_rt_s) {
            let actions = self.ending.begin(termination, now);
            self.blame(evidence::hit("h_rt", bound, ran_s, HostEvidence::Certain));
            actions
        } else if let Some(bound) = reached(limits.s_rt_s) {
            self.soft_clock
                .get_or_insert_with(|| evidence::hit("s_rt", bound, ran_s, HostEvidence::Certain));
            self.ending.begin_soft(termination, now)
        } else {
            return;
        };
        actions.into_iter().for_each(|action| self.act(action));
    }

    /// The end of the grace behind `s_rt` ends the job, and so `s_rt` does.
    pub(super) fn blame_soft_clock(&mut self, action: Action) {
        if action == Action::Terminate
            && !self.ordered
            && let Some(hit) = self.soft_clock.take()
        {
            self.blame(hit);
        }
    }

    /// Compares the sample with the limits of the whole task.
    fn keep_sampled(&mut self) {
        let usage = *self.sampler.usage();
        let limits = self.context.document.task_limits;
        let hard = [
            ("h_vmem", limits.h_vmem_bytes, usage.maxvmem_bytes),
            ("h_rss", limits.h_rss_bytes, usage.maxrss_bytes),
            ("h_cpu", limits.h_cpu_s, usage.cpu_ms / 1000),
            ("h_maxproc", limits.h_maxproc, u64::from(usage.processes)),
        ];
        if let Some(hit) = first_over(&hard) {
            self.blame(hit);
            self.kill_for_limit();
            return;
        }
        let soft = [
            ("s_vmem", limits.s_vmem_bytes, usage.vmem_bytes),
            ("s_rss", limits.s_rss_bytes, usage.rss_bytes),
            ("s_cpu", limits.s_cpu_s, usage.cpu_ms / 1000),
        ];
        if let Some(hit) = first_over(&soft) {
            self.soft_hit.get_or_insert(hit);
            self.act(Action::Signal(libc::SIGXCPU));
        }
    }

    fn kill_for_limit(&mut self) {
        let termination = &self.context.document.termination;
        let actions = self.ending.order(TaskOrder::Kill, termination, sys::boot_ms());
        actions.into_iter().for_each(|action| self.act(action));
    }

    /// Attends to the limits of memory that the task's group keeps. The kernel of the first version
    /// ends one process at the limit; the rest of the task goes with it.
    fn keep_memory(&mut self) {
        let Some(group) = self.context.control.memory() else {
            return;
        };
        if group.oom_kills() > 0 {
            if group.has_hit_its_memory()
                && let Some(limit) = self.context.control.hard_memory()
            {
                let peak = group.memory_peak().unwrap_or(limit.bytes);
                self.blame(evidence::hit(limit.name, limit.bytes, peak, HostEvidence::Certain));
            }
            self.kill_for_limit();
            return;
        }
        let in_use = self.sampler.usage().rss_bytes;
        // The kernel lets a group exceed its limit by some pages. More is there only if it refused
        // the limit, because the task had more already.
        let is_beyond = |limit: &MemoryLimit| in_use > limit.bytes.saturating_add(limit.bytes / 16);
        if let Some(limit) = self.context.control.hard_memory().filter(is_beyond) {
            self.blame(evidence::hit(limit.name, limit.bytes, in_use, HostEvidence::Certain));
            self.kill_for_limit();
            return;
        }
        if let Some(limit) = self.context.control.soft_memory().filter(|limit| in_use > limit.bytes) {
            self.soft_hit
                .get_or_insert_with(|| evidence::hit(limit.name, limit.bytes, in_use, HostEvidence::Certain));
            self.act(Action::Signal(libc::SIGXCPU));
        }
    }

    fn is_near_a_limit(&self) -> bool {
        let usage = self.sampler.usage();
        let limits = &self.context.document.task_limits;
        let near = |limit: Option<u64>, value: u64| limit.is_some_and(|limit| value > limit - limit / 4);
        let kept = self.context.control.memory().and(self.context.control.hard_memory());
        near(kept.map(|limit| limit.bytes), usage.rss_bytes)
            || near(limits.h_vmem_bytes, usage.vmem_bytes)
            || near(limits.h_rss_bytes, usage.rss_bytes)
            || near(limits.h_maxproc, usage.processes.into())
    }

    /// Finds the limit behind the end of a job that the shepherd did not end itself.
    pub(super) fn judge(
        &mut self,
        cause: &EndCause,
        main: &ReapedChild,
        usage: &TaskUsage,
        seen: &GroupFacts,
    ) -> io::Result<()> {
        if self.limit.is_some() || self.ordered {
            return Ok(());
        }
        if let Some(hit) = self.soft_clock.take() {
            // A job that ended well may have been about to.
            let evidence = if *cause == EndCause::Exited(0) {
                HostEvidence::Likely
            } else {
                HostEvidence::Certain
            };
            self.limit = Some(HostLimitHit { evidence, ..hit });
            return Ok(());
        }
        let cpu_us = sampler::micros(&main.rusage.ru_utime) + sampler::micros(&main.rusage.ru_stime);
        self.limit = evidence::judge(&EndFacts {
            document: &self.context.document,
            cause,
            usage,
            main_cpu_ms: cpu_us / 1000,
            peaks: self.sampler.peaks(),
            soft: self.soft_hit.as_ref(),
            group: seen,
            around: self.around.as_ref(),
        });
        if self.limit.is_none() && *cause != EndCause::Exited(0) {
            self.limit = self.refused_memory()?;
        }
        Ok(())
    }

    /// A program that fails at its first large allocation never comes near a limit: its own words
    /// on standard error are looked for.
    fn refused_memory(&mut self) -> io::Result<Option<HostLimitHit>> {
        let hit = evidence::refused_memory(&self.context.document, self.sampler.peaks());
        let (Some(hit), Some(from)) = (hit, self.error_file_bytes) else {
            return Ok(None);
        };
        let ended = self.run_child(&ChildCommand::Look { from }, Some(LOOK_MS))?;
        // A look that hangs in the kernel counts as left behind.
        self.end_remains()?;
        let has_said = matches!(ended, ChildEnd::Ended(waited) if waited.status == 0);
        Ok(has_said.then_some(hit))
    }

    /// The first limit that ends the job is the one that counts.
    fn blame(&mut self, hit: HostLimitHit) {
        self.limit.get_or_insert(hit);
    }
}

fn first_over(limits: &[(&str, Option<u64>, u64)]) -> Option<HostLimitHit> {
    limits.iter().find_map(|&(name, bound, reached)| {
        let bound = bound.filter(|&bound| reached > bound || (reached == bound && name.ends_with("cpu")))?;
        Some(evidence::hit(name, bound, reached, HostEvidence::Certain))
    })
}
