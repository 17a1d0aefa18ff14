//! The wishes of a ReplicaSet's owner, from its annotations, within the policy of the cluster's operator.
//!
//! An annotation that cannot be followed changes nothing, and the server shows the reason. The [rules](crate::execute) derive each
//! operation that only a preference allows from the preferences that the agent itself has read.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    str::FromStr,
};

use decree_api::v1;

use crate::{
    asking::{CostKind, CostSource},
    nodes::NodeFields,
};

/// The rules of `scale-in`, each in the form of its word.
const RULES: [(&str, v1::ScaleInRule); 5] = [
    ("first=KEY=VALUE", v1::ScaleInRule::First),
    ("spread=KEY", v1::ScaleInRule::Spread),
    ("leaving-node", v1::ScaleInRule::LeavingNode),
    ("consolidate", v1::ScaleInRule::EmptiestNode),
    ("oldest-stays", v1::ScaleInRule::Youngest),
];

/// The value of each annotation that asks for nothing: such a ReplicaSet has no default of its namespace.
const NONE: &str = "kubernetes";
/// The namespace of a default for all namespaces.
const EVERYWHERE: &str = "*";
const AFTER_TERMINATION: &str = "after-termination";
/// The surge that replaces all pods at once.
const ALL_AT_ONCE: &str = "true";
/// Why a preference is not followed without nodes.
const NEEDS_NODES: &str = "needs nodes; start the agent with --nodes";
const SCALE_IN_MAX: usize = 8;
const WAIT: &str = "wait";
/// The longest source of costs.
const SOURCE_BYTES_MAX: usize = 256;
/// The longest reason why an annotation is not followed.
const REASON_BYTES_MAX: usize = 256;

/// A preference, each with an annotation of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Preference {
    /// When pods are created: `decree.dev/create`.
    Create,
    /// How many ended pods stay: `decree.dev/keep-ended`.
    KeepEnded,
    /// Which pods go first: `decree.dev/scale-in`.
    ScaleIn,
    /// How many pods are replaced before their eviction: `decree.dev/surge-on-eviction`.
    Surge,
    /// Whether pods are asked for their deletion costs: `decree.dev/scale-in-cost`.
    ScaleInCost,
}

/// The preferences that an agent follows. The default follows all annotations.
#[derive(Clone, Debug, PartialEq)]
pub struct PreferencePolicy {
    /// The followed annotations.
    pub allowed: BTreeSet<Preference>,
    /// The preferences of ReplicaSets without such annotations, by namespace; `*` is for all without an entry.
    pub defaults: BTreeMap<String, v1::Preferences>,
    /// The sources from which costs of pods may be asked; none by default.
    pub cost_sources: BTreeSet<CostKind>,
}

/// A preference of the ReplicaSets of a namespace without annotations of preferences, as `NAMESPACE:NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultPreference {
    namespace: String,
    preference: Preference,
    value: String,
}

impl Preference {
    /// All preferences.
    pub const ALL: [Self; 5] = [
        Self::Create,
        Self::KeepEnded,
        Self::ScaleIn,
        Self::ScaleInCost,
        Self::Surge,
    ];

