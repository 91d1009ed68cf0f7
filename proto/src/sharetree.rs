//! The share tree: how the cell is shared among users and projects (`share_tree(5)`).
//!
//! Whether its users and projects exist is deliberately not known here.

#[cfg(test)]
mod tests;

use crate::diagnostic::{Code, Diagnostic};
use crate::object::{Fields, Object, names, value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The attributes of a node in the order of `qconf -sstree`.
const KEYS: [&str; MEANINGS.len()] = names(MEANINGS);

/// What each attribute means, for the manual page.
pub const MEANINGS: &[(&str, &str)] = &[
    ("id", "The number of the node. The root has 0."),
    (
        "name",
        "The name of a user, of a project, or of a group of nodes. `default` stands for every \
         user without a node.",
    ),
    ("type", "`0` for a user or a group of nodes, `1` for a project."),
    (
        "shares",
        "The shares of the node, counted against those of its siblings.",
    ),
    (
        "childnodes",
        "The numbers of the nodes below it, separated by commas, or `NONE`.",
    ),
];

/// The most nodes that a tree may have, and how deep they may be nested.
const NODES_MAX: usize = 100_000;
const DEPTH_MAX: usize = 64;

/// The name of the leaf that stands for every user who has none.
pub const DEFAULT: &str = "default";

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeKind {
    /// `0`: a user if it is a leaf, else a group of nodes.
    User,
    /// `1`: a project.
    Project,
}

/// A node with what is below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The name of a user, of a project, or of nothing else.
    pub name: String,
    /// What it stands for.
    pub kind: NodeKind,
    /// Its shares, counted against those of its siblings.
    pub shares: u32,
    /// The nodes below it, in order.
    pub children: Vec<Node>,
}

impl Node {
    /// A node of a user without nodes below it.
    pub fn leaf(name: &str, shares: u32) -> Node {
        Node {
            name: name.to_owned(),
            kind: NodeKind::User,
            shares,
            children: Vec::new(),
        }
    }

    fn walk<'a>(&'a self, found: &mut Vec<&'a Node>) {
        found.push(self);
        self.children.iter().for_each(|child| child.walk(found));
    }
}

/// The share tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareTree {
    /// The node above all others.
    pub root: Node,
}

/// A node as it is written, with the places of its attributes.
#[derive(Default)]
struct WrittenNode {
    line: u32,
    values: BTreeMap<&'static str, (String, u32)>,
}

fn refusal(line: u32, what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::BadSyntax, what).at(format!("line {line}"))
}

impl ShareTree {
    /// A tree that is its root alone.
    pub fn new() -> ShareTree {
        ShareTree {
            root: Node::leaf("Root", 1),
        }
    }

    /// Every node, each before those below it.
    pub fn nodes(&self) -> Vec<&Node> {
        let mut found = Vec::new();
        self.root.walk(&mut found);
        found
    }

    /// Whether a leaf stands for a user.
    pub fn has_user(&self, name: &str) -> bool {
        let is_meant = |node: &&Node| node.kind == NodeKind::User && node.children.is_empty() && node.name == name;
        self.nodes().iter().skip(1).any(is_meant)
    }

    /// Whether a node stands for a project.
    pub fn has_project(&self, name: &str) -> bool {
        self.nodes()
            .iter()
            .skip(1)
            .any(|node| node.kind == NodeKind::Project && node.name == name)
    }

    /// Reads the text that `qconf -sstree` prints: for each node its `id`, then `name`, `type`,
    /// `shares` and `childnodes`, the ids of the nodes below it or `NONE`. The first node is the
    /// root.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the lines; else what is wrong with the tree: ids that occur
    /// twice or not at all, nodes with several parents or none, names that occur twice below one
    /// node.
    pub fn parse(text: &str) -> Result<ShareTree, Vec<Diagnostic>> {
        let mut refusals = Vec::new();
        let written = blocks(text, &mut refusals);
        let rows: Vec<NodeRow> = written.iter().filter_map(|node| row(node, &mut refusals)).collect();
        if !refusals.is_empty() {
            return Err(refusals);
        }
        assemble(rows).map_err(|refusal| vec![refusal])
    }
}

