//! The rank phase: which of several suitable queue instances is best (ALGORITHMS.md section 8).

use crate::matching::formula::formula_value;
use crate::matching::{Cluster, HostView, InstanceView};
use proto::amount::Millionths;
use proto::policy::QueueSortMethod;

/// The value of a host whose formula cannot be computed: it is last.
const UNKNOWN: i64 = 9999 * Millionths::ONE.0;

/// The rank of a queue instance among those that take jobs, whoever asks. Lower is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// The host's value and the sequence number, in the order of `queue_sort_method`.
    first: i64,
    second: i64,
}

/// The rank of a queue instance. `value` is its host's ([`host_value`]).
pub fn rank(cluster: &Cluster<'_>, site: &InstanceView<'_, '_>, value: i64) -> Rank {
    let seq_no = site.view.settings.map_or(0, |settings| i64::from(settings.seq_no));
    let (first, second) = match cluster.config.scheduler.queue_sort_method {
        QueueSortMethod::Load => (value, seq_no),
        QueueSortMethod::SequenceNumber => (seq_no, value),
    };
    Rank { first, second }
}

/// The load formula for a host with these queue instances, in millionths; 9999 if a value is
/// missing.
pub fn host_value(cluster: &Cluster<'_>, host: &HostView<'_, '_>, sites: &[InstanceView<'_, '_>]) -> i64 {
    let formula = &cluster.config.scheduler.load_formula;
    let sum = formula_value(cluster, formula, host, sites);
    sum.map_or(UNKNOWN, |sum| {
        i64::try_from(sum).unwrap_or(if sum > 0 { i64::MAX } else { i64::MIN })
    })
}

/// Whether bookings on a host may change its value, the thresholds of its queue instances, or which
/// of them others suspend.
pub fn follows_bookings(cluster: &Cluster<'_>, host: &HostView<'_, '_>, sites: &[InstanceView<'_, '_>]) -> bool {
    let views = [host.view, cluster.global()];
    let settings = sites.iter().filter_map(|site| site.view.settings);
    if settings
        .clone()
        .any(|settings| settings.subordinate_list.value().is_some())
    {
        return true;
    }
    let thresholds = settings.flat_map(|settings| [&settings.load_thresholds, &settings.suspend_thresholds]);
    let thresholds = thresholds.flat_map(|list| list.iter()).map(|(name, _)| name);
    let attributes = cluster.config.scheduler.load_formula.attributes().chain(thresholds);
    let mut attributes = attributes.filter_map(|name| cluster.config.complex.get(name));
    attributes.any(|attribute| views.iter().any(|view| cluster.follows_bookings(view, attribute)))
}
