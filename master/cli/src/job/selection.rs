//! Jobs and tasks on a command line: `7`, `7.1-3`, `7 -t 1-3`, names, patterns, lists with commas.

use super::empty;
use crate::args::CommandDef;
use crate::exit;
use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};
use proto::request::{RangeError, TaskRange};
use proto::wire::client::{JobSelection, JobTarget};

/// Joins each `-t RANGE` to the job in front of it. The value of an option is not a job, and words
/// behind a lone `-` are not options.
///
/// # Errors
/// A `-t` without a job in front of it, or without a range.
pub fn join_task_options(command: &CommandDef, words: Vec<String>) -> Result<Vec<String>, Fail> {
    let mut joined: Vec<String> = Vec::new();
    let mut follows_job = false;
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "-" {
            joined.push(word);
            joined.extend(words.by_ref());
        } else if word == "-t" {
            let range = words.next().unwrap_or_default();
            let job = joined
                .last_mut()
                .filter(|_| follows_job)
                .ok_or_else(|| lonely(&range))?;
            job.push('.');
            job.push_str(&one_range(range)?);
            follows_job = false;
        } else {
            let values = command.values_behind(&word);
            follows_job = !word.starts_with('-');
            joined.push(word);
            joined.extend(words.by_ref().take(values));
        }
    }
    Ok(joined)
}

/// Turns a list with commas into one range, so that a part of it is not another job.
fn one_range(text: String) -> Result<String, Fail> {
    if !text.contains(',') {
        return Ok(text);
    }
    let range = TaskRange::parse(&text).map_err(|error| bad_tasks("", &error))?;
    Ok(range.to_string())
}

/// A refusal of tasks that are not one range; `prefix` stands before the words of 8.1.9.
fn bad_tasks(prefix: &str, error: &RangeError) -> Fail {
    let refusal = error.diagnostic();
    let fix = match error {
        RangeError::SeveralRanges => "name the job once for each range: JOB.1-3,JOB.5".to_owned(),
        RangeError::NotANumber(_)
        | RangeError::Trailer { .. }
        | RangeError::Step
        | RangeError::ZeroSlots
        | RangeError::ZeroTask
        | RangeError::TooLarge(_)
        | RangeError::TooManyTasks
        | RangeError::TooManyPieces => refusal.fix,
    };
    Fail::bad_value(format!("{prefix}{}", refusal.what)).fix(fix)
}

fn lonely(range: &str) -> Fail {
    let what = format!("found lonely '-t {range}' option (The -t option needs a leading job name).");
    Fail::new(
        exit::USAGE,
        Diagnostic::new(Code::BadSyntax, what).fix("write JOB -t RANGE or JOB.RANGE"),
    )
}

/// The selection that words and `-u` lists name.
///
/// # Errors
/// A task range that does not parse; words or lists that name nothing.
pub fn selection(command: &str, words: &[String], users: Option<&str>) -> Result<JobSelection, Fail> {
    empty::refuse_selection(command, words, users)?;
    let parts = words
        .iter()
        .flat_map(|word| word.split(','))
        .filter(|part| !part.is_empty());
    let targets = parts.map(|part| target(command, part)).collect::<Result<Vec<_>, _>>()?;
    let users = users.map(super::request::list).unwrap_or_default();
    Ok(JobSelection {
        targets,
        users,
        tasks: Vec::new(),
    })
}

fn target(command: &str, text: &str) -> Result<JobTarget, Fail> {
    let numbered = text
        .split_once('.')
        .filter(|(job, _)| !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit()));
    let Some((job, tasks)) = numbered else {
        return Ok(JobTarget {
            job: text.to_owned(),
            tasks: Vec::new(),
        });
    };
    let range = TaskRange::parse(tasks).map_err(|error| bad_tasks(&format!("{command}: "), &error))?;
    Ok(JobTarget {
        job: job.to_owned(),
        tasks: vec![range],
    })
}

#[cfg(test)]
mod tests {
    use super::{CommandDef, Fail, selection};
    use crate::args::{Operands, ValueCount, flag, with};

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    const COMMAND: CommandDef = CommandDef {
        name: "qalter",
        summary: "",
        operand_placeholder: "",
        operands: Operands::Anywhere,
        options: &[
            with("-A", ValueCount::One, "", ""),
            with("-pe", ValueCount::Two, "", ""),
            flag("-notify", ""),
        ],
        exit_codes: "",
    };

    fn join_task_options(words: Vec<String>) -> Result<Vec<String>, Fail> {
        super::join_task_options(&COMMAND, words)
    }

    #[test]
    fn only_a_job_takes_the_tasks_behind_a_t() {
        for line in [
            "-A acc -t 2 7",
            "7 -A acc -t 2",
            "-pe smp 2 -t 1 7",
            "7 -notify -t 2",
            "7 -t 1 -t 2",
        ] {
            let fail = join_task_options(words(line)).unwrap_err();
            assert_eq!(fail.exit, 2, "{line}");
            assert!(
                fail.diagnostic.what.starts_with("found lonely '-t"),
                "{line}: {}",
                fail.diagnostic.what
            );
        }
        for (line, joined) in [
            ("7 -t 2 -A acc", "7.2 -A acc"),
            ("-A -t 7", "-A -t 7"),
            ("7 - x -t 2", "7 - x -t 2"),
            ("-pe smp 2 7 -t 1-3", "-pe smp 2 7.1-3"),
        ] {
            assert_eq!(join_task_options(words(line)).unwrap(), words(joined), "{line}");
        }
    }

    #[test]
    fn a_list_behind_a_t_is_one_range_or_is_refused() {
        for (line, tasks) in [
            ("5 -t 1:3", "1-3:1"),
            ("5 -t 1,3,5", "1-5:2"),
            ("5.1:9:4", "1-9:4"),
            ("5 -t 3:1", "1-3:1"),
        ] {
            let selected = selection("qdel", &join_task_options(words(line)).unwrap(), None).unwrap();
            let shown: Vec<_> = selected
                .targets
                .iter()
                .map(|t| (t.job.as_str(), t.tasks[0].to_string()))
                .collect();
            assert_eq!(shown, [("5", tasks.to_owned())], "{line}");
        }
        let fail = join_task_options(words("5 -t 1-3,5")).unwrap_err();
        assert_eq!(
            (fail.exit, &*fail.diagnostic.what),
            (7, "-t option only allows one range specification")
        );
        assert_eq!(fail.diagnostic.fix, "name the job once for each range: JOB.1-3,JOB.5");
        assert!(
            !selection("qdel", &words("5.x"), None)
                .unwrap_err()
                .diagnostic
                .fix
                .is_empty()
        );
    }

    #[test]
    fn tasks_stand_behind_a_dot_or_a_t() {
        let joined = join_task_options(words("12.1,12.5-6 name* 7 -t 2 run.sh")).unwrap();
        let selected = selection("qdel", &joined, None).unwrap();
        let show: Vec<_> = selected
            .targets
            .iter()
            .map(|target| (target.job.as_str(), target.tasks.len()))
            .collect();
        assert_eq!(show, [("12", 1), ("12", 1), ("name*", 0), ("7", 1), ("run.sh", 0)]);
        assert_eq!(join_task_options(words("-t 3 180")).unwrap_err().exit, 2);
    }
}
