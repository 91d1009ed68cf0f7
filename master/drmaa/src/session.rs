//! A session: its jobs, the thread that reads the event stream, and the calls that wait.

#[cfg(test)]
mod tests;

use crate::control::{Action, ProgramState, command, judge, state_in, state_of_end};
use crate::ended::TaskEnd;
use crate::error::{DrmaaError, Errno};
use crate::ids::JobId;
use crate::reader::{Reader, last_records};
use crate::requests::{LOOK_FOR, Requests, accepted};
use crate::table::{JobTable, Knowledge};
use crate::template::Attributes;
use cli::library::CellAddress;
use nix::sys::signal::{SigSet, SigmaskHow};
use proto::accounting::AccountingRecord;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{JobNumber, TaskId, UserName};
use proto::request::TaskRange;
use proto::wire::client::{Command, JobFilter, Query};
use proto::wire::stream::StreamStart;
use proto::wire::view::{Data, JobRow};
use std::collections::HashMap;
use std::io::Read;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The variable of a job's context that names its session.
pub const SESSION_VARIABLE: &str = "drmaa_session";

/// What a contact string begins with.
const CONTACT: &str = "session=";

/// The longest key of a session, in bytes.
const KEY_MAX: usize = 255;

/// How long the end of a session waits for its thread.
const LAST_WORD: Duration = Duration::from_secs(1);

/// How long a question about a job that has just left waits for the event that says how.
const EVENT_DELAY: Duration = Duration::from_secs(2);

/// The time until which a call may wait. `None` means for ever.
pub type Deadline = Option<Instant>;

/// The session as its threads share it.
pub struct SharedSession {
    /// The key of the contact string.
    pub key: String,
    state: Mutex<SessionState>,
    /// Signaled when anything changes that a caller without a job of its own waits for.
    changed: Condvar,
}

/// What the lock of a session protects.
pub struct SessionState {
    /// Its jobs.
    pub table: JobTable,
    link: MasterLink,
    is_closing: bool,
    has_reader: bool,
    stream: Option<UnixStream>,
    /// Callers that wait for one task.
    waiters: HashMap<JobId, Arc<Condvar>>,
}

/// The state of the event stream.
enum MasterLink {
    Opening,
    Up,
    Down { since: Instant, why: Option<Diagnostic> },
}

