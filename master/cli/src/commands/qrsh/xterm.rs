//! `qsh`: the terminal program of the cell as an immediate job, on a display of the caller.

use super::options::{QSH, SessionCommand};
use super::session::{InteractiveJob, Placing, interrupted_early, submitted};
use super::specification::{SessionRequest, connected, read_line, request, verified, with_own_exit};
use crate::args::CommandLine;
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::Outcome;
use crate::commands::qsub::build;
use crate::fail::Fail;
use crate::interrupt::Interrupt;
use crate::job::environment;
use crate::job::sources;
use crate::output::time::Clock;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::job::{Program, SessionSpec};
use proto::object::ObjectKind;
use proto::wire::client::{Command, Query};
use proto::wire::view::Data;

/// The variable that names an X server.
const DISPLAY: &str = "DISPLAY";

/// What is run where the configuration names nothing.
const XTERM: &str = "/usr/bin/xterm";

/// Runs `qsh`. The job goes on when the command has ended: its window is its terminal.
pub fn run(words: Vec<String>) -> Outcome {
    let command_line = read_line(SessionCommand::Qsh, words)?;
    if command_line.has("-help") {
        output::data(&QSH.help());
        return Ok(exit::OK);
    }
    let address = CellAddress::from_environment();
    let SessionRequest { request, sources, .. } = request(&address, &command_line).map_err(with_own_exit)?;
    let display = display(&command_line)?;
    let mut client = Client::connect(&address, QSH.name)?;
    let program = Program::Command {
        command: terminal_program(&mut client)?,
    };
    let name = request.changes.name.clone();
    let mut spec = connected(&command_line, build::specification(&request, program, Vec::new()));
    spec.name = name.unwrap_or_else(|| SessionCommand::Qsh.job_name().to_owned());
    spec.use_shell = Some(false);
    if !spec.environment.iter().any(|(name, _)| name == DISPLAY) {
        let mut environment = spec.environment.to_vec();
        environment.push((DISPLAY.to_owned(), display));
        spec.environment = environment.into();
    }
    if request.verify {
        output::data(&build::verification(&spec, &Clock::local()));
        return Ok(exit::OK);
    }
    let spec = verified(SessionCommand::Qsh, &address, &request, spec)?;
    let interrupt = Interrupt::hold()?;
    let reply = client
        .change_unless(Command::Submit(Box::new(spec)), &interrupt)?
        .ok_or_else(interrupted_early)?;
    let Some(job) = submitted(&sources::with_lines(reply, &sources), true)? else {
        return Ok(exit::OK);
    };
    let mut waiting = InteractiveJob {
        client,
        command: SessionCommand::Qsh,
        job,
        is_verbose: true,
        session: SessionSpec::default(),
    };
    waiting.say_waiting();
    match waiting.place(&interrupt)? {
        Placing::Interrupted => waiting.interrupted(),
        Placing::Ended(tasks) if !tasks.is_empty() => Ok(waiting.ended(&tasks)),
        Placing::Ended(_) | Placing::Placed(_) => {
            output::note(&format!(
                "\nYour interactive job {job} has been successfully scheduled."
            ));
            Ok(exit::OK)
        }
    }
}

/// `-display`, else the caller's `DISPLAY`. A display of this machine's own means nothing
/// elsewhere.
fn display(command_line: &CommandLine) -> Result<String, Fail> {
    let given = command_line.value("-display").map(str::to_owned);
    let display = given
        .or_else(|| environment::value(DISPLAY))
        .filter(|name| !name.is_empty());
    display
        .ok_or_else(|| {
            let what = "error: no DISPLAY variable found with interactive job ";
            Diagnostic::new(Code::BadValue, what)
                .fix("name an X server that the execution hosts reach: qsh -display HOST:0")
                .into()
        })
        .map_err(with_own_exit)
}

/// `xterm` of the global configuration.
fn terminal_program(client: &mut Client) -> Result<String, Fail> {
    let reply = client.query(Query::Object {
        kind: ObjectKind::ClusterConf,
        name: "global".to_owned(),
    })?;
    let program = match &reply.data {
        Some(Data::Object(fields)) => fields.value("xterm").map(str::to_owned),
        _ => None,
    };
    Ok(program.unwrap_or_else(|| XTERM.to_owned()))
}
