//! `gridwright doctor --cell`: the master, every host and every load sensor, as the master knows
//! them. What only a host itself can see (its clock, disk and certificate) is examined by
//! `gridwright doctor` there.

use super::checks::judge_sensor;
use super::finding::Finding;
use crate::cell_address::CellAddress;
use crate::client::Client;
use proto::amount::{Amount, Type};
use proto::diagnostic::Diagnostic;
use proto::id::HostName;
use proto::load::SensorStatus;
use proto::object::ObjectKind;
use proto::wire::client::{Answer, HostFilter, Query, QueueFilter};
use proto::wire::view::{CellStatus, Data, HostView, QueueView};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// How long the master may take to answer all questions. A host that is cut off has no answer.
const PATIENCE: Duration = Duration::from_secs(8);

/// `max_unheard` of the cluster configuration, where it does not say.
const MAX_UNHEARD_S: u64 = 300;

/// What the master says about its cell.
#[derive(Default)]
struct CellFacts {
    status: CellStatus,
    hosts: Vec<HostView>,
    /// The queue instances in error, with the reasons.
    closed: Vec<QueueView>,
    sensors: BTreeMap<HostName, Vec<SensorStatus>>,
    /// Reports that are older than this, in seconds, count no longer.
    max_unheard_s: u64,
}

/// The findings about the cell that `dir` belongs to, the bad ones first.
pub fn all(dir: &Path) -> Vec<Finding> {
    within(dir, PATIENCE)
}

/// The findings, or that the master does not answer in time.
fn within(dir: &Path, patience: Duration) -> Vec<Finding> {
    let address = CellAddress::at(dir);
    let (sender, receiver) = mpsc::channel();
    let asked = address.clone();
    // A thread of its own: however the connection stalls, the answer is there in time.
    std::thread::spawn(move || drop(sender.send(CellFacts::ask(&asked))));
    match receiver.recv_timeout(patience) {
        Ok(Ok(facts)) => facts.findings(),
        Ok(Err(refusal)) => vec![refused(&refusal)],
        Err(_) => {
            let found = format!("no answer within {} s", patience.as_secs());
            vec![Finding::bad("master", found, address.where_to_look())]
        }
    }
}

/// The finding that the master refused a question.
fn refused(refusal: &Diagnostic) -> Finding {
    let found = match refusal.why.as_str() {
        "" => refusal.what.clone(),
        why => format!("{}: {why}", refusal.what),
    };
    Finding::bad("master", found, refusal.remedy())
}

impl CellFacts {
    /// Asks the master.
    ///
    /// # Errors
    /// The refusal of the first question that was not answered.
    fn ask(address: &CellAddress) -> Result<Self, Diagnostic> {
        let mut client = Client::connect(address, "gridwright doctor")?;
        let mut facts = Self {
            max_unheard_s: MAX_UNHEARD_S,
            ..Self::default()
        };
        let closed = QueueFilter {
            explain: "E".to_owned(),
            states: "E".to_owned(),
            ..QueueFilter::default()
        };
        let configuration = Query::Object {
            kind: ObjectKind::ClusterConf,
            name: String::new(),
        };
        let questions = [
            Query::Status,
            Query::Hosts(HostFilter::default()),
            Query::Queues(closed),
            Query::Sensors { hosts: Vec::new() },
            configuration,
        ];
        for question in questions {
            let reply = client.query(question)?;
            if let Some(refusal) = reply.answers.iter().find_map(Answer::refusal) {
                return Err(refusal.clone());
            }
            facts.take(reply.data);
        }
        Ok(facts)
    }

    /// Stores one answer.
    fn take(&mut self, data: Option<Data>) {
        match data {
            Some(Data::Status(status)) => self.status = *status,
            Some(Data::Hosts(hosts)) => self.hosts = hosts,
            Some(Data::Queues(closed)) => self.closed = closed,
            Some(Data::Sensors(sensors)) => self.sensors = sensors,
            Some(Data::Object(fields)) => {
                let limit = fields
                    .value("max_unheard")
                    .and_then(|text| Amount::parse(text, Type::Time).ok());
                self.max_unheard_s = match limit.map(Amount::finite) {
                    Some(Some(limit)) => limit.unsigned_abs(),
                    Some(None) => u64::MAX,
                    None => MAX_UNHEARD_S,
                };
            }
            // An answer without data holds nothing.
            Some(_) | None => {}
        }
    }

