//! Batches and outcomes: the requested operations, and the consequences of each outcome.

use decree::v1::{
    FailureClass, Kind, NotStartedCause, ObjectRef, Pod, Rule, batch::Action, event::Event,
    reconcile_response::Frame as Answer,
};

use super::{
    case::cases,
    link::Server,
    objects::{at, bare, done, gone, not_started, pod, pod_of, replica_set, scaled, settled, web},
    verdict::{Verdict, holds, wrong},
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
        "a release that meets another pod does not fail the sync" => release,
        "a Done without its object holds up no other ReplicaSet" => others_go_on,
        "a Rejection names the first 100 violations and counts the others" => many_violations,
    }
    // The rows of the table "outcome by state found" of docs/protocol.md without another case.
    "outcome-by-state-found" {
        "a deletion that finds no pod takes it out of the view" => absent_victim,
        "a deletion that finds another pod is decided again" => other_victim,
        "a create in a namespace that is being deleted is no failure and is not repeated" => terminating,
        "a create that slow start left out is decided again, under another name or the same" => left_out,
        "a status that was not written is decided again" => status,
    }
}

async fn creates(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(web(2)).await?;
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
    let is_right = reason == Some(Rule::TooFewReplicas);
    holds(is_right, "TOO_FEW_REPLICAS", &reason)?;
    if let Some(Action::Create(create)) = &batch.action {
        let is_right = create.generate_name == "web-"
            && names.iter().all(|name| name.starts_with("web-"))
            && create.slow_start_initial == 1;
        let expected = "names that begin with web-, and a slow start of 1";
        holds(is_right, expected, create)?;
    }
    link.created(&batch, &names, 150).await;
    link.settles().await
}

