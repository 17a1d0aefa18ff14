//! What a call holds from its beginning until the last of its response has been taken.

use std::task::{Context, Poll};

use crate::{
    peer::ActiveCall,
    places::{Handle, Place},
};

/// A call's place among the calls, if it needs one, and its mark on its connection.
#[derive(Debug)]
pub(super) struct UnderWay {
    place: Option<Place>,
    _active: ActiveCall,
}

// === impl UnderWay ===

impl UnderWay {
    pub(super) const fn new(active: ActiveCall, place: Option<Place>) -> Self {
        Self {
            place,
            _active: active,
        }
    }

    /// Returns the call's place among the calls, if it needs one.
    pub(super) fn place(&self) -> Option<&Handle> {
        self.place.as_ref().map(Place::handle)
    }

    /// Waits until the call must give way to another; for ever where it need not.
    pub(super) async fn wait_taken(&mut self) {
        std::future::poll_fn(|cx| self.poll_taken(cx)).await;
    }

    /// Is ready once the call must give way to another.
    pub(super) fn poll_taken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.place {
            Some(place) => place.poll_taken(cx),
            None => Poll::Pending,
        }
    }
}