impl Default for ShareTree {
    fn default() -> Self {
        ShareTree::new()
    }
}

/// The nodes of a text, each from its `id` on.
fn blocks(text: &str, refusals: &mut Vec<Diagnostic>) -> Vec<WrittenNode> {
    let mut nodes: Vec<WrittenNode> = Vec::new();
    for (line, text) in (1..).zip(text.lines().map(str::trim_ascii)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let Some((key, value)) = text.split_once('=') else {
            refusals.push(refusal(line, format!("\"{text}\" is no attribute of a node")).fix("write KEY=VALUE"));
            continue;
        };
        let Some(key) = KEYS.into_iter().find(|known| *known == key.trim_ascii()) else {
            let fix = format!("a node has {}", KEYS.join(", "));
            refusals.push(refusal(line, format!("unknown attribute name \"{}\"", key.trim_ascii())).fix(fix));
            continue;
        };
        if key == "id" || nodes.is_empty() {
            nodes.push(WrittenNode {
                line,
                ..WrittenNode::default()
            });
        }
        let node = nodes.last_mut().expect("one was pushed where there was none");
        if node.values.insert(key, (value.trim_ascii().to_owned(), line)).is_some() {
            refusals.push(refusal(line, format!("attribute \"{key}\" occurs twice in a node")));
        }
    }
    if nodes.is_empty() && refusals.is_empty() {
        refusals.push(Diagnostic::new(Code::BadSyntax, "the text holds no node").fix("begin with id=0"));
    }
    nodes
}

/// A node with its id, its line and the ids below it.
struct NodeRow {
    id: u32,
    line: u32,
    node: Node,
    children: Vec<u32>,
}

fn row(written: &WrittenNode, refusals: &mut Vec<Diagnostic>) -> Option<NodeRow> {
    let missing: Vec<&str> = KEYS
        .into_iter()
        .filter(|key| !written.values.contains_key(key))
        .collect();
    for key in &missing {
        refusals.push(refusal(
            written.line,
            format!("required attribute \"{key}\" is missing"),
        ));
    }
    if !missing.is_empty() {
        return None;
    }
    let before = refusals.len();
    let mut number = |key: &str| {
        let (text, line) = &written.values[key];
        value::count(text)
            .map_err(|bad| refusals.push(bad.refusal(key, text).at(format!("line {line}"))))
            .unwrap_or(0)
    };
    let (id, shares, kind) = (number("id"), number("shares"), number("type"));
    let kind = match kind {
        0 => NodeKind::User,
        1 => NodeKind::Project,
        other => {
            let (_, line) = &written.values["type"];
            refusals.push(refusal(*line, format!("unknown type \"{other}\"")).fix("0 is a user, 1 is a project"));
            NodeKind::User
        }
    };
    let (name, line) = &written.values["name"];
    if let Err(bad) = value::check_name(name) {
        refusals.push(bad.refusal("name", name).at(format!("line {line}")));
    }
    let (text, line) = &written.values["childnodes"];
    let ids = value::elements(text)
        .into_iter()
        .map(value::count)
        .collect::<Result<Vec<u32>, _>>();
    let children = ids.unwrap_or_else(|bad| {
        refusals.push(bad.refusal("childnodes", text).at(format!("line {line}")));
        Vec::new()
    });
    let node = Node {
        name: name.clone(),
        kind,
        shares,
        children: Vec::new(),
    };
    (refusals.len() == before).then_some(NodeRow {
        id,
        line: written.line,
        node,
        children,
    })
}

