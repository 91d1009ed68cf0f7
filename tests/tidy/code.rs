//! House rules about code that need its syntax tree: which modules import which, and what the error
//! of a result may be.

use super::{assert_none, files, flatten, is_test, root, shown, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use syn::visit::{self, Visit};

/// The parts in which modules at the top form no circle.
const WITHOUT_CIRCLES: [&str; 2] = ["agent/src", "master/src"];

/// Collects the modules at the top of a crate that a file imports outside of its tests.
struct ImportedModules(BTreeSet<String>);

impl ImportedModules {
    fn note(&mut self, segments: &[String]) {
        if let [first, module, ..] = segments
            && first == "crate"
        {
            self.0.insert(module.clone());
        }
    }
}

impl<'ast> Visit<'ast> for ImportedModules {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.note(&segments);
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if let syn::UseTree::Path(first) = &item.tree
            && let syn::UseTree::Group(group) = &*first.tree
        {
            let first = first.ident.to_string();
            for tree in &group.items {
                self.note(&[vec![first.clone()], flatten(tree)].concat());
            }
        }
        self.note(&flatten(&item.tree));
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }
}

/// The modules at the top of a part, each with those that it imports.
fn imports_of_modules(part: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut imports = BTreeMap::<String, BTreeSet<String>>::new();
    let is_code = |path: &PathBuf| !is_test(path) && !path.ends_with("golden.rs");
    for path in files(&["rs"], vec![root().join(part)]).into_iter().filter(is_code) {
        let inner = shown(&path)[part.len() + 1..].to_owned();
        let module = inner.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        let mut imported = ImportedModules(BTreeSet::new());
        imported.visit_file(&syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap());
        imported.0.remove(&module);
        imports.entry(module).or_default().extend(imported.0);
    }
    imports.remove("main");
    imports
}

#[test]
fn modules_of_the_shells_form_no_circle() {
    let mut offences = Vec::new();
    for part in WITHOUT_CIRCLES {
        let mut left = imports_of_modules(part);
        // A module that imports none of the others is taken away. What is left at the end is a
        // circle, or above one.
        let is_floor = |left: &BTreeMap<String, BTreeSet<String>>, name: &String| {
            left[name].iter().all(|import| !left.contains_key(import))
        };
        while let Some(floor) = left.keys().find(|name| is_floor(&left, name)).cloned() {
            left.remove(&floor);
        }
        offences.extend(left.into_iter().map(|(name, imports)| {
            let imports: Vec<String> = imports.into_iter().collect();
            format!("{part}: {name} imports {}", imports.join(", "))
        }));
    }
    assert_none("modules that import each other, and those above them", &offences);
}

/// Collects results whose error is a text, outside of tests.
struct TextErrors(Vec<usize>);

/// The type of an error that is a `String`.
fn is_text(argument: &syn::GenericArgument) -> bool {
    matches!(argument, syn::GenericArgument::Type(syn::Type::Path(path)) if path.path.is_ident("String"))
}

impl<'ast> Visit<'ast> for TextErrors {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        if let syn::PathArguments::AngleBracketed(list) = &segment.arguments
            && segment.ident == "Result"
            && list.args.iter().nth(1).is_some_and(is_text)
        {
            self.0.push(segment.ident.span().start().line);
        }
        visit::visit_path_segment(self, segment);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }
}

#[test]
fn no_error_is_a_text() {
    let mut offences = Vec::new();
    for path in sources().into_iter().filter(|path| !is_test(path)) {
        let mut found = TextErrors(Vec::new());
        found.visit_file(&syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap());
        offences.extend(found.0.iter().map(|line| format!("{}:{line}", shown(&path))));
    }
    assert_none("a result whose error is a String: give it a type", &offences);
}
