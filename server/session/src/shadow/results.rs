//! The results of comparisons by subject, and the differences.

use decree_api::v1::{self, Departure, Subject};
use decree_core::Key;

use crate::wire::key_ref;

/// A person who deletes a pod amid a scale-down looks like a controller that chose the pod. A controller that chooses wrongly does so again.
/// So this explains one difference in this many comparisons of victims.
const BELIEVED_EVERY: u64 = 100;

#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    /// By subject, without the first, which is unspecified.
    agreements: [v1::Agreement; 4],
    /// The differences that were not reported, without time and cluster.
    pub(super) found: Vec<v1::Difference>,
    pub(super) deleted_by_others: u64,
    /// The number of pods that may be examined.
    pub(super) looks: usize,
    /// From this number of compared victims on, a deletion by a person is believed.
    believes_from: u64,
}

impl Results {
    /// Counts a ReplicaSet without a rest.
    pub(super) const fn skip_episode(&mut self) {
        self.of(Subject::Count).not_compared += 1;
        self.of(Subject::Status).not_compared += 1;
    }

    pub(super) fn differ(&mut self, difference: v1::Difference) {
        let agreement = self.of(difference.subject());
        agreement.compared += 1;
        let is_explained = difference.departure() != Departure::Unspecified;
        agreement.explained += u64::from(is_explained);
        agreement.unexplained += u64::from(!is_explained);
        self.found.push(difference);
    }

    /// Counts victims that agreed before as a difference. A person explains one in [`BELIEVED_EVERY`].
    pub(super) fn disagree(&mut self, mut difference: v1::Difference) {
        self.of(Subject::Victims).compared -= 1;
        let compared = self.of(Subject::Victims).compared;
        if compared >= self.believes_from {
            self.believes_from = compared + BELIEVED_EVERY;
            difference.set_departure(Departure::DeletedByOthers);
            let why = "somebody else seems to have deleted a pod amid the scale-down";
            why.clone_into(&mut difference.why);
        }
        self.differ(difference);
    }

    pub(super) fn agreements(&self) -> impl Iterator<Item = v1::Agreement> {
        let agreements = (1..).zip(self.agreements);
        agreements.map(|(subject, it)| v1::Agreement { subject, ..it })
    }

    pub(super) const fn of(&mut self, subject: Subject) -> &mut v1::Agreement {
        &mut self.agreements[subject as usize - 1]
    }
}

/// Returns an unexplained difference: the decision, the act, and the reason why both controllers must agree.
pub(super) fn difference(
    subject: Subject,
    key: &Key,
    [decided, done]: [String; 2],
    why: &str,
) -> v1::Difference {
    v1::Difference {
        subject: subject.into(),
        replica_set: Some(key_ref(key)),
        decided,
        done,
        why: why.to_owned(),
        ..v1::Difference::default()
    }
}
