//! Job templates: the attributes that a program sets, and the job that they describe.

use crate::error::{DrmaaError, Errno};
use crate::moment;
use cli::library::JobTemplate;
use jiff::Zoned;
use proto::id::HostName;
use proto::job::HostPath;
use proto::request::TaskRange;
use std::collections::BTreeMap;

/// The attributes with one value, in the order in which 8.1.9 lists them.
pub const SCALARS: [&str; 13] = [
    BLOCK_EMAIL,
    ERROR_PATH,
    INPUT_PATH,
    JOB_CATEGORY,
    JOB_NAME,
    JOIN_FILES,
    JS_STATE,
    NATIVE,
    OUTPUT_PATH,
    REMOTE_COMMAND,
    START_TIME,
    SUBMIT_AS_EUID,
    WD,
];

/// The attributes with a list of values.
pub const VECTORS: [&str; 3] = [ARGV, ENV, EMAIL];

const BLOCK_EMAIL: &str = "drmaa_block_email";
const ERROR_PATH: &str = "drmaa_error_path";
const INPUT_PATH: &str = "drmaa_input_path";
const JOB_CATEGORY: &str = "drmaa_job_category";
const JOB_NAME: &str = "drmaa_job_name";
const JOIN_FILES: &str = "drmaa_join_files";
const JS_STATE: &str = "drmaa_js_state";
const NATIVE: &str = "drmaa_native_specification";
const OUTPUT_PATH: &str = "drmaa_output_path";
const REMOTE_COMMAND: &str = "drmaa_remote_command";
const START_TIME: &str = "drmaa_start_time";
const SUBMIT_AS_EUID: &str = "drmaa_submit_as_euid";
const WD: &str = "drmaa_wd";
const ARGV: &str = "drmaa_v_argv";
const ENV: &str = "drmaa_v_env";
const EMAIL: &str = "drmaa_v_email";

const ACTIVE: &str = "drmaa_active";
const HOLD: &str = "drmaa_hold";

/// Placeholders of the binding, and the variables of the agent that mean the same.
const HOME_PLACEHOLDER: &str = "$drmaa_hd_ph$";
const DIRECTORY_PLACEHOLDER: &str = "$drmaa_wd_ph$";
const INDEX_PLACEHOLDER: &str = "$drmaa_incr_ph$";
const HOME: &str = "$HOME";
const INDEX: &str = "$TASK_ID";

/// The attributes that are set.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    scalars: BTreeMap<&'static str, String>,
    vectors: BTreeMap<&'static str, Vec<String>>,
}

