//! Shadow mode: kube-controller-manager acts, the agent watches, and their differences are reported.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tests::{
    real::{Agent, ApiServer, ControllerManager, DecisionServer, Namespace, Patch},
    rng::Rng,
};
use tokio::time;

use crate::{modes::may_only_read, objects};

/// The seed of the drawn workload, unless `DECREE_SHADOW_SEED` sets another.
const SEED: u64 = 1;
const STEPS: u64 = 200;
/// So many that each has rested for a second before its next turn.
const SETS: usize = 10;
/// The maximum time after an act for the other controller to rest, so that its actions are compared with the act's.
const IN_TIME: Duration = Duration::from_secs(2);
/// Longer than the time for which old replicas explain an action.
const NUMBERS_COUNT: Duration = Duration::from_secs(15);
const NODES: [&str; 3] = ["node-a", "node-b", "node-c"];

/// A namespace in which a person, a scheduler and kubelets act at random.
struct Workload {
    namespace: Namespace,
    rng: Rng,
    /// The acts, for a failure.
    log: Vec<String>,
    /// The steps after which the other controller rested too late.
    late: Vec<u64>,
    made: u64,
}

fn set_name(number: usize) -> String {
    format!("set-{number}")
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    let text = object.pointer(path).and_then(Value::as_str);
    text.unwrap_or_default()
}

fn is_active(pod: &Value) -> bool {
    let ended = ["Failed", "Succeeded"].contains(&text(pod, "/status/phase"));
    !ended && pod["metadata"].get("deletionTimestamp").is_none()
}

fn is_of(pod: &Value, set: &str) -> bool {
    text(pod, "/metadata/ownerReferences/0/name") == set
}

// === impl Workload ===

impl Workload {
    async fn begin(namespace: Namespace, seed: u64) -> Self {
        let workload = Self {
            namespace,
            rng: Rng::new(seed),
            log: Vec::new(),
            late: Vec::new(),
            made: 0,
        };
        for number in 0..SETS {
            let name = set_name(number);
            let mut set = objects::replica_set(&name, 3);
            set["spec"]["selector"]["matchLabels"] = json!({"app": name});
            set["spec"]["template"]["metadata"]["labels"] = json!({"app": name});
            set["spec"]["minReadySeconds"] = json!(number % 2);
            let path = workload.namespace.replica_set("");
            let created = workload.namespace.api().create(&path, &set).await;
            created.expect("it is valid");
        }
        workload.rest().await;
        workload
    }

    async fn step(&mut self, number: u64) {
        let set = usize::try_from(number).expect("few") % SETS;
        let name = set_name(set);
        let mut pods = self.namespace.pods().await.expect("they can be listed");
        pods.retain(|pod| is_of(pod, &name) && is_active(pod));
        let act = if pods.is_empty() {
            0
        } else {
            self.rng.between(0, 7)
        };
        let names: Vec<_> = pods
            .iter()
            .map(|pod| text(pod, "/metadata/name").to_owned())
            .collect();
        let pod = match names.as_slice() {
            [] => String::new(),
            names => self.rng.pick(names).clone(),
        };
        let done = match act {
            0..=2 => self.scale(&name).await,
            3 => self.delete(&pod).await,
            4 => self.label_away(&pod).await,
            5 => self.fail(&pod).await,
            6 => self.run(&pods).await,
            _ => self.orphan(&name).await,
        };
        self.log.push(format!("{number}: {name}: {done}"));
        let act = time::Instant::now();
        self.rest().await;
        if act.elapsed() > IN_TIME {
            self.late.push(number);
        }
    }

    async fn scale(&mut self, set: &str) -> String {
        let replicas = self.rng.between(0, 8);
        let patch = json!({"spec": {"replicas": replicas}});
        self.patch(&self.namespace.replica_set(set), &patch).await;
        format!("scale to {replicas}")
    }

    async fn delete(&mut self, pod: &str) -> String {
        let path = self.namespace.pod(pod);
        let deleted = self.namespace.api().delete(&path, &json!({})).await;
        deleted.expect("it is there");
        format!("delete {pod}")
    }

    async fn label_away(&mut self, pod: &str) -> String {
        let patch = json!({"metadata": {"labels": {"app": "away"}}});
        self.patch(&self.namespace.pod(pod), &patch).await;
        format!("label {pod} away")
    }

    async fn fail(&mut self, pod: &str) -> String {
        let path = format!("{}/status", self.namespace.pod(pod));
        self.patch(&path, &json!({"status": {"phase": "Failed"}}))
            .await;
        format!("fail {pod}")
    }

