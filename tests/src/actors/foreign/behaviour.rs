//! The choices that docs/protocol.md leaves to the agent, drawn.

use std::time::Duration;

use crate::rng::Rng;

/// A protocol violation, or bad practice, of a third-party agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// The agent sends lists that are older than the list before.
    OlderLists,
    /// The agent lists again and again, and watches nothing.
    Polls,
    /// The agent reports no outcome.
    WithholdsAll,
    /// The agent reports no outcome of some batches.
    WithholdsSome,
}

/// The choices of an agent within the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// Whether the agent numbers its frames.
    pub numbers_frames: bool,
    /// Whether the agent waits for the Welcome before it sends its lists.
    pub waits_for_welcome: bool,
    /// The maximum number of objects or changes in a frame.
    pub frame_items_max: usize,
    /// Whether a newer change of an object replaces a change that waits to be sent.
    pub merges: bool,
    /// Whether the agent announces a list before it requests the list from the cluster, and not after.
    pub begins_early: bool,
    /// Whether the lists have a version.
    pub versions_lists: bool,
    /// Whether lists may be older than the watches, except the first list of a session.
    pub lists_from_cache: bool,
    /// Per thousand changes: the chance that the agent lists the kind again unasked.
    pub lists_unasked: u64,
    /// The maximum delay of an outcome; a later outcome may overtake it.
    pub outcome_delay: Duration,
    /// Per thousand successes: the chance of a report without the object after the write.
    pub bare: u64,
    /// Whether a success without its object has no version either.
    pub bare_without_version: bool,
    /// The maximum number of concurrent calls of a deletion or of claims.
    pub calls_max: usize,
    /// The protocol violation of the agent.
    pub manner: Option<Manner>,
}

// === impl Behaviour ===

impl Behaviour {
    /// Draws a behavior.
    #[must_use]
    pub fn draw(rng: &mut Rng) -> Self {
        let begins_early = rng.chance(500);
        // If a list may have another state than at its start, the list must name its version.
        let versions_lists = !begins_early || rng.chance(500);
        let lists_from_cache = versions_lists && rng.chance(500);
        Self {
            numbers_frames: rng.chance(500),
            waits_for_welcome: rng.chance(500),
            frame_items_max: *rng.pick(&[1, 2, 1_000]),
            merges: rng.chance(500),
            begins_early,
            versions_lists,
            lists_from_cache,
            lists_unasked: *rng.pick(&[0, 0, 20]),
            outcome_delay: *rng.pick(&[0, 50, 1_500].map(Duration::from_millis)),
            bare: *rng.pick(&[0, 200, 1_000]),
            bare_without_version: begins_early && !lists_from_cache && rng.chance(500),
            calls_max: *rng.pick(&[1, 4]),
            manner: None,
        }
    }

    pub(super) fn polls(&self) -> bool {
        matches!(self.manner, Some(Manner::Polls | Manner::OlderLists))
    }

    /// Whether the agent reports no outcome of a batch.
    pub(super) fn withholds(&self, batch: u64) -> bool {
        match self.manner {
            Some(Manner::WithholdsAll) => true,
            Some(Manner::WithholdsSome) => batch.is_multiple_of(3),
            Some(Manner::OlderLists | Manner::Polls) | None => false,
        }
    }

    /// Returns this behavior with a manner. A manner that only versions of lists reveal turns on versions.
    #[must_use]
    pub fn with(self, manner: Option<Manner>) -> Self {
        let is_older = manner == Some(Manner::OlderLists);
        Self {
            versions_lists: self.versions_lists || is_older,
            lists_from_cache: self.lists_from_cache || is_older,
            bare_without_version: self.bare_without_version && !is_older,
            manner,
            ..self
        }
    }
}
