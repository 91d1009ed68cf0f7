//! What a checkpointing environment makes of a document.

use super::*;

fn checkpoint() -> CheckpointOrder {
    CheckpointOrder {
        name: "ck".to_owned(),
        directory: "/states".to_owned(),
        save: Some("/ck/save $job_id $ja_task_id $job_pid $ckpt_dir $ckpt_signal".to_owned()),
        migrate: Some("/ck/move $host $queue $job_owner $job_name".to_owned()),
        restart: None,
        clean: Some("/ck/clean $sge_cell $sge_root".to_owned()),
        signal: "usr1".to_owned(),
        save_signal: None,
        interval_s: Some(5),
        saved_pid: None,
    }
}

#[test]
fn commands_of_a_checkpointing_environment_are_told_about_the_job() {
    let order = StartOrder {
        checkpoint: Some(checkpoint()),
        ..order(key(1, 1))
    };
    let made = document(&order, &spec());
    assert_eq!(
        (variable(&made, "SGE_CKPT_ENV"), variable(&made, "SGE_CKPT_DIR")),
        (Some("ck"), Some("/states"))
    );
    let expected = Checkpointing {
        save: Method::Command("/ck/save 7 0 $job_pid /states usr1".to_owned()),
        interval_s: 5,
        migrate: Method::Command("/ck/move node1 all.q u1 job.sh".to_owned()),
        clean: Some("/ck/clean default /cell".to_owned()),
    };
    assert_eq!(made.checkpoint, Some(expected));
    assert!(made.start.has_script());
}

#[test]
fn a_job_whose_state_was_written_is_started_by_its_command() {
    let restart = Some("/ck/again $job_pid".to_owned());
    let saved = CheckpointOrder {
        restart,
        saved_pid: Some(77),
        ..checkpoint()
    };
    let made = document(
        &StartOrder {
            checkpoint: Some(saved),
            restarted: 2,
            ..order(key(1, 1))
        },
        &spec(),
    );
    let argv = vec!["/ck/again 77".to_owned()];
    assert_eq!(
        made.start,
        Start::Command {
            shell: "/bin/sh".to_owned(),
            login: false,
            argv
        }
    );
}
