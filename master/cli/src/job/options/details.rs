//! What the manual pages say about the options of jobs beyond their line in `-help`: values, the
//! default, an example.

use super::{JobOption as O, Taker};

/// Details of an option of a command; empty where its line in `-help` says all.
pub fn text(taker: Taker, option: O) -> &'static str {
    let table = match taker {
        Taker::Qsub | Taker::Qalter | Taker::Qresub => OF_JOBS,
        Taker::Qrsub => OF_RESERVATIONS,
    };
    table
        .iter()
        .find(|(known, _)| *known == option)
        .map_or("", |(_, text)| text)
}

const OF_RESERVATIONS: &[(O, &str)] = &[
    (
        O::StartTime,
        "The form is `[[CC]YY]MMDDhhmm[.SS]`. Default: now. Example: `-a 12240800`.",
    ),
    (
        O::Resources,
        "The list is `NAME=VALUE`, several with commas; names are those of `qconf -sc`.",
    ),
    (
        O::ParallelEnvironment,
        "A name or pattern, and a number or range of slots. `qconf -spl` lists the names. Default: one slot.",
    ),
    (
        O::Queues,
        "Names or patterns of queues, `QUEUE@HOST` or `QUEUE@@GROUP`. Default: any queue.",
    ),
    (O::Users, "Default: the caller alone."),
];

