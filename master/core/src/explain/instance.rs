//! State letters of queue instances, and what `-explain` says about them.

#[cfg(test)]
mod tests;

use crate::matching::{Cluster, message_text};
use crate::reason::Overload;
use proto::calendar::CalendarState;
use proto::id::{HostName, QueueInstanceName};

/// The state letters of a queue instance in the order of 8.1.9: `aACDduESscoP`.
pub fn state_letters(cluster: &Cluster<'_>, name: &QueueInstanceName) -> String {
    let set = cluster.instances.get(name);
    let letters = [
        ('a', !cluster.overloads(name).is_empty()),
        ('A', !cluster.suspend_alarms(name).is_empty()),
        ('C', set.is_some_and(|state| state.calendar == CalendarState::Suspended)),
        ('D', set.is_some_and(|state| state.calendar == CalendarState::Off)),
        ('d', set.is_some_and(|state| state.disabled)),
        ('u', is_unknown(cluster, &name.host)),
        (
            'E',
            set.is_some_and(|state| !state.errors.is_empty()) || unfit(cluster, &name.host).is_some(),
        ),
        ('S', set.is_some_and(|state| state.subordinate)),
        ('s', set.is_some_and(|state| state.suspended)),
        ('c', cluster.config.ambiguous.contains_key(name)),
        ('o', cluster.settings(name).is_none()),
        ('P', set.is_some_and(|state| state.preempted)),
    ];
    letters
        .into_iter()
        .filter_map(|(letter, is_set)| is_set.then_some(letter))
        .collect()
}

/// The lines of `-explain` about the states whose letters are asked for, in the order of the
/// letters.
pub fn state_reasons(cluster: &Cluster<'_>, name: &QueueInstanceName, asked: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for letter in asked.chars() {
        match letter {
            'a' => lines.extend(alarms(cluster, name, "load-threshold", &cluster.overloads(name))),
            'A' => lines.extend(alarms(
                cluster,
                name,
                "suspend-threshold",
                &cluster.suspend_alarms(name),
            )),
            'c' => lines.extend(
                cluster
                    .config
                    .ambiguous
                    .get(name)
                    .into_iter()
                    .flatten()
                    .map(ToString::to_string),
            ),
            'E' => {
                lines.extend(
                    cluster
                        .instances
                        .get(name)
                        .into_iter()
                        .flat_map(|state| state.errors.clone()),
                );
                let (queue, host) = (&name.queue, &name.host);
                let of_host = |why| format!("queue {queue} marked QERROR because host {host} cannot start jobs: {why}");
                lines.extend(unfit(cluster, host).map(of_host));
            }
            _ => {}
        }
    }
    lines
}

/// What keeps a host from starting tasks, until it is well again.
fn unfit<'a>(cluster: &Cluster<'a>, host: &HostName) -> Option<&'a str> {
    cluster.observations.hosts.get(host)?.unfit.as_deref()
}

/// Whether nothing is known of a host: never heard, or not for `max_unheard`.
fn is_unknown(cluster: &Cluster<'_>, host: &HostName) -> bool {
    cluster
        .observations
        .hosts
        .get(host)
        .is_none_or(|host| host.unheard || host.reported.is_none())
}

/// `alarm hl:np_load_avg=12.302979 load-threshold=0.1`, and why there is no value.
fn alarms(cluster: &Cluster<'_>, name: &QueueInstanceName, threshold: &str, overloads: &[Overload]) -> Vec<String> {
    overloads
        .iter()
        .map(|overload| alarm(cluster, name, threshold, overload))
        .collect()
}

fn alarm(cluster: &Cluster<'_>, name: &QueueInstanceName, threshold: &str, overload: &Overload) -> String {
    let Overload {
        attribute,
        r#type,
        relop: _,
        value,
        dominance,
        limit,
    } = overload;
    let Some(value) = value else {
        return match cluster.config.complex.lookup(attribute.as_str()) {
            None => format!("error: no complex attribute for threshold {attribute}"),
            Some(_) if is_unknown(cluster, &name.host) => {
                format!("error: no value for \"{attribute}\" because execd is in unknown state")
            }
            Some(_) => format!("error: no value for \"{attribute}\" because no load value is reported"),
        };
    };
    // A value that is as it was reported is shown so.
    let host = if dominance.level == 'g' {
        HostName::global()
    } else {
        name.host.clone()
    };
    let reported = cluster
        .observations
        .load
        .get(&host)
        .and_then(|values| values.get(attribute));
    let value = match reported.filter(|_| dominance.source == 'l') {
        Some(entry) => entry.text.clone(),
        None => message_text(value, *r#type),
    };
    format!(
        "alarm {}{}:{attribute}={value} {threshold}={limit}",
        dominance.level, dominance.source
    )
}
