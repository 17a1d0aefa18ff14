//! YAML of many documents.

use granit_parser::{Event, Parser, ScalarStyle};
use serde_json::Value;

/// The documents of a stream, each with its value or its error.
pub(super) fn documents(text: &str) -> impl Iterator<Item = Result<Value, String>> {
    split_yaml(text)
        .into_iter()
        .map(|(lines_before, document)| {
            parse_document(&document).map_err(|error| {
                let shown = serde_saphyr::render_options! { line_offset: lines_before };
                error.render_with_options(shown)
            })
        })
}

fn parse_document(document: &str) -> Result<Value, serde_saphyr::Error> {
    // The file is its user's own, so only its size bounds the work.
    let options = serde_saphyr::options! { budget: None, with_snippet: false };
    let parse = |text| serde_saphyr::from_str_with_options::<Value>(text, options.clone());
    let refused = match parse(document) {
        Err(error)
            if matches!(
                error.without_snippet(),
                serde_saphyr::Error::NonFiniteFloat { .. }
            ) =>
        {
            error
        }
        parsed => return parsed,
    };
    match quote_beyond_f64(document) {
        Some(quoted) => parse(&quoted),
        None => Err(refused),
    }
}

/// Quotes plain scalars that would be numbers beyond an `f64`, such as the commit `12e45678`. kubectl leaves them unquoted and reads them
/// as strings, since Go cannot parse them as numbers (helm/helm#6921). `None` if the document is not YAML.
fn quote_beyond_f64(document: &str) -> Option<String> {
    let mut quoted = String::with_capacity(document.len() + 64);
    let mut done = 0;
    for event in Parser::new_from_str(document) {
        let (event, span) = event.ok()?;
        let Event::Scalar(text, ScalarStyle::Plain, _, None) = event else {
            continue;
        };
        if !is_beyond_f64(&text) {
            continue;
        }
        let range = span.byte_range()?;
        quoted.push_str(document.get(done..range.start)?);
        quoted.push('"');
        quoted.push_str(document.get(range.clone())?);
        quoted.push('"');
        done = range.end;
    }
    quoted.push_str(document.get(done..)?);
    Some(quoted)
}

fn is_beyond_f64(text: &str) -> bool {
    text.contains(|letter: char| letter.is_ascii_digit())
        && text.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// Splits a stream at its document markers, which YAML allows nowhere else at the start of a line. Each document has the number of lines
/// before it. The text before the first marker is a document if it has content.
fn split_yaml(text: &str) -> Vec<(u64, String)> {
    let mut documents = vec![(0, String::new())];
    for (number, line) in (0..).zip(text.lines()) {
        let rest = line.strip_prefix("---");
        if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t'])) {
            documents.push((number, rest.to_owned()));
        } else if let Some((_, document)) = documents.last_mut() {
            document.push_str(line);
        }
        if let Some((_, document)) = documents.last_mut() {
            document.push('\n');
        }
    }
    // Directives, such as `%YAML 1.2`, precede a marker.
    let says_nothing = |line: &str| {
        line.trim().is_empty() || line.trim_start().starts_with('#') || line.starts_with('%')
    };
    if documents.len() > 1 && documents[0].1.lines().all(says_nothing) {
        documents.remove(0);
    }
    documents
}
