//! The agent under test.

use std::{
    io,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

/// An agent that can be started and killed, with a cluster that outlives it.
pub trait Subject {
    /// The running agent.
    type Running: Running;

    /// Starts the agent. `address` is the server's HOST:PORT. From then on, the agent's ReplicaSet must have `replicas`.
    ///
    /// # Errors
    /// If the agent cannot be started.
    fn start(&self, address: &str, replicas: usize) -> io::Result<Self::Running>;
}

/// A running agent. Dropping it kills the agent, as SIGKILL kills a process.
pub trait Running {
    /// Requests an orderly end, as SIGTERM does.
    ///
    /// # Errors
    /// If the agent has already ended.
    fn stop(&mut self) -> io::Result<()>;

    /// Whether the agent has ended.
    fn has_ended(&mut self) -> bool;
}

/// An agent in a separate process. `{address}` is replaced by the server's address, `{replicas}` by the number of pods.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program, followed by its arguments.
    pub command: Vec<String>,
}

/// A process, killed with SIGKILL on drop.
#[derive(Debug)]
pub struct Process(Child);

/// The standard input stays open and empty. The output is discarded.
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
        // A process that has already ended cannot be killed, and need not be.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
