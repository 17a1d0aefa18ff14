//! The methods of a type are in few files.
//!
//! For each target of a product, this test counts the files with inherent `impl` blocks of a type. Trait blocks and code under
//! `#[cfg(test)]` do not count. A type that needs more files should be several types, or has functions that need no access to its fields.

use std::collections::{BTreeMap, BTreeSet};

use syn::Item;

use super::{
    names::Names,
    targets,
    tree::{Tree, is_test},
};

/// The maximum number of files with inherent `impl` blocks of one type.
const FILES_MAX: usize = 3;

#[test]
fn impls_of_a_type_are_in_three_files_at_most() {
    let trees: Vec<_> = targets::all().iter().map(|root| Tree::read(root)).collect();
    let is_product = |tree: &&Tree| {
        let mut folders = tree.files[0].split('/');
        !folders.any(|folder| folder == "tests" || folder == "benches")
    };
    let found = trees.iter().filter(is_product).flat_map(scattered);
    let found: Vec<_> = found.collect();
    assert!(found.is_empty(), "more than {FILES_MAX} files: {found:#?}");
}

#[test]
fn files_with_impls_are_counted_by_type() {
    let names = ["one", "two", "three"];
    let modules = names.map(|name| format!("mod {name};")).concat();
    let lib = format!("pub struct Wide; pub struct Other; impl Wide {{}} {modules}");
    let of_traits =
        "impl Clone for super::Other {} #[cfg(test)] mod tests { impl super::Other {} }";
    let child = format!("use super::Wide; impl Wide {{}} impl<'a> super::Other {{}} {of_traits}");
    let mut files = names
        .map(|name| (format!("{name}.rs"), child.clone()))
        .to_vec();
    files.push(("lib.rs".to_owned(), lib));
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("the folder can be written");
    }
    let tree = Tree::read(&folder.path().join("lib.rs"));
    let found = scattered(&tree);
    let [(name, files)] = &found[..] else {
        panic!("only one type is in four files: {found:?}");
    };
    assert!(
        name.starts_with("Wide of ") && files.len() == 4,
        "{found:?}"
    );
}

/// Returns the types of a target with inherent `impl` blocks in too many files, with these files.
fn scattered(tree: &Tree) -> Vec<(String, BTreeSet<&str>)> {
    let names = Names::of(tree);
    let mut files: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    for (id, module) in tree.modules.iter().enumerate() {
        for item in &module.items {
            if let Item::Impl(block) = item
                && block.trait_.is_none()
                && !is_test(&block.attrs)
                && let Some(of) = names.item_of(id, &block.self_ty)
            {
                let file = tree.files[module.file].as_str();
                files.entry(of).or_default().insert(file);
            }
        }
    }
    let scattered = files
        .into_iter()
        .filter(|(_, files)| files.len() > FILES_MAX);
    scattered
        .map(|(of, files)| {
            let defined = &tree.files[names.file(&of)];
            (format!("{} of {defined}", of.1), files)
        })
        .collect()
}
