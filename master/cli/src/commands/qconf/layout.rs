//! How a whole cell lies in a directory: the files and names that `save_sge_config.sh` of 8.1.9
//! writes.

use proto::object::ObjectKind;

/// What a file or a directory of a saved cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A directory with one file for each object of a kind, called by its name.
    Objects(ObjectKind),
    /// The file of what exists once.
    Once(ObjectKind),
    /// A file with one name a line.
    Names(ObjectKind),
    /// The last job number.
    LastJob,
    /// The last number of an advance reservation.
    LastReservation,
    /// Something that belongs to the installation and not to the configuration.
    Installation,
    /// `common` of the other cell; files in it that people wrote are to be copied by hand.
    Cell,
}

/// Everything that a saved cell consists of, in the order in which it is taken over: what is named
/// before what names it.
pub const ENTRIES: &[(&str, Entry)] = &[
    ("centry", Entry::Once(ObjectKind::ComplexTable)),
    ("usersets", Entry::Objects(ObjectKind::UserSet)),
    ("projects", Entry::Objects(ObjectKind::Project)),
    ("users", Entry::Objects(ObjectKind::User)),
    ("calendars", Entry::Objects(ObjectKind::Calendar)),
    ("ckpt", Entry::Objects(ObjectKind::Checkpoint)),
    ("execution", Entry::Objects(ObjectKind::ExecHost)),
    ("hostgroups", Entry::Objects(ObjectKind::HostGroup)),
    ("pe", Entry::Objects(ObjectKind::Pe)),
    ("configurations", Entry::Objects(ObjectKind::ClusterConf)),
    ("schedconf", Entry::Once(ObjectKind::SchedulerConf)),
    ("cqueues", Entry::Objects(ObjectKind::Queue)),
    ("resource_quotas", Entry::Objects(ObjectKind::ResourceQuota)),
    ("sharetree", Entry::Once(ObjectKind::ShareTree)),
    ("admin_hosts", Entry::Names(ObjectKind::AdminHosts)),
    ("submit_hosts", Entry::Names(ObjectKind::SubmitHosts)),
    ("managers", Entry::Names(ObjectKind::Managers)),
    ("operators", Entry::Names(ObjectKind::Operators)),
    ("jobseqnum", Entry::LastJob),
    ("arseqnum", Entry::LastReservation),
    ("cell", Entry::Cell),
    ("backup_date", Entry::Installation),
    ("version", Entry::Installation),
    ("sge_root", Entry::Installation),
    ("sge_cell", Entry::Installation),
    ("ports", Entry::Installation),
    ("win_hosts", Entry::Installation),
];

/// Files of `cell` that people wrote and that commands read, where they are put into
/// `default/common`.
pub const WRITTEN: &[&str] = &[
    "sge_request",
    "sge_aliases",
    "sge_qstat",
    "sge_qquota",
    "sge_qrstat",
    "sge_ar_request",
    "host_aliases",
    "qtask",
];

/// What an entry of that name is.
pub fn entry(name: &str) -> Option<Entry> {
    ENTRIES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, entry)| *entry)
}
