//! The first example of the README: beside the controller of a cluster, with permission only to read, to a report.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};
use tests::{
    binaries,
    fenced::{self, Block},
    real::{ApiServer, ControllerManager, Namespace, User, decree, found},
    running::{self, Running, Voice},
};

use crate::{acts, another, modes::may_only_read, objects};

const TEST: &str = "report_of_the_readme_comes_from_a_shadow";

/// The victim of a scale-down, and the pod that a person deletes instead.
const CHOSEN: &str = "web-jv8tl";
const DELETED: &str = "web-7qz9m";

struct Up {
    running: Running,
    server: String,
}

/// A ReplicaSet of a namespace that the built-in controller manages.
struct Attended<'a> {
    namespace: &'a Namespace,
    name: &'static str,
}

impl Up {
    fn start(command: &str, kubeconfig: &Path) -> Self {
        let mut shell = binaries::shell(&format!("exec {command}"), &[]);
        shell
            .env("KUBECONFIG", kubeconfig)
            .env("DECREE_LISTEN", "127.0.0.1:0")
            .env("DECREE_ADMIN", "127.0.0.1:0")
            .env("DECREE_BUILT_IN_CONTROLLER", "off");
        let running = Running::start(shell, Voice::Stdout);
        let server = running.wait_for("where it listens", |lines| {
            let mut lines = lines.iter();
            lines.find_map(|line| {
                line.trim()
                    .strip_prefix("export DECREE_SERVER=")
                    .map(str::to_owned)
            })
        });
        Self { running, server }
    }

    fn says(&self, part: &str) {
        self.running.wait_for(part, |lines| {
            lines.iter().any(|line| line.contains(part)).then_some(())
        });
    }

    fn ask(&self, words: &[&str]) -> Value {
        let output = decree(&[words, &["-o", "json", "--server", &self.server]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Waits until `is_so` holds for an answer.
    async fn until(&self, words: &[&str], is_so: impl Fn(&Value) -> bool) {
        found(async || {
            let answer = self.ask(words);
            let failure = || format!("{words:?}: {answer:#}");
            is_so(&answer).then_some(()).ok_or_else(failure)
        })
        .await;
    }

    /// Interrupts the process as Ctrl-C does; returns its output.
    fn interrupt(self) -> String {
        running::signal("INT", self.running.id());
        let last = self.running.wait_for("its end", |lines| {
            let begins = |line: &String| line.contains(" compared, ");
            let report = lines.iter().position(begins)?;
            // The pods in two columns are its last line.
            let last = lines.last()?.trim_start();
            last.starts_with(CHOSEN).then(|| lines[report..].join("\n"))
        });
        assert_eq!(self.running.wait().code(), Some(0), "{last}");
        last
    }
}

impl Attended<'_> {
    /// Creates the ReplicaSet; returns its uid.
    async fn create(&self, replicas: u32) -> Value {
        let created = acts::create_set(self.namespace, &another::set(self.name, replicas)).await;
        created["metadata"]["uid"].clone()
    }

    async fn scale(&self, replicas: u32) {
        acts::scale(self.namespace, self.name, replicas).await;
    }

    /// Waits until its controller has no work left.
    async fn comes_to_rest(&self, replicas: u32) {
        let wanted = json!({ "replicas": replicas });
        acts::status_becomes(self.namespace, self.name, &wanted).await;
    }

    /// Creates a pod of the ReplicaSet.
    async fn has(&self, uid: &Value, pod: &str, cost: &str) {
        let mut object = objects::pod(pod);
        object["metadata"]["labels"] = json!({"app": self.name});
        object["metadata"]["annotations"] = json!({ objects::DELETION_COST: cost });
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": self.name, "uid": uid, "controller": true,
        }]);
        acts::create_pod(self.namespace, &object).await;
    }

    async fn delete(&self, pod: &str) {
        acts::remove_pod(self.namespace, &objects::pod(pod)).await;
    }

    /// Writes the status that its controller would.
    async fn tell(&self, replicas: u32) {
        let path = self.namespace.replica_set(self.name);
        let set = self.namespace.get(&path).await.expect("it is there");
        let status = json!({
            "replicas": replicas, "fullyLabeledReplicas": replicas, "terminatingReplicas": 0,
            "observedGeneration": set["metadata"]["generation"],
        });
        acts::set_status(self.namespace, self.name, &status).await;
    }
}

/// The blocks of the README that name this test, which blocks of other pages repeat, and the output in the README.
fn shown() -> (Vec<String>, Block) {
    let readme = fs::read_to_string(binaries::checkout().join("README.md"));
    let blocks = fenced::blocks(&readme.expect("it is there"));
    let mut commands = Vec::new();
    let mut output = None;
    for block in blocks {
        if block.test() == Some(TEST) {
            commands.push(block.text.trim().to_owned());
        } else if block.is_output() && !commands.is_empty() && output.is_none() {
            output = Some(block);
        }
    }
    for page in ["docs/quickstart.md", "docs/shadow.md"] {
        let page = fs::read_to_string(binaries::checkout().join(page)).expect("it is there");
        let blocks = fenced::blocks(&page).into_iter();
        let same = blocks.filter(|block| block.test() == Some(TEST));
        let same: Vec<_> = same.map(|block| block.text.trim().to_owned()).collect();
        assert_eq!(same, commands, "the pages show what the README shows");
    }
    (commands, output.expect("the report is shown"))
}

