//! A cluster that is read at once: its answers are those of its objects in a file of kubectl, for everyone who may read them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{
    binaries, depth,
    real::{Api, ApiServer, ControllerManager, Namespace, User, decree},
    rng::Rng,
    tools,
};

use crate::{
    kubectl::{Kubectl, shown},
    objects::{DELETION_COST, pod, ready_since, replica_set},
    rendered::grant,
};

/// The time of all decisions.
const NOW: &str = "2026-05-01T12:00:00Z";
const NODES: [&str; 3] = ["node-a", "node-b", "node-c"];

#[tokio::test(flavor = "multi_thread")]
async fn cluster_decides_as_its_objects_in_a_file_of_kubectl() {
    let program = &tests::or_skip!(tools::kubectls())[0];
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let kubectl = Kubectl::of(program, cluster);
    let admin = cluster.admin().await;
    let kubeconfig = cluster.kubeconfig(User::Admin).display().to_string();
    let folder = TempDir::with_prefix("decree-read-").expect("there is room");
    let file = folder.path().join("objects.yaml");
    let mut told = String::new();
    for seed in seeds() {
        let namespace = Namespace::create(admin.clone(), &format!("read-{seed}")).await;
        let sets = draw(&namespace, &mut Rng::new(seed)).await;
        let place = namespace.name();
        let mut get = Command::new(program);
        let got = kubectl.run(get.args(["get", "rs,pods", "-o", "yaml", "-n", place]));
        fs::write(&file, got.stdout).expect("there is room");
        let path = file.display().to_string();
        let of_file = ["-f", path.as_str()];
        let of_cluster = ["--kubeconfig", kubeconfig.as_str()];
        let mut questions = vec![
            vec!["decide", "--now", NOW, "-o", "json"],
            vec!["get", "rs", "-o", "name"],
        ];
        for set in &sets {
            // Without a time, an answer tells ages of the moment, unless all pods are deleted.
            questions.push(vec!["simulate", set, "--replicas", "0", "-o", "json"]);
            let decide = ["decide", "--now", NOW, "-o", "json", "--replica-set", set];
            let replicas = ["0", "1", "5"].map(|it| [&decide[..], &["--replicas", it]].concat());
            questions.extend(replicas);
            let reasons = |source: &[&str]| {
                let lines = said(&[&["explain", set], source, &["-n", place]].concat());
                let is_reason =
                    |it: &&str| it.starts_with("Not ready:") || it.starts_with("Ended:");
                lines.lines().filter(is_reason).collect::<String>()
            };
            let (expected, found) = (reasons(&of_file), reasons(&of_cluster));
            assert_eq!(found, expected, "repeat with DECREE_READ_SEED={seed}");
            told += &found;
        }
        for question in questions {
            let ask = |source: &[&str]| said(&[&question, source, &["-n", place]].concat());
            let (expected, found) = (ask(&of_file), ask(&of_cluster));
            assert_eq!(
                found, expected,
                "{question:?}: repeat with DECREE_READ_SEED={seed}"
            );
        }
        for resource in [namespace.pod(""), namespace.replica_set("")] {
            let now = json!({"gracePeriodSeconds": 0});
            admin.remove(&resource, &now).await;
        }
    }
    let reasons = ["CrashLoopBackOff", "Evicted"];
    let are_told = reasons.iter().all(|it| told.contains(it));
    let is_one = depth::number::<u64>("DECREE_READ_SEED").is_some();
    assert!(is_one || are_told, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn person_with_one_namespace_gets_an_answer_for_it() {
    let program = &tests::or_skip!(tools::kubectls())[0];
    let kubectl = program.parent().expect("it is in a folder");
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let admin = cluster.admin().await;
    let namespace = Namespace::create(admin.clone(), "shop").await;
    let place = namespace.name();
    let mut set = replica_set("web", 2);
    set["metadata"]["ownerReferences"] = json!([owner("Deployment", "web", "uid-web")]);
    admin.make(&namespace.replica_set(""), &set).await;
    let kubeconfig = reader(cluster, &namespace).await;
    let user = ["--kubeconfig", &kubeconfig.to_string_lossy()];
    for words in [&["get", "rs"][..], &["simulate", "--drain", "node-a"]] {
        let refused = decree(&[words, &user].concat());
        let err = utf8(&refused.stderr);
        assert_eq!(refused.status.code(), Some(4), "{err}");
        let hint = "hint: name a namespace that you may read with -n NAMESPACE\n";
        assert!(err.contains("forbidden") && err.ends_with(hint), "{err}");
    }
    let (out, err) = ask(&kubeconfig, &["get", "rs", "-o", "name", "-n", place]);
    assert_eq!(out, "replicaset.apps/web\n", "{err}");
    let first = err.lines().next().unwrap_or_default();
    let expected = format!("cluster tests at {}, as default, read now", cluster.url());
    assert_eq!(first, expected);
    for block in shown("person_with_one_namespace_gets_an_answer_for_it") {
        let mut shell = binaries::shell(&block.text, &[kubectl]);
        let output = shell.env("KUBECONFIG", &kubeconfig).output();
        let output = output.expect("it can be started");
        let (out, err) = (utf8(&output.stdout), utf8(&output.stderr));
        assert!(out.contains("3 desired"), "{out}{err}");
        // A file names no cluster.
        if !block.text.contains("-f -") {
            assert_eq!(err.lines().collect::<Vec<_>>(), [expected.as_str()]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pod_with_the_lowest_cost_is_chosen() {
    let program = &tests::or_skip!(tools::kubectls())[0];
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let namespace = Namespace::create(cluster.admin().await, "batch").await;
    let api = namespace.api();
    let set = replica_set("worker", 2);
    let set = api.make(&namespace.replica_set(""), &set).await;
    for name in ["worker-bcd23", "worker-x2x4z"] {
        let mut pod = pod(name);
        let owner = owner("ReplicaSet", "worker", text(&set, "uid"));
        pod["metadata"]["ownerReferences"] = json!([owner]);
        api.make(&namespace.pod(""), &pod).await;
    }
    let kubectl = Kubectl::of(program, cluster);
    for block in shown("pod_with_the_lowest_cost_is_chosen") {
        let out = utf8(&kubectl.shell(&block.text).stdout);
        assert!(out.contains("worker-x2x4z   DELETION_COST"), "{out}");
        assert!(!out.contains("worker-bcd23"), "{out}");
    }
}

/// `kubectl decree` and kubectl are asked the same.
const PLUGIN: &str = r#"
mkdir -p ~/bin
PATH=~/bin:$PATH
ln -sf "$(command -v decree)" ~/bin/kubectl-decree
same() {
  test -n "$(kubectl get rs -o name "$@")"
  diff <(kubectl get rs -o name "$@" | sort) <(kubectl decree get rs -o name "$@" | sort)
}
same --context tests -A
same --context tests -n "$PLACE"
same --context=tests --namespace="$PLACE" web-1a
same --as "system:serviceaccount:$PLACE:default" -n "$PLACE"
if kubectl decree get rs --as nobody -n "$PLACE"; then exit 1; fi
COMPLETE=fish decree -- decree explain --context tests -n "$PLACE" we
COMPLETE=fish decree -- decree simulate --context tests -n "$PLACE" depl
"#;

#[tokio::test(flavor = "multi_thread")]
async fn plugin_takes_the_flags_of_kubectl_and_completes_names_of_the_cluster() {
    let kubectls = tests::or_skip!(tools::kubectls());
    let cluster = tests::or_skip!(ApiServer::start().await);
    let admin = cluster.admin().await;
    let namespace = Namespace::create(admin.clone(), "plugin").await;
    for (name, track) in [("web-1a", "stable"), ("web-2b", "canary"), ("api-3c", "")] {
        let mut set = replica_set(name, 0);
        let labels = match track {
            "" => json!({"app": "web"}),
            track => json!({"app": "web", "track": track}),
        };
        for of in ["/metadata", "/spec/template/metadata", "/spec/selector"] {
            let of = set.pointer_mut(of).expect("it is there");
            let field = if of.get("matchLabels").is_some() {
                "matchLabels"
            } else {
                "labels"
            };
            of[field] = labels.clone();
        }
        if !track.is_empty() {
            set["metadata"]["ownerReferences"] = json!([owner("Deployment", "web", "uid-web")]);
        }
        admin.make(&namespace.replica_set(""), &set).await;
    }
    reader(&cluster, &namespace).await;
    for program in kubectls {
        let kubectl = Kubectl::of(program, &cluster);
        let asked = kubectl.shell(&format!("PLACE={}{PLUGIN}", namespace.name()));
        assert_eq!(utf8(&asked.stdout), "web-1a\nweb-2b\ndeployment/web\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_are_divided_as_the_deployment_controller_divides_them() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let namespace = Namespace::create(cluster.admin().await, "division").await;
    let kubeconfig = cluster.kubeconfig(User::Admin);
    let mut expected = Vec::new();
    for seed in seeds() {
        let mut rng = Rng::new(seed);
        let name = format!("web-{seed}");
        let replicas = rng.between(0, 15);
        draw_deployment(&namespace, &mut rng, &name).await;
        let (of, to) = (format!("deployment/{name}"), replicas.to_string());
        let words = ["simulate", &of, "--replicas", &to, "-n", namespace.name()];
        let (_, err) = ask(&kubeconfig, &words);
        let notice = err.lines().find(|line| line.contains(" divides "));
        let notice = notice.unwrap_or_else(|| panic!("DECREE_READ_SEED={seed}: {err}"));
        let (_, parts) = notice.split_once(&format!("{name}: ")).expect("the parts");
        let sizes = parts.split(", ").map(|part| {
            let (name, sizes) = part.split_once(' ').expect("a size");
            let (_, to) = sizes.split_once(" → ").expect("a new size");
            (name.to_owned(), to.parse::<u64>().expect("a number"))
        });
        let mut sizes: Vec<_> = sizes.collect();
        // The next step of the controller gives all replicas to the only one that is left.
        let active = sizes.iter_mut().filter(|(_, size)| *size > 0);
        if let [(_, only)] = &mut active.collect::<Vec<_>>()[..] {
            *only = replicas;
        }
        let scaled = json!({"spec": {"replicas": replicas}});
        let path = namespace.path("/apis/apps/v1", "deployments", &name);
        namespace.change(&path, &scaled).await;
        expected.push((seed, sizes));
    }
    let _controller = ControllerManager::start(cluster, &["--controllers=deployment-controller"]);
    for (seed, sizes) in expected {
        for (name, size) in sizes {
            let path = namespace.replica_set(&name);
            let what = format!("{size} replicas with DECREE_READ_SEED={seed}");
            let is_so = |set: &Value| (set["spec"]["replicas"] == size).then_some(());
            namespace.wait_for(&what, &path, is_so).await;
        }
    }
}

/// Makes a paused Deployment amid a rollout. No controller runs yet, so the annotations are written here.
async fn draw_deployment(namespace: &Namespace, rng: &mut Rng, name: &str) {
    let annotation = |name: &str| format!("deployment.kubernetes.io/{name}");
    let before = rng.between(1, 12);
    let surges = [json!(0), json!(1), json!(3), json!("25%"), json!("30%")];
    let template = |version: u64| {
        let mut template = replica_set("", 0)["spec"]["template"].clone();
        template["metadata"]["labels"] = json!({"app": name, "version": version.to_string()});
        template
    };
    let newest = rng.between(2, 4);
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "annotations": {annotation("revision"): newest.to_string()}},
        "spec": {
            "replicas": before, "paused": true, "selector": {"matchLabels": {"app": name}},
            "template": template(if rng.chance(800) { newest } else { 9 }),
            "strategy": {"rollingUpdate": {"maxSurge": rng.pick(&surges), "maxUnavailable": 1}},
        },
    });
    let path = namespace.path("/apis/apps/v1", "deployments", "");
    let made = namespace.make(&path, &deployment).await;
    let mut of = owner("Deployment", name, text(&made, "uid"));
    of["blockOwnerDeletion"] = true.into();
    let sizes = (1..=newest).map(|version| match version {
        1 | 2 => rng.between(1, 6),
        _ => rng.between(0, 6),
    });
    let sizes: Vec<_> = sizes.collect();
    let total: u64 = sizes.iter().sum();
    for (version, replicas) in (1..).zip(sizes) {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": format!("{name}-{version}"), "labels": {"app": name},
                "ownerReferences": [of],
                "annotations": {
                    annotation("revision"): version.to_string(),
                    annotation("desired-replicas"): before.to_string(),
                    annotation("max-replicas"): total.to_string(),
                },
            },
            "spec": {
                "replicas": replicas, "template": template(version),
                "selector": {"matchLabels": {"app": name, "version": version.to_string()}},
            },
        });
        namespace.make(&namespace.replica_set(""), &set).await;
    }
}

/// The seeds of the drawn objects.
fn seeds() -> std::ops::Range<u64> {
    match depth::number("DECREE_READ_SEED") {
        Some(seed) => seed..seed + 1,
        None if depth::is_full() => 1..201,
        None => 1..9,
    }
}

/// Returns the kubeconfig of a service account that may read ReplicaSets and pods of its namespace.
async fn reader(cluster: &ApiServer, namespace: &Namespace) -> PathBuf {
    let verbs = ["get", "list"];
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "reader", "namespace": namespace.name()},
        "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": verbs},
            {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": verbs},
        ],
    });
    grant(namespace.api(), &role, namespace.name(), "default").await;
    let kubeconfig = cluster.service_account(namespace.name(), "default").await;
    let reader = Api::of(&kubeconfig).await;
    // The API server learns of roles later than they are written.
    for path in [namespace.pod(""), namespace.replica_set("")] {
        reader.wait_for("permitted", &path, |_| Some(())).await;
    }
    kubeconfig
}

