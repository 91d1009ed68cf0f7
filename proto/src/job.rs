//! A job as it was submitted, what can be altered in it, and the letters that tell its state.

pub mod lists;
#[cfg(test)]
mod tests;

use crate::binding::BindingRequest;
use crate::checkpoint::Occasion;
use crate::common::Common;
use crate::complex::Complex;
use crate::id::{HostName, QueueInstanceName, ReservationId, UserName};
use crate::launch::terminal::WindowSize;
use crate::pe::AllocationRule;
use crate::request::{ResourceRequest, SlotRange, TaskRange, make_canonical};
use crate::time::Wall;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Who a command comes from, as the kernel of the submitting host says (SO_PEERCRED and the name
/// service there).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    /// Login name.
    pub user: UserName,
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Primary group name.
    pub group: String,
    /// Names of the supplementary groups.
    #[serde(default)]
    pub groups: Vec<String>,
}

/// The SHA-256 of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ScriptDigest(pub [u8; 32]);

/// A script that lies elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredScript {
    /// The checksum by which it is found.
    pub digest: ScriptDigest,
    /// Its size.
    pub bytes: u64,
}

/// What a job runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// A script that travels with the job.
    Script {
        /// The path as the user gave it; `STDIN` for a script from standard input.
        path: String,
        /// Its content, byte for byte.
        content: Arc<[u8]>,
    },
    /// A script whose content the master keeps apart from its state. It never leaves the master:
    /// agents get a [`Program::Script`], and those who look at jobs one without content.
    Stored {
        /// The path as the user gave it; `STDIN` for a script from standard input.
        path: String,
        /// How the content is found. Apart from the rest: a million jobs have a program each.
        script: Box<StoredScript>,
    },
    /// `-b y`: a command that exists on the execution host.
    Command {
        /// The command as given; arguments are in [`JobSpec::args`].
        command: String,
    },
}

/// A path for some hosts: `[[host]:]path` of `-o`, `-e`, `-i` and `-S`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPath {
    /// The host it is for; none means every host that is not named otherwise.
    #[serde(default)]
    pub host: Option<HostName>,
    /// The path, with pseudo variables and `~` still in it.
    pub path: String,
}

/// `-pe name range`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PeRequest {
    /// The name or pattern.
    pub name: String,
    /// How many slots will do.
    pub slots: SlotRange,
}

/// The holds of a job or task that people set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Holds {
    /// Set and released by the owner.
    pub user: bool,
    /// Set and released by operators.
    pub operator: bool,
    /// Set and released by managers.
    pub system: bool,
}

impl Holds {
    /// Whether any is set.
    pub fn any(self) -> bool {
        self.user || self.operator || self.system
    }
}

/// What a job asks for: resources, queues, a parallel environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// Hard `-l` requests in the order given, each attribute once.
    pub hard: Vec<ResourceRequest>,
    /// Soft `-l` requests.
    pub soft: Vec<ResourceRequest>,
    /// Hard `-q` list: patterns of cluster queues, `queue@host`, `queue@@group`.
    pub hard_queues: Vec<String>,
    /// Soft `-q` list.
    pub soft_queues: Vec<String>,
    /// `-masterq` list, also `-scope master -q`.
    pub master_queues: Vec<String>,
    /// Hard requests of the master's slot alone, `-scope master -l`; a name is in no other list but
    /// that of the slaves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub master: Vec<ResourceRequest>,
    /// Hard requests of each slot that is not the master's, `-scope slave -l`; likewise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slaves: Vec<ResourceRequest>,
    /// Hard `-q` list of the slots that are not the master's, `-scope slave -q`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slave_queues: Vec<String>,
    /// `-pe`.
    pub pe: Option<PeRequest>,
    /// `-par`, in place of the rule of the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_rule: Option<AllocationRule>,
    /// `-binding`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<Box<BindingRequest>>,
}

impl Requests {
    /// Brings the resource requests to their canonical form, see [`make_canonical`].
    pub fn make_canonical(&mut self, complex: &Complex) {
        let Requests {
            hard,
            soft,
            master,
            slaves,
            ..
        } = self;
        [hard, soft, master, slaves]
            .into_iter()
            .for_each(|list| make_canonical(list, complex));
    }
}

/// `-w`: what to do about a job that no queue instance could run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validation {
    /// `n`: nothing.
    #[default]
    None,
    /// `w`: warn and accept.
    Warn,
    /// `e`: refuse.
    Refuse,
    /// `v`: only say whether an empty cluster could run it.
    Verify,
    /// `p`: only say whether the cluster could run it now.
    Poke,
}

