//! One function for each text parser: it may be given any text. It never panics, an error tells
//! where or what, and what was read prints as a text that reads as the same. `tests/fuzz` gives
//! them seeded mutations of recorded texts, `tests/fuzz/` gives them to cargo-fuzz.

pub mod mutate;

use proto::amount::{Amount, Type};
use proto::calendar::Calendar;
use proto::complex::Complex;
use proto::diagnostic::Diagnostic;
use proto::object::{Fields, Form, LineWrap, Object, ObjectKind};
use proto::quota::{QuotaSet, parse_sets, print_sets};
use proto::request::{ResourceList, SlotRange, TaskRange, TaskSet};
use proto::restring::Expression;
use proto::time::{Wall, Zone};
use sensors::host::{Domains, SelfNames};
use sensors::protocol::Limits;
use sensors::protocol::reader::Reader;

/// A parser, and what is tried on it.
pub struct Target {
    /// Its name, that of the cargo-fuzz target too.
    pub name: &'static str,
    /// Takes any text; panics where something is wrong.
    pub run: fn(&str),
    /// Texts to begin with, and pieces that belong to its language.
    pub seeds: fn() -> Vec<String>,
    /// How many times as long as others it takes for one text.
    pub cost: u64,
}

/// Every text parser of the libraries. Those of the commands are tried in `master/cli`.
pub const TARGETS: &[Target] = &[
    Target {
        name: "complex",
        run: complex,
        seeds: complex_seeds,
        cost: 1,
    },
    Target {
        name: "objects",
        run: objects,
        seeds: object_seeds,
        cost: 10,
    },
    Target {
        name: "rqs",
        run: rqs,
        seeds: rqs_seeds,
        cost: 2,
    },
    Target {
        name: "calendar",
        run: calendar,
        seeds: calendar_seeds,
        cost: 10,
    },
    Target {
        name: "request",
        run: request,
        seeds: request_seeds,
        cost: 1,
    },
    Target {
        name: "expression",
        run: expression,
        seeds: expression_seeds,
        cost: 1,
    },
    Target {
        name: "amount",
        run: amount,
        seeds: amount_seeds,
        cost: 1,
    },
    Target {
        name: "range",
        run: range,
        seeds: range_seeds,
        cost: 1,
    },
    Target {
        name: "sensor",
        run: sensor,
        seeds: sensor_seeds,
        cost: 1,
    },
];

/// The kinds that are read from text; resource quota sets have a form and a target of their own.
const KINDS: [ObjectKind; 13] = [
    ObjectKind::ExecHost,
    ObjectKind::Queue,
    ObjectKind::HostGroup,
    ObjectKind::Pe,
    ObjectKind::ClusterConf,
    ObjectKind::SchedulerConf,
    ObjectKind::ComplexTable,
    ObjectKind::Checkpoint,
    ObjectKind::Calendar,
    ObjectKind::UserSet,
    ObjectKind::Project,
    ObjectKind::User,
    ObjectKind::ShareTree,
];

/// The complex file.
pub fn complex(text: &str) {
    match Complex::parse(text) {
        Ok(complex) => {
            let printed = complex.to_string();
            assert_eq!(Complex::parse(&printed).as_ref(), Ok(&complex), "{printed}");
        }
        Err(refusals) => say_something(&refusals),
    }
}

/// The files of all other objects, each text as each kind. What is settled settles again as it is,
/// printed either way.
pub fn objects(text: &str) {
    let fields = match Fields::parse(text) {
        Ok(fields) => fields,
        Err(refusals) => return say_something(&refusals),
    };
    for kind in KINDS
        .into_iter()
        .filter(|kind| kind.form() != Form::Bare && kind.template("x").is_some())
    {
        let name = kind.name_in(&fields).unwrap_or("h1").to_owned();
        match kind.settle(&name, &fields) {
            Err(refusals) => say_something(&refusals),
            Ok(settled) => {
                for wrap in [LineWrap::At80, LineWrap::SingleLine]
                    .into_iter()
                    .filter(|_| kind != ObjectKind::ComplexTable)
                {
                    let printed = settled.print(kind, wrap);
                    let again = Fields::parse(&printed).map(|fields| kind.settle(&name, &fields));
                    let again = again.unwrap_or_else(|refusals| panic!("{kind}: {refusals:?}\n{printed}"));
                    let again = again.unwrap_or_else(|refusals| panic!("{kind}: {refusals:?}\n{printed}"));
                    assert_eq!(again.print(kind, wrap), printed, "{kind}");
                }
            }
        }
    }
}

