//! The table itself, and what the users' guide says about it.

use super::*;
use std::fmt::Write as _;

#[test]
fn a_command_has_each_option_once() {
    for taker in [Taker::Qsub, Taker::Qalter, Taker::Qresub] {
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
    assert_eq!(row_of("-q", true).map(|row| row.over), Some(Merge::Replace));
    assert!(row_of("-nosuch", false).is_none());
}

/// Options with one rule in one row, those that add up in other ways than the last first.
fn guide_table() -> String {
    let is_of_job = |row: &&Row| {
        row.takers.contains(&Taker::Qsub) && !matches!(row.within, Merge::Command | Merge::Mark | Merge::Clear)
    };
    let mut groups: Vec<((Merge, Merge), Vec<&str>)> = Vec::new();
    for row in TABLE.iter().filter(is_of_job).filter(|row| row.def.support == crate::args::Support::Yes) {
        let rule = (row.within, row.over);
        match groups.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, names)) if names.contains(&row.def.name) => {}
            Some((_, names)) => names.push(row.def.name),
            None => groups.push((rule, vec![row.def.name])),
        }
    }
    groups.sort_by_key(|(rule, names)| (rule.0 == Merge::Last, std::cmp::Reverse(names.len())));
    let mut text = "| options | several in one source | in several sources |\n|---|---|---|\n".to_owned();
    for ((within, over), names) in groups {
        let over = if within == over { "as well" } else { over.words() };
        let _ = writeln!(text, "| `{}` | {} | {over} |", names.join(" "), within.words());
    }
    text
}

#[test]
fn the_users_guide_has_the_rules_of_the_table() {
    let guide = include_str!("../../../README.md");
    let table = guide_table();
    assert!(guide.contains(&table), "master/cli/README.md needs this table:\n{table}");
}
