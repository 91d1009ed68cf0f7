//! What a host needs beside the job's specification to run a task: limits and the settings of the
//! queue.

use crate::config::Configuration;
use crate::state::State;
use crate::state::job::{Job, Placement, Task};
use crate::state::slaves::Slave;
use proto::amount::Amount;
use proto::binding::{BindingInstance, HostBinding};
use proto::checkpoint::{CkptCommand, Occasion};
use proto::common::Common;
use proto::complex::Complex;
use proto::conf::Settings;
use proto::id::{AttributeName, HostName, QueueInstanceName, TaskKey};
use proto::job::{GrantedSlots, JobSpec, Requests};
use proto::limit::{BoundKind, Grant, LimitKind, LimitSet, effective, together};
use proto::object::value::Assignments;
use proto::queue::QueueInstanceSettings;
use proto::request::{ResolvedRequest, ResourceList, ResourceRequest};
use proto::wire::agent::{CheckpointOrder, QueueExecution, SlaveOrder, StartOrder};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the host of the last start was told of limits and its queue instance. Most are told the
/// same: they are of jobs that ask for the same, in instances of one queue.
///
/// Invariant: no object has changed since.
#[derive(Clone, Debug, Default)]
pub(crate) struct StartTemplate(Option<LastStart>);

/// What a start was told, and all that this follows from but objects.
#[derive(Clone, Debug)]
struct LastStart {
    instance: Arc<QueueInstanceSettings>,
    host: Arc<Settings>,
    requests: Common<Requests>,
    slots: u32,
    limits: LimitSet,
    queue: Common<QueueExecution>,
}

impl StartTemplate {
    /// What the host of a task is told.
    fn limits_of(
        &mut self,
        config: &Configuration,
        job: &Job,
        placement: &Placement,
    ) -> (LimitSet, Common<QueueExecution>) {
        let requests = &job.spec.requests;
        let is_plain = requests.master.is_empty() && requests.slaves.is_empty() && !has_default_limits(&config.complex);
        let basis = match placement.granted.as_slice() {
            [GrantedSlots { instance, slots }] if is_plain => {
                config.settings_in(instance).map(|settings| (settings, *slots))
            }
            _ => None,
        };
        let host = config.settings_of(placement.host());
        let is_like = |last: &&LastStart| {
            basis.is_some_and(|(instance, slots)| Arc::ptr_eq(&last.instance, instance) && last.slots == slots)
                && Arc::ptr_eq(&last.host, host)
                && last.requests.is_shared_with(requests)
        };
        let anew = || {
            let limits = limits(config, job, placement, placement.host(), true);
            (limits, queue_execution(config, placement.master()).into())
        };
        if let Some(last) = self.0.as_ref().filter(is_like) {
            let told = (last.limits.clone(), last.queue.clone());
            debug_assert_eq!(told, anew(), "what was told last is told again");
            return told;
        }
        let (limits, queue) = anew();
        self.0 = basis.map(|(instance, slots)| LastStart {
            instance: instance.clone(),
            host: host.clone(),
            requests: requests.clone(),
            slots,
            limits: limits.clone(),
            queue: queue.clone(),
        });
        (limits, queue)
    }
}

/// The order that starts a task on the host of its master slot.
pub(crate) fn start_order(
    state: &State,
    job: &Job,
    task: &Task,
    placement: &Placement,
    last_start: &mut StartTemplate,
) -> StartOrder {
    let pe = placement.pe.as_ref().and_then(|pe| state.config.pes.get(pe));
    let (limits, queue) = last_start.limits_of(&state.config, job, placement);
    StartOrder {
        key: placement.key,
        number: job.number,
        array: job.spec.array,
        granted: placement.granted.clone(),
        pe: placement.pe.clone(),
        control_slaves: pe.is_some_and(|pe| pe.control_slaves.0),
        pe_start: pe.and_then(|pe| pe.start_proc_args.value()).map(ToString::to_string),
        pe_stop: pe.and_then(|pe| pe.stop_proc_args.value()).map(ToString::to_string),
        limits,
        queue,
        restarted: if task.saved_pid.is_some() {
            2
        } else {
            u8::from(task.restarted)
        },
        maps: placement.maps.clone(),
        binding: binding_for(job, placement, placement.host()),
        devices: state.config.devices_at(placement.host(), &placement.maps),
        container: state.config.container_of(&job.spec, placement.master()).map(Box::new),
        checkpoint: checkpoint_order(&state.config, &job.spec, task, placement),
        slave: None,
    }
}

