//! The signal that ends a stream from outside, with a reason.

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Ends one stream, once, with a reason of type `R`. Clones are the same signal.
#[derive(Debug)]
pub struct EndSignal<R> {
    why: Arc<OnceLock<R>>,
    /// Cancelled once the reason is set.
    sent: CancellationToken,
    /// Waits for the signal in [`poll`](Self::poll).
    polled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl<R: Clone> EndSignal<R> {
    /// Sends the signal. Further calls have no effect.
    pub fn send(&self, why: R) {
        drop(self.why.set(why));
        self.sent.cancel();
    }

    /// Whether the signal was sent.
    pub fn is_sent(&self) -> bool {
        self.sent.is_cancelled()
    }

    /// Waits for the signal.
    pub async fn wait(&self) -> R {
        self.sent.cancelled().await;
        self.why()
    }

    /// Ready when the signal is sent.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<R> {
        let wait = || Box::pin(self.sent.clone().cancelled_owned());
        ready!(self.polled.get_or_insert_with(wait).as_mut().poll(cx));
        Poll::Ready(self.why())
    }

    fn why(&self) -> R {
        self.why.get().expect("it is set before").clone()
    }
}

impl<R> Clone for EndSignal<R> {
    fn clone(&self) -> Self {
        Self {
            why: Arc::clone(&self.why),
            sent: self.sent.clone(),
            polled: None,
        }
    }
}

impl<R> Default for EndSignal<R> {
    fn default() -> Self {
        Self {
            why: Arc::default(),
            sent: CancellationToken::new(),
            polled: None,
        }
    }
}
