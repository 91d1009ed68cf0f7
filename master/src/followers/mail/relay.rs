//! `gridwright-master mail`: runs mailers for a master whose unit keeps it from doing so.
//!
//! Mailers of many hosts are setuid or setgid programs, and a hardened unit takes that away from
//! all that it starts. So the master gives each letter to a socket of systemd, which starts this
//! program beside it. It runs none but the mailers that its command line names: whoever takes over
//! the master cannot choose programs.

use super::sender::{Letter, MailerError, run_mailer};
use std::io::{self, Read, Write};

/// The most bytes of a letter.
const LETTER_BYTES: u64 = 16 << 20;

/// Reads one letter, runs its mailer, and answers with the reason if that failed.
///
/// # Errors
/// Neither can be read nor written.
pub fn serve(mailers: &[String], from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    from.take(LETTER_BYTES).read_to_end(&mut bytes)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let sent = match letter(mailers, &bytes) {
        Ok(letter) => runtime.block_on(run_mailer(&letter)),
        Err(why) => Err(why),
    };
    match sent {
        Ok(()) => Ok(()),
        Err(why) => to.write_all(why.to_string().as_bytes()),
    }
}

fn letter(mailers: &[String], bytes: &[u8]) -> Result<Letter, MailerError> {
    let letter: Letter = serde_json::from_slice(bytes).map_err(MailerError::Letter)?;
    if mailers.contains(&letter.mailer) {
        return Ok(letter);
    }
    Err(MailerError::NotAdmitted {
        admitted: mailers.to_owned(),
        mailer: letter.mailer,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn answer(mailers: &[String], letter: &Letter) -> String {
        let mut said = Vec::new();
        serve(mailers, serde_json::to_vec(letter).unwrap().as_slice(), &mut said).unwrap();
        String::from_utf8(said).unwrap()
    }

    #[test]
    fn the_mailers_that_are_named_are_run_and_no_others() {
        let dir = crate::testing::TempDir::new("relay");
        let mailer = dir.path().join("mailer").display().to_string();
        let sent = dir.path().join("sent");
        let script = format!("#!/bin/sh\n(echo \"$@\"; cat) >{}\n", sent.display());
        std::fs::write(&mailer, script).unwrap();
        std::fs::set_permissions(&mailer, std::fs::Permissions::from_mode(0o755)).unwrap();
        let letter = Letter {
            mailer: mailer.clone(),
            address: "ann@node1".to_owned(),
            subject: "Job 1 (a) Complete".to_owned(),
            text: "Exit Status = 0\n".to_owned(),
        };
        assert_eq!(answer(std::slice::from_ref(&mailer), &letter), "");
        let expected = "-s Job 1 (a) Complete ann@node1\nExit Status = 0\n";
        assert_eq!(std::fs::read_to_string(&sent).unwrap(), expected);
        std::fs::remove_file(&sent).unwrap();
        let refused = answer(&["/usr/bin/mail".to_owned()], &letter);
        assert!(refused.contains("admits /usr/bin/mail alone"), "{refused}");
        let option = Letter {
            address: "-v".to_owned(),
            ..letter
        };
        assert!(answer(&[mailer], &option).contains("looks like an option"));
        assert!(!sent.exists(), "neither was run");
    }
}
