//! Objects from files, in kubectl's formats: YAML of many documents or JSON, single or in lists.

mod scalar;
mod yaml;

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt, fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use thiserror::Error;

/// The kinds that an embedded cluster holds, in the order of their creation: referenced objects come first.
pub const KINDS: [&str; 5] = ["Namespace", "Node", "ResourceQuota", "ReplicaSet", "Pod"];

/// An object and its place in the files.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The place of the object.
    pub place: Location,
    /// The object.
    pub object: Value,
}

/// The place of an object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}: document {document}{}", file.display(), item.map(|item| format!(": items[{item}]")).unwrap_or_default())]
pub struct Location {
    /// The file; `-` for standard input.
    pub file: PathBuf,
    /// The document in it, from 1.
    pub document: usize,
    /// The item of a list, from 0.
    pub item: Option<usize>,
}

/// The objects of files, and what their reader should know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// The objects in their order.
    pub documents: Vec<Document>,
    /// Sentences about keys that are repeated, each with its file and line.
    pub notices: Vec<String>,
}

/// Why files cannot be used as objects of a cluster: the place, and what is wrong there.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct ManifestError(String);

/// Reads files, one after the other; lists become their items. Checks that an embedded cluster can hold the objects.
///
/// # Errors
/// Names the file, the document and the field.
#[expect(
    clippy::disallowed_methods,
    reason = "a program reads files before it has a cluster"
)]
pub fn read(files: &[PathBuf]) -> Result<Contents, ManifestError> {
    let mut all = Contents::default();
    for file in files {
        let bytes = fs::read(file).map_err(|error| {
            ManifestError::at(file.display(), format!("cannot be read: {error}"))
        })?;
        let contents = open(file, &decode(file, bytes)?)?;
        all.documents.extend(contents.documents);
        all.notices.extend(contents.notices);
    }
    check_all(&all.documents)?;
    Ok(all)
}

/// Returns the text of a file: UTF-8, or UTF-16 with a byte order mark, which PowerShell writes (k/k#39007).
///
/// # Errors
/// If the file is neither.
pub fn decode(file: &Path, bytes: Vec<u8>) -> Result<String, ManifestError> {
    let text = match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ => String::from_utf8(bytes).ok(),
    };
    let what = "is neither UTF-8 nor UTF-16 with a byte order mark";
    text.ok_or_else(|| ManifestError::at(file.display(), what))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks();
    let units = pairs.iter().map(|pair| unit(*pair));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.ok().filter(|_| rest.is_empty())
}

/// Reads the text of one file with objects of any kind; lists become their items. Skips the logs of containers that `kubectl cluster-info
/// dump` prints between lists.
///
/// As kubectl does, it reads JSON first, and what follows the first value as YAML if it is not JSON.
///
/// # Errors
/// Names the document and the value that is no object.
pub fn open(file: &Path, text: &str) -> Result<Contents, ManifestError> {
    let text = without_logs(text.trim_start_matches('\u{feff}'));
    let (mut values, fault) = json(&text);
    let mut notices = Vec::new();
    if let Some((offset, error)) = fault {
        let (before, rest) = text.split_at(offset);
        let place = |document| Location::of(file, values.len() + document);
        if values.len() > 1 {
            return Err(ManifestError::at(place(0), error));
        }
        let read = yaml::read(rest, before.matches('\n').count());
        let stream = read.map_err(|fault| {
            let is_json = rest.trim_start().starts_with("{\"");
            let detail = if is_json {
                error.to_string()
            } else {
                fault.detail
            };
            ManifestError::at(place(fault.document), detail)
        })?;
        values.extend(stream.documents);
        let notice = |notice| format!("{}: {notice}", file.display());
        notices.extend(stream.notices.into_iter().map(notice));
    }
    let mut documents = Vec::new();
    for (index, object) in values.into_iter().enumerate() {
        // There may be nothing between two markers.
        if !object.is_null() {
            let place = Location::of(file, index);
            unpack(Document { place, object }, &mut documents)?;
        }
    }
    Ok(Contents { documents, notices })
}