/// `-m`: when to send mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MailEvents {
    /// At the beginning.
    pub begin: bool,
    /// At the end.
    pub end: bool,
    /// When aborted or rescheduled.
    pub abort: bool,
    /// When suspended.
    pub suspend: bool,
}

/// A submission: everything `qsub` said. `qalter` makes a new version; nothing else changes it.
///
/// It is laid out as written: what a scheduler asks of every job comes first, in few lines of
/// memory, of which a million jobs have many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct JobSpec {
    /// Who submitted it. Overwritten by the daemon that accepted the command: a client cannot
    /// choose.
    pub owner: Common<Owner>,
    /// `-l`, `-q`, `-masterq`, `-pe`.
    #[serde(default)]
    pub requests: Common<Requests>,
    /// `-P`.
    #[serde(default)]
    pub project: Option<String>,
    /// `-a`.
    #[serde(default)]
    pub start_after: Option<Wall>,
    /// `-t`; none for a job that is no array.
    #[serde(default)]
    pub array: Option<TaskRange>,
    /// `-tc`; none is no limit of its own.
    #[serde(default)]
    pub task_concurrency: Option<u32>,
    /// `-ar`: the advance reservation whose slots it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<ReservationId>,
    /// `-p`, from -1023 to 1024.
    #[serde(default)]
    pub priority: i32,
    /// `-R y`.
    #[serde(default)]
    pub reserve: bool,
    /// `-now y`.
    #[serde(default)]
    pub immediate: bool,
    /// `-r`; none leaves it to the queue.
    #[serde(default)]
    pub rerunnable: Option<bool>,
    /// `-shell y|n` of a `-b y` job; none is yes.
    #[serde(default)]
    pub use_shell: Option<bool>,
    /// `-N`, or the script's name.
    pub name: String,
    /// What to run.
    pub program: Program,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Where it was submitted. Overwritten in the same way.
    pub submit_host: HostName,
    /// The submitting directory (`SGE_O_WORKDIR`).
    #[serde(default)]
    pub submit_directory: String,
    /// `-cwd` or `-wd`; none is the home directory.
    #[serde(default)]
    pub directory: Option<String>,
    /// The directory on hosts where it has another path (`sge_aliases`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directory_on: Vec<HostPath>,
    /// `-o`.
    #[serde(default)]
    pub stdout: Vec<HostPath>,
    /// `-e`.
    #[serde(default)]
    pub stderr: Vec<HostPath>,
    /// `-i`.
    #[serde(default)]
    pub stdin: Vec<HostPath>,
    /// `-S`.
    #[serde(default)]
    pub shell: Vec<HostPath>,
    /// `-v` and `-V`, and the `SGE_O_*` values of the submitting environment, in order.
    #[serde(default)]
    pub environment: Common<Vec<(String, String)>>,
    /// `-A`.
    #[serde(default)]
    pub account: Option<String>,
    /// `-hold_jid`, as given: numbers, names, patterns.
    #[serde(default)]
    pub predecessors: Vec<String>,
    /// `-hold_jid_ad`, as given.
    #[serde(default)]
    pub array_predecessors: Vec<String>,
    /// `-dl`.
    #[serde(default)]
    pub deadline: Option<Wall>,
    /// `-M`.
    #[serde(default)]
    pub mail_to: Vec<String>,
    /// `-ac`, `-dc`, `-sc`: the context as it stands.
    #[serde(default)]
    pub context: Vec<(String, String)>,
    /// `-ckpt`: the checkpointing environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// `-c`; none leaves it to the checkpointing environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occasion: Option<Occasion>,
    /// `-js`.
    #[serde(default)]
    pub job_share: u32,
    /// `-ot`, set by `qalter`.
    #[serde(default)]
    pub override_tickets: u32,
    /// `-h`.
    #[serde(default)]
    pub holds: Holds,
    /// `-m`.
    #[serde(default)]
    pub mail: MailEvents,
    /// `-w`.
    #[serde(default)]
    pub validation: Validation,
    /// `-j y`.
    #[serde(default)]
    pub merge_stderr: bool,
    /// `-notify`.
    #[serde(default)]
    pub notify: bool,
    /// `-C`, which is only shown: the lines of the script are read where it is submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directive_prefix: Option<String>,
    /// What an interactive job is (`qrsh`, `qlogin`, `qsh`). `None` means a batch job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Box<SessionSpec>>,
}

