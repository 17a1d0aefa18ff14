//! Faults of the network and of the cluster: cuts, pauses, reordering, operations that fail.

use decree::v1::{Batch, FailureClass, Pod, batch::Action, reconcile_response::Frame as Answer};
use tokio::time::timeout;

use super::{
    case::cases,
    link::Server,
    objects::{at, bare, done, gone, pod, replica_set, settled, web},
    verdict::{Verdict, holds, wrong},
};

cases! {
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

async fn version(server: Server) -> Verdict {
    let mut link = server.open_with(settled(1), [pod("a")]).await?;
    link.event(gone("a", "170")).await;
    let (batch, _) = link.creates().await?;
    holds(batch.pods_version == "170", "version 170", &batch)
}

async fn reordered(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(web(2)).await?;
    let [first, second] = &names[..] else {
        return Err(wrong("two names", &names));
    };
    let second = done(at("150", pod(second)));
    link.report(batch.id, 1, second).await;
    link.expect_nothing().await?;
    let first = done(at("151", pod(first)));
    link.report(batch.id, 0, first).await;
    link.status_write().await.map(drop)
}

/// Requests more operations than may be in flight, by ReplicaSets that each want a whole burst.
async fn bounded(server: Server) -> Verdict {
    let mut link = server.open().await?;
    let (limit, burst) = (link.in_flight_max(), 500);
    let sets = (0..=limit / burst).map(|number| replica_set(&format!("web-{number}"), 500));
    link.list(sets, []).await;
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
    let is_right = (1..=limit).contains(&in_flight);
    holds(is_right, &format!("at most {limit}"), &in_flight)
}

fn creates_of(batch: &Batch) -> usize {
    match &batch.action {
        Some(Action::Create(create)) => create.names.len(),
        _ => 0,
    }
}

async fn one_resync(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.list([replica_set("api", 1), web(1)], []).await;
    for batch in link.batches(2).await?.into_keys() {
        link.report(batch, 0, bare()).await;
    }
    link.expect_resync().await?;
    link.expect_nothing().await
}

async fn taken(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(web(1)).await?;
    link.failed(batch.id, FailureClass::NameTaken).await;
    let others = link.creates_after_statuses().await?;
    holds(others != names, "another name", &others)
}

async fn adoption(server: Server) -> Verdict {
    let orphan = Pod {
        controller: None,
        ..pod("orphan")
    };
    let mut link = server.open_with(web(1), [orphan]).await?;
    for _ in 0..2 {
        let batch = link.batch().await?;
        let Some(Action::Claim(claim)) = &batch.action else {
            return Err(wrong("an adoption", &batch.action));
        };
        holds(claim.adopts.len() == 1, "one adoption", claim)?;
        link.failed(batch.id, FailureClass::Precondition).await;
    }
    Ok(())
}

/// Cuts the stream in a batch with two creates. Both have taken effect, but only one is reported.
async fn cut(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(web(3)).await?;
    let made: Vec<_> = names.iter().take(2).map(|name| pod(name)).collect();
    link.created(&batch, &names[..1], 150).await;
    drop(link);
    let mut link = server.open().await?;
    link.list_sets([web(3)], "100").await;
    let listed = made.into_iter().map(|pod| at("160", pod));
    link.list_pods(listed, "170").await;
    let (_, others) = link.creates().await?;
    let is_new = others.len() == 1 && !names[..2].contains(&others[0]);
    holds(is_new, "one create under a name that no pod has", &others)
}

async fn pause(server: Server) -> Verdict {
    let mut link = server.open().await?;
    let pause = 5 * link.interval() / 2;
    let ended = async {
        loop {
            if let Err(status) = link.any().await? {
                return Err(wrong("heartbeats", &status));
            }
        }
    };
    // Two and a half intervals are less than four, even on a busy machine.
    if let Ok(ended) = timeout(pause, ended).await {
        return ended;
    }
    link.expect_served().await
}
