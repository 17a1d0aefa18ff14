//! Combines batches into frames.

use decree::v1;
use prost::Message;
use server_core::{Held, HeldQueue};

use crate::held_message::HeldMessage;

/// The size in bytes at which a frame of batches leaves.
const FRAME_BYTES: usize = 256 << 10;

/// The batches for the next frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct BatchFrames {
    /// At most one: the batch that did not fit the previous frame.
    held_back: HeldQueue<HeldMessage<v1::Batch>>,
}

impl BatchFrames {
    /// Returns the next frame of the batches from `poll`; `None` if there are none.
    pub(crate) fn poll(
        &mut self,
        mut poll: impl FnMut() -> Option<v1::Batch>,
    ) -> Option<v1::Batches> {
        let (mut batches, mut bytes) = (Vec::new(), 0_usize);
        while bytes < FRAME_BYTES {
            let held_back = self.held_back.pop_front().map(|HeldMessage(batch)| batch);
            let Some(batch) = held_back.or_else(&mut poll) else {
                break;
            };
            let size = batch.encoded_len();
            if bytes > 0 && bytes.saturating_add(size) > FRAME_BYTES {
                self.held_back.push_back(HeldMessage(batch));
                break;
            }
            bytes = bytes.saturating_add(size);
            batches.push(batch);
        }
        (!batches.is_empty()).then_some(v1::Batches { batches })
    }
}

impl Held for BatchFrames {
    fn bytes(&self) -> usize {
        let Self { held_back } = self;
        held_back.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(id: u64, bytes: usize) -> v1::Batch {
        v1::Batch {
            id,
            pods_version: "7".repeat(bytes),
            ..v1::Batch::default()
        }
    }

    fn frames(batches: Vec<v1::Batch>) -> Vec<Vec<u64>> {
        let (mut frames, mut batches) = (BatchFrames::default(), batches.into_iter());
        let all = std::iter::from_fn(|| frames.poll(|| batches.next()));
        all.map(|frame| frame.batches.iter().map(|batch| batch.id).collect())
            .collect()
    }

    #[test]
    fn batches_share_a_frame_and_one_that_does_not_fit_comes_first_in_the_next_one() {
        let half = FRAME_BYTES / 2;
        let small = frames(vec![batch(1, 9), batch(2, 9)]);
        assert_eq!(small, [[1, 2]]);
        let large = frames(vec![batch(1, half), batch(2, half), batch(3, 9)]);
        assert_eq!(large, [vec![1], vec![2, 3]]);
        let larger_than_a_frame = frames(vec![batch(1, 2 * FRAME_BYTES), batch(2, 9)]);
        assert_eq!(larger_than_a_frame, [[1], [2]]);
    }
}
