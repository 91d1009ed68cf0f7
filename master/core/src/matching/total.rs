//! Load values that never exceed another value of their host.

use super::demand::{Demand, WantedValue};
use super::load::Load;
use super::offer::is_ordered;
use super::{Cluster, LevelView};
use crate::reason::Value;
use crate::reason::{Obstacle, Shortage};
use proto::amount::{Amount, Millionths};
use proto::complex::Relop;
use proto::wire::view::Dominance;

/// Pairs of attributes: the free amount and the total of the same thing.
const TOTALS: [(&str, &str); 3] = [
    ("mem_free", "mem_total"),
    ("swap_free", "swap_total"),
    ("virtual_free", "virtual_total"),
];

/// The first request of a load value that exceeds the total its host reports, if there is one.
pub fn total_exceeded(cluster: &Cluster<'_>, host: &LevelView<'_, '_>, demand: &Demand) -> Option<Obstacle> {
    let asked = demand
        .hard
        .iter()
        .filter(|request| !request.implied && is_ordered(&request.attribute));
    let mut asked = asked.filter(|request| matches!(request.attribute.relop, Relop::Less | Relop::LessEqual));
    asked.find_map(|request| {
        let attribute = &request.attribute;
        let (_, total) = TOTALS.iter().find(|(free, _)| *free == attribute.name.as_str())?;
        let WantedValue::Amount(wanted) = request.wanted else {
            return None;
        };
        let total = known(cluster, host, total)?;
        let is_scaled = host
            .host
            .is_some_and(|host| host.load_scaling.factor(attribute.name.as_str()) != Millionths::ONE);
        if is_scaled || wanted <= total {
            return None;
        }
        Some(Obstacle::Offers(Shortage {
            attribute: attribute.name.clone(),
            r#type: attribute.r#type,
            dominance: Dominance {
                level: host.level.letter(),
                source: 'l',
            },
            needed: Value::Amount(wanted),
            free: Value::Amount(known(cluster, host, attribute.name.as_str()).unwrap_or(total)),
            capacity: Some(total),
        }))
    })
}

fn known(cluster: &Cluster<'_>, host: &LevelView<'_, '_>, name: &str) -> Option<Amount> {
    let attribute = cluster.config.complex.lookup(name)?;
    match cluster.load(host, attribute)? {
        Load::Known {
            value: Value::Amount(amount),
            ..
        } => Some(amount),
        Load::Known {
            value: Value::Text(_), ..
        }
        | Load::Presumed => None,
    }
}
