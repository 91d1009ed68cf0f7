//! What a job asks of one limit of a rule.

use crate::ledger::quota::Scope;
use crate::ledger::{RequestScope, SLOTS};
use crate::matching::formula::formula_value;
use crate::matching::{Cluster, Demand, Mode, Request, WantedValue};
use crate::reason::QuotaDenial;
use crate::reason::Value;
use proto::amount::{Amount, Millionths, Type};
use proto::complex::{Attribute, Consumable, Relop, Requestable};
use proto::id::HostName;
use proto::quota::{Limit, LimitValue, QuotaSet};

/// A claim of a job on a limit.
#[derive(Clone, Debug)]
pub(crate) enum Claim<'a> {
    /// So much is taken of what is left.
    Takes(QuotaCharge<'a>),
    /// The limit has no room at all for some slots of the job.
    Denied(RequestScope, Box<QuotaDenial>),
}

/// What is taken of a limit, and what is left of it.
#[derive(Clone, Debug)]
pub(crate) struct QuotaCharge<'a> {
    attribute: &'a Attribute,
    /// What the master takes, for its slot or once. Of this and the next one is above zero.
    master: Amount,
    /// What each other slot takes, or all of them once on each host. What is charged once for the
    /// job is charged for the master.
    other: Amount,
    /// Whether the two are asked for apart.
    is_apart: bool,
    /// Whether slots beside the master, on its host, take nothing.
    spares_companions: bool,
    limit: Amount,
    /// What others have in use.
    used: Amount,
    left: Amount,
}

/// Slots for which there is to be room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotGroup {
    /// How many.
    pub(crate) slots: u32,
    /// Which of them may be the master's.
    pub(crate) side: Side,
    /// Whether the job had nothing on their host yet.
    pub(crate) is_new_host: bool,
    /// Whether the job had nothing but its master there.
    pub(crate) is_first_other: bool,
    /// Whether they are on the host of the master.
    pub(crate) is_beside: bool,
}

/// Whose slots are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The master's is among them.
    Master,
    /// It is not.
    Others,
    /// It may be: as many slots are meant as there can be room for at all.
    Any,
}

impl QuotaCharge<'_> {
    /// What is taken once, for the master's slot or for the host, and what for each other slot, if
    /// there are others.
    fn prices(&self, part: SlotGroup, has_others: bool) -> (Amount, Amount) {
        let is_spared = self.spares_companions && (part.is_beside || part.side != Side::Others);
        let other = if is_spared { Amount::ZERO } else { self.other };
        let master = if part.side == Side::Master {
            self.master
        } else {
            Amount::ZERO
        };
        match (self.attribute.consumable, self.is_apart) {
            (Consumable::Yes | Consumable::No, _) => (master, other),
            (Consumable::Job, _) => (master, Amount::ZERO),
            (Consumable::Host, false) if part.is_new_host => (self.other, Amount::ZERO),
            (Consumable::Host, false) => (Amount::ZERO, Amount::ZERO),
            (Consumable::Host, true) if part.is_first_other && has_others => {
                (master.saturating_add(other), Amount::ZERO)
            }
            (Consumable::Host, true) => (master, Amount::ZERO),
        }
    }

    /// What slots take.
    fn amount(&self, part: SlotGroup) -> Amount {
        let others = part.slots.saturating_sub(u32::from(part.side == Side::Master));
        let (once, each) = self.prices(part, others > 0);
        once.saturating_add(each.times(others))
    }

    /// How many slots there is room for, of those of a part at most.
    pub(crate) fn most(&self, part: SlotGroup) -> u32 {
        let fits = |slots: u32| self.amount(SlotGroup { slots, ..part }) <= self.left;
        if fits(part.slots) {
            return part.slots;
        }
        let (once, each) = self.prices(part, true);
        let is_master = u32::from(part.side == Side::Master);
        let numbers = || {
            Some((
                self.left.checked_sub(once)?.finite()?,
                each.finite().filter(|each| *each > 0)?,
            ))
        };
        let others = numbers().map_or(0, |(left, each)| u32::try_from(left.max(0) / each).unwrap_or(u32::MAX));
        // One may be the master's, which may take less than the others do.
        let spare = u32::from(part.side == Side::Any && self.master < self.other);
        let slots = others.saturating_add(is_master).saturating_add(spare).min(part.slots);
        if part.side == Side::Any || fits(slots) {
            slots
        } else {
            0
        }
    }

    /// Takes what slots take; there is room for it.
    pub(crate) fn take(&mut self, part: SlotGroup) {
        self.left = self.left.checked_sub(self.amount(part)).unwrap_or(self.left);
    }

    /// Gives back what slots took that were not the master's. What is charged once on a host stays
    /// taken.
    pub(crate) fn give_back(&mut self, part: SlotGroup) {
        let (_, each) = self.prices(part, true);
        self.left = self.left.checked_add(each.times(part.slots)).unwrap_or(self.left);
    }

    /// That there is no room for so many slots, whatever of them found room so far.
    pub(crate) fn denial(&self, set: &QuotaSet, scope: &Scope, slots: u32) -> QuotaDenial {
        let side = Side::Master;
        let needed = self.amount(SlotGroup {
            slots,
            side,
            is_new_host: true,
            is_first_other: true,
            is_beside: false,
        });
        let (needed, limit) = (Some(Value::Amount(needed)), Value::Amount(self.limit));
        QuotaDenial {
            used: Some(self.used),
            ..denial(set, scope, self.attribute, needed, limit)
        }
    }
}