impl Attributes {
    /// Sets an attribute.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is not one; `AttributeValue` for a state or a yes-no that
    /// is none. Other values are looked at when a job is submitted.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), DrmaaError> {
        let name = known(&SCALARS, name).ok_or_else(|| DrmaaError::silent(Errno::InvalidArgument))?;
        check(name, value)?;
        self.scalars.insert(name, value.to_owned());
        Ok(())
    }

    /// Returns the value of an attribute.
    ///
    /// # Errors
    /// `AttributeValue` if it is not set, or not an attribute.
    pub fn value(&self, name: &str) -> Result<&str, DrmaaError> {
        let value = self.scalars.get(name).map(String::as_str);
        value.ok_or_else(|| Errno::AttributeValue.into())
    }

    /// Sets an attribute with a list of values.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is not one.
    pub fn set_vector(&mut self, name: &str, values: Vec<String>) -> Result<(), DrmaaError> {
        let name = known(&VECTORS, name).ok_or_else(|| DrmaaError::silent(Errno::InvalidArgument))?;
        if name == ENV
            && values
                .iter()
                .any(|pair| pair.split_once('=').is_none_or(|(name, _)| name.is_empty()))
        {
            return Err(DrmaaError::new(
                Errno::AttributeFormat,
                "attribute \"drmaa_v_env\" must hold values of the form NAME=VALUE",
            ));
        }
        self.vectors.insert(name, values);
        Ok(())
    }

    /// Returns the values of an attribute.
    ///
    /// # Errors
    /// `AttributeValue` if it is not set, or not an attribute.
    pub fn vector(&self, name: &str) -> Result<&[String], DrmaaError> {
        let values = self.vectors.get(name).map(Vec::as_slice);
        values.ok_or_else(|| Errno::AttributeValue.into())
    }

    /// The job that these attributes describe, or an array of such jobs.
    ///
    /// # Errors
    /// `Denied` without a command and for a start time that is none; `InvalidArgument` for a path
    /// without a colon.
    pub fn job(&self, tasks: Option<TaskRange>) -> Result<JobTemplate, DrmaaError> {
        let scalar = |name: &str| self.scalars.get(name).cloned();
        let vector = |name: &str| self.vectors.get(name).cloned().unwrap_or_default();
        let command = scalar(REMOTE_COMMAND).ok_or_else(|| {
            let text = format!("job template must have \"{REMOTE_COMMAND}\" attribute set");
            DrmaaError::new(Errno::Denied, text)
        })?;
        let directory = scalar(WD).map(|directory| substituted(&directory, HOME));
        let here = directory.clone().unwrap_or_else(|| HOME.to_owned());
        let start = scalar(START_TIME).map(|text| moment::parse(&text, &Zoned::now()));
        Ok(JobTemplate {
            command,
            args: vector(ARGV),
            category: scalar(JOB_CATEGORY),
            native: scalar(NATIVE),
            name: scalar(JOB_NAME),
            directory,
            stdin: self.path(INPUT_PATH, &here)?,
            stdout: self.path(OUTPUT_PATH, &here)?,
            stderr: self.path(ERROR_PATH, &here)?,
            join: scalar(JOIN_FILES).map(|value| value == "y"),
            environment: vector(ENV).iter().filter_map(|pair| variable(pair)).collect(),
            mail_to: self.vectors.get(EMAIL).cloned(),
            blocks_mail: scalar(BLOCK_EMAIL).is_some_and(|value| value == "1"),
            start_after: start.transpose()?,
            is_held: scalar(JS_STATE).is_some_and(|value| value == HOLD),
            tasks,
            context: Vec::new(),
        })
    }

    /// A path of the form `[HOST]:PATH`.
    fn path(&self, name: &str, here: &str) -> Result<Option<HostPath>, DrmaaError> {
        let Some(value) = self.scalars.get(name) else {
            return Ok(None);
        };
        let Some((host, path)) = value.split_once(':').filter(|(host, _)| !host.contains('/')) else {
            let text = format!("The \"{name}\" attribute must begin with a colon, ':'");
            return Err(DrmaaError::new(Errno::InvalidArgument, text));
        };
        Ok(Some(HostPath {
            host: (!host.is_empty()).then(|| HostName::new(host)),
            path: substituted(path, here),
        }))
    }
}

/// Replaces the placeholders; those of home and directory only at the begin, as the binding says.
fn substituted(text: &str, here: &str) -> String {
    let at_begin = [(HOME_PLACEHOLDER, HOME), (DIRECTORY_PLACEHOLDER, here)];
    let begun = at_begin
        .iter()
        .find_map(|(placeholder, value)| Some(format!("{value}{}", text.strip_prefix(placeholder)?)));
    begun
        .unwrap_or_else(|| text.to_owned())
        .replace(INDEX_PLACEHOLDER, INDEX)
}

/// A variable; its value is everything behind the first `=`.
fn variable(pair: &str) -> Option<(String, String)> {
    let (name, value) = pair.split_once('=')?;
    Some((name.to_owned(), value.to_owned()))
}

