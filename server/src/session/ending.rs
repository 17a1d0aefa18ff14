//! The order to end a session, given from outside: by a newer session, or by the end of a drain.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::error::Refusal;

/// Ends one session, once. Clones are the same order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    token: CancellationToken,
    why: Arc<OnceLock<Refusal>>,
}

// === impl Ending ===

impl Ending {
    /// Gives the order; a second one changes nothing.
    pub(crate) fn order(&self, why: Refusal) {
        if self.why.set(why).is_ok() {
            self.token.cancel();
        }
    }

    /// Waits for the order.
    pub(crate) async fn wait(&self) -> Refusal {
        self.token.cancelled().await;
        self.why.get().cloned().unwrap_or(Refusal::SessionEnded)
    }
}
