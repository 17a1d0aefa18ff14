//! Small questions about the syntax of Rust.

use syn::{
    BinOp, Block, Expr, ExprBreak, ExprCall, ExprMethodCall, ExprReturn, Macro, Pat, Path, Stmt,
    Token,
    parse::{ParseStream, Parser},
    punctuated::Punctuated,
    visit::{self, Visit},
};

pub(super) fn is_comparison(operator: &BinOp) -> bool {
    matches!(
        operator,
        BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_)
    )
}

/// Returns the names of a path.
pub(super) fn segments(path: &Path) -> Vec<String> {
    let segments = path.segments.iter();
    segments.map(|it| it.ident.to_string()).collect()
}

/// Returns the last name of a path.
pub(super) fn name_of(path: &Path) -> String {
    segments(path).pop().unwrap_or_default()
}

/// Returns the name by which a reader knows an expression: the last one of a path or of a chain of calls.
pub(super) fn last_of(expression: &Expr) -> String {
    match expression {
        Expr::Await(it) => last_of(&it.base),
        Expr::Binary(it) => last_of(&it.left),
        Expr::Call(it) => last_of(&it.func),
        Expr::Cast(it) => last_of(&it.expr),
        Expr::Field(it) => match &it.member {
            syn::Member::Named(name) => name.to_string(),
            syn::Member::Unnamed(_) => last_of(&it.base),
        },
        Expr::Group(it) => last_of(&it.expr),
        Expr::Index(it) => last_of(&it.expr),
        Expr::Lit(it) => match &it.lit {
            syn::Lit::Int(number) => number.to_string(),
            syn::Lit::Float(number) => number.to_string(),
            _ => String::new(),
        },
        Expr::MethodCall(it) => it.method.to_string(),
        Expr::Paren(it) => last_of(&it.expr),
        Expr::Path(it) => name_of(&it.path),
        Expr::Reference(it) => last_of(&it.expr),
        Expr::Try(it) => last_of(&it.expr),
        Expr::Unary(it) => last_of(&it.expr),
        _ => String::new(),
    }
}

/// Returns the arguments of a macro, where they are expressions.
pub(super) fn arguments(it: &Macro) -> Option<Vec<Expr>> {
    let parsed = it.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
    parsed.ok().map(|it| it.into_iter().collect())
}

/// Returns what `matches!` compares.
pub(super) fn matched(it: &Macro) -> Option<(Expr, Pat)> {
    let parser = |input: ParseStream<'_>| {
        let subject = input.parse()?;
        input.parse::<Token![,]>()?;
        let pattern = Pat::parse_multi_with_leading_vert(input)?;
        // What is behind `if`.
        input.step(|cursor| {
            let mut rest = *cursor;
            while let Some((_, next)) = rest.token_tree() {
                rest = next;
            }
            Ok(((), rest))
        })?;
        Ok((subject, pattern))
    };
    parser.parse2(it.tokens.clone()).ok()
}

/// Returns the blocks in what a macro takes that is no list of expressions, as the arms of `select!`.
pub(super) fn blocks(it: &Macro) -> Vec<Block> {
    let mut found = Vec::new();
    let read = it.parse_body_with(|input: ParseStream<'_>| read_blocks(input, &mut found));
    read.expect("any tokens can be read");
    found
}

fn read_blocks(input: ParseStream<'_>, found: &mut Vec<Block>) -> syn::Result<()> {
    while !input.is_empty() {
        if input.peek(syn::token::Brace) {
            match input.fork().parse::<Block>() {
                Ok(_) => found.push(input.parse()?),
                Err(_) => {
                    let content;
                    syn::braced!(content in input);
                    read_blocks(&content, found)?;
                }
            }
        } else {
            input.step(|cursor| match cursor.token_tree() {
                Some((_, rest)) => Ok(((), rest)),
                None => Err(cursor.error("nothing is left")),
            })?;
        }
    }
    Ok(())
}

/// Returns whether a block says that something has failed.
pub(super) fn fails(block: &Block) -> bool {
    let is_failure = |expression: &Expr| match expression {
        Expr::Macro(it) => ["panic", "unreachable"].contains(&name_of(&it.mac.path).as_str()),
        Expr::Return(it) => it.expr.as_ref().is_some_and(|it| is_error(it)),
        other => is_error(other),
    };
    block.stmts.iter().any(|statement| match statement {
        Stmt::Expr(expression, _) => is_failure(expression),
        Stmt::Macro(it) => ["panic", "unreachable"].contains(&name_of(&it.mac.path).as_str()),
        Stmt::Local(_) | Stmt::Item(_) => false,
    })
}

/// Returns whether an expression is a failure as such.
pub(super) fn is_error(expression: &Expr) -> bool {
    matches!(expression, Expr::Call(call) if last_of(&call.func) == "Err")
}

/// Returns whether a function stops the clock of tokio, so that time is virtual.
pub(super) fn stops_clock(block: &Block) -> bool {
    let mut reader = Pauses(false);
    reader.visit_block(block);
    reader.0
}

struct Pauses(bool);

impl<'ast> Visit<'ast> for Pauses {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(function) = &*call.func {
            self.0 |= segments(&function.path).ends_with(&["time".to_owned(), "pause".to_owned()]);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.0 |= call.method == "start_paused";
        visit::visit_expr_method_call(self, call);
    }
}

/// Returns whether a pattern drops what it is given.
pub(super) fn is_wild(pattern: &Pat) -> bool {
    match pattern {
        Pat::Wild(_) => true,
        Pat::Type(it) => is_wild(&it.pat),
        _ => false,
    }
}

/// Returns what an expression comes from: of `block_on(async { …; this })`, what the runtime waits for.
pub(super) fn unasked(expression: &Expr) -> &Expr {
    let Expr::MethodCall(call) = expression else {
        return expression;
    };
    match call.args.first() {
        Some(Expr::Async(it)) if call.method == "block_on" => match it.block.stmts.last() {
            Some(Stmt::Expr(tail, None)) => tail,
            _ => expression,
        },
        _ => expression,
    }
}

/// Returns whether a loop may end in its body.
pub(super) fn breaks_off(body: &Block) -> bool {
    let mut reader = Ends(false);
    reader.visit_block(body);
    reader.0
}

struct Ends(bool);

impl<'ast> Visit<'ast> for Ends {
    fn visit_expr_break(&mut self, _: &'ast ExprBreak) {
        self.0 = true;
    }

    fn visit_expr_return(&mut self, _: &'ast ExprReturn) {
        self.0 = true;
    }
}
