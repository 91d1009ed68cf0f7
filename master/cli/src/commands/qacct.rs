//! `qacct`: accounting records of jobs, and what groups of them used together.
//!
//! The master's records, or the lines of a classic accounting file (`-f`), go through one selection
//! ([`select`]) and become blocks ([`block`]) or a table ([`table`]).

mod archive;
pub mod block;
mod entry;
mod file;
mod indexed;
mod rotated;
mod select;
mod table;
#[cfg(test)]
pub mod tests;

use crate::args::{CommandDef, CommandLine, Operands, ValueCount, detailed, flag, with};
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::Outcome;
use crate::commands::ask::{self, Format};
use crate::fail::Fail;
use crate::output::json;
use crate::output::time::Clock;
use crate::{exit, output};
use archive::Archive;
use entry::AccountingEntry;
use proto::accounting::AccountingRecord;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::QueueInstanceName;
use proto::wire::client::{AccountingFilter, Answer, Query, QueueFilter, Reply};
use proto::wire::view::Data;
use select::Selection;
use std::collections::BTreeSet;
use std::path::Path;
use table::Sums;

pub const QACCT: CommandDef = CommandDef {
    name: "qacct",
    summary: "Shows what jobs used: blocks with -j, else sums.",
    operand_placeholder: "[accounting_file]",
    operands: Operands::Anywhere,
    options: &[
        with(
            "-ar",
            ValueCount::Optional,
            "[ar_id]",
            "list [matching] advance reservations",
        ),
        with(
            "-A",
            ValueCount::Optional,
            "[account_string]",
            "list [matching] account",
        ),
        detailed(
            with(
                "-archive",
                ValueCount::One,
                "file",
                "write the records to a new file, print none",
            ),
            "The file has the form of accounting(5), so that `qacct -f` reads it; with `-fmt json` it has JSON lines. \
             Other options choose the records: `qacct -e 202601010000 -archive accounting-2025`. It is not \
             possible together with `-f`, whose files are accounting files already.",
        ),
        with("-b", ValueCount::One, "begin_time", "jobs started after"),
        detailed(
            with("-d", ValueCount::One, "days", "jobs started during the last d days"),
            "With `-b`, the days after that time; with `-e`, those before it. With both, it has no effect. \
             Example: `qacct -b 202612010000 -d 7`.",
        ),
        with("-D", ValueCount::Optional, "[department]", "list [matching] department"),
        with("-e", ValueCount::One, "end_time", "jobs started before"),
        flag("-E", "select job end time, not start"),
        detailed(
            with("-f", ValueCount::One, "acctfile", "use a classic accounting file"),
            "The file may be compressed by gzip(1). Without this option the records are those of the master's database.",
        ),
        with("-fmt", ValueCount::One, "text|json", "how to write the answer"),
        with("-g", ValueCount::Optional, "[groupname]", "list [matching] group"),
        with("-h", ValueCount::Optional, "[host]", "list [matching] host"),
        flag("-help", "print this help"),
        with(
            "-j",
            ValueCount::Optional,
            "[job_id|job_name|pattern,...]",
            "list all [matching] jobs",
        ),
        with(
            "-l",
            ValueCount::One,
            "attr=val,...",
            "jobs of queues that offer these resources",
        ),
        flag("-m", "list only master tasks (there are no others yet)"),
        with("-o", ValueCount::Optional, "[owner]", "list [matching] owner"),
        with("-u", ValueCount::Optional, "[owner]", "list [matching] owner"),
        with(
            "-pe",
            ValueCount::Optional,
            "[pe_name]",
            "list [matching] parallel environment",
        ),
        with("-P", ValueCount::Optional, "[project]", "list [matching] project"),
        with("-q", ValueCount::Optional, "[queue]", "list [matching] queue"),
        detailed(
            flag("-rotated", "with -f: also the files that acctfile was turned over to"),
            "These are files beside `acctfile` with a number or a date behind its name, by whomever they were made: \
             `accounting.0`, `accounting.1.gz`, `accounting-20261126`, `accounting-20261126-0001`. They are read from the \
             oldest to the newest, and each file is read once, whatever names it has. Of those that the master put aside, an \
             index finds the jobs of `-j`, and leaves out files of other times than `-b`, `-e` and `-d` say.",
        ),
        with("-slots", ValueCount::Optional, "[slots]", "list [matching] job slots"),
        with(
            "-t",
            ValueCount::One,
            "taskid[-taskid[:step]]",
            "list all [matching] tasks (requires -j option)",
        ),
    ],
    exit_codes: "0 printed; 1 a job of -j is not found, refused, or a wrong option",
};

