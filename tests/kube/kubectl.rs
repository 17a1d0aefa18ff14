//! The shipped manifests with kubectl itself, of each supported version, and the commands in the documents.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use agent_kube::PROBE;
use serde_json::Value;
use tempfile::TempDir;
use tests::{
    binaries, depth,
    fenced::{self, Block},
    real::{ApiServer, User},
    running::{Running, Voice, output_of},
    tools,
};

use crate::{
    manifests::{FOLDERS, STATIC},
    objects::replica_set,
    rendered::Rendered,
};

/// The flags of the two ways to apply.
const WAYS: [&[&str]; 2] = [&[], &["--server-side"]];
/// The kustomizations that extend others, most of which need definitions.
const BESIDE: [&str; 5] = [
    STATIC,
    "cert-manager",
    "monitoring/rules",
    "monitoring/pod-monitor",
    "monitoring/service-monitor",
];
/// The number of blocks of commands for a cluster in the documents.
const BLOCKS: usize = 7;

/// One kubectl with a separate cluster and cache.
pub(crate) struct Kubectl<'a> {
    program: &'a Path,
    kubeconfig: PathBuf,
    home: TempDir,
}

impl<'a> Kubectl<'a> {
    pub(crate) fn of(program: &'a Path, cluster: &ApiServer) -> Self {
        Self {
            program,
            kubeconfig: cluster.kubeconfig(User::Admin),
            home: TempDir::with_prefix("decree-kubectl-").expect("there is room"),
        }
    }

    /// Runs a command in the checkout.
    ///
    /// # Panics
    /// With its output, if it fails.
    pub(crate) fn run(&self, command: &mut Command) -> Output {
        let output = command
            .current_dir(binaries::checkout())
            .env("HOME", self.home.path())
            .env("KUBECONFIG", &self.kubeconfig)
            .output()
            .expect("it can be started");
        let (said, printed) = (text(&output.stderr), text(&output.stdout));
        let program = self.program.display();
        assert!(
            output.status.success(),
            "{program}: {command:?}: {said}{printed}"
        );
        output
    }

    /// Runs a script in which `kubectl` is this one.
    pub(crate) fn shell(&self, script: &str) -> Output {
        let folder = self.program.parent().expect("it is a file");
        self.run(&mut binaries::shell(script, &[folder]))
    }

    /// Runs kubectl with a verb, flags, and a kustomization of `deploy/kustomize`.
    pub(crate) fn kustomized(&self, verb: &str, flags: &[&str], folder: &str) -> Output {
        let folder = format!("deploy/kustomize/{folder}");
        let mut command = Command::new(self.program);
        self.run(command.arg(verb).args(flags).args(["-k", &folder]))
    }
}

#[test]
fn each_kubectl_renders_what_kustomize_renders() {
    let kubectls = tests::or_skip!(tools::kubectls());
    for folder in FOLDERS.into_iter().chain(BESIDE) {
        let wanted = tests::or_skip!(Rendered::of(folder));
        for program in kubectls {
            let rendered = Rendered::by(Command::new(program).arg("kustomize"), folder);
            assert_eq!(rendered, wanted, "{}: {folder}", program.display());
        }
    }
}

#[tokio::test]
async fn each_kubectl_applies_each_overlay_and_finds_no_difference_after() {
    let kubectls = tests::or_skip!(tools::kubectls());
    for program in kubectls {
        // Other tests apply to the shared API server meanwhile.
        let server = tests::or_skip!(ApiServer::start().await);
        let admin = server.admin().await;
        let kubectl = Kubectl::of(program, &server);
        let both = FOLDERS.into_iter().flat_map(|it| WAYS.map(|way| (it, way)));
        for (at, (folder, flags)) in both.enumerate() {
            // In the gate, the overlays are applied in the two ways by turns.
            if !depth::is_full() && ![0, 3].contains(&(at % 4)) {
                continue;
            }
            let rendered = tests::or_skip!(Rendered::of(folder));
            kubectl.kustomized("apply", flags, folder);
            // `kubectl diff` fails if there is a difference.
            kubectl.kustomized("diff", flags, folder);
            rendered.delete(&admin).await;
        }
    }
}