/// The output of a command that must succeed.
fn said(words: &[&str]) -> String {
    let output = decree(words);
    let err = utf8(&output.stderr);
    assert!(output.status.success(), "{words:?}: {err}");
    utf8(&output.stdout)
}

/// The output of a command as the user of a kubeconfig.
fn ask(kubeconfig: &Path, words: &[&str]) -> (String, String) {
    let user = kubeconfig.to_string_lossy();
    let output = decree(&[words, &["--kubeconfig", &user]].concat());
    (utf8(&output.stdout), utf8(&output.stderr))
}

fn utf8(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Fills a namespace with ReplicaSets and pods in any states, and returns the names of the ReplicaSets.
async fn draw(namespace: &Namespace, rng: &mut Rng) -> Vec<String> {
    let api = namespace.api();
    let mut sets = Vec::new();
    for at in 0..rng.between(1, 4) {
        let name = format!("web-{at}");
        let replicas = u32::try_from(rng.between(0, 6)).expect("it is small");
        let mut set = replica_set(&name, replicas);
        if rng.chance(700) {
            // Its pods are its own.
            for labels in [
                "/spec/selector/matchLabels",
                "/spec/template/metadata/labels",
            ] {
                set.pointer_mut(labels).expect("it is there")["of"] = name.as_str().into();
            }
        }
        if rng.chance(500) {
            let mut owner = owner("Deployment", "web", "uid-web");
            owner["blockOwnerDeletion"] = false.into();
            set["metadata"]["ownerReferences"] = json!([owner]);
        }
        if rng.chance(300) {
            set["spec"]["minReadySeconds"] = rng.between(1, 100).into();
        }
        sets.push(api.make(&namespace.replica_set(""), &set).await);
    }
    for at in 0..rng.between(0, 12) {
        let set = rng.pick(&sets).clone();
        let (name, uid) = (text(&set, "name"), text(&set, "uid"));
        let mut one = pod(&format!("{name}-bcd{:02}", at + 20));
        one["metadata"]["labels"] = set["spec"]["template"]["metadata"]["labels"].clone();
        match rng.between(0, 9) {
            0 => {}
            1 => one["metadata"]["labels"] = json!({"app": "other"}),
            _ => one["metadata"]["ownerReferences"] = json!([owner("ReplicaSet", name, uid)]),
        }
        if rng.chance(300) {
            let cost = rng.between(0, 3).to_string();
            one["metadata"]["annotations"] = json!({DELETION_COST: cost});
        }
        if rng.chance(800) {
            one["spec"]["nodeName"] = (*rng.pick(&NODES)).into();
        }
        let made = api.make(&namespace.pod(""), &one).await;
        let path = namespace.pod(text(&made, "name"));
        let Some(status) = draw_status(rng) else {
            continue;
        };
        let status = json!({"status": status});
        let of_status = format!("{path}/status");
        api.change(&of_status, &status).await;
        if rng.chance(100) {
            api.remove(&path, &json!({})).await;
        }
    }
    let names = sets.iter().map(|set| text(set, "name").to_owned());
    names.collect()
}

/// The status that a kubelet or a scheduler writes; `None` for a pod that neither has seen.
fn draw_status(rng: &mut Rng) -> Option<Value> {
    Some(match rng.between(0, 6) {
        0 => json!({"phase": "Failed", "reason": "Evicted"}),
        1 => {
            let mut status = json!({"phase": "Running"});
            status["containerStatuses"] = ready_since("", 0)["containerStatuses"].clone();
            status["containerStatuses"][0]["state"] =
                json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}});
            status
        }
        2 => return None,
        3 => json!({"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes",
        }]}),
        _ => {
            let time = format!("2026-05-01T11:{:02}:00Z", rng.between(10, 59));
            ready_since(
                &time,
                u32::try_from(rng.between(0, 2)).expect("it is small"),
            )
        }
    })
}

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true})
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().expect("it is text")
}
