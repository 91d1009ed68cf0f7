//! From options to a job specification, with what the submitting shell adds.

use crate::job::request::{JobRequest, logical_directory};
use proto::id::{HostName, UserName};
use proto::job::{JobSpec, Owner, Program, Requests, Validation};
use std::fmt::Write as _;

/// Names of the submitting environment that travel as `SGE_O_NAME` (ENV-02).
const CARRIED: [&str; 8] = ["HOME", "LOGNAME", "PATH", "SHELL", "TZ", "MAIL", "TERM", "LANG"];

/// The specification of a new job.
pub fn specification(request: &JobRequest, program: Program, args: Vec<String>) -> JobSpec {
    let changes = request.changes.clone();
    let here = std::env::current_dir().map(|dir| logical_directory(&dir)).unwrap_or_default();
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
        }
        .into(),
        array: changes.array,
        task_concurrency: changes.task_concurrency,
        holds: changes.holds.unwrap_or_default().set,
        predecessors: changes.predecessors.unwrap_or_default(),
        array_predecessors: changes.array_predecessors.unwrap_or_default(),
        start_after: changes.start_after,
        deadline: changes.deadline,
        rerunnable: changes.rerunnable,
        reserve: changes.reserve.unwrap_or_default(),
        immediate: request.immediate,
        notify: changes.notify.unwrap_or_default(),
        mail: changes.mail.unwrap_or_default(),
        mail_to: changes.mail_to.unwrap_or_default(),
        context: changes.set_context.unwrap_or_default().into_iter().chain(changes.add_context).collect(),
        // Who wants reserved slots is told at once if they do not suffice.
        validation: changes.validation.unwrap_or(match changes.reservation {
            Some(id) if id.0 > 0 => Validation::Refuse,
            Some(_) | None => Validation::None,
        }),
        checkpoint: changes.checkpoint,
        occasion: changes.occasion,
        reservation: changes.reservation.filter(|id| id.0 > 0),
    }
}

/// The name of a job without `-N`: the base name of its script or command.
fn default_name(program: &Program) -> String {
    let path = match program {
        Program::Script { path, .. } => path,
        Program::Command { command } => command,
    };
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// Who calls, for `-verify` only: the master believes its socket.
fn caller() -> Owner {
    let uid = nix::unistd::getuid();
    let user = nix::unistd::User::from_uid(uid).ok().flatten();
    Owner {
        user: UserName::from(user.map_or_else(|| uid.to_string(), |user| user.name)),
        uid: uid.as_raw(),
        gid: nix::unistd::getgid().as_raw(),
        group: String::new(),
        groups: Vec::new(),
    }
}

/// This host's name, for `-verify` only.
fn host() -> HostName {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    HostName::new(name.as_deref().unwrap_or("localhost"))
}

/// The environment that travels: `SGE_O_*`, then what `-V` and `-v` export.
fn environment(request: &JobRequest, here: &str) -> Vec<(String, String)> {
    let mut environment = Vec::new();
    for name in CARRIED {
        if let Ok(value) = std::env::var(name) {
            put(&mut environment, format!("SGE_O_{name}"), value);
        }
    }
    put(&mut environment, "SGE_O_HOST".to_owned(), host().to_string());
    put(&mut environment, "SGE_O_WORKDIR".to_owned(), here.to_owned());
    if request.export_all {
        for (name, value) in crate::job::environment::exported() {
            put(&mut environment, name, value);
        }
    }
    for (name, value) in crate::job::environment::named(&request.variables) {
        put(&mut environment, name, value);
    }
    environment
}

fn put(environment: &mut Vec<(String, String)>, name: String, value: String) {
    match environment.iter_mut().find(|(known, _)| *known == name) {
        Some(entry) => entry.1 = value,
        None => environment.push((name, value)),
    }
}

/// What `-verify` shows of the submitting environment, in its order.
const SHOWN: [(&str, &str); 7] = [
    ("SGE_O_HOME", "sge_o_home"),
    ("SGE_O_LOGNAME", "sge_o_log_name"),
    ("SGE_O_PATH", "sge_o_path"),
    ("SGE_O_SHELL", "sge_o_shell"),
    ("SGE_O_TZ", "sge_o_tz"),
    ("SGE_O_WORKDIR", "sge_o_workdir"),
    ("SGE_O_HOST", "sge_o_host"),
];

/// The text of `-verify`.
pub fn verification(spec: &JobSpec) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: &str| {
        let _ = writeln!(text, "{:<28}{value}", format!("{key}:"));
    };
    line("job_number", "unassigned");
    line("owner", "");
    line("uid", "0");
    line("group", "");
    line("gid", "0");
    for (name, key) in SHOWN {
        if let Some((_, value)) = spec.environment.iter().find(|(known, _)| known == name) {
            line(key, value);
        }
    }
    let joined =
        |list: &[proto::request::ResourceRequest]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    for (key, list) in [
        ("hard resource_list", joined(&spec.requests.hard)),
        ("soft resource_list", joined(&spec.requests.soft)),
        ("master_hard_resource_list", joined(&spec.requests.master)),
        ("slave_hard_resource_list", joined(&spec.requests.slaves)),
        ("slave_hard_queue_list", spec.requests.slave_queues.join(",")),
    ] {
        if !list.is_empty() {
            line(key, &list);
        }
    }
    line("mail_list", &format!("{}@{}", spec.owner.user, spec.submit_host));
    line("notify", if spec.notify { "TRUE" } else { "FALSE" });
    line("job_name", &spec.name);
    line("jobshare", &spec.job_share.to_string());
    line("verify", "-verify");
    let exported = spec.environment.iter().filter(|(name, _)| !name.starts_with("SGE_O_"));
    line("env_list", &exported.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(","));
    if let Program::Script { path, content } = &spec.program {
        line("script_size", &content.len().to_string());
        line("script_file", path);
        // Narrower than the rest, as in 8.1.9.
        let _ = writeln!(text, "{:<23}", "script_ptr:");
        text.push_str(&String::from_utf8_lossy(content));
        text.push('\n');
        let _ = writeln!(text, "{:<28}NONE", "job_type:");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_named_after_what_it_runs() {
        let command = |command: &str| default_name(&Program::Command { command: command.to_owned() });
        assert_eq!(command("/bin/sh"), "sh");
        assert_eq!(command("echo /home/u1"), "u1", "one word of the shell is one path");
        assert_eq!(default_name(&Program::Script { path: "/x/plain.sh".to_owned(), content: [].into() }), "plain.sh");
    }

    #[test]
    fn verification_shows_what_is_asked_in_each_scope() {
        let given = |name, values: &[&str]| crate::args::Given {
            name,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let shown = |options: &[crate::args::Given]| {
            let mut request = JobRequest::new("qsub");
            request.apply_source(options).unwrap();
            verification(&specification(&request, Program::Command { command: "sleep".to_owned() }, Vec::new()))
        };
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
            slave_hard_resource_list:   memory=4G,gpu=1\nslave_hard_queue_list:      a.q,b.q\nmail_list:";
        assert!(text.contains(expected), "{expected}in\n{text}");
    }
}
