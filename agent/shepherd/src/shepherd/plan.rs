//! From a start to a program: which file is executed with which arguments.

use super::environment::Places;
use crate::account::{self, Identity};
use crate::sys::Program;
use crate::trusted::TrustedFile;
use proto::launch::{FailedCodes, Failure, SessionShell, Start, StartMode};
use proto::text;
use std::ffi::CString;

/// Where the script of a task is, as its user sees it.
#[derive(Clone, Debug)]
pub struct ScriptPlace {
    /// What becomes `$0` for the script.
    pub path: String,
    /// The beginning of the script, at least its first line.
    pub head: Vec<u8>,
}

/// A program before it is made ready for execve: the files it may be, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The files that are tried.
    pub paths: Vec<String>,
    /// The arguments, the first being the name the program sees.
    pub argv: Vec<String>,
    /// What a person knows the program as.
    pub what: String,
    /// Whether standard input is the script.
    pub script_on_stdin: bool,
}

/// What is executed for a start. `account_shell` is the shell of the task's account.
///
/// # Errors
/// [`FailedCodes::NO_SHELL`] for a `#!` line that names no program, such as one that ends in CR LF.
pub fn invocation(
    start: &Start,
    script: Option<&ScriptPlace>,
    path_variable: &str,
    account_shell: &str,
) -> Result<Invocation, Failure> {
    match start {
        Start::Script {
            shell,
            login,
            mode,
            args,
        } => {
            let script =
                script.ok_or_else(|| no_shell("the launch document has a script start but no script".into()))?;
            script_invocation(shell, *login, *mode, args, script)
        }
        Start::Command { shell, login, argv } => {
            let args = vec!["-c".to_owned(), argv.join(" ")];
            Ok(by_shell(shell, *login, args))
        }
        Start::Starter { starter, stdin, args } => {
            let script =
                script.ok_or_else(|| no_shell("the launch document has a script start but no script".into()))?;
            Ok(by_starter(starter, *stdin, args, script))
        }
        Start::Connected {
            shell: Some(shell),
            argv,
            ..
        } => {
            let args = vec!["-c".to_owned(), argv.join(" ")];
            Ok(by_shell(shell, false, args))
        }
        Start::Direct { argv } | Start::Connected { shell: None, argv, .. } => direct(argv, path_variable),
        Start::Session {
            shell, argv, script_at, ..
        } => {
            let words = session_words(argv, *script_at, script)?;
            match shell {
                SessionShell::None => direct(&words, path_variable),
                SessionShell::Command => Ok(by_shell(account_shell, false, vec!["-c".to_owned(), words.join(" ")])),
                SessionShell::Login => Ok(by_shell(account_shell, true, Vec::new())),
            }
        }
    }
}

/// The words of an interactive job, with its script in its place. One that is the command stands
/// behind its interpreter: the spooled file is not executed itself.
fn session_words(
    argv: &[String],
    script_at: Option<u32>,
    script: Option<&ScriptPlace>,
) -> Result<Vec<String>, Failure> {
    let at = script_at.and_then(|at| usize::try_from(at).ok());
    let Some(at) = at.filter(|at| *at < argv.len()) else {
        return Ok(argv.to_vec());
    };
    let script = script.ok_or_else(|| no_shell("the launch document has a script start but no script".into()))?;
    let interpreter = match at {
        0 => interpreter(&script.head)?.unwrap_or_else(|| (SCRIPT_SHELL.to_owned(), None)),
        _ => return Ok([&argv[..at], std::slice::from_ref(&script.path), &argv[at + 1..]].concat()),
    };
    let (program, argument) = interpreter;
    let before = [program].into_iter().chain(argument).chain([script.path.clone()]);
    Ok(before.chain(argv[1..].iter().cloned()).collect())
}

/// The interpreter of an interactive job's script without a `#!` line, as execvp(3) has it.
const SCRIPT_SHELL: &str = "/bin/sh";

