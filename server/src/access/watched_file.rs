//! Files that may be replaced at any time, and why what they say cannot be used.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use runtime::file::{self, LastRead};
use server_access::{PolicyError, token::KeysError};
use thiserror::Error;
use tokio::{task::spawn_blocking, time::timeout};

use super::key_server::FetchError;

/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// How long is waited for a file system.
const PATIENCE: Duration = Duration::from_secs(5);

/// A file that is read again when its content has changed.
#[derive(Debug)]
pub(super) struct WatchedFile {
    flag: &'static str,
    path: PathBuf,
    last: Mutex<LastRead<Vec<u8>>>,
    /// Whether a thread reads it: one that a file system keeps must not be joined by more.
    is_read: AtomicBool,
}

/// Why a server cannot tell who may do what.
#[derive(Debug, Error)]
pub enum AccessError {
    /// A file cannot be read.
    #[error("{flag} {}", path.display())]
    File {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The policy says nothing that can be followed.
    #[error("--policy {}", path.display())]
    Policy {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        #[source]
        source: PolicyError,
    },
    /// The keys cannot be used.
    #[error("--token-keys {name}")]
    Keys {
        /// The file or URL.
        name: String,
        /// What is wrong.
        #[source]
        source: KeysError,
    },
    /// The keys cannot be fetched.
    #[error("--token-keys {uri}")]
    Fetch {
        /// The URL.
        uri: String,
        /// Why not.
        #[source]
        source: FetchError,
    },
    /// Whose certificate the server of the keys must have is not known.
    #[error(
        "--token-keys with a URL needs --token-keys-ca: the file with the CA certificates of that server"
    )]
    NoCa,
    /// A file needs no CA.
    #[error("--token-keys-ca is for a URL, and --token-keys is not one that begins with https://")]
    CaOfFile,
    /// Keys alone do not say which tokens count.
    #[error(
        "--token-keys needs --token-issuer: the claim iss of the tokens, as in https://kubernetes.default.svc.cluster.local"
    )]
    NoIssuer,
    /// An issuer alone does not say how its tokens are checked.
    #[error("--token-issuer needs --token-keys: the file with the issuer's JSON Web Key Set")]
    NoKeys,
}

// === impl WatchedFile ===

impl WatchedFile {
    /// Reads a file for the first time.
    pub(super) fn open(flag: &'static str, path: &Path) -> Result<(Self, Vec<u8>), AccessError> {
        let bytes = read(flag, path)?;
        let file = Self {
            flag,
            path: path.to_owned(),
            last: Mutex::new(LastRead::new(bytes.clone())),
            is_read: AtomicBool::new(false),
        };
        Ok((file, bytes))
    }

    /// Returns the file's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what it holds if that has changed, and once that it cannot be read. A file system that does not answer within
    /// [`PATIENCE`] counts as one from which it cannot be read.
    pub(super) async fn changed(self: &Arc<Self>) -> Option<Result<Vec<u8>, AccessError>> {
        let read = if self.is_read.swap(true, Ordering::AcqRel) {
            Err(self.unanswered())
        } else {
            let file = Arc::clone(self);
            let reading = spawn_blocking(move || {
                let read = read(file.flag, &file.path);
                file.is_read.store(false, Ordering::Release);
                read
            });
            match timeout(PATIENCE, reading).await {
                Ok(read) => read.unwrap_or_else(|_| Err(self.unanswered())),
                Err(_) => Err(self.unanswered()),
            }
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.change(read)
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
