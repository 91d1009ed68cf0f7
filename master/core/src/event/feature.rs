//! What events need of the version of their cell.

use super::{Event, StoredObject};
use proto::cell_version::Feature;
use proto::container::{CONTAINER, ContainerRuntime};
use proto::job::JobSpec;
use proto::object::value::Parameters;
use proto::object::{Fields, ObjectKind};

impl Event {
    /// The feature of a later version of the cell that the event uses. `None` if every release
    /// reads it.
    ///
    /// A new kind of event names its feature here, and so does a new field whose loss would change
    /// a decision. A field that is only shown, and has a default, needs none.
    pub fn feature(&self) -> Option<Feature> {
        match self {
            Event::ObjectsChanged(objects) => objects.iter().find_map(StoredObject::feature),
            // The change to a version is allowed in the version before it.
            Event::CellCreated { .. } | Event::CellVersionRaised { .. } => None,
            Event::JobSubmitted { spec, .. } | Event::JobAltered { spec, .. } => feature_of_job(spec),
            Event::TaskRebooked { .. } => Some(Feature::RunningChanges),
            Event::EpochRaised { .. }
            | Event::WallJumped { .. }
            | Event::HoldsChanged { .. }
            | Event::TaskPlaced { .. }
            | Event::TaskStarted { .. }
            | Event::TaskEnded { .. }
            | Event::SlavePlaced { .. }
            | Event::SlaveStarted { .. }
            | Event::SlaveEnded { .. }
            | Event::UsageCharged { .. }
            | Event::UsageCleared { .. }
            | Event::TaskUnconfirmed { .. }
            | Event::TaskConfirmedGone { .. }
            | Event::TasksDeleted { .. }
            | Event::TaskDeletionRequested { .. }
            | Event::TaskRescheduleRequested { .. }
            | Event::TaskMigrationRequested { .. }
            | Event::TaskSuspended { .. }
            | Event::TaskThresholdSuspended { .. }
            | Event::TaskPreempted { .. }
            | Event::ErrorCleared { .. }
            | Event::JobFinished { .. }
            | Event::InstanceChanged { .. }
            | Event::NumbersContinued { .. }
            | Event::ReservationGranted { .. }
            | Event::ReservationChanged { .. }
            | Event::ReservationEnded { .. }
            | Event::CertificateIssued { .. }
            | Event::HostRevoked { .. }
            | Event::HostTasksBound { .. }
            | Event::TokenCreated(_)
            | Event::TokenRevoked { .. }
            | Event::TokenUsed { .. }
            | Event::RequestAnswered { .. } => None,
        }
    }
}

/// The feature of a later version of the cell that a job uses, as in [`Event::feature`].
pub fn feature_of_job(spec: &JobSpec) -> Option<Feature> {
    let session = spec.session.as_ref().map(|_| Feature::InteractiveJobs);
    session.or_else(|| spec.requests.binding.as_ref().map(|_| Feature::CoreBinding))
}

impl StoredObject {
    /// The feature of a later version of the cell that the object uses, as in [`Event::feature`].
    pub fn feature(&self) -> Option<Feature> {
        let fields = self.fields.as_ref()?;
        if let Some(values) = fields.value("complex_values") {
            return feature_of_values(values);
        }
        if self.kind != ObjectKind::ClusterConf {
            return None;
        }
        let verifies = fields
            .value("jsv_url")
            .is_some_and(|url| !url.trim().eq_ignore_ascii_case("none"));
        match (limits_memory(fields), verifies) {
            (true, _) => Some(Feature::MemoryLimits),
            (false, true) => Some(Feature::ServerVerifiers),
            (false, false) => None,
        }
    }
}

/// What the values of a host or queue need: characteristics of ids, or a runtime of containers.
fn feature_of_values(values: &str) -> Option<Feature> {
    let names_runtime = |pair: &str| {
        let (name, value) = pair.trim().rsplit(['[', ' ']).next()?.split_once('=')?;
        (name.trim() == CONTAINER).then(|| ContainerRuntime::parse(value.trim_end_matches(']').trim()))?
    };
    if values.contains("devices=") || values.contains("uuid=") {
        return Some(Feature::Devices);
    }
    values
        .split(',')
        .any(|pair| names_runtime(pair).is_some())
        .then_some(Feature::Containers)
}

/// Whether a configuration says `H_VMEM=memory`.
fn limits_memory(fields: &Fields) -> bool {
    let parameters = fields
        .value("execd_params")
        .and_then(|text| text.parse::<Parameters>().ok());
    let meaning = parameters.as_ref().and_then(|parameters| parameters.value("H_VMEM"));
    meaning.is_some_and(|meaning| meaning.eq_ignore_ascii_case("memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_that_limits_memory_needs_a_later_version() {
        for (text, expected) in [
            ("none", None),
            ("H_VMEM=address", None),
            ("KEEP_ACTIVE=true,h_vmem=Memory", Some(Feature::MemoryLimits)),
            ("H_VMEM=memory,H_VMEM=address", None),
        ] {
            let mut fields = Fields::new();
            fields.set("execd_params", text);
            let mut object = StoredObject {
                kind: ObjectKind::ClusterConf,
                name: "global".to_owned(),
                fields: Some(fields),
            };
            assert_eq!(object.feature(), expected, "{text}");
            assert_eq!(
                Event::ObjectsChanged(vec![object.clone()]).feature(),
                expected,
                "{text}"
            );
            object.kind = ObjectKind::ExecHost;
            assert_eq!(object.feature(), None, "{text}");
        }
    }
}
