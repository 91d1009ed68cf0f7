//! Runs of many seeds, and the report of one that fails.

use super::faults::Counts;
use super::world::{Plan, World};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs one seed. A failure is told with its step, what happened before it, and the command that
/// repeats it.
///
/// # Errors
/// The report.
pub fn run_one(plan: Plan, aloud: bool) -> Result<Counts, String> {
    let attempt = |wanted: bool| {
        let mut world = World::new(plan);
        if wanted {
            world.keep_trace(aloud);
        }
        match catch_unwind(AssertUnwindSafe(|| world.run())) {
            Ok(()) => Ok(world.counts()),
            Err(panic) => Err((panic_text(&*panic), world.last_words())),
        }
    };
    // The first run keeps no texts, because most seeds do not fail; the same seed fails the same
    // way again.
    attempt(aloud).map_err(|first| {
        let (text, words) = attempt(true).err().unwrap_or(first);
        let seed = plan.seed;
        let again = format!("GRIDWRIGHT_SEED={seed} cargo test -p gridwright-tests --test sim one_seed -- --nocapture");
        format!("seed {seed} fails: {text}\n{words}again: {again}\n")
    })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_else(|| "a panic".to_owned())
}

/// Runs the plans of seeds `first` to `last` on all processors.
///
/// # Errors
/// The report of the seed that failed first.
pub fn run_many(first: u64, last: u64, plan: impl Fn(u64) -> Plan + Sync) -> Result<Counts, String> {
    let next = AtomicU64::new(first);
    let sum = Mutex::new(Ok(Counts::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > last {
                return;
            }
            let outcome = run_one(plan(seed), false);
            let mut sum = sum.lock().expect("no thread panics with the sum in its hands");
            match (&mut *sum, outcome) {
                (Ok(sum), Ok(counts)) => *sum += counts,
                (Ok(_), Err(report)) => {
                    *sum = Err(report);
                    next.store(last + 1, Ordering::Relaxed);
                }
                (Err(_), Ok(_) | Err(_)) => {}
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    sum.into_inner().expect("no thread panics with the sum in its hands")
}
