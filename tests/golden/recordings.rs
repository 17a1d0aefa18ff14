//! Replays recorded sessions on a real API server: the gate for every change of decisions.

use decree_api::{
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

/// The kinds of decisions.
const KINDS: [&str; 5] = ["create", "delete", "adopt", "release", "status"];

#[test]
fn changed_decision_of_each_kind_is_found() {
    for kind in KINDS {
        let mut found = 0;
        for (name, bytes) in recordings::kept() {
            let mut recording = Recording::decode(&bytes);
            let Some(changed) = change_last(&mut recording, kind) else {
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

/// Changes the last decision of a kind, and returns its frame.
fn change_last(recording: &mut Recording, kind: &str) -> Option<v1::ReconcileResponse> {
    let steps = recording.records.iter_mut().rev();
    let mut frames = steps.filter_map(|record| match &mut record.step {
        Some(Step::Poll(poll)) => poll.frame.as_mut(),
        _ => None,
    });
    frames.find_map(|frame| {
        let Some(response::Frame::Batches(batches)) = &mut frame.frame else {
            return None;
        };
        let batches = batches.batches.iter_mut();
        let mut actions = batches.filter_map(|it| it.action.as_mut());
        actions
            .any(|action| change(action, kind))
            .then(|| frame.clone())
    })
}

/// Takes the last part from a decision of a kind. Returns whether there was one.
fn change(action: &mut Action, kind: &str) -> bool {
    match (action, kind) {
        (Action::Create(it), "create") => it.names.pop().is_some(),
        (Action::Delete(it), "delete") => it.victims.pop().is_some(),
        (Action::Claim(it), "adopt") => it.adopts.pop().is_some(),
        (Action::Claim(it), "release") => it.releases.pop().is_some(),
        (Action::WriteStatus(it), "status") => it.status.take().is_some(),
        _ => false,
    }
}