impl SharedSession {
    fn new(key: String) -> Self {
        let state = SessionState {
            table: JobTable::default(),
            link: MasterLink::Opening,
            is_closing: false,
            has_reader: true,
            stream: None,
            waiters: HashMap::new(),
        };
        Self {
            key,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// The state, locked.
    pub fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the session is being closed.
    pub fn is_closing(&self) -> bool {
        self.lock().is_closing
    }

    /// Keeps the connection of the stream, so that the end of the session can cut it. Returns
    /// whether the session goes on.
    pub fn hold_stream(&self, stream: UnixStream) -> bool {
        let mut state = self.lock();
        state.stream = Some(stream);
        !state.is_closing
    }

    /// Forgets the connection of the stream.
    pub fn release_stream(&self) {
        self.lock().stream = None;
    }

    /// Notes that the stream is complete.
    pub fn found(&self) {
        self.lock().link = MasterLink::Up;
        self.changed.notify_all();
    }

    /// Notes that there is no stream. Waiting callers hear of it once the master was away for long.
    pub fn lost(&self, why: Option<Diagnostic>) {
        let mut state = self.lock();
        let since = match state.link {
            MasterLink::Down { since, .. } => since,
            MasterLink::Opening | MasterLink::Up => Instant::now(),
        };
        state.link = MasterLink::Down { since, why };
        if since.elapsed() >= LOOK_FOR {
            state.waiters.values().for_each(|waiter| waiter.notify_all());
        }
        self.changed.notify_all();
    }

    /// Notes that the reader has ended.
    pub fn reader_ended(&self) {
        self.lock().has_reader = false;
        self.changed.notify_all();
    }

    /// Notes the end of a task.
    pub fn end(&self, number: JobNumber, task: TaskId, end: TaskEnd) {
        let mut state = self.lock();
        let ended = state.table.end(number, task, end);
        self.tell(&state, ended);
    }

    /// Notes the end of a task by its record.
    pub fn end_with(&self, number: JobNumber, task: TaskId, record: Box<AccountingRecord>) {
        let mut state = self.lock();
        let ended = state.table.end_with(number, task, record);
        self.tell(&state, ended);
    }

    fn tell(&self, state: &SessionState, ended: Option<JobId>) {
        let Some(id) = ended else { return };
        if let Some(waiter) = state.waiters.get(&id) {
            waiter.notify_all();
        }
        self.changed.notify_all();
    }

    /// Waits until a task is not live. Returns what is known of it then, and the lock.
    fn settled(&self, id: JobId, deadline: Deadline) -> Result<(Knowledge, MutexGuard<'_, SessionState>), DrmaaError> {
        let mut state = self.lock();
        loop {
            state.is_usable()?;
            let known = state.table.look(id);
            if known != Knowledge::Live {
                return Ok((known, state));
            }
            state.must_be_linked()?;
            let waiter = state.waiters.entry(id).or_default().clone();
            let (woken, is_over) = wait_on(&waiter, state, deadline);
            state = woken;
            if Arc::strong_count(&waiter) == 2 {
                state.waiters.remove(&id);
            }
            if is_over && state.table.look(id) == Knowledge::Live {
                return Err(Errno::Timeout.into());
            }
        }
    }
}

impl SessionState {
    fn is_usable(&self) -> Result<(), DrmaaError> {
        match self.is_closing {
            true => Err(Errno::NoActiveSession.into()),
            false => Ok(()),
        }
    }

    /// A master that is away for a moment is waited for.
    fn must_be_linked(&self) -> Result<(), DrmaaError> {
        match &self.link {
            MasterLink::Down { since, why } if since.elapsed() >= LOOK_FOR => {
                let text = why.as_ref().map_or_else(
                    || Errno::Communication.text().to_string_lossy().into_owned(),
                    |why| why.what.clone(),
                );
                Err(DrmaaError::new(Errno::Communication, text))
            }
            MasterLink::Opening | MasterLink::Up | MasterLink::Down { .. } => Ok(()),
        }
    }
}

/// Waits for a signal or the deadline; true if the deadline has passed.
fn wait_on<'a>(
    condvar: &Condvar,
    state: MutexGuard<'a, SessionState>,
    deadline: Deadline,
) -> (MutexGuard<'a, SessionState>, bool) {
    let Some(end) = deadline else {
        return (condvar.wait(state).unwrap_or_else(PoisonError::into_inner), false);
    };
    let left = end.saturating_duration_since(Instant::now());
    let (state, _) = condvar
        .wait_timeout(state, left)
        .unwrap_or_else(PoisonError::into_inner);
    (state, Instant::now() >= end)
}

/// How a session came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionOrigin {
    New,
    TakenUp,
}

/// A session.
pub struct Session {
    shared: Arc<SharedSession>,
    requests: Arc<Requests>,
    user: UserName,
    origin: SessionOrigin,
    reader: Mutex<Option<JoinHandle<()>>>,
}

impl Session {
    /// Opens a session: a new one without a contact string, else the one that it names.
    ///
    /// # Errors
    /// `InvalidArgument` for a text that is not a contact string; `InitFailed` without a cell, or
    /// if the master refuses the session; `Communication` if it does not answer.
    pub fn open(contact: &str) -> Result<Self, DrmaaError> {
        let (key, origin) = match contact {
            "" => (new_key()?, SessionOrigin::New),
            contact => (key_of(contact)?, SessionOrigin::TakenUp),
        };
        let address = CellAddress::from_environment();
        if !address.dir().join("etc").is_dir() {
            let text = format!(
                "there is no cell in {}: set SGE_ROOT or GRIDWRIGHT_DIR to its directory",
                address.dir().display()
            );
            return Err(DrmaaError::new(Errno::InitFailed, text));
        }
        let session = Self {
            shared: Arc::new(SharedSession::new(key)),
            requests: Arc::new(Requests::new(address)),
            user: user(),
            origin,
            reader: Mutex::new(None),
        };
        session.start_reader()?;
        session.wait_for_link().inspect_err(|_| session.close())?;
        Ok(session)
    }