/// The order that starts a slave task on its host: without procedures, under the limits of the
/// job's slots there.
pub(crate) fn slave_order(state: &State, job: &Job, placement: &Placement, key: TaskKey, slave: &Slave) -> StartOrder {
    StartOrder {
        key,
        number: job.number,
        array: job.spec.array,
        granted: placement.granted.clone(),
        pe: placement.pe.clone(),
        // A job starts slave tasks only where its environment lets it.
        control_slaves: true,
        pe_start: None,
        pe_stop: None,
        limits: limits(&state.config, job, placement, &slave.instance.host, false),
        queue: queue_execution(&state.config, &slave.instance).into(),
        restarted: 0,
        maps: placement.maps.clone(),
        binding: binding_for(job, placement, &slave.instance.host),
        devices: state.config.devices_at(&slave.instance.host, &placement.maps),
        container: None,
        checkpoint: None,
        slave: Some(SlaveOrder {
            instance: slave.instance.clone(),
            spec: slave.spec.clone(),
        }),
    }
}

/// The cores that a host needs to know: its own, and those of all hosts for a parallel environment
/// that binds.
fn binding_for(job: &Job, placement: &Placement, host: &HostName) -> Vec<HostBinding> {
    let request = job.spec.requests.binding.as_ref();
    let needs_all = request.is_some_and(|request| request.instance == BindingInstance::Pe);
    let needed = placement.binding.iter().filter(|here| needs_all || here.host == *host);
    needed.cloned().collect()
}

/// How the state of a checkpointing job is kept: by the commands of its environment, or by a signal
/// to the job (checkpoint(5)).
fn checkpoint_order(
    config: &Configuration,
    spec: &JobSpec,
    task: &Task,
    placement: &Placement,
) -> Option<CheckpointOrder> {
    let ckpt = config.checkpoint_of(spec)?;
    let by_command = ckpt.interface.saves_by_command();
    let command = |command: &CkptCommand| command.value().filter(|_| by_command).map(str::to_owned);
    let min_s = config
        .settings_in(placement.master())
        .and_then(|queue| queue.min_cpu_interval.seconds())
        .unwrap_or(0);
    let goes_on = task.saved_pid.is_some() && ckpt.interface.restarts_by_command();
    Some(CheckpointOrder {
        name: ckpt.name.clone(),
        directory: ckpt.ckpt_dir.to_string(),
        save: command(&ckpt.ckpt_command),
        migrate: command(&ckpt.migr_command),
        restart: command(&ckpt.restart_command).filter(|_| goes_on),
        clean: command(&ckpt.clean_command),
        signal: ckpt.signal.to_string(),
        save_signal: ckpt.signal.number().filter(|_| !by_command),
        interval_s: Occasion::interval_s(spec.occasion, ckpt.when, min_s).map(|seconds| seconds.max(1)),
        saved_pid: task.saved_pid,
    })
}

/// The first limit of a task's time, with its name, in seconds; none of a task that may run for
/// ever.
pub(crate) fn time_limit(state: &State, job: &Job, placement: &Placement) -> Option<(&'static str, u64)> {
    let bounds = limits(&state.config, job, placement, placement.host(), true).get(LimitKind::Rt);
    let seconds = |amount: Option<Amount>| amount?.finite().and_then(|base| u64::try_from(base).ok());
    let (soft, hard) = (
        seconds(bounds.soft).map(|s| ("s_rt", s)),
        seconds(bounds.hard).map(|s| ("h_rt", s)),
    );
    hard.into_iter().chain(soft).min_by_key(|(_, seconds)| *seconds)
}

