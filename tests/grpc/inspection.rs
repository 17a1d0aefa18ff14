//! The inspection of a server: ReplicaSets in pages, one in detail, and the sessions.

use std::time::Duration;

use decree_api::v1;
use tests::objects::{pod, replica_set};
use tokio::time;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::{
    agent::{Agent, get_web, hello, named},
    refusal::{assert_field, assert_refusal},
    running::{Running, soon},
};

type Client = v1::inspection_service_client::InspectionServiceClient<tonic::transport::Channel>;

/// `cluster/namespace/name` of all pages of a list.
async fn list(client: &mut Client, mut request: v1::ListReplicaSetsRequest) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    loop {
        let page = client.list_replica_sets(request.clone()).await;
        let page = page.expect("valid").into_inner();
        let name = |summary: &v1::ReplicaSetSummary| {
            let object = summary.replica_set.clone().expect("a name");
            format!("{}/{}/{}", summary.cluster, object.namespace, object.name)
        };
        pages.push(page.replica_sets.iter().map(name).collect());
        if page.next_page_token.is_empty() {
            return pages;
        }
        request.page_token = page.next_page_token;
    }
}

fn paged(page_size: i32) -> v1::ListReplicaSetsRequest {
    v1::ListReplicaSetsRequest {
        page_size,
        ..v1::ListReplicaSetsRequest::default()
    }
}

/// Opens sessions of two clusters, one of them in two shards, whose ReplicaSets need no action.
async fn three_sessions(server: &Running) -> [Agent; 3] {
    let sets = |names: &[(&str, &str)]| {
        let build =
            |&(namespace, name): &(&str, &str)| replica_set(name).namespace(namespace).build();
        names.iter().map(build).collect::<Vec<_>>()
    };
    let north = |shard: &str| v1::Hello {
        shard: shard.to_owned(),
        ..named("z-uid", "north")
    };
    let (mut one, _) = Agent::open_with(server, north("a")).await;
    one.snapshot(sets(&[("blue", "b"), ("blue", "d")]), vec![])
        .await;
    let (mut two, _) = Agent::open_with(server, north("b")).await;
    two.snapshot(sets(&[("blue", "c"), ("azure", "z")]), vec![])
        .await;
    let mut three = Agent::open_on(server, "east", sets(&[("blue", "a")]), vec![]).await;
    // A session has processed its input once it has answered.
    for agent in [&mut one, &mut two, &mut three] {
        agent.prove_alive().await;
    }
    [one, two, three]
}

#[tokio::test]
async fn pages_are_sorted_and_can_be_narrowed() {
    let server = Running::start().await;
    let _sessions = three_sessions(&server).await;
    let mut client = server.inspection().await;
    let everything = [
        "east/blue/a",
        "east/default/proof-of-life",
        "north/azure/z",
        "north/blue/b",
        "north/blue/c",
        "north/blue/d",
        "north/default/proof-of-life",
        "north/default/proof-of-life",
    ];
    assert_eq!(list(&mut client, paged(0)).await, [everything]);
    let pages = list(&mut client, paged(3)).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 2]);
    assert_eq!(pages.concat(), everything);
    for cluster in ["north", "z-uid"] {
        let narrowed = v1::ListReplicaSetsRequest {
            cluster: cluster.to_owned(),
            namespace: "blue".to_owned(),
            ..paged(2)
        };
        let pages = list(&mut client, narrowed).await;
        assert_eq!(
            pages.concat(),
            ["north/blue/b", "north/blue/c", "north/blue/d"],
            "{cluster}"
        );
    }
    let shard = v1::ListReplicaSetsRequest {
        shard: "b".to_owned(),
        ..paged(2)
    };
    assert_eq!(
        list(&mut client, shard).await.concat(),
        [
            "north/azure/z",
            "north/blue/c",
            "north/default/proof-of-life"
        ]
    );
    let nowhere = v1::ListReplicaSetsRequest {
        cluster: "south".to_owned(),
        ..paged(2)
    };
    assert_eq!(list(&mut client, nowhere).await, [Vec::<String>::new()]);
}

