//! Reads single fields: names, UIDs, versions, labels, times. Every limit in the contract's comments is defined here, once.

use std::collections::HashMap;

use decree_core::{
    Labels, ResourceVersion, Span, Timestamp,
    syntax::{is_dns_label, is_label_key, is_label_value, is_subdomain, quoted},
};
use prost_types::{Duration, Timestamp as Time};

use super::{Fault, Violation};

const NAMESPACE_MAX: usize = 63;
/// The maximum length of the name of an object or a node.
pub const NAME_MAX: usize = 253;
const UID_MAX: usize = 128;
/// The maximum number of labels of an object; Kubernetes has no limit.
const LABELS_MAX: usize = 1_000;
/// The maximum total size in bytes of the label keys and values of an object; Kubernetes limits only the whole object.
const LABELS_BYTES_MAX: usize = 64 * 1024;
const NANOS: i64 = 1_000_000_000;

/// Collects the faults of an object while its other fields are read.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Violation>);

/// Reads an optional timestamp; years that the core cannot hold saturate.
///
/// # Errors
/// If the nanoseconds are outside 0 to 999,999,999.
pub fn timestamp(field: &str, time: Option<&Time>) -> Result<Option<Timestamp>, Violation> {
    let Some(time) = time else { return Ok(None) };
    if !(0..NANOS).contains(&i64::from(time.nanos)) {
        return Err(Violation::new(
            field,
            Fault::Time,
            format!("has {} nanoseconds; must be 0 to 999,999,999", time.nanos),
        ));
    }
    let seconds = Timestamp::from_seconds(time.seconds);
    Ok(Some(seconds.plus(Span(time.nanos.into()))))
}

/// Reads a version; the empty text is `None`.
///
/// # Errors
/// If it is not a decimal number from 1 to 2^64-1 without leading zeros.
pub fn version(field: &str, text: &str) -> Result<Option<ResourceVersion>, Violation> {
    if text.is_empty() {
        return Ok(None);
    }
    ResourceVersion::parse(text).map(Some).ok_or_else(|| {
        let description = format!(
            "\"{}\" must be a decimal number from 1 to 2^64-1 without leading zeros",
            quoted(text)
        );
        Violation::new(field, Fault::Version, description)
    })
}

/// Writes a point in time.
pub fn time(time: Timestamp) -> Time {
    Time {
        seconds: time.0.div_euclid(NANOS),
        nanos: fraction(time.0.rem_euclid(NANOS)),
    }
}

/// Writes a span of time.
pub fn duration(span: Span) -> Duration {
    Duration {
        seconds: span.0 / NANOS,
        nanos: fraction(span.0 % NANOS),
    }
}

/// Reads a delay; a negative or malformed one counts as none.
pub(crate) fn wait(duration: &Duration) -> Span {
    let seconds = Span::seconds(duration.seconds);
    Span(seconds.0.saturating_add(duration.nanos.into()).max(0))
}

pub(crate) fn namespace<'a>(field: &str, text: &'a str) -> Result<&'a str, Violation> {
    let is_valid = text.len() <= NAMESPACE_MAX && is_dns_label(text.as_bytes());
    let rule = "must be a DNS-1123 label of 1 to 63 characters: a-z, 0-9 and inner hyphens";
    checked(field, text, is_valid, (Fault::Namespace, rule))
}

pub(crate) fn name<'a>(field: &str, text: &'a str) -> Result<&'a str, Violation> {
    let rule = "must be a DNS-1123 subdomain of 1 to 253 characters: labels of a-z, 0-9 and inner hyphens, joined by dots";
    checked(
        field,
        text,
        is_subdomain(text.as_bytes()),
        (Fault::Name, rule),
    )
}

pub(crate) fn uid<'a>(field: &str, text: &'a str) -> Result<&'a str, Violation> {
    let rule = "must be 1 to 128 printable ASCII characters";
    checked(field, text, is_token(text), (Fault::Uid, rule))
}

/// Returns whether `text` is 1 to 128 printable ASCII characters.
pub(crate) fn is_token(text: &str) -> bool {
    (1..=UID_MAX).contains(&text.len()) && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Returns whether `text` can be the UID or name of a cluster: 1 to 128 letters, digits and `. _ : / @ -` of ASCII, with a letter or digit
/// at both ends. Such a text needs no quotes in a shell, and no two such texts look alike.
pub(crate) fn is_cluster_word(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@-".contains(&byte);
    let bytes = text.as_bytes();
    bytes.len() <= UID_MAX
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().copied().all(is_inner)
}

/// Reads a text that only has a maximum length, in bytes.
///
/// # Errors
/// If it is longer.
pub fn text<'a>(field: &str, text: &'a str, max: usize) -> Result<&'a str, Violation> {
    if text.len() <= max {
        return Ok(text);
    }
    let description = format!("has {} bytes; at most {max} are allowed", text.len());
    Err(Violation::new(field, Fault::Text, description))
}

