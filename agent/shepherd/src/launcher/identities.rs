//! What the name service said about users a moment ago, for the next task of the same user.
//!
//! The launcher never asks (ARCHITECTURE.md "On a host"): a task's child that has asked writes the
//! answer into a pipe, still as root, and the launcher hands it to the next shepherds for
//! [`LIFE_MS`]. An array of short tasks so asks once and not for each task. Only answers are kept,
//! never failures, and the checks of name and uid are made for every task.

use crate::account::Identity;
use crate::sys;
use nix::fcntl::OFlag;
use nix::unistd::{Gid, pipe2, read, write};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// How long an answer is used, from the moment it was given: changes of a user are in force this
/// soon.
const LIFE_MS: u64 = 3_000;

/// The most users that are remembered.
const MAX_USERS: usize = 64;

/// The longest answer that is passed on: one atomic write of a pipe, `PIPE_BUF` of pipe(7).
const MAX_BYTES: usize = 4096;

/// The launcher's side.
pub struct Identities {
    answers: OwnedFd,
    teller: AnswerPipe,
    by_user: BTreeMap<String, (Identity, u64)>,
}

/// What a task's child tells its answer with.
#[derive(Clone, Debug)]
pub struct AnswerPipe(Rc<OwnedFd>);

impl Identities {
    /// Knows nobody yet.
    ///
    /// # Errors
    /// Those of pipe(2).
    pub fn new() -> io::Result<Self> {
        // Packets: one write, one read.
        let (answers, teller) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_DIRECT)?;
        Ok(Identities {
            answers,
            teller: AnswerPipe(Rc::new(teller)),
            by_user: BTreeMap::new(),
        })
    }

    /// For the next shepherd.
    pub fn teller(&self) -> AnswerPipe {
        self.teller.clone()
    }

    /// The user as the name service knew it at most [`LIFE_MS`] ago.
    pub fn recall(&mut self, user: &str) -> Option<Identity> {
        self.learn();
        let now = sys::boot_ms();
        self.by_user.retain(|_, (_, at)| now.saturating_sub(*at) < LIFE_MS);
        self.by_user.get(user).map(|(identity, _)| identity.clone())
    }

    fn learn(&mut self) {
        let mut packet = [0; MAX_BYTES];
        while let Ok(count) = read(&self.answers, &mut packet) {
            let Some((identity, at)) = decode(&packet[..count]) else {
                return;
            };
            if self.by_user.len() < MAX_USERS {
                self.by_user.insert(identity.name.clone(), (identity, at));
            }
        }
    }
}

impl AnswerPipe {
    /// The descriptor, which only processes of root may hold.
    pub fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    /// Tells what the name service has just said. An answer that does not fit is not told.
    pub fn tell(&self, identity: &Identity) {
        let packet = encode(identity, sys::boot_ms());
        if packet.len() <= MAX_BYTES {
            // A pipe that is full, or nobody's, costs the next task a question.
            let _ = write(&*self.0, &packet);
        }
    }
}

/// The parts, each ended by a NUL, which no name and no path holds.
fn encode(identity: &Identity, at: u64) -> Vec<u8> {
    let Identity {
        name,
        uid,
        gid,
        groups,
        home,
        shell,
    } = identity;
    let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
    let numbers = [at.to_string(), uid.to_string(), gid.to_string(), groups.join(",")];
    let parts = numbers.iter().chain([name, home, shell]);
    parts.flat_map(|part| part.bytes().chain([0])).collect()
}

fn decode(packet: &[u8]) -> Option<(Identity, u64)> {
    let text = std::str::from_utf8(packet).ok()?.strip_suffix('\0')?;
    let parts: Vec<&str> = text.split('\0').collect();
    let [at, uid, gid, groups, name, home, shell] = parts.try_into().ok()?;
    let groups = groups
        .split(',')
        .filter(|group| !group.is_empty())
        .map(|group| group.parse().map(Gid::from_raw));
    let identity = Identity {
        name: name.to_owned(),
        uid: uid.parse().ok()?,
        gid: gid.parse().ok()?,
        groups: groups.collect::<Result<_, std::num::ParseIntError>>().ok()?,
        home: home.to_owned(),
        shell: shell.to_owned(),
    };
    Some((identity, at.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alice() -> Identity {
        Identity {
            name: "alice".into(),
            uid: 1000,
            gid: 100,
            groups: vec![100.into(), 2000.into()],
            home: "/home/alice".into(),
            shell: "/bin/csh".into(),
        }
    }

    #[test]
    fn an_answer_is_recalled_as_it_was_told() {
        let mut identities = Identities::new().expect("a pipe");
        assert_eq!(identities.recall("alice"), None);
        identities.teller().tell(&alice());
        assert_eq!(identities.recall("alice"), Some(alice()));
        assert_eq!(identities.recall("bob"), None);
    }

    #[test]
    fn an_answer_is_forgotten_when_it_is_old() {
        let mut identities = Identities::new().expect("a pipe");
        let long_ago = sys::boot_ms().saturating_sub(LIFE_MS);
        identities.by_user.insert("alice".into(), (alice(), long_ago));
        assert_eq!(identities.recall("alice"), None);
    }

    #[test]
    fn a_user_without_groups_is_passed_on_whole_and_garbage_is_not() {
        let alone = Identity {
            groups: Vec::new(),
            ..alice()
        };
        assert_eq!(decode(&encode(&alone, 7)), Some((alone, 7)));
        for garbage in [&b""[..], b"\0", b"1\x002\0", b"x\0x\0x\0\0\0\0\0", b"\xff\0"] {
            assert_eq!(decode(garbage), None);
        }
    }

    #[test]
    fn an_answer_that_does_not_fit_is_not_told() {
        let mut identities = Identities::new().expect("a pipe");
        let many = Identity {
            groups: (0..2_000).map(|n| (100_000 + n).into()).collect(),
            ..alice()
        };
        identities.teller().tell(&many);
        assert_eq!(identities.recall("alice"), None);
    }
}
