//! What each field of a change does to a specification, with the words of 8.1.9 for it.

use crate::decide::Caller;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::JobNumber;
use proto::job::{JobChanges, JobSpec, Requests};

/// A specification that is being changed, and what was done so far.
pub(super) struct Alteration {
    pub spec: JobSpec,
    pub texts: Vec<String>,
}

/// Whether nothing changes but what single tasks have: their holds.
pub(super) fn concern_tasks_alone(changes: &JobChanges) -> bool {
    JobChanges { holds: None, ..changes.clone() } == JobChanges::default()
}

impl Alteration {
    /// Makes every change but those of holds and of dependencies, which are not in the specification alone.
    ///
    /// # Errors
    /// If the caller lacks the role for a change, or a change is impossible for any job.
    pub(super) fn apply(&mut self, caller: &Caller, number: JobNumber, changes: &JobChanges) -> Result<(), Diagnostic> {
        self.check_array(changes)?;
        self.numbers(caller, number, changes)?;
        self.requests(number, changes);
        self.paths(number, changes);
        self.environment(number, changes);
        self.others(number, changes);
        if let Some(names) = &changes.predecessors {
            self.spec.predecessors = names.clone();
        }
        if let Some(names) = &changes.array_predecessors {
            self.spec.array_predecessors = names.clone();
        }
        Ok(())
    }

    fn set<T: Clone>(
        &mut self,
        number: JobNumber,
        what: &str,
        new: &Option<T>,
        field: impl FnOnce(&mut JobSpec) -> &mut T,
    ) {
        if let Some(new) = new {
            *field(&mut self.spec) = new.clone();
            self.texts.push(format!("modified {what} of job {number}"));
        }
    }

    /// As [`Alteration::set`], for what a job may be without.
    fn set_some<T: Clone>(
        &mut self,
        number: JobNumber,
        what: &str,
        new: &Option<T>,
        field: impl FnOnce(&mut JobSpec) -> &mut Option<T>,
    ) {
        self.set(number, what, &new.clone().map(Some), field);
    }

