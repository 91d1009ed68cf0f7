//! What is asked of the machine before `jsv_url` is changed: whether there is such a program, and
//! such an account. The core asks of the text alone.

use super::account;
use nix::unistd::{AccessFlags, User, access};
use proto::diagnostic::{Code, Diagnostic};
use proto::jsv::JsvUrl;
use proto::object::ObjectKind;
use proto::text;
use proto::wire::client::{Command, ObjectAction, ObjectChange};
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// How long the file system and the name service may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The verifiers that a change of the configuration names.
pub fn named_in(command: &Command) -> Vec<JsvUrl> {
    if let Command::DryRun(inner) = command {
        return named_in(inner);
    }
    let Command::Objects(changes) = command else {
        return Vec::new();
    };
    changes.iter().filter_map(named).collect()
}

/// Refuses verifiers that are not there. Whoever asks this learns which files there are.
///
/// # Errors
/// In the words of 8.1.9.
pub async fn check(urls: Vec<JsvUrl>) -> Result<(), Diagnostic> {
    let checked = tokio::task::spawn_blocking(move || urls.iter().try_for_each(exists));
    match timeout(PATIENCE, checked).await {
        Ok(Ok(checked)) => checked,
        Ok(Err(_)) | Err(_) => {
            let what = "it cannot be found out whether the program and the account of jsv_url exist";
            let why = format!(
                "the file system or the name service did not answer within {} s",
                PATIENCE.as_secs()
            );
            Err(Diagnostic::new(Code::SystemRefused, what).at("jsv_url").why(why))
        }
    }
}

/// The verifier that a change names. What cannot be read as one is refused by the core.
fn named(change: &ObjectChange) -> Option<JsvUrl> {
    if change.kind != ObjectKind::ClusterConf {
        return None;
    }
    let value = match &change.action {
        ObjectAction::Add(fields) | ObjectAction::Replace(fields) => fields.value("jsv_url")?,
        ObjectAction::Attribute { attribute, value, .. } if attribute == "jsv_url" => value,
        ObjectAction::Attribute { .. }
        | ObjectAction::Delete
        | ObjectAction::Purge { .. }
        | ObjectAction::Clean
        | ObjectAction::Enlist { .. }
        | ObjectAction::Strike { .. } => return None,
    };
    match proto::object::value::is_none(value) {
        true => None,
        false => value.parse().ok(),
    }
}

fn exists(url: &JsvUrl) -> Result<(), Diagnostic> {
    let refuse = |what: String| Diagnostic::new(Code::BadValue, what).at("jsv_url");
    if let Some(name) = &url.user {
        let known = User::from_name(name).ok().flatten();
        let Some(user) = known else {
            return Err(refuse(format!("user \"{name}\" specified in JSV URL does not exist")));
        };
        if user.uid.is_root() {
            return Err(refuse(format!("user \"{name}\" specified in JSV URL is not allowed")).why("it is root"));
        }
        // The unit of the master may hide from it what the other account sees.
        if account::own().is_none_or(|own| own.uid != user.uid) {
            return Ok(());
        }
    }
    let os = text::to_os(&url.path);
    let path = Path::new(&os);
    if path.is_file() && access(path, AccessFlags::X_OK).is_ok() {
        return Ok(());
    }
    let what = format!("JSV \"{}\" is either not a file or not executable", url.path);
    Err(refuse(what).fix("check the path, and that the account of the master may read and execute the file"))
}
