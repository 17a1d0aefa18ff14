//! The unary calls that decide: `Decide` and `Simulate`.

use std::collections::HashMap;

use decree_api::v1::{self, decision_service_client::DecisionServiceClient};
use tests::objects::{pod, replica_set};
use tonic::{Code, Status, transport::Channel};

use crate::{
    agent::{Agent, named},
    refusal::{assert_field, assert_fits_headers, assert_limit, assert_refusal, fields},
    running::Running,
};

async fn decide(request: v1::DecideRequest) -> Result<v1::Decision, Status> {
    let server = Running::start().await;
    let answer = server.decisions().await.decide(request).await?;
    Ok(answer.into_inner().decision.expect("a decision"))
}

fn about(set: v1::ReplicaSet, pods: Vec<v1::Pod>) -> v1::DecideRequest {
    let decide_time = Some(prost_types::Timestamp {
        seconds: 1_800_000_000,
        nanos: 0,
    });
    v1::DecideRequest {
        replica_set: Some(set),
        pods,
        decide_time,
        ..v1::DecideRequest::default()
    }
}

/// Asks for the decision at other replicas, or as it is.
async fn simulate(
    client: &mut DecisionServiceClient<Channel>,
    request: v1::SimulateRequest,
) -> Result<v1::Decision, Status> {
    let answer = client.simulate(request).await?;
    Ok(answer.into_inner().decision.expect("a decision"))
}

fn imagine(replicas: Option<i32>) -> v1::SimulateRequest {
    v1::SimulateRequest {
        cluster: String::new(),
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        replicas,
        ..v1::SimulateRequest::default()
    }
}

#[tokio::test]
async fn decide_refuses_objects_that_are_listed_twice() {
    let set = replica_set("web").replicas(2).build();
    let mut request = about(
        set.clone(),
        vec![pod("a", "web").build(), pod("a", "web").build()],
    );
    let mut other = replica_set("other").build();
    other.uid = set.uid.clone();
    let of_same_name = v1::ReplicaSet {
        uid: "another".into(),
        ..set.clone()
    };
    request.other_replica_sets = vec![set, other, of_same_name, replica_set("o").build()];
    request.pods.push(v1::Pod {
        uid: "another".into(),
        ..pod("a", "web").build()
    });
    request.pods.push(pod("b", "web").build());
    let refusal = decide(request).await.expect_err("five objects too many");
    assert_refusal(&refusal, Code::InvalidArgument, "INVALID_FIELD");
    let expected = [
        "other_replica_sets[0]",
        "other_replica_sets[1]",
        "other_replica_sets[2]",
        "pods[1]",
        "pods[2]",
    ];
    let expected = expected.map(|field| (field.to_owned(), "DUPLICATE".to_owned()));
    assert_eq!(fields(&refusal), expected);
}

#[tokio::test]
async fn decide_says_why_a_replica_set_is_left_alone() {
    let negative = replica_set("web").replicas(-1).build();
    let mut misspelt = replica_set("web").build();
    misspelt.template_labels = [("app".to_owned(), "wbe".to_owned())].into();
    for (set, why) in [
        (negative, "0 or more"),
        (
            misspelt,
            "template_labels: do not match the selector: the label app must be web",
        ),
    ] {
        let decision = decide(about(set, vec![])).await;
        let decision = decision.expect("a bad field is no bad request");
        let told = decision.quarantined.expect(why);
        assert!(told.contains(why), "{told}");
        assert!(decision.creates.is_empty());
    }
}

