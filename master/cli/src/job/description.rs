//! What was submitted, a line for each field: for `qstat -j` and `qsub -verify`, which differ in
//! little.

use crate::output::time::Clock;
use proto::checkpoint::{CheckpointOccasions, Occasion};
use proto::job::{HostPath, JobSpec, MailEvents, Program, Validation};
use proto::request::ResourceRequest;
use proto::time::Wall;
use std::fmt::{Display, Write as _};

/// Lines of a key and a value each.
#[derive(Default)]
pub struct Block {
    /// What was written.
    pub text: String,
}

impl Block {
    /// A line.
    pub fn put(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.text, "{:<27} {value}", format!("{key}:"));
    }

    /// A line where there is a value.
    pub fn put_some(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// A line where there is any.
    pub fn put_list(&mut self, key: &str, entries: Vec<String>) {
        if !entries.is_empty() {
            self.put(key, entries.join(","));
        }
    }
}

/// A submission as it is shown.
pub struct Description<'a> {
    /// What was submitted.
    pub spec: &'a JobSpec,
    /// The account, if it is shown.
    pub account: Option<&'a str>,
    /// When the state of a checkpointing job is written, if that is known.
    pub checkpoint_when: Option<CheckpointOccasions>,
    /// Whether nothing but a verification was asked for, which shows the script too.
    pub verifies: bool,
    /// Whether the values of the environment are not known, but its names.
    pub hides_environment: bool,
}

impl Description<'_> {
    /// Where it comes from and where its files are.
    pub fn origin(&self, block: &mut Block, clock: &Clock) {
        let spec = self.spec;
        for (key, name) in [
            ("sge_o_home", "SGE_O_HOME"),
            ("sge_o_log_name", "SGE_O_LOGNAME"),
            ("sge_o_path", "SGE_O_PATH"),
            ("sge_o_shell", "SGE_O_SHELL"),
            ("sge_o_tz", "SGE_O_TZ"),
        ] {
            block.put_some(key, carried(spec, name));
        }
        block.put("sge_o_workdir", &spec.submit_directory);
        block.put("sge_o_host", &spec.submit_host);
        block.put_some(
            "execution_time",
            if_set(spec.start_after).map(|start| clock.asctime(start)),
        );
        block.put_some("account", self.account);
        block.put_some("cwd", spec.directory.as_ref());
        block.put_some("directive_prefix", spec.directive_prefix.as_ref());
        block.put_list("stderr_path_list", file_paths(&spec.stderr));
        block.put_some("reserve", spec.reserve.then_some("y"));
        block.put_some("merge", spec.merge_stderr.then_some("y"));
    }

    /// What it asks for and how it is to be treated.
    pub fn requests(&self, block: &mut Block) {
        let spec = self.spec;
        if let Some(checkpoint) = &spec.checkpoint {
            block.put("checkpoint_object", checkpoint);
            block.put_some("checkpoint_attr", self.checkpoint_when.map(occasions));
            block.put_some(
                "checkpoint_interval",
                interval_s(spec).map(|seconds| format!("{seconds} seconds")),
            );
        } else if spec.occasion == Some(Occasion::Never) {
            block.put("checkpoint_attr", "n    ");
        }
        // Whether TRUE is meant where nothing is said is for the master to say.
        let text = if self.verifies {
            ResourceRequest::to_string
        } else {
            resource
        };
        let texts = |list: &[ResourceRequest]| list.iter().map(text).collect::<Vec<_>>();
        block.put_list("hard resource_list", texts(&spec.requests.hard));
        block.put_list("soft resource_list", texts(&spec.requests.soft));
        block.put_list("master_hard_resource_list", texts(&spec.requests.master));
        block.put_list("slave_hard_resource_list", texts(&spec.requests.slaves));
        block.put_some("mail_options", mail_letters(spec.mail));
        block.put_list("mail_list", mail_list(spec));
        block.put("notify", if spec.notify { "TRUE" } else { "FALSE" });
        block.put("job_name", &spec.name);
        block.put_list("stdout_path_list", file_paths(&spec.stdout));
        block.put_list("stdin_path_list", file_paths(&spec.stdin));
        block.put_some("priority", Some(spec.priority).filter(|priority| *priority != 0));
        block.put("jobshare", spec.job_share);
        block.put_some("oticket", Some(spec.override_tickets).filter(|tickets| *tickets != 0));
        block.put_list("hard_queue_list", spec.requests.hard_queues.clone());
        block.put_list("soft_queue_list", spec.requests.soft_queues.clone());
        block.put_some(
            "restart",
            spec.rerunnable.map(|rerunnable| if rerunnable { "y" } else { "n" }),
        );
        block.put_list("slave_hard_queue_list", spec.requests.slave_queues.clone());
        block.put_list("shell_list", spec.shell.iter().map(shell).collect());
        block.put_some("verify", self.verifies.then_some("-verify"));
    }

    /// What it runs, and in which parallel environment or advance reservation.
    pub fn program(&self, block: &mut Block) {
        let spec = self.spec;
        let exported = environment(spec).map(|(name, value)| match self.hides_environment {
            true => name.to_owned(),
            false => format!("{name}={}", or_none(value)),
        });
        block.put_list("env_list", exported.collect());
        block.put_list(
            "job_args",
            spec.args.iter().map(|arg| or_none(arg).to_owned()).collect(),
        );
        block.put_list("master hard queue_list", spec.requests.master_queues.clone());
        match &spec.program {
            Program::Script { content, .. } if self.verifies => {
                block.put("script_size", content.len());
                block.put("script_file", script_file(spec));
                // Narrower than the rest, as in 8.1.9.
                let _ = writeln!(
                    block.text,
                    "{:<23}\n{}",
                    "script_ptr:",
                    String::from_utf8_lossy(content)
                );
            }
            Program::Script { .. } | Program::Stored { .. } | Program::Command { .. } => {
                block.put("script_file", script_file(spec))
            }
        }
        if let Some(pe) = &spec.requests.pe {
            // 8.1.9 has this one label in a form of its own.
            let _ = writeln!(block.text, "parallel environment:  {} range: {}", pe.name, pe.slots);
        }
        block.put_some("allocation rule", spec.requests.allocation_rule);
        block.put_some("ar_id", spec.reservation);
    }

    /// The jobs that it waits for, as it was said. Array jobs of `-hold_jid_ad` are shown by their
    /// numbers alone, as in 8.1.9.
    pub fn predecessors(&self, block: &mut Block) {
        let list = &self.spec.predecessors;
        if !list.is_empty() {
            let _ = writeln!(block.text, "{:<27} {}", "jid_predecessor_list (req):", list.join(","));
        }
    }

    /// How it is verified.
    pub fn verification(&self, block: &mut Block) {
        block.put_some("verify_suitable_queues", verified(self.spec.validation));
    }

    /// The project.
    pub fn project(&self, block: &mut Block) {
        block.put_some("project", self.spec.project.as_ref());
    }

    /// Its tasks and its context.
    pub fn tasks(&self, block: &mut Block) {
        block.put_some("job-array tasks", self.spec.array);
        block.put_some("maximum concurrency", self.spec.task_concurrency);
        let context = self
            .spec
            .context
            .iter()
            .map(|(name, value)| format!("{name}={}", or_none(value)));
        block.put_list("context", context.collect());
    }

    /// The last line: what kind of job it is.
    pub fn kind(&self, block: &mut Block) {
        let spec = self.spec;
        let is_binary = matches!(spec.program, Program::Command { .. });
        let kinds = [
            ("binary", is_binary),
            ("noshell", is_binary && spec.use_shell == Some(false)),
            ("immediate", spec.immediate),
        ];
        let kinds: Vec<&str> = kinds
            .into_iter()
            .filter_map(|(kind, is_set)| is_set.then_some(kind))
            .collect();
        block.put(
            "job_type",
            if kinds.is_empty() {
                "NONE".to_owned()
            } else {
                kinds.join(",")
            },
        );
    }
}

