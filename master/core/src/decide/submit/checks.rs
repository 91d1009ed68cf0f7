//! What a specification must keep, at its submission and after every alteration.

use super::names::{check_account, check_job_name};
use super::{access, paths, scopes};
use crate::config::Configuration;
use crate::config::pattern::QueuePattern;
use crate::decide::Caller;
use crate::effect::UserLimits;
use crate::event::feature_of_job;
use crate::matching::Demand;
use crate::sched::expected_ms;
use crate::state::State;
use crate::state::index::bytes;
use proto::amount::Type;
use proto::checkpoint::Occasion;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::{HostName, PeName, QueueName};
use proto::job::{JobSpec, PeRequest, Program, Requests};
use proto::object::suggest::nearest;
use proto::request::{RequestPurpose, ResolvedRequest};
use proto::request::{ResourceList, ResourceRequest};
use proto::reservation::{ReservationSpec, ReservationState};
use proto::restring::Expression;

/// Everything that is checked at a submission, but for the counts of jobs.
///
/// # Errors
/// With what stands against it.
pub(in crate::decide) fn check(state: &State, caller: &Caller, spec: &JobSpec) -> Result<(), Vec<Diagnostic>> {
    let one = |refusal| vec![refusal];
    caller.must_be_on_submit_host(state).map_err(one)?;
    check_owner(&state.config, spec).map_err(one)?;
    access::check_user(&state.config, spec).map_err(one)?;
    check_program(spec).map_err(one)?;
    check_array(&state.config, spec).map_err(one)?;
    check_session(spec).map_err(one)?;
    if spec.priority > 0 && !caller.is_operator() {
        return Err(one(rejected(
            "positive submission priority requires operator privileges",
        )
        .at("-p")));
    }
    check_binding(spec).map_err(one)?;
    access::check_project(&state.config, spec).map_err(one)?;
    access::check_deadline(&state.config, spec).map_err(one)?;
    paths::check_spec(&state.config, spec).map_err(one)?;
    check_spec(state, spec)
}

/// A request for no cores. `qalter` may make one of it, as in 8.1.9.
fn check_binding(spec: &JobSpec) -> Result<(), Diagnostic> {
    let request = spec.requests.binding.as_ref();
    if request.is_some_and(|request| !request.strategy.is_bearable()) {
        let why = "a list names a core twice, or more cores than any host has";
        return Err(rejected("binding parameter not consistent with strategy")
            .at("-binding")
            .why(why));
    }
    if request.is_none_or(|request| !request.strategy.is_empty()) {
        return Ok(());
    }
    Err(
        rejected("binding parameter not consistent with strategy (BN_parameter_n is 0)")
            .at("-binding")
            .fix("ask for at least one core, or leave -binding out"),
    )
}

/// What holds for every version of a specification.
///
/// # Errors
/// With what stands against it.
pub(in crate::decide) fn check_spec(state: &State, spec: &JobSpec) -> Result<(), Vec<Diagnostic>> {
    let one = |refusal| vec![refusal];
    feature_of_job(spec)
        .map_or(Ok(()), |feature| feature.must_be_open(state.version))
        .map_err(one)?;
    check_job_name(&spec.name).map_err(one)?;
    spec.account.as_deref().map_or(Ok(()), check_account).map_err(one)?;
    if !(-1023..=1024).contains(&spec.priority) {
        let what = format!(
            "invalid priority \"{}\".  Must be an integer from -1023 to 1024",
            spec.priority
        );
        return Err(one(Diagnostic::new(Code::BadValue, what).at("-p")));
    }
    if spec.array.is_none() && spec.task_concurrency.is_some() {
        let refusal = Diagnostic::new(Code::JobRejected, "invalid \"task concurrency\" value in job request");
        return Err(one(refusal
            .at("-tc")
            .fix("only array jobs (-t) have tasks that could run at once")));
    }
    check_parallel(&state.config, &spec.requests).map_err(one)?;
    check_checkpoint(&state.config, spec).map_err(one)?;
    check_queues(&state.config, &spec.requests).map_err(one)?;
    check_resources(&state.config, &spec.requests)?;
    scopes::check(&state.config.complex, &spec.requests).map_err(one)?;
    check_own_reservation(state, spec).map_err(one)
}

