//! What the pages of commands say beyond the tables of options.

mod cells;
mod hosts;
mod interactive;

/// The texts of one page.
#[derive(Debug)]
pub struct PageTexts {
    /// The command.
    pub name: &'static str,
    /// Paragraphs behind the summary.
    pub description: &'static [&'static str],
    /// Commands, and what each does.
    pub examples: &'static [(&'static str, &'static str)],
    /// Variables that this command alone reads.
    pub environment: &'static [(&'static str, &'static str)],
    /// Files that matter to this command alone.
    pub files: &'static [(&'static str, &'static str)],
    /// Other pages.
    pub see_also: &'static [&'static str],
}

/// The words of a command.
///
/// # Panics
/// If there are none: a test looks for those of every command.
pub fn texts(name: &str) -> &'static PageTexts {
    WORDS
        .iter()
        .find(|words| words.name == name)
        .expect("every command has words")
}

/// Commands that look for no cell.
pub const WITHOUT_CELL: &[&str] = &["man", "completions"];

/// Variables that every command of a cell reads.
pub const ENVIRONMENT: &[(&str, &str)] = &[
    ("GRIDWRIGHT_DIR", "The directory of the cell."),
    (
        "SGE_ROOT",
        "The directory of the cell, if `GRIDWRIGHT_DIR` is not set and the directory holds a cell.",
    ),
    (
        "SGE_CELL",
        "The name of the cell below `SGE_ROOT`: `default`, and no other.",
    ),
];

/// Files that every command of a cell reads.
pub const FILES: &[(&str, &str)] = &[
    (
        "~/.local/state/gridwright",
        "The cell of an ordinary user, if no variable names one.",
    ),
    ("/var/lib/gridwright", "The cell of the host, if there is no other."),
];

