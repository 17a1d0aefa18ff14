//! The task that checks files for changes and streams for permission.

use std::sync::Arc;

use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use super::Access;

impl Access {
    /// Checks periodically until `stop`. A slow file system or key server delays only its own reader, and never the end of streams whose
    /// credential has expired.
    pub(crate) async fn watch(self: Arc<Self>, stop: CancellationToken) {
        let access = &*self;
        let looks = async {
            tokio::join!(
                access.repeat(|| access.reload_policy()),
                access.repeat(|| access.reload_keys()),
                access.repeat(|| async { access.end_the_denied() })
            )
        };
        let _ = stop.run_until_cancelled(looks).await;
    }

    async fn repeat<F: Future<Output = ()>>(&self, look: impl Fn() -> F) {
        let mut due = interval(self.args.access_interval);
        loop {
            due.tick().await;
            look().await;
        }
    }

    async fn reload_keys(&self) {
        if let Some(tokens) = &self.tokens
            && !tokens.reload().await
        {
            self.count_reload_error("token_keys");
        }
    }

    async fn reload_policy(&self) {
        let Some(policy) = &self.policy else { return };
        match policy.changed().await {
            None => {}
            Some(Ok(policy)) => {
                self.authority.lock().replace(policy);
                tracing::info!("policy read again");
                self.end_the_denied();
            }
            Some(Err(error)) => {
                self.count_reload_error("policy");
                let error = service::failure::chain(&error);
                tracing::error!(error, "policy cannot be used; the last one stays in force");
            }
        }
    }

    fn count_reload_error(&self, file: &'static str) {
        let errors = &self.metrics.access_reload_errors;
        errors.get_or_create(&[("file", file)]).inc();
    }
}
