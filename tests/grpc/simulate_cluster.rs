//! `SimulateCluster`: the effect of a drain and a quota, in pages and across shards.

use decree_api::v1::{self, simulate_cluster_request::Change};
use tests::objects::{pod, replica_set};
use tonic::{Code, Status};

use crate::{
    agent::{Agent, hello},
    refusal::{assert_field, assert_refusal},
    running::Running,
};

fn drain(node: &str) -> Option<Change> {
    let node = node.to_owned();
    Some(Change::NodeDrain(v1::NodeDrain { node }))
}

fn quota(namespace: &str, pods: i32) -> Option<Change> {
    let namespace = namespace.to_owned();
    Some(Change::PodQuota(v1::PodQuota { namespace, pods }))
}

fn of(change: Option<Change>) -> v1::SimulateClusterRequest {
    v1::SimulateClusterRequest {
        change,
        ..v1::SimulateClusterRequest::default()
    }
}

async fn ask(
    server: &Running,
    request: v1::SimulateClusterRequest,
) -> Result<v1::SimulateClusterResponse, Status> {
    let answer = server.inspection().await.simulate_cluster(request).await;
    Ok(answer?.into_inner())
}

/// The names, creates and refused creates of all pages; 0 asks for pages of the default size.
async fn pages(server: &Running, change: Option<Change>, page_size: i32) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut request = v1::SimulateClusterRequest {
        page_size,
        ..of(change)
    };
    loop {
        let page = ask(server, request.clone()).await.expect("valid");
        let row = |set: &v1::ReplicaSetEffect| {
            let object = set.replica_set.clone().expect("a name");
            let v1::ReplicaSetEffect {
                deleted,
                creates,
                refused_min,
                refused_max,
                ..
            } = set;
            format!(
                "{}/{} -{deleted} +{creates} {refused_min}-{refused_max}",
                object.namespace, object.name
            )
        };
        pages.push(page.replica_sets.iter().map(row).collect());
        if page.next_page_token.is_empty() {
            return pages;
        }
        request.page_token = page.next_page_token;
    }
}

fn pods(set: &str, namespace: &str, count: usize) -> impl Iterator<Item = v1::Pod> {
    (0..count).map(move |number| v1::Pod {
        namespace: namespace.to_owned(),
        ..pod(&format!("{set}-{number}"), set).build()
    })
}

/// Opens two shards of a cluster, whose ReplicaSets have pods on node-a.
async fn shards(server: &Running) -> [Agent; 2] {
    let shard = |shard: &str| v1::Hello {
        shard: shard.to_owned(),
        ..hello("c1")
    };
    let set = |name: &str, namespace: &str, replicas| {
        replica_set(name)
            .replicas(replicas)
            .namespace(namespace)
            .build()
    };
    let (mut one, _) = Agent::open_with(server, shard("a")).await;
    let all = pods("api", "blue", 2).chain(pods("web", "red", 3));
    one.snapshot(
        vec![set("api", "blue", 4), set("web", "red", 1)],
        all.collect(),
    )
    .await;
    let (mut two, _) = Agent::open_with(server, shard("b")).await;
    let all = pods("cart", "blue", 2).chain(pods("shop", "green", 1));
    two.snapshot(
        vec![set("cart", "blue", 3), set("shop", "green", 1)],
        all.collect(),
    )
    .await;
    // The decisions show that the lists have arrived. Nobody executes them, so that the views stay unchanged.
    for agent in [&mut one, &mut two] {
        agent.batches().await;
    }
    [one, two]
}

const DRAINED: [&str; 4] = [
    "blue/api -2 +4 0-0",
    "blue/cart -2 +3 0-0",
    "green/shop -1 +1 0-0",
    "red/web -3 +1 0-0",
];

#[tokio::test]
async fn drain_is_told_of_all_shards_page_by_page() {
    let server = Running::start().await;
    let _agents = shards(&server).await;
    assert_eq!(pages(&server, drain("node-a"), 0).await, [DRAINED]);
    let paged = pages(&server, drain("node-a"), 3).await;
    assert_eq!(paged.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1]);
    assert_eq!(paged.concat(), DRAINED);
    assert_eq!(pages(&server, drain("node-x"), 0).await, [[""; 0]]);
}

#[tokio::test]
async fn quota_counts_all_shards_of_its_namespace() {
    let server = Running::start().await;
    let _agents = shards(&server).await;
    // Four pods count, and three creates are due: two of api and one of cart.
    for (limit, rows, refused) in [
        (3, vec!["blue/api -0 +2 2-2", "blue/cart -0 +1 1-1"], 3),
        (5, vec!["blue/api -0 +2 1-2", "blue/cart -0 +1 0-1"], 2),
        (6, vec!["blue/api -0 +2 0-1", "blue/cart -0 +1 0-1"], 1),
        (7, vec![], 0),
    ] {
        assert_eq!(
            pages(&server, quota("blue", limit), 0).await,
            [rows],
            "{limit}"
        );
        let answer = ask(&server, of(quota("blue", limit))).await.expect("valid");
        let sums = answer.quota.expect("the sums of the namespace");
        assert_eq!(
            (sums.pods, sums.creates, sums.refused),
            (4, 3, refused),
            "{limit}"
        );
    }
    // Web has two surplus pods; after their deletion, there is room for two.
    let answer = ask(&server, of(quota("red", 0))).await.expect("valid");
    let sums = answer.quota.expect("the sums of the namespace");
    assert_eq!((sums.pods, sums.creates, sums.refused), (3, 0, 0));
}

#[tokio::test]
async fn question_about_a_change_is_checked() {
    let server = Running::start().await;
    let refusal = ask(&server, of(drain("node-a"))).await;
    let refusal = refusal.expect_err("no session");
    assert_refusal(&refusal, Code::NotFound, "CLUSTER_UNKNOWN");
    let _one = Agent::open_on(&server, "c1", vec![], vec![]).await;
    for (change, field, fault) in [
        (None, "change", "REQUIRED"),
        (drain(""), "node_drain.node", "REQUIRED"),
        (drain(&"n".repeat(254)), "node_drain.node", "INVALID_TEXT"),
        (quota("", 1), "pod_quota.namespace", "REQUIRED"),
        (quota("blue", -1), "pod_quota.pods", "OUT_OF_RANGE"),
    ] {
        let refusal = ask(&server, of(change)).await.expect_err(field);
        assert_field(&refusal, field, fault);
    }
    for request in [
        v1::SimulateClusterRequest {
            page_size: -1,
            ..of(drain("node-a"))
        },
        v1::SimulateClusterRequest {
            page_token: "made up".to_owned(),
            ..of(drain("node-a"))
        },
    ] {
        let refusal = ask(&server, request).await.expect_err("not a page");
        assert_refusal(&refusal, Code::InvalidArgument, "INVALID_FIELD");
    }
    let _two = Agent::open_on(&server, "c2", vec![], vec![]).await;
    let refusal = ask(&server, of(drain("node-a"))).await;
    let refusal = refusal.expect_err("which one?");
    assert_refusal(&refusal, Code::InvalidArgument, "CLUSTER_REQUIRED");
}