    /// A line for the master, each host and each sensor: the bad ones first, else in this order.
    fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![self.master(), self.version()];
        let hosts = self.hosts.iter().filter(|view| !view.host.is_global());
        findings.extend(hosts.map(|view| self.host(view)));
        for (host, sensors) in &self.sensors {
            findings.extend(sensors.iter().map(|sensor| judge_sensor(sensor).about(host.as_str())));
        }
        findings.sort_by_key(|finding| finding.fine);
        findings
    }

    fn master(&self) -> Finding {
        let CellStatus {
            software,
            host,
            port,
            uptime_ms,
            hosts,
            hosts_reporting,
            running,
            pending,
            ..
        } = &self.status;
        let found = format!(
            "version {software}, udp/{port}, up for {}, {hosts_reporting} of {hosts} hosts report, \
             {running} tasks run, {pending} wait",
            span(*uptime_ms)
        );
        Finding::fine("master", found).about(host)
    }

    /// The version of the cell. An upgrade that is not finalized yet is fine, and is shown.
    fn version(&self) -> Finding {
        let CellStatus {
            cell_version: present,
            newest_cell_version: newest,
            host,
            ..
        } = &self.status;
        let found = if present < newest {
            format!(
                "version {present}, and this release knows version {newest}: when every host runs it, gridwright finalize \
                 allows the new features, and from then on the older release cannot open the cell"
            )
        } else {
            format!("version {present}, the newest of this release")
        };
        Finding::fine("cell", found).about(host)
    }

    /// What is wrong with a host: the gravest thing alone, because the others follow from it.
    fn host(&self, view: &HostView) -> Finding {
        let host = &view.host;
        let elsewhere =
            format!("gridwright doctor on {host} says why; if it is gone for good: gridwright host remove {host}");
        let finding = match (view.connected, view.report_age_ms, view.certified_until) {
            (false, _, None) => {
                let fix = format!(
                    "gridwright token create here, then gridwright join on {host}; or gridwright host remove {host}"
                );
                Finding::bad(
                    "host",
                    "it has not joined the cell, or its certificates were revoked",
                    fix,
                )
            }
            (false, None, Some(_)) => Finding::bad("host", "it is not connected and has not reported", elsewhere),
            (false, Some(age), Some(_)) => {
                let found = format!("it is not connected; its last report came {} ago", span(age));
                Finding::bad("host", found, elsewhere)
            }
            (true, None, _) => Finding::bad("host", "it is connected and has not reported", elsewhere),
            (true, Some(age), _) if age / 1000 > self.max_unheard_s => {
                let found = format!(
                    "its last report came {} ago, and max_unheard is {} s",
                    span(age),
                    self.max_unheard_s
                );
                Finding::bad("host", found, elsewhere)
            }
            (true, Some(age), _) => self.starts(host, age),
        };
        finding.about(host.as_str())
    }

    /// A host that reports: whether its queue instances take jobs.
    fn starts(&self, host: &HostName, age_ms: u64) -> Finding {
        let closed: Vec<&QueueView> = self.closed.iter().filter(|queue| queue.host == *host).collect();
        let Some(first) = closed.first() else {
            return Finding::fine("host", format!("it reported {} ago", span(age_ms)));
        };
        let why = first.explain.last().map_or("", String::as_str);
        let found = format!("{} of its queue instances are in error: {why}", closed.len());
        let fix = format!("mend what it names; what stays then is opened by qmod -cq '*@{host}'");
        Finding::bad("host", found, fix)
    }
}

