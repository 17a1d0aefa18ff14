//! Replays recorded sessions on a real API server: the gate for every change of decisions.

use decree::{
    recording::v1::record::Step,
    v1::{self, batch::Action, reconcile_response as response},
};
use server_session::recording::{Difference, EndReason, Ending};
use tests::recordings::{self, Recording};

/// The manual for an intended difference.
const MANUAL: &str = "tests/golden/recordings/README.md says what to do if that is intended";

#[test]
fn kept_recordings_replay_without_a_difference() {
    let kept = recordings::kept();
    recordings::assert_rich(kept.iter().map(|(_, bytes)| bytes.as_slice()));
    for (name, bytes) in kept {
        let (differences, summary) = recordings::replay(&bytes);
        let first = differences.first();
        assert!(first.is_none(), "{name}: {first:#?}\n{MANUAL}");
        assert_eq!(summary.ending, Ending::Marked(EndReason::Session), "{name}");
    }
}

#[test]
fn kept_recordings_hold_nothing_of_templates_and_annotations() {
    for (_, bytes) in recordings::kept() {
        recordings::assert_no_secret(&bytes);
    }
}

/// Changes one decision of a certain kind, and returns whether the decision was of this kind.
type Change = fn(&mut Action) -> bool;

const CHANGES: [(&str, Change); 5] = [
    ("create", |action| {
        let Action::Create(create) = action else {
            return false;
        };
        create.names.pop().is_some()
    }),
    ("delete", |action| {
        let Action::Delete(delete) = action else {
            return false;
        };
        delete.victims.pop().is_some()
    }),
    ("adopt", |action| {
        let Action::Claim(claim) = action else {
            return false;
        };
        claim.adopts.pop().is_some()
    }),
    ("release", |action| {
        let Action::Claim(claim) = action else {
            return false;
        };
        claim.releases.pop().is_some()
    }),
    ("status", |action| {
        let Action::WriteStatus(write) = action else {
            return false;
        };
        write.status.take().is_some()
    }),
];

#[test]
fn changed_decision_of_each_kind_is_found() {
    for (kind, change) in CHANGES {
        let mut found = 0;
        for (name, bytes) in recordings::kept() {
            let mut recording = Recording::decode(&bytes);
            let Some(changed) = change_last(&mut recording, change) else {
                continue;
            };
            let (differences, _) = recordings::replay(&recording.encode());
            let [Difference::Frame { recorded, .. }] = &differences[..] else {
                panic!(
                    "{name}: {} differences, not that of {kind}",
                    differences.len()
                );
            };
            assert_eq!(*recorded, Some(changed), "{name}: {kind}");
            found += 1;
        }
        assert!(found > 0, "no recording has a decision of kind {kind}");
    }
}

/// Changes the last decision that `change` accepts, and returns its frame.
fn change_last(recording: &mut Recording, change: Change) -> Option<v1::ReconcileResponse> {
    let steps = recording.records.iter_mut().rev();
    let mut frames = steps.filter_map(|record| match &mut record.step {
        Some(Step::Poll(poll)) => poll.frame.as_mut(),
        _ => None,
    });
    frames.find_map(|frame| {
        let Some(response::Frame::Batches(batches)) = &mut frame.frame else {
            return None;
        };
        let mut actions = batches
            .batches
            .iter_mut()
            .filter_map(|it| it.action.as_mut());
        actions.any(change).then(|| frame.clone())
    })
}
