//! `qrstat`: shows advance reservations.

use crate::args::{CommandDef, CommandLine, Operands, ValueCount, flag, with};
use crate::commands::Outcome;
use crate::commands::ask::{self, Format};
use crate::fail::Fail;
use crate::output::json;
use crate::output::time::Clock;
use crate::output::xml::escape;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::ReservationId;
use proto::job::MailEvents;
use proto::request::ResourceRequest;
use proto::reservation::ReservationView;
use proto::wire::client::{Answer, Query};
use proto::wire::view::Data;
use std::fmt::Write as _;

pub const QRSTAT: CommandDef = CommandDef {
    name: "qrstat",
    summary: "Shows advance reservations; without -u and -ar those of the user who asks.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        with(
            "-ar",
            ValueCount::One,
            "ar_id_list",
            "show all about these reservations",
        ),
        flag("-explain", "show what fails in them"),
        flag("-help", "print this help"),
        with(
            "-u",
            ValueCount::One,
            "user_list",
            "those of these users; * is everybody",
        ),
        flag("-xml", "display the information in XML format"),
        with("-fmt", ValueCount::One, "text|xml|json", "how to write the answer"),
    ],
    exit_codes: "0 printed, perhaps nothing; 1 refused, a wrong option, or no such reservation",
};

/// Runs `qrstat`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = QRSTAT.parse(words)?;
    if parsed.has("-help") {
        output::data(&QRSTAT.help());
        return Ok(exit::OK);
    }
    let format = Format::from_command_line(&parsed)?;
    let ids = ids(&parsed)?;
    let users = ask::list(&parsed, "-u");
    let users = if users.is_empty() && ids.is_empty() {
        vec![ask::login_name()]
    } else {
        users
    };
    let query = Query::Reservations {
        ids: ids.clone(),
        users,
    };
    let reply = ask::connect("qrstat", format)?.query(query)?;
    if let Some(Answer::Refused(refusal)) = reply.answers.into_iter().next() {
        return Err(refusal.into());
    }
    let Some(Data::Reservations(views)) = reply.data else {
        return Err(Diagnostic::new(Code::BadMessage, "error: the master's answer does not fit the question").into());
    };
    let missing: Vec<ReservationId> = ids
        .iter()
        .copied()
        .filter(|id| !views.iter().any(|view| view.id == *id))
        .collect();
    let clock = Clock::local();
    let is_full = !ids.is_empty();
    output::data(&match format {
        Format::Text if is_full => views.iter().map(|view| block(view, &clock)).collect(),
        Format::Text => table(&views, parsed.has("-explain"), &clock),
        Format::Xml => xml(&views, &missing, is_full, &clock),
        Format::Json => json::JsonDocument::new().with("reservations", &views).finish(),
    });
    if missing.is_empty() {
        return Ok(exit::OK);
    }
    if format == Format::Text {
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        output::note(&format!(
            "Following advance reservations do not exist:\n{}",
            missing.join(", ")
        ));
    }
    Ok(exit::FAILED)
}

fn ids(parsed: &CommandLine) -> Result<Vec<ReservationId>, Fail> {
    let id = |text: String| {
        text.parse().map(ReservationId).map_err(|_| {
            let what = "error: ERROR! invalid id, must be an unsigned integer";
            Fail::from(Diagnostic::new(Code::BadValue, what).fix("write numbers with commas between them"))
        })
    };
    ask::list(parsed, "-ar").into_iter().map(id).collect()
}

/// One line for each; nothing where there is none.
fn table(views: &[ReservationView], explains: bool, clock: &Clock) -> String {
    let mut text = String::new();
    for view in views {
        if text.is_empty() {
            text.push_str("ar-id   name       owner        state start at             end at               duration\n");
            let _ = writeln!(text, "{}", "-".repeat(90));
        }
        let (name, owner) = (&view.spec.name, view.spec.owner.user.as_str());
        let (start, end) = (clock.slashes(view.start), clock.slashes(view.end));
        let _ = writeln!(
            text,
            "{:>7} {name:<10.10} {owner:<12.12} {:<5} {start:<20} {end:<20} {}",
            view.id,
            view.state,
            duration(view)
        );
        for message in view.messages.iter().filter(|_| explains) {
            let _ = writeln!(text, "       {message}");
        }
    }
    text
}

