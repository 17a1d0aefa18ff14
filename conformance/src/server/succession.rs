//! Which of two sessions of a cluster is live.

use decree::v1::{Hello, reconcile_request::Frame};
use tonic::Code;

use super::{
    case::{Case, Verdict, case},
    link::{Link, Server, expect_facts},
    objects::replica_set,
};

pub(super) const CASES: &[Case] = &[
    case!(
        "one-writer",
        "a higher epoch ends the older session, and the refusal names the newer one",
        higher_epoch
    ),
    case!(
        "one-writer",
        "a session that is refused for its epoch leaves the newer one alone",
        undisturbed
    ),
    case!(
        "one-writer",
        "a lower epoch is accepted once no session with a higher one is live",
        vacant
    ),
];

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
    let facts = [("session_id", &welcome.session_id[..]), ("epoch", "2")];
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

/// Lists a ReplicaSet without pods, and expects that one is created.
async fn expect_served(link: &mut Link) -> Verdict {
    link.list_sets(vec![replica_set("web", 1)]).await;
    link.list_pods(Vec::new()).await;
    link.creates().await.map(drop)
}
