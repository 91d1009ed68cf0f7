//! What `qhost -F` and `qstat -F` show: each attribute once, the most restrictive level winning
//! (ALGORITHMS.md section 3.4).

use super::offer::{Offer, Source};
use super::{Cluster, LevelView};
use crate::ledger::Level;
use crate::reason::Value;
use proto::amount::{Amount, Type};
use proto::complex::{Attribute, Relop};
use proto::wire::view::{Dominance, ResourceValue, ResourceView};

/// Attributes that hosts report, in the order in which 8.1.9 shows them. A site's own come next.
const OF_HOSTS: [&str; 28] = [
    "load_avg",
    "load_short",
    "load_medium",
    "load_long",
    "arch",
    "num_proc",
    "mem_free",
    "swap_free",
    "virtual_free",
    "mem_total",
    "swap_total",
    "virtual_total",
    "mem_used",
    "swap_used",
    "virtual_used",
    "swap_rsvd",
    "swap_rate",
    "cpu",
    "display_win_gui",
    "m_topology",
    "m_topology_inuse",
    "m_socket",
    "m_core",
    "m_thread",
    "np_load_avg",
    "np_load_short",
    "np_load_medium",
    "np_load_long",
];

/// Attributes of queue instances, likewise: the last.
const OF_QUEUES: [&str; 24] = [
    "qname",
    "hostname",
    "slots",
    "tmpdir",
    "seq_no",
    "rerun",
    "calendar",
    "s_rt",
    "h_rt",
    "s_cpu",
    "h_cpu",
    "s_fsize",
    "h_fsize",
    "s_data",
    "h_data",
    "s_stack",
    "h_stack",
    "s_core",
    "h_core",
    "s_rss",
    "h_rss",
    "s_vmem",
    "h_vmem",
    "min_cpu_interval",
];

/// Where an attribute is shown: what hosts report, what the site added, what queues have. The
/// site's own are in the order of `complex_values`, those of the cluster first and those of the
/// queue instance last; load values come before them.
fn place(views: &[LevelView<'_, '_>], name: &str) -> (u8, usize) {
    let at = |list: &[&str]| list.iter().position(|known| *known == name);
    match (at(&OF_HOSTS), at(&OF_QUEUES)) {
        (Some(at), _) => (0, at),
        (None, None) => {
            let values = views
                .iter()
                .rev()
                .filter_map(LevelView::complex_values)
                .flat_map(|values| values.iter());
            (
                1,
                values
                    .map(|(own, _)| own)
                    .position(|own| own == name)
                    .map_or(0, |at| at + 1),
            )
        }
        (None, Some(at)) => (2, at),
    }
}

impl Cluster<'_> {
    /// The attributes of a host or queue instance, resolved over its levels, in the order of 8.1.9.
    ///
    /// `names` limits them to those names or shortcuts, of which the unknown show nothing; an empty
    /// list shows all that any level defines.
    pub fn resources(&self, level: &Level, names: &[String]) -> Vec<ResourceView> {
        let is_named = |attribute: &Attribute| {
            names
                .iter()
                .any(|name| *name == attribute.name.as_str() || *name == attribute.shortcut)
        };
        let shown = self
            .config
            .complex
            .iter()
            .filter(|attribute| names.is_empty() || is_named(attribute));
        let views = self.above(level);
        let mut resources: Vec<ResourceView> = shown.filter_map(|attribute| self.resource(&views, attribute)).collect();
        resources.sort_by_cached_key(|resource| place(&views, resource.name.as_str()));
        resources
    }

    fn resource(&self, views: &[LevelView<'_, '_>], attribute: &Attribute) -> Option<ResourceView> {
        let (dominance, value) = self.resolved(views, attribute)?;
        let value = match value {
            Value::Amount(amount) => ResourceValue::Amount(amount),
            Value::Text(text) => ResourceValue::Text(text),
        };
        Some(ResourceView {
            name: attribute.name.clone(),
            r#type: attribute.r#type,
            dominance,
            value,
            free_ids: None,
        })
    }

    /// The value of an attribute over levels, nearest first, with the two letters that tell where
    /// it comes from.
    ///
    /// Of equally restrictive ones the farthest level counts, as in 8.1.9; where nothing is more or
    /// less restrictive, the nearest.
    pub fn resolved(&self, views: &[LevelView<'_, '_>], attribute: &Attribute) -> Option<(Dominance, Value)> {
        let mut best: Option<(Dominance, Value)> = None;
        for view in views {
            for (dominance, value) in self.shown(view, attribute) {
                let counts = |(by, best): &(Dominance, Value)| {
                    let is_farther = by.level != dominance.level;
                    is_stricter(attribute, &value, best) || is_farther && is_as_strict(attribute, &value, best)
                };
                if best.as_ref().is_none_or(counts) {
                    best = Some((dominance, value));
                }
            }
        }
        best
    }

    /// What a level offers, as it is shown.
    fn shown(
        &self,
        view: &LevelView<'_, '_>,
        attribute: &Attribute,
    ) -> impl Iterator<Item = (Dominance, Value)> + use<> {
        let is_exclusive = attribute.is_exclusive();
        let alone = (is_exclusive && self.has_exclusive(view, attribute)).then(|| self.exclusive_offer(view));
        let others = (!is_exclusive).then(|| self.offers(view, attribute));
        let letter = view.level.letter();
        let offers = alone.into_iter().chain(others.into_iter().flatten());
        offers.filter_map(move |offer| Some((offer.dominance(letter), offer.value?)))
    }

    /// Whether the object can be had alone now. 8.1.9 shows one less the slots in use, so -3 of a
    /// job of four; nothing is ever less than not free.
    fn exclusive_offer(&self, view: &LevelView<'_, '_>) -> Offer {
        let left = i64::from(self.slots_taken(view) == 0);
        let value = Some(Value::Amount(Amount::from_base(left)));
        Offer {
            value,
            shared: true,
            source: Source::Consumable,
            capacity: Some(Amount::TRUE),
        }
    }
}

fn is_stricter(attribute: &Attribute, value: &Value, best: &Value) -> bool {
    match (value, best, attribute.relop) {
        (Value::Amount(value), Value::Amount(best), Relop::Less | Relop::LessEqual) => value < best,
        (Value::Amount(value), Value::Amount(best), Relop::Greater | Relop::GreaterEqual) => value > best,
        (Value::Amount(value), Value::Amount(best), Relop::Exclusive) => value < best,
        (Value::Amount(_), Value::Amount(_), Relop::Equal | Relop::NotEqual)
        | (Value::Text(_), Value::Amount(_) | Value::Text(_), _)
        | (Value::Amount(_), Value::Text(_), _) => false,
    }
}

/// Whether both are as restrictive, of an attribute with an order.
fn is_as_strict(attribute: &Attribute, value: &Value, best: &Value) -> bool {
    value == best && !matches!(attribute.relop, Relop::Equal | Relop::NotEqual) && matches!(value, Value::Amount(_))
}

/// How a value is printed in the scheduler's messages: `2.000000`, `1.000G`, `true`.
pub fn message_text(value: &Value, r#type: Type) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Amount(amount) if r#type == Type::Bool => {
            if *amount == Amount::ZERO { "false" } else { "true" }.to_owned()
        }
        Value::Amount(amount) => amount.qhost_text(r#type),
    }
}
