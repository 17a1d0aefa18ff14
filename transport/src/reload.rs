//! Polls the files, and applies their changes.

use std::sync::Arc;

use runtime::{failure::chain, file::LastRead};
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

use crate::{
    args::TlsArgs,
    credentials::{ClientTls, Expiries, ServerTls},
    failure::LoadError,
    files::Contents,
    metrics::Metrics,
};

/// Settings that files define.
pub(crate) trait Loaded: Send + Sync + 'static {
    fn expiries(&self) -> &Expiries;
}

/// The last contents of the files, and the function that builds settings.
struct ReloadedFiles<B> {
    args: TlsArgs,
    build: B,
    metrics: Metrics,
    /// The last contents, valid or not.
    seen: LastRead<Contents>,
}

/// Loads the files, and reloads them when they change, while a receiver exists.
///
/// # Errors
/// If the first load fails.
pub(crate) fn load<T: Loaded>(
    args: &TlsArgs,
    metrics: &Metrics,
    build: impl Fn(&Contents, &TlsArgs) -> Result<T, LoadError> + Send + 'static,
) -> Result<watch::Receiver<Arc<T>>, LoadError> {
    let seen = Contents::read(args)?;
    let first = build(&seen, args)?;
    metrics.set_expiries(first.expiries());
    let (sender, receiver) = watch::channel(Arc::new(first));
    let source = ReloadedFiles {
        args: args.clone(),
        build,
        metrics: metrics.clone(),
        seen: LastRead::new(seen),
    };
    tokio::spawn(source.watch(sender));
    Ok(receiver)
}

// === impl ReloadedFiles ===

impl<B> ReloadedFiles<B> {
    async fn watch<T: Loaded>(mut self, sender: watch::Sender<Arc<T>>)
    where
        B: Fn(&Contents, &TlsArgs) -> Result<T, LoadError>,
    {
        let mut ticks = interval(self.args.tls_reload_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = sender.closed() => return,
                _ = ticks.tick() => {}
            }
            let args = self.args.clone();
            // If a file system hangs, the settings stay unchanged, and nothing else waits.
            let read = spawn_blocking(move || Contents::read(&args));
            let read = tokio::select! {
                () = sender.closed() => return,
                read = read => read,
            };
            let loaded = read.ok().and_then(|read| self.take(read));
            if let Some(loaded) = loaded {
                sender.send_replace(Arc::new(loaded));
            }
        }
    }

    /// Builds the settings if the files have changed and are valid.
    fn take<T: Loaded>(&mut self, read: Result<Contents, LoadError>) -> Option<T>
    where
        B: Fn(&Contents, &TlsArgs) -> Result<T, LoadError>,
    {
        let contents = self.seen.change(read)?;
        match contents.and_then(|contents| (self.build)(&contents, &self.args)) {
            Ok(loaded) => {
                let expiries = loaded.expiries();
                self.metrics.reloads.inc();
                self.metrics.set_expiries(expiries);
                let expires = expiries.cert.map(tracing::field::display);
                tracing::info!(expires, "TLS files reloaded");
                Some(loaded)
            }
            Err(error) => {
                self.metrics.reload_errors.inc();
                let error = chain(&error);
                tracing::warn!(
                    error,
                    "changed TLS files cannot be used, those before stay in use"
                );
                None
            }
        }
    }
}

impl Loaded for ServerTls {
    fn expiries(&self) -> &Expiries {
        &self.expiries
    }
}

impl Loaded for ClientTls {
    fn expiries(&self) -> &Expiries {
        &self.expiries
    }
}
