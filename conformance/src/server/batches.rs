//! Batches and outcomes: the requested operations, and the consequences of each outcome.

use decree::v1::{
    FailureClass, Kind, ObjectRef, Pod, ReplicaSet, Rule, batch::Action, event::Event,
    reconcile_response::Frame as Answer,
};

use super::{
    case::{Verdict, cases},
    link::{Server, done, failed, guarded, holds, wrong},
    objects::{gone, pod, replica_set},
};

cases! {
    "batches-and-outcomes" {
        "missing pods are created, and the status follows" => creates,
        "surplus pods are deleted by uid, with reasons" => deletes,
        "orphans that match are adopted, and pods that do not are released" => claims,
        "no second batch leaves while one is in flight" => one_in_flight,
        "outcomes of unknown batches are ignored" => unknown_batch,
        "an outcome that comes twice counts once" => twice,
        "an outcome that comes after the event creates nothing twice" => late_outcome,
        "a Done without its object waits for a list that the server asks for" => without_object,
        "a create that failed is repeated under its name" => same_name,
        "a lost pod is replaced under a name that no pod had" => other_name,
        "the server retries an operation that a guard refused without an event" => refused,
        "a Rejection precedes what is decided on its frame, and names every bad object" => rejection,
    }
}

async fn creates(server: Server) -> Verdict {
    let mut link = server.open_set(replica_set("web", 2)).await?;
    let (batch, names) = link.creates().await?;
    if names.len() != 2 || names[0] == names[1] {
        return Err(wrong("two names", &batch));
    }
    let about = ObjectRef {
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        uid: "web-uid".to_owned(),
    };
    let is_about = batch.replica_set.as_ref() == Some(&about) && batch.generation == 1;
    holds(is_about, "the ReplicaSet and its generation", &batch)?;
    let reason = batch.reasons.first().map(decree::v1::Reason::rule);
    holds(
        reason == Some(Rule::TooFewReplicas),
        "TOO_FEW_REPLICAS",
        &reason,
    )?;
    if let Some(Action::Create(create)) = &batch.action {
        let is_named = |name: &String| name.starts_with(&create.generate_name);
        let is_right = create.generate_name == "web-"
            && names.iter().all(is_named)
            && create.slow_start_initial == 1;
        holds(
            is_right,
            "names that begin with web-, and a slow start of 1",
            create,
        )?;
    }
    link.created(&batch, &names, 150).await;
    link.settles(&replica_set("web", 2)).await
}

async fn deletes(server: Server) -> Verdict {
    let pending = Pod {
        phase: decree::v1::PodPhase::Pending.into(),
        node_name: String::new(),
        ready: None,
        ..pod("b", "web")
    };
    let pods = vec![pod("a", "web"), pending, pod("c", "web")];
    let mut link = server.open_with(vec![replica_set("web", 2)], pods).await?;
    match link.batch().await?.action {
        Some(Action::Delete(delete)) if delete.victims.len() == 1 => {
            let victim = &delete.victims[0];
            let reason = victim.reason.as_ref().map(decree::v1::Reason::rule);
            let is_right = reason.is_some_and(|rule| rule != Rule::Unspecified)
                && victim.pod.as_ref().is_some_and(|pod| pod.uid == "b-uid");
            holds(is_right, "the pod without a node, by its uid", victim)
        }
        other => Err(wrong("one delete", &other)),
    }
}

async fn claims(server: Server) -> Verdict {
    let orphan = Pod {
        controller: None,
        ..pod("orphan", "web")
    };
    let relabelled = Pod {
        labels: [].into(),
        ..pod("relabelled", "web")
    };
    let mut link = server
        .open_with(vec![replica_set("web", 1)], vec![orphan, relabelled])
        .await?;
    match link.batch().await?.action {
        Some(Action::Claim(claim)) => {
            let names =
                |refs: &[ObjectRef]| refs.iter().map(|one| one.uid.clone()).collect::<Vec<_>>();
            let is_right = names(&claim.adopts) == ["orphan-uid"]
                && names(&claim.releases) == ["relabelled-uid"];
            holds(is_right, "one adoption and one release", &claim)
        }
        other => Err(wrong("a claim", &other)),
    }
}

