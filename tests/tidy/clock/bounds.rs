//! Judges what is read of a function: whether a bound of wall time is too short.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use syn::{Attribute, Block, Expr, ExprMethodCall, FnArg, Meta, Pat, Signature};

use super::{
    code::Source,
    finding::Finding,
    limits::{Constants, Limit, room_of},
    syntax::{last_of, name_of, segments, stops_clock},
    values::{Facts, Scope, Taker, Value},
};

/// The least that a limit of wall time may be, in seconds: what takes so long hangs.
const LEAST: f64 = 60.0;

/// What is known at a place of a file, and what was found up to there.
pub(super) struct Bounds<'a> {
    lines: Vec<&'a str>,
    pub(super) scope: Scope<'a>,
    /// The type whose methods are read, or nothing.
    pub(super) owner: String,
    function: String,
    /// The lines below which the next function begins, and where the last finding is, counted from 0.
    begin: usize,
    line: usize,
    parameters: Vec<String>,
    /// Whether the clock of the function is stopped, so that time is virtual.
    is_virtual: bool,
    pub(super) found: BTreeSet<Finding>,
    pub(super) learnt: Facts,
}

/// What is known of the function around another.
pub(super) struct Outer {
    function: String,
    parameters: Vec<String>,
    locals: BTreeMap<String, Value>,
    line: usize,
    is_virtual: bool,
}

// === impl Bounds ===

impl<'a> Bounds<'a> {
    pub(super) fn new(source: &'a Source, constants: &'a Constants, facts: Facts) -> Self {
        let mut scope = Scope::new(&source.path, constants);
        scope.facts = facts;
        Self {
            lines: source.text.lines().collect(),
            scope,
            owner: String::new(),
            function: String::new(),
            begin: source.first_line(),
            line: 0,
            parameters: Vec::new(),
            is_virtual: false,
            found: BTreeSet::new(),
            learnt: Facts::default(),
        }
    }

    /// Enters a function. Returns what is to be given back when it is left.
    pub(super) fn enter(
        &mut self,
        attributes: &[Attribute],
        it: &Signature,
        block: &Block,
    ) -> Outer {
        let outer = Outer {
            function: mem::replace(&mut self.function, it.ident.to_string()),
            parameters: mem::take(&mut self.parameters),
            locals: mem::take(&mut self.scope.locals),
            line: self.line,
            is_virtual: self.is_virtual,
        };
        self.find_function();
        let is_paused = |attribute: &Attribute| match &attribute.meta {
            Meta::List(list) => list.tokens.to_string().contains("start_paused"),
            Meta::Path(_) | Meta::NameValue(_) => false,
        };
        self.is_virtual = attributes.iter().any(is_paused) || stops_clock(block);
        for input in &it.inputs {
            let FnArg::Typed(typed) = input else { continue };
            let name = match &*typed.pat {
                Pat::Ident(name) => name.ident.to_string(),
                _ => String::new(),
            };
            let value = Value::Limit(Limit::Parameter(name.clone()));
            self.scope.locals.insert(name.clone(), value);
            self.parameters.push(name);
        }
        outer
    }

    /// Leaves the function, of which it is known now whether it returns how long something took.
    pub(super) fn leave(&mut self, block: &Block, outer: Outer) {
        if matches!(self.scope.of_block(block), Value::Length(_)) {
            self.learn_length(self.function.clone());
        }
        self.function = outer.function;
        self.parameters = outer.parameters;
        self.scope.locals = outer.locals;
        self.line = outer.line;
        self.is_virtual = outer.is_virtual;
    }

    /// Goes to the line where the function begins, which is below those that were read before.
    fn find_function(&mut self) {
        let opens = ["(", "<"].map(|it| format!("fn {}{it}", self.function));
        let mut below = self.lines.iter().skip(self.begin);
        let opening = below.position(|line| opens.iter().any(|it| line.contains(it)));
        self.line = self.begin + opening.unwrap_or_default();
        self.begin = self.line + 1;
    }

    pub(super) fn learn_length(&mut self, name: String) {
        let key = (self.scope.file.to_owned(), name);
        self.learnt.lengths.insert(key);
    }

