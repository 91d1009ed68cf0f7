//! The cluster configuration: one for all hosts, and local ones that replace single entries
//! (`sge_conf(5)`).
//!
//! A [`ClusterConf`] is the text that an administrator wrote, checked; [`Settings`] are the typed
//! values that hold on one host. Values that name what Gridwright does not do are read and printed
//! here; refusing them is the master's business.

mod parameters;
mod words;

#[cfg(test)]
mod tests;

pub use parameters::{
    ExecdParams, LimitPair, NotifySignal, ParameterClass, PdcInterval, QmasterParams, ReportingParams, parameter_class,
    parameters,
};
pub use words::{EnforceUser, GidRanges, LoadSensors, LogLevel, LowerFlag};

use crate::diagnostic::{Code, Diagnostic};
use crate::id::HostName;
use crate::object::reader::Reader;
use crate::object::value::{
    self, AbsolutePath, NameList, OptionalValue, Parameters, ProcedureCommand, TimeText, UninterpretedText,
};
use crate::object::{Fields, LineWrap, Object, ObjectKind};
use crate::queue::ShellStartMode;
use parameters::ParameterList;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::LazyLock;

/// Where an entry of the configuration may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// In the global configuration alone.
    Global,
    /// In the configuration of a host too, where it replaces the global entry.
    Host,
}

/// Whether the text of the global configuration names an entry that has its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visibility {
    Always,
    IfSet,
}

