//! The opening of sessions, the options of a Hello, the live one of two sessions, and the numbers of frames.

use decree::v1::{
    Heartbeat, Hello, Kind, Mode, Options, Pod, batch::Action, reconcile_request::Frame,
};
use tonic_types::StatusExt as _;

use super::{
    case::cases,
    link::Server,
    objects::{pod, settled, web},
    verdict::{Verdict, holds, wrong},
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
        "unknown modes are refused" => unknown_mode,
        "the fields of a Hello that are out of range are all named" => fields_out_of_range,
        "the burst and the slow start of the Hello rule the batches" => burst,
        "a Hello that asks for deletion by version gets the versions" => delete_by_version,
    }
    "refusals" {
        "a refusal states its facts" => facts,
        "a refusal carries the details that belong to its code" => details,
    }
    "one-writer" {
        "an equal epoch ends the older session" => equal_epoch,
        "a lower epoch is refused while a newer session lives" => lower_epoch,
        "shards of a cluster have independent sessions" => shards,
        "each batch carries session and epoch" => guard,
        "a higher epoch ends the older session, and the refusal names the newer one" => higher_epoch,
        "a session that is refused for its epoch leaves the newer one alone" => undisturbed,
        "a lower epoch is accepted once no session with a higher one is live" => vacant,
        "a session of an equal epoch may have another mode and other options" => other_options,
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
    let mut link = server.connect(None).await?;
    link.begin(Kind::Pod).await;
    link.ends("HELLO_EXPECTED", &[]).await.map(drop)
}

async fn late_hello(server: Server) -> Verdict {
    let mut link = server.connect(None).await?;
    link.ends("HELLO_TIMEOUT", &[]).await.map(drop)
}

async fn second_hello(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.send(Frame::Hello(server.hello())).await;
    link.ends("HELLO_REPEATED", &[]).await.map(drop)
}

async fn protocol(server: Server) -> Verdict {
    let later = Hello {
        protocol_min: 1_000,
        protocol_max: 1_001,
        ..server.hello()
    };
    let status = server.refuses(later, "PROTOCOL_UNSUPPORTED").await?;
    let info = status.get_details_error_info();
    let says_which = info.is_some_and(|info| info.metadata.contains_key("supported"));
    holds(says_which, "the versions that are supported", &status)?;
    let wide = Hello {
        protocol_max: 1_000,
        ..server.hello()
    };
    let welcome = server.open_as(wide).await?.welcome;
    let is_in_range = (1..=1_000).contains(&welcome.protocol);
    holds(is_in_range, "a version of the range", &welcome)
}

async fn capability(server: Server) -> Verdict {
    let names = ["conformance-unknown", "conformance-later"];
    let hello = Hello {
        capabilities: names.map(str::to_owned).into(),
        ..server.hello()
    };
    let status = server.refuses(hello, "CAPABILITY_UNSUPPORTED").await?;
    let failed = status.get_details_precondition_failure();
    let violations = failed.map(|failed| failed.violations).unwrap_or_default();
    let is_subject = |name| violations.iter().any(|it| it.subject.contains(name));
    let are_named = names.into_iter().all(is_subject);
    holds(are_named, &format!("{names:?}"), &violations)
}

async fn welcome(server: Server) -> Verdict {
    let welcome = server.open().await?.welcome;
    let limits = welcome.limits.unwrap_or_default();
    let is_whole = !welcome.session_id.is_empty()
        && limits.max_frame_bytes > 0
        && welcome.heartbeat_interval.is_some();
    let expected = "a session, limits and a heartbeat interval";
    holds(is_whole, expected, &welcome)
}

async fn lists_at_once(server: Server) -> Verdict {
    let mut link = server.connect(None).await?;
    link.send(Frame::Hello(server.hello())).await;
    link.list([web(1)], []).await;
    link.expect_welcome().await?;
    link.creates().await.map(drop)
}

async fn unknown_mode(server: Server) -> Verdict {
    let mut hello = server.hello();
    hello.mode = 77;
    let refused = server.refuses(hello, "CAPABILITY_UNSUPPORTED").await;
    refused.map(drop)
}

async fn fields_out_of_range(server: Server) -> Verdict {
    let hello = Hello {
        protocol_min: 0,
        agent_instance: String::new(),
        cluster_uid: "c\n1".to_owned(),
        cluster_name: "north\u{7}".to_owned(),
        shard: "s".repeat(129),
        epoch: -1,
        options: Some(Options {
            burst_replicas: Some(0),
            slow_start_initial: Some(501),
            ..Options::default()
        }),
        ..server.hello()
    };
    let status = server.refuses(hello, "INVALID_FIELD").await?;
    let request = status.get_details_bad_request();
    let violations = request.map(|request| request.field_violations);
    let violations = violations.into_iter().flatten();
    let mut named: Vec<_> = violations.map(|one| one.field).collect();
    named.sort();
    let expected = [
        "agent_instance",
        "cluster_name",
        "cluster_uid",
        "epoch",
        "options.burst_replicas",
        "options.slow_start_initial",
        "protocol_min",
        "shard",
    ];
    holds(named == expected, &format!("{expected:?}"), &named)
}

fn with(server: &Server, options: Options) -> Hello {
    Hello {
        options: Some(options),
        ..server.hello()
    }
}

async fn burst(server: Server) -> Verdict {
    let options = Options {
        burst_replicas: Some(2),
        slow_start_initial: Some(3),
        ..Options::default()
    };
    let mut link = server.open_as(with(&server, options)).await?;
    link.list([web(5)], []).await;
    match link.batch().await?.action {
        Some(Action::Create(create)) => {
            let is_right = create.names.len() == 2 && create.slow_start_initial == 3;
            holds(is_right, "two creates, with a slow start of 3", &create)
        }
        other => Err(wrong("a create", &other)),
    }
}

