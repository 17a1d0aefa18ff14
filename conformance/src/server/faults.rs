//! Faults of the network and of the cluster: cuts, pauses, reordering, operations that fail.

use std::time::Duration;

use decree::v1::{
    Batch, Done, FailureClass, Kind, Pod, ReconcileResponse, batch::Action, outcome,
    reconcile_response::Frame as Answer,
};
use tokio::time::timeout;
use tokio_stream::StreamExt as _;
use tonic::{Request, client::Grpc, codegen::http::uri::PathAndQuery};
use tonic_prost::ProstCodec;

use super::{
    case::{Verdict, cases},
    link::{Server, done, failed, holds, wrong},
    objects::{gone, pod, replica_set, settled},
};

cases! {
    "frames" {
        "fields of a later version are ignored" => later_fields,
    }
    "batches-and-outcomes" {
        "a batch names the newest version of the pods that was received" => version,
        "outcomes of a batch may come in any order" => reordered,
        "operations in flight are bounded by the Welcome" => bounded,
        "one list is asked for, however many ReplicaSets wait for it" => one_resync,
        "a name that was taken is not used again" => taken,
        "an adoption that meets another pod is retried" => adoption,
    }
    "heartbeats-and-the-end-of-a-session" {
        "after a cut, the lists of the next session count and nothing else" => cut,
        "an agent that pauses for less than four intervals keeps its session" => pause,
    }
}

/// A frame with a Hello of a later version.
#[derive(Clone, PartialEq, prost::Message)]
struct LaterFrame {
    #[prost(uint64, tag = "1")]
    sequence: u64,
    #[prost(message, optional, tag = "2")]
    hello: Option<LaterHello>,
    #[prost(string, tag = "1000")]
    later: String,
}

/// A Hello with the required fields, and an unknown one.
#[derive(Clone, PartialEq, prost::Message)]
struct LaterHello {
    #[prost(int32, tag = "1")]
    protocol_min: i32,
    #[prost(int32, tag = "2")]
    protocol_max: i32,
    #[prost(string, tag = "4")]
    agent_instance: String,
    #[prost(string, tag = "5")]
    cluster_uid: String,
    #[prost(string, tag = "1000")]
    later: String,
}

async fn later_fields(server: Server) -> Verdict {
    let hello = server.hello();
    let frame = LaterFrame {
        sequence: 1,
        hello: Some(LaterHello {
            protocol_min: hello.protocol_min,
            protocol_max: hello.protocol_max,
            agent_instance: hello.agent_instance,
            cluster_uid: hello.cluster_uid,
            later: "unknown".to_owned(),
        }),
        later: "unknown".to_owned(),
    };
    let mut client = Grpc::new(server.channel.clone());
    let ready = client.ready().await;
    ready.map_err(|error| wrong("a connection", &error))?;
    let frames = tokio_stream::once(frame).chain(tokio_stream::pending());
    let path = PathAndQuery::from_static("/decree.v1.DecisionService/Reconcile");
    let codec = ProstCodec::<LaterFrame, ReconcileResponse>::default();
    let answers = client.streaming(Request::new(frames), path, codec).await;
    let mut answers = answers
        .map_err(|status| wrong("a stream", &status))?
        .into_inner();
    let answer = answers.message().await;
    let answer = answer.map_err(|status| wrong("a Welcome", &status))?;
    let answer = answer.and_then(|answer| answer.frame);
    holds(
        matches!(answer, Some(Answer::Welcome(_))),
        "a Welcome",
        &answer,
    )
}

async fn version(server: Server) -> Verdict {
    let mut link = server
        .open_with(vec![settled("web", 1)], vec![pod("a", "web")])
        .await?;
    link.event(gone("a", "170")).await;
    let (batch, _) = link.creates().await?;
    holds(batch.pods_version == "170", "version 170", &batch)
}

async fn reordered(server: Server) -> Verdict {
    let mut link = server.open_set(replica_set("web", 2)).await?;
    let (batch, names) = link.creates().await?;
    let [first, second] = &names[..] else {
        return Err(wrong("two names", &names));
    };
    link.report(batch.id, 1, done(at("150", pod(second, "web"))))
        .await;
    link.expect_nothing().await?;
    link.report(batch.id, 0, done(at("151", pod(first, "web"))))
        .await;
    match link.batch().await?.action {
        Some(Action::WriteStatus(_)) => Ok(()),
        other => Err(wrong("a status", &other)),
    }
}

