//! Polls the files, and applies their changes.

use std::{path::PathBuf, sync::Arc};

use crate::{Fault, failure::chain, file::Reloaded};
use tokio::{
    sync::watch,
    time::{Interval, MissedTickBehavior, interval},
};

use crate::transport::{
    args::TlsArgs,
    files::{Parsed, Part, PemFile, unreadable},
    metrics::Metrics,
};

/// The paths of a part, and its last contents, valid or not.
type Seen = (Part<PathBuf>, Reloaded<Part<PemFile>>);

/// Loads the files, and reloads them when they change, while a receiver exists. `build` makes the settings that the files define.
///
/// # Errors
/// If the first load fails.
pub(crate) fn load<T, B>(
    args: &TlsArgs,
    metrics: &Metrics,
    build: B,
) -> Result<watch::Receiver<Arc<T>>, Fault>
where
    T: Send + Sync + 'static,
    B: Fn(&Parsed) -> Result<T, Fault> + Send + Sync + 'static,
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
    let mut ticks = interval(args.tls_reload_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let replace = move |contents: &Part<PemFile>, metrics: &Metrics| {
        let changed = contents.parse(&files)?;
        let settings = build(&changed)?;
        metrics.reloads.inc();
        metrics.set_expiries(&changed.expiries);
        files = changed;
        Ok(settings)
    };
    tokio::spawn(reload(parts, ticks, replace, sender, metrics.clone()));
    Ok(receiver)
}

/// Polls the files. `replace` makes the settings with new contents of a part, if they can be used.
async fn reload<T>(
    parts: Vec<Seen>,
    mut ticks: Interval,
    mut replace: impl FnMut(&Part<PemFile>, &Metrics) -> Result<T, Fault>,
    sender: watch::Sender<Arc<T>>,
    metrics: Metrics,
) {
    loop {
        tokio::select! {
            () = sender.closed() => return,
            _ = ticks.tick() => {}
        }
        for (part, seen) in &parts {
            let (files, flags) = (part.clone(), part.flags());
            let failed = |source| unreadable(flags, source);
            let Some(contents) = seen.changed(move || files.read(), failed).await else {
                continue;
            };
            match contents.and_then(|contents| replace(&contents, &metrics)) {
                Ok(settings) => {
                    sender.send_replace(Arc::new(settings));
                    tracing::info!(files = flags, "TLS files reloaded");
                }
                Err(error) => {
                    metrics.reload_errors.inc();
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
}
