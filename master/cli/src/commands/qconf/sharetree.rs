//! `-sst`, `-astnode` and their relatives: the share tree as a whole and node by node.

use super::session::{Session, unexpected};
use super::{change, elements};
use crate::commands::Outcome;
use crate::fail::Fail;
use crate::{exit, output};
use proto::object::{Object, ObjectKind};
use proto::sharetree::{Node, ShareTree};
use proto::wire::client::ObjectAction;

/// What is done with the tree or its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeAction {
    /// `-astree`, `-mstree`: opens it in the editor.
    Edit,
    /// `-dstree`
    Delete,
    /// `-sst`
    Formatted,
    /// `-sstnode`, `-rsstnode`
    Show,
    /// `-astnode`
    AddNodes,
    /// `-mstnode`
    ModifyNodes,
    /// `-dstnode`
    DeleteNodes,
}

/// Does it.
pub fn perform(session: &mut Session, action: TreeAction, values: &[String]) -> Outcome {
    match action {
        TreeAction::Edit => edit(session),
        TreeAction::Delete => session.change(ObjectKind::ShareTree, "", ObjectAction::Delete),
        TreeAction::Formatted => {
            let Some(tree) = fetch(session)? else {
                return Ok(nothing());
            };
            output::data(&indented(&tree.root, 0));
            Ok(exit::OK)
        }
        TreeAction::Show => show(session, values),
        TreeAction::AddNodes | TreeAction::ModifyNodes | TreeAction::DeleteNodes => alter(session, action, values),
    }
}

/// The tree; none if there is none.
fn fetch(session: &mut Session) -> Result<Option<ShareTree>, Fail> {
    if session.names(ObjectKind::ShareTree)?.is_empty() {
        return Ok(None);
    }
    let fields = session.object(ObjectKind::ShareTree, "")?;
    ShareTree::read("", &fields).map(Some).map_err(|_| unexpected())
}

/// 8.1.9 shows a share tree that is not there without failing.
fn nothing() -> u8 {
    output::note("No sharetree");
    exit::OK
}

fn edit(session: &mut Session) -> Outcome {
    let before = match fetch(session)? {
        Some(tree) => tree,
        None => ShareTree::template(""),
    };
    change::edited(session, ObjectKind::ShareTree, "", before.write(), change::Target::New)
}

/// Each level three blanks further in.
fn indented(node: &Node, depth: usize) -> String {
    let below: String = node.children.iter().map(|child| indented(child, depth + 1)).collect();
    format!("{}{}={}\n{below}", "   ".repeat(depth), node.name, node.shares)
}

/// Each node with the whole way to it.
fn with_paths(node: &Node, path: &str) -> String {
    let shown = if path.is_empty() { "/" } else { path };
    let below: String = node
        .children
        .iter()
        .map(|child| with_paths(child, &format!("{path}/{}", child.name)))
        .collect();
    format!("{shown}={}\n{below}", node.shares)
}

fn show(session: &mut Session, values: &[String]) -> Outcome {
    let Some(tree) = fetch(session)? else {
        return Ok(nothing());
    };
    let mut code = exit::OK;
    for path in elements(values) {
        match locate(&tree.root, path) {
            Some(way) => {
                let (node, path) = at(&tree.root, &way);
                output::data(&with_paths(node, &path));
            }
            None => code = not_found(path),
        }
    }
    Ok(code)
}

fn not_found(path: &str) -> u8 {
    output::note(&format!("Unable to locate {path} in sharetree"));
    exit::FAILED
}

/// The way to a node: at each level which of the children it goes through.
type NodePath = Vec<usize>;

/// The way to the node of a path: from the root if it begins with a slash, else from wherever its
/// first name is.
fn locate(root: &Node, path: &str) -> Option<NodePath> {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    if path.starts_with('/') {
        return follow(root, &names);
    }
    let (first, rest) = names.split_first()?;
    let mut waiting: Vec<NodePath> = vec![Vec::new()];
    while let Some(way) = waiting.pop() {
        let (node, _) = at(root, &way);
        if let Some(below) = (node.name == *first).then(|| follow(node, rest)).flatten() {
            return Some([way, below].concat());
        }
        // The last that is pushed is looked at first.
        waiting.extend(
            (0..node.children.len())
                .rev()
                .map(|child| [way.as_slice(), &[child]].concat()),
        );
    }
    None
}

fn follow(node: &Node, names: &[&str]) -> Option<NodePath> {
    let Some((first, rest)) = names.split_first() else {
        return Some(Vec::new());
    };
    let child = node.children.iter().position(|child| child.name == *first)?;
    Some([vec![child], follow(&node.children[child], rest)?].concat())
}

/// The node at the end of a way, and its path, which is empty for the root.
fn at<'a>(root: &'a Node, way: &[usize]) -> (&'a Node, String) {
    way.iter().fold((root, String::new()), |(node, path), child| {
        let node = &node.children[*child];
        (node, format!("{path}/{}", node.name))
    })
}

fn at_mut<'a>(root: &'a mut Node, way: &[usize]) -> &'a mut Node {
    way.iter().fold(root, |node, child| &mut node.children[*child])
}

