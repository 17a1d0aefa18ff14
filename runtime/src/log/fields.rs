//! The fields of an event or a span, in the order in which they were recorded.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};

/// What the crate `log` adds to its events: the field that holds the target.
const FOREIGN_TARGET: &str = "log.target";
/// What its other fields begin with; they repeat what the event's metadata say.
const FOREIGN: &str = "log.";

/// Fields by name; recorded again, a field has its last value.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    pub(super) message: String,
    /// Named by events that come from the crate `log`.
    pub(super) target: Option<String>,
    pub(super) values: Map<String, Value>,
}

// === impl Fields ===

impl Fields {
    /// Takes those fields of `outer` that are not there yet.
    pub(super) fn fill_in(&mut self, outer: &Self) {
        for (name, value) in &outer.values {
            if !self.values.contains_key(name) {
                self.values.insert(name.clone(), value.clone());
            }
        }
    }

    fn set(&mut self, field: &Field, value: Value) {
        let text = |value: Value| match value {
            Value::String(text) => text,
            value @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_)) => value.to_string(),
        };
        match field.name() {
            "message" => self.message = text(value),
            FOREIGN_TARGET => self.target = Some(text(value)),
            name if name.starts_with(FOREIGN) => {}
            name => {
                self.values.insert(name.to_owned(), value);
            }
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }
}