async fn deletes(server: Server) -> Verdict {
    let pending = Pod {
        phase: decree::v1::PodPhase::Pending.into(),
        node_name: String::new(),
        ready: None,
        ..pod("b")
    };
    let pods = [pod("a"), pending, pod("c")];
    let mut link = server.open_with(web(2), pods).await?;
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

fn relabelled() -> Pod {
    Pod {
        labels: [].into(),
        ..pod("relabelled")
    }
}

async fn claims(server: Server) -> Verdict {
    let orphan = Pod {
        controller: None,
        ..pod("orphan")
    };
    let mut link = server.open_with(web(1), [orphan, relabelled()]).await?;
    match link.batch().await?.action {
        Some(Action::Claim(claim)) => {
            let are = |refs: &[ObjectRef], uid| refs.iter().map(|one| &one.uid).eq([uid]);
            let is_right =
                are(&claim.adopts, "orphan-uid") && are(&claim.releases, "relabelled-uid");
            holds(is_right, "one adoption and one release", &claim)
        }
        other => Err(wrong("a claim", &other)),
    }
}

async fn one_in_flight(server: Server) -> Verdict {
    let (mut link, ..) = server.creates(web(1)).await?;
    link.event(Event::ReplicaSetApplied(scaled(3))).await;
    link.expect_nothing().await
}

async fn unknown_batch(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(web(1)).await?;
    link.failed(batch.id + 1_000, FailureClass::Forbidden).await;
    link.expect_nothing().await?;
    link.created(&batch, &names, 150).await;
    link.batch().await.map(drop)
}

async fn twice(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(web(2)).await?;
    for _ in 0..2 {
        link.created(&batch, &names[..1], 150).await;
    }
    link.expect_nothing().await
}

async fn late_outcome(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(web(1)).await?;
    link.applied(at("150", pod(&names[0]))).await;
    link.expect_nothing().await?;
    link.created(&batch, &names, 150).await;
    link.status_write().await.map(drop)
}

async fn without_object(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(web(1)).await?;
    link.report(batch.id, 0, bare()).await;
    link.expect_resync().await?;
    link.expect_nothing().await?;
    let made = at("150", pod(&names[0]));
    link.list_pods([made], "200").await;
    link.status_write().await.map(drop)
}

async fn same_name(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(web(1)).await?;
    link.failed(batch.id, FailureClass::Timeout).await;
    let again = link.creates_after_statuses().await?;
    holds(again == names, "the same name", &again)
}

async fn other_name(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(web(1)).await?;
    link.created(&batch, &names, 150).await;
    link.event(gone(&names[0], "160")).await;
    let others = link.creates_after_statuses().await?;
    let is_right = others.len() == 1 && others != names;
    holds(is_right, "another name", &others)
}

async fn refused(server: Server) -> Verdict {
    let (mut link, batch, _) = server.creates(web(1)).await?;
    let refused = not_started(NotStartedCause::Guard);
    link.report(batch.id, 0, refused).await;
    link.creates_after_statuses().await.map(drop)
}

async fn rejection(server: Server) -> Verdict {
    let mut link = server.open().await?;
    let bad = |name: &str| Pod {
        namespace: "Bad Namespace".to_owned(),
        ..pod(name)
    };
    link.list([web(2)], [bad("a"), pod("good"), bad("b")]).await;
    match link.next().await? {
        Ok(Answer::Rejection(rejection))
            if rejection.others.len() == 1 && rejection.kind() == Kind::Pod => {}
        other => return Err(wrong("a Rejection of two pods", &other)),
    }
    let (_, names) = link.creates().await?;
    holds(names.len() == 1, "one create beside the good pod", &names)
}

async fn release(server: Server) -> Verdict {
    let mut link = server.open_with(web(1), [relabelled()]).await?;
    let batch = link.batch().await?;
    match &batch.action {
        Some(Action::Claim(claim)) if claim.releases.len() == 1 => {}
        other => return Err(wrong("one release", other)),
    }
    link.failed(batch.id, FailureClass::Precondition).await;
    link.creates().await.map(drop)
}

async fn others_go_on(server: Server) -> Verdict {
    let mut link = server.open().await?;
    link.list([replica_set("api", 1), web(1)], []).await;
    let batches = link.batches(2).await?;
    let of = |name: &str| {
        let mut batches = batches.values();
        let is_of =
            |one: &&decree::v1::Batch| one.replica_set.as_ref().is_some_and(|set| set.name == name);
        batches.find(is_of).ok_or_else(|| wrong(name, &batches))
    };
    link.report(of("web")?.id, 0, bare()).await;
    link.expect_resync().await?;
    let api = of("api")?;
    let Some(Action::Create(create)) = &api.action else {
        return Err(wrong("a create", api));
    };
    let made = at("151", pod_of("api", &create.names[0]));
    link.report(api.id, 0, done(made)).await;
    let next = link.batch().await?;
    let is_api = next.replica_set == api.replica_set;
    holds(is_api, "a batch of the other ReplicaSet", &next)
}

async fn many_violations(server: Server) -> Verdict {
    let mut link = server.open().await?;
    let bad = (0..150).map(|number| Pod {
        namespace: "Bad Namespace".to_owned(),
        ..pod(&format!("pod-{number}"))
    });
    link.list_pods(bad, "100").await;
    let Ok(Answer::Rejection(rejection)) = link.next().await? else {
        return Err("no Rejection".to_owned());
    };
    let all = rejection.others.iter().chain([&rejection]);
    let named: usize = all.map(|one| one.violations.len()).sum();
    let found = (named, rejection.omitted);
    holds(found == (100, 50), "100 violations, and 50 omitted", &found)
}

async fn absent_victim(server: Server) -> Verdict {
    let mut link = server.open_with(settled(1), [pod("a"), pod("b")]).await?;
    let batch = link.batch().await?;
    if !matches!(&batch.action, Some(Action::Delete(delete)) if delete.victims.len() == 1) {
        return Err(wrong("one deletion", &batch.action));
    }
    link.failed(batch.id, FailureClass::NotFound).await;
    link.settles().await?;
    link.expect_nothing().await
}

async fn other_victim(server: Server) -> Verdict {
    let mut link = server.open_with(settled(1), [pod("a"), pod("b")]).await?;
    let first = link.batch().await?;
    link.failed(first.id, FailureClass::Precondition).await;
    loop {
        let batch = link.batch().await?;
        match batch.action {
            Some(Action::Delete(_)) => return Ok(()),
            Some(Action::WriteStatus(write)) => link.wrote(batch.id, write).await,
            other => return Err(wrong("the deletion again", &other)),
        }
    }
}

async fn terminating(server: Server) -> Verdict {
    let (mut link, batch, _) = server.creates(web(1)).await?;
    link.failed(batch.id, FailureClass::NamespaceTerminating)
        .await;
    let (batch, write) = link.status_write().await?;
    let conditions = write.status.as_ref().map(|status| &status.conditions[..]);
    let is_right = conditions == Some(&[]);
    holds(is_right, "a status without ReplicaFailure", &conditions)?;
    link.wrote(batch, write).await;
    link.expect_nothing().await
}

async fn left_out(server: Server) -> Verdict {
    let (mut link, batch, names) = server.creates(web(2)).await?;
    link.created(&batch, &names[..1], 150).await;
    let skipped = not_started(NotStartedCause::SlowStart);
    link.report(batch.id, 1, skipped).await;
    let again = link.creates_after_statuses().await?;
    holds(again.len() == 1, "one create", &again)
}

async fn status(server: Server) -> Verdict {
    let mut link = server.open_with(web(0), []).await?;
    for class in [
        FailureClass::NotFound,
        FailureClass::Precondition,
        FailureClass::Conflict,
    ] {
        let (batch, _) = link.status_write().await?;
        link.failed(batch, class).await;
    }
    link.settles().await
}
