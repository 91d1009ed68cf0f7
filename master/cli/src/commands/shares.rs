//! `gridwright shares`: what each part of the share tree is entitled to, ought to get and has.

use crate::args::{CommandDef, Operands, ValueCount, flag, with};
use crate::cell_address::CellAddress;
use crate::commands::Outcome;
use crate::commands::ask::{self, Format};
use crate::fail::Fail;
use crate::output::json;
use crate::output::value::{cut, fraction, millionths};
use crate::{exit, output};
use proto::wire::client::Query;
use proto::wire::view::{Data, ShareNode};
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

pub const SHARES: CommandDef = CommandDef {
    name: "gridwright shares",
    summary: "Shows the share tree: to what part of the cell each node is entitled, what it ought to get now, and what it has had.",
    operand_placeholder: "",
    operands: Operands::None,
    options: &[
        with(
            "-fmt",
            ValueCount::One,
            "text|json|tab",
            "how to print (default: text); tab: the columns of sge_share_mon",
        ),
        flag("-h", "with -fmt tab: print the names of the columns first"),
        crate::cell_address::place::DIR,
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 printed; 1 there is no share tree, or a wrong format; 2 wrong option",
};

/// The columns of `sge_share_mon`, in order (measured on 8.1.9).
const COLUMNS: [&str; 19] = [
    "curr_time",
    "usage_time",
    "node_name",
    "user_name",
    "project_name",
    "shares",
    "job_count",
    "level%",
    "total%",
    "long_target_share",
    "short_target_share",
    "actual_share",
    "usage",
    "cpu",
    "mem",
    "io",
    "ltcpu",
    "ltmem",
    "ltio",
];

/// How the answer is written.
enum ShareFormat {
    Text,
    Json,
    Tab { with_names: bool },
}

/// Runs `gridwright shares`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = SHARES.parse(words)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&SHARES.help());
        return Ok(exit::OK);
    }
    let form = match parsed.value("-fmt") {
        None | Some("text") => ShareFormat::Text,
        Some("json") => ShareFormat::Json,
        Some("tab") => ShareFormat::Tab {
            with_names: parsed.has("-h"),
        },
        Some(other) => {
            return Err(Fail::bad_value(format!("error: unknown format \"{other}\"")).fix("text, json or tab"));
        }
    };
    let format = if matches!(form, ShareFormat::Json) {
        Format::Json
    } else {
        Format::Text
    };
    let mut client = ask::connect_at(&CellAddress::from_command_line(&parsed), "gridwright shares", format)?;
    let nodes = match ask::data(&mut client, Query::Shares)? {
        Some(Data::Shares(nodes)) => nodes,
        other => return ask::unexpected(other.as_ref()),
    };
    output::data(&match form {
        ShareFormat::Text => in_text(&nodes),
        ShareFormat::Json => json::line(&serde_json::json!({ "version": 1, "shares": nodes })),
        ShareFormat::Tab { with_names } => in_columns(&nodes, now_s(), with_names),
    });
    Ok(exit::OK)
}

fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// One line a node, children below their parent and further to the right.
fn in_text(nodes: &[ShareNode]) -> String {
    let mut text = format!(
        "{:<30} {:>8} {:>6} {:>9} {:>9} {:>9} {:>9} {:>14} {:>14}\n",
        "node", "shares", "jobs", "entitled", "long-term", "now", "actual", "usage", "cpu ever"
    );
    let _ = writeln!(text, "{}", "-".repeat(text.trim_end().len()));
    for node in nodes {
        let name = node
            .path
            .rsplit('/')
            .next()
            .filter(|name| !name.is_empty())
            .unwrap_or("/");
        let indent = usize::try_from(node.depth).unwrap_or(0).min(10) * 2;
        let name = format!("{:indent$}{name}", "");
        let [entitled, long, short, actual] = [
            node.total,
            node.long_target_share,
            node.short_target_share,
            node.actual_share,
        ]
        .map(|part| format!("{}%", millionths(part.saturating_mul(100), 2)));
        let _ = writeln!(
            text,
            "{:<30} {:>8} {:>6} {entitled:>9} {long:>9} {short:>9} {actual:>9} {:>14} {:>14}",
            cut(&name, 30),
            node.shares,
            node.job_count,
            fraction(node.usage, 1_000_000, 1),
            fraction(node.ltcpu, 1_000_000, 1),
        );
    }
    text
}

