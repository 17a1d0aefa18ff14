//! What a session says, whatever frames it puts it in: a server that paused in long work put into several frames what another puts into one.

use std::collections::VecDeque;

use decree::v1::{self, reconcile_response::Frame};

/// What was decided again, and not been compared yet: batch by batch, and other frames as they are, all without a number.
#[derive(Debug, Default)]
pub(crate) struct Said(VecDeque<v1::ReconcileResponse>);

/// What was recorded, and what is said instead; `None` where nothing was.
pub(crate) type Pair = (Option<v1::ReconcileResponse>, Option<v1::ReconcileResponse>);

// === impl Said ===

impl Said {
    /// Adds all that a session has to say now.
    pub(crate) fn add_all(&mut self, frames: impl Iterator<Item = v1::ReconcileResponse>) {
        self.0.extend(frames.flat_map(taken_apart));
    }

    /// Compares what comes next with a recorded frame. Returns both where they differ.
    pub(crate) fn compare(&mut self, recorded: v1::ReconcileResponse) -> Option<Pair> {
        let expected = taken_apart(recorded.clone());
        let said: Vec<_> = self.0.drain(..expected.len().min(self.0.len())).collect();
        let sequence = recorded.sequence;
        (said != expected).then(|| (Some(recorded), put_together(sequence, said)))
    }

    /// Returns the first that was not recorded where all has been; nothing is left then.
    pub(crate) fn rest(&mut self) -> Option<Pair> {
        let first = self.0.pop_front();
        self.0.clear();
        first.map(|said| (None, Some(said)))
    }
}

/// Takes a frame apart into its batches.
fn taken_apart(frame: v1::ReconcileResponse) -> Vec<v1::ReconcileResponse> {
    let frames = match frame.frame {
        Some(Frame::Batches(v1::Batches { batches })) => {
            let alone = |batch| {
                Frame::Batches(v1::Batches {
                    batches: vec![batch],
                })
            };
            batches
                .into_iter()
                .map(|batch| Some(alone(batch)))
                .collect()
        }
        other => vec![other],
    };
    let unnumbered = |frame| v1::ReconcileResponse { sequence: 0, frame };
    frames.into_iter().map(unnumbered).collect()
}

/// Puts batches into one frame of this number.
fn put_together(sequence: u64, said: Vec<v1::ReconcileResponse>) -> Option<v1::ReconcileResponse> {
    let mut said = said.into_iter();
    let mut first = said.next()?;
    first.sequence = sequence;
    if let Some(Frame::Batches(v1::Batches { batches })) = &mut first.frame {
        batches.extend(said.flat_map(|frame| match frame.frame {
            Some(Frame::Batches(more)) => more.batches,
            _ => Vec::new(),
        }));
    }
    Some(first)
}
