//! The scripts against the tables, and what they are told by placeholders.

use super::*;
use std::collections::BTreeSet;

#[test]
fn a_placeholder_tells_what_can_stand_there() {
    let choices = |words: &str| CompletionSource::Choices(words.split(' ').map(str::to_owned).collect());
    for (placeholder, source) in [
        ("y[es]|n[o]", choices("y n")),
        ("text|xml|json", choices("text xml json")),
        ("{a|c|A}", choices("a c A")),
        ("{p|r|s|z|h[uosdja]|a}", choices("p r s z h a")),
        ("wc_queue_list", CompletionSource::Names(Names::Queues)),
        ("wc_pe_name slot_range", CompletionSource::Names(Names::Environments)),
        ("resource_list", CompletionSource::Names(Names::Resources)),
        ("[host_list|global]", CompletionSource::Names(Names::Hosts)),
        (
            "job_task_list|-uall [- script_args]",
            CompletionSource::Names(Names::Jobs),
        ),
        ("[{command|-|--} [command_args]]", CompletionSource::Files),
        ("FILE", CompletionSource::Files),
        ("DIR", CompletionSource::Directories),
        ("NAME|UID:GID", CompletionSource::Nothing),
        ("date_time", CompletionSource::Nothing),
        ("job_share", CompletionSource::Nothing),
        ("", CompletionSource::Nothing),
    ] {
        assert_eq!(CompletionSource::of_placeholder(placeholder), source, "{placeholder}");
    }
}

#[test]
fn operands_that_are_subcommands_are_words() {
    let of = |name: &str| {
        commands()
            .into_iter()
            .find(|command| command.name == name)
            .unwrap()
            .operands
    };
    let words = |text: &str| CompletionSource::Choices(text.split(' ').map(str::to_owned).collect());
    assert_eq!(of("token"), words("create list revoke"));
    assert_eq!(of("sensor"), words("check status"));
    assert_eq!(of("completions"), words("bash zsh fish"));
    assert_eq!(
        (of("qdel"), of("qsub")),
        (CompletionSource::Names(Names::Jobs), CompletionSource::Files)
    );
}

/// The options of a command in the table of bash.
fn in_bash(script: &str, command: &str) -> BTreeSet<String> {
    let table = script.split("_gridwright_options() {").nth(1).unwrap();
    let row = table
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(&format!("{command}) REPLY='")))
        .unwrap();
    row.split('\'').next().unwrap().split(' ').map(str::to_owned).collect()
}

/// The options of a command in its function of zsh.
fn in_zsh(script: &str, command: &str) -> BTreeSet<String> {
    let function = script
        .split(&format!("_gridwright_{command}() {{"))
        .nth(1)
        .unwrap()
        .split("\n}")
        .next()
        .unwrap();
    let specs = function
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("'*-"));
    specs
        .map(|spec| format!("-{}", spec.split('[').next().unwrap()))
        .collect()
}

/// The options of a command in fish.
fn in_fish(script: &str, command: &str) -> BTreeSet<String> {
    let begin = format!("complete -c gridwright -n '__gridwright_is {command}' -");
    let rows = script.lines().filter_map(|line| line.strip_prefix(&begin));
    rows.filter_map(|row| {
        let mut words = row.split(' ');
        match (words.next()?, words.next()?) {
            ("o", name) => Some(format!("-{name}")),
            ("l", name) => Some(format!("--{name}")),
            _ => None,
        }
    })
    .collect()
}

#[test]
fn each_script_has_the_options_that_work_and_no_others() {
    let scripts = [Shell::Bash, Shell::Zsh, Shell::Fish].map(Shell::script);
    for entry in COMMANDS {
        let options = (entry.defs)().into_iter().flat_map(|def| def.options);
        let working: BTreeSet<String> = options
            .filter(|option| option.support == Support::Yes)
            .map(|option| option.name.to_owned())
            .collect();
        let found = [
            in_bash(&scripts[0], entry.name),
            in_zsh(&scripts[1], entry.name),
            in_fish(&scripts[2], entry.name),
        ];
        for (shell, found) in ["bash", "zsh", "fish"].iter().zip(found) {
            assert_eq!(found, working, "{} in {shell}", entry.name);
        }
    }
}
