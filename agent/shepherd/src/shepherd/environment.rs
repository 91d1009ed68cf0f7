//! The environment of a task's processes: the document's, what only this host knows, and for others
//! than the owner a small part.

use super::Context;
use crate::account::Identity;
use proto::launch::{TASK_VARIABLES, TmpDir};
use std::path::Path;

/// The search path of what root runs.
pub const ROOT_PATH: &str = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";

/// The search path where a document has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/bin:/usr/bin";

/// What a procedure of another user is told about the job: names, numbers and places that it only
/// reads. The job's owner chooses some of the values, so no variable is here that a shell, a linker
/// or a tool acts upon by itself: `TMPDIR` is missing for that reason, and because it is the
/// owner's.
const TOLD: [&[&str]; 2] = [
    &TASK_VARIABLES,
    &[
        "PE",
        "SGE_O_HOME",
        "SGE_O_HOST",
        "SGE_O_LOGNAME",
        "SGE_O_MAIL",
        "SGE_O_PATH",
        "SGE_O_SHELL",
        "SGE_O_TERM",
        "SGE_O_TZ",
        "SGE_O_WORKDIR",
    ],
];

/// The exit status of the job, for the procedures behind it.
const JOB_STATUS: &str = "SGE_JOBEXIT_STAT";

/// What a sensor of root is told by the agent: which cell and host it serves.
const TOLD_TO_SENSORS: [&str; 3] = ["HOST", "SGE_ARCH", "SGE_CELL"];

/// Where a process really stands, which is known once all is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The working directory.
    pub folder: String,
    /// Standard input.
    pub stdin: String,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// The environment of a process of the task.
pub fn process_environment(context: &Context, identity: &Identity, places: &Places) -> Vec<String> {
    let is_owner = identity.uid == context.document.account.uid;
    let mut environment = if is_owner {
        owners(context, identity)
    } else {
        others(context, identity)
    };
    let spool = context.folder.join(context.dir.file(crate::task_dir::spool::ACTIVE));
    set(&mut environment, "SGE_JOB_SPOOL_DIR", &spool.to_string_lossy());
    if let Some(status) = context.job_status.get() {
        set(&mut environment, JOB_STATUS, &status.to_string());
    }
    // Whatever -V brought along is about another job.
    for (name, value) in [
        ("SGE_CWD_PATH", &places.folder),
        ("SGE_STDIN_PATH", &places.stdin),
        ("SGE_STDOUT_PATH", &places.stdout),
        ("SGE_STDERR_PATH", &places.stderr),
    ] {
        set(&mut environment, name, value);
    }
    // A job that was submitted by another one with -V brought that one's along.
    set(&mut environment, super::MARKER, &context.document.key.to_string());
    environment
}

fn owners(context: &Context, identity: &Identity) -> Vec<String> {
    let mut environment = given(context);
    for (name, value) in account(identity) {
        if variable(&environment, name).is_none() {
            environment.push(format!("{name}={value}"));
        }
    }
    environment
}

/// The document's environment with what procedures of root have added.
pub fn given(context: &Context) -> Vec<String> {
    let mut environment = context.document.environment.clone();
    for (name, value) in context.additions.borrow().iter() {
        set(&mut environment, name, value);
    }
    environment
}

/// For a procedure of root or of an account of the site: nothing by which the owner could turn it
/// against its user.
fn others(context: &Context, identity: &Identity) -> Vec<String> {
    let document = &context.document;
    let mut environment = told(&document.environment, &TOLD.concat());
    let task = context.folder.join(context.dir.file(""));
    let shown = |path: &Path| path.to_string_lossy().trim_end_matches('/').to_owned();
    for (name, value) in account(identity) {
        set(&mut environment, name, value);
    }
    set(&mut environment, "SGE_ROOT", &shown(&context.folder));
    set(&mut environment, "GRIDWRIGHT_DIR", &shown(&context.folder));
    if let Some(script) = &context.script {
        set(&mut environment, "JOB_SCRIPT", &script.path);
    }
    if document.host_file.is_some() {
        set(&mut environment, "PE_HOSTFILE", &shown(&task.join("pe_hostfile")));
    }
    environment.push(if identity.uid == 0 {
        ROOT_PATH.to_owned()
    } else {
        format!("PATH={DEFAULT_PATH}")
    });
    environment
}

