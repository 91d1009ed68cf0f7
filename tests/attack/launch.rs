//! The launcher's socket in the hands of the agent's uid: messages that are nearly right, with
//! descriptors that nobody asked for.

use crate::attacker::Attacker;
use crate::seed::Seed;
use crate::stage::{Attack, Requirement};
use gridwright_tests::cell::{Cell, long_or, resident_kib, wait_until};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use proto::launch::pairs::Record as _;
use proto::launch::{LaunchDocument, Request, SensorSpec, frame};
use std::fs::File;
use std::io::{IoSlice, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const ATTACKS: &[Attack] = &[Attack {
    name: "launch-messages",
    claim: "mutated messages with descriptors over its socket leave the launcher alive, small and without any of them",
    needs: &[Requirement::Root],
    run: mutated_messages,
}];

/// The most descriptors beside one message.
const MOST_DESCRIPTORS: u64 = 28;

/// The message with some of its bytes others, gone, or there twice.
fn changed(seed: &mut Seed, message: &[u8]) -> Vec<u8> {
    let mut bytes = message.to_vec();
    for _ in 0..seed.below(5) {
        let (at, other) = (seed.index(bytes.len()), seed.index(bytes.len()));
        let (from, to) = (at.min(other), at.max(other));
        match seed.below(5) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << seed.below(8),
            1 if !bytes.is_empty() => bytes[at] = u8::try_from(seed.below(256)).expect("a byte"),
            2 => drop(bytes.drain(from..to)),
            3 => drop(bytes.splice(
                from..from,
                message[from.min(message.len())..to.min(message.len())].to_vec(),
            )),
            _ => bytes.truncate(to),
        }
    }
    bytes
}

/// Words: the directory of the launcher's socket, a file with messages, their number, and a seed.
/// Sends mutations of the messages with descriptors, on a new connection whenever the launcher has
/// closed one.
pub fn babble(words: &[String]) {
    let [socket, messages, count, seed] = words else {
        panic!("a socket, messages, a number and a seed")
    };
    let messages = read_messages(Path::new(messages));
    let mut seed = Seed::new(seed.parse().expect("a number"));
    let null = File::open("/dev/null").expect("there is one");
    let mut stream: Option<UnixStream> = None;
    let mut connections = 0;
    for _ in 0..count.parse::<u32>().expect("a number") {
        let chosen = seed.index(messages.len());
        let bytes = changed(&mut seed, &messages[chosen]);
        let descriptors = vec![null.as_raw_fd(); usize::try_from(seed.below(MOST_DESCRIPTORS + 1)).expect("few")];
        let open = stream.take().or_else(|| {
            connections += 1;
            connect(socket)
        });
        stream = open.filter(|stream| send(stream, &bytes, &descriptors));
    }
    println!("{connections} connections");
}

fn connect(socket: &str) -> Option<UnixStream> {
    let stream = UnixStream::connect(socket).ok()?;
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(1))).ok()?;
    stream.set_write_timeout(Some(Duration::from_secs(1))).ok()?;
    Some(stream)
}

/// Whether the connection goes on.
fn send(stream: &UnixStream, bytes: &[u8], descriptors: &[RawFd]) -> bool {
    let control = [ControlMessage::ScmRights(descriptors)];
    let control = if descriptors.is_empty() { &[][..] } else { &control[..] };
    if sendmsg::<()>(
        stream.as_raw_fd(),
        &[IoSlice::new(bytes)],
        control,
        MsgFlags::MSG_NOSIGNAL,
        None,
    )
    .is_err()
    {
        return false;
    }
    // Answers are read, so that the launcher is never the one that waits.
    let mut answer = [0; 65_536];
    !matches!((&*stream).read(&mut answer), Ok(0))
}

/// A file of messages: each behind its length in four bytes, which is how they travel.
fn read_messages(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).expect("the messages are there");
    let mut rest = &bytes[..];
    let mut found = Vec::new();
    while let Some((length, _)) = rest.split_first_chunk::<4>() {
        let (message, behind) = rest.split_at(4 + u32::from_le_bytes(*length) as usize);
        found.push(message.to_vec());
        rest = behind;
    }
    found
}

