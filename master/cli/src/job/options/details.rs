//! What the manual pages say about the options of jobs beyond their line in `-help`: values, the
//! default, an example.

use super::{JobOption as O, Taker};

/// What a page says about an option beyond its line in `-help`. Parts may be empty.
#[derive(Clone, Copy)]
struct OptionText {
    option: O,
    /// Values and effect.
    values: &'static str,
    /// The value of a new job that is submitted without the option. `qalter` and `qresub` leave the
    /// job as it is without the option.
    default: &'static str,
    example: &'static str,
}

const fn text(option: O, values: &'static str) -> OptionText {
    OptionText {
        option,
        values,
        default: "",
        example: "",
    }
}

impl OptionText {
    const fn default(self, default: &'static str) -> OptionText {
        OptionText { default, ..self }
    }

    const fn example(self, example: &'static str) -> OptionText {
        OptionText { example, ..self }
    }

    /// The sentences on the page of a command.
    fn sentences(&self, taker: Taker) -> String {
        let has_default = matches!(taker, Taker::Qsub | Taker::Qrsub);
        let default = if has_default { self.default } else { "" };
        let parts = [("", self.values), ("Default: ", default), ("Example: ", self.example)];
        let given = parts.iter().filter(|(_, text)| !text.is_empty());
        given
            .map(|(label, text)| format!("{label}{text}"))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Details of an option of a command; empty where its line in `-help` says all.
pub fn detail(taker: Taker, option: O) -> String {
    let own = OF_ONE_COMMAND.iter().filter(|(known, _)| *known == taker);
    let shared = match taker {
        Taker::Qsub | Taker::Qalter | Taker::Qresub => OF_JOBS,
        Taker::Qrsub => OF_RESERVATIONS,
    };
    own.map(|(_, text)| text)
        .chain(shared)
        .find(|text| text.option == option)
        .map_or_else(String::new, |text| text.sentences(taker))
}

/// Options that mean something else to one command than to the others.
const OF_ONE_COMMAND: &[(Taker, OptionText)] = &[
    (Taker::Qsub, text(O::Users, "A job is always the caller's.")),
    (
        Taker::Qalter,
        text(O::Tasks, "The form is `N[-M[:STEP]]`.").example("`qalter -h u 7 -t 2-5`."),
    ),
    (
        Taker::Qresub,
        text(O::HoldList, "The copies wait until qrls(1) releases them.").example("`qresub -h u 7`."),
    ),
];

const OF_RESERVATIONS: &[OptionText] = &[
    text(O::StartTime, "The form is `[[CC]YY]MMDDhhmm[.SS]`.")
        .default("now.")
        .example("`-a 12240800`."),
    text(
        O::Resources,
        "The list is `NAME=VALUE`, several with commas; names are those of `qconf -sc`.",
    ),
    text(
        O::ParallelEnvironment,
        "A name or pattern, and a number or range of slots. `qconf -spl` lists the names.",
    )
    .default("one slot."),
    text(
        O::Queues,
        "Names or patterns of queues, `QUEUE@HOST` or `QUEUE@@GROUP`.",
    )
    .default("any queue."),
    text(O::Users, "").default("the caller alone."),
];

const OF_JOBS: &[OptionText] = &[
    text(
        O::Verifier,
        "`[script:]PATH` names a program that sees the job before it is submitted, and accepts, \
         changes or rejects it; jsv(5) tells how. It runs as the user, here, once. Of several, the \
         last one sees the job first: those of the command line, then of the script, of \
         `.sge_request` of the working directory and of the home directory, and of `sge_request` \
         of the cell. A verifier that takes more than 10 s, or `SGE_JSV_TIMEOUT` seconds, is ended \
         and asked once more; then the job is refused.",
    )
    .example("`-jsv /opt/site/check.sh`."),
    text(
        O::StartTime,
        "The form is `[[CC]YY]MMDDhhmm[.SS]`. The job waits at least until then.",
    )
    .default("at once.")
    .example("`-a 12240800`."),
    text(O::AddContext, "The list is `NAME=VALUE`, several with commas.").example("`-ac step=1,of=7`."),
    text(
        O::Reservation,
        "The number is that of qrsub(1). The job runs in the slots of the reservation only.",
    ),
    text(O::Account, "").default("`sge`."),
    text(O::Binary, "")
        .default("`n`, the first word is a script.")
        .example("`qsub -b y sleep 60`."),
    text(
        O::Binding,
        "`linear[:N[:SOCKET,CORE]]` asks for N cores next to one another, `linear` and `linear:slots` for as many as \
         the job has slots on the host; `striding:N:STEP[:SOCKET,CORE]` for N cores, each STEP behind the one before; \
         `explicit:SOCKET,CORE[:…]` for these. Numbers begin with 0. Without a first core the master finds one. With \
         `set` the host binds the job, with `env` the job does so by SGE_BINDING, with `pe` the parallel environment by \
         the fourth column of PE_HOSTFILE. Cores that a job has, no other bound job gets. A job that cannot be bound \
         runs unbound: `gridwright explain` says why.",
    )
    .default("jobs are not bound.")
    .example("`-binding linear:2`."),
    text(
        O::Occasion,
        "`n`: never; `s`: when the agent is shut down; `m`: at the interval of the queue; `x`: \
         when the job is suspended; a time: at this interval.",
    )
    .default("as the checkpointing environment says."),
    text(
        O::Checkpoint,
        "The environment is described in checkpoint(5). `qconf -sckptl` lists the names.",
    ),
    text(
        O::Clear,
        "It drops all options in front of it, and those of earlier sources: in a script those of \
         the request files, on the command line also those of the script.",
    ),
    text(O::CurrentDirectory, "").default("the job runs in the home directory."),
    text(O::Prefix, "An empty prefix switches the lines off.").default("`#$`."),
    text(O::DeleteContext, "Names, separated by commas."),
    text(
        O::Deadline,
        "The form is that of `-a`. The urgency of the job grows towards that time. Members of the \
         access list `deadlineusers` may use it.",
    ),
    text(
        O::Stderr,
        "A path or `HOST:PATH`, or several. A directory gets the usual name.",
    )
    .default("`NAME.eJOB`, with `.TASK` for array tasks, in the working directory."),
    text(O::Hold, "The job waits until qrls(1) releases it."),
    text(O::HoldList, "Upper-case letters release what lower-case ones set.")
        .example("`qalter -h U 7` releases the hold of the user."),
    text(
        O::Hard,
        "It ends `-soft`. Requests are hard unless `-soft` stands in front of them.",
    ),
    text(
        O::Predecessors,
        "The list has job numbers, names and patterns of names of the same user. The job starts \
         when they have ended. A name that no job has holds nothing.",
    )
    .example("`-hold_jid 7,prepare*`."),
    text(
        O::ArrayPredecessors,
        "The list is that of `-hold_jid`. Each task waits for the task of the same number, if \
         both arrays have the same range.",
    ),
    text(O::Stdin, "A path or `HOST:PATH`, or several.").default("`/dev/null`."),
    text(O::Join, "With `y`, `-e` has no effect.").default("`n`."),
    text(
        O::Share,
        "A whole number; more is better. It counts if `weight_job` of the scheduler configuration \
         is set.",
    )
    .default("0."),
    text(
        O::Resources,
        "The list is `NAME=VALUE`, several with commas; names are those of `qconf -sc`. Limits \
         such as `h_rt` and `h_vmem` end a job that breaks them.",
    )
    .example("`-l h_rt=1:0:0,h_vmem=2G,arch='lx-*'`."),
    text(
        O::MailEvents,
        "Letters: `b` at the beginning, `e` at the end, `a` when it is aborted or rescheduled, \
         `s` when it is suspended, `n` no mail.",
    )
    .default("`n`.")
    .example("`-m be`."),
    text(O::MasterQueues, "The master task runs in one of these queues.").example("`-masterq all.q@node1`."),
    text(
        O::Notify,
        "The job gets SIGUSR1 before it is suspended and SIGUSR2 before it is deleted. `notify` \
         of queue_conf(5) says how long before.",
    ),
    text(O::Immediate, "With `y`, a job that cannot start at once is given up.").default("`n`."),
    text(O::MailList, "Addresses, separated by commas.").default("the owner at the submit host."),
    text(O::Name, "").default("the base name of the script or command; `STDIN` for a script from standard input."),
    text(
        O::Stdout,
        "A path or `HOST:PATH`, or several. A directory gets the usual name.",
    )
    .default("`NAME.oJOB`, with `.TASK` for array tasks, in the working directory."),
    text(
        O::When,
        "With `now`, running tasks give back what the job no longer asks for: consumables that other jobs may \
         have at once. They cannot take more, and limits that were set when they started stay. With \
         `on_reschedule`, requests hold for tasks that start later.",
    )
    .default("`on_reschedule`."),
    text(O::OverrideTickets, "A whole number. Operators and managers set it."),
    text(O::Project, "`qconf -sprjl` lists the names.").default("the default project of the user, user(5)."),
    text(O::Priority, "From -1023 to 1024; users may only lower it.").default("0."),
    text(
        O::AllocationRule,
        "A rule of sge_pe(5): `$pe_slots`, `$fill_up`, `$round_robin` or a number.",
    ),
    text(
        O::ParallelEnvironment,
        "A name or pattern, and a number or range of slots. `qconf -spl` lists the names. As many \
         slots as possible are taken.",
    )
    .example("`-pe mpi 16-64`."),
    text(
        O::Queues,
        "Names or patterns of queues, `QUEUE@HOST` or `QUEUE@@GROUP`.",
    )
    .default("any queue.")
    .example("`-q 'short.q,*@@big'`."),
    text(
        O::Reserve,
        "With `y`, slots are kept for the job while it waits, so that smaller jobs cannot \
         overtake it for ever.",
    )
    .default("`n`."),
    text(O::Rerun, "Whether it runs again when its host is lost.").default("`rerun` of the queue, queue_conf(5)."),
    text(
        O::SetContext,
        "The list is `NAME=VALUE`, several with commas. It takes the place of the whole context.",
    ),
    text(
        O::Scope,
        "It is valid until the next `-scope` or the end of the line. Default: `global`.",
    ),
    text(O::UseShell, "It matters with `-b y`.").default("`y`."),
    text(
        O::Soft,
        "A soft request is a wish: a queue instance with it is preferred. `-hard` ends it.",
    ),
    text(
        O::Sync,
        "With `y` or `x`, the command waits for the end of the job and exits with its exit status. \
         With `r`, it waits until a task of the job has started and exits with 0, or with 1 if the job \
         was deleted before. An interrupt deletes the job.",
    )
    .default("`n`."),
    text(O::Shell, "A path or `HOST:PATH`, or several.")
        .default("the `#!` line of the script, or `shell` of the queue, queue_conf(5)."),
    text(
        O::Tasks,
        "The form is `N[-M[:STEP]]`. A task finds its number in `SGE_TASK_ID`.",
    )
    .example("`-t 1-100:10`."),
    text(
        O::Concurrency,
        "How many tasks of the array may run at the same time; 0 sets no limit.",
    )
    .default("0."),
    text(O::Terse, "").example("`job=$(qsub -terse job.sh)`."),
    text(O::Users, "Names and patterns, separated by commas; `*` stands for all."),
    text(O::Variables, "The list is `NAME` or `NAME=VALUE`, separated by commas.")
        .example("`-v OMP_NUM_THREADS=4,HOME`."),
    text(O::Verify, "What the job would be is printed as by `qstat -j`."),
    text(O::ExportAll, "").default("nothing of the environment is passed on, except a few variables named `SGE_O_*`."),
    text(
        O::Validation,
        "`e`: refuse a job that cannot run as the cell is configured; `w`: warn; `n`: do not \
         look; `v`: submit or change nothing, and say whether it could run; `p`: likewise, with \
         the load of now. Default: `n`.",
    ),
    text(O::Directory, "").default("the job runs in the home directory."),
    text(
        O::OptionFile,
        "The options of the file take its place. Request files and scripts may have it too.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Support;
    use crate::job::options::{JobOptionRow, TABLE};

    #[test]
    fn every_option_that_takes_a_value_has_details_once() {
        let is_of_jobs = |row: &&JobOptionRow| row.takers != [Taker::Qrsub];
        for row in TABLE
            .iter()
            .filter(|row| row.def.support == Support::Yes)
            .filter(is_of_jobs)
        {
            let count = OF_JOBS.iter().filter(|text| text.option == row.option).count();
            let needs = row.def.values != crate::args::ValueCount::None;
            assert!(count == 1 || count == 0 && !needs, "{:?}", row.option);
        }
    }

    #[test]
    fn a_page_says_what_is_so_for_its_command() {
        for (taker, option, expected) in [
            (
                Taker::Qsub,
                O::Priority,
                "From -1023 to 1024; users may only lower it. Default: 0.",
            ),
            (
                Taker::Qalter,
                O::Priority,
                "From -1023 to 1024; users may only lower it.",
            ),
            (Taker::Qsub, O::Account, "Default: `sge`."),
            (Taker::Qalter, O::Account, ""),
            (Taker::Qsub, O::Users, "A job is always the caller's."),
            (
                Taker::Qalter,
                O::Tasks,
                "The form is `N[-M[:STEP]]`. Example: `qalter -h u 7 -t 2-5`.",
            ),
            (
                Taker::Qresub,
                O::HoldList,
                "The copies wait until qrls(1) releases them. Example: `qresub -h u 7`.",
            ),
        ] {
            assert_eq!(detail(taker, option), expected, "{taker:?} {option:?}");
        }
    }
}
