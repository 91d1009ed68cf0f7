//! House rules about code that need its syntax tree: which modules import which, and what the error
//! of a result may be.

use super::floors::paths_in_tokens;
use super::{assert_none, files, flatten, is_test, root, shown, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use syn::visit::{self, Visit};

/// The parts in which modules at the top form no circle.
const WITHOUT_CIRCLES: [&str; 2] = ["agent/src", "master/src"];

/// Collects the modules at the top of a crate that a file imports outside of its tests.
struct ImportedModules {
    /// How many modules lead from the crate to this one.
    depth: usize,
    found: BTreeSet<String>,
}

impl ImportedModules {
    fn note(&mut self, segments: &[String]) {
        let mut rest = segments;
        if segments.first().is_some_and(|first| first == "crate") {
            rest = &segments[1..];
        } else {
            let ups = segments.iter().take_while(|segment| *segment == "super").count();
            if ups == 0 || ups < self.depth {
                return;
            }
            rest = &rest[ups..];
        }
        self.found.extend(rest.first().cloned());
    }
}

impl<'ast> Visit<'ast> for ImportedModules {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.note(&segments);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        for path in paths_in_tokens(&item.tokens.to_string()) {
            self.note(&path);
        }
        visit::visit_macro(self, item);
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
        let mut imported = ImportedModules {
            depth: inner.split('/').count(),
            found: BTreeSet::new(),
        };
        imported.visit_file(&syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap());
        imported.found.remove(&module);
        imports.entry(module).or_default().extend(imported.found);
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

/// Whether a type is a text: `String`, `str`, or a reference, box or other owner of one.
fn is_text(of: &syn::Type) -> bool {
    match of {
        syn::Type::Reference(reference) => is_text(&reference.elem),
        syn::Type::Path(path) => path.path.segments.last().is_some_and(|segment| {
            let name = segment.ident.to_string();
            ["String", "str"].contains(&&*name)
                || ["Box", "Rc", "Arc", "Cow"].contains(&&*name) && type_arguments(segment).any(is_text)
        }),
        _ => false,
    }
}

/// The types between the angle brackets of a path.
fn type_arguments(segment: &syn::PathSegment) -> impl Iterator<Item = &syn::Type> {
    let list = match &segment.arguments {
        syn::PathArguments::AngleBracketed(list) => Some(list),
        _ => None,
    };
    let arguments = list.into_iter().flat_map(|list| &list.args);
    arguments.filter_map(|argument| match argument {
        syn::GenericArgument::Type(of) => Some(of),
        _ => None,
    })
}

impl<'ast> Visit<'ast> for TextErrors {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        if segment.ident == "Result" && type_arguments(segment).nth(1).is_some_and(is_text) {
            self.0.push(segment.ident.span().start().line);
        }
        visit::visit_path_segment(self, segment);
    }

    fn visit_impl_item_type(&mut self, item: &'ast syn::ImplItemType) {
        if ["Err", "Error"].iter().any(|name| item.ident == name) && is_text(&item.ty) {
            self.0.push(item.ident.span().start().line);
        }
        visit::visit_impl_item_type(self, item);
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
    assert_none("a result whose error is a text: give it a type", &offences);
}

#[test]
fn an_error_that_is_a_text_is_found_however_it_is_written() {
    let is_found = |source: &str| {
        let mut found = TextErrors(Vec::new());
        found.visit_file(&syn::parse_file(source).unwrap());
        !found.0.is_empty()
    };
    for error in [
        "String",
        "&'static str",
        "Box<str>",
        "Cow<'static, str>",
        "std::sync::Arc<str>",
    ] {
        assert!(is_found(&format!("fn f() -> Result<(), {error}> {{}}")), "{error}");
        assert!(
            is_found(&format!("impl FromStr for A {{ type Err = {error}; }}")),
            "{error}"
        );
    }
    for source in [
        "fn f() -> Result<String, ReadError> {}",
        "fn f() -> Result<(), Box<dyn Error>> {}",
        "impl Iterator for A { type Item = String; }",
    ] {
        assert!(!is_found(source), "{source}");
    }
}
