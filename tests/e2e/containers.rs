//! Jobs in containers, with a stand-in for the runtime.

use gridwright_tests::cell::{Cell, wait_until};

/// Says how it was called, skips the options that `apptainer exec` has, and runs the command
/// outside of any container.
const RUNTIME: &str = "#!/bin/sh\necho \"runtime: $*\" >&2\nshift\n\
    while :; do case $1 in --pwd|--bind) shift 2 ;; --nv|--rocm) shift ;; *) break ;; esac; done\n\
    shift\nexec \"$@\"\n";

#[test]
fn a_job_runs_in_its_image_and_is_in_error_without_it() {
    let cell = Cell::up();
    let refused = cell.user(&["qsub", "-l", "container=a.sif", "-b", "y", "true"]);
    assert_ne!(refused.code, 0, "off unless configured: {refused}");
    cell.add_complex("container container STRING != YES NO NONE 0");
    let set = |value: &str| cell.admin(&["qconf", "-mattr", "queue", "complex_values", value, "all.q"]);
    assert!(
        set("container=docker")
            .to_string()
            .contains("apptainer, singularity, podman, enroot")
    );
    set("container=apptainer").ok();
    let program = cell.write_top("apptainer", RUNTIME, 0o755);
    let folder = program.parent().expect("a file is in a folder").display().to_string();
    let path = format!("PATH={folder}:/usr/bin:/bin");
    cell.write("image.sif", "", 0o644);
    let script = "#!/bin/sh\necho job $JOB_ID in $PWD with $1\nexit 5\n";
    cell.write("job.sh", script, 0o755);
    let job = cell.submit(&["-v", &path, "-l", "container=image.sif", "job.sh", "two words"]);
    let record = cell.accounted(&job, 1).remove(0);
    assert_eq!(record.value("exit_status"), "5");
    let output = cell.output(&record);
    let work = cell.work().display().to_string();
    assert!(
        output.contains(&format!("runtime: exec --pwd {work} --bind ")),
        "{output}"
    );
    assert!(
        output.ends_with(&format!("job {job} in {work} with two words\n")),
        "{output}"
    );
    let missing = cell.submit(&["-v", &path, "-l", "container=none.sif", "-b", "y", "true"]);
    cell.wait_for_state(&missing, "Eqw");
    let said = || cell.user(&["qstat", "-j", &missing]).out;
    wait_until(said, || said().contains("the image \"none.sif\" is not on this host"));
    let queue = cell.user(&["qselect", "-qs", "E"]);
    assert_eq!(queue.out, "", "the queue goes on");
    cell.admin(&["qdel", &missing]).ok();
}
