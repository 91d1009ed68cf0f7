//! What a host reports: its own values and its sensors' merged, and what of that changed since the
//! last report.
//!
//! Deliberately absent: sequence numbers and the connection, which belong to the agent's core.

use crate::collector::Values;
use crate::host::HostSpec;
use crate::text;
use proto::id::AttributeName;
use std::collections::BTreeMap;

/// Load values by the host they are for and by name.
pub type HostValues = BTreeMap<(HostSpec, AttributeName), String>;

/// The host's own values with the sensors' values laid over them, in order, and `np_load_*`
/// computed last.
///
/// A later sensor overrides an earlier one and the built-in values, as in 8.1.9. `np_load_*` of
/// this host is `load_*` divided by `num_proc` *after* merging: a sensor's `num_proc` changes them,
/// a sensor's own `np_load_*` is lost. Where one of the two is missing, no number, or `num_proc` is
/// below 1, the quotient is left out.
pub fn merge<'a>(built_in: &Values, sensors: impl IntoIterator<Item = &'a HostValues>) -> HostValues {
    let own = built_in
        .iter()
        .map(|(name, value)| ((HostSpec::This, name.clone()), value.clone()));
    let mut all: HostValues = own.collect();
    for sensor in sensors {
        all.extend(sensor.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    divide_loads(&mut all);
    all
}

fn divide_loads(all: &mut HostValues) {
    let this = |name: &str| (HostSpec::This, AttributeName::from(name));
    let figure = |all: &HostValues, name: &str| -> Option<f64> { all.get(&this(name))?.parse().ok() };
    let processors = figure(all, "num_proc").filter(|number| *number >= 1.0);
    for load in ["load_avg", "load_short", "load_medium", "load_long"] {
        let divided = this(&format!("np_{load}"));
        match (figure(all, load), processors) {
            (Some(load), Some(processors)) if load.is_finite() => {
                all.insert(divided, text::number(load / processors));
            }
            _ => {
                all.remove(&divided);
            }
        }
    }
}

/// What changed from one report to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta<K: Ord> {
    /// Values that are new or different.
    pub changed: BTreeMap<K, String>,
    /// What was reported before and is no longer known, ascending.
    pub withdrawn: Vec<K>,
}

impl<K: Ord> Delta<K> {
    /// Whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.withdrawn.is_empty()
    }
}

/// The difference between what was `sent` so far and what is known `now`. Against nothing sent,
/// everything is new.
pub fn delta<K: Ord + Clone>(sent: &BTreeMap<K, String>, now: &BTreeMap<K, String>) -> Delta<K> {
    let is_new = |(key, value): &(&K, &String)| sent.get(*key) != Some(*value);
    let changed = now
        .iter()
        .filter(is_new)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let withdrawn = sent.keys().filter(|key| !now.contains_key(*key)).cloned().collect();
    Delta { changed, withdrawn }
}

/// Applies `delta` to what was sent, as the receiver of the report does.
pub fn apply<K: Ord>(sent: &mut BTreeMap<K, String>, delta: Delta<K>) {
    let Delta { changed, withdrawn } = delta;
    for key in &withdrawn {
        sent.remove(key);
    }
    sent.extend(changed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::btree_map;
    use proptest::prelude::*;

    fn own(values: &[(&str, &str)]) -> Values {
        values
            .iter()
            .map(|(name, value)| (AttributeName::from(*name), (*value).to_owned()))
            .collect()
    }

    fn sensor(values: &[(&str, &str)]) -> HostValues {
        own(values)
            .into_iter()
            .map(|(name, value)| ((HostSpec::This, name), value))
            .collect()
    }

    fn check(built_in: &[(&str, &str)], sensors: &[HostValues], name: &str, expected: Option<&str>) {
        let merged = merge(&own(built_in), sensors);
        let value = merged.get(&(HostSpec::This, AttributeName::from(name)));
        assert_eq!(value.map(String::as_str), expected, "{name}");
    }

    #[test]
    fn load_per_processor_is_computed_after_merging() {
        let built_in = [("load_avg", "6.986816"), ("num_proc", "2")];
        check(&built_in, &[], "np_load_avg", Some("3.493408"));
        check(
            &built_in,
            &[sensor(&[("num_proc", "64")])],
            "np_load_avg",
            Some("0.109169"),
        );
        check(
            &built_in,
            &[sensor(&[("np_load_avg", "0.456")])],
            "np_load_avg",
            Some("3.493408"),
        );
        check(
            &built_in,
            &[sensor(&[("load_avg", "0.123"), ("num_proc", "64")])],
            "np_load_avg",
            Some("0.001922"),
        );
        check(&built_in, &[sensor(&[("load_avg", "high")])], "np_load_avg", None);
        check(&built_in, &[sensor(&[("num_proc", "0")])], "np_load_avg", None);
        check(&built_in, &[], "np_load_long", None);
    }

    #[test]
    fn a_later_sensor_overrides_an_earlier_one() {
        let sensors = [sensor(&[("lsf", "1")]), sensor(&[("lsf", "9")])];
        check(&[], &sensors, "lsf", Some("9"));
    }

    #[test]
    fn withdrawn_values_are_named() {
        let sent = own(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let now = own(&[("a", "1"), ("b", "4"), ("d", "5")]);
        let delta = delta(&sent, &now);
        assert_eq!(delta.changed, own(&[("b", "4"), ("d", "5")]));
        assert_eq!(delta.withdrawn, [AttributeName::from("c")]);
    }

    proptest! {
        #[test]
        fn applying_a_delta_gives_what_is_known_now(
            sent in btree_map(0u8..9, "[ab]", 0..9),
            now in btree_map(0u8..9, "[ab]", 0..9),
        ) {
            let mut received = sent.clone();
            apply(&mut received, delta(&sent, &now));
            prop_assert_eq!(&received, &now);
            prop_assert!(delta(&received, &now).is_empty());
        }
    }
}