fn known<const N: usize>(names: &[&'static str; N], name: &str) -> Option<&'static str> {
    names.iter().find(|known| **known == name).copied()
}

fn check(name: &str, value: &str) -> Result<(), DrmaaError> {
    let allowed = match name {
        JS_STATE => [ACTIVE, HOLD],
        JOIN_FILES => ["y", "n"],
        _ => return Ok(()),
    };
    if allowed.contains(&value) {
        return Ok(());
    }
    let text = format!(
        "attribute \"{name}\" must be either \"{}\" or \"{}\"\n",
        allowed[0], allowed[1]
    );
    Err(DrmaaError::new(Errno::AttributeValue, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(scalars: &[(&str, &str)]) -> Attributes {
        let mut attributes = Attributes::default();
        for (name, value) in [(REMOTE_COMMAND, "/bin/true")].iter().chain(scalars) {
            attributes.set(name, value).unwrap();
        }
        attributes
    }

    #[test]
    fn names_and_two_values_are_checked_when_they_are_set() {
        let mut attributes = Attributes::default();
        for (name, value, errno) in [
            ("drmaa_nosuch", "x", Errno::InvalidArgument),
            ("drmaa_transfer_files", "ioe", Errno::InvalidArgument),
            ("drmaa_wct_hlimit", "1", Errno::InvalidArgument),
            (JS_STATE, "nonsense", Errno::AttributeValue),
            (JOIN_FILES, "maybe", Errno::AttributeValue),
        ] {
            assert_eq!(attributes.set(name, value).unwrap_err().errno, errno, "{name}");
        }
        assert_eq!(
            attributes.set_vector("drmaa_v_x", vec![]).unwrap_err().errno,
            Errno::InvalidArgument
        );
        assert_eq!(attributes.value(WD).unwrap_err().errno, Errno::AttributeValue);
        assert_eq!(
            attributes.vector("drmaa_nosuch").unwrap_err().errno,
            Errno::AttributeValue
        );
        assert_eq!(attributes.set(WD, "rel/dir"), Ok(()));
        assert_eq!(attributes.value(WD), Ok("rel/dir"));
    }

    #[test]
    fn a_submission_checks_command_paths_and_time() {
        for (template, errno, text) in [
            (
                Attributes::default(),
                Errno::Denied,
                "job template must have \"drmaa_remote_command\" attribute set",
            ),
            (
                template(&[(OUTPUT_PATH, "/tmp/x")]),
                Errno::InvalidArgument,
                "The \"drmaa_output_path\" attribute must begin with a colon, ':'",
            ),
            (
                template(&[(START_TIME, "x")]),
                Errno::Denied,
                "Error parsing DRMAA date string",
            ),
        ] {
            assert_eq!(template.job(None).unwrap_err(), DrmaaError::new(errno, text));
        }
    }

    #[test]
    fn placeholders_become_variables_of_the_agent() {
        let job = template(&[
            (WD, "$drmaa_hd_ph$/a"),
            (OUTPUT_PATH, ":$drmaa_wd_ph$/o.$drmaa_incr_ph$"),
            (ERROR_PATH, "n1:$drmaa_hd_ph$/e"),
            (INPUT_PATH, ":/x$drmaa_hd_ph$"),
        ])
        .job(None)
        .unwrap();
        assert_eq!(job.directory.as_deref(), Some("$HOME/a"));
        let path = |path: Option<HostPath>| path.map(|path| (path.host.map(|host| host.to_string()), path.path));
        assert_eq!(path(job.stdout), Some((None, "$HOME/a/o.$TASK_ID".to_owned())));
        assert_eq!(path(job.stderr), Some((Some("n1".to_owned()), "$HOME/e".to_owned())));
        assert_eq!(path(job.stdin), Some((None, "/x$drmaa_hd_ph$".to_owned())));
    }

    #[test]
    fn a_variable_keeps_all_of_its_value() {
        let mut attributes = template(&[]);
        let wrong = attributes.set_vector(ENV, vec!["noequals".to_owned()]);
        assert_eq!(wrong.unwrap_err().errno, Errno::AttributeFormat);
        attributes
            .set_vector(ENV, vec!["B=x=y".to_owned(), "C=".to_owned()])
            .unwrap();
        let environment = attributes.job(None).unwrap().environment;
        assert_eq!(
            environment,
            [("B".to_owned(), "x=y".to_owned()), ("C".to_owned(), String::new())]
        );
    }
}
