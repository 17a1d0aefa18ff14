//! Templates of JSONPath, as kubectl takes them after `-o jsonpath=`: text, and in braces paths, quoted text, and `range … end`.
//!
//! The paths are RFC 9535 without the leading `$`, and the spelling of kubectl is converted: names with dashes, and escaped dots.

use std::str::FromStr;

use serde_json::Value;
use serde_json_path::JsonPath;

#[derive(Clone, Debug)]
pub(crate) struct Template(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Path(JsonPath),
    /// The parts until `{end}`, for each value of the path.
    Range(JsonPath, Vec<Self>),
}

// === impl Template ===

impl Template {
    /// The text of the template for a value: several values of one path are joined with a space, as in kubectl. A path without a
    /// value renders as nothing.
    pub(crate) fn render(&self, value: &Value) -> String {
        let mut text = String::new();
        render(&self.0, value, &mut text);
        text
    }
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // kubectl also takes a path without braces.
        let braced = format!("{{{text}}}");
        let text = if text.contains('{') { text } else { &braced };
        let mut rest = text;
        Ok(Self(parts(&mut rest, false)?))
    }
}

fn render(parts: &[Part], value: &Value, text: &mut String) {
    for part in parts {
        match part {
            Part::Text(literal) => text.push_str(literal),
            Part::Path(path) => {
                let found = path.query(value).all().into_iter().map(plain);
                text.push_str(&found.collect::<Vec<_>>().join(" "));
            }
            Part::Range(path, parts) => {
                for each in path.query(value).all() {
                    render(parts, each, text);
                }
            }
        }
    }
}

/// Strings without quotes and line by line, everything else as JSON.
fn plain(value: &Value) -> String {
    match value.as_str() {
        Some(text) => {
            let lines: Vec<_> = text.split('\n').map(runtime::escaped).collect();
            lines.join("\n")
        }
        None => runtime::escaped_json(&value.to_string()).into_owned(),
    }
}

/// The position after the character that closes the first one; characters in quotes do not count.
fn closed(text: &str, opening: char, closing: char) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    text.char_indices().find_map(|(at, letter)| {
        match (quote, letter) {
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, _) if letter == opening => depth += 1,
            (None, _) if letter == closing => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at + 1)
    })
}

/// Reads the parts up to the end, or up to `{end}`, and takes them off the text.
fn parts(text: &mut &str, in_range: bool) -> Result<Vec<Part>, String> {
    let mut found = Vec::new();
    while !text.is_empty() {
        let (before, braced) = text.split_at(text.find('{').unwrap_or(text.len()));
        if !before.is_empty() {
            found.push(Part::Text(before.to_owned()));
        }
        *text = braced;
        if braced.is_empty() {
            break;
        }
        let end = closed(braced, '{', '}');
        let end = end.ok_or_else(|| format!("{braced} lacks a closing brace"))?;
        *text = &braced[end..];
        let expression = braced[1..end - 1].trim();
        if expression == "end" {
            return if in_range {
                Ok(found)
            } else {
                Err("{end} has no {range …} before it".to_owned())
            };
        }
        found.push(match expression.strip_prefix("range ") {
            Some(over) => {
                let over = path(over)?;
                Part::Range(over, parts(text, true)?)
            }
            None if expression.starts_with(['"', '\'']) => Part::Text(quoted(expression)?),
            None => Part::Path(path(expression)?),
        });
    }
    if in_range {
        Err("{range …} lacks an {end}".to_owned())
    } else {
        Ok(found)
    }
}

/// Reads quoted text with the escapes of kubectl.
fn quoted(expression: &str) -> Result<String, String> {
    let inner = ['"', '\''].into_iter().find_map(|quote| {
        expression
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
    });
    let inner = inner.ok_or_else(|| format!("{expression} lacks a closing quote"))?;
    let known = [("\\n", "\n"), ("\\t", "\t"), ("\\\"", "\""), ("\\\\", "\\")];
    Ok(known
        .iter()
        .fold(inner.to_owned(), |text, (from, to)| text.replace(from, to)))
}

/// Reads a path: `.a.b-c[0]`, `['a']`, `[*]`, `..a`, `[?(@.a=="b")]`, `@`.
fn path(expression: &str) -> Result<JsonPath, String> {
    let text = expression.trim();
    let text = text.strip_prefix(['$', '@']).unwrap_or(text);
    let text = if text.is_empty() || text.starts_with(['.', '[']) {
        rfc9535(text)
    } else {
        rfc9535(&format!(".{text}"))
    };
    JsonPath::parse(&text).map_err(|error| format!("{{{expression}}} is no path: {error}"))
}

/// Converts each name after a dot to a name in brackets.
fn rfc9535(path: &str) -> String {
    let mut text = "$".to_owned();
    let mut rest = path;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        if letter == '[' {
            let end = closed(rest, '[', ']').unwrap_or(rest.len());
            text.push_str(&rest[..end]);
            rest = &rest[end..];
        } else if letter == '.' && after.starts_with(['[', '*']) {
            let is_all = after.starts_with('*');
            text.push_str(if is_all { "[*]" } else { "" });
            rest = &after[usize::from(is_all)..];
        } else if letter == '.' && after.starts_with('.') {
            text.push_str("..");
            // The remaining dot begins a name, and is dropped before a bracket or a star.
            rest = after;
        } else {
            let (name, remains) = name(if letter == '.' { after } else { rest });
            text.push_str(&format!("['{}']", name.replace('\'', "\\'")));
            rest = remains;
        }
    }
    text
}

/// Splits off a name, in which dots may be escaped.
fn name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '.' | '[' => return (name, &text[at..]),
            '\\' => name.extend(letters.next().map(|(_, escaped)| escaped)),
            _ => name.push(letter),
        }
    }
    (name, "")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(template: &str) -> String {
        let value = json!({"items": [
            {"name": "a", "replicas": 2, "labels": {"app.io/tier": "x", "b-c": "y"}},
            {"name": "b", "replicas": 3, "labels": {}},
        ]});
        let template = template.parse::<Template>();
        template.map_or_else(|error| error, |template| template.render(&value))
    }

    #[test]
    fn templates_read_as_in_kubectl() {
        for (template, expected) in [
            ("{.items[*].name}", "a b"),
            ("{.items[0].replicas}", "2"),
            (".items[1].name", "b"),
            ("{items[-1:].name}", "b"),
            ("{$.items[0]['name']}", "a"),
            ("{.items[0].labels.app\\.io/tier}", "x"),
            ("{.items[0].labels.b-c}", "y"),
            ("{..name}", "a b"),
            ("{.items..[0].name}", "a"),
            ("{.items[0].labels..*}", "x y"),
            ("{.items[?(@.replicas==3)].name}", "b"),
            ("{.items[?(@.name==\"a\")].replicas}", "2"),
            ("{.items[0].labels.*}", "x y"),
            ("{.items[0].absent}", ""),
            ("<{.items[0].name}>", "<a>"),
            (
                "{range .items[*]}{.name}{\"\\t\"}{.replicas}{'\\n'}{end}",
                "a\t2\nb\t3\n",
            ),
        ] {
            assert_eq!(render(template), expected, "{template}");
        }
    }

    #[test]
    fn templates_that_cannot_be_read_say_why() {
        for (bad, why) in [
            ("{.items", "closing brace"),
            ("{end}", "no {range"),
            ("{range .items[*]}{.name}", "lacks an {end}"),
            ("{.items[}", "is no path"),
            ("{\"a}", "closing"),
        ] {
            let said = render(bad);
            assert!(said.contains(why), "{bad}: {said}");
        }
    }
}
