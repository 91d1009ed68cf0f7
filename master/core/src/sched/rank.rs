//! The rank phase: which of several suitable queue instances is best (ALGORITHMS.md section 8).

use crate::ledger::SLOTS;
use crate::matching::{Cluster, HostView, InstanceView, LevelView, Value};
use proto::amount::{Amount, Millionths};
use proto::complex::Attribute;
use proto::id::AttributeName;
use proto::policy::{LoadFormula, Operand, Operator, QueueSortMethod, Sign, Term};

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
    let seq_no = site.spot.settings.map_or(0, |settings| i64::from(settings.seq_no));
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
    let spots = [host.spot, cluster.global()];
    let settings = sites.iter().filter_map(|site| site.spot.settings);
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
    attributes.any(|attribute| spots.iter().any(|spot| cluster.follows_bookings(spot, attribute)))
}

/// The value of a formula for a host, in millionths. `None` if a value is missing.
pub fn formula_value(
    cluster: &Cluster<'_>,
    formula: &LoadFormula,
    host: &HostView<'_, '_>,
    sites: &[InstanceView<'_, '_>],
) -> Option<i128> {
    let spots = [host.spot, cluster.global()];
    formula.terms().iter().try_fold(0i128, |sum, term| {
        let value = term_value(cluster, &spots, sites, term)?;
        Some(match term.sign {
            Sign::Plus => sum + value,
            Sign::Minus => sum - value,
        })
    })
}

fn term_value(
    cluster: &Cluster<'_>,
    spots: &[LevelView<'_, '_>],
    sites: &[InstanceView<'_, '_>],
    term: &Term,
) -> Option<i128> {
    let one = i128::from(Millionths::ONE.0);
    let value = match &term.operand {
        Operand::Number(number) => i128::from(number.0),
        Operand::Attribute(name) => attribute_value(cluster, spots, sites, name)?,
    };
    let Some((operator, constant)) = term.constant else {
        return Some(value);
    };
    let constant = i128::from(constant.0);
    let whole = (value / one, constant / one);
    Some(match operator {
        Operator::Times => value * constant / one,
        Operator::Over => (value * one).checked_div(constant)?,
        Operator::And => (whole.0 & whole.1) * one,
        Operator::Or => (whole.0 | whole.1) * one,
        Operator::Xor => (whole.0 ^ whole.1) * one,
    })
}

/// The value of an attribute in a formula, in millionths. `slots` of a host without a number of its
/// own are the free slots of its queue instances.
fn attribute_value(
    cluster: &Cluster<'_>,
    spots: &[LevelView<'_, '_>],
    sites: &[InstanceView<'_, '_>],
    name: &AttributeName,
) -> Option<i128> {
    let attribute = cluster.config.complex.get(name)?;
    match cluster.resolved(spots, attribute) {
        Some((_, Value::Amount(amount))) => Some(in_millionths(attribute, amount)),
        Some((_, Value::Text(_))) => None,
        None if attribute.name.as_str() == SLOTS => {
            let free = sites.iter().filter_map(|site| free_slots(cluster, site));
            Some(free.sum::<i128>() * i128::from(Millionths::ONE.0))
        }
        None => None,
    }
}

pub(super) fn free_slots(cluster: &Cluster<'_>, site: &InstanceView<'_, '_>) -> Option<i128> {
    let slots = i128::from(site.spot.settings?.slots);
    Some(slots - i128::from(cluster.slots_taken(&site.spot)))
}

fn in_millionths(attribute: &Attribute, amount: Amount) -> i128 {
    let scale = i128::from(Millionths::ONE.0 / attribute.r#type.base_units_in_one());
    i128::from(amount.finite().unwrap_or(i64::MAX)) * scale
}