    fn finding(&self, words: &[&str], what: String) -> Finding {
        let has = |words: &[&str]| {
            let mut below = self.lines.iter().skip(self.line);
            below.position(|line| words.iter().all(|word| line.contains(word)))
        };
        let below = has(words).or_else(|| has(&words[..1]));
        Finding {
            file: self.scope.file.to_owned(),
            line: self.line + below.unwrap_or_default() + 1,
            function: self.function.clone(),
            what,
        }
    }

    fn report(&mut self, words: &[&str], what: String) {
        let finding = self.finding(words, what);
        self.line = finding.line - 1;
        self.found.insert(finding);
    }

    /// Returns whether a limit is too short; that of a parameter is asked of the callers.
    fn is_short(&mut self, limit: &Limit, unit: f64) -> Option<bool> {
        if self.is_virtual {
            return Some(false);
        }
        if let Limit::Parameter(name) = limit {
            let place = self.parameters.iter().position(|it| it == name);
            let taker = place.map(|place| Taker {
                room: room_of(self.scope.file),
                owner: self.owner.clone(),
                function: self.function.clone(),
                place,
            });
            self.learnt.takers.extend(taker);
            return Some(false);
        }
        limit.seconds(unit).map(|seconds| seconds < LEAST)
    }

    /// Looks at `small < big`, whatever way round it is written.
    pub(super) fn compare(&mut self, small: &Expr, big: &Expr) {
        let names = (last_of(small), last_of(big));
        let words = [names.0.as_str(), names.1.as_str()];
        let what = format!("{} < {}", names.0, names.1);
        let is_short = match (self.scope.value(small), self.scope.value(big)) {
            (Value::Length(_), Value::Length(_)) => Some(false),
            // What is not known to be long may be short.
            (Value::Length(unit), Value::Limit(limit)) => {
                self.is_short(&limit, unit).or(Some(true))
            }
            (Value::Length(unit), _) => self.is_short(&Limit::Unknown, unit).or(Some(true)),
            (Value::Moment, Value::Deadline(limit)) => self.is_short(&limit, 1.0),
            _ => None,
        };
        if is_short == Some(true) {
            self.report(&words, what);
        }
    }

    /// Looks at `left == right`.
    pub(super) fn equate(&mut self, left: &Expr, right: &Expr) {
        let is_length = self.scope.is_length(left) || self.scope.is_length(right);
        if is_length && !self.is_virtual {
            let names = (last_of(left), last_of(right));
            let what = format!("{} == {}", names.0, names.1);
            self.report(&[&names.0, &names.1], what);
        }
    }

    /// Returns what an expression tries within a limit, and the limit, if it does; whether that is short is not asked yet.
    pub(super) fn attempt(&self, expression: &Expr) -> Option<Value> {
        let (name, limit) = match expression {
            Expr::Await(it) => return self.attempt(&it.base),
            Expr::Paren(it) => return self.attempt(&it.expr),
            Expr::Call(it) => (last_of(&it.func), it.args.first()?),
            Expr::MethodCall(it) if it.method == "recv_timeout" => {
                (it.method.to_string(), it.args.first()?)
            }
            Expr::MethodCall(it) if it.method == "wait_timeout_while" => {
                (it.method.to_string(), it.args.get(1)?)
            }
            Expr::Path(it) => {
                let local = self.scope.locals.get(&name_of(&it.path)).cloned();
                return local.filter(|it| matches!(it, Value::Attempt(..)));
            }
            _ => return None,
        };
        let names = [
            "timeout",
            "timeout_at",
            "recv_timeout",
            "wait_timeout_while",
        ];
        names.contains(&name.as_str()).then(|| {
            let last = last_of(limit);
            let finding = self.finding(&[&name, &last], format!("{name}({last})"));
            Value::Attempt(finding, self.scope.limit(limit))
        })
    }

    /// Asks of an attempt that must come to its end whether its limit is short.
    pub(super) fn judge(&mut self, attempt: Value) {
        if let Value::Attempt(finding, limit) = attempt
            && self.is_short(&limit, 1.0) == Some(true)
        {
            self.found.insert(finding);
        }
    }

