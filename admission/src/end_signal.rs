//! The signal that ends a stream from outside, with a reason.

use std::sync::Arc;

use tokio::sync::SetOnce;

/// Ends one stream, once, with a reason of type `R`. Clones are the same signal.
#[derive(Clone, Debug)]
pub struct EndSignal<R>(Arc<SetOnce<R>>);

// === impl EndSignal ===

impl<R: Clone> EndSignal<R> {
    /// Sends the signal. Further calls have no effect.
    pub fn send(&self, why: R) {
        drop(self.0.set(why));
    }

    /// Whether the signal was sent.
    pub fn is_sent(&self) -> bool {
        self.0.initialized()
    }

    /// Waits for the signal.
    pub async fn wait(&self) -> R {
        self.0.wait().await.clone()
    }
}

impl<R> Default for EndSignal<R> {
    fn default() -> Self {
        Self(Arc::default())
    }
}