/// Checks labels that are sorted by key; the violations come in the order of the keys.
pub(crate) fn check_labels(field: &str, labels: &[(&str, &str)], faults: &mut Faults) {
    let bytes = labels.iter().map(|(key, value)| key.len() + value.len());
    let bytes: usize = bytes.sum();
    if labels.len() > LABELS_MAX || bytes > LABELS_BYTES_MAX {
        let description = format!(
            "are {} of {bytes} bytes; at most {LABELS_MAX} of {LABELS_BYTES_MAX} bytes are allowed",
            labels.len()
        );
        return faults.add(Violation::new(field, Fault::Range, description));
    }
    let mut bad = Vec::new();
    for (key, value) in labels {
        let path = || format!("{field}[{}]", quoted(key));
        if !is_label_key(key) {
            let rule = "must be an optional DNS-1123 subdomain and a slash, then 1 to 63 characters of a-z, A-Z, 0-9, inner -_.";
            bad.push(Violation::new(
                path(),
                Fault::LabelKey,
                format!("key {rule}"),
            ));
        }
        if !is_label_value(value) {
            let rule = "must be empty or 1 to 63 characters of a-z, A-Z, 0-9, inner -_.";
            let description = format!("value \"{}\" {rule}", quoted(value));
            bad.push(Violation::new(path(), Fault::LabelValue, description));
        }
    }
    bad.sort_by(|left, right| (&left.field, left.fault).cmp(&(&right.field, right.fault)));
    faults.0.append(&mut bad);
}

/// Reads labels; the violations come in the order of the keys. With violations, the labels must not be used.
#[expect(clippy::disallowed_methods, reason = "the labels stay sorted")]
pub(crate) fn labels(field: &str, map: &HashMap<String, String>, faults: &mut Faults) -> Labels {
    let labels = map.iter().map(|(key, value)| (&**key, &**value));
    let mut labels: Vec<_> = labels.collect();
    labels.sort_unstable();
    let before = faults.0.len();
    check_labels(field, &labels, faults);
    if faults.0.len() > before {
        return Labels::default();
    }
    let labels = labels.into_iter();
    labels
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

fn checked<'a>(
    field: &str,
    text: &'a str,
    is_valid: bool,
    (fault, rule): (Fault, &str),
) -> Result<&'a str, Violation> {
    if is_valid {
        return Ok(text);
    }
    if text.is_empty() {
        return Err(Violation::new(
            field,
            Fault::Required,
            format!("is absent; {rule}"),
        ));
    }
    Err(Violation::new(
        field,
        fault,
        format!("\"{}\" {rule}", quoted(text)),
    ))
}

/// Writes a count; a count that does not fit becomes the maximum.
pub(crate) fn int32(count: impl TryInto<i32>) -> i32 {
    count.try_into().unwrap_or(i32::MAX)
}

fn fraction(nanos: i64) -> i32 {
    i32::try_from(nanos).expect("a remainder of 10^9 fits")
}

impl Faults {
    /// Adds the fault of a field, and returns the type's default instead.
    pub(crate) fn keep<T: Default>(&mut self, field: Result<T, Violation>) -> T {
        field.unwrap_or_else(|violation| {
            self.0.push(violation);
            T::default()
        })
    }

    /// Does as [`Self::keep`] for a value without a default.
    pub(crate) fn keep_some<T>(&mut self, field: Result<T, Violation>) -> Option<T> {
        self.keep(field.map(Some))
    }

    /// Adds a fault if a number is negative, and returns the number clamped.
    pub(crate) fn not_negative<N: Default + PartialOrd + std::fmt::Display>(
        &mut self,
        field: &str,
        number: N,
    ) -> N {
        if number >= N::default() {
            return number;
        }
        self.add(Violation::new(
            field,
            Fault::Range,
            format!("{number} must be 0 or more"),
        ));
        N::default()
    }

    pub(crate) fn add(&mut self, violation: Violation) {
        self.0.push(violation);
    }

    pub(crate) fn into_vec(self) -> Vec<Violation> {
        self.0
    }
}
