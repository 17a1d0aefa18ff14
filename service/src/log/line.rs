//! The format of a line.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::{Event, Level, callsite::Identifier};

use super::fields::{Fields, shorten};
use crate::escape::{escaped, escaped_json};

const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineStyle {
    /// For people.
    Pretty {
        /// Whether the terminal shows colors.
        color: bool,
    },
    /// For programs.
    Json,
}

#[derive(Debug)]
pub(super) struct Line {
    pub(super) time: Timestamp,
    pub(super) level: Level,
    /// The place in the code.
    pub(super) callsite: Identifier,
    target: &'static str,
    own: Fields,
    /// The fields of the spans around the event.
    around: Map<String, Value>,
    /// The number of lines that were left out before this one.
    pub(super) omitted: u64,
}

impl Line {
    pub(super) fn of(event: &Event<'_>, around: Map<String, Value>) -> Self {
        let mut own = Fields::default();
        event.record(&mut own);
        let metadata = event.metadata();
        Self {
            time: Timestamp::now(),
            level: *metadata.level(),
            callsite: metadata.callsite(),
            target: metadata.target(),
            own,
            around,
            omitted: 0,
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        let value = self.own.values.get(name).or_else(|| self.around.get(name));
        value.and_then(Value::as_str).map(str::to_owned)
    }

    /// The line with short texts, for a line that waits.
    pub(super) fn shortened(mut self) -> Self {
        self.own.shorten();
        for value in self.around.values_mut() {
            shorten(value);
        }
        self
    }

    /// The line with its line break.
    pub(super) fn written(mut self, shape: LineStyle) -> String {
        if self.omitted > 0 {
            let omitted = self.omitted.into();
            self.own.values.insert("omitted".to_owned(), omitted);
        }
        match shape {
            LineStyle::Pretty { color } => self.pretty(color),
            LineStyle::Json => self.json(),
        }
    }

    fn json(self) -> String {
        let Self {
            time,
            level,
            target,
            own,
            around,
            ..
        } = self;
        let target = own.target.as_deref().unwrap_or(target);
        let time = format!("{time:.6}");
        let head = [
            ("timestamp", time.as_str()),
            ("level", level.as_str()),
            ("target", target),
            ("message", &own.message),
        ];
        let head = head.map(|(name, text)| (name.to_owned(), text.into()));
        let mut line = Map::from_iter(head);
        for (name, value) in own.values.into_iter().chain(around) {
            line.entry(name).or_insert(value);
        }
        let text = Value::Object(line).to_string();
        format!("{}\n", escaped_json(&text))
    }

    fn pretty(self, color: bool) -> String {
        let (paint, dim, plain) = if color {
            (paint(self.level), DIM, PLAIN)
        } else {
            ("", "", "")
        };
        let (time, level) = (format!("{:.3}", self.time), self.level.as_str());
        let time = time.split_once('T').map_or(&*time, |(_, time)| time);
        let message = escaped(&self.own.message);
        let mut text = format!("{dim}{time}{plain} {paint}{level:>5}{plain} {message}");
        for (name, value) in &self.own.values {
            // Writing to a string cannot fail.
            let _ = write!(text, " {dim}{name}={plain}{}", shown(value));
        }
        let known = |name: &String| self.own.values.contains_key(name);
        let around = self.around.iter().filter(|(name, value)| {
            let is_empty = value.as_str() == Some("");
            !is_empty && !known(name)
        });
        for (name, value) in around {
            let _ = write!(text, " {dim}{name}={}{plain}", shown(value));
        }
        text.push('\n');
        text
    }
}

const fn paint(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\u{1b}[31m",
        Level::WARN => "\u{1b}[33m",
        Level::INFO => "\u{1b}[32m",
        Level::DEBUG => "\u{1b}[34m",
        Level::TRACE => "\u{1b}[35m",
    }
}

/// A value, in quotes if it has spaces or quotes, so that its end is visible.
fn shown(value: &Value) -> String {
    let Value::String(text) = value else {
        return value.to_string();
    };
    let text = escaped(text);
    let is_word = !text.is_empty() && !text.contains([' ', '"', '=']);
    if is_word {
        text
    } else {
        format!("\"{}\"", text.replace('"', "\\\""))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tracing::{Metadata, callsite::Callsite, subscriber::Interest};

    use super::*;

    struct Nowhere;

    impl Callsite for Nowhere {
        fn set_interest(&self, _: Interest) {}

        fn metadata(&self) -> &Metadata<'_> {
            unreachable!("nobody asks")
        }
    }

    fn line() -> Line {
        let object = |values: Value| values.as_object().expect("an object").clone();
        Line {
            time: "2026-05-01T12:00:00.123456Z".parse().expect("a time"),
            level: Level::INFO,
            callsite: Identifier(&Nowhere),
            omitted: 0,
            target: "decree_server::session",
            own: Fields {
                message: "session\u{1b}[2J opened\n".to_owned(),
                target: None,
                values: object(json!({"agent": "a b", "count": 3, "epoch": 2})),
            },
            around: object(json!({"session": "s1", "shard": "", "epoch": 1})),
        }
    }

    #[test]
    fn json_has_every_field_once_at_the_top_level() {
        assert_eq!(
            line().written(LineStyle::Json),
            "{\"timestamp\":\"2026-05-01T12:00:00.123456Z\",\"level\":\"INFO\",\"target\":\"decree_server::session\",\
             \"message\":\"session\\u001b[2J opened\\n\",\"agent\":\"a b\",\"count\":3,\"epoch\":2,\"session\":\"s1\",\"shard\":\"\"}\n"
        );
    }

    #[test]
    fn pretty_line_begins_with_time_and_level_and_is_one_line_of_harmless_characters() {
        assert_eq!(
            line().written(LineStyle::Pretty { color: false }),
            "12:00:00.123Z  INFO session\\u{1b}[2J opened\\n agent=\"a b\" count=3 epoch=2 session=s1\n"
        );
    }
}