/// `-ar`: the reservation is there, the owner may use it, and the job is not longer than it.
fn check_own_reservation(state: &State, spec: &JobSpec) -> Result<(), Diagnostic> {
    let Some(id) = spec.reservation else { return Ok(()) };
    let reservation = state
        .reservations
        .get(&id)
        .filter(|known| known.state != ReservationState::Deleted);
    let Some(reservation) = reservation else {
        let what = format!("the advance reservation id {id} is invalid");
        return Err(Diagnostic::new(Code::JobRejected, what)
            .at("-ar")
            .fix("qrstat -u '*' lists the reservations"));
    };
    let user = &spec.owner.user;
    let is_meant = |entry: &String| match entry.strip_prefix('@') {
        Some(list) => state.config.is_in_list(&spec.owner, list),
        None => entry == user.as_str(),
    };
    if reservation.spec.owner.user != *user && !reservation.spec.users.iter().any(is_meant) {
        let why = format!("{user} is neither owner of advance reservation {id} nor in its list of users (qrsub -u)");
        return Err(Diagnostic::new(Code::NotSuitable, "error: no suitable queues")
            .at("-ar")
            .why(why));
    }
    let demand = Demand::new(&state.config, spec);
    let seconds = expected_ms(&state.config, &demand)
        .filter(|_| asks_for_time(spec))
        .map(|ms| ms / 1000);
    let offset = state.config.scheduler.duration_offset_s();
    let reserved = u64::try_from(reservation.end.0.saturating_sub(reservation.start.0) / 1000).unwrap_or(0);
    if seconds.is_some_and(|seconds| seconds.saturating_sub(offset) > reserved) {
        let what = format!("the job duration is longer than duration of the advance reservation id {id}");
        return Err(Diagnostic::new(Code::JobRejected, what)
            .at("-ar")
            .fix(format!("ask for at most -l h_rt={reserved}")));
    }
    Ok(())
}

/// Whether a job says how long it runs at most.
fn asks_for_time(spec: &JobSpec) -> bool {
    let Requests { hard, master, .. } = &*spec.requests;
    hard.iter()
        .chain(master)
        .any(|request| matches!(request.name.as_str(), "h_rt" | "s_rt"))
}

/// What holds for an advance reservation.
///
/// # Errors
/// With what stands against it.
pub(in crate::decide) fn check_reservation(state: &State, spec: &ReservationSpec) -> Result<(), Vec<Diagnostic>> {
    let one = |refusal| vec![refusal];
    let (config, requests) = (&state.config, &spec.requests);
    if !spec.name.is_empty() {
        check_job_name(&spec.name).map_err(one)?;
    }
    spec.account.as_deref().map_or(Ok(()), check_account).map_err(one)?;
    let mut lists = spec.users.iter().filter_map(|user| user.strip_prefix('@'));
    if let Some(list) = lists.find(|list| !config.user_sets.contains_key(*list)) {
        let what = format!("Userset \"{list}\" does not exist");
        return Err(one(Diagnostic::new(Code::UnknownObject, what)
            .at("-u")
            .fix("qconf -sul lists them")));
    }
    scopes::check_none(requests).map_err(one)?;
    check_parallel(config, requests).map_err(one)?;
    check_checkpoint_name(config, spec.checkpoint.as_deref()).map_err(one)?;
    check_queues(config, requests).map_err(one)?;
    check_resources(config, requests).map_err(|refusals| refusals.into_iter().map(of_reservation).collect())
}

/// A refusal that speaks of the job speaks of the reservation instead, as in 8.1.9.
fn of_reservation(refusal: Diagnostic) -> Diagnostic {
    match refusal.what.strip_prefix("\"job\" denied") {
        Some(rest) => Diagnostic {
            what: format!("\"advance_reservation\" denied{rest}"),
            ..refusal
        },
        None => refusal,
    }
}