fn run(command: &str, server: &str) -> Output {
    let mut shell = binaries::shell(command, &[]);
    let output = shell.env("DECREE_SERVER", server).output();
    output.expect("there is a shell")
}

/// Scales down while the controller is away, and deletes another pod than the victim.
async fn delete_another_pod(up: &Up, set: &Attended<'_>) {
    let uid = set.create(2).await;
    set.has(&uid, CHOSEN, "-5").await;
    set.has(&uid, DELETED, "5").await;
    set.tell(2).await;
    // At rest, so that the victim is compared.
    let before = up.ask(&["diff"])["compared"].clone();
    up.until(&["diff"], |it| it["compared"] != before).await;
    set.scale(1).await;
    let explain = ["explain", "shop/web"];
    up.until(&explain, |it| {
        let mut decisions = it["decisions"].as_array().into_iter().flatten();
        decisions.any(|it| it["action"] == "ACTION_DELETE" && it["targets"][0]["name"] == CHOSEN)
    })
    .await;
    set.delete(DELETED).await;
    set.tell(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn report_of_the_readme_comes_from_a_shadow() {
    let cluster = tests::or_skip!(ApiServer::start().await);
    let mut controller =
        ControllerManager::start(&cluster, &["--controllers=replicaset-controller"]);
    let namespace = Namespace::create(cluster.admin().await, "shop").await;
    let reader = may_only_read(&cluster, &namespace).await;
    let (commands, report) = shown();
    let [start, diff] = commands.as_slice() else {
        panic!("the README shows {commands:?}")
    };
    let up = Up::start(start, &reader);
    up.says("the agent writes nothing");
    up.says("Connected: 0 ReplicaSets, 0 pods.");
    let [api, web] = ["api", "web"].map(|name| Attended {
        namespace: &namespace,
        name,
    });
    api.create(3).await;
    api.comes_to_rest(3).await;
    api.scale(5).await;
    api.comes_to_rest(5).await;
    up.until(&["diff"], |it| it["compared"] != "0").await;
    let agreed = run(diff, &up.server);
    assert_eq!(agreed.status.code(), Some(0), "{agreed:?}");

    controller.stop();
    delete_another_pod(&up, &web).await;
    up.until(&["diff"], |it| it["differences"][0].is_object())
        .await;
    let differs = run(diff, &up.server);
    assert_eq!(differs.status.code(), Some(1), "{differs:?}");
    let printed = String::from_utf8_lossy(&differs.stdout);
    assert!(
        report.is_like(&printed),
        "{}\nis shown, and printed is\n{printed}",
        report.text
    );
    let said = up.interrupt();
    assert!(report.is_like(&said), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_enforces_where_it_is_told_to_and_says_why_it_ends() {
    let cluster = tests::or_skip!(ApiServer::start().await);
    let namespace = Namespace::create(cluster.admin().await, "one-process").await;
    let set = Attended {
        namespace: &namespace,
        name: "web",
    };
    let admin = cluster.kubeconfig(User::Admin);
    let command = format!(
        "decree up --kubeconfig {} --mode enforce --nodes -n one-process 2>&1",
        admin.display()
    );
    let up = Up::start(&command, &admin);
    up.says("Enforce mode: the agent executes decisions.");
    up.says("REPLICASET");
    set.create(2).await;
    up.says("TOO_FEW_REPLICAS: 0 active pods, 2 desired");
    set.comes_to_rest(2).await;
    let pods = namespace.pods().await.expect("they can be listed");
    assert_eq!(pods.len(), 2);
    // Only an agent that reads nodes follows it.
    let surges = json!({"metadata": {"annotations": {"decree.dev/surge-on-eviction": "true"}}});
    let path = namespace.replica_set("web");
    namespace.change(&path, &surges).await;
    let is_followed = |it: &Value| it["summary"]["preferences"]["surgePercent"] == 100;
    up.until(&["explain", "one-process/web"], is_followed).await;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/decree-agent";
    let read = cluster.admin().await.get(lease).await;
    let holder = read.expect("it leads")["spec"]["holderIdentity"].clone();
    assert_ne!(holder, "", "nobody leads");
    let taken = json!({"spec": {"holderIdentity": "another"}});
    let admin = cluster.admin().await;
    admin.change(lease, &taken).await;
    up.says("error: the agent failed: the Lease is lost: another agent may lead");
    assert_eq!(up.running.wait().code(), Some(1));
}

#[tokio::test]
async fn user_who_may_not_read_is_told_so_at_once() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let nobody = cluster.kubeconfig(User::Nobody);
    let nobody = nobody.to_string_lossy();
    let up = ["up", "--kubeconfig", &nobody];
    let free = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let output = decree(&[&up[..], &free].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{errors}");
    assert!(
        errors.contains("forbidden") && errors.contains("decree check"),
        "{errors}"
    );
}
