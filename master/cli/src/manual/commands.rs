//! Section 1: the commands.

use super::page::{File, Page};
use super::words::{self, PageTexts};
use crate::args::{CommandDef, OptionDef, Support};
use crate::commands::{COMMANDS, CommandEntry};

/// The overview of `gridwright`, then a page for each command.
pub fn pages() -> Vec<File> {
    std::iter::once(overview()).chain(COMMANDS.iter().map(page)).collect()
}

/// The name of a command's page: those of Grid Engine have their own, the others that of
/// `gridwright` in front.
pub fn name_of(entry: &CommandEntry) -> String {
    if entry.name.starts_with('q') {
        entry.name.to_owned()
    } else {
        format!("gridwright-{}", entry.name)
    }
}

fn overview() -> File {
    let mut page = Page::new(
        "gridwright",
        1,
        "brings up, joins and examines cells, and runs the commands of Grid Engine",
    );
    page.section("SYNOPSIS");
    page.synopsis("gridwright", "COMMAND [options]");
    page.synopsis("gridwright", "help [COMMAND] | --version");
    let words = words::texts("gridwright");
    page.section("DESCRIPTION");
    words.description.iter().for_each(|text| page.paragraph(text));
    for (title, is_classic) in [("COMMANDS", false), ("COMMANDS OF GRID ENGINE", true)] {
        page.section(title);
        for entry in COMMANDS
            .iter()
            .filter(|entry| entry.name.starts_with('q') == is_classic)
        {
            let see = format!("{}. See {}(1).", capital(entry.line), name_of(entry));
            page.item(entry.name, "", &[&see]);
        }
    }
    end(&mut page, words);
    page.file("gridwright", 1)
}

fn page(entry: &CommandEntry) -> File {
    let (name, words) = (name_of(entry), words::texts(entry.name));
    let mut page = Page::new(&name, 1, entry.line);
    let defs = (entry.defs)();
    page.section("SYNOPSIS");
    for def in &defs {
        page.synopsis(def.name, format!("[options] {}", def.operand_placeholder).trim_end());
    }
    page.section("DESCRIPTION");
    for def in defs.iter().take(1) {
        def.summary
            .split('\n')
            .map(str::trim)
            .for_each(|line| page.paragraph(line));
    }
    words.description.iter().for_each(|text| page.paragraph(text));
    page.section("OPTIONS");
    for def in &defs {
        if defs.len() > 1 {
            page.subsection(def.name);
        }
        def.options.iter().for_each(|option| describe(&mut page, option));
    }
    page.section("EXIT STATUS");
    for def in &defs {
        exit_status(&mut page, def, defs.len() > 1);
    }
    end(&mut page, words);
    page.file(&name, 1)
}

fn describe(page: &mut Page, option: &OptionDef) {
    let help = format!("{}.", capital(option.help));
    match option.support {
        Support::Yes => page.item(option.name, option.placeholder, &[&help, option.details]),
        Support::Not(instead) => {
            let refused = format!("Not supported: {instead}.");
            page.item(option.name, option.placeholder, &[&help, &refused]);
        }
    }
}

/// `0 printed; 1 refused` as a list.
fn exit_status(page: &mut Page, def: &CommandDef, is_named: bool) {
    if is_named {
        page.subsection(def.name);
    }
    for part in def.exit_codes.split("; ") {
        match part.split_once(' ') {
            Some((code, meaning)) if code.parse::<u8>().is_ok() => {
                page.item(code, "", &[&format!("{}.", capital(meaning))])
            }
            _ => page.paragraph(&format!("{}.", capital(part))),
        }
    }
}

/// The sections behind those of the tables.
fn end(page: &mut Page, words: &PageTexts) {
    page.section("EXAMPLES");
    for (command, meaning) in words.examples {
        page.paragraph(meaning);
        page.example(command);
    }
    let has_cell = !words::WITHOUT_CELL.contains(&words.name);
    for (section, own, shared) in [
        ("ENVIRONMENT", words.environment, words::ENVIRONMENT),
        ("FILES", words.files, words::FILES),
    ] {
        page.section(section);
        let shared = if has_cell { shared } else { &[] };
        if own.is_empty() && shared.is_empty() {
            page.paragraph("None.");
        }
        for (name, meaning) in own.iter().chain(shared) {
            page.item(name, "", &[meaning]);
        }
    }
    page.section("SEE ALSO");
    page.paragraph(&words.see_also.join(", "));
}

/// The text with a capital letter in front, unless its first word is a value or a subcommand that
/// it explains, as in `c: cluster queue summary`.
fn capital(text: &str) -> String {
    if text.split(' ').next().is_some_and(|word| word.ends_with(':')) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
