//! The agent that is tested.

use std::{
    io,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

/// An agent that can be started and killed, with a cluster that outlives it.
pub trait Subject {
    /// The agent while it runs.
    type Running: Running;

    /// Starts the agent. `address` is where the server is, as HOST:PORT; its ReplicaSet must want this many pods from then on.
    ///
    /// # Errors
    /// Where it cannot be started.
    fn start(&self, address: &str, replicas: usize) -> io::Result<Self::Running>;
}

/// An agent that runs. Dropping it kills the agent, as SIGKILL kills a process.
pub trait Running {
    /// Asks the agent to end in order, as SIGTERM asks a process.
    ///
    /// # Errors
    /// Where it has ended already.
    fn stop(&mut self) -> io::Result<()>;

    /// Returns whether the agent has ended.
    fn has_ended(&mut self) -> bool;
}

/// An agent that is a process of its own. `{address}` stands for where the server is, `{replicas}` for how many pods its ReplicaSet wants.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program, and then its arguments.
    pub command: Vec<String>,
}

/// A process; it is killed with SIGKILL when this is dropped.
#[derive(Debug)]
pub struct Process(Child);

// === impl Program ===

/// Its input stays open and empty; what it prints is not shown.
impl Subject for Program {
    type Running = Process;

    fn start(&self, address: &str, replicas: usize) -> io::Result<Process> {
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
            .map(Process)
    }
}

// === impl Process ===

impl Running for Process {
    fn stop(&mut self) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.0), Signal::TERM)?)
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed, and that is as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
