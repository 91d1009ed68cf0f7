//! From options to a job specification, with what the submitting shell adds.

use crate::job::description::{Block, Description, if_set};
use crate::job::environment;
use crate::job::request::{JobRequest, logical_directory};
use crate::output::time::Clock;
use proto::checkpoint::Occasion;
use proto::id::{HostName, UserName};
use proto::job::{ContextChange, JobSpec, Owner, Program, Requests, SUBMISSION_END, Validation};

/// Names of the submitting environment that travel as `SGE_O_NAME`.
const CARRIED: [&str; 7] = ["HOME", "LOGNAME", "PATH", "SHELL", "TZ", "MAIL", "TERM"];

/// The specification of a new job.
pub fn specification(request: &JobRequest, program: Program, args: Vec<String>) -> JobSpec {
    let changes = request.changes.clone();
    let here = std::env::current_dir()
        .map(|dir| logical_directory(&dir))
        .unwrap_or_default();
    JobSpec {
        name: changes.name.unwrap_or_else(|| default_name(&program)),
        program,
        args,
        owner: caller().into(),
        submit_host: host(),
        submit_directory: here.clone(),
        directory: changes.directory,
        directory_on: changes.directory_on.unwrap_or_default(),
        stdout: changes.stdout.unwrap_or_default(),
        stderr: changes.stderr.unwrap_or_default(),
        stdin: changes.stdin.unwrap_or_default(),
        merge_stderr: changes.merge_stderr.unwrap_or_default(),
        shell: changes.shell.unwrap_or_default(),
        use_shell: request.use_shell,
        environment: environment(request, &here).into(),
        account: changes.account,
        project: changes.project.filter(|project| !project.is_empty()),
        priority: changes.priority.unwrap_or_default(),
        job_share: changes.job_share.unwrap_or_default(),
        override_tickets: changes.override_tickets.unwrap_or_default(),
        requests: Requests {
            hard: changes.hard.unwrap_or_default(),
            soft: changes.soft.unwrap_or_default(),
            hard_queues: changes.hard_queues.unwrap_or_default(),
            soft_queues: changes.soft_queues.unwrap_or_default(),
            master_queues: changes.master_queues.unwrap_or_default(),
            master: changes.master.unwrap_or_default(),
            slaves: changes.slaves.unwrap_or_default(),
            slave_queues: changes.slave_queues.unwrap_or_default(),
            pe: changes.pe,
            allocation_rule: changes.allocation_rule,
            binding: changes.binding.map(Box::new),
        }
        .into(),
        array: changes.array,
        task_concurrency: changes.task_concurrency,
        holds: changes.holds.unwrap_or_default().set,
        predecessors: changes.predecessors.unwrap_or_default(),
        array_predecessors: changes.array_predecessors.unwrap_or_default(),
        // 8.1.9 takes the beginning of 1970 for no time at all.
        start_after: changes.start_after.filter(|start| start.0 > 0),
        deadline: changes.deadline.filter(|deadline| deadline.0 > 0),
        rerunnable: changes.rerunnable,
        reserve: changes.reserve.unwrap_or_default(),
        immediate: request.immediate,
        notify: changes.notify.unwrap_or_default(),
        mail: changes.mail.unwrap_or_default(),
        mail_to: changes.mail_to.unwrap_or_default(),
        context: ContextChange::applied(Vec::new(), &changes.context),
        // Who wants reserved slots is told at once if they do not suffice.
        validation: changes.validation.unwrap_or(match changes.reservation {
            Some(id) if id.0 > 0 => Validation::Refuse,
            Some(_) | None => Validation::None,
        }),
        checkpoint: changes.checkpoint.filter(|name| !name.is_empty()),
        occasion: changes.occasion,
        reservation: changes.reservation.filter(|id| id.0 > 0),
        directive_prefix: request.directive_prefix.clone().filter(|prefix| !prefix.is_empty()),
        session: None,
    }
}

/// The name of a job without `-N`: the base name of its script or command. Where that of a command
/// line holds a blank, which a name cannot, it is the base name of the first word.
fn default_name(program: &Program) -> String {
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    match program {
        Program::Script { path, .. } | Program::Stored { path, .. } => base(path),
        Program::Command { command } => {
            let name = base(command);
            match command.split_whitespace().next() {
                Some(first) if name.contains(char::is_whitespace) => base(first),
                Some(_) | None => name,
            }
        }
    }
}

/// Who calls, for `-verify` and for verifiers: the master believes its socket.
fn caller() -> Owner {
    let uid = nix::unistd::getuid();
    let user = nix::unistd::User::from_uid(uid).ok().flatten();
    Owner {
        user: UserName::from(user.map_or_else(|| uid.to_string(), |user| user.name)),
        uid: uid.as_raw(),
        gid: nix::unistd::getgid().as_raw(),
        group: nix::unistd::Group::from_gid(nix::unistd::getgid())
            .ok()
            .flatten()
            .map_or_else(String::new, |group| group.name),
        groups: Vec::new(),
    }
}

