//! What objects may say that has an effect here.
//!
//! What has none is refused by name where somebody writes it anew. What is stored already, or comes
//! with a whole cell that is taken over, is kept and warned about: nothing is taken and ignored
//! without a word.

use super::change::Refusals;
use crate::config::Configuration;
use crate::sched::algorithm;
use proto::conf::{ParameterClass, Settings, parameter_class};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::object::value::{Parameters, is_none};
use proto::object::{Fields, Form, ObjectKind};
use proto::queue::Setting;

/// The values of an attribute that are supported.
#[derive(Clone, Copy, Debug)]
enum AllowedValues {
    /// `NONE` alone.
    None,
    /// Any of these, in any letter case.
    Words(&'static [&'static str]),
    /// A list of `name=value` with this between its elements, for the kinds of usage that are
    /// counted.
    Kinds(char),
    /// A list of parameters: what may have another value than its default says
    /// [`proto::conf::parameters`].
    Parameters,
}

/// What is done with a value that is not among the supported ones and that somebody writes anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// It is refused: somebody waits for its effect.
    Refused,
    /// It is kept with a warning: Gridwright does the same by other means, or has no such thing.
    Kept,
}

/// Where an object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Somebody edits it.
    Hand,
    /// It is part of a cell that is taken over as it is.
    Import,
}

/// One row: attributes of a kind, what they may be, and what to do instead.
struct SupportRow {
    kind: ObjectKind,
    attributes: &'static [&'static str],
    allowed: AllowedValues,
    rule: Rule,
    instead: &'static str,
}

impl SupportRow {
    /// The rule of one part of a value.
    fn rule_of(&self, part: &str) -> Rule {
        match self.allowed {
            AllowedValues::Parameters => match self.class(part.split('=').next().unwrap_or(part)) {
                Some(ParameterClass::Kept | ParameterClass::Unread) => Rule::Kept,
                Some(ParameterClass::Served | ParameterClass::Refused) | None => self.rule,
            },
            AllowedValues::None | AllowedValues::Words(_) | AllowedValues::Kinds(_) => self.rule,
        }
    }

    /// The class of a parameter of the lists of this row.
    fn class(&self, name: &str) -> Option<ParameterClass> {
        self.attributes.iter().find_map(|key| parameter_class(key, name))
    }

    /// What to do instead of a part of a value.
    fn instead_of(&self, part: &str) -> &'static str {
        if self.rule_of(part) == self.rule {
            self.instead
        } else {
            SEE_TABLE
        }
    }
}

const fn row(
    kind: ObjectKind,
    attributes: &'static [&'static str],
    allowed: AllowedValues,
    instead: &'static str,
) -> SupportRow {
    SupportRow {
        kind,
        attributes,
        allowed,
        rule: Rule::Refused,
        instead,
    }
}

/// A row whose values are kept, whoever writes them.
const fn kept(
    kind: ObjectKind,
    attributes: &'static [&'static str],
    allowed: AllowedValues,
    instead: &'static str,
) -> SupportRow {
    SupportRow {
        kind,
        attributes,
        allowed,
        rule: Rule::Kept,
        instead,
    }
}

/// The kinds of usage that users are charged with.
const USAGE_KINDS: &[&str] = &["cpu", "mem", "io"];

const FALSE: AllowedValues = AllowedValues::Words(&["false", "0", "no"]);

/// What helps with a parameter that is kept.
const SEE_TABLE: &str = "take it out; master/COMPATIBILITY.md says what replaces it";

