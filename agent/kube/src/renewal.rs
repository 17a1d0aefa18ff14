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

use tokio::{select, sync::Notify, time::sleep};

use crate::{
    connect::{self, CredentialSource},
    lanes::Lanes,
};

/// The interval of looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The shortest interval between two reads of the credentials: a plugin may ask a person, or another service.
const RENEW_EVERY: Duration = Duration::from_secs(10);

/// Replaces the clients of all lanes when the files of the source change, or the API server has refused their credentials.
pub(crate) async fn renew(source: CredentialSource, lanes: [Lanes; 3], refused: Arc<Notify>) {
    let count: usize = lanes.iter().map(Lanes::count).sum();
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
            let clients = tokio::task::spawn_blocking(move || connect::clients(&config, count));
            if let Ok(Ok(clients)) = clients.await {
                let mut clients = clients.into_iter();
                lanes.iter().for_each(|lanes| lanes.replace(&mut clients));
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