#[tokio::test]
async fn decide_names_every_bad_field_by_its_path() {
    let mut request = about(replica_set("web").build(), vec![pod("a", "web").build()]);
    request.pods.push(v1::Pod {
        uid: String::new(),
        ..pod("b", "web").build()
    });
    request.other_replica_sets = vec![v1::ReplicaSet {
        name: "_".into(),
        ..replica_set("o").build()
    }];
    request.decide_time = Some(prost_types::Timestamp {
        seconds: 0,
        nanos: -1,
    });
    request.options = Some(v1::Options {
        burst_replicas: Some(5_001),
        ..v1::Options::default()
    });
    let refusal = decide(request).await.expect_err("four bad fields");
    assert_refusal(&refusal, Code::InvalidArgument, "INVALID_FIELD");
    let expected = [
        ("decide_time", "INVALID_TIME"),
        ("options.burst_replicas", "OUT_OF_RANGE"),
        ("other_replica_sets[0].name", "INVALID_NAME"),
        ("pods[1].uid", "REQUIRED"),
    ];
    let expected = expected.map(|(field, reason)| (field.to_owned(), reason.to_owned()));
    assert_eq!(fields(&refusal), expected);
    let refusal = decide(v1::DecideRequest::default()).await;
    assert_field(
        &refusal.expect_err("about nothing"),
        "replica_set",
        "REQUIRED",
    );
}

#[tokio::test]
async fn uid_decides_whose_pod_it_is_and_another_kind_contradicts_it() {
    let with_kind = |kind: &str| {
        let mut pod = pod("a", "web").build();
        let owner = pod.controller.as_mut().expect("it has one");
        kind.clone_into(&mut owner.kind);
        about(replica_set("web").replicas(1).build(), vec![pod])
    };
    let decision = decide(with_kind("")).await.expect("it is a ReplicaSet");
    assert_eq!(decision.creates, [""; 0]);
    let refusal = decide(with_kind("MachineSet")).await;
    let refusal = refusal.expect_err("the ReplicaSet of that uid is none");
    assert_refusal(&refusal, Code::InvalidArgument, "INVALID_FIELD");
    assert_field(&refusal, "pods[0].controller.kind", "UNKNOWN_VALUE");
    let mut of_another = with_kind("MachineSet");
    let owner = of_another.pods[0].controller.as_mut().expect("it has one");
    owner.uid = "other".into();
    let decision = decide(of_another).await.expect("another owner's pod");
    assert_eq!(decision.creates.len(), 1);
}

#[tokio::test]
async fn decide_with_more_objects_than_the_limit_is_refused() {
    let server = Running::start_within(|limits| limits.decide_objects_max = 3).await;
    let pods = |count| (0..count).map(|n| pod(&format!("p{n}"), "web").build());
    let mut client = server.decisions().await;
    let fits = about(replica_set("web").build(), pods(3).collect());
    client.decide(fits).await.expect("it is at the limit");
    let beyond = about(replica_set("web").build(), pods(4).collect());
    let costly = v1::DecideRequest {
        costs: (0..4).map(|n| (n.to_string(), n)).collect(),
        ..about(replica_set("web").build(), vec![])
    };
    for beyond in [beyond, costly] {
        let refusal = client.decide(beyond).await.expect_err("one too many");
        assert_limit(&refusal, "objects of a decision");
    }
    let mut agent = Agent::open_on(&server, "c1", vec![replica_set("web").build()], vec![]).await;
    agent.prove_alive().await;
    let costly = v1::SimulateRequest {
        costs: (0..4).map(|n| (n.to_string(), n)).collect(),
        ..imagine(Some(1))
    };
    let refusal = simulate(&mut client, costly).await;
    assert_limit(&refusal.expect_err("one too many"), "objects of a decision");
}

