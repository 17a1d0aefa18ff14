//! The options of a Hello.

use decree::v1::{Hello, Kind, Options, batch::Action, reconcile_request::Frame};
use tonic::Code;
use tonic_types::StatusExt as _;

use super::{
    case::{Verdict, cases},
    link::{Server, expect_facts, holds, wrong},
    objects::{pod, replica_set, settled},
};

cases! {
    "opening" {
        "unknown modes are refused" => unknown_mode,
        "the fields of a Hello that are out of range are all named" => fields_out_of_range,
        "the burst and the slow start of the Hello rule the batches" => burst,
        "a Hello that asks for deletion by version gets the versions" => delete_by_version,
    }
    "refusals" {
        "a refusal states its facts" => facts,
        "a refusal carries the details that belong to its code" => details,
    }
}

async fn unknown_mode(server: Server) -> Verdict {
    let mut link = server.connect().await?;
    let hello = Hello {
        mode: 77,
        ..server.hello()
    };
    link.send(Frame::Hello(hello)).await;
    link.ends_with(Code::FailedPrecondition, "CAPABILITY_UNSUPPORTED")
        .await
}

async fn fields_out_of_range(server: Server) -> Verdict {
    let mut link = server.connect().await?;
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
    link.send(Frame::Hello(hello)).await;
    let status = link
        .expect_end(Code::InvalidArgument, "INVALID_FIELD")
        .await?;
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
    let (mut link, _) = server.open_as(with(&server, options)).await?;
    link.list(vec![replica_set("web", 5)], Vec::new()).await;
    match link.batch().await?.action {
        Some(Action::Create(create)) => holds(
            create.names.len() == 2 && create.slow_start_initial == 3,
            "two creates, with a slow start of 3",
            &create,
        ),
        other => Err(wrong("a create", &other)),
    }
}

async fn delete_by_version(server: Server) -> Verdict {
    let options = Options {
        delete_by_version: Some(true),
        ..Options::default()
    };
    let (mut link, _) = server.open_as(with(&server, options)).await?;
    link.list(vec![settled("web", 0)], vec![pod("a", "web")])
        .await;
    match link.batch().await?.action {
        Some(Action::Delete(delete)) => {
            let versions: Vec<_> = delete
                .victims
                .iter()
                .map(|one| &one.resource_version)
                .collect();
            holds(versions == ["20"], "version 20", &versions)
        }
        other => Err(wrong("a delete", &other)),
    }
}

async fn facts(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.send_as(5, Frame::Heartbeat(decree::v1::Heartbeat::default()))
        .await;
    let status = link.expect_end(Code::Aborted, "SEQUENCE_GAP").await?;
    expect_facts(&status, &[("expected", "2"), ("got", "5")])
}

async fn details(server: Server) -> Verdict {
    let mut link = server.connect().await?;
    link.begin(Kind::Pod).await;
    let status = link
        .expect_end(Code::FailedPrecondition, "HELLO_EXPECTED")
        .await?;
    let failed = status.get_details_precondition_failure();
    let is_named = failed.is_some_and(|failed| !failed.violations.is_empty());
    holds(is_named, "a PreconditionFailure", &status)
}
