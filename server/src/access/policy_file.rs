//! The file of the policy, read again when it changes.

use std::{path::Path, sync::Arc};

use server_access::{Policy, PolicyError};

use super::watched_file::{AccessError, WatchedFile};

/// A policy file, and its content when it was last read.
#[derive(Debug)]
pub(super) struct PolicyFile(Arc<WatchedFile>);

// === impl PolicyFile ===

impl PolicyFile {
    pub(super) fn open(path: &Path) -> Result<(Self, Policy), AccessError> {
        let (file, bytes) = WatchedFile::open("--policy", path)?;
        let policy = parse(path, &bytes)?;
        Ok((Self(Arc::new(file)), policy))
    }

    /// The policy, if the file has changed.
    pub(super) async fn changed(&self) -> Option<Result<Policy, AccessError>> {
        let bytes = self.0.changed().await?;
        Some(bytes.and_then(|bytes| parse(self.0.path(), &bytes)))
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Policy, AccessError> {
    let wrong = |source| AccessError::Policy {
        path: path.to_owned(),
        source,
    };
    let text = str::from_utf8(bytes).map_err(|error| {
        let before = bytes.iter().take(error.valid_up_to());
        wrong(PolicyError {
            line: 1 + before.filter(|byte| **byte == b'\n').count(),
            message: "is not UTF-8".to_owned(),
        })
    })?;
    Policy::parse(text).map_err(wrong)
}
