//! What is not compared, because it differs from run to run or from machine to machine. The same
//! rules are applied to what was recorded and to what came back.

use crate::case::{Answer, Case};
use crate::numbers;

/// Dates and times: `#` is a digit, `@` a letter, `_` a digit or a blank; anything else is itself.
const TIMES: [&str; 6] = [
    "##/##/#### ##:##:##",
    "####-##-##T##:##:##",
    "@@@ @@@ _# ##:##:## ####",
    "_#:##:##.######",
    USAGE_COLUMNS,
    ">##########<",
];

/// The columns cpu, mem and io of `qstat -ext`.
const USAGE_COLUMNS: &str = "#:##:##:## #.##### #.#####";

/// Commands whose refusals 8.1.9 wrote to stdout.
const CHANGING: [&str; 9] = [
    "qmod ", "qdel ", "qalter ", "qhold ", "qrls ", "qresub ", "qrsub ", "qrdel ", "qrstat ",
];

/// Words before a job number that the master chose.
const BEFORE_NUMBERS: [&str; 5] = [
    "Your job ",
    "Your job-array ",
    "Job ",
    "Unable to run job: Job ",
    "verification: Job ",
];

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

/// What `qacct -j` says of a task that ended before its memory was measured.
const UNMEASURED: &str = "unmeasured   address space: the job ended before it was measured";

/// The lines that 8.1.9 may have as well: no details of a diagnostic.
fn comparable(lines: &[String]) -> Vec<String> {
    lines.iter().filter(|line| !line.starts_with("  ")).cloned().collect()
}

/// An answer to a case without what is not compared.
pub fn answer(case: &Case, answer: &Answer) -> Answer {
    let command = &case.command;
    let kept = comparable(&answer.stderr);
    let Answer { exit, stdout, stderr } = together(
        command,
        Answer {
            stderr: without_blank(&kept),
            ..answer.clone()
        },
    );
    Answer {
        exit,
        stdout: normalise(case, &stdout),
        stderr: normalise(case, &stderr),
    }
}

/// Where an answer to a case first differs from the one that is expected.
pub fn first_difference(case: &Case, expected: &Answer, answer: &Answer) -> Option<String> {
    let told = comparable(&answer.stderr);
    let answer = together(
        &case.command,
        Answer {
            stderr: told,
            ..answer.clone()
        },
    );
    let recorded = &together(&case.command, expected.clone());
    let codes = (recorded.exit != answer.exit).then(|| {
        format!(
            "exit {} was {}; {}",
            answer.exit,
            recorded.exit,
            first(&answer.stdout, &answer.stderr)
        )
    });
    differ("stdout", case, &recorded.stdout, &answer.stdout)
        .or_else(|| {
            differ(
                "stderr",
                case,
                &without_blank(&recorded.stderr),
                &without_blank(&answer.stderr),
            )
        })
        .or(codes)
}

fn first(stdout: &[String], stderr: &[String]) -> String {
    stderr.iter().chain(stdout).next().cloned().unwrap_or_default()
}

/// The answer of a command that changes jobs or queues with all lines in one place. What it tells
/// beyond its first lines is left out where stderr goes to stdout, too.
fn together(command: &str, mut answer: Answer) -> Answer {
    if command.contains("2>&1") {
        let details = ["  where: ", "  why: ", "  fix: "];
        answer
            .stdout
            .retain(|line| !details.iter().any(|detail| line.starts_with(detail)));
    }
    if CHANGING.iter().any(|name| command.starts_with(name)) {
        answer.stdout.append(&mut answer.stderr);
        answer.stdout = without_blank(&answer.stdout);
    }
    if command.starts_with("qmod") {
        answer.stdout.sort();
    }
    answer
}

/// Messages without empty lines, blanks at the end, what 8.1.9 says of a file of its own, and what
/// it says twice in a row.
fn without_blank(lines: &[String]) -> Vec<String> {
    let told = lines.iter().map(|line| line.trim_end().to_owned());
    let is_own = |line: &String| line.starts_with("error reading file: \"/tmp/pid-");
    let mut told: Vec<String> = told.filter(|line| !line.is_empty() && !is_own(line)).collect();
    told.dedup();
    told
}

fn differ(stream: &str, case: &Case, recorded: &[String], ours: &[String]) -> Option<String> {
    let (mut recorded, mut ours) = (normalise(case, recorded), normalise(case, ours));
    if case.command.starts_with("timeout ") {
        // What is told again and again is compared as often as both told it.
        let often = recorded.len().min(ours.len()).max(1);
        recorded.truncate(often);
        ours.truncate(often);
    }
    let at = (0..recorded.len().max(ours.len())).find(|at| recorded.get(*at) != ours.get(*at))?;
    let line = |lines: &[String]| lines.get(at).map_or("(nothing)".to_owned(), |line| format!("{line:?}"));
    Some(format!(
        "{stream} line {}: {} was {}",
        at + 1,
        line(&ours),
        line(&recorded)
    ))
}

