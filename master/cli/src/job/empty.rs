//! Lists without a single part, as a shell makes them of an empty variable (`qsub -q "$QUEUE"`,
//! `qdel $JOB ""`). 8.1.9 refuses them, and so do we: nobody asks for no queue at all, and a
//! deletion of nothing is a mistake to be told.

use crate::exit;
use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};

/// What 8.1.9 calls the lists of options.
const LISTS: [(&str, &str); 10] = [
    ("-q", "queue"),
    ("-masterq", "queue"),
    ("-M", "mail"),
    ("-m", "mail options"),
    ("-o", "stdout path"),
    ("-e", "path"),
    ("-i", "path"),
    ("-S", "shell"),
    ("-hold_jid", "jid_hold"),
    ("-hold_jid_ad", "jid_hold_ad"),
];

/// Whether a list has no part.
pub fn is_empty(list: &str) -> bool {
    list.split(',').all(str::is_empty)
}

/// Refuses an option of a job whose list has no part. `-l` may have none.
///
/// # Errors
/// In the words of 8.1.9, with exit code 7.
pub fn refuse_option(command: &str, option: &str, value: &str) -> Result<(), Fail> {
    if !is_empty(value) {
        return Ok(());
    }
    let called = LISTS.iter().find(|(name, _)| *name == option).map(|(_, called)| called);
    let what = match (option, called) {
        ("-v", _) => format!("{command}: Wrong variable list format -v \"{value}\" or environment variable not set"),
        ("-ac" | "-dc" | "-sc", _) => format!("{command}: Wrong context list format {option} \"{value}\""),
        (_, Some(called)) => format!("{command}: Wrong {called} list format \"{value}\" specified to {option} option"),
        (_, None) => return Ok(()),
    };
    Err(Fail::bad_value(what).fix(format!("name at least one, or leave {option} out")))
}

/// Refuses jobs, or users of `-u`, that are given and are nobody.
///
/// # Errors
/// In the words of 8.1.9, with exit code 1 of `qdel` and 7 of the others.
pub fn refuse_selection(command: &str, words: &[String], users: Option<&str>) -> Result<(), Fail> {
    let no_job = words.first().filter(|_| words.iter().all(|word| is_empty(word)));
    let no_user = users.filter(|users| is_empty(users));
    let what = match (command, no_job, no_user) {
        (_, None, None) => return Ok(()),
        ("qdel", _, _) => "ERROR! no option argument".to_owned(),
        (_, Some(word), _) => format!("qalter: Wrong job id list format \"{word}\" specified"),
        (_, None, Some(users)) => format!("qalter: Wrong user list format \"{users}\" specified to -u option"),
    };
    let refusal = Diagnostic::new(Code::BadValue, what).why("a list is given that names nothing");
    let refusal = refusal.fix("a variable of the shell may be empty; name a job, or users with -u");
    Err(Fail::new(
        if command == "qdel" {
            exit::FAILED
        } else {
            exit::BAD_VALUE
        },
        refusal,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_a_part_is_refused_in_the_words_of_8_1_9() {
        let cases = [
            ("-q", "", "qsub: Wrong queue list format \"\" specified to -q option"),
            (
                "-masterq",
                ",",
                "qsub: Wrong queue list format \",\" specified to -masterq option",
            ),
            (
                "-m",
                "",
                "qsub: Wrong mail options list format \"\" specified to -m option",
            ),
            (
                "-o",
                "",
                "qsub: Wrong stdout path list format \"\" specified to -o option",
            ),
            (
                "-hold_jid_ad",
                "",
                "qsub: Wrong jid_hold_ad list format \"\" specified to -hold_jid_ad option",
            ),
            (
                "-v",
                "",
                "qsub: Wrong variable list format -v \"\" or environment variable not set",
            ),
            ("-ac", "", "qsub: Wrong context list format -ac \"\""),
        ];
        for (option, value, expected) in cases {
            let refused = refuse_option("qsub", option, value).expect_err(option);
            assert_eq!(
                (refused.diagnostic.what.as_str(), refused.exit),
                (expected, exit::BAD_VALUE)
            );
        }
        for (option, value) in [
            ("-l", ""),
            ("-P", ""),
            ("-q", "all.q"),
            ("-q", ",all.q"),
            ("-hold_jid", " "),
        ] {
            assert!(refuse_option("qsub", option, value).is_ok(), "{option} {value:?}");
        }
    }

    #[test]
    fn jobs_and_users_that_are_nobody_are_refused() {
        let words = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let refused = |command, jobs: &[String], users| {
            let refused = refuse_selection(command, jobs, users).expect_err(command);
            (refused.diagnostic.what, refused.exit)
        };
        let nothing = || ("ERROR! no option argument".to_owned(), exit::FAILED);
        assert_eq!(refused("qdel", &words(""), None), nothing());
        assert_eq!(refused("qdel", &[], Some(",")), nothing());
        let no_job = "qalter: Wrong job id list format \",\" specified";
        assert_eq!(
            refused("qhold", &words(","), None),
            (no_job.to_owned(), exit::BAD_VALUE)
        );
        let no_user = "qalter: Wrong user list format \"\" specified to -u option";
        assert_eq!(refused("qalter", &[], Some("")), (no_user.to_owned(), exit::BAD_VALUE));
        assert!(refuse_selection("qdel", &words("1 "), None).is_ok());
        assert!(refuse_selection("qdel", &[], Some("u1")).is_ok());
    }
}
