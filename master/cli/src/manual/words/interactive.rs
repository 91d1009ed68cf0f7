//! The pages of the commands of interactive jobs.

use super::PageTexts;

/// The page of `qrsh`.
pub const QRSH: PageTexts = PageTexts {
    name: "qrsh",
    description: &[
        "The words of the command are joined by blanks and run by the login shell of the user on the execution \
         host; with `-noshell` they are a program and its arguments. Standard input, output and errors are those \
         of this command. Without a command a login shell is run, with a terminal if standard input is one.",
        "The job starts at once or is given up, unless `-now n` is said. Its queue has `INTERACTIVE` in its \
         `qtype`, with `-now n` `BATCH`.",
        "A session goes on over a restart of the master and over 80 s without a network. `~.` at the beginning of \
         a line leaves a session with a terminal; its job is deleted.",
        "With `-inherit` the command is a task of the parallel job that it is called in. MPI libraries that know \
         Grid Engine call it in this way by themselves.",
    ],
    examples: &[
        ("qrsh -l h_vmem=2G make", "A command as a job, its output here."),
        ("qrsh -pty y top", "A program that needs a terminal."),
        (
            "qrsh -inherit node2 hostname",
            "In a parallel job: a command on another of its hosts.",
        ),
    ],
    environment: &[
        (
            "JOB_ID, SGE_TASK_ID",
            "With `-inherit`: the job that the command belongs to.",
        ),
        (
            "GRIDWRIGHT_QRSH_ESCAPE",
            "The character in the place of `~` in `~.`, or `none`.",
        ),
        ("TERM", "The kind of terminal, which the job gets."),
    ],
    files: &[],
    see_also: &["qlogin(1)", "qsub(1)", "sge_pe(5)"],
};

/// The page of `qlogin`.
pub const QLOGIN: PageTexts = PageTexts {
    name: "qlogin",
    description: &["What qrsh(1) without a command does, with a word about each step."],
    examples: &[("qlogin -l h_rt=3600", "A login shell for an hour.")],
    environment: &[(
        "GRIDWRIGHT_QRSH_ESCAPE",
        "The character in the place of `~` in `~.`, or `none`.",
    )],
    files: &[],
    see_also: &["qrsh(1)", "qsub(1)"],
};

/// The page of `qsh`.
pub const QSH: PageTexts = PageTexts {
    name: "qsh",
    description: &[
        "The program is `xterm` of sge_conf(5). The execution host connects to the display by itself: nothing is \
         forwarded.",
    ],
    examples: &[("qsh -display desk7:0", "A window on another machine's screen.")],
    environment: &[("DISPLAY", "The display, unless `-display` names it.")],
    files: &[],
    see_also: &["qrsh(1)", "sge_conf(5)"],
};

pub const QMAKE: PageTexts = PageTexts {
    name: "qmake",
    description: &[
        "Make is GNU make of the host. With `-pe` a parallel job is submitted by qrsh(1), and the lines of \
         recipes run in its slots: those of the first slot on the host of make, the others as slave tasks. \
         The parallel environment has `control_slaves TRUE`; `job_is_first_task` may be either. Inside of \
         a parallel job, `-inherit` uses the slots of that job. Make gets `-j` with the number of slots, \
         unless `-j` is given.",
        "Without `-pe` and outside of a parallel job, each line is a job of its own, which qrsh(1) \
         submits with the options before `--`. A line that begins with `SGE_RREQ=\"OPTIONS\"` has these \
         options too. A line with `$(MAKE)` starts a make on the same host, and the lines of that make \
         are spread like all others.",
        "Lines of one recipe may run on different hosts: a line does not see what a daemon or `cd` of \
         another one did. Files that a line writes are seen by others once the file system shows them.",
    ],
    examples: &[
        (
            "qmake -cwd -v PATH -pe make 4 -- -k all",
            "Four lines at once, in a job of four slots.",
        ),
        ("qsub -cwd -v PATH -pe make 4 -b y qmake -inherit --", "In a batch job."),
    ],
    environment: &[("SGE_RREQ", "At the beginning of a recipe line: options for its job.")],
    files: &[],
    see_also: &["qrsh(1)", "qsub(1)", "sge_pe(5)"],
};
