//! The last scale-down of a ReplicaSet, for people who ask why these pods were deleted. Later retries, status writes and creates do not
//! replace it.

use decree::v1;
use server_core::{ActionKind, Answered, Held, RankedPod, ScaleDown};

use crate::wire::{self, encode};

/// The maximum number of victims that are kept of several batches.
const CHOSEN_MAX: usize = 20;

#[derive(Clone, Debug)]
pub(super) struct LastScaleDown {
    scale_down: ScaleDown,
    /// Whether a further batch begins another scale-down.
    is_over: bool,
}

impl LastScaleDown {
    /// The scale-down after a further batch, which may continue the one before it.
    pub(super) fn after(last: Option<Self>, next: ScaleDown) -> Self {
        let scale_down = match last {
            Some(last) if last.continues_in(&next) => joined(last.scale_down, next),
            _ => next,
        };
        Self {
            scale_down,
            is_over: false,
        }
    }

    /// Takes the result of a batch. The scale-down is over if pods were created, or if all surplus pods were deleted.
    pub(super) fn answered(&mut self, answered: &Answered) {
        let (last, counts) = (&self.scale_down, answered.counts);
        self.is_over |= match answered.action {
            ActionKind::Create => counts.done > 0,
            ActionKind::Delete => {
                let surplus = usize::try_from(last.from.saturating_sub(last.to));
                let is_all = surplus.is_ok_and(|surplus| surplus <= last.chosen);
                let is_done = counts.failed == 0 && counts.not_started == 0;
                is_done && is_all && last.batch == answered.batch
            }
            ActionKind::Claim | ActionKind::WriteStatus => false,
        };
    }

    pub(super) const fn end(&mut self) {
        self.is_over = true;
    }

    /// Whether another batch deletes the rest of this one: more pods than one batch may have, or pods whose deletion was refused.
    const fn continues_in(&self, next: &ScaleDown) -> bool {
        let last = &self.scale_down;
        !self.is_over && next.to == last.to && next.from <= last.from
    }

    pub(super) fn encode(&self) -> v1::ScaleDown {
        let ScaleDown {
            key: _,
            at,
            batch,
            from,
            to,
            chosen,
            pods,
        } = &self.scale_down;
        let value = |(rule, value)| v1::RankValue {
            rule: wire::rule(rule).into(),
            value,
        };
        let pods = pods.iter().map(|pod| v1::RankedPod {
            name: pod.name.as_ref().to_owned(),
            chosen: pod.chosen,
            reason: pod.reason.clone().map(encode::reason),
            values: pod.values().map(value).into(),
        });
        v1::ScaleDown {
            time: Some(encode::time(*at)),
            batch_id: batch.0,
            from: *from,
            to: *to,
            chosen: wire::int32(*chosen),
            pods: pods.collect(),
        }
    }
}

impl Held for LastScaleDown {
    fn bytes(&self) -> usize {
        let pods = self.scale_down.pods.iter().map(Held::bytes);
        size_of::<Self>() + pods.sum::<usize>()
    }
}

/// Joins a scale-down with the results of its earlier batches.
fn joined(before: ScaleDown, next: ScaleDown) -> ScaleDown {
    let gone = before.from.abs_diff(next.from) as usize;
    let is_new = |pod: &RankedPod| next.pods.iter().any(|new| new.uid == pod.uid);
    let mut pods: Vec<_> = before.pods.into_iter().filter(|pod| pod.chosen).collect();
    pods.retain(|pod| !is_new(pod));
    pods.extend(next.pods);
    let chosen = pods.iter().filter(|pod| pod.chosen).count();
    pods.drain(..chosen.saturating_sub(CHOSEN_MAX));
    ScaleDown {
        from: before.from,
        at: before.at,
        chosen: gone.saturating_add(next.chosen),
        pods,
        ..next
    }
}
