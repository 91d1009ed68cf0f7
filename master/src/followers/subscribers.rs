//! The readers of the event stream: event clients, each with a queue of its own.
//!
//! The reader thread hands each event on as it has it, shared, and never waits. A client that does
//! not take its events is cut off at `event_queue`, and may come back with the number of the last
//! event that it has.

use crate::messages::{NewsItem, Stream, StreamFilter, StreamPrelude, SubscribeRequest};
use crate::model::Model;
use master_core::config::DerivedChanges;
use master_core::decide::Caller;
use master_core::effect::MasterHost;
use master_core::event::Record;
use master_core::observe::Observation;
use master_core::state::State;
use master_core::stream;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{EventSeq, HostName, JobNumber, UserName};
use proto::job::Owner;
use proto::wire::client::{Answer, Reply};
use proto::wire::stream::{Change, EVERY_MAX_S, EventClient, StreamStart, Subscription, is_name};
use proto::wire::view::Data;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The number of the built-in scheduler, as in 8.1.9.
const SCHEDULER_ID: u32 = 1;

/// The first number of other event clients, as in 8.1.9.
const FIRST_ID: u32 = 11;

/// How many event clients there may be unless `MAX_DYN_EC` of `qmaster_params` says otherwise, as
/// in 8.1.9.
const CLIENTS: u32 = 99;

/// Owners of jobs in one subscription.
const OWNERS_MAX: usize = 1_000;

/// The event clients.
pub struct Subscribers {
    clients: BTreeMap<u32, Client>,
    /// The most news that wait for one client.
    queue: usize,
    /// The job that the event at hand is about.
    job: Option<JobNumber>,
}

struct Client {
    name: String,
    host: HostName,
    user: UserName,
    /// What it wants to hear of; empty is everything.
    kinds: Vec<String>,
    /// Whether it hears of everybody's jobs, and of what is about no job.
    of_all: bool,
    live: mpsc::Sender<NewsItem>,
    cut: oneshot::Sender<Diagnostic>,
}

impl Client {
    fn wants(&self, change: &Change) -> bool {
        // What is soft is about no job.
        self.of_all && (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == change.kind()))
    }
}

impl Subscribers {
    /// No clients. At most `queue` pieces of news wait for each one that enters.
    pub fn new(queue: usize) -> Self {
        Self {
            clients: BTreeMap::new(),
            queue,
            job: None,
        }
    }

    /// Lets a client in, or says why not.
    pub fn enter(&mut self, subscribe: SubscribeRequest, model: &Model) {
        let SubscribeRequest {
            subscription,
            owner,
            host,
            answer,
        } = subscribe;
        self.forget_gone();
        let opened = self.open(subscription, owner, host, model);
        // The receiver may have gone: then the queue is closed, and the place free with the next
        // look.
        let _ = answer.send(opened);
    }

    fn open(
        &mut self,
        subscription: Subscription,
        owner: Owner,
        host: HostName,
        model: &Model,
    ) -> Result<Stream, Diagnostic> {
        may_subscribe(model, &owner, &host, &subscription.owners)?;
        self.is_room(model)?;
        check_name(&subscription.name)?;
        check_kinds(&subscription.kinds)?;
        check_filter(&subscription)?;
        let beginning = beginning(model, subscription.start)?;
        let id = (FIRST_ID..)
            .find(|id| !self.clients.contains_key(id))
            .expect("there are far fewer clients");
        let (sender, live) = mpsc::channel(self.queue);
        let (cut, cut_off) = oneshot::channel();
        let Subscription {
            name,
            start: _,
            kinds,
            owners,
            every_s,
        } = subscription;
        let of_all = owners.is_empty();
        let client = Client {
            name,
            host,
            user: owner.user,
            kinds: kinds.clone(),
            of_all,
            live: sender,
            cut,
        };
        self.clients.insert(id, client);
        let filter = StreamFilter::new(kinds, owners, &model.state);
        Ok(Stream {
            beginning,
            filter,
            every: Duration::from_secs(every_s.into()),
            live,
            cut: cut_off,
        })
    }

