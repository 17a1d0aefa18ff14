//! Credentials that change while the process runs: renewed files, rotated tokens, new tokens from plugins.
//!
//! kube reads most of them once. This module reads the credentials again, and opens new connections, when the files have changed or the API
//! server has refused them (401). So a process that runs long notices by itself, as kubectl does. A refused request is not sent again.

use std::{
    collections::hash_map::DefaultHasher,
    fs,
    hash::{Hash as _, Hasher as _},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use tokio::{select, sync::Notify, task::JoinHandle, time::sleep};

use crate::{
    connect::{Clients, CredentialSource},
    lanes::Lanes,
};

/// The interval of looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The shortest interval between two reads of the credentials: a plugin may ask a person, or another service.
const RENEW_EVERY: Duration = Duration::from_secs(10);

/// Replaces the clients when credentials change, until it is dropped.
#[derive(Debug)]
pub(crate) struct Renewal(JoinHandle<()>);

/// The connections of a cluster.
pub(crate) struct AllLanes {
    pub(crate) calls: Lanes,
    pub(crate) leases: Lanes,
    pub(crate) reader: Lanes,
}

// === impl Renewal ===

impl Renewal {
    /// Begins to watch the files of a source, and to listen for refusals.
    pub(crate) fn start(source: CredentialSource, lanes: AllLanes, refused: Arc<Notify>) -> Self {
        Self(tokio::spawn(renew(source, lanes, refused)))
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn renew(source: CredentialSource, lanes: AllLanes, refused: Arc<Notify>) {
    let mut seen = fingerprint(&source.files());
    loop {
        let is_refused = select! {
            () = refused.notified() => true,
            () = sleep(LOOK_EVERY) => false,
        };
        let found = fingerprint(&source.files());
        if !is_refused && found == seen {
            continue;
        }
        // A failure may come from files that are being written, so the present credentials stay.
        if let Ok((config, _)) = source.config().await {
            let count = lanes.calls.count();
            let clients = tokio::task::spawn_blocking(move || Clients::new(&config, count));
            if let Ok(Ok(clients)) = clients.await {
                lanes.calls.replace(clients.calls);
                lanes.leases.replace([clients.leases]);
                lanes.reader.replace([clients.reader]);
                seen = found;
            }
        }
        sleep(RENEW_EVERY).await;
    }
}

/// A hash of the files' contents; a file that cannot be read counts as empty.
fn fingerprint(files: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        fs::read(file).unwrap_or_default().hash(&mut hasher);
    }
    hasher.finish()
}
