//! `gridwright changes`: who changed which object, host, queue instance, or job of somebody else.

use crate::args::{CommandDef, CommandLine, Operands, ValueCount, flag, with};
use crate::cell_address::CellAddress;
use crate::commands::ask::{self, Format};
use crate::commands::{Outcome, token};
use crate::exit;
use crate::fail::Fail;
use crate::output::time::{Clock, now};
use crate::output::{self, json};
use jiff::Timestamp;
use jiff::civil::DateTime;
use proto::object::{Form, ObjectKind};
use proto::time::Wall;
use proto::wire::client::{ChangeFilter, Query};
use proto::wire::view::{ChangeAction, ChangeHistory, ChangeView, Data, LogBeginning};
use std::fmt::Write as _;
use verifier::date;

/// The changes that are printed where `--last` says nothing.
const LAST: u32 = 1000;

pub const CHANGES: CommandDef = CommandDef {
    name: "gridwright changes",
    summary: "Prints who changed which object of the configuration, host, queue instance or join token, and what\n\
              operators did to jobs of others: when, and the attributes before and after. The newest is last.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        with(
            "--by",
            ValueCount::One,
            "USER,...",
            "only changes of these users, of USER@HOST, or of patterns",
        ),
        with(
            "--last",
            ValueCount::One,
            "NUMBER",
            "so many of the newest changes at most (default: 1000; the master gives 10000 at most)",
        ),
        with(
            "--object",
            ValueCount::One,
            "NAME,...",
            "only of objects, hosts or queue instances of these names or patterns, of a kind, or of jobs of these numbers",
        ),
        with(
            "--since",
            ValueCount::One,
            "TIME",
            "only from then on: 12h or 7d ago, 2026-11-26, 2026-11-26T13:30, with +05:00 or Z behind it in that zone, or [[CC]YY]MMDDhhmm[.SS]",
        ),
        with("-fmt", ValueCount::One, "text|json", "how to print (default: text)"),
        crate::cell_address::place::DIR,
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 printed, also where nothing was changed; 1 refused or no master; 2 wrong option; 7 value does not parse",
};

/// Runs `gridwright changes`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = CHANGES.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&CHANGES.help());
        return Ok(exit::OK);
    }
    let (clock, format) = (Clock::local(), Format::from_command_line(&parsed)?);
    let filter = filter(&parsed, &clock)?;
    let mut client = ask::connect_at(&CellAddress::from_command_line(&parsed), "gridwright changes", format)?;
    let history = match ask::data(&mut client, Query::Changes(filter))? {
        Some(Data::Changes(history)) => history,
        other => return ask::unexpected(other.as_ref()),
    };
    match format {
        Format::Json => output::data(&document(&history)),
        Format::Text | Format::Xml => {
            let lines: String = history.changes.iter().map(|change| text(change, &clock)).collect();
            output::data(&lines);
            notes(&history, &clock).iter().for_each(|note| output::note(note));
        }
    }
    Ok(exit::OK)
}

fn filter(parsed: &CommandLine, clock: &Clock) -> Result<ChangeFilter, Fail> {
    let most = parsed.value("--last").map_or(Ok(LAST), |text| {
        let bad = || Fail::bad_value(format!("gridwright changes: --last {text} is not a number"));
        text.parse().map_err(|_| bad().fix("give a whole number, such as 100"))
    })?;
    let since = parsed.value("--since").map(|text| {
        let bad = |why| Fail::bad_value(format!("gridwright changes: --since {text} {why}"));
        let fix = "give a time that is past, such as 30m, 12h, 7d, 2026-11-26 or 2026-11-26T13:30";
        match moment(text, now(), clock) {
            Some(since) if since > now() => Err(bad("has not come yet").fix(fix)),
            Some(since) => Ok(since),
            None => Err(bad("is not a time").fix(fix)),
        }
    });
    Ok(ChangeFilter {
        since: since.transpose()?,
        users: ask::list(parsed, "--by"),
        objects: ask::list(parsed, "--object"),
        most,
    })
}

/// The time that a text names: so long before `now`, a date with an offset from UTC, or a date in
/// the zone of this shell.
fn moment(text: &str, now: Wall, clock: &Clock) -> Option<Wall> {
    if text.ends_with(['s', 'm', 'h', 'd']) {
        let ago_ms = i64::try_from(token::seconds(text)?).ok()?.checked_mul(1000)?;
        return now.0.checked_sub(ago_ms).map(Wall);
    }
    if let Ok(time) = date::parse(text, clock.this_year(), clock.zone()) {
        return Some(time);
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(Wall(time.as_millisecond()));
    }
    // A date without an offset, and without a zone: `DateTime` would ignore both.
    let time = time_of_day(text)?.to_zoned(clock.zone().clone()).ok()?;
    Some(Wall(time.timestamp().as_millisecond()))
}

