//! From a command line to an interactive job.

use super::local_terminal;
use super::options::{self, SessionCommand};
use crate::args::{CommandLine, GivenOption};
use crate::cell_address::CellAddress;
use crate::commands::qsub::build;
use crate::exit;
use crate::fail::Fail;
use crate::job::environment;
use crate::job::request::JobRequest;
use crate::job::script;
use crate::job::sources::{self, Source};
use crate::job::verifiers;
use proto::diagnostic::{Code, Diagnostic};
use proto::job::{HostPath, JobSpec, Program, SessionSpec};
use proto::text;
use std::io;

/// What stands before a refusal of the command line.
const VOICE: &str = "error";

/// What 8.1.9 says of an option that an interactive job does not have.
const UNKNOWN: &str = "error: Unknown option ";

/// Takes the words behind the command's name apart.
pub fn read_line(command: SessionCommand, words: Vec<String>) -> Result<CommandLine, Fail> {
    let refused = words.iter().find(|word| options::is_refused(word)).cloned();
    let parsed = command.def().parse(words).and_then(sources::expand_files);
    let parsed = parsed.map_err(|mut fail| {
        if let Some(word) = refused.filter(|word| fail.diagnostic.what.ends_with(&format!("argument \"{word}\""))) {
            fail.diagnostic.what = format!("{UNKNOWN}{word}");
        }
        with_own_exit(fail)
    })?;
    if command != SessionCommand::Qrsh && !parsed.operands.is_empty() {
        let refusal = Diagnostic::new(Code::BadSyntax, format!("{UNKNOWN}script"));
        let fix = format!("{} runs no command: use qrsh COMMAND", command.name());
        return Err(Fail::new(exit::FAILED, refusal.fix(fix)));
    }
    Ok(parsed)
}

/// Every refusal of a command line has exit code 1.
pub fn with_own_exit(fail: Fail) -> Fail {
    Fail {
        exit: exit::FAILED,
        ..fail
    }
}

/// What the sources of options ask for together.
pub struct SessionRequest {
    /// The requests.
    pub request: JobRequest,
    /// Where they come from, weakest first.
    pub sources: Vec<Source>,
    /// The script of `-b n`.
    pub script: Option<Vec<u8>>,
}

/// Adds up what the request files, the script of `-b n` and the command line say. Interactive jobs
/// are immediate unless `-now n` is said.
pub fn request(address: &CellAddress, command_line: &CommandLine) -> Result<SessionRequest, Fail> {
    let files = sources::request_files(&address.dir().join("default/common"))?;
    let of_job = |given: &&GivenOption| !options::is_own(given.name);
    let line = Source::command_line(command_line.given.iter().filter(of_job).cloned().collect());
    let script = script(command_line)?;
    let prefix = command_line.value("-C").unwrap_or(script::DIRECTIVE_PREFIX);
    let path = command_line.operands.first().map_or("", String::as_str);
    let of_script = match &script {
        Some(content) => vec![sources::directives(content, prefix, path)?],
        None => Vec::new(),
    };
    let sources = sources::after_clear([vec![files], of_script, vec![line]].concat());
    let mut request = JobRequest::new(VOICE);
    (request.immediate, request.binary) = (true, true);
    request.apply_sources(&sources)?;
    request.map_directory(address)?;
    Ok(SessionRequest {
        request,
        sources,
        script,
    })
}

/// The content of the script of `-b n`.
fn script(command_line: &CommandLine) -> Result<Option<Vec<u8>>, Fail> {
    let is_script = command_line
        .value("-b")
        .is_some_and(|value| value.starts_with(['n', 'N']));
    let Some(path) = command_line.operands.first().filter(|_| is_script) else {
        return Ok(None);
    };
    std::fs::read(text::to_os(path)).map(Some).map_err(|error| {
        let reason = if error.kind() == io::ErrorKind::NotFound {
            "No such file or directory".to_owned()
        } else {
            error.to_string()
        };
        let what = format!("error: error opening {path}: {reason}");
        Fail::new(exit::FAILED, Diagnostic::new(Code::SystemRefused, what))
    })
}

