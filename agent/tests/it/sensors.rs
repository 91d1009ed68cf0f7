//! Load sensors as processes: one that works, one that hangs, one that ends at once.

use crate::cell::{Cell, Host, often};
use crate::launcher::Launcher;
use proto::amount::Type;
use proto::load::SensorStatus;
use proto::wire::agent::{AgentConfig, AgentMessage, MasterMessage};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

pub(crate) const GOOD: &str = "#!/bin/sh
while read -r line; do
  [ \"$line\" = quit ] && exit 0
  echo begin; echo \"$HOST:lic:4\"; echo 'global:day:Sat'; echo end
done
";

/// Writes an executable file, moved into place so that no other thread's fork holds it open for
/// writing.
pub(crate) fn program(dir: &Path, name: &str, text: &str) -> String {
    let (draft, path) = (dir.join(format!("{name}.new")), dir.join(name));
    let script = format!(
        "cat > '{0}' && chmod 755 '{0}' && mv '{0}' '{1}'",
        draft.display(),
        path.display()
    );
    let mut shell = Command::new("/bin/sh")
        .arg("-c")
        .arg(script)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(shell.wait().unwrap().success());
    path.to_str().unwrap().to_owned()
}

fn with(sensors: &[&str]) -> AgentConfig {
    AgentConfig {
        load_sensors: sensors.iter().map(|sensor| (*sensor).to_owned()).collect(),
        ..often()
    }
}

/// Waits for a status of the sensors that is as it should be.
async fn status(host: &mut Host, is_right: impl Fn(&[SensorStatus]) -> bool) -> Vec<SensorStatus> {
    loop {
        match host.message().await {
            AgentMessage::Sensors(statuses) if is_right(&statuses) => return statuses,
            AgentMessage::Sensors(_)
            | AgentMessage::Task(_)
            | AgentMessage::Usage(_)
            | AgentMessage::Refused(_)
            | AgentMessage::Health { .. } => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sensor_that_works_reports_beside_one_that_hangs_and_one_that_ends() {
    let cell = Cell::new();
    let good = program(cell.path(), "good", GOOD);
    let hangs = program(cell.path(), "hangs", "#!/bin/sh\nexec sleep 1000\n");
    let ends = program(cell.path(), "ends", "#!/bin/sh\necho no licence server >&2\nexit 3\n");
    let launcher = Launcher::new(cell.path());
    let _agent = cell.start_agent();
    let _session = launcher.accept(vec![]);
    let (_, mut host) = cell.welcome(with(&[&hangs, &ends, &good])).await;
    let has_value = async {
        loop {
            let report = host.load_report().await;
            if report
                .values
                .get("node1")
                .and_then(|own| own.get("lic"))
                .is_some_and(|value| value == "4")
            {
                return report;
            }
        }
    };
    let report = has_value.await;
    assert_eq!(report.values["global"]["day"], "Sat");
    let statuses = status(&mut host, |statuses| {
        statuses.len() == 3 && statuses[1].health == "failing"
    })
    .await;
    assert_eq!((statuses[2].health.as_str(), statuses[2].values), ("running", 2));
    assert!(statuses[1].last_error.contains("exit status 3"), "{statuses:?}");
    assert_eq!(statuses[1].stderr, ["no licence server"]);
    assert_eq!(statuses[0].health, "starting");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sensor_that_is_no_longer_wanted_withdraws_its_values() {
    let cell = Cell::new();
    let good = program(cell.path(), "good", GOOD);
    let launcher = Launcher::new(cell.path());
    let _agent = cell.start_agent();
    let _session = launcher.accept(vec![]);
    let (_, mut host) = cell.welcome(with(&[&good])).await;
    let names = |report: &proto::load::LoadReport| report.values.get("node1").cloned().unwrap_or_default();
    while !names(&host.load_report().await).contains_key("lic") {}
    host.say(MasterMessage::Configure(with(&[]))).await;
    loop {
        let report = host.load_report().await;
        if report
            .withdrawn
            .get("node1")
            .is_some_and(|names| names.contains(&"lic".into()))
        {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sensor_whose_file_changed_is_started_anew() {
    let cell = Cell::new();
    let path = program(cell.path(), "good", GOOD);
    let launcher = Launcher::new(cell.path());
    let _agent = cell.start_agent();
    let _session = launcher.accept(vec![]);
    let (_, mut host) = cell.welcome(with(&[&path])).await;
    let first = status(
        &mut host,
        |statuses| matches!(statuses, [only] if only.health == "running"),
    )
    .await;
    program(cell.path(), "good", GOOD);
    let is_new = |status: &SensorStatus| status.restarts == 1 && status.pid.is_some() && status.pid != first[0].pid;
    status(&mut host, |statuses| matches!(statuses, [only] if is_new(only))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_others_can_write_is_refused_with_the_remedy() {
    let cell = Cell::new();
    let path = program(cell.path(), "open", GOOD);
    assert!(Command::new("chmod").args(["777", &path]).status().unwrap().success());
    let launcher = Launcher::new(cell.path());
    let _agent = cell.start_agent();
    let _session = launcher.accept(vec![]);
    let (_, mut host) = cell.welcome(with(&[&path])).await;
    let statuses = status(
        &mut host,
        |statuses| matches!(statuses, [only] if only.health == "refused"),
    )
    .await;
    assert!(statuses[0].last_error.contains("chmod go-w"), "{statuses:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_of_the_wrong_type_is_counted_and_hides_no_good_one() {
    let cell = Cell::new();
    let good = program(cell.path(), "good", GOOD);
    let bad = program(
        cell.path(),
        "bad",
        &GOOD
            .replace("lic:4", "lic:abc")
            .replace("'global:day:Sat'", "\"$HOST:nosuch:1\""),
    );
    let launcher = Launcher::new(cell.path());
    let _agent = cell.start_agent();
    let _session = launcher.accept(vec![]);
    let types = [("lic".into(), Type::Int), ("day".into(), Type::String)].into();
    let config = AgentConfig {
        attribute_types: Arc::new(types),
        ..with(&[&good, &bad])
    };
    let (_, mut host) = cell.welcome(config).await;
    let both = |statuses: &[SensorStatus]| statuses.len() == 2 && statuses.iter().all(|status| status.values == 2);
    let statuses = status(&mut host, both).await;
    assert_eq!((statuses[0].faults.count, statuses[1].faults.count), (0, 2));
    assert_eq!(
        statuses[1].faults.examples,
        [
            "lic for this host: \"abc\" is not of type INT",
            "nosuch for this host: the complex has no such attribute"
        ]
    );
    host.say(MasterMessage::ReportNow).await;
    loop {
        let report = host.load_report().await;
        if report.full && report.sequence > 1 {
            assert_eq!(report.values["node1"].get("lic").map(String::as_str), Some("4"));
            return;
        }
    }
}
