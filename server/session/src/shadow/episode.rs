//! The changes of one ReplicaSet until it rests.

use std::mem;

use decree_api::v1::{Difference, Subject};
use decree_core::{Deletable, KnownSet, Pod, Span, Timestamp, wording};

use super::{
    rest::{self, AtRest, REST},
    results::{Results, difference},
};

/// How long nothing may have changed before a difference is reported.
const LATE: Span = Span::seconds(30);
/// How long a ReplicaSet may change without a rest before it counts as not compared.
const RESTLESS: Span = Span::seconds(60);
/// How long nothing may have changed before compared deletions: the other controller then sees the same pods.
pub(super) const STEADY: Span = Span::seconds(5);
/// The maximum time from a lower number of desired pods to compared deletions: a controller that is later also sees older pods.
const PROMPT: Span = Span::seconds(2);
/// The maximum number of pods that a difference names.
const NAMES_MAX: usize = 5;
/// The maximum pause between the deletions of one decision.
const PAUSE: Span = Span::millis(500);

/// One ReplicaSet, from its first change until it rests and agrees. The epoch stands for times before that.
#[derive(Clone, Debug, Default)]
pub(super) struct Episode {
    /// When it began, or last counted as not compared.
    begun: Timestamp,
    changed: Timestamp,
    /// When a replica last changed, or the other controller may have missed a number of desired pods.
    moved: Timestamp,
    scaled: Timestamp,
    deleted: Timestamp,
    /// When the status was last written, if that was seen.
    written: Option<Timestamp>,
    /// The most desired pods, and the most active pods just after a create.
    desired_max: i32,
    created_max: i32,
    /// The rest of the choice for the view before the latest deletions; `None` if that view was not stable, and after a difference.
    pub(super) choice: Option<Deletable>,
    /// The number of pods deleted without a surplus, before the number of desired pods was lowered.
    unasked: u64,
    /// Whether the number of pods, or an owner, is part of the comparison.
    is_counted: bool,
    is_claimed: bool,
    /// The subject of a reported difference that lasts.
    told: Option<Subject>,
    /// The next comparison; `None` if only a change leads to one.
    pub(super) due: Option<Timestamp>,
}

/// A visible change of a ReplicaSet or of its pods.
pub(super) enum Change<'a> {
    /// The other controller created a replica. Holds the number of replicas with it.
    Created(i32),
    /// A replica was deleted. The choice is for the first of one decision, if the view was stable and had a surplus.
    Deleted(&'a Pod, Option<Deletable>),
    /// A replica changed, or went for another reason.
    Moved,
    /// A pod was adopted or released, perhaps wrongly.
    Claimed(Option<Box<Difference>>),
    /// Another number of pods is desired, and numbers in between may be missing.
    Scaled(i32, bool),
    /// Only the status depends on it.
    Other,
    /// The status was written.
    Written,
    /// The server decided, without a visible change.
    Decided,
}

impl Episode {
    pub(super) fn new(now: Timestamp, desired: i32) -> Self {
        Self {
            begun: now,
            changed: now,
            desired_max: desired,
            due: Some(now.plus(REST)),
            ..Self::default()
        }
    }

    /// Notes a change of a ReplicaSet, which is `known` before that. A rest begins anew.
    pub(super) fn change(
        &mut self,
        now: Timestamp,
        known: &KnownSet<'_>,
        change: Change<'_>,
        results: &mut Results,
    ) {
        let is_visible = !matches!(change, Change::Decided | Change::Written);
        if self.due.is_none() {
            let told = self.told.filter(|_| !is_visible);
            *self = Self::new(now, known.wanted());
            self.told = told;
        } else if is_visible {
            self.changed = now;
            self.due = Some(now.plus(REST).min(self.begun.plus(RESTLESS)));
        }
        match change {
            Change::Decided | Change::Other => return,
            Change::Written => return self.written = Some(now),
            Change::Deleted(pod, choice) => return self.delete(now, known, (pod, choice), results),
            Change::Scaled(desired, is_gap) => {
                if desired < known.wanted() && self.unasked > 0 {
                    // The other controller saw the number first.
                    results.deleted_by_others -= mem::take(&mut self.unasked);
                    results.of(Subject::Victims).not_compared += 1;
                }
                let most = if is_gap { i32::MAX } else { desired };
                self.desired_max = self.desired_max.max(most);
                if now >= self.scaled.plus(STEADY) {
                    (self.scaled, self.is_counted) = (now, true);
                    self.choice = None;
                    return;
                }
            }
            Change::Created(active) => {
                self.created_max = self.created_max.max(active);
                self.is_counted = true;
            }
            Change::Claimed(None) => self.is_claimed = true,
            Change::Claimed(Some(wrong)) => self.tell(*wrong, results),
            Change::Moved => {}
        }
        self.moved = now;
        // Later deletions belong to another decision.
        self.choice = None;
    }

