//! The limits of `execd_params`.

use super::{BoundKind, LimitKind, LimitSet};
use crate::amount::Amount;
use crate::diagnostic::Diagnostic;

impl LimitSet {
    /// The limits in the text of `execd_params`, such as `S_DESCRIPTORS=1024,H_LOCKS=INFINITY`;
    /// other parameters are skipped.
    ///
    /// Names are read in any case; the last one counts where a name stands twice. One of a soft and
    /// a hard limit alone counts for both, but only [`super::effective`] makes it so.
    ///
    /// # Errors
    /// If the value of a limit is no number of its type or is negative.
    pub fn from_execd_params(text: &str) -> Result<LimitSet, Diagnostic> {
        let mut limits = LimitSet::default();
        let items = text.split(|c: char| c == ',' || c.is_ascii_whitespace());
        for (key, value) in items.filter_map(|item| item.split_once('=')) {
            let Some((kind, bound)) = limit_of(key) else { continue };
            limits.set_bound(kind, bound, amount(kind, key, value)?);
        }
        Ok(limits)
    }
}

/// The limit that a key names.
fn limit_of(key: &str) -> Option<(LimitKind, BoundKind)> {
    let mut all = LimitKind::PARAMS
        .into_iter()
        .flat_map(|kind| BoundKind::ALL.map(|bound| (kind, bound)));
    all.find(|(kind, bound)| kind.name(*bound).eq_ignore_ascii_case(key))
}

fn amount(kind: LimitKind, key: &str, value: &str) -> Result<Amount, Diagnostic> {
    let refusal = |refusal: Diagnostic| refusal.at(format!("execd_params {key}={value}"));
    let amount = Amount::parse(value, kind.value_type()).map_err(|error| refusal(error.diagnostic(key, value)))?;
    if amount.is_negative() {
        let what = format!("the limit {key} is negative");
        return Err(refusal(Diagnostic::new(crate::diagnostic::Code::BadValue, what)));
    }
    Ok(amount)
}