    /// Assigns some of the pods and makes them ready, all in one second, so that some share their time.
    async fn run(&mut self, pods: &[Value]) -> String {
        let mut ran = Vec::new();
        for pod in pods {
            let name = text(pod, "/metadata/name");
            if text(pod, "/spec/nodeName").is_empty() && self.rng.chance(750) {
                let node = *self.rng.pick(&NODES);
                let binding = json!({
                    "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": node},
                });
                let path = format!("{}/binding", self.namespace.pod(name));
                let bound = self.namespace.api().create(&path, &binding).await;
                bound.expect("it is not assigned");
            }
            if self.rng.chance(750) {
                self.become_ready(name).await;
                ran.push(name);
            }
        }
        format!("run {}", ran.join(" "))
    }

    async fn become_ready(&self, pod: &str) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since = since.expect("the clock is set").as_secs();
        let since = jiff::Timestamp::from_second(i64::try_from(since).expect("it is this century"));
        let since = since.expect("it is this century").to_string();
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": since});
        let path = format!("{}/status", self.namespace.pod(pod));
        let status = json!({"status": {"phase": "Running", "conditions": [ready]}});
        self.patch(&path, &status).await;
    }

    async fn orphan(&mut self, set: &str) -> String {
        self.made += 1;
        let name = format!("orphan-{}", self.made);
        let mut pod = objects::pod(&name);
        pod["metadata"]["labels"] = json!({"app": set});
        let created = self
            .namespace
            .api()
            .create(&self.namespace.pod(""), &pod)
            .await;
        created.expect("it is new");
        format!("create {name}")
    }

    async fn patch(&self, path: &str, patch: &Value) {
        let patched = self
            .namespace
            .api()
            .patch(path, Patch::Strategic, patch)
            .await;
        patched.unwrap_or_else(|refusal| panic!("{path}: {refusal:?}"));
    }

    /// Waits until the other controller has no work left, and ends pods as kubelets do meanwhile.
    async fn rest(&self) {
        let until = time::Instant::now() + tests::real::PATIENCE;
        let mut looks = time::interval(Duration::from_millis(20));
        loop {
            looks.tick().await;
            let sets = self
                .namespace
                .api()
                .list(&self.namespace.replica_set(""))
                .await;
            let pods = self.namespace.pods().await.expect("they can be listed");
            self.end(&pods).await;
            let sets = sets.expect("they can be listed");
            let restless = sets.iter().find(|set| !is_at_rest(set, &pods));
            let Some(restless) = restless else { return };
            let late = time::Instant::now() >= until;
            assert!(!late, "{:#?}\nno rest for {restless:#}", self.log);
        }
    }

    async fn end(&self, pods: &[Value]) {
        let going = pods
            .iter()
            .filter(|pod| pod["metadata"].get("deletionTimestamp").is_some());
        for pod in going {
            let path = self.namespace.pod(text(pod, "/metadata/name"));
            // The pod may have ended by itself.
            let _ended = self
                .namespace
                .api()
                .delete(&path, &json!({"gracePeriodSeconds": 0}))
                .await;
        }
    }
}

/// Whether a ReplicaSet has its desired pods, owns all pods that it selects, and reports so.
fn is_at_rest(set: &Value, pods: &[Value]) -> bool {
    let name = text(set, "/metadata/name");
    let owned = pods.iter().filter(|pod| is_of(pod, name) && is_active(pod));
    let selected = |pod: &&Value| text(pod, "/metadata/labels/app") == name && is_active(pod);
    let selected = pods.iter().filter(selected);
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let wanted = number(&set["spec"]["replicas"]);
    let status = &set["status"];
    let counts = [
        owned.count() as u64,
        selected.count() as u64,
        number(&status["replicas"]),
    ];
    counts == [wanted; 3] && status["observedGeneration"] == set["metadata"]["generation"]
}

/// The unexplained differences.
fn surprises(server: &DecisionServer) -> Vec<Value> {
    let output = server.ask(&["diff", "--unexplained", "-o", "json"]);
    let mut answer: Value = serde_json::from_slice(&output.stdout).expect("a shadow answers");
    let found = answer["differences"].take();
    let found = found.as_array().expect("it is a list").clone();
    assert_eq!(output.status.code(), Some(i32::from(!found.is_empty())));
    found
}

fn all(server: &DecisionServer) -> Vec<Value> {
    let output = server.ask(&["diff", "--fail-on", "never", "-o", "json"]);
    let mut answer: Value = serde_json::from_slice(&output.stdout).expect("a shadow answers");
    assert_eq!(output.status.code(), Some(0));
    let found = answer["differences"].take();
    found.as_array().cloned().unwrap_or_default()
}

