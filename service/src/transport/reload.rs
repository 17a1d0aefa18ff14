//! Polls the files, and applies their changes.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{failure::chain, file::Reloaded};
use tokio::{
    sync::watch,
    time::{Interval, MissedTickBehavior, interval},
};

use crate::transport::{
    args::TlsArgs,
    failure::LoadError,
    files::{Parsed, Part, PemFile},
    metrics::Metrics,
};

/// The settings in use, and how to make them.
struct Settings<T, B> {
    build: B,
    metrics: Metrics,
    files: Mutex<Parsed>,
    sender: watch::Sender<Arc<T>>,
}

/// Loads the files, and reloads them when they change, while a receiver exists. `build` makes the settings that the files define.
///
/// # Errors
/// If the first load fails.
pub(crate) fn load<T, B>(
    args: &TlsArgs,
    metrics: &Metrics,
    build: B,
) -> Result<watch::Receiver<Arc<T>>, LoadError>
where
    T: Send + Sync + 'static,
    B: Fn(&Parsed) -> Result<T, LoadError> + Send + Sync + 'static,
{
    let mut files = Parsed::default();
    let mut parts = Vec::new();
    for part in Part::of(args) {
        let contents = part.read()?;
        files = contents.parse(&files)?;
        parts.push((part, Reloaded::new(contents)));
    }
    let (sender, receiver) = watch::channel(Arc::new(build(&files)?));
    metrics.set_expiries(&files.expiries);
    let settings = Arc::new(Settings {
        build,
        metrics: metrics.clone(),
        files: Mutex::new(files),
        sender,
    });
    for (part, seen) in parts {
        let mut ticks = interval(args.tls_reload_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::spawn(reload(part, seen, ticks, Arc::clone(&settings)));
    }
    Ok(receiver)
}

/// Polls the files of a part. `seen` has their last contents, valid or not.
async fn reload<T, B>(
    part: Part<PathBuf>,
    seen: Reloaded<Part<PemFile>>,
    mut ticks: Interval,
    settings: Arc<Settings<T, B>>,
) where
    B: Fn(&Parsed) -> Result<T, LoadError>,
{
    loop {
        tokio::select! {
            () = settings.sender.closed() => return,
            _ = ticks.tick() => {}
        }
        let (files, flags) = (part.clone(), part.flags());
        let failed = |source| LoadError::Read {
            file: flags.to_owned(),
            source,
        };
        let Some(contents) = seen.changed(move || files.read(), failed).await else {
            continue;
        };
        match contents.and_then(|contents| settings.replace(&contents)) {
            Ok(()) => tracing::info!(files = flags, "TLS files reloaded"),
            Err(error) => {
                settings.metrics.reload_errors.inc();
                let error = chain(&error);
                tracing::warn!(
                    files = flags,
                    error,
                    "changed TLS files cannot be used, those before stay in use"
                );
            }
        }
    }
}

impl<T, B> Settings<T, B>
where
    B: Fn(&Parsed) -> Result<T, LoadError>,
{
    /// Replaces one part of the files, if the result can be used.
    fn replace(&self, contents: &Part<PemFile>) -> Result<(), LoadError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = contents.parse(&files)?;
        let settings = (self.build)(&changed)?;
        self.metrics.reloads.inc();
        self.metrics.set_expiries(&changed.expiries);
        *files = changed;
        self.sender.send_replace(Arc::new(settings));
        Ok(())
    }
}
