//! The built-in controllers, as a peer.

use super::{api_server::ApiServer, program::Program};

/// A running kube-controller-manager, in which each controller has its own service account; it is killed when this is dropped.
#[derive(Debug)]
pub struct ControllerManager {
    program: Program,
}

// === impl ControllerManager ===

impl ControllerManager {
    /// Starts all controllers but that of ReplicaSets. It does not wait for them.
    #[must_use]
    pub fn start_others(server: &ApiServer) -> Self {
        Self::start(server, &["--controllers=*,-replicaset-controller"])
    }

    /// Starts the controllers, with further flags. It does not wait for them.
    #[must_use]
    pub fn start(server: &ApiServer, flags: &[&str]) -> Self {
        let program = Program::start(
            server.assets(),
            server.folder(),
            "kube-controller-manager",
            flags,
        );
        Self { program }
    }

    /// Returns the end of its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.program.tail()
    }

    /// Returns the number of its process, for who measures it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Kills it and waits until it is gone.
    pub fn stop(&mut self) {
        self.program.kill();
    }
}
