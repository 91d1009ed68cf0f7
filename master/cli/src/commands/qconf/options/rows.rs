//! The table of the options of `qconf`, each with what it does.

use super::Verb::{
    Add, AddFile, AddNames, Attribute, AttributeFile, Clean, ClearUsage, Delete, Detached, Enlist, Entries,
    EventClients, Export, GroupHosts, GroupTree, Import, KillEventClients, ListCategories, Modify, ModifyFile, Purge,
    Quotas, SchedulerHost, Search, Setting, Show, ShowCategories, ShutdownAgents, ShutdownMaster, Strike, Tree,
    TriggerScheduling,
};
use super::{DRY_RUN, Verb};
use crate::args::ValueCount::{AtLeast, One};
use crate::args::{OptionDef, flag, unsupported, with};
use crate::commands::qconf::entries::EntryAct;
use crate::commands::qconf::quotas::Act;
use crate::commands::qconf::sharetree::TreeAction;
use proto::object::ObjectKind;
use proto::object::ObjectKind::{
    AdminHosts, Calendar, Checkpoint, ClusterConf, ComplexTable, ExecHost, HostGroup, Managers, Operators, Pe, Project,
    Queue, ResourceQuota, SchedulerConf, ShareTree, SubmitHosts, User, UserSet,
};
use proto::wire::client::AttributeEdit;

/// An option and what it does.
pub(super) struct OptionRow(pub(super) OptionDef, pub(super) Verb);

/// An option that lists names.
const fn list(option: OptionDef, kind: ObjectKind, nothing: &'static str) -> OptionRow {
    OptionRow(option, Verb::List { kind, nothing })
}

/// An option that the parser refuses.
const fn never(option: OptionDef, instead: &'static str) -> OptionRow {
    OptionRow(unsupported(option, instead), Verb::Setting)
}

const EDIT: &str = "obj_nm attr_nm val obj_id_list";
const EDIT_FILE: &str = "obj_nm fname obj_id_list";
const OF_JOBS: &str = "8.1.9 lists it in the help of qconf by mistake; it is an option of qsub";
const SCHEDULER: &str = "the scheduler is a part of the master and lives as long: qconf -km, gridwright down";

