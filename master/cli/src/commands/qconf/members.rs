//! `-au`, `-du`: users and groups of access lists, each with a line of its own.

use super::session::Session;
use super::{for_each, words};
use crate::commands::Outcome;
use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};
use proto::object::ObjectKind;
use proto::wire::client::ObjectAction;

/// `-au USERS LISTS`.
pub fn enlist(session: &mut Session, values: &[String]) -> Outcome {
    change(session, "-au", values, |entry| ObjectAction::Enlist { entry })
}

/// `-du USERS LISTS`.
pub fn strike(session: &mut Session, values: &[String]) -> Outcome {
    change(session, "-du", values, |entry| ObjectAction::Strike { entry })
}

/// Commas and blanks separate users, and lists.
fn change(session: &mut Session, option: &str, values: &[String], action: fn(String) -> ObjectAction) -> Outcome {
    let [users, lists @ ..] = values else {
        return Err(too_few(option, ""));
    };
    if lists.is_empty() {
        return Err(too_few(option, users));
    }
    let users = words(std::slice::from_ref(users))?;
    for_each(words(lists)?.into_iter(), |list| {
        for_each(users.iter().copied(), |user| {
            session.change(ObjectKind::UserSet, list, action(user.to_owned()))
        })
    })
}

fn too_few(option: &str, users: &str) -> Fail {
    let what = format!(
        "error: no list_name provided to \"{}\"",
        format!("{option} {users}").trim_end()
    );
    Diagnostic::new(Code::BadSyntax, what)
        .fix(format!("write qconf {option} USERS LISTS"))
        .into()
}
