//! A scheduler outside the master, small enough to read at once: the example for
//! `algorithm external` (master/EVENTS.md).
//!
//! First come, first served, one slot a task, wherever one is free; parallel jobs are left alone.
//! It knows nothing of holds, access or consumables: what the core refuses it tries again when
//! something has changed. A cell wants it with `algorithm external` in `qconf -msconf`; a manager
//! starts it as `gridwright-example-scheduler SOCKET`, which is `run/master/master.sock` of the
//! cell's directory or, on another administrative host, `run/agent/agent.sock`: its agent passes
//! everything on over QUIC.

use proto::diagnostic::Diagnostic;
use proto::id::{HostName, QueueInstanceName, RequestId, SubmitSeq, TaskId};
use proto::job::GrantedSlots;
use proto::wire::agent::PROTOCOL_VERSION;
use proto::wire::client::{Answer, ClientHello, ClientMessage, Command, Query, Reply};
use proto::wire::frame::Kind;
use proto::wire::stream::{Change, Item, Order, Orders, Subscription, TaskFate, Verdict};
use proto::wire::view::Data;
use quic::blocking::{recv, send};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Its name to the master.
const NAME: &str = "example";

/// The longest frame that it takes.
const FRAME_LIMIT: usize = 512 << 20;

/// How often it gives a sign of life: well within `EXTERNAL_TIMEOUT`.
const SIGN_OF_LIFE: Duration = Duration::from_millis(500);

/// A task of a job.
type Task = (SubmitSeq, TaskId);

/// What it knows of the cell.
#[derive(Default)]
struct Cell {
    /// Whether everything that was true at the beginning has been told.
    is_complete: bool,
    /// The slots of each queue instance.
    slots: BTreeMap<QueueInstanceName, u32>,
    /// Instances that take no tasks.
    closed: BTreeSet<QueueInstanceName>,
    /// Hosts that take tasks.
    connected: BTreeSet<HostName>,
    /// Tasks to be started, first come first.
    waiting: BTreeSet<Task>,
    /// Tasks that were refused, until something changes.
    refused: BTreeSet<Task>,
    /// The slots of each task that is on a host, or was ordered there.
    placed: BTreeMap<Task, Vec<GrantedSlots>>,
}

impl Cell {
    /// Folds one element of the stream.
    fn take(&mut self, item: Item) {
        match item.change {
            Change::Complete {} => self.is_complete = true,
            Change::JobAdded { job } if job.spec.requests.pe.is_none() => {
                self.waiting.extend(
                    job.tasks
                        .iter()
                        .flat_map(|range| range.iter())
                        .map(|task| (job.seq, task)),
                );
            }
            Change::TasksDeleted { job, tasks } => {
                let is_gone = |(of, task): &Task| *of == job && tasks.iter().any(|range| range.contains(*task));
                self.waiting.retain(|task| !is_gone(task));
                self.refused.retain(|task| !is_gone(task));
            }
            Change::TaskPlaced { task, granted, .. } => {
                self.waiting.remove(&(task.seq, task.task));
                self.refused.remove(&(task.seq, task.task));
                self.placed.insert((task.seq, task.task), granted);
            }
            Change::TaskEnded { task, then, .. } => {
                self.placed.remove(&(task.seq, task.task));
                if then == TaskFate::Pending {
                    self.waiting.insert((task.seq, task.task));
                }
                self.try_again();
            }
            Change::Instances { host, instances } => {
                self.slots.retain(|instance, _| instance.host != host);
                self.slots
                    .extend(instances.into_iter().map(|granted| (granted.instance, granted.slots)));
            }
            Change::InstanceChanged {
                instance,
                disabled,
                suspended,
                errors,
                ..
            } => {
                if disabled || suspended || !errors.is_empty() {
                    self.closed.insert(instance);
                } else {
                    self.closed.remove(&instance);
                }
            }
            Change::Contact { host, connected: true } => drop(self.connected.insert(host)),
            Change::Contact { host, connected: false } => drop(self.connected.remove(&host)),
            Change::HoldsChanged { .. } | Change::JobChanged { .. } | Change::JobFinished { .. } => self.try_again(),
            Change::ErrorCleared { .. } | Change::ObjectsChanged { .. } | Change::PassWanted {} => self.try_again(),
            _ => {}
        }
    }

    fn try_again(&mut self) {
        self.waiting.append(&mut self.refused);
    }

