//! Label selectors, strict as upstream's (spec 2).

use std::sync::Arc;

use crate::object::{Labels, Quarantine};

/// The longest prefix of a label key, in bytes: a DNS-1123 subdomain.
const PREFIX_MAX: usize = 253;
/// The longest name part of a label key, and the longest label value, in bytes.
const NAME_MAX: usize = 63;

/// A valid selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The absent selector: matches nothing, and is not empty.
    Nothing,
    /// All requirements must hold; none at all matches everything.
    All(Vec<Requirement>),
}

/// One requirement on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label key.
    pub key: Arc<str>,
    /// What must hold.
    pub test: Test,
}

/// What must hold of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// Present, with one of these values, sorted.
    In(Vec<Arc<str>>),
    /// Absent, or with none of these values, sorted.
    NotIn(Vec<Arc<str>>),
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
}

/// A selector as written, for [`Selector::parse`].
#[derive(Clone, Debug, Default)]
pub struct Parts<'a> {
    /// `matchLabels`, sorted by key so that the first error is always the same.
    pub match_labels: Vec<(&'a str, &'a str)>,
    /// `matchExpressions`: key, operator, values.
    pub match_expressions: Vec<(&'a str, &'a str, Vec<&'a str>)>,
}

// === impl Selector ===

impl Selector {
    /// Builds a selector from its parts as written; absent `parts` are [`Selector::Nothing`].
    ///
    /// # Errors
    /// Names the first field that upstream would refuse, by its path from the ReplicaSet.
    pub fn parse(parts: Option<Parts<'_>>) -> Result<Self, Quarantine> {
        let Some(parts) = parts else {
            return Ok(Self::Nothing);
        };
        let labels = parts.match_labels.iter().map(|(key, value)| {
            let path = format!("selector.match_labels[{key:?}]");
            check_key(key, &path)?;
            check_value(value, &path)?;
            Ok(Requirement { key: (*key).into(), test: Test::In(vec![(*value).into()]) })
        });
        let expressions = parts.match_expressions.iter().enumerate().map(|(at, expression)| {
            Requirement::parse(&format!("selector.match_expressions[{at}]"), expression)
        });
        labels.chain(expressions).collect::<Result<_, _>>().map(Self::All)
    }

    /// Returns whether the labels satisfy every requirement.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(requirements) => requirements.iter().all(|one| one.holds(labels)),
        }
    }

    /// Returns whether there is no requirement, so that every pod matches. [`Selector::Nothing`] is not empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }
}

// === impl Requirement ===

impl Requirement {
    fn parse(path: &str, (key, operator, values): &(&str, &str, Vec<&str>)) -> Result<Self, Quarantine> {
        check_key(key, &format!("{path}.key"))?;
        for (at, value) in values.iter().enumerate() {
            check_value(value, &format!("{path}.values[{at}]"))?;
        }
        let mut sorted: Vec<Arc<str>> = values.iter().map(|&value| value.into()).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let test = match (*operator, sorted.is_empty()) {
            ("In", false) => Test::In(sorted),
            ("NotIn", false) => Test::NotIn(sorted),
            ("Exists", true) => Test::Exists,
            ("DoesNotExist", true) => Test::DoesNotExist,
            ("In" | "NotIn", true) => {
                return Err(refused(&format!("{path}.values"), format!("operator {operator} needs at least one value")));
            }
            ("Exists" | "DoesNotExist", false) => {
                return Err(refused(&format!("{path}.values"), format!("operator {operator} takes no values")));
            }
            _ => {
                let detail = format!("{operator:?} is not an operator; use In, NotIn, Exists or DoesNotExist");
                return Err(refused(&format!("{path}.operator"), detail));
            }
        };
        Ok(Self { key: (*key).into(), test })
    }

    fn holds(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.binary_search(value).is_ok()),
            Test::NotIn(values) => value.is_none_or(|value| values.binary_search(value).is_err()),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
        }
    }
}

fn check_key(key: &str, path: &str) -> Result<(), Quarantine> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(|prefix| !is_subdomain(prefix)) {
        let detail = format!("label key {key:?} has a prefix that is not a lower-case DNS subdomain of at most {PREFIX_MAX} characters");
        return Err(refused(path, detail));
    }
    if !is_label_name(name) {
        let detail = format!("label key {key:?} must end in 1 to {NAME_MAX} letters, digits, '-', '_' or '.', alphanumeric at both ends");
        return Err(refused(path, detail));
    }
    Ok(())
}

fn check_value(value: &str, path: &str) -> Result<(), Quarantine> {
    if value.is_empty() || is_label_name(value) {
        return Ok(());
    }
    let detail = format!("label value {value:?} must be empty or 1 to {NAME_MAX} letters, digits, '-', '_' or '.', alphanumeric at both ends");
    Err(refused(path, detail))
}

fn is_label_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    bytes.len() <= NAME_MAX
        && first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes.iter().all(inside)
}

fn is_subdomain(text: &str) -> bool {
    let part = |part: &str| {
        let bytes = part.as_bytes();
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        bytes.first().copied().is_some_and(plain)
            && bytes.last().copied().is_some_and(plain)
            && bytes.iter().all(|&byte| plain(byte) || byte == b'-')
    };
    text.len() <= PREFIX_MAX && text.split('.').all(part)
}

fn refused(field: &str, detail: String) -> Quarantine {
    Quarantine { field: field.to_owned(), detail }
}
