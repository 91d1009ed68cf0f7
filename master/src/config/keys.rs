//! The keys of the configuration files, with their limits, defaults and meaning. A limit that is
//! raised costs memory as its text says.

/// One key of a file.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What its value looks like.
    pub form: Form,
    /// Its value where the file does not name it; none if the file must.
    pub default: Option<&'static str>,
    /// What it means.
    pub doc: &'static str,
}

/// What a value looks like.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// A text in quotes.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number between two bounds, both allowed.
    Count {
        /// The least.
        min: i64,
        /// The largest.
        max: i64,
    },
}

const fn text(name: &'static str, default: Option<&'static str>, doc: &'static str) -> Key {
    Key {
        name,
        form: Form::Text,
        default,
        doc,
    }
}

const fn count(name: &'static str, min: i64, max: i64, default: &'static str, doc: &'static str) -> Key {
    Key {
        name,
        form: Form::Count { min, max },
        default: Some(default),
        doc,
    }
}

/// Keys that earlier releases wrote and nothing reads: they are passed over.
pub const RETIRED_KEYS: [&str; 1] = ["owner_uids"];

/// `etc/cell.toml`: written when the cell is created.
pub const CELL_KEYS: &[Key] = &[
    text(
        "cell",
        None,
        "The cell for ever: 16 hexadecimal digits, drawn when it was created.",
    ),
    text("master_host", None, "The host of the master."),
    Key {
        name: "port",
        form: Form::Count { min: 1, max: 65_535 },
        default: Some("6444"),
        doc: "The UDP port of the master.",
    },
];

/// `etc/master.toml`.
pub const MASTER_KEYS: &[Key] = &[
    text(
        "listen",
        Some("::"),
        "The address to listen on; :: is every address of the machine, also those of version 4.",
    ),
    count(
        "snapshot_events",
        1_000,
        100_000_000,
        "100000",
        "A snapshot is written after this many events, or as many as there are jobs if these are more. Fewer make a start after a crash\nfaster and cost writes.",
    ),
    Key {
        name: "trim_log",
        form: Form::Flag,
        default: Some("false"),
        doc: "Whether events older than the last but one snapshot are removed from the log. Without them the database\nstays small, but a version that cannot read the snapshots cannot rebuild the cell.",
    },
    count(
        "input_queue",
        64,
        1_000_000,
        "4096",
        "Inputs that may wait for the core before senders have to.",
    ),
    count(
        "query_queue",
        16,
        1_000_000,
        "1024",
        "Questions that may wait for their answer before the next is refused as overload.",
    ),
    count(
        "agent_queue",
        16,
        1_000_000,
        "4096",
        "Messages that may wait for one agent; an agent that does not take them is disconnected and comes back.",
    ),
    count(
        "clients",
        8,
        100_000,
        "2000",
        "Commands that may be connected to the Unix socket at a time. Each costs two descriptors and about 10 KiB.",
    ),
    count(
        "clients_per_user",
        1,
        100_000,
        "500",
        "Of these, the connections of one user; the next one is refused.",
    ),
    count(
        "client_first_s",
        1,
        3_600,
        "10",
        "Seconds that a command may take from its connection to its first message.",
    ),
    count(
        "client_idle_s",
        1,
        604_800,
        "600",
        "Seconds after which a command that asks nothing and waits for nothing is disconnected. One that waits for a job, as\nqsub -sync y, is not idle.",
    ),
    count(
        "waits",
        8,
        1_000_000,
        "10000",
        "Commands that may wait for jobs at a time, those of all hosts together. Each costs about 1 KiB.",
    ),
    count(
        "waits_per_user",
        1,
        1_000_000,
        "2000",
        "Of these, those of one user; the next one is refused.",
    ),
    count(
        "accounting_readers",
        1,
        64,
        "4",
        "Questions of qacct that are read from the database at a time; others take turns with them, part by part.",
    ),
    count(
        "event_queue",
        1_000,
        10_000_000,
        "100000",
        "Events that may wait for one event client (qconf -secl); one that does not take them is cut off and may come back\nwith the number of its last event. They are shared: each costs about 100 bytes, and 1 KiB while nobody else has it.",
    ),
    count(
        "client_requests",
        1,
        10_000,
        "64",
        "Requests of one command that may be under way; the next is read when one is answered.",
    ),
    count(
        "client_frame_bytes",
        65_536,
        536_870_912,
        "16777216",
        "The longest request in bytes: it bounds a job script with its environment.",
    ),
    count(
        "agents",
        8,
        1_000_000,
        "20000",
        "QUIC connections at a time. Each costs about 50 KiB.",
    ),
    count(
        "load_values",
        100,
        1_000_000,
        "1000",
        "Load values that one host may report, those for global and for other hosts included; more are refused singly,\nwhich gridwright sensor status shows. Each costs about 200 bytes three times.",
    ),
    count(
        "load_value_bytes",
        64,
        65_536,
        "1024",
        "The longest load value, and the longest name of one, in bytes.",
    ),
    count(
        "jobs_per_user",
        1,
        4_294_967_295,
        "1000000",
        "Jobs of one user that have not ended; the next one is refused. An array is one job. Each costs about 2 KiB of memory;\nmax_u_jobs of the cluster configuration (qconf -mconf) is a limit of the site's own.",
    ),
    count(
        "job_bytes_per_user",
        1_048_576,
        1_099_511_627_776,
        "1073741824",
        "Bytes of scripts, arguments, environments and lists in the jobs of one user that have not ended; the next one is\nrefused. Equal scripts count once, and of each job 16 KiB are free. Scripts lie on the disk, the rest in memory.",
    ),
    count(
        "disk_reserve_bytes",
        0,
        1_099_511_627_776,
        "16777216",
        "Bytes kept in the file master/reserve. With less than half of that free beside it, the master refuses changes\nexcept those that end something, starts nothing, and records how tasks end; when the disk is full, the file is given up for that. 0: no reserve.",
    ),
    count(
        "log_bytes",
        65_536,
        1_099_511_627_776,
        "16777216",
        "Bytes of log/master.log, where it is used, at which it is turned over: two older files of that size are kept\nbeside it, as master.log.1 and master.log.2.",
    ),
    count(
        "accounting_rotate_bytes",
        0,
        1_099_511_627_776,
        "0",
        "Bytes at which the file accounting is put aside, under its name with the day and a number behind it, and begun anew.\n0: never. qacct -f FILE -rotated reads the files that were put aside too. The database has all records in any case.",
    ),
    count(
        "accounting_rotate_days",
        0,
        36_500,
        "0",
        "Days after which it is put aside, whatever its length. 0: never.",
    ),
    count(
        "accounting_keep_files",
        0,
        1_000_000,
        "0",
        "How many files that were put aside are kept; the oldest beyond that are removed. 0: all.",
    ),
    count(
        "accounting_keep_days",
        0,
        36_500,
        "0",
        "Days for which a file that was put aside is kept after its last record. 0: for ever.",
    ),
    Key {
        name: "accounting_jsonl",
        form: Form::Flag,
        default: Some("false"),
        doc: "Whether each record is also written to accounting/accounting.jsonl, as a JSON object per line; man 5 accounting has\nits keys. It is turned over as the file accounting is.",
    },
    count(
        "certificate_days",
        1,
        3_650,
        "365",
        "Days for which a host's certificate is valid. Agents renew in the last third, and up to 90 days late.",
    ),
];