/// The launch document in the record of a task: it begins with the letters of every document, and
/// is followed by others.
fn document_in(record: &Path) -> Option<LaunchDocument> {
    let bytes = std::fs::read(record).ok()?;
    let begins = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"GWL"));
    let ends = |from: usize| from + 1..=bytes.len();
    begins
        .flat_map(|from| ends(from).map(move |to| (from, to)))
        .find_map(|(from, to)| LaunchDocument::decode(&bytes[from..to]).ok())
}

/// Messages of each kind that a launcher knows.
fn messages(document: LaunchDocument) -> Vec<u8> {
    let key = document.key;
    let sensor = SensorSpec {
        id: 9,
        path: "/bin/true".to_owned(),
        args: vec!["word".to_owned()],
        user: document.account.user.clone(),
        environment: vec!["PATH=/bin".to_owned()],
    };
    let requests = [
        Request::List,
        Request::Signal {
            key,
            order: proto::launch::TaskOrder::User1,
        },
        Request::Reprioritize {
            key,
            nice: Some(3),
            cpu_weight: Some(100),
        },
        Request::StartSensor(sensor),
        Request::StopSensor { pid: 1, signal: 15 },
        Request::Forget {
            key: proto::id::TaskKey {
                attempt: key.attempt + 1,
                ..key
            },
        },
        Request::Launch(Box::new(document)),
    ];
    requests.iter().flat_map(frame).collect()
}

fn descriptors_of(pid: i32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// The launcher's socket, wherever below `run` it is.
pub fn socket(cell: &Cell, name: &str) -> PathBuf {
    fn below(dir: &Path, name: &str) -> Option<PathBuf> {
        let entries: Vec<PathBuf> = std::fs::read_dir(dir)
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .collect();
        let here = entries
            .iter()
            .find(|path| path.file_name().is_some_and(|found| found == name))
            .cloned();
        here.or_else(|| {
            entries
                .iter()
                .filter(|path| path.is_dir())
                .find_map(|path| below(path, name))
        })
    }
    below(&cell.dir().join("run"), name).unwrap_or_else(|| panic!("there is no {name}"))
}

fn mutated_messages() {
    let cell = Cell::up();
    let job = cell.submit(&["-b", "y", "sleep", "1000"]);
    cell.wait_for_state(&job, "r");
    let (launcher, agent) = (cell.pid("launcher"), Attacker::in_place_of(cell.pid("agent")));
    let tasks = std::fs::read_dir(cell.dir().join("tasks"))
        .expect("the directory is there")
        .flatten();
    let document = tasks
        .map(|entry| entry.path().join("record"))
        .find_map(|path| document_in(&path));
    let file = cell.top().join("messages");
    std::fs::write(&file, messages(document.expect("a running task has a document"))).expect("the directory is ours");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("the file is ours");
    let before = (descriptors_of(launcher), resident_kib(launcher));
    let count = long_or("20000", "1500");
    let socket = socket(&cell, "launcher.sock").display().to_string();
    for seed in ["1", "2"] {
        let said = agent
            .play(&cell, "babble", &[&socket, &file.display().to_string(), count, seed])
            .ok();
        assert!(!said.out.starts_with("0 "), "{said}");
    }
    assert_eq!(cell.pid("launcher"), launcher);
    let now = || (descriptors_of(launcher), resident_kib(launcher));
    // What was started on the way ends by itself, and its descriptors with it.
    wait_until(
        || format!("the descriptors and KiB {before:?}, not {:?}", now()),
        || now().0 <= before.0 + 8,
    );
    assert!(
        now().1 < before.1 + (16 << 10),
        "the launcher grew from {before:?} to {:?}",
        now()
    );
    assert_eq!(cell.run_script("#!/bin/sh\ntrue\n", &[]).value("exit_status"), "0");
    assert_eq!(cell.pid("launcher"), launcher, "{}", cell.log("launcher"));
}