/// Everything that an object of a supported kind may say and that has no effect.
const TABLE: &[SupportRow] = &[
    row(
        ObjectKind::Queue,
        &["processors"],
        AllowedValues::Words(&["undefined", "none"]),
        "leave it UNDEFINED",
    ),
    kept(
        ObjectKind::ExecHost,
        &["usage_scaling"],
        AllowedValues::Kinds(','),
        "scale cpu, mem and io: what accounting tells is not scaled",
    ),
    kept(
        ObjectKind::Pe,
        &["qsort_args"],
        AllowedValues::None,
        "queue instances are ordered by queue_sort_method and seq_no; no library of the site is asked",
    ),
    row(
        ObjectKind::Pe,
        &["master_forks_slaves", "daemon_forks_slaves"],
        FALSE,
        "leave it FALSE: the limits of each task are those of the slots of its job on the host, whoever starts the tasks",
    ),
    kept(
        ObjectKind::ClusterConf,
        &["loglevel"],
        AllowedValues::Words(&["log_warning"]),
        "GRIDWRIGHT_LOG in the environment of the daemons says what they log",
    ),
    row(
        ObjectKind::ClusterConf,
        &[
            "set_token_cmd",
            "pag_cmd",
            "token_extend_time",
            "shepherd_cmd",
            "libjvm_path",
            "additional_jvm_args",
        ],
        AllowedValues::None,
        "leave it none",
    ),
    row(
        ObjectKind::ClusterConf,
        &[
            "qlogin_command",
            "qlogin_daemon",
            "rlogin_command",
            "rlogin_daemon",
            "rsh_command",
            "rsh_daemon",
        ],
        AllowedValues::Words(&["builtin"]),
        "leave it builtin",
    ),
    row(
        ObjectKind::ClusterConf,
        &["delegated_file_staging"],
        FALSE,
        "leave it false",
    ),
    kept(
        ObjectKind::ClusterConf,
        &["gid_range"],
        AllowedValues::Words(&["65400-65500", "none"]),
        "the processes of jobs are found by other means; groups that mark them are named on each host, with tracking_gids \
         LOW HIGH in etc/launcher.conf of its state directory",
    ),
    row(
        ObjectKind::ClusterConf,
        &["qmaster_params"],
        AllowedValues::Parameters,
        "leave the parameter out",
    ),
    row(
        ObjectKind::ClusterConf,
        &["execd_params"],
        AllowedValues::Parameters,
        "leave the parameter out; what a job needs of an environment it gets with -v, -V or in its script",
    ),
    row(
        ObjectKind::ClusterConf,
        &["reporting_params"],
        AllowedValues::Parameters,
        "leave the parameter out",
    ),
    kept(
        ObjectKind::ClusterConf,
        &["xterm"],
        AllowedValues::Words(&["/usr/bin/xterm"]),
        "there is no qsh: submit a job that starts the terminal",
    ),
    kept(
        ObjectKind::ClusterConf,
        &["execd_spool_dir"],
        AllowedValues::Words(&["/var/lib/gridwright"]),
        "each host keeps its spool in its state directory: gridwright up --dir, join --dir",
    ),
    row(
        ObjectKind::SchedulerConf,
        &["algorithm"],
        AllowedValues::Words(algorithm::NAMES),
        "choose default, fcfs or external",
    ),
    row(
        ObjectKind::SchedulerConf,
        &["halflife_decay_list"],
        AllowedValues::Kinds(':'),
        "name cpu, mem and io alone",
    ),
    row(
        ObjectKind::SchedulerConf,
        &["params"],
        AllowedValues::Parameters,
        "leave it none; gridwright explain JOB says why a job waits",
    ),
];

/// What is wrong with what an object says, or what is kept of it and has no effect.
pub(super) fn check(
    kind: ObjectKind,
    before: Option<&Fields>,
    after: &Fields,
    origin: Origin,
) -> Result<Vec<Diagnostic>, Refusals> {
    let (mut refusals, mut warnings) = (Refusals::new(), Vec::new());
    for (row, key) in rows(kind) {
        let stored = before
            .and_then(|before| before.value(key))
            .map_or_else(Vec::new, |value| idle(row, key, value));
        for value in after.value(key).map_or_else(Vec::new, |value| idle(row, key, value)) {
            match (row.rule_of(&value), stored.contains(&value)) {
                (Rule::Refused, false) if origin == Origin::Hand => refusals.push(refusal(row, key, &value)),
                (Rule::Refused, _) | (Rule::Kept, false) => warnings.push(warning(row, key, &value)),
                (Rule::Kept, true) => {}
            }
        }
    }
    if refusals.is_empty() {
        Ok(warnings)
    } else {
        Err(refusals)
    }
}

/// What the objects of a cell say that has no effect, in the order of the kinds and names; `place`
/// is `NAME: ATTRIBUTE`.
pub fn without_effect(config: &Configuration) -> Vec<Diagnostic> {
    let mut kinds: Vec<ObjectKind> = TABLE.iter().map(|row| row.kind).collect();
    kinds.sort();
    kinds.dedup();
    kinds.into_iter().flat_map(|kind| of_kind(config, kind)).collect()
}