#[tokio::test]
async fn one_replica_set_shows_what_it_waits_for_and_its_decisions() {
    let server = Running::start().await;
    let sets = vec![replica_set("web").replicas(3).build()];
    let mut agent = Agent::open_on(&server, "c1", sets, vec![pod("a", "web").build()]).await;
    let batch = agent.batch().await;
    let request = get_web("c1");
    let mut client = server.inspection().await;
    let found = client.get_replica_set(request.clone()).await;
    let found = found.expect("known").into_inner();
    let in_flight = v1::BatchInFlight {
        action: v1::Action::Create.into(),
        operations: 2,
        outcomes: 0,
    };
    assert_eq!(found.in_flight, Some(in_flight));
    let [decision] = found.decisions.as_slice() else {
        panic!("{found:?}")
    };
    let counts = (decision.batch_id, decision.operations);
    assert_eq!(counts, (batch.id, 2));
    assert_eq!(decision.action(), v1::Action::Create);
    assert_eq!(decision.targets.len(), 2);
    let summary = found.summary.expect("a summary");
    assert_eq!((summary.replicas, summary.active, summary.ready), (3, 1, 1));
    assert_eq!(summary.state(), v1::ReplicaSetState::Acting);
    let unknown = v1::GetReplicaSetRequest {
        name: "nope".to_owned(),
        ..request
    };
    let refusal = client.get_replica_set(unknown).await;
    let refusal = refusal.expect_err("not there");
    assert_refusal(&refusal, Code::NotFound, "REPLICA_SET_UNKNOWN");
    let resource = refusal.get_details_resource_info();
    assert_eq!(resource.expect("a name").resource_name, "default/nope");
}

#[tokio::test]
async fn causes_name_kubectl_only_to_kubernetes() {
    let server = Running::start().await;
    let mut inspection = server.inspection().await;
    let bad = || vec![replica_set("web").replicas(-1).build()];
    for (cluster, platform, has_command) in [
        ("said", v1::Platform::Kubernetes, true),
        ("unsaid", v1::Platform::Unspecified, true),
        ("other", v1::Platform::Other, false),
    ] {
        let hello = v1::Hello {
            platform: platform.into(),
            ..hello(cluster)
        };
        let (mut agent, _) = Agent::open_with(&server, hello).await;
        agent.snapshot(bad(), vec![]).await;
        agent.rejection().await;
        let found = inspection.get_replica_set(get_web(cluster)).await;
        let summary = found.expect("it is known").into_inner().summary;
        let cause = summary.and_then(|it| it.cause).expect("it is left alone");
        let command = cause.next_command;
        assert_eq!(command.starts_with("kubectl "), has_command, "{command}");
        assert_eq!(command.is_empty(), !has_command, "{command}");
    }
}

