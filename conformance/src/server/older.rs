//! Lists and changes that are older than earlier ones.

use decree::v1::{Kind, Pod, ReplicaSet, event::Event, reconcile_response::Frame as Answer};
use tonic::Code;

use super::{
    case::{Verdict, cases},
    link::{Link, Server, expect_facts, holds, wrong},
    objects::{gone, gone_set, pod, settled},
};

cases! {
    "lists-and-changes" {
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

/// Opens a session whose ReplicaSet has two pods and loses the first. Has the replacement created after an older list.
async fn after_older_list(server: &Server) -> Result<(Link, String), String> {
    let pods = || vec![at("90", pod("a", "web")), at("91", pod("b", "web"))];
    let mut link = server.open_with(vec![settled("web", 2)], pods()).await?;
    link.event(gone("a", "160")).await;
    let (batch, names) = link.creates().await?;
    link.list_pods_at(pods(), "140").await;
    link.created(&batch, &names, 170).await;
    link.settles(&settled("web", 2)).await?;
    Ok((link, names[0].clone()))
}

async fn no_pod_back(server: Server) -> Verdict {
    let (mut link, _) = after_older_list(&server).await?;
    link.expect_nothing().await
}

async fn no_set_back(server: Server) -> Verdict {
    let mut link = server.open_set(settled("web", 0)).await?;
    link.event(gone_set("web", "160")).await;
    let wants_more = ReplicaSet {
        replicas: Some(1),
        ..settled("web", 0)
    };
    link.list_sets_at(vec![wants_more], "140").await;
    link.expect_nothing().await
}

async fn repeated(server: Server) -> Verdict {
    let (mut link, made) = after_older_list(&server).await?;
    let again = [
        Event::PodApplied(at("145", pod("a", "web"))),
        gone("a", "160"),
        Event::PodApplied(at("170", pod(&made, "web"))),
    ];
    for event in again {
        link.event(event).await;
        link.expect_nothing().await?;
    }
    Ok(())
}

async fn went_back(server: Server) -> Verdict {
    let mut link = server.open_set(settled("web", 0)).await?;
    link.list_pods_at(Vec::new(), "99").await;
    let end = link.expect_end(Code::Aborted, "VERSIONS_WENT_BACK").await?;
    expect_facts(&end, &[("last", "100"), ("got", "99")])
}

async fn passed(server: Server) -> Verdict {
    let mut link = server.open_set(settled("web", 1)).await?;
    let (batch, names) = link.creates().await?;
    let other = at("160", pod("other", "none"));
    link.event(Event::PodApplied(other.clone())).await;
    link.created(&batch, &names, 150).await;
    link.expect_resync(Kind::Pod).await?;
    link.expect_nothing().await?;
    let made = at("150", pod(&names[0], "web"));
    link.list_pods_at(vec![made, other], "170").await;
    link.settles(&settled("web", 1)).await?;
    link.expect_nothing().await
}

async fn came_and_went(server: Server) -> Verdict {
    let mut link = server.open_set(settled("web", 1)).await?;
    let (batch, names) = link.creates().await?;
    link.event(gone(&names[0], "155")).await;
    link.event(Event::PodApplied(at("160", pod("other", "none"))))
        .await;
    link.created(&batch, &names, 150).await;
    let (_, others) = link.creates_after_statuses(&settled("web", 1)).await?;
    holds(others != names, "another name", &others)
}

/// A list begins within an older list that the server cannot use.
async fn no_request(server: Server) -> Verdict {
    let mut link = server.open_set(settled("web", 1)).await?;
    let (batch, names) = link.creates().await?;
    link.begin(Kind::Pod).await;
    link.created(&batch, &names, 150).await;
    link.end(Kind::Pod, 0, "140").await;
    link.begin(Kind::Pod).await;
    link.event(Event::PodApplied(pod("Bad Name", "none"))).await;
    // The server requested the list before the second list began, or not at all.
    let mut next = link.next().await?;
    if matches!(next, Ok(Answer::Resync(_))) {
        next = link.next().await?;
    }
    if !matches!(next, Ok(Answer::Rejection(_))) {
        return Err(wrong("a Rejection", &next));
    }
    link.expect_nothing().await?;
    link.pods(vec![at("150", pod(&names[0], "web"))]).await;
    link.end(Kind::Pod, 1, "170").await;
    link.settles(&settled("web", 1)).await?;
    link.expect_nothing().await
}

fn at(version: &str, pod: Pod) -> Pod {
    Pod {
        resource_version: version.to_owned(),
        ..pod
    }
}
