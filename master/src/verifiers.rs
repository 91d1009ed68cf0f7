//! The verifier of the cell (`jsv_url`): runs it for the jobs that the core wants to know about.
//!
//! Neither the core thread nor a reader waits for a verifier: orders come into a queue, a few
//! processes work on them, and each answer goes back to the core as an input. The queue has no
//! limit of its own, because the core lets a limited number of jobs wait. Each job is answered in
//! bounded time: those for which no process becomes free are refused.
//!
//! A verifier runs as the account of the master, within what its unit allows. For one that has
//! another account, a [relay](relay) runs as that account.

mod account;
pub mod relay;
mod seat;
#[cfg(test)]
mod tests;
pub mod url;

use crate::messages::DriverInput;
use master_core::effect::{Input, VerificationId, VerificationOrder};
use proto::diagnostic::{Code, Diagnostic};
use proto::job::JobSpec;
use seat::{JobInput, Seat};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use verifier::correction::corrected;
use verifier::date::LocalCalendar;
use verifier::dialog::JsvLogLine;
use verifier::offer::{JsvOffer, JsvSide};

/// Processes that look at jobs at the same time.
const SEATS: usize = 4;

/// How long a job waits for one of them.
const WAIT: Duration = Duration::from_secs(120);

/// How long processes have to end when the master does.
const GRACE: Duration = Duration::from_secs(3);

/// An input of the pool.
enum PoolInput {
    Verify(Box<VerificationOrder>),
    /// The configuration names this verifier now.
    Url(Option<String>),
    Stop(oneshot::Sender<()>),
}

/// Takes orders for the verifier.
#[derive(Clone)]
pub struct VerifierQueue(mpsc::UnboundedSender<PoolInput>);

impl VerifierQueue {
    /// A queue, and the work behind it. Answers go to `answers`. `root` is the directory of the
    /// cell.
    pub fn new(answers: mpsc::Sender<DriverInput>, root: PathBuf) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (sender, inputs) = mpsc::unbounded_channel();
        let (free, freed) = mpsc::unbounded_channel();
        let pool = Pool {
            inputs,
            answers,
            root,
            url: None,
            idle: Vec::new(),
            busy: 0,
            free,
            freed,
            waiting: VecDeque::new(),
        };
        (Self(sender), pool.work())
    }

    /// Wants a job looked at.
    pub fn verify(&self, order: Box<VerificationOrder>) {
        // The pool ends with the master.
        let _ = self.0.send(PoolInput::Verify(order));
    }

    /// Tells which verifier the configuration names. Idle processes of another one end.
    pub fn set_url(&self, url: Option<String>) {
        let _ = self.0.send(PoolInput::Url(url));
    }

    /// Ends all processes.
    pub async fn stop(&self) {
        let (done, ended) = oneshot::channel();
        let _ = self.0.send(PoolInput::Stop(done));
        // What has not ended then ends with the master.
        let _ = timeout(GRACE, ended).await;
    }
}

/// The processes, and the orders that wait for them.
struct Pool {
    inputs: mpsc::UnboundedReceiver<PoolInput>,
    answers: mpsc::Sender<DriverInput>,
    root: PathBuf,
    /// The verifier that the configuration names, once it was told.
    url: Option<Option<String>>,
    /// The one that was used last is the last one.
    idle: Vec<Seat>,
    busy: usize,
    free: mpsc::UnboundedSender<Seat>,
    freed: mpsc::UnboundedReceiver<Seat>,
    waiting: VecDeque<(Instant, Box<VerificationOrder>)>,
}