/// The limits of a task on one of its hosts, for the slots that it has there. Where the master asks
/// for something else than the other slots, the job itself, `is_master`, has those of all slots
/// there, and a slave task those of the slots that are not the master's.
fn limits(config: &Configuration, job: &Job, placement: &Placement, host: &HostName, is_master: bool) -> LimitSet {
    let Requests {
        hard, master, slaves, ..
    } = &*job.spec.requests;
    let mut here: Vec<GrantedSlots> = placement.granted.clone();
    if master.is_empty() && slaves.is_empty() {
        // A master beside which no task runs has one slot all the same.
        here.iter_mut()
            .take(1)
            .for_each(|first| first.slots = first.slots.max(1));
        here.retain(|granted| granted.instance.host == *host);
        return of_slots(config, hard, &here, host);
    }
    let pe = placement.pe.as_ref().and_then(|pe| config.pes.get(pe));
    // A master that is no task of its environment has one slot more than it was granted.
    if pe.is_none_or(|pe| pe.job_is_first_task.0)
        && let Some(first) = here.first_mut()
    {
        first.slots = first.slots.saturating_sub(1);
    }
    here.retain(|granted| granted.instance.host == *host && granted.slots > 0);
    let is_spared = pe.is_some_and(|pe| pe.ign_sreq_on_mhost.0) && placement.host() == host;
    let of_others = if is_spared {
        hard.clone()
    } else {
        [hard.as_slice(), slaves].concat()
    };
    let others = of_slots(config, &of_others, &here, host);
    if !is_master {
        return others;
    }
    let seat = [GrantedSlots {
        instance: placement.master().clone(),
        slots: 1,
    }];
    let own = of_slots(config, &[hard.as_slice(), master].concat(), &seat, host);
    if here.is_empty() {
        return own;
    }
    // Who counts on nothing being asked of the slots beside it has what it asks for itself.
    let alone = if is_spared {
        resolved(config, master)
    } else {
        Vec::new()
    };
    together(&config.complex, &own, &others, &alone)
}

/// The limits of slots on a host that ask for the same.
fn of_slots(config: &Configuration, hard: &[ResourceRequest], granted: &[GrantedSlots], host: &HostName) -> LimitSet {
    let requests = resolved(config, hard);
    let here: Vec<(LimitSet, BTreeSet<AttributeName>, u32)> = granted
        .iter()
        .map(|granted| {
            (
                queue_limits(config, &granted.instance),
                managed(config, &granted.instance),
                granted.slots,
            )
        })
        .collect();
    let grants: Vec<Grant<'_>> = here
        .iter()
        .map(|(queue, managed, slots)| Grant {
            queue,
            managed,
            slots: *slots,
        })
        .collect();
    let params = config.settings_of(host).execd_params.to_string();
    // Parameters were checked when the configuration was set; what a later version does not read
    // sets no limit.
    effective(
        &config.complex,
        &requests,
        &grants,
        &LimitSet::from_execd_params(&params).unwrap_or_default(),
    )
}

/// Requests as numbers. One that lost its meaning when the complex changed is left out: it can
/// limit nothing.
fn resolved(config: &Configuration, hard: &[ResourceRequest]) -> Vec<ResolvedRequest> {
    let one = |request: &ResourceRequest| ResourceList::from(vec![request.clone()]).resolve(&config.complex).ok();
    hard.iter().filter_map(one).flatten().collect()
}