/// Changes nodes on a copy of the tree, which is sent if anything changed.
fn alter(session: &mut Session, action: TreeAction, values: &[String]) -> Outcome {
    let mut tree = fetch(session)?.unwrap_or_default();
    let (mut code, mut changed) = (exit::OK, false);
    for element in elements(values) {
        let outcome = if action == TreeAction::DeleteNodes {
            remove(&mut tree.root, element)
        } else {
            set(&mut tree.root, element, action == TreeAction::AddNodes)
        };
        match outcome {
            Ok(said) => {
                output::note(&said);
                changed = true;
            }
            Err(error) => {
                output::note(&error.to_string());
                code = exit::FAILED;
            }
        }
    }
    if !changed {
        output::note("no modifications to sharetree");
        return Ok(exit::FAILED);
    }
    let sent = session.change(ObjectKind::ShareTree, "", ObjectAction::Replace(tree.write()))?;
    Ok(if sent == exit::OK { code } else { sent })
}

/// A node of the share tree is not changed, in the words of 8.1.9.
#[derive(Debug, thiserror::Error)]
enum NodeError {
    #[error("{0} is not a valid argument, see node_shares_list format")]
    Malformed(String),
    #[error("Unable to locate {0} in sharetree")]
    Missing(String),
    #[error("can't delete nodes with children\n  where: {0}\n  fix: delete them first")]
    HasChildren(String),
}

/// Sets the shares of a node by `PATH=SHARES`. Returns what was done.
fn set(root: &mut Node, element: &str, may_add: bool) -> Result<String, NodeError> {
    let bad = || NodeError::Malformed(element.to_owned());
    let (path, shares) = element.split_once('=').ok_or_else(bad)?;
    let shares: u32 = shares.parse().map_err(|_| bad())?;
    let done = format!("setting \n{path}={shares}");
    if let Some(way) = locate(root, path) {
        at_mut(root, &way).shares = shares;
        return Ok(done);
    }
    let missing = |path: &str| NodeError::Missing(path.to_owned());
    if !may_add {
        return Err(missing(path));
    }
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    let parent = if parent.is_empty() { "/" } else { parent };
    let way = locate(root, parent).ok_or_else(|| missing(parent))?;
    at_mut(root, &way).children.push(Node::leaf(name, shares));
    Ok(done)
}

fn remove(root: &mut Node, path: &str) -> Result<String, NodeError> {
    let way = locate(root, path).filter(|way| !way.is_empty());
    let Some((last, above)) = way.as_ref().and_then(|way| way.split_last()) else {
        return Err(NodeError::Missing(path.to_owned()));
    };
    let parent = at_mut(root, above);
    if !parent.children[*last].children.is_empty() {
        return Err(NodeError::HasChildren(path.to_owned()));
    }
    parent.children.remove(*last);
    Ok(format!("removing \n{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Node {
        let group = Node {
            children: vec![Node::leaf("u3", 10), Node::leaf("default", 7)],
            ..Node::leaf("grp", 30)
        };
        let project = Node {
            children: vec![group],
            ..Node::leaf("p1", 50)
        };
        Node {
            children: vec![project, Node::leaf("u1", 1)],
            ..Node::leaf("Root", 1)
        }
    }

    #[test]
    fn trees_are_shown_as_8_1_9_shows_them() {
        let formatted = "Root=1\n   p1=50\n      grp=30\n         u3=10\n         default=7\n   u1=1\n";
        assert_eq!(indented(&tree(), 0), formatted);
        let paths = "/=1\n/p1=50\n/p1/grp=30\n/p1/grp/u3=10\n/p1/grp/default=7\n/u1=1\n";
        assert_eq!(with_paths(&tree(), ""), paths);
    }

    #[test]
    fn nodes_are_found_by_path_and_without_a_slash_anywhere() {
        let root = tree();
        let found = |path: &str| locate(&root, path).map(|way| at(&root, &way).1);
        assert_eq!(found("/p1/grp").as_deref(), Some("/p1/grp"));
        assert_eq!(found("grp/u3").as_deref(), Some("/p1/grp/u3"));
        assert_eq!(found("/").as_deref(), Some(""));
        assert_eq!((found("/grp"), found("nosuch")), (None, None));
    }

    #[test]
    fn nodes_are_added_changed_and_deleted() {
        let mut root = tree();
        assert_eq!(set(&mut root, "/u1=5", false).unwrap(), "setting \n/u1=5");
        assert_eq!(
            set(&mut root, "/new=4", false).unwrap_err().to_string(),
            "Unable to locate /new in sharetree"
        );
        assert_eq!(set(&mut root, "/new=4", true).unwrap(), "setting \n/new=4");
        assert_eq!(
            set(&mut root, "/no/u=4", true).unwrap_err().to_string(),
            "Unable to locate /no in sharetree"
        );
        let bad = "/x is not a valid argument, see node_shares_list format";
        assert_eq!(set(&mut root, "/x", true).unwrap_err().to_string(), bad);
        assert!(remove(&mut root, "/p1").is_err() && remove(&mut root, "/").is_err());
        assert!(remove(&mut root, "/p1/grp/u3").is_ok() && remove(&mut root, "/new").is_ok());
        assert_eq!(
            indented(&root, 0),
            "Root=1\n   p1=50\n      grp=30\n         default=7\n   u1=5\n"
        );
    }
}