/// A date that says nothing about its zone.
fn time_of_day(text: &str) -> Option<DateTime> {
    let time = text.get(10..).unwrap_or_default();
    if time.contains(['+', '-', '[']) {
        return None;
    }
    text.parse().ok()
}

/// A change: who did what when, and below it the attributes before and after.
fn text(change: &ChangeView, clock: &Clock) -> String {
    let ChangeView {
        at,
        by,
        action,
        kind,
        name,
        with,
        others,
        owner,
        tasks,
        fields,
        more_fields,
        is_earlier_unknown,
        seq: _,
    } = change;
    let mut text = format!(
        "{} {by} {} {}",
        clock.slashes(*at),
        action.words(),
        object(*action, kind, name)
    );
    if let Some(owner) = owner {
        let _ = write!(text, " of {owner}");
    }
    if !with.is_empty() {
        let _ = write!(text, " and {} others: {}", others + with.len() as u64, with.join(" "));
        text.push_str(if *others > 0 { " ..." } else { "" });
    }
    match tasks {
        0 | 1 => {}
        tasks => {
            let _ = write!(text, " ({tasks} tasks)");
        }
    }
    if *is_earlier_unknown {
        text.push_str(" (the log no longer holds what it was before)");
    }
    text.push('\n');
    if *action != ChangeAction::Modified {
        return text;
    }
    for field in fields {
        let value = |value: &Option<String>| match value.as_deref() {
            None | Some("") => "(none)".to_owned(),
            Some(value) => value.to_owned(),
        };
        let _ = writeln!(
            text,
            "    {}: {} -> {}",
            field.name,
            value(&field.old),
            value(&field.new)
        );
    }
    if *more_fields > 0 {
        let _ = writeln!(text, "    and {more_fields} more attributes");
    }
    text
}

/// The object of the sentence: `cluster queue all.q`, `complex`, `ann to manager list`.
fn object(action: ChangeAction, kind: &str, name: &str) -> String {
    let is_list = ObjectKind::ALL
        .iter()
        .any(|known| known.as_str() == kind && known.form() == Form::Bare);
    match (is_list, action) {
        (true, ChangeAction::Deleted) => format!("{name} from {kind}"),
        (true, _) => format!("{name} to {kind}"),
        (false, _) => format!("{kind} {name}").trim_end().to_owned(),
    }
}

/// How far back the answer goes.
fn notes(history: &ChangeHistory, clock: &Clock) -> Vec<String> {
    let mut notes = Vec::new();
    if history.left_out > 0 {
        notes.push(format!(
            "{} older changes are left out: --last NUMBER shows more, --since and --object choose",
            history.left_out
        ));
    }
    if history.of_older_jobs > 0 {
        notes.push(format!(
            "{} changes of jobs that were submitted before the log begins are left out: the log does not hold whose jobs those were",
            history.of_older_jobs
        ));
    }
    notes.extend(history.log.map(|LogBeginning { at, is_whole }| {
        let begin = clock.slashes(at);
        if is_whole {
            format!("the log goes back to {begin}, when the cell was made")
        } else {
            format!("the log goes back to {begin}: older events were removed (trim_log of etc/master.toml)")
        }
    }));
    notes
}

