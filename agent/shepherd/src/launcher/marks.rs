//! `tasks/marks`: random words by which the master knows this directory of tasks again, newest
//! first.
//!
//! Each launcher adds a mark when it starts. A copy or an older state of the directory lacks the
//! later marks, so the master does not believe its list of tasks. The file lies beside the journal,
//! so both are lost together.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

/// The file, below the launcher's directory.
const NAME: &str = "tasks/marks";

/// The draft of a new file of marks, renamed once it is complete.
const DRAFT: &str = "tasks/marks.new";

/// How many are kept: more starts of the launcher than come between two connections of the agent.
const KEPT: usize = 64;

/// Adds a mark.
///
/// # Errors
/// Errors of the file system; the marks stay as they are then.
pub fn add() -> io::Result<()> {
    let present = match fs::read_to_string(NAME) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        text => text.unwrap_or_default(),
    };
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o640)
        .custom_flags(libc::O_NOFOLLOW);
    let mut file = options.open(DRAFT)?;
    file.write_all(with(&random()?, &present).as_bytes())?;
    file.sync_all()?;
    fs::rename(DRAFT, NAME)
}

fn with(mark: &str, present: &str) -> String {
    [mark]
        .into_iter()
        .chain(present.lines())
        .take(KEPT)
        .fold(String::new(), |all, mark| all + mark + "\n")
}

fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_mark_is_first_and_the_oldest_goes() {
        assert_eq!(with("b", ""), "b\n");
        let full = (0..KEPT).fold(String::new(), |all, number| with(&number.to_string(), &all));
        let next = with("b", &full);
        assert_eq!((next.lines().next(), next.lines().last()), (Some("b"), Some("1")));
        assert_eq!(next.lines().count(), KEPT);
    }
}
