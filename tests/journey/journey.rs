//! The steps of a journey.

mod release;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tests::{binaries, tools};
use tokio::time;

use super::{
    cluster::{CONTROL_PLANES, Cluster, IMAGE, LOOK_EVERY, PATIENCE, RELEASED},
    console, documents,
    installation::{Installation, VALUES},
    statics,
    workload::{By, Workload},
};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/decree-system/leases";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/decree-system/leases/decree-agent";
/// The documented flag that turns off the ReplicaSet controller of kube-controller-manager.
const WITHOUT: &str = "--controllers=*,-replicaset-controller";
/// A node with pods of the workload.
const WORKER: &str = "worker-1";
/// An image that nobody can pull.
const BAD: &str = "registry.invalid/decree:2";

/// The thoroughness of a journey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Each step once, with a short outage.
    Brisk,
    /// Also kills everything twice, waits a minute for the control plane, and goes back to the last release.
    Thorough,
}

/// A cluster on a journey, and its expected counts.
pub(crate) struct Journey {
    pace: Pace,
    installation: Installation,
    cluster: Cluster,
    workload: Workload,
}

impl Journey {
    /// Starts a cluster with the built-in controller and a workload. `None` if this machine cannot.
    pub(crate) async fn begin(pace: Pace, installation: Installation) -> Option<Self> {
        if installation == Installation::Chart {
            tools::helm()?;
        }
        let mut images = BTreeMap::from([(IMAGE.to_owned(), binaries::folder().to_owned())]);
        if pace == Pace::Thorough
            && let Some(released) = tools::released()
        {
            images.insert(RELEASED.to_owned(), released.folder.clone());
        }
        let cluster = Cluster::start(installation.workers(), images).await?;
        let mut workload = Workload::open(&cluster).await;
        workload.scales(&cluster, 4, By::BuiltIn).await;
        Some(Self {
            pace,
            installation,
            cluster,
            workload,
        })
    }

    /// Installs Decree, which stands by while the built-in controller acts.
    pub(crate) async fn installs(&mut self) {
        let told = self.cluster.shell(&self.installation.install());
        if self.installation == Installation::StaticPods {
            statics::put(&self.cluster, IMAGE);
        }
        self.is_rolled_out().await;
        self.is_spread().await;
        if self.installation == Installation::Chart {
            self.does_as_told(&told);
        }
        self.workload.scales(&self.cluster, 5, By::BuiltIn).await;
        if self.installation == Installation::Chart {
            self.looks_on(&told).await;
        }
    }

