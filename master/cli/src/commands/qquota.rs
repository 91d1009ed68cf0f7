//! `qquota`: what is in use of the limits of resource quota sets.

use crate::args::{CommandDef, Operands, ValueCount, flag, with};
use crate::commands::Outcome;
use crate::commands::ask::{self, Format};
use crate::output::json;
use crate::output::xml::escape;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::{Answer, Query, QuotaFilter};
use proto::wire::view::{Data, QuotaRow};
use std::fmt::Write as _;

pub const QQUOTA: CommandDef = CommandDef {
    name: "qquota",
    summary: "Shows what is in use of the limits of resource quota sets; without -u those of the user who asks.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        flag("-help", "print this help"),
        with(
            "-h",
            ValueCount::One,
            "wc_host_list|wc_hostgroup_list",
            "display only selected hosts",
        ),
        with(
            "-l",
            ValueCount::One,
            "resource_attributes",
            "request the given resources",
        ),
        with("-u", ValueCount::Optional, "user_list", "display only selected users"),
        with(
            "-pe",
            ValueCount::One,
            "wc_pe_list",
            "display only selected parallel environments",
        ),
        with(
            "-P",
            ValueCount::One,
            "wc_project_list",
            "display only selected projects",
        ),
        with("-q", ValueCount::One, "wc_cqueue_list", "display only selected queues"),
        flag("-xml", "display the information in XML format"),
        with("-fmt", ValueCount::One, "text|xml|json", "how to write the answer"),
    ],
    exit_codes: "0 printed, perhaps nothing; 1 refused or a wrong option",
};

/// The columns of a rule and of its limit (measured on 8.1.9).
const WIDTHS: (usize, usize) = (18, 20);

/// Runs `qquota`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QQUOTA.parse(words)?;
    if parsed.has("-help") {
        output::data(&QQUOTA.help());
        return Ok(exit::OK);
    }
    let format = Format::from_command_line(&parsed)?;
    let users = ask::list(&parsed, "-u");
    let filter = QuotaFilter {
        users: if users.is_empty() {
            vec![ask::login_name()]
        } else {
            users
        },
        projects: ask::list(&parsed, "-P"),
        pes: ask::list(&parsed, "-pe"),
        queues: ask::list(&parsed, "-q"),
        hosts: ask::list(&parsed, "-h"),
        resources: ask::list(&parsed, "-l"),
    };
    let reply = ask::connect("qquota", format)?.query(Query::Quotas(filter))?;
    if let Some(Answer::Refused(refusal)) = reply.answers.into_iter().next() {
        return Err(refusal.into());
    }
    let Some(Data::Quotas(rows)) = reply.data else {
        return Err(Diagnostic::new(Code::BadMessage, "error: the master's answer does not fit the question").into());
    };
    output::data(&match format {
        Format::Text => text(&rows),
        Format::Xml => xml(&rows),
        Format::Json => json::JsonDocument::new().with("quotas", &rows).finish(),
    });
    Ok(exit::OK)
}

/// One line for each limit; nothing where there is none.
fn text(rows: &[QuotaRow]) -> String {
    let (rule, limit) = WIDTHS;
    let mut text = String::new();
    for row in rows {
        if text.is_empty() {
            let _ = writeln!(
                text,
                "{:rule$} {:limit$} filter\n{}",
                "resource quota rule",
                "limit",
                "-".repeat(80)
            );
        }
        let used = row.used.as_ref().map_or_else(String::new, |used| format!("{used}/"));
        let amount = format!("{}={used}{}", row.resource, row.limit);
        let filter = |(name, names): &(String, Vec<String>)| match row.expanded.contains(name) {
            true => format!("{name} {{{}}}", names.join(",")),
            false => format!("{name} {}", names.join(",")),
        };
        let filters: Vec<String> = row.filters.iter().map(filter).collect();
        let filters = if filters.is_empty() {
            "-".to_owned()
        } else {
            filters.join(" ")
        };
        let _ = writeln!(text, "{:rule$} {amount:limit$} {filters}", row.rule);
    }
    text
}