    fn start_reader(&self) -> Result<(), DrmaaError> {
        let reader = Reader {
            shared: self.shared.clone(),
            requests: self.requests.clone(),
            user: self.user.clone(),
            start: match self.origin {
                SessionOrigin::New => StreamStart::Now,
                SessionOrigin::TakenUp => StreamStart::Full,
            },
        };
        // Signals are for the threads of the program. A thread inherits the mask of its maker.
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
        let started = std::thread::Builder::new()
            .name(crate::requests::PROGRAM.to_owned())
            .spawn(|| reader.run());
        if let Ok(before) = before {
            let _ = before.thread_set_mask();
        }
        let handle = started.map_err(|error| DrmaaError::new(Errno::InitFailed, error.to_string()))?;
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
        Ok(())
    }

    /// Waits until the stream has begun, or the master has refused it.
    fn wait_for_link(&self) -> Result<(), DrmaaError> {
        let give_up = Some(Instant::now() + LOOK_FOR);
        let mut is_over = false;
        let mut state = self.shared.lock();
        loop {
            match &state.link {
                MasterLink::Up => return Ok(()),
                MasterLink::Down { why: Some(why), .. } if why.code != Code::NoMaster => {
                    return Err(DrmaaError::new(Errno::InitFailed, why.what.clone()));
                }
                // It is away, or was reached and says nothing.
                MasterLink::Opening | MasterLink::Down { .. } if is_over => return Err(Errno::Communication.into()),
                MasterLink::Opening | MasterLink::Down { .. } => {}
            }
            (state, is_over) = wait_on(&self.shared.changed, state, give_up);
        }
    }

    /// The contact string.
    pub fn contact(&self) -> String {
        format!("{CONTACT}{}", self.shared.key)
    }

    /// Ends the session: callers that wait return, jobs go on.
    pub fn close(&self) {
        let mut state = self.shared.lock();
        state.is_closing = true;
        if let Some(stream) = state.stream.take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        state.waiters.values().for_each(|waiter| waiter.notify_all());
        self.shared.changed.notify_all();
        let end = Some(Instant::now() + LAST_WORD);
        let mut is_over = false;
        while state.has_reader && !is_over {
            (state, is_over) = wait_on(&self.shared.changed, state, end);
        }
        let has_ended = !state.has_reader;
        drop(state);
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A reader that talks to a silent master is left alone: it ends by itself.
        if let Some(reader) = reader.filter(|_| has_ended) {
            let _ = reader.join();
        }
    }

    /// Submits a job, or an array of jobs. Returns the identifiers.
    ///
    /// # Errors
    /// As [`Attributes::job`]; `Denied`, `TryLater` or `Communication` as the master answers.
    pub fn run(&self, attributes: &Attributes, tasks: Option<TaskRange>) -> Result<Vec<JobId>, DrmaaError> {
        let mut template = attributes.job(tasks)?;
        template
            .context
            .push((SESSION_VARIABLE.to_owned(), self.shared.key.clone()));
        let spec = template
            .specification(self.requests.address())
            .map_err(|refusal| DrmaaError::of_submission(&refusal))?;
        let reply = self
            .requests
            .change(&Command::Submit(Box::new(spec)))
            .map_err(|refusal| DrmaaError::of_submission(&refusal))?;
        let reply = accepted(reply, DrmaaError::of_submission)?;
        let Some(Data::Submitted { number, array, .. }) = reply.data else {
            return Err(DrmaaError::new(Errno::Internal, "the master did not name the job"));
        };
        self.shared.lock().table.add_submitted(number, array);
        let task = |task| JobId {
            number,
            task: Some(task),
        };
        Ok(array.map_or_else(
            || vec![JobId { number, task: None }],
            |range| range.iter().map(task).collect(),
        ))
    }

