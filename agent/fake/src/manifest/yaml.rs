//! YAML of many documents, with the values that kubectl reads.
//!
//! The parser is one of YAML 1.2, and kubectl's of YAML 1.1. They differ in the values of plain scalars ([`resolve`]), and in three characters
//! that are line breaks only in YAML 1.1.

use std::{borrow::Cow, collections::HashMap};

use granit_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Value};

use super::scalar::resolve;

/// The maximum number of values that the anchors and aliases of a file expand to.
const EXPANDED_MAX: usize = 1_000_000;
/// The length from which a text counts as more than one value: texts are most of the memory of a file with long ones.
const TEXT_BYTES: usize = 64;
/// The maximum number of notices about a file.
const NOTICES_MAX: usize = 10;

/// The documents of a stream, and what a reader should know about them.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) documents: Vec<Value>,
    pub(super) notices: Vec<String>,
}

/// Why a stream cannot be read.
#[derive(Debug)]
pub(super) struct Unreadable {
    /// The document, from 0.
    pub(super) document: usize,
    pub(super) detail: String,
}

/// A collection whose end has not been reached.
enum Open {
    Sequence(Vec<Value>),
    Mapping {
        fields: Map<String, Value>,
        key: Option<Key>,
    },
}

enum Key {
    Field(String),
    /// `<<`: the fields of the value are those of this mapping.
    Merge,
}

/// What is known of the document that is read.
#[derive(Default)]
struct Loader {
    stream: Stream,
    /// The open collections with their anchors; 0 is none.
    open: Vec<(usize, Open)>,
    anchors: HashMap<usize, Value>,
    expanded: usize,
    root: Value,
}

/// Reads all documents of a text that begins after `lines_before` lines of its file.
pub(super) fn read(text: &str, lines_before: usize) -> Result<Stream, Unreadable> {
    const BREAKS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];
    let text: Cow<'_, str> = if text.contains(BREAKS) {
        text.replace(BREAKS, "\n").into()
    } else {
        text.into()
    };
    let mut loader = Loader::default();
    for event in Parser::new_from_str(&text) {
        let (line, read) = match event {
            Ok((event, span)) => {
                let line = lines_before + span.start.line();
                (line, loader.take(event, line))
            }
            Err(error) => (lines_before + error.marker().line(), Err(error.info())),
        };
        read.map_err(|detail| Unreadable {
            document: loader.stream.documents.len(),
            detail: format!("line {line}: {detail}"),
        })?;
    }
    Ok(loader.stream)
}

impl Loader {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), String> {
        match event {
            Event::DocumentStart(..) => {
                self.anchors.clear();
                self.root = Value::Null;
            }
            Event::DocumentEnd => self.stream.documents.push(std::mem::take(&mut self.root)),
            Event::SequenceStart(_, anchor, _) => {
                self.open.push((anchor, Open::Sequence(Vec::new())));
            }
            Event::MappingStart(_, anchor, _) => {
                let (fields, key) = (Map::new(), None);
                self.open.push((anchor, Open::Mapping { fields, key }));
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (anchor, value) = match self.open.pop() {
                    Some((anchor, Open::Sequence(items))) => (anchor, Value::Array(items)),
                    Some((anchor, Open::Mapping { fields, .. })) => (anchor, Value::Object(fields)),
                    None => return Ok(()),
                };
                self.put(anchor, value, line)?;
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = style == ScalarStyle::Plain;
                if is_plain && tag.is_none() && text == "<<" && self.take_merge() {
                    return Ok(());
                }
                let value = scalar(&text, is_plain, tag.as_deref())?;
                self.put(anchor, value, line)?;
            }
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned();
                let value = value.ok_or("an alias within its own anchor")?;
                self.expand(&value)?;
                self.put(0, value, line)?;
            }
            Event::StreamStart | Event::StreamEnd | _ => {}
        }
        Ok(())
    }

    /// Whether `<<` is the key of a mapping.
    fn take_merge(&mut self) -> bool {
        match self.open.last_mut() {
            Some((_, Open::Mapping { key, .. })) if key.is_none() => {
                *key = Some(Key::Merge);
                true
            }
            _ => false,
        }
    }

    /// Puts a complete value into the collection around it.
    fn put(&mut self, anchor: usize, value: Value, line: usize) -> Result<(), String> {
        if anchor != 0 {
            self.expand(&value)?;
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut().map(|(_, open)| open) {
            None => self.root = value,
            Some(Open::Sequence(items)) => items.push(value),
            Some(Open::Mapping { fields, key }) => match key.take() {
                Some(Key::Field(name)) => {
                    fields.insert(name, value);
                }
                Some(Key::Merge) => merge(fields, value)?,
                None => {
                    let name = name(value)?;
                    if fields.contains_key(&name) && self.stream.notices.len() < NOTICES_MAX {
                        let notice = "is repeated; the last value counts";
                        let notice = format!("line {line}: {name:?} {notice}");
                        self.stream.notices.push(notice);
                    }
                    *key = Some(Key::Field(name));
                }
            },
        }
        Ok(())
    }

    fn expand(&mut self, value: &Value) -> Result<(), String> {
        self.expanded += count(value);
        if self.expanded > EXPANDED_MAX {
            return Err(format!(
                "anchors and aliases expand to more than {EXPANDED_MAX} values"
            ));
        }
        Ok(())
    }
}

/// The value of a scalar. An unknown tag, such as `!!binary`, leaves the text as it is.
fn scalar(text: &str, is_plain: bool, tag: Option<&Tag>) -> Result<Value, String> {
    let Some(tag) = tag else {
        return if is_plain {
            resolve(text)
        } else {
            Ok(text.into())
        };
    };
    let tag = tag.core_suffix().unwrap_or_default();
    let value = match tag {
        "bool" | "float" | "int" | "null" => resolve(text)?,
        _ => return Ok(text.into()),
    };
    let fits = match tag {
        "bool" => value.is_boolean(),
        "null" => value.is_null(),
        "int" => value.is_i64() || value.is_u64(),
        _ => value.is_number(),
    };
    fits.then_some(value)
        .ok_or_else(|| format!("{text:?} is not of type {tag}"))
}

/// The name of a field. JSON has only texts as names.
fn name(key: Value) -> Result<String, String> {
    match key {
        Value::String(name) => Ok(name),
        Value::Bool(_) | Value::Number(_) => Ok(key.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(format!("the key {key} of a mapping must be a string"))
        }
    }
}

/// Adds the fields of a mapping, or of several of which the first counts most.
fn merge(fields: &mut Map<String, Value>, value: Value) -> Result<(), String> {
    let mappings = if let Value::Array(mappings) = value {
        mappings
    } else {
        vec![value]
    };
    for mapping in mappings.into_iter().rev() {
        let Value::Object(more) = mapping else {
            return Err("the value of << must be a mapping, or a list of them".to_owned());
        };
        fields.extend(more);
    }
    Ok(())
}

/// The number of values in a value, itself included. A long text counts as several.
fn count(value: &Value) -> usize {
    let more = |text: &str| text.len() / TEXT_BYTES;
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => {
            let sizes = fields.iter().map(|(name, it)| more(name) + count(it));
            sizes.sum()
        }
        Value::String(text) => more(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