/// Runs `qacct`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QACCT.parse(words)?;
    if parsed.has("-help") {
        output::data(&QACCT.help());
        return Ok(exit::OK);
    }
    let clock = Clock::local();
    let format = Format::from_command_line(&parsed)?;
    let mut selection = Selection::from_command_line(&parsed, &clock)?;
    if parsed.has("-l") {
        selection.only_in(&suitable_queues(&parsed)?);
    }
    resolve_group(&mut selection)?;
    let mut found = AccountingResult {
        entries: Vec::new(),
        sums: Sums::new(selection.columns()),
        skipped: Vec::new(),
        archive: None,
    };
    let path = parsed.value("-f").or(parsed.operands.first().map(String::as_str));
    let is_rotated = parsed.has("-rotated");
    if let Some(archive) = parsed.value("-archive") {
        found.archive = Some(begin_archive(archive, path, format)?);
    }
    match path.map(Path::new) {
        Some(path) => read_files(path, is_rotated, &mut selection, &mut found)?,
        None if is_rotated => return Err(without_file()),
        None => ask_master(ask::connect("qacct", format)?, &mut selection, &mut found)?,
    }
    let single = path.map(Path::new).filter(|_| !is_rotated);
    print(found, &selection, format, &clock, single)
}

/// Prints what was found. Of a file that was read alone, those beside it are pointed at.
fn print(
    mut found: AccountingResult,
    selection: &Selection,
    format: Format,
    clock: &Clock,
    single: Option<&Path>,
) -> Outcome {
    if let Some(archive) = found.archive.take() {
        let count = archive.finish()?;
        output::note(&format!("{count} records are written"));
        return Ok(output::answers(&found.skipped));
    }
    let AccountingResult {
        entries,
        sums,
        skipped,
        archive: _,
    } = found;
    if selection.ignored() > 0 {
        let jobs = selection.ignored();
        output::note(&format!(
            "{jobs} jobs ignored for accounting. Jobs' master queue no longer exists."
        ));
        if format != Format::Json {
            output::data("\n");
        }
    }
    let shown = match (selection.jobs(), format) {
        (Some(_), _) => blocks(&entries, selection, format, clock, single),
        (None, Format::Json) => {
            output::data(&json::JsonDocument::new().with("usage", &table::json(sums)).finish());
            Ok(exit::OK)
        }
        (None, Format::Text | Format::Xml) => {
            output::data(&table::text(sums));
            Ok(exit::OK)
        }
    };
    // What could be read is shown, and nobody takes it for all there is.
    match output::answers(&skipped) {
        exit::OK => shown,
        code => shown.map(|shown| if shown == exit::OK { code } else { shown }),
    }
}

/// What was chosen: the entries themselves for `-j`, else their sums alone.
struct AccountingResult {
    entries: Vec<AccountingEntry>,
    sums: Sums,
    /// Refusals about records that the master cannot read.
    skipped: Vec<Answer>,
    /// Where chosen records go in place of all that.
    archive: Option<Archive>,
}

impl AccountingResult {
    fn take(&mut self, selection: &mut Selection, entries: Vec<AccountingEntry>) {
        let chosen = selection.choose(entries);
        if let Some(archive) = &mut self.archive {
            chosen.iter().for_each(|entry| archive.add(entry));
        } else if selection.jobs().is_some() {
            self.entries.extend(chosen);
        } else {
            chosen.iter().for_each(|entry| self.sums.add(entry));
        }
    }
}

/// Reads an accounting file, with `-rotated` also those that it was turned over to.
fn read_files(
    path: &Path,
    is_rotated: bool,
    selection: &mut Selection,
    found: &mut AccountingResult,
) -> Result<(), Fail> {
    let sources = if is_rotated {
        rotated::family(path)?
    } else {
        rotated::single(path).map_err(|error| file::unreadable(path, &error))?
    };
    let wanted = selection.wanted();
    for mut source in sources {
        file::read(&mut source, &wanted, |entry| found.take(selection, vec![entry]))?;
    }
    Ok(())
}

fn begin_archive(archive: &str, source: Option<&str>, format: Format) -> Result<Archive, Fail> {
    if source.is_some() {
        let refusal = Diagnostic::new(Code::BadSyntax, "error: -archive and -f cannot be used together");
        let refusal = refusal
            .at("-archive")
            .why("the files of -f are accounting files already")
            .fix("copy the file, or leave out -f: the master's database has all records");
        return Err(Fail::new(exit::FAILED, refusal));
    }
    Archive::begin(archive, format)
}

