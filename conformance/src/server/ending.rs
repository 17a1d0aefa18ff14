//! Heartbeats, the end of a session, isolation, and calls without a session.

use std::time::Duration;

use decree::v1::{
    DecideRequest, Heartbeat, decision_service_client::DecisionServiceClient,
    reconcile_request::Frame, reconcile_response::Frame as Answer,
};
use tokio::time::{Instant, timeout};
use tonic::Code;
use tonic_types::StatusExt as _;

use super::{
    case::{Verdict, cases},
    link::{Server, holds, interval_of, wrong},
    objects::{gone, gone_set, pod, replica_set},
};

/// The deadline of a stream. It leaves time for the Welcome on a busy machine, and precedes the end by the client.
const DEADLINE: Duration = Duration::from_secs(10);

cases! {
    "heartbeats-and-the-end-of-a-session" {
        "an idle server sends heartbeats with the last sequence" => heartbeats,
        "a silent agent is given up after four intervals" => silence,
        "what was decided is sent before a closed stream ends with OK" => closed,
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

async fn heartbeats(server: Server) -> Verdict {
    let (mut link, welcome) = server.open_as(server.hello()).await?;
    let interval = interval_of(&welcome);
    let beat = timeout(2 * interval, link.any()).await;
    match beat.map_err(|_| "no heartbeat within two intervals")?? {
        Ok(Answer::Heartbeat(beat)) if beat.last_sequence == 1 && beat.view_age.is_none() => Ok(()),
        other => Err(wrong("a heartbeat with sequence 1", &other)),
    }
}

async fn silence(server: Server) -> Verdict {
    let (mut link, welcome) = server.open_as(server.hello()).await?;
    let (began, interval) = (Instant::now(), interval_of(&welcome));
    loop {
        match timeout(6 * interval, link.any())
            .await
            .map_err(|_| "it was not given up after six intervals")??
        {
            Err(status)
                if status.code() == Code::DeadlineExceeded && began.elapsed() >= 3 * interval =>
            {
                return Ok(());
            }
            Err(status) => return Err(wrong("AGENT_SILENT after four intervals", &status)),
            Ok(_) => {}
        }
    }
}

async fn closed(server: Server) -> Verdict {
    let mut link = server.open_set(replica_set("web", 1)).await?;
    link.close();
    link.creates().await?;
    link.expect_ok().await
}

async fn deadline(server: Server) -> Verdict {
    let mut link = server.connect_for(Some(DEADLINE)).await?;
    link.send(Frame::Hello(server.hello())).await;
    let interval = interval_of(&link.expect_welcome().await?);
    let ended = async {
        loop {
            link.send(Frame::Heartbeat(Heartbeat::default())).await;
            let end = link.expect_end(Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
            if let Ok(end) = timeout(interval, end).await {
                return end.map(drop);
            }
        }
    };
    let ended = timeout(3 * DEADLINE, ended).await;
    ended.unwrap_or_else(|_| Err("it is open after three times its deadline".to_owned()))
}

async fn neighbour(server: Server) -> Verdict {
    let (mut good, _) = server.open_shard("good").await?;
    let (mut bad, _) = server.open_shard("bad").await?;
    bad.send(Frame::Hello(server.hello())).await;
    bad.expect_end(Code::FailedPrecondition, "HELLO_REPEATED")
        .await?;
    good.list(vec![replica_set("web", 1)], Vec::new()).await;
    good.creates().await.map(drop)
}

async fn clusters(server: Server) -> Verdict {
    let (mut one, _) = server.open_shard("one").await?;
    one.list(vec![replica_set("web", 1)], vec![pod("a", "web")])
        .await;
    let (mut other, _) = server.open_shard("other").await?;
    other.list(vec![replica_set("web", 1)], Vec::new()).await;
    let (batch, names) = other.creates().await?;
    one.event(gone_set("web", "110")).await;
    other.created(&batch, &names, 150).await;
    other.event(gone(&names[0], "160")).await;
    other
        .creates_after_statuses(&replica_set("web", 1))
        .await
        .map(drop)
}

async fn fields(server: Server) -> Verdict {
    let mut client = DecisionServiceClient::new(server.channel.clone());
    let Err(status) = client.decide(DecideRequest::default()).await else {
        return Err("a Decide without a ReplicaSet was answered".to_owned());
    };
    let names_it = status.get_details_bad_request().is_some_and(|request| {
        let mut violations = request.field_violations.iter();
        violations.any(|one| one.field == "replica_set")
    });
    let info = status.get_details_error_info();
    let is_right = status.code() == Code::InvalidArgument
        && info.is_some_and(|info| info.reason == "INVALID_FIELD")
        && names_it;
    holds(is_right, "INVALID_FIELD of replica_set", &status)
}

async fn decide(server: Server) -> Verdict {
    let mut client = DecisionServiceClient::new(server.channel.clone());
    let request = DecideRequest {
        replica_set: Some(replica_set("web", 0)),
        pods: vec![pod("a", "web"), pod("b", "web")],
        ..DecideRequest::default()
    };
    let answer = client
        .decide(request)
        .await
        .map_err(|status| wrong("a decision", &status))?;
    let deletes = answer.into_inner().decision.unwrap_or_default().deletes;
    holds(deletes.len() == 2, "two victims", &deletes)
}
