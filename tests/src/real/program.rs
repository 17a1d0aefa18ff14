//! One program of a cluster, kept running by `tests/cluster/run` as long as its input is open.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Instant,
};

use super::{LOOK_EVERY, PATIENCE, assets};
use crate::running;

/// How many of the last lines of a log a failure shows.
const TAIL: usize = 25;

/// A running program; it is killed when this is dropped, and when this process ends.
#[derive(Debug)]
pub(super) struct Program {
    name: &'static str,
    cluster: PathBuf,
    keeper: Child,
}

// === impl Program ===

impl Program {
    /// Starts a program of the cluster in this folder.
    pub(super) fn start(
        assets: &Path,
        cluster: &Path,
        name: &'static str,
        arguments: &[&str],
    ) -> Self {
        let keeper = Command::new(assets::script("run"))
            .args([assets, cluster])
            .arg(name)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self {
            name,
            cluster: cluster.to_owned(),
            keeper,
        }
    }

    /// Returns how the program ended, if it did by itself.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.keeper.try_wait().expect("it is ours")
    }

    /// Returns the number of the process, when it has one.
    #[expect(
        clippy::disallowed_methods,
        reason = "a file is awaited, with a deadline"
    )]
    pub(super) fn pid(&self) -> u32 {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = fs::read_to_string(self.pid_file());
            if let Some(pid) = text.ok().and_then(|text| text.trim().parse().ok()) {
                return pid;
            }
            assert!(Instant::now() < until, "{} never starts", self.name);
            thread::sleep(LOOK_EVERY);
        }
    }

    fn pid_file(&self) -> PathBuf {
        self.cluster.join(format!("{}.pid", self.name))
    }

    /// Returns the end of what the program logged.
    pub(super) fn tail(&self) -> String {
        let file = self.cluster.join(format!("{}.log", self.name));
        let text = fs::read(file).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    }

    /// Sends the program a signal, as in `STOP`.
    pub(super) fn signal(&self, name: &str) {
        running::signal(name, self.pid());
    }

    /// Returns whether all threads of the program are stopped by a signal.
    pub(super) fn is_stopped(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid()));
        threads.into_iter().flatten().flatten().all(|thread| {
            let status = fs::read_to_string(thread.path().join("status"));
            status.is_ok_and(|status| status.contains("\nState:\tT"))
        })
    }

    /// Kills the program and waits until it is gone.
    pub(super) fn kill(&mut self) {
        drop(self.keeper.stdin.take());
        self.keeper.wait().expect("it is ours");
        // The next one of this cluster has another number.
        let _ = fs::remove_file(self.pid_file());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}
