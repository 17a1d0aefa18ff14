//! Encoded pods of a list, while they wait for the last page and for their frames. Encoded pods take a fifth of the memory of decoded ones,
//! and nothing reads them meanwhile.

use std::{borrow::Borrow, collections::VecDeque, fmt, iter};

use bytes::BytesMut;
use decree::v1;
use prost::{Message as _, decode_length_delimiter, length_delimiter_len};

/// The largest size of a chunk, unless a single pod is larger. The buffer doubles, and reaches this size without spare room. A chunk is
/// freed once its pods have been taken.
const CHUNK_BYTES: usize = 256 * 1024;

/// Encoded pods, in order.
#[derive(Clone, Default)]
pub struct PackedPods {
    /// Pods as `decree.v1.Pod`, each after its length. No chunk is empty.
    chunks: VecDeque<BytesMut>,
    count: usize,
}

impl PackedPods {
    /// Returns the number of pods.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are no pods.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a pod at the end.
    pub fn push(&mut self, pod: &v1::Pod) {
        let encoded = pod.encoded_len();
        let length = length_delimiter_len(encoded) + encoded;
        let mut chunk = self.chunks.pop_back().unwrap_or_default();
        if !chunk.is_empty() && chunk.len() + length > CHUNK_BYTES {
            self.chunks.push_back(std::mem::take(&mut chunk));
        }
        let written = pod.encode_length_delimited(&mut chunk);
        written.expect("the buffer grows as needed");
        self.chunks.push_back(chunk);
        self.count += 1;
    }

    fn pop(&mut self) -> Option<v1::Pod> {
        let chunk = self.chunks.front_mut()?;
        let pod = v1::Pod::decode_length_delimited(&mut *chunk);
        if chunk.is_empty() {
            self.chunks.pop_front();
        }
        self.count -= 1;
        Some(pod.expect("it was encoded here"))
    }

    /// Takes the first pods whose encodings fit into `bytes_max`, at least one if there is any.
    pub(crate) fn pop_fitting(&mut self, bytes_max: usize) -> Vec<v1::Pod> {
        let (mut pods, mut bytes) = (Vec::new(), 0);
        while let Some(chunk) = self.chunks.front() {
            bytes += decode_length_delimiter(&chunk[..]).expect("it was encoded here");
            if !pods.is_empty() && bytes > bytes_max {
                break;
            }
            pods.extend(self.pop());
        }
        pods
    }

    /// Returns decoded copies of the pods.
    pub fn iter(&self) -> impl Iterator<Item = v1::Pod> {
        self.chunks.iter().flat_map(|chunk| {
            let mut rest = &chunk[..];
            iter::from_fn(move || {
                let next = (!rest.is_empty()).then(|| v1::Pod::decode_length_delimited(&mut rest));
                next.map(|pod| pod.expect("it was encoded here"))
            })
        })
    }

    /// Decodes and removes the pods one by one.
    pub fn into_pods(mut self) -> impl Iterator<Item = v1::Pod> {
        iter::from_fn(move || self.pop())
    }

    /// Adds the pods of another list.
    pub fn append(&mut self, mut more: Self) {
        self.chunks.append(&mut more.chunks);
        self.count += more.count;
    }
}

impl<P: Borrow<v1::Pod>> FromIterator<P> for PackedPods {
    fn from_iter<I: IntoIterator<Item = P>>(pods: I) -> Self {
        let mut packed = Self::default();
        pods.into_iter().for_each(|pod| packed.push(pod.borrow()));
        packed
    }
}

/// Labels have no order, so pods that are equal may be encoded differently.
impl PartialEq for PackedPods {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for PackedPods {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    /// Returns pods of several chunks.
    fn pods() -> Vec<v1::Pod> {
        let pod = |number| v1::Pod {
            name: format!("web-{number}"),
            node_name: "n".repeat(1_000),
            labels: [
                ("app".to_owned(), "web".to_owned()),
                ("n".to_owned(), format!("{number}")),
            ]
            .into(),
            ..v1::Pod::default()
        };
        (0..700).map(pod).collect()
    }

    #[test]
    fn pods_come_out_as_they_went_in() {
        let packed: PackedPods = pods().into_iter().collect();
        assert!(packed.chunks.len() > 2);
        assert_eq!(packed.len(), 700);
        assert!(packed.iter().eq(pods()));
        assert!(packed.into_pods().eq(pods()));
        assert!(PackedPods::default().pop().is_none());
    }

    #[test]
    fn two_lists_become_one() {
        let pods = pods();
        let (first, second) = pods.split_at(300);
        let mut packed: PackedPods = first.iter().collect();
        packed.append(second.iter().collect());
        assert_eq!(packed, pods.iter().collect());
        packed.pop();
        assert_eq!(packed.len(), 699);
        assert_ne!(packed, pods.iter().collect());
    }

    #[test]
    fn pods_are_taken_by_the_bytes_of_their_encodings() {
        let mut packed: PackedPods = pods().into_iter().collect();
        let two = pods()[..2].iter().map(v1::Pod::encoded_len).sum::<usize>();
        assert_eq!(packed.pop_fitting(two).len(), 2);
        assert_eq!(packed.pop_fitting(two - 1).len(), 1);
        assert_eq!(packed.pop_fitting(0).len(), 1, "one in any case");
        assert_eq!(packed.pop_fitting(usize::MAX).len(), 696);
        assert!(packed.pop_fitting(usize::MAX).is_empty() && packed.is_empty());
    }
}
