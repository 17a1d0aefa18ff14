//! The one place where the contract's messages become the core's values and back.
//!
//! All values from [`decode`] are valid, so the core does not check a field again. A field that is out of range affects only its object: a
//! pod is refused, a ReplicaSet that can be named is quarantined, and the rest of the frame counts. [`encode`] cannot fail.

use std::fmt;

use decree_api::v1;
use decree_core::syntax::quoted;

/// Defines a function from an enum to one whose variants have the same names, and, at the end, one that counts as another.
macro_rules! namesakes {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($from:ty) -> $to:ty {
        $($variant:ident)* $(; $other:ident => $counts_as:ident)?
    }) => {
        $(#[$doc])*
        $vis const fn $name(value: $from) -> $to {
            match value {
                $(<$from>::$variant => <$to>::$variant,)*
                $(<$from>::$other => <$to>::$counts_as,)?
            }
        }
    };
}

mod batch;
mod event;
mod field;
mod fields;
mod large;
mod object;
mod preferences;
mod raw;
mod reason;
mod report;

/// Turns messages of the contract into values of the core.
pub mod decode {
    pub use super::{
        event::{event, kind, outcome},
        field::{NAME_MAX, text, timestamp, version},
        object::{pod, replica_set, unverified_replica_set},
        preferences::node,
        report::options,
    };
}

/// Turns values of the core into messages of the contract.
pub mod encode {
    pub(crate) use super::{batch::question, report::scale_down};
    pub use super::{
        batch::{status, victim},
        field::{duration, time},
        reason::{reason, reasons},
        report::{ClusterRef, decision, impact, quota, record, state, summary},
    };
}

pub use self::fields::{Fields, MalformedFrame, OBJECT_BYTES_MAX, Value};
pub(crate) use self::{
    batch::{batch, key_ref, version},
    event::{class_out, kind_out, pod_applied, replica_set_applied},
    field::{int32, is_cluster_word, is_token, wait as duration_in},
    large::{LargeObject, outcome_with_large_object},
    object::pod_view,
    preferences::node_name,
    raw::{RawLabels, RawPod, read_event},
    reason::rule,
    report::{action, action_out},
};

/// The fault of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path of the field from the object, such as `labels[app]`.
    pub field: String,
    /// The fault, and the correct form.
    pub description: String,
    /// The fault for programs.
    pub fault: Fault,
}

/// The kinds of faults of a field; docs/protocol.md lists the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A required field is absent.
    Required,
    /// A namespace is not a DNS-1123 label.
    Namespace,
    /// A name is not a DNS-1123 subdomain.
    Name,
    /// A UID is not 1 to 128 printable ASCII characters.
    Uid,
    /// A version is not a decimal number from 1 to 2^64-1.
    Version,
    /// A label key breaks Kubernetes' syntax.
    LabelKey,
    /// A label value breaks Kubernetes' syntax.
    LabelValue,
    /// A timestamp or duration has impossible nanoseconds.
    Time,
    /// A number is out of its range.
    Range,
    /// An enum has an unknown value.
    Enum,
    /// A text is longer than its limit, or has characters that are not allowed.
    Text,
    /// An earlier object of the request is the same one.
    Duplicate,
    /// No API server would admit the ReplicaSet, or its field is out of range: it was accepted and quarantined.
    Quarantined,
}

/// An object, or the part of an outcome that describes one, that was not accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejected {
    /// The object's kind.
    pub kind: v1::Kind,
    /// The object, as far as it could be read.
    pub object: v1::ObjectRef,
    /// The faults; at least one.
    pub violations: Vec<Violation>,
}

impl Violation {
    /// Creates a violation from the path of a field, its fault, and the correct form.
    pub fn new(field: impl Into<String>, fault: Fault, description: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            description: description.into(),
            fault,
        }
    }

    /// Creates the violation of an object with this number of bytes, more than an object may have.
    pub fn too_large(field: impl Into<String>, length: usize) -> Self {
        let description = format!("has {length} bytes; at most {OBJECT_BYTES_MAX} are allowed");
        Self::new(field, Fault::Range, description)
    }

    /// Creates the violation of a pod whose controller has the name and UID of a ReplicaSet, and another kind. Upstream would see neither a
    /// pod of the ReplicaSet nor an orphan, and create another one.
    pub fn other_kind(kind: &str) -> Self {
        let kind = quoted(kind);
        let description = format!(
            "\"{kind}\" contradicts the uid, which is that of a ReplicaSet; must be ReplicaSet or empty"
        );
        Self::new("controller.kind", Fault::Enum, description)
    }

    /// Returns the same violation as seen from one level further out.
    pub fn within(mut self, parent: &str) -> Self {
        self.field = match self.field.as_str() {
            "" => parent.to_owned(),
            field => format!("{parent}.{field}"),
        };
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.description)
    }
}

impl Fault {
    /// The word in `FieldViolation.reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "REQUIRED",
            Self::Namespace => "INVALID_NAMESPACE",
            Self::Name => "INVALID_NAME",
            Self::Uid => "INVALID_UID",
            Self::Version => "INVALID_VERSION",
            Self::LabelKey => "INVALID_LABEL_KEY",
            Self::LabelValue => "INVALID_LABEL_VALUE",
            Self::Time => "INVALID_TIME",
            Self::Range => "OUT_OF_RANGE",
            Self::Enum => "UNKNOWN_VALUE",
            Self::Text => "INVALID_TEXT",
            Self::Duplicate => "DUPLICATE",
            Self::Quarantined => "QUARANTINED",
        }
    }
}

impl Rejected {
    /// The message for the agent.
    pub(crate) fn into_message(self) -> v1::RejectedObject {
        let Self {
            kind,
            object,
            violations,
        } = self;
        let violations = violations.into_iter().map(|violation| {
            let Violation {
                field,
                description,
                fault,
            } = violation;
            v1::FieldViolation {
                field,
                description,
                reason: fault.as_str().to_owned(),
            }
        });
        v1::RejectedObject {
            kind: kind.into(),
            object: Some(object),
            violations: violations.collect(),
        }
    }
}

#[cfg(test)]
pub(crate) use self::raw::tests as raw_tests;
#[cfg(test)]
mod tests;