/// As `sge_share_mon` prints it: a tab behind every column, the last one too, and an empty line
/// below the names.
fn in_columns(nodes: &[ShareNode], now_s: u64, with_names: bool) -> String {
    let mut text = String::new();
    if with_names {
        COLUMNS.iter().for_each(|name| text += &format!("{name}\t"));
        text.push_str("\n\n");
    }
    for node in nodes {
        let user = node.user.as_ref().map_or("", |user| user.as_str());
        let project = node.project.as_deref().unwrap_or("");
        let _ = write!(text, "{now_s}\t{}\t{}\t{user}\t{project}\t", node.usage_time, node.path);
        let _ = write!(text, "{}\t{}\t", node.shares, node.job_count);
        let parts = [
            node.level,
            node.total,
            node.long_target_share,
            node.short_target_share,
            node.actual_share,
        ]
        .map(i128::from);
        let used = [
            node.usage, node.cpu, node.mem, node.io, node.ltcpu, node.ltmem, node.ltio,
        ];
        parts
            .iter()
            .chain(&used)
            .for_each(|number| text += &format!("{}\t", fraction(*number, 1_000_000, 6)));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Vec<ShareNode> {
        let root = ShareNode {
            path: "/".to_owned(),
            shares: 1,
            job_count: 3,
            level: 1_000_000,
            total: 1_000_000,
            long_target_share: 1_000_000,
            short_target_share: 1_000_000,
            actual_share: 1_000_000,
            usage: 4_500_000,
            ..ShareNode::default()
        };
        let leaf = ShareNode {
            path: "/grp/u2".to_owned(),
            depth: 2,
            user: Some("u2".into()),
            shares: 2,
            job_count: 1,
            level: 666_667,
            total: 500_000,
            long_target_share: 500_000,
            short_target_share: 612_500,
            actual_share: 250_000,
            usage: 1_125_000,
            cpu: 1_125_000,
            ltcpu: 12_345_678_900_000_000_000,
            usage_time: 1_795_225_258,
            ..ShareNode::default()
        };
        vec![root, leaf]
    }

    #[test]
    fn nodes_are_lines_of_a_table() {
        let expected = "\
node                             shares   jobs  entitled long-term       now    actual          usage       cpu ever
--------------------------------------------------------------------------------------------------------------------
/                                     1      3   100.00%   100.00%   100.00%   100.00%            4.5            0.0
    u2                                2      1    50.00%    50.00%    61.25%    25.00%            1.1 12345678900000.0
";
        assert_eq!(in_text(&tree()), expected);
    }

    #[test]
    fn columns_are_those_of_sge_share_mon() {
        let expected = "curr_time\tusage_time\tnode_name\tuser_name\tproject_name\tshares\tjob_count\tlevel%\ttotal%\tlong_target_share\tshort_target_share\tactual_share\tusage\tcpu\tmem\tio\tltcpu\tltmem\tltio\t\n\n\
7\t0\t/\t\t\t1\t3\t1.000000\t1.000000\t1.000000\t1.000000\t1.000000\t4.500000\t0.000000\t0.000000\t0.000000\t0.000000\t0.000000\t0.000000\t\n\
7\t1795225258\t/grp/u2\tu2\t\t2\t1\t0.666667\t0.500000\t0.500000\t0.612500\t0.250000\t1.125000\t1.125000\t0.000000\t0.000000\t12345678900000.000000\t0.000000\t0.000000\t\n";
        assert_eq!(in_columns(&tree(), 7, true), expected);
        assert!(!in_columns(&tree(), 7, false).contains("level%"));
    }
}
