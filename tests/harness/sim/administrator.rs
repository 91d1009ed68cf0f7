//! What administrators do to a running cell: other attributes, capacities, slots, groups and hosts,
//! states of queues. In the end they set everything as it was, so that every job can end.

use super::agenda::Happening;
use super::setting;
use super::world::World;
use proto::id::HostName;
use proto::object::ObjectKind;
use proto::wire::client::{AttributeEdit, Command, ModifyAction, ObjectAction, ObjectChange};

fn change(kind: ObjectKind, name: &str, action: ObjectAction) -> ObjectChange {
    ObjectChange {
        kind,
        name: name.to_owned(),
        action,
    }
}

fn attribute(kind: ObjectKind, name: &str, edit: AttributeEdit, attribute: &str, value: &str) -> ObjectChange {
    let action = ObjectAction::Attribute {
        edit,
        attribute: attribute.to_owned(),
        value: value.to_owned(),
    };
    change(kind, name, action)
}

impl World {
    /// Something is administered, under whatever runs.
    pub(super) fn administrator_acts(&mut self) {
        self.plan_meddling(Happening::AdministratorActs);
        if self.healed {
            return;
        }
        self.counts.administrations += 1;
        let host = self.draw_host();
        let command = match self.random.below(20) {
            15 | 16 => Command::Objects(vec![self.draw_scheduling()]),
            17 => Command::Objects(vec![self.draw_environment()]),
            18 => Command::Objects(vec![self.draw_queue()]),
            19 => Command::Objects(vec![self.draw_comings()]),
            10 | 11 => Command::Objects(vec![self.draw_cause()]),
            0 => Command::Objects(vec![self.draw_complex()]),
            1..=3 => Command::Objects(vec![self.draw_capacity(&host)]),
            4 => Command::Objects(vec![self.draw_slots(&host)]),
            5 => Command::Objects(self.draw_membership(&host)),
            6 => Command::Objects(vec![self.draw_cluster()]),
            7 | 8 => Command::Objects(vec![self.draw_quota()]),
            _ => self.draw_queue_state(&host),
        };
        self.command("boss", command);
    }

    /// How many times as large as a small one the cell is.
    fn size(&self) -> usize {
        setting::size(self.nodes.len())
    }

    pub(super) fn draw_host(&mut self) -> HostName {
        self.nodes[self.random.below(self.nodes.len() as u64) as usize]
            .name
            .clone()
    }

    /// What is consumable, how it is charged, and what is charged by default.
    fn draw_complex(&mut self) -> ObjectChange {
        let mut kind = || self.random.pick(&["NO", "YES", "YES", "JOB", "HOST"]).unwrap_or("YES");
        let (lic, gpu, memory) = (kind(), kind(), kind());
        // A default is only for what is consumable.
        let default = if gpu != "NO" && self.random.chance(300) {
            "1"
        } else {
            "0"
        };
        change(
            ObjectKind::ComplexTable,
            "",
            ObjectAction::Replace(setting::complex(lic, gpu, default, memory)),
        )
    }

    fn draw_capacity(&mut self, host: &HostName) -> ObjectChange {
        let (name, values) = if self.random.chance(300) {
            (
                "global",
                self.random
                    .pick(&["lic=~1", "lic=~2", "lic=~5", "NONE", "lic=~3,gpu=~2"]),
            )
        } else {
            (
                host.as_str(),
                self.random.pick(&[
                    "h_vmem=2G",
                    "h_vmem=12G,gpu=1",
                    "gpu=3,slots=3",
                    "NONE",
                    "h_vmem=6G,lic=1",
                ]),
            )
        };
        let values = setting::scaled(values.unwrap_or("NONE"), self.size());
        attribute(
            ObjectKind::ExecHost,
            name,
            AttributeEdit::Replace,
            "complex_values",
            &values,
        )
    }

    fn draw_slots(&mut self, host: &HostName) -> ObjectChange {
        let queue = self.random.pick(&["all.q", "b.q"]).unwrap_or("all.q");
        let part = match self.random.below(4) {
            0 => queue.to_owned(),
            1 => format!("{queue}@@few"),
            _ => format!("{queue}@{host}"),
        };
        if self.random.chance(200) {
            let values = self.random.pick(&["gpu=1", "lic=1,gpu=2", "NONE"]).unwrap_or("NONE");
            return attribute(
                ObjectKind::Queue,
                &part,
                AttributeEdit::Replace,
                "complex_values",
                values,
            );
        }
        let slots = self.random.between(0, 6).to_string();
        attribute(ObjectKind::Queue, &part, AttributeEdit::Replace, "slots", &slots)
    }