/// A row for `gridwright` itself and for each command.
pub const WORDS: &[PageTexts] = &[
    PageTexts {
        name: "gridwright",
        description: &[
            "Gridwright is Grid Engine, rebuilt. A cell is a cluster with its own directory: one master, and \
             an agent on each host.",
            "The first word is the command. Commands of Grid Engine can also be called by their names alone, \
             if there are links of these names to the program.",
        ],
        examples: &[
            (
                "gridwright up --detach\neval \"$(gridwright env)\"\nqsub -b y sleep 60\nqstat",
                "A first cell in your home directory, and a job in it.",
            ),
            (
                "gridwright explain 7",
                "Why a job waits, where it runs, or how it ended.",
            ),
        ],
        environment: &[],
        files: &[],
        see_also: &[
            "gridwright-up(1)",
            "gridwright-doctor(1)",
            "gridwright-explain(1)",
            "qsub(1)",
            "qstat(1)",
            "qconf(1)",
            "gridwright-master(8)",
        ],
    },
    PageTexts {
        name: "up",
        description: &[
            "A directory that is not yet a cell becomes one: with the queue `all.q`, three parallel \
             environments and this host. Ordinary users can have cells of their own; their jobs then run \
             under the account of this user alone.",
            "The command is repeatable: it starts the daemons that do not run.",
        ],
        examples: &[
            (
                "gridwright up --dir ~/cell --detach --slots 4",
                "A cell in a directory of your own, with four slots.",
            ),
            (
                "gridwright up --dir /tmp/big --detach --sim-hosts 100 --slots 16",
                "A cell with 100 hosts that only pretend to run jobs.",
            ),
        ],
        environment: &[("SGE_QMASTER_PORT", "The UDP port of a new cell.")],
        files: &[],
        see_also: &[
            "gridwright-down(1)",
            "gridwright-env(1)",
            "gridwright-join(1)",
            "gridwright-master(8)",
        ],
    },
    PageTexts {
        name: "down",
        description: &["Jobs go on, and the next `gridwright up` finds them."],
        examples: &[("gridwright down --dir ~/cell", "End the daemons of a cell.")],
        environment: &[],
        files: &[],
        see_also: &["gridwright-up(1)"],
    },
    PageTexts {
        name: "env",
        description: &["The settings name the cell and put the commands on the search path."],
        examples: &[(
            "eval \"$(gridwright env --dir ~/cell)\"",
            "Work with a cell in this shell.",
        )],
        environment: &[],
        files: &[],
        see_also: &["gridwright-up(1)"],
    },
    PageTexts {
        name: "join",
        description: &[
            "The host gets certificates of the cell's own authority. Its launcher and agent are started. Each host takes one \
             use of the token.",
        ],
        examples: &[
            (
                "(umask 077; gridwright token create >token)",
                "Create a token on the master's host.",
            ),
            (
                "gridwright join MASTER --token-file token",
                "Use it on the new host, where the file has been copied.",
            ),
        ],
        environment: &[],
        files: &[],
        see_also: &["gridwright-token(1)", "gridwright-host(1)", "gridwright-agent(8)"],
    },
    PageTexts {
        name: "token",
        description: &["A token is a secret that lets hosts join the cell. Managers make it."],
        examples: &[
            (
                "gridwright token create --uses 10 --valid 1d --hosts 'node*'",
                "A token for ten hosts of a pattern, valid for a day.",
            ),
            ("gridwright token revoke ID", "Take it back."),
        ],
        environment: &[],
        files: &[],
        see_also: &["gridwright-join(1)", "gridwright-host(1)"],
    },
    PageTexts {
        name: "host",
        description: &[],
        examples: &[
            ("gridwright host list", "Which hosts there are and whether they report."),
            (
                "gridwright host remove --dry-run node7",
                "What names a host, without changing anything.",
            ),
            (
                "qmod -d '*@node7'\ngridwright host remove node7",
                "Take a host out of the cell.",
            ),
        ],
        environment: &[],
        files: &[],
        see_also: &["gridwright-join(1)", "gridwright-token(1)", "qhost(1)", "qmod(1)"],
    },
    cells::BACKUP,
    cells::RESTORE,
    cells::FINALIZE,
    PageTexts {
        name: "doctor",
        description: &[
            "Each check is a line that begins with `ok`, `note` or `BAD`. A finding names its remedy.",
            "With `--cell`, the master answers for all: a host is `BAD` if it has not joined, is not connected, \
             has not reported for `max_unheard` of sge_conf(5), or has queue instances in error; a load sensor is \
             `BAD` if it does not run or its values cannot be used. The lines with `BAD` come first. The answer \
             comes within ten seconds, also where hosts or the master are cut off.",
        ],
        examples: &[
            ("gridwright doctor", "Examine this host."),
            (
                "gridwright doctor --cell",
                "Examine the whole cell, from any of its hosts.",
            ),
            ("gridwright doctor -fmt json", "The same for a program."),
        ],
        environment: &[],
        files: &[],
        see_also: &["gridwright-host(1)", "qping(1)", "gridwright-agent(8)"],
    },
    PageTexts {
        name: "explain",
        description: &[
            "For a job that waits, the answer names the nearest queue instance, what is missing there, and \
             who has it. For a job that has ended, it names the limit or the reason that ended it.",
        ],
        examples: &[
            ("gridwright explain 7", "Why a job waits."),
            (
                "gridwright explain --order 7.3",
                "One task of an array, and its place in the order.",
            ),
        ],
        environment: &[],
        files: &[],
        see_also: &["qstat(1)", "qacct(1)", "qalter(1)"],
    },
    PageTexts {
        name: "events",
        description: &["Events are facts in the order in which they happened, each with its number and its author."],
        examples: &[
            ("gridwright events", "What happens, for people."),
            (
                "gridwright events --fmt json --owner ann",
                "What happens to the jobs of one user, as JSON.",
            ),
        ],
        environment: &[],
        files: &[],
        see_also: &["gridwright-changes(1)", "qevent(1)", "qconf(1)"],
    },
    PageTexts {
        name: "changes",
        description: &[
            "The changes come from the log of events, which a cell keeps whole unless `trim_log` of \
             `etc/master.toml` is set. The last line on standard error says how far back the log goes. Whoever may \
             use `qconf -sq` may ask. Values over 400 bytes are shortened; there are at most 10000 changes, 8 MiB.",
            "`--object` takes names of objects and hosts, queue instances such as `all.q@node1`, numbers of jobs, \
             and kinds: `cluster queue`, `complex`, `scheduler configuration`, `exec host`, `access list`, `job` \
             and so on. The cluster configuration is called `global`.",
        ],
        examples: &[
            ("gridwright changes --since 7d", "The changes of a week."),
            (
                "gridwright changes --object all.q,'all.q@*'",
                "Who changed a queue, or disabled it somewhere.",
            ),
        ],
        environment: &[],
        files: &[],
        see_also: &["gridwright-events(1)", "qconf(1)", "qmod(1)", "gridwright-master(8)"],
    },
    hosts::RESOURCES,
    PageTexts {
        name: "sensor",
        description: &["`check` needs no cell. If the cell answers, names and types of the values are checked too."],
        examples: &[
            (
                "gridwright sensor check /opt/site/licences.sh",
                "Try a script that is to be a load sensor.",
            ),
            ("gridwright sensor status node1", "How the sensors of a host do."),
        ],
        environment: &[],
        files: &[],
        see_also: &["sge_load_sensor(5)", "sge_conf(5)", "complex(5)"],
    },
    PageTexts {
        name: "shares",
        description: &[
            "A node is entitled to its shares among its siblings. What it has used decays with the half-life \
             of the scheduler configuration.",
        ],
        examples: &[
            ("gridwright shares", "The share tree for people."),
            ("gridwright shares -fmt tab -h", "The columns of sge_share_mon."),
        ],
        environment: &[],
        files: &[],
        see_also: &["share_tree(5)", "sched_conf(5)", "qconf(1)"],
    },
    cells::DEMO,
    PageTexts {
        name: "man",
        description: &["The pages come from the tables that the programs themselves use."],
        examples: &[
            ("gridwright man /usr/local/share/man", "For all users."),
            (
                "gridwright man ~/.local/share/man\nman -M ~/.local/share/man qsub",
                "For yourself.",
            ),
        ],
        environment: &[(
            "MANPATH",
            "Where man(1) looks for pages. A trailing colon adds the usual places.",
        )],
        files: &[],
        see_also: &["gridwright(1)", "man(1)"],
    },
    PageTexts {
        name: "completions",
        description: &[
            "The shell then completes commands, options and values. Names of queues, environments, projects, \
             hosts and resources come from the cell.",
        ],
        examples: &[
            ("source <(gridwright completions bash)", "In this bash."),
            (
                "gridwright completions bash >/usr/share/bash-completion/completions/gridwright\ncd \
             /usr/share/bash-completion/completions; ln -s gridwright qsub",
                "For all users of bash. The file is loaded for the name that it has.",
            ),
            (
                "gridwright completions zsh >/usr/local/share/zsh/site-functions/_gridwright",
                "For all users of zsh.",
            ),
            (
                "gridwright completions fish >~/.config/fish/conf.d/gridwright.fish",
                "For yourself in fish.",
            ),
        ],
        environment: &[],
        files: &[],
        see_also: &["gridwright(1)", "bash(1)"],
    },
    PageTexts {
        name: "qsub",
        description: &[
            "The job is a script, whose name is the first word that is not an option, or the text on \
             standard input. With `-b y` it is a command. What follows are arguments of the job. The job \
             does not run at once: it waits until a queue instance has what it asks for.",
            "Options come from three sources, and a later one is stronger: the request files, \
             sge_request(5); the lines of the script that begin with `#$`; the command line. When an option \
             is given more than once, most lists add up, and of single values the last one counts.",
            "A list of resources is `NAME=VALUE`, several with commas. A time is seconds or `hours:minutes:seconds`. Memory \
             has a factor `K`, `M`, `G`, `T` (powers of 1024) or `k`, `m`, `g`, `t` (powers of 1000). Paths \
             may contain `$HOME`, `$USER`, `$JOB_ID`, `$JOB_NAME`, `$HOSTNAME` and `$TASK_ID`.",
        ],
        examples: &[
            (
                "qsub -cwd -j y -l h_rt=0:10:0,h_vmem=2G job.sh",
                "A script, at most ten minutes long, with 2 GiB of memory. Output and errors go to one file in \
             this directory.",
            ),
            (
                "qsub -b y -sync y make all",
                "A command in place of a script; wait for its end.",
            ),
            ("qsub -t 1-100 -tc 10 part.sh", "An array of 100 tasks, ten at a time."),
            (
                "qsub -pe mpi 16-64 solver.sh",
                "From 16 to 64 slots of a parallel environment.",
            ),
            (
                "qsub -hold_jid first second.sh",
                "A job that starts when another one has ended.",
            ),
        ],
        environment: &[],
        files: &[
            ("SGE_ROOT/SGE_CELL/common/sge_request", "Options of all users."),
            ("~/.sge_request, ./.sge_request", "Options of your own."),
            (
                "SGE_ROOT/SGE_CELL/common/sge_aliases, ~/.sge_aliases",
                "Paths of directories on other hosts, sge_aliases(5).",
            ),
        ],
        see_also: &[
            "qalter(1)",
            "qdel(1)",
            "qstat(1)",
            "qacct(1)",
            "qhold(1)",
            "gridwright-explain(1)",
            "sge_request(5)",
            "sge_aliases(5)",
            "complex(5)",
            "queue_conf(5)",
            "sge_pe(5)",
        ],
    },
    PageTexts {
        name: "qstat",
        description: &[
            "Letters of a state: `q` queued, `w` waits, `h` held, `t` is handed to a host, `r` runs, `s` \
             suspended by hand, `S` suspended with its queue, `T` suspended by a threshold, `R` restarted, \
             `E` in error, `d` is being deleted.",
            "Letters of a queue instance: `a` load alarm, `A` suspend alarm, `u` unknown, `d` disabled, `D` \
             disabled by a calendar, `s` suspended, `S` suspended by another queue, `C` suspended by a \
             calendar, `c` ambiguous configuration, `o` orphaned, `P` gives way, `E` in error.",
        ],
        examples: &[
            ("qstat", "Your jobs."),
            ("qstat -j 7", "Everything about a job, and why it waits."),
            ("qstat -f -u '*'", "Queue instances with the jobs of all users."),
            ("qstat -g c", "A line for each cluster queue."),
            ("qstat -fmt json", "For a program."),
        ],
        environment: &[(
            "SGE_LOAD_AVG",
            "The load value in the column of the load; `load_avg` unless set.",
        )],
        files: &[],
        see_also: &[
            "qsub(1)",
            "qhost(1)",
            "qselect(1)",
            "qacct(1)",
            "gridwright-explain(1)",
            "queue_conf(5)",
        ],
    },
    PageTexts {
        name: "qdel",
        description: &[
            "Users delete their own jobs, operators and managers all. A job that runs is ended on its host \
             first.",
        ],
        examples: &[
            (
                "qdel 7\nqdel 8.3\nqdel 'sim*'",
                "A job, one task of an array, all jobs whose names fit.",
            ),
            ("qdel -u ann", "All jobs of a user."),
        ],
        environment: &[],
        files: &[],
        see_also: &["qsub(1)", "qstat(1)", "qmod(1)"],
    },
    PageTexts {
        name: "qhold",
        description: &[
            "A held job does not start. Users set and release holds of kind `u`, operators also `o`, \
             managers also `s`.",
        ],
        examples: &[("qhold 7\nqrls 7", "Keep a job back, and let it go.")],
        environment: &[],
        files: &[],
        see_also: &["qrls(1)", "qalter(1)", "qsub(1)"],
    },
    PageTexts {
        name: "qrls",
        description: &["Users release holds of kind `u`, operators also `o`, managers also `s`."],
        examples: &[
            ("qrls 7", "Release a job."),
            ("qrls 8 -t 1-10", "Release the tasks 1 to 10 of an array."),
        ],
        environment: &[],
        files: &[],
        see_also: &["qhold(1)", "qalter(1)"],
    },
    PageTexts {
        name: "qalter",
        description: &[
            "The options are those of qsub(1) that describe a job. An option replaces what it names as a \
             whole: `-l` all hard requests, `-v` all exported variables. `-ac` and `-dc` change the context \
             that is there.",
        ],
        examples: &[
            (
                "qalter -l h_rt=2:0:0,h_vmem=4G 7",
                "Other requests for a job that waits.",
            ),
            (
                "qalter -P proj1 'sim*'",
                "All your jobs of a name go to another project.",
            ),
            ("qalter -w v 7", "Whether a job could run at all."),
        ],
        environment: &[],
        files: &[],
        see_also: &["qsub(1)", "qhold(1)", "qrls(1)", "qstat(1)"],
    },
    PageTexts {
        name: "qresub",
        description: &["A copy has the options, the script and the environment of the job, and a number of its own."],
        examples: &[("qresub 7", "Submit a job once more.")],
        environment: &[],
        files: &[],
        see_also: &["qsub(1)", "qalter(1)"],
    },
    PageTexts {
        name: "qacct",
        description: &[
            "A record is there before the job leaves qstat(1). Sums are over the records that the options \
             select.",
        ],
        examples: &[
            ("qacct -j 7", "How a job ended and what it used."),
            ("qacct -o -d 30", "What each user used during the last 30 days."),
            (
                "qacct -f /old/accounting -j",
                "The records of an accounting file of Grid Engine.",
            ),
        ],
        environment: &[],
        files: &[(
            "SGE_ROOT/SGE_CELL/common/accounting",
            "The classic accounting file, which the master writes as well.",
        )],
        see_also: &["qstat(1)", "gridwright-explain(1)", "accounting(5)"],
    },
    PageTexts {
        name: "qhost",
        description: &[
            "The values with `-F` are preceded by where they come from: `hl` a load value of the host, `hc` \
             a consumable of the host, `hf` a fixed value of the host, and `gl`, `gc`, `gf` of the cluster.",
        ],
        examples: &[
            ("qhost", "All hosts with their load."),
            ("qhost -h node1 -F", "What one host offers."),
            (
                "qhost -l mem_free=8G",
                "Hosts that report at least 8 GiB of free memory.",
            ),
        ],
        environment: &[],
        files: &[],
        see_also: &["qstat(1)", "qconf(1)", "host_conf(5)", "complex(5)"],
    },
    PageTexts {
        name: "qselect",
        description: &["The output suits other commands that take queue instances."],
        examples: &[("qmod -d $(qselect -q '*@node1')", "Disable all instances on a host.")],
        environment: &[],
        files: &[],
        see_also: &["qstat(1)", "qmod(1)", "queue_conf(5)"],
    },
    PageTexts {
        name: "qquota",
        description: &[],
        examples: &[
            ("qquota", "What is in use of your limits."),
            ("qquota -u '*'", "Of all users."),
        ],
        environment: &[],
        files: &[],
        see_also: &["sge_resource_quota(5)", "qstat(1)", "qconf(1)"],
    },
    PageTexts {
        name: "qmod",
        description: &["A disabled instance takes no new jobs. A suspended one stops those that run there."],
        examples: &[
            ("qmod -d '*@node1'", "Let a host run empty."),
            ("qmod -sj 7\nqmod -usj 7", "Suspend and resume a job."),
            (
                "qmod -cj 7\nqmod -cq all.q@node1",
                "Clear the error state of a job and of a queue instance.",
            ),
        ],
        environment: &[],
        files: &[],
        see_also: &["qstat(1)", "qselect(1)", "queue_conf(5)"],
    },
    PageTexts {
        name: "qconf",
        description: &[
            "`-sX` shows an object, `-aX` adds one and `-mX` changes one in an editor, `-AX` and `-MX` read \
             a file in the form in which `-sX` prints it, `-dX` deletes one. A change is made whole or not \
             at all, and takes effect at once.",
            "Everybody may look. Managers may change everything, operators little, see `qmod`.",
        ],
        examples: &[
            ("qconf -sq all.q", "Show a queue."),
            (
                "qconf -mattr queue slots 4 all.q\nqconf -rattr queue slots 2,[node1=4] all.q",
                "Change one attribute; a value for one host.",
            ),
            (
                "(qconf -sc; echo 'lic l INT <= YES YES 0 0') >complex\nqconf -Mc complex\nqconf -aattr exechost \
             complex_values lic=5 global",
                "Add a licence to the complex, and say how many there are.",
            ),
            (
                "qconf -export conf\nqconf -import conf --dry-run",
                "Keep the configuration in files, and read it back.",
            ),
        ],
        environment: &[
            ("EDITOR", "The editor of `-aX` and `-mX`; `vi` unless set."),
            (
                "SGE_SINGLE_LINE",
                "If set, long values are not broken into several lines.",
            ),
        ],
        files: &[],
        see_also: &[
            "qmod(1)",
            "queue_conf(5)",
            "host_conf(5)",
            "hostgroup(5)",
            "complex(5)",
            "sge_conf(5)",
            "sched_conf(5)",
            "sge_pe(5)",
            "checkpoint(5)",
            "calendar_conf(5)",
            "access_list(5)",
            "project(5)",
            "user(5)",
            "share_tree(5)",
            "sge_resource_quota(5)",
        ],
    },
    PageTexts {
        name: "qrsub",
        description: &["Members of the access list `arusers`, operators and managers may reserve."],
        examples: &[
            (
                "qrsub -a 01020800 -d 2:0:0 -pe mpi 4",
                "Four slots of an environment on 2 January at eight for two hours.",
            ),
            ("qsub -ar 3 solver.sh", "Use reservation 3."),
        ],
        environment: &[],
        files: &[],
        see_also: &["qrstat(1)", "qrdel(1)", "qsub(1)"],
    },
    PageTexts {
        name: "qrstat",
        description: &[],
        examples: &[("qrstat", "Your reservations."), ("qrstat -ar 3", "All about one.")],
        environment: &[],
        files: &[],
        see_also: &["qrsub(1)", "qrdel(1)"],
    },
    PageTexts {
        name: "qrdel",
        description: &[],
        examples: &[("qrdel 3", "Delete a reservation.")],
        environment: &[],
        files: &[],
        see_also: &["qrsub(1)", "qrstat(1)"],
    },
    PageTexts {
        name: "qsched",
        description: &[
            "Jobs that were submitted with `-R y` have slots kept for them when they cannot start. \
             `max_reservation` of the scheduler configuration says for how many jobs.",
        ],
        examples: &[
            ("qsched -a", "What is kept for the jobs of everybody."),
            ("qsched -a -q", "By queue instance."),
        ],
        environment: &[],
        files: &[],
        see_also: &["qsub(1)", "qstat(1)", "sched_conf(5)"],
    },
    interactive::QRSH,
    interactive::QLOGIN,
    interactive::QSH,
    interactive::QMAKE,
    PageTexts {
        name: "qping",
        description: &["Without operands the master of the cell is asked."],
        examples: &[
            ("qping -info", "Whether the master answers, with what it is doing."),
            ("qping -info node1 6445 execd 1", "The agent of a host."),
        ],
        environment: &[(
            "SGE_EXECD_PORT",
            "The port that stands for an agent on the command line; 6445 counts too. Agents listen on no port.",
        )],
        files: &[],
        see_also: &["gridwright-doctor(1)", "qhost(1)"],
    },
    PageTexts {
        name: "qevent",
        description: &["The script gets the event, the number of the job and the number of the task as its arguments."],
        examples: &[(
            "qevent -trigger JB_END /opt/site/ended.sh",
            "Call a script for each job that has ended.",
        )],
        environment: &[],
        files: &[("./qevent.pid", "The process id of the command.")],
        see_also: &["gridwright-events(1)"],
    },
];