/// `max_jobs` and `max_u_jobs`, which leave room again when jobs end: exit code 25.
///
/// # Errors
/// If the cell, or the user, has as many jobs as it may have.
pub(super) fn check_counts(state: &State, users: UserLimits, spec: &JobSpec) -> Result<(), Diagnostic> {
    let settings = &state.config.settings;
    let full = |count: usize, limit: u32| limit > 0 && count >= limit as usize;
    let refusal = |what: String| Diagnostic::new(Code::JobLimit, what).fix("wait until jobs have ended");
    if full(state.jobs.len(), settings.max_jobs) {
        return Err(refusal(format!(
            "job rejected: only {} jobs are allowed per cluster",
            settings.max_jobs
        )));
    }
    let count = state.index.job_count(&spec.owner.user);
    if full(count, settings.max_u_jobs) {
        let limit = settings.max_u_jobs;
        return Err(refusal(format!(
            "job rejected: only {limit} jobs are allowed per user (current job count: {count})"
        )));
    }
    if count as u64 >= users.jobs {
        let what = format!(
            "job rejected: only {} jobs are allowed per user (current job count: {count})",
            users.jobs
        );
        return Err(refusal(what).at("jobs_per_user of etc/master.toml"));
    }
    check_bytes(state, users, spec, state.index.bytes_with(spec))
}

/// Checks the limits of an owner for a job that is altered.
///
/// # Errors
/// If it grows beyond what its owner may have.
pub(in crate::decide) fn check_growth(
    state: &State,
    users: UserLimits,
    before: &JobSpec,
    spec: &JobSpec,
) -> Result<(), Diagnostic> {
    check_bytes(
        state,
        users,
        spec,
        bytes::counted(spec).saturating_sub(bytes::counted(before)),
    )
}

/// Scripts, arguments, environments and lists of a user take a bounded part of the master's disk
/// and memory.
fn check_bytes(state: &State, users: UserLimits, spec: &JobSpec, more: u64) -> Result<(), Diagnostic> {
    let held = state.index.bytes_of(&spec.owner.user);
    if more == 0 || held.saturating_add(more) <= users.job_bytes {
        return Ok(());
    }
    let limit = users.job_bytes;
    let what = format!("job rejected: the scripts and lists of a user's jobs may take {limit} bytes");
    Err(Diagnostic::new(Code::JobLimit, what)
        .at("job_bytes_per_user of etc/master.toml on the master's host")
        .why(format!("your jobs take {held} bytes, this one {more} more"))
        .fix("wait until jobs have ended, submit them as one array, or read large data from a file that the job opens"))
}

pub(super) fn rejected(why: &str) -> Diagnostic {
    Diagnostic::new(Code::JobRejected, format!("job rejected: {why}"))
}

fn check_owner(config: &Configuration, spec: &JobSpec) -> Result<(), Diagnostic> {
    let (owner, settings) = (&spec.owner, &config.settings);
    let too_low = |kind: &str, id: u32, least: u32| {
        let what = format!("your {kind} id {id} is lower than minimum {kind} id {least} of cluster configuration");
        Diagnostic::new(Code::NotPermitted, format!("job rejected: {what}"))
            .fix("submit as an ordinary user; a manager changes min_uid and min_gid with qconf -mconf")
    };
    // A job never runs as root, whatever the configuration says.
    if owner.uid == 0 || owner.uid < settings.min_uid {
        return Err(too_low("user", owner.uid, settings.min_uid.max(1)));
    }
    if owner.gid < settings.min_gid {
        return Err(too_low("group", owner.gid, settings.min_gid));
    }
    Ok(())
}

fn check_program(spec: &JobSpec) -> Result<(), Diagnostic> {
    match &spec.program {
        Program::Script { content, .. } if content.is_empty() => Err(rejected("no script in your request")),
        Program::Command { command } if command.is_empty() => Err(rejected("no script in your request")),
        Program::Script { .. } | Program::Stored { .. } | Program::Command { .. } => Ok(()),
    }
}

fn check_array(config: &Configuration, spec: &JobSpec) -> Result<(), Diagnostic> {
    let limit = config.settings.max_aj_tasks;
    match spec.array {
        Some(range) if limit > 0 && range.count() > limit => {
            Err(rejected(&format!("you tried to submit a job with more than {limit} tasks")).at("-t"))
        }
        Some(_) | None => Ok(()),
    }
}

