//! What objects may say that this version does: everything else is refused by name, and nothing is taken and ignored.

use super::change::Refusals;
use proto::conf::Settings;
use proto::diagnostic::{Code, Diagnostic};
use proto::object::value::{Parameters, is_none};
use proto::object::{Fields, ObjectKind};
use proto::queue::Setting;

/// The values of an attribute that are supported.
#[derive(Clone, Copy, Debug)]
enum Allowed {
    /// `NONE` alone.
    None,
    /// Any of these, in any letter case.
    Words(&'static [&'static str]),
    /// As `None`; the names are of access lists, of which there are none.
    AccessLists,
    /// As `None`; the names are of projects, of which there are none.
    Projects,
    /// Times of no length.
    NoTime,
    /// Only these parameters may have another value than their default.
    Parameters(&'static [&'static str]),
}

/// One row: attributes of a kind, what they may be, and what to do instead.
struct Row {
    kind: ObjectKind,
    attributes: &'static [&'static str],
    allowed: Allowed,
    instead: &'static str,
}

const fn row(kind: ObjectKind, attributes: &'static [&'static str], allowed: Allowed, instead: &'static str) -> Row {
    Row { kind, attributes, allowed, instead }
}

const FALSE: Allowed = Allowed::Words(&["false", "0", "no"]);
const ZERO: Allowed = Allowed::Words(&["0"]);

/// Everything that a supported kind of object may not say yet.
const TABLE: &[Row] = &[
    row(ObjectKind::Queue, &["calendar"], Allowed::None, "open and close the queue with qmod -e and -d"),
    row(ObjectKind::Queue, &["subordinate_list"], Allowed::None, "suspend the other queue with qmod -sq"),
    row(ObjectKind::Queue, &["ckpt_list"], Allowed::None, "submit with -r y: the job runs again from its start"),
    row(ObjectKind::Queue, &["suspend_thresholds"], Allowed::None, "use load_thresholds, which keep new jobs away"),
    row(ObjectKind::Queue, &["starter_method"], Allowed::None, "start the program from the job script or a prolog"),
    row(ObjectKind::Queue, &["processors"], Allowed::Words(&["undefined", "none"]), "leave it UNDEFINED"),
    row(ObjectKind::Queue, &["user_lists", "xuser_lists"], Allowed::AccessLists, "leave it NONE"),
    row(ObjectKind::Queue, &["projects", "xprojects"], Allowed::Projects, "leave it NONE"),
    row(ObjectKind::ExecHost, &["user_lists", "xuser_lists"], Allowed::AccessLists, "leave it NONE"),
    row(ObjectKind::ExecHost, &["projects", "xprojects"], Allowed::Projects, "leave it NONE"),
    row(ObjectKind::ExecHost, &["usage_scaling"], Allowed::None, "leave it NONE: there is no share tree"),
    row(ObjectKind::ExecHost, &["report_variables"], Allowed::None, "leave it NONE: there is no reporting file"),
    row(ObjectKind::Pe, &["user_lists", "xuser_lists"], Allowed::AccessLists, "leave it NONE"),
    row(
        ObjectKind::Pe,
        &["start_proc_args", "stop_proc_args"],
        Allowed::None,
        "leave it NONE and do it in the job script, which finds its hosts in $PE_HOSTFILE",
    ),
    row(ObjectKind::Pe, &["qsort_args"], Allowed::None, "leave it NONE"),
    row(ObjectKind::ClusterConf, &["user_lists", "xuser_lists"], Allowed::AccessLists, "leave it none"),
    row(ObjectKind::ClusterConf, &["projects", "xprojects"], Allowed::Projects, "leave it none"),
    row(ObjectKind::ClusterConf, &["enforce_project"], FALSE, "leave it false: there are no projects"),
    row(ObjectKind::ClusterConf, &["enforce_user"], Allowed::Words(&["auto", "false"]), "leave it auto"),
    row(
        ObjectKind::ClusterConf,
        &["loglevel"],
        Allowed::Words(&["log_warning"]),
        "leave it log_warning; GRIDWRIGHT_LOG in the environment of the daemons says what they log",
    ),
    row(ObjectKind::ClusterConf, &["administrator_mail"], Allowed::None, "leave it none and watch qstat -f -explain E"),
    row(
        ObjectKind::ClusterConf,
        &["set_token_cmd", "pag_cmd", "token_extend_time", "shepherd_cmd", "libjvm_path", "additional_jvm_args"],
        Allowed::None,
        "leave it none",
    ),
    row(
        ObjectKind::ClusterConf,
        &["qlogin_command", "qlogin_daemon", "rlogin_command", "rlogin_daemon", "rsh_command", "rsh_daemon"],
        Allowed::Words(&["builtin"]),
        "leave it builtin",
    ),
    row(ObjectKind::ClusterConf, &["delegated_file_staging", "reprioritize"], FALSE, "leave it false"),
    row(
        ObjectKind::ClusterConf,
        &["gid_range"],
        Allowed::Words(&["65400-65500", "none"]),
        "leave it 65400-65500, which means nothing here; groups that mark the processes of jobs are named on each host, with \
         tracking_gids LOW HIGH in etc/launcher.conf of its state directory",
    ),
    row(ObjectKind::ClusterConf, &["jsv_url"], Allowed::None, "leave it none and check jobs where they are submitted"),
    row(ObjectKind::ClusterConf, &["auto_user_oticket", "auto_user_fshare"], ZERO, "leave it 0"),
    row(ObjectKind::ClusterConf, &["auto_user_default_project"], Allowed::Projects, "leave it none"),
    row(
        ObjectKind::ClusterConf,
        &["qmaster_params"],
        Allowed::Parameters(&[
            "ENABLE_FORCED_QDEL",
            "FORBID_RESCHEDULE",
            "FORBID_APPERROR",
            "DISABLE_AUTO_RESCHEDULING",
        ]),
        "leave the parameter out",
    ),
    row(
        ObjectKind::ClusterConf,
        &["execd_params"],
        Allowed::Parameters(&[
            "KEEP_ACTIVE",
            "PDC_INTERVAL",
            "MEM_FREE",
            "S_DESCRIPTORS",
            "H_DESCRIPTORS",
            "S_MAXPROC",
            "H_MAXPROC",
            "S_MEMORYLOCKED",
            "H_MEMORYLOCKED",
            "S_LOCKS",
            "H_LOCKS",
        ]),
        "leave the parameter out; what a job needs of an environment it gets with -v, -V or in its script",
    ),
    row(
        ObjectKind::ClusterConf,
        &["reporting_params"],
        Allowed::Parameters(&["flush_time", "accounting_flush_time"]),
        "leave it at its default: the accounting file is written at once",
    ),
    row(ObjectKind::SchedulerConf, &["algorithm"], Allowed::Words(&["default"]), "leave it default"),
    row(
        ObjectKind::SchedulerConf,
        &["weight_tickets_functional", "weight_tickets_share"],
        ZERO,
        "leave it 0 and order jobs with -p and the urgency of resources",
    ),
    row(ObjectKind::SchedulerConf, &["max_reservation"], ZERO, "leave it 0"),
    row(ObjectKind::SchedulerConf, &["halflife_decay_list"], Allowed::None, "leave it none"),
    row(ObjectKind::SchedulerConf, &["reprioritize_interval"], Allowed::NoTime, "leave it 0:0:0"),
    row(
        ObjectKind::SchedulerConf,
        &["params"],
        Allowed::Parameters(&["DURATION_OFFSET", "SETTLE_TIME"]),
        "leave it none; gridwright explain JOB says why a job waits",
    ),
];