    /// A host comes into a group or leaves it, or leaves the cell and comes back.
    fn draw_membership(&mut self, host: &HostName) -> Vec<ObjectChange> {
        let name = host.as_str();
        let of_group = |group: &str, edit| attribute(ObjectKind::HostGroup, group, edit, "hostlist", name);
        let is_there = self.state().config.exec_hosts.contains_key(host);
        match self.random.below(6) {
            _ if !is_there => {
                let fields = setting::exec_host(host, "h_vmem=4G");
                vec![
                    change(ObjectKind::ExecHost, name, ObjectAction::Add(fields)),
                    of_group("@all", AttributeEdit::Add),
                ]
            }
            0 => vec![of_group("@few", AttributeEdit::Add)],
            1 => vec![of_group("@few", AttributeEdit::Delete)],
            2 => vec![of_group("@all", AttributeEdit::Delete)],
            3 => vec![of_group("@all", AttributeEdit::Add)],
            _ => vec![
                of_group("@all", AttributeEdit::Delete),
                of_group("@few", AttributeEdit::Delete),
                change(ObjectKind::ExecHost, name, ObjectAction::Delete),
            ],
        }
    }

    /// What suspends the tasks of a queue, or closes it, by itself.
    fn draw_cause(&mut self) -> ObjectChange {
        let causes = [
            ("all.q", "calendar", "c"),
            ("all.q", "calendar", "NONE"),
            ("b.q", "calendar", "NONE,[@few=c]"),
            ("b.q", "calendar", "NONE"),
            ("b.q", "subordinate_list", "all.q=1"),
            ("b.q", "subordinate_list", "slots=3(all.q:0:lr)"),
            ("b.q", "subordinate_list", "slots=2(all.q)"),
            ("b.q", "subordinate_list", "NONE"),
            ("all.q", "suspend_thresholds", "np_load_avg=0.3"),
            ("all.q", "suspend_thresholds", "NONE"),
        ];
        let (queue, key, value) = self.random.pick(&causes).expect("there are some");
        attribute(ObjectKind::Queue, queue, AttributeEdit::Replace, key, value)
    }

    /// How jobs are placed and in which order.
    fn draw_scheduling(&mut self) -> ObjectChange {
        let settings = [
            ("max_reservation", "0"),
            ("max_reservation", "1"),
            ("max_reservation", "20"),
            ("default_duration", "INFINITY"),
            ("default_duration", "0:0:5"),
            ("maxujobs", "0"),
            ("maxujobs", "2"),
            ("queue_sort_method", "seqno"),
            ("queue_sort_method", "load"),
            ("load_formula", "np_load_avg-slots"),
            ("job_load_adjustments", "np_load_avg=0.50"),
            ("job_load_adjustments", "NONE"),
            ("load_adjustment_decay_time", "0:0:30"),
            ("weight_urgency", "0.5"),
            ("weight_priority", "0"),
            ("share_override_tickets", "FALSE"),
            ("policy_hierarchy", "F"),
            ("algorithm", "fcfs"),
            ("algorithm", "default"),
        ];
        let (key, value) = self.random.pick(&settings).expect("there are some");
        attribute(ObjectKind::SchedulerConf, "", AttributeEdit::Replace, key, value)
    }

    /// What parallel environments allow, to jobs that run too.
    fn draw_environment(&mut self) -> ObjectChange {
        if self.has_scopes() && self.random.chance(300) {
            let name = self.random.pick(&["smp", "mpi", "mpi"]).unwrap_or("mpi");
            let value = if self.random.chance(500) { "TRUE" } else { "FALSE" };
            return attribute(ObjectKind::Pe, name, AttributeEdit::Replace, "ign_sreq_on_mhost", value);
        }
        let settings = [
            ("slots", "~3"),
            ("slots", "~50"),
            ("allocation_rule", "$fill_up"),
            ("allocation_rule", "$round_robin"),
            ("allocation_rule", "$pe_slots"),
            ("allocation_rule", "2"),
            ("control_slaves", "FALSE"),
            ("control_slaves", "TRUE"),
            ("job_is_first_task", "FALSE"),
            ("job_is_first_task", "TRUE"),
            ("urgency_slots", "max"),
        ];
        let (key, value) = self.random.pick(&settings).expect("there are some");
        let name = self.random.pick(&["smp", "mpi"]).unwrap_or("mpi");
        let value = setting::scaled(value, self.size());
        attribute(ObjectKind::Pe, name, AttributeEdit::Replace, key, &value)
    }

    /// What a queue offers to whom.
    fn draw_queue(&mut self) -> ObjectChange {
        let settings = [
            ("pe_list", "smp"),
            ("pe_list", "mpi,[@few=smp mpi]"),
            ("pe_list", "smp mpi"),
            ("pe_list", "NONE"),
            ("seq_no", "5"),
            ("seq_no", "0,[@few=7]"),
            ("load_thresholds", "np_load_avg=0.25"),
            ("load_thresholds", "NONE"),
            ("rerun", "TRUE"),
            ("rerun", "FALSE"),
            ("h_rt", "0:0:30"),
            ("h_rt", "INFINITY"),
            ("priority", "5"),
            ("hostlist", "@all"),
            ("hostlist", "@few"),
            ("hostlist", "NONE"),
        ];
        let (key, value) = self.random.pick(&settings).expect("there are some");
        let queue = self.random.pick(&["all.q", "b.q"]).unwrap_or("all.q");
        attribute(ObjectKind::Queue, queue, AttributeEdit::Replace, key, value)
    }