#[tokio::test]
async fn sessions_are_listed_with_what_they_hold() {
    let server = Running::start().await;
    let _sessions = three_sessions(&server).await;
    let mut client = server.inspection().await;
    let answer = client
        .list_sessions(v1::ListSessionsRequest::default())
        .await;
    let sessions = answer.expect("valid").into_inner().sessions;
    let mut request = v1::ListSessionsRequest {
        page_size: 2,
        ..v1::ListSessionsRequest::default()
    };
    let mut pages = Vec::new();
    while pages.is_empty() || !request.page_token.is_empty() {
        let page = client.list_sessions(request.clone()).await;
        let page = page.expect("valid").into_inner();
        request.page_token = page.next_page_token;
        pages.push(page.sessions);
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    let id = |session: &v1::SessionSummary| session.session_id.clone();
    let ids = |sessions: &[v1::SessionSummary]| sessions.iter().map(id).collect::<Vec<_>>();
    assert_eq!(ids(&pages.concat()), ids(&sessions));
    request.page_token = "made up".to_owned();
    let refusal = client.list_sessions(request).await.expect_err("not ours");
    assert_field(&refusal, "page_token", "INVALID_TEXT");
    let places: Vec<_> = sessions
        .iter()
        .map(|session| (session.cluster_uid.as_str(), session.shard.as_str()))
        .collect();
    assert_eq!(places, [("east", ""), ("z-uid", "a"), ("z-uid", "b")]);
    let north = &sessions[1];
    assert_eq!((north.replica_sets, north.pods), (3, 0));
    assert_eq!(
        (north.agent_instance.as_str(), north.cluster_name.as_str()),
        ("z-uid", "north")
    );
    assert_eq!(north.mode(), v1::Mode::Enforce);
    assert_eq!(north.replica_sets_version, "100");
    assert!(north.synced && north.start_time.is_some());
}

/// All differences, in pages of one.
async fn one_by_one(
    ask: &mut impl AsyncFnMut(v1::ListDifferencesRequest) -> v1::ListDifferencesResponse,
) -> Vec<v1::Difference> {
    let mut request = v1::ListDifferencesRequest {
        page_size: 1,
        ..v1::ListDifferencesRequest::default()
    };
    let mut pages = Vec::new();
    while pages.is_empty() || !request.page_token.is_empty() {
        let page = ask(request.clone()).await;
        assert_eq!((page.differences.len(), page.shadows), (1, 1));
        request.page_token = page.next_page_token;
        pages.extend(page.differences);
    }
    pages
}

#[tokio::test]
async fn differences_of_a_shadow_are_listed() {
    differences_are_listed(v1::Mode::Shadow).await;
}

#[tokio::test]
async fn differences_beside_advice_are_listed() {
    differences_are_listed(v1::Mode::Advise).await;
}

async fn differences_are_listed(mode: v1::Mode) {
    let server = Running::start().await;
    let mut client = server.inspection().await;
    let mut ask = async |request: v1::ListDifferencesRequest| {
        let answer = client.list_differences(request).await;
        answer.expect("it is valid").into_inner()
    };
    let all = v1::ListDifferencesRequest::default();
    let _acting = Agent::open_on(&server, "west", vec![], vec![]).await;
    assert_eq!(
        ask(all.clone()).await,
        v1::ListDifferencesResponse::default()
    );

    let watching = v1::Hello {
        mode: mode.into(),
        ..hello("east")
    };
    let (mut shadow, _) = Agent::open_with(&server, watching).await;
    let sets = ["api", "web"].map(|name| replica_set(name).build());
    shadow.snapshot(sets.into(), vec![]).await;
    // The other controller adopts pods that their ReplicaSets do not select.
    for (name, set, version) in [("stranger", "web", 102), ("wanderer", "api", 104)] {
        let stranger = v1::Pod {
            labels: [("app".to_owned(), "other".to_owned())].into(),
            ..pod(name, set).version(version).build()
        };
        let orphan = v1::Pod {
            controller: None,
            resource_version: (version - 1).to_string(),
            ..stranger.clone()
        };
        for pod in [orphan, stranger] {
            shadow.event(v1::event::Event::PodApplied(pod)).await;
        }
    }
    let mut looks = time::interval(Duration::from_millis(25));
    let told = soon(async {
        loop {
            looks.tick().await;
            let answer = ask(all.clone()).await;
            assert_eq!(answer.shadows, 1);
            if answer.differences.len() == 2 {
                return answer.differences;
            }
        }
    })
    .await;
    assert_eq!(one_by_one(&mut ask).await, told);
    let of_web = |it: &v1::Difference| it.replica_set.as_ref().is_some_and(|it| it.name == "web");
    let told = told.into_iter().find(of_web).expect("it is told");
    assert_eq!(told.subject(), v1::Subject::Adoption);
    let sides = [&*told.decided, &told.done];
    assert_eq!(sides, ["leave stranger alone", "adopted stranger"]);
    assert!(!told.why.is_empty());
    assert_eq!(told.departure(), v1::Departure::Unspecified);
    assert_eq!(
        (told.cluster.as_str(), told.detect_time.is_some()),
        ("east", true)
    );
    assert_eq!(told.replica_set.map(|set| set.name), Some("web".to_owned()));
    let elsewhere = |namespace: &str, shard: &str| v1::ListDifferencesRequest {
        namespace: namespace.to_owned(),
        shard: shard.to_owned(),
        ..all.clone()
    };
    assert_eq!(ask(elsewhere("elsewhere", "")).await.differences, []);
    assert_eq!(ask(elsewhere("", "b")).await.shadows, 0);
}
