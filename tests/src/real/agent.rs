//! A decree-agent as a process.

use std::{path::Path, process::ExitStatus};

use super::{decision_server::DecisionServer, found, kept::Kept};
use crate::{admin, running::Running};

const PROGRAM: &str = "decree-agent";
/// Replaces lost pods at once, as upstream does, and creates any number of pods where no scheduler assigns nodes.
pub(super) const LOSES_PODS: [(&str, &str); 2] = [
    ("DECREE_CREATE_BACK_OFF", "false"),
    ("DECREE_UNASSIGNED_PODS_MAX", "0"),
];
/// Declares that the built-in controller is off, as it is in most clusters here.
pub(super) const DECLARES: (&str, &str) = ("DECREE_BUILT_IN_CONTROLLER", "off");

/// A running decree-agent, killed on drop.
#[derive(Debug)]
pub struct Agent {
    kept: Kept,
    admin: String,
}

impl Agent {
    /// Starts an agent with flags beside the required ones, and returns when its admin endpoint listens. The agent logs the
    /// messages that [`says`](Self::says) reads, unless the flags set the log level.
    pub fn start(server: &DecisionServer, kubeconfig: &Path, flags: &[&str]) -> Self {
        Self::start_at(&server.url(), kubeconfig, flags)
    }

    /// Starts an agent as [`Self::start`] does, without a flag that declares the built-in controller off.
    pub fn start_undeclared(server: &DecisionServer, kubeconfig: &Path, flags: &[&str]) -> Self {
        let program = Path::new(PROGRAM);
        Self::start_program(program, &server.url(), kubeconfig, (flags, &[]))
    }

    /// Starts an agent whose server is at a URL.
    pub fn start_at(url: &str, kubeconfig: &Path, flags: &[&str]) -> Self {
        Self::start_program(Path::new(PROGRAM), url, kubeconfig, (flags, &[DECLARES]))
    }

    /// Starts the agent in a folder of programs, without the server's limits of creates.
    pub fn start_in(
        programs: &Path,
        server: &DecisionServer,
        kubeconfig: &Path,
        flags: &[&str],
    ) -> Self {
        let program = programs.join(PROGRAM);
        let variables = [LOSES_PODS[0], LOSES_PODS[1], DECLARES];
        Self::start_program(&program, &server.url(), kubeconfig, (flags, &variables))
    }

    fn start_program(
        program: &Path,
        url: &str,
        kubeconfig: &Path,
        (flags, variables): (&[&str], &[(&str, &str)]),
    ) -> Self {
        let kubeconfig = kubeconfig.to_string_lossy();
        let mut all = vec!["--server", url, "--kubeconfig", &kubeconfig];
        all.extend(["--admin", "127.0.0.1:0"]);
        if !flags.contains(&"--log-level") {
            all.extend(["--log-level", "info,decree_agent=debug"]);
        }
        all.extend(flags);
        let kept = Kept::start(program, &all, variables);
        let admin = kept.running().address("admin");
        Self { kept, admin }
    }

    /// Waits until the agent reports ready.
    pub async fn becomes_ready(&self) {
        self.waits_for("readiness", || admin::get(&self.admin, "/readyz").is_ok())
            .await;
    }

    /// Waits until the agent reports not ready.
    pub async fn stops_being_ready(&self) {
        let path = "/readyz";
        self.waits_for("end of readiness", || {
            admin::get(&self.admin, path).is_err()
        })
        .await;
    }

    /// Returns the address of the admin endpoint, such as `127.0.0.1:8081`.
    pub fn admin(&self) -> &str {
        &self.admin
    }

    /// Waits until the agent has logged a message `times` times.
    pub async fn says(&self, message: &str, times: usize) {
        let running = self.kept.running();
        self.waits_for(message, || running.messages(message) >= times)
            .await;
    }

    /// Returns how often the agent has logged a message.
    pub fn said(&self, message: &str) -> usize {
        self.kept.running().messages(message)
    }

    /// Returns the running process.
    pub fn running(&self) -> &Running {
        self.kept.running()
    }

    /// Returns its metrics.
    pub fn metrics(&self) -> String {
        admin::get(&self.admin, "/metrics").expect("it serves its metrics")
    }

    /// Returns the number of its calls of a verb, such as `create_pod`.
    pub fn calls(&self, verb: &str) -> u64 {
        self.metric(&format!("decree_agent_calls_total{{verb=\"{verb}\"}}"))
    }

    /// Returns the value of a metric; 0 if it is not set yet.
    pub fn metric(&self, name: &str) -> u64 {
        admin::metric(&self.admin, name)
    }

    /// Stops the process with SIGSTOP.
    pub fn pause(&self) {
        self.kept.signal("STOP");
    }

    /// Resumes the process with SIGCONT.
    pub fn wake(&self) {
        self.kept.signal("CONT");
    }

    /// Kills the process, and waits for its end.
    pub fn kill(self) {
        self.kept.signal("KILL");
        let _killed = self.kept.wait();
    }

    /// Sends SIGTERM, and waits for the end of the process.
    pub fn terminate(self) -> ExitStatus {
        self.ask_to_end();
        self.wait()
    }

    /// Sends SIGTERM.
    pub fn ask_to_end(&self) {
        self.kept.signal("TERM");
    }

    /// Waits until the process ends by itself.
    pub fn wait(self) -> ExitStatus {
        self.kept.wait()
    }

    /// Returns the id of the process, for measurements.
    pub fn pid(&self) -> u32 {
        self.kept.process()
    }

    async fn waits_for(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let failure = || format!("no {what}: {:#?}", self.kept.running().tail());
        found(async || is_so().then_some(()).ok_or_else(failure)).await;
    }
}
