//! Random objects as Kubernetes writes them, with few names and sometimes an illegal value.

use serde_json::{Map, Value, json};
use tests::rng::Rng;

const NAMES: [&str; 5] = ["web", "api", "db", "a", "web-1"];
const STRANGE: [&str; 8] = [
    "",
    "Web",
    "../etc",
    "w\u{0435}b",
    "\u{202e}bew",
    "a\u{1b}[31mb",
    "a\nb",
    "no",
];

/// Returns a pod or a ReplicaSet, with values that an API server or a person may write.
pub(crate) fn object(rng: &mut Rng) -> Value {
    if rng.chance(700) {
        pod(rng)
    } else {
        replica_set(rng)
    }
}

pub(crate) fn replica_set(rng: &mut Rng) -> Value {
    let labels = labels(rng);
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata(rng),
        "spec": {
            "replicas": number(rng),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "registry.example/web:1"}]},
            },
        },
    });
    if rng.chance(400) {
        set["status"] = json!({"replicas": number(rng), "observedGeneration": number(rng)});
    }
    if rng.chance(200) {
        set["spec"]["selector"]["matchExpressions"] =
            json!([{"key": name(rng), "operator": "In", "values": [name(rng)]}]);
    }
    set
}

pub(crate) fn pod(rng: &mut Rng) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(rng),
        "spec": {
            "nodeName": name(rng),
            "containers": [{"name": "main", "image": "registry.example/web:1"}],
        },
        "status": {
            "phase": *rng.pick(&["Pending", "Running", "Succeeded", "Failed", "Strange"]),
            "containerStatuses": [container(rng, "main")],
        },
    });
    if rng.chance(200) {
        pod["spec"]["initContainers"] =
            json!([{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}]);
        let statuses = ["setup", "proxy"].map(|name| container(rng, name));
        pod["status"]["initContainerStatuses"] = statuses.into();
    }
    if rng.chance(600) {
        let status = *rng.pick(&["True", "False", "Unknown"]);
        let time = time(rng);
        let mut conditions =
            vec![json!({"type": "Ready", "status": status, "lastTransitionTime": time})];
        if rng.chance(300) {
            conditions.push(json!({
                "type": "PodScheduled", "status": status, "lastTransitionTime": time,
                "reason": "Unschedulable", "message": name(rng),
            }));
        }
        pod["status"]["conditions"] = conditions.into();
    }
    if rng.chance(200) {
        pod["status"]["reason"] = name(rng).into();
    }
    if rng.chance(150) {
        let cost = name(rng);
        pod["metadata"]["annotations"] =
            json!({"controller.kubernetes.io/pod-deletion-cost": cost});
    }
    pod
}

/// The status of a container, which sometimes waits.
fn container(rng: &mut Rng, of: &str) -> Value {
    let mut status = json!({"name": of, "restartCount": number(rng)});
    if rng.chance(300) {
        let reason = *rng.pick(&["ContainerCreating", "CrashLoopBackOff"]);
        status["state"] = json!({"waiting": {"reason": reason}});
    }
    status
}

fn metadata(rng: &mut Rng) -> Value {
    let name = format!("{}-{}", name(rng), rng.between(0, 9));
    let mut metadata = json!({
        "name": name,
        "namespace": *rng.pick(&["default", "default", "other"]),
        "uid": format!("{name}-uid"),
        "resourceVersion": rng.between(1, 200).to_string(),
        "labels": labels(rng),
    });
    if rng.chance(500) {
        metadata["creationTimestamp"] = time(rng).into();
    }
    if rng.chance(100) {
        metadata["deletionTimestamp"] = time(rng).into();
    }
    if rng.chance(400) {
        let owners = (0..rng.between(1, 2)).map(|_| {
            let owner = *rng.pick(&NAMES);
            json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": format!("{owner}-uid"),
                "controller": rng.chance(900),
            })
        });
        metadata["ownerReferences"] = owners.collect();
    }
    metadata
}

fn labels(rng: &mut Rng) -> Value {
    let count = rng.between(0, 2);
    let labels = (0..count).map(|_| {
        let key = *rng.pick(&["app", "tier", "example.com/track"]);
        (key.to_owned(), Value::from(name(rng)))
    });
    labels.collect::<Map<_, _>>().into()
}

fn name(rng: &mut Rng) -> String {
    let names = if rng.chance(15) { &STRANGE[..] } else { &NAMES };
    (*rng.pick(names)).to_owned()
}

fn number(rng: &mut Rng) -> Value {
    if rng.chance(15) {
        rng.pick(&[json!(-1), json!(2_147_483_648_i64), json!("3"), Value::Null])
            .clone()
    } else {
        rng.between(0, 6).into()
    }
}

fn time(rng: &mut Rng) -> String {
    let strange = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "yesterday"];
    if rng.chance(15) {
        (*rng.pick(&strange)).to_owned()
    } else {
        format!("2026-05-01T1{}:00:00Z", rng.between(0, 9))
    }
}
