//! Changes of the share tree: the whole tree at once.

use super::change::Refusals;
use super::draft::Draft;
use crate::config::Configuration;
use proto::diagnostic::{Code, Diagnostic};
use proto::object::{Fields, Object, ObjectKind};
use proto::sharetree::{DEFAULT, Node, NodeKind, ShareTree};
use proto::wire::client::ObjectAction;
use std::collections::BTreeSet;

/// Sets the share tree, or deletes it. What is added and what replaces differ in their words alone.
pub(super) fn change(draft: &mut Draft<'_>, action: &ObjectAction) -> Result<(), Refusals> {
    match action {
        ObjectAction::Add(fields) => set(draft, fields, "changed sharetree"),
        ObjectAction::Replace(fields) => set(draft, fields, "modified sharetree"),
        ObjectAction::Delete => delete(draft),
        ObjectAction::Attribute { .. }
        | ObjectAction::Purge { .. }
        | ObjectAction::Enlist { .. }
        | ObjectAction::Strike { .. }
        | ObjectAction::Clean => {
            let what = "denied: the share tree is changed as a whole";
            Err(vec![
                Diagnostic::new(Code::BadSyntax, what).fix("edit it with qconf -mstree, or write it with -Mstree"),
            ])
        }
    }
}

fn set(draft: &mut Draft<'_>, fields: &Fields, said: &str) -> Result<(), Refusals> {
    let tree = ShareTree::read("", fields)?;
    check(&draft.config, &tree)?;
    draft.store(ObjectKind::ShareTree, "", Some(tree.write()));
    draft.say(said.to_owned());
    Ok(())
}

fn delete(draft: &mut Draft<'_>) -> Result<(), Refusals> {
    if draft.config.share_tree.is_none() {
        let what = "sharetree does not exist";
        return Err(vec![
            Diagnostic::new(Code::UnknownObject, what).fix("qconf -astree makes one"),
        ]);
    }
    draft.store(ObjectKind::ShareTree, "", None);
    draft.say(format!("{} removed sharetree list", draft.caller.at_host()));
    Ok(())
}

/// Users and projects that do not exist, or that are in the tree where they cannot be.
fn check(config: &Configuration, tree: &ShareTree) -> Result<(), Refusals> {
    let mut projects = BTreeSet::new();
    let mut users = BTreeSet::new();
    for node in &tree.root.children {
        check_node(config, node, None, &mut projects, &mut users)?;
    }
    Ok(())
}

/// One node and those below it. A user may be once outside of projects and once in each; `project`
/// is the one around the node.
fn check_node<'a>(
    config: &Configuration,
    node: &'a Node,
    project: Option<&'a str>,
    projects: &mut BTreeSet<&'a str>,
    users: &mut BTreeSet<(Option<&'a str>, &'a str)>,
) -> Result<(), Refusals> {
    let name = node.name.as_str();
    let refuse = |code, what: String, fix: &str| Err(vec![Diagnostic::new(code, what).fix(fix)]);
    let unknown = || {
        let what = format!("denied: share tree contains reference to unknown user/project \"{name}\"");
        refuse(Code::UnknownObject, what, "add it first: qconf -auser, qconf -aprj")
    };
    let mut around = project;
    match (node.kind, node.children.is_empty()) {
        (NodeKind::Project, _) if !config.projects.contains_key(name) => return unknown(),
        (NodeKind::Project, _) if project.is_some() => {
            let what = format!(
                "found sub-project \"{name}\" in project \"{}\"",
                project.unwrap_or_default()
            );
            return refuse(Code::BadValue, what, "move it beside the other project");
        }
        (NodeKind::Project, _) if !projects.insert(name) => {
            return refuse(
                Code::BadValue,
                format!("found project \"{name}\" twice in share tree"),
                "remove one of them",
            );
        }
        (NodeKind::Project, _) => around = Some(name),
        (NodeKind::User, true) if name != DEFAULT && !config.users.contains_key(name) => return unknown(),
        (NodeKind::User, true) if !users.insert((project, name)) => {
            return refuse(
                Code::BadValue,
                format!("found user \"{name}\" twice in share tree"),
                "remove one of them",
            );
        }
        (NodeKind::User, _) => {}
    }
    node.children
        .iter()
        .try_for_each(|child| check_node(config, child, around, projects, users))
}

/// The refusal to delete what a share tree names.
pub(super) fn is_named(kind: ObjectKind, name: &str) -> Diagnostic {
    let what = format!("denied: may not remove {kind} \"{name}\" still referenced in share tree");
    Diagnostic::new(Code::StillReferenced, what).fix("qconf -dstnode removes a node, qconf -sst shows the tree")
}
