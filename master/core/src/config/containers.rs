//! The container that a job asks for, and the runtime where it runs.

use super::Configuration;
use proto::container::{CONTAINER, Container, ContainerRuntime, is_container};
use proto::id::{HostName, QueueInstanceName};
use proto::job::JobSpec;
use proto::request::ResourceRequest;

impl Configuration {
    /// The container of a job in a queue instance. The runtime is that of the queue, else of the
    /// host, else of the cluster. `None` if the job asks for none, and where the complex has no
    /// attribute that means containers.
    pub fn container_of(&self, spec: &JobSpec, instance: &QueueInstanceName) -> Option<Container> {
        let attribute = self.complex.lookup(CONTAINER).filter(|known| is_container(known))?;
        let is_meant = |request: &&ResourceRequest| {
            let known = self.complex.lookup(&request.name);
            known.is_some_and(|known| known.name == attribute.name)
        };
        let requests = &spec.requests;
        let image = requests
            .master
            .iter()
            .chain(&requests.hard)
            .find(is_meant)?
            .value
            .clone()?;
        let of_queue = || self.settings_in(instance)?.complex_values.value(&attribute.name);
        let of_host = |host: &HostName| self.exec_hosts.get(host)?.complex_values.value(&attribute.name);
        let runtime = of_queue()
            .or_else(|| of_host(&instance.host))
            .or_else(|| of_host(&HostName::global()))?;
        let runtime = ContainerRuntime::parse(runtime)?;
        Some(Container { runtime, image })
    }
}
