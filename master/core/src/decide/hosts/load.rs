//! Load reports: which are believed, and what of them.

use crate::decide::Turn;
use crate::decide::hosts::agents;
use crate::effect::LoadLimits;
use crate::effect::{ConnectionId, Effect};
use crate::names;
use crate::observe::Observation;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{AttributeName, HostName};
use proto::load::{LoadReport, SensorStatus, ValueFaults};

/// Load sensors of one host whose health is kept.
const SENSORS: usize = 100;

/// Lines of standard error that are kept of one sensor.
const SENSOR_LINES: usize = 50;

/// Faults of values that are described of one sensor, and other hosts that one may report for.
const FAULTS: usize = 20;

/// Bytes that are kept of each text about a sensor.
const SENSOR_TEXT: usize = 1_024;

/// Takes a load report unless it is late, or comes over a connection that was replaced.
///
/// A host may report for itself, for `global`, and for other execution hosts (sensors/README.md
/// "The protocol"); the rest is dropped.
pub(crate) fn report(turn: &mut Turn<'_>, connection: ConnectionId, mut report: LoadReport) {
    let Some(host) = turn.agents().host_of(connection).cloned() else {
        return;
    };
    agents::heard(turn, &host);
    let known = turn.observations().hosts.get(&host);
    let (last, has_reported) = known.map_or((0, false), |known| (known.sequence, known.reported.is_some()));
    if report.sequence <= last || (!report.full && !has_reported) {
        return;
    }
    let config = &turn.state().config;
    let canonical = config.host_names(&turn.site().naming, &host);
    names::load_report(&mut report, |subject| canonical.canonical(subject.as_str()));
    let hosts = &config.exec_hosts;
    let is_subject = |subject: &HostName| *subject == host || hosts.contains_key(subject);
    report.values.retain(|subject, _| is_subject(subject));
    report.withdrawn.retain(|subject, _| is_subject(subject));
    let refused = keep_to_limits(turn, &host, &mut report);
    let at = turn.now.tick;
    turn.observe(Observation::Load {
        host: host.clone(),
        at,
        report: Box::new(report),
    });
    tell_refused(turn, host, refused);
}

/// Takes out of a report what is too long, and new values above the number that a host may have;
/// says how many.
fn keep_to_limits(turn: &Turn<'_>, host: &HostName, report: &mut LoadReport) -> usize {
    let LoadLimits { values, bytes } = turn.site().load;
    let known = turn.observations();
    // What the report withdraws makes room for the next one only.
    let mut room = values.saturating_sub(if report.full { 0 } else { known.reported_values(host) });
    let mut refused = 0;
    let mut outdated: Vec<(HostName, AttributeName)> = Vec::new();
    for (subject, of_subject) in &mut report.values {
        of_subject.retain(|name, text| {
            let is_new = report.full || !known.has_reported(host, subject, name);
            let is_taken = name.as_str().len() <= bytes && text.len() <= bytes && (!is_new || room > 0);
            room -= usize::from(is_taken && is_new);
            refused += usize::from(!is_taken);
            if !is_taken && !is_new {
                outdated.push((subject.clone(), name.clone()));
            }
            is_taken
        });
    }
    for (subject, name) in outdated {
        report.withdrawn.entry(subject).or_default().push(name);
    }
    refused
}

/// In the log once, and not with each report.
fn tell_refused(turn: &mut Turn<'_>, host: HostName, refused: usize) {
    let before = turn.observations().hosts.get(&host).map_or(0, |known| known.refused);
    if refused == before {
        return;
    }
    if before == 0 {
        let LoadLimits { values, bytes } = turn.site().load;
        let what = format!("{refused} load values of host {host} are refused");
        let why = format!("a host may report {values} values, names and values of {bytes} bytes");
        let fix = "look at its load sensors: gridwright sensor status; load_values and load_value_bytes of etc/master.toml are the limits";
        turn.effect(Effect::Warn(Diagnostic::new(Code::Overloaded, what).why(why).fix(fix)));
    }
    turn.observe(Observation::LoadRefused { host, values: refused });
}

/// Takes the health of a host's sensors, as many as can be shown.
pub(crate) fn sensors(turn: &mut Turn<'_>, host: HostName, mut sensors: Vec<SensorStatus>) {
    sensors.truncate(SENSORS);
    for SensorStatus {
        command,
        health,
        user,
        last_error,
        stderr,
        faults,
        ..
    } in &mut sensors
    {
        stderr.truncate(SENSOR_LINES);
        while faults.other_hosts.len() > FAULTS {
            faults.other_hosts.pop_last();
        }
        let texts = [command, health, user, last_error]
            .into_iter()
            .chain(stderr)
            .chain(&mut faults.examples);
        texts.for_each(shorten);
    }
    sensors.iter_mut().for_each(|sensor| add_strangers(turn, &host, sensor));
    tell_strangers(turn, &host, &sensors);
    turn.observe(Observation::Sensors { host, sensors });
}

/// Counts values for hosts that are no execution hosts of the cell among those that the cell cannot
/// use.
fn add_strangers(turn: &Turn<'_>, host: &HostName, sensor: &mut SensorStatus) {
    let ValueFaults {
        count,
        examples,
        other_hosts,
    } = &mut sensor.faults;
    examples.truncate(FAULTS);
    let config = &turn.state().config;
    let canonical = config.host_names(&turn.site().naming, host);
    let is_stranger = |other: &HostName| {
        let other = canonical.canonical(other.as_str());
        other != *host && !config.exec_hosts.contains_key(&other)
    };
    for (other, values) in other_hosts.iter().filter(|(other, _)| is_stranger(other)) {
        *count = count.saturating_add(*values);
        if examples.len() < FAULTS {
            examples.push(stranger(other));
        }
    }
}

fn stranger(host: &HostName) -> String {
    format!("values for host {host}: it is no execution host of the cell")
}

/// In the log once for each sensor and host, and not with each report. What else is wrong with a
/// value the agent logs.
fn tell_strangers(turn: &mut Turn<'_>, host: &HostName, sensors: &[SensorStatus]) {
    let known = turn.observations().hosts.get(host);
    let mut warnings = Vec::new();
    for sensor in sensors {
        let before = known.and_then(|known| known.sensors.iter().find(|known| known.command == sensor.command));
        for other in sensor.faults.other_hosts.keys() {
            let text = stranger(other);
            let is_new = before.is_none_or(|before| !before.faults.examples.contains(&text));
            if sensor.faults.examples.contains(&text) && is_new {
                let what = format!("load sensor {} of host {host} reports {text}", sensor.command);
                let fix = "mend the sensor, or add the host: qconf -ae; gridwright sensor status names such values";
                warnings.push(Diagnostic::new(Code::UnknownObject, what).fix(fix));
            }
        }
    }
    warnings
        .into_iter()
        .for_each(|warning| turn.effect(Effect::Warn(warning)));
}

fn shorten(text: &mut String) {
    text.truncate(text.floor_char_boundary(SENSOR_TEXT));
}