/// Makes a tree of its nodes.
fn assemble(rows: Vec<NodeRow>) -> Result<ShareTree, Diagnostic> {
    if rows.len() > NODES_MAX {
        let what = format!("a share tree has {NODES_MAX} nodes at most");
        return Err(Diagnostic::new(Code::BadValue, what));
    }
    let root = rows.first().map_or(0, |row| row.id);
    let mut known: BTreeMap<u32, NodeRow> = BTreeMap::new();
    for row in rows {
        let (id, line) = (row.id, row.line);
        if known.insert(id, row).is_some() {
            return Err(refusal(line, format!("found specification of node {id} twice")));
        }
    }
    let root = take(&mut known, root, 0)?;
    if let Some(lost) = known.values().next() {
        let what = format!("node {} \"{}\" is below no other node", lost.id, lost.node.name);
        return Err(refusal(lost.line, what).fix("name its id in the childnodes of another node, or remove it"));
    }
    Ok(ShareTree { root })
}

/// Takes a node and all below it out of those that are known.
fn take(known: &mut BTreeMap<u32, NodeRow>, id: u32, depth: usize) -> Result<Node, Diagnostic> {
    let Some(NodeRow {
        line,
        mut node,
        children,
        ..
    }) = known.remove(&id)
    else {
        let what = format!("found reference to node {id} but no specification");
        return Err(Diagnostic::new(Code::BadSyntax, what).why("the node is not in the text, or is below another node"));
    };
    if depth > DEPTH_MAX {
        return Err(refusal(line, format!("nodes are nested deeper than {DEPTH_MAX}")));
    }
    for child in children {
        let child = take(known, child, depth + 1)?;
        if node.children.iter().any(|sibling| sibling.name == child.name) {
            let what = format!(
                "denied: found node \"{}\" twice under node \"{}\"",
                child.name, node.name
            );
            return Err(refusal(line, what));
        }
        node.children.push(child);
    }
    Ok(node)
}

/// The numbers of nodes, each before those below it, and of the nodes right below each.
fn numbered<'a>(node: &'a Node, next: &mut u32, rows: &mut Vec<(u32, &'a Node, Vec<u32>)>) -> u32 {
    let id = *next;
    *next += 1;
    let at = rows.len();
    rows.push((id, node, Vec::new()));
    let below = node.children.iter().map(|child| numbered(child, next, rows)).collect();
    rows[at].2 = below;
    id
}

fn rows(tree: &ShareTree) -> Vec<(u32, &Node, String)> {
    let mut rows = Vec::new();
    numbered(&tree.root, &mut 0, &mut rows);
    let list = |ids: Vec<u32>| {
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        if ids.is_empty() {
            "NONE".to_owned()
        } else {
            ids.join(",")
        }
    };
    rows.into_iter()
        .map(|(id, node, below)| (id, node, list(below)))
        .collect()
}

impl fmt::Display for ShareTree {
    /// The text of `qconf -sstree`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, node, below) in rows(self) {
            let kind = u8::from(node.kind == NodeKind::Project);
            let Node { name, shares, .. } = node;
            write!(
                f,
                "id={id}\nname={name}\ntype={kind}\nshares={shares}\nchildnodes={below}\n"
            )?;
        }
        Ok(())
    }
}

/// It travels and is stored as one field for each node: the key is its id, the value its name,
/// type, shares and the ids below it, separated by single blanks.
impl Object for ShareTree {
    fn template(name: &str) -> Self {
        ShareTree {
            root: Node::leaf(if name.is_empty() { "template" } else { name }, 0),
        }
    }

    fn read(_: &str, fields: &Fields) -> Result<Self, Vec<Diagnostic>> {
        let text: String = fields
            .iter()
            .map(|field| {
                let mut parts = field.value.split(' ');
                let mut part = || parts.next().unwrap_or_default();
                let (name, kind, shares, below) = (part(), part(), part(), part());
                format!(
                    "id={}\nname={name}\ntype={kind}\nshares={shares}\nchildnodes={below}\n",
                    field.key
                )
            })
            .collect();
        ShareTree::parse(&text)
    }

    fn write(&self) -> Fields {
        let value = |(id, node, below): (u32, &Node, String)| {
            let kind = u8::from(node.kind == NodeKind::Project);
            (id.to_string(), format!("{} {kind} {} {below}", node.name, node.shares))
        };
        rows(self).into_iter().map(value).collect()
    }
}
