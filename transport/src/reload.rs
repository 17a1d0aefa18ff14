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
    failure::LoadError,
    files::{Contents, Parsed},
    metrics::Metrics,
};

/// Loads the files, and reloads them when they change, while a receiver exists. `build` makes the settings that the files define.
///
/// # Errors
/// If the first load fails.
pub(crate) fn load<T: Send + Sync + 'static>(
    args: &TlsArgs,
    metrics: &Metrics,
    build: impl Fn(Parsed) -> Result<T, LoadError> + Send + 'static,
) -> Result<watch::Receiver<Arc<T>>, LoadError> {
    let contents = Contents::read(args)?;
    let parsed = contents.parse()?;
    let expiries = parsed.expiries;
    let (sender, receiver) = watch::channel(Arc::new(build(parsed)?));
    metrics.set_expiries(&expiries);
    tokio::spawn(reload(
        args.clone(),
        metrics.clone(),
        build,
        LastRead::new(contents),
        sender,
    ));
    Ok(receiver)
}

/// Polls the files. `seen` has their last contents, valid or not.
async fn reload<T>(
    args: TlsArgs,
    metrics: Metrics,
    build: impl Fn(Parsed) -> Result<T, LoadError>,
    mut seen: LastRead<Contents>,
    sender: watch::Sender<Arc<T>>,
) {
    let mut ticks = interval(args.tls_reload_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = sender.closed() => return,
            _ = ticks.tick() => {}
        }
        let files = args.clone();
        // If a file system hangs, the settings stay unchanged, and nothing else waits.
        let read = tokio::select! {
            () = sender.closed() => return,
            read = spawn_blocking(move || Contents::read(&files)) => read,
        };
        let Some(contents) = read.ok().and_then(|read| seen.change(read)) else {
            continue;
        };
        let parsed = contents.and_then(|contents| contents.parse());
        let built = parsed.and_then(|parsed| Ok((parsed.expiries, build(parsed)?)));
        match built {
            Ok((expiries, settings)) => {
                metrics.reloads.inc();
                metrics.set_expiries(&expiries);
                let expires = expiries.cert.map(tracing::field::display);
                tracing::info!(expires, "TLS files reloaded");
                sender.send_replace(Arc::new(settings));
            }
            Err(error) => {
                metrics.reload_errors.inc();
                let error = chain(&error);
                tracing::warn!(
                    error,
                    "changed TLS files cannot be used, those before stay in use"
                );
            }
        }
    }
}