fn denial(set: &QuotaSet, scope: &Scope, attribute: &Attribute, needed: Option<Value>, limit: Value) -> QuotaDenial {
    QuotaDenial {
        rule: set.rule_name(scope.rule),
        scope: scope.clone(),
        attribute: attribute.name.clone(),
        r#type: attribute.r#type,
        needed,
        is_whole: true,
        used: None,
        limit,
    }
}

/// The claims of a job on a limit; none if the limit is not about it. `spares_companions` if slots
/// beside the master take nothing of what is asked for apart.
pub(crate) fn claims<'a>(
    cluster: &Cluster<'a>,
    demand: &Demand,
    spares_companions: bool,
    (set, scope): (&QuotaSet, &Scope),
    limit: &Limit,
    host: Option<&HostName>,
) -> Vec<Claim<'a>> {
    let Some(attribute) = cluster.config.complex.lookup(limit.attribute.as_str()) else {
        return Vec::new();
    };
    let denied = |whose, needed, limit| Claim::Denied(whose, Box::new(denial(set, scope, attribute, needed, limit)));
    let apart = demand.apart.iter().find(|apart| apart.attribute.name == attribute.name);
    let each = || {
        demand
            .hard
            .iter()
            .find(|request| request.attribute.name == attribute.name)
    };
    let [master, other] = apart.map_or_else(|| [each(); 2], |apart| [apart.master.as_ref(), apart.slaves.as_ref()]);
    let sides = [(RequestScope::Master, master), (RequestScope::Slaves, other)];
    let sides = if apart.is_some() {
        &sides[..]
    } else {
        &[(RequestScope::All, master)]
    };
    let allowed = value(cluster, limit, attribute, host);
    let mut claims = Vec::new();
    for (whose, request) in sides {
        let asked = request.filter(|request| !request.implied);
        let beyond = if asked.is_none() && attribute.requestable == Requestable::Forced {
            allowed.clone().map(|allowed| (None, allowed))
        } else if attribute.is_exclusive() {
            exclusive(cluster, asked, scope, attribute).map(|limit| (Some(Value::Amount(Amount::TRUE)), limit))
        } else if attribute.consumable.is_consumable() {
            None
        } else {
            let limited = asked
                .zip(allowed.clone())
                .filter(|(request, allowed)| !is_allowed(request, allowed));
            limited.map(|(request, allowed)| (Some(request.wanted.value()), allowed))
        };
        claims.extend(beyond.map(|(needed, limit)| denied(*whose, needed, limit)));
    }
    let is_counted = attribute.consumable.is_consumable() && !attribute.is_exclusive();
    let [master, other] = [master, other].map(|request| amount(attribute, request).unwrap_or_default());
    if let Some(Value::Amount(limit)) = allowed.filter(|_| is_counted && master.max(other) > Amount::ZERO) {
        let used = cluster.quota_used(scope, attribute.name.as_str());
        let left = limit.checked_sub(used).unwrap_or(Amount::from_base(i64::MIN));
        let is_apart = apart.is_some();
        let spares_companions = spares_companions && is_apart;
        claims.push(Claim::Takes(QuotaCharge {
            attribute,
            master,
            other,
            is_apart,
            spares_companions,
            limit,
            used,
            left,
        }));
    }
    claims
}