    /// The annotation.
    pub const fn annotation(self) -> &'static str {
        match self {
            Self::Create => "decree.dev/create",
            Self::KeepEnded => "decree.dev/keep-ended",
            Self::ScaleIn => "decree.dev/scale-in",
            Self::Surge => "decree.dev/surge-on-eviction",
            Self::ScaleInCost => "decree.dev/scale-in-cost",
        }
    }

    /// The name in flags: the annotation without its domain.
    pub fn name(self) -> &'static str {
        self.annotation().trim_start_matches("decree.dev/")
    }

    /// Reads a value. On an error, which names the wrong word, nothing changes.
    fn read(self, value: &str, into: &mut v1::Preferences) -> Result<(), String> {
        let value = value.trim();
        if value == NONE {
            self.clear(into);
            return Ok(());
        }
        match self {
            Self::Create if value == AFTER_TERMINATION => into.create_after_termination = true,
            Self::Create => return Err(unknown(value, &[AFTER_TERMINATION, NONE])),
            Self::KeepEnded => {
                let number = value.parse::<u16>();
                let number = number.map_err(|_| {
                    format!("{value:?} is not a number of pods from 0 to 65535, nor {NONE}")
                })?;
                into.keep_ended = Some(number.into());
            }
            Self::ScaleIn => {
                let rules: Vec<_> = value.split(',').map(scale_in).collect::<Result<_, _>>()?;
                if rules.len() > SCALE_IN_MAX {
                    return Err(format!("more than {SCALE_IN_MAX} rules"));
                }
                let is_spread = |it: &&v1::ScaleInPreference| it.rule() == v1::ScaleInRule::Spread;
                if rules.iter().filter(is_spread).count() > 1 {
                    return Err("more than one spread=KEY".to_owned());
                }
                into.scale_in = rules;
            }
            Self::Surge => (into.surge, into.surge_percent) = surge(value)?,
            Self::ScaleInCost => into.scale_in_cost = Some(scale_in_cost(value)?),
        }
        Ok(())
    }

    /// Removes the preference. True if it was there.
    fn clear(self, from: &mut v1::Preferences) -> bool {
        match self {
            Self::Create => std::mem::take(&mut from.create_after_termination),
            Self::KeepEnded => from.keep_ended.take().is_some(),
            Self::ScaleIn => !std::mem::take(&mut from.scale_in).is_empty(),
            Self::Surge => from.surge.take().is_some() | from.surge_percent.take().is_some(),
            Self::ScaleInCost => from.scale_in_cost.take().is_some(),
        }
    }

    /// Why the preference cannot be followed with these fields of nodes and these sources of costs.
    fn lacks(
        self,
        of: &v1::Preferences,
        nodes: Option<&NodeFields>,
        sources: &BTreeSet<CostKind>,
    ) -> Option<String> {
        let lacks = |rule: &v1::ScaleInPreference| {
            let (word, key) = (scale_in_word(rule), &rule.label_key);
            match (rule.rule(), nodes) {
                (v1::ScaleInRule::LeavingNode | v1::ScaleInRule::Spread, None) => {
                    Some(format!("{word} {NEEDS_NODES}"))
                }
                (v1::ScaleInRule::Spread, Some(nodes)) if !nodes.labels.contains(key) => {
                    Some(format!(
                        "{word} needs that label of nodes; start the agent with --node-label {key}"
                    ))
                }
                _ => None,
            }
        };
        match self {
            Self::ScaleIn => of.scale_in.iter().find_map(lacks),
            Self::ScaleInCost => {
                let source: CostSource = of.scale_in_cost.as_ref()?.source.parse().ok()?;
                let kind = source.kind();
                (!sources.contains(&kind))
                    .then(|| format!("the agent runs without --scale-in-costs {}", kind.flag()))
            }
            Self::Surge => nodes.is_none().then(|| NEEDS_NODES.to_owned()),
            Self::Create | Self::KeepEnded => None,
        }
    }

    /// The value, as the annotation states it; `None` without the preference.
    fn value(self, of: &v1::Preferences) -> Option<String> {
        match self {
            Self::Create => of
                .create_after_termination
                .then(|| AFTER_TERMINATION.to_owned()),
            Self::KeepEnded => of.keep_ended.map(|it| it.to_string()),
            Self::ScaleIn => {
                let rules: Vec<_> = of.scale_in.iter().map(scale_in_word).collect();
                (!rules.is_empty()).then(|| rules.join(", "))
            }
            Self::Surge => {
                let number = of.surge.map(|it| it.to_string());
                let percent = of.surge_percent.map(|it| format!("{it}%"));
                let surges: Vec<_> = number.into_iter().chain(percent).collect();
                (!surges.is_empty()).then(|| surges.join(" or "))
            }
            Self::ScaleInCost => of.scale_in_cost.as_ref().map(|it| match it.on_silence() {
                v1::OnSilence::Wait => format!("{}, {WAIT}", it.source),
                v1::OnSilence::Proceed | v1::OnSilence::Unspecified => it.source.clone(),
            }),
        }
    }

    /// The text for an annotation that is not followed.
    fn ignored(self, why: &str) -> String {
        let mut text = format!("{}: {why}", self.annotation());
        text.truncate(text.floor_char_boundary(REASON_BYTES_MAX));
        text
    }
}

