//! One event stream on its way to a client: the beginning, then the news, in parts of bearable
//! size.

use super::gather::NewsQueue;
use super::session::Writer;
use crate::messages::{NewsItem, Stream, StreamFilter, StreamPrelude};
use crate::store::Store;
use master_core::stream;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::EventSeq;
use proto::wire::client::Reply;
use proto::wire::frame::Kind;
use proto::wire::stream::{Change, Item};
use proto::wire::view::Data;
use quic::StreamError;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Elements of one part.
const PART: usize = 250;

/// Bytes of environments and arguments of one part, about: what makes elements long.
const PART_BYTES: usize = 1 << 20;

/// Events that are read from the log at once.
const READ: usize = 1_000;

/// How long a client that is cut off may take for what is being sent to it, before the connection
/// is dropped.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is collected for one part.
#[derive(Default)]
struct StreamPart {
    items: Vec<Item>,
    bytes: usize,
}

impl StreamPart {
    fn add(&mut self, item: Item) {
        self.bytes += weight(&item.change);
        self.items.push(item);
    }

    fn is_full(&self) -> bool {
        self.items.len() >= PART || self.bytes >= PART_BYTES
    }

    fn take(&mut self) -> Vec<Item> {
        self.bytes = 0;
        std::mem::take(&mut self.items)
    }
}

fn weight(change: &Change) -> usize {
    let spec = if let Change::JobAdded { job } = change {
        &job.spec
    } else if let Change::JobChanged { spec, .. } = change {
        spec
    } else {
        return 0;
    };
    let environment = spec.environment.iter().map(|(name, value)| name.len() + value.len());
    environment.chain(spec.args.iter().map(String::len)).sum()
}

/// A stream that is being sent.
struct StreamWriter<'a, 'w, W> {
    writer: &'a mut Writer<'w, W>,
    id: u64,
    filter: StreamFilter,
    cut: oneshot::Receiver<Diagnostic>,
    part: StreamPart,
}

/// Why a stream ended before its time.
enum StreamEnd {
    Cut(Diagnostic),
    Stream(StreamError),
}

impl<W: AsyncWrite + Unpin> Writer<'_, W> {
    /// Sends a stream until the client goes, is cut off, or the master ends.
    pub(super) async fn events(&mut self, id: u64, stream: Stream) -> Result<ControlFlow<()>, StreamError> {
        let Stream {
            beginning,
            filter,
            every,
            mut live,
            cut,
        } = stream;
        let database = self.desk.database.clone();
        let mut gone = self.gone.clone();
        let mut sending = StreamWriter {
            writer: self,
            id,
            filter,
            cut,
            part: StreamPart::default(),
        };
        let sent = async {
            sending.beginning(beginning, database).await?;
            if !every.is_zero() {
                return sending.gathered(&mut live, every).await;
            }
            loop {
                tokio::select! {
                    biased;
                    why = &mut sending.cut => return Err(StreamEnd::Cut(why.unwrap_or_else(|_| super::session::ending()))),
                    news = live.recv() => match news {
                        Some(news) => sending.news(news),
                        None => return Err(StreamEnd::Cut(super::session::ending())),
                    },
                }
                while let Some(news) = (!sending.part.is_full()).then(|| live.try_recv().ok()).flatten() {
                    sending.news(news);
                }
                sending.flush().await?;
            }
        };
        let end: Result<(), StreamEnd> = tokio::select! {
            end = sent => end,
            // Nothing is ever sent here: it ends with the half that reads.
            _ = gone.changed() => return Ok(ControlFlow::Break(())),
        };
        match end {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(StreamEnd::Stream(error)) => Err(error),
            Err(StreamEnd::Cut(why)) => {
                let refusal = Reply::refusal(why);
                let said = self.sender.send(Kind::Reply, id, &refusal);
                tokio::time::timeout(PATIENCE, said)
                    .await
                    .map_err(|_| StreamError::Disconnected)??;
                Ok(ControlFlow::Continue(()))
            }
        }
    }
}

