//! Combines batches into frames.

use decree::v1;
use prost::Message;

/// The size in bytes at which a frame of batches leaves.
const FRAME_BYTES: usize = 256 << 10;

/// The batches for the next frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct BatchFrames {
    /// The batch that did not fit the previous frame, and its size in bytes.
    held_back: Option<(v1::Batch, usize)>,
}

// === impl BatchFrames ===

impl BatchFrames {
    /// Returns the next frame of the batches from `poll`; `None` if there are none.
    pub(crate) fn poll(
        &mut self,
        mut poll: impl FnMut() -> Option<v1::Batch>,
    ) -> Option<v1::Batches> {
        let (mut batches, mut bytes) = (Vec::new(), 0_usize);
        while bytes < FRAME_BYTES {
            let next = self.held_back.take().or_else(|| {
                let batch = poll()?;
                let size = batch.encoded_len();
                Some((batch, size))
            });
            let Some((batch, size)) = next else { break };
            if bytes > 0 && bytes.saturating_add(size) > FRAME_BYTES {
                self.held_back = Some((batch, size));
                break;
            }
            bytes = bytes.saturating_add(size);
            batches.push(batch);
        }
        (!batches.is_empty()).then_some(v1::Batches { batches })
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