/// In the order of `-help` of 8.1.9.
pub(super) const ROWS: &[OptionRow] = &[
    OptionRow(
        with("-aattr", AtLeast(3), EDIT, "add to a list attribute of an object"),
        Attribute(AttributeEdit::Add),
    ),
    OptionRow(
        with("-Aattr", AtLeast(3), EDIT_FILE, "add to a list attribute of an object"),
        AttributeFile(AttributeEdit::Add),
    ),
    OptionRow(with("-acal", One, "calendar_name", "add a new calendar"), Add(Calendar)),
    OptionRow(
        with("-Acal", One, "fname", "add a new calendar from file"),
        AddFile(Calendar),
    ),
    OptionRow(
        with("-ace", One, "attribute_name", "add a complex attribute"),
        Entries(EntryAct::Add),
    ),
    OptionRow(
        with("-Ace", One, "fname", "add a complex attribute from file"),
        Entries(EntryAct::AddFile),
    ),
    OptionRow(
        with("-ackpt", One, "ckpt_name", "add a checkpointing interface definition"),
        Add(Checkpoint),
    ),
    OptionRow(
        with(
            "-Ackpt",
            One,
            "fname",
            "add a checkpointing interface definition from file",
        ),
        AddFile(Checkpoint),
    ),
    OptionRow(with("-aconf", One, "host_list", "add configurations"), Add(ClusterConf)),
    OptionRow(
        with("-Aconf", One, "file_list", "add configurations from file_list"),
        AddFile(ClusterConf),
    ),
    OptionRow(
        with(
            "-ae",
            AtLeast(0),
            "[exec_server_template]",
            "add an exec host using a template",
        ),
        Add(ExecHost),
    ),
    OptionRow(
        with("-Ae", One, "fname", "add an exec host from file"),
        AddFile(ExecHost),
    ),
    OptionRow(
        with("-ah", One, "hostname_list", "add an administrative host"),
        AddNames(AdminHosts),
    ),
    OptionRow(with("-ahgrp", One, "group", "add new host group entry"), Add(HostGroup)),
    OptionRow(
        with("-Ahgrp", One, "file", "add new host group entry from file"),
        AddFile(HostGroup),
    ),
    OptionRow(
        with("-arqs", AtLeast(0), "[rqs_list]", "add resource quota set(s)"),
        Quotas(Act::Add),
    ),
    OptionRow(
        with("-Arqs", One, "fname", "add resource quota set(s) from file"),
        Quotas(Act::AddFile),
    ),
    OptionRow(
        with("-am", One, "user_list", "add user to manager list"),
        AddNames(Managers),
    ),
    OptionRow(
        with("-ao", One, "user_list", "add user to operator list"),
        AddNames(Operators),
    ),
    OptionRow(with("-ap", One, "pe-name", "add a new parallel environment"), Add(Pe)),
    OptionRow(
        with("-Ap", One, "fname", "add a new parallel environment from file"),
        AddFile(Pe),
    ),
    OptionRow(flag("-aprj", "add project"), Add(Project)),
    OptionRow(with("-Aprj", One, "fname", "add project from file"), AddFile(Project)),
    OptionRow(
        with("-aq", AtLeast(0), "[queue_name]", "add a new cluster queue"),
        Add(Queue),
    ),
    OptionRow(with("-Aq", One, "fname", "add a queue from file"), AddFile(Queue)),
    never(with("-ar", One, "ar_id", "bind job to advance reservation"), OF_JOBS),
    OptionRow(
        with("-as", One, "hostname_list", "add a submit host"),
        AddNames(SubmitHosts),
    ),
    OptionRow(
        with("-astnode", One, "node_shares_list", "add sharetree node(s)"),
        Tree(TreeAction::AddNodes),
    ),
    OptionRow(flag("-astree", "create/modify the sharetree"), Tree(TreeAction::Edit)),
    OptionRow(
        with("-Astree", One, "fname", "create/modify the sharetree from file"),
        AddFile(ShareTree),
    ),
    OptionRow(
        with(
            "-au",
            AtLeast(1),
            "user_list listname_list",
            "add user(s) to userset list(s)",
        ),
        Enlist,
    ),
    OptionRow(with("-Au", One, "fname", "add userset from file"), AddFile(UserSet)),
    OptionRow(flag("-auser", "add user"), Add(User)),
    OptionRow(with("-Auser", One, "fname", "add user from file"), AddFile(User)),
    never(with("-ckpt", One, "ckpt-name", "request checkpoint method"), OF_JOBS),
    never(flag("-clear", "skip previous definitions for job"), OF_JOBS),
    OptionRow(
        with(
            "-clearusage",
            AtLeast(0),
            "[user_list]",
            "clear sharetree usage for user_list or all users/projects",
        ),
        ClearUsage,
    ),
    OptionRow(with("-cq", One, "wc_queue_list", "clean queue"), Clean),
    OptionRow(
        with("-dattr", AtLeast(3), EDIT, "delete from a list attribute of an object"),
        Attribute(AttributeEdit::Delete),
    ),
    OptionRow(
        with(
            "-Dattr",
            AtLeast(3),
            EDIT_FILE,
            "delete from a list attribute of an object",
        ),
        AttributeFile(AttributeEdit::Delete),
    ),
    OptionRow(with("-dcal", One, "calendar_name", "delete calendar"), Delete(Calendar)),
    OptionRow(
        with("-dce", One, "attribute_name", "delete a complex attribute"),
        Entries(EntryAct::Delete),
    ),
    OptionRow(
        with("-dckpt", One, "ckpt_name", "delete checkpointing interface definition"),
        Delete(Checkpoint),
    ),
    OptionRow(
        with("-dconf", One, "host_list", "delete local configurations"),
        Delete(ClusterConf),
    ),
    OptionRow(with("-de", One, "host_list", "delete exec host"), Delete(ExecHost)),
    never(
        with(
            "-display",
            One,
            "display",
            "set DISPLAY variable inside interactive job (not available for qrsh without command)",
        ),
        OF_JOBS,
    ),
    OptionRow(
        with("-dh", One, "host_list", "delete administrative host"),
        Delete(AdminHosts),
    ),
    OptionRow(
        with("-dhgrp", One, "group", "delete host group entry"),
        Delete(HostGroup),
    ),
    never(
        with("-dl", One, "date_time", "request a deadline initiation time"),
        OF_JOBS,
    ),
    OptionRow(
        with("-drqs", One, "rqs_list", "delete resource quota set(s)"),
        Delete(ResourceQuota),
    ),
    OptionRow(
        with("-dm", One, "user_list", "delete user from manager list"),
        Delete(Managers),
    ),
    OptionRow(
        with("-do", One, "user_list", "delete user from operator list"),
        Delete(Operators),
    ),
    OptionRow(with("-dp", One, "pe-name", "delete parallel environment"), Delete(Pe)),
    OptionRow(with("-dprj", One, "project_list", "delete project"), Delete(Project)),
    OptionRow(with("-dq", One, "wc_queue_list", "delete queue"), Delete(Queue)),
    OptionRow(with("-ds", One, "host_list", "delete submit host"), Delete(SubmitHosts)),
    OptionRow(
        with("-dstnode", One, "node_list", "delete sharetree node(s)"),
        Tree(TreeAction::DeleteNodes),
    ),
    OptionRow(flag("-dstree", "delete the sharetree"), Tree(TreeAction::Delete)),
    OptionRow(
        with(
            "-du",
            AtLeast(1),
            "user_list listname_list",
            "delete user(s) from userset list(s)",
        ),
        Strike,
    ),
    OptionRow(
        with("-dul", One, "listname_list", "delete userset list(s) completely"),
        Delete(UserSet),
    ),
    OptionRow(with("-duser", One, "user_list", "delete user(s)"), Delete(User)),
    OptionRow(flag("-help", "print this help"), Setting),
    OptionRow(
        with(
            "-ke",
            One,
            "host_list",
            "shut down the agents of these hosts (or all); their jobs go on",
        ),
        ShutdownAgents { kill_jobs: false },
    ),
    OptionRow(
        with("-kej", One, "host_list", "the same, and end their jobs first"),
        ShutdownAgents { kill_jobs: true },
    ),
    OptionRow(flag("-km", "shut down the master"), ShutdownMaster),
    never(flag("-ks", "shut down the scheduler"), SCHEDULER),
    OptionRow(
        with("-kec", One, "evid_list", "kill event clients by their numbers, or all"),
        KillEventClients,
    ),
    never(with("-at", One, "thread_name", "start qmaster thread"), SCHEDULER),
    never(with("-kt", One, "thread_name", "kill qmaster thread"), SCHEDULER),
    OptionRow(
        with(
            "-Mattr",
            AtLeast(3),
            EDIT_FILE,
            "modify an attribute (or element in a sublist) of an object",
        ),
        AttributeFile(AttributeEdit::Modify),
    ),
    OptionRow(
        with(
            "-mattr",
            AtLeast(3),
            EDIT,
            "modify an attribute (or element in a sublist) of an object",
        ),
        Attribute(AttributeEdit::Modify),
    ),
    OptionRow(flag("-mc", "modify complex attributes"), Modify(ComplexTable)),
    OptionRow(
        with("-Mc", One, "fname", "modify complex attributes from file"),
        ModifyFile(ComplexTable),
    ),
    OptionRow(with("-mcal", One, "calendar_name", "modify calendar"), Modify(Calendar)),
    OptionRow(
        with("-Mcal", One, "fname", "modify calendar from file"),
        ModifyFile(Calendar),
    ),
    OptionRow(
        with("-mce", One, "attribute_name", "modify a complex attribute"),
        Entries(EntryAct::Modify),
    ),
    OptionRow(
        with("-Mce", One, "fname", "modify a complex attribute from file"),
        Entries(EntryAct::ModifyFile),
    ),
    OptionRow(
        with(
            "-mckpt",
            One,
            "ckpt_name",
            "modify a checkpointing interface definition",
        ),
        Modify(Checkpoint),
    ),
    OptionRow(
        with(
            "-Mckpt",
            One,
            "fname",
            "modify a checkpointing interface definition from file",
        ),
        ModifyFile(Checkpoint),
    ),
    OptionRow(
        with("-mconf", AtLeast(0), "[host_list|global]", "modify configurations"),
        Modify(ClusterConf),
    ),
    OptionRow(
        with("-Mconf", One, "file_list", "modify configurations from file_list"),
        ModifyFile(ClusterConf),
    ),
    OptionRow(with("-me", One, "server", "modify exec server"), Modify(ExecHost)),
    OptionRow(
        with("-Me", One, "fname", "modify exec server from file"),
        ModifyFile(ExecHost),
    ),
    OptionRow(
        with("-mhgrp", One, "group", "modify host group entry"),
        Modify(HostGroup),
    ),
    OptionRow(
        with("-Mhgrp", One, "file", "modify host group entry from file"),
        ModifyFile(HostGroup),
    ),
    OptionRow(
        with("-mrqs", AtLeast(0), "[rqs_list]", "modify resource quota set(s)"),
        Quotas(Act::Modify),
    ),
    OptionRow(
        with(
            "-Mrqs",
            AtLeast(1),
            "fname [rqs_list]",
            "modify resource quota set(s) from file",
        ),
        Quotas(Act::ModifyFile),
    ),
    OptionRow(with("-mp", One, "pe-name", "modify a parallel environment"), Modify(Pe)),
    OptionRow(
        with("-Mp", One, "fname", "modify a parallel environment from file"),
        ModifyFile(Pe),
    ),
    OptionRow(with("-mprj", One, "project", "modify a project"), Modify(Project)),
    OptionRow(
        with("-Mprj", One, "fname", "modify project from file"),
        ModifyFile(Project),
    ),
    OptionRow(with("-mq", One, "queue", "modify a queue"), Modify(Queue)),
    OptionRow(with("-Mq", One, "fname", "modify a queue from file"), ModifyFile(Queue)),
    OptionRow(flag("-msconf", "modify scheduler configuration"), Modify(SchedulerConf)),
    OptionRow(
        with("-Msconf", One, "fname", "modify scheduler configuration from file"),
        ModifyFile(SchedulerConf),
    ),
    OptionRow(
        with("-mstnode", One, "node_shares_list", "modify sharetree node(s)"),
        Tree(TreeAction::ModifyNodes),
    ),
    OptionRow(flag("-mstree", "modify/create the sharetree"), Tree(TreeAction::Edit)),
    // As in 8.1.9 either option makes a tree or replaces one.
    OptionRow(
        with("-Mstree", One, "fname", "modify/create the sharetree from file"),
        AddFile(ShareTree),
    ),
    OptionRow(
        with("-mu", One, "listname_list", "modify the given userset list"),
        Modify(UserSet),
    ),
    OptionRow(
        with("-Mu", One, "fname", "modify userset from file"),
        ModifyFile(UserSet),
    ),
    OptionRow(with("-muser", One, "user", "modify a user"), Modify(User)),
    OptionRow(
        with("-Muser", One, "fname", "modify a user from file"),
        ModifyFile(User),
    ),
    OptionRow(
        with(
            "-purge",
            AtLeast(3),
            "obj_nm3 attr_nm objectname",
            "deletes attribute from object_instance",
        ),
        Purge,
    ),
    never(with("-R", One, "y[es]|n[o]", "reservation desired"), OF_JOBS),
    OptionRow(
        with("-rattr", AtLeast(3), EDIT, "replace a list attribute of an object"),
        Attribute(AttributeEdit::Replace),
    ),
    OptionRow(
        with("-Rattr", AtLeast(3), EDIT_FILE, "replace a list attribute of an object"),
        AttributeFile(AttributeEdit::Replace),
    ),
    OptionRow(
        with("-rsstnode", One, "node_list", "show sharetree node(s) and its children"),
        Tree(TreeAction::Show),
    ),
    OptionRow(flag("-sc", "show complex attributes"), Show(ComplexTable)),
    OptionRow(
        with("-scal", One, "calendar_name", "show given calendar"),
        Show(Calendar),
    ),
    list(
        flag("-scall", "show a list of all calendar names"),
        Calendar,
        "no calendar defined",
    ),
    OptionRow(
        with("-sce", One, "attribute_name", "show a complex attribute"),
        Entries(EntryAct::Show),
    ),
    OptionRow(
        flag("-scel", "show a list of all complex attributes"),
        Entries(EntryAct::List),
    ),
    OptionRow(
        with("-sckpt", One, "ckpt_name", "show checkpointing interface definition"),
        Show(Checkpoint),
    ),
    list(
        flag("-sckptl", "show all checkpointing interface definitions"),
        Checkpoint,
        "no ckpt interface definition defined",
    ),
    OptionRow(
        with(
            "-scat",
            One,
            "category_id_list",
            "show categories of jobs by their numbers",
        ),
        ShowCategories,
    ),
    OptionRow(
        flag(
            "-scatl",
            "show a list of all categories of jobs, with how many jobs each has",
        ),
        ListCategories,
    ),
    OptionRow(
        with("-sconf", AtLeast(0), "[host_list|global]", "show configurations"),
        Show(ClusterConf),
    ),
    list(
        flag("-sconfl", "show a list of all local configurations"),
        ClusterConf,
        "no config defined",
    ),
    OptionRow(flag("-sds", "show detached settings"), Detached),
    OptionRow(with("-se", One, "server", "show given exec server"), Show(ExecHost)),
    OptionRow(flag("-secl", "show event client list"), EventClients),
    list(
        flag("-sel", "show a list of all exec servers"),
        ExecHost,
        "no execution host defined",
    ),
    list(
        flag("-sh", "show a list of all administrative hosts"),
        AdminHosts,
        "no administrative host defined",
    ),
    OptionRow(with("-shgrp", One, "group", "show host group"), Show(HostGroup)),
    OptionRow(
        with(
            "-shgrp_tree",
            One,
            "group",
            "show host group and used hostgroups as tree",
        ),
        GroupTree,
    ),
    OptionRow(
        with(
            "-shgrp_resolved",
            One,
            "group",
            "show host group with resolved hostlist",
        ),
        GroupHosts,
    ),
    list(
        flag("-shgrpl", "show host group list"),
        HostGroup,
        "no host group list defined",
    ),
    list(
        flag("-sm", "show a list of all managers"),
        Managers,
        "no manager defined",
    ),
    list(
        flag("-so", "show a list of all operators"),
        Operators,
        "no operator defined",
    ),
    OptionRow(
        with(
            "-sobjl",
            AtLeast(3),
            "obj_nm2 attr_nm val",
            "show objects which match the given value",
        ),
        Search,
    ),
    OptionRow(with("-sp", One, "pe-name", "show a parallel environment"), Show(Pe)),
    list(
        flag("-spl", "show all parallel environments"),
        Pe,
        "no parallel environment defined",
    ),
    OptionRow(with("-sprj", One, "project", "show a project"), Show(Project)),
    list(
        flag("-sprjl", "show a list of all projects"),
        Project,
        "no project list defined",
    ),
    OptionRow(
        with("-sq", AtLeast(0), "[wc_queue_list]", "show the given queue"),
        Show(Queue),
    ),
    list(
        flag("-sql", "show a list of all queues"),
        Queue,
        "no cqueue list defined",
    ),
    OptionRow(
        with("-srqs", AtLeast(0), "[rqs_list]", "show resource quota set(s)"),
        Quotas(Act::Show),
    ),
    list(
        flag("-srqsl", "show resource quota set list"),
        ResourceQuota,
        "no resource quota set list defined",
    ),
    list(
        flag("-ss", "show a list of all submit hosts"),
        SubmitHosts,
        "no submit host defined",
    ),
    OptionRow(flag("-ssconf", "show scheduler configuration"), Show(SchedulerConf)),
    OptionRow(flag("-sss", "show the host of the scheduler"), SchedulerHost),
    OptionRow(
        with("-sstnode", One, "node_list", "show sharetree node(s)"),
        Tree(TreeAction::Show),
    ),
    OptionRow(flag("-sst", "show a formatted sharetree"), Tree(TreeAction::Formatted)),
    OptionRow(flag("-sstree", "show the sharetree"), Show(ShareTree)),
    OptionRow(
        with("-su", One, "listname_list", "show the given userset list"),
        Show(UserSet),
    ),
    list(
        flag("-sul", "show a list of all userset lists"),
        UserSet,
        "no userset list defined",
    ),
    OptionRow(with("-suser", One, "user_list", "show user(s)"), Show(User)),
    list(
        flag("-suserl", "show a list of all users"),
        User,
        "no user list defined",
    ),
    never(
        with(
            "-tc",
            One,
            "max_running_tasks",
            "throttle the number of concurrent tasks",
        ),
        OF_JOBS,
    ),
    OptionRow(flag("-tsm", "trigger scheduler monitoring"), TriggerScheduling),
    never(flag("-verbose", "verbose information output"), OF_JOBS),
    never(
        with(
            "-w",
            One,
            "e|w|n|v|p",
            "verify mode (error|warning|none|just verify|poke) for jobs",
        ),
        OF_JOBS,
    ),
    OptionRow(
        with(
            "-export",
            One,
            "dir",
            "write the whole configuration into a directory, a file for each object",
        ),
        Export,
    ),
    OptionRow(
        with(
            "-import",
            One,
            "dir",
            "take over what -export, or save_sge_config.sh of 8.1.9, has written",
        ),
        Import,
    ),
    OptionRow(
        flag(
            DRY_RUN,
            "with -import, -A… and -M…: show what would change, and change nothing",
        ),
        Setting,
    ),
    OptionRow(
        with("-fmt", One, "json|text", "how the -s options print (default: text)"),
        Setting,
    ),
];