    fn check_array(&self, changes: &JobChanges) -> Result<(), Diagnostic> {
        match changes.array {
            Some(range) if self.spec.array != Some(range) => {
                Err(Diagnostic::new(Code::Immutable, "denied: the tasks of a job cannot be changed").at("-t"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn numbers(&mut self, caller: &Caller, number: JobNumber, changes: &JobChanges) -> Result<(), Diagnostic> {
        let (user, at_host) = (caller.user(), caller.at_host());
        let must_be_operator =
            |what: &str| Diagnostic::new(Code::NotPermitted, format!("denied: \"{user}\" must be operator to {what}"));
        if let Some(priority) = changes.priority {
            if priority > self.spec.priority && !caller.is_operator() {
                return Err(must_be_operator("increase job priority").at("-p"));
            }
            self.spec.priority = priority;
            self.texts.push(format!("{at_host} sets scheduling priority of job {number} to {priority}"));
        }
        if let Some(tickets) = changes.override_tickets {
            if !caller.is_operator() {
                return Err(must_be_operator("change amount of override tickets").at("-ot"));
            }
            self.spec.override_tickets = tickets;
            self.texts.push(format!("{at_host} sets override tickets of job {number} to {tickets}"));
        }
        if let Some(id) = changes.reservation {
            self.spec.reservation = (id.0 > 0).then_some(id);
            self.texts.push(format!("{at_host} sets job advance reservation of job {number} to {id}"));
        }
        if let Some(share) = changes.job_share {
            self.spec.job_share = share;
            self.texts.push(format!("{at_host} sets job share of job {number} to {share}"));
        }
        Ok(())
    }

    fn requests(&mut self, number: JobNumber, changes: &JobChanges) {
        fn of(spec: &mut JobSpec) -> &mut Requests {
            &mut spec.requests
        }
        self.set(number, "hard resource list", &changes.hard, |spec| &mut of(spec).hard);
        self.set(number, "soft resource list", &changes.soft, |spec| &mut of(spec).soft);
        self.set(number, "hard queue list", &changes.hard_queues, |spec| &mut of(spec).hard_queues);
        self.set(number, "soft queue list", &changes.soft_queues, |spec| &mut of(spec).soft_queues);
        self.set(number, "master hard queue list", &changes.master_queues, |spec| &mut of(spec).master_queues);
        self.set(number, "master hard resource list", &changes.master, |spec| &mut of(spec).master);
        self.set(number, "slave hard resource list", &changes.slaves, |spec| &mut of(spec).slaves);
        self.set(number, "slave hard queue list", &changes.slave_queues, |spec| &mut of(spec).slave_queues);
        self.set_some(number, "parallel environment", &changes.pe, |spec| &mut of(spec).pe);
        self.set_some(number, "allocation rule", &changes.allocation_rule, |spec| &mut of(spec).allocation_rule);
        if changes.pe.is_some() {
            self.texts.push(format!("modified slot range of job {number}"));
        }
    }

    fn paths(&mut self, number: JobNumber, changes: &JobChanges) {
        self.set(number, "stderr path list", &changes.stderr, |spec| &mut spec.stderr);
        self.set(number, "output merge behaviour", &changes.merge_stderr, |spec| &mut spec.merge_stderr);
        self.set(number, "stdout path list", &changes.stdout, |spec| &mut spec.stdout);
        self.set(number, "stdin path list", &changes.stdin, |spec| &mut spec.stdin);
        self.set(number, "shell list", &changes.shell, |spec| &mut spec.shell);
        self.set_some(number, "working directory", &changes.directory, |spec| &mut spec.directory);
        if changes.directory.is_some() {
            // Where the old directory is on other hosts says nothing about the new one.
            self.spec.directory_on = changes.directory_on.clone().unwrap_or_default();
        }
    }

    fn environment(&mut self, number: JobNumber, changes: &JobChanges) {
        self.set(number, "environment", &changes.environment, |spec| &mut spec.environment);
        self.set(number, "context", &changes.set_context, |spec| &mut spec.context);
        if changes.add_context.is_empty() && changes.delete_context.is_empty() {
            return;
        }
        let context = &mut self.spec.context;
        let named = |name: &str| changes.add_context.iter().any(|(added, _)| added == name);
        context.retain(|(name, _)| !changes.delete_context.contains(name) && !named(name));
        context.extend(changes.add_context.iter().cloned());
        self.texts.push(format!("modified context of job {number}"));
    }

    fn others(&mut self, number: JobNumber, changes: &JobChanges) {
        self.set(number, "job name", &changes.name, |spec| &mut spec.name);
        self.set(number, "job arguments", &changes.args, |spec| &mut spec.args);
        self.set_some(number, "account", &changes.account, |spec| &mut spec.account);
        let project = changes.project.clone();
        self.set(number, "project", &project.map(|name| Some(name).filter(|name| !name.is_empty())), |spec| {
            &mut spec.project
        });
        self.set_some(number, "start time", &changes.start_after, |spec| &mut spec.start_after);
        self.set_some(number, "deadline time", &changes.deadline, |spec| &mut spec.deadline);
        self.set_some(number, "restart behaviour", &changes.rerunnable, |spec| &mut spec.rerunnable);
        self.set(number, "reservation behaviour", &changes.reserve, |spec| &mut spec.reserve);
        self.set(number, "notify behaviour", &changes.notify, |spec| &mut spec.notify);
        self.set(number, "mail options", &changes.mail, |spec| &mut spec.mail);
        self.set(number, "mail list", &changes.mail_to, |spec| &mut spec.mail_to);
        self.set_some(number, "checkpointing environment", &changes.checkpoint, |spec| &mut spec.checkpoint);
        self.set_some(number, "checkpointing occasion", &changes.occasion, |spec| &mut spec.occasion);
        self.set_some(number, "task concurrency", &changes.task_concurrency, |spec| &mut spec.task_concurrency);
    }
}
