//! Heartbeats, agents that read late or never, the end of a session, isolation, and calls without a session.

use std::{collections::BTreeSet, time::Duration};

use decree::v1::{
    DecideRequest, Heartbeat, batch::Action, decision_service_client::DecisionServiceClient,
    reconcile_request::Frame, reconcile_response::Frame as Answer,
};
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, transport::Endpoint};
use tonic_types::StatusExt as _;

use super::{
    case::cases,
    link::{Link, Server},
    objects::{gone, pod, replica_set, web, web_gone},
    verdict::{Verdict, expect_reason, holds, wrong},
};

/// The deadline of a stream. It leaves time for the Welcome on a busy machine, and precedes the end by the client.
const DEADLINE: Duration = Duration::from_secs(10);
/// The window of a stream: less than the unread batches here, and more than any other case leaves unread.
const WINDOW: u32 = 16 << 10;
/// The desired number of pods of each ReplicaSet, which are created in one batch.
const BURST: usize = 500;
/// The number of ReplicaSets, if that many operations may be in flight.
const SETS: usize = 6;

// The slowest cases come first.
cases! {
    "heartbeats-and-the-end-of-a-session" {
        "an agent that reads late gets each batch, once" => late,
        "an agent that does not read is given up after four intervals, and holds up no other" => never,
        "an idle server sends heartbeats with the last sequence" => heartbeats,
        "a silent agent is given up after four intervals" => silence,
        "decisions are sent before a closed stream ends with OK" => closed,
        "a deadline that the agent sets ends the stream" => deadline,
    }
    "isolation" {
        "a session that fails leaves its neighbour alone" => neighbour,
        "sessions do not see each other's objects" => clusters,
    }
    "refusals" {
        "a refusal says which fields are wrong" => fields,
        "Decide answers with the victims in order" => decide,
    }
}

/// An endpoint on which an unread stream does not block other streams of its connection.
#[must_use]
pub fn narrow(endpoint: Endpoint) -> Endpoint {
    endpoint.initial_stream_window_size(WINDOW)
}

/// Opens a session with more batches than fit into its window. Returns the number of their creates.
async fn opened(server: &Server) -> Result<(Link, usize), String> {
    let mut link = server.open().await?;
    let sets = (0..SETS).map(|number| replica_set(&format!("web-{number}"), 500));
    link.list(sets, []).await;
    let creates = BURST * (link.in_flight_max() / BURST).clamp(1, SETS);
    Ok((link, creates))
}

/// Sends heartbeats for `duration`, without reading.
async fn beat(link: &mut Link, duration: Duration) {
    let until = Instant::now() + duration;
    while Instant::now() < until {
        link.send(Frame::Heartbeat(Heartbeat::default())).await;
        let left = until.saturating_duration_since(Instant::now());
        sleep(link.interval().min(left)).await;
    }
}

async fn late(server: Server) -> Verdict {
    let (mut link, creates) = opened(&server).await?;
    // Two and a half intervals are less than four, even on a busy machine.
    let pause = 5 * link.interval() / 2;
    beat(&mut link, pause).await;
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
    let is_right = found == (creates, creates);
    holds(is_right, &format!("{creates} names"), &found)
}

async fn never(server: Server) -> Verdict {
    let (mut link, _) = opened(&server).await?;
    let interval = link.interval();
    beat(&mut link, interval).await;
    let mut neighbour = server.open_shard("neighbour").await?;
    neighbour.expect_served().await?;
    // The first unread frame may be a heartbeat after the batches, because HTTP/2 may take some of the frames.
    beat(&mut link, 8 * interval).await;
    link.ends("AGENT_NOT_READING", &[]).await.map(drop)
}

async fn heartbeats(server: Server) -> Verdict {
    let mut link = server.open().await?;
    let beat = timeout(2 * link.interval(), link.any()).await;
    match beat.map_err(|_| "no heartbeat within two intervals")?? {
        Ok(Answer::Heartbeat(beat)) if beat.last_sequence == 1 && beat.view_age.is_none() => Ok(()),
        other => Err(wrong("a heartbeat with sequence 1", &other)),
    }
}

async fn silence(server: Server) -> Verdict {
    let mut link = server.open().await?;
    let (began, interval) = (Instant::now(), link.interval());
    loop {
        let next = timeout(6 * interval, link.any()).await;
        let next = next.map_err(|_| "it was not given up after six intervals")??;
        if let Err(status) = next {
            let is_right =
                status.code() == Code::DeadlineExceeded && began.elapsed() >= 3 * interval;
            return holds(is_right, "AGENT_SILENT after four intervals", &status);
        }
    }
}

async fn closed(server: Server) -> Verdict {
    let mut link = server.open_with(web(1), []).await?;
    link.close();
    link.creates().await?;
    link.expect_ok().await
}

async fn deadline(server: Server) -> Verdict {
    let mut link = server.connect(Some(DEADLINE)).await?;
    link.send(Frame::Hello(server.hello())).await;
    link.expect_welcome().await?;
    let interval = link.interval();
    let ended = async {
        loop {
            link.send(Frame::Heartbeat(Heartbeat::default())).await;
            let end = link.ends("DEADLINE_EXCEEDED", &[]);
            if let Ok(end) = timeout(interval, end).await {
                return end.map(drop);
            }
        }
    };
    let ended = timeout(3 * DEADLINE, ended).await;
    ended.unwrap_or_else(|_| Err("it is open after three times its deadline".to_owned()))
}

async fn neighbour(server: Server) -> Verdict {
    let mut good = server.open_shard("good").await?;
    let mut bad = server.open_shard("bad").await?;
    bad.send(Frame::Hello(server.hello())).await;
    bad.ends("HELLO_REPEATED", &[]).await?;
    good.expect_served().await
}

async fn clusters(server: Server) -> Verdict {
    let mut one = server.open_shard("one").await?;
    one.list([web(1)], [pod("a")]).await;
    let mut other = server.open_shard("other").await?;
    other.list([web(1)], []).await;
    let (batch, names) = other.creates().await?;
    one.event(web_gone("110")).await;
    other.created(&batch, &names, 150).await;
    other.event(gone(&names[0], "160")).await;
    other.creates_after_statuses().await.map(drop)
}

async fn fields(server: Server) -> Verdict {
    let mut client = DecisionServiceClient::new(server.channel.clone());
    let Err(status) = client.decide(DecideRequest::default()).await else {
        return Err("a Decide without a ReplicaSet was answered".to_owned());
    };
    expect_reason(&status, "INVALID_FIELD", &[])?;
    let names_it = status.get_details_bad_request().is_some_and(|request| {
        let mut violations = request.field_violations.iter();
        violations.any(|one| one.field == "replica_set")
    });
    holds(names_it, "INVALID_FIELD of replica_set", &status)
}

async fn decide(server: Server) -> Verdict {
    let mut client = DecisionServiceClient::new(server.channel.clone());
    let request = DecideRequest {
        replica_set: Some(web(0)),
        pods: vec![pod("a"), pod("b")],
        ..DecideRequest::default()
    };
    let answer = client.decide(request).await;
    let answer = answer.map_err(|status| wrong("a decision", &status))?;
    let deletes = answer.into_inner().decision.unwrap_or_default().deletes;
    holds(deletes.len() == 2, "two victims", &deletes)
}
