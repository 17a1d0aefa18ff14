//! How long a limit is, where that stands in the code.

use std::collections::{BTreeMap, BTreeSet};

use syn::BinOp;

/// How long something may take.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Limit {
    Seconds(f64),
    /// A number, whose unit is that of what it is compared with.
    Number(f64),
    /// What callers give for the parameter of this name.
    Parameter(String),
    Unknown,
}

// === impl Limit ===

impl Limit {
    /// Returns the seconds, where a number counts so many of them.
    pub(super) fn seconds(&self, unit: f64) -> Option<f64> {
        match self {
            Self::Seconds(seconds) => Some(*seconds),
            Self::Number(number) => Some(number * unit),
            Self::Parameter(_) | Self::Unknown => None,
        }
    }

    pub(super) fn with(&self, operator: &BinOp, other: &Self) -> Self {
        let (Some(left), Some(right)) = (self.seconds(1.0), other.seconds(1.0)) else {
            return match (self, other) {
                (Self::Parameter(name), _) | (_, Self::Parameter(name)) => {
                    Self::Parameter(name.clone())
                }
                _ => Self::Unknown,
            };
        };
        let result = match operator {
            BinOp::Add(_) => left + right,
            BinOp::Sub(_) => left - right,
            BinOp::Mul(_) => left * right,
            BinOp::Div(_) => left / right,
            _ => return Self::Unknown,
        };
        match (self, other) {
            (Self::Number(_), Self::Number(_)) => Self::Number(result),
            _ => Self::Seconds(result),
        }
    }

    /// Returns what `Duration::from_secs(number)` and its likes make of a number.
    pub(super) fn made_by(maker: &str, number: f64) -> Self {
        let unit = match maker {
            "from_secs" | "from_secs_f64" | "from_secs_f32" => 1.0,
            "from_millis" => 1e-3,
            "from_micros" => 1e-6,
            "from_nanos" => 1e-9,
            "from_mins" => 60.0,
            "from_hours" => 3600.0,
            _ => return Self::Unknown,
        };
        Self::Seconds(number * unit)
    }
}

/// The constants of all code for tests, and how long they are.
#[derive(Default)]
pub(super) struct Constants {
    /// By file and name.
    pub(super) limits: BTreeMap<(String, String), Limit>,
    /// Names that a file has from the harness in tests/src.
    pub(super) imported: BTreeSet<(String, String)>,
}

// === impl Constants ===

impl Constants {
    /// Returns how long the constant is that a file calls by this name.
    ///
    /// Where several of the same crate or tier have the name, the shortest.
    pub(super) fn get(&self, file: &str, name: &str) -> Limit {
        if name.contains(|letter: char| letter.is_ascii_lowercase()) {
            return Limit::Unknown;
        }
        let key = (file.to_owned(), name.to_owned());
        if let Some(own) = self.limits.get(&key) {
            return own.clone();
        }
        let within = |room: &str| {
            let named = self.limits.iter().filter(|((_, it), _)| it == name);
            let limits = named
                .filter(|((file, _), _)| room_of(file) == room)
                .filter_map(|(_, limit)| limit.seconds(1.0));
            limits.reduce(f64::min).map(Limit::Seconds)
        };
        let harness = || within("tests/src");
        let found = if self.imported.contains(&key) {
            harness()
        } else {
            within(&room_of(file)).or_else(harness)
        };
        found.unwrap_or(Limit::Unknown)
    }
}

/// Returns the tier of a test, or the crate that a file is of.
pub(super) fn room_of(file: &str) -> String {
    let parts: Vec<_> = file.split('/').collect();
    let length = match parts[..] {
        ["tests", ..] => 2,
        _ => parts
            .iter()
            .position(|it| ["src", "tests"].contains(it))
            .unwrap_or(1),
    };
    parts[..length].join("/")
}
