//! The master daemon of a cell: a tokio shell around the deciding core (ARCHITECTURE.md "One
//! input").
//!
//! [`run`] puts the parts together. The core thread is in [`driver`], the readers in [`reader`]
//! and [`scheduler`], the sockets in [`server`], the database in [`store`]. Which file of the state
//! directory holds what is in [`layout`].

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod agent_outbox;
mod args;
mod backup;
mod check;
mod clock;
mod config;
mod connections;
mod copy;
mod digest;
mod driver;
mod followers;
mod init;
mod issuer;
mod layout;
mod lock;
mod messages;
mod model;
mod notify;
mod quarantine;
mod query;
mod reader;
mod renewal;
mod replay;
mod replies;
mod reserve;
mod run;
mod scheduler;
mod scripts;
mod server;
mod signs;
mod slaves;
mod store;
#[cfg(test)]
mod testing;
mod tickets;
mod verifiers;
mod zone;

use args::{Action, RunOptions};
use mimalloc::MiMalloc;
use proto::program::MASTER;
use std::process::ExitCode;

/// Most of what the master does is to make and drop small things, on four threads: the C library
/// needs a quarter more time for it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The command line is wrong.
const EXIT_USAGE: u8 = 2;

/// Another master runs in the directory.
const EXIT_RUNNING: u8 = 3;

fn main() -> ExitCode {
    let first = std::env::args_os().nth(1);
    if let Some(text) = MASTER.answer(
        first.as_ref().and_then(|word| word.to_str()),
        &version::line(MASTER.name),
    ) {
        print!("{text}");
        return ExitCode::SUCCESS;
    }
    match args::parse(std::env::args_os().skip(1)) {
        Ok(action) => act(action),
        Err(message) => {
            eprintln!("gridwright-master: {message}\n  fix: see gridwright-master --help");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn act(action: Action) -> ExitCode {
    match action {
        Action::Help => print!("{}", MASTER.help()),
        Action::Init(plan) => match init::init(&plan) {
            Ok(cell) => println!("cell {:016x} created in {}", cell.0, plan.dir.display()),
            Err(error) => return fail(&error),
        },
        Action::Check { dir } => match check::check(&dir) {
            Ok(report) => print!("{report}"),
            Err(error) => return fail(&error),
        },
        Action::Part { dir, original } => match copy::part(&dir, &original) {
            Ok(done) => println!("{done}"),
            Err(error) => return fail(&error),
        },
        Action::Backup { dir } => {
            let now_ms = clock::wall_now().0;
            match backup::backup(&dir, std::io::stdout().lock(), now_ms) {
                Ok(report) => eprintln!("{report}"),
                Err(error) => return fail(&error),
            }
        }
        Action::Restore { dir, moment, user } => {
            match backup::restore::restore(&dir, std::io::stdin().lock(), moment, &user) {
                Ok(report) => println!("{report}"),
                Err(error) => return fail(&error),
            }
        }
        Action::Mail { mailers } => {
            if let Err(error) = followers::mail::relay::serve(&mailers, std::io::stdin(), std::io::stdout()) {
                return fail(&error);
            }
        }
        Action::Verifiers(options) => {
            if let Err(error) = verifiers::relay::serve(&options) {
                return fail(&error);
            }
        }
        Action::Tree { dir, user } => {
            if let Err(error) = init::write_tree(&dir, &user) {
                return fail(&error);
            }
        }
        Action::Run(options) => return run_master(&options),
    }
    ExitCode::SUCCESS
}

fn run_master(options: &RunOptions) -> ExitCode {
    if options.daemon {
        // Fails only for who leads a session already.
        let _ = nix::unistd::setsid();
    }
    let log = options.log_file.then(|| options.dir.join("log/master.log"));
    if let Err(refusal) = logging::start(log.as_deref()) {
        eprintln!(
            "gridwright-master: {}\n{}",
            refusal.what,
            refusal.detail_lines().join("\n")
        );
        return ExitCode::FAILURE;
    }
    abort_on_panic();
    match run::run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", error_chain(&error));
            if let run::RunError::Lock(lock::LockError::Held { .. }) = error {
                return ExitCode::from(EXIT_RUNNING);
            }
            ExitCode::FAILURE
        }
    }
}

/// A bug in one thread ends the process before anything wrong is durable: the log and the agents
/// bring everything back.
fn abort_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        tracing::error!("{info}");
        report(info);
        std::process::abort();
    }));
}

fn fail(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("gridwright-master: {}", error_chain(error));
    ExitCode::FAILURE
}

/// An error with its causes, in one line.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
