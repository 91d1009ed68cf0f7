//! What a verifier is started with: the account of this process, and what scripts look for.

use nix::unistd::{User, geteuid};
use proto::text;
use std::path::Path;
use std::time::Duration;
use verifier::process::Launch;

/// The search path of verifiers.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The account of this process, if the name service knows it.
pub(super) fn own() -> Option<User> {
    User::from_uid(geteuid()).ok().flatten()
}

/// How a verifier is started as the account of this process, in the directory of the cell.
pub(super) fn launch(script: &str, root: &Path, patience: Duration) -> Launch {
    let account = own();
    let name = account
        .as_ref()
        .map_or_else(|| geteuid().to_string(), |user| user.name.clone());
    let home = account.map_or_else(|| "/".to_owned(), |user| text::from_os(user.dir.as_os_str()));
    let arch = proto::host::arch();
    let variables = [
        ("PATH", PATH.to_owned()),
        ("HOME", home),
        ("USER", name.clone()),
        ("LOGNAME", name),
        ("SGE_ROOT", text::from_os(root.as_os_str())),
        ("SGE_CELL", "default".to_owned()),
        ("SGE_ARCH", arch.to_owned()),
        ("ARCH", arch.to_owned()),
    ];
    Launch {
        script: script.to_owned(),
        environment: variables.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        has_own_environment: true,
        directory: Some(root.to_owned()),
        patience,
    }
}
