//! The audit log of an API server.

use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Where an API server writes what it was asked for, once it is started with [`Self::flags`]. The log goes with this.
#[derive(Debug)]
pub struct AuditLog {
    folder: TempDir,
}

// === impl AuditLog ===

impl AuditLog {
    /// Makes the policy and the place of a log of answered requests, by these rules of an audit policy.
    ///
    /// # Panics
    /// Where there is no room for temporary files.
    #[must_use]
    pub fn of(rules: &Value) -> Self {
        let folder = TempDir::with_prefix("decree-audit-").expect("there is room");
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules,
        });
        fs::write(folder.path().join("policy.json"), policy.to_string()).expect("there is room");
        Self { folder }
    }

    /// Returns the flags of the API server that writes it.
    #[must_use]
    pub fn flags(&self) -> [String; 2] {
        let policy = self.folder.path().join("policy.json");
        [
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", self.path().display()),
        ]
    }

    /// Returns the requests that stand in it, but for so many bytes at its beginning.
    ///
    /// # Panics
    /// Where the API server has not begun it.
    #[must_use]
    pub fn lines(&self, skipped: u64) -> Vec<Value> {
        let mut log = File::open(self.path()).expect("the API server has begun it");
        let mut text = String::new();
        log.seek(SeekFrom::Start(skipped))
            .and_then(|_| log.read_to_string(&mut text))
            .expect("it can be read");
        // The last line may be under way.
        let lines = text.lines();
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Returns the file, which the API server begins.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }
}