#[tokio::test]
async fn costs_that_pods_would_answer_take_the_place_of_annotations() {
    let set = |replicas| replica_set("web").replicas(replicas).build();
    let pods = || ["a", "b"].map(|name| pod(name, "web").build()).to_vec();
    let server = Running::start().await;
    let mut agent = Agent::open_on(&server, "laptop", vec![set(2)], pods()).await;
    agent.prove_alive().await;
    for (costs, victim, detail) in [
        (vec![], "a", "a-uid < b-uid"),
        (
            vec![("a", 17), ("b", 3)],
            "b",
            "deletion cost 3 (asked) < 17 (asked)",
        ),
        (
            vec![("a", 17), ("c", -3)],
            "b",
            "deletion cost 0 < 17 (asked)",
        ),
    ] {
        let costs = costs.into_iter().map(|(pod, cost)| (pod.to_owned(), cost));
        let costs: HashMap<_, _> = costs.collect();
        let simulated = v1::SimulateRequest {
            costs: costs.clone(),
            ..imagine(Some(1))
        };
        let simulated = simulate(&mut server.decisions().await, simulated).await;
        let decided = v1::DecideRequest {
            costs,
            ..about(set(1), pods())
        };
        for decision in [simulated, decide(decided).await] {
            let deletes = decision.expect("it is decided").deletes;
            let reason = deletes[0].reason.clone().expect("a reason");
            assert_eq!(deletes[0].pod.clone().expect("a pod").name, victim);
            assert!(reason.detail.contains(detail), "{detail}: {reason:?}");
        }
    }
}

#[tokio::test]
async fn decide_with_a_huge_object_names_it() {
    let huge = v1::Pod {
        name: "x".repeat(512 << 10),
        ..pod("a", "web").build()
    };
    let refusal = decide(about(replica_set("web").build(), vec![huge])).await;
    let refusal = refusal.expect_err("no pod is so large");
    assert_refusal(&refusal, Code::InvalidArgument, "INVALID_FIELD");
    assert_eq!(fields(&refusal)[0].0, "pods[0]");
    assert_fits_headers(&refusal);
}

#[tokio::test]
async fn simulate_needs_a_cluster_where_there_are_several() {
    let server = Running::start().await;
    let mut agents = Vec::new();
    // Two have one name, and the name of a third is the uid of the first.
    for (uid, name) in [
        ("c1", "north"),
        ("c2", "north"),
        ("c3", "c1"),
        ("c4", "south"),
    ] {
        let (mut agent, _) = Agent::open_with(&server, named(uid, name)).await;
        let sets = vec![replica_set("web").build()];
        agent.snapshot(sets, vec![]).await;
        agent.prove_alive().await;
        agents.push(agent);
    }
    let in_cluster = |cluster: &str| v1::SimulateRequest {
        cluster: cluster.to_owned(),
        ..imagine(Some(2))
    };
    let mut client = server.decisions().await;
    let mut inspection = server.inspection().await;
    for (word, uids) in [("north", ["c1", "c2"]), ("c1", ["c1", "c3"])] {
        let list = v1::ListReplicaSetsRequest {
            cluster: word.to_owned(),
            ..v1::ListReplicaSetsRequest::default()
        };
        let refusals = [
            simulate(&mut client, in_cluster(word)).await.err(),
            inspection.list_replica_sets(list).await.err(),
        ];
        for refusal in refusals {
            let refusal = refusal.expect("which one?");
            assert_refusal(&refusal, Code::InvalidArgument, "CLUSTER_AMBIGUOUS");
            let are_named = uids.iter().all(|uid| refusal.message().contains(uid));
            assert!(are_named, "{refusal}");
        }
    }
    let refusal = simulate(&mut client, imagine(None)).await;
    let refusal = refusal.expect_err("which one?");
    assert_refusal(&refusal, Code::InvalidArgument, "CLUSTER_REQUIRED");
    assert_eq!(fields(&refusal)[0].0, "cluster");
    for cluster in ["c2", "c4", "south"] {
        let decision = simulate(&mut client, in_cluster(cluster)).await;
        assert_eq!(decision.expect(cluster).creates.len(), 2, "{cluster}");
    }
}

#[tokio::test]
async fn simulate_checks_its_fields() {
    let server = Running::start().await;
    let mut client = server.decisions().await;
    let negative = simulate(&mut client, imagine(Some(-1))).await;
    let negative = negative.expect_err("out of range");
    assert_field(&negative, "replicas", "OUT_OF_RANGE");
    let nothing = simulate(&mut client, v1::SimulateRequest::default()).await;
    let named = fields(&nothing.expect_err("of what?"));
    let named: Vec<_> = named.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(named, ["name", "namespace"]);
}
