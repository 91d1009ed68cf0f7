//! What a job asks of one limit of a rule.

use super::Scope;
use crate::ledger::SLOTS;
use crate::matching::{Cluster, Demand, Mode, Request, Value, Wanted};
use crate::sched::rank::formula_value;
use crate::sched::reason::QuotaDenial;
use proto::amount::{Amount, Millionths, Type};
use proto::complex::{Attribute, Consumable, Relop, Requestable};
use proto::id::HostName;
use proto::quota::{Limit, LimitValue, QuotaSet};

/// A claim of a job on a limit.
#[derive(Clone, Debug)]
pub(super) enum Claim {
    /// So much is taken of what is left.
    Takes(Takes),
    /// The limit has no room for the job at all.
    Denied(Box<QuotaDenial>),
}

/// What is taken of a limit, and what is left of it.
#[derive(Clone, Debug)]
pub(super) struct Takes {
    attribute: Attribute,
    /// Above zero.
    amount: Amount,
    limit: Amount,
    left: Amount,
}

impl Takes {
    /// How often the amount is charged for slots in an instance.
    fn times(&self, slots: u32, is_master: bool, is_new_host: bool) -> u32 {
        match self.attribute.consumable {
            Consumable::Job => u32::from(is_master),
            Consumable::Host => u32::from(is_new_host),
            Consumable::Yes | Consumable::No => slots,
        }
    }

    /// How many slots there is room for, of so many at most.
    pub(super) fn most(&self, slots: u32, is_master: bool, is_new_host: bool) -> u32 {
        let fits = |slots: u32| self.amount.times(self.times(slots, is_master, is_new_host)) <= self.left;
        if fits(slots) {
            return slots;
        }
        let Some((left, amount)) = self.left.finite().zip(self.amount.finite()).filter(|(_, amount)| *amount > 0)
        else {
            return 0;
        };
        let slots = u32::try_from(left.max(0) / amount).unwrap_or(u32::MAX).min(slots);
        if fits(slots) { slots } else { 0 }
    }

    /// Takes what so many slots take; there is room for it.
    pub(super) fn take(&mut self, slots: u32, is_master: bool, is_new_host: bool) {
        let taken = self.amount.times(self.times(slots, is_master, is_new_host));
        self.left = self.left.checked_sub(taken).unwrap_or(self.left);
    }

    /// Gives back what so many slots took that were not the master's. What is charged once on a host stays taken.
    pub(super) fn give_back(&mut self, slots: u32) {
        let given = self.amount.times(self.times(slots, false, false));
        self.left = self.left.checked_add(given).unwrap_or(self.left);
    }

    /// That there is no room for so many slots.
    pub(super) fn denial(&self, set: &QuotaSet, scope: &Scope, slots: u32) -> QuotaDenial {
        let times = self.times(slots, true, true);
        let used = self.limit.checked_sub(self.left).unwrap_or(Amount::INFINITY);
        QuotaDenial {
            used: Some(used),
            ..denial(
                set,
                scope,
                &self.attribute,
                Some(Value::Amount(self.amount.times(times))),
                Value::Amount(self.limit),
            )
        }
    }
}

fn denial(set: &QuotaSet, scope: &Scope, attribute: &Attribute, needed: Option<Value>, limit: Value) -> QuotaDenial {
    QuotaDenial {
        rule: set.rule_name(scope.rule),
        scope: scope.to_string(),
        attribute: attribute.name.clone(),
        r#type: attribute.r#type,
        needed,
        used: None,
        limit,
    }
}