fn xml(rows: &[QuotaRow]) -> String {
    let mut text = String::from(
        "<?xml version='1.0'?>\n<qquota_result xmlns=\"http://arc.liv.ac.uk/repos/darcs/sge/source/source/dist/util/resources/schemas/qquota/qquota.xsd\">\n",
    );
    for row in rows {
        let _ = writeln!(text, " <qquota_rule name='{}'>", escape(&row.rule));
        for (name, names) in &row.filters {
            for value in names {
                let _ = writeln!(text, "   <{name}>{}</{name}>", escape(value));
            }
        }
        let used = row
            .used
            .as_ref()
            .map_or_else(String::new, |used| format!(" value='{}'", escape(used)));
        let (resource, limit) = (escape(row.resource.as_str()), escape(&row.limit));
        let _ = writeln!(
            text,
            "   <limit resource='{resource}' limit='{limit}'{used}/>\n </qquota_rule>"
        );
    }
    text.push_str("</qquota_result>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rule: &str, resource: &str, used: Option<&str>, limit: &str, filters: &[(&str, &[&str])]) -> QuotaRow {
        let filters = filters.iter().map(|(name, names)| {
            (
                (*name).to_owned(),
                names.iter().map(|name| (*name).to_owned()).collect(),
            )
        });
        QuotaRow {
            rule: rule.to_owned(),
            resource: resource.into(),
            limit: limit.to_owned(),
            used: used.map(str::to_owned),
            filters: filters.collect(),
            expanded: Vec::new(),
        }
    }

    fn rows() -> Vec<QuotaRow> {
        vec![
            row("g/1", "slots", Some("2"), "2", &[("users", &["u1", "u2"])]),
            row(
                "g/2",
                "slots",
                Some("5"),
                "20",
                &[("users", &["*"]), ("hosts", &["@allhosts"])],
            ),
            row("st/1", "h_rt", None, "100", &[]),
        ]
    }

    #[test]
    fn rows_are_laid_out_as_8_1_9_does() {
        let expected = "resource quota rule limit                filter\n\
            --------------------------------------------------------------------------------\n\
            g/1                slots=2/2            users u1,u2\n\
            g/2                slots=5/20           users * hosts @allhosts\n\
            st/1               h_rt=100             -\n";
        assert_eq!(text(&rows()), expected);
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn names_that_have_a_limit_each_stand_in_braces() {
        let row = QuotaRow {
            expanded: vec!["queues".to_owned()],
            ..row(
                "g/6",
                "h_rt",
                None,
                "100",
                &[("users", &["u1"]), ("queues", &["a.q", "b.q"])],
            )
        };
        assert!(text(std::slice::from_ref(&row)).ends_with("h_rt=100             users u1 queues {a.q,b.q}\n"));
        assert!(xml(&[row]).contains("   <queues>a.q</queues>\n   <queues>b.q</queues>\n"));
    }

    #[test]
    fn xml_is_that_of_8_1_9() {
        let expected = "<?xml version='1.0'?>\n\
            <qquota_result xmlns=\"http://arc.liv.ac.uk/repos/darcs/sge/source/source/dist/util/resources/schemas/qquota/qquota.xsd\">\n \
            <qquota_rule name='g/1'>\n   <users>u1</users>\n   <users>u2</users>\n   \
            <limit resource='slots' limit='2' value='2'/>\n </qquota_rule>\n \
            <qquota_rule name='g/2'>\n   <users>*</users>\n   <hosts>@allhosts</hosts>\n   \
            <limit resource='slots' limit='20' value='5'/>\n </qquota_rule>\n \
            <qquota_rule name='st/1'>\n   <limit resource='h_rt' limit='100'/>\n </qquota_rule>\n</qquota_result>\n";
        assert_eq!(xml(&rows()), expected);
    }
}
