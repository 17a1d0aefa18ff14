//! Files that may be replaced at any time, and the errors of their content.

use std::{
    convert::identity,
    io,
    path::{Path, PathBuf},
};

use server_access::{PolicyError, token::KeysError};
use service::file::{self, Reloaded};
use thiserror::Error;

use super::key_server::FetchError;

/// The maximum size of a file, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// A file of a `T`, read again when its content changes.
#[derive(Debug)]
pub(super) struct WatchedFile<T> {
    flag: &'static str,
    path: PathBuf,
    parse: fn(&Path, &[u8]) -> Result<T, AccessError>,
    bytes: Reloaded<Vec<u8>>,
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

impl<T> WatchedFile<T> {
    pub(super) fn open(
        flag: &'static str,
        path: &Path,
        parse: fn(&Path, &[u8]) -> Result<T, AccessError>,
    ) -> Result<(Self, T), AccessError> {
        let bytes = file::read(path, BYTES_MAX).map_err(|error| unreadable(flag, path, error))?;
        let parsed = parse(path, &bytes)?;
        let file = Self {
            flag,
            path: path.to_owned(),
            parse,
            bytes: Reloaded::new(bytes),
        };
        Ok((file, parsed))
    }

    /// The content if it has changed, and the first of several equal errors.
    pub(super) async fn changed(&self) -> Option<Result<T, AccessError>> {
        let path = self.path.clone();
        let read = move || file::read(&path, BYTES_MAX);
        let changed = self.bytes.changed(read, identity).await?;
        let changed = changed.map_err(|error| unreadable(self.flag, &self.path, error));
        Some(changed.and_then(|bytes| (self.parse)(&self.path, &bytes)))
    }
}

fn unreadable(flag: &'static str, path: &Path, source: io::Error) -> AccessError {
    let path = path.to_owned();
    AccessError::File { flag, path, source }
}