    /// A queue, a calendar, a parallel environment or a quota goes, or comes back as it was.
    fn draw_comings(&mut self) -> ObjectChange {
        let kinds = [
            ObjectKind::Queue,
            ObjectKind::Pe,
            ObjectKind::Calendar,
            ObjectKind::ResourceQuota,
        ];
        let goes = self
            .setting
            .iter()
            .filter(|object| kinds.contains(&object.kind) && object.name != "all.q");
        let goes: Vec<usize> = goes
            .filter_map(|one| self.setting.iter().position(|other| one == other))
            .collect();
        let at = self.random.pick(&goes).expect("the cell has such objects");
        let object = &self.setting[at];
        match self.state().config.object_fields(object.kind, &object.name) {
            Some(_) => change(object.kind, &object.name, ObjectAction::Delete),
            None => change(
                object.kind,
                &object.name,
                ObjectAction::Add(object.fields.clone().unwrap_or_default()),
            ),
        }
    }

    fn draw_cluster(&mut self) -> ObjectChange {
        let instances = self.random.pick(&["0", "1", "3", "2000"]).unwrap_or("2000");
        let unknown = self.random.pick(&["00:00:00", "00:01:00"]).unwrap_or("00:00:00");
        change(
            ObjectKind::ClusterConf,
            "global",
            ObjectAction::Replace(setting::cluster(instances, unknown)),
        )
    }

    /// More or less for users and places, or for other ones.
    fn draw_quota(&mut self) -> ObjectChange {
        let kind = ObjectKind::ResourceQuota;
        if self.random.chance(300) {
            let rules: &[&str] = match self.random.below(3) {
                0 => &[
                    "users !u1 hosts {@few} to slots=~2",
                    "pes {*} hosts !@few to slots=~4",
                    "to slots=~6",
                ],
                1 => &["users {*} queues {*} to slots=~3,lic=~2"],
                _ => &["users u1,u2 to slots=~5,gpu=~1", "hosts {@all} to slots=2"],
            };
            return change(
                kind,
                "places",
                ObjectAction::Replace(setting::quota("places", rules, self.size())),
            );
        }
        if self.random.chance(200) {
            let enabled = if self.random.chance(500) { "TRUE" } else { "FALSE" };
            return attribute(kind, "places", AttributeEdit::Replace, "enabled", enabled);
        }
        let rule = self
            .random
            .pick(&["places/1", "licences/1", "licences/2"])
            .unwrap_or("places/1");
        let limit = self
            .random
            .pick(&["slots=~2", "slots=~8", "lic=~1", "lic=~2,slots=~4", "NONE"]);
        let limit = setting::scaled(limit.unwrap_or("NONE"), self.size());
        attribute(kind, rule, AttributeEdit::Replace, "limit", &limit)
    }

    fn draw_queue_state(&mut self, host: &HostName) -> Command {
        let queue = self.random.pick(&["all.q", "b.q", "*"]).unwrap_or("all.q");
        let target = if self.random.chance(700) {
            format!("{queue}@{host}")
        } else {
            queue.to_owned()
        };
        let action = match self.random.below(12) {
            0 | 1 => ModifyAction::DisableQueue,
            2..=4 => ModifyAction::EnableQueue,
            5 | 6 => ModifyAction::SuspendQueue,
            7..=9 => ModifyAction::UnsuspendQueue,
            10 => ModifyAction::RescheduleQueue,
            _ => ModifyAction::ClearQueueError,
        };
        Command::Modify {
            action,
            targets: vec![target],
            force: self.random.chance(300),
        }
    }

    /// An operator clears the errors of queues.
    pub(super) fn clear_queue_errors(&mut self) {
        if self.state().instances.values().any(|state| !state.errors.is_empty()) {
            let action = ModifyAction::ClearQueueError;
            self.command(
                "op",
                Command::Modify {
                    action,
                    targets: vec!["*".to_owned()],
                    force: false,
                },
            );
        }
    }

    /// Sets everything as it was in the beginning, as often as it takes.
    pub(super) fn tidy_cell(&mut self) {
        let config = &self.state().config;
        let mut changes = Vec::new();
        for object in &self.setting {
            let fields = object
                .fields
                .as_ref()
                .expect("the objects of the beginning have fields");
            let action = match config.object_fields(object.kind, &object.name) {
                None => ObjectAction::Add(fields.clone()),
                Some(present) if present != *fields => ObjectAction::Replace(fields.clone()),
                Some(_) => continue,
            };
            changes.push(change(object.kind, &object.name, action));
        }
        if !changes.is_empty() {
            self.command("boss", Command::Objects(changes));
        }
        if self.state().instances.is_empty() {
            return;
        }
        for action in [
            ModifyAction::ClearQueueError,
            ModifyAction::EnableQueue,
            ModifyAction::UnsuspendQueue,
        ] {
            self.command(
                "boss",
                Command::Modify {
                    action,
                    targets: vec!["*".to_owned()],
                    force: false,
                },
            );
        }
    }
}