/// The environment of a load sensor of root: its agent is trusted with names alone.
pub fn of_root_sensor(given: &[String], folder: &Path) -> Vec<String> {
    let mut environment = told(given, &TOLD_TO_SENSORS);
    let root = folder.to_string_lossy();
    environment.extend([
        format!("SGE_ROOT={root}"),
        format!("SGE_JOB_SPOOL_DIR={root}/{}", crate::task_dir::TASKS),
        "LC_ALL=C".to_owned(),
        ROOT_PATH.to_owned(),
    ]);
    environment
}

/// The search path of commands that a document names without a slash.
pub fn search_path(environment: &[String]) -> &str {
    variable(environment, "PATH").unwrap_or(DEFAULT_PATH)
}

/// Lets the environment name the temporary directory that was made, where it is not the planned
/// one.
pub fn name_directory(environment: &mut [String], planned: &TmpDir, made: &TmpDir) {
    if planned.name == made.name {
        return;
    }
    let shown = |directory: &TmpDir| format!("{}/{}", directory.base, directory.name);
    let (planned, made) = (shown(planned), shown(made));
    for entry in environment {
        let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
        if ["TMPDIR", "TMP", "PATH"].contains(&name) && value.starts_with(&planned) {
            *entry = format!("{name}={made}{}", &value[planned.len()..]);
        }
    }
}

fn account(identity: &Identity) -> [(&'static str, &str); 4] {
    let Identity { name, home, shell, .. } = identity;
    [("HOME", home), ("SHELL", shell), ("USER", name), ("LOGNAME", name)]
}

fn told(given: &[String], names: &[&str]) -> Vec<String> {
    let is_told = |entry: &&String| entry.split_once('=').is_some_and(|(name, _)| names.contains(&name));
    given.iter().filter(is_told).cloned().collect()
}

/// The value of a variable.
pub fn variable<'a>(environment: &'a [String], name: &str) -> Option<&'a str> {
    environment
        .iter()
        .find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
}

fn set(environment: &mut Vec<String>, name: &str, value: &str) {
    environment.retain(|entry| entry.split('=').next() != Some(name));
    environment.push(format!("{name}={value}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sensor_of_root_is_told_names_and_nothing_that_loads_code_or_leads_elsewhere() {
        let given = [
            "LD_PRELOAD=/tmp/x.so",
            "BASH_ENV=/tmp/x",
            "SGE_ROOT=/tmp",
            "HOST=node1",
            "GIT_SSH=/tmp/x",
        ];
        let made = of_root_sensor(&given.map(str::to_owned), Path::new("/cell"));
        let expected = [
            "HOST=node1",
            "SGE_ROOT=/cell",
            "SGE_JOB_SPOOL_DIR=/cell/tasks",
            "LC_ALL=C",
            ROOT_PATH,
        ];
        assert_eq!(made, expected);
    }

    #[test]
    fn a_procedure_of_another_user_is_told_these_variables_and_no_others() {
        let mut names = TOLD.concat();
        names.sort_unstable();
        let expected = [
            "ARC",
            "ENVIRONMENT",
            "HOSTNAME",
            "JOB_ID",
            "JOB_NAME",
            "JOB_SCRIPT",
            "NHOSTS",
            "NQUEUES",
            "NSLOTS",
            "PE",
            "QUEUE",
            "REQNAME",
            "REQUEST",
            "RESTARTED",
            "SGE_ACCOUNT",
            "SGE_ARCH",
            "SGE_CELL",
            "SGE_O_HOME",
            "SGE_O_HOST",
            "SGE_O_LOGNAME",
            "SGE_O_MAIL",
            "SGE_O_PATH",
            "SGE_O_SHELL",
            "SGE_O_TERM",
            "SGE_O_TZ",
            "SGE_O_WORKDIR",
            "SGE_TASK_FIRST",
            "SGE_TASK_ID",
            "SGE_TASK_LAST",
            "SGE_TASK_STEPSIZE",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_variable_is_set_once() {
        let mut environment = ["A=1", "AB=2", "A=3"].map(str::to_owned).to_vec();
        set(&mut environment, "A", "4");
        assert_eq!(environment, ["AB=2", "A=4"]);
    }
}