    fn is_room(&self, model: &Model) -> Result<(), Diagnostic> {
        let limit = model.state.config.settings.qmaster().max_dyn_ec.unwrap_or(CLIENTS);
        if (self.clients.len() as u64) < u64::from(limit) {
            return Ok(());
        }
        let what = format!("denied: {limit} event clients are registered already");
        Err(Diagnostic::new(Code::Overloaded, what)
            .fix("end one (qconf -secl, -kec), or raise MAX_DYN_EC in qmaster_params"))
    }

    /// Notes the job of an event: the state after the event may not have it any more.
    pub(super) fn before(&mut self, state: &State, record: &Record) {
        self.job = stream::job_number(state, &record.event);
    }

    /// Hands an event to every client, and the queue instances that it has changed to those who
    /// want them. The kind of the event is found out where it is sent.
    pub(super) fn after(&mut self, model: &Model, record: &Arc<Record>, derived: &DerivedChanges) {
        let job = self.job.take();
        self.hand_out(record.seq, |_| Some(NewsItem::Event(record.clone(), job)));
        for host in &derived.hosts {
            self.soft(model, || Some(stream::instances(&model.state.config, host)));
        }
    }

    /// Hands a soft fact to everybody who wants it.
    pub(super) fn soft(&mut self, model: &Model, change: impl FnOnce() -> Option<Change>) {
        if self.clients.is_empty() {
            return;
        }
        let last = model.state.last;
        let Some(change) = change() else { return };
        let item = Arc::new(stream::soft(change, last, model.statics.clock.now().wall));
        self.hand_out(last, |client| {
            client.wants(&item.change).then(|| NewsItem::Soft(item.clone()))
        });
    }

    /// Hands an observation to every client that wants it.
    pub(super) fn observed(&mut self, model: &Model, observation: &Observation) {
        self.soft(model, || stream::observed(&model.observations, observation));
    }

    fn hand_out(&mut self, seq: EventSeq, news: impl Fn(&Client) -> Option<NewsItem>) {
        let mut full = Vec::new();
        self.clients.retain(|id, client| {
            let Some(news) = news(client) else { return true };
            match client.live.try_send(news) {
                Ok(()) => true,
                Err(mpsc::error::TrySendError::Closed(_)) => false,
                Err(mpsc::error::TrySendError::Full(_)) => {
                    full.push(*id);
                    true
                }
            }
        });
        for id in full {
            let Some(client) = self.clients.remove(&id) else {
                continue;
            };
            let why = format!(
                "{} events waited for it when event {} came",
                client.live.max_capacity(),
                seq.0
            );
            tracing::warn!(
                "event client {} ({id}) on {} is cut off: {why}",
                client.name,
                client.host
            );
            let what = format!("event client {} with id {id} does not take its events", client.name);
            let fix = "subscribe again from the event behind the last one that came; event_queue of etc/master.toml is the limit";
            let _ = client
                .cut
                .send(Diagnostic::new(Code::Overloaded, what).why(why).fix(fix));
        }
    }

    /// `qconf -secl`.
    pub fn list(&mut self, model: &Model) -> Reply {
        self.forget_gone();
        let host = HostName::new(&model.statics.host);
        let scheduler = EventClient {
            id: SCHEDULER_ID,
            name: "scheduler".to_owned(),
            host,
        };
        let others = self.clients.iter();
        let others = others.map(|(id, client)| EventClient {
            id: *id,
            name: client.name.clone(),
            host: client.host.clone(),
        });
        Reply::data(Data::EventClients(std::iter::once(scheduler).chain(others).collect()))
    }

    /// `qconf -kec`: of all those that there are, or of some.
    pub fn kill(&mut self, ids: &[u32], is_manager: bool, by: &str) -> Reply {
        self.forget_gone();
        if ids.is_empty() && !is_manager {
            return Reply::refusal(Diagnostic::new(
                Code::NotPermitted,
                "shutdown requires manager privileges",
            ));
        }
        let all: Vec<u32> = self.clients.keys().copied().collect();
        let ids = if ids.is_empty() { all.as_slice() } else { ids };
        Reply::answers(ids.iter().map(|id| self.kill_one(*id, is_manager, by)).collect())
    }