fn of_kind(config: &Configuration, kind: ObjectKind) -> Vec<Diagnostic> {
    let (mut found, mut names) = (Vec::new(), config.object_names(kind));
    match kind.form() {
        Form::Once => names = vec![String::new()],
        // The global one stands in no list.
        Form::OfHost => names.insert(0, HostName::global().to_string()),
        Form::Named | Form::Bare => {}
    }
    for name in names {
        let Some(fields) = config.object_fields(kind, &name) else {
            continue;
        };
        for (row, key) in rows(kind) {
            for value in fields.value(key).map_or_else(Vec::new, |value| idle(row, key, value)) {
                found.push(warning(row, key, &value).at(format!("{kind} {name}").trim_end().to_owned() + ": " + key));
            }
        }
    }
    found
}

/// The rows of a kind, one for each attribute.
fn rows(kind: ObjectKind) -> impl Iterator<Item = (&'static SupportRow, &'static str)> {
    let rows = TABLE.iter().filter(move |row| row.kind == kind);
    rows.flat_map(|row| row.attributes.iter().map(move |key| (row, *key)))
}

/// The parts of a value that have no effect.
fn idle(row: &SupportRow, key: &str, value: &str) -> Vec<String> {
    each(row.kind, value)
        .into_iter()
        .flat_map(|value| part(row, key, &value))
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
            std::iter::once(setting.default)
                .chain(setting.overrides.into_iter().map(|(_, value)| value))
                .collect()
        },
    )
}

/// The parts of one value: a list of parameters has many, all else one.
fn part(row: &SupportRow, key: &str, value: &str) -> Vec<String> {
    let is_supported = match row.allowed {
        AllowedValues::None => is_none(value),
        AllowedValues::Words(words) => words.iter().any(|word| value.eq_ignore_ascii_case(word)),
        AllowedValues::Kinds(between) => return other_kinds(value, between),
        AllowedValues::Parameters => return parameters(key, value),
    };
    if is_supported {
        Vec::new()
    } else {
        vec![value.to_owned()]
    }
}

/// The elements of a list that are about something else than the kinds of usage that are counted.
fn other_kinds(value: &str, between: char) -> Vec<String> {
    let elements = value
        .split([between, ' '])
        .filter(|element| !element.is_empty() && !is_none(element));
    let is_counted = |element: &&str| USAGE_KINDS.contains(&element.split('=').next().unwrap_or(element));
    elements
        .filter(|element| !is_counted(element))
        .map(str::to_owned)
        .collect()
}

fn refusal(row: &SupportRow, key: &str, value: &str) -> Diagnostic {
    let what = format!("denied: {key} {value} of a {} is not supported yet", row.kind);
    Diagnostic::new(Code::NotSupported, what)
        .at(key)
        .fix(row.instead_of(value))
}

fn warning(row: &SupportRow, key: &str, value: &str) -> Diagnostic {
    let what = format!("warning: \"{key}\" is stored and has no effect: {value}");
    Diagnostic::new(Code::NotSupported, what)
        .at(key)
        .fix(row.instead_of(value))
}

/// The parameters of a list that are neither supported nor at their default.
fn parameters(key: &str, value: &str) -> Vec<String> {
    let Ok(parameters) = value.parse::<Parameters>() else {
        return Vec::new();
    };
    let is_default = |name: &str, value: &str| {
        let alone = format!("{name}={value}").parse();
        alone.is_ok_and(|alone| is_at_default(key, alone))
    };
    let is_served = |name: &str| parameter_class(key, name) == Some(ParameterClass::Served);
    let idle = parameters
        .iter()
        .filter(|(name, value)| !is_served(name) && !is_default(name, value));
    idle.map(|(name, value)| format!("{name}={value}")).collect()
}

fn is_off(value: &str) -> bool {
    ["0", "false", "no"].iter().any(|off| off.eq_ignore_ascii_case(value))
}

/// Whether a list of parameters says what holds anyway. A parameter that is not read at all is
/// never at its default.
fn is_at_default(key: &str, list: Parameters) -> bool {
    let is_unread = |name: &str| parameter_class(key, name) == Some(ParameterClass::Unread);
    if list.iter().any(|(name, value)| !is_off(value) && is_unread(name)) {
        return false;
    }
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
        _ => list.iter().all(|(_, value)| is_off(value)),
    }
}