/// The specification of the job: a command, or a login without one.
pub fn specification(
    command: SessionCommand,
    command_line: &CommandLine,
    request: &JobRequest,
    script: Option<Vec<u8>>,
) -> Result<JobSpec, Fail> {
    let words = &command_line.operands;
    if words.is_empty() && command_line.has("-b") && !request.binary {
        let refusal = Diagnostic::new(Code::BadSyntax, format!("{UNKNOWN}-b"));
        return Err(Fail::new(exit::FAILED, refusal.fix("name a script behind the options")));
    }
    let wants_terminal = terminal(command_line)?;
    let is_login = words.is_empty();
    let has_terminal = wants_terminal.unwrap_or_else(|| is_login && local_terminal::is_terminal());
    let session = SessionSpec {
        is_login,
        terminal: has_terminal.then(|| local_terminal::window_size().unwrap_or_default()),
        has_input: !command_line.has("-nostdin"),
    };
    let program = match (words.first(), script) {
        (Some(path), Some(content)) => Program::Script {
            path: path.clone(),
            content: content.into(),
        },
        (Some(word), None) => Program::Command { command: word.clone() },
        (None, _) => Program::Command {
            command: command.job_name().to_owned(),
        },
    };
    let args = words.get(1..).unwrap_or_default().to_vec();
    let mut spec = connected(command_line, build::specification(request, program, args));
    spec.use_shell = command_line.has("-noshell").then_some(false);
    spec.session = Some(Box::new(session));
    Ok(spec)
}

/// Passes the job through the verifiers of the user.
pub fn verified(
    command: SessionCommand,
    address: &CellAddress,
    request: &JobRequest,
    spec: JobSpec,
) -> Result<JobSpec, Fail> {
    let scripts = request.verifiers.as_deref().unwrap_or_default();
    verifiers::verify(command.name(), scripts, address.dir(), spec).map_err(|refusal| Fail::new(exit::FAILED, refusal))
}

/// The value of `-pty`.
fn terminal(command_line: &CommandLine) -> Result<Option<bool>, Fail> {
    let Some(value) = command_line.value("-pty") else {
        return Ok(None);
    };
    match value.to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(Some(true)),
        "n" | "no" => Ok(Some(false)),
        _ => {
            let what = format!("error: invalid option argument \"-pty {value}\"");
            let refusal = Diagnostic::new(Code::BadValue, what).fix("write -pty y or -pty n");
            Err(Fail::new(exit::FAILED, refusal))
        }
    }
}

/// The job with what all interactive jobs have: no files, no second run, variables of their own.
pub fn connected(command_line: &CommandLine, mut spec: JobSpec) -> JobSpec {
    let nowhere = || {
        vec![HostPath {
            host: None,
            path: "/dev/null".to_owned(),
        }]
    };
    (spec.stdout, spec.stderr) = (nowhere(), nowhere());
    spec.rerunnable = Some(false);
    let mut environment = spec.environment.to_vec();
    environment.extend(session_variables(command_line, &environment));
    spec.environment = environment.into();
    spec
}

