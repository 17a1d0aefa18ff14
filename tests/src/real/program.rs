//! One program of a cluster, which `tests/cluster/run` keeps running while its input is open.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Instant,
};

use super::{LOOK_EVERY, PATIENCE, assets};
use crate::running;

/// The number of last lines of a log in a failure.
const TAIL: usize = 25;

/// A running program, killed on drop and at the end of this process.
#[derive(Debug)]
pub(super) struct Program {
    name: &'static str,
    cluster: PathBuf,
    keeper: Child,
}

impl Program {
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

    /// The exit status of the program, if it has ended by itself.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.keeper.try_wait().expect("it is ours")
    }

    /// The id of the process, once it has one.
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

    /// The end of the log of the program.
    pub(super) fn tail(&self) -> String {
        let file = self.cluster.join(format!("{}.log", self.name));
        let text = fs::read(file).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    }

    /// Sends a signal, such as `STOP`.
    pub(super) fn signal(&self, name: &str) {
        running::signal(name, self.pid());
    }

    /// Whether a signal has stopped all threads of the program.
    pub(super) fn is_stopped(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid()));
        threads.into_iter().flatten().flatten().all(|thread| {
            let status = fs::read_to_string(thread.path().join("status"));
            status.is_ok_and(|status| status.contains("\nState:\tT"))
        })
    }

    /// Kills the program and waits for its end.
    pub(super) fn kill(&mut self) {
        drop(self.keeper.stdin.take());
        self.keeper.wait().expect("it is ours");
        // The next program of this name in the cluster has another id.
        let _ = fs::remove_file(self.pid_file());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}
