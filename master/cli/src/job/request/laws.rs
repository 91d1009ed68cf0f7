//! How options of several sources add up, beside a reference that knows nothing of the table: it
//! says for each option what a real Grid Engine 8.1.9 was seen to do with pairs of values in all
//! pairs of places.

use super::*;
use crate::job::sources::{self, Line, Origin};
use std::collections::BTreeMap;

type Use = (&'static str, &'static str);
type Lines = Vec<Vec<Use>>;
type Pairs = Vec<(String, String)>;

/// Values that found differences: the same key twice, letters that take others away, lists that
/// overlap.
const VALUES: [(&str, &[&str]); 22] = [
    ("-q", &["all.q", "b.q", "*@vm,c.q"]),
    ("-masterq", &["all.q", "b.q"]),
    ("-l", &["h_rt=5,mem_free=1K", "h_rt=6", "lic=2"]),
    ("-M", &["a@b", "c@d,a@b", "u1", "u2,e@b", "f@b,u1,g@b"]),
    ("-m", &["b", "e", "as", "n", "nb", "bn"]),
    ("-S", &["/bin/sh", "vm:/bin/bash", "/bin/ksh,n2:/bin/csh"]),
    ("-o", &["/a", "vm:/b", "n2:/c", "/d,vm:/e"]),
    ("-e", &["/a", "vm:/b"]),
    ("-v", &["A=1,B=2", "A=3", "C=\"q,r\",A", "B=it's"]),
    ("-ac", &["A=1,B=2", "A=3", "M=\"a,b\",N", "A=4,A=5"]),
    ("-sc", &["A=1", "B=2,C=3"]),
    ("-dc", &["A", "B,C=1"]),
    ("-hold_jid", &["x1", "x2,x1"]),
    ("-N", &["a", "b"]),
    ("-A", &["a", "b"]),
    ("-p", &["-1", "-2"]),
    ("-j", &["y", "n"]),
    ("-soft", &[""]),
    ("-hard", &[""]),
    ("-h", &[""]),
    ("-notify", &[""]),
    ("-clear", &[""]),
];

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }

    fn line(&mut self) -> Vec<Use> {
        let count = self.below(5);
        (0..count)
            .map(|_| {
                let (name, values) = VALUES[self.below(VALUES.len())];
                // What drops all that was said comes seldom, so that much is left to add up.
                let (name, values) = if name == "-clear" && self.below(4) > 0 {
                    VALUES[0]
                } else {
                    (name, values)
                };
                (name, values[self.below(values.len())])
            })
            .collect()
    }

    fn sources(&mut self) -> Vec<Lines> {
        let counts = [self.below(3), self.below(4), 1];
        counts
            .into_iter()
            .map(|lines| (0..lines).map(|_| self.line()).collect())
            .collect()
    }
}

/// What a job is asked for, in a form that both sides can have.
#[derive(Debug, Default, PartialEq)]
struct RequestFacts {
    queues: [Vec<String>; 3],
    resources: [BTreeMap<String, String>; 2],
    mail: String,
    mail_to: Vec<String>,
    paths: [Pairs; 3],
    variables: Pairs,
    context: Pairs,
    predecessors: Vec<String>,
    words: [String; 4],
    flags: [bool; 2],
}

/// The reference. `PLACE` is source, line.
fn expected(sources: &[Lines]) -> RequestFacts {
    let mut uses: Vec<(usize, usize, Use)> = Vec::new();
    for (source, lines) in sources.iter().enumerate() {
        for (line, given) in lines.iter().enumerate() {
            uses.extend(given.iter().map(|one| (source, line, *one)));
        }
    }
    if let Some(clear) = uses.iter().rposition(|(_, _, (name, _))| *name == "-clear") {
        uses.drain(..=clear);
    }
    let mut asked = RequestFacts {
        words: ["", "", "0", ""].map(str::to_owned),
        ..RequestFacts::default()
    };
    let queue_source = uses
        .iter()
        .filter(|(_, _, (name, _))| *name == "-q")
        .map(|(source, _, _)| *source)
        .max();
    let mut soft = (0, 0, false);
    for (source, line, (name, value)) in uses {
        if (soft.0, soft.1) != (source, line) {
            soft = (source, line, false);
        }
        match name {
            "-soft" => soft.2 = true,
            "-hard" => soft.2 = false,
            "-q" if Some(source) == queue_source => asked.queues[usize::from(soft.2)].extend(commas(value)),
            "-q" => {}
            "-l" => asked.resources[usize::from(soft.2)].extend(commas(value).iter().map(|part| pair(part, '='))),
            _ => expected_list(&mut asked, name, value),
        }
    }
    asked
}