/// Resource quota sets.
pub fn rqs(text: &str) {
    let read = |text: &str| -> Result<Vec<QuotaSet>, Vec<Diagnostic>> {
        parse_sets(text)?
            .iter()
            .map(|fields| QuotaSet::read("", fields))
            .collect()
    };
    match read(text) {
        Ok(sets) => {
            for wrap in [LineWrap::At80, LineWrap::SingleLine] {
                let printed = print_sets(&sets, wrap);
                assert_eq!(read(&printed).as_ref(), Ok(&sets), "{printed}");
            }
        }
        Err(refusals) => say_something(&refusals),
    }
}

/// Calendars, the year in front of the first `|` and the week behind it; what one that is read says
/// next is found in time.
pub fn calendar(text: &str) {
    let (year, week) = text.split_once('|').unwrap_or((text, "NONE"));
    let fields: Fields = [("calendar_name", "x"), ("year", year), ("week", week)]
        .into_iter()
        .collect();
    match Calendar::from_fields(&fields) {
        Ok(calendar) => {
            assert_eq!(Calendar::from_fields(&calendar.to_fields()).as_ref(), Ok(&calendar));
            calendar.next_change(&Zone::utc(), Wall(1_795_000_000_000));
        }
        Err(refusals) => say_something(&refusals),
    }
}

/// `-l`.
pub fn request(text: &str) {
    match ResourceList::parse(text) {
        Ok(list) => {
            let printed = list.to_string();
            // A mark that is not closed may find a partner once the later of two values stands in
            // the place of the earlier.
            let is_open = |value: &String| ['"', '\''].iter().any(|mark| value.matches(*mark).count() % 2 == 1);
            let is_whole = !list.iter().filter_map(|request| request.value.as_ref()).any(is_open);
            assert!(
                !is_whole || ResourceList::parse(&printed).as_ref() == Ok(&list),
                "{printed}"
            );
            if let Err(refusals) = list.resolve(&Complex::built_in()) {
                say_something(&refusals);
            }
        }
        Err(refusal) => say_something(&[refusal]),
    }
}

