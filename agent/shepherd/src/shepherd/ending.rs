//! Signals to the whole task: announcement, termination, suspension, as a small state machine over
//! the boot clock.

use proto::launch::{TaskOrder, Termination};

/// What the supervisor has to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a signal that only announces something.
    Announce(i32),
    /// Send a signal to every process.
    Signal(i32),
    /// SIGKILL to every process until none is left.
    Kill,
    /// Run the terminate method.
    Terminate,
    /// Run the suspend method.
    Suspend,
    /// Run the resume method.
    Resume,
}

/// How long after a method that is no SIGKILL it is tried again.
const REPEAT_METHOD_MS: u64 = 60_000;

/// How long after a SIGKILL processes are looked for again.
const REPEAT_KILL_MS: u64 = 500;

/// How far the end, or a suspension, of a task has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    stage: Stage,
    suspend_at: Option<u64>,
    suspended: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Running,
    Announced {
        at: u64,
        /// Whether only a soft limit was reached: a hard one does not wait for the rest of the
        /// notice.
        soft: bool,
    },
    Ending {
        kill: bool,
        repeat_at: u64,
        /// When a method that did not end the task has had its time.
        kill_at: Option<u64>,
    },
}

impl Ending {
    /// Whether the end has begun.
    pub fn has_begun(&self) -> bool {
        self.stage != Stage::Running
    }

    /// Whether the end has begun for a reason that a hard limit cannot add to.
    pub fn is_settled(&self) -> bool {
        match self.stage {
            Stage::Running | Stage::Announced { soft: true, .. } => false,
            Stage::Announced { soft: false, .. } | Stage::Ending { .. } => true,
        }
    }

    /// Applies an order at `now` (boot milliseconds).
    pub fn order(&mut self, order: TaskOrder, termination: &Termination, now: u64) -> Vec<Action> {
        match order {
            TaskOrder::Terminate => self.begin(termination, now),
            TaskOrder::Kill => self.kill(now),
            TaskOrder::Suspend => self.suspend(termination, now),
            TaskOrder::Resume => {
                let announced = self.suspend_at.take().is_some();
                let was = std::mem::take(&mut self.suspended);
                if announced && !was {
                    Vec::new()
                } else {
                    vec![Action::Resume]
                }
            }
            // What migrates is ended by its command, or killed.
            TaskOrder::Migrate => Vec::new(),
            TaskOrder::User1 => vec![Action::Signal(libc::SIGUSR1)],
            TaskOrder::User2 => vec![Action::Signal(libc::SIGUSR2)],
        }
    }

    /// Begins the termination sequence, once.
    pub fn begin(&mut self, termination: &Termination, now: u64) -> Vec<Action> {
        if self.is_settled() {
            return Vec::new();
        }
        if termination.notify && termination.notify_s > 0 && termination.notify_kill_signal != 0 {
            return self.announce(termination.notify_kill_signal, false, termination, now);
        }
        self.terminate(termination, now)
    }

    /// SIGUSR1 at `s_rt`, the terminate method `notify_s` later.
    pub fn begin_soft(&mut self, termination: &Termination, now: u64) -> Vec<Action> {
        if self.has_begun() {
            Vec::new()
        } else {
            self.announce(libc::SIGUSR1, true, termination, now)
        }
    }

    fn announce(&mut self, signal: i32, soft: bool, termination: &Termination, now: u64) -> Vec<Action> {
        self.stage = Stage::Announced {
            at: now + u64::from(termination.notify_s) * 1000,
            soft,
        };
        let wake = self.suspended.then_some(Action::Signal(libc::SIGCONT));
        [Action::Announce(signal)].into_iter().chain(wake).collect()
    }

    fn kill(&mut self, now: u64) -> Vec<Action> {
        self.stage = Stage::Ending {
            kill: true,
            repeat_at: now + REPEAT_KILL_MS,
            kill_at: None,
        };
        vec![Action::Kill]
    }

    fn terminate(&mut self, termination: &Termination, now: u64) -> Vec<Action> {
        let patience = termination
            .method_timeout_s
            .map(|seconds| now + u64::from(seconds) * 1000);
        let kill_at = match self.stage {
            Stage::Ending { kill_at, .. } => kill_at,
            Stage::Running | Stage::Announced { .. } => patience,
        };
        self.stage = Stage::Ending {
            kill: false,
            repeat_at: now + REPEAT_METHOD_MS,
            kill_at,
        };
        let wake = self.suspended.then_some(Action::Signal(libc::SIGCONT));
        [Action::Terminate].into_iter().chain(wake).collect()
    }

    fn suspend(&mut self, termination: &Termination, now: u64) -> Vec<Action> {
        if self.has_begun() || self.suspended || self.suspend_at.is_some() {
            return Vec::new();
        }
        if termination.notify && termination.notify_s > 0 && termination.notify_suspend_signal != 0 {
            self.suspend_at = Some(now + u64::from(termination.notify_s) * 1000);
            return vec![Action::Announce(termination.notify_suspend_signal)];
        }
        self.suspended = true;
        vec![Action::Suspend]
    }

