//! A decree-server as a process.

use std::{
    path::Path,
    process::{ExitStatus, Output},
};

use super::{decree, kept::Kept};
use crate::{
    admin,
    running::{Running, free_address},
};

const PROGRAM: &str = "decree-server";
/// The timeout of the CLI, longer than the default because of busy machines.
const ANSWERED_WITHIN: &str = "2m";

/// A running decree-server, killed on drop.
#[derive(Debug)]
pub struct DecisionServer {
    kept: Kept,
    address: String,
    admin: String,
    /// The flags, except addresses.
    flags: Vec<String>,
}

impl DecisionServer {
    /// Starts a server on free ports, and returns when it listens.
    pub fn start() -> Self {
        Self::start_at(&free_address(), Vec::new())
    }

    /// Starts a server with flags.
    pub fn start_with(flags: &[&str]) -> Self {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Self::start_at(&free_address(), flags)
    }

    /// Starts a server that records its sessions in a folder.
    pub fn recording(folder: &Path) -> Self {
        let folder = folder.to_string_lossy().into_owned();
        Self::start_at(&free_address(), vec!["--record".to_owned(), folder])
    }

    /// Starts a server from a folder of programs, with flags, that listens at `listen`: an address or `unix:PATH`.
    pub fn start_in(programs: &Path, listen: &str, flags: &[&str]) -> Self {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Self::start_program(&programs.join(PROGRAM), listen, flags)
    }

    /// Returns its URL for gRPC.
    pub fn url(&self) -> String {
        if self.address.starts_with("unix:") {
            self.address.clone()
        } else {
            format!("http://{}", self.address)
        }
    }

    /// Returns its address for gRPC.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Kills the process, and waits for its end.
    pub fn kill(self) {
        self.kept.signal("KILL");
        let _killed = self.kept.wait();
    }

    /// Returns the value of a metric; 0 if it is not set yet.
    pub fn metric(&self, name: &str) -> u64 {
        admin::metric(&self.admin, name)
    }

    /// Returns the running process.
    pub fn running(&self) -> &Running {
        self.kept.running()
    }

    /// Runs a command of the CLI on the server to its end.
    pub fn ask(&self, arguments: &[&str]) -> Output {
        let asked = ["--server", &self.url(), "--timeout", ANSWERED_WITHIN];
        decree(&[arguments, &asked].concat())
    }

    /// Sends SIGTERM, waits until the server has drained its sessions, and starts another in its place.
    pub fn replace(self) -> Self {
        let (address, flags) = (self.address.clone(), self.flags.clone());
        let ended = self.terminate();
        assert_eq!(ended.code(), Some(0), "it drained");
        Self::start_at(&address, flags)
    }

    /// Sends SIGTERM, and waits for the end of the process.
    pub fn terminate(self) -> ExitStatus {
        self.kept.signal("TERM");
        self.kept.wait()
    }

    /// Returns the id of the process, for measurements.
    pub fn pid(&self) -> u32 {
        self.kept.process()
    }

    fn start_at(listen: &str, flags: Vec<String>) -> Self {
        Self::start_program(Path::new(PROGRAM), listen, flags)
    }

    fn start_program(program: &Path, listen: &str, flags: Vec<String>) -> Self {
        let mut all = vec!["--listen", listen];
        all.extend(["--admin", "127.0.0.1:0"]);
        all.extend(flags.iter().map(String::as_str));
        let kept = Kept::start(program, &all, &[]);
        let [address, admin] = ["grpc", "admin"].map(|it| kept.running().address(it));
        Self {
            kept,
            address,
            admin,
            flags,
        }
    }
}
