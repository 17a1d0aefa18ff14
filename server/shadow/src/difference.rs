//! What may differ, how long it may, and how often it did.

use server_core::{Key, Span};

/// How long the acts of the other controller are gathered before they are judged.
pub const SETTLED: Span = Span::seconds(1);
/// How long an act waits for a view that explains it: longer than one stream lags behind the other.
pub const LATE: Span = Span::seconds(10);
/// How late the other controller or the server may see what the other one sees.
pub const LAG: Span = Span::seconds(5);
/// How long it may take until all that was decided at once is done.
pub const REACH: Span = Span::seconds(20);
/// How long a status may be another than the pods call for.
pub const STATUS_MAX: Span = Span::seconds(30);
/// How long what is decided may stay undone.
pub const PENDING_MAX: Span = Span::seconds(30);

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

/// Why a difference is no fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Departure {
    /// The condition ReplicaFailure mirrors the latest attempt here (docs/architecture.md).
    ReplicaFailure,
    /// In a namespace that ends the other controller gives up; here the ReplicaSet waits for its next event (docs/architecture.md).
    NamespaceEnding,
    /// Somebody else deleted pods amid a scale-down, as far as can be seen. Only a few are explained by this.
    DeletedByOthers,
}

/// One thing that the other controller did in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The ReplicaSet.
    pub key: Key,
    /// What differs, and why it may.
    pub finding: Finding,
}

/// What differs in a ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What differs.
    pub subject: Subject,
    /// What was decided here.
    pub decided: Side,
    /// What was done there.
    pub done: Side,
    /// Why it may differ, where that is known.
    pub departure: Option<Departure>,
}

/// One side of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// What it is, for people.
    pub text: String,
    /// The names of the pods that it concerns, a few of many.
    pub pods: Vec<String>,
}

/// How often something was compared, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// How often it was compared.
    pub compared: u64,
    /// How often it differed and that is explained.
    pub explained: u64,
    /// How often it differed and nothing explains it.
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
    /// Returns a difference that only texts describe and nothing explains.
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

    /// Returns the same with what explains it.
    pub(crate) fn because(self, departure: Option<Departure>) -> Self {
        Self { departure, ..self }
    }
}

// === impl Agreements ===

impl Agreements {
    /// Returns the agreement on a subject.
    #[must_use]
    pub const fn of(&self, subject: Subject) -> Agreement {
        self.0[subject as usize]
    }

    /// Returns how often anything was compared.
    #[must_use]
    pub fn compared(&self) -> u64 {
        self.0.iter().map(|agreement| agreement.compared).sum()
    }

    /// Counts a comparison that found no difference.
    pub(crate) const fn agree(&mut self, subject: Subject) {
        self.0[subject as usize].compared += 1;
    }

    /// Counts a comparison that found a difference.
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