impl<W: AsyncWrite + Unpin> StreamWriter<'_, '_, W> {
    async fn beginning(&mut self, beginning: StreamPrelude, database: PathBuf) -> Result<(), StreamEnd> {
        let (last, soft) = match beginning {
            StreamPrelude::Nothing { last } if self.filter.names(Change::Complete {}.kind()) => (last, Vec::new()),
            StreamPrelude::Nothing { .. } => return Ok(()),
            StreamPrelude::Full(state, observations) => {
                for item in stream::full(&state) {
                    self.add(item).await?;
                }
                let facts = stream::soft_facts(&state, &observations);
                let soft = facts
                    .into_iter()
                    .map(|change| stream::soft(change, state.last, state.now.wall));
                (state.last, soft.collect())
            }
            StreamPrelude::Log { after, until, soft } => {
                self.log(after, until, database).await?;
                (until, soft)
            }
        };
        let time = soft
            .first()
            .map_or_else(crate::clock::wall_now, |item: &Item| item.time);
        for item in soft {
            self.add(item).await?;
        }
        self.add(stream::soft(Change::Complete {}, last, time)).await?;
        self.flush().await
    }

    /// Reads events behind `after`, up to `until`, from the log.
    async fn log(&mut self, mut after: EventSeq, until: EventSeq, database: PathBuf) -> Result<(), StreamEnd> {
        while after < until {
            let path = database.clone();
            let count = READ.min(usize::try_from(until.0 - after.0).unwrap_or(READ));
            let read = tokio::task::spawn_blocking(move || Store::open_to_read(&path)?.read(after, count));
            let records = read.await.map_err(|_| StreamEnd::Stream(StreamError::Disconnected))?;
            let records = records.map_err(|error| StreamEnd::Cut(unreadable(after, &crate::error_chain(&error))))?;
            let Some(last) = records.last() else {
                return Err(StreamEnd::Cut(unreadable(after, "it ends before")));
            };
            after = last.seq;
            for record in &records {
                self.add(stream::item(record, None)).await?;
            }
        }
        Ok(())
    }

    /// Sends the news of so long together, for ever.
    async fn gathered(&mut self, live: &mut mpsc::Receiver<NewsItem>, every: Duration) -> Result<(), StreamEnd> {
        let (mut gathered, mut due) = (NewsQueue::default(), None::<Instant>);
        loop {
            let is_due = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                why = &mut self.cut => return Err(StreamEnd::Cut(why.unwrap_or_else(|_| super::session::ending()))),
                () = is_due => {}
                news = live.recv() => {
                    let Some(news) = news else { return Err(StreamEnd::Cut(super::session::ending())) };
                    if let Some(item) = self.wanted(news) {
                        due.get_or_insert_with(|| Instant::now() + every);
                        gathered.add(item);
                    }
                    if !gathered.is_full() {
                        continue;
                    }
                }
            }
            due = None;
            for item in gathered.take() {
                self.part.add(item);
                if self.part.is_full() {
                    self.flush().await?;
                }
            }
            self.flush().await?;
        }
    }

    fn wanted(&mut self, news: NewsItem) -> Option<Item> {
        let item = match news {
            NewsItem::Event(record, job) => stream::item(&record, job),
            NewsItem::Soft(item) => (*item).clone(),
        };
        self.filter.takes(&item.change).then_some(item)
    }

    fn news(&mut self, news: NewsItem) {
        if let Some(item) = self.wanted(news) {
            self.part.add(item);
        }
    }

    async fn add(&mut self, item: Item) -> Result<(), StreamEnd> {
        if self.filter.takes(&item.change) {
            self.part.add(item);
        }
        if self.part.is_full() {
            self.flush().await
        } else {
            Ok(())
        }
    }

    /// Sends what is collected. One that is cut off meanwhile gets to the end of it, if it does not
    /// take too long.
    async fn flush(&mut self) -> Result<(), StreamEnd> {
        if self.part.items.is_empty() {
            return Ok(());
        }
        let reply = Reply {
            more: true,
            ..Reply::data(Data::Events(self.part.take()))
        };
        let sending = self.writer.sender.send(Kind::Reply, self.id, &reply);
        tokio::pin!(sending);
        tokio::select! {
            sent = &mut sending => sent.map_err(StreamEnd::Stream),
            why = &mut self.cut => {
                let sent = tokio::time::timeout(PATIENCE, sending).await;
                sent.map_err(|_| StreamEnd::Stream(StreamError::Disconnected))?.map_err(StreamEnd::Stream)?;
                Err(StreamEnd::Cut(why.unwrap_or_else(|_| super::session::ending())))
            }
        }
    }
}

/// The log does not hold what was asked for.
fn unreadable(after: EventSeq, why: &str) -> Diagnostic {
    let what = format!("denied: event {} is not in the log", after.0 + 1);
    Diagnostic::new(Code::UnknownObject, what)
        .why(why)
        .fix("begin without a number: the full state comes first")
}
