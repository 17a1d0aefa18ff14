//! A decree-server as a process.

use std::process::Output;

use serde_json::Value;

use super::{decree, kept::Kept};
use crate::{admin, running::Running};

/// A running decree-server; it is killed when this is dropped.
#[derive(Debug)]
pub struct DecisionServer {
    kept: Kept,
    address: String,
    admin: String,
}

// === impl DecisionServer ===

impl DecisionServer {
    /// Starts one on free ports, and returns when it listens.
    #[must_use]
    pub fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    /// Returns where it serves gRPC.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns what it says.
    #[must_use]
    pub fn running(&self) -> &Running {
        self.kept.running()
    }

    /// Returns its metrics.
    #[must_use]
    pub fn metrics(&self) -> String {
        admin::get(&self.admin, "/metrics").expect("it serves its metrics")
    }

    /// Runs a command of the CLI on it to its end.
    #[must_use]
    pub fn ask(&self, arguments: &[&str]) -> Output {
        decree(&[arguments, &["--server", &self.url()]].concat())
    }

    /// Runs a command of the CLI that prints one JSON document, `None` where it does not succeed.
    #[must_use]
    pub fn ask_json(&self, arguments: &[&str]) -> Option<Value> {
        let output = self.ask(&[arguments, &["-o", "json"]].concat());
        let answered = output.status.success();
        answered.then(|| serde_json::from_slice(&output.stdout).ok())?
    }

    /// Kills it, and starts another in its place.
    #[must_use]
    pub fn restart(self) -> Self {
        let Self { kept, address, .. } = self;
        kept.signal("KILL");
        let _killed = kept.wait();
        Self::start_at(&address)
    }

    /// Returns the number of the process, for who measures it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.kept.process()
    }

    fn start_at(listen: &str) -> Self {
        let flags = [
            "--listen",
            listen,
            "--admin",
            "127.0.0.1:0",
            "--probe",
            "off",
        ];
        let kept = Kept::start("decree-server", &flags);
        let [address, admin] = ["grpc", "admin"].map(|it| kept.running().address(it));
        Self {
            kept,
            address,
            admin,
        }
    }
}
