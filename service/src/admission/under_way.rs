//! The resources of a call until its response has been sent.

use std::task::{Context, Poll};

use crate::admission::{
    activity::ActiveCall,
    pool::{PeerIdentity, Slot},
};

/// The slot of a call, if the call needs one, and its mark on its connection.
#[derive(Debug)]
pub struct UnderWay<I: PeerIdentity, R: Clone> {
    /// The call's slot, if the call needs one.
    pub slot: Option<Slot<I, R>>,
    /// The mark of the call on its connection.
    pub active: ActiveCall,
}

// === impl UnderWay ===

impl<I: PeerIdentity, R: Clone> UnderWay<I, R> {
    /// Ready when the call must end; never if it needs no slot.
    pub fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<R> {
        match &mut self.slot {
            Some(slot) => slot.poll_end(cx),
            None => Poll::Pending,
        }
    }
}
