//! What each field of a change does to a specification, with the words of 8.1.9 for it.

use crate::decide::Caller;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::JobNumber;
use proto::job::{ContextChange, JobChanges, JobSpec, Requests};

/// A specification that is being changed, and what was done so far.
pub(crate) struct Alteration {
    pub spec: JobSpec,
    pub texts: Vec<String>,
    /// How many of the texts stand before those about dependencies, in the order of 8.1.9.
    pub before_dependencies: usize,
}

/// Whether nothing changes but what single tasks have: their holds.
pub(crate) fn concern_tasks_alone(changes: &JobChanges) -> bool {
    JobChanges {
        holds: None,
        ..changes.clone()
    } == JobChanges::default()
}

impl Alteration {
    /// Makes every change but those of holds and of dependencies, which are not in the
    /// specification alone.
    ///
    /// # Errors
    /// If the caller lacks the role for a change, or a change is impossible for any job.
    pub(crate) fn apply(&mut self, caller: &Caller, number: JobNumber, changes: &JobChanges) -> Result<(), Diagnostic> {
        self.check_array(changes)?;
        self.numbers(caller, number, changes)?;
        self.times_and_files(number, changes);
        self.resources(number, changes);
        self.mail_and_name(number, changes);
        self.before_dependencies = self.texts.len();
        self.output_and_project(number, changes);
        self.queues(number, changes);
        self.last(number, changes);
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
        let must_be_operator = |what: &str| {
            Diagnostic::new(
                Code::NotPermitted,
                format!("denied: \"{user}\" must be operator to {what}"),
            )
        };
        if let Some(priority) = changes.priority {
            if priority > self.spec.priority && !caller.is_operator() {
                return Err(must_be_operator("increase job priority").at("-p"));
            }
            self.spec.priority = priority;
            self.texts.push(format!(
                "{at_host} sets scheduling priority of job {number} to {priority}"
            ));
        }
        if let Some(tickets) = changes.override_tickets {
            if !caller.is_operator() {
                return Err(must_be_operator("change amount of override tickets").at("-ot"));
            }
            self.spec.override_tickets = tickets;
            self.texts
                .push(format!("{at_host} sets override tickets of job {number} to {tickets}"));
        }
        if let Some(id) = changes.reservation {
            self.spec.reservation = (id.0 > 0).then_some(id);
            self.texts.push(format!(
                "{at_host} sets job advance reservation of job {number} to {id}"
            ));
        }
        if let Some(share) = changes.job_share {
            self.spec.job_share = share;
            self.texts
                .push(format!("{at_host} sets job share of job {number} to {share}"));
        }
        Ok(())
    }

    fn times_and_files(&mut self, number: JobNumber, changes: &JobChanges) {
        self.set_some(number, "start time", &changes.start_after, |spec| &mut spec.start_after);
        self.set_some(number, "deadline time", &changes.deadline, |spec| &mut spec.deadline);
        self.set_some(number, "account", &changes.account, |spec| &mut spec.account);
        self.set_some(number, "working directory", &changes.directory, |spec| {
            &mut spec.directory
        });
        if changes.directory.is_some() {
            // Where the old directory is on other hosts says nothing about the new one.
            self.spec.directory_on = changes.directory_on.clone().unwrap_or_default();
        }
        let checkpoint = none_if_empty(&changes.checkpoint);
        self.set(number, "checkpointing environment", &checkpoint, |spec| {
            &mut spec.checkpoint
        });
        self.set_some(number, "checkpointing occasion", &changes.occasion, |spec| {
            &mut spec.occasion
        });
        self.set(number, "stderr path list", &changes.stderr, |spec| &mut spec.stderr);
        self.set(number, "stdin path list", &changes.stdin, |spec| &mut spec.stdin);
        self.set(number, "reservation behaviour", &changes.reserve, |spec| {
            &mut spec.reserve
        });
        self.set(number, "output merge behaviour", &changes.merge_stderr, |spec| {
            &mut spec.merge_stderr
        });
    }

    fn resources(&mut self, number: JobNumber, changes: &JobChanges) {
        self.set(number, "hard resource list", &changes.hard, |spec| {
            &mut requests(spec).hard
        });
        self.set(number, "soft resource list", &changes.soft, |spec| {
            &mut requests(spec).soft
        });
        self.set(number, "master hard resource list", &changes.master, |spec| {
            &mut requests(spec).master
        });
        self.set(number, "slave hard resource list", &changes.slaves, |spec| {
            &mut requests(spec).slaves
        });
    }

    fn mail_and_name(&mut self, number: JobNumber, changes: &JobChanges) {
        self.set(number, "mail options", &changes.mail, |spec| &mut spec.mail);
        self.set(number, "mail list", &changes.mail_to, |spec| &mut spec.mail_to);
        self.set(number, "job name", &changes.name, |spec| &mut spec.name);
    }

    fn output_and_project(&mut self, number: JobNumber, changes: &JobChanges) {
        self.set(number, "notify behaviour", &changes.notify, |spec| &mut spec.notify);
        self.set(number, "stdout path list", &changes.stdout, |spec| &mut spec.stdout);
        self.set(number, "project", &none_if_empty(&changes.project), |spec| {
            &mut spec.project
        });
        self.set_some(number, "parallel environment", &changes.pe, |spec| {
            &mut requests(spec).pe
        });
        self.set_some(number, "allocation rule", &changes.allocation_rule, |spec| {
            &mut requests(spec).allocation_rule
        });
        self.set_some(number, "binding", &changes.binding.clone().map(Box::new), |spec| {
            &mut requests(spec).binding
        });
        if changes.pe.is_some() {
            self.texts.push(format!("modified slot range of job {number}"));
        }
    }

    fn queues(&mut self, number: JobNumber, changes: &JobChanges) {
        self.set(number, "hard queue list", &changes.hard_queues, |spec| {
            &mut requests(spec).hard_queues
        });
        self.set(number, "soft queue list", &changes.soft_queues, |spec| {
            &mut requests(spec).soft_queues
        });
        self.set(number, "master hard queue list", &changes.master_queues, |spec| {
            &mut requests(spec).master_queues
        });
        self.set(number, "slave hard queue list", &changes.slave_queues, |spec| {
            &mut requests(spec).slave_queues
        });
    }

    fn last(&mut self, number: JobNumber, changes: &JobChanges) {
        self.set_some(number, "restart behaviour", &changes.rerunnable, |spec| {
            &mut spec.rerunnable
        });
        self.set(number, "shell list", &changes.shell, |spec| &mut spec.shell);
        self.environment(number, changes);
        self.set(number, "job arguments", &changes.args, |spec| &mut spec.args);
        self.set_some(number, "task concurrency", &changes.task_concurrency, |spec| {
            &mut spec.task_concurrency
        });
    }

    fn environment(&mut self, number: JobNumber, changes: &JobChanges) {
        let environment = changes.environment.as_ref().map(|exported| {
            self.spec
                .submission_variables()
                .chain(exported)
                .cloned()
                .collect::<Vec<_>>()
        });
        self.set(number, "environment", &environment, |spec| &mut spec.environment);
        let context =
            (!changes.context.is_empty()).then(|| ContextChange::applied(self.spec.context.clone(), &changes.context));
        self.set(number, "context", &context, |spec| &mut spec.context);
    }
}

fn requests(spec: &mut JobSpec) -> &mut Requests {
    &mut spec.requests
}

/// A name that takes something away where it is empty.
fn none_if_empty(name: &Option<String>) -> Option<Option<String>> {
    name.clone().map(|name| Some(name).filter(|name| !name.is_empty()))
}
