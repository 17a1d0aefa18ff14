//! Answers about an agent that has stopped reading: nothing is left out, and the stale view is named.

use std::time::Duration;

use decree_api::v1::{
    self, decision_service_client::DecisionServiceClient, event::Event, reconcile_request::Frame,
    simulate_cluster_request::Change,
};
use tests::objects::replica_set;
use tokio::time;
use tonic::transport::Channel;

type Client = v1::inspection_service_client::InspectionServiceClient<Channel>;

use crate::{
    agent::{Agent, hello},
    running::{Running, soon, unhurried},
};

/// The number of ReplicaSets of the agent that does not read, and the number of replicas of those that are scaled up. The batches for a few
/// of them fill the queues on the way to the agent.
const SETS: usize = 100;
const REPLICAS: i32 = 500;
/// The HTTP/2 windows of that agent, in bytes.
const WINDOW: u32 = 65_535;

fn name(number: usize) -> String {
    format!("{}-{number}", "w".repeat(60))
}

fn shard(shard: &str) -> v1::Hello {
    v1::Hello {
        shard: shard.to_owned(),
        ..hello("c1")
    }
}

/// Opens a session of shard `a`, which reads no batch.
async fn unread(server: &Running) -> Agent {
    let endpoint = Channel::from_shared(format!("http://{}", server.addresses.grpc));
    let endpoint = endpoint.expect("a valid URL");
    let endpoint = endpoint
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    let channel = soon(endpoint.connect()).await.expect("it listens");
    let agent = Agent::connect_by(DecisionServiceClient::new(channel)).await;
    let (mut agent, _) = agent.greet(shard("a")).await;
    let sets = (0..SETS).map(|number| replica_set(&name(number)).build());
    agent.snapshot(sets.collect(), vec![]).await;
    agent
}

fn scaled(number: usize) -> Event {
    Event::ReplicaSetApplied(v1::ReplicaSet {
        resource_version: "101".to_owned(),
        ..replica_set(&name(number)).replicas(REPLICAS).build()
    })
}

/// Scales one ReplicaSet after the other up, until the server says that the agent does not read.
async fn scale_up(agent: &mut Agent, client: &mut Client) -> v1::ListSessionsResponse {
    let mut ticks = time::interval(Duration::from_millis(25));
    for number in 0.. {
        ticks.tick().await;
        if number < SETS {
            agent.event(scaled(number)).await;
        }
        let listed = client
            .list_sessions(v1::ListSessionsRequest::default())
            .await;
        let listed = listed.expect("valid").into_inner();
        if !listed.stale_views.is_empty() {
            return listed;
        }
    }
    unreachable!("the numbers have no end")
}

/// Requires that an answer names the view of shard `a`, and only this.
fn assert_named(views: &[v1::StaleView]) {
    let [view] = views else { panic!("{views:?}") };
    let named = (&*view.cluster, &*view.shard, view.missing);
    assert_eq!(named, ("c1", "a", false));
    assert!(view.age.is_some_and(|age| age.seconds >= 1), "{view:?}");
}

/// Requires answers about a ReplicaSet, whether its view is stale or not.
async fn assert_answers(server: &Running, name: &str, is_stale: bool) {
    let get = v1::GetReplicaSetRequest {
        cluster: "c1".to_owned(),
        namespace: "default".to_owned(),
        name: name.to_owned(),
        shard: String::new(),
    };
    let found = server.inspection().await.get_replica_set(get).await;
    let found = found.expect(name).into_inner();
    assert_eq!(found.stale_view.is_some(), is_stale, "{name}");
    let simulate = v1::SimulateRequest {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        replicas: Some(3),
        ..v1::SimulateRequest::default()
    };
    let found = server.decisions().await.simulate(simulate).await;
    let found = found.expect(name).into_inner();
    assert_eq!(found.stale_view.is_some(), is_stale, "{name}");
    assert_eq!(found.decision.map(|it| it.creates.len()), Some(3), "{name}");
}

/// Reads the frames of the agent until no view is stale.
async fn read_on(agent: &mut Agent, client: &mut Client) {
    let read = async {
        loop {
            agent.next().await;
        }
    };
    let current = async {
        let mut ticks = time::interval(Duration::from_millis(25));
        loop {
            ticks.tick().await;
            let listed = client
                .list_sessions(v1::ListSessionsRequest::default())
                .await;
            if listed.expect("valid").into_inner().stale_views.is_empty() {
                return;
            }
        }
    };
    tokio::select! {
        () = read => {}
        () = current => {}
    }
}

#[tokio::test]
async fn agent_that_does_not_read_is_named_and_not_left_out() {
    let limits = |limits: &mut decree_server::Limits| limits.operations_in_flight_max = 1 << 20;
    let server = Running::start_within(limits).await;
    let mut agent = unread(&server).await;
    let (mut reading, _) = Agent::open_with(&server, shard("b")).await;
    let other = replica_set("other").build();
    reading.snapshot(vec![other], vec![]).await;
    reading.prove_alive().await;

    let mut client = server.inspection().await;
    let listed = soon(scale_up(&mut agent, &mut client)).await;
    let places = listed.sessions.iter().map(|it| (&*it.shard, it.synced));
    assert_eq!(places.collect::<Vec<_>>(), [("a", true), ("b", true)]);
    assert_named(&listed.stale_views);

    let all = client
        .list_replica_sets(v1::ListReplicaSetsRequest::default())
        .await;
    let all = all.expect("valid").into_inner();
    assert_eq!(all.replica_sets.len(), SETS + 2);
    assert_named(&all.stale_views);

    // Questions about either shard are answered, whichever shard a client means.
    assert_answers(&server, &name(7), true).await;
    assert_answers(&server, "other", false).await;
    let namespace = "default".to_owned();
    let quota = Change::PodQuota(v1::PodQuota { namespace, pods: 0 });
    let limited = client.simulate_cluster(v1::SimulateClusterRequest {
        change: Some(quota),
        ..v1::SimulateClusterRequest::default()
    });
    let limited = limited.await.expect("valid").into_inner();
    assert_named(&limited.stale_views);
    assert!(limited.quota.is_some_and(|sums| sums.creates > 0));

    // The view is up to date once the agent reads.
    soon(read_on(&mut agent, &mut client)).await;
}

#[tokio::test]
async fn agent_that_does_not_read_is_given_up_and_one_that_reads_is_not() {
    let heartbeat_interval = Duration::from_millis(500);
    let server = Running::start_with(decree_server::Config {
        heartbeat_interval,
        ..unhurried()
    })
    .await;
    let mut agent = unread(&server).await;
    let (mut reading, _) = Agent::open_with(&server, shard("b")).await;
    reading.snapshot(vec![], vec![]).await;
    // As many operations as may be in flight are more than the windows.
    for number in 0..20 {
        agent.event(scaled(number)).await;
    }
    let given_up = async {
        let ended = "decree_session_ends_total{reason=\"AGENT_NOT_READING\"}";
        for number in 0.. {
            if server.metric(ended).await > 0.5 {
                return;
            }
            let heartbeat = v1::Heartbeat::default();
            agent.send(Frame::Heartbeat(heartbeat)).await;
            reading.prove_alive_by(&format!("read-{number}")).await;
            time::sleep(heartbeat_interval / 2).await;
        }
    };
    soon(given_up).await;
    reading.prove_alive().await;
}
