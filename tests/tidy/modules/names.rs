//! The meaning of names in each module: the file that defines an item, and the files with the methods of a type.

use std::collections::{BTreeMap, BTreeSet};

use syn::{
    Field, GenericArgument, ImplItem, Item, ItemImpl, ItemUse, PathArguments, Type, UseTree,
    visit::{self, Visit},
};

use super::tree::{FileId, ModuleId, Tree, is_test};

/// An item: its defining module, and its name in that module.
pub(super) type ItemId = (ModuleId, String);

/// The maximum depth of imports of imports. Globs that name each other would recurse forever.
const DEPTH_MAX: usize = 12;

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Module(ModuleId),
    Item(ItemId),
}

/// A name that a `use` imports.
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// The local name; none for a glob.
    pub(super) name: Option<String>,
}

/// The names of one module.
#[derive(Default)]
struct Scope {
    items: BTreeSet<String>,
    imports: Vec<Import>,
}

/// The names of a target.
pub(super) struct Names<'a> {
    tree: &'a Tree,
    scopes: Vec<Scope>,
    fields: BTreeMap<(ItemId, String), ItemId>,
    methods: BTreeMap<(ItemId, String), BTreeSet<FileId>>,
}

// === impl Names ===

impl<'a> Names<'a> {
    pub(super) fn of(tree: &'a Tree) -> Self {
        let mut names = Self {
            tree,
            scopes: tree
                .modules
                .iter()
                .map(|module| scope(&module.items))
                .collect(),
            fields: BTreeMap::new(),
            methods: BTreeMap::new(),
        };
        for (id, module) in tree.modules.iter().enumerate() {
            for item in &module.items {
                names.note_fields(id, item);
                if let Item::Impl(block) = item {
                    names.note_methods(id, block);
                }
            }
        }
        names
    }

    pub(super) fn file(&self, item: &ItemId) -> FileId {
        self.tree.modules[item.0].file
    }

    /// Returns the files that define a method of a type; none if the type has no such method.
    pub(super) fn method(&self, item: &ItemId, name: &str) -> impl Iterator<Item = FileId> {
        let files = self.methods.get(&(item.clone(), name.to_owned()));
        files.into_iter().flatten().copied()
    }

    /// Returns the type of a field, if both types are of this target.
    pub(super) fn field(&self, item: &ItemId, name: &str) -> Option<&ItemId> {
        self.fields.get(&(item.clone(), name.to_owned()))
    }

    /// Returns the targets of the longest resolvable prefix of a path, each with the segment after it.
    pub(super) fn resolve(&self, from: ModuleId, path: &[String]) -> Vec<(Target, Option<String>)> {
        self.resolve_within(from, path, 0)
    }

