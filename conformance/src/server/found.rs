//! The state that an operation found: the rows of the table "outcome by state found" of docs/protocol.md without another case.

use decree::v1::{FailureClass, NotStarted, NotStartedCause, batch::Action, outcome};

use super::{
    case::{Verdict, cases},
    link::{Server, failed, holds, wrong},
    objects::{pod, replica_set, settled},
};

cases! {
    "outcome-by-state-found" {
        "a deletion that finds no pod takes it out of the view" => absent_victim,
        "a deletion that finds another pod is decided again" => other_victim,
        "a create in a namespace that is being deleted is no failure and is not repeated" => terminating,
        "a create that slow start left out is decided again, under another name or the same" => left_out,
        "a status that was not written is decided again" => status,
    }
}

async fn absent_victim(server: Server) -> Verdict {
    let pods = vec![pod("a", "web"), pod("b", "web")];
    let mut link = server.open_with(vec![settled("web", 1)], pods).await?;
    let batch = link.batch().await?;
    if !matches!(&batch.action, Some(Action::Delete(delete)) if delete.victims.len() == 1) {
        return Err(wrong("one deletion", &batch.action));
    }
    link.report(batch.id, 0, failed(FailureClass::NotFound))
        .await;
    link.settles(&settled("web", 1)).await?;
    link.expect_nothing().await
}

async fn other_victim(server: Server) -> Verdict {
    let pods = vec![pod("a", "web"), pod("b", "web")];
    let mut link = server.open_with(vec![settled("web", 1)], pods).await?;
    let first = link.batch().await?;
    link.report(first.id, 0, failed(FailureClass::Precondition))
        .await;
    loop {
        let batch = link.batch().await?;
        match batch.action {
            Some(Action::Delete(_)) => return Ok(()),
            Some(Action::WriteStatus(write)) => {
                link.wrote(batch.id, write, &settled("web", 1)).await;
            }
            other => return Err(wrong("the deletion again", &other)),
        }
    }
}

async fn terminating(server: Server) -> Verdict {
    let set = replica_set("web", 1);
    let mut link = server.open_set(set.clone()).await?;
    let (batch, _) = link.creates().await?;
    link.report(batch.id, 0, failed(FailureClass::NamespaceTerminating))
        .await;
    let batch = link.batch().await?;
    let Some(Action::WriteStatus(write)) = batch.action else {
        return Err(wrong("a status", &batch.action));
    };
    let conditions = write.status.as_ref().map(|status| &status.conditions[..]);
    holds(
        conditions == Some(&[]),
        "a status without ReplicaFailure",
        &conditions,
    )?;
    link.wrote(batch.id, write, &set).await;
    link.expect_nothing().await
}

async fn left_out(server: Server) -> Verdict {
    let mut link = server.open_set(replica_set("web", 2)).await?;
    let (batch, names) = link.creates().await?;
    link.created(&batch, &names[..1], 150).await;
    let skipped = outcome::Outcome::NotStarted(NotStarted {
        cause: NotStartedCause::SlowStart.into(),
        ..NotStarted::default()
    });
    link.report(batch.id, 1, skipped).await;
    let (_, again) = link.creates_after_statuses(&replica_set("web", 2)).await?;
    holds(again.len() == 1, "one create", &again)
}

async fn status(server: Server) -> Verdict {
    let set = replica_set("web", 0);
    let mut link = server.open_set(set.clone()).await?;
    let classes = [
        FailureClass::NotFound,
        FailureClass::Precondition,
        FailureClass::Conflict,
    ];
    for class in classes {
        let batch = link.batch().await?;
        if !matches!(batch.action, Some(Action::WriteStatus(_))) {
            return Err(wrong("a status", &batch.action));
        }
        link.report(batch.id, 0, failed(class)).await;
    }
    link.settles(&set).await
}
