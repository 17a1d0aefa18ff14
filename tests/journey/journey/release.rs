//! A downgrade to the last release and an upgrade, each with the manifests of the new version.

use std::path::Path;

use tempfile::TempDir;
use tests::tools::{self, Released};

use super::super::{
    cluster::{Cluster, IMAGE, RELEASED},
    documents::{adapted, named, shown},
    installation::{Installation, VALUES},
    statics,
    workload::By,
};
use super::{Journey, Pace};

/// A workload of the last release in the documents.
const WORKLOAD: &str = "deployment/decree-agent";

/// The manifests and the chart of a release, with its image.
struct Release {
    folder: TempDir,
    /// The manifests that replace those of the installation.
    overlay: String,
    /// Their workloads that this version does not have.
    workloads: Vec<String>,
}

impl Journey {
    /// Downgrades to the last release, as the documents say, and then upgrades to this version again, if the release's programs
    /// are available.
    pub(crate) async fn goes_to_the_last_release_and_back(&mut self) {
        if self.pace == Pace::Brisk {
            return;
        }
        let released = tests::or_skip!(tools::released());
        let release = Release::unpack(&self.cluster, released, self.installation);
        self.goes_to(&release);
        self.workload.scales(&self.cluster, 14, By::Decree).await;
        self.workload.rolls_out(&self.cluster, By::Decree).await;
        self.returns_from(&release).await;
        self.workload.scales(&self.cluster, 13, By::Decree).await;
    }

    fn goes_to(&self, release: &Release) {
        let commands = if self.installation == Installation::Chart {
            // The chart of the release was not installed before this version's, so a rollback is not possible yet.
            let (_, tag) = RELEASED.split_once(':').expect("it has a tag");
            let chart = format!(
                "upgrade decree \"$release/deploy/helm/decree\" {VALUES} --set image.tag={tag}"
            );
            let commands = shown("goes-to-the-last-release-with-helm");
            commands.replace("rollback decree", &chart)
        } else {
            let commands = shown("goes-to-the-last-release");
            release.adapts(&commands, &release.overlay, self.installation)
        };
        let folder = release.folder.path().display();
        self.cluster
            .shell(&format!("release='{folder}'\n{commands}"));
        if self.installation == Installation::StaticPods {
            statics::take_away(&self.cluster);
        }
    }

    async fn returns_from(&self, release: &Release) {
        if self.installation == Installation::StaticPods {
            statics::put(&self.cluster, IMAGE);
            statics::are_ready(&self.cluster).await;
        }
        let commands = if self.installation == Installation::Chart {
            "helm -n decree-system rollback decree".to_owned()
        } else {
            release.adapts(
                &shown("upgrades"),
                self.installation.folder(),
                self.installation,
            )
        };
        self.cluster.shell(&commands);
        self.is_rolled_out().await;
    }
}

impl Release {
    fn unpack(cluster: &Cluster, released: &Released, installation: Installation) -> Self {
        let folder = TempDir::with_prefix("decree-release-").expect("there is room");
        let (from, to) = (released.folder.join("deploy"), folder.path().display());
        let from = from.display();
        let (repository, _) = RELEASED.split_once(':').expect("it has a tag");
        // As `kustomize edit set image` does it in an overlay.
        cluster.shell(&format!(
            "cp -r '{from}' '{to}/deploy'
            grep -rlE 'image: {repository}:' '{to}/deploy/kustomize' |
                xargs sed -i -E 's#image: {repository}:.*#image: {RELEASED}#'"
        ));
        let overlay = [installation.folder(), Installation::AllInOne.folder()];
        let mut overlay = overlay
            .into_iter()
            .filter(|it| it.starts_with("deploy/kustomize/") && folder.path().join(it).is_dir());
        let overlay = overlay.next().expect("it has all-in-one").to_owned();
        let workloads = workloads(cluster, &folder.path().join(&overlay), installation);
        Self {
            folder,
            overlay,
            workloads,
        }
    }

    /// The commands of the documents with the manifests of a folder, and with the workloads of both versions.
    fn adapts(&self, commands: &str, folder: &str, installation: Installation) -> String {
        let workloads: Vec<_> = self.workloads.iter().map(String::as_str).collect();
        named(
            &adapted(commands, folder, installation.workloads()),
            WORKLOAD,
            &workloads,
        )
    }
}

/// The workloads of an overlay that a installation does not have, as kubectl names them.
fn workloads(cluster: &Cluster, overlay: &Path, installation: Installation) -> Vec<String> {
    let path = overlay.display();
    let printed = cluster.shell(&format!(
        "kubectl create --dry-run=client -o name -k '{path}'"
    ));
    let names = printed.lines().map(|name| name.replace(".apps/", "/"));
    let kinds = ["deployment/", "daemonset/", "statefulset/"];
    let of_pods = names.filter(|name| kinds.iter().any(|kind| name.starts_with(kind)));
    of_pods
        .filter(|name| !installation.workloads().contains(&name.as_str()))
        .collect()
}