/// Checks that an embedded cluster can hold the kinds of these objects.
///
/// # Errors
/// Names the first object of another kind.
pub fn check_all(documents: &[Document]) -> Result<(), ManifestError> {
    documents.iter().try_for_each(check)
}

/// Creates objects in a cluster, owners before their dependents, and missing namespaces and nodes, because kubectl does not print them. The
/// cluster gives new UIDs, and references among the objects follow.
///
/// # Errors
/// Names the first object that the cluster refuses.
pub fn install(
    model: &mut crate::Cluster,
    mut documents: Vec<Document>,
) -> Result<(), ManifestError> {
    for (kind, pointer) in [
        ("Namespace", "/metadata/namespace"),
        ("Node", "/spec/nodeName"),
    ] {
        let named = documents.iter().filter_map(|it| named(it, kind, pointer));
        let named: BTreeMap<_, _> = named.collect();
        documents.extend(named.into_values());
    }
    documents.sort_by_key(|document| order(&document.object));
    let mut uids = HashMap::new();
    for Document { place, mut object } in documents {
        follow_uids(&mut object, &uids);
        let written = uid(&object).map(str::to_owned);
        forget_life(&mut object);
        if is_there(model, &object) {
            continue;
        }
        let created = model.create(object);
        let created = created.map_err(|refusal| ManifestError::at(place, refusal))?;
        if let (Some(written), Some(given)) = (written, uid(&created)) {
            uids.insert(written, given.to_owned());
        }
    }
    Ok(())
}

/// The JSON values at the beginning of a text, and the position and the error of what follows them. A text that does not begin like JSON
/// has none.
fn json(text: &str) -> (Vec<Value>, Option<(usize, serde_json::Error)>) {
    let mut values = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter();
    if !text.trim_start().starts_with(['{', '[']) {
        return (values, Some((0, serde::de::Error::custom("is not JSON"))));
    }
    while let Some(value) = stream.next() {
        match value {
            Ok(value) => values.push(value),
            Err(error) => return (values, Some((stream.byte_offset(), error))),
        }
    }
    (values, None)
}

/// The text without the logs of containers. The lines of the logs stay, empty, so that errors name the lines of the file.
fn without_logs(text: &str) -> Cow<'_, str> {
    const BEGIN: &str = "==== START logs for container ";
    const END: &str = "==== END logs for container ";
    if !text.lines().any(|line| line.starts_with(BEGIN)) {
        return text.into();
    }
    let mut kept = String::with_capacity(text.len());
    let mut is_log = false;
    for line in text.lines() {
        is_log |= line.starts_with(BEGIN);
        if !is_log {
            kept.push_str(line);
        }
        kept.push('\n');
        is_log &= !line.starts_with(END);
    }
    kept.into()
}

/// Unpacks lists, nested lists included.
fn unpack(document: Document, into: &mut Vec<Document>) -> Result<(), ManifestError> {
    let Document { place, mut object } = document;
    if let Value::Array(items) = object {
        return unpack_all(&place, items, "", into);
    }
    if !object.is_object() {
        return Err(wrong(
            &place,
            "(document)",
            "expected an object with kind and metadata",
        ));
    }
    let element = kind(&object).and_then(|kind| kind.strip_suffix("List"));
    let element = element.filter(|_| object.get("items").is_some());
    let Some(element) = element.map(str::to_owned) else {
        into.push(Document { place, object });
        return Ok(());
    };
    let items = match object.get_mut("items") {
        // Go programs print a list without items like this.
        Some(Value::Null) => return Ok(()),
        Some(Value::Array(items)) => items,
        Some(_) | None => return Err(wrong(&place, "items", "expected a list")),
    };
    unpack_all(&place, std::mem::take(items), &element, into)
}

