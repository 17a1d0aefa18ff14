//! The format of a line.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::{Event, Level};

use super::fields::Fields;

const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// The format of lines.
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

/// The content of a line.
#[derive(Debug)]
pub(super) struct Line<'a> {
    time: Timestamp,
    level: Level,
    target: &'a str,
    own: Fields,
    /// The fields of the spans around the event.
    around: Map<String, Value>,
}

/// Escapes a text of foreign origin, so that a terminal can show it safely. Nothing in the result moves the cursor, begins a line,
/// changes the text direction, or is invisible.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            it if it.is_control() || is_formatting(it) => escaped.extend(it.escape_default()),
            it => escaped.push(it),
        }
    }
    escaped
}

/// The first 1 KiB of a text of foreign origin, [escaped], for a place with little space.
#[must_use]
pub fn excerpt(text: &str) -> String {
    const BYTES_MAX: usize = 1024;
    match text.floor_char_boundary(BYTES_MAX) {
        end if end < text.len() => format!("{}…", escaped(&text[..end])),
        _ => escaped(text),
    }
}

/// Whether a character separates lines, changes the text direction, or is invisible: the format characters and the line and paragraph
/// separators of Unicode, except those that names and messages need.
const fn is_formatting(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

// === impl Line ===

impl<'a> Line<'a> {
    pub(super) fn of(event: &Event<'a>, around: Map<String, Value>) -> Self {
        let mut own = Fields::default();
        event.record(&mut own);
        Self {
            time: Timestamp::now(),
            level: *event.metadata().level(),
            target: event.metadata().target(),
            own,
            around,
        }
    }

    /// The line with its line break.
    pub(super) fn written(self, shape: LineStyle) -> String {
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
        let mut text = Value::Object(line).to_string();
        text.push('\n');
        text
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

    use super::*;

    fn line() -> Line<'static> {
        let object = |values: Value| values.as_object().expect("an object").clone();
        Line {
            time: "2026-05-01T12:00:00.123456Z".parse().expect("a time"),
            level: Level::INFO,
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

    #[test]
    fn excerpt_is_short_and_escaped() {
        assert_eq!(excerpt("a\nb"), "a\\nb");
        let (whole, long) = ("ö".repeat(512), "ö".repeat(513));
        assert_eq!(excerpt(&whole), whole);
        assert_eq!(excerpt(&long), format!("{whole}…"));
    }

    #[test]
    fn escaped_text_turns_no_direction_and_clears_no_screen() {
        assert_eq!(escaped("a\u{202e}b\u{9b}2J\r"), "a\\u{202e}b\\u{9b}2J\\r");
        assert_eq!(escaped("a\u{200b}b\u{e0041}"), "a\\u{200b}b\\u{e0041}");
        assert_eq!(escaped("größer 東京 \"x\""), "größer 東京 \"x\"");
    }
}
