//! The share tree by number: the place of a job, and the nodes above it.

use proto::sharetree::{DEFAULT, Node as Written, NodeKind, ShareTree};
use std::collections::BTreeMap;

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Whether it stands for a project.
    pub is_project: bool,
    /// Its shares among its siblings.
    pub shares: f64,
    /// The node above. `None` for the root.
    pub parent: Option<usize>,
    /// The nodes below, in order.
    pub children: Vec<usize>,
}

/// The place of jobs in the tree: a leaf, and for a `default` leaf the user whose copy it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leaf {
    /// The leaf.
    pub node: usize,
    /// The user, if the leaf stands for all users without a leaf of their own.
    pub user: Option<String>,
}

/// A share tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// All nodes, each after the one above it; the root first.
    pub nodes: Vec<Node>,
    /// The project that a node belongs to, itself among them.
    projects: BTreeMap<String, usize>,
    /// Leaves of users by the project node above them, if there is one, and their name.
    users: BTreeMap<(Option<usize>, String), usize>,
}

impl Tree {
    /// The configured tree.
    pub fn from_share_tree(tree: &ShareTree) -> Tree {
        let mut made = Tree {
            nodes: Vec::new(),
            projects: BTreeMap::new(),
            users: BTreeMap::new(),
        };
        made.add(&tree.root, None, None);
        made
    }

    fn add(&mut self, written: &Written, parent: Option<usize>, above: Option<usize>) -> usize {
        let place = self.nodes.len();
        let is_project = parent.is_some() && written.kind == NodeKind::Project;
        let (name, shares) = (written.name.clone(), f64::from(written.shares));
        self.nodes.push(Node {
            name: name.clone(),
            is_project,
            shares,
            parent,
            children: Vec::new(),
        });
        let project = if is_project { Some(place) } else { above };
        if is_project {
            self.projects.entry(name).or_insert(place);
        } else if parent.is_some() && written.children.is_empty() {
            self.users.entry((project, name)).or_insert(place);
        }
        for child in &written.children {
            let child = self.add(child, Some(place), project);
            self.nodes[place].children.push(child);
        }
        place
    }

    /// The place of a user's jobs in a project. `None` if nothing in the tree stands for them, or
    /// the project is not in the tree.
    pub fn leaf(&self, user: &str, project: Option<&str>) -> Option<Leaf> {
        let project = match project {
            Some(project) => Some(self.projects.get(project).copied()?),
            None => None,
        };
        if let Some(node) = project.filter(|node| self.nodes[*node].children.is_empty()) {
            return Some(Leaf { node, user: None });
        }
        let named = |name: &str| self.users.get(&(project, name.to_owned())).copied();
        if let Some(node) = named(user).filter(|_| user != DEFAULT) {
            return Some(Leaf { node, user: None });
        }
        named(DEFAULT).map(|node| Leaf {
            node,
            user: Some(user.to_owned()),
        })
    }

    /// The project that a node stands for, or is below.
    pub fn project_of(&self, node: usize) -> Option<&str> {
        let node = &self.nodes[node];
        if node.is_project {
            Some(&node.name)
        } else {
            self.project_of(node.parent?)
        }
    }

    /// The names from the root down, `/grp/u2`; `/` is the root.
    pub fn path(&self, node: usize) -> String {
        let Some(parent) = self.nodes[node].parent else {
            return "/".to_owned();
        };
        let above = self.path(parent);
        let name = &self.nodes[node].name;
        if above == "/" {
            format!("/{name}")
        } else {
            format!("{above}/{name}")
        }
    }
}
