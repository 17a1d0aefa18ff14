//! The live one of two sessions of a cluster.

use decree::v1::{Hello, Mode, Options, reconcile_request::Frame};
use tonic::Code;

use super::{
    case::{Verdict, cases},
    link::{Link, Server, expect_facts, holds},
    objects::replica_set,
};

cases! {
    "one-writer" {
        "a higher epoch ends the older session, and the refusal names the newer one" => higher_epoch,
        "a session that is refused for its epoch leaves the newer one alone" => undisturbed,
        "a lower epoch is accepted once no session with a higher one is live" => vacant,
        "a session of an equal epoch may have another mode and other options" => other_options,
    }
}

fn at(server: &Server, epoch: i64) -> Hello {
    Hello {
        epoch,
        ..server.hello()
    }
}

async fn higher_epoch(server: Server) -> Verdict {
    let (mut older, _) = server.open_as(at(&server, 1)).await?;
    let (mut newer, welcome) = server.open_as(at(&server, 2)).await?;
    let status = older
        .expect_end(Code::Aborted, "SESSION_SUPERSEDED")
        .await?;
    let facts = [
        ("session_id", &welcome.session_id[..]),
        ("agent_instance", &server.hello().agent_instance),
        ("epoch", "2"),
    ];
    expect_facts(&status, &facts)?;
    expect_served(&mut newer).await
}

async fn undisturbed(server: Server) -> Verdict {
    let (mut newer, _) = server.open_as(at(&server, 7)).await?;
    let mut older = server.connect().await?;
    older.send(Frame::Hello(at(&server, 6))).await;
    let status = older
        .expect_end(Code::FailedPrecondition, "EPOCH_TOO_OLD")
        .await?;
    expect_facts(&status, &[("newest", "7")])?;
    expect_served(&mut newer).await
}

async fn vacant(server: Server) -> Verdict {
    let (mut newer, _) = server.open_as(at(&server, 7)).await?;
    newer.close();
    newer.expect_ok().await?;
    let (mut older, _) = server.open_as(at(&server, 6)).await?;
    expect_served(&mut older).await
}

async fn other_options(server: Server) -> Verdict {
    let with_burst = |burst| Hello {
        mode: Mode::DryRun.into(),
        options: Some(Options {
            burst_replicas: burst,
            ..Options::default()
        }),
        ..at(&server, 1)
    };
    let (mut older, _) = server.open_as(with_burst(Some(5))).await?;
    let other = Hello {
        mode: Mode::Enforce.into(),
        ..with_burst(Some(2))
    };
    let (mut newer, _) = server.open_as(other).await?;
    older
        .expect_end(Code::Aborted, "SESSION_SUPERSEDED")
        .await?;
    newer.list(vec![replica_set("web", 7)], Vec::new()).await;
    let (_, names) = newer.creates().await?;
    holds(names.len() == 2, "two creates", &names)
}

/// Lists a ReplicaSet without pods, and expects a create.
async fn expect_served(link: &mut Link) -> Verdict {
    link.list(vec![replica_set("web", 1)], Vec::new()).await;
    link.creates().await.map(drop)
}
