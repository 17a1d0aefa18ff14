//! The preferences of ReplicaSets and the nodes that they read, from the contract to the core and back.

use decree_api::v1;
use decree_core::{Labels, Node, Preferences, ScaleIn, ScaleInCost};

use super::{
    Fault, Violation,
    field::{self, Faults},
};

/// The maximum number of preferences for the order of deletion.
const SCALE_IN_MAX: usize = 8;
/// The number of annotations that are not followed that are read.
const IGNORED_MAX: usize = 8;
/// The number of bytes that are read of each reason, and of a source of costs.
const TEXT_MAX: usize = 256;
/// The longest key and value of a label.
const LABEL_KEY_MAX: usize = 253 + 1 + 63;
const LABEL_VALUE_MAX: usize = 63;
/// The maximum number of labels of a node, and of bytes of each.
const NODE_LABELS_MAX: usize = 8;
const NODE_LABEL_BYTES_MAX: usize = 512;

/// Reads the preferences, and why annotations of others are not followed.
pub(super) fn read(
    preferences: Option<&v1::Preferences>,
    ignored: &[String],
    faults: &mut Faults,
) -> Option<Box<Preferences>> {
    if preferences.is_none() && ignored.is_empty() {
        return None;
    }
    let v1::Preferences {
        create_after_termination,
        keep_ended,
        scale_in,
        surge,
        surge_percent,
        scale_in_cost,
    } = preferences.cloned().unwrap_or_default();
    if scale_in.len() > SCALE_IN_MAX {
        let found = format!("are {}; at most {SCALE_IN_MAX} are allowed", scale_in.len());
        faults.add(Violation::new("preferences.scale_in", Fault::Range, found));
        return None;
    }
    let mut number = |name, number: Option<i32>| {
        number.map(|it| faults.not_negative(&format!("preferences.{name}"), it))
    };
    let keep_ended = number("keep_ended", keep_ended);
    let surge = number("surge", surge).unwrap_or(0);
    let surge_percent = number("surge_percent", surge_percent).unwrap_or(0);
    let rules = scale_in
        .into_iter()
        .filter_map(|it| self::scale_in(it, faults));
    let scale_in: Vec<_> = rules.collect();
    let is_spread = |rule: &&ScaleIn| matches!(rule, ScaleIn::Spread(_));
    if scale_in.iter().filter(is_spread).count() > 1 {
        let found = "spread pods by more than one label";
        faults.add(Violation::new("preferences.scale_in", Fault::Range, found));
    }
    let beginning = |text: &str| text[..text.floor_char_boundary(TEXT_MAX)].into();
    let ignored = ignored.iter().take(IGNORED_MAX);
    Some(Box::new(Preferences {
        create_after_termination,
        keep_ended: keep_ended.map(|it| it.unsigned_abs() as usize),
        scale_in,
        surge,
        surge_percent,
        scale_in_cost: scale_in_cost.map(|it| ScaleInCost {
            source: beginning(&it.source),
            waits: it.on_silence() == v1::OnSilence::Wait,
        }),
        ignored: ignored.map(|text| beginning(text)).collect(),
    }))
}

fn scale_in(preference: v1::ScaleInPreference, faults: &mut Faults) -> Option<ScaleIn> {
    let rule = preference.rule();
    let v1::ScaleInPreference {
        rule: number,
        label_key,
        label_value,
    } = preference;
    let key = ("label_key", &*label_key, LABEL_KEY_MAX);
    let value = ("label_value", &*label_value, LABEL_VALUE_MAX);
    let mut read = |(name, text, max)| -> Box<str> {
        let field = format!("preferences.scale_in.{name}");
        faults.keep(field::text(&field, text, max)).into()
    };
    match rule {
        v1::ScaleInRule::First => Some(ScaleIn::First(read(key), read(value))),
        v1::ScaleInRule::EmptiestNode => Some(ScaleIn::EmptiestNode),
        v1::ScaleInRule::Youngest => Some(ScaleIn::Youngest),
        v1::ScaleInRule::LeavingNode => Some(ScaleIn::LeavingNode),
        v1::ScaleInRule::Spread => Some(ScaleIn::Spread(read(key))),
        v1::ScaleInRule::Unspecified => {
            let found = format!("has the unknown rule {number}");
            faults.add(Violation::new("preferences.scale_in", Fault::Range, found));
            None
        }
    }
}

/// Writes the preferences, and why annotations of others are not followed.
pub(super) fn write(preferences: Preferences) -> (v1::Preferences, Vec<String>) {
    let Preferences {
        create_after_termination,
        keep_ended,
        scale_in,
        surge,
        surge_percent,
        scale_in_cost,
        ignored,
    } = preferences;
    let ignored = ignored.into_iter().map(Into::into);
    let scale_in = scale_in.into_iter().map(|it| {
        let (rule, key, value) = match it {
            ScaleIn::First(key, value) => (v1::ScaleInRule::First, key, value),
            ScaleIn::EmptiestNode => (v1::ScaleInRule::EmptiestNode, "".into(), "".into()),
            ScaleIn::Youngest => (v1::ScaleInRule::Youngest, "".into(), "".into()),
            ScaleIn::LeavingNode => (v1::ScaleInRule::LeavingNode, "".into(), "".into()),
            ScaleIn::Spread(key) => (v1::ScaleInRule::Spread, key, "".into()),
        };
        v1::ScaleInPreference {
            rule: rule.into(),
            label_key: key.into(),
            label_value: value.into(),
        }
    });
    let preferences = v1::Preferences {
        create_after_termination,
        keep_ended: keep_ended.map(field::int32),
        scale_in: scale_in.collect(),
        surge: Some(surge).filter(|it| *it > 0),
        surge_percent: Some(surge_percent).filter(|it| *it > 0),
        scale_in_cost: scale_in_cost.map(|it| {
            let on_silence = if it.waits {
                v1::OnSilence::Wait
            } else {
                v1::OnSilence::Proceed
            };
            v1::ScaleInCost {
                source: it.source.into(),
                on_silence: on_silence.into(),
            }
        }),
    };
    (preferences, ignored.collect())
}

/// Reads a node.
///
/// # Errors
/// Names every field that breaks the contract.
pub fn node(node: &v1::Node) -> Result<Node, Vec<Violation>> {
    let v1::Node {
        name,
        unschedulable,
        leaving,
        labels,
    } = node;
    let mut faults = Faults::default();
    let name = faults.keep(node_name("name", name));
    let labels: Labels = field::labels("labels", labels, &mut faults);
    let mut lengths = labels.iter().map(|(key, value)| key.len() + value.len());
    if labels.len() > NODE_LABELS_MAX || lengths.any(|it| it > NODE_LABEL_BYTES_MAX) {
        let rule = format!("at most {NODE_LABELS_MAX} of {NODE_LABEL_BYTES_MAX} bytes are allowed");
        faults.add(Violation::new("labels", Fault::Range, rule));
    }
    match faults.into_vec() {
        violations if !violations.is_empty() => Err(violations),
        _ => Ok(Node {
            name: name.into(),
            cordoned: *unschedulable,
            leaving: *leaving,
            labels,
        }),
    }
}

/// Reads the name of a node.
pub(crate) fn node_name<'a>(field: &str, name: &'a str) -> Result<&'a str, Violation> {
    if name.is_empty() {
        return Err(Violation::new(field, Fault::Required, "is absent"));
    }
    field::text(field, name, field::NAME_MAX)
}