#[tokio::test]
async fn commands_for_a_cluster_run_as_they_stand() {
    let kubectls = tests::or_skip!(tools::kubectls());
    for program in kubectls {
        let server = tests::or_skip!(ApiServer::start().await);
        let kubectl = Kubectl::of(program, &server);
        let blocks = shown("commands_for_a_cluster_run_as_they_stand");
        assert_eq!(blocks.len(), BLOCKS, "in the documents for operators");
        let admin = server.admin().await;
        let sets = "/apis/apps/v1/namespaces/default/replicasets";
        for name in [PROBE, "web"] {
            admin.make(sets, &replica_set(name, 0)).await;
        }
        for block in blocks {
            kubectl.shell(&block.text);
        }
        let web = admin.get(&format!("{sets}/web")).await;
        let web = web.expect("it is there");
        let resume = "/metadata/annotations/decree.dev~1resume";
        let resumed = web.pointer(resume).and_then(Value::as_str);
        assert!(
            resumed.is_some_and(|it| it.starts_with("all ")),
            "{resumed:?}"
        );
        // Agents leave it out, so it would resume nothing.
        let probe = admin.get(&format!("{sets}/{PROBE}")).await;
        assert_eq!(probe.expect("it is there").pointer(resume), None);
        let path = "/apis/decree.dev/v1/namespaces/default/replicasets/web";
        let scaled = admin.get(path).await.expect("the commands create it");
        assert_eq!(scaled["spec"]["replicas"], 5);
        for (namespace, kind) in [("system", "daemonsets"), ("custom", "statefulsets")] {
            let path = format!("/apis/apps/v1/namespaces/decree-{namespace}/{kind}/decree-agent");
            admin.get(&path).await.expect("the commands create it");
        }
    }
}

#[test]
fn plugin_of_kubectl_is_installed_as_written() {
    let kubectls = tests::or_skip!(tools::kubectls());
    let mut up = Command::new(binaries::folder().join("decree"));
    up.args(["up", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let up = Running::start(up, Voice::Stdout);
    let server = up.wait_for("where it listens", |lines| {
        let mut lines = lines.iter().map(|line| line.trim());
        lines.find_map(|line| {
            line.strip_prefix("export DECREE_SERVER=")
                .map(str::to_owned)
        })
    });
    let blocks = shown("plugin_of_kubectl_is_installed_as_written");
    for program in kubectls {
        let home = TempDir::with_prefix("decree-plugin-").expect("there is room");
        // The folder for programs at home.
        let own = home.path().join(".local/bin");
        let run = |script: &str, words: &[&str]| {
            let mut shell = binaries::shell(script, &[own.as_path()]);
            shell.args(words).env("HOME", home.path());
            let [printed, _] = output_of(shell.env("DECREE_SERVER", &server));
            printed
        };
        for block in &blocks {
            run(&block.text, &[]);
        }
        let program = program.to_string_lossy();
        let kubectl =
            |words: &[&str]| run("exec \"$0\" \"$@\"", &[&[&*program][..], words].concat());
        let help = kubectl(&["decree", "get", "--help"]);
        assert!(help.contains("Usage: kubectl decree get "), "{help}");
        assert_eq!(
            kubectl(&["decree", "get", "rs", "-o", "name"]),
            "replicaset.apps/web-new\nreplicaset.apps/web-old\n"
        );
    }
}

/// The blocks of the documents that name a test.
pub(crate) fn shown(test: &str) -> Vec<Block> {
    let others = [
        "README.md",
        "advise.md",
        "busy-pods.md",
        "cli.md",
        "choose-pods.md",
        "drains.md",
        "howto.md",
    ];
    let others = others.map(|name| format!("docs/{name}"));
    let documents = fenced::OPERATORS
        .map(str::to_owned)
        .into_iter()
        .chain(others);
    let documents: Vec<_> = documents
        .map(|name| {
            fs::read_to_string(binaries::checkout().join(name)).expect("the document is there")
        })
        .collect();
    let blocks = documents.iter().flat_map(|text| fenced::blocks(text));
    blocks.filter(|block| block.test() == Some(test)).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
