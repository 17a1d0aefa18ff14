//! Finds the few among very many pods that can have a part in a choice, looking at one pod at a time.
//!
//! These are the first ones by the first step of the order, with the first that stays; and, by its second step, pods beyond them of the
//! class at that border that are ready since the same instant as one of them.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use super::{Candidate, SortKey};
use crate::{compact_uid::CompactUid, object::Timestamp};

/// How many pods are kept beyond those that are needed, until the rest of them is left out.
const SLACK: usize = if cfg!(test) { 4 } else { 4_096 };

/// The pods that were looked at and may have a part in the choice.
#[derive(Clone, Debug)]
pub(crate) struct Shortlist<I> {
    /// How many are chosen, and when.
    count: usize,
    now: Timestamp,
    /// The first `count + 1`, as far as all have been looked at, and some more.
    first: Vec<Listed<I>>,
    /// The latest creation of a ready pod.
    youngest: Option<Timestamp>,
    border: Option<Border<I>>,
    beyond: Vec<Listed<I>>,
}

/// What the second step of the order asks of pods.
#[derive(Clone, Debug)]
struct Border<I> {
    /// The first `count + 1`.
    ids: BTreeSet<I>,
    class: u128,
    /// The instants of those of the class at the border, and how many share each.
    instants: BTreeMap<Timestamp, usize>,
}

/// A pod, and what is compared of it.
#[derive(Clone, Debug)]
struct Listed<I> {
    id: I,
    class: u128,
    tail: u128,
    since: Timestamp,
    uid: CompactUid,
}

// === impl Shortlist ===

impl<I: Copy + Ord> Shortlist<I> {
    /// Returns the list for a choice of `count` pods out of more than that.
    pub(crate) const fn new(count: usize, now: Timestamp) -> Self {
        Self {
            count,
            now,
            first: Vec::new(),
            youngest: None,
            border: None,
            beyond: Vec::new(),
        }
    }

    /// Looks at a pod.
    pub(crate) fn look(&mut self, candidate: &Candidate<'_, I>) {
        if candidate.state.ready.ready {
            self.youngest = self.youngest.max(candidate.state.created);
        }
        self.first.push(Listed::new(candidate, self.now));
        if self.first.len() > 2 * self.count + SLACK {
            self.cut_first();
        }
    }

    /// Notes that all pods have been looked at. Returns whether they are to be looked at once more.
    pub(crate) fn end_first_look(&mut self) -> bool {
        self.cut_first();
        let mut instants = BTreeMap::<_, usize>::new();
        let class = self
            .first
            .get(self.count)
            .map_or(0, |survivor| survivor.class);
        let keys = self.first.iter().map(Listed::key);
        for key in keys.filter(|key| key.class == class && key.has_time()) {
            *instants.entry(key.since).or_default() += 1;
        }
        let ids = self.first.iter().map(|listed| listed.id).collect();
        let is_open = !instants.is_empty();
        self.border = Some(Border {
            ids,
            class,
            instants,
        });
        is_open
    }

    /// Looks at a pod once more.
    pub(crate) fn look_again(&mut self, candidate: &Candidate<'_, I>) {
        let Some(border) = &self.border else { return };
        let listed = Listed::new(candidate, self.now);
        let is_open = listed.class == border.class
            && border.instants.contains_key(&listed.since)
            && !border.ids.contains(&listed.id);
        if !is_open {
            return;
        }
        self.beyond.push(listed);
        if self.beyond.len() > 2 * self.count + SLACK {
            self.cut_beyond();
        }
    }

    /// Returns the pods that may have a part, and the latest creation of a ready pod among all.
    pub(crate) fn finish(mut self) -> (Vec<I>, Option<Timestamp>) {
        self.cut_beyond();
        let listed = self.first.iter().chain(&self.beyond);
        (listed.map(|listed| listed.id).collect(), self.youngest)
    }

    fn cut_first(&mut self) {
        if self.first.len() > self.count + 1 {
            self.first.select_nth_unstable_by(self.count, Listed::cmp);
            self.first.truncate(self.count + 1);
        }
        self.first.sort_unstable_by(Listed::cmp);
    }

    /// Leaves out those that have no part, as others of their instant come first by tail.
    fn cut_beyond(&mut self) {
        let Some(border) = &self.border else { return };
        self.beyond.sort_unstable_by(|left, right| {
            let by_instant = left.since.cmp(&right.since);
            by_instant.then_with(|| left.key().cmp_tail(&right.key()))
        });
        let mut left = border.instants.clone();
        self.beyond.retain(|listed| {
            let left = left.entry(listed.since).or_default();
            let is_kept = *left > 0;
            *left = left.saturating_sub(1);
            is_kept
        });
    }
}

// === impl Listed ===

impl<I: Copy> Listed<I> {
    fn new(candidate: &Candidate<'_, I>, now: Timestamp) -> Self {
        let SortKey {
            class, tail, since, ..
        } = SortKey::new(0, candidate, now);
        Self {
            id: candidate.id,
            class,
            tail,
            since,
            uid: candidate.uid.clone(),
        }
    }

    fn key(&self) -> SortKey<'_> {
        SortKey {
            class: self.class,
            tail: self.tail,
            since: self.since,
            uid: &self.uid,
            candidate: 0,
        }
    }

    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