/// Unpacks the items of a list. `element` is the kind of items that do not repeat it, or empty.
fn unpack_all(
    place: &Location,
    items: Vec<Value>,
    element: &str,
    into: &mut Vec<Document>,
) -> Result<(), ManifestError> {
    for (index, mut item) in items.into_iter().enumerate() {
        if let Some(fields) = item.as_object_mut().filter(|_| !element.is_empty()) {
            fields.entry("kind").or_insert_with(|| element.into());
        }
        let item = Document {
            place: Location {
                item: Some(index),
                ..place.clone()
            },
            object: item,
        };
        unpack(item, into)?;
    }
    Ok(())
}

fn check(Document { place, object }: &Document) -> Result<(), ManifestError> {
    let Some(kind) = kind(object) else {
        return Err(wrong(place, "kind", "is required"));
    };
    if !KINDS.contains(&kind) {
        let detail = format!("{kind:?} is not one of {}", KINDS.join(", "));
        return Err(wrong(place, "kind", detail));
    }
    match object.pointer("/metadata/name") {
        Some(Value::String(_)) => Ok(()),
        Some(_) => Err(wrong(place, "metadata.name", "expected a string")),
        None => Err(wrong(place, "metadata.name", "is required")),
    }
}

impl Document {
    /// Returns the kind. Objects of API lists do not state their kind, so the fields tell.
    ///
    /// # Errors
    /// The object has none.
    pub fn kind(&self) -> Result<&str, ManifestError> {
        let Self { place, object } = self;
        match object.get("kind") {
            Some(Value::String(kind)) => Ok(kind),
            None if object.pointer("/spec/template").is_some() => Ok("ReplicaSet"),
            None if object.pointer("/spec/containers").is_some() => Ok("Pod"),
            None => Err(wrong(place, "kind", "is required")),
            Some(_) => Err(wrong(place, "kind", "expected a string")),
        }
    }
}

impl ManifestError {
    fn at(place: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self(format!("{place}: {what}"))
    }
}

impl Location {
    /// The document of a file at this place, from 0.
    fn of(file: &Path, index: usize) -> Self {
        Self {
            file: file.to_owned(),
            document: index + 1,
            item: None,
        }
    }
}

fn wrong(place: &Location, field: &str, detail: impl fmt::Display) -> ManifestError {
    ManifestError::at(place, format!("{field}: {detail}"))
}

fn order(object: &Value) -> Option<usize> {
    KINDS.iter().position(|known| Some(*known) == kind(object))
}

fn kind(object: &Value) -> Option<&str> {
    object.get("kind").and_then(Value::as_str)
}

/// The namespace or the node that an object names, by its name.
fn named(
    Document { place, object }: &Document,
    kind: &str,
    pointer: &str,
) -> Option<(String, Document)> {
    let name = object.pointer(pointer)?.as_str()?;
    let name = Some(name).filter(|name| !name.is_empty())?;
    let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
    let place = place.clone();
    Some((name.to_owned(), Document { place, object }))
}

/// True if the cluster has the object, which all may need.
fn is_there(model: &crate::Cluster, object: &Value) -> bool {
    let kind = kind(object).and_then(crate::Kind::parse);
    let kind = kind.filter(|kind| !kind.is_namespaced());
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    kind.zip(name)
        .is_some_and(|(kind, name)| model.peek(kind, "", name).is_some())
}

fn follow_uids(object: &mut Value, uids: &HashMap<String, String>) {
    let owners = object
        .pointer_mut("/metadata/ownerReferences")
        .and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        let uid = owner.get("uid").and_then(Value::as_str);
        if let Some(given) = uid.and_then(|uid| uids.get(uid)) {
            owner["uid"] = given.as_str().into();
        }
    }
}

/// Removes the fields that a cluster gives to an object: the new cluster gives its own.
fn forget_life(object: &mut Value) {
    const GIVEN: [&str; 8] = [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    ];
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !GIVEN.contains(&field.as_str()));
    }
}

fn uid(object: &Value) -> Option<&str> {
    object.pointer("/metadata/uid").and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