/// A session is one task that is never run again: its command talks to that attempt alone.
fn check_session(spec: &JobSpec) -> Result<(), Diagnostic> {
    let is_batch = spec.array.is_some() || spec.checkpoint.is_some() || spec.rerunnable != Some(false);
    match spec.session {
        Some(_) if is_batch => Err(
            rejected("an interactive job has no tasks, no checkpoints and no second run")
                .fix("leave -t, -ckpt and -r out"),
        ),
        Some(_) | None => Ok(()),
    }
}

/// Whether there is a parallel environment of that name, or one that the pattern matches.
pub(in crate::decide) fn is_pe(config: &Configuration, name: &str) -> bool {
    Expression::parse(name).is_ok_and(|pattern| config.pes.keys().any(|pe| pattern.matches(pe.as_str(), Type::String)))
}

fn check_parallel(config: &Configuration, requests: &Requests) -> Result<(), Diagnostic> {
    match &requests.pe {
        Some(PeRequest { name, .. }) if is_pe(config, name) => Ok(()),
        Some(PeRequest { name, .. }) => {
            let what = format!("the requested parallel environment \"{name}\" does not exist");
            let names = config.pes.keys().map(PeName::as_str);
            Err(rejected(&what)
                .at("-pe")
                .fix(did_you_mean(name, names, "qconf -spl lists them")))
        }
        None if requests.allocation_rule.is_some() => {
            let refusal =
                rejected("specification of an allocation rule is not allowed for non-parallel jobs").at("-par");
            Err(refusal.fix("name a parallel environment with -pe"))
        }
        None if !requests.master_queues.is_empty() => {
            Err(rejected("specification of master queue is not allowed for non-parallel jobs").at("-masterq"))
        }
        None if scopes::is_used(requests) => {
            let refusal = rejected("specification of master or slave scope is not allowed for non-parallel jobs");
            Err(refusal
                .at("-scope")
                .fix("name a parallel environment with -pe, or leave -scope out"))
        }
        None => Ok(()),
    }
}