    /// Waits for the end of a job and reaps it.
    ///
    /// # Errors
    /// `InvalidJob` if it is not one of this session, or is reaped; `Timeout`; `NoActiveSession` if
    /// the session is closed meanwhile.
    pub fn wait(&self, id: JobId, deadline: Deadline) -> Result<(JobId, TaskEnd), DrmaaError> {
        self.adopt(id)?;
        let (_, mut state) = self.shared.settled(id, deadline)?;
        let end = state.table.reap(id).ok_or(Errno::InvalidJob)?;
        self.reaped(&state, id);
        Ok((id, end))
    }

    /// Waits for the end of any job of the session and reaps it.
    ///
    /// # Errors
    /// See [`Session::wait`].
    pub fn wait_any(&self, deadline: Deadline) -> Result<(JobId, TaskEnd), DrmaaError> {
        let mut state = self.shared.lock();
        let mut is_over = false;
        loop {
            state.is_usable()?;
            if let Some((id, end)) = state.table.reap_any() {
                self.reaped(&state, id);
                return Ok((id, end));
            }
            if state.table.is_empty() {
                return Err(Errno::InvalidJob.into());
            }
            if is_over {
                return Err(Errno::Timeout.into());
            }
            state.must_be_linked()?;
            (state, is_over) = wait_on(&self.shared.changed, state, deadline);
        }
    }

    /// Others that wait for the same job, or for any, have nothing to wait for now.
    fn reaped(&self, state: &SessionState, id: JobId) {
        if let Some(waiter) = state.waiters.get(&id) {
            waiter.notify_all();
        }
        if state.table.is_empty() {
            self.shared.changed.notify_all();
        }
    }

    /// Waits until jobs have ended; `None` means all that are not reaped. Reaps them if `dispose`.
    ///
    /// # Errors
    /// `Timeout`; `NoActiveSession` if the session is closed meanwhile.
    pub fn synchronize(&self, ids: Option<Vec<JobId>>, deadline: Deadline, dispose: bool) -> Result<(), DrmaaError> {
        let ids = match ids {
            None => self.shared.lock().table.unreaped(),
            Some(ids) => self.tasks_of(ids),
        };
        for id in &ids {
            let (_, state) = self.shared.settled(*id, deadline).map_err(|error| match error.errno {
                Errno::Timeout => DrmaaError::silent(Errno::Timeout),
                _other => error,
            })?;
            drop(state);
        }
        if dispose {
            let mut state = self.shared.lock();
            for id in ids {
                state.table.reap(id);
                self.reaped(&state, id);
            }
        }
        Ok(())
    }

    /// The number of an array stands for its tasks.
    fn tasks_of(&self, ids: Vec<JobId>) -> Vec<JobId> {
        let unreaped = self.shared.lock().table.unreaped();
        let of_one = |id: JobId| -> Vec<JobId> {
            let tasks = unreaped
                .iter()
                .filter(|known| id.task.is_none() && known.number == id.number);
            let tasks: Vec<JobId> = tasks.copied().collect();
            if tasks.is_empty() { vec![id] } else { tasks }
        };
        ids.into_iter().flat_map(of_one).collect()
    }

    /// Returns the state of a job, which may be one of another session.
    ///
    /// # Errors
    /// `InvalidJob` if there is none of that number, or it is reaped.
    pub fn state(&self, id: JobId) -> Result<ProgramState, DrmaaError> {
        self.adopt(id)?;
        let known = self.shared.lock().table.look(id);
        match known {
            Knowledge::Ended(end) => return Ok(state_of_end(&end)),
            Knowledge::Gone => return Err(Errno::InvalidJob.into()),
            Knowledge::Live | Knowledge::Unknown => {}
        }
        if let Some(state) = self.row(id.number)?.and_then(|row| state_in(&row, id)) {
            return Ok(state);
        }
        // It has left, and the event that says how is on its way.
        let end = Some(Instant::now() + EVENT_DELAY);
        match self.shared.settled(id, end) {
            Ok((Knowledge::Ended(end), _)) => Ok(state_of_end(&end)),
            Ok((Knowledge::Gone | Knowledge::Unknown | Knowledge::Live, _)) => Err(Errno::InvalidJob.into()),
            Err(error) if error.errno == Errno::Timeout => Err(Errno::InvalidJob.into()),
            Err(error) => Err(error),
        }
    }