/// Declares the entries: name, type, parser, scope, when it is shown, default.
///
/// A macro, because the typed settings, the list of names and the check of a text are three lists
/// of the same fifty entries.
macro_rules! entries {
    ($($(#[doc = $doc:literal])* $field:ident: $type:ty, $parse:expr, $scope:ident, $shown:ident, $default:literal;)*) => {
        /// The entries of the configuration in the order of `qconf -sconf`.
        pub const KEYS: &[&str] = &[$(stringify!($field),)*];

        /// What each entry means, for the manual page.
        pub const MEANINGS: &[(&str, &str)] = &[$((stringify!($field), concat!($($doc),*)),)*];

        /// For each of [`KEYS`]: its scope, when it is shown, its default.
        const ENTRIES: &[(&str, Scope, Visibility, &str)] = &[$((stringify!($field), Scope::$scope, Visibility::$shown, $default),)*];

        /// The configuration that holds on one host: the global one with the host's own entries in
        /// place of its.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Settings {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl Settings {
            /// The configuration of a new cell.
            pub fn template() -> Self {
                Self { $($field: $parse($default).expect("a test parses each text of this table"),)* }
            }

            fn read(&mut self, reader: &mut Reader<'_>) {
                $(reader.read(stringify!($field), &mut self.$field, $parse);)*
            }
        }
    };
}

entries! {
    /// The directory of the execution daemon; shown and not used, because the host's own file says
    /// it.
    execd_spool_dir: AbsolutePath, str::parse::<AbsolutePath>, Host, Always, "/var/lib/gridwright";
    /// The program that sends mail. It is called with `-s SUBJECT ADDRESS` and gets the text on its
    /// standard input.
    mailer: UninterpretedText, str::parse::<UninterpretedText>, Host, Always, "/usr/bin/mail";
    /// The terminal of `qsh`.
    xterm: UninterpretedText, str::parse::<UninterpretedText>, Host, Always, "/usr/bin/xterm";
    /// The load sensors of the host: absolute paths, separated by commas, each with its arguments.
    /// sge_load_sensor(5) describes the protocol.
    load_sensor: LoadSensors, str::parse::<LoadSensors>, Host, Always, "none";
    /// A program that runs before each job, unless its queue says otherwise; queue_conf(5).
    prolog: OptionalValue<ProcedureCommand>, str::parse::<OptionalValue<ProcedureCommand>>, Host, Always, "none";
    /// A program that runs after each job, unless its queue says otherwise; queue_conf(5).
    epilog: OptionalValue<ProcedureCommand>, str::parse::<OptionalValue<ProcedureCommand>>, Host, Always, "none";
    /// How scripts are started where no queue decides.
    shell_start_mode: ShellStartMode, str::parse::<ShellStartMode>, Global, Always, "unix_behavior";
    /// The names of the shells that are started as login shells.
    login_shells: NameList<String>, str::parse::<NameList<String>>, Global, Always, "bash,sh,ksh,csh,tcsh";
    /// The least user id that may submit.
    min_uid: u32, value::bounded::<0, 0xffff_ffff, u32>, Global, Always, "1000";
    /// The least group id that may submit.
    min_gid: u32, value::bounded::<0, 0xffff_ffff, u32>, Global, Always, "1000";
    /// The access lists whose users may use the cell; empty admits everybody.
    user_lists: NameList<String>, str::parse::<NameList<String>>, Host, Always, "none";
    /// The access lists whose users may not use the cell; wins over `user_lists`.
    xuser_lists: NameList<String>, str::parse::<NameList<String>>, Host, Always, "none";
    /// The projects that may use the cell; empty admits all jobs.
    projects: NameList<String>, str::parse::<NameList<String>>, Global, Always, "none";
    /// The projects that may not use the cell; wins over `projects`.
    xprojects: NameList<String>, str::parse::<NameList<String>>, Global, Always, "none";
    /// Whether each job must have a project.
    enforce_project: LowerFlag, str::parse::<LowerFlag>, Global, Always, "false";
    /// Whether each submitting user must be a user object: `true`, `false`, or `auto`, which adds
    /// the user.
    enforce_user: EnforceUser, str::parse::<EnforceUser>, Global, Always, "auto";
    /// The time between two load reports of a host.
    load_report_time: TimeText, TimeText::finite, Host, Always, "00:00:40";
    /// The time without contact after which a host is unknown, state `u`.
    max_unheard: TimeText, TimeText::finite, Global, Always, "00:05:00";
    /// The time after which jobs on an unknown host run again elsewhere; 0 switches that off.
    reschedule_unknown: TimeText, TimeText::finite, Host, Always, "00:00:00";
    /// The least weight of a message that is logged. It is stored and has no effect:
    /// `GRIDWRIGHT_LOG` in the environment of a daemon says what it logs.
    loglevel: LogLevel, str::parse::<LogLevel>, Global, Always, "log_warning";
    /// Who gets mail about errors of jobs and queues.
    administrator_mail: OptionalValue<UninterpretedText>, str::parse::<OptionalValue<UninterpretedText>>, Global, Always, "none";
    /// AFS: the program that sets tokens.
    set_token_cmd: OptionalValue<UninterpretedText>, str::parse::<OptionalValue<UninterpretedText>>, Host, Always, "none";
    /// AFS: the program that makes a process authentication group.
    pag_cmd: OptionalValue<UninterpretedText>, str::parse::<OptionalValue<UninterpretedText>>, Host, Always, "none";
    /// AFS: the time by which tokens are extended.
    token_extend_time: OptionalValue<TimeText>, str::parse::<OptionalValue<TimeText>>, Host, Always, "none";
    /// What starts the shepherd.
    shepherd_cmd: OptionalValue<ProcedureCommand>, str::parse::<OptionalValue<ProcedureCommand>>, Host, Always, "none";
    /// Parameters of the master, separated by blanks or commas, such as `MAX_START_FAILURES=5` or
    /// `ENABLE_FORCED_QDEL=true`.
    qmaster_params: Parameters, parameters::checked::<QmasterParams>, Global, Always, "none";
    /// Parameters of the execution side, separated by blanks or commas, such as `H_MAXPROC=1000`,
    /// `NOTIFY_SUSP=SIGUSR1` or `INHERIT_ENV=false`.
    execd_params: Parameters, parameters::checked::<ExecdParams>, Host, Always, "none";
    /// Parameters of accounting and reporting: `accounting`, `reporting`, `joblog` (each `true` or
    /// `false`), `flush_time`, `sharelog`.
    reporting_params: Parameters, parameters::checked::<ReportingParams>, Global, Always,
        "accounting=true reporting=false flush_time=00:00:15 joblog=false sharelog=00:00:00";
    /// How many finished jobs `qstat -s z` shows.
    finished_jobs: u32, value::bounded::<0, 0xffff_ffff, u32>, Global, Always, "100";
    /// The supplementary group ids that mark the processes of jobs.
    gid_range: OptionalValue<GidRanges>, str::parse::<OptionalValue<GidRanges>>, Host, Always, "65400-65500";
    /// What `qlogin` starts on its own side.
    qlogin_command: UninterpretedText, str::parse::<UninterpretedText>, Host, Always, "builtin";
    /// What `qlogin` starts on the execution host.
    qlogin_daemon: UninterpretedText, str::parse::<UninterpretedText>, Host, Always, "builtin";
    /// What `qrsh` without a command starts on its own side.
    rlogin_command: UninterpretedText, str::parse::<UninterpretedText>, Host, Always, "builtin";
    /// What `qrsh` without a command starts on the execution host.
    rlogin_daemon: UninterpretedText, str::parse::<UninterpretedText>, Host, Always, "builtin";
    /// What `qrsh` with a command starts on its own side.
    rsh_command: UninterpretedText, str::parse::<UninterpretedText>, Host, Always, "builtin";
    /// What `qrsh` with a command starts on the execution host.
    rsh_daemon: UninterpretedText, str::parse::<UninterpretedText>, Host, Always, "builtin";
    /// How many tasks of one array job may run at once; 0 sets no limit.
    max_aj_instances: u32, value::bounded::<0, 0xffff_ffff, u32>, Global, Always, "2000";
    /// How many tasks an array job may have; 0 sets no limit.
    max_aj_tasks: u32, value::bounded::<0, 0xffff_ffff, u32>, Global, Always, "75000";
    /// How many jobs of one user the cell takes; 0 sets no limit.
    max_u_jobs: u32, value::bounded::<0, 0xffff_ffff, u32>, Global, Always, "0";
    /// How many jobs the cell takes; 0 sets no limit.
    max_jobs: u32, value::bounded::<0, 0xffff_ffff, u32>, Global, Always, "0";
    /// How many advance reservations the cell takes; 0 sets no limit.
    max_advance_reservations: u32, value::bounded::<0, 0xffff_ffff, u32>, Global, IfSet, "0";
    /// The override tickets of users that `enforce_user auto` adds.
    auto_user_oticket: u32, value::bounded::<0, 0xffff_ffff, u32>, Global, Always, "0";
    /// The functional shares of users that `enforce_user auto` adds.
    auto_user_fshare: u32, value::bounded::<0, 0xffff_ffff, u32>, Global, Always, "0";
    /// The default project of users that `enforce_user auto` adds.
    auto_user_default_project: OptionalValue<value::Reference>, str::parse::<OptionalValue<value::Reference>>, Global, Always, "none";
    /// Seconds after the last job of a user that `enforce_user auto` has added until it is deleted;
    /// 0 keeps it.
    auto_user_delete_time: u32, value::bounded::<0, 0xffff_ffff, u32>, Global, Always, "86400";
    /// Whether DRMAA may ask for files to be staged by prolog and epilog.
    delegated_file_staging: LowerFlag, str::parse::<LowerFlag>, Global, Always, "false";
    /// Whether nice values follow tickets.
    reprioritize: LowerFlag, str::parse::<LowerFlag>, Global, Always, "0";
    /// The job submission verifier that sees every job before the master accepts it, as
    /// `[script:][user@]path`; see jsv(5).
    jsv_url: OptionalValue<UninterpretedText>, str::parse::<OptionalValue<UninterpretedText>>, Global, Always, "none";
    /// What `qalter` may change where there is a verifier, which does not see such changes: names
    /// of parameters as jsv(5) has them, or `none`.
    jsv_allowed_mod: UninterpretedText, str::parse::<UninterpretedText>, Global, Always, "ac,h,i,e,o,j,M,N,p,w";
    /// The Java library of the master; shown and not used.
    libjvm_path: OptionalValue<UninterpretedText>, str::parse::<OptionalValue<UninterpretedText>>, Host, IfSet, "none";
    /// Arguments of the Java library; shown and not used.
    additional_jvm_args: OptionalValue<UninterpretedText>, str::parse::<OptionalValue<UninterpretedText>>, Host, IfSet, "none";
}

impl Settings {
    /// The configuration that holds on a host with these local entries.
    pub fn effective(global: &ClusterConf, local: Option<&ClusterConf>) -> Self {
        let mut settings = Self::template();
        for conf in std::iter::once(global).chain(local) {
            // What is refused here was refused when the configuration came into being; the earlier
            // entry stays.
            settings.read(&mut Reader::new(ObjectKind::ClusterConf, &conf.fields, KEYS, &[]));
        }
        settings
    }

    /// The parameters of the execution side.
    pub fn execd(&self) -> ExecdParams {
        // Asked for at each start and end of a task, and mostly it says nothing.
        static NOTHING: LazyLock<ExecdParams> = LazyLock::new(ExecdParams::default);
        if self.execd_params.iter().next().is_none() {
            return NOTHING.clone();
        }
        ExecdParams::read(&self.execd_params).unwrap_or_default()
    }

    /// The parameters of the master.
    pub fn qmaster(&self) -> QmasterParams {
        QmasterParams::read(&self.qmaster_params).unwrap_or_default()
    }

    /// The parameters of accounting and reporting.
    pub fn reporting(&self) -> ReportingParams {
        ReportingParams::read(&self.reporting_params).unwrap_or_default()
    }
}

/// Where an entry may stand; `None` if there is no such entry.
pub fn scope_of(key: &str) -> Option<Scope> {
    ENTRIES
        .iter()
        .find(|(name, ..)| *name == key)
        .map(|(_, scope, ..)| *scope)
}

/// The global configuration, or the local one of a host, as text.
///
/// Every entry is one of [`KEYS`], in their order, with a value that its type takes. A global
/// configuration has all entries that are always shown; a local one has only such as a host may
/// have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawConf", into = "RawConf")]
pub struct ClusterConf {
    host: HostName,
    fields: Fields,
}

/// What is stored of a configuration; checked when it is read.
#[derive(Clone, Serialize, Deserialize)]
struct RawConf {
    host: HostName,
    fields: Fields,
}

/// A stored configuration has entries that are not valid: one refusal for each.
#[derive(Debug)]
struct InvalidConf(Vec<Diagnostic>);

impl fmt::Display for InvalidConf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refusals: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&refusals.join("; "))
    }
}