/// A time in its largest unit: `40 s`, `3 min`, `5 h`, `2 d`.
fn span(ms: u64) -> String {
    match ms / 1000 {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3_600 => format!("{} min", s / 60),
        s @ 3_600..86_400 => format!("{} h", s / 3_600),
        s => format!("{} d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::cell_version::CellVersion;
    use proto::diagnostic::Code;
    use proto::time::Wall;

    fn view(host: &str, connected: bool, report_age_ms: Option<u64>, has_joined: bool) -> HostView {
        HostView {
            host: host.into(),
            load: BTreeMap::new(),
            report_age_ms,
            agent_up_ms: None,
            connected,
            certified_until: has_joined.then_some(Wall(1)),
            resources: Vec::new(),
        }
    }

    fn closed(host: &str) -> QueueView {
        QueueView {
            queue: "all.q".into(),
            host: host.into(),
            kinds: "BIP".to_owned(),
            used: 0,
            reserved: 0,
            total: 1,
            load_avg: None,
            np_load_avg: None,
            arch: None,
            states: "E".to_owned(),
            explain: vec!["no space left".to_owned()],
            resources: Vec::new(),
            seq_no: 0,
            pes: Vec::new(),
        }
    }

    fn sensor(health: &str) -> SensorStatus {
        SensorStatus {
            command: "/opt/lic.sh".to_owned(),
            health: health.to_owned(),
            ..SensorStatus::default()
        }
    }

    fn facts(hosts: Vec<HostView>) -> CellFacts {
        CellFacts {
            status: CellStatus {
                software: "0.1.0".to_owned(),
                host: "m".to_owned(),
                port: 6444,
                uptime_ms: 7_200_000,
                hosts: 2,
                hosts_reporting: 1,
                cell_version: CellVersion(2),
                newest_cell_version: CellVersion(2),
                ..CellStatus::default()
            },
            hosts,
            max_unheard_s: 60,
            ..CellFacts::default()
        }
    }

    #[test]
    fn a_host_is_judged_by_its_connection_its_reports_and_its_queue_instances() {
        for (view, words) in [
            (view("h", true, Some(3_000), true), "ok   host h: it reported 3 s ago"),
            (
                view("h", true, Some(61_000), true),
                "BAD  host h: its last report came 1 min ago, and max_unheard is 60 s",
            ),
            (
                view("h", true, None, true),
                "BAD  host h: it is connected and has not reported",
            ),
            (
                view("h", false, None, true),
                "BAD  host h: it is not connected and has not reported",
            ),
            (
                view("h", false, Some(90_000), true),
                "BAD  host h: it is not connected; its last report came 1 min ago",
            ),
            (view("h", false, None, false), "BAD  host h: it has not joined the cell"),
            (
                view("e", true, Some(0), true),
                "BAD  host e: 1 of its queue instances are in error: no space left",
            ),
        ] {
            let mut facts = facts(Vec::new());
            facts.closed.push(closed("e"));
            let finding = facts.host(&view);
            assert!(finding.text().starts_with(words), "{}", finding.text());
            assert_eq!(finding.fine, finding.fix.is_empty(), "{}", finding.text());
        }
    }

    /// A host that is cut off is the master's business; a master that is cut off is ours.
    #[test]
    fn a_master_that_takes_the_question_and_never_answers_is_bad() {
        let dir = std::env::temp_dir().join(format!("gridwright-doctor-{}", std::process::id()));
        let run = dir.join("run/master");
        std::fs::create_dir_all(&run).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(run.join("master.sock")).unwrap();
        let findings = within(&dir, Duration::from_millis(20));
        drop(listener);
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0].text().starts_with("BAD  master: no answer within "),
            "{}",
            findings[0].text()
        );
    }

    #[test]
    fn a_refusal_has_its_reason_and_a_remedy() {
        let refusal = Diagnostic::new(Code::Overloaded, "5 questions wait");
        let finding = refused(&refusal);
        assert_eq!(finding.text().lines().next(), Some("BAD  master: 5 questions wait"));
        assert_eq!(finding.fix, Code::Overloaded.remedy());
        let finding = refused(&refusal.why("the disk is slow").fix("wait"));
        assert!(
            finding
                .text()
                .starts_with("BAD  master: 5 questions wait: the disk is slow"),
            "{}",
            finding.text()
        );
        assert_eq!(finding.fix, "wait");
    }

    #[test]
    fn an_upgrade_that_is_not_finalized_is_shown_with_the_command() {
        let mut facts = facts(Vec::new());
        facts.status.cell_version = CellVersion(1);
        let text = facts.version().text();
        assert!(
            text.starts_with("ok   cell m: version 1, and this release knows version 2"),
            "{text}"
        );
        assert!(text.contains("gridwright finalize"), "{text}");
    }

    #[test]
    fn bad_lines_come_first_and_each_host_and_sensor_has_one() {
        let global = view("global", false, None, false);
        let mut facts = facts(vec![
            global,
            view("a", true, Some(1), true),
            view("b", false, None, true),
        ]);
        facts
            .sensors
            .insert("a".into(), vec![sensor("running"), sensor("failing")]);
        let findings = facts.findings();
        let lines: Vec<String> = findings
            .iter()
            .map(|finding| finding.text().lines().next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(
            lines,
            [
                "BAD  host b: it is not connected and has not reported",
                "BAD  sensor a: /opt/lic.sh is failing",
                "ok   master m: version 0.1.0, udp/6444, up for 2 h, 1 of 2 hosts report, 0 tasks run, 0 wait",
                "ok   cell m: version 2, the newest of this release",
                "ok   host a: it reported 0 s ago",
                "ok   sensor a: /opt/lic.sh is running",
            ]
        );
    }
}
