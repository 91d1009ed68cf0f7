//! The configuration objects of a new cell.

use super::Plan;
use master_core::event::StoredObject;
use proto::complex::Complex;
use proto::conf::ClusterConf;
use proto::host::ExecHost;
use proto::hostgroup::{HostGroup, HostList, HostOrGroup};
use proto::id::{HostGroupName, HostName, PeName, QueueName};
use proto::limit::VmemMeaning;
use proto::object::{Fields, Object, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::policy::SchedulerConf;
use proto::queue::ClusterQueue;
use proto::userset::{AR_USERS, DEADLINE_USERS, DEFAULT_DEPARTMENT, UserSet, UserSetKind};

/// Seconds between load reports in a new cell: changes are seen soon, and a few hosts cost nothing.
/// 8.1.9 ships 40.
const LOAD_REPORT_TIME: &str = "00:00:05";

/// The slots of a new cell's parallel environments, as 8.1.9 packages have them.
const PE_SLOTS: &str = "999";

/// All objects, those first that others refer to.
pub(super) fn first_objects(plan: &Plan) -> Vec<StoredObject> {
    let host = plan.host.as_str();
    let mut objects = vec![
        stored(ObjectKind::ComplexTable, "", Complex::built_in().write()),
        stored(ObjectKind::ClusterConf, "global", cluster_conf(plan)),
        stored(ObjectKind::SchedulerConf, "", scheduler_conf()),
        stored(
            ObjectKind::ExecHost,
            "global",
            ExecHost::template(HostName::global()).to_fields(),
        ),
        stored(
            ObjectKind::ExecHost,
            host,
            ExecHost::template(plan.host.clone()).to_fields(),
        ),
        stored(ObjectKind::AdminHosts, host, Fields::new()),
        stored(ObjectKind::SubmitHosts, host, Fields::new()),
        stored(ObjectKind::HostGroup, "@allhosts", all_hosts(&plan.host)),
    ];
    objects.extend(
        [AR_USERS, DEADLINE_USERS, DEFAULT_DEPARTMENT].map(|name| stored(ObjectKind::UserSet, name, user_set(name))),
    );
    for (name, rule) in [("make", "$round_robin"), ("mpi", "$fill_up"), ("smp", "$pe_slots")] {
        objects.push(stored(ObjectKind::Pe, name, parallel_environment(name, rule)));
    }
    objects.push(stored(ObjectKind::Queue, "all.q", all_q(plan.slots)));
    objects.push(stored(ObjectKind::Managers, "root", Fields::new()));
    if plan.user.as_str() != "root" {
        objects.push(stored(ObjectKind::Managers, plan.user.as_str(), Fields::new()));
    }
    objects
}

fn stored(kind: ObjectKind, name: &str, fields: Fields) -> StoredObject {
    StoredObject {
        kind,
        name: name.to_owned(),
        fields: Some(fields),
    }
}

fn cluster_conf(plan: &Plan) -> Fields {
    let mut fields = ClusterConf::template().to_fields();
    fields.set("load_report_time", LOAD_REPORT_TIME);
    fields.set("shell_start_mode", "unix_behavior");
    if plan.vmem == VmemMeaning::Memory {
        fields.set("execd_params", "H_VMEM=memory");
    }
    fields
}

/// Without load adjustments: a job that has just started does not make its host look loaded.
fn scheduler_conf() -> Fields {
    let mut fields = SchedulerConf::template().to_fields();
    fields.set("job_load_adjustments", "NONE");
    fields.set("load_adjustment_decay_time", "0:0:0");
    fields
}

fn all_hosts(host: &HostName) -> Fields {
    let group = HostGroup {
        members: HostList(vec![HostOrGroup::Host(host.clone())]),
        ..HostGroup::template(HostGroupName::from("@allhosts"))
    };
    group.to_fields()
}

/// One of the three that every cell of 8.1.9 has, with nobody in it.
fn user_set(name: &str) -> Fields {
    let purpose = if name == DEFAULT_DEPARTMENT {
        UserSetKind::Department
    } else {
        UserSetKind::AccessList
    };
    UserSet {
        purpose,
        ..UserSet::template(name)
    }
    .write()
}

fn parallel_environment(name: &str, rule: &str) -> Fields {
    let mut fields = ParallelEnvironment::template(PeName::from(name)).to_fields();
    fields.set("slots", PE_SLOTS);
    fields.set("allocation_rule", rule);
    fields.set("control_slaves", "TRUE");
    fields
}

/// Without load thresholds: a busy machine takes its jobs all the same.
fn all_q(slots: u32) -> Fields {
    let mut fields = ClusterQueue::template(QueueName::from("all.q")).to_fields();
    fields.set("hostlist", "@allhosts");
    fields.set("load_thresholds", "NONE");
    fields.set("slots", slots.to_string());
    fields
}
