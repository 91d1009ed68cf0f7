//! The value of a load formula on a host (ALGORITHMS.md section 8); also the dynamic limits of
//! quotas have that form.

use super::{Cluster, HostView, InstanceView, LevelView};
use crate::ledger::SLOTS;
use crate::reason::Value;
use proto::amount::{Amount, Millionths};
use proto::complex::Attribute;
use proto::id::AttributeName;
use proto::policy::{LoadFormula, Operand, Operator, Sign, Term};

/// The value of a formula for a host, in millionths. `None` if a value is missing.
pub fn formula_value(
    cluster: &Cluster<'_>,
    formula: &LoadFormula,
    host: &HostView<'_, '_>,
    sites: &[InstanceView<'_, '_>],
) -> Option<i128> {
    let views = [host.view, cluster.global()];
    formula.terms().iter().try_fold(0i128, |sum, term| {
        let value = term_value(cluster, &views, sites, term)?;
        Some(match term.sign {
            Sign::Plus => sum + value,
            Sign::Minus => sum - value,
        })
    })
}

fn term_value(
    cluster: &Cluster<'_>,
    views: &[LevelView<'_, '_>],
    sites: &[InstanceView<'_, '_>],
    term: &Term,
) -> Option<i128> {
    let one = i128::from(Millionths::ONE.0);
    let value = match &term.operand {
        Operand::Number(number) => i128::from(number.0),
        Operand::Attribute(name) => attribute_value(cluster, views, sites, name)?,
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
    views: &[LevelView<'_, '_>],
    sites: &[InstanceView<'_, '_>],
    name: &AttributeName,
) -> Option<i128> {
    let attribute = cluster.config.complex.get(name)?;
    match cluster.resolved(views, attribute) {
        Some((_, Value::Amount(amount))) => Some(in_millionths(attribute, amount)),
        Some((_, Value::Text(_))) => None,
        None if attribute.name.as_str() == SLOTS => {
            let free = sites.iter().filter_map(|site| free_slots(cluster, site));
            Some(free.sum::<i128>() * i128::from(Millionths::ONE.0))
        }
        None => None,
    }
}

/// The slots of a queue instance that no task has; none if its settings are unknown.
pub(crate) fn free_slots(cluster: &Cluster<'_>, site: &InstanceView<'_, '_>) -> Option<i128> {
    let slots = i128::from(site.view.settings?.slots);
    Some(slots - i128::from(cluster.slots_taken(&site.view)))
}

fn in_millionths(attribute: &Attribute, amount: Amount) -> i128 {
    let scale = i128::from(Millionths::ONE.0 / attribute.r#type.base_units_in_one());
    i128::from(amount.finite().unwrap_or(i64::MAX)) * scale
}
