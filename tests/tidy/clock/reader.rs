//! Reads the code for tests, and finds what the speed of the machine decides.

use std::collections::BTreeSet;

use syn::{
    BinOp, Expr, ExprAssign, ExprBinary, ExprCall, ExprClosure, ExprForLoop, ExprIf, ExprLet,
    ExprMatch, ExprMethodCall, ExprPath, ExprUnary, ExprWhile, FieldValue, ImplItemFn, ItemFn,
    ItemImpl, Local, Macro, Member, Pat, Stmt, Type, UnOp,
    visit::{self, Visit},
};

use super::{
    bounds::Bounds,
    code::Source,
    constants,
    finding::Finding,
    syntax::{
        arguments, blocks, breaks_off, fails, is_comparison, is_error, is_wild, last_of, matched,
        name_of, unasked,
    },
    values::{Facts, Value},
};

/// Returns all that is found.
pub(super) fn find(sources: &[Source]) -> BTreeSet<Finding> {
    let constants = constants::of(sources);
    let mut facts = Facts::default();
    loop {
        let (mut found, mut learnt) = (BTreeSet::new(), facts.clone());
        for source in sources {
            let mut reader = Reader {
                bounds: Bounds::new(source, &constants, facts.clone()),
                is_negated: false,
                is_choice: false,
            };
            source.items.iter().for_each(|item| reader.visit_item(item));
            found.extend(reader.bounds.found);
            learnt.lengths.extend(reader.bounds.learnt.lengths);
            learnt.takers.extend(reader.bounds.learnt.takers);
        }
        if learnt == facts {
            return found;
        }
        facts = learnt;
    }
}

struct Reader<'a> {
    bounds: Bounds<'a>,
    /// Whether the opposite of what is read must hold.
    is_negated: bool,
    /// Whether what is read chooses what to do next.
    is_choice: bool,
}

// === impl Reader ===