    fn kill_one(&mut self, id: u32, is_manager: bool, by: &str) -> Answer {
        let not_permitted = || {
            Answer::Refused(Diagnostic::new(
                Code::NotPermitted,
                "shutdown requires manager privileges",
            ))
        };
        if id == SCHEDULER_ID && !is_manager {
            return not_permitted();
        }
        if id == SCHEDULER_ID {
            let what = "denied: the scheduler is a part of the master";
            let fix = "algorithm external in qconf -msconf leaves placing to another scheduler";
            return Answer::Refused(Diagnostic::new(Code::NotSupported, what).fix(fix));
        }
        let may_end = |client: &Client| is_manager || by.split('@').next() == Some(client.user.as_str());
        match self.clients.get(&id).map(may_end) {
            None => {
                let what = format!("no event client known with id {id} to shutdown");
                Answer::Refused(Diagnostic::new(Code::UnknownObject, what).fix("qconf -secl lists them"))
            }
            Some(false) => not_permitted(),
            Some(true) => {
                let client = self.clients.remove(&id).expect("it was looked up");
                let told = format!(
                    "sent shutdown notification to event client {} with id {id} on host {}",
                    client.name, client.host
                );
                let what = format!("event client {} with id {id} was shut down by {by}", client.name);
                let _ = client
                    .cut
                    .send(Diagnostic::new(Code::WrongState, what).fix("subscribe again if that was wrong"));
                Answer::Done(told)
            }
        }
    }

    fn forget_gone(&mut self) {
        self.clients.retain(|_, client| !client.live.is_closed());
    }
}

/// Everything of the cell is in the stream, the environments of jobs among it: it is for managers.
/// Of their own jobs all may hear.
fn may_subscribe(model: &Model, owner: &Owner, host: &HostName, owners: &[UserName]) -> Result<(), Diagnostic> {
    if !owners.is_empty() && owners.iter().all(|wanted| *wanted == owner.user) {
        return Ok(());
    }
    let master_host = Some(HostName::new(&model.statics.host));
    let master = MasterHost {
        master_host,
        ..MasterHost::default()
    };
    let refused = Caller::new(&model.state, &master, owner.clone(), host.clone()).must_be_manager();
    refused.map_err(|refusal| refusal.fix(format!("for your own jobs: gridwright events --owner {}", owner.user)))
}

fn check_name(name: &str) -> Result<(), Diagnostic> {
    if is_name(name) {
        return Ok(());
    }
    let what = format!("denied: {name:?} is no name of an event client");
    Err(Diagnostic::new(Code::BadValue, what).fix("use 1 to 64 letters, digits, points, dashes and underscores"))
}

fn check_kinds(kinds: &[String]) -> Result<(), Diagnostic> {
    if kinds.len() > Change::KINDS.len() {
        let what = format!(
            "denied: {} kinds of events are named, and there are {}",
            kinds.len(),
            Change::KINDS.len()
        );
        return Err(Diagnostic::new(Code::BadValue, what).fix("name each once, or none for all"));
    }
    let Some(unknown) = kinds.iter().find(|kind| !Change::KINDS.contains(&kind.as_str())) else {
        return Ok(());
    };
    let what = format!("denied: \"{unknown}\" is no kind of event");
    Err(Diagnostic::new(Code::BadValue, what).fix(format!("choose among {}", Change::KINDS.join(", "))))
}

