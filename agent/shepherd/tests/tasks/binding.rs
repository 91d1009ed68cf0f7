//! The processors that a job is bound to.

use super::cell::Cell;
use proto::launch::EndCause;
use std::fs;

/// The processors that a process may use, in the form of the kernel.
fn allowed(status: &str) -> &str {
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.expect("the kernel tells it").trim()
}

const SAY: &str = "cat /proc/self/status > said";

#[test]
fn a_job_runs_on_its_processors_and_another_one_on_all() {
    let all = fs::read_to_string("/proc/self/status").expect("it is there");
    let last = allowed(&all)
        .rsplit([',', '-'])
        .next()
        .expect("there is one")
        .to_owned();
    let mut cell = Cell::start();
    for (processors, expected) in [(Some(last.clone()), last.as_str()), (None, allowed(&all))] {
        let mut document = cell.shell(SAY);
        document.processors = processors;
        let result = cell.run_document(document);
        assert_eq!(result.cause, EndCause::Exited(0));
        assert_eq!(
            allowed(&fs::read_to_string(cell.work.join("said")).expect("the job wrote it")),
            expected
        );
        assert_eq!(
            result
                .usage
                .conditions
                .map_or(0, |conditions| conditions.unset.texts().count()),
            0
        );
    }
}

#[test]
fn a_job_that_the_kernel_does_not_bind_runs_on_all_processors_and_that_is_told() {
    let all = fs::read_to_string("/proc/self/status").expect("it is there");
    let mut cell = Cell::start();
    for processors in ["65535", ""] {
        let mut document = cell.shell(SAY);
        document.processors = Some(processors.to_owned());
        let result = cell.run_document(document);
        assert_eq!(
            allowed(&fs::read_to_string(cell.work.join("said")).expect("the job wrote it")),
            allowed(&all)
        );
        let unset = result.usage.conditions.expect("they are told").unset;
        let told: Vec<&str> = unset.texts().collect();
        assert!(told[0].starts_with("the processors of the binding"), "{told:?}");
    }
}