/// `-ckpt` names an environment, and `-c` means nothing without one (as in 8.1.9).
fn check_checkpoint(config: &Configuration, spec: &JobSpec) -> Result<(), Diagnostic> {
    match (&spec.checkpoint, spec.occasion) {
        (Some(_), Some(Occasion::Never)) => Err(rejected("checkpointing with \"-c n\" requested")
            .at("-c")
            .fix("leave out -ckpt, or -c")),
        (Some(name), _) if !config.checkpoints.contains_key(name) => check_checkpoint_name(config, Some(name)),
        (None, Some(Occasion::When(_) | Occasion::EverySeconds(_))) => {
            let refusal = Diagnostic::new(Code::JobRejected, "checkpointing denied").at("-c");
            Err(refusal.fix("name a checkpointing environment with -ckpt"))
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// A checkpointing environment that is named exists.
fn check_checkpoint_name(config: &Configuration, name: Option<&str>) -> Result<(), Diagnostic> {
    let Some(name) = name.filter(|name| !config.checkpoints.contains_key(*name)) else {
        return Ok(());
    };
    let what = format!("the requested checkpointing environment \"{name}\" does not exist");
    let names = config.checkpoints.keys().map(|name| name.as_str());
    Err(rejected(&what)
        .at("-ckpt")
        .fix(did_you_mean(name, names, "qconf -sckptl lists them")))
}

/// Each pattern, soft ones too, must name a queue instance (as in 8.1.9, whatever `-w` says).
fn check_queues(config: &Configuration, requests: &Requests) -> Result<(), Diagnostic> {
    let Requests {
        hard_queues,
        soft_queues,
        master_queues,
        slave_queues,
        ..
    } = requests;
    for name in hard_queues
        .iter()
        .chain(soft_queues)
        .chain(master_queues)
        .chain(slave_queues)
    {
        let pattern = QueuePattern::new(name);
        if name.starts_with('@') || !config.resolved.keys().any(|instance| pattern.matches(config, instance)) {
            let what = format!("Job was rejected because job requests unknown queue \"{name}\"");
            return Err(Diagnostic::new(Code::JobRejected, what).fix(queue_fix(config, name)));
        }
    }
    Ok(())
}

/// What to write in place of a queue that is not there: a pattern of hosts needs one of queues in
/// front of it.
fn queue_fix(config: &Configuration, name: &str) -> String {
    let (queue, hosts) = name
        .split_once('@')
        .map_or((name, None), |(queue, hosts)| (queue, Some(hosts)));
    match hosts {
        Some(hosts) if queue.is_empty() => format!("write *@{hosts} for all queues there"),
        _ => did_you_mean(
            queue,
            config.queues.keys().map(QueueName::as_str),
            "qconf -sql lists the queues",
        ),
    }
}

/// The nearest name that there is, if one is near and is not the name itself, else where all of
/// them stand.
pub(in crate::decide) fn did_you_mean<'a>(
    name: &str,
    names: impl IntoIterator<Item = &'a str>,
    otherwise: &str,
) -> String {
    match nearest(name, names.into_iter().filter(|known| *known != name)) {
        Some(near) => format!("did you mean {near}?"),
        None => otherwise.to_owned(),
    }
}

fn check_resources(config: &Configuration, requests: &Requests) -> Result<(), Vec<Diagnostic>> {
    let resolve =
        |list: &[ResourceRequest], purpose| ResourceList::from(list.to_vec()).resolve_for(&config.complex, purpose);
    let hard = resolve(&requests.hard, RequestPurpose::Hard)?;
    let soft = resolve(&requests.soft, RequestPurpose::Soft)?;
    let scoped = |list, scope| resolve(list, RequestPurpose::Hard).map_err(|refusals| scopes::named(refusals, scope));
    let (master, slaves) = (scoped(&requests.master, "master")?, scoped(&requests.slaves, "slave")?);
    let all = hard.iter().chain(&soft).chain(&master).chain(&slaves);
    let Requests {
        hard,
        soft,
        master,
        slaves,
        ..
    } = requests;
    let mut texts = hard.iter().chain(soft).chain(master).chain(slaves);
    let checked = texts.try_for_each(|request| check_queue(config, request));
    let checked = checked.and_then(|()| all.into_iter().try_for_each(|request| check_host(config, request)));
    checked.map_err(|refusal| vec![refusal])
}

/// `qname` is the name of a queue: one on a host would never match.
fn check_queue(config: &Configuration, request: &ResourceRequest) -> Result<(), Diagnostic> {
    let is_queue = config
        .complex
        .lookup(&request.name)
        .is_some_and(|attribute| attribute.name.as_str() == "qname");
    if !is_queue || !request.value.as_deref().is_some_and(|value| value.contains('@')) {
        return Ok(());
    }
    let what = "Queue instance names are not allowed in -l resource requests";
    let fix = "ask for queue instances with -q, as in -q all.q@host";
    Err(Diagnostic::new(Code::JobRejected, what)
        .at(format!("-l {request}"))
        .fix(fix))
}

/// A host that is named without a pattern must exist.
fn check_host(config: &Configuration, request: &ResolvedRequest) -> Result<(), Diagnostic> {
    let is_host = config
        .complex
        .lookup(request.attribute.as_str())
        .is_some_and(|attribute| attribute.r#type == Type::Host);
    let plain = request.value.pattern().and_then(Expression::plain).filter(|_| is_host);
    let Some(name) = plain.filter(|name| !is_known_host(config, name)) else {
        return Ok(());
    };
    let what = format!("can't resolve hostname \"{name}\"");
    Err(Diagnostic::new(Code::UnknownObject, what)
        .at(format!("-l {}", request.attribute))
        .fix(did_you_mean(
            name,
            config.exec_hosts.keys().map(HostName::as_str),
            "qconf -sel lists the hosts",
        )))
}

/// Whether a host is of the cell, by its full name, or by the part before the first dot where
/// either side has only that. `global` is the name of no host.
pub(super) fn is_known_host(config: &Configuration, name: &str) -> bool {
    let is_called = |host: &HostName| *host != HostName::global() && host.is_called(name);
    let Configuration {
        exec_hosts,
        admin_hosts,
        submit_hosts,
        ..
    } = config;
    // Names are mostly written in full: these are not compared with every host.
    let full = HostName::new(name);
    let is_full = exec_hosts.contains_key(&full) || admin_hosts.contains(&full) || submit_hosts.contains(&full);
    is_full && full != HostName::global() || exec_hosts.keys().chain(admin_hosts).chain(submit_hosts).any(is_called)
}