    /// When [`Ending::due`] has to be asked next.
    pub fn next_at(&self) -> Option<u64> {
        let stage = match self.stage {
            Stage::Running => None,
            Stage::Announced { at, .. } => Some(at),
            Stage::Ending { repeat_at, kill_at, .. } => kill_at.into_iter().chain([repeat_at]).min(),
        };
        stage.into_iter().chain(self.suspend_at).min()
    }

    /// What the clock demands at `now`.
    pub fn due(&mut self, termination: &Termination, now: u64) -> Vec<Action> {
        if self.suspend_at.is_some_and(|at| at <= now) {
            self.suspend_at = None;
            self.suspended = true;
            return vec![Action::Suspend];
        }
        match self.stage {
            Stage::Announced { at, .. } if at <= now => self.terminate(termination, now),
            Stage::Ending { kill_at: Some(at), .. } if at <= now => self.kill(now),
            Stage::Ending {
                kill: true, repeat_at, ..
            } if repeat_at <= now => self.kill(now),
            Stage::Ending {
                kill: false, repeat_at, ..
            } if repeat_at <= now => self.terminate(termination, now),
            Stage::Running | Stage::Announced { .. } | Stage::Ending { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::launch::Method;

    fn termination(notify: bool) -> Termination {
        Termination {
            notify,
            notify_s: 10,
            notify_kill_signal: libc::SIGUSR2,
            notify_suspend_signal: libc::SIGUSR1,
            terminate: Method::Default,
            suspend: Method::Default,
            resume: Method::Default,
            method_timeout_s: None,
        }
    }

    #[test]
    fn termination_is_announced_only_to_jobs_that_asked_for_it() {
        let mut ending = Ending::default();
        assert_eq!(
            ending.order(TaskOrder::Terminate, &termination(false), 0),
            [Action::Terminate]
        );
        let mut ending = Ending::default();
        assert_eq!(
            ending.order(TaskOrder::Terminate, &termination(true), 0),
            [Action::Announce(libc::SIGUSR2)]
        );
        assert_eq!(ending.due(&termination(true), 9_999), []);
        assert_eq!(ending.due(&termination(true), 10_000), [Action::Terminate]);
        assert_eq!(ending.order(TaskOrder::Terminate, &termination(true), 10_001), []);
    }

    #[test]
    fn a_hard_limit_does_not_wait_for_the_notice_of_a_soft_one() {
        let mut ending = Ending::default();
        assert_eq!(
            ending.begin_soft(&termination(false), 0),
            [Action::Announce(libc::SIGUSR1)]
        );
        assert_eq!(ending.begin_soft(&termination(false), 1), []);
        assert_eq!(ending.begin(&termination(false), 2_000), [Action::Terminate]);
        assert_eq!(ending.begin(&termination(false), 2_001), []);
    }

    #[test]
    fn a_resume_takes_back_an_announced_suspension() {
        let mut ending = Ending::default();
        assert_eq!(
            ending.order(TaskOrder::Suspend, &termination(true), 0),
            [Action::Announce(libc::SIGUSR1)]
        );
        assert_eq!(ending.order(TaskOrder::Resume, &termination(true), 1), []);
        assert_eq!(ending.due(&termination(true), 20_000), []);
    }

    #[test]
    fn a_suspended_task_is_woken_to_end() {
        let mut ending = Ending::default();
        assert_eq!(
            ending.order(TaskOrder::Suspend, &termination(false), 0),
            [Action::Suspend]
        );
        assert_eq!(
            ending.order(TaskOrder::Terminate, &termination(false), 0),
            [Action::Terminate, Action::Signal(libc::SIGCONT)]
        );
    }

    #[test]
    fn a_method_that_does_not_end_the_task_has_its_time_and_then_the_task_is_killed() {
        let termination = Termination {
            method_timeout_s: Some(90),
            terminate: Method::Signal(libc::SIGTERM),
            ..termination(false)
        };
        let mut ending = Ending::default();
        assert_eq!(ending.order(TaskOrder::Terminate, &termination, 0), [Action::Terminate]);
        assert_eq!(ending.next_at(), Some(60_000));
        assert_eq!(ending.due(&termination, 60_000), [Action::Terminate], "it is repeated");
        assert_eq!(ending.next_at(), Some(90_000), "and has no more time for that");
        assert_eq!(ending.due(&termination, 90_000), [Action::Kill]);
        assert_eq!(ending.due(&termination, 90_500), [Action::Kill]);
    }

    #[test]
    fn a_kill_is_repeated_until_the_task_is_gone() {
        let mut ending = Ending::default();
        assert_eq!(ending.order(TaskOrder::Kill, &termination(true), 0), [Action::Kill]);
        assert_eq!(ending.due(&termination(true), 500), [Action::Kill]);
        assert_eq!(ending.next_at(), Some(1_000));
    }
}
