//! The code that is there for tests alone: files of tests, and what stands under `#[cfg(test)]`.

use syn::{Attribute, Item, Meta};

use crate::files;

/// The code for tests of one file.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) items: Vec<Item>,
}

// === impl Source ===

impl Source {
    /// Reads a file, where it has any such code.
    pub(super) fn read(path: String, text: String) -> Option<Self> {
        let is_whole = is_of_tests(&path);
        if !is_whole && !text.contains("cfg(test)") {
            return None;
        }
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let items = if is_whole {
            parsed.items
        } else {
            parsed.items.into_iter().flat_map(of_tests).collect()
        };
        Some(Self { path, text, items })
    }

    /// Returns the first line that can be of such code, counted from 0.
    pub(super) fn first_line(&self) -> usize {
        let marked = || self.text.lines().position(|it| it.contains("cfg(test)"));
        if is_of_tests(&self.path) {
            0
        } else {
            marked().unwrap_or_default()
        }
    }
}

/// Returns all such code of the checkout.
pub(super) fn all() -> Vec<Source> {
    let files = files::with_ending(&[".rs"]).into_iter();
    files
        .filter_map(|file| Source::read(file.path, file.text))
        .collect()
}

fn is_of_tests(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// Returns what of an item is there for tests alone.
fn of_tests(item: Item) -> Vec<Item> {
    if is_for_tests(attributes(&item)) {
        return vec![item];
    }
    match item {
        Item::Mod(module) => {
            let items = module.content.map(|(_, items)| items);
            let items = items.into_iter().flatten();
            items.flat_map(of_tests).collect()
        }
        _ => Vec::new(),
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        _ => &[],
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        Meta::Path(_) | Meta::NameValue(_) => false,
    })
}