/// `etc/agent.toml`: read by the agent, written here for this machine.
pub const AGENT_KEYS: &[Key] = &[
    text("host", None, "The name of this host, as in its certificate."),
    text("master_host", None, "The host of the master."),
    Key {
        name: "port",
        form: Form::Count { min: 1, max: 65_535 },
        default: Some("6444"),
        doc: "The UDP port of the master.",
    },
    text(
        "sensor_user",
        Some(""),
        "Under whom load sensors run: a name, or UID:GID; empty: gridwright-sensor where it exists.",
    ),
    count(
        "clients",
        1,
        60_000,
        "1000",
        "Commands of users that may be connected to this host's socket.",
    ),
    count("clients_per_user", 1, 60_000, "200", "Of these, commands of one user."),
    count(
        "client_idle_s",
        1,
        604_800,
        "600",
        "Seconds after which a command that asks nothing and waits for nothing is disconnected.",
    ),
    count(
        "waits",
        1,
        46,
        "46",
        "Commands that may wait for jobs (qsub -sync y): each holds one of the host's 62 streams to the master.",
    ),
    count("waits_per_user", 1, 46, "23", "Of these, commands of one user."),
    count(
        "log_bytes",
        1,
        1_099_511_627_776,
        "16777216",
        "Bytes of the log file, where one is used, at which it is turned over; two older ones are kept.",
    ),
    text(
        "cgroup_parent",
        Some(""),
        "A control group of ours below which each task gets one of its own; empty: none.\nWhat differs for one load sensor is set in a [[sensor]] section: path, and user, interval_s, deadline_s.",
    ),
];