/// The name, as flags have it.
impl FromStr for Preference {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|it| it.name() == name);
        known.ok_or_else(|| unknown(name, &Self::ALL.map(Self::name)))
    }
}

impl FromStr for DefaultPreference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(':');
        let parts = parts.and_then(|(namespace, rest)| Some((namespace, rest.split_once('=')?)));
        let (namespace, (name, value)) =
            parts.ok_or_else(|| format!("{text:?} is not NAMESPACE:NAME=VALUE"))?;
        let preference: Preference = name.parse()?;
        preference.read(value, &mut v1::Preferences::default())?;
        Ok(Self {
            namespace: namespace.to_owned(),
            preference,
            value: value.to_owned(),
        })
    }
}

/// Reads the names of a flag: separated by commas, or `none`.
///
/// # Errors
/// Names the wrong word.
pub fn names(text: &str) -> Result<BTreeSet<Preference>, String> {
    match text {
        "none" => Ok(BTreeSet::new()),
        names => names.split(',').map(str::parse).collect(),
    }
}

impl Default for PreferencePolicy {
    fn default() -> Self {
        Self {
            allowed: Preference::ALL.into(),
            defaults: BTreeMap::new(),
            cost_sources: BTreeSet::new(),
        }
    }
}

impl PreferencePolicy {
    /// Returns the policy of flags.
    pub fn new(allowed: BTreeSet<Preference>, defaults: &[DefaultPreference]) -> Self {
        let mut by_namespace: BTreeMap<_, v1::Preferences> = BTreeMap::new();
        for default in defaults {
            let into = by_namespace.entry(default.namespace.clone()).or_default();
            let read = default.preference.read(&default.value, into);
            read.expect("it was read when it was parsed");
        }
        Self {
            allowed,
            defaults: by_namespace,
            ..Self::default()
        }
    }

    /// Returns the policy of an agent that advises: costs express the order of deletion, which answers of pods refine. To
    /// withdraw, it follows nothing.
    #[must_use]
    pub fn for_advice(mut self, withdraw: bool) -> Self {
        let is_order = |it| matches!(it, Preference::ScaleIn | Preference::ScaleInCost);
        let is_advice = |it: &Preference| is_order(*it) && !withdraw;
        self.allowed.retain(is_advice);
        for other in Preference::ALL.into_iter().filter(|it| !is_advice(it)) {
            for default in self.defaults.values_mut() {
                other.clear(default);
            }
        }
        self
    }

    /// Applies the policy to a ReplicaSet as its annotations describe it. `nodes` are the fields of nodes that are sent.
    pub fn apply(&self, set: &mut v1::ReplicaSet, nodes: Option<&NodeFields>) {
        let is_default = set.preferences.is_none();
        if is_default {
            let own = self.defaults.get(&set.namespace);
            let default = own.or_else(|| self.defaults.get(EVERYWHERE));
            set.preferences = default.cloned();
        }
        let Some(preferences) = &mut set.preferences else {
            return;
        };
        for it in Preference::ALL {
            let why = if is_default || self.allowed.contains(&it) {
                it.lacks(preferences, nodes, &self.cost_sources)
            } else {
                Some("the agent does not allow it".to_owned())
            };
            if let Some(why) = why
                && it.clear(preferences)
            {
                set.ignored_annotations.push(it.ignored(&why));
            }
        }
    }
}

/// Takes the preferences out of annotations; `None` if there are none. Also returns the reason for each annotation that cannot be followed.
pub fn take(annotations: &mut HashMap<String, String>) -> (Option<v1::Preferences>, Vec<String>) {
    let (mut read, mut ignored) = (None, Vec::new());
    for preference in Preference::ALL {
        let Some(value) = annotations.remove(preference.annotation()) else {
            continue;
        };
        let into = read.get_or_insert_default();
        if let Err(why) = preference.read(&value, into) {
            ignored.push(preference.ignored(&why));
        }
    }
    (read, ignored)
}

/// The preferences as their annotations, without the domain: `create: after-termination; keep-ended: 5`.
pub fn words(preferences: &v1::Preferences) -> String {
    let word = |it: Preference| Some(format!("{}: {}", it.name(), it.value(preferences)?));
    let words: Vec<_> = Preference::ALL.into_iter().filter_map(word).collect();
    words.join("; ")
}

