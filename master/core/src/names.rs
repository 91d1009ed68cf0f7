//! Host names in what people ask and command, brought to the names of the cell before anything else
//! reads them.
//!
//! What a name means is decided by [`HostNames`]; here is only where names stand in commands,
//! questions and load reports. Commands on objects are absent: each object's own change does it,
//! because changes of one command see those before them.

use proto::complex::Complex;
use proto::host::names::HostNames;
use proto::id::HostName;
use proto::job::{HostPath, JobChanges, JobSpec, Requests};
use proto::load::LoadReport;
use proto::object::ObjectKind;
use proto::request::ResourceRequest;
use proto::wire::client::{Command, HostFilter, JobFilter, Query, QueueFilter, QuotaFilter};

/// Where names stand in commands and questions, for one caller.
pub struct Rewriter<'a> {
    /// The hosts as the caller may name them.
    pub names: HostNames<'a>,
    /// The attributes, which tell those of type HOST.
    pub complex: &'a Complex,
}

impl Rewriter<'_> {
    /// A command with the cell's names.
    pub fn command(&self, command: &mut Command) {
        match command {
            Command::Submit(spec) => self.spec(spec),
            Command::Resubmit { changes, .. } | Command::Alter { changes, .. } => self.changes(changes),
            Command::Modify { targets, .. } => self.queues(targets),
            Command::StartSlave(request) => request.host = self.names.canonical(&request.host).to_string(),
            Command::Reserve(spec) => self.asked(&mut spec.requests),
            Command::Delete { .. }
            | Command::DeleteReservations { .. }
            | Command::Objects(_)
            | Command::Import(_)
            | Command::DryRun(_)
            | Command::CreateToken { .. }
            | Command::RevokeToken { .. }
            | Command::RevokeHost { .. }
            | Command::RebindHost { .. }
            | Command::SimulatedHosts { .. }
            | Command::Shutdown { .. }
            | Command::ClearUsage { .. }
            | Command::Finalize { .. }
            | Command::TriggerScheduling
            | Command::Orders(_)
            | Command::KillEventClients { .. } => {}
        }
    }

    /// A question with the cell's names.
    pub fn query(&self, query: &mut Query) {
        match query {
            Query::Jobs(JobFilter { queues, resources, .. }) | Query::Queues(QueueFilter { queues, resources, .. }) => {
                self.queues(queues);
                self.requests(resources);
            }
            Query::Hosts(HostFilter { hosts, resources, .. }) => {
                self.hosts(hosts);
                self.requests(resources);
            }
            Query::Quotas(QuotaFilter { hosts, .. }) => self.hosts(hosts),
            Query::Sensors { hosts } | Query::HostNames { names: hosts } => self.hosts(hosts),
            Query::Object {
                kind: ObjectKind::ExecHost | ObjectKind::ClusterConf,
                name,
            } if !name.is_empty() => {
                *name = self.names.canonical(name).to_string();
            }
            Query::Object {
                kind: ObjectKind::Queue,
                name,
            } => *name = self.names.in_queue(name),
            Query::Object { .. }
            | Query::JobDetails { .. }
            | Query::Reasons
            | Query::Template { .. }
            | Query::Names { .. }
            | Query::HostGroupTree { .. }
            | Query::Accounting(_)
            | Query::Changes(_)
            | Query::Wait { .. }
            | Query::WaitPlaced { .. }
            | Query::Explain { .. }
            | Query::Shares
            | Query::Categories { .. }
            | Query::Reservations { .. }
            | Query::QueuesWithoutHosts
            | Query::Kept
            | Query::WithoutEffect
            | Query::Events(_)
            | Query::EventClients
            | Query::Tokens
            | Query::Status => {}
        }
    }

    fn spec(&self, spec: &mut JobSpec) {
        self.asked(&mut spec.requests);
        let paths = [&mut spec.stdout, &mut spec.stderr, &mut spec.stdin, &mut spec.shell];
        paths.into_iter().for_each(|paths| self.paths(paths));
    }

    fn asked(&self, requests: &mut Requests) {
        let Requests {
            hard,
            soft,
            master,
            slaves,
            ..
        } = requests;
        [hard, soft, master, slaves]
            .into_iter()
            .for_each(|requests| self.requests(requests));
        let Requests {
            hard_queues,
            soft_queues,
            master_queues,
            slave_queues,
            ..
        } = requests;
        let lists = [hard_queues, soft_queues, master_queues, slave_queues];
        lists.into_iter().for_each(|queues| self.queues(queues));
    }

    fn changes(&self, changes: &mut JobChanges) {
        let JobChanges {
            hard,
            soft,
            master,
            slaves,
            ..
        } = changes;
        [hard, soft, master, slaves]
            .into_iter()
            .flatten()
            .for_each(|requests| self.requests(requests));
        let JobChanges {
            hard_queues,
            soft_queues,
            master_queues,
            slave_queues,
            ..
        } = changes;
        let lists = [hard_queues, soft_queues, master_queues, slave_queues];
        lists.into_iter().flatten().for_each(|queues| self.queues(queues));
        let paths = [
            &mut changes.stdout,
            &mut changes.stderr,
            &mut changes.stdin,
            &mut changes.shell,
        ];
        paths.into_iter().flatten().for_each(|paths| self.paths(paths));
    }

    fn requests(&self, requests: &mut [ResourceRequest]) {
        self.names.in_requests(requests, self.complex);
    }

    fn queues(&self, queues: &mut [String]) {
        queues.iter_mut().for_each(|queue| *queue = self.names.in_queue(queue));
    }

    fn hosts(&self, hosts: &mut [String]) {
        hosts.iter_mut().for_each(|host| *host = self.names.in_expression(host));
    }

    fn paths(&self, paths: &mut [HostPath]) {
        for host in paths.iter_mut().filter_map(|path| path.host.as_mut()) {
            *host = self.names.canonical(host.as_str());
        }
    }
}

/// A load report with the cell's names of the hosts that a sensor reports for. Where it names one
/// host twice, what stands under the cell's own name counts.
pub(crate) fn load_report(report: &mut LoadReport, canonical: impl Fn(&HostName) -> HostName) {
    let mut values = std::mem::take(&mut report.values);
    // Own names last: they override.
    let (own, other): (Vec<_>, Vec<_>) = std::mem::take(&mut values)
        .into_iter()
        .partition(|(subject, _)| canonical(subject) == *subject);
    for (subject, named) in other.into_iter().chain(own) {
        report.values.entry(canonical(&subject)).or_default().extend(named);
    }
    for (subject, named) in std::mem::take(&mut report.withdrawn) {
        report.withdrawn.entry(canonical(&subject)).or_default().extend(named);
    }
}
