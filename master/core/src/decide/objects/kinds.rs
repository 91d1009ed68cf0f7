//! How changes of each kind of object are decided: a row for each.

use super::change::Refusals;
use super::draft::Draft;
use super::words::Words;
use super::{access, members, quotas, references, strict};
use crate::config::Configuration;
use proto::calendar::Calendar;
use proto::checkpoint::Checkpoint;
use proto::conf::ClusterConf;
use proto::diagnostic::{Code, Diagnostic};
use proto::host::ExecHost;
use proto::hostgroup::{HostGroup, group_name, host_name};
use proto::id::{HostName, QueueInstanceName};
use proto::object::{Fields, Object, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::policy::SchedulerConf;
use proto::queue::ClusterQueue;

/// The rules of one kind.
pub(super) struct KindRules {
    /// What messages call it.
    pub words: Words,
    /// The name under which an object is found that people call so.
    pub canonical: fn(&Draft<'_>, &str) -> String,
    /// Reads an object, checks that what it names exists, and gives it in the form in which it
    /// prints; what it brings into being besides itself is stored in the draft.
    pub settle: fn(&mut Draft<'_>, &str, &Fields) -> Result<Fields, Refusals>,
    /// Refuses if other objects name this one.
    pub unused: fn(&Configuration, &str) -> Result<(), Refusals>,
    /// Whether a queue instance belongs to an object, which stays while there are tasks.
    pub has_instance: fn(&str, &QueueInstanceName) -> bool,
}

const fn row_of(words: Words, settle: fn(&mut Draft<'_>, &str, &Fields) -> Result<Fields, Refusals>) -> KindRules {
    KindRules {
        words,
        canonical: |_, name| name.to_owned(),
        settle,
        unused: |_, _| Ok(()),
        has_instance: |_, _| false,
    }
}

fn host(draft: &Draft<'_>, name: &str) -> String {
    draft.host_names().canonical(name).to_string()
}

/// The object in its form, unless it names what does not exist.
fn unless(refusals: Refusals, object: &impl Object) -> Result<Fields, Refusals> {
    if refusals.is_empty() {
        Ok(object.write())
    } else {
        Err(refusals)
    }
}

const EXEC_HOST: KindRules = KindRules {
    canonical: host,
    unused: |config, name| references::to_host(config, &HostName::new(name)),
    has_instance: |name, instance| instance.host.as_str() == name,
    ..row_of(
        Words {
            list: "exechost",
            object: "execution host",
            present: "exechost",
        },
        |draft, name, fields| {
            let name = host_name(name).map_err(|bad| vec![bad.refusal("hostname", name)])?;
            let mut host = ExecHost {
                name,
                ..ExecHost::from_fields(fields)?
            };
            host.complex_values.make_canonical(&draft.config.complex);
            unless(references::of_host(&draft.config, &host), &host)
        },
    )
};

const QUEUE: KindRules = KindRules {
    unused: |config, name| {
        references::to_queue(config, &name.into())?;
        quotas::to_queue(config, name)
    },
    has_instance: |name, instance| instance.queue.as_str() == name,
    ..row_of(Words::same("cluster queue"), |draft, _, fields| {
        let mut queue = ClusterQueue::from_fields(fields)?;
        queue.hostlist = members::settle(draft, queue.hostlist)?;
        queue
            .complex_values
            .values_mut()
            .for_each(|list| list.make_canonical(&draft.config.complex));
        unless(references::of_queue(&draft.config, &queue), &queue)
    })
};

const HOST_GROUP: KindRules = KindRules {
    unused: |config, name| {
        references::to_group(config, &name.into())?;
        quotas::to_group(config, name)
    },
    ..row_of(Words::same("host group"), |draft, name, fields| {
        group_name(name).map_err(|bad| vec![bad.refusal("group_name", name)])?;
        let mut group = HostGroup::from_fields(fields)?;
        group.members = members::settle(draft, group.members)?;
        unless(references::of_group(&draft.config, &group), &group)
    })
};

const PE: KindRules = KindRules {
    unused: |config, name| {
        references::to_pe(config, &name.into())?;
        quotas::to_pe(config, name)
    },
    ..row_of(Words::same("parallel environment"), |draft, _, fields| {
        let pe = ParallelEnvironment::from_fields(fields)?;
        variables_of_pe(&pe)?;
        unless(access::of_pe(&draft.config, &pe), &pe)
    })
};

/// What procedures of a parallel environment may name with a `$` besides what a prolog may, as in
/// 8.1.9 (sge_pe(5)).
const PE_VARIABLES: [&str; 3] = ["pe_hostfile", "pe", "pe_slots"];

/// A variable that nobody knows would reach the procedure as it stands.
fn variables_of_pe(pe: &ParallelEnvironment) -> Result<(), Refusals> {
    let refused = |attribute: &str, why: String| {
        let what = format!("parameter {attribute} of pe \"{}\": {why}", pe.name);
        let told = PE_VARIABLES
            .iter()
            .chain(&strict::PROCEDURE_VARIABLES[..strict::TOLD_VARIABLES]);
        let known = told.map(|name| format!(" ${name}")).collect::<String>();
        Diagnostic::new(Code::BadValue, what).fix(format!("the variables are{known}"))
    };
    let known = [&PE_VARIABLES[..], &strict::PROCEDURE_VARIABLES].concat();
    let check = |attribute: &str, command: &str| Some(refused(attribute, strict::unknown_variable(command, &known)?));
    let commands = [
        ("start_proc_args", &pe.start_proc_args),
        ("stop_proc_args", &pe.stop_proc_args),
    ];
    let refusals: Refusals = commands
        .iter()
        .filter_map(|(name, command)| check(name, command.value()?.as_str()))
        .collect();
    if refusals.is_empty() { Ok(()) } else { Err(refusals) }
}

const CALENDAR: KindRules = KindRules {
    unused: |config, name| references::to_calendar(config, &name.into()),
    ..row_of(Words::same("calendar"), |_, _, fields| {
        Ok(Calendar::from_fields(fields)?.to_fields())
    })
};
const RESOURCE_QUOTA: KindRules = row_of(Words::same("resource quota set"), |draft, _, fields| {
    quotas::settle(draft, fields)
});

const CLUSTER_CONF: KindRules = KindRules {
    canonical: |draft, name| {
        if name.is_empty() {
            "global".to_owned()
        } else {
            host(draft, name)
        }
    },
    ..row_of(Words::same("configuration"), |draft, name, fields| {
        host_name(name).map_err(|bad| vec![bad.refusal("host", name)])?;
        let conf = ClusterConf::from_fields(&HostName::new(name), fields)?;
        let refusals = access::of_conf(&draft.config, name, &conf.to_fields());
        if !refusals.is_empty() {
            return Err(refusals);
        }
        conf.warnings().into_iter().for_each(|warning| draft.warn(warning));
        Ok(conf.to_fields())
    })
};

const SCHEDULER_CONF: KindRules = KindRules {
    canonical: |_, _| String::new(),
    ..row_of(Words::same("scheduler configuration"), |draft, _, fields| {
        let conf = SchedulerConf::from_fields(fields)?;
        unless(references::of_scheduler(&draft.config, &conf), &conf)
    })
};

/// The complex is changed in a module of its own.
const COMPLEX: KindRules = KindRules {
    canonical: |_, _| String::new(),
    ..row_of(Words::same("complex"), refused)
};

/// The share tree is changed in a module of its own, too.
const SHARE_TREE: KindRules = KindRules {
    canonical: |_, _| String::new(),
    ..row_of(Words::same("share tree"), refused)
};

/// A list of hosts.
const fn hosts(list: &'static str, present: &'static str) -> KindRules {
    let words = Words {
        list,
        object: list,
        present,
    };
    let settle = |_: &mut Draft<'_>, name: &str, _: &Fields| {
        host_name(name).map_err(|bad| {
            let what = format!("can't resolve hostname \"{name}\"");
            vec![Diagnostic {
                what,
                ..bad.refusal("host name", name)
            }]
        })?;
        Ok(Fields::new())
    };
    KindRules {
        canonical: host,
        ..row_of(words, settle)
    }
}

const USER_SET: KindRules = KindRules {
    unused: |config, name| {
        access::to_set(config, name)?;
        quotas::to_set(config, name)
    },
    ..row_of(Words::same("userset"), access::settle_set)
};
const PROJECT: KindRules = KindRules {
    unused: |config, name| {
        access::to_project(config, name)?;
        quotas::to_project(config, name)
    },
    ..row_of(Words::same("project"), access::settle_project)
};
const USER: KindRules = KindRules {
    unused: access::to_user,
    ..row_of(Words::same("user"), access::settle_user)
};

const CHECKPOINT: KindRules = KindRules {
    unused: access::to_checkpoint,
    ..row_of(
        Words {
            list: "checkpoint interface",
            object: "checkpointing environment",
            present: "checkpoint interface",
        },
        |_, name, fields| Ok(Checkpoint::read(name, fields)?.write()),
    )
};

/// A list of users.
const fn users(list: &'static str) -> KindRules {
    row_of(Words::same(list), |_, name, _| {
        proto::object::value::check_name(name).map_err(|bad| vec![bad.refusal("user name", name)])?;
        Ok(Fields::new())
    })
}

const ADMIN_HOSTS: KindRules = hosts("administrative host", "adminhost");
const SUBMIT_HOSTS: KindRules = hosts("submit host", "submithost");
const MANAGERS: KindRules = users("manager");
const OPERATORS: KindRules = users("operator");

fn refused(_: &mut Draft<'_>, _: &str, _: &Fields) -> Result<Fields, Refusals> {
    unreachable!("changes of this kind do not come here")
}

/// The rules of a kind.
pub(super) const fn row(kind: ObjectKind) -> &'static KindRules {
    match kind {
        ObjectKind::ComplexTable => &COMPLEX,
        ObjectKind::ExecHost => &EXEC_HOST,
        ObjectKind::Queue => &QUEUE,
        ObjectKind::HostGroup => &HOST_GROUP,
        ObjectKind::Pe => &PE,
        ObjectKind::ClusterConf => &CLUSTER_CONF,
        ObjectKind::SchedulerConf => &SCHEDULER_CONF,
        ObjectKind::AdminHosts => &ADMIN_HOSTS,
        ObjectKind::SubmitHosts => &SUBMIT_HOSTS,
        ObjectKind::Managers => &MANAGERS,
        ObjectKind::Operators => &OPERATORS,
        ObjectKind::Checkpoint => &CHECKPOINT,
        ObjectKind::Calendar => &CALENDAR,
        ObjectKind::UserSet => &USER_SET,
        ObjectKind::Project => &PROJECT,
        ObjectKind::User => &USER,
        ObjectKind::ResourceQuota => &RESOURCE_QUOTA,
        ObjectKind::ShareTree => &SHARE_TREE,
    }
}
