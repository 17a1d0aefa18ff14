//! The output of a session, and its comparison with a recording.
//!
//! Frames are compared by rules and values. Texts for people do not count: a version with other texts makes the same decisions. The
//! division of batches into frames does not count either: a server that paused in long work sent several frames instead of one.

use std::collections::VecDeque;

use decree::v1::{self, batch::Action, reconcile_response::Frame};

/// The output of the replay that is not compared yet: single batches, and other frames unchanged, all without a number.
#[derive(Debug, Default)]
pub(crate) struct Output(VecDeque<v1::ReconcileResponse>);

/// A recorded frame, and the frame of this version; `None` if there is none.
pub(crate) type Pair = (Option<v1::ReconcileResponse>, Option<v1::ReconcileResponse>);

impl Output {
    /// Adds all that a session has to send now.
    pub(crate) fn add_all(&mut self, frames: impl Iterator<Item = v1::ReconcileResponse>) {
        self.0.extend(frames.flat_map(taken_apart));
    }

    /// Compares the next output with a recorded frame. Returns both if they differ.
    pub(crate) fn compare(&mut self, recorded: v1::ReconcileResponse) -> Option<Pair> {
        let expected = taken_apart(recorded.clone());
        let sent: Vec<_> = self.0.drain(..expected.len().min(self.0.len())).collect();
        let mut pairs = sent.iter().zip(&expected);
        let is_same = sent.len() == expected.len()
            && pairs.all(|(sent, expected)| is_same(Some(sent), Some(expected)));
        let sequence = recorded.sequence;
        (!is_same).then(|| (Some(recorded), put_together(sequence, sent)))
    }

    /// Returns the first output that was not recorded, after all recorded frames; nothing is left then.
    pub(crate) fn rest(&mut self) -> Option<Pair> {
        let first = self.0.drain(..).next();
        first.map(|sent| (None, Some(sent)))
    }
}

/// Returns whether two frames differ at most in texts for people.
pub(crate) fn is_same(
    one: Option<&v1::ReconcileResponse>,
    other: Option<&v1::ReconcileResponse>,
) -> bool {
    one == other || one.map(without_texts) == other.map(without_texts)
}

/// Returns whether two ends of a session, as `REASON: text`, have the same reason.
pub(crate) fn is_same_end(one: &str, other: &str) -> bool {
    let reason = |end: &str| end.split(':').next().map(str::to_owned);
    reason(one) == reason(other)
}

fn without_texts(frame: &v1::ReconcileResponse) -> v1::ReconcileResponse {
    let mut frame = frame.clone();
    match &mut frame.frame {
        Some(Frame::Batches(it)) => it.batches.iter_mut().for_each(clear_texts),
        Some(Frame::Resync(resync)) => resync.cause.clear(),
        Some(Frame::Rejection(rejection)) => clear_descriptions(rejection),
        Some(Frame::Welcome(_) | Frame::Drain(_) | Frame::Heartbeat(_)) | None => {}
    }
    frame
}

/// Clears the texts for people in a batch. Names, versions, rules and the status remain.
pub fn clear_texts(batch: &mut v1::Batch) {
    let of_victims = match &mut batch.action {
        Some(Action::Delete(delete)) => &mut delete.victims[..],
        Some(Action::Create(_) | Action::Claim(_) | Action::WriteStatus(_)) | None => &mut [],
    };
    let of_victims = of_victims.iter_mut().flat_map(|it| &mut it.reason);
    let reasons = batch.reasons.iter_mut().chain(of_victims);
    reasons.for_each(|reason| reason.detail.clear());
}

fn clear_descriptions(rejection: &mut v1::Rejection) {
    let violations = rejection.violations.iter_mut();
    violations.for_each(|violation| violation.description.clear());
    rejection.others.iter_mut().for_each(clear_descriptions);
}

/// Divides a frame into its batches.
fn taken_apart(frame: v1::ReconcileResponse) -> Vec<v1::ReconcileResponse> {
    let unnumbered = |frame| v1::ReconcileResponse { sequence: 0, frame };
    let Some(Frame::Batches(v1::Batches { batches })) = frame.frame else {
        return vec![unnumbered(frame.frame)];
    };
    let alone = |batch| {
        let batches = vec![batch];
        unnumbered(Some(Frame::Batches(v1::Batches { batches })))
    };
    batches.into_iter().map(alone).collect()
}

/// Combines batches in one frame with this number.
fn put_together(sequence: u64, sent: Vec<v1::ReconcileResponse>) -> Option<v1::ReconcileResponse> {
    let mut sent = sent.into_iter();
    let mut first = sent.next()?;
    first.sequence = sequence;
    if let Some(Frame::Batches(v1::Batches { batches })) = &mut first.frame {
        batches.extend(sent.flat_map(|frame| match frame.frame {
            Some(Frame::Batches(more)) => more.batches,
            _ => Vec::new(),
        }));
    }
    Some(first)
}
