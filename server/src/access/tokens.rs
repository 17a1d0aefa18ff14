//! Tokens of calls, and the keys that they are checked against.

use std::{
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use server_access::token::{Claims, Keys, TokenError, Verifier};
use tokio::{task::spawn_blocking, time::Instant};

use super::{
    args::AccessArgs,
    watched_file::{AccessError, WatchedFile},
};
use crate::clock;

/// How soon after a look for a key that is not known the next one may follow: strangers can name any key.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Which tokens count, with the issuer's keys as they were last read.
#[derive(Debug)]
pub(super) struct Tokens {
    verifier: Verifier,
    file: Arc<WatchedFile>,
    keys: RwLock<Arc<Keys>>,
    /// When keys were last looked for because a token named one that is not known.
    looked: Mutex<Option<Instant>>,
}

// === impl Tokens ===

impl Tokens {
    /// Reads the keys, if tokens are to be taken.
    pub(super) fn new(args: &AccessArgs) -> Result<Option<Self>, AccessError> {
        let (path, issuer) = match (&args.token_keys, &args.token_issuer) {
            (None, None) => return Ok(None),
            (None, Some(_)) => return Err(AccessError::NoKeys),
            (Some(_), None) => return Err(AccessError::NoIssuer),
            (Some(path), Some(issuer)) => (path, issuer),
        };
        let (file, bytes) = WatchedFile::open("--token-keys", path)?;
        let keys = parse(&file, &bytes)?;
        Ok(Some(Self {
            verifier: Verifier {
                issuer: issuer.clone(),
                audience: args.token_audience.clone(),
                leeway: i64::try_from(args.token_leeway.as_secs()).unwrap_or(0),
            },
            file: Arc::new(file),
            keys: RwLock::new(Arc::new(keys)),
            looked: Mutex::default(),
        }))
    }

    /// Checks a token. If its key is not known, the keys are read again first, but not too often.
    pub(super) async fn verify(&self, token: &str) -> Result<Claims, TokenError> {
        let verified = self.verifier.verify(clock::seconds(), &self.keys(), token);
        if verified != Err(TokenError::UnknownKey) || !self.may_look() {
            return verified;
        }
        self.reload().await;
        self.verifier.verify(clock::seconds(), &self.keys(), token)
    }

    /// Reads the keys again if their file has changed; what cannot be used leaves them as they are. Returns whether that is so.
    pub(super) async fn reload(&self) -> bool {
        let file = Arc::clone(&self.file);
        let read =
            spawn_blocking(move || Some(file.changed()?.and_then(|bytes| parse(&file, &bytes))));
        match read.await {
            Ok(None) | Err(_) => true,
            Ok(Some(Ok(keys))) => {
                *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
                tracing::info!(file = %self.file.path().display(), "keys of tokens read again");
                true
            }
            Ok(Some(Err(error))) => {
                let error = runtime::failure::chain(&error);
                tracing::error!(error, "keys of tokens cannot be used; the last ones stay");
                false
            }
        }
    }

    fn keys(&self) -> Arc<Keys> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn may_look(&self) -> bool {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY);
        if is_due {
            *looked = Some(Instant::now());
        }
        is_due
    }
}

fn parse(file: &WatchedFile, bytes: &[u8]) -> Result<Keys, AccessError> {
    Keys::parse(bytes).map_err(|source| AccessError::Keys {
        path: file.path().to_owned(),
        source,
    })
}
