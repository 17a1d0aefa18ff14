//! The audit log of an API server.

use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The log of requests to an API server that is started with [`Self::flags`]. Dropping it removes the log.
#[derive(Debug)]
pub struct AuditLog {
    folder: TempDir,
}

impl AuditLog {
    /// Makes the policy and the file of a log of answered requests, with these rules of an audit policy.
    ///
    /// # Panics
    /// If temporary files cannot be written.
    pub fn of(rules: &Value) -> Self {
        let folder = TempDir::with_prefix("decree-audit-").expect("there is room");
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules,
        });
        fs::write(folder.path().join("policy.json"), policy.to_string()).expect("there is room");
        Self { folder }
    }

    /// Returns the flags of the API server that writes the log.
    pub fn flags(&self) -> [String; 2] {
        let policy = self.folder.path().join("policy.json");
        [
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", self.path().display()),
        ]
    }

    /// Returns the requests in the log after the first `skipped` bytes.
    ///
    /// # Panics
    /// If the API server has not created the log.
    pub fn lines(&self, skipped: u64) -> Vec<Value> {
        let mut log = File::open(self.path()).expect("the API server has begun it");
        let mut text = String::new();
        log.seek(SeekFrom::Start(skipped))
            .and_then(|_| log.read_to_string(&mut text))
            .expect("it can be read");
        // The last line may be incomplete.
        let lines = text.lines();
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Returns the file, which the API server creates.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }
}