/// The limits that the settings of an instance name; INFINITY is left to [`effective`].
fn queue_limits(config: &Configuration, instance: &QueueInstanceName) -> LimitSet {
    let mut limits = LimitSet::default();
    let Some(settings) = config.settings_in(instance) else {
        return limits;
    };
    let QueueInstanceSettings {
        s_rt,
        h_rt,
        s_cpu,
        h_cpu,
        s_fsize,
        h_fsize,
        s_data,
        h_data,
        ..
    } = &**settings;
    let QueueInstanceSettings {
        s_stack,
        h_stack,
        s_core,
        h_core,
        s_rss,
        h_rss,
        s_vmem,
        h_vmem,
        ..
    } = &**settings;
    for (kind, soft, hard) in [
        (LimitKind::Rt, s_rt.amount(), h_rt.amount()),
        (LimitKind::Cpu, s_cpu.amount(), h_cpu.amount()),
        (LimitKind::Fsize, s_fsize.amount(), h_fsize.amount()),
        (LimitKind::Data, s_data.amount(), h_data.amount()),
        (LimitKind::Stack, s_stack.amount(), h_stack.amount()),
        (LimitKind::Core, s_core.amount(), h_core.amount()),
        (LimitKind::Rss, s_rss.amount(), h_rss.amount()),
        (LimitKind::Vmem, s_vmem.amount(), h_vmem.amount()),
    ] {
        limits.set_bound(kind, BoundKind::Soft, soft);
        limits.set_bound(kind, BoundKind::Hard, hard);
    }
    limits
}

/// The attributes with a capacity at an instance, its host or the cluster; none where that cannot
/// matter.
fn managed(config: &Configuration, instance: &QueueInstanceName) -> BTreeSet<AttributeName> {
    if !has_default_limits(&config.complex) {
        return BTreeSet::new();
    }
    let names = |values: &Assignments| -> Vec<AttributeName> {
        let known = values
            .0
            .iter()
            .filter_map(|(name, _)| config.complex.lookup(name.as_str()));
        known.map(|attribute| attribute.name.clone()).collect()
    };
    let global = HostName::global();
    let hosts = [&instance.host, &global].map(|host| config.exec_hosts.get(host));
    let mut managed: BTreeSet<AttributeName> = hosts
        .iter()
        .flatten()
        .flat_map(|host| names(&host.complex_values))
        .collect();
    managed.extend(
        config
            .settings_in(instance)
            .into_iter()
            .flat_map(|settings| names(&settings.complex_values)),
    );
    managed
}

/// Whether the default of a consumable can be a limit: only then it matters what is managed where.
fn has_default_limits(complex: &Complex) -> bool {
    let is_limit = |name: &str| {
        LimitKind::ATTRIBUTES
            .iter()
            .any(|kind| BoundKind::ALL.iter().any(|b| kind.name(*b) == name))
    };
    complex
        .consumables()
        .any(|(attribute, default)| default != Amount::ZERO && is_limit(attribute.name.as_str()))
}

/// What a queue instance says about running jobs, with what the cluster adds.
fn queue_execution(config: &Configuration, instance: &QueueInstanceName) -> QueueExecution {
    let settings = config.settings_of(&instance.host);
    let Some(queue) = config.settings_in(instance).map(Arc::as_ref) else {
        return QueueExecution {
            min_uid: settings.min_uid,
            min_gid: settings.min_gid,
            ..QueueExecution::default()
        };
    };
    QueueExecution {
        tmpdir: queue.tmpdir.to_string(),
        shell: queue.shell.to_string(),
        shell_start_mode: queue.shell_start_mode.to_string(),
        login_shells: settings.login_shells.0.clone(),
        prolog: queue
            .prolog
            .value()
            .or(settings.prolog.value())
            .map(ToString::to_string),
        epilog: queue
            .epilog
            .value()
            .or(settings.epilog.value())
            .map(ToString::to_string),
        starter_method: queue.starter_method.value().map(ToString::to_string),
        suspend_method: queue.suspend_method.value().map(ToString::to_string),
        resume_method: queue.resume_method.value().map(ToString::to_string),
        terminate_method: queue.terminate_method.value().map(ToString::to_string),
        notify_s: queue
            .notify
            .seconds()
            .and_then(|seconds| u32::try_from(seconds).ok())
            .unwrap_or(u32::MAX),
        nice: queue.priority,
        min_uid: settings.min_uid,
        min_gid: settings.min_gid,
    }
}