/// The claim of a job on a limit; none if the limit is not about it.
pub(super) fn claim(
    cluster: &Cluster<'_>,
    demand: &Demand,
    set: &QuotaSet,
    scope: &Scope,
    limit: &Limit,
    host: Option<&HostName>,
) -> Option<Claim> {
    let attribute = cluster.config.complex.lookup(limit.attribute.as_str())?;
    let request = demand.hard.iter().find(|request| request.attribute.name == attribute.name);
    let denied = |needed, limit| Some(Claim::Denied(Box::new(denial(set, scope, attribute, needed, limit))));
    let asked = request.filter(|request| !request.implied);
    if asked.is_none() && attribute.requestable == Requestable::Forced {
        return denied(None, value(cluster, limit, attribute, host)?);
    }
    if attribute.is_exclusive() {
        return exclusive(cluster, asked, scope, attribute)
            .and_then(|limit| denied(Some(Value::Amount(Amount::TRUE)), limit));
    }
    let allowed = value(cluster, limit, attribute, host)?;
    if !attribute.consumable.is_consumable() {
        let request = asked?;
        return match is_allowed(request, &allowed) {
            true => None,
            false => denied(Some(request.wanted.value()), allowed),
        };
    }
    let amount = amount(attribute, request)?;
    let Value::Amount(limit) = allowed else { return None };
    let used = cluster.quota_used(scope, attribute.name.as_str());
    let left = limit.checked_sub(used).unwrap_or(Amount::from_base(i64::MIN));
    Some(Claim::Takes(Takes { attribute: attribute.clone(), amount, limit, left }))
}

/// What a job takes of a consumable for each slot, host or in all; none if nothing.
fn amount(attribute: &Attribute, request: Option<&Request>) -> Option<Amount> {
    if attribute.name.as_str() == SLOTS {
        return Some(Amount::from_base(1));
    }
    match &request?.wanted {
        Wanted::Amount(amount) => Some(*amount).filter(|amount| *amount > Amount::ZERO),
        Wanted::Text(_) => None,
    }
}

/// Whether a request that takes nothing keeps a limit: `request RELOP limit`.
fn is_allowed(request: &Request, limit: &Value) -> bool {
    let attribute = &request.attribute;
    match (&request.wanted, limit) {
        (Wanted::Amount(wanted), Value::Amount(limit)) => attribute.relop.holds(*wanted, *limit),
        (Wanted::Text(expression), Value::Text(limit)) => {
            expression.matches(limit, attribute.r#type) != (attribute.relop == Relop::NotEqual)
        }
        (Wanted::Amount(_), Value::Text(_)) | (Wanted::Text(_), Value::Amount(_)) => false,
    }
}

/// What keeps a job from a scope that can be had alone, as the limit that it meets: nobody may be there if it asks to be
/// alone, and nobody who is alone otherwise.
fn exclusive(cluster: &Cluster<'_>, asked: Option<&Request>, scope: &Scope, attribute: &Attribute) -> Option<Value> {
    let alone = asked.is_some_and(|request| request.wanted == Wanted::Amount(Amount::TRUE));
    let used = |name: &str| cluster.quota_used(scope, name) > Amount::ZERO;
    let is_taken = if alone { used(SLOTS) } else { used(attribute.name.as_str()) };
    is_taken.then_some(Value::Amount(Amount::FALSE))
}

/// The value of a limit on a host; none if it has none there, and then limits nothing.
///
/// A formula needs what the host reports. On an empty cluster what it may report is not known; else what it does not report is
/// nothing.
pub(super) fn value(
    cluster: &Cluster<'_>,
    limit: &Limit,
    attribute: &Attribute,
    host: Option<&HostName>,
) -> Option<Value> {
    let formula = match &limit.value {
        LimitValue::Fixed(text) => return Value::read(attribute, text),
        LimitValue::Dynamic(formula) => formula,
    };
    let mode = if cluster.mode == Mode::EmptyCluster { Mode::EmptyCluster } else { Mode::Now };
    let cluster = Cluster { mode, ..*cluster };
    let host = host?;
    let Some(millionths) = formula_value(&cluster, formula, &cluster.ground(host), &[]) else {
        return (mode == Mode::Now).then_some(Value::Amount(Amount::ZERO));
    };
    let units = millionths.max(0) * i128::from(attribute.r#type.base_units_in_one()) / i128::from(Millionths::ONE.0);
    let whole = if attribute.r#type == Type::Bool { units.min(1) } else { units };
    Some(Value::Amount(i64::try_from(whole).map_or(Amount::INFINITY, Amount::from_base)))
}
