//! What a call holds from its beginning until its response has been sent.

use std::task::{Context, Poll};

use crate::{
    activity::ActiveCall,
    places::{PeerIdentity, Place, PlaceHandle},
};

/// A call's place among the calls, if it needs one, and its mark on its connection.
#[derive(Debug)]
pub struct UnderWay<I: PeerIdentity> {
    place: Option<Place<I>>,
    _active: ActiveCall,
}

// === impl UnderWay ===

impl<I: PeerIdentity> UnderWay<I> {
    /// Returns what a call holds that was counted on its connection as `active`.
    pub const fn new(active: ActiveCall, place: Option<Place<I>>) -> Self {
        Self {
            place,
            _active: active,
        }
    }

    /// Returns the call's place among the calls, if it needs one.
    pub fn place(&self) -> Option<&PlaceHandle<I>> {
        self.place.as_ref().map(Place::handle)
    }

    /// Waits until the place of the call is taken; for ever if it has none.
    pub async fn wait_taken(&mut self) {
        std::future::poll_fn(|cx| self.poll_taken(cx)).await;
    }

    /// Is ready once the place of the call is taken.
    pub fn poll_taken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.place {
            Some(place) => place.poll_taken(cx),
            None => Poll::Pending,
        }
    }
}
