//! Texts of foreign origin, as a terminal or a log can show them.

use std::{borrow::Cow, fmt::Write as _};

/// Escapes a text of foreign origin, so that a terminal can show it safely. Nothing in the result moves the cursor, begins a line,
/// changes the text direction, or is invisible. URLs lose user and password.
pub fn escaped(text: &str) -> String {
    let escape = |it: char, text: &mut String| text.extend(it.escape_default());
    escaped_where(
        &without_passwords(text, char::is_whitespace),
        steers,
        escape,
    )
    .into_owned()
}

/// The first 1 KiB of a text of foreign origin, [escaped], for a place with little space.
pub fn excerpt(text: &str) -> String {
    const BYTES_MAX: usize = 1024;
    match text.floor_char_boundary(BYTES_MAX) {
        end if end < text.len() => format!("{}…", escaped(&text[..end])),
        _ => escaped(text),
    }
}

/// Escapes the characters in JSON that [`escaped`] escapes, as JSON does. The line breaks between values stay, and so does the meaning.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    // JSON escapes these control characters in strings itself, and uses some of them between values.
    let is_left = |it: char| steers(it) && it > '\u{1f}';
    escaped_where(json, is_left, |it, text| {
        for unit in it.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\u{unit:04x}");
        }
    })
}

/// Hides user and password of each URL in the texts of JSON. A quotation mark that is not escaped ends a text.
pub(crate) fn json_without_passwords(json: &str) -> Cow<'_, str> {
    let mut is_escaped = false;
    without_passwords(json, |it| {
        let is_end = it.is_whitespace() || (it == '"' && !is_escaped);
        is_escaped = it == '\\' && !is_escaped;
        is_end
    })
}

/// Hides user and password of each URL in a text, whose words end as `is_end` says.
fn without_passwords(text: &str, is_end: impl FnMut(char) -> bool) -> Cow<'_, str> {
    if !text.contains("://") || !text.contains('@') {
        return text.into();
    }
    let words = text.split_inclusive(is_end).map(|word| {
        // A password may contain any other character, and only an `@` ends it.
        let url = word.split_once("://").and_then(|(scheme, rest)| {
            let (_, host) = rest.rsplit_once('@')?;
            Some(format!("{scheme}://…@{host}"))
        });
        url.unwrap_or_else(|| word.to_owned())
    });
    words.collect::<String>().into()
}

fn escaped_where(
    text: &str,
    is_escaped: impl Fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_escaped(character) {
            escape(character, &mut escaped);
        } else {
            escaped.push(character);
        }
    }
    escaped.into()
}

/// Whether a character steers a terminal, separates lines, changes the text direction, or is invisible: the control characters, the format
/// characters and the line and paragraph separators of Unicode, except those that names and messages need.
fn steers(character: char) -> bool {
    character.is_control()
        || matches!(
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn escaped_json_means_the_same() {
        let text = "\u{1b}[2J \u{9b}2J \u{7f} \u{202e} \u{2028} \u{feff} \u{e0041} ö 東京 \" \\";
        let json = serde_json::to_string_pretty(&[text]).expect("it is JSON");
        let escaped = escaped_json(&json);
        assert!(
            escaped.chars().all(|it| it == '\n' || !steers(it)),
            "{escaped}"
        );
        let read: Vec<String> = serde_json::from_str(&escaped).expect("it is JSON");
        assert_eq!(read, [text]);
        assert!(matches!(escaped_json("[\n\t\"ö\"]"), Cow::Borrowed(_)));
    }

    #[test]
    fn urls_lose_their_passwords() {
        for (text, shown) in [
            (
                "http://me:secret@host:1/x is away",
                "http://…@host:1/x is away",
            ),
            ("(https://me:se/cr@et@host)", "(https://…@host)"),
            (
                "a socks5://me@b and http://c",
                "a socks5://…@b and http://c",
            ),
            ("http://host/path me@host", "http://host/path me@host"),
            ("http://me:se\"cr@et@host", "http://…@host"),
            ("spiffe://domain/path", "spiffe://domain/path"),
        ] {
            assert_eq!(escaped(text), shown);
            let json = serde_json::to_string(&[text, "http://g@h"]).expect("it is JSON");
            let read: [String; 2] =
                serde_json::from_str(&json_without_passwords(&json)).expect("it is JSON");
            assert_eq!(read, [shown, "http://…@h"]);
        }
    }
}