fn document(history: &ChangeHistory) -> String {
    json::JsonDocument::new()
        .with("log", &history.log)
        .with("left_out", &history.left_out)
        .with("of_older_jobs", &history.of_older_jobs)
        .with("changes", &history.changes)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;
    use proto::id::EventSeq;
    use proto::wire::view::FieldChange;

    fn utc() -> Clock {
        Clock::new(TimeZone::UTC)
    }

    fn change() -> ChangeView {
        let field = |name: &str, old: Option<&str>, new: Option<&str>| FieldChange {
            name: name.to_owned(),
            old: old.map(str::to_owned),
            new: new.map(str::to_owned),
        };
        ChangeView {
            seq: EventSeq(9),
            at: Wall(1_795_223_395_999),
            by: "ann@node1".to_owned(),
            action: ChangeAction::Modified,
            kind: "cluster queue".to_owned(),
            name: "all.q".to_owned(),
            with: Vec::new(),
            others: 0,
            owner: None,
            tasks: 0,
            fields: vec![field("slots", Some("2"), Some("5")), field("later", None, Some("x"))],
            more_fields: 0,
            is_earlier_unknown: false,
        }
    }

    #[test]
    fn a_change_is_a_line_with_its_attributes_below() {
        assert_eq!(
            text(&change(), &utc()),
            "11/21/2026 01:09:55 ann@node1 modified cluster queue all.q\n    slots: 2 -> 5\n    later: (none) -> x\n"
        );
        let deleted = ChangeView {
            action: ChangeAction::Deleted,
            kind: "job".to_owned(),
            name: "7".to_owned(),
            owner: Some("bob".into()),
            tasks: 12,
            ..change()
        };
        assert_eq!(
            text(&deleted, &utc()),
            "11/21/2026 01:09:55 ann@node1 deleted job 7 of bob (12 tasks)\n"
        );
        let many = ChangeView {
            action: ChangeAction::Disabled,
            kind: "queue instance".to_owned(),
            name: "all.q@a".to_owned(),
            with: vec!["all.q@b".to_owned(), "all.q@c".to_owned()],
            others: 7,
            ..change()
        };
        assert_eq!(
            text(&many, &utc()),
            "11/21/2026 01:09:55 ann@node1 disabled queue instance all.q@a and 9 others: all.q@b all.q@c ...\n"
        );
        let unknown = ChangeView {
            is_earlier_unknown: true,
            fields: Vec::new(),
            ..change()
        };
        assert!(text(&unknown, &utc()).ends_with("(the log no longer holds what it was before)\n"));
    }

    #[test]
    fn what_has_no_attributes_comes_to_a_list_or_goes_from_it() {
        for (action, kind, name, expected) in [
            (ChangeAction::Added, "manager list", "ann", "ann to manager list"),
            (
                ChangeAction::Deleted,
                "submit host list",
                "n1",
                "n1 from submit host list",
            ),
            (ChangeAction::Added, "access list", "team", "access list team"),
            (ChangeAction::Modified, "complex", "", "complex"),
        ] {
            assert_eq!(object(action, kind, name), expected);
        }
    }

    #[test]
    fn an_answer_says_how_far_back_it_goes() {
        let log = |is_whole| {
            Some(LogBeginning {
                at: Wall(1_795_223_395_999),
                is_whole,
            })
        };
        let said = |left_out, is_whole| {
            let history = ChangeHistory {
                log: log(is_whole),
                left_out,
                of_older_jobs: left_out,
                changes: Vec::new(),
            };
            notes(&history, &utc()).join("\n")
        };
        assert_eq!(
            said(0, true),
            "the log goes back to 11/21/2026 01:09:55, when the cell was made"
        );
        assert!(said(3, false).starts_with("3 older changes are left out") && said(3, false).contains("trim_log"));
        assert!(said(3, false).contains("3 changes of jobs that were submitted before the log begins"));
    }

    #[test]
    fn times_are_dates_or_so_long_ago() {
        let now = Wall(1_795_223_395_000);
        for (text, expected) in [
            ("30m", Some(now.0 - 1_800_000)),
            ("7d", Some(now.0 - 604_800_000)),
            ("2026-11-21", Some(1_795_219_200_000)),
            ("2026-11-21T01:09", Some(1_795_223_340_000)),
            ("2026-11-21T01:09Z", Some(1_795_223_340_000)),
            ("2026-11-21T06:09+05:00", Some(1_795_223_340_000)),
            ("2026-11-20T20:09:00-05:00", Some(1_795_223_340_000)),
            ("2026-11-21T01:09[Asia/Tokyo]", None),
            ("202611210109.55", Some(1_795_223_395_000)),
            ("yesterday", None),
            ("-1d", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(moment(text, now, &utc()), expected.map(Wall), "{text}");
        }
    }

    #[test]
    fn a_time_to_come_is_refused() {
        let since = |time: &str| {
            let words = vec!["--since".to_owned(), time.to_owned()];
            let parsed = CHANGES.parse(words).expect("the option is known");
            filter(&parsed, &utc()).is_ok()
        };
        assert!(since("2020-01-01") && !since("2999-01-01"));
    }

    #[test]
    fn a_document_has_the_changes_in_the_fields_of_the_protocol() {
        let history = ChangeHistory {
            log: None,
            left_out: 1,
            of_older_jobs: 0,
            changes: vec![change()],
        };
        let read: serde_json::Value = serde_json::from_str(&document(&history)).unwrap();
        assert_eq!(read["left_out"], 1);
        assert_eq!(read["changes"][0]["action"], "modified");
        assert_eq!(read["changes"][0]["fields"][0]["old"], "2");
    }
}
