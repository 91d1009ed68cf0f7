//! Jobs in containers, with a stand-in for the runtime that notes how it was called and runs the
//! command outside of any container.

use super::cell::{Cell, failed};
use proto::launch::{Container, ContainerRuntime, EndCause, FailedCodes, LaunchDocument, TaskOrder};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Skips the options that `apptainer exec` has, and refuses an image that it cannot read.
const RUNTIME: &str = "#!/bin/sh\nprintf '%s\\n' \"$*\" >command\nshift\n\
    while :; do case $1 in --pwd|--bind) shift 2 ;; --nv|--rocm) shift ;; *) break ;; esac; done\n\
    [ -r \"$1\" ] || exit 255\nshift\nexec \"$@\"\n";

/// A job in the container of an image. The stand-in is there, and an image.
fn contained(cell: &mut Cell, image: &str, command: &str) -> LaunchDocument {
    let bin = cell.work.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let runtime = bin.join("apptainer");
    fs::write(&runtime, RUNTIME).unwrap();
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(cell.work.join("image.sif"), "").unwrap();
    let mut document = cell.shell(command);
    document.environment.retain(|entry| !entry.starts_with("PATH="));
    document
        .environment
        .push(format!("PATH={}:/usr/bin:/bin", bin.display()));
    document.environment.push("CUDA_VISIBLE_DEVICES=GPU-1".to_owned());
    LaunchDocument {
        container: Some(Container {
            runtime: ContainerRuntime::Apptainer,
            image: image.to_owned(),
        }),
        ..document
    }
}

#[test]
fn a_job_in_a_container_has_its_directory_variables_and_exit_status() {
    let mut cell = Cell::start();
    let document = contained(&mut cell, "image.sif", "pwd; echo $CUDA_VISIBLE_DEVICES; exit 7");
    let result = cell.run_document(document);
    assert_eq!(result.cause, EndCause::Exited(7), "{result:?}");
    let folder = cell.work.display().to_string();
    assert_eq!(cell.output(&result, 'o'), format!("{folder}\nGPU-1\n"));
    let command = fs::read_to_string(cell.work.join("command")).unwrap();
    assert!(
        command.starts_with(&format!("exec --pwd {folder} --bind ")),
        "{command}"
    );
    assert!(command.contains(&format!("--bind {folder} ")), "{command}");
    assert!(command.contains(" --nv image.sif /bin/sh -c pwd; "), "{command}");
    let task = cell
        .dir
        .join("tasks")
        .join(result.key.to_string())
        .display()
        .to_string();
    assert!(command.contains(&format!("--bind {task}")), "{command}");
}

#[test]
fn signals_reach_a_job_in_a_container() {
    let mut cell = Cell::start();
    let command = "trap 'echo told; exit 3' USR1; echo $$ > running; while :; do sleep 0.05; done";
    let document = contained(&mut cell, "image.sif", command);
    let key = cell.launch(document);
    cell.executed(key);
    cell.read_when_there("running");
    cell.order(key, TaskOrder::User1);
    let result = cell.ended(key);
    assert_eq!(result.cause, EndCause::Exited(3), "{result:?}");
    assert_eq!(cell.output(&result, 'o'), "told\n");
}

#[test]
fn a_missing_image_or_runtime_is_the_fault_of_the_job() {
    let mut cell = Cell::start();
    let no_image = contained(&mut cell, "no-such.sif", "echo it runs > trace");
    let mut no_runtime = contained(&mut cell, "image.sif", "echo it runs > trace");
    no_runtime.container.as_mut().unwrap().runtime = ContainerRuntime::Enroot;
    for (document, why) in [
        (no_image, "the image \"no-such.sif\" is not on this host"),
        (no_runtime, "this host has no enroot"),
    ] {
        let result = cell.run_document(document);
        let (code, text) = failed(&result);
        assert_eq!(code, FailedCodes::NO_SHELL, "{text}");
        assert!(text.contains(why), "{text}");
    }
    assert!(!cell.work.join("trace").exists());
}