    /// Orders for as many tasks as there are free slots.
    fn plan(&mut self) -> Vec<Order> {
        let mut taken: BTreeMap<&QueueInstanceName, u32> = BTreeMap::new();
        for granted in self.placed.values().flatten() {
            *taken.entry(&granted.instance).or_default() += granted.slots;
        }
        let is_open =
            |instance: &&QueueInstanceName| self.connected.contains(&instance.host) && !self.closed.contains(*instance);
        let free = self
            .slots
            .iter()
            .filter(|(instance, _)| is_open(instance))
            .flat_map(|(instance, slots)| {
                let free = slots.saturating_sub(taken.get(instance).copied().unwrap_or(0));
                (0..free).map(move |_| instance.clone())
            });
        let chosen: Vec<(Task, QueueInstanceName)> = self.waiting.iter().copied().zip(free).collect();
        let order = |((seq, task), instance)| {
            self.waiting.remove(&(seq, task));
            let granted = vec![GrantedSlots { instance, slots: 1 }];
            self.placed.insert((seq, task), granted.clone());
            Order::Start {
                seq,
                task,
                granted,
                pe: None,
            }
        };
        chosen.into_iter().map(order).collect()
    }

    /// Takes back what was refused.
    fn judged(&mut self, orders: &[Order], verdicts: &[Verdict]) {
        for (order, verdict) in orders.iter().zip(verdicts) {
            if let (Order::Start { seq, task, .. }, Verdict::Refused(why)) = (order, verdict) {
                eprintln!("job {} task {task} is refused: {why}", seq.0);
                self.placed.remove(&(*seq, *task));
                self.refused.insert((*seq, *task));
            }
        }
    }
}

/// A connection to the master.
fn connect(socket: &Path) -> UnixStream {
    let mut stream = UnixStream::connect(socket).expect("a daemon listens");
    let hello = ClientHello {
        version: PROTOCOL_VERSION,
        program: NAME.to_owned(),
        task: None,
    };
    send(&mut stream, Kind::Hello, 0, &hello, FRAME_LIMIT).expect("the master reads");
    stream
}

/// The next part of an answer; none at the end of the stream.
fn reply(stream: &mut UnixStream) -> Option<Reply> {
    let frame = recv(stream, FRAME_LIMIT).expect("the master speaks our protocol")?;
    if frame.kind == Kind::Refusal {
        give_up(&frame.message().expect("a diagnostic"));
    }
    let reply: Reply = frame.message().expect("a reply");
    if let Some(refusal) = reply.answers.iter().find_map(Answer::refusal) {
        give_up(refusal);
    }
    Some(reply)
}

fn give_up(refusal: &Diagnostic) -> ! {
    eprintln!("refused: {refusal}");
    std::process::exit(1);
}

/// The event stream from the full state on, read by a thread of its own.
fn subscribe(socket: &Path) -> Receiver<Vec<Item>> {
    let mut stream = connect(socket);
    let query = Query::Events(Subscription {
        name: NAME.to_owned(),
        ..Subscription::default()
    });
    send(&mut stream, Kind::Request, 1, &ClientMessage::Query(query), FRAME_LIMIT).expect("the master reads");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        while let Some(Reply {
            data: Some(Data::Events(items)),
            ..
        }) = reply(&mut stream)
        {
            if sender.send(items).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Gives orders, which is a sign of life also if there are none, and returns the verdicts.
fn give(stream: &mut UnixStream, id: u64, orders: &[Order]) -> Vec<Verdict> {
    let orders = Orders {
        scheduler: NAME.to_owned(),
        orders: orders.to_vec(),
        last: false,
    };
    // Other processes and earlier lives of this one must not have used the same.
    let unique = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
    let message = ClientMessage::Change {
        id: RequestId(unique << 32 | u128::from(id)),
        command: Command::Orders(orders),
    };
    send(stream, Kind::Request, id, &message, FRAME_LIMIT).expect("the master reads");
    match reply(stream) {
        Some(Reply {
            data: Some(Data::Verdicts(verdicts)),
            ..
        }) => verdicts,
        other => panic!("no verdicts: {other:?}"),
    }
}

fn main() {
    let socket = std::env::args_os().nth(1).expect("gridwright-example-scheduler SOCKET");
    let events = subscribe(Path::new(&socket));
    let mut to_core = connect(Path::new(&socket));
    let mut cell = Cell::default();
    for id in 1.. {
        match events.recv_timeout(SIGN_OF_LIFE) {
            Ok(items) => items
                .into_iter()
                .chain(events.try_iter().flatten())
                .for_each(|item| cell.take(item)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if cell.is_complete {
            let orders = cell.plan();
            let verdicts = give(&mut to_core, id, &orders);
            cell.judged(&orders, &verdicts);
        }
    }
}
