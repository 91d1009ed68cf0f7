use super::*;
use proto::wire::agent::NiceRange;

fn configure(core: &mut Core, reprioritize: Option<NiceRange>) -> Vec<Effect> {
    let config = AgentConfig {
        reprioritize,
        ..AgentConfig::default()
    };
    core.handle(Input::Master(Box::new(MasterMessage::Configure(config))), &NOW)
}

/// A task has used so much processor time at a moment.
fn used(core: &mut Core, key: TaskKey, cpu_ms: u64, boot_ms: u64) -> Vec<Effect> {
    let usage = TaskUsage {
        cpu_ms,
        processes: 1,
        ..TaskUsage::default()
    };
    core.handle(Input::Launcher(Box::new(Notice::Usage { key, usage })), &at(boot_ms))
}

/// The nice values and weights that the launcher is to set.
fn asked(effects: Vec<Effect>) -> Vec<(TaskKey, Option<i32>, Option<u32>)> {
    let asked = |effect| match effect {
        Effect::Launcher { request, .. } => match *request {
            Request::Reprioritize { key, nice, cpu_weight } => Some((key, nice, cpu_weight)),
            _ => None,
        },
        _ => None,
    };
    effects.into_iter().filter_map(asked).collect()
}

#[test]
fn running_tasks_share_the_host_by_their_tickets_while_the_master_says_so() {
    let mut core = ready();
    let (heavy, light) = (
        key(1, 1),
        TaskKey {
            task: proto::id::TaskId(2),
            ..key(1, 1)
        },
    );
    for task in [heavy, light] {
        start(&mut core, task);
        core.handle(
            Input::Launcher(Box::new(Notice::Executed {
                key: task,
                pid: 9,
                boot_ms: 4000,
            })),
            &NOW,
        );
    }
    let tickets = Input::Master(Box::new(MasterMessage::Tickets(vec![
        (heavy, 3_000_000),
        (light, 1_000_000),
    ])));
    assert_eq!(asked(core.handle(tickets.clone(), &NOW)), [], "it is off");
    let range = NiceRange {
        most_urgent: 0,
        least_urgent: 20,
    };
    configure(&mut core, Some(range));
    let told = asked(core.handle(tickets, &NOW));
    assert_eq!(told, [(heavy, Some(0), Some(150)), (light, Some(0), Some(50))]);
    assert_eq!(asked(used(&mut core, heavy, 1_000, 6_999)), []);
    assert_eq!(
        asked(used(&mut core, light, 1_000, 7_000)),
        [(light, Some(19), Some(50))]
    );
    let back = asked(configure(&mut core, None));
    assert_eq!(back, [(heavy, None, None), (light, None, None)]);
}