/// Waits for a reported difference of a ReplicaSet.
async fn told(server: &DecisionServer, subject: &str, replica_set: &str) -> Value {
    eventually(&format!("{subject} of {replica_set}"), || {
        let found = surprises(server);
        let is_it =
            |told: &Value| told["subject"] == subject && told["replicaSet"]["name"] == replica_set;
        found.into_iter().find(is_it)
    })
    .await
}

/// Waits until `is_so` holds for the server's explanation of a ReplicaSet.
async fn explained(server: &DecisionServer, replica_set: &str, is_so: impl Fn(&Value) -> bool) {
    let explain = ["explain", &format!("shadow/{replica_set}")];
    eventually(&format!("explanation of {replica_set}"), || {
        server.ask_json(&explain).filter(&is_so)
    })
    .await;
}

async fn eventually<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let until = time::Instant::now() + tests::real::PATIENCE;
    let mut looks = time::interval(Duration::from_millis(200));
    loop {
        looks.tick().await;
        if let Some(found) = find() {
            return found;
        }
        assert!(time::Instant::now() < until, "no {what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shadow_of_the_built_in_controller_differs_where_it_is_documented_and_sees_what_is_wrong() {
    let cluster = tests::or_skip!(ApiServer::start().await);
    let given = std::env::var("DECREE_SHADOW_SEED").ok();
    let seed = given.map_or(SEED, |seed| seed.parse().expect("a seed is a number"));
    eprintln!("DECREE_SHADOW_SEED={seed}");
    let mut peer = ControllerManager::start(&cluster, &["--controllers=replicaset-controller"]);
    let namespace = Namespace::create(cluster.admin().await, "shadow").await;
    let reader = may_only_read(&cluster, &namespace).await;
    let server = DecisionServer::start();
    let agent = Agent::start(
        &server,
        &reader,
        &["--mode", "shadow", "--leader-elect=false"],
    );
    agent.running().wait_for_message("listed", 2);
    let mut workload = Workload::begin(namespace, seed).await;
    for number in 0..STEPS {
        workload.step(number).await;
    }
    much_was_compared(&server);
    no_surprise(&server, &workload, &[]);

    time::sleep(NUMBERS_COUNT).await;
    one_too_many_is_told(&mut workload, &server).await;
    let replicas = json!({"spec": {"replicas": 2}});
    let last = workload.namespace.replica_set(&set_name(3));
    workload.patch(&last, &replicas).await;
    workload.rest().await;
    peer.stop();
    let strayed = change_an_owner(&workload).await;
    wrong_victim_is_told(&mut workload, &server).await;
    wrong_status_is_told(&workload, &server).await;
    let told = told(&server, "SUBJECT_ADOPTION", &set_name(3)).await;
    assert_eq!(told["decided"], format!("adopt {strayed}"), "{told:#}");
    // By now, all differences of the workload have been reported.
    no_surprise(&server, &workload, &[0, 1, 2, 3].map(set_name));
    let metrics = server.metrics();
    for subject in ["count", "victims", "status", "adoption"] {
        let metric = format!("decree_differences_total{{subject=\"{subject}\",departure=");
        assert!(metrics.contains(&metric), "{metric}: {metrics}");
    }
    server
        .running()
        .wait_for_message("the other controller differs", 1);
    let calls = agent.metrics();
    assert!(
        !calls.contains("decree_agent_calls_total{"),
        "it only watches: {calls}"
    );
}

fn much_was_compared(server: &DecisionServer) {
    let output = server.ask(&["diff", "-o", "json"]);
    let all: Value = serde_json::from_slice(&output.stdout).expect("a shadow answers");
    let compared = &all["compared"];
    eprintln!(
        "{compared} comparisons, differences: {:#}",
        all["differences"]
    );
    let number = compared.as_str().and_then(|text| text.parse::<u64>().ok());
    assert!(number.expect("it is a number") > STEPS, "{compared}");
}

/// Checks that unexplained differences concern only the provoked ReplicaSets. If the machine was too slow for the other
/// controller, the server is right to report its late actions.
fn no_surprise(server: &DecisionServer, workload: &Workload, provoked: &[String]) {
    let mut unexplained = surprises(server);
    unexplained.retain(|told| !provoked.contains(&text(told, "/replicaSet/name").to_owned()));
    let Workload { log, late, .. } = workload;
    if !unexplained.is_empty() && !late.is_empty() {
        eprintln!("not judged, as steps {late:?} were slow: {unexplained:#?}");
        return;
    }
    assert!(unexplained.is_empty(), "{unexplained:#?}\nafter {log:#?}");
}

async fn one_too_many_is_told(workload: &mut Workload, server: &DecisionServer) {
    let name = set_name(0);
    let namespace = &workload.namespace;
    let set = namespace.api().get(&namespace.replica_set(&name)).await;
    let set = set.expect("it is there");
    let mut pod = objects::pod("one-too-many");
    pod["metadata"]["labels"] = json!({"app": name});
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": set["metadata"]["uid"], "controller": true,
    }]);
    let created = namespace.api().create(&namespace.pod(""), &pod).await;
    created.expect("it is new");
    workload.rest().await;
    let told = told(server, "SUBJECT_COUNT", &name).await;
    let texts = [text(&told, "/decided"), text(&told, "/done")];
    assert!(
        texts[0].starts_with("at most ") && texts[1].ends_with(" pods"),
        "{told:#}"
    );
}

