//! The resources of a call until its response has been sent.

use std::task::{Context, Poll};

use crate::{
    activity::ActiveCall,
    places::{PeerIdentity, Place},
};

/// The place of a call, if the call needs one, and its mark on its connection.
#[derive(Debug)]
pub struct UnderWay<I: PeerIdentity> {
    /// The call's place, if the call needs one.
    pub place: Option<Place<I>>,
    /// The mark of the call on its connection.
    pub active: ActiveCall,
}

// === impl UnderWay ===

impl<I: PeerIdentity> UnderWay<I> {
    /// Ready when the place is taken; never if there is none.
    pub fn poll_taken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.place {
            Some(place) => place.poll_taken(cx),
            None => Poll::Pending,
        }
    }
}