async fn one_in_flight(server: Server) -> Verdict {
    let mut link = server.open_set(replica_set("web", 1)).await?;
    link.creates().await?;
    let scaled = ReplicaSet {
        resource_version: "110".to_owned(),
        generation: 2,
        ..replica_set("web", 3)
    };
    link.event(Event::ReplicaSetApplied(scaled)).await;
    link.expect_nothing().await
}

async fn unknown_batch(server: Server) -> Verdict {
    let mut link = server.open_set(replica_set("web", 1)).await?;
    let (batch, names) = link.creates().await?;
    link.report(batch.id + 1_000, 0, failed(FailureClass::Forbidden))
        .await;
    link.expect_nothing().await?;
    link.created(&batch, &names, 150).await;
    link.batch().await.map(drop)
}

async fn twice(server: Server) -> Verdict {
    let mut link = server.open_set(replica_set("web", 2)).await?;
    let (batch, names) = link.creates().await?;
    let made = Pod {
        resource_version: "150".to_owned(),
        ..pod(&names[0], "web")
    };
    link.report(batch.id, 0, done(made.clone())).await;
    link.report(batch.id, 0, done(made)).await;
    link.expect_nothing().await
}

async fn late_outcome(server: Server) -> Verdict {
    let mut link = server.open_set(replica_set("web", 1)).await?;
    let (batch, names) = link.creates().await?;
    let made = Pod {
        resource_version: "150".to_owned(),
        ..pod(&names[0], "web")
    };
    link.event(Event::PodApplied(made.clone())).await;
    link.expect_nothing().await?;
    link.report(batch.id, 0, done(made)).await;
    match link.batch().await?.action {
        Some(Action::WriteStatus(_)) => Ok(()),
        other => Err(wrong("a status", &other)),
    }
}

async fn without_object(server: Server) -> Verdict {
    let mut link = server.open_set(replica_set("web", 1)).await?;
    let (batch, names) = link.creates().await?;
    let bare = decree::v1::Done {
        resource_version: "150".to_owned(),
        ..decree::v1::Done::default()
    };
    link.report(batch.id, 0, decree::v1::outcome::Outcome::Done(bare))
        .await;
    link.expect_resync(Kind::Pod).await?;
    link.expect_nothing().await?;
    link.list_pods_at(
        vec![Pod {
            resource_version: "150".to_owned(),
            ..pod(&names[0], "web")
        }],
        "200",
    )
    .await;
    match link.batch().await?.action {
        Some(Action::WriteStatus(_)) => Ok(()),
        other => Err(wrong("a status", &other)),
    }
}

async fn same_name(server: Server) -> Verdict {
    let mut link = server.open_set(replica_set("web", 1)).await?;
    let (batch, names) = link.creates().await?;
    link.report(batch.id, 0, failed(FailureClass::Timeout))
        .await;
    let (_, again) = link.creates_after_statuses(&replica_set("web", 1)).await?;
    holds(again == names, "the same name", &again)
}

async fn other_name(server: Server) -> Verdict {
    let mut link = server.open_set(replica_set("web", 1)).await?;
    let (batch, names) = link.creates().await?;
    link.created(&batch, &names, 150).await;
    link.event(gone(&names[0], "160")).await;
    let (_, others) = link.creates_after_statuses(&replica_set("web", 1)).await?;
    holds(
        others.len() == 1 && others != names,
        "another name",
        &others,
    )
}

async fn refused(server: Server) -> Verdict {
    let mut link = server.open_set(replica_set("web", 1)).await?;
    let (batch, _) = link.creates().await?;
    link.report(batch.id, 0, guarded()).await;
    link.creates_after_statuses(&replica_set("web", 1))
        .await
        .map(drop)
}

async fn rejection(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.list_sets(vec![replica_set("web", 2)]).await;
    let bad = |name: &str| Pod {
        namespace: "Bad Namespace".to_owned(),
        ..pod(name, "web")
    };
    link.list_pods(vec![bad("a"), pod("good", "web"), bad("b")])
        .await;
    match link.next().await? {
        Ok(Answer::Rejection(rejection))
            if rejection.others.len() == 1 && rejection.kind() == Kind::Pod => {}
        other => return Err(wrong("a Rejection of two pods", &other)),
    }
    let (_, names) = link.creates().await?;
    holds(names.len() == 1, "one create beside the good pod", &names)
}
