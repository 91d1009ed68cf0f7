//! A job in a container: the command of its runtime around the command of the job.
//!
//! The runtime is an ordinary program of the job's user, in the task's own control group. It makes
//! no groups itself: many starts at one time fail where a runtime asks a service manager for them.

use super::Context;
use super::environment;
use super::plan::Invocation;
use nix::unistd::{AccessFlags, access};
use proto::launch::{Container, ContainerRuntime, FailedCodes, Failure};
use std::process::{Command, Stdio};

/// Variables that are the container's own.
const OF_CONTAINER: [&str; 4] = ["HOME", "HOSTNAME", "LD_LIBRARY_PATH", "PATH"];

/// What a job in a container is given of its host.
#[derive(Clone, Debug)]
struct Surroundings<'a> {
    /// The whole environment of the job.
    environment: &'a [String],
    /// Its search path, for the runtime itself.
    search_path: &'a str,
    /// Its working directory.
    folder: &'a str,
    /// Directories that it finds under their own names: its temporary directory, and the one with
    /// its script and host file.
    directories: &'a [String],
    /// Device files that it was granted.
    devices: &'a [String],
}

/// The job as its runtime starts it, if it runs in a container. `is_hidden` says that the user
/// cannot reach the script by its name.
///
/// # Errors
/// Those of the host, which must let the user read the script, and those of the container.
pub fn around_job(
    context: &Context,
    job: Invocation,
    environment: &[String],
    folder: &str,
    is_hidden: bool,
) -> Result<Invocation, Failure> {
    let Some(container) = &context.document.container else {
        return Ok(job);
    };
    let task = context.folder.join(context.dir.file(""));
    let task = task.to_string_lossy().trim_end_matches('/').to_owned();
    if is_hidden {
        let why = format!("the user cannot read the script of the job in {task}, so no container can be given it");
        return Err(Failure::of_host(why, 0));
    }
    let tmpdir = environment::variable(environment, "TMPDIR").map(str::to_owned);
    let directories: Vec<String> = tmpdir.into_iter().chain([task]).collect();
    let files = context.document.devices_granted.iter();
    let devices: Vec<String> = files
        .map(|file| file.rsplit_once(':').map_or(file.as_str(), |(path, _)| path).to_owned())
        .collect();
    let around = Surroundings {
        environment,
        search_path: environment::search_path(environment),
        folder,
        directories: &directories,
        devices: &devices,
    };
    wrap(job, container, &around)
}

/// Puts the command of the runtime around an invocation.
///
/// # Errors
/// The runtime or the image is missing, or a name cannot be told to the runtime. That is the fault
/// of the job or of the cell's configuration, and holds on every attempt.
fn wrap(job: Invocation, container: &Container, around: &Surroundings<'_>) -> Result<Invocation, Failure> {
    let Container { runtime, image } = container;
    check_names(image, around)?;
    let program = find(*runtime, around.search_path)?;
    check_image(*runtime, &program, image)?;
    let mut argv = options(*runtime, around);
    argv.insert(0, runtime.as_str().to_owned());
    argv.push(image.clone());
    argv.extend(inner(*runtime, &job, around.folder));
    Ok(Invocation {
        paths: vec![program.clone()],
        argv,
        what: program,
        script_on_stdin: job.script_on_stdin,
    })
}

/// The command inside. The name that a login shell would have means nothing to a runtime.
fn inner(runtime: ContainerRuntime, job: &Invocation, folder: &str) -> Vec<String> {
    let command = [job.what.clone()].into_iter().chain(job.argv.iter().skip(1).cloned());
    match runtime {
        ContainerRuntime::Apptainer | ContainerRuntime::Singularity | ContainerRuntime::Podman => command.collect(),
        // It has no option for the directory.
        ContainerRuntime::Enroot => ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", folder]
            .map(str::to_owned)
            .into_iter()
            .chain(command)
            .collect(),
    }
}

