//! Collects the constants of the code for tests.

use std::collections::{BTreeMap, BTreeSet};

use syn::{
    Expr, ImplItemConst, ItemConst, ItemUse, UseTree,
    visit::{self, Visit},
};

use super::{
    code::Source,
    limits::{Constants, Limit},
    values::{Scope, Value},
};

/// Returns the constants of all code for tests.
pub(super) fn of(sources: &[Source]) -> Constants {
    let mut constants = Constants::default();
    // One constant may be made of another, and that of a third.
    for _ in 0..3 {
        let (mut limits, mut imported) = (BTreeMap::new(), BTreeSet::new());
        for source in sources {
            let mut reader = Reader {
                scope: Scope::new(&source.path, &constants),
                found: &mut limits,
                imported: &mut imported,
            };
            source.items.iter().for_each(|item| reader.visit_item(item));
        }
        constants = Constants { limits, imported };
    }
    constants
}

struct Reader<'a> {
    scope: Scope<'a>,
    found: &'a mut BTreeMap<(String, String), Limit>,
    imported: &'a mut BTreeSet<(String, String)>,
}

// === impl Reader ===

impl Reader<'_> {
    fn add(&mut self, name: &syn::Ident, value: &Expr) {
        if let Value::Limit(limit) = self.scope.value(value) {
            let key = (self.scope.file.to_owned(), name.to_string());
            self.found.insert(key, limit);
        }
    }

    fn import(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.import(&path.tree),
            UseTree::Group(group) => group.items.iter().for_each(|it| self.import(it)),
            UseTree::Name(name) => {
                let key = (self.scope.file.to_owned(), name.ident.to_string());
                self.imported.insert(key);
            }
            UseTree::Rename(_) | UseTree::Glob(_) => {}
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        self.add(&item.ident, &item.expr);
    }

    fn visit_impl_item_const(&mut self, item: &'ast ImplItemConst) {
        self.add(&item.ident, &item.expr);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if let UseTree::Path(path) = &item.tree
            && path.ident == "tests"
        {
            self.import(&path.tree);
        }
        visit::visit_item_use(self, item);
    }
}
