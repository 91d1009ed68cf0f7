//! `gridwright host remove`: one change of the configuration in which nothing names the host any
//! more, then the end of its certificates.

use crate::args::CommandLine;
use crate::cell_address::CellAddress;
use crate::client::Client;
use crate::commands::Outcome;
use crate::commands::ask;
use crate::fail::Fail;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::hostgroup::{HostList, HostOrGroup};
use proto::id::{HostName, TaskId};
use proto::object::{Fields, ObjectKind};
use proto::request::TaskRange;
use proto::wire::client::{
    AttributeEdit, Command, HostFilter, JobFilter, JobSelection, JobStates, JobTarget, ObjectAction, ObjectChange,
    Query,
};
use proto::wire::view::{Data, HostView, JobRow};

/// The objects and lists that name a host, and the tasks that run there.
#[derive(Debug, Default)]
struct HostReferences {
    /// Kinds of lists and objects that are the host's own.
    own: Vec<ObjectKind>,
    groups: Vec<String>,
    queues: Vec<String>,
    /// Queues with values for this host alone.
    overrides: Vec<String>,
    is_certified: bool,
    /// Jobs, with their tasks where they are arrays.
    tasks: Vec<JobTarget>,
}

/// Removes a host.
pub fn run(parsed: &CommandLine, name: &str) -> Outcome {
    let mut client = Client::connect(&CellAddress::from_command_line(parsed), "gridwright host")?.with_raw_values();
    let host = called(&mut client, name)?;
    let found = look(&mut client, &host)?;
    if found.is_nowhere() {
        let what = format!("there is no host \"{host}\" in this cell");
        return Err(Diagnostic::new(Code::UnknownObject, what)
            .fix("gridwright host list shows the hosts")
            .into());
    }
    must_not_be_master(&mut client, &host)?;
    output::data(&found.text(&host));
    if !found.tasks.is_empty() && !parsed.has("--force") {
        let what = format!("denied: tasks run on host \"{host}\"");
        let fix = format!(
            "qmod -d '*@{host}' lets no new ones start: wait, or move them with qmod -rq '*@{host}'; --force deletes them"
        );
        return Err(Diagnostic::new(Code::WrongState, what).fix(fix).into());
    }
    if parsed.has("--dry-run") {
        return Ok(exit::OK);
    }
    if !found.tasks.is_empty() {
        let jobs = JobSelection {
            targets: found.tasks.clone(),
            ..JobSelection::default()
        };
        output::answers(&client.change(Command::Delete { jobs, force: true })?.answers);
    }
    let code = output::answers(&client.change(Command::Objects(found.changes(&host)))?.answers);
    if code != exit::OK {
        return Ok(code);
    }
    if found.is_certified {
        let code = output::answers(&client.change(Command::RevokeHost { host: host.to_string() })?.answers);
        if code != exit::OK {
            return Ok(code);
        }
    }
    output::data(&format!(
        "host {host} is removed; on the host itself: gridwright down\n"
    ));
    Ok(exit::OK)
}

/// The cell's name of a host.
fn called(client: &mut Client, name: &str) -> Result<HostName, Fail> {
    let names = match ask::data(
        client,
        Query::HostNames {
            names: vec![name.to_owned()],
        },
    )? {
        Some(Data::Names(names)) => names,
        other => ask::unexpected(other.as_ref())?,
    };
    Ok(HostName::new(names.first().map_or(name, String::as_str)))
}

fn must_not_be_master(client: &mut Client, host: &HostName) -> Result<(), Fail> {
    match ask::data(client, Query::Status)? {
        Some(Data::Status(status)) if status.host == host.as_str() => {
            let what = format!("denied: {host} is the host of the master");
            let refusal = Diagnostic::new(Code::Immutable, what);
            Err(refusal
                .fix(format!("to let no jobs run there: qmod -d '*@{host}'"))
                .into())
        }
        Some(_) | None => Ok(()),
    }
}

