//! The programs of this workspace as processes, beside the real API server.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use tests::{
    admin, binaries,
    running::{Running, Voice},
};

/// A server, running for as long as this is kept, and where it is reached.
pub(crate) struct Server {
    pub(crate) running: Running,
    pub(crate) url: String,
}

// === impl Server ===

impl Server {
    /// Starts a server on free ports.
    pub(crate) fn start() -> Self {
        let mut command = program("decree-server");
        command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.args(["--probe", "off", "--log-format", "json"]);
        let running = Running::start(command, Voice::Stderr);
        let url = format!("http://{}", running.address("grpc"));
        Self { running, url }
    }

    /// Starts an agent of this server for a user of a kubeconfig.
    pub(crate) fn agent(&self, kubeconfig: &Path, flags: &[&str]) -> Running {
        let mut command = program("decree-agent");
        command.args(["--server", &self.url, "--admin", "127.0.0.1:0"]);
        command.args(["--log-format", "json", "--kubeconfig"]);
        command.arg(kubeconfig).args(flags);
        Running::start(command, Voice::Stderr)
    }

    /// Runs a command of the CLI on this server to its end.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Output {
        decree(&[arguments, &["--server", &self.url]].concat())
    }

    /// Runs a command of the CLI that prints one JSON document, `None` where it does not succeed.
    pub(crate) fn ask_json(&self, arguments: &[&str]) -> Option<Value> {
        let output = self.ask(&[arguments, &["-o", "json"]].concat());
        let answered = output.status.success();
        answered.then(|| serde_json::from_slice(&output.stdout).ok())?
    }
}

/// Runs a command of the CLI to its end.
pub(crate) fn decree(arguments: &[&str]) -> Output {
    let output = program("decree").args(arguments).output();
    output.expect("it was built")
}

/// Returns the metrics of a process.
pub(crate) fn metrics(process: &Running) -> String {
    admin::get(&process.address("admin"), "/metrics").expect("it serves its metrics")
}

fn program(name: &str) -> Command {
    Command::new(binaries::folder().join(name))
}
