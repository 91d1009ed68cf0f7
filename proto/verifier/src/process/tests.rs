use super::*;
use crate::dialog::JsvChange;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// A directory that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gridwright-jsv-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a script, in place of an earlier one of the name. What it begins with is read by the
    /// shell before `START`.
    fn script(&self, name: &str, text: &str) -> PathBuf {
        let (path, new) = (self.0.join(name), self.0.join("new"));
        std::fs::write(
            &new,
            format!("#!/bin/sh\necho $$ >>{}\n{text}", self.starts(name).display()),
        )
        .unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(new, &path).unwrap();
        path
    }

    fn starts(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.starts"))
    }

    /// How often a script was started.
    fn start_count(&self, name: &str) -> usize {
        let starts = std::fs::read_to_string(self.starts(name)).unwrap_or_default();
        starts.lines().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn verifier(script: &Path, patience_ms: u64) -> Verifier {
    Verifier::new(Launch {
        script: script.display().to_string(),
        environment: Vec::new(),
        has_own_environment: false,
        directory: None,
        patience: Duration::from_millis(patience_ms),
    })
}

fn offer(name: &str) -> JsvOffer {
    JsvOffer {
        parameters: vec![("N".to_owned(), name.to_owned())],
        environment: vec![("FOO".to_owned(), "1".to_owned())],
    }
}

async fn ask(verifier: &mut Verifier, name: &str) -> Result<JsvAnswer, String> {
    let answered = verifier.verify(&offer(name), &mut |_| {}).await;
    answered.map_err(|fault| fault.to_string())
}

/// Answers each job with the words of `answer`; `$N` is its name.
fn answering(answer: &str) -> String {
    format!(
        "while read -r word rest; do case $word in\nSTART) echo STARTED;;\n\
         PARAM) case $rest in 'N '*) N=${{rest#N }};; esac;;\nBEGIN) {answer};;\nQUIT) exit 0;;\nesac; done\n"
    )
}

fn named(name: &str) -> JsvAnswer {
    JsvAnswer {
        changes: vec![JsvChange::Parameter {
            name: "N".to_owned(),
            value: Some(name.to_owned()),
        }],
        rejection: None,
    }
}

const CORRECT: &str = "echo PARAM N new-$N; echo RESULT STATE CORRECT";

#[tokio::test]
async fn one_process_answers_about_one_job_after_the_other() {
    let folder = Folder::new("many");
    let mut verifier = verifier(&folder.script("j", &answering(CORRECT)), 10_000);
    for name in ["a", "b", "c"] {
        assert_eq!(ask(&mut verifier, name).await, Ok(named(&format!("new-{name}"))));
    }
    assert_eq!(folder.start_count("j"), 1);
}

#[tokio::test]
async fn the_environment_comes_to_those_who_want_it() {
    let folder = Folder::new("environment");
    let script = "read a; echo SEND ENV; echo STARTED; while read -r w r; do case $w in ENV) E=$r;; BEGIN) break;; esac; done\n\
        echo RESULT STATE REJECT got $E\nread a\n";
    let mut verifier = verifier(&folder.script("j", script), 10_000);
    let answer = ask(&mut verifier, "a").await.unwrap();
    assert_eq!(answer.rejection.as_deref(), Some("got ADD FOO 1"));
}

#[tokio::test]
async fn a_script_that_is_replaced_is_started_anew() {
    let folder = Folder::new("replaced");
    let path = folder.script("j", &answering("echo RESULT STATE ACCEPT"));
    let mut verifier = verifier(&path, 10_000);
    assert_eq!(ask(&mut verifier, "a").await, Ok(JsvAnswer::default()));
    folder.script("j", &answering(CORRECT));
    assert_eq!(ask(&mut verifier, "a").await, Ok(named("new-a")));
    assert_eq!(folder.start_count("j"), 2);
}

/// In 8.1.9 the rest of a bad answer is taken for the answer about the next job.
#[tokio::test]
async fn nothing_of_a_bad_answer_is_left_for_the_next_job() {
    let folder = Folder::new("bad");
    let bad = "case $N in bad) echo PARAM USER root; echo PARAM N stolen; echo RESULT STATE ACCEPT;; \
        *) echo RESULT STATE REJECT no $N;; esac";
    let mut verifier = verifier(&folder.script("j", &answering(bad)), 10_000);
    for _ in 0..3 {
        let refused = ask(&mut verifier, "bad").await.unwrap_err();
        assert_eq!(refused, "JSV tries to modify read-only parameter \"USER\"");
        let next = ask(&mut verifier, "next").await.unwrap();
        assert_eq!(next.rejection.as_deref(), Some("no next"));
    }
}

#[tokio::test]
async fn what_is_said_after_a_result_counts_for_no_job() {
    let folder = Folder::new("behind");
    let twice = "echo RESULT STATE ACCEPT; echo RESULT STATE ACCEPT; echo STARTED";
    let mut verifier = verifier(&folder.script("j", &answering(twice)), 10_000);
    for name in ["a", "b", "c"] {
        // Whether the second line is there with the first one, or later, is chance.
        let answered = ask(&mut verifier, name).await;
        let is_refused = answered
            .as_ref()
            .err()
            .is_some_and(|why| why.contains("unknown command"));
        assert!(answered == Ok(JsvAnswer::default()) || is_refused, "{answered:?}");
    }
}

#[tokio::test]
async fn who_ends_is_asked_once_more_and_who_is_late_too() {
    let folder = Folder::new("ends");
    for (name, text) in [
        ("before", "read a; exit 3\n".to_owned()),
        ("after", answering("exit 3")),
        ("mute", "while :; do sleep 60; done\n".to_owned()),
        ("late", answering("sleep 60; echo RESULT STATE ACCEPT")),
        ("closed", "exec >&-; sleep 60\n".to_owned()),
    ] {
        let path = folder.script(name, &text);
        let mut verifier = verifier(&path, 700);
        let expected = format!("got no response from JSV script \"{}\"", path.display());
        assert_eq!(ask(&mut verifier, "a").await, Err(expected), "{name}");
        assert_eq!(folder.start_count(name), 2, "{name}");
    }
}

/// As an idle process that ended while nobody looked.
#[tokio::test]
async fn an_idle_process_that_ends_is_started_again_without_a_word() {
    let folder = Folder::new("idle");
    let mut verifier = verifier(
        &folder.script("j", &answering("echo RESULT STATE ACCEPT; exit 0")),
        10_000,
    );
    for count in 1..4 {
        assert_eq!(ask(&mut verifier, "a").await, Ok(JsvAnswer::default()));
        assert_eq!(folder.start_count("j"), count);
    }
}

#[tokio::test]
async fn a_line_on_standard_error_refuses_the_job() {
    let folder = Folder::new("stderr");
    for (name, text) in [
        (
            "living",
            answering("echo oops >&2; echo '  twice' >&2; echo RESULT STATE ACCEPT"),
        ),
        ("dying", answering("echo oops >&2; echo twice >&2; exit 1")),
    ] {
        let mut verifier = verifier(&folder.script(name, &text), 10_000);
        let expected = "JSV stderr: oops\nJSV stderr: twice\nJSV stderr is - twice";
        assert_eq!(ask(&mut verifier, "a").await, Err(expected.to_owned()), "{name}");
    }
}

#[tokio::test]
async fn a_flood_is_cut() {
    let folder = Folder::new("flood");
    for (name, text, expected) in [
        ("line", "yes x | tr -d '\\n'", "JSV sent a line of more than"),
        ("lines", "yes LOG INFO x", "JSV sent more than"),
        ("stderr", "yes x >&2", "JSV stderr: x\n"),
    ] {
        let mut verifier = verifier(&folder.script(name, &answering(text)), 10_000);
        let refused = ask(&mut verifier, "a").await.unwrap_err();
        assert!(refused.starts_with(expected), "{name}: {refused}");
        assert!(refused.len() < 200_000, "{name}");
    }
}

/// Both pipes are full before the other side reads.
#[tokio::test]
async fn a_long_offer_and_a_talkative_verifier_do_not_wait_for_each_other() {
    let folder = Folder::new("long");
    let talk = "read a; echo STARTED; i=0; while [ $i -lt 900 ]; do echo LOG INFO $i 0123456789012345678901234567890123456789; \
        i=$((i + 1)); done; while read -r w r; do case $w in BEGIN) echo RESULT STATE ACCEPT;; QUIT) exit;; esac; done\n";
    let mut verifier = verifier(&folder.script("j", talk), 20_000);
    let parameters = (0..3_000).map(|index| (format!("CMDARG{index}"), "x".repeat(100)));
    let offer = JsvOffer {
        parameters: parameters.collect(),
        ..JsvOffer::default()
    };
    let mut lines = 0;
    let answer = verifier.verify(&offer, &mut |_| lines += 1).await;
    assert_eq!((answer, lines), (Ok(JsvAnswer::default()), 900));
}

#[tokio::test]
async fn what_a_killed_verifier_has_started_is_killed_too() {
    let folder = Folder::new("group");
    let pid = folder.0.join("pid");
    let text = answering(&format!("sleep 600 & echo $! >{}; wait", pid.display()));
    let mut verifier = verifier(&folder.script("j", &text), 700);
    assert!(ask(&mut verifier, "a").await.is_err());
    let child = std::fs::read_to_string(&pid).unwrap();
    let stat = format!("/proc/{}/stat", child.trim());
    let has_ended = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    while !has_ended() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_name_without_a_slash_is_a_command_of_the_path() {
    let mut verifier = verifier(Path::new("no-such-jsv.sh"), 10_000);
    let refused = ask(&mut verifier, "a").await.unwrap_err();
    assert!(
        refused.starts_with("JSV stderr: /bin/sh: 1: no-such-jsv.sh: not found\n"),
        "{refused}"
    );
}
