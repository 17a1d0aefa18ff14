//! The consequences of outcomes, and of invalid objects.

use decree::v1::{
    Done, FailureClass, Kind, Pod, batch::Action, outcome, reconcile_response::Frame as Answer,
};

use super::{
    case::{Verdict, cases},
    link::{Server, failed, holds, wrong},
    objects::{pod, replica_set},
};

cases! {
    "batches-and-outcomes" {
        "a release that meets another pod does not fail the sync" => release,
        "a Done without its object holds up no other ReplicaSet" => others_go_on,
        "a Rejection names the first 100 violations and counts the others" => many_violations,
    }
}

async fn release(server: Server) -> Verdict {
    let relabelled = Pod {
        labels: [].into(),
        ..pod("relabelled", "web")
    };
    let mut link = server
        .open_with(vec![replica_set("web", 1)], vec![relabelled])
        .await?;
    let batch = link.batch().await?;
    match &batch.action {
        Some(Action::Claim(claim)) if claim.releases.len() == 1 => {}
        other => return Err(wrong("one release", other)),
    }
    link.report(batch.id, 0, failed(FailureClass::Precondition))
        .await;
    link.creates().await.map(drop)
}

async fn others_go_on(server: Server) -> Verdict {
    let sets = vec![replica_set("api", 1), replica_set("web", 1)];
    let mut link = server.open_with(sets, Vec::new()).await?;
    let batches = link.batches(2).await?;
    let of = |name: &str| {
        let mut batches = batches.values();
        let found =
            batches.find(|one| one.replica_set.as_ref().is_some_and(|set| set.name == name));
        found.ok_or_else(|| wrong(name, &batches))
    };
    let bare = Done {
        resource_version: "150".to_owned(),
        ..Done::default()
    };
    link.report(of("web")?.id, 0, outcome::Outcome::Done(bare))
        .await;
    link.expect_resync(Kind::Pod).await?;
    let api = of("api")?;
    let Some(Action::Create(create)) = &api.action else {
        return Err(wrong("a create", api));
    };
    let made = Pod {
        resource_version: "151".to_owned(),
        ..pod(&create.names[0], "api")
    };
    link.report(api.id, 0, super::link::done(made)).await;
    let next = link.batch().await?;
    let is_api = next
        .replica_set
        .as_ref()
        .is_some_and(|set| set.name == "api");
    holds(is_api, "a batch of the other ReplicaSet", &next)
}

async fn many_violations(server: Server) -> Verdict {
    let mut link = server.open().await?;
    let bad = (0..150).map(|number| Pod {
        namespace: "Bad Namespace".to_owned(),
        ..pod(&format!("pod-{number}"), "web")
    });
    link.list_pods(bad.collect()).await;
    let Ok(Answer::Rejection(rejection)) = link.next().await? else {
        return Err("no Rejection".to_owned());
    };
    let all = rejection.others.iter().chain([&rejection]);
    let named: usize = all.map(|one| one.violations.len()).sum();
    let found = (named, rejection.omitted);
    holds(found == (100, 50), "100 violations, and 50 omitted", &found)
}
