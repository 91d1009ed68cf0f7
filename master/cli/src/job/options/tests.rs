//! The table itself, and what the users' guide says about it.

use super::table::QRSUB_ALONE;
use super::*;
use crate::args::GivenOption;
use crate::job::request::JobRequest;
use std::fmt::Write as _;

#[test]
fn a_command_has_each_option_once() {
    for taker in [Taker::Qsub, Taker::Qalter, Taker::Qresub, Taker::Qrsub] {
        let mut names: Vec<&str> = of_taker(taker).iter().map(|def| def.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "{taker:?}");
    }
}

#[test]
fn an_option_is_found_with_and_without_a_value() {
    assert_eq!(row_of("-h", false).map(|row| row.option), Some(JobOption::Hold));
    assert_eq!(row_of("-h", true).map(|row| row.option), Some(JobOption::HoldList));
    assert!(row_of("-q", true).is_some_and(|row| row.replaces_earlier_sources));
    assert!(row_of("-nosuch", false).is_none());
}

#[test]
fn every_row_has_a_rule_that_its_option_can_follow() {
    for row in TABLE {
        for value in ["1", "y", "a=1", "/a", "n"] {
            let values = vec![value.to_owned(); if row.def.values == ValueCount::None { 0 } else { 2 }];
            let mut request = JobRequest::new("qsub");
            for _ in 0..2 {
                // A value that does not parse is refused; a rule that does not fit panics.
                let _ = request.apply(&GivenOption {
                    name: row.def.name,
                    values: values.clone(),
                });
            }
        }
    }
}

#[test]
fn options_of_reservations_have_the_rules_of_the_row_that_is_found_by_their_name() {
    for row in TABLE.iter().filter(|row| row.takers == QRSUB_ALONE) {
        let found = row_of(row.def.name, row.def.values != ValueCount::None).unwrap();
        let is_own = ["-d", "-e", "-he", "-u", "-w"].contains(&row.def.name);
        assert!(
            is_own || (found.option, found.rule) == (row.option, row.rule),
            "{}",
            row.def.name
        );
    }
}

/// Options with one rule in one row, those that add up in other ways than the last first.
fn guide_table() -> String {
    let is_of_job = |row: &&JobOptionRow| {
        row.takers.contains(&Taker::Qsub) && !matches!(row.rule, Rule::Command | Rule::Mark | Rule::Clear)
    };
    let mut groups: Vec<((Rule, bool), Vec<&str>)> = Vec::new();
    for row in TABLE
        .iter()
        .filter(is_of_job)
        .filter(|row| row.def.support == crate::args::Support::Yes)
    {
        let rule = (row.rule, row.replaces_earlier_sources);
        match groups.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, names)) if names.contains(&row.def.name) => {}
            Some((_, names)) => names.push(row.def.name),
            None => groups.push((rule, vec![row.def.name])),
        }
    }
    groups.sort_by_key(|(rule, names)| (rule.0 == Rule::Last, std::cmp::Reverse(names.len())));
    let mut text = "| options | several in one source | in several sources |\n|---|---|---|\n".to_owned();
    for ((rule, replaces), names) in groups {
        let over = if replaces {
            "a later source replaces both lists, hard and soft"
        } else {
            "as well"
        };
        let _ = writeln!(text, "| `{}` | {} | {over} |", names.join(" "), rule.words());
    }
    text
}

#[test]
fn the_users_guide_has_the_rules_of_the_table() {
    let guide = include_str!("../../../README.md");
    let table = guide_table();
    assert!(
        guide.contains(&table),
        "master/cli/README.md needs this table:\n{table}"
    );
}