fn options(runtime: ContainerRuntime, around: &Surroundings<'_>) -> Vec<String> {
    let folders = around.directories.iter().map(String::as_str).chain([around.folder]);
    let mut folders: Vec<&str> = folders.filter(|folder| *folder != "/").collect();
    folders.sort_unstable();
    folders.dedup();
    let is_set = |name: &str| variables(around).any(|known| known == name);
    let mut made: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| made.extend(words.iter().map(|word| (*word).to_owned()));
    match runtime {
        ContainerRuntime::Apptainer | ContainerRuntime::Singularity => {
            add(&["exec", "--pwd", around.folder]);
            folders.iter().for_each(|folder| add(&["--bind", folder]));
            for (name, option) in [("CUDA_VISIBLE_DEVICES", "--nv"), ("ROCR_VISIBLE_DEVICES", "--rocm")] {
                if is_set(name) {
                    add(&[option]);
                }
            }
        }
        ContainerRuntime::Podman => {
            add(&[
                "--cgroup-manager=cgroupfs",
                "run",
                "--rm",
                "--interactive",
                "--cgroups=disabled",
            ]);
            add(&[
                "--network=host",
                "--userns=keep-id",
                "--pull=never",
                "--log-driver=none",
            ]);
            add(&["--entrypoint=", "--workdir", around.folder]);
            folders
                .iter()
                .for_each(|folder| add(&["--volume", &format!("{folder}:{folder}")]));
            around.devices.iter().for_each(|device| add(&["--device", device]));
            variables(around).for_each(|name| add(&["--env", name]));
        }
        ContainerRuntime::Enroot => {
            add(&["start"]);
            folders
                .iter()
                .for_each(|folder| add(&["--mount", &format!("{folder}:{folder}")]));
            variables(around).for_each(|name| add(&["--env", name]));
        }
    }
    made
}

/// The names of the variables that a runtime passes on. The values are in its own environment.
fn variables<'a>(around: &Surroundings<'a>) -> impl Iterator<Item = &'a str> {
    let names = around.environment.iter().filter_map(|entry| entry.split_once('='));
    // A runtime reads other letters as something else.
    let is_plain = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let names = names.map(|(name, _)| name).filter(is_plain);
    names.filter(|name| !OF_CONTAINER.contains(name))
}

/// Runtimes read `:` and `,` in names of directories as separators, and `-` as an option.
fn check_names(image: &str, around: &Surroundings<'_>) -> Result<(), Failure> {
    if image.is_empty() || image.starts_with('-') || image.contains("://") {
        return Err(refused(format!(
            "\"{image}\" is not an image: name a file, or an image that the runtime has on this host"
        )));
    }
    let names = around.directories.iter().map(String::as_str).chain([around.folder]);
    match names.into_iter().find(|name| name.contains([':', ','])) {
        Some(name) => Err(refused(format!(
            "{name:?} cannot be in a container: its name has a colon or a comma"
        ))),
        None => Ok(()),
    }
}

fn find(runtime: ContainerRuntime, search_path: &str) -> Result<String, Failure> {
    let paths = search_path
        .split(':')
        .filter(|folder| folder.starts_with('/'))
        .map(|folder| format!("{folder}/{runtime}"));
    let mut found = paths.filter(|path| access(path.as_str(), AccessFlags::X_OK).is_ok());
    found.next().ok_or_else(|| {
        refused(format!(
            "this host has no {runtime}, which the container of the job needs"
        ))
    })
}

/// Looks for the image before the job counts as started.
fn check_image(runtime: ContainerRuntime, program: &str, image: &str) -> Result<(), Failure> {
    let is_there = match runtime {
        ContainerRuntime::Apptainer | ContainerRuntime::Singularity => access(image, AccessFlags::R_OK).is_ok(),
        ContainerRuntime::Enroot if image.contains('/') => access(image, AccessFlags::R_OK).is_ok(),
        ContainerRuntime::Enroot => answer(program, &["list"])?.lines().any(|name| name.trim() == image),
        ContainerRuntime::Podman => {
            let list = [
                "--cgroup-manager=cgroupfs",
                "images",
                "--quiet",
                "--filter",
                &format!("reference={image}"),
            ];
            !answer(program, &list)?.trim().is_empty()
        }
    };
    if is_there {
        return Ok(());
    }
    Err(refused(format!(
        "the image \"{image}\" is not on this host, or you cannot read it ({runtime})"
    )))
}

