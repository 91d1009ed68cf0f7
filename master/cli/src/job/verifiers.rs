//! The verifiers that a user names with `-jsv`, on the command line, in the script, or in files of
//! default options. Each command that submits a job passes it through [`verify`].

use crate::exit;
use crate::fail::Fail;
use crate::output;
use nix::unistd::{AccessFlags, access};
use proto::diagnostic::{Code, Diagnostic};
use proto::job::JobSpec;
use proto::jsv::JsvUrl;
use proto::text;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Builder;
use verifier::correction::corrected;
use verifier::date::LocalCalendar;
use verifier::dialog::{JsvFault, JsvLogLine};
use verifier::offer::{JsvOffer, JsvSide};
use verifier::process::{Launch, PATIENCE, Verifier};

/// What the commands of 8.1.9 say behind a change that cannot be made.
const BINDING: &str = "unable to allocate memory for binding during JSV execution";

/// The variable that says how many seconds a verifier may take.
const TIMEOUT: &str = "SGE_JSV_TIMEOUT";

/// The path in the value of a `-jsv`.
///
/// # Errors
/// In the words of 8.1.9, with its exit code: a value that names no program, or an account.
pub fn script(command: &str, value: &str) -> Result<String, Fail> {
    let refuse = |what: String, fix: &str| {
        let refusal = Diagnostic::new(Code::BadValue, format!("{command}: {what}")).at(format!("-jsv {value}"));
        Fail::new(exit::BAD_VERIFIER, refusal.fix(fix))
    };
    let url: JsvUrl = value
        .parse()
        .map_err(|error: proto::jsv::MalformedJsvUrl| refuse(error.to_string(), "write [script:]PATH"))?;
    if url.user.is_some() {
        let what = "specifying user is not allowed in client JSV URLs";
        return Err(refuse(what.to_owned(), "leave it out: the verifier runs as you"));
    }
    if !is_program(Path::new(&text::to_os(&url.path))) {
        let what = format!("JSV \"{}\" is either not a file or not executable", url.path);
        return Err(refuse(what, "check the path, and chmod +x the file"));
    }
    Ok(url.path)
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, AccessFlags::X_OK).is_ok()
}

/// Passes a job through verifiers, the last one first: that of the command line sees it before
/// those of the files of default options. Each sees what the one before it has changed.
///
/// # Errors
/// If one of them rejects the job, or does not answer.
pub fn verify(command: &'static str, scripts: &[String], dir: &Path, spec: JobSpec) -> Result<JobSpec, Diagnostic> {
    if scripts.is_empty() {
        return Ok(spec);
    }
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| {
        Diagnostic::new(Code::SystemRefused, "cannot run a job submission verifier").why(error.to_string())
    })?;
    let patience = patience()?;
    let calendar = LocalCalendar::here();
    scripts.iter().rev().try_fold(spec, |spec, script| {
        let mut verifier = Verifier::new(Launch {
            script: script.clone(),
            environment: environment(dir),
            has_own_environment: false,
            directory: None,
            patience,
        });
        let offer = JsvOffer::new(JsvSide::Client(command), &spec, &calendar);
        let answer = runtime
            .block_on(async {
                let answer = verifier.verify(&offer, &mut show).await;
                verifier.leave();
                answer
            })
            .map_err(|fault| refusal(&fault))?;
        match answer.rejection {
            Some(message) => Err(Diagnostic::new(Code::JobRejected, message)
                .fix(format!("the job submission verifier {script} decides; see -jsv"))),
            None => corrected(spec, &answer.changes, &calendar).map_err(|refusal| Diagnostic {
                what: format!("{}\n{BINDING}", refusal.what),
                ..refusal
            }),
        }
    })
}

/// As in 8.1.9, a line of `LOG` is shown whatever its kind.
fn show(line: JsvLogLine) {
    output::data(&format!("{}\n", line.text));
}

/// The refusal for a verifier that did not answer, in the words of the commands of 8.1.9.
fn refusal(fault: &JsvFault) -> Diagnostic {
    let refusal = fault.diagnostic();
    match fault {
        JsvFault::Stderr(lines) => {
            for line in lines {
                output::note(&format!("error: JSV stderr: {line}"));
            }
            refusal
        }
        JsvFault::ReadOnly(_) => Diagnostic {
            what: format!("{}\n{BINDING}", refusal.what),
            ..refusal
        },
        JsvFault::UnknownCommand(_)
        | JsvFault::UnknownResult(_)
        | JsvFault::NoResponse { .. }
        | JsvFault::NotStarted { .. }
        | JsvFault::LongLine
        | JsvFault::LongAnswer => refusal,
    }
}

/// How long a verifier may take for the job.
fn patience() -> Result<Duration, Diagnostic> {
    let Some(value) = crate::job::environment::value(TIMEOUT).filter(|value| !value.is_empty()) else {
        return Ok(PATIENCE);
    };
    match value.parse::<u32>() {
        Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds.into())),
        Ok(_) | Err(_) => {
            let what = format!("{TIMEOUT} is \"{value}\", which is not a number of seconds");
            Err(Diagnostic::new(Code::BadValue, what).fix("write 1 or more, or unset it: 10 s"))
        }
    }
}

/// What scripts look for in the environment, where the user has not set it.
fn environment(dir: &Path) -> Vec<(String, String)> {
    let arch = proto::host::arch();
    [
        ("SGE_ROOT", text::from_os(dir.as_os_str())),
        ("SGE_CELL", "default".to_owned()),
        ("SGE_ARCH", arch.to_owned()),
        ("ARCH", arch.to_owned()),
    ]
    .into_iter()
    .filter(|(name, _)| std::env::var_os(name).is_none())
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}
