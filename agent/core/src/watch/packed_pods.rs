//! Encoded pods of a list, while they wait for the last page and for their frames. Encoded pods take a fifth of the memory of decoded ones,
//! and nothing reads them meanwhile.

use std::{borrow::Borrow, collections::VecDeque, fmt};

use decree_api::v1;
use prost::Message as _;

/// Encoded pods, in order.
#[derive(Clone, Default)]
pub struct PackedPods(pub(crate) VecDeque<Box<[u8]>>);

impl PackedPods {
    /// Returns the number of pods.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no pods.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a pod at the end.
    pub fn push(&mut self, pod: &v1::Pod) {
        self.0.push_back(pod.encode_to_vec().into());
    }

    /// Returns decoded copies of the pods.
    pub fn iter(&self) -> impl Iterator<Item = v1::Pod> {
        self.0.iter().map(|pod| decode(pod))
    }

    /// Decodes and removes the pods one by one.
    pub fn into_pods(self) -> impl Iterator<Item = v1::Pod> {
        self.0.into_iter().map(|pod| decode(&pod))
    }
}

/// Decodes a pod of [`PackedPods`].
pub(crate) fn decode(pod: &[u8]) -> v1::Pod {
    v1::Pod::decode(pod).expect("it was encoded here")
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
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for PackedPods {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}
