//! The pods on both sides of the cut of a deletion, with all values that the order of deletion compares. They show people why the server
//! chose the victims.

use std::sync::Arc;

use super::{
    candidate::{Candidate, Preferred},
    reason::{explain, preferred, values},
};
use crate::{
    object::{PodState, Timestamp, Uid},
    reason::{Reason, Rule},
};

/// The maximum number of compared victims next to the cut, and of compared remaining pods.
const GO_MAX: usize = 20;
pub(super) const STAY_MAX: usize = 5;

/// A pod next to the cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankedPod {
    /// Its name.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Uid,
    /// Its node; `None` while it is unassigned.
    pub node: Option<Box<str>>,
    /// Its plain values.
    pub state: PodState,
    /// The number of active related pods on its node (spec 7.3).
    pub rank: u32,
    /// Its values by the preferences of its ReplicaSet, in their order.
    pub preferred: Box<[(Rule, String)]>,
    /// The deletion cost that it answered when it was asked.
    pub asked: Option<i32>,
    /// The time of the comparison.
    pub at: Timestamp,
    /// Whether it was chosen.
    pub chosen: bool,
    /// The difference from the next pod; `None` for the last pod.
    pub reason: Option<Reason>,
}

/// Compares the pods next to the cut after the first `count` of an order. The first step of the order puts the `holders` in their
/// positions; there are none if no order was needed.
pub(super) fn compare<I: Copy>(
    (order, holders): (&[usize], &[usize]),
    candidates: &[Candidate<'_, I>],
    count: usize,
    (now, name): (Timestamp, &dyn Fn(I) -> Arc<str>),
) -> Vec<RankedPod> {
    let near = count.saturating_sub(GO_MAX)..order.len();
    let compared = near.map(|at| {
        let pod = &candidates[order[at]];
        let reason = order.get(at + 1).zip(holders.get(at));
        let reason = reason.map(|(next, holder)| {
            let (next, holder) = (&candidates[*next], &candidates[*holder]);
            explain(pod, next, holder, now)
        });
        RankedPod {
            name: name(pod.id),
            uid: pod.uid.clone(),
            node: pod.node.map(Into::into),
            state: *pod.state,
            rank: pod.rank,
            preferred: preferred(pod, now),
            asked: pod.preferred().asked,
            at: now,
            chosen: at < count,
            reason,
        }
    });
    compared.collect()
}

impl RankedPod {
    /// The values that the rules compare, in the order of the rules.
    pub fn values(&self) -> Vec<(Rule, String)> {
        let pod = Candidate {
            id: (),
            node: self.node.as_deref(),
            state: &self.state,
            rank: self.rank,
            uid: &self.uid,
            preferred: self.asked.map(|_| {
                Box::new(Preferred {
                    asked: self.asked,
                    ..Preferred::default()
                })
            }),
        };
        values(&pod, &self.preferred, self.at)
    }
}