/// What an interactive job has in its environment beside that of a batch job. No port is listened
/// on, so `QRSH_PORT` names the host alone and port 0: scripts look whether it is set.
fn session_variables(command_line: &CommandLine, known: &[(String, String)]) -> Vec<(String, String)> {
    let host = known
        .iter()
        .find(|(name, _)| name == "SGE_O_HOST")
        .map_or("localhost", |(_, host)| host.as_str());
    let mut variables = vec![("QRSH_PORT".to_owned(), format!("{host}:0"))];
    if !command_line.operands.is_empty() {
        variables.push(("QRSH_COMMAND".to_owned(), command_line.operands.join(" ")));
    }
    let is_known = |name: &str| known.iter().any(|(known, _)| known == name);
    if let Some(term) = environment::value("TERM").filter(|_| !is_known("TERM")) {
        variables.push(("TERM".to_owned(), term));
    }
    if let Some(display) = command_line.value("-display") {
        variables.push(("DISPLAY".to_owned(), display.to_owned()));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(command: SessionCommand, words: &[&str]) -> Result<CommandLine, Fail> {
        read_line(command, words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn spec(command: SessionCommand, words: &[&str]) -> Result<JobSpec, Fail> {
        let parsed = line(command, words)?;
        let mut request = JobRequest::new(VOICE);
        request.binary = true;
        let of_job: Vec<GivenOption> = parsed
            .given
            .iter()
            .filter(|given| !options::is_own(given.name))
            .cloned()
            .collect();
        request.apply_line(&of_job)?;
        specification(command, &parsed, &request, script(&parsed)?)
    }

    #[test]
    fn a_wrong_option_is_refused_in_the_words_of_8_1_9_with_exit_code_1() {
        use SessionCommand::{Qlogin, Qrsh, Qsh};
        for (command, words, what) in [
            (
                Qrsh,
                &["-nosuch", "hostname"][..],
                "error: invalid option argument \"-nosuch\"",
            ),
            (Qrsh, &["-i", "/etc/hostname", "cat"], "error: Unknown option -i"),
            (Qrsh, &["-t", "1-2", "true"], "error: Unknown option -t"),
            (Qrsh, &["-terse", "true"], "error: Unknown option -terse"),
            (Qrsh, &["-r", "y", "true"], "error: Unknown option -r"),
            (Qrsh, &["-pty", "x", "tty"], "error: invalid option argument \"-pty x\""),
            (Qrsh, &["-b", "n"], "error: Unknown option -b"),
            (
                Qrsh,
                &["-b", "n", "/nonexistent/x"],
                "error: error opening /nonexistent/x: No such file or directory",
            ),
            (Qlogin, &["hostname"], "error: Unknown option script"),
            (Qsh, &["hostname"], "error: Unknown option script"),
        ] {
            let fail = spec(command, words).unwrap_err();
            assert_eq!((fail.exit, fail.diagnostic.what.as_str()), (1, what), "{words:?}");
        }
        assert!(
            line(Qrsh, &["true", "-i"]).is_ok(),
            "words behind the command are the command's"
        );
        assert_eq!(
            line(Qrsh, &["-X", "true"]).unwrap_err().diagnostic.code,
            Code::NotSupported
        );
    }

    #[test]
    fn a_command_becomes_a_job_with_the_streams_of_its_caller() {
        let words = ["-v", "A=1", "-nostdin", "-o", "/x", "echo", "a b", "c"];
        let spec = spec(SessionCommand::Qrsh, &words).unwrap();
        let session = spec.session.as_deref().unwrap();
        assert_eq!(
            (session.is_login, session.has_input, session.terminal),
            (false, false, None)
        );
        assert_eq!(
            (spec.name.as_str(), spec.stdout[0].path.as_str()),
            ("echo", "/dev/null")
        );
        assert_eq!((spec.rerunnable, spec.use_shell), (Some(false), None));
        let value = |name: &str| {
            let found = spec.environment.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!((value("A"), value("QRSH_COMMAND")), (Some("1"), Some("echo a b c")));
        assert!(value("QRSH_PORT").is_some_and(|port| port.ends_with(":0")));
    }

    #[test]
    fn a_login_has_the_name_of_its_command_and_a_terminal_if_it_is_asked_for() {
        for (command, words, name, has_terminal) in [
            (SessionCommand::Qrsh, &["-pty", "y"][..], "QRLOGIN", true),
            (SessionCommand::Qlogin, &["-pty", "n"], "QLOGIN", false),
            (SessionCommand::Qlogin, &["-N", "mine", "-pty", "y"], "mine", true),
        ] {
            let spec = spec(command, words).unwrap();
            let session = spec.session.as_deref().unwrap();
            assert_eq!((spec.name.as_str(), session.is_login), (name, true));
            assert_eq!(session.terminal.is_some(), has_terminal, "{words:?}");
        }
        let with_command = spec(SessionCommand::Qrsh, &["-pty", "y", "top"]).unwrap();
        let session = with_command.session.as_deref().unwrap();
        assert_eq!((session.is_login, session.terminal.is_some()), (false, true));
    }
}