/// What a job takes of a consumable for each slot, host or in all; none if nothing.
fn amount(attribute: &Attribute, request: Option<&Request>) -> Option<Amount> {
    if attribute.name.as_str() == SLOTS {
        return Some(Amount::from_base(1));
    }
    match &request?.wanted {
        WantedValue::Amount(amount) => Some(*amount).filter(|amount| *amount > Amount::ZERO),
        WantedValue::Text(_) => None,
    }
}

/// Whether a request that takes nothing keeps a limit: `request RELOP limit`.
fn is_allowed(request: &Request, limit: &Value) -> bool {
    let attribute = &request.attribute;
    match (&request.wanted, limit) {
        (WantedValue::Amount(wanted), Value::Amount(limit)) => attribute.relop.holds(*wanted, *limit),
        (WantedValue::Text(expression), Value::Text(limit)) => {
            expression.matches(limit, attribute.r#type) != (attribute.relop == Relop::NotEqual)
        }
        (WantedValue::Amount(_), Value::Text(_)) | (WantedValue::Text(_), Value::Amount(_)) => false,
    }
}

/// What keeps a job from a scope that can be had alone, as the limit that it meets: nobody may be
/// there if it asks to be alone, and nobody who is alone otherwise.
fn exclusive(cluster: &Cluster<'_>, asked: Option<&Request>, scope: &Scope, attribute: &Attribute) -> Option<Value> {
    let alone = asked.is_some_and(|request| request.wanted == WantedValue::Amount(Amount::TRUE));
    let used = |name: &str| cluster.quota_used(scope, name) > Amount::ZERO;
    let is_taken = if alone {
        used(SLOTS)
    } else {
        used(attribute.name.as_str())
    };
    is_taken.then_some(Value::Amount(Amount::FALSE))
}

/// The value of a limit on a host; none if it has none there, and then limits nothing.
///
/// A formula needs what the host reports. On an empty cluster what it may report is not known; else
/// what it does not report is nothing.
pub(crate) fn value(
    cluster: &Cluster<'_>,
    limit: &Limit,
    attribute: &Attribute,
    host: Option<&HostName>,
) -> Option<Value> {
    let formula = match &limit.value {
        LimitValue::Fixed(text) => return Value::read(attribute, text),
        LimitValue::Dynamic(formula) => formula,
    };
    let mode = if cluster.mode == Mode::EmptyCluster {
        Mode::EmptyCluster
    } else {
        Mode::Now
    };
    let cluster = Cluster { mode, ..*cluster };
    let host = host?;
    let Some(millionths) = formula_value(&cluster, formula, &cluster.host_view(host), &[]) else {
        return (mode == Mode::Now).then_some(Value::Amount(Amount::ZERO));
    };
    let units = millionths.max(0) * i128::from(attribute.r#type.base_units_in_one()) / i128::from(Millionths::ONE.0);
    let whole = if attribute.r#type == Type::Bool {
        units.min(1)
    } else {
        units
    };
    Some(Value::Amount(
        i64::try_from(whole).map_or(Amount::INFINITY, Amount::from_base),
    ))
}
