//! Numbers that differ from run to run: loads, memory, priorities, urgencies. Zero stays zero,
//! columns stay as wide.

/// Elements that are 0 or not by the second.
const SOMETIMES_ZERO: [&str; 5] = ["<UA_value>", "<JB_nurg>", "<cpu_usage>", "<mem_usage>", "<io_usage>"];

/// The line with its fractions masked: `5.51` of a load, `1.4G` of a memory, `0.25028` of a
/// priority.
pub fn without_fractions(line: &str) -> String {
    let mut done = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        let end = from
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(from.len());
        let (number, after) = from.split_at(end);
        done.push_str(before);
        rest = put(&mut done, number, after);
    }
    done + rest
}

/// Writes a number or what stands for it; returns what is left of the line.
fn put<'a>(done: &mut String, number: &str, after: &'a str) -> &'a str {
    let places = number.split_once('.').map_or(0, |(_, places)| places.len());
    let is_zero = number.chars().all(|c| c == '0' || c == '.');
    let form = match places {
        1 => "M.M",
        2 => "L.LL",
        5 | 6 if !is_zero || SOMETIMES_ZERO.iter().any(|element| done.ends_with(element)) => "F.FFFFF",
        _ => {
            done.push_str(number);
            return after;
        }
    };
    if places > 2 {
        done.push_str(form);
        return after;
    }
    // These are as long as they are large, so that the blanks around them differ.
    let blanks = done.len() - done.trim_end_matches(' ').len();
    done.truncate(done.len() - blanks);
    done.push_str(if blanks > 0 { " " } else { "" });
    done.push_str(form);
    let after = if places == 1 {
        after.trim_start_matches(['K', 'M', 'G', 'T'])
    } else {
        after
    };
    let cut = after.trim_start_matches(' ');
    done.push_str(if cut.len() < after.len() { " " } else { "" });
    cut
}

/// The line of a table of urgencies without the urgency and the part of it that waiting
/// contributed.
pub fn without_urgency(line: &str) -> String {
    let mut words: Vec<(usize, &str)> = Vec::new();
    for word in line.split_whitespace() {
        words.push((word.as_ptr() as usize - line.as_ptr() as usize, word));
    }
    let is_whole = |word: &str| word.chars().all(|c| c.is_ascii_digit());
    if !words.first().is_some_and(|(_, word)| is_whole(word)) {
        return line.to_owned();
    }
    let Some(urgency) = (1..words.len()).find(|at| is_whole(words[*at].1)) else {
        return line.to_owned();
    };
    let mut done = line.to_owned();
    for (at, word) in [urgency, urgency + 2].iter().filter_map(|at| words.get(*at)) {
        done.replace_range(*at..at + word.len(), &format!("{:>1$}", "U", word.len()));
    }
    done
}

/// The line without the share of urgency that waiting made, which is 0 or not by the second: the
/// fraction behind the priority.
pub fn without_waiting(line: &str) -> String {
    let is_fraction = |word: &str| word.len() == 7 && word.as_bytes()[1] == b'.';
    let mut words = line.split_whitespace().skip(1);
    let (priority, share) = (
        words.next().filter(|word| is_fraction(word)),
        words.next().filter(|word| is_fraction(word)),
    );
    match (priority, share) {
        (Some(_), Some(share)) => {
            let at = share.as_ptr() as usize - line.as_ptr() as usize;
            format!("{}F.FFFFF{}", &line[..at], &line[at + share.len()..])
        }
        _ => line.to_owned(),
    }
}

/// A row of the sums of `qacct` without its numbers and the blanks between them.
pub fn without_sums(line: &str) -> String {
    let is_sum = |word: &&str| {
        word.split_once('.')
            .is_some_and(|(_, places)| places.len() == 3 && !places.ends_with('B'))
    };
    if line.split_whitespace().filter(is_sum).count() < 6 {
        return line.to_owned();
    }
    let name = |word: &&str| !word.chars().all(|c| c.is_ascii_digit() || c == '.');
    line.split_whitespace().filter(name).collect::<Vec<_>>().join(" ") + " SUMS"
}

/// A line of `qping` without what a daemon says about itself at the moment, and without its port.
pub fn without_health(line: &str) -> String {
    for head in ["run time [s]:", "no. of connected clients:", "info:"] {
        if line.starts_with(head) {
            return head.to_owned();
        }
    }
    ["at port ", "up for ", " ("]
        .iter()
        .fold(line.to_owned(), |line, before| {
            let Some((head, rest)) = line.split_once(before) else {
                return line;
            };
            format!(
                "{head}{before}N{}",
                rest.trim_start_matches(|c: char| c.is_ascii_digit())
            )
        })
}

/// The line without user and process of a failure at a start, `[2002:28769]:`.
pub fn without_process(line: &str) -> String {
    let Some((head, rest)) = line.split_once(" [") else {
        return line.to_owned();
    };
    let is_pair = |text: &str| {
        text.split_once(':')
            .is_some_and(|(uid, pid)| [uid, pid].iter().all(|word| word.parse::<u32>().is_ok()))
    };
    match rest.split_once("]: ") {
        Some((pair, tail)) if is_pair(pair) => format!("{head} [U:P]: {tail}"),
        _ => line.to_owned(),
    }
}

/// The line without the seconds that made an urgency, `<JB_wtcontr>11<`.
pub fn without_waiting_element(line: &str) -> String {
    let element = "<JB_wtcontr>";
    match line.split_once(element) {
        Some((head, rest)) => format!(
            "{head}{element}W{}",
            rest.trim_start_matches(|c: char| c.is_ascii_digit())
        ),
        None => line.to_owned(),
    }
}
