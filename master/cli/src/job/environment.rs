//! Variables of the submitting environment that travel with a job.

use proto::text;

/// Variables that say what one job was granted, where the job has it at all.
const GRANTS: [&str; 7] = [
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "PE",
    "PE_HOSTFILE",
    "ROCR_VISIBLE_DEVICES",
    "SGE_RSH_COMMAND",
];

/// How further names of grants begin.
const GRANT_PREFIXES: [&str; 3] = ["SGE_CKPT_", "SGE_HGR_", "SGE_STARTER_"];

/// The variable that every process of a task has.
const TASK: &str = "GRIDWRIGHT_TASK_KEY";

/// Everything that `-V` exports, byte for byte: also functions that bash exports, which `module`
/// and its like are. In a job, the variables of its own grants stay behind.
pub fn exported() -> impl Iterator<Item = (String, String)> {
    let all = std::env::vars_os().map(|(name, value)| (text::from_os(&name), text::from_os(&value)));
    of_submission(all, value(TASK).is_some())
}

fn of_submission(
    all: impl Iterator<Item = (String, String)>,
    is_in_job: bool,
) -> impl Iterator<Item = (String, String)> {
    all.filter(move |(name, _)| !(is_in_job && is_grant(name)))
}

fn is_grant(name: &str) -> bool {
    GRANTS.contains(&name) || GRANT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The value of a variable of this environment.
pub fn value(name: &str) -> Option<String> {
    std::env::var_os(text::to_os(name)).map(|value| text::from_os(&value))
}

/// What `-v` names; a name without a value takes it from the environment, empty where that has
/// none.
pub fn named(variables: &[(String, Option<String>)]) -> impl Iterator<Item = (String, String)> + '_ {
    let value_of = |name: &str| value(name).unwrap_or_default();
    variables
        .iter()
        .map(move |(name, given)| (name.clone(), given.clone().unwrap_or_else(|| value_of(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_of_a_job_gets_none_of_what_the_other_was_granted() {
        let grants = [
            "PE",
            "PE_HOSTFILE",
            "SGE_RSH_COMMAND",
            "SGE_CKPT_ENV",
            "SGE_CKPT_DIR",
            "SGE_STARTER_SHELL_PATH",
            "SGE_STARTER_USE_LOGIN_SHELL",
            "SGE_HGR_gpu",
            "CUDA_VISIBLE_DEVICES",
        ];
        let others = ["PEER", "SGE_HGROUP", "SGE_O_HOME", "PATH"];
        let all = || {
            grants
                .iter()
                .chain(&others)
                .map(|name| ((*name).to_owned(), "x".to_owned()))
        };
        let names = |is_in_job| {
            of_submission(all(), is_in_job)
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(true), others);
        assert_eq!(names(false).len(), grants.len() + others.len());
    }
}
