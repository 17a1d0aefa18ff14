//! `WatchDecisions`: decisions as they are made.

use decree_api::v1;
use tests::objects::replica_set;
use tonic::{Code, Streaming};

use crate::{
    agent::{Agent, hello},
    refusal::{assert_refusal, has_retry},
    running::{Running, soon},
};

fn all() -> v1::WatchDecisionsRequest {
    v1::WatchDecisionsRequest::default()
}

type Watch = Streaming<v1::WatchDecisionsResponse>;

async fn watch(server: &Running, request: v1::WatchDecisionsRequest) -> Watch {
    let watch = server.inspection().await.watch_decisions(request).await;
    watch.expect("open").into_inner()
}

/// The next message.
async fn next(watch: &mut Watch) -> v1::WatchDecisionsResponse {
    let said = soon(watch.message()).await.expect("open");
    said.expect("a decision or a notice")
}

#[tokio::test]
async fn watch_can_be_narrowed() {
    let server = Running::start().await;
    let only = v1::WatchDecisionsRequest {
        cluster: "c2".to_owned(),
        namespace: "default".to_owned(),
        name: "b".to_owned(),
        ..all()
    };
    let other_shard = v1::WatchDecisionsRequest {
        shard: "one".to_owned(),
        ..all()
    };
    let mut of_shard = watch(&server, other_shard).await;
    let mut watch = watch(&server, only).await;
    let sets = || {
        ["a", "b"]
            .map(|name| replica_set(name).replicas(1).build())
            .into()
    };
    let mut one = Agent::open_on(&server, "c1", sets(), vec![]).await;
    one.batches().await;
    let mut two = Agent::open_on(&server, "c2", sets(), vec![]).await;
    two.batches().await;
    let seen = next(&mut watch).await;
    let decision = seen.decision.expect("no notice");
    assert_eq!(decision.cluster, "c2");
    assert_eq!(decision.replica_set.expect("a name").name, "b");
    let shard = v1::Hello {
        shard: "one".to_owned(),
        ..hello("c2")
    };
    let (mut three, _) = Agent::open_with(&server, shard).await;
    three.snapshot(sets(), vec![]).await;
    three.batches().await;
    let seen = next(&mut of_shard).await.decision.expect("no notice");
    assert_eq!(seen.shard, "one");
}

#[tokio::test]
async fn watchers_beyond_the_limit_are_refused_until_one_goes() {
    let server = Running::start_within(|limits| limits.watchers_max = 1).await;
    let mut client = server.inspection().await;
    let first = client.watch_decisions(all()).await.expect("open");
    let refusal = client.watch_decisions(all()).await;
    let refusal = refusal.expect_err("one too many");
    assert_refusal(&refusal, Code::ResourceExhausted, "LIMIT_REACHED");
    assert!(has_retry(&refusal));
    drop(first);
    let mut again = client.watch_decisions(all()).await;
    while let Err(refusal) = again {
        assert_refusal(&refusal, Code::ResourceExhausted, "LIMIT_REACHED");
        again = soon(client.watch_decisions(all())).await;
    }
}

#[tokio::test]
async fn watch_continues_where_it_broke_or_is_refused() {
    let server = Running::start().await;
    let mut first = watch(&server, all()).await;
    let sets = |name: &str| vec![replica_set(name).replicas(1).build()];
    let mut one = Agent::open_on(&server, "c1", sets("a"), vec![]).await;
    let batch = one.batch().await;
    let seen = next(&mut first).await;
    let (token, missed) = (seen.resume_token, seen.missed);
    let decision = seen.decision.expect("no notice");
    let told = (decision.batch_id, decision.operations, missed);
    assert_eq!(told, (batch.id, 1, 0));
    assert_eq!(decision.action(), v1::Action::Create);
    assert!(decision.decide_time.is_some());
    drop(first);
    let mut two = Agent::open_on(&server, "c2", sets("b"), vec![]).await;
    two.batch().await;
    let resumed = v1::WatchDecisionsRequest {
        resume_token: token.clone(),
        ..all()
    };
    let mut again = watch(&server, resumed.clone()).await;
    let seen = next(&mut again).await.decision.expect("a decision");
    assert_eq!(seen.cluster, "c2");
    // Another server, or this one after a restart, does not know what came.
    let other = Running::start().await;
    let refusal = other.inspection().await.watch_decisions(resumed).await;
    let refusal = refusal.expect_err("not its token");
    assert_refusal(&refusal, Code::OutOfRange, "RESUME_TOKEN_EXPIRED");
}
