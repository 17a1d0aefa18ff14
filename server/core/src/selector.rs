//! Label selectors, as strict as upstream's (spec 2).

use std::{fmt, sync::Arc};

use crate::{
    labels::Labels,
    syntax::{self, quoted},
};

/// The maximum number of values of a requirement in a message.
const QUOTED_VALUES_MAX: usize = 5;

const KEY_RULE: &str = "must be an optional DNS-1123 subdomain and a slash, \
    then 1 to 63 letters, digits, '-', '_' or '.', alphanumeric at both ends";

const VALUE_RULE: &str =
    "must be empty or 1 to 63 letters, digits, '-', '_' or '.', alphanumeric at both ends";

/// Why a ReplicaSet is quarantined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// The path of the bad field, such as `selector.match_expressions[0].operator`.
    pub field: String,
    /// The fault, and the correct form.
    pub detail: String,
}

/// A valid selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The absent selector: matches nothing, and is not empty.
    Nothing,
    /// All requirements must hold; none at all matches everything.
    All(Requirements),
}

/// Requirements in a form with few tests, for any number of written ones: of each key, at most one demands something and at most one
/// forbids something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// The requirements that no object without the key meets, by key.
    demands: Vec<Requirement>,
    /// The requirements that every object without the key meets, by key.
    forbids: Vec<Requirement>,
}

/// One requirement on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label key.
    pub key: Arc<str>,
    /// The test of the key.
    pub test: Test,
}

/// The test of one key.
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

impl Selector {
    /// Builds a selector from its parts as written; without `parts` it is [`Selector::Nothing`].
    ///
    /// # Errors
    /// Names the first field that upstream would refuse, by its path from the ReplicaSet.
    pub fn parse(parts: Option<Parts<'_>>) -> Result<Self, Quarantine> {
        let Some(Parts {
            match_labels,
            match_expressions,
        }) = parts
        else {
            return Ok(Self::Nothing);
        };
        let labels = match_labels.into_iter().map(Requirement::of_label);
        let expressions = (0..).zip(&match_expressions);
        let expressions = expressions.map(|(at, it)| Requirement::of_expression(at, it));
        let requirements: Result<Vec<_>, _> = labels.chain(expressions).collect();
        Ok(Self::All(requirements?.into()))
    }

    /// Whether the labels meet every requirement.
    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            // Demands are of different keys, so more demands than labels cannot all hold.
            Self::All(requirements) => {
                let mut demands = requirements.demands.iter();
                demands.all(|one| one.holds(labels)) && requirements.forbid_none(labels)
            }
        }
    }

    /// Checks two rules of the API server for a ReplicaSet: its selector has requirements, and matches the labels of its template
    /// (kubernetes pkg/apis/apps/validation, `ValidateReplicaSetSpec`). Without these rules, a ReplicaSet would not select the pods that it
    /// creates, and would create them again and again.
    ///
    /// # Errors
    /// Names the selector, or the template's label that does not match.
    pub fn verify(&self, template: &Labels) -> Result<(), Quarantine> {
        match self {
            Self::Nothing => refuse("selector", "is required"),
            Self::All(_) if self.is_empty() => refuse(
                "selector",
                "is empty, so that it would select every pod of the namespace; name a label",
            ),
            Self::All(requirements) => match requirements.iter().find(|one| !one.holds(template)) {
                Some(unmet) => {
                    let detail = format!("do not match the selector: {}", unmet.words());
                    refuse("template_labels", detail)
                }
                None => Ok(()),
            },
        }
    }

    /// Lets demands share the texts of the labels that they demand.
    pub(crate) fn share(&mut self, labels: &Labels) {
        let Self::All(requirements) = self else {
            return;
        };
        for one in &mut requirements.demands {
            let Some((key, value)) = labels.get_label(&one.key) else {
                continue;
            };
            one.key = Arc::clone(key);
            if let Test::In(values) = &mut one.test
                && let Ok(at) = values.binary_search(value)
            {
                values[at] = Arc::clone(value);
            }
        }
    }

    /// Whether there is no requirement, so that every pod matches. [`Selector::Nothing`] is not empty.
    pub fn is_empty(&self) -> bool {
        let Self::All(Requirements { demands, forbids }) = self else {
            return false;
        };
        demands.is_empty() && forbids.is_empty()
    }
}

impl Requirements {
    /// All requirements.
    pub fn iter(&self) -> impl Iterator<Item = &Requirement> {
        self.demands.iter().chain(&self.forbids)
    }

    /// Returns whether nothing forbids the labels. The cost is a step for each entry of the shorter list.
    fn forbid_none(&self, labels: &Labels) -> bool {
        if self.forbids.len() <= labels.len() {
            return self.forbids.iter().all(|one| one.holds(labels));
        }
        labels.iter().all(|(key, _)| {
            let first = self.forbids.partition_point(|one| one.key < *key);
            let of_key = self.forbids[first..].iter();
            let mut of_key = of_key.take_while(|one| one.key == *key);
            of_key.all(|one| one.holds(labels))
        })
    }
}

