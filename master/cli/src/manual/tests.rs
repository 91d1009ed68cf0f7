//! The pages against the tables that they are made from.

use super::{commands, formats, pages, words};
use crate::args::CommandDef;
use crate::commands::COMMANDS;
use proto::object::ObjectKind;
use proto::program::DAEMONS;
use std::collections::BTreeSet;

fn text_of(path: &str) -> String {
    let pages = pages();
    pages
        .iter()
        .find(|page| page.path == path)
        .unwrap_or_else(|| panic!("there is no {path}"))
        .text
        .clone()
}

/// The terms of the lists in these sections, unescaped.
fn terms(text: &str, sections: &[&str]) -> Vec<String> {
    let (mut found, mut is_in, mut is_term) = (Vec::new(), false, false);
    for line in text.lines() {
        if let Some(section) = line.strip_prefix(".SH ") {
            is_in = sections.contains(&section.trim_matches('"'));
        } else if is_in && is_term {
            let bold = line
                .strip_prefix("\\fB")
                .and_then(|rest| rest.split("\\fR").next())
                .unwrap_or_default();
            found.push(bold.replace("\\-", "-"));
        }
        is_term = line == ".TP";
    }
    found
}

#[test]
fn a_command_has_a_page_with_its_options_and_no_others() {
    for entry in COMMANDS {
        let text = text_of(&format!("man1/{}.1", commands::name_of(entry)));
        let options = (entry.defs)()
            .into_iter()
            .flat_map(|def| def.options)
            .map(|option| option.name.to_owned());
        assert_eq!(
            terms(&text, &["OPTIONS"]),
            options.collect::<Vec<_>>(),
            "{}",
            entry.name
        );
        for section in [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "\"EXIT STATUS\"",
            "EXAMPLES",
            "ENVIRONMENT",
            "FILES",
            "\"SEE ALSO\"",
        ] {
            assert!(text.contains(&format!(".SH {section}\n")), "{}: {section}", entry.name);
        }
    }
}

#[test]
fn the_table_of_a_command_is_the_one_behind_its_help() {
    for entry in COMMANDS {
        let name = (entry.defs)()[0].name;
        assert_eq!(name.rsplit(' ').next(), Some(entry.name), "{name}");
    }
}

#[test]
fn every_command_has_words_once_and_examples_of_itself() {
    let mut known: Vec<&str> = COMMANDS.iter().map(|entry| entry.name).collect();
    known.push("gridwright");
    known.sort_unstable();
    let mut named: Vec<&str> = words::WORDS.iter().map(|words| words.name).collect();
    named.sort_unstable();
    assert_eq!(known, named);
    for words in words::WORDS {
        let examples: String = words.examples.iter().map(|(command, _)| *command).collect();
        assert!(examples.contains(words.name), "{}: {examples}", words.name);
    }
}

