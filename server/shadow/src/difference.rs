//! The subjects of differences, their time limits and their counts.

use server_core::{Key, Span};

/// How long the acts of the other controller are gathered before a judgement.
pub const SETTLED: Span = Span::seconds(1);
/// How long an act waits for a view that explains it: longer than one stream lags behind the other.
pub const LATE: Span = Span::seconds(10);
/// How late the other controller or the server may see the events of the other one.
pub const LAG: Span = Span::seconds(5);
/// How long all acts of one decision may take.
pub const REACH: Span = Span::seconds(20);
/// How long a status may differ from the pods.
pub const STATUS_MAX: Span = Span::seconds(30);
/// How long a decision may stay undone.
pub const PENDING_MAX: Span = Span::seconds(30);

/// The subject of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The number of created or deleted pods.
    Count,
    /// The choice of victims.
    Victims,
    /// The status.
    Status,
    /// The adoption and release of pods.
    Adoption,
}

/// Why a difference is no fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Departure {
    /// The condition ReplicaFailure mirrors the latest attempt here (docs/architecture.md).
    ReplicaFailure,
    /// In a namespace that is being deleted, the other controller gives up; here the ReplicaSet waits for its next event
    /// (docs/architecture.md).
    NamespaceEnding,
    /// Others seem to have deleted pods during a scale-down. This explains only a few differences.
    DeletedByOthers,
}

/// One act in which the other controller differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The ReplicaSet.
    pub key: Key,
    /// The difference, and its explanation.
    pub finding: Finding,
}

/// A difference in a ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The subject.
    pub subject: Subject,
    /// The decision of the server.
    pub decided: Side,
    /// The act of the other controller.
    pub done: Side,
    /// The explanation, if there is one.
    pub departure: Option<Departure>,
}

/// One side of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// A text for people.
    pub text: String,
    /// The names of its pods, a few of many.
    pub pods: Vec<String>,
}

/// The comparisons of one subject, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// The number of comparisons.
    pub compared: u64,
    /// The number of explained differences.
    pub explained: u64,
    /// The number of unexplained differences.
    pub unexplained: u64,
}

/// The agreements on all subjects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreements([Agreement; Subject::ALL.len()]);

// === impl Subject ===

impl Subject {
    /// All subjects.
    pub const ALL: [Self; 4] = [Self::Count, Self::Victims, Self::Status, Self::Adoption];
}

// === impl Finding ===

impl Finding {
    /// Returns an unexplained difference that only texts describe.
    pub(crate) fn new(
        subject: Subject,
        decided: impl Into<String>,
        done: impl Into<String>,
    ) -> Self {
        let side = |text| Side {
            text,
            pods: Vec::new(),
        };
        Self {
            subject,
            decided: side(decided.into()),
            done: side(done.into()),
            departure: None,
        }
    }

    pub(crate) fn because(self, departure: Option<Departure>) -> Self {
        Self { departure, ..self }
    }
}

// === impl Agreements ===

impl Agreements {
    /// The agreement on a subject.
    #[must_use]
    pub const fn of(&self, subject: Subject) -> Agreement {
        self.0[subject as usize]
    }

    /// The number of comparisons of all subjects.
    #[must_use]
    pub fn compared(&self) -> u64 {
        self.0.iter().map(|agreement| agreement.compared).sum()
    }

    pub(crate) const fn agree(&mut self, subject: Subject) {
        self.0[subject as usize].compared += 1;
    }

    pub(crate) fn differ(&mut self, finding: &Finding) {
        let agreement = &mut self.0[finding.subject as usize];
        agreement.compared += 1;
        if finding.departure.is_some() {
            agreement.explained += 1;
        } else {
            agreement.unexplained += 1;
        }
    }
}
