//! Section 5: the objects of `qconf` with their attributes and defaults, from the tables that read
//! and write them, and the other files that people write or programs read.

mod plain;
mod verifier;

use super::page::{File, Page};
use proto::object::ObjectKind;

/// A page about an object.
struct ObjectPage {
    name: &'static str,
    kind: ObjectKind,
    line: &'static str,
    shown_by: &'static str,
    description: &'static [&'static str],
    /// What it shows, and its text.
    example: (&'static str, &'static str),
    see_also: &'static str,
}

/// A page for each format.
pub fn pages() -> Vec<File> {
    OBJECTS.iter().map(page).chain(plain::pages()).collect()
}

/// The examples of the objects.
#[cfg(test)]
pub fn examples() -> Vec<&'static str> {
    OBJECTS.iter().map(|page| page.example.1).collect()
}

fn page(format: &ObjectPage) -> File {
    let mut page = Page::new(format.name, 5, format.line);
    page.section("DESCRIPTION");
    format.description.iter().for_each(|text| page.paragraph(text));
    page.paragraph(&format!("`{}` show, change and list it.", format.shown_by));
    page.section(if format.kind == ObjectKind::ComplexTable {
        "COLUMNS"
    } else {
        "ATTRIBUTES"
    });
    for (name, meaning) in attributes(format.kind) {
        page.item(name, "", &[meaning, &default_of(format.kind, name)]);
    }
    page.section("EXAMPLES");
    page.paragraph(format.example.0);
    page.example(format.example.1);
    page.section("SEE ALSO");
    page.paragraph(format.see_also);
    page.file(format.name, 5)
}

/// The attributes of a kind, or the columns of the complex.
fn attributes(kind: ObjectKind) -> Vec<(&'static str, &'static str)> {
    if kind == ObjectKind::ComplexTable {
        return proto::complex::MEANINGS.to_vec();
    }
    kind.meanings().collect()
}

/// The value in a new object, if it is not the name of the object.
fn default_of(kind: ObjectKind, attribute: &str) -> String {
    let is_name = kind.keys().first() == Some(&attribute) && attribute.contains("name");
    let template = kind.template("").filter(|_| !is_name);
    let value = template
        .as_ref()
        .and_then(|fields| fields.value(attribute))
        .filter(|value| !value.is_empty());
    value.map_or_else(String::new, |value| format!("A new object has `{value}`."))
}

