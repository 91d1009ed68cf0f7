use super::*;
use proto::wire::view::{CategoryView, ShareNode};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread::JoinHandle;

/// What the daemon does with one connection.
enum DaemonAction {
    /// Reads the request and closes.
    Drop,
    /// Refuses under the id 0 without reading, as an agent does that has no master.
    NoMaster,
    /// Reads the request and answers.
    Answer,
    /// Reads the request, where there is one, and says nothing until the client has gone.
    Silence,
    /// Reads the request and says that it passed it on and got no answer.
    Unknown,
}

/// A daemon that treats one connection after the other as told; it ends with the requests that it
/// read.
struct FakeDaemon {
    dir: PathBuf,
    thread: JoinHandle<Vec<ClientMessage>>,
}

impl FakeDaemon {
    fn start(name: &str, turns: Vec<DaemonAction>) -> Self {
        let dir = std::env::temp_dir().join(format!("gridwright-client-{name}-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("run/agent")).unwrap();
        let socket = dir.join("run/agent/agent.sock");
        let listener = UnixListener::bind(socket).unwrap();
        let thread = std::thread::spawn(move || {
            turns
                .into_iter()
                .filter_map(|turn| serve(listener.accept().unwrap().0, &turn))
                .collect()
        });
        Self { dir, thread }
    }

    fn client(&self) -> Client {
        Client::connect(&CellAddress::at(&self.dir), "test").unwrap()
    }

    fn messages(self) -> Vec<ClientMessage> {
        let messages = self.thread.join().unwrap();
        std::fs::remove_dir_all(self.dir).unwrap();
        messages
    }

    /// The ids of the changes.
    fn requests(self) -> Vec<RequestId> {
        let id = |message| match message {
            ClientMessage::Change { id, .. } => Some(id),
            ClientMessage::Query(_) => None,
        };
        self.messages().into_iter().filter_map(id).collect()
    }

    /// How many questions there were.
    fn questions(self) -> usize {
        self.messages()
            .iter()
            .filter(|message| matches!(message, ClientMessage::Query(_)))
            .count()
    }
}

fn serve(mut stream: UnixStream, turn: &DaemonAction) -> Option<ClientMessage> {
    if let DaemonAction::NoMaster = turn {
        let refusal = Diagnostic::new(Code::NoMaster, "error: no connection to the master");
        blocking::send(&mut stream, Kind::Refusal, 0, &refusal, FRAME_LIMIT).unwrap();
        return None;
    }
    assert_eq!(
        blocking::recv(&mut stream, FRAME_LIMIT).unwrap().unwrap().kind,
        Kind::Hello
    );
    let frame = match blocking::recv(&mut stream, FRAME_LIMIT).unwrap() {
        None if matches!(turn, DaemonAction::Silence) => return None,
        frame => frame.unwrap(),
    };
    let message = frame.message().unwrap();
    match turn {
        DaemonAction::Answer => {
            let reply = Reply::answers(vec![Answer::Done("done".to_owned())]);
            blocking::send(&mut stream, Kind::Reply, frame.id, &reply, FRAME_LIMIT).unwrap();
        }
        DaemonAction::Unknown => {
            let refusal = Diagnostic::new(Code::OutcomeUnknown, "error: no answer");
            blocking::send(&mut stream, Kind::Refusal, frame.id, &refusal, FRAME_LIMIT).unwrap();
        }
        DaemonAction::Silence => while let Ok(Some(_)) = blocking::recv(&mut stream, FRAME_LIMIT) {},
        DaemonAction::Drop | DaemonAction::NoMaster => {}
    }
    Some(message)
}

#[test]
fn a_change_is_repeated_while_the_agent_looks_for_the_master() {
    let daemon = FakeDaemon::start(
        "repeat",
        vec![
            DaemonAction::Drop,
            DaemonAction::NoMaster,
            DaemonAction::NoMaster,
            DaemonAction::Answer,
        ],
    );
    let reply = daemon.client().change(Command::TriggerScheduling).unwrap();
    assert_eq!(reply.answers, [Answer::Done("done".to_owned())]);
    let ids = daemon.requests();
    assert_eq!((ids.len(), ids[0]), (2, ids[1]));
}

#[test]
fn without_a_master_the_first_attempt_is_the_last() {
    let daemon = FakeDaemon::start("first", vec![DaemonAction::NoMaster]);
    let reply = daemon.client().change(Command::TriggerScheduling).unwrap();
    assert!(matches!(reply.answers.as_slice(), [Answer::Refused(refusal)] if refusal.code == Code::NoMaster));
    assert_eq!(daemon.requests(), []);
}

#[test]
fn a_change_that_nobody_answered_ends_with_its_outcome_unknown() {
    let daemon = FakeDaemon::start("unknown", vec![DaemonAction::Drop]);
    let mut client = daemon.client();
    client.repeat_for = Duration::ZERO;
    let refusal = client.change(Command::TriggerScheduling).unwrap_err();
    assert_eq!(refusal.code, Code::OutcomeUnknown);
    assert_eq!(daemon.requests().len(), 1);
}

#[test]
fn a_change_that_was_never_sent_has_no_master() {
    let daemon = FakeDaemon::start("gone", vec![DaemonAction::Drop]);
    let mut client = daemon.client();
    client.repeat_for = Duration::ZERO;
    assert!(client.change(Command::TriggerScheduling).is_err());
    daemon.requests();
    assert_eq!(
        client.change(Command::TriggerScheduling).unwrap_err().code,
        Code::NoMaster
    );
}

#[test]
fn an_interrupt_ends_a_change_that_nobody_answers() {
    let daemon = FakeDaemon::start("interrupted", vec![DaemonAction::Silence]);
    let interrupt = Interrupt::hold().unwrap();
    let mut client = daemon.client();
    nix::sys::pthread::pthread_kill(nix::sys::pthread::pthread_self(), nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(client.change_unless(Command::TriggerScheduling, &interrupt), Ok(None));
    drop(client);
    assert_eq!(daemon.requests().len(), 1);
}

#[test]
fn a_last_request_does_not_wait_for_a_daemon_that_is_silent() {
    let daemon = FakeDaemon::start("last", vec![DaemonAction::Silence, DaemonAction::Silence]);
    let client = daemon.client();
    let mut last = client.hurried(Duration::from_millis(50)).unwrap();
    drop(client);
    assert_eq!(
        last.change(Command::TriggerScheduling).unwrap_err().code,
        Code::OutcomeUnknown
    );
    drop(last);
    assert_eq!(daemon.requests().len(), 1);
}

#[test]
fn a_change_that_an_agent_passed_on_in_vain_is_repeated() {
    let daemon = FakeDaemon::start("vain", vec![DaemonAction::Unknown, DaemonAction::Answer]);
    let reply = daemon.client().change(Command::TriggerScheduling).unwrap();
    assert_eq!(reply.answers, [Answer::Done("done".to_owned())]);
    let ids = daemon.requests();
    assert_eq!((ids.len(), ids[0]), (2, ids[1]));
}

#[test]
fn a_wait_goes_on_with_the_next_master() {
    let turns = vec![
        DaemonAction::Drop,
        DaemonAction::NoMaster,
        DaemonAction::Drop,
        DaemonAction::Answer,
    ];
    let daemon = FakeDaemon::start("wait", turns);
    let interrupt = Interrupt::hold().unwrap();
    let reply = daemon.client().wait(Query::Status, &interrupt).unwrap().unwrap();
    assert_eq!(reply.answers, [Answer::Done("done".to_owned())]);
    assert_eq!(daemon.questions(), 3);
}

#[test]
fn a_wait_ends_when_no_master_comes_back() {
    let daemon = FakeDaemon::start("lost", vec![DaemonAction::Drop]);
    let mut client = daemon.client();
    client.look_for = Duration::ZERO;
    let refusal = client.wait(Query::Status, &Interrupt::hold().unwrap()).unwrap_err();
    assert_eq!((refusal.code, daemon.questions()), (Code::NoMaster, 1));
}

#[test]
fn a_connection_that_was_closed_while_nothing_was_asked_is_made_again() {
    let daemon = FakeDaemon::start("idle", vec![DaemonAction::Answer, DaemonAction::Answer]);
    let mut client = daemon.client();
    for _ in 0..2 {
        let reply = client.change(Command::TriggerScheduling).unwrap();
        assert_eq!(reply.answers, [Answer::Done("done".to_owned())]);
        // The daemon closes after each answer: the end is there to be seen once it has.
        while is_quiet(client.stream.as_ref().unwrap()) {
            std::thread::yield_now();
        }
    }
    assert_eq!(daemon.requests().len(), 2);
}

#[test]
fn the_parts_of_a_long_answer_are_put_together() {
    let node = |path: &str| ShareNode {
        path: path.to_owned(),
        ..ShareNode::default()
    };
    let category = |id| CategoryView {
        id,
        ..CategoryView::default()
    };
    let mut nodes = Reply::data(Data::Shares(vec![node("/")]));
    append(&mut nodes, Reply::data(Data::Shares(vec![node("/a"), node("/b")])));
    assert_eq!(nodes.data, Some(Data::Shares(vec![node("/"), node("/a"), node("/b")])));
    let mut categories = Reply::data(Data::Categories(vec![category(1)]));
    append(&mut categories, Reply::data(Data::Categories(vec![category(2)])));
    assert_eq!(categories.data, Some(Data::Categories(vec![category(1), category(2)])));
}
