//! Files that are looked at by content: whoever replaces them may do so by a link, as kubelet does.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use server_access::{PolicyError, token::KeysError};
use thiserror::Error;

use super::key_server::FetchError;

/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// A file that is read again when its content has changed.
#[derive(Debug)]
pub(super) struct WatchedFile {
    flag: &'static str,
    path: PathBuf,
    /// `None` after it could not be read.
    last: Mutex<Option<Vec<u8>>>,
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
        let file = Self {
            flag,
            path: path.to_owned(),
            last: Mutex::default(),
        };
        let bytes = file.read()?;
        *file.last() = Some(bytes.clone());
        Ok((file, bytes))
    }

    /// Returns the file's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what it holds if that has changed, and once that it cannot be read.
    pub(super) fn changed(&self) -> Option<Result<Vec<u8>, AccessError>> {
        let read = self.read();
        let mut last = self.last();
        if last.as_ref() == read.as_ref().ok() {
            return None;
        }
        *last = read.as_ref().ok().cloned();
        Some(read)
    }

    fn read(&self) -> Result<Vec<u8>, AccessError> {
        read(&self.path).map_err(|source| AccessError::File {
            flag: self.flag,
            path: self.path.clone(),
            source,
        })
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<Vec<u8>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let size = fs::metadata(path)?.len();
    if size > BYTES_MAX {
        let message = format!("is larger than {BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    fs::read(path)
}
