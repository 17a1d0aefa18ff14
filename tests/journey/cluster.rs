//! The control plane and the nodes of one journey.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{
    binaries,
    real::{Api, ApiServer, AuditLog, ControllerManager, Scheduler},
    tools,
};

use super::kubelet::{self, Kubelets};

/// A create that is repeated after no answer may be charged to a quota twice until pods are counted again, by default every 5 minutes.
const COUNTS_QUOTAS: &str = "--resource-quota-sync-period=10s";
/// The maximum duration of a step, which takes seconds on an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The image of the manifests.
pub(crate) const IMAGE: &str = concat!("ghcr.io/decree-dev/decree:", env!("CARGO_PKG_VERSION"));
/// The image with the programs of the last release, which may have the number of this version.
pub(crate) const RELEASED: &str = "ghcr.io/decree-dev/decree:released";
/// The number of nodes of the control plane: enough to keep one after the loss of the leader's node.
pub(crate) const CONTROL_PLANES: usize = 2;
/// The issuer of tokens of kubeadm and kind.
const ISSUER: &str = "--service-account-issuer=https://kubernetes.default.svc.cluster.local";

/// A running cluster with nodes, and kubectl for it.
pub(crate) struct Cluster {
    // In the order of their drops.
    kubelets: Kubelets,
    _scheduler: Scheduler,
    controllers: ControllerManager,
    pub(crate) server: ApiServer,
    pub(crate) api: Api,
    pub(crate) audit: AuditLog,
    kubectl: &'static Path,
    home: TempDir,
}

impl Cluster {
    /// Starts a cluster with this number of workers, and with the built-in ReplicaSet controller. `None` with a notice if this machine lacks a requirement.
    pub(crate) async fn start(workers: usize, images: BTreeMap<String, PathBuf>) -> Option<Self> {
        let kubectl = tools::kubectls()?.first()?;
        if let Some(why) = kubelet::obstacle() {
            tools::notice(&format!(
                "notice: NO JOURNEY IS MADE HERE, it takes root and name spaces of Linux: {why}"
            ));
            return None;
        }
        let rules = json!([
            {
                "level": "Metadata", "verbs": ["create", "delete"],
                "resources": [{"group": "", "resources": ["pods"]}],
            },
            {"level": "None"},
        ]);
        let audit = AuditLog::of(&rules);
        let flags = audit.flags();
        let server = ApiServer::start_with(&[&flags[0], &flags[1], ISSUER]).await?;
        let controllers = ControllerManager::start(&server, &[COUNTS_QUOTAS]);
        let scheduler = Scheduler::start(&server).await?;
        let nodes = (1..=CONTROL_PLANES).map(|number| format!("control-{number}"));
        let nodes = nodes.chain((1..=workers).map(|number| format!("worker-{number}")));
        let kubelets = Kubelets::start(&server, nodes, images).await;
        Some(Self {
            kubelets: kubelets.expect("name spaces can be made"),
            _scheduler: scheduler,
            controllers,
            api: server.admin().await,
            server,
            audit,
            kubectl,
            home: TempDir::with_prefix("decree-journey-").expect("there is room"),
        })
    }

    pub(crate) fn kubelets(&self) -> &Kubelets {
        &self.kubelets
    }

    /// Restarts kube-controller-manager with flags.
    pub(crate) fn set_controllers(&mut self, flags: &[&str]) {
        self.controllers.stop();
        let flags = [&[COUNTS_QUOTAS], flags].concat();
        self.controllers = ControllerManager::start(&self.server, &flags);
    }

    /// Runs a script in the checkout, with the `kubectl` and `helm` of the tests, and the built `decree`.
    ///
    /// # Panics
    /// With its output and the logs of Decree's pods, if it fails.
    pub(crate) fn shell(&self, script: &str) -> String {
        let output = self.tries(script);
        let (said, printed) = (text(&output.stderr), text(&output.stdout));
        let failed = format!("{script}\n{said}{printed}");
        assert!(output.status.success(), "{failed}\n{}", self.told());
        printed
    }

    /// Runs a script as [`shell`](Self::shell) does, and returns its output.
    pub(crate) fn tries(&self, script: &str) -> Output {
        self.limited(script).output().expect("there is bash")
    }

    /// A script as [`shell`](Self::shell) runs it. It and its commands end together, at the latest after a limit: people run some of them
    /// until they stop them.
    pub(crate) fn limited(&self, script: &str) -> Command {
        let limit = 2 * PATIENCE.as_secs();
        let mut command = self.command("exec timeout \"$1\" bash -euc \"$2\"");
        command.args(["shell", &limit.to_string(), script]);
        command
    }

    /// A shell for the cluster.
    pub(crate) fn command(&self, script: &str) -> Command {
        let kubectl = self.kubectl.parent().expect("it is a file");
        let mut command = binaries::shell(script, &[kubectl]);
        command
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.api.kubeconfig());
        command
    }

    /// Waits until `find` succeeds on the object at a path.
    ///
    /// # Panics
    /// With the object and the logs of Decree's pods, if it does not.
    pub(crate) async fn wait_for<T>(
        &self,
        what: &str,
        path: &str,
        find: impl FnMut(&Value) -> Option<T>,
    ) -> T {
        let found = self.api.look_for(path, (PATIENCE, LOOK_EVERY), find).await;
        found.unwrap_or_else(|there| panic!("not {what}: {there}\n{}", self.told()))
    }

    /// Information for a failure: logs and events.
    pub(crate) fn told(&self) -> String {
        let mut told = self.kubelets.logs();
        let seen = self.tries("kubectl get nodes,pods,deployments,replicasets,daemonsets,statefulsets,leases -A -o wide");
        let _ = write!(told, "\n{}{}", text(&seen.stdout), text(&seen.stderr));
        let _ = write!(
            told,
            "\n--- kube-controller-manager\n{}",
            self.controllers.log()
        );
        told
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