/// Lines without what is not compared.
fn normalise(case: &Case, lines: &[String]) -> Vec<String> {
    // Recorded with a variable TERM without a value, which we do not make up, and beside an old
    // value of a sensor.
    let left_out = ["env_list:", "\thl:lse=", "peak_rss ", "pressure "];
    let kept = lines
        .iter()
        .filter(|line| !left_out.iter().any(|start| line.starts_with(start)));
    // Whether a short task was measured before it ended is chance. 8.1.9 says nothing of it.
    let kept = kept.filter(|line| *line != UNMEASURED);
    // A task that was still being sent had no usage yet.
    let usage = ["<cpu_usage>", "<mem_usage>", "<io_usage>", "<resource name=\"lse\""];
    let kept = kept.filter(|line| !usage.iter().any(|element| line.trim().starts_with(element)));
    let kept: Vec<String> = kept.cloned().collect();
    let kept = if case.command.starts_with("qconf -se ") {
        with_load_names(&kept)
    } else {
        kept
    };
    let mut done: Vec<String> = kept.iter().map(|line| normalise_line(case, line)).collect();
    sort_instances(&mut done);
    if let Some(at) = done
        .iter()
        .position(|line| line.trim() == "<VA_variable>TERM</VA_variable>")
    {
        done.drain(at - 1..at + 2);
    }
    done
}

/// Lines of an execution host with the names of those load values that 8.1.9 has, sorted, in place
/// of its load values.
fn with_load_names(lines: &[String]) -> Vec<String> {
    let Some(first) = lines.iter().position(|line| line.starts_with("load_values ")) else {
        return lines.to_vec();
    };
    let count = 1 + lines[first..].iter().take_while(|line| line.ends_with('\\')).count();
    let text: String = lines[first..first + count]
        .iter()
        .map(|line| line.trim_end_matches('\\').trim())
        .collect();
    let values = text.trim_start_matches("load_values").split(',');
    let mut names: Vec<&str> = values
        .filter_map(|value| Some(value.trim().split_once('=')?.0))
        .collect();
    names.retain(|name| MOVING.contains(name));
    names.sort_unstable();
    let line = format!("load_values {}", names.join(","));
    [&lines[..first], &[line], &lines[first + count..]].concat()
}

/// Sorts the lines about queue instances in the scheduling info of each job.
fn sort_instances(lines: &mut [String]) {
    let is_instance = |line: &String| line.get(28..).is_some_and(|text| text.starts_with("queue instance "));
    let mut from = 0;
    while let Some(first) = lines[from..].iter().position(is_instance).map(|at| from + at) {
        let count = lines[first..].iter().take_while(|line| is_instance(line)).count();
        let block = &mut lines[first..first + count];
        block.iter_mut().for_each(|line| line.replace_range(..28, ""));
        block.sort();
        from = first + count;
    }
}

fn normalise_line(case: &Case, line: &str) -> String {
    let command = &case.command;
    let line = without_usage(line);
    let line = if command.contains("qping ") {
        numbers::without_health(&line)
    } else {
        line
    };
    let line = if line.starts_with("Gridwright ") {
        "Gridwright VERSION".to_owned()
    } else {
        line
    };
    let line = if command.starts_with("qacct") {
        numbers::without_sums(&line)
    } else {
        line
    };
    // Task 4 of job 12 was still being sent when its queue was suspended; ours had started.
    let line = line.replace(" St   ", " S    ").replace(">St<", ">S<");
    let line = line.replace("NA         NA      NA     ", USAGE_COLUMNS);
    let line = TIMES.iter().fold(line, |line, time| mask(&line, time));
    let line = without_job_number(command, &line);
    let line = numbers::without_waiting_element(&numbers::without_process(&line));
    let line = MOVING.iter().fold(line, |line, name| without_value(&line, name));
    if case.is_exact {
        return line;
    }
    let line = if command.contains("-urg") && !command.contains("-xml") {
        numbers::without_urgency(&line)
    } else {
        line
    };
    let line = if command.contains("-urg") || command.contains("-pri") {
        numbers::without_waiting(&line)
    } else {
        line
    };
    numbers::without_fractions(&line)
}

/// The line without the usage of a task.
fn without_usage(line: &str) -> String {
    let fields = ["ru_", "cpu  ", "mem  ", "io  ", "maxvmem", "jobnumber"];
    let width = if line.starts_with("usage  ") {
        28
    } else if fields.iter().any(|field| line.starts_with(field)) {
        13
    } else {
        line.len()
    };
    line[..width.min(line.len())].to_owned()
}

fn without_job_number(command: &str, line: &str) -> String {
    let digits = |c: char| c.is_ascii_digit();
    let prefix = BEFORE_NUMBERS.iter().find(|words| line.starts_with(**words)).copied();
    let prefix = prefix.or(command.contains("-terse").then_some(""));
    let prefix = prefix.filter(|words| line[words.len()..].starts_with(digits));
    prefix.map_or(line.to_owned(), |words| {
        format!("{words}N{}", line[words.len()..].trim_start_matches(digits))
    })
}

/// The line with the value of a load value masked: behind `:NAME=`, or of an element.
fn without_value(line: &str, name: &str) -> String {
    let xml = [format!("\"{name}\" type=\"hl\">"), format!("'{name}' dominance='hl'>")];
    let mut keys = [format!(":{name}=")].into_iter().chain(xml);
    let found = keys.find_map(|key| Some(line.find(&key)? + key.len()));
    let Some(at) = found else { return line.to_owned() };
    let (head, rest) = line.split_at(at);
    let end = rest.find([' ', ',', '<']).unwrap_or(rest.len());
    format!("{head}V{}", &rest[end..])
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
