//! How much of the master's disk and memory the jobs of each user take with what may be long.

use proto::id::UserName;
use proto::job::{HostPath, JobSpec, Program, Requests, ScriptDigest};
use proto::request::ResourceRequest;
use std::collections::BTreeMap;

/// Bytes of each job that do not count: an ordinary environment with ordinary arguments, which jobs
/// mostly share.
pub const FREE_BYTES: u64 = 16 << 10;

/// Bytes by user; users without any are not here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bytes {
    by_user: BTreeMap<UserName, u64>,
    /// In how many jobs of a user each stored script is.
    scripts: BTreeMap<(UserName, ScriptDigest), u32>,
}

impl Bytes {
    /// Bytes of a user's jobs.
    pub fn of_user(&self, user: &UserName) -> u64 {
        self.by_user.get(user).copied().unwrap_or(0)
    }

    /// Bytes that a further job would add.
    pub fn with(&self, spec: &JobSpec) -> u64 {
        let script = stored(spec).filter(|(digest, _)| !self.scripts.contains_key(&(spec.owner.user.clone(), *digest)));
        counted(spec) + script.map_or(0, |(_, bytes)| bytes)
    }

    pub(super) fn add(&mut self, spec: &JobSpec) {
        let bytes = self.with(spec);
        if let Some((digest, _)) = stored(spec) {
            *self.scripts.entry((spec.owner.user.clone(), digest)).or_default() += 1;
        }
        if bytes > 0 {
            *self.by_user.entry(spec.owner.user.clone()).or_default() += bytes;
        }
    }

    pub(super) fn remove(&mut self, spec: &JobSpec) {
        if let Some((digest, _)) = stored(spec) {
            let key = (spec.owner.user.clone(), digest);
            let jobs = self.scripts.get_mut(&key).expect("the script of a job is counted");
            *jobs -= 1;
            if *jobs == 0 {
                self.scripts.remove(&key);
            }
        }
        // Without this job, its script counts again if no other job of the user has it.
        let bytes = self.with(spec);
        if bytes > 0 {
            let held = self
                .by_user
                .get_mut(&spec.owner.user)
                .expect("the bytes of a job are counted");
            *held -= bytes;
            if *held == 0 {
                self.by_user.remove(&spec.owner.user);
            }
        }
    }
}

/// Bytes of what is long in a job and lies in memory with it, as far as they count.
pub fn counted(spec: &JobSpec) -> u64 {
    let pairs = |pairs: &[(String, String)]| {
        pairs
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum::<usize>()
    };
    let texts = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
    let paths = |paths: &[HostPath]| paths.iter().map(|path| path.path.len()).sum::<usize>();
    let asked = |list: &[ResourceRequest]| {
        list.iter()
            .map(|one| one.name.len() + one.value.as_ref().map_or(0, String::len))
            .sum::<usize>()
    };
    let script = match &spec.program {
        Program::Script { content, .. } => content.len(),
        Program::Command { command } => command.len(),
        Program::Stored { .. } => 0,
    };
    let Requests {
        hard,
        soft,
        hard_queues,
        soft_queues,
        master_queues,
        master,
        slaves,
        slave_queues,
        ..
    } = &*spec.requests;
    let sum = script
        + pairs(&spec.environment)
        + pairs(&spec.context)
        + [&spec.args, &spec.predecessors, &spec.array_predecessors, &spec.mail_to]
            .map(|list| texts(list))
            .iter()
            .sum::<usize>()
        + [&spec.stdout, &spec.stderr, &spec.stdin, &spec.shell, &spec.directory_on]
            .map(|list| paths(list))
            .iter()
            .sum::<usize>()
        + [hard_queues, soft_queues, master_queues, slave_queues]
            .map(|list| texts(list))
            .iter()
            .sum::<usize>()
        + [hard, soft, master, slaves]
            .map(|list| asked(list))
            .iter()
            .sum::<usize>();
    (sum as u64).saturating_sub(FREE_BYTES)
}

fn stored(spec: &JobSpec) -> Option<(ScriptDigest, u64)> {
    if let Program::Stored { script, .. } = &spec.program {
        Some((script.digest, script.bytes))
    } else {
        None
    }
}
