//! What is going to happen, by virtual time; what falls on the same millisecond happens in the
//! order in which it was planned.

use proto::id::{RequestId, TaskKey};
use proto::load::LoadReport;
use proto::wire::stream::Order;
use std::collections::BTreeMap;

/// One connection of an agent to the master; never used twice.
pub(super) type LinkId = u64;

/// The place of a host among the hosts.
pub(super) type HostIndex = usize;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Master,
    Agent,
}

/// Something that happens. `life` is that of the process for which it was planned: one that has
/// died does nothing any more.
#[derive(Clone, Debug)]
pub(super) enum Happening {
    MasterStarts,
    MasterTurns {
        life: u64,
    },
    MasterSynced {
        life: u64,
    },
    MasterTimer {
        life: u64,
        armed: u64,
    },
    SchedulerSteps {
        life: u64,
        planned: u64,
    },
    OrdersArrive {
        life: u64,
        scheduler: &'static str,
        orders: Vec<Order>,
    },
    /// The next message in that direction arrives.
    Delivery {
        link: LinkId,
        to: Side,
    },
    /// An end finds out that the connection is gone.
    Lost {
        link: LinkId,
        by: Side,
    },
    ReportDue {
        host: HostIndex,
        life: u64,
        link: LinkId,
    },
    ReportArrives {
        link: LinkId,
        report: Box<LoadReport>,
    },
    HostBoots {
        host: HostIndex,
    },
    AgentStarts {
        host: HostIndex,
    },
    AgentDials {
        host: HostIndex,
        life: u64,
    },
    AgentSeeksLauncher {
        host: HostIndex,
        life: u64,
    },
    AgentTimer {
        host: HostIndex,
        life: u64,
        at: u64,
    },
    LauncherStarts {
        host: HostIndex,
    },
    RequestReachesLauncher {
        host: HostIndex,
        session: u64,
    },
    NoticeReachesAgent {
        host: HostIndex,
        session: u64,
    },
    TaskExecutes {
        host: HostIndex,
        key: TaskKey,
        boot: u64,
    },
    TaskEnds {
        host: HostIndex,
        key: TaskKey,
        boot: u64,
        run: u64,
    },
    TaskTerminated {
        host: HostIndex,
        key: TaskKey,
        boot: u64,
    },
    Undertaker {
        host: HostIndex,
        key: TaskKey,
        boot: u64,
    },
    /// The launcher tells what a task uses.
    UsageKnown {
        host: HostIndex,
        key: TaskKey,
        boot: u64,
    },
    /// A parallel job starts a slave task.
    SlaveWanted {
        host: HostIndex,
        key: TaskKey,
        boot: u64,
    },
    UserActs,
    AdministratorActs,
    RivalOrders,
    CommandArrives {
        id: RequestId,
    },
    CommandRepeats {
        id: RequestId,
    },
    ReplyArrives {
        id: RequestId,
        reply: Box<proto::wire::client::Reply>,
    },
    FaultStrikes,
    PartitionEnds {
        host: HostIndex,
    },
    Heals,
    Tidies,
    /// Those who watch over the cell look at it.
    Watches,
}

/// Everything that is planned.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    planned: BTreeMap<(u64, u64), Happening>,
    count: u64,
}

impl Agenda {
    pub(super) fn plan(&mut self, at: u64, happening: Happening) {
        self.count += 1;
        self.planned.insert((at, self.count), happening);
    }

    pub(super) fn next(&mut self) -> Option<(u64, Happening)> {
        self.planned.pop_first().map(|((at, _), happening)| (at, happening))
    }
}
