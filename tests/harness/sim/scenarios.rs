//! The classic cases, each told step by step.

use super::agenda::HostIndex;
use super::launcher::Shepherd;
use super::link::UpMessage;
use super::workload::job;
use super::world::{Plan, World};
use proto::id::{JobNumber, TaskKey};
use proto::wire::agent::{AgentMessage, TaskReport, TaskReportState};
use proto::wire::client::{Command, JobSelection, JobTarget};

/// The steps that a scenario may take between two of its sentences.
const PATIENCE: usize = 20_000;

const HOST: HostIndex = 0;

/// A cluster of one host, which is connected, and nobody who does anything.
fn cluster() -> World {
    let plan = Plan {
        hosts: 1,
        jobs: 0,
        ..Plan::quiet(1)
    };
    let mut world = World::new(plan);
    world.keep_trace(std::env::var_os("GRIDWRIGHT_ALOUD").is_some());
    until(&mut world, |world| world.master_knows_host());
    world
}

fn until(world: &mut World, is_so: impl Fn(&World) -> bool) {
    for _ in 0..PATIENCE {
        if is_so(world) {
            return;
        }
        world.step();
    }
    panic!("it never comes to that\n{}", world.last_words());
}

fn submit(world: &mut World, name: &str) {
    world.command("u1", Command::Submit(Box::new(job("u1", name))));
}

fn delete(world: &mut World) {
    let target = JobTarget {
        job: JobNumber(1).to_string(),
        tasks: Vec::new(),
    };
    let jobs = JobSelection {
        targets: vec![target],
        ..JobSelection::default()
    };
    world.command("u1", Command::Delete { jobs, force: false });
}

fn directory(world: &World) -> Option<(TaskKey, &Shepherd)> {
    world.nodes[HOST]
        .directories
        .iter()
        .next()
        .map(|(key, directory)| (*key, &directory.shepherd))
}

fn is_preparing(world: &World) -> bool {
    matches!(directory(world), Some((_, Shepherd::Preparing)))
}

fn is_running(world: &World) -> bool {
    matches!(directory(world), Some((_, Shepherd::Running { .. })))
}

fn has_ended(world: &World) -> bool {
    matches!(directory(world), Some((_, Shepherd::Ended(_))))
}

fn is_placed(world: &World) -> bool {
    world.state().ledger.keys().next().is_some()
}

/// Lets everything end; the one task was executed and accounted so often.
fn ends(world: &mut World, executed: u64, accounted: u64) {
    until(world, World::is_over);
    world.check_end();
    assert_eq!(
        (world.counts.tasks_executed, world.counts.attempts_accounted),
        (executed, accounted)
    );
}

#[test]
fn a_master_that_dies_between_order_and_answer_finds_the_task_where_it_is() {
    let mut world = cluster();
    submit(&mut world, "plain");
    until(&mut world, is_preparing);
    world.master_dies();
    ends(&mut world, 1, 1);
}

#[test]
fn an_agent_that_starts_again_reports_what_ended_without_it() {
    let mut world = cluster();
    submit(&mut world, "plain");
    until(&mut world, is_running);
    world.agent_dies(HOST);
    until(&mut world, has_ended);
    ends(&mut world, 1, 1);
}

#[test]
fn an_order_that_is_repeated_because_no_answer_came_starts_nothing_twice() {
    let mut world = cluster();
    submit(&mut world, "plain");
    until(&mut world, is_placed);
    let until_ms = world.time + 45_000;
    assert!(world.freeze(HOST, until_ms).is_some());
    ends(&mut world, 1, 1);
}

#[test]
fn news_that_a_task_runs_after_it_has_ended_revive_nothing() {
    let mut world = cluster();
    submit(&mut world, "plain");
    until(&mut world, is_running);
    let (key, _) = directory(&world).expect("it runs");
    ends(&mut world, 1, 1);
    let logged = world.kept.here().log.len();
    let link = world.nodes[HOST]
        .agent
        .as_ref()
        .and_then(|agent| agent.link)
        .expect("the host is connected");
    let late = AgentMessage::Task(TaskReport {
        key,
        state: TaskReportState::Running { for_ms: 5 },
    });
    world.send_up(link, UpMessage::Message(Box::new(late)));
    let later = world.time + 60_000;
    until(&mut world, |world| world.time > later);
    assert_eq!(world.kept.here().log.len(), logged, "nothing became true by it");
    ends(&mut world, 1, 1);
}

