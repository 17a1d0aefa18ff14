//! The fields of an event or a span, in the order of their recording.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};

use crate::escape::without_passwords;

/// The field with the target, which the crate `log` adds to its events.
const FOREIGN_TARGET: &str = "log.target";
/// The prefix of the other fields of the crate `log`. They repeat the event's metadata.
const FOREIGN: &str = "log.";

/// The maximum length of a text in a line that waits, in bytes.
const SHORT: usize = 256;

/// Fields by name. The last value of a field applies.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    pub(super) message: String,
    /// The target of an event from the crate `log`.
    pub(super) target: Option<String>,
    pub(super) values: Map<String, Value>,
}

impl Fields {
    /// Cuts long texts.
    pub(super) fn shorten(&mut self) {
        cut(&mut self.message);
        self.values.values_mut().for_each(shorten);
    }

    fn set(&mut self, field: &Field, value: Value) {
        let text = || {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        match field.name() {
            "message" => self.message = text(),
            FOREIGN_TARGET => self.target = Some(text()),
            name if name.starts_with(FOREIGN) => {}
            name => {
                self.values.insert(name.to_owned(), value);
            }
        }
    }
}

pub(super) fn shorten(value: &mut Value) {
    if let Value::String(text) = value {
        cut(text);
    }
}

fn cut(text: &mut String) {
    if text.len() > SHORT {
        text.truncate(text.floor_char_boundary(SHORT));
        text.push('…');
        text.shrink_to_fit();
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, without_passwords(value).into());
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
