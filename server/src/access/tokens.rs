//! Tokens of calls, and the keys that verify them.

use std::{path::Path, sync::Arc, time::Duration};

use http::{Uri, uri::Scheme};
use parking_lot::RwLock;
use server_access::token::{Claims, Keys, TokenError, Verifier};
use service::Fault;
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::Instant,
};

use super::{args::AccessArgs, key_server::KeyServer, watched_file::WatchedFile};
use crate::clock;

/// The minimum time between two reads for an unknown key. Anyone can send a token with an unknown key.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often keys are fetched from a server, unless a token names an unknown key.
const FETCH_EVERY: Duration = Duration::from_mins(5);
/// How often a fetch is retried after a failure.
const RETRY_EVERY: Duration = Duration::from_secs(10);

const NO_KEYS: &str = "--token-issuer and --token-keys-ca need --token-keys: the file or the URL of the issuer's JSON Web Key Set";
const NO_ISSUER: &str = "--token-keys needs --token-issuer: the claim iss of the tokens, as in https://kubernetes.default.svc.cluster.local";
// The URL, which may have a password, is not quoted.
const NO_URL: &str =
    "--token-keys is a URL, and not one that begins with https://; a key server needs TLS";
const USER_IN_URL: &str =
    "--token-keys has a user or a password in its URL; leave them out, because the keys are public";
const NO_CA: &str = "--token-keys with a URL needs --token-keys-ca: the file with the CA certificates of that server";
const CA_OF_FILE: &str =
    "--token-keys-ca is for a URL, and --token-keys is not one that begins with https://";

/// Verifies tokens with the issuer's keys as they were last read.
#[derive(Debug)]
pub(super) struct Tokens {
    verifier: Verifier,
    source: KeySource,
    keys: RwLock<Arc<Keys>>,
    /// Held while keys are read. Other callers wait for the lock, because a changed file is returned only once.
    looks: Arc<Mutex<Looks>>,
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
    pub(super) fn new(args: &AccessArgs) -> Result<Option<Self>, Fault> {
        let (keys, issuer) = match (&args.token_keys, &args.token_issuer) {
            (None, None) if args.token_keys_ca.is_none() => return Ok(None),
            (None, _) => return Err(Fault::new(NO_KEYS)),
            (Some(_), None) => return Err(Fault::new(NO_ISSUER)),
            (Some(keys), Some(issuer)) => (keys, issuer),
        };
        let (source, keys) = match (KeySource::server(keys), &args.token_keys_ca) {
            (None, _) if keys.contains("://") => return Err(Fault::new(NO_URL)),
            (None, Some(_)) => return Err(Fault::new(CA_OF_FILE)),
            (None, None) => {
                let (file, keys) = WatchedFile::open("--token-keys", Path::new(keys), parse_file)?;
                (KeySource::File(file), keys)
            }
            (Some(uri), _) if uri.authority().is_some_and(|it| it.as_str().contains('@')) => {
                return Err(Fault::new(USER_IN_URL));
            }
            (Some(_), None) => return Err(Fault::new(NO_CA)),
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
            looks: Arc::default(),
        }))
    }

    /// Verifies a token. If the key is unknown, reads the keys again first, but not too often.
    pub(super) async fn verify(self: &Arc<Self>, token: &str) -> Result<Claims, TokenError> {
        let verified = self.check(token);
        if verified != Err(TokenError::UnknownKey) {
            return verified;
        }
        let looks = Arc::clone(&self.looks).lock_owned().await;
        // Another call may have read the key meanwhile.
        let verified = self.check(token);
        let is_due = looks
            .for_token
            .is_none_or(|looked| looked.elapsed() >= LOOK_EVERY);
        if verified != Err(TokenError::UnknownKey) || !is_due {
            return verified;
        }
        // A separate task: callers that leave must not cause one read after the other.
        let _ = tokio::spawn(Arc::clone(self).look(looks)).await;
        self.check(token)
    }

    /// Reads the keys for a token.
    async fn look(self: Arc<Self>, mut looks: OwnedMutexGuard<Looks>) {
        // The periodic reload counts failures.
        let _ = self.source.read().await.map(|keys| self.set(keys));
        looks.for_token = Some(Instant::now());
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
        let keys = Arc::clone(&self.keys.read());
        self.verifier.verify(clock::seconds(), &keys, token)
    }

    /// Replaces the keys. After a failed read, the old keys stay and the result is `false`.
    fn set(&self, read: Result<Keys, Fault>) -> bool {
        match read {
            Ok(keys) => {
                let keys = Arc::new(keys);
                let mut last = self.keys.write();
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
    async fn read(&self) -> Option<Result<Keys, Fault>> {
        let server = match self {
            Self::File(file) => return file.changed().await,
            Self::Server(server) => server,
        };
        let uri = server.uri.to_string();
        Some(match server.fetch().await {
            Ok(bytes) => parse(&uri, &bytes),
            Err(fault) => Err(Fault::because(format!("--token-keys {uri}"), fault)),
        })
    }
}

fn parse_file(path: &Path, bytes: &[u8]) -> Result<Keys, Fault> {
    parse(&path.display().to_string(), bytes)
}

fn parse(name: &str, bytes: &[u8]) -> Result<Keys, Fault> {
    let fault = |error| Fault::because(format!("--token-keys {name}"), error);
    Keys::parse(bytes).map_err(fault)
}

#[cfg(test)]
mod tests {
    use std::{fs, future::ready};

    use super::*;

    #[tokio::test]
    async fn read_for_a_caller_that_leaves_goes_on_and_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys.json");
        let coordinate = "A".repeat(43);
        let keys = format!(
            r#"{{"keys":[{{"kty":"EC","crv":"P-256","kid":"a","x":"{coordinate}","y":"{coordinate}"}}]}}"#
        );
        fs::write(&path, keys).expect("it can be written");
        let args = AccessArgs {
            token_keys: Some(path.display().to_string()),
            token_issuer: Some("issuer".to_owned()),
            ..AccessArgs::default()
        };
        let tokens = Tokens::new(&args).expect("valid").expect("there are keys");
        let tokens = Arc::new(tokens);
        // Of the key `b`.
        let token = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImIifQ.e30.AA";
        tokio::select! {
            biased;
            verified = tokens.verify(token) => panic!("{verified:?}"),
            () = ready(()) => {}
        }
        assert!(tokens.looks.lock().await.for_token.is_some());
    }
}
