//! The memory of messages of the contract that a session keeps.

use decree_core::Held;
use prost::Message;

/// The memory of a message in bytes, without its content.
const MESSAGE_BYTES: usize = 500;
/// The memory of a message for each byte of its encoding: texts and lists have headers.
const BYTES_OF_A_BYTE: usize = 4;

/// A message with its approximate memory.
#[derive(Clone, Debug)]
pub(crate) struct HeldMessage<M>(pub(crate) M);

impl<M: Message> Held for HeldMessage<M> {
    fn bytes(&self) -> usize {
        MESSAGE_BYTES + BYTES_OF_A_BYTE * self.0.encoded_len()
    }
}
