//! The agent that is tested.

use std::{
    io,
    process::{Child, Command, Stdio},
};

/// How an agent is started: a program and its arguments. `{address}` stands for where the server is, `{replicas}` for how many pods its
/// ReplicaSet wants.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The program, and then its arguments.
    pub command: Vec<String>,
}

/// A running agent; it is killed with SIGKILL when this is dropped.
pub(super) struct Running(Child);

// === impl Subject ===

impl Subject {
    /// Starts the agent. Its input stays open and empty.
    pub(super) fn start(&self, address: &str, replicas: usize) -> io::Result<Running> {
        let replicas = replicas.to_string();
        let mut words = self.command.iter().map(|word| {
            word.replace("{address}", address)
                .replace("{replicas}", &replicas)
        });
        let program = words.next().unwrap_or_default();
        Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Running)
    }
}

// === impl Running ===

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed, and that is as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
