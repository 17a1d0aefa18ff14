//! The fields of each object that a server refuses, so that it would know nothing of the object.

use std::collections::HashMap;

use crate::{history::Fault, score::FIELDS};

/// Checks what names an object, and its labels.
pub(crate) fn check_fields(
    [namespace, name, uid]: [&str; 3],
    labels: &HashMap<String, String>,
) -> Option<Fault> {
    let is_pair = |(key, value): (&String, &String)| is_label_key(key) && is_label_value(value);
    let is_right = is_dns_label(namespace)
        && namespace.len() <= 63
        && is_subdomain(name)
        && is_uid(uid)
        && labels.iter().all(is_pair);
    (!is_right).then(|| {
        let why = format!("{namespace:?}, {name:?}, {uid:?} and the labels {labels:?}");
        (FIELDS, why)
    })
}

fn is_uid(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label)
}

fn is_dns_label(text: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_framed(text, is_edge, b"-")
}

fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        None => is_label_name(text),
        Some((prefix, name)) => is_subdomain(prefix) && is_label_name(name),
    }
}

fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_label_name(text)
}

fn is_label_name(text: &str) -> bool {
    text.len() <= 63 && is_framed(text, |byte| byte.is_ascii_alphanumeric(), b"-_.")
}

/// Whether a text is not empty, and has these letters at both ends, and some further ones between them.
fn is_framed(text: &str, is_edge: impl Fn(u8) -> bool, inner: &[u8]) -> bool {
    let (first, last) = (text.bytes().next(), text.bytes().next_back());
    [first, last]
        .into_iter()
        .all(|end| end.is_some_and(&is_edge))
        && text
            .bytes()
            .all(|byte| is_edge(byte) || inner.contains(&byte))
}