/// An expression of a string attribute; matching ends whatever is offered.
pub fn expression(text: &str) {
    match Expression::parse(text) {
        Ok(expression) => {
            assert_eq!(Expression::parse(expression.as_str()).as_ref(), Ok(&expression));
            for offered in ["", "lx-amd64", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", text] {
                for r#type in [Type::String, Type::CString, Type::ReString, Type::Host] {
                    expression.matches(offered, r#type);
                }
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Numbers, sizes, times, truths.
pub fn amount(text: &str) {
    for r#type in [Type::Int, Type::Time, Type::Memory, Type::Bool, Type::Double] {
        match Amount::parse(text, r#type) {
            Ok(amount) => {
                let printed = amount.print(r#type);
                assert_eq!(
                    Amount::parse(&printed, r#type).ok(),
                    Some(amount),
                    "{type:?} {text:?} as {printed:?}"
                );
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Ranges of slots, of tasks.
pub fn range(text: &str) {
    if let Ok(range) = SlotRange::parse(text) {
        assert_eq!(SlotRange::parse(&range.to_string()), Ok(range));
    }
    if let Ok(range) = TaskRange::parse(text) {
        assert_eq!(TaskRange::parse(&range.to_string()), Ok(range));
    }
    if let Ok(tasks) = TaskSet::parse(text) {
        assert_eq!(TaskSet::parse(&tasks.to_string()), Ok(tasks));
    }
}

/// What a load sensor writes: what is kept stays within its limits, in however many pieces it
/// comes.
pub fn sensor(text: &str) {
    let limits = Limits {
        line_bytes: 200,
        block_values: 20,
        block_bytes: 1_000,
        ..Limits::default()
    };
    let heard = |pieces: usize| {
        let names = SelfNames::new(&"h1".into(), [], Domains::Compare);
        let (mut reader, mut heard) = (Reader::new(limits, names), Vec::new());
        reader.request_sent();
        text.as_bytes()
            .chunks(pieces)
            .for_each(|piece| reader.feed(piece, |one| heard.push(one)));
        reader.finish(|one| heard.push(one));
        heard
    };
    assert_eq!(heard(1), heard(usize::MAX), "the same in bytes and as a whole");
}

fn say_something(refusals: &[Diagnostic]) {
    assert!(!refusals.is_empty(), "refused without a reason");
    for refusal in refusals {
        assert!(!refusal.what.is_empty(), "a refusal says what: {refusal:?}");
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn complex_seeds() -> Vec<String> {
    let table = Complex::built_in().to_string();
    let mut seeds: Vec<String> = table.lines().map(str::to_owned).collect();
    seeds.push(table);
    seeds.extend(texts(&[
        "lic l INT <= YES YES 0 100",
        "gpu g RSMAP <= YES HOST 0 0",
        "# comment\r\n",
        "x x DOUBLE >= FORCED NO 1.5 -1e3",
        "s s RESTRING == YES NO NONE 0",
        "e e BOOL EXCL YES YES 0 1000",
    ]));
    seeds
}

fn object_seeds() -> Vec<String> {
    let recorded = [
        include_str!("../../proto/tests-data/qconf/queue_all.q.txt"),
        include_str!("../../proto/tests-data/qconf/queue_template.txt"),
        include_str!("../../proto/tests-data/qconf/host_vm.txt"),
        include_str!("../../proto/tests-data/qconf/host_global.txt"),
        include_str!("../../proto/tests-data/qconf/conf_global.txt"),
        include_str!("../../proto/tests-data/qconf/scheduler.txt"),
        include_str!("../../proto/tests-data/qconf/pe_mpi.txt"),
        include_str!("../../proto/tests-data/qconf/hostgroup_allhosts.txt"),
    ];
    let mut seeds = texts(&recorded);
    let templates = KINDS.into_iter().filter(|kind| *kind != ObjectKind::ComplexTable);
    seeds.extend(templates.filter_map(|kind| Some(kind.template("x")?.print(kind, LineWrap::At80))));
    seeds.extend(texts(&[
        "slots 1,[@all=4],[h1=8]\n",
        "complex_values a=1,b=2G,c=TRUE\n",
        "hostlist @allhosts h1 \\\n   h2\n",
        "execd_params KEEP_ACTIVE=true,H_LOCKS=1K NOTIFY_KILL=none\n",
        "load_thresholds np_load_avg=1.75,mem_free=1G\r\n",
        "calendar NONE,[h1=night]\n",
        "[",
        "],",
        "\\\n",
        "INFINITY",
        "0:10:0",
    ]));
    seeds
}

fn rqs_seeds() -> Vec<String> {
    texts(&[
        include_str!("../../proto/tests-data/qconf/rqs.txt"),
        "{\n name a\n enabled true\n limit users {@a,!b} hosts {*} to slots=$num_proc*2,mem=1.5G\n}\n",
        "{\n name a\n description NONE\n enabled FALSE\n limit to slots=infinity\n}",
        "{",
        "}",
        "!*",
        "{*}",
        "NONE",
    ])
}

fn calendar_seeds() -> Vec<String> {
    texts(&[
        "24.12.2026-26.12.2026=off|mon-fri=6-20=off",
        "1.1.1999,1.4.1999-5.4.1999=0-24=off 6.1.2027=suspended|NONE",
        "NONE|mon-fri=6:30-20:15:59=suspended,sat-sun=on",
        "NONE|fri-mon=20-6=off off",
        "12.mar.2004=9-17=on|wed",
        "29.2.2027|",
    ])
}

fn request_seeds() -> Vec<String> {
    texts(&[
        "h_vmem=1.5G,arch=lx-*,num_proc>=4",
        "mem_free=1k,h_rt=1:0:0",
        "arch='lx-amd64|lx-x86',q=all.q@!h1",
        "exclusive,h=@group&!(h1|h2)",
        "a=\"x,y\"",
        "slots!=3",
        "h_rt<=0:0:10",
    ])
}

fn expression_seeds() -> Vec<String> {
    texts(&[
        "lx-*",
        "!(a|b)&c?",
        "[a-f]*[!x]",
        "a|b|!c&(d|e)",
        "((((",
        "*a*a*a*a*b",
        "\"quoted|text\"",
        "'x'&y",
    ])
}

fn amount_seeds() -> Vec<String> {
    texts(&[
        "1.5G",
        "-5",
        "0x1F",
        "010",
        "1e3k",
        "1:2:3",
        ":::",
        "INFINITY",
        "TRUE",
        "9223372036854775807",
    ])
}

fn range_seeds() -> Vec<String> {
    texts(&[
        "1-10:2",
        "4-",
        "-4",
        "2,4-8",
        "1-4294967295",
        "5",
        "3-1",
        "1-9:0",
        "1,3-4,7-100:3",
    ])
}

fn sensor_seeds() -> Vec<String> {
    texts(&[
        "begin\nh1:load_avg:1.5\nend\n",
        "start\nglobal:lic:4\nh2.example.org:x:y:z\nend\n",
        "end\n",
        "begin\r\nh1:a:1\r\nend\r\n",
        "h1:a:1\nend\nbegin\n\n",
        ":::\n",
        "begin\nbegin\n",
    ])
}
