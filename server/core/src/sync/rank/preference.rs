//! The preferences of a ReplicaSet's owner in the order of deletion: after readiness, before the deletion cost.

use std::{
    borrow::Cow,
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
};

use super::{
    SortKey,
    candidate::{BUCKET_BITS, Candidate, PREFERENCE_BIT},
    keys, share_out,
};
use crate::{object::Timestamp, preferences::ScaleIn, reason::Rule};

impl ScaleIn {
    pub(super) const fn rule(&self) -> Rule {
        match self {
            Self::First(..) => Rule::First,
            Self::EmptiestNode => Rule::EmptiestNode,
            Self::Youngest => Rule::Youngest,
            Self::LeavingNode => Rule::LeavingNode,
            Self::Spread(_) => Rule::FullestDomain,
        }
    }

    /// The label of nodes over which the rule spreads pods.
    pub(crate) fn spread(&self) -> Option<&str> {
        match self {
            Self::Spread(key) => Some(key),
            Self::First(..) | Self::EmptiestNode | Self::Youngest | Self::LeavingNode => None,
        }
    }

    /// Compares two pods; the smaller one goes first. Of nodes with as many pods, the first by name is emptied first. Of absent and known creation times, the absent ones are the youngest, as upstream.
    pub(super) fn cmp<I>(&self, left: &Candidate<'_, I>, right: &Candidate<'_, I>) -> Ordering {
        match self {
            Self::First(key, value) => right.has_label(key, value).cmp(&left.has_label(key, value)),
            Self::EmptiestNode => {
                let [left, right] = [left, right].map(|pod| (pod.preferred().on_node, pod.node));
                left.cmp(&right)
            }
            Self::Youngest => {
                let [left, right] = [left, right].map(|pod| pod.state.created.map(Reverse));
                left.cmp(&right)
            }
            Self::LeavingNode => {
                let [left, right] = [left, right].map(|pod| pod.preferred().hint.is_some());
                right.cmp(&left)
            }
            Self::Spread(_) => right.preferred().height.cmp(&left.preferred().height),
        }
    }
}

impl<'a, I> Candidate<'a, I> {
    pub(super) fn scale_in(&self) -> &'a [ScaleIn] {
        self.preferred().preferences.map_or(&[], |it| &it.scale_in)
    }

    pub(super) fn has_label(&self, key: &str, value: &str) -> bool {
        let found = self.preferred().labels.and_then(|labels| labels.get(key));
        found.is_some_and(|found| **found == *value)
    }

    fn cmp_preferred(&self, other: &Self) -> Ordering {
        let rules = self.scale_in().iter();
        let mut compared = rules.map(|rule| rule.cmp(self, other));
        let differs = compared.find(|it| it.is_ne());
        differs.unwrap_or(Ordering::Equal)
    }
}

/// Counts how many pods of its domain each candidate leaves alone, itself included, if the ReplicaSet prefers to spread its pods: the pods
/// of a domain go in the order without this rule.
pub(super) fn measured<'c, 'a, I: Copy>(
    candidates: &'c [Candidate<'a, I>],
    now: Timestamp,
) -> Cow<'c, [Candidate<'a, I>]> {
    let rules = candidates.first().map_or(&[][..], Candidate::scale_in);
    if rules.iter().all(|rule| rule.spread().is_none()) {
        return Cow::Borrowed(candidates);
    }
    let mut measured = candidates.to_vec();
    // All heights are equal as yet.
    let mut keys = keys(candidates, now);
    keys.sort_unstable_by(SortKey::cmp);
    share_out(&mut keys, candidates.len());
    let mut domains = BTreeMap::new();
    for key in keys.iter().rev() {
        let pod = &mut measured[key.candidate];
        let preferred = pod.preferred.get_or_insert_default();
        let height = domains.entry(preferred.domain).or_insert(0);
        *height += 1;
        preferred.height = *height;
    }
    Cow::Owned(measured)
}

/// Puts the place of each pod by the preferences into its class. Pods that tie by all of them have the same place.
pub(super) fn place<I>(keys: &mut [SortKey<'_>], candidates: &[Candidate<'_, I>]) {
    if candidates.first().is_none_or(|it| it.scale_in().is_empty()) {
        return;
    }
    let cmp = |left: &SortKey<'_>, right: &SortKey<'_>| {
        candidates[left.candidate].cmp_preferred(&candidates[right.candidate])
    };
    keys.sort_unstable_by(cmp);
    let tied = keys.chunk_by_mut(|left, right| cmp(left, right).is_eq());
    for (place, tied) in (0_u128..).zip(tied) {
        for key in tied {
            key.class |= place << (PREFERENCE_BIT + BUCKET_BITS);
        }
    }
}