/// This host's name, for `-verify` and for verifiers.
fn host() -> HostName {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    HostName::new(name.as_deref().unwrap_or("localhost"))
}

/// The environment that travels: `SGE_O_*` of the submission, then what `-V` and `-v` export. A
/// variable that the user calls `SGE_O_…` stands behind the submission's own.
fn environment(request: &JobRequest, here: &str) -> Vec<(String, String)> {
    let mut all = carried(environment::value);
    all.push(("SGE_O_HOST".to_owned(), host().to_string()));
    all.push((SUBMISSION_END.to_owned(), here.to_owned()));
    all.extend(exported(request));
    all
}

/// `SGE_O_*` of a submitting environment, of the variables that it has.
fn carried(value: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    CARRIED
        .iter()
        .filter_map(|name| Some((format!("SGE_O_{name}"), value(name)?)))
        .collect()
}

/// What `-V` and `-v` export, each variable once.
pub fn exported(request: &JobRequest) -> Vec<(String, String)> {
    let mut all = Vec::new();
    if request.export_all {
        all.extend(environment::exported());
    }
    for (name, value) in environment::named(request.variables.as_deref().unwrap_or_default()) {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some(entry) => entry.1 = value,
            None => all.push((name, value)),
        }
    }
    all
}

/// The text of `qalter -verify`: the name of the job, if it changes, and the lines that differ from
/// a job of which nothing is said.
pub fn verified_changes(request: &JobRequest, clock: &Clock) -> String {
    let nothing = Program::Command { command: String::new() };
    let unchanged = verification(
        &specification(&JobRequest::new("qalter"), nothing.clone(), Vec::new()),
        clock,
    );
    let changed = verification(&specification(request, nothing, Vec::new()), clock);
    let is_shown = |line: &&str| {
        let is_known = unchanged.lines().any(|known| known == *line);
        line.starts_with("job_name:") || !is_known && !line.starts_with("verify:")
    };
    changed
        .lines()
        .filter(is_shown)
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// The text of `-verify`.
pub fn verification(spec: &JobSpec, clock: &Clock) -> String {
    let checkpoint_when = spec.occasion.and_then(|occasion| match occasion {
        Occasion::When(when) => Some(when),
        Occasion::Never | Occasion::EverySeconds(_) => None,
    });
    let description = Description {
        spec,
        account: spec.account.as_deref(),
        checkpoint_when,
        verifies: true,
        hides_environment: false,
    };
    let mut block = Block::default();
    block.put("job_number", "unassigned");
    block.put_some(
        "deadline",
        if_set(spec.deadline).map(|deadline| clock.asctime(deadline)),
    );
    // Nobody has said yet whose it will be.
    for (key, nobody) in [("owner", ""), ("uid", "0"), ("group", ""), ("gid", "0")] {
        block.put(key, nobody);
    }
    description.origin(&mut block, clock);
    description.requests(&mut block);
    description.program(&mut block);
    description.predecessors(&mut block);
    description.verification(&mut block);
    description.project(&mut block);
    description.tasks(&mut block);
    description.kind(&mut block);
    block.text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::GivenOption;

    fn given(name: &'static str, values: &[&str]) -> GivenOption {
        GivenOption {
            name,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        }
    }

    fn verified(options: &[GivenOption], program: Program, args: &[&str]) -> String {
        let mut request = JobRequest::new("qsub");
        request.apply_line(options).unwrap();
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        verification(
            &specification(&request, program, args),
            &Clock::new(jiff::tz::TimeZone::UTC),
        )
    }

    #[test]
    fn a_job_carries_the_variables_that_it_carries_in_8_1_9() {
        let environment = ["HOME", "LANG", "LC_ALL", "PATH", "TZ", "USER"];
        let value = |name: &str| environment.contains(&name).then(|| format!("of {name}"));
        let names: Vec<String> = carried(value).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["SGE_O_HOME", "SGE_O_PATH", "SGE_O_TZ"]);
    }

    #[test]
    fn a_job_is_named_after_what_it_runs() {
        let command = |command: &str| {
            default_name(&Program::Command {
                command: command.to_owned(),
            })
        };
        assert_eq!(command("/bin/sh"), "sh");
        assert_eq!(
            command("echo /home/u1"),
            "u1",
            "as in 8.1.9, one word of the shell is one path"
        );
        assert_eq!(command("sleep 1; exit 3"), "sleep");
        assert_eq!(command("/bin/sleep 1"), "sleep");
        assert_eq!(command("cd /tmp &&\tmake all"), "cd");
        assert_eq!(command("a b/c"), "c");
        assert_eq!(
            default_name(&Program::Script {
                path: "/x/plain.sh".to_owned(),
                content: [].into()
            }),
            "plain.sh"
        );
    }

    #[test]
    fn verification_shows_what_is_asked_in_each_scope() {
        let shown = |options: &[GivenOption]| verified(options, sleep(), &["a", "b"]);
        let global = given("-l", &["h_rt=60"]);
        assert!(shown(std::slice::from_ref(&global)).contains("\nhard resource_list:         h_rt=60\nmail_list:"));
        let text = shown(&[
            global,
            given("-scope", &["master"]),
            given("-l", &["memory=1G"]),
            given("-scope", &["slave"]),
            given("-l", &["memory=4G,gpu=1"]),
            given("-q", &["a.q,b.q"]),
        ]);
        let expected = "\nhard resource_list:         h_rt=60\nmaster_hard_resource_list:  memory=1G\n\
            slave_hard_resource_list:   memory=4G,gpu=1\nmail_list:";
        assert!(text.contains(expected), "{expected}in\n{text}");
        assert!(
            text.contains("\njobshare:                   0\nslave_hard_queue_list:      a.q,b.q\nverify: "),
            "{text}"
        );
    }

    /// What verification shows from the job's name on: what `qstat -j` would, and the script.
    fn shown(options: &[GivenOption], program: Program, args: &[&str]) -> String {
        let text = verified(options, program, args);
        text.split_once("\njob_name:")
            .map(|(_, shown)| format!("job_name:{shown}"))
            .expect("a name")
    }

    fn script() -> Program {
        Program::Script {
            path: "plain.sh".to_owned(),
            content: b"#!/bin/sh\necho hi\n".as_slice().into(),
        }
    }

    fn sleep() -> Program {
        Program::Command {
            command: "sleep".to_owned(),
        }
    }

    #[test]
    fn verification_of_a_parallel_job_is_that_of_8_1_9() {
        let parallel = [
            given("-v", &["X=1,Y"]),
            given("-pe", &["mpi", "2-4"]),
            given("-masterq", &["all.q"]),
            given("-q", &["all.q,b.q"]),
            given("-soft", &[]),
            given("-q", &["c.q"]),
        ];
        let expected = "job_name:                   plain.sh\njobshare:                   0\n\
            hard_queue_list:            all.q,b.q\nsoft_queue_list:            c.q\n\
            verify:                     -verify\nenv_list:                   X=1,Y=NONE\n\
            job_args:                   a,b\nmaster hard queue_list:     all.q\n\
            script_size:                18\nscript_file:                plain.sh\n\
            script_ptr:            \n#!/bin/sh\necho hi\n\n\
            parallel environment:  mpi range: 2-4\njob_type:                   NONE\n";
        assert_eq!(shown(&parallel, script(), &["a", "b"]), expected);
    }

    #[test]
    fn verification_of_an_array_is_that_of_8_1_9() {
        let array = [
            given("-t", &["1-9:2"]),
            given("-tc", &["2"]),
            given("-hold_jid", &["x,3"]),
            given("-o", &["out"]),
            given("-i", &["in"]),
            given("-p", &["-5"]),
            given("-r", &["y"]),
            given("-S", &["/bin/sh"]),
        ];
        let expected = "job_name:                   plain.sh\nstdout_path_list:           NONE:NONE:out\n\
            stdin_path_list:            NONE:NONE:in\npriority:                   -5\n\
            jobshare:                   0\nrestart:                    y\n\
            shell_list:                 NONE:/bin/sh\nverify:                     -verify\n\
            script_size:                18\nscript_file:                plain.sh\n\
            script_ptr:            \n#!/bin/sh\necho hi\n\njid_predecessor_list (req): x,3\n\
            job-array tasks:            1-9:2\nmaximum concurrency:        2\n\
            job_type:                   NONE\n";
        assert_eq!(shown(&array, script(), &[]), expected);
    }

    #[test]
    fn verification_of_a_binary_is_that_of_8_1_9() {
        let binary = [
            given("-b", &["y"]),
            given("-P", &["p"]),
            given("-ac", &["a=b"]),
            given("-now", &["y"]),
        ];
        let expected = "job_name:                   sleep\njobshare:                   0\n\
            verify:                     -verify\njob_args:                   5\n\
            script_file:                sleep\nproject:                    p\n\
            context:                    a=b\njob_type:                   binary,immediate\n";
        assert_eq!(shown(&binary, sleep(), &["5"]), expected);
        let text = shown(&[given("-shell", &["n"])], sleep(), &["5"]);
        assert!(text.ends_with("job_type:                   binary,noshell\n"), "{text}");
    }
}
