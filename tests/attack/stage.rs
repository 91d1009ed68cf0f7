//! Running attacks beside each other, and the table of what became of them.

use gridwright_tests::cell::{available, is_root};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{self, PanicHookInfo};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How many attacks run at once: most of their time is waiting.
const AT_ONCE: usize = 3;

/// One attack.
pub struct Attack {
    /// Its name, by which it is chosen.
    pub name: &'static str,
    /// What holds if the attack fails.
    pub claim: &'static str,
    /// What it takes to make it.
    pub needs: &'static [Requirement],
    /// Makes it; panics where the cell falls.
    pub run: fn(),
}

/// What a machine must have for an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The test runs as root.
    Root,
    /// A program below `/usr/bin` or `/usr/sbin`.
    Program(&'static str),
}

impl Requirement {
    fn is_met(self) -> bool {
        match self {
            Self::Root => available("root", is_root()),
            Self::Program(name) => {
                let is_there = ["/usr/bin", "/usr/sbin"]
                    .iter()
                    .any(|folder| Path::new(folder).join(name).exists());
                available(name, is_there)
            }
        }
    }
}

/// What became of an attack.
enum Outcome {
    Held,
    Fell(String),
    Skipped,
}

/// A row of the table.
struct Row {
    attack: &'static Attack,
    outcome: Outcome,
    took: Duration,
}

thread_local! {
    /// The message of the first panic of this thread.
    static REASON: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Makes the attacks and prints the table; a failure if one fell.
pub fn run(attacks: &[&'static Attack]) -> ExitCode {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        REASON.with_borrow_mut(|reason| {
            reason.get_or_insert_with(|| info.to_string());
        });
        usual(info);
    }));
    let open: Mutex<VecDeque<&'static Attack>> = Mutex::new(attacks.iter().copied().collect());
    let next = || open.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let rows = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(attacks.len()) {
            scope.spawn(|| {
                while let Some(attack) = next() {
                    let row = make(attack);
                    println!("{}", line(&row));
                    rows.lock().unwrap_or_else(PoisonError::into_inner).push(row);
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    let place = |row: &Row| attacks.iter().position(|attack| attack.name == row.attack.name);
    rows.sort_by_key(place);
    print_table(&rows)
}

fn make(attack: &'static Attack) -> Row {
    let began = Instant::now();
    let outcome = panic::catch_unwind(|| {
        if !attack.needs.iter().all(|need| need.is_met()) {
            return Outcome::Skipped;
        }
        (attack.run)();
        Outcome::Held
    });
    let reason = REASON.take().unwrap_or_default();
    Row {
        attack,
        outcome: outcome.unwrap_or(Outcome::Fell(reason)),
        took: began.elapsed(),
    }
}

fn line(row: &Row) -> String {
    let word = match row.outcome {
        Outcome::Held => "held",
        Outcome::Fell(_) => "FELL",
        Outcome::Skipped => "skipped",
    };
    format!(
        "{word:<8}{:>6.1} s  {:<28} {}",
        row.took.as_secs_f64(),
        row.attack.name,
        row.attack.claim
    )
}

fn print_table(rows: &[Row]) -> ExitCode {
    println!("\n{:<8}{:>8}  {:<28} what was to hold", "", "time", "attack");
    rows.iter().for_each(|row| println!("{}", line(row)));
    let count = |wanted: fn(&Outcome) -> bool| rows.iter().filter(|row| wanted(&row.outcome)).count();
    let fell = count(|outcome| matches!(outcome, Outcome::Fell(_)));
    let (held, skipped) = (
        count(|outcome| matches!(outcome, Outcome::Held)),
        count(|outcome| matches!(outcome, Outcome::Skipped)),
    );
    for row in rows {
        if let Outcome::Fell(reason) = &row.outcome {
            println!("\n--- {}: {reason}", row.attack.name);
        }
    }
    println!("\n{held} passed: {held} held, {fell} fell, {skipped} skipped");
    ExitCode::from(u8::from(fell > 0))
}
