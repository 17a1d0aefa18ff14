//! `decree up` as a process, with a real cluster.

use std::path::Path;

use super::{
    agent::{DECLARES, LOSES_PODS},
    kept::Kept,
};

/// A running `decree up` in enforce mode: server and agent in one process. Killed on drop.
#[derive(Debug)]
pub struct Up {
    kept: Kept,
}

impl Up {
    /// Starts the command on free ports, with replacement of lost pods at once. Does not wait for its readiness.
    pub fn start(kubeconfig: &Path) -> Self {
        let kubeconfig = kubeconfig.to_string_lossy();
        let mut flags = vec!["up", "--mode", "enforce", "--kubeconfig", &kubeconfig];
        flags.extend(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        flags.extend(["--agent-admin", "off"]);
        let kept = Kept::start(
            Path::new("decree"),
            &flags,
            &[LOSES_PODS[0], LOSES_PODS[1], DECLARES],
        );
        Self { kept }
    }

    /// Returns the id of the process, for measurements.
    pub fn pid(&self) -> u32 {
        self.kept.process()
    }
}