impl Reader<'_> {
    /// Reads what an attempt is made of, and not itself, nor whether its arguments are limits.
    fn read_inside(&mut self, expression: &Expr) {
        match expression {
            Expr::Await(it) => self.read_inside(&it.base),
            Expr::Paren(it) => self.read_inside(&it.expr),
            // A name has been read where it got its value.
            Expr::Path(_) => {}
            Expr::Call(it) => it.args.iter().for_each(|it| self.visit_expr(it)),
            Expr::MethodCall(it) => {
                self.visit_expr(&it.receiver);
                it.args.iter().for_each(|it| self.visit_expr(it));
            }
            other => self.visit_expr(other),
        }
    }

    /// Reads what must hold, or must not.
    fn read_condition(&mut self, condition: &Expr, is_negated: bool, is_choice: bool) {
        let before = (self.is_negated, self.is_choice);
        (self.is_negated, self.is_choice) = (is_negated, is_choice);
        self.visit_expr(condition);
        (self.is_negated, self.is_choice) = before;
    }

    /// Returns whether a method says that an attempt should not come to its end.
    fn is_expiry_wanted(&self, method: &str) -> bool {
        match method {
            "expect_err" | "unwrap_err" => true,
            "is_err" => !self.is_choice && !self.is_negated,
            "is_ok" => !self.is_choice && self.is_negated,
            _ => false,
        }
    }

    fn is_attempt(&self, expression: &Expr) -> bool {
        self.bounds.attempt(expression).is_some()
    }

    fn read_matches(&mut self, subject: &Expr, pattern: &Pat) {
        let is_err = matches!(pattern, Pat::TupleStruct(it) if name_of(&it.path) == "Err");
        if is_err && self.is_expiry_wanted("is_err") && self.is_attempt(subject) {
            return self.read_inside(subject);
        }
        self.bounds.look_at_range(subject, pattern);
        self.visit_expr(subject);
    }

    fn read_closure(&mut self, closure: &ExprClosure, value: &Value) {
        for input in &closure.inputs {
            self.bounds.scope.bind(input, value);
        }
        self.visit_expr(&closure.body);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        let outer = self.bounds.enter(&item.attrs, &item.sig, &item.block);
        self.visit_block(&item.block);
        self.bounds.leave(&item.block, outer);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        let outer = self.bounds.enter(&item.attrs, &item.sig, &item.block);
        self.visit_block(&item.block);
        self.bounds.leave(&item.block, outer);
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if let Type::Path(path) = &*item.self_ty {
            self.bounds.owner = name_of(&path.path);
        }
        visit::visit_item_impl(self, item);
        self.bounds.owner.clear();
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        match statement {
            // What came of it is not asked.
            Stmt::Expr(expression, Some(_)) if self.is_attempt(expression) => {
                self.read_inside(expression);
            }
            other => visit::visit_stmt(self, other),
        }
    }

    fn visit_local(&mut self, local: &'ast Local) {
        let Some(init) = &local.init else { return };
        if is_wild(&local.pat) {
            return self.read_inside(unasked(&init.expr));
        }
        let is_kept = matches!(local.pat, Pat::Ident(_)) && init.diverge.is_none();
        let attempt = self.bounds.attempt(&init.expr).filter(|_| is_kept);
        if attempt.is_some() {
            self.read_inside(&init.expr);
        } else {
            self.visit_expr(&init.expr);
        }
        let value = attempt.unwrap_or_else(|| self.bounds.scope.value(&init.expr));
        self.bounds.scope.bind(&local.pat, &value);
        if let Some((_, otherwise)) = &init.diverge {
            self.visit_expr(otherwise);
        }
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        if self.is_negated {
            self.bounds.look_at_late(&name_of(&path.path));
        }
    }

    fn visit_expr_unary(&mut self, unary: &'ast ExprUnary) {
        let is_not = matches!(unary.op, UnOp::Not(_));
        self.read_condition(&unary.expr, self.is_negated ^ is_not, self.is_choice);
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        let (left, right) = (&*binary.left, &*binary.right);
        let is_less = matches!(binary.op, BinOp::Lt(_) | BinOp::Le(_));
        if is_comparison(&binary.op) && is_less != self.is_negated {
            self.bounds.compare(left, right);
        } else if is_comparison(&binary.op) {
            self.bounds.compare(right, left);
        } else if matches!(binary.op, BinOp::Eq(_)) {
            self.bounds.equate(left, right);
        } else if matches!(binary.op, BinOp::Sub(_)) {
            self.bounds.look_at_rest(left, right);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_if(&mut self, it: &'ast ExprIf) {
        self.read_condition(&it.cond, fails(&it.then_branch), true);
        self.visit_block(&it.then_branch);
        if let Some((_, otherwise)) = &it.else_branch {
            self.visit_expr(otherwise);
        }
    }

    fn visit_expr_while(&mut self, it: &'ast ExprWhile) {
        match &*it.cond {
            // It is done for so long, and nothing else ends it.
            Expr::Binary(binary) if is_comparison(&binary.op) && !breaks_off(&it.body) => {
                self.visit_expr(&binary.left);
                self.visit_expr(&binary.right);
            }
            // It is tried until it comes.
            Expr::Binary(binary) if is_error(&binary.right) && self.is_attempt(&binary.left) => {
                self.read_inside(&binary.left);
            }
            Expr::MethodCall(call)
                if call.method == "is_err" && self.is_attempt(&call.receiver) =>
            {
                self.read_inside(&call.receiver);
            }
            condition => self.read_condition(condition, false, true),
        }
        self.visit_block(&it.body);
    }

    fn visit_expr_let(&mut self, it: &'ast ExprLet) {
        self.visit_expr(&it.expr);
        let value = self.bounds.scope.value(&it.expr);
        self.bounds.scope.bind(&it.pat, &value);
    }

    fn visit_expr_match(&mut self, it: &'ast ExprMatch) {
        self.visit_expr(&it.expr);
        let value = self.bounds.scope.value(&it.expr);
        for arm in &it.arms {
            self.bounds.scope.bind(&arm.pat, &value);
            if let Pat::Guard(guarded) = &arm.pat {
                self.read_condition(&guarded.guard, false, true);
            }
            self.visit_expr(&arm.body);
        }
    }

    fn visit_expr_for_loop(&mut self, it: &'ast ExprForLoop) {
        self.visit_expr(&it.expr);
        let value = self.bounds.scope.value(&it.expr);
        self.bounds.scope.bind(&it.pat, &value);
        self.visit_block(&it.body);
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        self.read_closure(closure, &Value::Other);
    }

    fn visit_expr_assign(&mut self, it: &'ast ExprAssign) {
        visit::visit_expr_assign(self, it);
        if self.bounds.scope.is_length(&it.right) {
            match &*it.left {
                Expr::Path(path) => {
                    let name = name_of(&path.path);
                    self.bounds
                        .scope
                        .locals
                        .insert(name, self.bounds.scope.value(&it.right));
                }
                other => self.bounds.learn_length(format!(".{}", last_of(other))),
            }
        }
    }

    fn visit_field_value(&mut self, field: &'ast FieldValue) {
        visit::visit_field_value(self, field);
        if let (Member::Named(name), true) =
            (&field.member, self.bounds.scope.is_length(&field.expr))
        {
            self.bounds.learn_length(format!(".{name}"));
        }
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        match self.bounds.attempt(expression) {
            Some(attempt) => {
                self.bounds.judge(attempt);
                self.read_inside(expression);
            }
            None => visit::visit_expr(self, expression),
        }
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let name = last_of(&call.func);
        let owner = self.bounds.owner_of(&call.func);
        self.bounds
            .look_at_arguments(Some(&owner), &name, call.args.iter());
        match call.args.first() {
            Some(first) if name == "drop" => self.read_inside(first),
            _ => visit::visit_expr_call(self, call),
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let method = call.method.to_string();
        self.bounds
            .look_at_arguments(None, &method, call.args.iter());
        if self.is_expiry_wanted(&method) && self.is_attempt(&call.receiver) {
            self.read_inside(&call.receiver);
            return;
        }
        self.visit_expr(&call.receiver);
        let receiver = self.bounds.scope.value(&call.receiver);
        for argument in &call.args {
            match (argument, &receiver) {
                (Expr::Closure(closure), Value::Length(_)) => self.read_closure(closure, &receiver),
                _ => self.visit_expr(argument),
            }
        }
        self.bounds.look_at_method(call, &receiver, self.is_negated);
    }

    fn visit_macro(&mut self, it: &'ast Macro) {
        let name = name_of(&it.path);
        if name == "matches"
            && let Some((subject, pattern)) = matched(it)
        {
            return self.read_matches(&subject, &pattern);
        }
        let Some(arguments) = arguments(it) else {
            return blocks(it).iter().for_each(|it| self.visit_block(it));
        };
        // The others make the message.
        let asserted = match name.as_str() {
            "assert" | "debug_assert" => arguments.get(..1),
            "assert_eq" | "assert_ne" => arguments.get(..2),
            _ => None,
        };
        let asserted = asserted.unwrap_or(&arguments);
        if let ("assert_eq", [left, right]) = (name.as_str(), asserted) {
            self.bounds.equate(left, right);
        }
        for argument in asserted {
            if name.contains("assert") {
                self.read_condition(argument, false, false);
            } else {
                self.visit_expr(argument);
            }
        }
    }
}