/// Requests more operations than may be in flight, by ReplicaSets that each want one pod.
async fn bounded(server: Server) -> Verdict {
    let (mut link, welcome) = server.open_as(server.hello()).await?;
    let limits = welcome.limits.unwrap_or_default();
    let limit = usize::try_from(limits.max_operations_in_flight).unwrap_or(0);
    let burst = 500;
    let sets = (0..=limit / burst).map(|number| replica_set(&format!("web-{number}"), 500));
    link.list(sets.collect(), Vec::new()).await;
    let mut in_flight = 0;
    // A server that has other frames sends no heartbeat.
    loop {
        match link.any().await? {
            Ok(Answer::Batches(batches)) => {
                in_flight += batches.batches.iter().map(creates_of).sum::<usize>();
            }
            Ok(Answer::Heartbeat(_)) => break,
            other => return Err(wrong("batches", &other)),
        }
    }
    holds(
        (1..=limit).contains(&in_flight),
        &format!("at most {limit}"),
        &in_flight,
    )
}

fn creates_of(batch: &Batch) -> usize {
    match &batch.action {
        Some(Action::Create(create)) => create.names.len(),
        _ => 0,
    }
}

async fn one_resync(server: Server) -> Verdict {
    let sets = vec![replica_set("api", 1), replica_set("web", 1)];
    let mut link = server.open_with(sets, Vec::new()).await?;
    let batches = link.batches(2).await?;
    for batch in batches.keys() {
        let bare = Done {
            resource_version: "150".to_owned(),
            ..Done::default()
        };
        link.report(*batch, 0, outcome::Outcome::Done(bare)).await;
    }
    link.expect_resync(Kind::Pod).await?;
    link.expect_nothing().await
}

async fn taken(server: Server) -> Verdict {
    let mut link = server.open_set(replica_set("web", 1)).await?;
    let (batch, names) = link.creates().await?;
    link.report(batch.id, 0, failed(FailureClass::NameTaken))
        .await;
    let (_, others) = link.creates_after_statuses(&replica_set("web", 1)).await?;
    holds(others != names, "another name", &others)
}

async fn adoption(server: Server) -> Verdict {
    let orphan = Pod {
        controller: None,
        ..pod("orphan", "web")
    };
    let mut link = server
        .open_with(vec![replica_set("web", 1)], vec![orphan])
        .await?;
    for _ in 0..2 {
        let batch = link.batch().await?;
        let Some(Action::Claim(claim)) = &batch.action else {
            return Err(wrong("an adoption", &batch.action));
        };
        holds(claim.adopts.len() == 1, "one adoption", claim)?;
        link.report(batch.id, 0, failed(FailureClass::Precondition))
            .await;
    }
    Ok(())
}

/// Cuts the stream in a batch with two creates. Both have taken effect, but only one is reported.
async fn cut(server: Server) -> Verdict {
    let sets = || vec![replica_set("web", 3)];
    let mut link = server.open_with(sets(), Vec::new()).await?;
    let (batch, names) = link.creates().await?;
    let made: Vec<_> = names.iter().take(2).map(|name| pod(name, "web")).collect();
    let first = made.first().cloned().unwrap_or_default();
    link.report(batch.id, 0, done(at("150", first))).await;
    drop(link);
    let listed = made.into_iter().map(|pod| at("160", pod)).collect();
    let mut link = server.open().await?;
    link.list_sets(sets()).await;
    link.list_pods_at(listed, "170").await;
    let (_, others) = link.creates().await?;
    let is_new = others.len() == 1 && !names[..2].contains(&others[0]);
    holds(is_new, "one create under a name that no pod has", &others)
}

async fn pause(server: Server) -> Verdict {
    let (mut link, welcome) = server.open_as(server.hello()).await?;
    let interval = welcome.heartbeat_interval.unwrap_or_default();
    let interval = Duration::try_from(interval).unwrap_or_default();
    let ended = async {
        loop {
            if let Err(status) = link.any().await? {
                return Err(wrong("heartbeats", &status));
            }
        }
    };
    // Two and a half intervals are less than four, even on a busy machine.
    if let Ok(ended) = timeout(5 * interval / 2, ended).await {
        return ended;
    }
    link.list(vec![replica_set("web", 1)], Vec::new()).await;
    link.creates().await.map(drop)
}

fn at(version: &str, pod: Pod) -> Pod {
    Pod {
        resource_version: version.to_owned(),
        ..pod
    }
}