impl From<Vec<Requirement>> for Requirements {
    fn from(mut all: Vec<Requirement>) -> Self {
        all.sort_by(|left, right| left.key.cmp(&right.key));
        let mut requirements = Self::default();
        for Requirement { key, test } in all {
            let list = match &test {
                Test::In(_) | Test::Exists => &mut requirements.demands,
                Test::NotIn(_) | Test::DoesNotExist => &mut requirements.forbids,
            };
            let mut known = list.iter_mut().rev().take_while(|known| known.key == key);
            if !known.any(|known| known.test.absorb(&test)) {
                list.push(Requirement { key, test });
            }
        }
        for one in &mut requirements.forbids {
            if let Test::NotIn(values) = &mut one.test {
                values.sort_unstable();
                values.dedup();
            }
        }
        requirements.demands.shrink_to_fit();
        requirements.forbids.shrink_to_fit();
        requirements
    }
}

impl Test {
    /// Combines another test of the same key with this one, if one test can express both.
    fn absorb(&mut self, other: &Self) -> bool {
        match (&mut *self, other) {
            (Self::In(values), Self::In(others)) => {
                values.retain(|value| others.binary_search(value).is_ok());
            }
            (Self::NotIn(values), Self::NotIn(others)) => {
                // The values are sorted after the last one.
                values.extend(others.iter().cloned());
            }
            (Self::Exists, Self::In(_)) => *self = other.clone(),
            (Self::In(_) | Self::Exists, Self::Exists)
            | (Self::DoesNotExist, Self::DoesNotExist | Self::NotIn(_)) => {}
            (Self::NotIn(_), Self::DoesNotExist) => *self = Self::DoesNotExist,
            (Self::In(_) | Self::Exists, Self::NotIn(_) | Self::DoesNotExist)
            | (Self::NotIn(_) | Self::DoesNotExist, Self::In(_) | Self::Exists) => return false,
        }
        true
    }
}

impl Requirement {
    fn of_label((key, value): (&str, &str)) -> Result<Self, Quarantine> {
        let path = || format!("selector.match_labels[{}]", quoted(key));
        check_key(key, path)?;
        check_value(value, path)?;
        Ok(Self {
            key: key.into(),
            test: Test::In(vec![value.into()]),
        })
    }

    /// Checks in upstream's order: operator, key, number of values, values.
    fn of_expression(
        at: usize,
        (key, operator, values): &(&str, &str, Vec<&str>),
    ) -> Result<Self, Quarantine> {
        let path = format!("selector.match_expressions[{at}]");
        let test = match *operator {
            "In" => Test::In(sorted(values)),
            "NotIn" => Test::NotIn(sorted(values)),
            "Exists" => Test::Exists,
            "DoesNotExist" => Test::DoesNotExist,
            other => {
                let other = quoted(other);
                let detail = format!(
                    "\"{other}\" is not an operator; use In, NotIn, Exists or DoesNotExist"
                );
                return refuse(format!("{path}.operator"), detail);
            }
        };
        check_key(key, || format!("{path}.key"))?;
        check_count(&test, values.len(), || format!("{path}.values"))?;
        for (at, value) in values.iter().enumerate() {
            check_value(value, || format!("{path}.values[{at}]"))?;
        }
        Ok(Self {
            key: (*key).into(),
            test,
        })
    }

    fn words(&self) -> String {
        let key = quoted(&self.key);
        let list = |values: &[Arc<str>]| {
            let shown = values.iter().take(QUOTED_VALUES_MAX);
            let mut words: Vec<_> = shown.map(|value| quoted(value)).collect();
            if values.len() > QUOTED_VALUES_MAX {
                words.push("…".into());
            }
            words.join(", ")
        };
        match &self.test {
            Test::In(values) if values.is_empty() => {
                format!("no value of the label {key} can meet it")
            }
            Test::In(values) if values.len() == 1 => {
                format!("the label {key} must be {}", list(values))
            }
            Test::In(values) => format!("the label {key} must be one of {}", list(values)),
            Test::NotIn(values) => format!("the label {key} must not be {}", list(values)),
            Test::Exists => format!("the label {key} must be set"),
            Test::DoesNotExist => format!("the label {key} must not be set"),
        }
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

fn sorted(values: &[&str]) -> Vec<Arc<str>> {
    let mut values: Vec<Arc<str>> = values.iter().map(|&value| value.into()).collect();
    values.sort_unstable();
    values.dedup();
    values
}

fn check_key(key: &str, path: impl Fn() -> String) -> Result<(), Quarantine> {
    if syntax::is_label_key(key) {
        return Ok(());
    }
    refuse(path(), format!("key \"{}\" {KEY_RULE}", quoted(key)))
}

fn check_count(test: &Test, count: usize, path: impl Fn() -> String) -> Result<(), Quarantine> {
    match (test, count) {
        (Test::In(_) | Test::NotIn(_), 1..) | (Test::Exists | Test::DoesNotExist, 0) => Ok(()),
        (Test::In(_) | Test::NotIn(_), 0) => refuse(path(), "must not be empty with In and NotIn"),
        (Test::Exists | Test::DoesNotExist, 1..) => {
            refuse(path(), "must be empty with Exists and DoesNotExist")
        }
    }
}

fn check_value(value: &str, path: impl Fn() -> String) -> Result<(), Quarantine> {
    if syntax::is_label_value(value) {
        return Ok(());
    }
    refuse(path(), format!("value \"{}\" {VALUE_RULE}", quoted(value)))
}

fn refuse<T>(field: impl Into<String>, detail: impl Into<String>) -> Result<T, Quarantine> {
    let (field, detail) = (field.into(), detail.into());
    Err(Quarantine { field, detail })
}

impl fmt::Display for Quarantine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.detail)
    }
}

#[cfg(test)]
mod tests;
