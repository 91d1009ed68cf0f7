//! What a task is told of its cores, and what its shepherd is.

use crate::host_paths::HostPaths;
use proto::binding::{BindingInstance, ProcessorList, Topology};
use proto::id::HostName;
use proto::job::JobSpec;
use proto::wire::agent::StartOrder;
use std::collections::BTreeMap;

/// The cores of a task on this host.
#[derive(Debug, Default)]
pub(crate) struct TaskCores {
    instance: BindingInstance,
    is_bound: bool,
    /// Empty if the host does not have the cores that the master chose.
    processors: Vec<u32>,
}

impl TaskCores {
    /// The cores that the order gives the task on this host.
    pub(crate) fn new(site: &HostPaths, order: &StartOrder, spec: &JobSpec) -> TaskCores {
        let Some(request) = &spec.requests.binding else {
            return TaskCores::default();
        };
        let cores = cores_on(order, &site.host);
        let processors = cores.as_ref().and_then(|cores| site.cores.marked(cores));
        TaskCores {
            instance: request.instance,
            is_bound: cores.is_some(),
            processors: processors.unwrap_or_default(),
        }
    }

    /// `SGE_BINDING`: the numbers of the processors; empty if the task is not bound.
    pub(crate) fn variable(&self) -> String {
        let numbers: Vec<String> = self.processors.iter().map(ToString::to_string).collect();
        numbers.join(" ")
    }

    /// The processors that the shepherd binds the task to. `None` if the job or its parallel
    /// environment does that, or if there are none.
    pub(crate) fn affinity(&self) -> Option<String> {
        let is_ours = self.is_bound && self.instance == BindingInstance::Set;
        is_ours.then(|| ProcessorList::new(self.processors.clone()).to_string())
    }
}

/// The fourth column of `PE_HOSTFILE`: the cores of each host, for a parallel environment that
/// binds.
pub(crate) struct HostFileCores<'a>(BTreeMap<&'a HostName, Topology>);

impl<'a> HostFileCores<'a> {
    /// The cores that the order gives the task.
    pub(crate) fn new(order: &'a StartOrder, spec: &JobSpec) -> HostFileCores<'a> {
        let request = spec.requests.binding.as_ref();
        let is_wanted = request.is_some_and(|request| request.instance == BindingInstance::Pe);
        let bound = order.binding.iter().filter(|_| is_wanted);
        HostFileCores(bound.filter_map(|here| Some((&here.host, here.topology()?))).collect())
    }

    /// The text of a host: `0,0:0,1`, or `UNDEFINED` if the environment has nothing to bind there.
    pub(crate) fn column(&self, host: &HostName) -> String {
        let Some(cores) = self.0.get(host) else {
            return "UNDEFINED".to_owned();
        };
        let places: Vec<String> = cores.marked_places().iter().map(ToString::to_string).collect();
        places.join(":")
    }
}

fn cores_on(order: &StartOrder, host: &HostName) -> Option<Topology> {
    order.binding.iter().find(|binding| binding.host == *host)?.topology()
}
