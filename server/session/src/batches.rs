//! Puts batches together into frames.

use crate::{outgoing::EncodedBatches, wire::EncodedBatch};

/// How many bytes of batches are put together in a frame before it leaves.
const FRAME_BYTES: usize = 256 << 10;

/// The batches that are on their way into a frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct BatchFrames {
    /// The batch that did not fit the frame before.
    held_back: Option<EncodedBatch>,
}

// === impl BatchFrames ===

impl BatchFrames {
    /// Returns the next frame of the batches that `poll` yields, or `None` when there are none.
    pub(crate) fn poll(
        &mut self,
        mut poll: impl FnMut() -> Option<EncodedBatch>,
    ) -> Option<EncodedBatches> {
        let (mut batches, mut bytes) = (EncodedBatches::default(), 0_usize);
        while bytes < FRAME_BYTES {
            let Some(batch) = self.held_back.take().or_else(&mut poll) else {
                break;
            };
            let size = batch.bytes.len();
            if bytes > 0 && bytes.saturating_add(size) > FRAME_BYTES {
                self.held_back = Some(batch);
                break;
            }
            bytes = bytes.saturating_add(size);
            batches.push(&batch);
        }
        (!batches.is_empty()).then_some(batches)
    }
}

#[cfg(test)]
mod tests {
    use decree::v1::{self, reconcile_response::Frame};
    use prost::Message as _;

    use super::*;
    use crate::outgoing::OutgoingFrame;

    fn batch(id: u64, bytes: usize) -> EncodedBatch {
        let batch = v1::Batch {
            id,
            pods_version: "7".repeat(bytes),
            ..v1::Batch::default()
        };
        EncodedBatch {
            bytes: batch.encode_to_vec(),
            is_traced: false,
        }
    }

    /// Returns the ids of the batches of each frame.
    fn frames(batches: Vec<EncodedBatch>) -> Vec<Vec<u64>> {
        let (mut frames, mut batches) = (BatchFrames::default(), batches.into_iter());
        let all = std::iter::from_fn(|| frames.poll(|| batches.next()));
        all.map(|frame| {
            let message = OutgoingFrame::new(1, frame.into()).into_message();
            let Some(Frame::Batches(frame)) = message.frame else {
                panic!("{message:?}")
            };
            frame.batches.iter().map(|batch| batch.id).collect()
        })
        .collect()
    }

    #[test]
    fn small_batches_share_a_frame() {
        assert_eq!(frames(vec![batch(1, 9), batch(2, 9)]), [[1, 2]]);
    }

    #[test]
    fn batch_that_does_not_fit_comes_first_in_the_next_frame() {
        let half = FRAME_BYTES / 2;
        let batches = vec![batch(1, half), batch(2, half), batch(3, 9)];
        assert_eq!(frames(batches), [vec![1], vec![2, 3]]);
    }

    #[test]
    fn batch_larger_than_a_frame_leaves_alone() {
        let batches = vec![batch(1, 2 * FRAME_BYTES), batch(2, 9)];
        assert_eq!(frames(batches), [[1], [2]]);
    }
}
