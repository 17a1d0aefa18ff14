//! The wishes of a ReplicaSet's owner, from its annotations, within the policy of the cluster's operator.
//!
//! An annotation that cannot be followed changes nothing, and the server shows the reason. The [rules](crate::execute) derive each
//! operation that only a preference allows from the preferences that the agent itself has read.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    str::FromStr,
};

use decree_api::v1;

/// The value of each annotation that asks for nothing: such a ReplicaSet has no default of its namespace.
const NONE: &str = "kubernetes";
/// The namespace of a default for all namespaces.
const EVERYWHERE: &str = "*";
const AFTER_TERMINATION: &str = "after-termination";
const CONSOLIDATE: &str = "consolidate";
const OLDEST_STAYS: &str = "oldest-stays";
const SCALE_IN_MAX: usize = 8;
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
}

/// The preferences that an agent follows. The default follows all annotations.
#[derive(Clone, Debug, PartialEq)]
pub struct PreferencePolicy {
    /// The followed annotations.
    pub allowed: BTreeSet<Preference>,
    /// The preferences of ReplicaSets without such annotations, by namespace; `*` is for all without an entry.
    pub defaults: BTreeMap<String, v1::Preferences>,
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
    pub const ALL: [Self; 3] = [Self::Create, Self::KeepEnded, Self::ScaleIn];

    /// The annotation.
    pub const fn annotation(self) -> &'static str {
        match self {
            Self::Create => "decree.dev/create",
            Self::KeepEnded => "decree.dev/keep-ended",
            Self::ScaleIn => "decree.dev/scale-in",
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
                into.scale_in = rules;
            }
        }
        Ok(())
    }

    /// Removes the preference. True if it was there.
    fn clear(self, from: &mut v1::Preferences) -> bool {
        match self {
            Self::Create => std::mem::take(&mut from.create_after_termination),
            Self::KeepEnded => from.keep_ended.take().is_some(),
            Self::ScaleIn => !std::mem::take(&mut from.scale_in).is_empty(),
        }
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
        let parts = text.split_once(':').and_then(|(namespace, rest)| {
            let (name, value) = rest.split_once('=')?;
            Some((namespace, name, value))
        });
        let (namespace, name, value) =
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
        }
    }

    /// Applies the policy to a ReplicaSet as its annotations describe it.
    pub(crate) fn apply(&self, set: &mut v1::ReplicaSet) {
        let Some(preferences) = &mut set.preferences else {
            let own = self.defaults.get(&set.namespace);
            let default = own.or_else(|| self.defaults.get(EVERYWHERE));
            set.preferences = default.cloned();
            return;
        };
        for refused in Preference::ALL {
            if !self.allowed.contains(&refused) && refused.clear(preferences) {
                let text = format!("{}: the agent does not allow it", refused.annotation());
                set.ignored_annotations.push(text);
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
            let mut text = format!("{}: {why}", preference.annotation());
            text.truncate(text.floor_char_boundary(REASON_BYTES_MAX));
            ignored.push(text);
        }
    }
    (read, ignored)
}

/// The preferences as their annotations, without the domain: `create: after-termination; keep-ended: 5`.
pub fn words(preferences: &v1::Preferences) -> String {
    let v1::Preferences {
        create_after_termination,
        keep_ended,
        scale_in,
        surge: _,
        surge_percent: _,
    } = preferences;
    let rules = scale_in.iter().map(|it| match it.rule() {
        v1::ScaleInRule::First => format!("first={}={}", it.label_key, it.label_value),
        v1::ScaleInRule::EmptiestNode => CONSOLIDATE.to_owned(),
        v1::ScaleInRule::Youngest => OLDEST_STAYS.to_owned(),
        v1::ScaleInRule::LeavingNode => "leaving-node".to_owned(),
        v1::ScaleInRule::Spread => format!("spread={}", it.label_key),
        v1::ScaleInRule::Unspecified => format!("unknown rule {}", it.rule),
    });
    let rules = rules.collect::<Vec<_>>().join(", ");
    let values = [
        create_after_termination.then(|| AFTER_TERMINATION.to_owned()),
        keep_ended.map(|it| it.to_string()),
        Some(rules).filter(|it| !it.is_empty()),
    ];
    let words = Preference::ALL.into_iter().zip(values);
    let words = words.filter_map(|(it, value)| Some(format!("{}: {}", it.name(), value?)));
    words.collect::<Vec<_>>().join("; ")
}

fn scale_in(word: &str) -> Result<v1::ScaleInPreference, String> {
    let word = word.trim();
    let of = |rule: v1::ScaleInRule, [key, value]: [&str; 2]| v1::ScaleInPreference {
        rule: rule.into(),
        label_key: key.to_owned(),
        label_value: value.to_owned(),
    };
    if let Some(label) = word.strip_prefix("first=") {
        let label = label.split_once('=').filter(|(key, _)| !key.is_empty());
        let (key, value) =
            label.ok_or_else(|| format!("{word:?} is not first=KEY=VALUE of a label"))?;
        return Ok(of(v1::ScaleInRule::First, [key, value]));
    }
    match word {
        CONSOLIDATE => Ok(of(v1::ScaleInRule::EmptiestNode, [""; 2])),
        OLDEST_STAYS => Ok(of(v1::ScaleInRule::Youngest, [""; 2])),
        _ => {
            let known = ["first=KEY=VALUE", CONSOLIDATE, OLDEST_STAYS, NONE];
            Err(unknown(word, &known))
        }
    }
}

fn unknown(word: &str, known: &[&str]) -> String {
    format!("{word:?} is none of: {}", known.join(", "))
}

#[cfg(test)]
mod tests;
