//! A decree-agent as a process.

use std::{path::Path, process::ExitStatus, time::Instant};

use tokio::time;

use super::{LOOK_EVERY, PATIENCE, decision_server::DecisionServer, kept::Kept};
use crate::{admin, running::Running};

const PROGRAM: &str = "decree-agent";
/// Lets lost pods be replaced at once, as upstream does.
pub(super) const LOSES_PODS: [(&str, &str); 1] = [("DECREE_CREATE_BACK_OFF", "false")];

/// A running decree-agent; it is killed when this is dropped.
#[derive(Debug)]
pub struct Agent {
    kept: Kept,
    admin: String,
}

// === impl Agent ===

impl Agent {
    /// Starts one with flags beside those that it cannot do without, and returns when its admin endpoint listens. It logs what
    /// [`says`](Self::says) looks for, unless the flags say what to log.
    #[must_use]
    pub fn start(server: &DecisionServer, kubeconfig: &Path, flags: &[&str]) -> Self {
        Self::start_at(&server.url(), kubeconfig, flags)
    }

    /// Starts one whose server is behind a URL.
    #[must_use]
    pub fn start_at(url: &str, kubeconfig: &Path, flags: &[&str]) -> Self {
        Self::start_program(Path::new(PROGRAM), url, kubeconfig, (flags, &[]))
    }

    /// Starts the one among the programs of a folder, to lose pods again and again.
    #[must_use]
    pub fn start_in(
        programs: &Path,
        server: &DecisionServer,
        kubeconfig: &Path,
        flags: &[&str],
    ) -> Self {
        let program = programs.join(PROGRAM);
        Self::start_program(&program, &server.url(), kubeconfig, (flags, &LOSES_PODS))
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
        // Few clusters here have a built-in controller, and for none half a minute would be waited.
        let ignored = ("DECREE_BUILT_IN_CONTROLLER", "ignore");
        let variables = [variables, &[ignored]].concat();
        let kept = Kept::start_with(program, &all, &variables);
        let admin = kept.running().address("admin");
        Self { kept, admin }
    }

    /// Waits until it says that it is ready.
    pub async fn becomes_ready(&self) {
        self.waits_for("readiness", || admin::get(&self.admin, "/readyz").is_ok())
            .await;
    }

    /// Waits until it says that it is not ready.
    pub async fn stops_being_ready(&self) {
        let path = "/readyz";
        self.waits_for("end of readiness", || {
            admin::get(&self.admin, path).is_err()
        })
        .await;
    }

    /// Returns where its admin endpoint is, such as `127.0.0.1:8081`.
    #[must_use]
    pub fn admin(&self) -> &str {
        &self.admin
    }

    /// Waits until it logged a message so many times.
    pub async fn says(&self, message: &str, times: usize) {
        let running = self.kept.running();
        self.waits_for(message, || running.messages(message) >= times)
            .await;
    }

    /// Returns how often it logged a message so far.
    #[must_use]
    pub fn said(&self, message: &str) -> usize {
        self.kept.running().messages(message)
    }

    /// Returns what it says.
    #[must_use]
    pub fn running(&self) -> &Running {
        self.kept.running()
    }

    /// Returns its metrics.
    #[must_use]
    pub fn metrics(&self) -> String {
        admin::get(&self.admin, "/metrics").expect("it serves its metrics")
    }

    /// Returns how many calls of a verb, as in `create_pod`, it has made.
    #[must_use]
    pub fn calls(&self, verb: &str) -> u64 {
        self.metric(&format!("decree_agent_calls_total{{verb=\"{verb}\"}}"))
    }

    /// Returns the value of a metric, 0 where there is none yet.
    #[must_use]
    pub fn metric(&self, name: &str) -> u64 {
        admin::metric(&self.admin, name)
    }

    /// Stops it where it stands: SIGSTOP.
    pub fn pause(&self) {
        self.kept.signal("STOP");
    }

    /// Lets it go on: SIGCONT.
    pub fn wake(&self) {
        self.kept.signal("CONT");
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(self) {
        self.kept.signal("KILL");
        let _killed = self.kept.wait();
    }

    /// Asks it to end with SIGTERM, and waits until it has.
    #[must_use]
    pub fn terminate(self) -> ExitStatus {
        self.ask_to_end();
        self.wait()
    }

    /// Asks it to end with SIGTERM.
    pub fn ask_to_end(&self) {
        self.kept.signal("TERM");
    }

    /// Waits until it has ended by itself.
    #[must_use]
    pub fn wait(self) -> ExitStatus {
        self.kept.wait()
    }

    /// Returns the number of the process, for who measures it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.kept.process()
    }

    async fn waits_for(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let until = Instant::now() + PATIENCE;
        let mut looks = time::interval(LOOK_EVERY);
        while !is_so() {
            let late = Instant::now() >= until;
            assert!(!late, "no {what}: {:#?}", self.kept.running().tail());
            looks.tick().await;
        }
    }
}