impl TryFrom<RawConf> for ClusterConf {
    type Error = InvalidConf;

    fn try_from(RawConf { host, fields }: RawConf) -> Result<Self, InvalidConf> {
        ClusterConf::from_fields(&host, &fields).map_err(InvalidConf)
    }
}

impl From<ClusterConf> for RawConf {
    fn from(ClusterConf { host, fields }: ClusterConf) -> Self {
        RawConf { host, fields }
    }
}

impl ClusterConf {
    /// The global configuration of a new cell.
    pub fn template() -> Self {
        let shown = ENTRIES.iter().filter(|(_, _, shown, _)| *shown == Visibility::Always);
        let fields = shown.map(|(key, _, _, default)| (*key, *default)).collect();
        Self {
            host: HostName::global(),
            fields,
        }
    }

    /// A local configuration that changes nothing.
    pub fn local_template(host: HostName) -> Self {
        Self {
            host,
            fields: Fields::new(),
        }
    }

    /// Reads the global configuration (`host` is `global`) or the local one of a host.
    ///
    /// What the text of the global configuration leaves out has its default; a local one needs no
    /// entries at all.
    ///
    /// # Errors
    ///
    /// One refusal for each entry that is unknown, has a value it cannot have, or may not stand in
    /// a local configuration.
    pub fn from_fields(host: &HostName, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        let mut reader = Reader::new(ObjectKind::ClusterConf, fields, KEYS, &[]);
        Settings::template().read(&mut reader);
        let is_misplaced = |key: &str| !host.is_global() && scope_of(key) == Some(Scope::Global);
        for field in fields.iter().filter(|field| is_misplaced(&field.key)) {
            reader.refuse(misplaced(&field.key, host).at(fields.place(&field.key)));
        }
        let base = if host.is_global() {
            Self::template()
        } else {
            Self::local_template(host.clone())
        };
        let entry = |key: &&'static str| {
            let value = fields.value(key).or_else(|| base.fields.value(key))?;
            Some((*key, value.to_owned()))
        };
        let conf = Self {
            host: host.clone(),
            fields: KEYS.iter().filter_map(entry).collect(),
        };
        reader.finish(conf)
    }

    /// The host, or `global`.
    pub fn host(&self) -> &HostName {
        &self.host
    }

    /// The configuration as text fields, in the order of `qconf -sconf`.
    pub fn to_fields(&self) -> Fields {
        self.fields.clone()
    }

    /// The value of an entry as it was written.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.fields.value(key)
    }

    /// Warnings about names in the parameter lists that neither 8.1.9 nor Gridwright knows.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        let lists = ["qmaster_params", "execd_params", "reporting_params"];
        let given = lists
            .into_iter()
            .filter_map(|key| Some((key, self.value(key)?.parse().ok()?)));
        given.flat_map(|(key, list)| parameters::unknown(key, &list)).collect()
    }

    /// The text of `qconf -sconf`: `#host:`, the entries, an empty line.
    pub fn print(&self, wrap: LineWrap) -> String {
        format!(
            "#{}:\n{}\n",
            self.host,
            self.fields.print(ObjectKind::ClusterConf, wrap)
        )
    }
}

fn misplaced(key: &str, host: &HostName) -> Diagnostic {
    Diagnostic::new(
        Code::BadValue,
        format!("\"{key}\" is not allowed in the local configuration of host \"{host}\""),
    )
    .why("it holds for the whole cell and cannot differ from host to host")
    .fix(format!("remove it here; \"qconf -mconf\" changes {key} for the cell"))
}

impl Object for ClusterConf {
    fn template(_: &str) -> Self {
        Self::template()
    }

    fn read(name: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        Self::from_fields(&HostName::new(name), fields)
    }

    fn write(&self) -> Fields {
        self.to_fields()
    }
}
