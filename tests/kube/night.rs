//! The page for a night without Decree: its commands, in a cluster without a ReplicaSet controller.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{
    binaries,
    real::{Api, ApiServer, ControllerManager, Namespace, Patch, User},
    running::{Running, Voice},
    tools,
};

use crate::{
    from_nothing::create_node,
    kubectl::{Kubectl, shown},
    objects,
};

const DAEMON_SET: &str = "/apis/apps/v1/namespaces/decree-system/daemonsets/decree-agent";
const REVISIONS: &str = "/apis/apps/v1/namespaces/decree-system/controllerrevisions";
const PODS: &str = "/api/v1/namespaces/decree-system/pods";
const BAD_IMAGE: &str = "registry.invalid/decree:2";
/// The file with the flags of kube-controller-manager on the page, and its relevant lines.
const MANIFEST: &str = "/etc/kubernetes/manifests/kube-controller-manager.yaml";
const FLAGS: &str = "    - kube-controller-manager\n    - --controllers=*,bootstrapsigner,tokencleaner,-replicaset-controller\n";

#[tokio::test]
async fn commands_of_the_night_bring_replica_sets_back() {
    let kubectls = tests::or_skip!(tools::kubectls());
    for program in kubectls {
        let cluster = tests::or_skip!(ApiServer::start().await);
        let mut night = Night::falls(&cluster, program).await;
        for block in shown("commands_of_the_night_bring_replica_sets_back") {
            night.does(&block.text).await;
        }
        assert_eq!(night.steps, ["undone", "deleted", "by hand", "handed back"]);
        let pods = night.namespace.pods().await;
        assert_eq!(pods.expect("they can be listed").len(), 5);
    }
}

/// A cluster without Decree, and a ReplicaSet without a controller.
struct Night<'a> {
    cluster: &'a ApiServer,
    admin: Api,
    others: ControllerManager,
    kubectl: Kubectl<'a>,
    namespace: Namespace,
    folder: TempDir,
    /// The steps with an observed effect.
    steps: Vec<&'static str>,
}

// === impl Night ===

impl<'a> Night<'a> {
    async fn falls(cluster: &'a ApiServer, program: &'a Path) -> Self {
        let admin = cluster.admin().await;
        create_node(&admin).await;
        let namespace = Namespace::create(admin.clone(), "night").await;
        let set = objects::replica_set("web", 3);
        let created = admin.create(&namespace.replica_set(""), &set).await;
        created.expect("it is valid");
        let folder = TempDir::with_prefix("decree-night-").expect("there is room");
        fs::write(folder.path().join("manifest.yaml"), FLAGS).expect("there is room");
        Self {
            cluster,
            admin,
            others: ControllerManager::start_others(cluster),
            kubectl: Kubectl::of(program, cluster),
            namespace,
            folder,
            steps: Vec::new(),
        }
    }

    /// Runs a block of the page as written, and checks its effect.
    async fn does(&mut self, text: &str) {
        match text {
            text if text.contains("rollout undo") => self.undoes(text).await,
            text if text.contains("delete pods") => self.deletes(text).await,
            text if text.contains("decree-agent --server") => self.runs_by_hand(text).await,
            text if text.contains(MANIFEST) => self.hands_back(text).await,
            text => drop(self.kubectl.shell(text)),
        }
    }

    async fn undoes(&mut self, text: &str) {
        let image = |set: &Value| set["spec"]["template"]["spec"]["containers"][0]["image"].clone();
        let good = image(&self.admin.get(DAEMON_SET).await.expect("it was applied"));
        let roll_out =
            format!("kubectl -n decree-system set image daemonset/decree-agent agent={BAD_IMAGE}");
        self.has_revisions(1).await;
        self.kubectl.shell(&roll_out);
        self.has_revisions(2).await;
        self.kubectl.shell(text);
        let after = self.admin.get(DAEMON_SET).await.expect("it is there");
        assert_eq!(image(&after), good);
        self.steps.push("undone");
    }

    async fn deletes(&mut self, text: &str) {
        let one = |list: &Value| {
            list["items"][0]["metadata"]["uid"]
                .as_str()
                .map(str::to_owned)
        };
        let first = self.admin.wait_for("made", PODS, one).await;
        self.kubectl.shell(text);
        let another = |list: &Value| one(list).filter(|uid| *uid != first);
        self.admin.wait_for("made again", PODS, another).await;
        self.steps.push("deleted");
    }

    async fn runs_by_hand(&mut self, text: &str) {
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
        self.has_pods(3).await;
        self.steps.push("by hand");
    }

    async fn hands_back(&mut self, text: &str) {
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
        self.others.stop();
        self.others = ControllerManager::start(self.cluster, &flags);
        let scale = json!({"spec": {"replicas": 5}});
        let set = self.namespace.replica_set("web");
        let scaled = self.admin.patch(&set, Patch::Merge, &scale).await;
        scaled.expect("it is there");
        self.has_pods(5).await;
        self.steps.push("handed back");
    }

    /// Waits until the controller has kept this many templates.
    async fn has_revisions(&self, wanted: usize) {
        let kept = |list: &Value| (list["items"].as_array()?.len() == wanted).then_some(());
        self.admin.wait_for("kept", REVISIONS, kept).await;
    }

    async fn has_pods(&self, wanted: usize) {
        let enough = |list: &Value| (list["items"].as_array()?.len() == wanted).then_some(());
        let pods = self.namespace.pod("");
        self.admin.wait_for("made", &pods, enough).await;
    }
}
