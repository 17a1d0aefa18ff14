//! Agents that read late, or never.

use std::{collections::BTreeSet, time::Duration};

use decree::v1::{
    Heartbeat, Hello, Welcome, batch::Action, reconcile_request::Frame,
    reconcile_response::Frame as Answer,
};
use tokio::time::{Instant, sleep};
use tonic::{Code, transport::Endpoint};

use super::{
    case::{Verdict, cases},
    link::{Link, Server, holds, interval_of, wrong},
    objects::replica_set,
};

cases! {
    "heartbeats-and-the-end-of-a-session" {
        "an agent that reads late gets each batch, once" => late,
        "an agent that does not read is given up after four intervals, and holds up no other" => never,
    }
}

/// The window of a stream: less than the unread batches here, and more than any other case leaves unread.
const WINDOW: u32 = 16 << 10;
/// The desired number of pods of each ReplicaSet, which are created in one batch.
const BURST: usize = 500;
/// The number of ReplicaSets, if that many operations may be in flight.
const SETS: usize = 6;

/// An endpoint on which an unread stream does not block other streams of its connection.
#[must_use]
pub fn narrow(endpoint: Endpoint) -> Endpoint {
    endpoint.initial_stream_window_size(WINDOW)
}

/// Opens a session with more batches than fit into its window. Returns the number of their creates.
async fn opened(server: &Server) -> Result<(Link, Duration, usize), String> {
    let (mut link, welcome) = server.open_as(server.hello()).await?;
    let sets = (0..SETS).map(|number| replica_set(&format!("web-{number}"), 500));
    link.list(sets.collect(), Vec::new()).await;
    let creates = BURST * (limit(&welcome) / BURST).clamp(1, SETS);
    Ok((link, interval_of(&welcome), creates))
}

fn limit(welcome: &Welcome) -> usize {
    let limits = welcome.limits.unwrap_or_default();
    usize::try_from(limits.max_operations_in_flight).unwrap_or(0)
}

/// Sends heartbeats for `duration`, without reading.
async fn beat(link: &mut Link, interval: Duration, duration: Duration) {
    let until = Instant::now() + duration;
    while Instant::now() < until {
        link.send(Frame::Heartbeat(Heartbeat::default())).await;
        sleep(interval.min(until.saturating_duration_since(Instant::now()))).await;
    }
}

async fn late(server: Server) -> Verdict {
    let (mut link, interval, creates) = opened(&server).await?;
    // Two and a half intervals are less than four, even on a busy machine.
    beat(&mut link, interval, 5 * interval / 2).await;
    let (mut names, mut count) = (BTreeSet::new(), 0);
    while count < creates {
        let Answer::Batches(frame) = link.next().await?.map_err(|end| wrong("batches", &end))?
        else {
            return Err("a frame that is no batch".to_owned());
        };
        for batch in frame.batches {
            if let Some(Action::Create(create)) = batch.action {
                count += create.names.len();
                names.extend(create.names);
            }
        }
    }
    let found = (names.len(), count);
    holds(
        found == (creates, creates),
        &format!("{creates} names"),
        &found,
    )
}

async fn never(server: Server) -> Verdict {
    let (mut link, interval, _) = opened(&server).await?;
    beat(&mut link, interval, interval).await;
    let neighbour = Hello {
        shard: "neighbour".to_owned(),
        ..server.hello()
    };
    let (mut neighbour, _) = server.open_as(neighbour).await?;
    neighbour
        .list(vec![replica_set("web", 1)], Vec::new())
        .await;
    neighbour.creates().await?;
    // The first unread frame may be a heartbeat after the batches, because HTTP/2 may take some of the frames.
    beat(&mut link, interval, 8 * interval).await;
    link.ends_with(Code::DeadlineExceeded, "AGENT_NOT_READING")
        .await
}
