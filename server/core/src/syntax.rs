//! Kubernetes' syntax of names and labels.

/// The longest DNS-1123 subdomain, in bytes.
const SUBDOMAIN_MAX: usize = 253;

/// The longest name part of a label key, and the longest label value, in bytes.
const LABEL_NAME_MAX: usize = 63;

/// Returns whether `text` is an optional DNS-1123 subdomain and a slash, then a label name.
pub(crate) fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        None => is_label_name(text),
        Some((prefix, name)) => is_subdomain(prefix.as_bytes()) && is_label_name(name),
    }
}

/// Returns whether `text` may be the value of a label.
pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_label_name(text)
}

/// Returns whether `text` is a DNS-1123 subdomain: parts of lower-case letters, digits and inner hyphens, joined by dots.
///
/// A part may be longer than 63 bytes: upstream bounds only the whole.
pub(crate) fn is_subdomain(text: &[u8]) -> bool {
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let part = |part| is_framed(part, edge, |byte| edge(byte) || *byte == b'-');
    text.len() <= SUBDOMAIN_MAX && text.split(|byte| *byte == b'.').all(part)
}

fn is_label_name(text: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    text.len() <= LABEL_NAME_MAX && is_framed(text.as_bytes(), u8::is_ascii_alphanumeric, inner)
}

/// Returns whether there is something, with `edge` at both ends and `inner` everywhere.
fn is_framed(text: &[u8], edge: impl Fn(&u8) -> bool, inner: impl Fn(&u8) -> bool) -> bool {
    let (Some(first), Some(last)) = (text.first(), text.last()) else {
        return false;
    };
    edge(first) && edge(last) && text.iter().all(inner)
}