fn script_invocation(
    shell: &str,
    login: bool,
    mode: StartMode,
    args: &[String],
    script: &ScriptPlace,
) -> Result<Invocation, Failure> {
    let with_script = |before: Vec<String>| {
        before
            .into_iter()
            .chain([script.path.clone()])
            .chain(args.iter().cloned())
    };
    match mode {
        StartMode::ScriptFromStdin => {
            let args = if args.is_empty() {
                Vec::new()
            } else {
                with_stdin_args(args)
            };
            Ok(Invocation {
                script_on_stdin: true,
                ..by_shell(shell, login, args)
            })
        }
        StartMode::PosixCompliant => Ok(by_shell(shell, login, with_script(Vec::new()).collect())),
        StartMode::UnixBehavior => match interpreter(&script.head)? {
            None => Ok(by_shell(shell, false, with_script(Vec::new()).collect())),
            Some((program, argument)) => {
                let argv = with_script([program.clone()].into_iter().chain(argument).collect()).collect();
                Ok(Invocation {
                    what: program.clone(),
                    paths: vec![program],
                    argv,
                    script_on_stdin: false,
                })
            }
        },
    }
}

fn with_stdin_args(args: &[String]) -> Vec<String> {
    ["-s".to_owned()].into_iter().chain(args.iter().cloned()).collect()
}

/// The starter is told the script, or reads it, and knows from its environment which shell would
/// have had it.
fn by_starter(starter: &str, stdin: bool, args: &[String], script: &ScriptPlace) -> Invocation {
    let path = (!stdin).then(|| script.path.clone());
    let argv = [starter.to_owned()]
        .into_iter()
        .chain(path)
        .chain(args.iter().cloned())
        .collect();
    Invocation {
        paths: vec![starter.to_owned()],
        argv,
        what: starter.to_owned(),
        script_on_stdin: stdin,
    }
}

/// A login shell is one whose name begins with `-`.
fn by_shell(shell: &str, login: bool, args: Vec<String>) -> Invocation {
    let base = shell.rsplit('/').next().unwrap_or(shell);
    let name = if login { format!("-{base}") } else { base.to_owned() };
    let argv = [name].into_iter().chain(args).collect();
    Invocation {
        paths: vec![shell.to_owned()],
        argv,
        what: shell.to_owned(),
        script_on_stdin: false,
    }
}

fn direct(argv: &[String], path_variable: &str) -> Result<Invocation, Failure> {
    let program = argv.first().ok_or_else(|| no_shell("the command is empty".into()))?;
    let paths = if program.contains('/') {
        vec![program.clone()]
    } else {
        let folders = path_variable
            .split(':')
            .map(|folder| if folder.is_empty() { "." } else { folder });
        folders.map(|folder| format!("{folder}/{program}")).collect()
    };
    Ok(Invocation {
        paths,
        argv: argv.to_vec(),
        what: program.clone(),
        script_on_stdin: false,
    })
}

