use super::relay::{RelayOptions, serve};
use super::*;
use crate::testing::{TempDir, spec};
use proto::id::JobNumber;
use proto::jsv::JsvUrl;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

/// A verifier that changes names, rejects the job `bad`, and notes its starts.
const SCRIPT: &str = "#!/bin/sh\necho $$ >>$0.starts\nwhile read -r w r; do case $w in START) echo STARTED;;\n\
    PARAM) case $r in 'N '*) N=${r#N };; 'JOB_ID '*) J=${r#JOB_ID };; esac;;\n\
    BEGIN) case $N in bad) echo RESULT STATE REJECT not today;; mute) sleep 600;;\n\
    *) echo PARAM N $N-$J; echo RESULT STATE CORRECT;; esac;; QUIT) echo quit >>$0.starts; exit 0;; esac; done\n";

fn script(dir: &Path) -> String {
    let path = dir.join("jsv.sh");
    std::fs::write(&path, SCRIPT).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// A pool with its answers.
struct TestPool {
    queue: VerifierQueue,
    answers: mpsc::Receiver<DriverInput>,
}

impl TestPool {
    fn new(root: &Path) -> Self {
        let (sender, answers) = mpsc::channel(100);
        let (queue, work) = VerifierQueue::new(sender, root.to_owned());
        tokio::spawn(work);
        Self { queue, answers }
    }

    fn ask(&self, url: &JsvUrl, submission: u64, name: &str) {
        let id = VerificationId { submission, copy: 0 };
        self.queue.verify(Box::new(VerificationOrder {
            id,
            verifier: url.clone(),
            patience_s: 1,
            threshold_ms: 5_000,
            number: JobNumber(u32::try_from(submission).unwrap()),
            spec: Arc::new(JobSpec {
                name: name.to_owned(),
                ..spec()
            }),
        }));
    }

    /// The next answer: the number of the request, and the name of the job or the refusal.
    async fn next(&mut self) -> (u64, Result<String, String>) {
        match self.answers.recv().await {
            Some(DriverInput::Core(Input::Verified { id, outcome })) => (
                id.submission,
                outcome.map(|spec| spec.name).map_err(|refusal| refusal.what),
            ),
            other => panic!("{other:?}"),
        }
    }
}

fn url(user: Option<&str>, path: &str) -> JsvUrl {
    JsvUrl {
        user: user.map(str::to_owned),
        path: path.to_owned(),
    }
}

/// The name of the account of the test, which must not be root's to run verifiers itself.
fn own_name() -> String {
    account::own().unwrap().name
}

#[tokio::test]
async fn the_verifier_is_asked_about_each_job_and_ends_with_the_pool() {
    if nix::unistd::geteuid().is_root() {
        return;
    }
    let dir = TempDir::new("verifiers");
    let path = script(dir.path());
    let mut pool = TestPool::new(dir.path());
    for submission in 1..4 {
        pool.ask(&url(None, &path), submission, "n");
        assert_eq!(pool.next().await, (submission, Ok(format!("n-{submission}"))));
    }
    pool.ask(&url(Some(&own_name()), &path), 4, "bad");
    assert_eq!(pool.next().await, (4, Err("not today".to_owned())));
    pool.queue.stop().await;
    let starts = std::fs::read_to_string(format!("{path}.starts")).unwrap();
    assert!(starts.contains("quit"), "{starts}");
}

#[tokio::test]
async fn the_master_does_not_run_a_verifier_as_root() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let dir = TempDir::new("verifiers-root");
    let mut pool = TestPool::new(dir.path());
    pool.ask(&url(None, &script(dir.path())), 1, "n");
    let (_, refused) = pool.next().await;
    assert_eq!(
        refused,
        Err("the job submission verifier is not run: the master runs as root".to_owned())
    );
    let options = RelayOptions {
        scripts: Vec::new(),
        master: own_name(),
        listen: None,
    };
    assert!(serve(&options).unwrap_err().to_string().contains("not run as root"));
}

#[tokio::test]
async fn a_verifier_of_another_account_without_a_relay_is_a_refusal_that_names_the_unit() {
    let dir = TempDir::new("verifiers-relay");
    let mut pool = TestPool::new(dir.path());
    pool.ask(&url(Some("nosuchuser"), "/opt/jsv.sh"), 1, "n");
    let (_, refused) = pool.next().await;
    assert_eq!(
        refused,
        Err("the job submission verifier of account nosuchuser is not reached".to_owned())
    );
}
