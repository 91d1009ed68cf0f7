//! The binding in safe Rust: what each function checks, in which order, and what it returns.

use crate::control::{Action, ProgramState};
use crate::ended::{StatusWord, TaskEnd};
use crate::error::{DrmaaError, Errno};
use crate::handles::{Handles, StringList};
use crate::ids::{JobId, SESSION_ALL, SESSION_ANY};
use crate::session::{Deadline, Session};
use crate::template::{Attributes, SCALARS, VECTORS};
use proto::request::TaskRange;
use std::ffi::c_long;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The name of the system, for `drmaa_get_DRM_system` and `drmaa_get_DRMAA_implementation`.
/// Programs look for its first three letters.
pub const SYSTEM: &str = "SGE 8.1.9";

/// The version of the binding.
pub const VERSION: (u32, u32) = (1, 0);

/// `DRMAA_TIMEOUT_WAIT_FOREVER`.
const FOREVER: c_long = -1;

/// The state of the library in one process.
pub struct Binding {
    session: RwLock<Option<Arc<Session>>>,
    /// Held while a session is being opened or closed.
    opening: Mutex<()>,
    templates: Handles<Attributes>,
    lists: Handles<StringList>,
}

/// The answer of a wait.
pub struct WaitOutcome {
    /// The job.
    pub id: String,
    /// How it ended.
    pub status: StatusWord,
    /// The handle of the list of its usage; `None` if it never ran.
    pub usage: Option<usize>,
}

impl Binding {
    /// No session.
    pub fn new() -> Self {
        Self {
            session: RwLock::new(None),
            opening: Mutex::new(()),
            templates: Handles::new(),
            lists: Handles::new(),
        }
    }

