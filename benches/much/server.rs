//! The server as a separate process.

use std::process::Command;

use tests::{
    binaries,
    running::{Running, Voice},
};

/// A server process, killed on drop.
pub(crate) struct Server {
    running: Running,
    /// The address for sessions.
    pub(crate) address: String,
}

impl Server {
    /// Starts a server with these flags on a free port.
    pub(crate) fn start(flags: &[String]) -> Self {
        Self::start_at("127.0.0.1:0", flags)
    }

    /// Starts a server with these flags at an address.
    pub(crate) fn start_at(address: &str, flags: &[String]) -> Self {
        let mut command = Command::new(binaries::folder().join("decree-server"));
        command.args(["--listen", address, "--admin=off"]);
        command.args(flags);
        let running = Running::start(command, Voice::Stderr);
        let address = running.address("grpc");
        Self { running, address }
    }

    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }

    /// Kills the server without a drain, and waits for its end. Returns its address.
    pub(crate) fn kill(self) -> String {
        self.running.kill();
        self.address
    }
}
