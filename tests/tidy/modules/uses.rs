//! The uses between files.

use std::collections::BTreeMap;

use syn::{
    Attribute, Expr, ExprMethodCall, FnArg, Ident, ImplItemFn, Item, ItemFn, ItemImpl, ItemUse,
    Macro, Member, Meta, Pat, Path, Signature, TraitItemFn, Visibility,
    ext::IdentExt,
    parse::{ParseStream, Parser},
    token,
    visit::{self, Visit},
};

use super::{
    names::{ItemId, Names, Target, imports},
    tree::{FileId, ModuleId, Tree, is_test},
};

/// Returns the using file, the used file, and the used name of each use.
pub(super) fn all(tree: &Tree, names: &Names<'_>) -> Vec<(FileId, FileId, String)> {
    let mut found = Vec::new();
    for (id, module) in tree.modules.iter().enumerate() {
        let mut reader = Reader {
            names,
            module: id,
            file: module.file,
            own: None,
            parameters: BTreeMap::new(),
            found: &mut found,
        };
        module.items.iter().for_each(|item| reader.visit_item(item));
    }
    found
}

struct Reader<'a> {
    names: &'a Names<'a>,
    module: ModuleId,
    file: FileId,
    /// The type of `self` and `Self` in the current block.
    own: Option<ItemId>,
    /// The types of the current function's parameters.
    parameters: BTreeMap<String, ItemId>,
    found: &'a mut Vec<(FileId, FileId, String)>,
}

// === impl Reader ===

impl Reader<'_> {
    fn add(&mut self, to: FileId, name: String) {
        if to != self.file {
            self.found.push((self.file, to, name));
        }
    }

    fn read_path(&mut self, segments: &[String]) {
        if let ([own, method, ..], Some(item)) = (segments, self.own.clone())
            && own == "Self"
        {
            return self.read_method(&item, method);
        }
        for (target, rest) in self.names.resolve(self.module, segments) {
            let Target::Item(item) = target else { continue };
            self.add(self.names.file(&item), segments.join("::"));
            if let Some(method) = rest {
                self.read_method(&item, &method);
            }
        }
    }

    fn read_method(&mut self, item: &ItemId, method: &str) {
        let files: Vec<_> = self.names.method(item, method).collect();
        for file in files {
            self.add(file, format!("{}::{method}", item.1));
        }
    }

    /// Returns the type of an expression, if it needs no inference.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the syntax of Rust has many more kinds, and grows"
    )]
    fn type_of(&self, expression: &Expr) -> Option<ItemId> {
        match expression {
            Expr::Path(path) => self.variable(&path.path.get_ident()?.to_string()),
            Expr::Field(field) => {
                let base = self.type_of(&field.base)?;
                let name = match &field.member {
                    Member::Named(name) => name.to_string(),
                    Member::Unnamed(index) => index.index.to_string(),
                };
                self.names.field(&base, &name).cloned()
            }
            Expr::Reference(inner) => self.type_of(&inner.expr),
            Expr::Paren(inner) => self.type_of(&inner.expr),
            _ => None,
        }
    }

    fn variable(&self, name: &str) -> Option<ItemId> {
        match name {
            "self" => self.own.clone(),
            name => self.parameters.get(name).cloned(),
        }
    }

    fn enter(&mut self, signature: &Signature) {
        self.parameters.clear();
        for input in &signature.inputs {
            if let FnArg::Typed(typed) = input
                && let Pat::Ident(name) = &*typed.pat
                && let Some(item) = self.names.item_of(self.module, &typed.ty)
            {
                self.parameters.insert(name.ident.to_string(), item);
            }
        }
    }

    /// Reads unparsed tokens, such as the arguments of a macro.
    fn read_tokens(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        while !input.is_empty() {
            if input.peek(Ident::peek_any) {
                self.read_words(input)?;
            } else if let Ok(group) = group(input) {
                self.read_tokens(&group)?;
            } else {
                skip(input)?;
            }
        }
        Ok(())
    }

    /// Reads `a::b::c`, or `a.b.c(`.
    fn read_words(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let first = input.call(Ident::parse_any)?.to_string();
        let mut path = vec![first.clone()];
        while input.peek(syn::Token![::]) && input.peek3(Ident::peek_any) {
            input.parse::<syn::Token![::]>()?;
            path.push(input.call(Ident::parse_any)?.to_string());
        }
        if path.len() > 1 {
            self.read_path(&path);
            return Ok(());
        }
        self.read_path(&path);
        let mut item = self.variable(&first);
        while input.peek(syn::Token![.]) && input.peek2(Ident::peek_any) {
            input.parse::<syn::Token![.]>()?;
            let name = input.call(Ident::parse_any)?.to_string();
            let Some(owner) = item.take() else { continue };
            if input.peek(token::Paren) {
                self.read_method(&owner, &name);
            } else {
                item = self.names.field(&owner, &name).cloned();
            }
        }
        Ok(())
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !matches!(item.vis, Visibility::Inherited) {
            return;
        }
        for import in imports(item).iter().filter(|it| it.name.is_some()) {
            self.read_path(&import.path);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        self.own = self.names.item_of(self.module, &item.self_ty);
        visit::visit_item_impl(self, item);
        self.own = None;
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.enter(&item.sig);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            self.enter(&item.sig);
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.enter(&item.sig);
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if let Some(item) = self.type_of(&call.receiver) {
            self.read_method(&item, &call.method.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let segments: Vec<_> = path
            .segments
            .iter()
            .map(|it| it.ident.to_string())
            .collect();
        self.read_path(&segments);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, it: &'ast Macro) {
        let read = it.parse_body_with(|input: ParseStream<'_>| self.read_tokens(input));
        read.expect("any tokens can be read");
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta
            && !list.path.is_ident("derive")
        {
            let read =
                (|input: ParseStream<'_>| self.read_tokens(input)).parse2(list.tokens.clone());
            read.expect("any tokens can be read");
        }
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax of Rust has many more kinds, and grows"
)]
fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// Returns the content of parentheses, brackets or braces.
fn group<'a>(input: ParseStream<'a>) -> syn::Result<syn::parse::ParseBuffer<'a>> {
    let content;
    if input.peek(token::Paren) {
        syn::parenthesized!(content in input);
    } else if input.peek(token::Bracket) {
        syn::bracketed!(content in input);
    } else {
        syn::braced!(content in input);
    }
    Ok(content)
}

fn skip(input: ParseStream<'_>) -> syn::Result<()> {
    input.step(|cursor| match cursor.token_tree() {
        Some((_, rest)) => Ok(((), rest)),
        None => Err(cursor.error("nothing is left")),
    })
}
