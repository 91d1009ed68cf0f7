//! A master for tests: a socket in a directory of its own, answers given by the test, changes kept
//! for it to look at.

use super::session::Session;
use crate::cell_address::CellAddress;
use crate::client::{Client, FRAME_LIMIT};
use proto::wire::client::{Answer, ClientMessage, Command, Query, Reply};
use proto::wire::frame::Kind;
use quic::blocking;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// The master, and the directory that holds its socket and what a test puts beside it.
pub struct FakeMaster {
    dir: PathBuf,
    changes: Arc<Mutex<Vec<Command>>>,
}

impl FakeMaster {
    /// Serves connections one after the other: `answer` answers queries, changes are answered with
    /// `verdict`.
    pub fn start(answer: impl Fn(Query) -> Reply + Send + 'static, verdict: Answer) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("gridwright-qconf-{}-{count}", std::process::id()));
        std::fs::create_dir_all(dir.join("run/master")).unwrap();
        let listener = UnixListener::bind(dir.join("run/master/master.sock")).unwrap();
        let changes = Arc::new(Mutex::new(Vec::new()));
        let seen = changes.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &answer, &verdict, &seen);
            }
        });
        Self { dir, changes }
    }

    /// A session with it, with that command as the editor.
    pub fn session(&self, editor: &str) -> Session {
        let client = Client::connect(&CellAddress::at(&self.dir), "qconf")
            .unwrap()
            .with_raw_values();
        let drafts = self.dir.join("drafts");
        std::fs::create_dir_all(&drafts).unwrap();
        Session::over(client, editor, drafts)
    }

    /// A file for the test with that content. `name` may have directories.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// The texts of edits that were not removed.
    pub fn drafts(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.join("drafts")).unwrap();
        entries
            .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
            .collect()
    }

    /// The changes that were asked for so far.
    pub fn changes(&self) -> Vec<Command> {
        self.changes.lock().unwrap().clone()
    }
}

impl Drop for FakeMaster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn serve(mut stream: UnixStream, answer: impl Fn(Query) -> Reply, verdict: &Answer, seen: &Mutex<Vec<Command>>) {
    while let Ok(Some(frame)) = blocking::recv(&mut stream, FRAME_LIMIT) {
        if frame.kind != Kind::Request {
            continue;
        }
        let reply = match frame.message().unwrap() {
            ClientMessage::Query(query) => answer(query),
            ClientMessage::Change { command, .. } => {
                seen.lock().unwrap().push(command);
                Reply::answers(vec![verdict.clone()])
            }
        };
        blocking::send(&mut stream, Kind::Reply, frame.id, &reply, FRAME_LIMIT).unwrap();
    }
}
