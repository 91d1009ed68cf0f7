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

pub const FINALIZE: PageTexts = PageTexts {
    name: "finalize",
    description: &[
        "A cell has a version. When its programs are replaced by those of a newer release, it keeps the \
         version: features that the older release cannot read are refused, and the older programs can be \
         put back at any time. `gridwright doctor --cell` shows the version.",
        "Finalize the cell when every host runs the new release and nobody wants to go back. The command \
         refuses while an agent of the older release is connected, and names its host. There is no way back \
         but the backup: restore it with the programs of the older release.",
        "A new cell has the newest version.",
    ],
    examples: &[
        ("gridwright finalize --check", "Ask if the cell can be finalized."),
        (
            "gridwright finalize --dir /var/lib/gridwright --backup /backup/before-finalize",
            "Finalize the cell, with the backup in a place of your own.",
        ),
    ],
    environment: &[],
    files: &[(
        "before-version-N-TIME.backup",
        "The backup, in the directory of the cell. Whoever has it has the cell's keys.",
    )],
    see_also: &["gridwright-backup(1)", "gridwright-restore(1)", "gridwright-doctor(1)"],
};

pub const DEMO: PageTexts = PageTexts {
    name: "demo",
    description: &["The cell is removed at the end. Each step prints the commands that it runs, and their output."],
    examples: &[("gridwright demo", "See the main features.")],
    environment: &[],
    files: &[],
    see_also: &["gridwright-up(1)"],
};