/// The words of the commands in a line of a shell: redirections are left out, and a substitution is
/// a word and its commands stand for themselves.
fn commands_of(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None::<String>, None);
    for character in line.chars() {
        match (character, quote) {
            (_, Some(mark)) if character == mark => quote = None,
            ('\'', None) => (quote, word) = (Some(character), Some(word.unwrap_or_default())),
            (' ', None) => words.extend(word.take()),
            ('(' | ')' | ';' | '|' | '\n', None) => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            ('"', _) => {}
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    commands.push(words);
    for words in &mut commands {
        words.retain(|word| !word.starts_with('>') && word != "<" && word != "eval" && word != "source");
    }
    commands
}

/// Reads the words of a command of ours as the program does. Other commands pass.
///
/// # Panics
/// If they cannot be read.
fn read(line: &str, words: &[String]) {
    let Some(first) = words
        .first()
        .filter(|first| first.starts_with('q') || *first == "gridwright")
    else {
        return;
    };
    let name = if first == "gridwright" { &words[1] } else { first };
    let entry = COMMANDS.iter().find(|entry| entry.name == name);
    let defs = (entry.unwrap_or_else(|| panic!("{line}: there is no {name}")).defs)();
    let is_named = |def: &&&CommandDef| words.starts_with(&def.name.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let def = defs.iter().filter(is_named).max_by_key(|def| def.name.len());
    let def = def.unwrap_or_else(|| panic!("{line}: no table for {words:?}"));
    let rest = words[def.name.split(' ').count()..].to_vec();
    if let Err(fail) = def.parse(rest) {
        panic!("{line}: {}", fail.diagnostic.what);
    }
}

/// The commands of all examples are read by the parsers of the programs.
#[test]
fn the_commands_in_examples_can_be_read() {
    let of_words = words::WORDS
        .iter()
        .flat_map(|words| words.examples)
        .map(|(text, _)| *text);
    let of_formats = formats::examples()
        .into_iter()
        .filter(|text| text.starts_with("qconf "));
    for text in of_words.chain(of_formats) {
        commands_of(text).iter().for_each(|words| read(text, words));
    }
}

/// An example of an option is a command, or the option alone.
#[test]
fn the_examples_of_options_can_be_read() {
    for def in COMMANDS.iter().flat_map(|entry| (entry.defs)()) {
        for option in def.options {
            let examples = option.details.split("Example: `").skip(1);
            for example in examples.filter_map(|rest| rest.split('`').next()) {
                let line = match example.strip_prefix('-') {
                    Some(_) => format!("{} {example}", def.name),
                    None => example.to_owned(),
                };
                commands_of(&line).iter().for_each(|words| read(&line, words));
            }
        }
    }
}

#[test]
fn a_format_has_the_attributes_of_its_objects_and_no_others() {
    let pages = [
        ("queue_conf", ObjectKind::Queue),
        ("host_conf", ObjectKind::ExecHost),
        ("hostgroup", ObjectKind::HostGroup),
        ("sge_conf", ObjectKind::ClusterConf),
        ("sched_conf", ObjectKind::SchedulerConf),
        ("sge_pe", ObjectKind::Pe),
        ("checkpoint", ObjectKind::Checkpoint),
        ("calendar_conf", ObjectKind::Calendar),
        ("access_list", ObjectKind::UserSet),
        ("project", ObjectKind::Project),
        ("user", ObjectKind::User),
        ("sge_resource_quota", ObjectKind::ResourceQuota),
    ];
    for (name, kind) in pages {
        let keys: Vec<&str> = kind.keys().iter().chain(kind.later_keys()).copied().collect();
        assert_eq!(
            terms(&text_of(&format!("man5/{name}.5")), &["ATTRIBUTES"]),
            keys,
            "{name}"
        );
    }
    assert_eq!(terms(&text_of("man5/complex.5"), &["COLUMNS"]).len(), 8);
    assert!(text_of("man5/queue_conf.5").contains("A new object has \\fBnp_load_avg=1.75\\fR."));
}

#[test]
fn the_reporting_file_has_each_type_of_record_with_its_fields() {
    let text = text_of("man5/reporting.5");
    for r#type in proto::reporting::TYPES {
        assert!(text.contains(&format!(".SS {}\n", r#type.name)), "{}", r#type.name);
    }
    let fields: usize = proto::reporting::TYPES.iter().map(|r#type| r#type.fields.len()).sum();
    let of_accounting = proto::accounting::FIELDS.len();
    assert_eq!(terms(&text, &["RECORDS"]).len(), fields - of_accounting);
}

#[test]
fn a_daemon_has_a_page_with_its_commands_and_options() {
    for program in DAEMONS {
        let names = [program.commands, program.options].concat();
        let names: Vec<&str> = names.iter().filter_map(|(term, _)| term.split(' ').next()).collect();
        assert_eq!(
            terms(&text_of(&format!("man8/{}.8", program.name)), &["COMMANDS", "OPTIONS"]),
            names
        );
    }
}

#[test]
fn references_lead_to_pages_of_ours_or_of_the_system() {
    let pages = pages();
    let ours: BTreeSet<String> = pages
        .iter()
        .filter_map(|page| page.path.rsplit('/').next()?.rsplit_once('.'))
        .map(|(name, section)| format!("{name}({section})"))
        .collect();
    let of_system = ["man(1)", "bash(1)", "getrusage(2)", "gzip(1)", "setrlimit(2)"];
    for page in &pages {
        let text = page.text.replace("\\-", "-").replace("\\fB", " ").replace("\\fR", " ");
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        for (at, _) in text.match_indices('(') {
            let name = text[..at].rsplit(|c| !is_name(c)).next().unwrap_or_default();
            let section = text[at..].chars().nth(1).filter(char::is_ascii_digit);
            let is_closed = text[at..].chars().nth(2) == Some(')');
            if let (Some(section), false, true) = (section, name.is_empty(), is_closed) {
                let reference = format!("{name}({section})");
                assert!(
                    ours.contains(&reference) || of_system.contains(&reference.as_str()),
                    "{}: {reference}",
                    page.path
                );
            }
        }
    }
}

/// What man(1) and mandoc(1) would complain about and a table could bring in.
#[test]
fn pages_are_plain_roff() {
    for page in pages() {
        let is_request = |line: &&str| line.starts_with('.') && !line.starts_with(".so ");
        let known = [
            ".TH", ".SH", ".SS", ".PP", ".TP", ".IP", ".nf", ".fi", ".RS", ".RE", ".ie", ".el",
        ];
        for line in page.text.lines().filter(is_request) {
            assert!(
                known.contains(&line.split(' ').next().unwrap_or_default()),
                "{}: {line}",
                page.path
            );
        }
        assert!(
            !page.text.contains('`') && page.text.is_ascii() && !page.text.contains("\n\n"),
            "{}",
            page.path
        );
    }
}
