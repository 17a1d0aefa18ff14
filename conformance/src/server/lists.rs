//! Lists and changes: the input of a server's decisions.

use decree::v1::{Kind, Pod, ReplicaSet, SnapshotObjects, event::Event, reconcile_request::Frame};
use prost_types::Timestamp;
use tonic::Code;

use super::{
    case::{Verdict, cases},
    link::{Server, done, expect_facts, holds},
    objects::{gone, pod, replica_set, settled},
};

cases! {
    "lists-and-changes" {
        "nothing is decided before both lists are complete" => partial_view,
        "nothing is decided while a later list is open" => later_list,
        "objects without an open list end the session" => objects_without_list,
        "an end without a begin ends the session" => end_without_begin,
        "a count that differs ends the session" => wrong_count,
        "a new begin discards the open list" => begin_again,
        "an event before any list ends the session" => early_event,
        "an event inside an open list is applied on top" => event_inside,
        "what a complete list does not name is gone" => absent_object,
        "a pod newer than the list survives it" => newer_pod,
        "a list older than a reported write is not used" => old_list,
        "changes that come as one lead where they lead one by one" => merged,
        "a change that comes twice, or late, changes nothing" => reordered,
        "without versions the last state counts" => unversioned,
    }
}

async fn partial_view(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.list_sets(vec![replica_set("web", 2)]).await;
    link.begin(Kind::Pod).await;
    link.expect_nothing().await?;
    link.end(Kind::Pod, 0, "100").await;
    link.creates().await.map(drop)
}

async fn later_list(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.list(vec![settled("web", 0)], Vec::new()).await;
    link.begin(Kind::Pod).await;
    link.event(Event::ReplicaSetApplied(changed(
        replica_set("web", 1),
        "110",
    )))
    .await;
    link.expect_nothing().await?;
    link.end(Kind::Pod, 0, "120").await;
    link.creates().await.map(drop)
}

async fn objects_without_list(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.begin(Kind::ReplicaSet).await;
    let pods = vec![pod("a", "web")];
    link.send(Frame::SnapshotObjects(SnapshotObjects {
        pods,
        ..SnapshotObjects::default()
    }))
    .await;
    link.ends_with(Code::FailedPrecondition, "SNAPSHOT_NOT_OPEN")
        .await
}

async fn end_without_begin(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.end(Kind::Pod, 0, "100").await;
    link.ends_with(Code::FailedPrecondition, "SNAPSHOT_NOT_OPEN")
        .await
}

async fn wrong_count(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.begin(Kind::Pod).await;
    link.pods(vec![pod("a", "web")]).await;
    link.end(Kind::Pod, 2, "100").await;
    let status = link
        .expect_end(Code::FailedPrecondition, "SNAPSHOT_COUNT_MISMATCH")
        .await?;
    expect_facts(&status, &[("count", "2"), ("arrived", "1")])
}

async fn begin_again(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.list_sets(vec![replica_set("web", 2)]).await;
    link.begin(Kind::Pod).await;
    link.pods(vec![pod("a", "web")]).await;
    link.list_pods(vec![pod("b", "web")]).await;
    let (_, names) = link.creates().await?;
    holds(names.len() == 1, "one create", &names)
}

async fn early_event(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.event(Event::PodApplied(pod("a", "web"))).await;
    link.ends_with(Code::FailedPrecondition, "EVENT_BEFORE_SNAPSHOT")
        .await
}

async fn event_inside(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.list_sets(vec![replica_set("web", 3)]).await;
    link.begin(Kind::Pod).await;
    link.event(Event::PodApplied(versioned(pod("a", "web"), "101")))
        .await;
    link.pods(vec![pod("b", "web")]).await;
    link.end(Kind::Pod, 1, "100").await;
    let (_, names) = link.creates().await?;
    holds(names.len() == 1, "one create", &names)
}

async fn absent_object(server: Server) -> Verdict {
    let mut link = server
        .open_with(vec![settled("web", 1)], vec![pod("a", "web")])
        .await?;
    link.list_pods_at(Vec::new(), "200").await;
    link.creates().await.map(drop)
}

async fn newer_pod(server: Server) -> Verdict {
    let mut link = server.open_set(settled("web", 1)).await?;
    let (batch, names) = link.creates().await?;
    link.created(&batch, &names, 150).await;
    link.settles(&settled("web", 1)).await?;
    link.begin(Kind::Pod).await;
    link.event(Event::PodApplied(versioned(pod("other", "none"), "210")))
        .await;
    link.pods(vec![versioned(pod(&names[0], "web"), "150")])
        .await;
    link.end(Kind::Pod, 1, "200").await;
    link.expect_nothing().await
}

async fn old_list(server: Server) -> Verdict {
    let mut link = server.open_set(settled("web", 1)).await?;
    let (batch, names) = link.creates().await?;
    link.created(&batch, &names, 150).await;
    link.settles(&settled("web", 1)).await?;
    link.list_pods_at(Vec::new(), "140").await;
    link.expect_resync(Kind::Pod).await
}

/// A pod that loses its owner and is then deleted, as one change. Upstream's handler would miss the loss.
async fn merged(server: Server) -> Verdict {
    let mut link = server
        .open_with(vec![settled("web", 1)], vec![pod("a", "web")])
        .await?;
    let merged = Pod {
        controller: None,
        deleted: Some(Timestamp {
            seconds: 1_700_000_100,
            nanos: 0,
        }),
        ..versioned(pod("a", "web"), "130")
    };
    link.event(Event::PodApplied(merged)).await;
    link.creates().await.map(drop)
}

async fn reordered(server: Server) -> Verdict {
    let mut link = server
        .open_with(vec![settled("web", 1)], vec![pod("a", "web")])
        .await?;
    link.event(Event::PodApplied(versioned(pod("a", "web"), "120")))
        .await;
    link.event(Event::PodApplied(versioned(pod("a", "web"), "120")))
        .await;
    let late = Pod {
        controller: None,
        labels: [].into(),
        ..versioned(pod("a", "web"), "110")
    };
    link.event(Event::PodApplied(late)).await;
    link.expect_nothing().await
}

async fn unversioned(server: Server) -> Verdict {
    let unversioned = |pod: Pod| versioned(pod, "");
    let set = ReplicaSet {
        resource_version: String::new(),
        ..settled("web", 1)
    };
    let mut link = server.open().await?;
    link.list_sets(vec![set.clone()]).await;
    link.list_pods_at(vec![unversioned(pod("a", "web"))], "")
        .await;
    link.event(gone("a", "")).await;
    let (batch, names) = link.creates().await?;
    link.report(batch.id, 0, done(unversioned(pod(&names[0], "web"))))
        .await;
    link.settles(&set).await?;
    link.expect_nothing().await
}

fn changed(set: ReplicaSet, version: &str) -> ReplicaSet {
    ReplicaSet {
        resource_version: version.to_owned(),
        generation: 2,
        ..set
    }
}

fn versioned(pod: Pod, version: &str) -> Pod {
    Pod {
        resource_version: version.to_owned(),
        ..pod
    }
}