    /// `drmaa_init`.
    pub fn init(&self, contact: &str) -> Result<(), DrmaaError> {
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.session().is_ok() {
            return Err(Errno::AlreadyActive.into());
        }
        let session = Session::open(contact)?;
        *self.session.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(session));
        Ok(())
    }

    /// `drmaa_exit`.
    pub fn exit(&self) -> Result<(), DrmaaError> {
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let session = self.session.write().unwrap_or_else(PoisonError::into_inner).take();
        let session = session.ok_or_else(|| DrmaaError::silent(Errno::NoActiveSession))?;
        session.close();
        Ok(())
    }

    fn session(&self) -> Result<Arc<Session>, DrmaaError> {
        let session = self.session.read().unwrap_or_else(PoisonError::into_inner).clone();
        session.ok_or_else(|| Errno::NoActiveSession.into())
    }

    /// `drmaa_get_contact`: empty without a session.
    pub fn contact(&self) -> String {
        self.session().map(|session| session.contact()).unwrap_or_default()
    }

    /// `drmaa_allocate_job_template`.
    pub fn allocate_template(&self) -> Result<usize, DrmaaError> {
        self.session()?;
        Ok(self.templates.add(Attributes::default()))
    }

    /// `drmaa_delete_job_template`: works without a session.
    pub fn delete_template(&self, handle: usize) -> Result<(), DrmaaError> {
        self.templates
            .remove(handle)
            .map(drop)
            .ok_or_else(|| Errno::InvalidArgument.into())
    }

    fn with_template<R>(
        &self,
        handle: usize,
        work: impl FnOnce(&mut Attributes) -> Result<R, DrmaaError>,
    ) -> Result<R, DrmaaError> {
        self.session()?;
        self.templates
            .with(handle, work)
            .ok_or(DrmaaError::from(Errno::InvalidArgument))?
    }

    /// `drmaa_set_attribute`.
    pub fn set_attribute(&self, handle: usize, name: &str, value: &str) -> Result<(), DrmaaError> {
        self.with_template(handle, |attributes| attributes.set(name, value))
    }

    /// `drmaa_get_attribute`.
    pub fn attribute(&self, handle: usize, name: &str) -> Result<String, DrmaaError> {
        self.with_template(handle, |attributes| attributes.value(name).map(str::to_owned))
    }

    /// `drmaa_set_vector_attribute`.
    pub fn set_vector(&self, handle: usize, name: &str, values: Vec<String>) -> Result<(), DrmaaError> {
        self.with_template(handle, |attributes| attributes.set_vector(name, values))
    }

    /// `drmaa_get_vector_attribute`.
    pub fn vector(&self, handle: usize, name: &str) -> Result<usize, DrmaaError> {
        let values = self.with_template(handle, |attributes| attributes.vector(name).map(<[String]>::to_vec))?;
        Ok(self.lists.add(StringList::new(values)))
    }

    /// `drmaa_get_attribute_names`.
    pub fn attribute_names(&self) -> Result<usize, DrmaaError> {
        self.names(&SCALARS)
    }

    /// `drmaa_get_vector_attribute_names`.
    pub fn vector_names(&self) -> Result<usize, DrmaaError> {
        self.names(&VECTORS)
    }

    fn names(&self, names: &[&str]) -> Result<usize, DrmaaError> {
        self.session()?;
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Ok(self.lists.add(StringList::new(names)))
    }

    /// `drmaa_get_next_…`.
    pub fn next(&self, handle: usize) -> Result<String, DrmaaError> {
        let next = self.lists.with(handle, StringList::take_next);
        next.ok_or(DrmaaError::from(Errno::InvalidArgument))?
            .ok_or_else(|| Errno::NoMoreElements.into())
    }

    /// `drmaa_get_num_…`.
    pub fn count(&self, handle: usize) -> Result<usize, DrmaaError> {
        let count = self.lists.with(handle, |list| list.count());
        count.ok_or_else(|| Errno::InvalidArgument.into())
    }

    /// `drmaa_release_…`. A list that is not there is released already.
    pub fn release(&self, handle: usize) {
        drop(self.lists.remove(handle));
    }

    /// `drmaa_run_job`.
    pub fn run_job(&self, handle: usize) -> Result<String, DrmaaError> {
        let ids = self.submit(handle, None)?;
        ids.first().map(JobId::to_string).ok_or_else(|| Errno::Internal.into())
    }

    /// `drmaa_run_bulk_jobs`.
    pub fn run_bulk(&self, handle: usize, start: i32, end: i32, step: i32) -> Result<usize, DrmaaError> {
        self.session()?;
        let range = task_range(start, end, step).ok_or(DrmaaError::from(Errno::InvalidArgument))?;
        let ids = self.submit(handle, Some(range))?;
        let texts = ids.iter().map(JobId::to_string).collect();
        Ok(self.lists.add(StringList::new(texts)))
    }

    fn submit(&self, handle: usize, tasks: Option<TaskRange>) -> Result<Vec<JobId>, DrmaaError> {
        let session = self.session()?;
        // A copy: others may use the template while the master answers.
        let attributes = self.with_template(handle, |attributes| Ok(attributes.clone()))?;
        session.run(&attributes, tasks)
    }

    /// `drmaa_control`.
    pub fn control(&self, id: &str, action: i32) -> Result<(), DrmaaError> {
        let session = self.session()?;
        let action = match action {
            0 => Action::Suspend,
            1 => Action::Resume,
            2 => Action::Hold,
            3 => Action::Release,
            4 => Action::Terminate,
            _other => return Err(Errno::InvalidArgument.into()),
        };
        let id = if id == SESSION_ALL {
            None
        } else {
            Some(JobId::parse(id)?)
        };
        session.control(id, action)
    }

    /// `drmaa_synchronize`.
    pub fn synchronize(&self, ids: &[String], timeout_s: c_long, dispose: bool) -> Result<(), DrmaaError> {
        let session = self.session()?;
        let deadline = deadline(timeout_s)?;
        let is_all = ids.iter().any(|id| id == SESSION_ALL);
        let ids = match is_all {
            true => None,
            false => Some(ids.iter().map(|id| JobId::parse(id)).collect::<Result<_, _>>()?),
        };
        session.synchronize(ids, deadline, dispose)
    }

    /// `drmaa_wait`.
    pub fn wait(&self, id: &str, timeout_s: c_long) -> Result<WaitOutcome, DrmaaError> {
        let session = self.session()?;
        let deadline = deadline(timeout_s)?;
        let (id, end) = match id {
            SESSION_ANY => session.wait_any(deadline)?,
            id => session.wait(JobId::parse(id)?, deadline)?,
        };
        Ok(self.outcome(id, &end))
    }

    fn outcome(&self, id: JobId, end: &TaskEnd) -> WaitOutcome {
        WaitOutcome {
            id: id.to_string(),
            status: end.status(),
            usage: end.usage().map(|usage| self.lists.add(StringList::new(usage))),
        }
    }

    /// `drmaa_job_ps`.
    pub fn job_ps(&self, id: &str) -> Result<ProgramState, DrmaaError> {
        let session = self.session()?;
        session.state(JobId::parse(id)?)
    }
}

fn task_range(start: i32, end: i32, step: i32) -> Option<TaskRange> {
    let (start, end, step) = (
        u32::try_from(start).ok()?,
        u32::try_from(end).ok()?,
        u32::try_from(step).ok()?,
    );
    if start == 0 || start > end {
        return None;
    }
    TaskRange::new(start, end, step).ok()
}

/// The end of a wait of so many seconds. A time beyond the clock is for ever.
fn deadline(timeout_s: c_long) -> Result<Deadline, DrmaaError> {
    if timeout_s == FOREVER {
        return Ok(None);
    }
    let seconds = u64::try_from(timeout_s).map_err(|_| DrmaaError::from(Errno::InvalidArgument))?;
    Ok(Instant::now().checked_add(Duration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_bulk_jobs_rise_from_one() {
        for bad in [
            (5, 1, 1),
            (0, 3, 1),
            (1, 3, 0),
            (3, 1, -1),
            (-1, 3, 1),
            (1, i32::MAX, 1),
        ] {
            assert_eq!(task_range(bad.0, bad.1, bad.2), None, "{bad:?}");
        }
        assert_eq!(task_range(1, 5, 2).map(TaskRange::count), Some(3));
        assert_eq!(task_range(1, 1, 1).map(TaskRange::count), Some(1));
    }

    #[test]
    fn a_time_beyond_the_clock_is_for_ever() {
        assert_eq!(deadline(FOREVER).unwrap(), None);
        assert_eq!(deadline(c_long::MAX).unwrap(), None);
        assert!(deadline(0).unwrap().is_some());
        assert_eq!(deadline(-2).unwrap_err().errno, Errno::InvalidArgument);
    }
}
