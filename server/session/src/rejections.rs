//! The objects of one frame that were not accepted, combined in one frame for the agent and one report.

use std::collections::BTreeMap;

use decree_api::v1;
use decree_core::{Held, HeldQueue};

use crate::{
    held_message::HeldMessage,
    report::{Fault, SessionReport},
    wire::{self, Rejected},
};

/// The maximum number of violations in an answer, to a frame or to a call; further ones are counted.
pub const VIOLATIONS_MAX: usize = 100;
/// The maximum size in bytes of the violations of one object in a report.
const FAULT_BYTES_MAX: usize = 1_000;

/// The objects of one frame that were not accepted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rejections {
    sequence: u64,
    named: HeldQueue<HeldMessage<v1::RejectedObject>>,
    /// The number of violations in the answer.
    violations: usize,
    /// The number of further violations.
    omitted: u64,
    rejected: BTreeMap<v1::Kind, u64>,
    /// That of the first object.
    fault: Option<Fault>,
    objects: u64,
}

impl Rejections {
    /// Adds an object of the frame `sequence`: one that was not accepted, or a ReplicaSet that was accepted and quarantined.
    pub(crate) fn reject(&mut self, mut rejected: Rejected, sequence: u64) {
        let mut violations = rejected.violations.iter();
        let is_quarantined = violations.any(|it| it.fault == wire::Fault::Quarantined);
        if !is_quarantined {
            *self.rejected.entry(rejected.kind).or_default() += 1;
        }
        self.sequence = sequence;
        self.objects += 1;
        self.fault
            .get_or_insert_with(|| fault(&rejected, is_quarantined));
        let room = VIOLATIONS_MAX - self.violations;
        let omitted = rejected.violations.len().saturating_sub(room);
        rejected.violations.truncate(room);
        self.violations += rejected.violations.len();
        self.omitted = self.omitted.saturating_add(omitted as u64);
        if room > 0 {
            let named = HeldMessage(rejected.into_message());
            self.named.push_back(named);
        }
    }

    /// Returns the frame for the agent and the report, if there is anything to say, and starts again.
    pub(crate) fn take(&mut self) -> Option<(v1::Rejection, SessionReport)> {
        if self.named.is_empty() {
            return None;
        }
        let mut taken = std::mem::take(self);
        let fault = taken.fault?;
        let named = &mut taken.named;
        let objects = std::iter::from_fn(|| named.pop_front());
        let frame = v1::Rejection {
            sequence: taken.sequence,
            omitted: taken.omitted,
            objects: objects.map(|HeldMessage(object)| object).collect(),
        };
        let report = SessionReport::NotAccepted {
            rejected: taken.rejected.into_iter().collect(),
            others: taken.objects.saturating_sub(1),
            fault,
        };
        Some((frame, report))
    }
}

impl Held for Rejections {
    fn bytes(&self) -> usize {
        let Self {
            sequence: _,
            named,
            violations: _,
            omitted: _,
            rejected: _,
            // At most 1,000 bytes.
            fault: _,
            objects: _,
        } = self;
        named.bytes()
    }
}

fn fault(rejected: &Rejected, is_quarantined: bool) -> Fault {
    let mut text = String::new();
    for violation in &rejected.violations {
        if text.len() > FAULT_BYTES_MAX {
            break;
        }
        let separator = if text.is_empty() { "" } else { "; " };
        text.push_str(&format!("{separator}{violation}"));
    }
    text.truncate(text.floor_char_boundary(FAULT_BYTES_MAX));
    Fault {
        kind: rejected.kind,
        object: rejected.object.clone(),
        text,
        is_quarantined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::pod_applied;

    #[test]
    fn first_hundred_violations_are_named_and_the_others_are_counted() {
        let mut rejections = Rejections::default();
        for _ in 0..40 {
            // A pod without namespace, name and UID.
            let rejected = pod_applied(&v1::Pod::default()).expect_err("it has three faults");
            rejections.reject(rejected, 7);
        }
        let (frame, report) = rejections.take().expect("there is something to say");
        let named: usize = frame.objects.iter().map(|one| one.violations.len()).sum();
        assert_eq!((named, frame.omitted, frame.sequence), (100, 20, 7));
        assert_eq!(frame.objects.len(), 34);
        let SessionReport::NotAccepted {
            rejected, others, ..
        } = report
        else {
            panic!("{report:?}")
        };
        assert_eq!((rejected, others), (vec![(v1::Kind::Pod, 40)], 39));
        assert!(rejections.take().is_none(), "begun anew");
    }
}