    /// Looks at `matches!(subject, least..most)`.
    pub(super) fn look_at_range(&mut self, subject: &Expr, pattern: &Pat) {
        let is_bounded = matches!(pattern, Pat::Range(range) if range.end.is_some());
        if is_bounded && self.scope.is_length(subject) && !self.is_virtual {
            let last = last_of(subject);
            self.report(&["matches!", &last], format!("matches!({last})"));
        }
    }

    /// Looks at a variable that says whether it is late, where it must not be.
    pub(super) fn look_at_late(&mut self, name: &str) {
        if let Some(Value::Late(limit)) = self.scope.locals.get(name).cloned()
            && self.is_short(&limit, 1.0) == Some(true)
        {
            self.report(&[name], format!("!{name}"));
        }
    }

    /// Looks at `deadline - now`.
    pub(super) fn look_at_rest(&mut self, deadline: &Expr, now: &Expr) {
        if let (Value::Deadline(limit), Value::Moment) =
            (self.scope.value(deadline), self.scope.value(now))
            && self.is_short(&limit, 1.0) == Some(true)
        {
            let last = last_of(deadline);
            self.report(&[&last], format!("{last} - now"));
        }
    }

    /// Looks at the arguments of a call that are limits, of a function of ours or of what is valid for a time.
    ///
    /// Of a method it is not known which type it is of.
    pub(super) fn look_at_arguments<'b>(
        &mut self,
        owner: Option<&str>,
        name: &str,
        arguments: impl Iterator<Item = &'b Expr>,
    ) {
        let rooms = [room_of(self.scope.file), "tests/src".to_owned()];
        let takers = self.scope.facts.takers.iter().filter(|taker| {
            let is_owner = owner.map_or(!taker.owner.is_empty(), |owner| taker.owner == owner);
            taker.function == name && is_owner && rooms.contains(&taker.room)
        });
        let places: Vec<_> = takers.map(|taker| taker.place).collect();
        for (place, argument) in arguments.enumerate() {
            let value = self.scope.value(argument);
            let takes = places.contains(&place);
            let is_short = match (name, place, value) {
                ("valid", 1, Value::Deadline(limit)) => self.is_short(&limit, 1.0),
                ("claims", 1, Value::Limit(Limit::Number(seconds))) => {
                    Some(0.0 < seconds && seconds < LEAST)
                }
                (_, _, Value::Limit(limit @ (Limit::Seconds(_) | Limit::Parameter(_))))
                    if takes =>
                {
                    self.is_short(&limit, 1.0)
                }
                _ => None,
            };
            if is_short == Some(true) {
                let last = last_of(argument);
                self.report(&[name, &last], format!("{name}({last})"));
            }
        }
    }

    pub(super) fn look_at_method(
        &mut self,
        call: &ExprMethodCall,
        receiver: &Value,
        is_negated: bool,
    ) {
        let Some(first) = call.args.first() else {
            return;
        };
        let (method, value) = (call.method.to_string(), self.scope.value(first));
        match (method.as_str(), receiver, value) {
            ("push" | "insert" | "push_back", Value::Other, length @ Value::Length(_)) => {
                let name = last_of(&call.receiver);
                self.scope.locals.insert(name, length);
            }
            ("contains", _, Value::Length(unit)) if !is_negated => {
                let mut range = &*call.receiver;
                while let Expr::Paren(inner) = range {
                    range = &inner.expr;
                }
                if let Expr::Range(range) = range
                    && let Some(end) = &range.end
                {
                    let limit = self.scope.limit(end);
                    if self.is_short(&limit, unit) != Some(false) {
                        self.report(&["contains"], format!("contains({})", last_of(first)));
                    }
                }
            }
            (name, _, Value::Moment) if name.ends_with("duration_since") => {
                self.look_at_rest(&call.receiver, first);
            }
            _ => {}
        }
    }

    /// Returns the type that a function is called of, or nothing.
    pub(super) fn owner_of(&self, function: &Expr) -> String {
        let Expr::Path(path) = function else {
            return String::new();
        };
        let mut path = segments(&path.path);
        path.pop();
        let owner = path.pop().unwrap_or_default();
        match owner.as_str() {
            "Self" => self.owner.clone(),
            module if module.starts_with(|it: char| it.is_lowercase()) => String::new(),
            _ => owner,
        }
    }
}