/// The numbers of 8.1.9 for `-w e` and `-w w`. `None` for the other levels, which no job keeps.
pub fn verified(validation: Validation) -> Option<u32> {
    match validation {
        Validation::Refuse => Some(2),
        Validation::Warn => Some(1),
        Validation::None | Validation::Verify | Validation::Poke => None,
    }
}

/// A moment, if it is set: 0 is none, as in 8.1.9.
pub fn if_set(moment: Option<Wall>) -> Option<Wall> {
    moment.filter(|moment| moment.seconds() != 0)
}

/// The letters in the order of 8.1.9's job, which is not that of its environments, in a field of
/// its own width.
fn occasions(
    CheckpointOccasions {
        suspended,
        shutdown,
        periodic,
        unknown,
    }: CheckpointOccasions,
) -> String {
    let letters = [('m', periodic), ('s', shutdown), ('x', suspended), ('r', unknown)];
    letters
        .into_iter()
        .filter_map(|(letter, is_set)| is_set.then_some(letter))
        .chain("    ".chars())
        .collect()
}

/// The time of `-c`.
pub fn interval_s(spec: &JobSpec) -> Option<u64> {
    match spec.occasion {
        Some(Occasion::EverySeconds(seconds)) => Some(seconds),
        Some(Occasion::Never | Occasion::When(_)) | None => None,
    }
}

/// A request with its value; TRUE where none was given, as the master reads it.
fn resource(request: &ResourceRequest) -> String {
    format!("{}={}", request.name, request.value.as_deref().unwrap_or("TRUE"))
}

fn carried<'a>(spec: &'a JobSpec, name: &str) -> Option<&'a str> {
    spec.submission_variables()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.as_str())
}

/// What was exported: the environment without what always travels.
pub fn environment(spec: &JobSpec) -> impl Iterator<Item = (&str, &str)> {
    spec.exported_variables()
        .map(|(name, value)| (name.as_str(), value.as_str()))
}

/// The script's or command's name.
pub fn script_file(spec: &JobSpec) -> &str {
    match &spec.program {
        Program::Script { path, .. } | Program::Stored { path, .. } => path,
        Program::Command { command } => command,
    }
}

/// Users with their hosts; by default the owner on the submitting host.
pub fn mail_list(spec: &JobSpec) -> Vec<String> {
    if spec.mail_to.is_empty() {
        return vec![format!("{}@{}", spec.owner.user, spec.submit_host)];
    }
    spec.mail_to.clone()
}

fn mail_letters(mail: MailEvents) -> Option<String> {
    let MailEvents {
        begin,
        end,
        abort,
        suspend,
    } = mail;
    let letters = [(abort, 'a'), (begin, 'b'), (end, 'e'), (suspend, 's')];
    let letters: String = letters
        .into_iter()
        .filter_map(|(is_set, letter)| is_set.then_some(letter))
        .collect();
    (!letters.is_empty()).then_some(letters)
}

fn file_paths(paths: &[HostPath]) -> Vec<String> {
    paths
        .iter()
        .map(|path| format!("{}:NONE:{}", host_of(path), path.path))
        .collect()
}

fn shell(path: &HostPath) -> String {
    format!("{}:{}", host_of(path), or_none(&path.path))
}

fn host_of(path: &HostPath) -> &str {
    path.host.as_ref().map_or("NONE", |host| host.as_str())
}

fn or_none(value: &str) -> &str {
    if value.is_empty() { "NONE" } else { value }
}
