//! Changes of the complex: the whole table at once, or one attribute.

use super::change::Refusals;
use super::draft::Draft;
use super::references;
use super::supported::Origin;
use crate::config::Configuration;
use proto::complex::Complex;
use proto::diagnostic::{Code, Diagnostic};
use proto::object::{Fields, Object, ObjectKind};
use proto::wire::client::{Answer, AttributeEdit, ObjectAction};

/// Replaces the complex, or adds, changes or removes attributes. They travel as one field for each
/// attribute: the name, then the other seven columns. `name` is the attribute that goes.
pub(super) fn change(draft: &mut Draft<'_>, name: &str, action: &ObjectAction) -> Result<(), Refusals> {
    let mut table = draft.config.complex.write();
    match action {
        ObjectAction::Replace(fields) => replace(draft, fields),
        ObjectAction::Add(fields) => {
            if let Some(field) = fields.iter().find(|field| table.value(&field.key).is_some()) {
                let what = format!("Complex attribute \"{}\" already exists", field.key);
                let refusal = Diagnostic::new(Code::AlreadyExists, what);
                return Err(vec![refusal.fix("qconf -mce changes it")]);
            }
            fields.iter().for_each(|field| table.set(&field.key, &field.value));
            replace_whole(draft, &table)
        }
        ObjectAction::Attribute {
            edit: AttributeEdit::Modify,
            attribute,
            value,
        } => {
            must_exist(&table, attribute)?;
            table.set(attribute, value);
            replace_whole(draft, &table)
        }
        ObjectAction::Delete if !name.is_empty() => {
            must_exist(&table, name)?;
            let rest = table.iter().filter(|field| field.key != name);
            let rest = rest.map(|field| (field.key.clone(), field.value.clone())).collect();
            replace_whole(draft, &rest)
        }
        ObjectAction::Delete
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

fn must_exist(table: &Fields, name: &str) -> Result<(), Refusals> {
    if table.value(name).is_some() {
        return Ok(());
    }
    let what = format!("Complex attribute \"{name}\" does not exist");
    Err(vec![
        Diagnostic::new(Code::UnknownObject, what).fix("qconf -scel lists the names"),
    ])
}

/// Replaces the complex as one change: what cannot be removed is a refusal of all of it.
fn replace_whole(draft: &mut Draft<'_>, fields: &Fields) -> Result<(), Refusals> {
    let kept = keep_what_stays(&draft.config, &mut fields.clone())?;
    if kept.is_empty() {
        replace(draft, fields)
    } else {
        Err(kept)
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