    fn row(&self, number: JobNumber) -> Result<Option<JobRow>, DrmaaError> {
        let query = Query::Jobs(JobFilter {
            jobs: vec![number.to_string()],
            ..JobFilter::default()
        });
        let reply = self
            .requests
            .query(&query)
            .map_err(|refusal| DrmaaError::of_refusal(&refusal))?;
        match reply.data {
            Some(Data::Jobs(rows)) => Ok(rows.into_iter().find(|row| row.number == number)),
            _none => Ok(None),
        }
    }

    /// In a session that was taken up again, finds a job that ended while no session was open.
    fn adopt(&self, id: JobId) -> Result<(), DrmaaError> {
        let is_known = self.shared.lock().table.has(id.number);
        if self.origin == SessionOrigin::New || is_known || self.row(id.number)?.is_some() {
            return Ok(());
        }
        let records =
            last_records(&self.requests, &self.user, id.number).map_err(|refusal| DrmaaError::of_refusal(&refusal))?;
        let mut state = self.shared.lock();
        let is_array = records.values().any(|record| record.task_number > 0);
        if !records.is_empty() {
            state.table.add(id.number, records.keys().copied(), is_array);
        }
        for (task, record) in records {
            state.table.end_with(id.number, task, Box::new(record));
        }
        Ok(())
    }

    /// Does something to one job, or with `None` to all of the session.
    ///
    /// # Errors
    /// `InvalidJob` if there is none; the error of the action if its state does not allow it.
    pub fn control(&self, id: Option<JobId>, action: Action) -> Result<(), DrmaaError> {
        let Some(id) = id else {
            let live = self.shared.lock().table.live_jobs();
            let all = live.into_iter().map(|number| JobId { number, task: None });
            return all.map(|id| self.control_one(id, action)).fold(Ok(()), Result::and);
        };
        let gone = || DrmaaError::new(Errno::InvalidJob, "There are no jobs registered");
        let known = self.shared.lock().table.look(id);
        let is_over = match known {
            Knowledge::Ended(_) => true,
            // The number of an array is not a task of it, and can be controlled.
            Knowledge::Gone => self.shared.lock().table.live_tasks(id.number).is_empty(),
            Knowledge::Live | Knowledge::Unknown => false,
        };
        if is_over {
            return Err(gone());
        }
        self.control_one(id, action).map_err(|error| match error.errno {
            Errno::InvalidJob => gone(),
            _other => error,
        })
    }

    fn control_one(&self, id: JobId, action: Action) -> Result<(), DrmaaError> {
        let command = command(id, action);
        let reply = self
            .requests
            .change(&command)
            .map_err(|refusal| DrmaaError::of_refusal(&refusal))?;
        judge(&reply, action)?;
        if action == Action::Terminate {
            let mut state = self.shared.lock();
            let tasks = id
                .task
                .map_or_else(|| state.table.live_tasks(id.number), |task| vec![task]);
            tasks.into_iter().for_each(|task| state.table.deleting(id.number, task));
        }
        Ok(())
    }
}

/// A text that was neither empty nor a contact string.
fn key_of(contact: &str) -> Result<String, DrmaaError> {
    let is_key = |key: &&str| {
        (1..=KEY_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
    };
    let key = contact.strip_prefix(CONTACT).filter(is_key);
    key.map(str::to_owned)
        .ok_or_else(|| DrmaaError::silent(Errno::InvalidArgument))
}

/// A key that no other session has.
fn new_key() -> Result<String, DrmaaError> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|error| DrmaaError::new(Errno::Internal, format!("/dev/urandom: {error}")))?;
    let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    let host = host.unwrap_or_else(|| "localhost".to_owned());
    let random = u64::from_ne_bytes(bytes);
    Ok(format!("{host}.{}.{random}", std::process::id()))
}

/// The user as the socket of the master sees it.
fn user() -> UserName {
    let uid = nix::unistd::geteuid();
    let user = nix::unistd::User::from_uid(uid).ok().flatten();
    UserName::from(user.map_or_else(|| uid.to_string(), |user| user.name))
}
