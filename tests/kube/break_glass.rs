//! The page for an outage without Decree: the commands that the journeys do not run, in a cluster without a ReplicaSet controller.

use std::{fs, process::Command};

use tempfile::TempDir;
use tests::{
    binaries,
    real::{Api, ApiServer, ControllerManager, Namespace, User},
    running::{Running, Voice},
    tools,
};

use crate::{
    acts,
    kubectl::{Kubectl, shown},
    objects,
};

const DAEMON_SET: &str = "/apis/apps/v1/namespaces/decree-system/daemonsets/decree-agent";
/// The file with the flags of kube-controller-manager on the page, and its relevant lines.
const MANIFEST: &str = "/etc/kubernetes/manifests/kube-controller-manager.yaml";
const FLAGS: &str = "    - kube-controller-manager\n    - --controllers=*,bootstrapsigner,tokencleaner,-replicaset-controller\n";

#[tokio::test]
async fn commands_of_break_glass_bring_replica_sets_back() {
    let kubectls = tests::or_skip!(tools::kubectls());
    let program = kubectls.last().expect("there is one");
    let cluster = tests::or_skip!(ApiServer::start().await);
    let mut outage = Outage::begin(&cluster, program).await;
    for block in shown("commands_of_break_glass_bring_replica_sets_back") {
        outage.run(&block.text).await;
    }
    assert_eq!(outage.steps, ["by hand", "handed back"]);
}

/// A cluster without Decree, and a ReplicaSet without a controller.
struct Outage<'a> {
    cluster: &'a ApiServer,
    admin: Api,
    kubectl: Kubectl<'a>,
    namespace: Namespace,
    folder: TempDir,
    /// The steps with an observed effect.
    steps: Vec<&'static str>,
}

impl<'a> Outage<'a> {
    async fn begin(cluster: &'a ApiServer, program: &'a std::path::Path) -> Self {
        let admin = cluster.admin().await;
        let namespace = Namespace::create(admin.clone(), "break-glass").await;
        acts::create_set(&namespace, &objects::replica_set("web", 3)).await;
        let folder = TempDir::with_prefix("decree-break-glass-").expect("there is room");
        fs::write(folder.path().join("manifest.yaml"), FLAGS).expect("there is room");
        Self {
            cluster,
            admin,
            kubectl: Kubectl::of(program, cluster),
            namespace,
            folder,
            steps: Vec::new(),
        }
    }

    /// Runs a block of the page as written, and checks its effect.
    async fn run(&mut self, text: &str) {
        if text.contains("decree-agent --server") {
            self.run_by_hand(text).await;
        } else if text.contains(MANIFEST) {
            self.hand_back(text).await;
        } else {
            self.kubectl.shell(text);
        }
    }

    async fn run_by_hand(&mut self, text: &str) {
        let pods = self.namespace.pods().await;
        assert_eq!(pods.expect("they can be listed").len(), 0, "who made them?");
        let mut running = Vec::new();
        for line in text.lines() {
            let mut words = line.trim_end_matches('&').split_whitespace();
            let program = words.next().expect("it names one");
            let mut command = Command::new(binaries::folder().join(program));
            command
                .args(words)
                .current_dir(self.folder.path())
                .env("KUBECONFIG", self.cluster.kubeconfig(User::Admin));
            running.push(Running::start(command, Voice::Stderr));
        }
        acts::pods_become(&self.namespace, 3).await;
        self.steps.push("by hand");
    }

    async fn hand_back(&mut self, text: &str) {
        let gone = self.admin.get(DAEMON_SET).await;
        assert_eq!(gone.expect_err("it was stopped").code, 404);
        let manifest = self.folder.path().join("manifest.yaml");
        self.kubectl
            .shell(&text.replace(MANIFEST, &manifest.to_string_lossy()));
        let manifest = fs::read_to_string(manifest).expect("it is there");
        let flags: Vec<_> = manifest
            .split_whitespace()
            .filter(|it| it.starts_with("--"))
            .collect();
        let _built_in = ControllerManager::start(self.cluster, &flags);
        acts::scale(&self.namespace, "web", 5).await;
        acts::pods_become(&self.namespace, 5).await;
        self.steps.push("handed back");
    }
}