/// Acts as the other controller, and deletes a pod with a higher deletion cost.
async fn wrong_victim_is_told(workload: &mut Workload, server: &DecisionServer) {
    let name = set_name(1);
    let namespace = &workload.namespace;
    let (first, second) = (format!("{name}-first"), format!("{name}-second"));
    let mut pods = namespace.pods().await.expect("they can be listed");
    pods.retain(|pod| is_of(pod, &name) && is_active(pod));
    for pod in &pods {
        let path = namespace.pod(text(pod, "/metadata/name"));
        let deleted = namespace
            .api()
            .delete(&path, &json!({"gracePeriodSeconds": 0}))
            .await;
        deleted.expect("it is there");
    }
    let set = namespace.api().get(&namespace.replica_set(&name)).await;
    let uid = set.expect("it is there")["metadata"]["uid"].clone();
    let path = namespace.replica_set(&name);
    workload
        .patch(&path, &json!({"spec": {"replicas": 2}}))
        .await;
    for (pod, cost) in [(&first, "-5"), (&second, "5")] {
        let mut object = objects::pod(pod);
        object["metadata"]["labels"] = json!({"app": name});
        object["metadata"]["annotations"] =
            json!({"controller.kubernetes.io/pod-deletion-cost": cost});
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": uid, "controller": true,
        }]);
        let created = namespace.api().create(&namespace.pod(""), &object).await;
        created.expect("it is new");
    }
    explained(server, &name, |it| {
        it["summary"]["state"] == "REPLICA_SET_STATE_IN_SYNC"
    })
    .await;
    workload
        .patch(&path, &json!({"spec": {"replicas": 1}}))
        .await;
    let is_delete = |it: &Value| it["action"] == "delete" && it["targets"][0]["name"] == first;
    explained(server, &name, |it| {
        let mut decisions = it["decisions"].as_array().into_iter().flatten();
        decisions.any(is_delete)
    })
    .await;
    let deleted = namespace
        .api()
        .delete(&namespace.pod(&second), &json!({"gracePeriodSeconds": 0}))
        .await;
    deleted.expect("it is there");
    // As far as the server can see, somebody else may have deleted the pod, which explains the first such deletion.
    let told = eventually(&format!("victims of {name}"), || {
        let found = all(server).into_iter();
        let mut found = found.filter(|told| told["subject"] == "SUBJECT_VICTIMS");
        found.find(|told| told["replicaSet"]["name"] == *name)
    })
    .await;
    assert_eq!(told["done"], format!("deleted {second}"), "{told:#}");
    let chosen = format!("delete {first} (");
    assert!(text(&told, "/decided").starts_with(&chosen), "{told:#}");
}

async fn wrong_status_is_told(workload: &Workload, server: &DecisionServer) {
    let name = set_name(2);
    let path = workload.namespace.replica_set(&format!("{name}/status"));
    let wrong = json!({"status": {"fullyLabeledReplicas": 0, "replicas": 99}});
    workload.patch(&path, &wrong).await;
    told(server, "SUBJECT_STATUS", &name).await;
}

/// Removes the owner of a pod that its ReplicaSet selects, without a reason. Returns its name.
async fn change_an_owner(workload: &Workload) -> String {
    let name = set_name(3);
    let namespace = &workload.namespace;
    let pods = namespace.pods().await.expect("they can be listed");
    let owned = pods.iter().find(|pod| is_of(pod, &name) && is_active(pod));
    let pod = text(owned.expect("it has one"), "/metadata/name").to_owned();
    let no_owner = json!({"metadata": {"ownerReferences": null}});
    workload.patch(&namespace.pod(&pod), &no_owner).await;
    pod
}