/// Whether a ReplicaSet replaces pods before their eviction.
pub fn surges(set: &v1::ReplicaSet) -> bool {
    let preferences = set.preferences.as_ref();
    preferences.is_some_and(|it| it.surge.max(it.surge_percent) > Some(0))
}

/// The largest number of pods, and the percentage, that are created in advance.
fn surge(value: &str) -> Result<(Option<i32>, Option<i32>), String> {
    let count = |text: &str| text.parse::<u16>().ok().map(i32::from);
    let percent = match value {
        ALL_AT_ONCE => Some(100),
        value => value.strip_suffix('%').and_then(count),
    };
    let (number, percent) = (count(value), percent.filter(|it| *it <= 100));
    if number.or(percent).is_none() {
        return Err(format!(
            "{value:?} is not {ALL_AT_ONCE}, a number of pods from 0 to 65535, a percentage up to 100%, nor {NONE}"
        ));
    }
    Ok((number, percent))
}

/// A rule as its word in the annotation.
fn scale_in_word(preference: &v1::ScaleInPreference) -> String {
    let v1::ScaleInPreference {
        rule,
        label_key,
        label_value,
    } = preference;
    let form = RULES.iter().find(|(_, it)| *it == preference.rule());
    let Some(form) = form.map(|(form, _)| form.split('=').collect::<Vec<_>>()) else {
        return format!("unknown rule {rule}");
    };
    [form[0], label_key, label_value][..form.len()].join("=")
}

fn scale_in(word: &str) -> Result<v1::ScaleInPreference, String> {
    let word = word.trim();
    let parts: Vec<_> = word.splitn(3, '=').collect();
    let fits = |form: &str| {
        let form: Vec<_> = form.split('=').collect();
        let has_key = parts.get(1).is_none_or(|key| !key.is_empty());
        form[0] == parts[0] && form.len() == parts.len() && has_key
    };
    let Some((_, rule)) = RULES.iter().find(|(form, _)| fits(form)) else {
        let known = RULES.iter().map(|(form, _)| *form).chain([NONE]);
        return Err(unknown(word, &known.collect::<Vec<_>>()));
    };
    let label = |at: usize| parts.get(at).copied().unwrap_or_default();
    let (key, value) = (label(1), label(2));
    if !(key.is_empty() || is_label_key(key)) || !(value.is_empty() || is_label_text(value)) {
        return Err(format!("{word:?} has no valid label"));
    }
    Ok(v1::ScaleInPreference {
        rule: (*rule).into(),
        label_key: key.to_owned(),
        label_value: value.to_owned(),
    })
}

fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').unwrap_or(("a", key));
    let is_prefix = prefix.len() <= 253 && prefix.split('.').all(is_label_text);
    is_prefix && is_label_text(name)
}

/// Whether a text is the value of a label, or the name in its key.
fn is_label_text(text: &str) -> bool {
    let is_end = |it: char| it.is_ascii_alphanumeric();
    let is_inner = |it: char| is_end(it) || "-_.".contains(it);
    let ends = text.starts_with(is_end) && text.ends_with(is_end);
    ends && text.len() <= 63 && text.chars().all(is_inner)
}

/// A source of costs, and `wait` after a comma if no pod is deleted without the answers.
fn scale_in_cost(value: &str) -> Result<v1::ScaleInCost, String> {
    let (source, on_silence) = match value.rsplit_once(',') {
        Some((source, word)) if word.trim() == WAIT => (source.trim_end(), v1::OnSilence::Wait),
        Some(_) | None => (value, v1::OnSilence::Proceed),
    };
    if source.len() > SOURCE_BYTES_MAX {
        return Err(format!("longer than {SOURCE_BYTES_MAX} bytes"));
    }
    let read: Result<CostSource, _> = source.parse();
    read.map_err(|why| format!("{why}, with {WAIT:?} or nothing after a comma"))?;
    Ok(v1::ScaleInCost {
        source: source.to_owned(),
        on_silence: on_silence.into(),
    })
}

fn unknown(word: &str, known: &[&str]) -> String {
    format!("{word:?} is none of: {}", known.join(", "))
}

#[cfg(test)]
mod tests;