fn expected_list(asked: &mut RequestFacts, name: &str, value: &str) {
    match name {
        "-masterq" => asked.queues[2].extend(commas(value)),
        "-M" => {
            let host = |address: &str| pair(address, '@').1;
            let earlier = std::mem::take(&mut asked.mail_to);
            let place = |new: &String| {
                earlier
                    .iter()
                    .position(|known| host(known) == host(new))
                    .unwrap_or(usize::MAX)
            };
            let new = commas(value);
            let stays = |known: &String| new.iter().all(|new| host(new) != host(known));
            let mut placed: Vec<(usize, String)> = new.iter().map(|new| (place(new), new.clone())).collect();
            placed.extend(earlier.iter().cloned().enumerate().filter(|(_, known)| stays(known)));
            placed.sort_by_key(|(place, _)| *place);
            asked.mail_to = placed.into_iter().map(|(_, address)| address).collect();
        }
        "-m" if value.contains('n') => asked.mail.clear(),
        "-m" => {
            let letters: Vec<char> = "abes"
                .chars()
                .filter(|l| asked.mail.contains(*l) || value.contains(*l))
                .collect();
            asked.mail = letters.into_iter().collect();
        }
        "-S" | "-o" | "-e" => {
            let at = ["-S", "-o", "-e"]
                .iter()
                .position(|path| *path == name)
                .expect("one of them");
            for part in commas(value) {
                let (host, path) = if part.contains(':') {
                    pair(&part, ':')
                } else {
                    (String::new(), part)
                };
                put(&mut asked.paths[at], host, path);
            }
        }
        "-v" => unquoted_commas(value)
            .into_iter()
            .for_each(|(name, value)| put(&mut asked.variables, name, value)),
        "-ac" => unquoted_commas(value)
            .into_iter()
            .for_each(|(name, value)| put(&mut asked.context, name, value)),
        "-sc" => asked.context = unquoted_commas(value),
        "-dc" => {
            let names: Vec<String> = unquoted_commas(value).into_iter().map(|(name, _)| name).collect();
            asked.context.retain(|(name, _)| !names.contains(name));
        }
        "-hold_jid" => asked.predecessors.extend(commas(value)),
        "-N" | "-A" | "-p" | "-j" => {
            let at = ["-N", "-A", "-p", "-j"]
                .iter()
                .position(|word| *word == name)
                .expect("one of them");
            asked.words[at] = value.to_owned();
        }
        "-h" => asked.flags[0] = true,
        "-notify" => asked.flags[1] = true,
        other => panic!("{other} is not in the reference"),
    }
}

fn put(list: &mut Pairs, key: String, value: String) {
    match list.iter().position(|(known, _)| *known == key) {
        Some(at) => list[at].1 = value,
        None => list.push((key, value)),
    }
}

fn commas(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

fn pair(text: &str, between: char) -> (String, String) {
    let (name, value) = text.split_once(between).unwrap_or((text, ""));
    (name.to_owned(), value.to_owned())
}

fn unquoted_commas(text: &str) -> Pairs {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut inside = false;
    for character in text.chars() {
        inside ^= character == '"';
        match character {
            ',' if !inside => parts.push(std::mem::take(&mut part)),
            _ => part.push(character),
        }
    }
    parts.push(part);
    parts.iter().map(|part| pair(part, '=')).collect()
}

/// What the commands make of the sources.
fn made(sources: &[Lines]) -> RequestFacts {
    let origins = [Origin::RequestFiles, Origin::Script, Origin::CommandLine];
    let given = |(name, value): &Use| GivenOption {
        name,
        values: if value.is_empty() {
            Vec::new()
        } else {
            vec![(*value).to_owned()]
        },
    };
    let line = |uses: &Vec<Use>| Line {
        place: String::new(),
        given: uses.iter().map(given).collect(),
    };
    let source = |(lines, origin): (&Lines, Origin)| Source {
        origin,
        lines: lines.iter().map(line).collect(),
    };
    let sources = sources::after_clear(sources.iter().zip(origins).map(source).collect());
    let mut request = JobRequest::new("qsub");
    request.apply_sources(&sources).unwrap();
    let changes = request.changes;
    let resources = |list: &Option<Vec<ResourceRequest>>| -> BTreeMap<String, String> {
        let entry = |request: &ResourceRequest| (request.name.clone(), request.value.clone().unwrap_or_default());
        list.iter().flatten().map(entry).collect()
    };
    let paths = |list: Option<Vec<HostPath>>| -> Pairs {
        let entry = |path: HostPath| (path.host.map_or_else(String::new, |host| host.to_string()), path.path);
        list.unwrap_or_default().into_iter().map(entry).collect()
    };
    let mail = changes.mail.unwrap_or_default();
    let letters = [
        (mail.abort, 'a'),
        (mail.begin, 'b'),
        (mail.end, 'e'),
        (mail.suspend, 's'),
    ];
    let variables = request.variables.unwrap_or_default();
    let yes_no = |value: bool| if value { "y" } else { "n" }.to_owned();
    RequestFacts {
        queues: [changes.hard_queues, changes.soft_queues, changes.master_queues].map(Option::unwrap_or_default),
        resources: [resources(&changes.hard), resources(&changes.soft)],
        mail: letters
            .into_iter()
            .filter_map(|(is_set, letter)| is_set.then_some(letter))
            .collect(),
        mail_to: changes.mail_to.unwrap_or_default(),
        paths: [paths(changes.shell), paths(changes.stdout), paths(changes.stderr)],
        variables: variables
            .into_iter()
            .map(|(name, value)| (name, value.unwrap_or_default()))
            .collect(),
        context: ContextChange::applied(Vec::new(), &changes.context),
        predecessors: changes.predecessors.unwrap_or_default(),
        words: [
            changes.name.unwrap_or_default(),
            changes.account.unwrap_or_default(),
            changes.priority.unwrap_or_default().to_string(),
            changes.merge_stderr.map(yes_no).unwrap_or_default(),
        ],
        flags: [
            changes.holds.is_some_and(|holds| holds.set.user),
            changes.notify == Some(true),
        ],
    }
}

#[test]
fn options_of_all_sources_add_up_as_in_the_reference() {
    for seed in 0..5_000 {
        let sources = Random(seed).sources();
        assert_eq!(made(&sources), expected(&sources), "seed {seed}: {sources:#?}");
    }
}

#[test]
fn an_option_of_one_source_means_the_same_on_one_line_and_on_several() {
    for seed in 0..2_000 {
        let mut random = Random(seed);
        let uses: Vec<Use> = random
            .line()
            .into_iter()
            .filter(|(name, _)| !["-soft", "-hard"].contains(name))
            .collect();
        let apart = uses.iter().map(|one| vec![*one]).collect();
        assert_eq!(made(&[vec![uses]]), made(&[apart]), "seed {seed}");
    }
}
