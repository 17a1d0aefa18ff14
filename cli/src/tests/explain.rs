//! What a person wants to know about a ReplicaSet, and about one of its pods.

use agent_core::budget::{Action, BudgetConfig};
use agent_fake::{ApiError, Fault, Kind, Verb};
use serde_json::json;

use super::{
    decree_reading,
    system::{System, says},
    victims,
};

#[test]
fn desired_pods_that_go_up_and_down_are_the_cause_with_their_managers() {
    let system = System::start(&["demo"]);
    for replicas in [4, 2, 4, 2, 4, 2] {
        let manager = if replicas == 2 {
            "argocd-controller"
        } else {
            "kube-controller-manager"
        };
        let managed = json!([{
            "manager": manager, "operation": "Update", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
        }]);
        let patch = json!({"metadata": {"managedFields": managed}, "spec": {"replicas": replicas}});
        let patched = system.clusters[0]
            .with(|it| it.patch(Kind::ReplicaSet, "default", "web-5f6a8b", &patch));
        patched.expect("it is there");
        system.settle();
    }
    system.check(
        "
[0] explain web-5f6a8b
Name:        default/web-5f6a8b
Cause:       Desired changed 6 times in a minute, between 2 and 4, by argocd-controller and kube-controller-manager for Deployment web
Next:        kubectl -n default get replicaset web-5f6a8b --show-managed-fields -o yaml
…
Replicas:    2 desired, 2 current, 2 ready, 2 available, …
State:       Blocked
Because:     IN_SYNC: …
[0] get rs web-5f6a8b
NAMESPACE …
default     web-5f6a8b   2         2         2       2           Blocked   Desired changed 6 times in a minute, …",
    );
}

#[test]
fn scale_down_is_told_before_and_after() {
    let system = System::start(&["demo"]);
    let one = "simulate web-5f6a8b --replicas 1 -o json".split(' ');
    let pods = victims(&system.decree(&one.collect::<Vec<_>>()).out);
    let victim = pods.split_whitespace().next().expect("it has pods");
    system.check(&format!(
        "
[1] explain web-5f6a8b --why {victim}
error: no decision that the server remembers deletes {victim} of default/web-5f6a8b
hint: its place in the order of deletion: decree simulate default/web-5f6a8b --replicas 0
[0] explain web-5f6a8b
…(--all shows …
[0] explain web-5f6a8b --all
…STATUS_DIFFERS: 3 replicas, 3 fully labeled, 3 ready…"
    ));
    let said = system.decree(&["explain", "web-5f6a8b"]).out;
    assert!(!said.contains("STATUS_DIFFERS"), "{said}");
    system.scale("web-5f6a8b", 1);
    system.until(
        "explain web-5f6a8b",
        "…\nDecisions:\n… RESULT   REASON …\n\
         …   delete   2       done     TOO_MANY_REPLICAS: 3 active pods, 1 desired …\n\
         …   create   3       done     TOO_FEW_REPLICAS: 0 active pods, 3 desired …",
    );
    system.settle();
    system.check(&format!(
        "
[0] explain web-5f6a8b --why {victim}
{victim} was deleted at 2…: …default/web-5f6a8b had 3 active pods, 1 desired.
…  > {victim}   yes …   stays …
[0] explain web-5f6a8b --why {victim} -o json
…\"decisions\":[{{…\"action\":\"ACTION_DELETE\"…
[0] explain web-5f6a8b
…
Last scale-down: 3 → 1 at 2… ago), 2 pods
…   yes …   yes …   stays …"
    ));
    for replicas in [2, 1] {
        system.scale("web-5f6a8b", replicas);
        system.settle();
    }
    // It is not in the last deletion any more.
    system.check(&format!(
        "[0] explain web-5f6a8b --why {victim}
{victim} was deleted at 2…: …default/web-5f6a8b had 3 active pods, 1 desired."
    ));
}

#[test]
fn preferences_have_columns_before_the_cost() {
    let system = System::start(&["demo"]);
    let mut set = super::decide::replica_set("shop", 3);
    set["spec"]["template"]["spec"] = json!({"containers": [{"name": "web", "image": "web"}]});
    set["metadata"]["annotations"] = json!({"decree.dev/scale-in": "oldest-stays, consolidate"});
    let created = system.clusters[0].with(|it| it.create(set));
    created.expect("there is none yet");
    system.settle();
    system.scale("shop", 1);
    system.settle();
    system.check(
        "
[0] explain shop -o wide
…Last scale-down: 3 → 1 …NOT_READY   YOUNGEST   EMPTIEST_NODE   DELETION_COST …",
    );
}

#[test]
fn what_is_held_back_is_told_with_what_ends_it() {
    let budget = BudgetConfig {
        action: Action::Hold,
        deletes: "replicaset=1".parse().expect("they are limits"),
        ..BudgetConfig::default()
    };
    let system = System::start_within(budget, &["demo"]);
    system.scale("web-5f6a8b", 1);
    system.until(
        "explain web-5f6a8b",
        "…\nCause:       Held by a budget: 2 deletes in a minute, 1 are allowed…\n\
         Next:        decree resume default/web-5f6a8b\n\
         …\nHeld back:   by the agent: deletes in replica set default/web-5f6a8b are held since 2…\
         : 2 deletes in a minute, 1 are allowed; resume with: decree resume default/web-5f6a8b\n…",
    );
    system.until(
        "get rs",
        "…Blocked   Held by a budget: 2 deletes in a minute, 1 are allowed…",
    );
    system.clusters[0].with(|it| {
        let busy = Fault::refuse(ApiError::too_many_requests(600));
        it.faults_mut().add(busy.on(Verb::Create).of(Kind::Pod));
    });
    system.scale("web-5f6a8b", 4);
    let said = system.until(
        "explain web-5f6a8b",
        "…\nHeld back:   by the cluster: Too many requests, please try again later…",
    );
    assert!(
        !said.contains("by the agent"),
        "nothing is to be deleted: {said}"
    );
}

