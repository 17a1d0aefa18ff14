//! What an expression is of the wall clock: a moment, a deadline, or a length of time that was measured.

use std::collections::{BTreeMap, BTreeSet};

use syn::{BinOp, Block, Expr, ExprBinary, ExprCall, ExprMethodCall, Lit, Member, Pat, Stmt, UnOp};

use super::{
    finding::Finding,
    limits::{Constants, Limit},
    syntax::{arguments, is_comparison, last_of, name_of, segments},
};

#[derive(Clone, Debug)]
pub(super) enum Value {
    Other,
    /// A moment of the wall clock that was looked at.
    Moment,
    /// So long after such a moment.
    Deadline(Limit),
    /// How long something took, in a unit of so many seconds.
    Length(f64),
    /// Whether more time than this has passed.
    Late(Limit),
    /// What came of something that was given a limit, and what is found where that is short.
    Attempt(Finding, Limit),
    Tuple(Vec<Self>),
    Limit(Limit),
}

/// What is known of the functions and fields of all code for tests.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Facts {
    /// Functions that return how long something took, and fields that hold it, each with its file.
    pub(super) lengths: BTreeSet<(String, String)>,
    /// Arguments that are limits of wall time.
    pub(super) takers: BTreeSet<Taker>,
}

/// An argument of a function that is a limit of wall time.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Taker {
    /// The tier or crate of the function.
    pub(super) room: String,
    /// The type that has the function, or nothing.
    pub(super) owner: String,
    pub(super) function: String,
    pub(super) place: usize,
}

/// What names mean at a place.
pub(super) struct Scope<'a> {
    pub(super) file: &'a str,
    pub(super) facts: Facts,
    pub(super) locals: BTreeMap<String, Value>,
    constants: &'a Constants,
}

// === impl Scope ===

impl<'a> Scope<'a> {
    pub(super) fn new(file: &'a str, constants: &'a Constants) -> Self {
        Self {
            file,
            facts: Facts::default(),
            locals: BTreeMap::new(),
            constants,
        }
    }

    pub(super) fn is_length(&self, expression: &Expr) -> bool {
        matches!(self.value(expression), Value::Length(_))
    }

    /// Returns how long an expression is, if it is a limit.
    pub(super) fn limit(&self, expression: &Expr) -> Limit {
        match self.value(expression) {
            Value::Limit(limit) | Value::Deadline(limit) => limit,
            _ => Limit::Unknown,
        }
    }

    pub(super) fn value(&self, expression: &Expr) -> Value {
        match expression {
            Expr::Async(it) => self.of_block(&it.block),
            Expr::Await(it) => self.value(&it.base),
            Expr::Binary(it) => self.of_binary(it),
            Expr::Block(it) => self.of_block(&it.block),
            Expr::Call(it) => self.of_call(it),
            Expr::Cast(it) => self.value(&it.expr),
            Expr::Field(it) => match (self.value(&it.base), &it.member) {
                (Value::Tuple(parts), Member::Unnamed(at)) => parts
                    .get(at.index as usize)
                    .cloned()
                    .unwrap_or(Value::Other),
                (Value::Length(unit), Member::Unnamed(_)) => Value::Length(unit),
                (_, Member::Named(name)) => self.known_length(&format!(".{name}")),
                _ => Value::Other,
            },
            Expr::Group(it) => self.value(&it.expr),
            Expr::Index(it) => self.value(&it.expr),
            Expr::Lit(it) => match &it.lit {
                Lit::Int(number) => number.base10_parse().map_or(Value::Other, number_of),
                Lit::Float(number) => number.base10_parse().map_or(Value::Other, number_of),
                _ => Value::Other,
            },
            Expr::Macro(it) => {
                let values = arguments(&it.mac).unwrap_or_default();
                let values: Vec<_> = values.iter().map(|it| self.value(it)).collect();
                match name_of(&it.mac.path).as_str() {
                    "join" | "try_join" => Value::Tuple(values),
                    "vec" => any_length(values),
                    _ => Value::Other,
                }
            }
            Expr::Match(it) => any_length(it.arms.iter().map(|arm| self.value(&arm.body))),
            Expr::Paren(it) => self.value(&it.expr),
            Expr::Path(it) => {
                let name = name_of(&it.path);
                let local = self.locals.get(&name);
                let local = local.filter(|_| it.path.segments.len() == 1);
                local.cloned().unwrap_or_else(|| {
                    let is_of_duration = segments(&it.path).iter().any(|it| is_duration(it));
                    Value::Limit(match name.as_str() {
                        "ZERO" if is_of_duration => Limit::Seconds(0.0),
                        "MAX" if is_of_duration => Limit::Seconds(f64::INFINITY),
                        name => self.constants.get(self.file, name),
                    })
                })
            }
            Expr::Reference(it) => self.value(&it.expr),
            Expr::MethodCall(it) => self.of_method(it),
            Expr::Try(it) => self.value(&it.expr),
            Expr::Tuple(it) => Value::Tuple(it.elems.iter().map(|it| self.value(it)).collect()),
            Expr::Unary(it) if matches!(it.op, UnOp::Deref(_)) => self.value(&it.expr),
            _ => Value::Other,
        }
    }

    pub(super) fn of_block(&self, block: &Block) -> Value {
        match block.stmts.last() {
            Some(Stmt::Expr(tail, None)) => self.value(tail),
            _ => Value::Other,
        }
    }

    fn known_length(&self, name: &str) -> Value {
        let key = (self.file.to_owned(), name.to_owned());
        match self.facts.lengths.contains(&key) {
            true => Value::Length(1.0),
            false => Value::Other,
        }
    }

