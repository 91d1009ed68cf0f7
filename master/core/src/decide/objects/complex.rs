//! Changes of the complex: the whole table at once.

use super::change::Refusals;
use super::draft::Draft;
use super::references;
use proto::complex::{Change, Complex};
use proto::diagnostic::{Code, Diagnostic};
use proto::object::{Fields, Object, ObjectKind};
use proto::wire::client::ObjectAction;

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

fn replace(draft: &mut Draft<'_>, fields: &Fields) -> Result<(), Refusals> {
    let new = Complex::read("", fields)?;
    let changes = draft.config.complex.replace(&new)?;
    for change in &changes {
        if let Change::Removed(name) = change {
            references::to_attribute(&draft.config, name.as_str())?;
        }
    }
    if changes.is_empty() {
        draft.say("Complex attribute configuration has not been changed".to_owned());
        return Ok(());
    }
    draft.store(ObjectKind::ComplexTable, "", Some(new.write()));
    let invalid = references::invalid_values(&draft.config);
    if !invalid.is_empty() {
        return Err(invalid);
    }
    changes.iter().for_each(|change| draft.say(format!("{} {change}", draft.caller.at_host())));
    Ok(())
}
