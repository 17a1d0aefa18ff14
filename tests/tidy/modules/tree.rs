//! The modules of one target, with their items, found through `mod` declarations from the root file.

use std::{fs, path::Path};

use syn::{Attribute, Expr, Item, Lit, Meta};

use crate::files;

/// The index of a file in [`Tree::files`].
pub(super) type FileId = usize;
/// The index of a module in [`Tree::modules`].
pub(super) type ModuleId = usize;

/// All modules of a target. The first is its root.
#[derive(Default)]
pub(super) struct Tree {
    /// Paths relative to the checkout.
    pub(super) files: Vec<String>,
    pub(super) modules: Vec<Module>,
}

/// A module: a file, or a part of one.
pub(super) struct Module {
    pub(super) file: FileId,
    pub(super) parent: Option<ModuleId>,
    pub(super) children: Vec<(String, ModuleId)>,
    pub(super) items: Vec<Item>,
}

// === impl Tree ===

impl Tree {
    /// Reads a root file and all modules below it.
    pub(super) fn read(root: &Path) -> Self {
        let mut tree = Self::default();
        let folder = root.parent().expect("a file is in a folder");
        tree.read_file(root, folder, None);
        tree
    }

    fn read_file(&mut self, path: &Path, folder: &Path, parent: Option<ModuleId>) -> ModuleId {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let path = &fs::canonicalize(path).expect("it can be read");
        let relative = path.strip_prefix(files::root()).unwrap_or(path);
        self.files.push(relative.display().to_string());
        self.add(self.files.len() - 1, parent, parsed.items, folder)
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the syntax of Rust has many more kinds, and grows"
    )]
    fn add(
        &mut self,
        file: FileId,
        parent: Option<ModuleId>,
        items: Vec<Item>,
        folder: &Path,
    ) -> ModuleId {
        let id = self.modules.len();
        self.modules.push(Module {
            file,
            parent,
            children: Vec::new(),
            items: Vec::new(),
        });
        for item in items {
            match item {
                Item::Mod(module) if is_test(&module.attrs) => {}
                Item::Mod(module) => {
                    let name = module.ident.to_string();
                    let child = match module.content {
                        Some((_, items)) => self.add(file, Some(id), items, &folder.join(&name)),
                        None => {
                            let path = folder.join(file_of(&name, &module.attrs));
                            self.read_file(&path, &folder.join(&name), Some(id))
                        }
                    };
                    self.modules[id].children.push((name, child));
                }
                item => self.modules[id].items.push(item),
            }
        }
        id
    }
}

/// Returns the file of a module, relative to the folder of the declaring file, from the attribute `path` or the name.
fn file_of(module: &str, attributes: &[Attribute]) -> String {
    let named = attributes.iter().find_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        let Expr::Lit(value) = &pair.value else {
            return None;
        };
        let Lit::Str(text) = &value.lit else {
            return None;
        };
        pair.path.is_ident("path").then(|| text.value())
    });
    named.unwrap_or_else(|| format!("{module}.rs"))
}

/// Returns whether an item exists only in tests.
pub(super) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else {
            return false;
        };
        let condition = list.tokens.to_string();
        let mut words = condition.split(|letter: char| !letter.is_alphanumeric());
        list.path.is_ident("cfg") && words.any(|word| word == "test") && !condition.contains("not")
    })
}
