//! The recent changes of the ReplicaSets under one owner and of their pods, which a search undoes one by one.

use std::collections::VecDeque;

use server_core::{Replica, Span, Timestamp, Uid};

use crate::difference::{LAG, LATE, REACH};

/// The maximum number of kept changes. If more come within the reach of a view, some views are missing.
const CHANGES_MAX: usize = 4_096;
/// The memory of a change in bytes, with the names that it may be the last to hold.
const CHANGE_BYTES: usize = 600;

/// Recent changes, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Past {
    changes: VecDeque<Change>,
    /// The number of the first kept change.
    first: u64,
    /// The time of the latest change that was dropped to make room.
    lost: Option<Timestamp>,
}

/// The numbers of desired replicas of a ReplicaSet, each with its beginning and end, the latest first.
#[derive(Clone, Debug)]
pub(super) struct Numbers(Vec<(i32, Timestamp, Timestamp)>);

/// A change of one ReplicaSet.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// When the server saw it.
    pub(super) at: Timestamp,
    pub(super) set: Uid,
    pub(super) what: What,
}

/// A change, and how to undo it.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// A replica was added, changed or removed.
    Pod(Box<PodChange>),
    /// The number of desired replicas changed; holds the number before.
    Wanted(i32),
}

/// A replica before and after a change; one of the two exists.
#[derive(Clone, Debug)]
pub(super) struct PodChange {
    pub(super) before: Option<Replica>,
    pub(super) after: Option<Replica>,
    /// Whether the pod did not exist before.
    pub(super) is_made: bool,
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

    /// Forgets changes that no pending judgement can use.
    pub(super) fn forget(&mut self, now: Timestamp) {
        let from = now.plus(Span(-REACH.0 - LATE.0 - LATE.0));
        while self.changes.front().is_some_and(|change| change.at < from) {
            self.changes.pop_front();
            self.first += 1;
        }
    }

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

    /// Returns the time of the change before this one.
    pub(super) fn before(&self, number: u64) -> Option<Timestamp> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        Some(self.changes.get(at.checked_sub(1)?)?.at)
    }

    /// Returns the numbers of desired replicas of a ReplicaSet; `current` is the latest.
    pub(super) fn numbers(&self, set: &Uid, current: i32) -> Numbers {
        let changes = self.changes.iter().rev().filter(|it| it.set == *set);
        let (mut number, mut until, mut stood) = (current, Timestamp(i64::MAX), Vec::new());
        for change in changes {
            if let What::Wanted(before) = change.what {
                stood.push((number, change.at, until));
                (number, until) = (before, change.at);
            }
        }
        stood.push((number, Timestamp(i64::MIN), until));
        Numbers(stood)
    }

    pub(super) fn bytes(&self) -> usize {
        CHANGE_BYTES * (1 + self.changes.len())
    }

    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }
}

// === impl Numbers ===

impl Numbers {
    /// Returns the fewest and the most desired replicas at some moment from `from` to `to`.
    pub(super) fn between(&self, from: Timestamp, to: Timestamp) -> (i32, i32) {
        let stood = self.0.iter();
        let stood = stood.filter(|(_, since, until)| *since <= to && *until >= from);
        let numbers = stood.map(|(number, ..)| *number);
        numbers.fold((i32::MAX, 0), |(fewest, most), number| {
            (fewest.min(number), most.max(number))
        })
    }

    /// Returns the fewest and the most desired replicas that the other controller can have known when it decided on an event seen `at` this
    /// time: either stream may be late.
    pub(super) fn around(&self, at: Timestamp) -> (i32, i32) {
        self.between(at.plus(Span(-LAG.0)), at.plus(LAG))
    }
}
