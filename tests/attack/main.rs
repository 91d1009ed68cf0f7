//! What a hostile user, a compromised daemon, a sick host and a bad day do to a cell, as one
//! program: each attack has a cell of its own, and a table says which of them the cell held and
//! where it fell.
//!
//! `cargo test -p gridwright-tests --test attack` makes the short forms of all of them; a word
//! behind `--` chooses those whose names contain it. `tests/long/attack` makes the long forms
//! against a release build.
//!
//! Attackers are processes of numeric uids that no account has, or of the uid of a daemon: this
//! program starts itself again for them. Nothing leaves loopback, and each attack has a bound on
//! what it makes: connections, files, processes, datagrams.

mod attacker;
mod boundary;
mod clock;
mod crowd;
mod daemons;
mod damage;
mod launch;
mod login;
mod network;
mod processes;
mod seed;
mod sick;
mod stage;

use stage::Attack;
use std::process::ExitCode;

/// Every attack, in the order of the table.
fn all() -> Vec<&'static Attack> {
    let groups = [
        boundary::ATTACKS,
        launch::ATTACKS,
        login::ATTACKS,
        sick::ATTACKS,
        processes::ATTACKS,
        daemons::ATTACKS,
        damage::ATTACKS,
        clock::ATTACKS,
        network::ATTACKS,
        crowd::ATTACKS,
    ];
    groups.into_iter().flatten().collect()
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((role, words)) = attacker::role_of(&words) {
        role(words);
        return ExitCode::SUCCESS;
    }
    let named: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_exact = words.iter().any(|word| word == "--exact");
    let is_chosen = |attack: &&Attack| {
        named.is_empty()
            || named.iter().any(|word| {
                if is_exact {
                    attack.name == *word
                } else {
                    attack.name.contains(word)
                }
            })
    };
    let chosen: Vec<&Attack> = all().into_iter().filter(is_chosen).collect();
    if words.iter().any(|word| word == "--list") {
        chosen.iter().for_each(|attack| println!("{}: test", attack.name));
        return ExitCode::SUCCESS;
    }
    stage::run(&chosen)
}
