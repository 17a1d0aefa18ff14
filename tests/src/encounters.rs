//! The encounters with the protocol, by word: frames of the server by kind, ends of sessions by reason, and events of agents.

use std::collections::BTreeMap;

use decree_api::v1::{
    self, outcome::Outcome, reconcile_request as request, reconcile_response::Frame,
};

/// The word for an outcome.
pub const OUTCOME: &str = "Outcome";
/// The word for an operation that an agent refused by its own rules.
pub const GUARD: &str = "Guard";
/// The word for a budget limit that was exceeded, or would have been.
pub const BUDGET_EXCEEDED: &str = "Budget exceeded";
/// The word for a scope that the budget held and that resumes.
pub const BUDGET_RESUMED: &str = "Budget resumed";

/// The words that every sufficiently long run over drawn worlds encounters.
pub const EXPECTED: [&str; 11] = [
    "Welcome",
    "Batches",
    "Rejection",
    "Heartbeat",
    "Drain",
    "SERVER_DRAINING",
    "SESSION_SUPERSEDED",
    "AGENT_SILENT",
    "Agent stopped",
    "Lease taken",
    "Several clusters",
];

/// Counts by word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encounters(BTreeMap<&'static str, u64>);

impl Encounters {
    /// Counts an outgoing frame of the server.
    pub fn note_frame(&mut self, frame: &v1::ReconcileResponse) {
        let Some(frame) = &frame.frame else { return };
        self.note(match frame {
            Frame::Welcome(_) => "Welcome",
            Frame::Batches(_) => "Batches",
            Frame::Resync(_) => "Resync",
            Frame::Rejection(_) => "Rejection",
            Frame::Heartbeat(_) => "Heartbeat",
            Frame::Drain(_) => "Drain",
            Frame::CostsWanted(_) => "CostsWanted",
        });
    }

    /// Counts outcomes, and separately the operations that an agent refused by its own rules.
    pub fn note_outcomes(&mut self, frame: &v1::ReconcileRequest) {
        let Some(request::Frame::Outcomes(outcomes)) = &frame.frame else {
            return;
        };
        for outcome in &outcomes.outcomes {
            self.note(OUTCOME);
            if let Some(Outcome::NotStarted(it)) = &outcome.outcome
                && it.cause() == v1::NotStartedCause::Guard
            {
                self.note(GUARD);
            }
        }
    }

    /// Counts one encounter.
    pub fn note(&mut self, word: &'static str) {
        *self.0.entry(word).or_default() += 1;
    }

    /// Adds the counts of another world.
    pub fn add(&mut self, other: &Self) {
        for (word, count) in &other.0 {
            *self.0.entry(word).or_default() += count;
        }
    }

    /// Returns the count of a word.
    pub fn count(&self, word: &str) -> u64 {
        self.0.get(word).copied().unwrap_or(0)
    }

    /// Returns the words of [`EXPECTED`] without an encounter.
    pub fn missing(&self) -> Vec<&'static str> {
        let met = |word: &&'static str| self.0.contains_key(word);
        EXPECTED.into_iter().filter(|word| !met(word)).collect()
    }
}