/// An interactive job: its standard streams are those of the command that submitted it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionSpec {
    /// Whether it is a login shell of its owner, in place of a command.
    pub is_login: bool,
    /// The size of the terminal that it has on its host. Its output and its errors are one stream
    /// then. `None` means pipes.
    pub terminal: Option<WindowSize>,
    /// Whether it reads the standard input of the command that submitted it. Without it, its input
    /// is `/dev/null`.
    pub has_input: bool,
}

/// The variable with which the variables of the submission end. `SGE_O_…` behind it are the user's
/// own.
pub const SUBMISSION_END: &str = "SGE_O_WORKDIR";

impl JobSpec {
    /// The variables that say where the job was submitted. `qalter` does not change them.
    pub fn submission_variables(&self) -> impl Iterator<Item = &(String, String)> {
        self.variables()
            .filter(|(origin, _)| *origin == VariableOrigin::Submission)
            .map(|(_, variable)| variable)
    }

    /// The variables that `-V` and `-v` exported.
    pub fn exported_variables(&self) -> impl Iterator<Item = &(String, String)> {
        self.variables()
            .filter(|(origin, _)| *origin == VariableOrigin::Export)
            .map(|(_, variable)| variable)
    }

    /// All variables in their order, each with its origin.
    pub fn variables(&self) -> impl Iterator<Item = (VariableOrigin, &(String, String))> {
        let last = self.environment.iter().position(|(name, _)| name == SUBMISSION_END);
        let origin = move |at: usize, name: &str| match last.is_none_or(|last| at <= last) {
            true if name.starts_with("SGE_O_") => VariableOrigin::Submission,
            true | false => VariableOrigin::Export,
        };
        self.environment
            .iter()
            .enumerate()
            .map(move |(at, variable)| (origin(at, &variable.0), variable))
    }
}

/// Where a variable of a job comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableOrigin {
    /// It says where the job was submitted.
    Submission,
    /// `-V` or `-v` exported it.
    Export,
}

/// What `qalter` changes: every field that is present replaces the one of the specification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobChanges {
    /// `-N`.
    pub name: Option<String>,
    /// Arguments behind the script name.
    pub args: Option<Vec<String>>,
    /// `-cwd`, `-wd`.
    pub directory: Option<String>,
    /// The same on hosts where it has another path (`sge_aliases`).
    pub directory_on: Option<Vec<HostPath>>,
    /// `-o`.
    pub stdout: Option<Vec<HostPath>>,
    /// `-e`.
    pub stderr: Option<Vec<HostPath>>,
    /// `-i`.
    pub stdin: Option<Vec<HostPath>>,
    /// `-j`.
    pub merge_stderr: Option<bool>,
    /// `-S`.
    pub shell: Option<Vec<HostPath>>,
    /// `-v`, `-V`: all exported variables. Those of the submission stay.
    pub environment: Option<Vec<(String, String)>>,
    /// `-A`.
    pub account: Option<String>,
    /// `-P`.
    pub project: Option<String>,
    /// `-p`.
    pub priority: Option<i32>,
    /// `-js`.
    pub job_share: Option<u32>,
    /// `-ot`.
    pub override_tickets: Option<u32>,
    /// `-hard -l`.
    pub hard: Option<Vec<ResourceRequest>>,
    /// `-soft -l`.
    pub soft: Option<Vec<ResourceRequest>>,
    /// `-hard -q`.
    pub hard_queues: Option<Vec<String>>,
    /// `-soft -q`.
    pub soft_queues: Option<Vec<String>>,
    /// `-masterq`, `-scope master -q`.
    pub master_queues: Option<Vec<String>>,
    /// `-scope master -l`.
    pub master: Option<Vec<ResourceRequest>>,
    /// `-scope slave -l`.
    pub slaves: Option<Vec<ResourceRequest>>,
    /// `-scope slave -q`.
    pub slave_queues: Option<Vec<String>>,
    /// `-pe`.
    pub pe: Option<PeRequest>,
    /// `-par`.
    pub allocation_rule: Option<AllocationRule>,
    /// `-binding`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<BindingRequest>,
    /// `-t`: only allowed where it changes nothing.
    pub array: Option<TaskRange>,
    /// `-tc`.
    pub task_concurrency: Option<u32>,
    /// `-h`: see [`HoldChange`].
    pub holds: Option<HoldChange>,
    /// `-hold_jid`.
    pub predecessors: Option<Vec<String>>,
    /// `-hold_jid_ad`.
    pub array_predecessors: Option<Vec<String>>,
    /// `-a`.
    pub start_after: Option<Wall>,
    /// `-dl`.
    pub deadline: Option<Wall>,
    /// `-r`.
    pub rerunnable: Option<bool>,
    /// `-R`.
    pub reserve: Option<bool>,
    /// `-notify`.
    pub notify: Option<bool>,
    /// `-m`.
    pub mail: Option<MailEvents>,
    /// `-M`.
    pub mail_to: Option<Vec<String>>,
    /// `-ac`, `-dc` and `-sc`, in the order given.
    pub context: Vec<ContextChange>,
    /// `-w`.
    pub validation: Option<Validation>,
    /// `-ckpt`; empty takes the job out of its checkpointing environment.
    pub checkpoint: Option<String>,
    /// `-c`.
    pub occasion: Option<Occasion>,
    /// `-ar`: another advance reservation; 0 is none.
    pub reservation: Option<ReservationId>,
    /// `-when now`: whether running tasks give back what the job no longer asks for.
    pub for_running: bool,
}