/// Of a job that has left the log does not say whose it was.
fn check_filter(subscription: &Subscription) -> Result<(), Diagnostic> {
    let Subscription {
        start, owners, every_s, ..
    } = subscription;
    if owners.len() > OWNERS_MAX {
        let what = format!(
            "denied: {} owners of jobs are named, at most {OWNERS_MAX} can be",
            owners.len()
        );
        return Err(Diagnostic::new(Code::BadValue, what).fix("name fewer, or none for all"));
    }
    if !owners.is_empty() && matches!(start, StreamStart::From(_)) {
        let what = "denied: events of the log cannot be chosen by the owner of their job";
        return Err(
            Diagnostic::new(Code::BadValue, what).fix("begin with the full state, or with what happens from now on")
        );
    }
    if *every_s > EVERY_MAX_S {
        let what = format!("denied: news cannot be gathered for {every_s} seconds");
        return Err(Diagnostic::new(Code::BadValue, what).fix(format!("0 to {EVERY_MAX_S}")));
    }
    Ok(())
}

fn beginning(model: &Model, start: StreamStart) -> Result<StreamPrelude, Diagnostic> {
    let last = model.state.last;
    match start {
        StreamStart::Full => Ok(StreamPrelude::Full(
            Box::new(model.state.clone()),
            Box::new(model.observations.clone()),
        )),
        StreamStart::Now => Ok(StreamPrelude::Nothing { last }),
        StreamStart::From(first) if first.0 == 0 || first.0 > last.0 + 1 => {
            let what = format!("denied: there is no event {} to begin with", first.0);
            Err(Diagnostic::new(Code::BadValue, what)
                .why(format!("the last one is {}", last.0))
                .fix("begin without a number: the full state comes first"))
        }
        StreamStart::From(first) => {
            let wall = model.statics.clock.now().wall;
            let facts = stream::soft_facts(&model.state, &model.observations);
            let soft = facts
                .into_iter()
                .map(|change| stream::soft(change, last, wall))
                .collect();
            Ok(StreamPrelude::Log {
                after: EventSeq(first.0 - 1),
                until: last,
                soft,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell_events, model};

    fn enter(
        subscribers: &mut Subscribers,
        model: &Model,
        user: &str,
        subscription: Subscription,
    ) -> Result<Stream, Diagnostic> {
        let (answer, mut receiver) = oneshot::channel();
        let owner = Owner {
            user: user.into(),
            uid: 1000,
            gid: 1000,
            group: "users".to_owned(),
            groups: Vec::new(),
        };
        subscribers.enter(
            SubscribeRequest {
                subscription,
                owner,
                host: "node1".into(),
                answer,
            },
            model,
        );
        receiver.try_recv().expect("it is answered at once")
    }

    fn now() -> Subscription {
        Subscription {
            name: "reader".to_owned(),
            start: StreamStart::Now,
            ..Subscription::default()
        }
    }

    #[test]
    fn who_does_not_take_what_comes_is_cut_off_and_nobody_else() {
        let records = cell_events(1);
        let (model, mut subscribers) = (model(&records), Subscribers::new(3));
        let mut slow = enter(&mut subscribers, &model, "alice", now()).unwrap();
        let mut quick = enter(&mut subscribers, &model, "alice", now()).unwrap();
        for record in records.iter().take(4) {
            subscribers.after(&model, &Arc::new(record.clone()), &DerivedChanges::default());
            assert!(matches!(quick.live.try_recv(), Ok(NewsItem::Event(event, None)) if event.seq == record.seq));
        }
        let why = slow.cut.try_recv().unwrap();
        assert_eq!(
            (why.code, why.why.as_str()),
            (Code::Overloaded, "3 events waited for it when event 4 came")
        );
        assert!(why.fix.contains("event_queue"), "{why}");
        assert!(quick.cut.try_recv().is_err());
        let Some(Data::EventClients(clients)) = subscribers.list(&model).data else {
            panic!()
        };
        assert_eq!(clients.iter().map(|client| client.id).collect::<Vec<_>>(), [1, 12]);
    }

    #[test]
    fn soft_facts_that_a_reader_does_not_want_do_not_fill_its_queue() {
        let (model, mut subscribers) = (model(&cell_events(1)), Subscribers::new(3));
        let contacts = Subscription {
            kinds: vec!["contact".to_owned()],
            ..now()
        };
        let mut stream = enter(&mut subscribers, &model, "alice", contacts).unwrap();
        for _ in 0..10 {
            subscribers.soft(&model, || Some(Change::PassWanted {}));
        }
        subscribers.soft(&model, || {
            Some(Change::Contact {
                host: "node1".into(),
                connected: true,
            })
        });
        assert!(matches!(stream.live.try_recv(), Ok(NewsItem::Soft(item)) if item.change.kind() == "contact"));
        assert!(stream.cut.try_recv().is_err());
    }

    #[test]
    fn who_may_not_read_or_asks_for_what_is_not_there_is_refused() {
        let records = cell_events(1);
        let (model, mut subscribers) = (model(&records), Subscribers::new(3));
        let from = |seq| Subscription {
            start: StreamStart::From(EventSeq(seq)),
            ..now()
        };
        let last = records.len() as u64;
        let of_kinds = |kinds: Vec<String>| Subscription { kinds, ..now() };
        let named = |name: &str| Subscription {
            name: name.to_owned(),
            ..now()
        };
        let every = |every_s| Subscription { every_s, ..now() };
        let of_owners = |owners: &[&str], rest: Subscription| Subscription {
            owners: owners.iter().map(|owner| (*owner).into()).collect(),
            ..rest
        };
        for (user, subscription, code) in [
            ("bob", now(), Code::NotPermitted),
            ("alice", from(0), Code::BadValue),
            ("alice", from(last + 2), Code::BadValue),
            ("alice", of_kinds(vec!["job".to_owned()]), Code::BadValue),
            ("alice", of_kinds(vec!["load".to_owned(); 99]), Code::BadValue),
            ("alice", named("two\nlines"), Code::BadValue),
            ("alice", every(EVERY_MAX_S + 1), Code::BadValue),
            ("alice", of_owners(&["bob"], from(1)), Code::BadValue),
            ("bob", of_owners(&["bob", "alice"], now()), Code::NotPermitted),
        ] {
            assert_eq!(
                enter(&mut subscribers, &model, user, subscription).unwrap_err().code,
                code
            );
        }
        for seq in [1, last + 1] {
            assert!(enter(&mut subscribers, &model, "alice", from(seq)).is_ok());
        }
    }

    #[test]
    fn who_asks_for_the_jobs_of_some_users_hears_of_nothing_else() {
        let records = cell_events(2);
        let submitted = |record: &&Record| matches!(record.event, master_core::event::Event::JobSubmitted { .. });
        let first = records.iter().position(|record| submitted(&record)).unwrap();
        let (model, mut subscribers) = (model(&records[..=first]), Subscribers::new(3));
        for (owner, hears) in [("alice", true), ("bob", false)] {
            let mine = Subscription {
                owners: vec![owner.into()],
                ..now()
            };
            let Stream {
                mut filter, mut live, ..
            } = enter(&mut subscribers, &model, owner, mine).unwrap();
            subscribers.soft(&model, || Some(Change::PassWanted {}));
            assert!(live.try_recv().is_err(), "what is about no job");
            let items = records[first + 1..].iter().map(|record| stream::item(record, None));
            let taken: Vec<_> = items
                .filter(|item| filter.takes(&item.change))
                .map(|item| item.change.kind())
                .collect();
            assert_eq!(!taken.is_empty(), hears, "{taken:?}");
            assert!(
                !hears || taken.contains(&"job-added") && taken.contains(&"job-finished"),
                "{taken:?}"
            );
        }
    }

    #[test]
    fn a_place_is_free_again_when_its_reader_has_gone() {
        let model = model(&cell_events(1));
        let mut subscribers = Subscribers::new(3);
        let streams: Vec<Stream> = (0..CLIENTS)
            .map(|_| enter(&mut subscribers, &model, "alice", now()).unwrap())
            .collect();
        assert_eq!(
            enter(&mut subscribers, &model, "alice", now()).unwrap_err().code,
            Code::Overloaded
        );
        drop(streams);
        assert!(enter(&mut subscribers, &model, "alice", now()).is_ok());
    }
}
