//! Changes of the complex: the whole table at once.

use super::change::Refusals;
use super::draft::Draft;
use super::references;
use super::supported::Origin;
use crate::config::Configuration;
use proto::complex::Complex;
use proto::diagnostic::{Code, Diagnostic};
use proto::object::{Fields, Object, ObjectKind};
use proto::wire::client::{Answer, ObjectAction};

/// Replaces the complex. It travels as one field for each attribute: the name, then the other seven
/// columns.
pub(super) fn change(draft: &mut Draft<'_>, action: &ObjectAction) -> Result<(), Refusals> {
    match action {
        ObjectAction::Replace(fields) => replace(draft, fields),
        ObjectAction::Add(_)
        | ObjectAction::Delete
        | ObjectAction::Attribute { .. }
        | ObjectAction::Purge { .. }
        | ObjectAction::Enlist { .. }
        | ObjectAction::Strike { .. }
        | ObjectAction::Clean => {
            let what = "denied: the complex is changed as a whole";
            Err(vec![
                Diagnostic::new(Code::BadSyntax, what).fix("edit it with qconf -mc, or write it with qconf -Mc FILE"),
            ])
        }
    }
}

/// Replaces the complex. Attributes that are built in or that objects use stay if the new table
/// lacks them: each is refused, and the other lines take effect. Of a whole cell nothing takes
/// effect then.
fn replace(draft: &mut Draft<'_>, fields: &Fields) -> Result<(), Refusals> {
    let mut fields = fields.clone();
    let kept = keep_what_stays(&draft.config, &mut fields)?;
    if draft.origin != Origin::Hand && !kept.is_empty() {
        return Err(kept);
    }
    let new = Complex::read("", &fields)?;
    let changes = draft.config.complex.replace(&new)?;
    if changes.is_empty() && !kept.is_empty() {
        return Err(kept);
    }
    draft.answers.extend(kept.into_iter().map(Answer::Refused));
    if changes.is_empty() {
        draft.say("Complex attribute configuration has not been changed".to_owned());
        return Ok(());
    }
    draft.store(ObjectKind::ComplexTable, "", Some(new.write()));
    let invalid = references::invalid_values(&draft.config);
    if !invalid.is_empty() {
        return Err(invalid);
    }
    changes
        .iter()
        .for_each(|change| draft.say(format!("{} {change}", draft.caller.at_host())));
    Ok(())
}

/// Puts back the lines of attributes that cannot be removed, and returns the refusal of each.
fn keep_what_stays(config: &Configuration, fields: &mut Fields) -> Result<Refusals, Refusals> {
    let new = Complex::read("", fields)?;
    let old = config.complex.write();
    let mut kept = Refusals::new();
    for attribute in config
        .complex
        .iter()
        .filter(|old| new.iter().all(|new| new.name != old.name))
    {
        let name = &attribute.name;
        let allowed = Complex::check_removal(name).map_err(|refusal| vec![refusal]);
        if let Err(refusals) = allowed.and_then(|()| references::to_attribute(config, name.as_str())) {
            kept.extend(refusals);
            fields.set(name.as_str(), old.value(name.as_str()).unwrap_or_default());
        }
    }
    Ok(kept)
}