impl Pool {
    async fn work(mut self) {
        loop {
            self.begin();
            let due = self.waiting.front().map(|(since, _)| *since + WAIT);
            tokio::select! {
                biased;
                Some(seat) = self.freed.recv() => {
                    self.busy -= 1;
                    self.idle.push(seat);
                }
                input = self.inputs.recv() => match input {
                    Some(PoolInput::Verify(order)) => self.waiting.push_back((Instant::now(), order)),
                    Some(PoolInput::Url(url)) => self.change(url),
                    Some(PoolInput::Stop(done)) => {
                        let ends: Vec<_> = self.idle.drain(..).filter_map(Seat::quit).collect();
                        for end in ends {
                            let _ = end.await;
                        }
                        // Nobody may wait for it any more.
                        let _ = done.send(());
                        return;
                    }
                    None => return,
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.refuse_first(),
            }
        }
    }

    /// Gives waiting jobs to free processes; a new one is started where none is free.
    fn begin(&mut self) {
        while self.busy < SEATS
            && let Some((_, order)) = self.waiting.pop_front()
        {
            let seat = self.idle.pop().unwrap_or_default();
            self.busy += 1;
            let (answers, free, root) = (self.answers.clone(), self.free.clone(), self.root.clone());
            tokio::spawn(async move {
                let mut seat = seat;
                let (id, outcome) = look_at(&mut seat, *order, &root).await;
                // Before the answer: whoever submits a job behind it finds the same process free.
                let _ = free.send(seat);
                answer(&answers, id, outcome).await;
            });
        }
    }

    fn change(&mut self, url: Option<String>) {
        if self.url.as_ref() != Some(&url) {
            self.idle.drain(..).for_each(|seat| drop(seat.quit()));
            self.url = Some(url);
        }
    }

    fn refuse_first(&mut self) {
        let Some((_, order)) = self.waiting.pop_front() else {
            return;
        };
        let what = format!(
            "the job submission verifier did not come to the job within {} s",
            WAIT.as_secs()
        );
        let refusal = Diagnostic::new(Code::Overloaded, what).fix("try again later; a manager looks at jsv_url");
        let answers = self.answers.clone();
        tokio::spawn(async move { answer(&answers, order.id, Err(refusal)).await });
    }
}

async fn answer(answers: &mpsc::Sender<DriverInput>, id: VerificationId, outcome: Result<Box<JobSpec>, Diagnostic>) {
    // The core ends before the pool only where the master ends.
    let _ = answers.send(DriverInput::Core(Input::Verified { id, outcome })).await;
}

/// Asks the verifier about one job.
async fn look_at(
    seat: &mut Seat,
    order: VerificationOrder,
    root: &std::path::Path,
) -> (VerificationId, Result<Box<JobSpec>, Diagnostic>) {
    let began = Instant::now();
    let calendar = LocalCalendar::here();
    let offer = JsvOffer::new(JsvSide::Server(order.number), &order.spec, &calendar);
    let input = JobInput {
        url: &order.verifier,
        patience: Duration::from_secs(order.patience_s.into()),
        root,
        offer: &offer,
    };
    let outcome = match seat.verify(input, &mut log).await {
        Err(refusal) => {
            tracing::error!("{refusal}");
            Err(refusal)
        }
        Ok(answer) => match answer.rejection {
            Some(message) => Err(Diagnostic::new(Code::JobRejected, message)
                .fix("the job submission verifier of the cell decides: jsv_url of qconf -sconf")),
            None => corrected((*order.spec).clone(), &answer.changes, &calendar).map(Box::new),
        },
    };
    let took_ms = began.elapsed().as_millis();
    if took_ms >= order.threshold_ms.into() {
        tracing::info!("the job submission verifier took {took_ms} ms for job {}", order.number);
    }
    (order.id, outcome)
}

/// Writes a line of `LOG` to the log of the master.
fn log(line: JsvLogLine) {
    let JsvLogLine { kind, text } = line;
    match kind.as_str() {
        "INFO" => tracing::info!("{text}"),
        "WARNING" => tracing::warn!("{text}"),
        "ERROR" => tracing::error!("{text}"),
        _ => tracing::warn!("received \"{text}\" from JSV with invalid type \"{kind}\""),
    }
}
