//! The task that looks whether files have changed and streams are still allowed.

use std::sync::Arc;

use tokio::{task::spawn_blocking, time::interval};
use tokio_util::sync::CancellationToken;

use super::Access;

// === impl Access ===

impl Access {
    /// Looks again and again until `stop`.
    pub(crate) async fn watch(self: Arc<Self>, stop: CancellationToken) {
        let mut due = interval(self.args.access_interval);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = due.tick() => self.look().await,
            }
        }
    }

    async fn look(self: &Arc<Self>) {
        self.reload_policy().await;
        if let Some(tokens) = &self.tokens
            && !tokens.reload().await
        {
            self.count_reload_error("token_keys");
        }
        self.end_the_denied(|_| true);
    }

    async fn reload_policy(self: &Arc<Self>) {
        let access = Arc::clone(self);
        let read = spawn_blocking(move || access.policy.as_ref()?.changed());
        match read.await {
            Ok(None) | Err(_) => {}
            Ok(Some(Ok(policy))) => {
                self.authority().replace(policy);
                tracing::info!("policy read again");
            }
            Ok(Some(Err(error))) => {
                self.count_reload_error("policy");
                let error = runtime::failure::chain(&error);
                tracing::error!(error, "policy cannot be used; the last one stays in force");
            }
        }
    }

    fn count_reload_error(&self, file: &'static str) {
        let errors = &self.metrics.access_reload_errors;
        errors.get_or_create(&[("file", file)]).inc();
    }
}
