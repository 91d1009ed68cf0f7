//! Whether the accounts of the daemons reach the state directory, and what helps when a daemon does
//! not start.

use crate::accounts::RecordedAccounts;
use crate::daemons::Daemon;
use crate::fail::Fail;
use crate::output;
use proto::diagnostic::{Code, Diagnostic};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Refuses a state directory below one that an account of the daemons cannot enter, before anything
/// is made there.
///
/// # Errors
/// The directory, the uid, and the remedy.
pub fn check(dir: &Path) -> Result<(), Fail> {
    if !nix::unistd::getuid().is_root() {
        return Ok(());
    }
    let accounts = RecordedAccounts::found_or_chosen(dir).map_err(|why| {
        Fail::from(
            Diagnostic::new(
                Code::SystemRefused,
                "error: the accounts of the daemons cannot be settled",
            )
            .why(why.to_string()),
        )
    })?;
    let accounts = accounts.daemons();
    // What is not there yet is made with rights for everybody.
    let nearest = dir
        .ancestors()
        .skip(1)
        .find_map(|above| above.canonicalize().ok())
        .unwrap_or_default();
    let mut above: Vec<&Path> = nearest.ancestors().collect();
    above.reverse();
    for (daemon, uid) in [("master", accounts.master), ("agent", accounts.agent)] {
        if let Some(closed) = above.iter().find(|dir| !may_enter(dir, uid, accounts.group)) {
            return Err(closed_to(dir, closed, daemon, uid));
        }
    }
    Ok(())
}

fn closed_to(dir: &Path, closed: &Path, daemon: &str, uid: u32) -> Fail {
    let (dir, closed) = (dir.display(), closed.display());
    let what = format!("error: uid {uid}, which the {daemon} runs under, cannot enter {closed}; nothing was created");
    let fix =
        format!("name a directory that everybody can reach, such as --dir /var/lib/gridwright; or: chmod o+x {closed}");
    Diagnostic::new(Code::SystemRefused, what)
        .at(dir.to_string())
        .fix(fix)
        .into()
}

/// Decides by the mode of the directory. If the mode says no, an access list may still allow it, so
/// this tries to enter.
fn may_enter(dir: &Path, uid: u32, gid: u32) -> bool {
    let Ok(found) = dir.metadata() else { return true };
    let bit = match (found.uid() == uid, found.gid() == gid) {
        (true, _) => 0o100,
        (false, true) => 0o010,
        (false, false) => 0o001,
    };
    found.mode() & bit != 0 || enters(dir, uid, gid)
}

fn enters(dir: &Path, uid: u32, gid: u32) -> bool {
    let mut command = Command::new("/bin/true");
    command
        .uid(uid)
        .gid(gid)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Warns if this host has a name that every machine has for itself: other hosts cannot reach the
/// master by it.
pub fn warn_of_localhost() {
    let name = nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .unwrap_or_default();
    if is_every_hosts_name(&name) {
        output::note(&format!(
            "warning: this host is called {name:?}: no other host can join its cell. Give it a name (hostnamectl set-hostname \
             NAME) and create the cell anew before others join"
        ));
    }
}

fn is_every_hosts_name(name: &str) -> bool {
    matches!(name.split('.').next().unwrap_or_default(), "" | "localhost")
}

/// A cell that is there keeps its port: hosts that joined know it.
pub fn warn_of_port(dir: &Path, wanted: Option<&str>) {
    let settings = std::fs::read_to_string(dir.join("etc/cell.toml")).unwrap_or_default();
    if let Some((wanted, port)) = wanted
        .zip(port_of(&settings))
        .filter(|(wanted, port)| !["0", port].contains(wanted))
    {
        output::note(&format!(
            "warning: --port {wanted} is for a new cell; this one keeps port {port}, which etc/cell.toml and etc/agent.toml of each \
             host name"
        ));
    }
}

fn port_of(settings: &str) -> Option<&str> {
    settings
        .lines()
        .filter_map(|line| line.split_once('='))
        .find(|(key, _)| key.trim() == "port")
        .map(|(_, port)| port.trim())
}

/// Returns the remedy for a daemon that ended, by its last words.
pub fn remedy(dir: &Path, daemon: Daemon, last_words: &str) -> String {
    let dir = dir.display();
    if last_words.contains("Address already in use") {
        return format!(
            "end what uses that port; or set another one as port in {dir}/etc/cell.toml and {dir}/etc/agent.toml of every host of \
             the cell (a new cell takes one with --port)"
        );
    }
    format!(
        "mend what the {} says and repeat the command: what it had started is ended again",
        daemon.name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_is_entered_by_the_rights_of_owner_group_or_others() {
        let dir = std::env::temp_dir().join(format!("gridwright-reach-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (uid, gid) = (dir.metadata().unwrap().uid(), dir.metadata().unwrap().gid());
        let with_mode = |mode| std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut found = Vec::new();
        for mode in [0o701, 0o710, 0o100] {
            with_mode(mode);
            found.push([
                may_enter(&dir, uid, gid),
                may_enter(&dir, 4321, gid),
                may_enter(&dir, 4321, 4321),
            ]);
        }
        with_mode(0o700);
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(found, [[true, false, true], [true, true, false], [true, false, false]]);
    }

    #[test]
    fn names_that_every_machine_has_are_known() {
        let cases = [
            ("localhost", true),
            ("localhost.localdomain", true),
            ("", true),
            ("vm", false),
            ("local", false),
        ];
        for (name, expected) in cases {
            assert_eq!(is_every_hosts_name(name), expected, "{name}");
        }
    }

    #[test]
    fn the_port_of_a_cell_is_read_from_its_settings() {
        assert_eq!(port_of("cell = \"a\"\nport = 6444\n"), Some("6444"));
        assert_eq!(port_of("# port = 1\nports = 2\n"), None);
    }

    #[test]
    fn a_port_in_use_names_the_file_that_holds_it() {
        let said = remedy(
            Path::new("/d"),
            Daemon::Master,
            "cannot listen on udp [::]:1: Address already in use",
        );
        assert!(said.contains("/d/etc/cell.toml") && said.contains("--port"), "{said}");
    }
}
