//! Tokens of calls, and the keys that verify them.

use std::{
    path::Path,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use http::{Uri, uri::Scheme};
use server_access::token::{Claims, Keys, TokenError, Verifier};
use tokio::{sync::Mutex, time::Instant};

use super::{
    args::AccessArgs,
    key_server::KeyServer,
    watched_file::{AccessError, WatchedFile},
};
use crate::clock;

/// The minimum time between two reads for an unknown key. Anyone can send a token with an unknown key.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often keys are fetched from a server, unless a token names an unknown key.
const FETCH_EVERY: Duration = Duration::from_mins(5);
/// How often a fetch is retried after a failure.
const RETRY_EVERY: Duration = Duration::from_secs(10);

/// Verifies tokens with the issuer's keys as they were last read.
#[derive(Debug)]
pub(super) struct Tokens {
    verifier: Verifier,
    source: KeySource,
    keys: RwLock<Arc<Keys>>,
    /// Held while keys are read. Other callers wait for the lock, because a changed file is returned only once.
    looks: Mutex<Looks>,
}

/// The times of key reads.
#[derive(Debug, Default)]
struct Looks {
    /// The last read because of an unknown key.
    for_token: Option<Instant>,
    /// The time of the next fetch that no token causes.
    due: Option<Instant>,
}

#[derive(Debug)]
enum KeySource {
    File(WatchedFile<Keys>),
    Server(KeyServer),
}

impl Tokens {
    /// Reads the keys, if tokens are accepted. A key server is asked later, because it may not run yet.
    pub(super) fn new(args: &AccessArgs) -> Result<Option<Self>, AccessError> {
        let (keys, issuer) = match (&args.token_keys, &args.token_issuer) {
            (None, None) if args.token_keys_ca.is_none() => return Ok(None),
            (None, _) => return Err(AccessError::NoKeys),
            (Some(_), None) => return Err(AccessError::NoIssuer),
            (Some(keys), Some(issuer)) => (keys, issuer),
        };
        let (source, keys) = match (KeySource::server(keys), &args.token_keys_ca) {
            (None, _) if keys.contains("://") => return Err(AccessError::NoUrl),
            (None, Some(_)) => return Err(AccessError::CaOfFile),
            (None, None) => {
                let (file, keys) = WatchedFile::open("--token-keys", Path::new(keys), parse_file)?;
                (KeySource::File(file), keys)
            }
            (Some(uri), _) if uri.authority().is_some_and(|it| it.as_str().contains('@')) => {
                return Err(AccessError::UserInUrl);
            }
            (Some(_), None) => return Err(AccessError::NoCa),
            (Some(uri), Some(ca)) => {
                let ca = ca.clone();
                (KeySource::Server(KeyServer { uri, ca }), Keys::default())
            }
        };
        Ok(Some(Self {
            verifier: Verifier {
                issuer: issuer.clone(),
                audience: args.token_audience.clone(),
            },
            source,
            keys: RwLock::new(Arc::new(keys)),
            looks: Mutex::default(),
        }))
    }

    /// Verifies a token. If the key is unknown, reads the keys again first, but not too often.
    pub(super) async fn verify(&self, token: &str) -> Result<Claims, TokenError> {
        let verified = self.check(token);
        if verified != Err(TokenError::UnknownKey) {
            return verified;
        }
        let mut looks = self.looks.lock().await;
        // Another call may have read the key meanwhile.
        let verified = self.check(token);
        let is_due = looks
            .for_token
            .is_none_or(|looked| looked.elapsed() >= LOOK_EVERY);
        if verified != Err(TokenError::UnknownKey) || !is_due {
            return verified;
        }
        // The periodic reload counts failures.
        let _ = self.source.read().await.map(|keys| self.set(keys));
        looks.for_token = Some(Instant::now());
        self.check(token)
    }

    /// Reads the keys again if they are due. If that fails, the old keys stay and the result is `false`.
    pub(super) async fn reload(&self) -> bool {
        let mut looks = self.looks.lock().await;
        if looks.due.is_some_and(|due| due > Instant::now()) {
            return true;
        }
        let read = self.source.read().await;
        let is_well = read.is_none_or(|keys| self.set(keys));
        looks.due = match self.source {
            KeySource::File(_) => None,
            KeySource::Server(_) if is_well => Some(Instant::now() + FETCH_EVERY),
            KeySource::Server(_) => Some(Instant::now() + RETRY_EVERY),
        };
        is_well
    }

    fn check(&self, token: &str) -> Result<Claims, TokenError> {
        let keys = Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner));
        self.verifier.verify(clock::seconds(), &keys, token)
    }

    /// Replaces the keys. After a failed read, the old keys stay and the result is `false`.
    fn set(&self, read: Result<Keys, AccessError>) -> bool {
        match read {
            Ok(keys) => {
                let keys = Arc::new(keys);
                let mut last = self.keys.write().unwrap_or_else(PoisonError::into_inner);
                if *last != keys {
                    *last = keys;
                    tracing::info!("keys of tokens read again");
                }
                true
            }
            Err(error) => {
                let error = service::failure::chain(&error);
                let peer = "issuer";
                tracing::error!(
                    peer,
                    error,
                    "keys of tokens cannot be used; the last ones stay"
                );
                false
            }
        }
    }
}

impl KeySource {
    /// The URL in the flag's value, if the value is a URL.
    fn server(keys: &str) -> Option<Uri> {
        let uri: Uri = keys.parse().ok()?;
        (uri.scheme() == Some(&Scheme::HTTPS)).then_some(uri)
    }

    /// `None` if the file has not changed.
    async fn read(&self) -> Option<Result<Keys, AccessError>> {
        let server = match self {
            Self::File(file) => return file.changed().await,
            Self::Server(server) => server,
        };
        let uri = server.uri.to_string();
        Some(match server.fetch().await {
            Ok(bytes) => parse(uri, &bytes),
            Err(source) => Err(AccessError::Fetch { uri, source }),
        })
    }
}

fn parse_file(path: &Path, bytes: &[u8]) -> Result<Keys, AccessError> {
    parse(path.display().to_string(), bytes)
}

fn parse(name: String, bytes: &[u8]) -> Result<Keys, AccessError> {
    Keys::parse(bytes).map_err(|source| AccessError::Keys { name, source })
}