const OF_JOBS: &[(O, &str)] = &[
    (
        O::StartTime,
        "The form is `[[CC]YY]MMDDhhmm[.SS]`. The job waits at least until then. Default: at once. Example: `-a 12240800`.",
    ),
    (
        O::AddContext,
        "The list is `NAME=VALUE`, several with commas. Example: `-ac step=1,of=7`.",
    ),
    (
        O::Reservation,
        "The number is that of qrsub(1). The job runs in the slots of the reservation only.",
    ),
    (O::Account, "Default: `sge`."),
    (
        O::Binary,
        "Default: `n`, the first word is a script. Example: `qsub -b y sleep 60`.",
    ),
    (
        O::Occasion,
        "`n`: never; `s`: when the agent is shut down; `m`: at the interval of the queue; `x`: when the job is \
         suspended; a time: at this interval. Default: as the checkpointing environment says.",
    ),
    (
        O::Checkpoint,
        "The environment is described in checkpoint(5). `qconf -sckptl` lists the names.",
    ),
    (
        O::Clear,
        "It drops all options in front of it, and those of earlier sources: in a script those of the request files, on \
         the command line also those of the script.",
    ),
    (O::CurrentDirectory, "Default: the job runs in the home directory."),
    (O::Prefix, "Default: `#$`. An empty prefix switches the lines off."),
    (O::DeleteContext, "Names, separated by commas."),
    (
        O::Deadline,
        "The form is that of `-a`. The urgency of the job grows towards that time. Members of the access list \
         `deadlineusers` may use it.",
    ),
    (
        O::Stderr,
        "A path or `HOST:PATH`, or several. A directory gets the usual name. Default: `NAME.eJOB`, with `.TASK` for \
         array tasks, in the working directory.",
    ),
    (O::Hold, "The job waits until qrls(1) releases it."),
    (O::HoldList, "Example: `qalter -h U 7` releases the hold of the user."),
    (
        O::Hard,
        "It ends `-soft`. Requests are hard unless `-soft` stands in front of them.",
    ),
    (
        O::Predecessors,
        "The list has job numbers, names and patterns of names of the same user. The job starts when they have ended. A \
         name that no job has holds nothing. Example: `-hold_jid 7,prepare*`.",
    ),
    (
        O::ArrayPredecessors,
        "The list is that of `-hold_jid`. Each task waits for the task of the same number, if both arrays have the same range.",
    ),
    (O::Stdin, "A path or `HOST:PATH`, or several. Default: `/dev/null`."),
    (O::Join, "Default: `n`. With `y`, `-e` has no effect."),
    (
        O::Share,
        "A whole number; more is better. It counts if `weight_job` of the scheduler configuration is set. Default: 0.",
    ),
    (
        O::Resources,
        "The list is `NAME=VALUE`, several with commas; names are those of `qconf -sc`. Limits such as `h_rt` and `h_vmem` end a job that \
         breaks them. Example: `-l h_rt=1:0:0,h_vmem=2G,arch='lx-*'`.",
    ),
    (
        O::MailEvents,
        "Letters: `b` at the beginning, `e` at the end, `a` when it is aborted or rescheduled, `s` when it is suspended, \
         `n` no mail. Default: `n`. Example: `-m be`.",
    ),
    (
        O::MasterQueues,
        "The master task runs in one of these queues. Example: `-masterq all.q@node1`.",
    ),
    (
        O::Notify,
        "The job gets SIGUSR1 before it is suspended and SIGUSR2 before it is deleted. `notify` of queue_conf(5) says how \
         long before.",
    ),
    (
        O::Immediate,
        "With `y`, a job that cannot start at once is given up. Default: `n`.",
    ),
    (
        O::MailList,
        "Addresses, separated by commas. Default: the owner at the submit host.",
    ),
    (
        O::Name,
        "Default: the base name of the script or command; `STDIN` for a script from standard input.",
    ),
    (
        O::Stdout,
        "A path or `HOST:PATH`, or several. A directory gets the usual name. Default: `NAME.oJOB`, with `.TASK` for \
         array tasks, in the working directory.",
    ),
    (O::OverrideTickets, "A whole number. Operators and managers set it."),
    (
        O::Project,
        "`qconf -sprjl` lists the names. Default: the default project of the user, user(5).",
    ),
    (O::Priority, "From -1023 to 1024; users may only lower it. Default: 0."),
    (
        O::AllocationRule,
        "A rule of sge_pe(5): `$pe_slots`, `$fill_up`, `$round_robin` or a number.",
    ),
    (
        O::ParallelEnvironment,
        "A name or pattern, and a number or range of slots. `qconf -spl` lists the names. As many slots as possible are \
         taken. Example: `-pe mpi 16-64`.",
    ),
    (
        O::Queues,
        "Names or patterns of queues, `QUEUE@HOST` or `QUEUE@@GROUP`. Default: any queue. Example: `-q 'short.q,*@@big'`.",
    ),
    (
        O::Reserve,
        "With `y`, slots are kept for the job while it waits, so that smaller jobs cannot overtake it for ever. Default: `n`.",
    ),
    (
        O::Rerun,
        "Whether it runs again when its host is lost. Default: `rerun` of the queue, queue_conf(5).",
    ),
    (
        O::SetContext,
        "The list is `NAME=VALUE`, several with commas. It takes the place of the whole context.",
    ),
    (
        O::Scope,
        "It is valid until the next `-scope` or the end of the line. Default: `global`.",
    ),
    (O::UseShell, "It matters with `-b y`. Default: `y`."),
    (
        O::Soft,
        "A soft request is a wish: a queue instance with it is preferred. `-hard` ends it.",
    ),
    (
        O::Sync,
        "With `y`, the command waits for the end of the job and exits with its exit status. An interrupt deletes the job. \
         Default: `n`.",
    ),
    (
        O::Shell,
        "A path or `HOST:PATH`, or several. Default: the `#!` line of the script, or `shell` of the queue, queue_conf(5).",
    ),
    (
        O::Tasks,
        "The form is `N[-M[:STEP]]`. A task finds its number in `SGE_TASK_ID`. Example: `-t 1-100:10`.",
    ),
    (
        O::Concurrency,
        "How many tasks of the array may run at the same time; 0 sets no limit. Default: 0.",
    ),
    (O::Terse, "Example: `job=$(qsub -terse job.sh)`."),
    (O::Users, "Names and patterns, separated by commas; `*` stands for all."),
    (
        O::Variables,
        "The list is `NAME` or `NAME=VALUE`, separated by commas. Example: `-v OMP_NUM_THREADS=4,HOME`.",
    ),
    (O::Verify, "What the job would be is printed as by `qstat -j`."),
    (
        O::ExportAll,
        "Default: nothing of the environment is passed on, except a few variables named `SGE_O_*`.",
    ),
    (
        O::Validation,
        "`e`: refuse a job that cannot run as the cell is configured; `w`: warn; `n`: do not look; `v`: submit nothing \
         and say whether it could run; `p`: likewise, with the load of now. Default: `n`.",
    ),
    (O::Directory, "Default: the job runs in the home directory."),
    (
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
            let count = OF_JOBS.iter().filter(|(option, _)| *option == row.option).count();
            let needs = row.def.values != crate::args::ValueCount::None;
            assert!(count == 1 || count == 0 && !needs, "{:?}", row.option);
        }
    }
}
