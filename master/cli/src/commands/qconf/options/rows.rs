//! The table of the options of `qconf`, each with what it does.

use super::Verb::{
    Add, AddFile, AddNames, Attribute, AttributeFile, Clean, ClearUsage, Delete, Detached, Enlist, EventClients,
    Export, GroupHosts, GroupTree, Import, KillEventClients, ListCategories, Modify, ModifyFile, Purge, Quotas,
    SchedulerHost, Search, Setting, Show, ShowCategories, ShutdownAgents, ShutdownMaster, Strike, Tree,
    TriggerScheduling,
};
use super::{DRY_RUN, Verb};
use crate::args::Values::{AtLeast, One};
use crate::args::{OptionDef, flag, unsupported, with};
use crate::commands::qconf::quotas::Act;
use crate::commands::qconf::sharetree::TreeAction;
use proto::object::ObjectKind;
use proto::object::ObjectKind::{
    AdminHosts, Calendar, Checkpoint, ClusterConf, ComplexTable, ExecHost, HostGroup, Managers, Operators, Pe, Project,
    Queue, ResourceQuota, SchedulerConf, ShareTree, SubmitHosts, User, UserSet,
};
use proto::wire::client::AttributeEdit;

/// An option and what it does.
pub(super) struct Row(pub(super) OptionDef, pub(super) Verb);

/// An option that lists names.
const fn list(option: OptionDef, kind: ObjectKind, nothing: &'static str) -> Row {
    Row(option, Verb::List { kind, nothing })
}

/// An option that the parser refuses.
const fn never(option: OptionDef, instead: &'static str) -> Row {
    Row(unsupported(option, instead), Verb::Setting)
}

const EDIT: &str = "obj_nm attr_nm val obj_id_list";
const EDIT_FILE: &str = "obj_nm fname obj_id_list";
const OF_JOBS: &str = "8.1.9 lists it in the help of qconf by mistake; it is an option of qsub";
const SCHEDULER: &str = "the scheduler is a part of the master and lives as long: qconf -km, gridwright down";