    fn of_binary(&self, it: &ExprBinary) -> Value {
        let (left, right) = (self.value(&it.left), self.value(&it.right));
        if is_comparison(&it.op) {
            return match (&it.op, left, right) {
                (BinOp::Ge(_) | BinOp::Gt(_), Value::Moment, Value::Deadline(limit))
                | (BinOp::Le(_) | BinOp::Lt(_), Value::Deadline(limit), Value::Moment) => {
                    Value::Late(limit)
                }
                _ => Value::Other,
            };
        }
        match (left, &it.op, right) {
            (Value::Moment, BinOp::Add(_), Value::Limit(limit)) => Value::Deadline(limit),
            (Value::Moment, BinOp::Add(_), _) => Value::Deadline(Limit::Unknown),
            (Value::Moment, BinOp::Sub(_), Value::Limit(Limit::Seconds(_))) => Value::Moment,
            (Value::Moment, BinOp::Sub(_), _) => Value::Length(1.0),
            (Value::Length(unit), ..) | (_, _, Value::Length(unit)) => Value::Length(unit),
            (Value::Limit(left), operator, Value::Limit(right)) => {
                Value::Limit(left.with(operator, &right))
            }
            _ => Value::Other,
        }
    }

    fn of_call(&self, call: &ExprCall) -> Value {
        let Expr::Path(function) = &*call.func else {
            return Value::Other;
        };
        let first = call.args.first();
        let path = segments(&function.path);
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        match (&path[..], first) {
            ([.., "Instant" | "SystemTime" | "Timestamp", "now"], None) => Value::Moment,
            ([.., owner, maker], Some(first)) if is_duration(owner) => {
                let made = match self.value(first) {
                    Value::Limit(Limit::Number(number)) => Limit::made_by(maker, number),
                    Value::Limit(Limit::Parameter(name)) => Limit::Parameter(name),
                    Value::Length(_) => return self.value(first),
                    _ => Limit::Unknown,
                };
                Value::Limit(made)
            }
            ([.., "Some" | "Ok" | "Err" | "new" | "from" | "try_from"], Some(first)) => {
                self.value(first)
            }
            ([name], _) | ([.., "Self", name], _) => self.known_length(name),
            _ => Value::Other,
        }
    }

    fn of_method(&self, call: &ExprMethodCall) -> Value {
        let method = call.method.to_string();
        let receiver = self.value(&call.receiver);
        let first = call.args.first();
        match (receiver, method.as_str(), first) {
            (_, "elapsed", None) => Value::Length(1.0),
            (Value::Moment, name, Some(first)) if name.ends_with("duration_since") => {
                match last_of(first).contains("EPOCH") {
                    true => Value::Other,
                    false => Value::Length(1.0),
                }
            }
            (Value::Moment, "checked_add", Some(first)) => Value::Deadline(self.limit(first)),
            (Value::Length(_), "is_zero" | "is_empty" | "len" | "to_string", _)
            | (Value::Length(_), "is_some" | "is_none" | "is_ok" | "is_err", _) => Value::Other,
            (Value::Length(unit), name, _) => Value::Length(unit_of(name).unwrap_or(unit)),
            (Value::Limit(limit), "saturating_add", Some(first)) => {
                let add = BinOp::Add(syn::token::Plus::default());
                Value::Limit(limit.with(&add, &self.limit(first)))
            }
            (Value::Limit(Limit::Seconds(seconds)), name, None) if unit_of(name).is_some() => {
                Value::Limit(Limit::Number(seconds / unit_of(name).unwrap_or(1.0)))
            }
            (_, name, _) if last_of(&call.receiver) == "self" => self.known_length(name),
            (value, "clone" | "into" | "unwrap" | "expect" | "cast_signed", _) => value,
            _ => Value::Other,
        }
    }

    /// Gives the names of a pattern what they stand for from here on.
    pub(super) fn bind(&mut self, pattern: &Pat, value: &Value) {
        match (pattern, value) {
            (Pat::Ident(it), _) => {
                self.locals.insert(it.ident.to_string(), value.clone());
            }
            (Pat::Guard(it), _) => self.bind(&it.pat, value),
            (Pat::Paren(it), _) => self.bind(&it.pat, value),
            (Pat::Reference(it), _) => self.bind(&it.pat, value),
            (Pat::Type(it), _) => self.bind(&it.pat, value),
            (Pat::Tuple(it), Value::Tuple(values)) => {
                for (pattern, value) in it.elems.iter().zip(values) {
                    self.bind(pattern, value);
                }
            }
            (Pat::Tuple(it), _) => it.elems.iter().for_each(|it| self.bind(it, value)),
            (Pat::TupleStruct(it), _) => it.elems.iter().for_each(|it| self.bind(it, value)),
            (Pat::Slice(it), _) => it.elems.iter().for_each(|it| self.bind(it, value)),
            _ => {}
        }
    }
}

fn is_duration(name: &str) -> bool {
    ["Duration", "SignedDuration"].contains(&name)
}

fn number_of(number: f64) -> Value {
    Value::Limit(Limit::Number(number))
}

fn any_length(values: impl IntoIterator<Item = Value>) -> Value {
    let mut values = values.into_iter();
    let length = values.find(|it| matches!(it, Value::Length(_)));
    length.unwrap_or(Value::Other)
}

/// Returns the unit in which a method tells a length, in seconds.
fn unit_of(method: &str) -> Option<f64> {
    Some(match method {
        "as_secs" | "as_secs_f64" | "as_secs_f32" => 1.0,
        "as_millis" | "subsec_millis" => 1e-3,
        "as_micros" => 1e-6,
        "as_nanos" => 1e-9,
        _ => return None,
    })
}