#[test]
fn pods_that_are_not_ready_or_have_ended_are_told_by_reason() {
    let system = System::start(&["demo"]);
    let (mut names, mut objects) = (Vec::new(), Vec::new());
    system.clusters[0].with(|it| {
        let pods = it.objects(Kind::Pod).map(|pod| &pod["metadata"]);
        let pods = pods.filter(|it| it["ownerReferences"][0]["name"] == "web-5f6a8b");
        names.extend(pods.filter_map(|it| Some(it["name"].as_str()?.to_owned())));
        let waits = ["ImagePullBackOff", "ImagePullBackOff", "\u{1b}[2JBad"];
        for (name, reason) in names.iter().zip(waits) {
            let status = json!({
                "conditions": [{"type": "Ready", "status": "False"}],
                "containerStatuses": [{"name": "web", "state": {"waiting": {"reason": reason}}}],
            });
            it.set_pod_status("default", name, &status)
                .expect("it is there");
        }
        for kind in [Kind::ReplicaSet, Kind::Pod] {
            objects.extend(it.objects(kind).map(|object| (**object).clone()));
        }
    });
    let said = "…\nCause:       3 of 3 pods not ready: ImagePullBackOff\n\
         …, 3 current, 0 ready, …\nNot ready:   2 ImagePullBackOff, 1 \\u{1b}[2JBad\nState:…";
    system.until("explain web-5f6a8b", said);
    system.until(
        "get rs -o wide",
        "… NOT-READY …   2 ImagePullBackOff, 1 \\u{1b}[2JBad…",
    );
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let read = decree_reading(&list, &["explain", "web-5f6a8b", "-f", "-"]);
    assert!(says(said, &read.out), "{}", read.out);
    let evicted = json!({"phase": "Failed", "reason": "Evicted"});
    let end = system.clusters[0].with(|it| it.set_pod_status("default", &names[2], &evicted));
    end.expect("it is there");
    system.until(
        "explain web-5f6a8b",
        "…\nNot ready:   2 ImagePullBackOff\nEnded:       1 Evicted\nState:…",
    );
}

#[test]
fn what_the_cluster_refuses_is_told_in_its_words() {
    const WORDS: &str = "pods is forbidden: exceeded quota: pods, requested: pods=1, used: pods=25, limited: pods=25";
    const CAUSE: &str = "Quota exceeded in default: 25 of 25 pods";
    let system = System::start(&["demo"]);
    let explain = "explain web-5f6a8b";
    system.clusters[0].with(|it| {
        let full = Fault::refuse(ApiError::new(403, "Forbidden", WORDS));
        it.faults_mut().add(full.on(Verb::Create).of(Kind::Pod));
    });
    system.scale("web-5f6a8b", 5);
    let said = system.until(
        explain,
        &format!(
            "…\nCause:       {CAUSE}, retry …\nNext:        kubectl -n default describe resourcequota\n\
             …\nRefused:     QUOTA, … times since 2…: {WORDS}\n\
             …  create   2       failed (QUOTA)   TOO_FEW_REPLICAS: 3 active pods, 5 desired, … times since 2…"
        ),
    );
    // The attempts are one line.
    let attempts = said.lines().filter(|line| line.contains("failed (QUOTA)"));
    assert_eq!(attempts.count(), 1, "{said}");
    for (line, pattern) in [
        ("get rs -o wide", &*format!("…{WORDS}…")),
        // ReplicaSets that need a person come first.
        (
            "get rs",
            &format!("NAMESPACE …\ndefault     web-5f6a8b …{CAUSE}…"),
        ),
    ] {
        system.until(line, pattern);
    }
    system.clusters[0].with(|it| it.faults_mut().clear());
    system.wait_until(|| {
        let said = system.decree(&["explain", "web-5f6a8b"]).out;
        !says("…Refused:…", &said)
    });
}

/// A file waits for no time, and yet for the end of a pod.
#[test]
fn file_says_what_creates_wait_for_and_which_annotation_nobody_follows() {
    let mut set = super::decide::replica_set("shop", 1);
    set["metadata"]["annotations"] = json!({
        "decree.dev/create": "after-termination", "decree.dev/scale-in": "first=idle",
    });
    let mut pod = super::decide::pod("shop-a", "shop");
    pod["metadata"]["deletionTimestamp"] = "2026-05-01T11:00:00Z".into();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [set, pod]}).to_string();
    let read = decree_reading(&list, &["explain", "shop", "-f", "-"]);
    let said = "…\nCause:       Creates wait: 1 pod being deleted
…
Prefers:     create: after-termination
Ignored:     decree.dev/scale-in: \"first=idle\" is none of: first=KEY=VALUE, …
Because:     AFTER_TERMINATION: 1 pod being deleted. …
             TOO_FEW_REPLICAS: 0 active pods, 1 desired
…";
    assert!(says(said, &read.out), "{}", read.out);
}