/// In the order of `-help` of 8.1.9.
pub(super) const ROWS: &[Row] = &[
    Row(
        with("-aattr", AtLeast(3), EDIT, "add to a list attribute of an object"),
        Attribute(AttributeEdit::Add),
    ),
    Row(
        with("-Aattr", AtLeast(3), EDIT_FILE, "add to a list attribute of an object"),
        AttributeFile(AttributeEdit::Add),
    ),
    Row(with("-acal", One, "calendar_name", "add a new calendar"), Add(Calendar)),
    Row(
        with("-Acal", One, "fname", "add a new calendar from file"),
        AddFile(Calendar),
    ),
    Row(
        with("-ackpt", One, "ckpt_name", "add a checkpointing interface definition"),
        Add(Checkpoint),
    ),
    Row(
        with(
            "-Ackpt",
            One,
            "fname",
            "add a checkpointing interface definition from file",
        ),
        AddFile(Checkpoint),
    ),
    Row(with("-aconf", One, "host_list", "add configurations"), Add(ClusterConf)),
    Row(
        with("-Aconf", One, "file_list", "add configurations from file_list"),
        AddFile(ClusterConf),
    ),
    Row(
        with(
            "-ae",
            AtLeast(0),
            "[exec_server_template]",
            "add an exec host using a template",
        ),
        Add(ExecHost),
    ),
    Row(
        with("-Ae", One, "fname", "add an exec host from file"),
        AddFile(ExecHost),
    ),
    Row(
        with("-ah", One, "hostname_list", "add an administrative host"),
        AddNames(AdminHosts),
    ),
    Row(with("-ahgrp", One, "group", "add new host group entry"), Add(HostGroup)),
    Row(
        with("-Ahgrp", One, "file", "add new host group entry from file"),
        AddFile(HostGroup),
    ),
    Row(
        with("-arqs", AtLeast(0), "[rqs_list]", "add resource quota set(s)"),
        Quotas(Act::Add),
    ),
    Row(
        with("-Arqs", One, "fname", "add resource quota set(s) from file"),
        Quotas(Act::AddFile),
    ),
    Row(
        with("-am", One, "user_list", "add user to manager list"),
        AddNames(Managers),
    ),
    Row(
        with("-ao", One, "user_list", "add user to operator list"),
        AddNames(Operators),
    ),
    Row(with("-ap", One, "pe-name", "add a new parallel environment"), Add(Pe)),
    Row(
        with("-Ap", One, "fname", "add a new parallel environment from file"),
        AddFile(Pe),
    ),
    Row(flag("-aprj", "add project"), Add(Project)),
    Row(with("-Aprj", One, "fname", "add project from file"), AddFile(Project)),
    Row(
        with("-aq", AtLeast(0), "[queue_name]", "add a new cluster queue"),
        Add(Queue),
    ),
    Row(with("-Aq", One, "fname", "add a queue from file"), AddFile(Queue)),
    never(with("-ar", One, "ar_id", "bind job to advance reservation"), OF_JOBS),
    Row(
        with("-as", One, "hostname_list", "add a submit host"),
        AddNames(SubmitHosts),
    ),
    Row(
        with("-astnode", One, "node_shares_list", "add sharetree node(s)"),
        Tree(TreeAction::AddNodes),
    ),
    Row(flag("-astree", "create/modify the sharetree"), Tree(TreeAction::Edit)),
    Row(
        with("-Astree", One, "fname", "create/modify the sharetree from file"),
        AddFile(ShareTree),
    ),
    Row(
        with(
            "-au",
            AtLeast(1),
            "user_list listname_list",
            "add user(s) to userset list(s)",
        ),
        Enlist,
    ),
    Row(with("-Au", One, "fname", "add userset from file"), AddFile(UserSet)),
    Row(flag("-auser", "add user"), Add(User)),
    Row(with("-Auser", One, "fname", "add user from file"), AddFile(User)),
    never(with("-ckpt", One, "ckpt-name", "request checkpoint method"), OF_JOBS),
    never(flag("-clear", "skip previous definitions for job"), OF_JOBS),
    Row(
        with(
            "-clearusage",
            AtLeast(0),
            "[user_list]",
            "clear sharetree usage for user_list or all users/projects",
        ),
        ClearUsage,
    ),
    Row(with("-cq", One, "wc_queue_list", "clean queue"), Clean),
    Row(
        with("-dattr", AtLeast(3), EDIT, "delete from a list attribute of an object"),
        Attribute(AttributeEdit::Delete),
    ),
    Row(
        with(
            "-Dattr",
            AtLeast(3),
            EDIT_FILE,
            "delete from a list attribute of an object",
        ),
        AttributeFile(AttributeEdit::Delete),
    ),
    Row(with("-dcal", One, "calendar_name", "delete calendar"), Delete(Calendar)),
    Row(
        with("-dckpt", One, "ckpt_name", "delete checkpointing interface definition"),
        Delete(Checkpoint),
    ),
    Row(
        with("-dconf", One, "host_list", "delete local configurations"),
        Delete(ClusterConf),
    ),
    Row(with("-de", One, "host_list", "delete exec host"), Delete(ExecHost)),
    never(
        with(
            "-display",
            One,
            "display",
            "set DISPLAY variable inside interactive job (not available for qrsh without command)",
        ),
        OF_JOBS,
    ),
    Row(
        with("-dh", One, "host_list", "delete administrative host"),
        Delete(AdminHosts),
    ),
    Row(
        with("-dhgrp", One, "group", "delete host group entry"),
        Delete(HostGroup),
    ),
    never(
        with("-dl", One, "date_time", "request a deadline initiation time"),
        OF_JOBS,
    ),
    Row(
        with("-drqs", One, "rqs_list", "delete resource quota set(s)"),
        Delete(ResourceQuota),
    ),
    Row(
        with("-dm", One, "user_list", "delete user from manager list"),
        Delete(Managers),
    ),
    Row(
        with("-do", One, "user_list", "delete user from operator list"),
        Delete(Operators),
    ),
    Row(with("-dp", One, "pe-name", "delete parallel environment"), Delete(Pe)),
    Row(with("-dprj", One, "project_list", "delete project"), Delete(Project)),
    Row(with("-dq", One, "wc_queue_list", "delete queue"), Delete(Queue)),
    Row(with("-ds", One, "host_list", "delete submit host"), Delete(SubmitHosts)),
    Row(
        with("-dstnode", One, "node_list", "delete sharetree node(s)"),
        Tree(TreeAction::DeleteNodes),
    ),
    Row(flag("-dstree", "delete the sharetree"), Tree(TreeAction::Delete)),
    Row(
        with(
            "-du",
            AtLeast(1),
            "user_list listname_list",
            "delete user(s) from userset list(s)",
        ),
        Strike,
    ),
    Row(
        with("-dul", One, "listname_list", "delete userset list(s) completely"),
        Delete(UserSet),
    ),
    Row(with("-duser", One, "user_list", "delete user(s)"), Delete(User)),
    Row(flag("-help", "print this help"), Setting),
    Row(
        with(
            "-ke",
            One,
            "host_list",
            "shut down the agents of these hosts (or all); their jobs go on",
        ),
        ShutdownAgents { kill_jobs: false },
    ),
    Row(
        with("-kej", One, "host_list", "the same, and end their jobs first"),
        ShutdownAgents { kill_jobs: true },
    ),
    Row(flag("-km", "shut down the master"), ShutdownMaster),
    never(flag("-ks", "shut down the scheduler"), SCHEDULER),
    Row(
        with("-kec", One, "evid_list", "kill event clients by their numbers, or all"),
        KillEventClients,
    ),
    never(with("-at", One, "thread_name", "start qmaster thread"), SCHEDULER),
    never(with("-kt", One, "thread_name", "kill qmaster thread"), SCHEDULER),
    Row(
        with(
            "-Mattr",
            AtLeast(3),
            EDIT_FILE,
            "modify an attribute (or element in a sublist) of an object",
        ),
        AttributeFile(AttributeEdit::Modify),
    ),
    Row(
        with(
            "-mattr",
            AtLeast(3),
            EDIT,
            "modify an attribute (or element in a sublist) of an object",
        ),
        Attribute(AttributeEdit::Modify),
    ),
    Row(flag("-mc", "modify complex attributes"), Modify(ComplexTable)),
    Row(
        with("-Mc", One, "fname", "modify complex attributes from file"),
        ModifyFile(ComplexTable),
    ),
    Row(with("-mcal", One, "calendar_name", "modify calendar"), Modify(Calendar)),
    Row(
        with("-Mcal", One, "fname", "modify calendar from file"),
        ModifyFile(Calendar),
    ),
    Row(
        with(
            "-mckpt",
            One,
            "ckpt_name",
            "modify a checkpointing interface definition",
        ),
        Modify(Checkpoint),
    ),
    Row(
        with(
            "-Mckpt",
            One,
            "fname",
            "modify a checkpointing interface definition from file",
        ),
        ModifyFile(Checkpoint),
    ),
    Row(
        with("-mconf", AtLeast(0), "[host_list|global]", "modify configurations"),
        Modify(ClusterConf),
    ),
    Row(
        with("-Mconf", One, "file_list", "modify configurations from file_list"),
        ModifyFile(ClusterConf),
    ),
    Row(with("-me", One, "server", "modify exec server"), Modify(ExecHost)),
    Row(
        with("-Me", One, "fname", "modify exec server from file"),
        ModifyFile(ExecHost),
    ),
    Row(
        with("-mhgrp", One, "group", "modify host group entry"),
        Modify(HostGroup),
    ),
    Row(
        with("-Mhgrp", One, "file", "modify host group entry from file"),
        ModifyFile(HostGroup),
    ),
    Row(
        with("-mrqs", AtLeast(0), "[rqs_list]", "modify resource quota set(s)"),
        Quotas(Act::Modify),
    ),
    Row(
        with(
            "-Mrqs",
            AtLeast(1),
            "fname [rqs_list]",
            "modify resource quota set(s) from file",
        ),
        Quotas(Act::ModifyFile),
    ),
    Row(with("-mp", One, "pe-name", "modify a parallel environment"), Modify(Pe)),
    Row(
        with("-Mp", One, "fname", "modify a parallel environment from file"),
        ModifyFile(Pe),
    ),
    Row(with("-mprj", One, "project", "modify a project"), Modify(Project)),
    Row(
        with("-Mprj", One, "fname", "modify project from file"),
        ModifyFile(Project),
    ),
    Row(with("-mq", One, "queue", "modify a queue"), Modify(Queue)),
    Row(with("-Mq", One, "fname", "modify a queue from file"), ModifyFile(Queue)),
    Row(flag("-msconf", "modify scheduler configuration"), Modify(SchedulerConf)),
    Row(
        with("-Msconf", One, "fname", "modify scheduler configuration from file"),
        ModifyFile(SchedulerConf),
    ),
    Row(
        with("-mstnode", One, "node_shares_list", "modify sharetree node(s)"),
        Tree(TreeAction::ModifyNodes),
    ),
    Row(flag("-mstree", "modify/create the sharetree"), Tree(TreeAction::Edit)),
    // As in 8.1.9 either option makes a tree or replaces one.
    Row(
        with("-Mstree", One, "fname", "modify/create the sharetree from file"),
        AddFile(ShareTree),
    ),
    Row(
        with("-mu", One, "listname_list", "modify the given userset list"),
        Modify(UserSet),
    ),
    Row(
        with("-Mu", One, "fname", "modify userset from file"),
        ModifyFile(UserSet),
    ),
    Row(with("-muser", One, "user", "modify a user"), Modify(User)),
    Row(
        with("-Muser", One, "fname", "modify a user from file"),
        ModifyFile(User),
    ),
    Row(
        with(
            "-purge",
            AtLeast(3),
            "obj_nm3 attr_nm objectname",
            "deletes attribute from object_instance",
        ),
        Purge,
    ),
    never(with("-R", One, "y[es]|n[o]", "reservation desired"), OF_JOBS),
    Row(
        with("-rattr", AtLeast(3), EDIT, "replace a list attribute of an object"),
        Attribute(AttributeEdit::Replace),
    ),
    Row(
        with("-Rattr", AtLeast(3), EDIT_FILE, "replace a list attribute of an object"),
        AttributeFile(AttributeEdit::Replace),
    ),
    Row(
        with("-rsstnode", One, "node_list", "show sharetree node(s) and its children"),
        Tree(TreeAction::Show),
    ),
    Row(flag("-sc", "show complex attributes"), Show(ComplexTable)),
    Row(
        with("-scal", One, "calendar_name", "show given calendar"),
        Show(Calendar),
    ),
    list(
        flag("-scall", "show a list of all calendar names"),
        Calendar,
        "no calendar defined",
    ),
    Row(
        with("-sckpt", One, "ckpt_name", "show checkpointing interface definition"),
        Show(Checkpoint),
    ),
    list(
        flag("-sckptl", "show all checkpointing interface definitions"),
        Checkpoint,
        "no ckpt interface definition defined",
    ),
    Row(
        with(
            "-scat",
            One,
            "category_id_list",
            "show categories of jobs by their numbers",
        ),
        ShowCategories,
    ),
    Row(
        flag(
            "-scatl",
            "show a list of all categories of jobs, with how many jobs each has",
        ),
        ListCategories,
    ),
    Row(
        with("-sconf", AtLeast(0), "[host_list|global]", "show configurations"),
        Show(ClusterConf),
    ),
    list(
        flag("-sconfl", "show a list of all local configurations"),
        ClusterConf,
        "no config defined",
    ),
    Row(flag("-sds", "show detached settings"), Detached),
    Row(with("-se", One, "server", "show given exec server"), Show(ExecHost)),
    Row(flag("-secl", "show event client list"), EventClients),
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
    Row(with("-shgrp", One, "group", "show host group"), Show(HostGroup)),
    Row(
        with(
            "-shgrp_tree",
            One,
            "group",
            "show host group and used hostgroups as tree",
        ),
        GroupTree,
    ),
    Row(
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
    Row(
        with(
            "-sobjl",
            AtLeast(3),
            "obj_nm2 attr_nm val",
            "show objects which match the given value",
        ),
        Search,
    ),
    Row(with("-sp", One, "pe-name", "show a parallel environment"), Show(Pe)),
    list(
        flag("-spl", "show all parallel environments"),
        Pe,
        "no parallel environment defined",
    ),
    Row(with("-sprj", One, "project", "show a project"), Show(Project)),
    list(
        flag("-sprjl", "show a list of all projects"),
        Project,
        "no project list defined",
    ),
    Row(
        with("-sq", AtLeast(0), "[wc_queue_list]", "show the given queue"),
        Show(Queue),
    ),
    list(
        flag("-sql", "show a list of all queues"),
        Queue,
        "no cqueue list defined",
    ),
    Row(
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
    Row(flag("-ssconf", "show scheduler configuration"), Show(SchedulerConf)),
    Row(flag("-sss", "show the host of the scheduler"), SchedulerHost),
    Row(
        with("-sstnode", One, "node_list", "show sharetree node(s)"),
        Tree(TreeAction::Show),
    ),
    Row(flag("-sst", "show a formatted sharetree"), Tree(TreeAction::Formatted)),
    Row(flag("-sstree", "show the sharetree"), Show(ShareTree)),
    Row(
        with("-su", One, "listname_list", "show the given userset list"),
        Show(UserSet),
    ),
    list(
        flag("-sul", "show a list of all userset lists"),
        UserSet,
        "no userset list defined",
    ),
    Row(with("-suser", One, "user_list", "show user(s)"), Show(User)),
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
    Row(flag("-tsm", "trigger scheduler monitoring"), TriggerScheduling),
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
    Row(
        with(
            "-export",
            One,
            "dir",
            "write the whole configuration into a directory, a file for each object",
        ),
        Export,
    ),
    Row(
        with(
            "-import",
            One,
            "dir",
            "take over what -export, or save_sge_config.sh of 8.1.9, has written",
        ),
        Import,
    ),
    Row(
        flag(
            DRY_RUN,
            "with -import, -A… and -M…: show what would change, and change nothing",
        ),
        Setting,
    ),
    Row(
        with("-fmt", One, "json|text", "how the -s options print (default: text)"),
        Setting,
    ),
];