#[test]
fn a_task_that_ends_while_its_host_is_cut_off_for_a_minute_is_accounted_once() {
    let mut world = cluster();
    submit(&mut world, "plain");
    until(&mut world, is_running);
    let until_ms = world.time + 60_000;
    world.nodes[HOST].cut_off_until = until_ms;
    let link = world.freeze(HOST, until_ms).expect("the host is connected");
    world.break_link(link, 30_000);
    until(&mut world, has_ended);
    ends(&mut world, 1, 1);
}

#[test]
fn a_job_that_is_deleted_on_its_way_to_the_host_ends_there_or_never_runs() {
    let mut world = cluster();
    submit(&mut world, "forever");
    until(&mut world, is_placed);
    delete(&mut world);
    until(&mut world, World::is_over);
    world.check_end();
    assert_eq!(world.counts.attempts_accounted, 1);
}

#[test]
fn a_job_that_is_deleted_while_the_launcher_is_away_ends_once_it_is_back() {
    let mut world = cluster();
    submit(&mut world, "forever");
    until(&mut world, |world| {
        world
            .state()
            .jobs
            .values()
            .any(|job| job.placements().any(|(_, at)| at.started.is_some()))
    });
    assert!(world.launcher_gone(HOST));
    delete(&mut world);
    let back = world.time + 1_000;
    until(&mut world, |world| world.time > back);
    world.launcher_starts(HOST);
    let link = world.nodes[HOST].agent.as_ref().and_then(|agent| agent.link);
    ends(&mut world, 1, 1);
    let still = world.nodes[HOST].agent.as_ref().and_then(|agent| agent.link);
    assert_eq!(still, link, "no new connection was needed");
}

/// A cluster whose one host has been without a launcher since just now, and a job that was given to
/// it in the meantime.
fn placed_without_a_launcher() -> World {
    let mut world = cluster();
    submit(&mut world, "plain");
    until(&mut world, is_placed);
    assert!(directory(&world).is_none(), "the order has not reached the launcher");
    assert!(world.launcher_gone(HOST));
    world
}

#[test]
fn a_task_that_no_launcher_was_told_of_goes_back_and_runs_once_when_there_is_one() {
    let mut world = placed_without_a_launcher();
    until(&mut world, |world| !is_placed(world));
    let later = world.time + 60_000;
    until(&mut world, |world| world.time > later);
    assert!(!is_placed(&world), "and nothing more is given to the host meanwhile");
    world.launcher_starts(HOST);
    ends(&mut world, 1, 1);
}

#[test]
fn a_job_that_is_deleted_while_no_launcher_was_told_of_it_is_gone_at_once() {
    let mut world = placed_without_a_launcher();
    delete(&mut world);
    let soon = world.time + 5_000;
    until(&mut world, |world| world.time > soon);
    assert!(world.state().jobs.is_empty());
    world.launcher_starts(HOST);
    ends(&mut world, 0, 0);
}

#[test]
fn a_task_that_an_ill_host_refused_waits_without_a_record_and_runs_once_the_host_is_well() {
    for knows in [true, false] {
        let mut world = cluster();
        let until_ms = world.time + 90_000;
        (world.nodes[HOST].sick_until, world.nodes[HOST].knows_sickness) = (until_ms, knows);
        submit(&mut world, "plain");
        until(&mut world, |world| world.time > until_ms);
        assert_eq!(world.counts.attempts_accounted, 0);
        let refusals = world.counts.host_refusals;
        assert!(
            (1..=4).contains(&refusals),
            "{refusals} refusals: a host that refuses is left alone for longer each time"
        );
        ends(&mut world, 1, 1);
    }
}