    fn delete(
        &mut self,
        now: Timestamp,
        known: &KnownSet<'_>,
        (pod, choice): (&Pod, Option<Deletable>),
        results: &mut Results,
    ) {
        let is_surplus = known.surplus() > 0;
        let victims = results.of(Subject::Victims);
        if self.deleted.plus(PAUSE) < now {
            victims.compared += u64::from(choice.is_some());
            victims.not_compared += u64::from(is_surplus && choice.is_none());
            self.choice = choice;
        }
        (self.moved, self.deleted, self.is_counted) = (now, now, true);
        let Some(choice) = &mut self.choice else {
            self.unasked += u64::from(!is_surplus);
            results.deleted_by_others += u64::from(!is_surplus);
            return;
        };
        choice.chosen.retain(|(name, _)| *name != pod.name);
        let is_allowed = choice.allowed.contains(&pod.uid);
        if choice.count > 0 && is_allowed {
            choice.count -= 1;
        } else {
            let chosen = choice.chosen.first();
            let decided = chosen.map_or_else(
                || "delete no more pods".to_owned(),
                |(name, why)| format!("delete {name} ({})", why.detail),
            );
            let sides = [decided, format!("deleted {}", pod.name)];
            let why = "the pods had not changed for 5 s, so both controllers saw the same";
            let chosen = choice.chosen.iter().take(NAMES_MAX);
            results.disagree(Difference {
                decided_pods: chosen.map(|(name, _)| name.to_string()).collect(),
                done_pods: vec![pod.name.to_string()],
                ..difference(Subject::Victims, &known.object().key, sides, why)
            });
            self.choice = None;
        }
    }

    pub(super) fn is_steady(&self, now: Timestamp) -> bool {
        self.moved.plus(STEADY) <= now
    }

    /// Whether the number of desired pods has just changed.
    pub(super) fn is_just_scaled(&self, now: Timestamp) -> bool {
        now <= self.scaled.plus(PROMPT)
    }

    pub(super) const fn is_over(&self) -> bool {
        self.due.is_none() && self.told.is_none()
    }

    /// Compares what is due, and sets the time of the next comparison.
    pub(super) fn compare(&mut self, now: Timestamp, set: &KnownSet<'_>, results: &mut Results) {
        let (rests, late) = (self.changed.plus(REST), self.changed.plus(LATE));
        if now < rests {
            results.skip_episode();
            self.begun = now;
            self.due = Some(rests.min(now.plus(RESTLESS)));
            return;
        }
        (self.choice, self.due) = (None, None);
        let (most, created) = (self.desired_max, mem::take(&mut self.created_max));
        if created > most {
            let [due, done] = [most, created].map(|pods| wording::count(pods, "active pod"));
            let sides = [format!("at most {due}"), format!("created up to {done}")];
            let why = "no more pods were desired since the last rest";
            let found = difference(Subject::Count, &set.object().key, sides, why);
            self.tell(found, results);
        }
        match rest::compare(now, set, self.written, &mut results.looks) {
            AtRest::Ripens => self.due = Some(now.plus(REST)),
            AtRest::Differs(found) if self.told == Some(found.subject()) => {}
            AtRest::Differs(_) if now < late => self.due = Some(late),
            AtRest::Differs(found) => self.tell(*found, results),
            AtRest::NotComparable => results.of(Subject::Count).not_compared += 1,
            AtRest::Agrees => {
                self.told = None;
                results.of(Subject::Count).compared += u64::from(self.is_counted);
                results.of(Subject::Adoption).compared += u64::from(self.is_claimed);
                results.of(Subject::Status).compared += 1;
            }
        }
    }

    fn tell(&mut self, found: Difference, results: &mut Results) {
        (self.told, self.is_counted) = (Some(found.subject()), false);
        results.differ(found);
    }
}