/// The program and the one argument of a `#!` line, as the kernel reads it; `None` without such a
/// line.
fn interpreter(head: &[u8]) -> Result<Option<(String, Option<String>)>, Failure> {
    let Some(rest) = head.strip_prefix(b"#!") else {
        return Ok(None);
    };
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    if line.contains('\r') {
        return Err(no_shell(format!(
            "the script's first line {:?} ends in CR LF (a Windows line end), so its interpreter does not exist: convert the \
             script, for example with dos2unix",
            format!("#!{line}")
        )));
    }
    let line = line.trim_matches([' ', '\t']);
    let (program, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    if program.is_empty() {
        return Ok(None);
    }
    let argument = argument.trim_matches([' ', '\t']);
    Ok(Some((
        program.to_owned(),
        (!argument.is_empty()).then(|| argument.to_owned()),
    )))
}

/// A procedure or method command: split at blanks, no shell.
pub fn command_line(command: &str, path_variable: &str) -> Result<Invocation, Failure> {
    let argv: Vec<String> = command.split_ascii_whitespace().map(str::to_owned).collect();
    direct(&argv, path_variable)
}

/// A procedure's command, its arguments with what only its host knows: the files of its process,
/// and whether both streams go to one (queue_conf(5)). They are replaced behind the splitting: a
/// blank in a path that a user chose makes no further argument.
pub fn procedure_line(command: &str, places: &Places, merge: bool, path_variable: &str) -> Result<Invocation, Failure> {
    let table = [
        ("$stdin_path", places.stdin.as_str()),
        ("$stdout_path", &places.stdout),
        ("$stderr_path", &places.stderr),
        ("$merge_stderr", if merge { "1" } else { "0" }),
    ];
    let mut invocation = command_line(command, path_variable)?;
    for argument in invocation.argv.iter_mut().skip(1) {
        *argument = replaced(argument, &table);
    }
    Ok(invocation)
}

/// Replaces in one pass: a path that its owner chose may look like a variable.
fn replaced(text: &str, table: &[(&str, &str)]) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        made.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = table
            .iter()
            .find_map(|(name, value)| Some((rest.strip_prefix(name)?, *value)));
        let (left, value) = known.unwrap_or((&rest[1..], "$"));
        made.push_str(value);
        rest = left;
    }
    made + rest
}

/// A command of a checkpointing environment: a line for the shell, as in 8.1.9.
pub fn shell_line(command: &str) -> Invocation {
    by_shell("/bin/sh", false, vec!["-c".to_owned(), command.to_owned()])
}

/// Makes an invocation ready for execve, of `file` in place of its paths where that is given.
///
/// # Errors
/// [`FailedCodes::BEFORE_JOB`] for text with a NUL, which no document can carry.
pub fn program(invocation: &Invocation, environment: &[String], file: Option<TrustedFile>) -> Result<Program, Failure> {
    let strings = |texts: &[String]| {
        texts
            .iter()
            .map(|word| CString::new(text::to_bytes(word)))
            .collect::<Result<Vec<_>, _>>()
    };
    let make = || {
        let (argv, envp) = (strings(&invocation.argv)?, strings(environment)?);
        Ok::<_, std::ffi::NulError>(match file {
            Some(file) => Program::of_file(file, argv, envp),
            None => Program::new(strings(&invocation.paths)?, argv, envp),
        })
    };
    make().map_err(|_| Failure {
        failed: FailedCodes::BEFORE_JOB,
        text: "an argument or environment entry holds a NUL byte".into(),
        errno: 0,
        path: String::new(),
    })
}

/// Replaces what only this host knows: a leading `~` or `~user`, and `$HOME`.
pub fn expand(path: &str, identity: &Identity) -> String {
    let path = path.replace("$HOME", &identity.home);
    let Some(rest) = path.strip_prefix('~') else {
        return path;
    };
    let (user, tail) = rest
        .split_once('/')
        .map_or((rest, None), |(user, tail)| (user, Some(tail)));
    let home = if user.is_empty() {
        Some(identity.home.clone())
    } else {
        account::home_of(user)
    };
    match (home, tail) {
        (Some(home), Some(tail)) => format!("{home}/{tail}"),
        (Some(home), None) => home,
        (None, _) => path,
    }
}

