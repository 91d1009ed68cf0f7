//! The floors of `master/core`: a module imports only from its own floor and from those below.

use super::{assert_none, is_test, root, shown, sources};
use std::collections::BTreeSet;
use std::path::Path;
use syn::visit::{self, Visit};

/// From the top down. A module belongs to the longest entry that its path begins with, so
/// `sched::model::plans` is on the floor of `sched::model`. Modules of one floor may name each
/// other. ARCHITECTURE.md "Floors of the core" says what each is for.
const FLOORS: [&str; 29] = [
    "core",
    "decide",
    "explain",
    "stream",
    "sched",
    "sched::algorithm",
    "sched::fcfs",
    "sched::pass",
    "sched::verification",
    "sched::report",
    "sched::model",
    "sched::order",
    "sched::reserve",
    "sched::filter",
    "sched::order::urgency",
    "sched::assign",
    "sched::rank",
    "sched::duration",
    "policy",
    "matching",
    "reason",
    "state",
    "ledger",
    "effect",
    "observe",
    "config",
    "event",
    "names",
    "collections",
];

const SOURCES: &str = "master/core/src";

/// The path of a module, as `["sched", "model"]`; empty for the crate.
fn module(path: &Path) -> Vec<String> {
    let inside = path.strip_prefix(root().join(SOURCES)).unwrap().with_extension("");
    let names: Vec<String> = inside.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    if names == ["lib"] { Vec::new() } else { names }
}

/// The floor of a module or item: 0 is the top. `None` for what no floor names, as the crate.
fn floor(path: &[String]) -> Option<usize> {
    (1..=path.len())
        .rev()
        .find_map(|n| FLOORS.iter().position(|floor| *floor == path[..n].join("::")))
}

/// The paths in the tokens of a macro that begin with `crate`, `self` or `super`.
pub(super) fn paths_in_tokens(tokens: &str) -> Vec<Vec<String>> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut paths: Vec<Vec<String>> = Vec::new();
    let mut continues = false;
    for token in tokens
        .replace("::", " :: ")
        .split(|character| !is_word(character) && character != ':')
    {
        match token {
            "" => {}
            "::" => continues = true,
            word if continues => {
                continues = false;
                paths.last_mut().into_iter().for_each(|path| path.push(word.to_owned()));
            }
            word => paths.push(vec![word.to_owned()]),
        }
    }
    paths.retain(|path| ["crate", "self", "super"].contains(&&*path[0]));
    paths
}

/// Collects the paths of the crate that a file names outside of tests.
struct Paths {
    module: Vec<String>,
    found: BTreeSet<Vec<String>>,
}

impl Paths {
    /// Takes a path that begins with `crate`, `self` or `super`; others lead to the module itself,
    /// below it, or out of the crate.
    fn take(&mut self, path: &[String]) {
        let mut from = match path.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => self.module.clone(),
            _ => return,
        };
        let mut rest = path;
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" | "self" => {}
                "super" => _ = from.pop(),
                _ => break,
            }
            rest = others;
        }
        from.extend_from_slice(rest);
        self.found.insert(from);
    }

    fn take_tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.take_tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) if name.ident == "self" => self.take(before),
            syn::UseTree::Name(name) => self.take(&with(&name.ident)),
            syn::UseTree::Rename(rename) => self.take(&with(&rename.ident)),
            syn::UseTree::Glob(_) => self.take(before),
            syn::UseTree::Group(group) => {
                for item in &group.items {
                    self.take_tree(before, item);
                }
            }
        }
    }
}

fn is_of_tests(attributes: &[syn::Attribute]) -> bool {
    let is_test = |attribute: &syn::Attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|condition| condition == "test")
    };
    attributes.iter().any(is_test)
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if is_of_tests(&item.attrs) {
            return;
        }
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_of_tests(&item.attrs) {
            self.take_tree(&[], &item.tree);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_of_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    /// A macro's tokens have no syntax tree.
    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        for path in paths_in_tokens(&item.tokens.to_string()) {
            self.take(&path);
        }
        visit::visit_macro(self, item);
    }

    /// Visibility names a module, and imports nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.take(&names);
        visit::visit_path(self, path);
    }
}

/// The paths to higher floors that a source names.
fn climbs(module: &[String], source: &str) -> Vec<String> {
    let mut paths = Paths {
        module: module.to_vec(),
        found: BTreeSet::new(),
    };
    paths.visit_file(&syn::parse_file(source).unwrap());
    let Some(own) = floor(module) else {
        return Vec::new();
    };
    let is_above = |path: &Vec<String>| floor(path).is_some_and(|floor| floor < own);
    paths
        .found
        .iter()
        .filter(|path| is_above(path))
        .map(|path| path.join("::"))
        .collect()
}

#[test]
fn modules_of_the_core_import_from_their_floor_and_below() {
    let mut offences = Vec::new();
    for path in sources() {
        if !shown(&path).starts_with(SOURCES) || is_test(&path) {
            continue;
        }
        let module = module(&path);
        if floor(&module).is_none() && !module.is_empty() && module[0] != "testing" {
            offences.push(format!("{} is on no floor", shown(&path)));
        }
        for above in climbs(&module, &std::fs::read_to_string(&path).unwrap()) {
            offences.push(format!("{} names {above}, which is above it", shown(&path)));
        }
    }
    assert_none("floors of master/core", &offences);
}

#[test]
fn a_path_to_a_higher_floor_is_found_however_it_is_written() {
    let found = |module: &str, source: &str| {
        let module: Vec<String> = module.split("::").map(str::to_owned).collect();
        climbs(&module, source).join(" ")
    };
    assert_eq!(found("ledger", "use crate::state::State;"), "state::State");
    assert_eq!(
        found("ledger", "use crate::{config, state::{self, State}};"),
        "state state::State"
    );
    assert_eq!(found("sched::rank", "use super::model::Model;"), "sched::model::Model");
    assert_eq!(found("ledger", "fn f() { crate::decide::input() }"), "decide::input");
    assert_eq!(found("state", "use crate::ledger::Ledger; use self::job::Job;"), "");
    assert_eq!(
        found("ledger", "#[cfg(test)] mod tests { use crate::sched::Scheduler; }"),
        ""
    );
    assert_eq!(
        found(
            "ledger",
            "fn f() { assert!(matches!(y, crate::sched::Z | super::decide::W { .. })) }"
        ),
        "decide::W sched::Z"
    );
    assert_eq!(found("sched::order::urgency", "use crate::sched::assign::Supply;"), "");
    assert_eq!(
        found("sched::filter", "use crate::sched::order::queue::Queue;"),
        "sched::order::queue::Queue"
    );
}