/// One change of the context of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextChange {
    /// `-ac`: adds variables. A variable that is there gets the new value and keeps its place.
    Add(Vec<(String, String)>),
    /// `-dc`: removes the variables of these names.
    Delete(Vec<String>),
    /// `-sc`: replaces the whole context.
    Set(Vec<(String, String)>),
}

impl ContextChange {
    /// The context after all changes, one after the other.
    pub fn applied(mut context: Vec<(String, String)>, changes: &[ContextChange]) -> Vec<(String, String)> {
        for change in changes {
            match change {
                ContextChange::Set(pairs) => context.clone_from(pairs),
                ContextChange::Delete(names) => context.retain(|(name, _)| !names.contains(name)),
                ContextChange::Add(pairs) => {
                    for (name, value) in pairs {
                        match context.iter_mut().find(|(known, _)| known == name) {
                            Some(pair) => pair.1.clone_from(value),
                            None => context.push((name.clone(), value.clone())),
                        }
                    }
                }
            }
        }
        context
    }
}

/// What `-h`, `qhold` and `qrls` do to the holds of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HoldChange {
    /// Holds that become set.
    pub set: Holds,
    /// Holds that become released.
    pub release: Holds,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Waiting for its start.
    #[default]
    Pending,
    /// Ordered to a host that has not confirmed the start.
    Transferring,
    /// Running.
    Running,
    /// Gone from the host; shown by `qstat -s z` for a while.
    Finished,
}

/// Everything the state letters of `qstat` depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// How far it is.
    pub phase: Phase,
    /// Whether a person or a predecessor holds it; a running task shows the holds of its next
    /// start. `-a` shows no `h`.
    pub held: bool,
    /// Whether it failed and waits for `qmod -cj`.
    pub error: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it ran before.
    pub restarted: bool,
    /// Suspended by `qmod -sj`.
    pub suspended: bool,
    /// Suspended with its queue.
    pub queue_suspended: bool,
    /// Suspended by a threshold.
    pub threshold_suspended: bool,
}

impl Condition {
    /// The letters under `state` in `qstat`, in the forms that programs know.
    pub fn letters(&self) -> String {
        let mut letters = String::new();
        let mut put = |on: bool, text: &str| {
            if on {
                letters.push_str(text);
            }
        };
        put(self.deleting, "d");
        put(self.error, "E");
        match self.phase {
            Phase::Pending => {
                put(self.held, "h");
                put(
                    true,
                    match (self.restarted, self.held, self.error) {
                        (false, _, _) | (true, false, true) => "qw",
                        (true, true, true) => "Rqw",
                        (true, true, false) => "Rwq",
                        (true, false, false) => "Rq",
                    },
                );
            }
            Phase::Transferring | Phase::Running => {
                let stopped = self.suspended || self.queue_suspended || self.threshold_suspended;
                put(self.restarted, "R");
                put(self.phase == Phase::Transferring, "t");
                put(self.queue_suspended, "S");
                put(!self.queue_suspended && self.threshold_suspended, "T");
                put(self.held, "h");
                put(self.phase == Phase::Running && !stopped, "r");
                put(self.suspended, "s");
            }
            Phase::Finished => put(true, "z"),
        }
        letters
    }
}

/// Slots that one queue instance gave to a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantedSlots {
    /// The queue instance.
    pub instance: QueueInstanceName,
    /// How many of its slots; the first entry of a task's list holds the master.
    pub slots: u32,
}

/// A job's name as the confirmation of its submission says it: as in 8.1.9, its first 100
/// characters.
pub fn confirmed_name(name: &str) -> &str {
    name.char_indices().nth(100).map_or(name, |(end, _)| &name[..end])
}