/// What a runtime prints, as the job's user sees it.
fn answer(program: &str, words: &[&str]) -> Result<String, Failure> {
    let cannot = |why: String| refused(format!("{program} {}: {why}", words.join(" ")));
    let output = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| cannot(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(cannot(
        said.lines().last().unwrap_or("it fails").chars().take(200).collect(),
    ))
}

/// The job is in error, wherever it would run.
fn refused(text: String) -> Failure {
    Failure {
        failed: FailedCodes::NO_SHELL,
        text,
        errno: 0,
        path: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Invocation {
        Invocation {
            paths: vec!["/bin/sh".to_owned()],
            argv: ["-sh", "/cell/tasks/7/job_scripts/7", "a b"]
                .map(str::to_owned)
                .to_vec(),
            what: "/bin/sh".to_owned(),
            script_on_stdin: false,
        }
    }

    fn line(runtime: ContainerRuntime, variable: &str) -> String {
        let environment = ["PATH=/bin", "JOB_ID=7", variable].map(str::to_owned);
        let around = Surroundings {
            environment: &environment,
            search_path: "/usr/bin",
            folder: "/home/u",
            directories: &["/tmp/7".to_owned(), "/cell/tasks/7".to_owned()],
            devices: &["/dev/nvidia0".to_owned()],
        };
        let mut words = options(runtime, &around);
        words.extend(inner(runtime, &job(), around.folder));
        words.join(" ")
    }

    #[test]
    fn each_runtime_is_given_directories_variables_and_devices_in_its_own_words() {
        assert_eq!(
            line(ContainerRuntime::Apptainer, "CUDA_VISIBLE_DEVICES=GPU-1"),
            "exec --pwd /home/u --bind /cell/tasks/7 --bind /home/u --bind /tmp/7 --nv \
             /bin/sh /cell/tasks/7/job_scripts/7 a b"
        );
        assert_eq!(
            line(ContainerRuntime::Podman, "X=1"),
            "--cgroup-manager=cgroupfs run --rm --interactive --cgroups=disabled --network=host --userns=keep-id \
             --pull=never --log-driver=none --entrypoint= --workdir /home/u --volume /cell/tasks/7:/cell/tasks/7 \
             --volume /home/u:/home/u --volume /tmp/7:/tmp/7 --device /dev/nvidia0 --env JOB_ID --env X \
             /bin/sh /cell/tasks/7/job_scripts/7 a b"
        );
        assert_eq!(
            line(ContainerRuntime::Enroot, "X=1"),
            "start --mount /cell/tasks/7:/cell/tasks/7 --mount /home/u:/home/u --mount /tmp/7:/tmp/7 \
             --env JOB_ID --env X /bin/sh -c cd \"$0\" && exec \"$@\" /home/u \
             /bin/sh /cell/tasks/7/job_scripts/7 a b"
        );
    }

    #[test]
    fn names_that_a_runtime_would_take_for_something_else_are_refused() {
        let check = |image: &str, folder: &str| {
            let around = Surroundings {
                environment: &[],
                search_path: "/nowhere",
                folder,
                directories: &[],
                devices: &[],
            };
            let container = Container {
                runtime: ContainerRuntime::Apptainer,
                image: image.to_owned(),
            };
            wrap(job(), &container, &around).unwrap_err().text
        };
        for (image, folder, why) in [
            ("--privileged", "/home/u", "is not an image"),
            ("docker://ubuntu", "/home/u", "is not an image"),
            ("a.sif", "/home/u:/etc", "has a colon or a comma"),
            ("a.sif", "/home/u", "this host has no apptainer"),
        ] {
            assert!(check(image, folder).contains(why), "{image} {folder}");
        }
    }
}
