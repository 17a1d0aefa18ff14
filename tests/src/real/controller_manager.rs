//! The built-in controllers, as a peer.

use std::{fs, os::unix::fs::symlink};

use super::{api_server::ApiServer, program::Program};

/// A running kube-controller-manager, in which each controller has a separate service account; killed on drop.
#[derive(Debug)]
pub struct ControllerManager {
    program: Program,
}

impl ControllerManager {
    /// Starts the controllers, with further flags, without a wait for their readiness.
    pub fn start(server: &ApiServer, flags: &[&str]) -> Self {
        let program = Program::start(
            server.assets(),
            server.folder(),
            "kube-controller-manager",
            flags,
        );
        Self { program }
    }

    /// Starts the controllers under another name of the program, which is the name of their writes.
    ///
    /// # Panics
    /// If there is no room for a link.
    pub fn start_as(server: &ApiServer, name: &'static str, flags: &[&str]) -> Self {
        let folder = server.folder().join("named");
        fs::create_dir_all(&folder).expect("there is room");
        let program = server.assets().join("kube-controller-manager");
        // It exists from the second start on.
        let _ = symlink(program, folder.join(name));
        let program = Program::start(&folder, server.folder(), name, flags);
        Self { program }
    }

    /// Returns the end of its log.
    pub fn log(&self) -> String {
        self.program.tail()
    }

    /// Returns the id of its process, for measurements.
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Kills the process and waits for its end.
    pub fn stop(&mut self) {
        self.program.kill();
    }
}