/// The formats that are objects of `qconf`.
const OBJECTS: &[ObjectPage] = &[
    ObjectPage {
        name: "complex",
        kind: ObjectKind::ComplexTable,
        line: "the list of resource attributes of a cell",
        shown_by: "qconf -sc, -mc, -Mc",
        description: &[
            "Each line is an attribute with eight columns, separated by blanks. Jobs ask for attributes by \
             `qsub -l`, hosts and queues offer them in `complex_values`, and hosts report load values of \
             these names.",
            "A `#` begins a comment. The attributes that are built in can be changed and not deleted.",
        ],
        example: (
            "A licence that jobs book, and a load value that they can ask for:",
            "tool_lic      tl   INT     <=  YES  YES  0  0\nvar_tmp_free  vtf  MEMORY  <=  YES  NO   0  0",
        ),
        see_also: "qconf(1), qsub(1), host_conf(5), queue_conf(5)",
    },
    ObjectPage {
        name: "queue_conf",
        kind: ObjectKind::Queue,
        line: "the configuration of a cluster queue",
        shown_by: "qconf -sq, -aq, -mq, -Aq, -Mq, -dq, -sql",
        description: &[
            "A cluster queue has an instance on each host of its `hostlist`. A value may differ from host to \
             host: in `2,[node1=4],[@big=8]` the first part holds for all hosts, and a part in brackets for \
             one host or host group. A host beats a group.",
            "Lists are separated by commas. `NONE` is an empty list.",
        ],
        example: (
            "A queue for short jobs:",
            "qname       short.q\nhostlist    @allhosts\nslots       4,[node1=8]\nh_rt        00:10:00",
        ),
        see_also: "qconf(1), qmod(1), qstat(1), hostgroup(5), sge_pe(5), checkpoint(5), calendar_conf(5), \
             access_list(5), complex(5)",
    },
    ObjectPage {
        name: "host_conf",
        kind: ObjectKind::ExecHost,
        line: "the configuration of an execution host",
        shown_by: "qconf -se, -ae, -me, -Ae, -Me, -de, -sel",
        description: &[
            "The pseudo host `global` holds what belongs to the whole cluster: its `complex_values` are \
             shared by all hosts.",
            "Lists are separated by commas. `NONE` is an empty list.",
        ],
        example: (
            "Five licences for the whole cluster, 64 GiB of memory on a host:",
            "qconf -mattr exechost complex_values lic=5 global\nqconf -mattr exechost complex_values h_vmem=64G node1",
        ),
        see_also: "qconf(1), qhost(1), complex(5), queue_conf(5)",
    },
    ObjectPage {
        name: "hostgroup",
        kind: ObjectKind::HostGroup,
        line: "a named group of hosts",
        shown_by: "qconf -shgrp, -ahgrp, -mhgrp, -Ahgrp, -Mhgrp, -dhgrp, -shgrpl",
        description: &["Groups may hold other groups. `@allhosts` has every execution host of a new cell."],
        example: (
            "A group of two hosts and another group:",
            "group_name  @big\nhostlist    node7 node8 @gpu",
        ),
        see_also: "qconf(1), queue_conf(5)",
    },
    ObjectPage {
        name: "sge_conf",
        kind: ObjectKind::ClusterConf,
        line: "the configuration of a cell and of its hosts",
        shown_by: "qconf -sconf, -aconf, -mconf, -Aconf, -Mconf, -dconf, -sconfl",
        description: &[
            "The global configuration holds for all hosts. A host may have a configuration of its own, whose \
             entries replace the global ones; some entries are only allowed in the global one. Changes take \
             effect at once.",
        ],
        example: ("A load sensor for one host:", "load_sensor  /opt/site/licences.sh"),
        see_also: "qconf(1), sched_conf(5), sge_load_sensor(5), gridwright-master(8), gridwright-agent(8)",
    },
    ObjectPage {
        name: "sched_conf",
        kind: ObjectKind::SchedulerConf,
        line: "the configuration of the scheduler",
        shown_by: "qconf -ssconf, -msconf, -Msconf",
        description: &[
            "The priority of a job is `weight_priority` times its normalized `-p`, plus `weight_urgency` \
             times its normalized urgency, plus `weight_ticket` times its normalized tickets. Changes take \
             effect at once.",
        ],
        example: (
            "Reservations for the first ten jobs with `-R y`, tickets by shares:",
            "max_reservation               10\nweight_tickets_share          100000",
        ),
        see_also: "qconf(1), qsched(1), share_tree(5), sge_conf(5)",
    },
    ObjectPage {
        name: "sge_pe",
        kind: ObjectKind::Pe,
        line: "a parallel environment",
        shown_by: "qconf -sp, -ap, -mp, -Ap, -Mp, -dp, -spl",
        description: &[
            "A parallel environment says how many slots parallel jobs may have, and how the slots of a job \
             are spread over hosts. Queues name the environments that they serve in `pe_list`.",
            "Lists are separated by commas. `NONE` is an empty list.",
        ],
        example: (
            "An environment for MPI:",
            "pe_name          mpi\nslots            999\nallocation_rule  $fill_up\ncontrol_slaves   TRUE",
        ),
        see_also: "qconf(1), qsub(1), qrsh(1), queue_conf(5)",
    },
    ObjectPage {
        name: "checkpoint",
        kind: ObjectKind::Checkpoint,
        line: "a checkpointing environment",
        shown_by: "qconf -sckpt, -ackpt, -mckpt, -Ackpt, -Mckpt, -dckpt, -sckptl",
        description: &[
            "It says how the state of a job is kept, and when. Queues name the environments that they serve \
             in `ckpt_list`; jobs ask for one by `qsub -ckpt`.",
        ],
        example: (
            "Jobs that write their state when they get SIGUSR2:",
            "ckpt_name  own\ninterface  userdefined\nsignal     usr2\nwhen       sx",
        ),
        see_also: "qconf(1), qsub(1), queue_conf(5)",
    },
    ObjectPage {
        name: "calendar_conf",
        kind: ObjectKind::Calendar,
        line: "a calendar that opens and closes queues",
        shown_by: "qconf -scal, -acal, -mcal, -Acal, -Mcal, -dcal, -scall",
        description: &[
            "States are `on`, `off` (the queue takes no jobs) and `suspended` (its jobs are suspended too). \
             Among the entries that cover a time, `on` counts before `suspended`, and `suspended` before \
             `off`. A time without an entry is `on`. `20-6` means the night hours of that same day: before 6 \
             and from 20 on.",
        ],
        example: (
            "Closed from 7 to 20 on working days, and at Christmas:",
            "calendar_name  night\nyear           24.12.2026-26.12.2026=off\nweek           mon-fri=7-20=off",
        ),
        see_also: "qconf(1), queue_conf(5)",
    },
    ObjectPage {
        name: "access_list",
        kind: ObjectKind::UserSet,
        line: "an access list or department",
        shown_by: "qconf -su, -au, -mu, -Au, -Mu, -du, -dul, -sul",
        description: &[
            "Access lists say who may use hosts, queues, environments and projects. Departments share \
             tickets. `deadlineusers` may set deadlines, `arusers` may make advance reservations.",
        ],
        example: (
            "Two users and a Unix group:",
            "name     team\ntype     ACL\nfshare   0\noticket  0\nentries  ann,bob,@staff",
        ),
        see_also: "qconf(1), queue_conf(5), sched_conf(5)",
    },
    ObjectPage {
        name: "project",
        kind: ObjectKind::Project,
        line: "a project",
        shown_by: "qconf -sprj, -aprj, -mprj, -Aprj, -Mprj, -dprj, -sprjl",
        description: &["Jobs belong to the project of `qsub -P`, else to the default project of their user."],
        example: (
            "A project with 50 functional shares, open to everybody:",
            "name     proj1\noticket  0\nfshare   50\nacl      NONE\nxacl     NONE",
        ),
        see_also: "qconf(1), qsub(1), user(5), share_tree(5)",
    },
    ObjectPage {
        name: "user",
        kind: ObjectKind::User,
        line: "a user with shares and a default project",
        shown_by: "qconf -suser, -auser, -muser, -Auser, -Muser, -duser, -suserl",
        description: &[
            "Users that are not objects may submit unless `enforce_user` of the cluster configuration is \
             `true`.",
        ],
        example: (
            "A user with a default project:",
            "name             ann\noticket          0\nfshare           100\ndelete_time      0\ndefault_project  proj1",
        ),
        see_also: "qconf(1), project(5), sge_conf(5)",
    },
    ObjectPage {
        name: "share_tree",
        kind: ObjectKind::ShareTree,
        line: "how the cell is shared among users and projects",
        shown_by: "qconf -sstree, -astree, -mstree, -Astree, -Mstree, -dstree, -sst",
        description: &[
            "The tree is a list of nodes with five lines each. What a node has used decays with `halftime` \
             of the scheduler configuration. `weight_tickets_share` switches the policy on.",
        ],
        example: (
            "Two thirds for a project, one third for all others:",
            "id=0\nname=Root\ntype=0\nshares=1\nchildnodes=1,2\nid=1\nname=proj1\ntype=1\nshares=20\nchildnodes=NONE\nid=2\nname=default\ntype=0\nshares=10\nchildnodes=NONE",
        ),
        see_also: "qconf(1), gridwright-shares(1), sched_conf(5)",
    },
    ObjectPage {
        name: "sge_resource_quota",
        kind: ObjectKind::ResourceQuota,
        line: "a resource quota set",
        shown_by: "qconf -srqs, -arqs, -mrqs, -Arqs, -Mrqs, -drqs, -srqsl",
        description: &[
            "A set limits what users, projects, environments, queues and hosts may use together. In each set \
             the first rule that applies to a job counts; the sets must all agree.",
        ],
        example: (
            "Five slots for each user, a hundred in all:",
            "{\n   name         per_user\n   description  NONE\n   enabled      TRUE\n   limit        users {*} to slots=5\n}\n{\n   name         all\n   description  NONE\n   enabled      TRUE\n   limit        to slots=100\n}",
        ),
        see_also: "qquota(1), qconf(1), complex(5)",
    },
];
