//! Lists and changes: the input of a server's decisions.

use decree::v1::{Kind, Pod, ReplicaSet, event::Event, reconcile_response::Frame as Answer};
use prost_types::Timestamp;

use super::{
    case::cases,
    link::{Link, Server},
    objects::{at, done, gone, pod, pod_of, scaled, settled, web, web_gone},
    verdict::{Verdict, holds, wrong},
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
        "objects that a complete list does not name are gone" => absent_object,
        "a pod newer than the list survives it" => newer_pod,
        "a list older than a reported write is not used" => old_list,
        "changes that come as one lead where they lead one by one" => merged,
        "a change that comes twice, or late, changes nothing" => reordered,
        "without versions the last state counts" => unversioned,
        "a list older than events brings no pod back that is gone" => no_pod_back,
        "a list older than events brings no ReplicaSet back that is gone" => no_set_back,
        "changes that come again after an older list change nothing" => repeated,
        "a list older than the last one of its kind ends the session" => went_back,
        "a created pod that later changes have passed waits for a list" => passed,
        "a created pod whose deletion came first is replaced without a list" => came_and_went,
    }
    "batches-and-outcomes" {
        "no list is asked for while one is open" => no_request,
    }
}

async fn partial_view(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.list_sets([web(2)], "100").await;
    link.begin(Kind::Pod).await;
    link.expect_nothing().await?;
    link.end(Kind::Pod, 0, "100").await;
    link.creates().await.map(drop)
}

async fn later_list(server: Server) -> Verdict {
    let mut link = server.open_with(settled(0), []).await?;
    link.begin(Kind::Pod).await;
    link.event(Event::ReplicaSetApplied(scaled(1))).await;
    link.expect_nothing().await?;
    link.end(Kind::Pod, 0, "120").await;
    link.creates().await.map(drop)
}

async fn objects_without_list(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.begin(Kind::ReplicaSet).await;
    link.pods([pod("a")]).await;
    link.ends("SNAPSHOT_NOT_OPEN", &[]).await.map(drop)
}

async fn end_without_begin(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.end(Kind::Pod, 0, "100").await;
    link.ends("SNAPSHOT_NOT_OPEN", &[]).await.map(drop)
}

async fn wrong_count(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.begin(Kind::Pod).await;
    link.pods([pod("a")]).await;
    link.end(Kind::Pod, 2, "100").await;
    let facts = [("count", "2"), ("arrived", "1")];
    let end = link.ends("SNAPSHOT_COUNT_MISMATCH", &facts).await;
    end.map(drop)
}

async fn begin_again(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.list_sets([web(2)], "100").await;
    link.begin(Kind::Pod).await;
    link.pods([pod("a")]).await;
    link.list_pods([pod("b")], "100").await;
    let (_, names) = link.creates().await?;
    holds(names.len() == 1, "one create", &names)
}

async fn early_event(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.applied(pod("a")).await;
    link.ends("EVENT_BEFORE_SNAPSHOT", &[]).await.map(drop)
}

async fn event_inside(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.list_sets([web(3)], "100").await;
    link.begin(Kind::Pod).await;
    link.applied(at("101", pod("a"))).await;
    link.pods([pod("b")]).await;
    link.end(Kind::Pod, 1, "100").await;
    let (_, names) = link.creates().await?;
    holds(names.len() == 1, "one create", &names)
}

async fn absent_object(server: Server) -> Verdict {
    let mut link = server.open_with(settled(1), [pod("a")]).await?;
    link.list_pods([], "200").await;
    link.creates().await.map(drop)
}

async fn newer_pod(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(settled(1)).await?;
    link.created(&batch, &names, 150).await;
    link.settles().await?;
    link.begin(Kind::Pod).await;
    link.applied(at("210", pod_of("none", "other"))).await;
    link.pods([at("150", pod(&names[0]))]).await;
    link.end(Kind::Pod, 1, "200").await;
    link.expect_nothing().await
}

async fn old_list(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(settled(1)).await?;
    link.created(&batch, &names, 150).await;
    link.settles().await?;
    link.list_pods([], "140").await;
    link.expect_resync().await
}

/// A pod that loses its owner and is then deleted, as one change. Upstream's handler would miss the loss.
async fn merged(server: Server) -> Verdict {
    let mut link = server.open_with(settled(1), [pod("a")]).await?;
    let merged = Pod {
        controller: None,
        deleted: Some(Timestamp {
            seconds: 1_700_000_100,
            nanos: 0,
        }),
        ..at("130", pod("a"))
    };
    link.applied(merged).await;
    link.creates().await.map(drop)
}

