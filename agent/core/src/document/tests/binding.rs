//! What a document says of the cores of a task.

use super::*;
use proto::binding::{
    BindingInstance, BindingObstacle, BindingOutcome, BindingRequest, CorePlace, HostBinding, ProcessorMap,
};

#[test]
fn a_bound_task_is_told_its_processors_and_bound_by_whom_it_asked_for() {
    let here = host_paths().host;
    let second = CorePlace { socket: 0, core: 1 };
    let site = HostPaths {
        cores: ProcessorMap::new([(CorePlace { socket: 0, core: 0 }, vec![0, 2]), (second, vec![1, 3])]),
        ..host_paths()
    };
    let bound = |cores: &str| HostBinding {
        host: here.clone(),
        outcome: BindingOutcome::Bound(cores.to_owned()),
    };
    let none = HostBinding {
        host: here.clone(),
        outcome: BindingOutcome::Unbound(BindingObstacle::NoTopology),
    };
    use BindingInstance::{Env, Pe, Set};
    for (instance, binding, variable_text, processors, column) in [
        (Set, bound("SCTTctt"), "1 3", Some("1,3"), "UNDEFINED"),
        (Set, bound("Scttctt"), "0 2 1 3", Some("0-3"), "UNDEFINED"),
        (Env, bound("ScttCTT"), "0 2", None, "UNDEFINED"),
        (Pe, bound("Scttctt"), "0 2 1 3", None, "0,0:0,1"),
        (Pe, none.clone(), "", None, "UNDEFINED"),
        (Set, none, "", None, "UNDEFINED"),
        // The host came back with fewer cores than the master chose from: the shepherd says so.
        (Set, bound("SCTTCTTctt"), "", Some(""), "UNDEFINED"),
    ] {
        let mut given = spec();
        given.requests.binding = Some(Box::new(BindingRequest {
            instance,
            strategy: "linear:1".parse().unwrap(),
        }));
        let order = StartOrder {
            binding: vec![binding],
            pe: Some("mpi".into()),
            ..order(key(1, 1))
        };
        let made = launch_document(&site, &AgentConfig::default(), &order, &given);
        assert_eq!(variable(&made, "SGE_BINDING"), Some(variable_text), "{order:?}");
        assert_eq!(made.processors.as_deref(), processors, "{order:?}");
        let lines = made.host_file.unwrap();
        assert!(lines.ends_with(&format!(" {column}\n")), "{lines}");
    }
    let unbound = launch_document(&site, &AgentConfig::default(), &order(key(1, 1)), &spec());
    assert_eq!(
        (variable(&unbound, "SGE_BINDING"), unbound.processors.as_deref()),
        (Some(""), None)
    );
}
