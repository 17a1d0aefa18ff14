//! What happened of late to the ReplicaSets under one owner and to their pods, so that it can be taken back one by one.

use std::collections::VecDeque;

use server_core::{Replica, Span, Timestamp, Uid};

use crate::difference::{LATE, REACH};

/// How many changes are kept. Where more come within the reach of a view, some views are missing.
const CHANGES_MAX: usize = 4_096;
/// What a change takes in memory, with the names that it may be the last to hold.
const CHANGE_BYTES: usize = 600;
/// How often a ReplicaSet may be rescaled within the reach of a view before only the latest numbers count.
const RESCALES_MAX: usize = 2;
/// How old the number of a ReplicaSet can be that is rescaled more often.
const SHORT_REACH: Span = Span::seconds(5);

/// The changes of a while, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Past {
    changes: VecDeque<Change>,
    /// The number of the first change that is kept.
    first: u64,
    /// When the latest change was that had to make room.
    lost: Option<Timestamp>,
}

/// A change of one ReplicaSet.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// When it was seen.
    pub(super) at: Timestamp,
    /// The ReplicaSet.
    pub(super) set: Uid,
    pub(super) what: What,
}

/// What changed, and how to take it back.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// One of its replicas came, changed or went.
    Pod(Box<PodChange>),
    /// Other replicas were wanted: so many before.
    Wanted(i32),
}

/// A replica before and after a change; one of the two is there.
#[derive(Clone, Debug)]
pub(super) struct PodChange {
    pub(super) before: Option<Replica>,
    pub(super) after: Option<Replica>,
}

// === impl Past ===

impl Past {
    /// Adds a change, and returns its number.
    pub(super) fn push(&mut self, change: Change) -> u64 {
        self.forget(change.at);
        if self.changes.len() == CHANGES_MAX {
            self.lost = self.changes.pop_front().map(|change| change.at);
            self.first += 1;
        }
        self.changes.push_back(change);
        self.first + self.changes.len() as u64 - 1
    }

    /// Forgets what no act that is still to be judged can rest on.
    pub(super) fn forget(&mut self, now: Timestamp) {
        let from = now.plus(Span(-REACH.0 - LATE.0 - LATE.0));
        while self.changes.front().is_some_and(|change| change.at < from) {
            self.changes.pop_front();
            self.first += 1;
        }
    }

    /// Returns when the oldest change was.
    pub(super) fn begins(&self) -> Option<Timestamp> {
        self.changes.front().map(|change| change.at)
    }

    /// Returns whether all changes since a time are kept.
    pub(super) fn is_whole_since(&self, from: Timestamp) -> bool {
        self.lost.is_none_or(|lost| lost < from)
    }

    /// Returns the changes since a time with their numbers, the latest first.
    pub(super) fn back_to(&self, from: Timestamp) -> impl Iterator<Item = (u64, &Change)> {
        let changes = self.changes.iter().enumerate().rev();
        let numbered = changes.map(|(at, change)| (self.first + at as u64, change));
        numbered.take_while(move |(_, change)| change.at >= from)
    }

    /// Returns when the change before one was.
    pub(super) fn before(&self, number: u64) -> Option<Timestamp> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        Some(self.changes.get(at.checked_sub(1)?)?.at)
    }

    /// Returns the fewest and the most replicas that a ReplicaSet wanted at some moment from `from` to `to`, where `current` are wanted now.
    pub(super) fn wanted(
        &self,
        set: &Uid,
        (from, to): (Timestamp, Timestamp),
        current: i32,
    ) -> (i32, i32) {
        let changes = self.changes.iter().rev().filter(|it| it.set == *set);
        // Each number stood from one change to the next.
        let (mut number, mut fewest, mut most) = (current, i32::MAX, 0);
        for change in changes {
            let What::Wanted(before) = change.what else {
                continue;
            };
            if change.at <= to {
                (fewest, most) = (fewest.min(number), most.max(number));
            }
            if change.at < from {
                return (fewest, most);
            }
            number = before;
        }
        (fewest.min(number), most.max(number))
    }

    /// Returns the fewest and the most replicas that the other controller can have taken a ReplicaSet to want for an act that was seen at
    /// `at`, as far as is known at `now`.
    pub(super) fn wanted_for(
        &self,
        set: &Uid,
        at: Timestamp,
        now: Timestamp,
        current: i32,
    ) -> (i32, i32) {
        let from = at.plus(Span(-REACH.0));
        let rescales = self.back_to(from);
        let rescales = rescales
            .filter(|(_, it)| it.set == *set && it.at <= at && matches!(it.what, What::Wanted(_)));
        let often = rescales.count() > RESCALES_MAX;
        let reach = if often { SHORT_REACH } else { REACH };
        self.wanted(set, (at.plus(Span(-reach.0)), now), current)
    }

    /// Returns about how many bytes are held.
    pub(super) fn bytes(&self) -> usize {
        CHANGE_BYTES * (1 + self.changes.len())
    }

    /// Returns how many changes are kept.
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Returns all changes, to be freed a piece at a time.
    pub(super) fn into_changes(self) -> impl Iterator<Item = Change> + Send {
        self.changes.into_iter()
    }
}
