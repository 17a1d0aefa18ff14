//! The signal that ends a session from outside: a newer session, or the end of a drain.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::error::Refusal;

/// Ends one session, once. Clones are the same signal.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndSignal {
    token: CancellationToken,
    why: Arc<OnceLock<Refusal>>,
}

// === impl EndSignal ===

impl EndSignal {
    /// Sends the signal; a second one changes nothing.
    pub(crate) fn send(&self, why: Refusal) {
        if self.why.set(why).is_ok() {
            self.token.cancel();
        }
    }

    /// Returns whether it was sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits for the signal.
    pub(crate) async fn wait(&self) -> Refusal {
        self.token.cancelled().await;
        self.why.get().cloned().unwrap_or(Refusal::SessionEnded)
    }
}
