//! `decree check` as a user who may do all but use Leases.

use axum::{
    Json, Router, body,
    extract::{Request, State},
    http::StatusCode,
};
use expect_test::expect;
use serde_json::{Value, json};

use super::{cluster::Api, decree};
use crate::Exit;

/// Answers as an API server with probes in these namespaces.
async fn answer(
    State(probes): State<Vec<&'static str>>,
    request: Request,
) -> (StatusCode, Json<Value>) {
    let answer = match request.uri().path() {
        "/version" => json!({"gitVersion": "v1.36.3"}),
        "/apis/apps/v1/replicasets" => {
            let probes = probes.iter();
            let probes = probes.map(|namespace| json!({"metadata": {"namespace": namespace}}));
            json!({"items": probes.collect::<Vec<_>>()})
        }
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
            let review = body::to_bytes(request.into_body(), 1 << 16).await;
            let review: Value =
                serde_json::from_slice(&review.expect("it is short")).expect("it is JSON");
            let group = &review["spec"]["resourceAttributes"]["group"];
            json!({"status": {"allowed": group != "coordination.k8s.io"}})
        }
        _ => {
            let status = json!({"kind": "Status", "apiVersion": "v1", "message": "forbidden"});
            return (StatusCode::FORBIDDEN, Json(status));
        }
    };
    (StatusCode::OK, Json(answer))
}

/// The exit code, and a line for each finding.
fn checked(probes: &[&'static str], flags: &[&str]) -> (Exit, String) {
    let router = Router::new().fallback(answer).with_state(probes.to_vec());
    let api = Api::serve(router);
    let line = [
        ["check", "--kubeconfig", &api.kubeconfig],
        ["--server", "http://127.0.0.1:1", "--agent=off"],
        ["--only=permissions", "--only=agent", "-o=json"],
    ];
    let ended = decree(&[&line.concat()[..], flags].concat());
    let found: Vec<Value> = serde_json::from_str(&ended.out).expect(&ended.err);
    let lines = found.iter().map(|it| {
        let text = |key: &str| it[key].as_str().expect("it is text");
        let (result, check) = (text("result"), text("check"));
        format!("{result} {check}: {}\n", text("detail"))
    });
    (ended.exit, lines.collect())
}

#[test]
fn lease_is_looked_for_where_the_only_probe_is() {
    for (probes, flags, place) in [
        (
            &["decree-system"][..],
            &["--lease-namespace", "mine"][..],
            "mine",
        ),
        (&["decree-system"], &[], "decree-system"),
        (&["decree-system", "other"], &[], "kube-system"),
        (&[], &[], "kube-system"),
        (
            &["decree-system"],
            &["--resource", "replicasets.v1.decree.dev"],
            "kube-system",
        ),
    ] {
        let (_, found) = checked(probes, flags);
        let lease = format!(" lease {place}/decree-agent: ");
        assert!(found.contains(&lease), "{probes:?} {flags:?}: {found}");
    }
}

#[test]
fn agent_that_acts_on_nothing_may_lack_its_lease() {
    let (exit, found) = checked(&["decree-system"], &["--mode=shadow"]);
    expect![[r#"
        WARN may elect a leader: not granted: create leases.coordination.k8s.io in decree-system, get leases.coordination.k8s.io/decree-agent in decree-system, update leases.coordination.k8s.io/decree-agent in decree-system
        WARN lease decree-system/decree-agent: forbidden
    "#]]
    .assert_eq(&found);
    assert_eq!(exit, Exit::Done);
    for flags in [&["--mode=enforce"][..], &["--mode=shadow", "--shard=0/4"]] {
        let (exit, found) = checked(&["decree-system"], flags);
        assert_eq!(exit, Exit::No, "{found}");
        let failed = "FAIL may create leases.coordination.k8s.io in decree-system: not granted\n";
        assert!(found.starts_with(failed), "{found}");
        assert!(found.contains("FAIL lease decree-system/"), "{found}");
    }
}