fn no_shell(text: String) -> Failure {
    Failure {
        failed: FailedCodes::NO_SHELL,
        text,
        errno: 0,
        path: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(head: &str) -> ScriptPlace {
        ScriptPlace {
            path: "/spool/7".into(),
            head: head.as_bytes().to_vec(),
        }
    }

    #[test]
    fn the_script_of_an_interactive_job_stands_behind_its_interpreter_or_its_starter() {
        let words = |argv: &[&str], at: u32, head: &str| {
            let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
            let place = ScriptPlace {
                path: "/spool/7".to_owned(),
                head: head.as_bytes().to_vec(),
            };
            session_words(&argv, Some(at), Some(&place)).expect("words").join(" ")
        };
        assert_eq!(words(&["x.sh", "a"], 0, "#!/bin/bash -e\n"), "/bin/bash -e /spool/7 a");
        assert_eq!(words(&["x.sh", "a"], 0, "echo\n"), "/bin/sh /spool/7 a");
        assert_eq!(
            words(&["/starter", "x.sh", "a"], 1, "#!/bin/bash\n"),
            "/starter /spool/7 a"
        );
    }

    #[test]
    fn a_path_that_looks_like_a_variable_is_not_replaced() {
        let places = ["/", "/in/$stdout_path", "/out", "/err"].map(str::to_owned);
        let [folder, stdin, stdout, stderr] = places;
        let places = Places {
            folder,
            stdin,
            stdout,
            stderr,
        };
        let made = procedure_line(
            "/x/prolog $stdin_path:$stdout_path $merge_stderr $HOME$",
            &places,
            true,
            "",
        );
        let expected = ["/x/prolog", "/in/$stdout_path:/out", "1", "$HOME$"];
        assert_eq!(made.expect("a program").argv, expected);
    }

    fn argv(mode: StartMode, login: bool, head: &str) -> (String, Vec<String>) {
        let start = Start::Script {
            shell: "/bin/sh".into(),
            login,
            mode,
            args: vec!["a b".into()],
        };
        let invocation = invocation(&start, Some(&script(head)), "", "/bin/sh").expect("a program");
        (invocation.paths[0].clone(), invocation.argv)
    }

    #[test]
    fn the_first_line_counts_only_under_unix_behavior() {
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let cases = [
            (
                StartMode::UnixBehavior,
                false,
                "#!/bin/bash -l\n",
                "/bin/bash",
                vec!["/bin/bash", "-l", "/spool/7", "a b"],
            ),
            (
                StartMode::UnixBehavior,
                false,
                "#! /bin/csh\nx",
                "/bin/csh",
                vec!["/bin/csh", "/spool/7", "a b"],
            ),
            (
                StartMode::UnixBehavior,
                true,
                "echo\n",
                "/bin/sh",
                vec!["sh", "/spool/7", "a b"],
            ),
            (
                StartMode::PosixCompliant,
                true,
                "#!/bin/bash\n",
                "/bin/sh",
                vec!["-sh", "/spool/7", "a b"],
            ),
            (
                StartMode::ScriptFromStdin,
                false,
                "echo\n",
                "/bin/sh",
                vec!["sh", "-s", "a b"],
            ),
        ];
        for (mode, login, head, program, expected) in cases {
            assert_eq!(
                argv(mode, login, head),
                (program.to_owned(), words(&expected)),
                "{head:?}"
            );
        }
    }

    #[test]
    fn a_windows_line_end_is_named() {
        let failure = interpreter(b"#!/bin/bash\r\necho\r\n").expect_err("refused");
        assert!(
            failure.text.contains("CR LF") && failure.failed == FailedCodes::NO_SHELL,
            "{}",
            failure.text
        );
    }

    #[test]
    fn commands_without_a_slash_are_looked_up_in_the_jobs_path() {
        let start = Start::Direct {
            argv: vec!["tool".into()],
        };
        let found = invocation(&start, None, "/a::/b", "/bin/sh").expect("a program");
        assert_eq!(found.paths, ["/a/tool", "./tool", "/b/tool"]);
    }

    #[test]
    fn home_is_replaced_where_it_stands() {
        let mut identity = account::by_number(1);
        identity.home = "/home/u".into();
        for (path, expected) in [
            ("$HOME/x", "/home/u/x"),
            ("~/x", "/home/u/x"),
            ("~", "/home/u"),
            ("/a~", "/a~"),
        ] {
            assert_eq!(expand(path, &identity), expected);
        }
    }
}
