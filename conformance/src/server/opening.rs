//! The opening of sessions, the live one of two sessions, and the numbers of frames.

use decree::v1::{Heartbeat, Hello, Kind, Pod, SnapshotObjects, reconcile_request::Frame};
use tonic::Code;
use tonic_types::StatusExt as _;

use super::{
    case::{Verdict, cases},
    link::{Server, expect_facts, holds},
    objects::{pod, replica_set},
};

cases! {
    "opening" {
        "the first frame must be a Hello" => first_frame,
        "the Hello must arrive in time" => late_hello,
        "a stream has exactly one Hello" => second_hello,
        "the range of versions must contain one that the server supports" => protocol,
        "unknown capabilities are refused by name" => capability,
        "the first frame of the server is a Welcome with the session and its limits" => welcome,
        "lists may precede the Welcome" => lists_at_once,
    }
    "one-writer" {
        "an equal epoch ends the older session" => equal_epoch,
        "a lower epoch is refused while a newer session lives" => lower_epoch,
        "shards of a cluster stand side by side" => shards,
        "each batch carries session and epoch" => guard,
    }
    "frames" {
        "a gap in the numbers ends the session" => gap,
        "a number that comes twice ends the session" => repeated_number,
        "frames may be unnumbered" => unnumbered,
        "the frames of the server are numbered from 1 without gaps" => numbered,
        "a frame over the limit ends the session" => large_frame,
    }
}

async fn first_frame(server: Server) -> Verdict {
    let mut link = server.connect().await?;
    link.begin(Kind::Pod).await;
    link.ends_with(Code::FailedPrecondition, "HELLO_EXPECTED")
        .await
}

async fn late_hello(server: Server) -> Verdict {
    let mut link = server.connect().await?;
    link.ends_with(Code::DeadlineExceeded, "HELLO_TIMEOUT")
        .await
}

async fn second_hello(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.send(Frame::Hello(server.hello())).await;
    link.ends_with(Code::FailedPrecondition, "HELLO_REPEATED")
        .await
}

async fn protocol(server: Server) -> Verdict {
    let mut link = server.connect().await?;
    let later = Hello {
        protocol_min: 1_000,
        protocol_max: 1_001,
        ..server.hello()
    };
    link.send(Frame::Hello(later)).await;
    let status = link
        .expect_end(Code::FailedPrecondition, "PROTOCOL_UNSUPPORTED")
        .await?;
    let info = status.get_details_error_info();
    let says_which = info.is_some_and(|info| info.metadata.contains_key("supported"));
    holds(says_which, "the versions that are supported", &status)?;
    let wide = Hello {
        protocol_max: 1_000,
        ..server.hello()
    };
    let (_link, welcome) = server.open_as(wide).await?;
    let is_in_range = (1..=1_000).contains(&welcome.protocol);
    holds(is_in_range, "a version of the range", &welcome)
}

async fn capability(server: Server) -> Verdict {
    let mut link = server.connect().await?;
    let names = ["conformance-unknown", "conformance-later"];
    let hello = Hello {
        capabilities: names.map(str::to_owned).into(),
        ..server.hello()
    };
    link.send(Frame::Hello(hello)).await;
    let status = link
        .expect_end(Code::FailedPrecondition, "CAPABILITY_UNSUPPORTED")
        .await?;
    let failed = status.get_details_precondition_failure();
    let violations = failed.map(|failed| failed.violations).unwrap_or_default();
    let is_subject = |name| violations.iter().any(|it| it.subject.contains(name));
    holds(
        names.into_iter().all(is_subject),
        &format!("{names:?}"),
        &violations,
    )
}

async fn welcome(server: Server) -> Verdict {
    let (_link, welcome) = server.open_as(server.hello()).await?;
    let is_whole = !welcome.session_id.is_empty()
        && welcome
            .limits
            .is_some_and(|limits| limits.max_frame_bytes > 0)
        && welcome.heartbeat_interval.is_some();
    holds(
        is_whole,
        "a session, limits and a heartbeat interval",
        &welcome,
    )
}

async fn lists_at_once(server: Server) -> Verdict {
    let mut link = server.connect().await?;
    link.send(Frame::Hello(server.hello())).await;
    link.list(vec![replica_set("web", 1)], Vec::new()).await;
    link.expect_welcome().await?;
    link.creates().await.map(drop)
}

async fn equal_epoch(server: Server) -> Verdict {
    let mut older = server.open().await?;
    let _newer = server.open().await?;
    older.ends_with(Code::Aborted, "SESSION_SUPERSEDED").await
}

async fn lower_epoch(server: Server) -> Verdict {
    let newer = Hello {
        epoch: 7,
        ..server.hello()
    };
    let (_newer, _) = server.open_as(newer).await?;
    let mut older = server.connect().await?;
    older
        .send(Frame::Hello(Hello {
            epoch: 6,
            ..server.hello()
        }))
        .await;
    older
        .ends_with(Code::FailedPrecondition, "EPOCH_TOO_OLD")
        .await
}

async fn shards(server: Server) -> Verdict {
    let (mut one, first) = server.open_shard("one").await?;
    let (mut other, second) = server.open_shard("other").await?;
    holds(
        first.session_id != second.session_id,
        "another session",
        &second,
    )?;
    for link in [&mut one, &mut other] {
        link.list(vec![replica_set("web", 1)], Vec::new()).await;
        link.creates().await?;
    }
    Ok(())
}

async fn guard(server: Server) -> Verdict {
    let (mut link, welcome) = server
        .open_as(Hello {
            epoch: 3,
            ..server.hello()
        })
        .await?;
    link.list(vec![replica_set("web", 1)], Vec::new()).await;
    let guard = link.batch().await?.guard.unwrap_or_default();
    let is_right = guard.session_id == welcome.session_id && guard.epoch == 3;
    holds(is_right, "the session and epoch 3", &guard)
}

async fn gap(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.send_as(3, Frame::Heartbeat(Heartbeat::default()))
        .await;
    link.ends_with(Code::Aborted, "SEQUENCE_GAP").await
}

async fn repeated_number(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.send_as(1, Frame::Heartbeat(Heartbeat::default()))
        .await;
    link.ends_with(Code::Aborted, "SEQUENCE_GAP").await
}

async fn unnumbered(server: Server) -> Verdict {
    let mut link = server.connect().await?;
    link.send_as(0, Frame::Hello(server.hello())).await;
    link.send_as(0, Frame::Heartbeat(Heartbeat::default()))
        .await;
    link.expect_welcome().await?;
    link.close();
    link.expect_ok().await
}

/// The number of each received frame is verified during the read.
async fn numbered(server: Server) -> Verdict {
    let mut link = server.open_set(replica_set("web", 1)).await?;
    link.creates().await.map(drop)
}

async fn large_frame(server: Server) -> Verdict {
    let (mut link, welcome) = server.open_as(server.hello()).await?;
    let limit = welcome.limits.unwrap_or_default().max_frame_bytes;
    let node_name = "x".repeat(usize::try_from(limit).unwrap_or(0) + 1);
    let pods = vec![Pod {
        node_name,
        ..pod("large", "web")
    }];
    link.begin(Kind::Pod).await;
    link.send(Frame::SnapshotObjects(SnapshotObjects {
        pods,
        ..SnapshotObjects::default()
    }))
    .await;
    let status = link
        .expect_end(Code::OutOfRange, "MESSAGE_TOO_LARGE")
        .await?;
    expect_facts(&status, &[("max_bytes", &limit.to_string())])
}