async fn reordered(server: Server) -> Verdict {
    let mut link = server.open_with(settled(1), [pod("a")]).await?;
    for _ in 0..2 {
        link.applied(at("120", pod("a"))).await;
    }
    let late = Pod {
        controller: None,
        labels: [].into(),
        ..at("110", pod("a"))
    };
    link.applied(late).await;
    link.expect_nothing().await
}

async fn unversioned(server: Server) -> Verdict {
    let set = ReplicaSet {
        resource_version: String::new(),
        ..settled(1)
    };
    let mut link = server.open().await?;
    link.list_sets([set], "100").await;
    link.list_pods([at("", pod("a"))], "").await;
    link.event(gone("a", "")).await;
    let (batch, names) = link.creates().await?;
    let made = done(at("", pod(&names[0])));
    link.report(batch.id, 0, made).await;
    link.settles().await?;
    link.expect_nothing().await
}

/// Opens a session whose ReplicaSet has two pods and loses the first. Has the replacement created after an older list.
async fn after_older_list(server: &Server) -> Result<(Link, String), String> {
    let pods = || [at("90", pod("a")), at("91", pod("b"))];
    let mut link = server.open_with(settled(2), pods()).await?;
    link.event(gone("a", "160")).await;
    let (batch, names) = link.creates().await?;
    link.list_pods(pods(), "140").await;
    link.created(&batch, &names, 170).await;
    link.settles().await?;
    Ok((link, names[0].clone()))
}

async fn no_pod_back(server: Server) -> Verdict {
    let (mut link, _) = after_older_list(&server).await?;
    link.expect_nothing().await
}

async fn no_set_back(server: Server) -> Verdict {
    let mut link = server.open_with(settled(0), []).await?;
    link.event(web_gone("160")).await;
    let wants_more = ReplicaSet {
        replicas: Some(1),
        ..settled(0)
    };
    link.list_sets([wants_more], "140").await;
    link.expect_nothing().await
}

async fn repeated(server: Server) -> Verdict {
    let (mut link, made) = after_older_list(&server).await?;
    for event in [
        Event::PodApplied(at("145", pod("a"))),
        gone("a", "160"),
        Event::PodApplied(at("170", pod(&made))),
    ] {
        link.event(event).await;
        link.expect_nothing().await?;
    }
    Ok(())
}

async fn went_back(server: Server) -> Verdict {
    let mut link = server.open_with(settled(0), []).await?;
    link.list_pods([], "99").await;
    let facts = [("last", "100"), ("got", "99")];
    link.ends("VERSIONS_WENT_BACK", &facts).await.map(drop)
}

async fn passed(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(settled(1)).await?;
    let other = at("160", pod_of("none", "other"));
    link.applied(other.clone()).await;
    link.created(&batch, &names, 150).await;
    link.expect_resync().await?;
    link.expect_nothing().await?;
    let made = at("150", pod(&names[0]));
    link.list_pods([made, other], "170").await;
    link.settles().await?;
    link.expect_nothing().await
}

async fn came_and_went(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(settled(1)).await?;
    link.event(gone(&names[0], "155")).await;
    link.applied(at("160", pod_of("none", "other"))).await;
    link.created(&batch, &names, 150).await;
    let others = link.creates_after_statuses().await?;
    holds(others != names, "another name", &others)
}

/// A list begins within an older list that the server cannot use.
async fn no_request(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(settled(1)).await?;
    link.begin(Kind::Pod).await;
    link.created(&batch, &names, 150).await;
    link.end(Kind::Pod, 0, "140").await;
    link.begin(Kind::Pod).await;
    link.applied(pod_of("none", "Bad Name")).await;
    // The server requested the list before the second list began, or not at all.
    let mut next = link.next().await?;
    if matches!(next, Ok(Answer::Resync(_))) {
        next = link.next().await?;
    }
    if !matches!(next, Ok(Answer::Rejection(_))) {
        return Err(wrong("a Rejection", &next));
    }
    link.expect_nothing().await?;
    link.pods([at("150", pod(&names[0]))]).await;
    link.end(Kind::Pod, 1, "170").await;
    link.settles().await?;
    link.expect_nothing().await
}
