//! What docs/protocol.md leaves to the agent, drawn.

use std::time::Duration;

use crate::rng::Rng;

/// What an agent of another make does that the protocol forbids, or that nobody should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It sends lists that are older than the one before.
    OlderLists,
    /// It lists again and again, and watches nothing.
    Polls,
    /// It reports no outcome.
    WithholdsAll,
    /// It reports no outcome of some batches.
    WithholdsSome,
}

/// What an agent makes of the freedom that the protocol gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// Whether it numbers its frames.
    pub numbers_frames: bool,
    /// Whether it waits for the Welcome before it sends its lists.
    pub waits_for_welcome: bool,
    /// How many objects or changes a frame holds at most.
    pub frame_items_max: usize,
    /// Whether a change that waits to be sent gives way to a newer one of its object.
    pub merges: bool,
    /// Whether it begins a list before it asks the cluster for it, and not when it has it.
    pub begins_early: bool,
    /// Whether its lists have a version.
    pub versions_lists: bool,
    /// Whether its lists may be older than its watches, but for the first of a session.
    pub lists_from_cache: bool,
    /// Chance of each change, per thousand: it lists the kind again, unasked.
    pub lists_unasked: u64,
    /// How long it may keep an outcome to itself; a later one may overtake it.
    pub outcome_delay: Duration,
    /// Chance of each success, per thousand: it is reported without the object after the write.
    pub bare: u64,
    /// Whether a success without its object has no version either.
    pub bare_without_version: bool,
    /// How many calls of a deletion or of claims it makes at a time.
    pub calls_max: usize,
    /// What it does that the protocol forbids.
    pub manner: Option<Manner>,
}

// === impl Behaviour ===

impl Behaviour {
    /// Draws a behaviour.
    #[must_use]
    pub fn draw(rng: &mut Rng) -> Self {
        let begins_early = rng.chance(500);
        // A list whose state is not known to be that of its beginning must say which state it is.
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

    /// Returns whether it lists again and again.
    pub(super) fn polls(&self) -> bool {
        matches!(self.manner, Some(Manner::Polls | Manner::OlderLists))
    }

    /// Returns whether it reports no outcome of a batch.
    pub(super) fn withholds(&self, batch: u64) -> bool {
        match self.manner {
            Some(Manner::WithholdsAll) => true,
            Some(Manner::WithholdsSome) => batch.is_multiple_of(3),
            Some(Manner::OlderLists | Manner::Polls) | None => false,
        }
    }

    /// Returns this behaviour with a manner. What is seen of the manner only in lists with versions has them.
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