fn without_file() -> Fail {
    let refusal = Diagnostic::new(
        Code::BadSyntax,
        "error: -rotated option requires -f option with an argument",
    );
    let refusal = refusal
        .at("-rotated")
        .why("without a file, qacct asks the master, whose database has the records of all files")
        .fix("leave it out, or add -f FILE");
    Fail::new(exit::FAILED, refusal)
}

/// Asks the master for what the selection may choose from, and takes it part by part.
fn ask_master(mut client: Client, selection: &mut Selection, found: &mut AccountingResult) -> Result<(), Fail> {
    let filter: AccountingFilter = selection.question();
    let names = selection.hosts();
    if !names.is_empty()
        && let Some(Data::Names(names)) = ask::data(&mut client, Query::HostNames { names })?
    {
        selection.call_hosts(names);
        found.sums = Sums::new(selection.columns());
    }
    let mut rest = Reply::default();
    client.query_parts(Query::Accounting(filter), |part| match part.data {
        Some(Data::Accounting(records)) => {
            found.skipped.extend(part.answers);
            found.take(selection, records.into_iter().map(AccountingEntry::from).collect());
        }
        _ => rest = part,
    })?;
    ask::settled(rest)?;
    Ok(())
}

/// The queue instances that there are, and those that offer what `-l` asks for.
fn suitable_queues(parsed: &CommandLine) -> Result<[BTreeSet<QueueInstanceName>; 2], Fail> {
    let mut client = Client::connect(&CellAddress::from_environment(), "qacct")?;
    let all = instances(&mut client, QueueFilter::default())?;
    let resources = ask::resources(parsed)?;
    Ok([
        all,
        instances(
            &mut client,
            QueueFilter {
                resources,
                ..QueueFilter::default()
            },
        )?,
    ])
}

fn instances(client: &mut Client, filter: QueueFilter) -> Result<BTreeSet<QueueInstanceName>, Fail> {
    let views = ask::queues(client, filter)?;
    Ok(views
        .into_iter()
        .map(|view| QueueInstanceName {
            queue: view.queue,
            host: view.host,
        })
        .collect())
}

/// Host groups are known to the master alone, for records of a file too.
fn resolve_group(selection: &mut Selection) -> Result<(), Fail> {
    let Some(pattern) = selection.group_pattern().map(str::to_owned) else {
        return Ok(());
    };
    let mut client = Client::connect(&CellAddress::from_environment(), "qacct")?;
    let found = instances(
        &mut client,
        QueueFilter {
            queues: vec![pattern.clone()],
            ..QueueFilter::default()
        },
    )?;
    if found.is_empty() {
        let refusal = Diagnostic::new(Code::UnknownObject, "No queues remaining after -q queue selection");
        return Err(Fail::new(
            exit::FAILED,
            refusal
                .at(format!("-q {pattern}"))
                .fix("qselect lists the queue instances"),
        ));
    }
    selection.resolve_group(found);
    Ok(())
}

/// `-j`: a block for each record; a job without one is named and makes the exit code 1.
fn blocks(
    entries: &[AccountingEntry],
    selection: &Selection,
    format: Format,
    clock: &Clock,
    single: Option<&Path>,
) -> Outcome {
    match format {
        Format::Json => {
            let records: Vec<&AccountingRecord> = entries.iter().map(|entry| &entry.record).collect();
            output::data(&json::JsonDocument::new().with("accounting", &records).finish());
        }
        Format::Text | Format::Xml => output::data(&block::render(entries, clock)),
    }
    let missing = selection.missing();
    for job in &missing {
        output::note(&not_found(job, selection));
    }
    if let Some(path) = single.filter(|path| !missing.is_empty() && rotated::has_family(path)) {
        output::note(&format!(
            "hint: {} was turned over; -rotated looks into the older files beside it too",
            path.display()
        ));
    }
    Ok(if missing.is_empty() { exit::OK } else { exit::FAILED })
}

/// The words that programs look for.
fn not_found(job: &str, selection: &Selection) -> String {
    match (selection.task_text(), job.parse::<u32>()) {
        (Some(tasks), _) => format!("error: Job-array tasks {job}.{tasks} not found"),
        (None, Ok(_)) => format!("error: job id {job} not found"),
        (None, Err(_)) => format!("error: job name {job} not found"),
    }
}

/// A value of an option that does not read.
fn bad_value(option: &str, value: &str, fix: &str) -> Fail {
    let what = format!("error: {option}: invalid value \"{value}\"");
    Fail::new(
        exit::FAILED,
        Diagnostic::new(Code::BadValue, what).at(option.to_owned()).fix(fix),
    )
}
