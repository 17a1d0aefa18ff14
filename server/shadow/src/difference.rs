//! What may differ, and how long it may.

use server_core::{Key, Span};

/// How long nothing must happen to the pods of a ReplicaSet before they are judged: longer than one stream lags behind the other.
pub const SETTLED: Span = Span::seconds(1);
/// How long a status may be another than the pods call for.
pub const STATUS_MAX: Span = Span::seconds(5);
/// How long what is decided may stay undone.
pub const PENDING_MAX: Span = Span::seconds(30);
/// How long a ReplicaSet may go without a rest before what was seen of it is forgotten, but for the number of pods that were made.
pub const RESTLESS_MAX: Span = Span::seconds(600);

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// How many pods are made or go.
    Count,
    /// Which pods go.
    Victims,
    /// The status.
    Status,
    /// Which pods are adopted and released.
    Adoption,
}

/// The documented departures from upstream that show from outside (docs/architecture.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Departure {
    /// The order of deletion is total, where upstream's has ties and cycles.
    OrderOfDeletion,
    /// The condition ReplicaFailure mirrors the latest attempt.
    ReplicaFailure,
}

/// One thing that the other controller did in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The ReplicaSet.
    pub key: Key,
    /// What differs.
    pub subject: Subject,
    /// What was decided here, for people.
    pub decided: String,
    /// What was done there, for people.
    pub done: String,
    /// Why it may differ, where that is documented.
    pub departure: Option<Departure>,
}
