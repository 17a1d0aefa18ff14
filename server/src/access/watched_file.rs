//! Files that may be replaced at any time, and the errors of their content.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use server_access::{PolicyError, token::KeysError};
use service::file::{self, LastRead};
use thiserror::Error;
use tokio::{task::spawn_blocking, time::timeout};

use super::key_server::FetchError;

/// The maximum size of a file, in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// How long a read may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A file of a `T`, read again when its content changes.
#[derive(Debug)]
pub(super) struct WatchedFile<T> {
    flag: &'static str,
    path: PathBuf,
    parse: fn(&Path, &[u8]) -> Result<T, AccessError>,
    last: Mutex<LastRead<Vec<u8>>>,
    /// Whether a thread is reading the file. A file system that hangs must not block a second thread.
    is_read: AtomicBool,
}

/// Why access control cannot be set up.
#[derive(Debug, Error)]
pub enum AccessError {
    /// A file cannot be read.
    #[error("{flag} {}", path.display())]
    File {
        /// The flag with the path.
        flag: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The policy is invalid.
    #[error("--policy {}", path.display())]
    Policy {
        /// The file.
        path: PathBuf,
        /// The error and its place.
        #[source]
        source: PolicyError,
    },
    /// The keys are invalid.
    #[error("--token-keys {name}")]
    Keys {
        /// The file or URL.
        name: String,
        /// The reason.
        #[source]
        source: KeysError,
    },
    /// The keys cannot be fetched.
    #[error("--token-keys {uri}")]
    Fetch {
        /// The URL.
        uri: String,
        /// The reason.
        #[source]
        source: FetchError,
    },
    /// A key server has no CA to check its certificate.
    #[error(
        "--token-keys with a URL needs --token-keys-ca: the file with the CA certificates of that server"
    )]
    NoCa,
    /// The URL of the keys has a user or a password.
    #[error(
        "--token-keys has a user or a password in its URL; leave them out, because the keys are public"
    )]
    UserInUrl,
    /// The keys have the URL of no key server. The error does not quote the URL, which may have a password.
    #[error("--token-keys is a URL, and not one that begins with https://; a key server needs TLS")]
    NoUrl,
    /// The CA flag is given, but the keys are in a file.
    #[error("--token-keys-ca is for a URL, and --token-keys is not one that begins with https://")]
    CaOfFile,
    /// The keys have no issuer.
    #[error(
        "--token-keys needs --token-issuer: the claim iss of the tokens, as in https://kubernetes.default.svc.cluster.local"
    )]
    NoIssuer,
    /// The issuer has no keys.
    #[error(
        "--token-issuer and --token-keys-ca need --token-keys: the file or the URL of the issuer's JSON Web Key Set"
    )]
    NoKeys,
}

// === impl WatchedFile ===

impl<T: 'static> WatchedFile<T> {
    pub(super) fn open(
        flag: &'static str,
        path: &Path,
        parse: fn(&Path, &[u8]) -> Result<T, AccessError>,
    ) -> Result<(Arc<Self>, T), AccessError> {
        let bytes = read(flag, path)?;
        let parsed = parse(path, &bytes)?;
        let file = Self {
            flag,
            path: path.to_owned(),
            parse,
            last: Mutex::new(LastRead::new(bytes)),
            is_read: AtomicBool::new(false),
        };
        Ok((Arc::new(file), parsed))
    }

    /// The content if it has changed, and the first of several equal errors. A file system that does not respond within [`PATIENCE`]
    /// counts as an error.
    pub(super) async fn changed(self: &Arc<Self>) -> Option<Result<T, AccessError>> {
        let read = if self.is_read.swap(true, Ordering::AcqRel) {
            Err(self.unanswered())
        } else {
            let file = Arc::clone(self);
            let reading = spawn_blocking(move || {
                let read = read(file.flag, &file.path);
                file.is_read.store(false, Ordering::Release);
                read
            });
            let read = timeout(PATIENCE, reading).await.ok().and_then(Result::ok);
            read.unwrap_or_else(|| Err(self.unanswered()))
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = last.change(read)?;
        Some(changed.and_then(|bytes| (self.parse)(&self.path, &bytes)))
    }

    fn unanswered(&self) -> AccessError {
        AccessError::File {
            flag: self.flag,
            path: self.path.clone(),
            source: io::Error::new(io::ErrorKind::TimedOut, "its file system does not answer"),
        }
    }
}

fn read(flag: &'static str, path: &Path) -> Result<Vec<u8>, AccessError> {
    file::read(path, BYTES_MAX).map_err(|source| AccessError::File {
        flag,
        path: path.to_owned(),
        source,
    })
}