    /// Compares in shadow mode, and then enforces.
    async fn looks_on(&mut self, told: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            // A pod is ready before its agent leads, and earlier actions are not compared.
            self.workload.rolls_out(&self.cluster, By::BuiltIn).await;
            let report = self.does_as_told(told);
            if report.contains("AGREE") {
                break;
            }
            let late = Instant::now() >= until;
            assert!(!late, "it compares nothing: {report}");
        }
        let upgrade = "helm -n decree-system upgrade decree deploy/helm/decree";
        let told = self.cluster.shell(&format!("{upgrade} {VALUES}"));
        self.is_rolled_out().await;
        self.does_as_told(&told);
    }

    /// Runs the commands that helm prints after the installation of the chart, as written.
    fn does_as_told(&self, told: &str) -> String {
        let (_, notes) = told.split_once("NOTES:").expect("helm prints the notes");
        let commands = notes.lines().filter_map(|line| line.strip_prefix("  "));
        let commands: Vec<_> = commands.collect();
        assert!(commands.len() >= 4, "too few: {told}");
        self.cluster.shell(&commands.join("\n"))
    }

    /// Turns the built-in controller off, and declares so. Decree takes over.
    pub(crate) async fn switches(&mut self) {
        self.cluster.set_controllers(&[WITHOUT]);
        self.cluster.shell(&documents::shown("takes-over"));
        self.workload.scales(&self.cluster, 6, By::Decree).await;
        let namespace = self.installation.namespace();
        let (pod, _) = self.leader().await;
        let printed = self
            .cluster
            .shell(&documents::shown(self.installation.asks()));
        assert!(
            printed.contains("shop ") && printed.contains("web-"),
            "{printed}"
        );
        let exec = format!("kubectl -n {namespace} exec {pod} -c agent");
        let check = format!("{exec} -- /decree check --lease-namespace decree-system");
        self.cluster.shell(&check);
        let logs = format!("kubectl -n {namespace} logs {pod} -c agent");
        assert!(!self.cluster.shell(&logs).is_empty(), "it says nothing");
    }

    /// Opens the console as the documents say.
    pub(crate) fn opens_the_console(&self) {
        console::opens(&self.cluster, self.installation);
    }

    pub(crate) async fn rolls_out_and_scales(&mut self) {
        self.workload.rolls_out(&self.cluster, By::Decree).await;
        self.workload.scales(&self.cluster, 9, By::Decree).await;
        self.workload.scales(&self.cluster, 3, By::Decree).await;
    }

    /// Scales above a quota, and then raises the quota.
    pub(crate) async fn meets_a_quota(&mut self) {
        self.workload.allows(&self.cluster, Some(5)).await;
        self.workload.asks(&self.cluster, 8, By::Decree).await;
        self.workload.is_refused(&self.cluster, 5).await;
        self.workload.allows(&self.cluster, None).await;
        self.workload
            .settles(&self.cluster, "after the quota")
            .await;
    }

    /// Kills all processes of Decree at once, deletes all of its pods at once, and then their workloads.
    pub(crate) async fn loses_all_pods(&mut self) {
        let namespace = self.installation.namespace();
        let killed = self.cluster.kubelets().kill(namespace);
        let least = self.installation.processes();
        assert!(
            killed >= least,
            "{killed} were killed\n{}",
            self.cluster.told()
        );
        self.workload.scales(&self.cluster, 10, By::Decree).await;
        if self.pace == Pace::Thorough {
            self.is_rolled_out().await;
            self.cluster.kubelets().kill(namespace);
            self.workload.rolls_out(&self.cluster, By::Decree).await;
        }
        self.cluster.shell(&documents::shown("break-glass-looks"));
        let here = |mark| documents::shown(mark).replace("decree-system", namespace);
        self.cluster.shell(&here("break-glass-deletes-pods"));
        self.workload.scales(&self.cluster, 11, By::Decree).await;
        self.cluster.shell(&here("break-glass-waits"));
        if self.pace == Pace::Thorough && self.installation.has_manifests() {
            for workload in self.installation.workloads() {
                let delete = format!("kubectl -n decree-system delete {workload}");
                self.cluster.shell(&delete);
            }
            self.cluster
                .shell(&self.installation.own("break-glass-applies"));
            self.workload.rolls_out(&self.cluster, By::Decree).await;
        }
        self.is_rolled_out().await;
    }

    /// Loses the node of the leader, and a node with pods of the workload but not of Decree at once; the nodes come back later.
    pub(crate) async fn loses_nodes(&mut self) {
        let (_, node) = self.leader().await;
        let away = if self.installation.is_on_control_plane() {
            WORKER
        } else {
            &node
        };
        for lost in [&node, away] {
            self.cluster.kubelets().set_up(lost, false);
        }
        let nodes = self.workload.nodes(&self.cluster).await;
        self.workload
            .lost(nodes.iter().filter(|node| *node == away).count());
        // The taint of an administrator for a node that will not come back by itself.
        let taint = format!(
            "kubectl taint node {away} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
        );
        self.cluster.shell(&taint);
        if !self.installation.is_on_control_plane() {
            let stuck = format!("--field-selector spec.nodeName={node} --force");
            self.cluster
                .shell(&format!("kubectl -n decree-system delete pods {stuck}"));
        }
        self.workload.settles(&self.cluster, "on other nodes").await;
        for lost in [&node, away] {
            self.cluster.kubelets().set_up(lost, true);
        }
        self.cluster.shell(&format!("{taint}-"));
        self.is_rolled_out().await;
    }

    /// Stops the API server and etcd for a while.
    pub(crate) async fn loses_the_control_plane(&mut self) {
        self.cluster.server.stop();
        self.cluster.server.restart_etcd().await;
        let seconds = match self.pace {
            Pace::Brisk => 5,
            Pace::Thorough => 60,
        };
        time::sleep(Duration::from_secs(seconds)).await;
        self.cluster.server.resume().await;
        self.workload.scales(&self.cluster, 12, By::Decree).await;
        self.is_rolled_out().await;
    }

    /// Rolls out a version of Decree that cannot be pulled: the roll-out stops at its first pod, and is undone.
    pub(crate) async fn rolls_out_a_bad_image(&mut self) {
        if self.installation == Installation::StaticPods {
            statics::put_on_first(&self.cluster, BAD);
        }
        self.sets_image(BAD);
        let pods = format!("/api/v1/namespaces/{}/pods", self.installation.namespace());
        let refused = |pods: &Value| pods.to_string().contains("ErrImagePull").then_some(());
        self.cluster.wait_for("refused", &pods, refused).await;
        self.workload.scales(&self.cluster, 13, By::Decree).await;
        self.cluster
            .shell(&self.installation.own("break-glass-undoes"));
        if self.installation == Installation::StaticPods {
            statics::put_on_first(&self.cluster, IMAGE);
        }
        self.is_rolled_out().await;
    }

    /// Hands ReplicaSets back to the built-in controller.
    pub(crate) async fn goes_back(&mut self) {
        // With its pods, or without: of the thorough journeys, shards go back with them.
        let hands_back = self.pace == Pace::Brisk || self.installation == Installation::Sharded;
        if hands_back {
            self.cluster.shell(&documents::shown("goes-back"));
        } else {
            self.cluster.shell(&documents::shown("break-glass-stops"));
        }
        if self.installation == Installation::StaticPods {
            statics::take_away(&self.cluster);
        }
        let installation = self.installation;
        let free = |leases: &Value| {
            let mut leases = leases["items"].as_array()?.iter();
            let decides = |lease: &Value| {
                let name = lease["metadata"]["name"].as_str();
                name.is_some_and(|name| installation.leads_by(name))
            };
            leases
                .all(|lease| !decides(lease) || is_left(&lease["spec"]))
                .then_some(())
        };
        self.cluster
            .wait_for("left by their holders", LEASES, free)
            .await;
        if hands_back {
            self.cluster.set_controllers(&[]);
            self.workload.scales(&self.cluster, 14, By::BuiltIn).await;
            self.cluster.shell(&self.installation.own("goes-away"));
        }
        let gone = |pods: &Value| pods["items"].as_array()?.is_empty().then_some(());
        let pods = format!("/api/v1/namespaces/{}/pods", self.installation.namespace());
        self.cluster.wait_for("without pods", &pods, gone).await;
        self.cluster.set_controllers(&[]);
        self.workload.scales(&self.cluster, 15, By::BuiltIn).await;
        self.cluster.shell(&documents::shown("break-glass-counts"));
    }

    /// Removes the rest of Decree. The pods of the workload stay.
    pub(crate) async fn uninstalls(&mut self) {
        self.cluster.shell(&self.installation.uninstall());
        self.workload.rolls_out(&self.cluster, By::BuiltIn).await;
    }

    /// Sets another image in the containers of all workloads.
    fn sets_image(&self, image: &str) {
        for workload in self.installation.workloads() {
            let set = format!("kubectl -n decree-system set image {workload} '*={image}'");
            self.cluster.shell(&set);
        }
    }

    /// Waits until all of Decree's pods exist and are ready.
    async fn is_rolled_out(&self) {
        self.cluster
            .shell(&self.installation.own("waits-for-its-pods"));
        if self.installation == Installation::StaticPods {
            statics::are_ready(&self.cluster).await;
        }
        if self.installation == Installation::Sharded {
            let path = "/apis/apps/v1/namespaces/decree-system/statefulsets/decree-server";
            let two = |set: &Value| (set["status"]["readyReplicas"].as_u64()? >= 2).then_some(());
            let what = "scaled by its autoscaler";
            self.cluster.wait_for(what, path, two).await;
        }
    }

    /// Checks that no node has two pods of a kind while another has none.
    async fn is_spread(&self) {
        let nodes = if self.installation.is_on_control_plane() {
            CONTROL_PLANES
        } else {
            self.installation.workers()
        };
        for kind in ["agent", "server"] {
            let path = format!(
                "/api/v1/namespaces/decree-system/pods?labelSelector=app.kubernetes.io/component={kind}"
            );
            let pods = self.cluster.api.list(&path).await.expect("there are some");
            let used = pods.iter().map(|pod| pod["spec"]["nodeName"].as_str());
            let used: BTreeSet<_> = used.collect();
            let told = || self.cluster.told();
            assert_eq!(used.len(), nodes.min(pods.len()), "{kind}s\n{}", told());
        }
    }

    /// The name of the leading pod, or of one of several, and its node.
    ///
    /// Until another pod leads, the Lease may name a pod that is gone.
    async fn leader(&self) -> (String, String) {
        let until = Instant::now() + PATIENCE;
        let mut looks = time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let pod = self.holder().await;
            let path = format!(
                "/api/v1/namespaces/{}/pods/{pod}",
                self.installation.namespace()
            );
            let found = self.cluster.api.get(&path).await.unwrap_or_default();
            let lasts = found["metadata"]["deletionTimestamp"].is_null();
            if let (true, Some(node)) = (lasts, found["spec"]["nodeName"].as_str()) {
                return (pod, node.to_owned());
            }
            let late = Instant::now() >= until;
            assert!(!late, "{pod} does not lead\n{}", self.cluster.told());
        }
    }

    /// The name of the pod in the Lease.
    async fn holder(&self) -> String {
        if !self.installation.has_one_leader() {
            return "decree-agent-0".to_owned();
        }
        let holder = |lease: &Value| {
            let holder = lease["spec"]["holderIdentity"].as_str()?;
            Some(holder.rsplit_once('-')?.0.to_owned())
        };
        let name = self.cluster.wait_for("led", LEASE, holder).await;
        // In the network of a node, a pod has the name of the node.
        if self.installation == Installation::StaticPods {
            format!("decree-{name}")
        } else {
            name
        }
    }
}

/// Whether a Lease has no holder, or one that has not renewed it for its duration: agents of the last release cannot give their Leases
/// back once the manifests of this version have taken that permission.
fn is_left(spec: &Value) -> bool {
    let holder = spec["holderIdentity"].as_str().unwrap_or_default();
    let renewed = spec["renewTime"].as_str().and_then(|it| it.parse().ok());
    let seconds = spec["leaseDurationSeconds"].as_i64().unwrap_or_default();
    let lapses = |renewed: Timestamp| renewed + SignedDuration::from_secs(seconds);
    holder.is_empty() || renewed.is_some_and(|it| lapses(it) < Timestamp::now())
}
