//! What the pages of commands say that save cells, restore them, and show one.

use super::PageTexts;

pub const BACKUP: PageTexts = PageTexts {
    name: "backup",
    description: &[
        "The cell goes on meanwhile. The event log of the copy is replayed before the file gets its name. The \
         file is a tar archive in an LZ4 frame; `manifest.json` in it lists the others with their checksums.",
    ],
    examples: &[(
        "gridwright backup /backup/cell-$(date +%F) --dir /var/lib/gridwright",
        "Save the cell under the date of today.",
    )],
    environment: &[],
    files: &[],
    see_also: &["gridwright-restore(1)", "gridwright-master(8)"],
};

pub const RESTORE: PageTexts = PageTexts {
    name: "restore",
    description: &[
        "The daemons of the old cell must be down. Nodes connect again by themselves if the new machine has \
         the name, or an alias, under which they look for the master. Jobs on nodes go on. Jobs that \
         started after the backup are ended, and what ran on the master's own host is recorded as lost.",
        "With `--until`, scripts above 4 KiB of jobs that ended since then are gone. The command names these jobs.",
    ],
    examples: &[(
        "gridwright restore /backup/cell-2027-01-31 --dir /tmp/look --until 2027-01-31T13:00",
        "The cell as it was at one o'clock, to look at.",
    )],
    environment: &[],
    files: &[],
    see_also: &["gridwright-backup(1)", "gridwright-up(1)"],
};

pub const DEMO: PageTexts = PageTexts {
    name: "demo",
    description: &["The cell is removed at the end. Each step prints the commands that it runs, and their output."],
    examples: &[("gridwright demo", "See the main features.")],
    environment: &[],
    files: &[],
    see_also: &["gridwright-up(1)"],
};
