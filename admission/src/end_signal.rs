//! The signal that ends a stream from outside, with a reason.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Ends one stream, once, with a reason of type `R`. Clones are the same signal.
#[derive(Clone, Debug)]
pub struct EndSignal<R> {
    token: CancellationToken,
    why: Arc<OnceLock<R>>,
}

// === impl EndSignal ===

impl<R: Clone> EndSignal<R> {
    /// Sends the signal. Further calls have no effect.
    pub fn send(&self, why: R) {
        if self.why.set(why).is_ok() {
            self.token.cancel();
        }
    }

    /// Whether the signal was sent.
    pub fn is_sent(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits for the signal.
    pub async fn wait(&self) -> R {
        self.token.cancelled().await;
        match self.why.get() {
            Some(why) => why.clone(),
            // The reason is set before the token is cancelled.
            None => std::future::pending().await,
        }
    }
}

impl<R> Default for EndSignal<R> {
    fn default() -> Self {
        Self {
            token: CancellationToken::new(),
            why: Arc::default(),
        }
    }
}