async fn delete_by_version(server: Server) -> Verdict {
    let options = Options {
        delete_by_version: Some(true),
        ..Options::default()
    };
    let mut link = server.open_as(with(&server, options)).await?;
    link.list([settled(0)], [pod("a")]).await;
    match link.batch().await?.action {
        Some(Action::Delete(delete)) => {
            let victims = delete.victims.iter();
            let versions: Vec<_> = victims.map(|one| &one.resource_version).collect();
            holds(versions == ["20"], "version 20", &versions)
        }
        other => Err(wrong("a delete", &other)),
    }
}

async fn facts(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.send_as(5, heartbeat()).await;
    let facts = [("expected", "2"), ("got", "5")];
    link.ends("SEQUENCE_GAP", &facts).await.map(drop)
}

async fn details(server: Server) -> Verdict {
    let mut link = server.connect(None).await?;
    link.begin(Kind::Pod).await;
    let status = link.ends("HELLO_EXPECTED", &[]).await?;
    let failed = status.get_details_precondition_failure();
    let is_named = failed.is_some_and(|failed| !failed.violations.is_empty());
    holds(is_named, "a PreconditionFailure", &status)
}

async fn equal_epoch(server: Server) -> Verdict {
    let mut older = server.open().await?;
    let _newer = server.open().await?;
    older.ends("SESSION_SUPERSEDED", &[]).await.map(drop)
}

async fn lower_epoch(server: Server) -> Verdict {
    let _newer = server.open_as(server.hello_at(7)).await?;
    let older = server.hello_at(6);
    server.refuses(older, "EPOCH_TOO_OLD").await.map(drop)
}

async fn shards(server: Server) -> Verdict {
    let mut one = server.open_shard("one").await?;
    let mut other = server.open_shard("other").await?;
    let is_another = one.welcome.session_id != other.welcome.session_id;
    holds(is_another, "another session", &other.welcome)?;
    one.expect_served().await?;
    other.expect_served().await
}

async fn guard(server: Server) -> Verdict {
    let mut link = server.open_as(server.hello_at(3)).await?;
    link.list([web(1)], []).await;
    let guard = link.batch().await?.guard.unwrap_or_default();
    let is_right = guard.session_id == link.welcome.session_id && guard.epoch == 3;
    holds(is_right, "the session and epoch 3", &guard)
}

async fn higher_epoch(server: Server) -> Verdict {
    let mut older = server.open_as(server.hello_at(1)).await?;
    let mut newer = server.open_as(server.hello_at(2)).await?;
    let facts = [
        ("session_id", &newer.welcome.session_id[..]),
        ("agent_instance", &server.hello().agent_instance),
        ("epoch", "2"),
    ];
    older.ends("SESSION_SUPERSEDED", &facts).await?;
    newer.expect_served().await
}

async fn undisturbed(server: Server) -> Verdict {
    let mut newer = server.open_as(server.hello_at(7)).await?;
    let mut older = server.connect(None).await?;
    older.send(Frame::Hello(server.hello_at(6))).await;
    older.ends("EPOCH_TOO_OLD", &[("newest", "7")]).await?;
    newer.expect_served().await
}

async fn vacant(server: Server) -> Verdict {
    let mut newer = server.open_as(server.hello_at(7)).await?;
    newer.close();
    newer.expect_ok().await?;
    let mut older = server.open_as(server.hello_at(6)).await?;
    older.expect_served().await
}

async fn other_options(server: Server) -> Verdict {
    let hello = |mode: Mode, burst| Hello {
        mode: mode.into(),
        options: Some(Options {
            burst_replicas: Some(burst),
            ..Options::default()
        }),
        ..server.hello_at(1)
    };
    let mut older = server.open_as(hello(Mode::DryRun, 5)).await?;
    let mut newer = server.open_as(hello(Mode::Enforce, 2)).await?;
    older.ends("SESSION_SUPERSEDED", &[]).await?;
    newer.list([web(7)], []).await;
    let (_, names) = newer.creates().await?;
    holds(names.len() == 2, "two creates", &names)
}

fn heartbeat() -> Frame {
    Frame::Heartbeat(Heartbeat::default())
}

async fn gap(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.send_as(3, heartbeat()).await;
    link.ends("SEQUENCE_GAP", &[]).await.map(drop)
}

async fn repeated_number(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.send_as(1, heartbeat()).await;
    link.ends("SEQUENCE_GAP", &[]).await.map(drop)
}

async fn unnumbered(server: Server) -> Verdict {
    let mut link = server.connect(None).await?;
    link.send_as(0, Frame::Hello(server.hello())).await;
    link.send_as(0, heartbeat()).await;
    link.expect_welcome().await?;
    link.close();
    link.expect_ok().await
}

/// The number of each received frame is verified during the read.
async fn numbered(server: Server) -> Verdict {
    server.creates(web(1)).await.map(drop)
}

async fn large_frame(server: Server) -> Verdict {
    let mut link = server.open().await?;
    let limits = link.welcome.limits.unwrap_or_default();
    let limit = limits.max_frame_bytes;
    let large = Pod {
        node_name: "x".repeat(usize::try_from(limit).unwrap_or(0) + 1),
        ..pod("large")
    };
    link.begin(Kind::Pod).await;
    link.pods([large]).await;
    let facts = [("max_bytes", &limit.to_string()[..])];
    link.ends("MESSAGE_TOO_LARGE", &facts).await.map(drop)
}