    /// Returns the item of a type, through references and wrappers.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the syntax of Rust has many more kinds, and grows"
    )]
    pub(super) fn item_of(&self, from: ModuleId, of: &Type) -> Option<ItemId> {
        match of {
            Type::Reference(reference) => self.item_of(from, &reference.elem),
            Type::Paren(paren) => self.item_of(from, &paren.elem),
            Type::Path(path) => {
                let segments: Vec<_> = path
                    .path
                    .segments
                    .iter()
                    .map(|it| it.ident.to_string())
                    .collect();
                let last = path.path.segments.last()?;
                if let ("Box" | "Arc" | "Rc", PathArguments::AngleBracketed(arguments)) =
                    (last.ident.to_string().as_str(), &last.arguments)
                    && let Some(GenericArgument::Type(inner)) = arguments.args.first()
                {
                    return self.item_of(from, inner);
                }
                self.resolve(from, &segments)
                    .into_iter()
                    .find_map(|(target, rest)| match target {
                        Target::Item(item) if rest.is_none() => Some(item),
                        Target::Item(_) | Target::Module(_) => None,
                    })
            }
            _ => None,
        }
    }

    fn resolve_within(
        &self,
        from: ModuleId,
        path: &[String],
        depth: usize,
    ) -> Vec<(Target, Option<String>)> {
        let Some((first, rest)) = path.split_first() else {
            return Vec::new();
        };
        let mut targets = match first.as_str() {
            "crate" => vec![Target::Module(0)],
            "self" => vec![Target::Module(from)],
            "super" => {
                let parent = self.tree.modules[from].parent.unwrap_or(from);
                vec![Target::Module(parent)]
            }
            name => self.look_up(from, name, depth),
        };
        let mut found = Vec::new();
        let mut rest = rest.iter();
        for name in rest.by_ref() {
            let ends = targets.iter().filter(|it| matches!(it, Target::Item(_)));
            found.extend(ends.map(|it| (it.clone(), Some(name.clone()))));
            targets = targets
                .into_iter()
                .filter_map(|it| match it {
                    Target::Module(module) => Some(module),
                    Target::Item(_) => None,
                })
                .flat_map(|module| match name.as_str() {
                    "super" => vec![Target::Module(
                        self.tree.modules[module].parent.unwrap_or(module),
                    )],
                    name => self.look_up(module, name, depth),
                })
                .collect();
        }
        found.extend(targets.into_iter().map(|it| (it, None)));
        found
    }

    /// Returns the meaning of a name in a module: an item, a module, or the target of an import.
    fn look_up(&self, module: ModuleId, name: &str, depth: usize) -> Vec<Target> {
        if depth > DEPTH_MAX {
            return Vec::new();
        }
        let scope = &self.scopes[module];
        let mut found = Vec::new();
        if scope.items.contains(name) {
            found.push(Target::Item((module, name.to_owned())));
        }
        let children = self.tree.modules[module].children.iter();
        found.extend(
            children
                .filter(|(child, _)| child == name)
                .map(|(_, id)| Target::Module(*id)),
        );
        for import in &scope.imports {
            let path = match &import.name {
                Some(called)
                    if called == name && import.path.first().map(String::as_str) != Some(name) =>
                {
                    import.path.clone()
                }
                // `use name::…;` of another crate, or of a child that was found above.
                Some(called) if called == name && import.path.len() > 1 && found.is_empty() => {
                    import.path.clone()
                }
                None if found.is_empty() => [&import.path[..], &[name.to_owned()]].concat(),
                Some(_) | None => continue,
            };
            let leads_to = self.resolve_within(module, &path, depth + 1).into_iter();
            found.extend(
                leads_to
                    .filter(|(_, rest)| rest.is_none())
                    .map(|(target, _)| target),
            );
        }
        found.dedup();
        found
    }

    fn note_fields(&mut self, module: ModuleId, item: &Item) {
        let Item::Struct(item) = item else { return };
        let owner = (module, item.ident.to_string());
        for (at, Field { ident, ty, .. }) in item.fields.iter().enumerate() {
            let name = ident
                .as_ref()
                .map_or_else(|| at.to_string(), ToString::to_string);
            if let Some(of) = self.item_of(module, ty) {
                self.fields.insert((owner.clone(), name), of);
            }
        }
    }

    fn note_methods(&mut self, module: ModuleId, block: &ItemImpl) {
        let owner = self.item_of(module, &block.self_ty);
        let Some(owner) = owner.filter(|_| !is_test(&block.attrs)) else {
            return;
        };
        for item in &block.items {
            if let ImplItem::Fn(method) = item {
                let key = (owner.clone(), method.sig.ident.to_string());
                let file = self.tree.modules[module].file;
                self.methods.entry(key).or_default().insert(file);
            }
        }
    }
}

fn scope(items: &[Item]) -> Scope {
    let mut scope = Scope::default();
    for item in items {
        scope.items.extend(name_of(item));
        scope.visit_item(item);
    }
    scope
}

/// Imports in functions count for their module.
impl<'ast> Visit<'ast> for Scope {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.imports.extend(imports(item));
        visit::visit_item_use(self, item);
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax of Rust has many more kinds, and grows"
)]
fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(it) => &it.ident,
        Item::Enum(it) => &it.ident,
        Item::Fn(it) => &it.sig.ident,
        Item::Static(it) => &it.ident,
        Item::Struct(it) => &it.ident,
        Item::Trait(it) => &it.ident,
        Item::Type(it) => &it.ident,
        Item::Union(it) => &it.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

pub(super) fn imports(item: &ItemUse) -> Vec<Import> {
    let mut found = Vec::new();
    collect(&item.tree, &mut Vec::new(), &mut found);
    found
}

fn collect(tree: &UseTree, prefix: &mut Vec<String>, found: &mut Vec<Import>) {
    let import = |last: String, name: String| Import {
        // `use a::{self}` brings in `a`.
        path: prefix
            .iter()
            .cloned()
            .chain((last != "self").then_some(last))
            .collect(),
        name: Some(name),
    };
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            collect(&path.tree, prefix, found);
            prefix.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            let called = prefix.last().cloned().unwrap_or_default();
            found.push(import("self".to_owned(), called));
        }
        UseTree::Name(name) => found.push(import(name.ident.to_string(), name.ident.to_string())),
        UseTree::Rename(it) => found.push(import(it.ident.to_string(), it.rename.to_string())),
        UseTree::Glob(_) => found.push(Import {
            path: prefix.clone(),
            name: None,
        }),
        UseTree::Group(group) => group
            .items
            .iter()
            .for_each(|tree| collect(tree, prefix, found)),
    }
}