fn duration(view: &ReservationView) -> String {
    let seconds = (view.end.seconds() - view.start.seconds()).max(0);
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// All that is told about a reservation, in order: the name of the line, and its value.
fn lines(view: &ReservationView, clock: &Clock) -> Vec<(&'static str, String)> {
    let spec = &view.spec;
    let mut lines = vec![
        ("id", view.id.to_string()),
        ("name", spec.name.clone()),
        ("owner", spec.owner.user.to_string()),
        ("state", view.state.to_string()),
        ("start_time", clock.slashes(view.start)),
        ("end_time", clock.slashes(view.end)),
        ("duration", duration(view)),
    ];
    lines.extend(view.messages.iter().map(|message| ("message", message.clone())));
    lines.extend([
        ("submission_time", clock.slashes(view.submitted)),
        ("group", spec.owner.group.clone()),
        ("account", account(view)),
    ]);
    let mut put = |name, value: String| lines.extend((!value.is_empty()).then_some((name, value)));
    put(
        "resource_list",
        spec.requests.hard.iter().map(resource).collect::<Vec<_>>().join(", "),
    );
    put(
        "error_handling",
        if spec.hard_error {
            "true".to_owned()
        } else {
            String::new()
        },
    );
    let slots = view
        .granted
        .iter()
        .map(|granted| format!("{}={}", granted.instance, granted.slots));
    put("granted_slots_list", slots.collect::<Vec<_>>().join(","));
    if let (Some(pe), Some(wanted)) = (&view.pe, &spec.requests.pe) {
        put(
            "granted_parallel_environment",
            format!("{pe} slots {}", slot_range(&wanted.slots.to_string())),
        );
    }
    put("checkpoint_name", spec.checkpoint.clone().unwrap_or_default());
    put("master hard queue_list", spec.requests.master_queues.join(","));
    put("mail_options", mail_letters(spec.mail));
    put("mail_list", spec.mail_to.join(","));
    put("acl_list", spec.users.join(","));
    lines
}

fn account(view: &ReservationView) -> String {
    view.spec.account.clone().unwrap_or_else(|| "sge".to_owned())
}

fn resource(request: &ResourceRequest) -> String {
    format!("{}={}", request.name, request.value.as_deref().unwrap_or("TRUE"))
}

/// Two numbers that follow each other are listed, as in 8.1.9.
fn slot_range(text: &str) -> String {
    let ends = text
        .split_once('-')
        .and_then(|(least, most)| Some((least.parse::<u32>().ok()?, most.parse::<u32>().ok()?)));
    match ends {
        Some((least, most)) if most == least + 1 => format!("{least},{most}"),
        Some(_) | None => text.to_owned(),
    }
}

fn mail_letters(mail: MailEvents) -> String {
    let letters = [(mail.abort, 'a'), (mail.begin, 'b'), (mail.end, 'e')];
    letters
        .into_iter()
        .filter_map(|(is_set, letter)| is_set.then_some(letter))
        .collect()
}

fn block(view: &ReservationView, clock: &Clock) -> String {
    let mut text = format!("{}\n", "-".repeat(80));
    for (name, value) in lines(view, clock) {
        let _ = writeln!(text, "{name:<30} {value}");
    }
    text
}

fn xml(views: &[ReservationView], missing: &[ReservationId], is_full: bool, clock: &Clock) -> String {
    let mut text = String::from(
        "<?xml version='1.0'?>\n<qrstat xmlns:xsd=\"http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qrstat/qrstat.xsd\">\n",
    );
    for view in views {
        text.push_str("   <ar_summary>\n");
        summary(&mut text, view, clock);
        if is_full {
            details(&mut text, view, clock);
        }
        text.push_str("   </ar_summary>\n");
    }
    for id in missing {
        let _ = writeln!(text, "   <ar_unknown>\n      <id>{id}</id>\n   </ar_unknown>");
    }
    text.push_str("</qrstat>\n");
    text
}

fn leaf(text: &mut String, name: &str, value: &str) {
    let _ = match value.is_empty() {
        true => writeln!(text, "      <{name}/>"),
        false => writeln!(text, "      <{name}>{}</{name}>", escape(value)),
    };
}

fn summary(text: &mut String, view: &ReservationView, clock: &Clock) {
    leaf(text, "id", &view.id.to_string());
    leaf(text, "name", &view.spec.name);
    leaf(text, "owner", view.spec.owner.user.as_str());
    leaf(text, "state", &view.state.to_string());
    leaf(text, "start_time", &clock.iso(view.start));
    leaf(text, "end_time", &clock.iso(view.end));
    leaf(text, "duration", &duration(view));
    view.messages.iter().for_each(|message| leaf(text, "message", message));
}

fn details(text: &mut String, view: &ReservationView, clock: &Clock) {
    let spec = &view.spec;
    leaf(text, "submission_time", &clock.iso(view.submitted));
    leaf(text, "group", &spec.owner.group);
    leaf(text, "account", &account(view));
    let resources = spec.requests.hard.iter().map(|request| {
        let value = request.value.as_deref().unwrap_or("TRUE");
        format!(
            "<resource name=\"{}\" type=\"{}\"/>",
            escape(&request.name),
            escape(value)
        )
    });
    elements(text, "resource_list", resources.collect());
    if spec.hard_error {
        leaf(text, "error_handling", "true");
    }
    let slots = view.granted.iter().map(|granted| {
        let instance = granted.instance.to_string();
        format!(
            "<granted_slots  queue_instance=\"{}\" slots=\"{}\"/>",
            escape(&instance),
            granted.slots
        )
    });
    elements(text, "granted_slots_list", slots.collect());
    if let (Some(pe), Some(wanted)) = (&view.pe, &spec.requests.pe) {
        let slots = slot_range(&wanted.slots.to_string());
        let parts = [("parallel_environment", escape(pe).to_string()), ("slots", slots)];
        let parts = parts.map(|(name, value)| format!("<{name}>{value}</{name}>"));
        elements(text, "granted_parallel_environment", parts.to_vec());
    }
    let named = [
        ("checkpoint_name", spec.checkpoint.clone().unwrap_or_default()),
        // 8.1.9 writes blanks here, which no XML reader takes.
        ("master_hard_queue_list", spec.requests.master_queues.join(",")),
        ("mail_options", mail_letters(spec.mail)),
    ];
    named
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .for_each(|(name, value)| leaf(text, name, value));
    let mails = spec.mail_to.iter().map(|address| {
        let (user, host) = address.split_once('@').unwrap_or((address, ""));
        format!("<mail  user=\"{}\" host=\"{}\"/>", escape(user), escape(host))
    });
    elements(text, "mail_list", mails.collect());
    elements(
        text,
        "acl_list",
        spec.users
            .iter()
            .map(|user| format!("<acl  user=\"{}\"/>", escape(user)))
            .collect(),
    );
}

/// A list of elements; nothing where it is empty.
fn elements(text: &mut String, name: &str, elements: Vec<String>) {
    if elements.is_empty() {
        return;
    }
    let _ = writeln!(text, "      <{name}>");
    for element in elements {
        let _ = writeln!(text, "         {element}");
    }
    let _ = writeln!(text, "      </{name}>");
}