fn look(client: &mut Client, host: &HostName) -> Result<HostReferences, Fail> {
    let mut found = HostReferences::default();
    for kind in [
        ObjectKind::ExecHost,
        ObjectKind::AdminHosts,
        ObjectKind::SubmitHosts,
        ObjectKind::ClusterConf,
    ] {
        if ask::names(client, kind)?
            .iter()
            .any(|name| name.as_str() == host.as_str())
        {
            found.own.push(kind);
        }
    }
    for (name, fields) in objects(client, ObjectKind::HostGroup)? {
        if has_host(&fields, host) {
            found.groups.push(name);
        }
    }
    for (name, fields) in objects(client, ObjectKind::Queue)? {
        if fields.iter().any(|field| field.value.contains(&format!("[{host}="))) {
            found.overrides.push(name.clone());
        }
        if has_host(&fields, host) {
            found.queues.push(name);
        }
    }
    if found.own.contains(&ObjectKind::ExecHost) {
        let filter = HostFilter {
            hosts: vec![host.to_string()],
            ..HostFilter::default()
        };
        let views = ask::hosts(client, Query::Hosts(filter))?;
        found.is_certified = views
            .iter()
            .any(|view: &HostView| view.host == *host && view.certified_until.is_some());
        found.tasks = tasks(client, host)?;
    }
    Ok(found)
}

/// All objects of a kind by name.
fn objects(client: &mut Client, kind: ObjectKind) -> Result<Vec<(String, Fields)>, Fail> {
    let mut all = Vec::new();
    for name in ask::names(client, kind)? {
        if let Some(Data::Object(fields)) = ask::data(
            client,
            Query::Object {
                kind,
                name: name.clone(),
            },
        )? {
            all.push((name, fields));
        }
    }
    Ok(all)
}

fn has_host(fields: &Fields, host: &HostName) -> bool {
    let list = fields.value("hostlist").and_then(|text| text.parse::<HostList>().ok());
    list.is_some_and(|list| list.contains(&HostOrGroup::Host(host.clone())))
}

fn tasks(client: &mut Client, host: &HostName) -> Result<Vec<JobTarget>, Fail> {
    let filter = JobFilter {
        users: vec!["*".to_owned()],
        states: JobStates {
            pending: false,
            ..JobStates::default()
        },
        queues: vec![format!("*@{host}")],
        ..JobFilter::default()
    };
    Ok(ask::jobs(client, Query::Jobs(filter))?
        .iter()
        .flat_map(targets)
        .collect())
}

fn targets(row: &JobRow) -> Vec<JobTarget> {
    let job = row.number.to_string();
    match row.array {
        None => vec![JobTarget { job, tasks: Vec::new() }],
        Some(_) => {
            let one = |task: TaskId| TaskRange::new(task.0, task.0, 1).ok();
            let ranges = row.tasks.iter().filter_map(|task| one(task.task));
            ranges
                .map(|range| JobTarget {
                    job: job.clone(),
                    tasks: vec![range],
                })
                .collect()
        }
    }
}

impl HostReferences {
    fn is_nowhere(&self) -> bool {
        self.own.is_empty() && self.groups.is_empty() && self.queues.is_empty() && self.overrides.is_empty()
    }

    /// Returns the places that name the host, one line per kind.
    fn text(&self, host: &HostName) -> String {
        let mut text = format!("host {host}\n");
        let mut line = |what: &str, names: &[String]| {
            if !names.is_empty() {
                text.push_str(&format!("  {what}: {}\n", names.join(", ")));
            }
        };
        let own: Vec<String> = self.own.iter().map(ToString::to_string).collect();
        line("it is in the list of each", &own);
        line("host groups that name it", &self.groups);
        line("queues that name it", &self.queues);
        line("queues with values of its own", &self.overrides);
        let name = |target: &JobTarget| match target.tasks.first() {
            Some(range) => format!("{}.{}", target.job, range.first()),
            None => target.job.clone(),
        };
        line(
            "jobs and tasks that run there",
            &self.tasks.iter().map(name).collect::<Vec<_>>(),
        );
        text
    }

    /// The changes after which nothing names the host: what names it before what it is.
    fn changes(&self, host: &HostName) -> Vec<ObjectChange> {
        let change = |kind, name: String, action| ObjectChange { kind, name, action };
        let leave = || ObjectAction::Attribute {
            edit: AttributeEdit::Delete,
            attribute: "hostlist".to_owned(),
            value: host.to_string(),
        };
        let all = || ObjectAction::Purge {
            attributes: vec!["*".to_owned()],
        };
        let overrides = self
            .overrides
            .iter()
            .map(|name| change(ObjectKind::Queue, format!("{name}@{host}"), all()));
        let queues = self
            .queues
            .iter()
            .map(|name| change(ObjectKind::Queue, name.clone(), leave()));
        let groups = self
            .groups
            .iter()
            .map(|name| change(ObjectKind::HostGroup, name.clone(), leave()));
        // The execution host last: it has to be free of all others.
        let own = self
            .own
            .iter()
            .rev()
            .map(|kind| change(*kind, host.to_string(), ObjectAction::Delete));
        overrides.chain(queues).chain(groups).chain(own).collect()
    }
}
