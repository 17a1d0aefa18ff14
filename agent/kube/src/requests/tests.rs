//! The request of each call, and the calls without a valid request.

use std::time::Duration;

use agent_core::api::Template;
use http_body_util::BodyExt as _;

use super::*;

fn lines(request: Result<http::Request<RequestBody>, ApiError>) -> (String, String) {
    let request = request.expect("it can be expressed");
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|it| it.to_str().ok()).unwrap_or_default();
    (
        format!("{} {}", request.method(), request.uri()),
        kind.to_owned(),
    )
}

async fn body(request: Result<http::Request<RequestBody>, ApiError>) -> Value {
    let request = request.expect("it can be expressed");
    let bytes = request.into_body().collect().await;
    let bytes = bytes.expect("it is at hand").to_bytes();
    serde_json::from_slice(&bytes).expect("it is JSON")
}

const PODS: &str = "/api/v1/namespaces/default/pods";

fn apps(request: &Request) -> Result<http::Request<RequestBody>, ApiError> {
    of(&Resource::default(), request)
}

fn object(name: &str) -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: "default".into(),
        name: name.into(),
        uid: "u1".into(),
    }
}

fn delete(name: &str, resource_version: Option<&str>) -> Request {
    Request::DeletePod {
        pod: object(name),
        resource_version: resource_version.map(str::to_owned),
    }
}

fn controller() -> v1::OwnerReference {
    v1::OwnerReference {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        name: "web".into(),
        uid: "rs".into(),
        block_owner_deletion: Some(true),
    }
}

fn create(namespace: &str, template: &str) -> Request {
    Request::CreatePod(CreatePod {
        namespace: namespace.into(),
        name: "a".into(),
        generate_name: "web-".into(),
        controller: controller(),
        template: Template::new(template.as_bytes()),
        responds: false,
        timeout: Duration::from_millis(2_500),
    })
}

fn write(replicas: i32) -> Request {
    let status = v1::ReplicaSetStatus {
        replicas,
        ..v1::ReplicaSetStatus::default()
    };
    let selector = v1::LabelSelector {
        match_labels: [("app".into(), "web".into())].into(),
        ..v1::LabelSelector::default()
    };
    Request::WriteStatus(WriteStatus {
        replica_set: object("web"),
        resource_version: "9".into(),
        status,
        selector: Some(selector),
    })
}

#[tokio::test]
async fn deletion_names_the_pod_that_was_chosen() {
    let request = apps(&delete("a", Some("7")));
    let (line, _) = lines(apps(&delete("a", None)));
    assert_eq!(line, format!("DELETE {PODS}/a"));
    let preconditions = body(request).await["preconditions"].take();
    assert_eq!(preconditions, json!({"uid": "u1", "resourceVersion": "7"}));
    let preconditions = body(apps(&delete("a", None))).await["preconditions"].take();
    assert_eq!(preconditions, json!({"uid": "u1"}));
}

#[tokio::test]
async fn status_is_merged_whole_with_its_zeros_and_guarded() {
    let request = write(2);
    let (line, kind) = lines(apps(&request));
    let status = "namespaces/default/replicasets/web/status?fieldManager=decree-agent";
    assert_eq!(line, format!("PATCH /apis/apps/v1/{status}"));
    assert_eq!(kind, "application/merge-patch+json");
    let patch = json!({
        "metadata": {"uid": "u1", "resourceVersion": "9"},
        "status": {
            "replicas": 2, "fullyLabeledReplicas": 0, "readyReplicas": 0, "availableReplicas": 0,
            "observedGeneration": 0, "terminatingReplicas": null, "conditions": null,
        },
    });
    assert_eq!(body(apps(&request)).await, patch);
}

#[tokio::test]
async fn status_of_a_custom_resource_says_which_pods_it_counts() {
    let resource = "replicasets.v1.decree.dev".parse().expect("it is one");
    let request = write(0);
    let (line, _) = lines(of(&resource, &request));
    let status = "namespaces/default/replicasets/web/status?fieldManager=decree-agent";
    assert_eq!(line, format!("PATCH /apis/decree.dev/v1/{status}"));
    let status = body(of(&resource, &request)).await["status"].take();
    assert_eq!(status["selector"], "app=web");
    let status = body(apps(&request)).await["status"].take();
    assert_eq!(status.get("selector"), None);
}

#[tokio::test]
async fn pod_of_json_is_its_template_with_a_name_and_an_owner() {
    let template = r#"{
        "metadata": {
            "labels": {"app": "web"}, "annotations": null, "finalizers": ["f/x"],
            "name": "ignored", "namespace": "ignored", "generateName": "ignored-",
            "ownerReferences": [{"uid": "ignored"}]
        },
        "spec": {"containers": [{"name": "c", "fieldOfTomorrow": {"deep": [1, null, 12345678901234567890.5]}}]},
        "tomorrow": {"x": 1}
    }"#;
    let request = create("n", template);
    let (line, kind) = lines(apps(&request));
    let query = "fieldManager=decree-agent&timeout=2500ms";
    assert_eq!(line, format!("POST /api/v1/namespaces/n/pods?{query}"));
    assert_eq!(kind, "application/json");
    let template: Value = serde_json::from_str(template).expect("it is JSON");
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "a", "generateName": "web-", "namespace": "n",
            "labels": {"app": "web"}, "finalizers": ["f/x"],
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs",
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": template["spec"],
        "tomorrow": {"x": 1},
    });
    assert_eq!(body(apps(&request)).await, pod);
    let text = apps(&request).expect("it can be expressed").into_body();
    let text = text.collect().await.expect("it is at hand").to_bytes();
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("12345678901234567890.5"), "no digit is lost");
}

#[tokio::test]
async fn owners_are_changed_strategically_and_only_on_the_pod_that_was_chosen() {
    let adopt = Request::AdoptPod {
        pod: object("a"),
        controller: controller(),
    };
    let (line, kind) = lines(apps(&adopt));
    assert_eq!(line, format!("PATCH {PODS}/a?fieldManager=decree-agent"));
    assert_eq!(kind, "application/strategic-merge-patch+json");
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs",
        "controller": true, "blockOwnerDeletion": true,
    });
    let patch = json!({"metadata": {"uid": "u1", "ownerReferences": [owner]}});
    assert_eq!(body(apps(&adopt)).await, patch);
    let release = Request::ReleasePod {
        pod: object("a"),
        owner_uid: "rs".into(),
    };
    let owner = json!({"$patch": "delete", "uid": "rs"});
    let patch = json!({"metadata": {"uid": "u1", "ownerReferences": [owner]}});
    assert_eq!(body(apps(&release)).await, patch);
}

#[test]
fn name_that_leads_elsewhere_is_never_sent() {
    let climbs = ["", ".", "..", "../secrets/s"];
    let strange = ["a/b", "a?b", "a%2fb", "a\nb", "ü"];
    for name in climbs.into_iter().chain(strange) {
        let refused = apps(&delete(name, None)).expect_err(name);
        assert_eq!(refused.code, Some(400), "{name:?}");
    }
    assert!(apps(&create("..", "{}")).is_err());
}
