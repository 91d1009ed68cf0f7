//! What is not compared, because it differs from run to run or from machine to machine. The same rules are applied to what was recorded
//! and to what came back.

use crate::case::{Answer, Case};
use crate::numbers;

/// Dates and times: `#` is a digit, `@` a letter, `_` a digit or a blank; anything else is itself.
const TIMES: [&str; 7] = [
    "##/##/#### ##:##:##",
    "####-##-##T##:##:##",
    "@@@ @@@ _# ##:##:## ####",
    "_#:##:##.######",
    USAGE_COLUMNS,
    ">##########<",
    "[####:#####]",
];

/// The columns cpu, mem and io of `qstat -ext`.
const USAGE_COLUMNS: &str = "#:##:##:## #.##### #.#####";

/// Words before a job number that the master chose.
const BEFORE_NUMBERS: [&str; 5] =
    ["Your job ", "Your job-array ", "Job ", "Unable to run job: Job ", "verification: Job "];

/// Load values that move, and what is made of them.
const MOVING: [&str; 25] = [
    "load_avg",
    "load_short",
    "load_medium",
    "load_long",
    "np_load_avg",
    "np_load_short",
    "np_load_medium",
    "np_load_long",
    "num_proc",
    "mem_free",
    "mem_total",
    "mem_used",
    "swap_free",
    "swap_total",
    "swap_used",
    "virtual_free",
    "virtual_total",
    "virtual_used",
    "cpu",
    "m_topology",
    "m_topology_inuse",
    "m_socket",
    "m_core",
    "m_thread",
    "arch",
];

/// Where the answer to a case first differs from what was recorded.
pub fn first_difference(case: &Case, answer: &Answer) -> Option<String> {
    let recorded = &case.recorded;
    let told: Vec<String> = answer.stderr.iter().filter(|line| !line.starts_with("  ")).cloned().collect();
    let codes = (recorded.exit != answer.exit)
        .then(|| format!("exit {} was {}; {}", answer.exit, recorded.exit, first(&answer.stdout, &answer.stderr)));
    differ("stdout", &case.command, &recorded.stdout, &answer.stdout)
        .or_else(|| differ("stderr", &case.command, &without_blank(&recorded.stderr), &without_blank(&told)))
        .or(codes)
}

fn first(stdout: &[String], stderr: &[String]) -> String {
    stderr.iter().chain(stdout).next().cloned().unwrap_or_default()
}

/// Messages without empty lines and blanks at the end.
fn without_blank(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

fn differ(stream: &str, command: &str, recorded: &[String], ours: &[String]) -> Option<String> {
    let recorded = normalise(command, recorded);
    let ours = normalise(command, ours);
    let at = (0..recorded.len().max(ours.len())).find(|at| recorded.get(*at) != ours.get(*at))?;
    let line = |lines: &[String]| lines.get(at).map_or("(nothing)".to_owned(), |line| format!("{line:?}"));
    Some(format!("{stream} line {}: {} was {}", at + 1, line(&ours), line(&recorded)))
}

/// Lines without what is not compared.
fn normalise(command: &str, lines: &[String]) -> Vec<String> {
    let kept = lines.iter().filter(|line| !line.starts_with("env_list:"));
    kept.map(|line| normalise_line(command, line)).collect()
}

fn normalise_line(command: &str, line: &str) -> String {
    let line = without_process(line);
    // Task 4 of job 12 was still being sent when its queue was suspended; ours had started.
    let line = line.replace(" St   ", " S    ").replace("<state>St</state>", "<state>S</state>");
    let line = line.replace("NA         NA      NA     ", USAGE_COLUMNS);
    let line = TIMES.iter().fold(line, |line, time| mask(&line, time));
    let line = without_job_number(command, &line);
    let line = MOVING.iter().fold(line, |line, name| without_value(&line, name));
    let line =
        if command.contains("-urg") && !command.contains("-xml") { numbers::without_urgency(&line) } else { line };
    numbers::without_fractions(&line)
}

/// The line without the usage of a task, the number of a process and the number of seconds since 1970.
fn without_process(line: &str) -> String {
    if line.starts_with("usage  ") {
        return line[..28.min(line.len())].to_owned();
    }
    line.to_owned()
}

fn without_job_number(command: &str, line: &str) -> String {
    let digits = |c: char| c.is_ascii_digit();
    let prefix = BEFORE_NUMBERS.iter().find(|words| line.starts_with(**words)).copied();
    let prefix = prefix.or(command.contains("-terse").then_some(""));
    prefix.map_or(line.to_owned(), |words| format!("{words}N{}", line[words.len()..].trim_start_matches(digits)))
}

/// The line with what follows `:NAME=` up to a blank or comma masked.
fn without_value(line: &str, name: &str) -> String {
    let key = format!(":{name}=");
    let Some(at) = line.find(&key) else { return line.to_owned() };
    let rest = &line[at + key.len()..];
    let end = rest.find([' ', ',']).unwrap_or(rest.len());
    format!("{}V{}", &line[..at + key.len()], &rest[end..])
}

/// The text with every part that has this form replaced by the form.
fn mask(text: &str, form: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let form: Vec<char> = form.chars().collect();
    let mut done = String::new();
    let mut at = 0;
    while at < chars.len() {
        if chars[at..].len() >= form.len() && form.iter().zip(&chars[at..]).all(|(form, c)| fits(*form, *c)) {
            done.extend(&form);
            at += form.len();
        } else {
            done.push(chars[at]);
            at += 1;
        }
    }
    done
}

fn fits(form: char, c: char) -> bool {
    match form {
        '#' => c.is_ascii_digit(),
        '@' => c.is_ascii_alphabetic(),
        '_' => c.is_ascii_digit() || c == ' ',
        _ => c == form,
    }
}
