//! How a whole cell lies in a directory: the files and names that `save_sge_config.sh` of 8.1.9
//! writes.

use proto::object::ObjectKind;

/// What a file or a directory of a saved cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedEntry {
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
pub const ENTRIES: &[(&str, SavedEntry)] = &[
    ("centry", SavedEntry::Once(ObjectKind::ComplexTable)),
    ("usersets", SavedEntry::Objects(ObjectKind::UserSet)),
    ("projects", SavedEntry::Objects(ObjectKind::Project)),
    ("users", SavedEntry::Objects(ObjectKind::User)),
    ("calendars", SavedEntry::Objects(ObjectKind::Calendar)),
    ("ckpt", SavedEntry::Objects(ObjectKind::Checkpoint)),
    ("execution", SavedEntry::Objects(ObjectKind::ExecHost)),
    ("hostgroups", SavedEntry::Objects(ObjectKind::HostGroup)),
    ("pe", SavedEntry::Objects(ObjectKind::Pe)),
    ("configurations", SavedEntry::Objects(ObjectKind::ClusterConf)),
    ("schedconf", SavedEntry::Once(ObjectKind::SchedulerConf)),
    ("cqueues", SavedEntry::Objects(ObjectKind::Queue)),
    ("resource_quotas", SavedEntry::Objects(ObjectKind::ResourceQuota)),
    ("sharetree", SavedEntry::Once(ObjectKind::ShareTree)),
    ("admin_hosts", SavedEntry::Names(ObjectKind::AdminHosts)),
    ("submit_hosts", SavedEntry::Names(ObjectKind::SubmitHosts)),
    ("managers", SavedEntry::Names(ObjectKind::Managers)),
    ("operators", SavedEntry::Names(ObjectKind::Operators)),
    ("jobseqnum", SavedEntry::LastJob),
    ("arseqnum", SavedEntry::LastReservation),
    ("cell", SavedEntry::Cell),
    ("backup_date", SavedEntry::Installation),
    ("version", SavedEntry::Installation),
    ("sge_root", SavedEntry::Installation),
    ("sge_cell", SavedEntry::Installation),
    ("ports", SavedEntry::Installation),
    ("win_hosts", SavedEntry::Installation),
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
pub fn entry(name: &str) -> Option<SavedEntry> {
    ENTRIES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, entry)| *entry)
}