/// What an object says that is not supported.
pub(super) fn check(kind: ObjectKind, fields: &Fields) -> Refusals {
    let rows = TABLE.iter().filter(|row| row.kind == kind);
    rows.flat_map(|row| row.attributes.iter().map(move |key| (row, *key)))
        .filter_map(|(row, key)| fields.value(key).map(|value| (row, key, value)))
        .flat_map(|(row, key, value)| each(kind, value).into_iter().filter_map(move |value| refuse(row, key, &value)))
        .collect()
}

/// The values of an attribute: those of queues may differ from host to host.
fn each(kind: ObjectKind, value: &str) -> Vec<String> {
    if kind != ObjectKind::Queue {
        return vec![value.to_owned()];
    }
    // The text was read as a setting of its type before.
    Setting::parse(value, |text| Ok(text.to_owned())).map_or_else(
        |_| vec![value.to_owned()],
        |setting| {
            std::iter::once(setting.default).chain(setting.overrides.into_iter().map(|(_, value)| value)).collect()
        },
    )
}

fn refuse(row: &Row, key: &str, value: &str) -> Option<Diagnostic> {
    let refusal = match row.allowed {
        Allowed::None => (!is_none(value)).then(|| not_supported(row.kind, key, value)),
        Allowed::Words(words) => {
            (!words.iter().any(|word| value.eq_ignore_ascii_case(word))).then(|| not_supported(row.kind, key, value))
        }
        Allowed::AccessLists => (!is_none(value)).then(|| absent("access list", value, "access lists")),
        Allowed::Projects => (!is_none(value)).then(|| absent("project", value, "projects")),
        Allowed::NoTime => {
            value.chars().any(|letter| !"0:".contains(letter)).then(|| not_supported(row.kind, key, value))
        }
        Allowed::Parameters(names) => parameter(row.kind, key, value, names),
    };
    refusal.map(|refusal| refusal.at(key).fix(row.instead))
}

/// In the words of 8.1.9 for a name that does not exist: none of that kind does.
fn absent(what: &str, value: &str, plural: &str) -> Diagnostic {
    let name = value.split([' ', ',']).next().unwrap_or(value);
    let what = format!("denied: {what} \"{name}\" does not exist");
    Diagnostic::new(Code::NotSupported, what).why(format!("{plural} are not supported yet"))
}

fn not_supported(kind: ObjectKind, key: &str, value: &str) -> Diagnostic {
    Diagnostic::new(Code::NotSupported, format!("denied: {key} {value} of a {kind} is not supported yet"))
}

/// The first parameter of a list that is neither supported nor at its default.
fn parameter(kind: ObjectKind, key: &str, value: &str, names: &[&str]) -> Option<Diagnostic> {
    let parameters: Parameters = value.parse().ok()?;
    let is_supported = |name: &str| names.iter().any(|supported| supported.eq_ignore_ascii_case(name));
    let is_default = |name: &str, value: &str| {
        let alone = format!("{name}={value}").parse();
        alone.is_ok_and(|alone| is_at_default(key, alone))
    };
    let (name, value) = parameters.iter().find(|(name, value)| !is_supported(name) && !is_default(name, value))?;
    Some(not_supported(kind, key, &format!("{name}={value}")))
}

/// Whether a list of parameters says what holds anyway.
fn is_at_default(key: &str, list: Parameters) -> bool {
    let mut settings = Settings::template();
    match key {
        "qmaster_params" => {
            settings.qmaster_params = list;
            settings.qmaster() == Default::default()
        }
        "execd_params" => {
            settings.execd_params = list;
            settings.execd() == Default::default()
        }
        "reporting_params" => {
            settings.reporting_params = list;
            settings.reporting() == Default::default()
        }
        _ => list.iter().all(|(_, value)| matches!(value, "0" | "false" | "FALSE")),
    }
}
