//! What the machine can do at most: fork, exec and wait, with nothing around it.

use crate::clock::tell;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long is counted.
const TIME: Duration = Duration::from_secs(3);

/// Threads that start programs.
const THREADS: usize = 2;

/// Programs per second.
pub fn measure() {
    for words in [&["/bin/true"][..], &["/bin/sh", "-c", "/bin/true"]] {
        let counts: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| count(words))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("a thread that counts does not panic"))
                .sum()
        });
        let what = format!("floor: fork, exec, wait of {}", words.join(" "));
        tell(
            &what,
            counts as f64 / TIME.as_secs_f64(),
            "/s",
            &format!("{THREADS} threads"),
        );
    }
}

fn count(words: &[&str]) -> u64 {
    let end = Instant::now() + TIME;
    let mut count = 0;
    while Instant::now() < end {
        let status = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{words:?} must run");
        count += 1;
    }
    count
}
