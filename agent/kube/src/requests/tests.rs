//! What is sent for each call, and what cannot be.

use std::time::Duration;

use super::*;

fn lines(request: Result<http::Request<Body>, ApiError>) -> (String, String) {
    let request = request.expect("it can be expressed");
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|it| it.to_str().ok()).unwrap_or_default();
    (
        format!("{} {}", request.method(), request.uri()),
        kind.to_owned(),
    )
}

async fn body(request: Result<http::Request<Body>, ApiError>) -> Value {
    let request = request.expect("it can be expressed");
    let bytes = request.into_body().collect_bytes().await;
    codec::whole(&bytes.expect("it is at hand")).expect("it is JSON")
}

fn apps(request: &Request) -> Result<http::Request<Body>, ApiError> {
    of(&Resource::default(), request)
}

fn delete(name: &str, resource_version: Option<&str>) -> Request {
    Request::DeletePod {
        namespace: "default".into(),
        name: name.into(),
        uid: "u1".into(),
        resource_version: resource_version.map(str::to_owned),
    }
}

#[tokio::test]
async fn deletion_names_the_pod_that_was_chosen() {
    let request = apps(&delete("a", Some("7")));
    let (line, _) = lines(apps(&delete("a", None)));
    assert_eq!(line, "DELETE /api/v1/namespaces/default/pods/a");
    let preconditions = body(request).await["preconditions"].take();
    assert_eq!(preconditions, json!({"uid": "u1", "resourceVersion": "7"}));
    let preconditions = body(apps(&delete("a", None))).await["preconditions"].take();
    assert_eq!(preconditions, json!({"uid": "u1"}));
}

#[tokio::test]
async fn status_is_merged_whole_with_its_zeros_and_guarded() {
    let replica_set = json!({
        "metadata": {"namespace": "default", "name": "web", "uid": "u1", "resourceVersion": "9",
            "labels": {"app": "web"}},
        "spec": {"replicas": 3},
        "status": {"replicas": 2},
    });
    let request = Request::ReplaceStatus { replica_set };
    let (line, kind) = lines(apps(&request));
    assert_eq!(
        line,
        "PATCH /apis/apps/v1/namespaces/default/replicasets/web/status?fieldManager=decree-agent"
    );
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
    let replica_set = json!({
        "metadata": {"namespace": "default", "name": "web", "uid": "u1", "resourceVersion": "9"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    });
    let resource = "replicasets.v1.decree.dev".parse().expect("it is one");
    let request = Request::ReplaceStatus { replica_set };
    let (line, _) = lines(of(&resource, &request));
    assert_eq!(
        line,
        "PATCH /apis/decree.dev/v1/namespaces/default/replicasets/web/status?fieldManager=decree-agent"
    );
    let status = body(of(&resource, &request)).await["status"].take();
    assert_eq!(status["selector"], "app=web");
    let status = body(apps(&request)).await["status"].take();
    assert_eq!(status.get("selector"), None);
}

#[test]
fn pod_is_created_where_it_says_and_patched_strategically() {
    let pod = json!({"metadata": {"namespace": "n", "name": "a"}});
    let timeout = Duration::from_millis(2_500);
    let (line, _) = lines(apps(&Request::CreatePod { pod, timeout }));
    assert_eq!(
        line,
        "POST /api/v1/namespaces/n/pods?fieldManager=decree-agent&timeout=2500ms"
    );
    let (line, kind) = lines(apps(&Request::PatchPod {
        namespace: "n".into(),
        name: "a".into(),
        patch: json!({}),
    }));
    assert_eq!(
        line,
        "PATCH /api/v1/namespaces/n/pods/a?fieldManager=decree-agent"
    );
    assert_eq!(kind, "application/strategic-merge-patch+json");
}

#[test]
fn name_that_leads_elsewhere_is_never_sent() {
    for name in [
        "",
        ".",
        "..",
        "a/b",
        "a?b",
        "a%2fb",
        "a\nb",
        "../secrets/s",
        "ü",
    ] {
        let refused = apps(&delete(name, None)).expect_err(name);
        assert_eq!(refused.code, Some(400), "{name:?}");
    }
    let pod = json!({"metadata": {"namespace": "..", "name": "a"}});
    let timeout = Duration::from_secs(1);
    assert!(apps(&Request::CreatePod { pod, timeout }).is_err());
}

#[test]
fn pods_are_seen_whatever_the_selector() {
    let scope = Scope {
        namespace: None,
        resource: Resource::default(),
        label_selector: Some("tier in (a, b)".into()),
    };
    let page = |kind, next| scope.page(kind, 500, next).expect("valid");
    assert_eq!(
        page(Kind::ReplicaSet, None),
        "/apis/apps/v1/replicasets?limit=500&labelSelector=tier%20in%20%28a%2C%20b%29"
    );
    assert_eq!(
        page(Kind::Pod, Some("t=")),
        "/api/v1/pods?limit=500&continue=t%3D"
    );
}

#[test]
fn watch_asks_for_bookmarks_from_a_version_on() {
    let scope = Scope {
        namespace: Some("n".into()),
        resource: Resource::default(),
        label_selector: None,
    };
    assert_eq!(
        scope.watch(Kind::Pod, "12", 300).expect("valid"),
        "/api/v1/namespaces/n/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=12"
    );
}

#[test]
fn custom_resource_is_read_at_its_own_path() {
    let scope = Scope {
        namespace: None,
        resource: "replicasets.v1.decree.dev".parse().expect("it is one"),
        label_selector: None,
    };
    let page = |kind| scope.page(kind, 500, None).expect("valid");
    assert_eq!(
        page(Kind::ReplicaSet),
        "/apis/decree.dev/v1/replicasets?limit=500"
    );
    assert_eq!(page(Kind::Pod), "/api/v1/pods?limit=500");
}
