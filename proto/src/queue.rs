//! Cluster queues and the settings of their instances (`queue_conf(5)`).
//!
//! A cluster queue is a template with a host list: each host in it gets one queue instance, and
//! each attribute may differ from host to host. Queue states are no part of this: they belong to
//! the instances and change with the cell.

mod setting;
mod subordinates;
mod words;

#[cfg(test)]
mod tests;

pub use setting::{Ambiguity, Setting};
pub(crate) use setting::{brackets, split_default};
pub use subordinates::{PreemptionOrder, SlotwiseQueue, SubordinateQueue, Subordinates};
pub use words::{InitialState, QueueType, ShellStartMode};

use crate::amount::Amount;
use crate::diagnostic::Diagnostic;
use crate::hostgroup::{HostGroupTable, HostList, HostOrGroup};
use crate::id::{HostGroupName, HostName, PeName, QueueInstanceName, QueueName, UserName};
use crate::object::reader::Reader;
use crate::object::value::{
    self, AbsolutePath, Assignments, ControlMethod, Flag, MalformedValue, MemoryText, NameList, OptionalValue,
    ProcedureCommand, Reference, TimeText, UninterpretedText,
};
use crate::object::{Fields, Object, ObjectKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Declares the attributes of a queue that may differ from host to host: name, type, parser, value
/// in the template.
///
/// A macro, because four lists of the same fifty attributes (the cluster queue, its instance,
/// reading, printing) would drift apart, and a table of fields by name would give up their types.
macro_rules! attributes {
    ($($(#[doc = $doc:literal])* $field:ident: $type:ty, $parse:expr, $template:literal;)*) => {
        /// The attributes of a cluster queue in the order of `qconf -sq`.
        pub const KEYS: &[&str] = &["qname", "hostlist", $(stringify!($field),)*];

        /// What each attribute means, for the manual page.
        pub const MEANINGS: &[(&str, &str)] = &[
            ("qname", "The name."),
            ("hostlist", "The hosts and host groups that have an instance each."),
            $((stringify!($field), concat!($($doc),*)),)*
        ];

        /// A cluster queue: the settings of all its instances.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub struct ClusterQueue {
            /// The name.
            pub name: QueueName,
            /// The hosts and host groups that have an instance each.
            pub hostlist: HostList,
            $($(#[doc = $doc])* pub $field: Setting<$type>,)*
        }

        /// The settings of one queue instance, every override applied.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub struct QueueInstanceSettings {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl ClusterQueue {
            /// What `qconf -aq` opens and `qconf -sq` shows: a queue of that name without hosts.
            ///
            /// As in 8.1.9, but for `shell_start_mode`, which is `unix_behavior`.
            pub fn template(name: QueueName) -> Self {
                Self {
                    name,
                    hostlist: HostList::default(),
                    $($field: Setting::uniform($parse($template).expect("a test parses each text of this table")),)*
                }
            }

            /// Reads a cluster queue.
            ///
            /// # Errors
            ///
            /// One refusal for each attribute that is unknown, missing or has a value it cannot
            /// have.
            pub fn from_fields(fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
                let mut queue = Self::template(QueueName::from("template"));
                let mut reader = Reader::new(ObjectKind::Queue, fields, KEYS, &required());
                reader.read("qname", &mut queue.name, value::name);
                reader.read("hostlist", &mut queue.hostlist, str::parse);
                $(reader.read(stringify!($field), &mut queue.$field, |text| Setting::parse(text, $parse));)*
                reader.finish(queue)
            }

            /// The queue as text fields, in the order of `qconf -sq`.
            pub fn to_fields(&self) -> Fields {
                let mut fields = Fields::new();
                fields.set("qname", self.name.to_string());
                fields.set("hostlist", self.hostlist.to_string());
                $(fields.set(stringify!($field), self.$field.to_string());)*
                fields
            }

            /// The settings of the instance on a host that is in `groups`: a setting for the host
            /// beats one for a group, which beats the default.
            ///
            /// Where groups of the host disagree the default is taken and the attribute is among
            /// the ambiguities; while there are any, the instance is in state `c` and takes no
            /// jobs.
            pub fn resolve(&self, host: &HostName, groups: &BTreeSet<HostGroupName>) -> (QueueInstanceSettings, Vec<Ambiguity>) {
                let mut ambiguities = Vec::new();
                let settings = QueueInstanceSettings {
                    $($field: self.$field.resolve(stringify!($field), host, groups, &mut ambiguities),)*
                };
                (settings, ambiguities)
            }

            /// The hosts and groups for which an attribute is set, with the attribute, in the order
            /// of the attributes.
            pub fn overrides(&self) -> Vec<(&'static str, &HostOrGroup)> {
                let mut overrides = Vec::new();
                $(overrides.extend(self.$field.overrides.iter().map(|(id, _)| (stringify!($field), id)));)*
                overrides
            }
        }

        impl QueueInstanceSettings {
            /// The instance as text fields: `qconf -sq queue@host`.
            pub fn to_fields(&self, name: &QueueInstanceName) -> Fields {
                let mut fields = Fields::new();
                fields.set("qname", name.queue.to_string());
                fields.set("hostname", name.host.to_string());
                $(fields.set(stringify!($field), self.$field.to_string());)*
                fields
            }
        }
    };
}

attributes! {
    /// The place in the order of queues; lower comes first. `queue_sort_method` of the scheduler
    /// configuration says whether it counts before the load or after it.
    seq_no: u32, value::bounded::<0, 0xffff_ffff, u32>, "0";
    /// Load values at which the instance takes no more jobs, such as
    /// `np_load_avg=1.75,mem_free=1G`. The relation of the complex decides when a value is reached.
    /// The state is then `a`.
    load_thresholds: Assignments, Assignments::of_queue, "np_load_avg=1.75";
    /// Load values at which jobs of the instance are suspended, in the form of `load_thresholds`.
    /// The state is then `A`.
    suspend_thresholds: Assignments, Assignments::of_queue, "NONE";
    /// How many jobs are suspended or resumed in each `suspend_interval`.
    nsuspend: u32, value::bounded::<0, 0xffff_ffff, u32>, "1";
    /// The least time between two steps of suspension or resumption by `suspend_thresholds`.
    suspend_interval: TimeText, TimeText::finite, "00:05:00";
    /// The nice value of jobs, -20 to 20.
    priority: i32, priority, "0";
    /// The least time between two checkpoints of a job that asks for them at intervals.
    min_cpu_interval: TimeText, TimeText::finite, "00:05:00";
    /// Processor sets of systems that are gone; shown and ignored.
    processors: UninterpretedText, str::parse::<UninterpretedText>, "UNDEFINED";
    /// Which kinds of jobs the instance takes: `BATCH`, `INTERACTIVE`, both or `NONE`. Parallel
    /// jobs are taken if `pe_list` holds their environment.
    qtype: QueueType, str::parse::<QueueType>, "BATCH INTERACTIVE";
    /// The checkpointing environments of the instance, checkpoint(5).
    ckpt_list: NameList<String>, str::parse::<NameList<String>>, "NONE";
    /// The parallel environments of the instance, sge_pe(5).
    pe_list: NameList<PeName>, str::parse::<NameList<PeName>>, "make smp mpi";
    /// Whether jobs submitted without `-r` run again after their host was lost.
    rerun: Flag, str::parse::<Flag>, "FALSE";
    /// The slots of the instance, 0 to 9999999.
    slots: u32, value::bounded::<0, 9_999_999, u32>, "1";
    /// The directory below which each job gets its own `TMPDIR`.
    tmpdir: AbsolutePath, str::parse::<AbsolutePath>, "/tmp";
    /// The shell of jobs submitted without `-S`, where `shell_start_mode` asks for one.
    shell: AbsolutePath, str::parse::<AbsolutePath>, "/bin/sh";
    /// A program that runs before each job, with its arguments; `USER@` in front says as whom.
    /// `NONE` leaves it to the cluster configuration.
    prolog: OptionalValue<ProcedureCommand>, str::parse::<OptionalValue<ProcedureCommand>>, "NONE";
    /// A program that runs after each job, in the form of `prolog`. `NONE` leaves it to the cluster
    /// configuration.
    epilog: OptionalValue<ProcedureCommand>, str::parse::<OptionalValue<ProcedureCommand>>, "NONE";
    /// How a script is started. `unix_behavior`: by its `#!` line. `posix_compliant`: by the shell
    /// of `-S` or of the queue. `script_from_stdin`: likewise, with the script as the standard
    /// input of the shell.
    shell_start_mode: ShellStartMode, str::parse::<ShellStartMode>, "unix_behavior";
    /// A program that starts jobs in place of the shell. It gets the command of the job as
    /// arguments.
    starter_method: OptionalValue<ProcedureCommand>, str::parse::<OptionalValue<ProcedureCommand>>, "NONE";
    /// How a job is suspended: a signal or the path of a program. `NONE` is SIGSTOP.
    suspend_method: OptionalValue<ControlMethod>, str::parse::<OptionalValue<ControlMethod>>, "NONE";
    /// How a suspended job goes on: a signal or the path of a program. `NONE` is SIGCONT.
    resume_method: OptionalValue<ControlMethod>, str::parse::<OptionalValue<ControlMethod>>, "NONE";
    /// How a job is ended: a signal or the path of a program. `NONE` is SIGKILL.
    terminate_method: OptionalValue<ControlMethod>, str::parse::<OptionalValue<ControlMethod>>, "NONE";
    /// The time between the warning of a job submitted with `-notify` and the signal that it is
    /// warned of.
    notify: TimeText, TimeText::finite, "00:00:60";
    /// The users who may suspend and disable the instance.
    owner_list: NameList<UserName>, str::parse::<NameList<UserName>>, "NONE";
    /// The access lists whose users may use the instance; empty admits everybody.
    user_lists: NameList<String>, str::parse::<NameList<String>>, "NONE";
    /// The access lists whose users may not use the instance; wins over `user_lists`.
    xuser_lists: NameList<String>, str::parse::<NameList<String>>, "NONE";
    /// The queues whose instance on the same host is suspended in favour of this one. `b.q=2`
    /// suspends `b.q` when 2 slots of this queue are used; without a number, when all are.
    /// `slots=N(b.q:1:sr)` suspends single tasks while more than N slots are used together: `sr`
    /// the one that started last, `lr` the one that started first.
    subordinate_list: OptionalValue<Subordinates>, str::parse::<OptionalValue<Subordinates>>, "NONE";
    /// Capacities of consumables and fixed values of other attributes for each instance, such as
    /// `lic=4,fast=true`.
    complex_values: Assignments, Assignments::of_queue, "NONE";
    /// The projects that may use the instance; empty admits all jobs.
    projects: NameList<String>, str::parse::<NameList<String>>, "NONE";
    /// The projects that may not use the instance; wins over `projects`.
    xprojects: NameList<String>, str::parse::<NameList<String>>, "NONE";
    /// The calendar that opens and closes the instance, calendar_conf(5).
    calendar: OptionalValue<Reference>, str::parse::<OptionalValue<Reference>>, "NONE";
    /// The state in which an instance begins: `enabled`, `disabled`, or `default`, which keeps the
    /// last one.
    initial_state: InitialState, str::parse::<InitialState>, "default";
    /// The time after which a job is warned with SIGUSR1. `INFINITY` sets no limit.
    s_rt: TimeText, str::parse::<TimeText>, "INFINITY";
    /// The time after which a job is ended. `INFINITY` sets no limit.
    h_rt: TimeText, str::parse::<TimeText>, "INFINITY";
    /// The processor time per slot after which a job is warned with SIGXCPU.
    s_cpu: TimeText, str::parse::<TimeText>, "INFINITY";
    /// The processor time per slot after which a job is ended.
    h_cpu: TimeText, str::parse::<TimeText>, "INFINITY";
    /// The soft limit of a file's size.
    s_fsize: MemoryText, str::parse::<MemoryText>, "INFINITY";
    /// The hard limit of a file's size.
    h_fsize: MemoryText, str::parse::<MemoryText>, "INFINITY";
    /// The soft limit of the data segment.
    s_data: MemoryText, str::parse::<MemoryText>, "INFINITY";
    /// The hard limit of the data segment.
    h_data: MemoryText, str::parse::<MemoryText>, "INFINITY";
    /// The soft limit of the stack.
    s_stack: MemoryText, str::parse::<MemoryText>, "INFINITY";
    /// The hard limit of the stack.
    h_stack: MemoryText, str::parse::<MemoryText>, "INFINITY";
    /// The soft limit of a core file.
    s_core: MemoryText, str::parse::<MemoryText>, "INFINITY";
    /// The hard limit of a core file.
    h_core: MemoryText, str::parse::<MemoryText>, "INFINITY";
    /// The soft limit of resident memory.
    s_rss: MemoryText, str::parse::<MemoryText>, "INFINITY";
    /// The hard limit of resident memory.
    h_rss: MemoryText, str::parse::<MemoryText>, "INFINITY";
    /// The soft limit of virtual memory per slot. A job that reaches it is warned with SIGXCPU.
    s_vmem: MemoryText, str::parse::<MemoryText>, "INFINITY";
    /// The hard limit of virtual memory per slot. A job that needs more is ended.
    h_vmem: MemoryText, str::parse::<MemoryText>, "INFINITY";
}

impl ClusterQueue {
    /// The hosts that have an instance.
    pub fn hosts(&self, groups: &HostGroupTable) -> BTreeSet<HostName> {
        groups.resolve(self.hostlist.iter())
    }

    /// The overrides of `qconf -sds`, without effect: for a host that has no instance, or for a
    /// group none of whose hosts has one.
    pub fn detached(&self, groups: &HostGroupTable) -> Vec<(&'static str, &HostOrGroup)> {
        let hosts = self.hosts(groups);
        let is_detached = |id: &HostOrGroup| match id {
            HostOrGroup::Host(host) => !hosts.contains(host),
            HostOrGroup::Group(group) => groups.hosts_of(group).is_disjoint(&hosts),
        };
        self.overrides().into_iter().filter(|(_, id)| is_detached(id)).collect()
    }
}

impl QueueInstanceSettings {
    /// Whether the instance takes batch jobs of one slot. Parallel ones it takes if it has their
    /// parallel environment.
    pub fn is_batch(&self) -> bool {
        self.qtype.batch
    }

    /// The limit of that name, such as `h_rt` in seconds or `s_vmem` in bytes; `None` if there is
    /// no such limit.
    pub fn limit(&self, name: &str) -> Option<Amount> {
        Some(match name {
            "s_rt" => self.s_rt.amount(),
            "h_rt" => self.h_rt.amount(),
            "s_cpu" => self.s_cpu.amount(),
            "h_cpu" => self.h_cpu.amount(),
            "s_fsize" => self.s_fsize.amount(),
            "h_fsize" => self.h_fsize.amount(),
            "s_data" => self.s_data.amount(),
            "h_data" => self.h_data.amount(),
            "s_stack" => self.s_stack.amount(),
            "h_stack" => self.h_stack.amount(),
            "s_core" => self.s_core.amount(),
            "h_core" => self.h_core.amount(),
            "s_rss" => self.s_rss.amount(),
            "h_rss" => self.h_rss.amount(),
            "s_vmem" => self.s_vmem.amount(),
            "h_vmem" => self.h_vmem.amount(),
            _ => return None,
        })
    }

    /// Whether the instance takes interactive jobs.
    pub fn is_interactive(&self) -> bool {
        self.qtype.interactive
    }

    /// Whether the instance takes parallel jobs.
    pub fn is_parallel(&self) -> bool {
        !self.pe_list.is_empty()
    }
}

/// What the text of a queue must state: everything but `processors`, which later versions left out.
fn required() -> Vec<&'static str> {
    KEYS.iter().copied().filter(|key| *key != "processors").collect()
}

/// The nice value of a queue.
fn priority(text: &str) -> Result<i32, MalformedValue> {
    value::bounded::<-20, 20, i32>(text)
        .map_err(|_| MalformedValue::with_words("Priority not in range -20 to +20", "a number from -20 to 20"))
}

impl Object for ClusterQueue {
    fn template(name: &str) -> Self {
        Self::template(QueueName::from(if name.is_empty() { "template" } else { name }))
    }

    fn read(_: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        Self::from_fields(fields)
    }

    fn write(&self) -> Fields {
        self.to_fields()
    }
}
