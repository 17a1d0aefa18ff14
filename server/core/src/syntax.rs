//! The Kubernetes syntax of names and labels, and the quoting of texts that violate it.

use std::borrow::Cow;

/// The longest DNS-1123 subdomain, in bytes.
const SUBDOMAIN_MAX: usize = 253;

/// The longest name part of a label key, and the longest label value, in bytes.
const LABEL_NAME_MAX: usize = 63;

/// The maximum length of an invalid text in a message.
const QUOTED_MAX: usize = 80;

/// Whether `text` is an optional DNS-1123 subdomain and a slash, then a label name.
pub fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        None => is_label_name(text),
        Some((prefix, name)) => is_subdomain(prefix.as_bytes()) && is_label_name(name),
    }
}

/// Whether `text` is a valid label value.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_label_name(text)
}

/// Whether `text` is a DNS-1123 subdomain: DNS labels, joined by dots.
///
/// A part may be longer than 63 bytes: upstream limits only the whole.
pub fn is_subdomain(text: &[u8]) -> bool {
    text.len() <= SUBDOMAIN_MAX && text.split(|byte| *byte == b'.').all(is_dns_label)
}

/// Whether `text` has the characters of a DNS-1123 label, of any length: lower-case letters, digits and inner hyphens.
pub fn is_dns_label(text: &[u8]) -> bool {
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_framed(text, edge, |byte| edge(byte) || *byte == b'-')
}

/// At most 80 characters of a text, without characters that could break a line of a log.
pub fn quoted(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_graphic() || c == ' ';
    if text.len() <= QUOTED_MAX && text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    text.chars()
        .take(QUOTED_MAX)
        .map(|c| if plain(c) { c } else { '?' })
        .collect()
}

fn is_label_name(text: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    text.len() <= LABEL_NAME_MAX && is_framed(text.as_bytes(), u8::is_ascii_alphanumeric, inner)
}

/// Returns whether `text` is not empty, with `edge` at both ends and `inner` everywhere.
fn is_framed(text: &[u8], edge: impl Fn(&u8) -> bool, inner: impl Fn(&u8) -> bool) -> bool {
    let (Some(first), Some(last)) = (text.first(), text.last()) else {
        return false;
    };
    edge(first) && edge(last) && text.iter().all(inner)
}
