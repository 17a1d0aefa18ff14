//! The script for an agent, step by step.

use decree_api::v1::{Guard, Kind, Pod, ReplicaSet, outcome::Outcome};
use tokio::time::{Duration, timeout};

use crate::{
    action::{
        adopt_absent, again_pod, batch, create, delete, made_pod, not_done, not_started,
        says_absent, shows_gone, shows_status, status,
    },
    ending::{drain, misnumber, refuse, silence, stop, supersede, unread},
    listener::Listener,
    opening::{expect_names, opened, sum_up},
    peer::{ConnectedAgent, INTERVAL},
    score::{
        ADOPT, CREATE, CUT, DELETE, DUPLICATE, EPOCH, EXISTING, GAP, HEARTBEAT, IN_FLIGHT, KILLED,
        LAG, Notes, ONE_EACH, OTHER_EPOCH, PAUSE, REFERENCE, RESYNC, STATUS, UID, UNKNOWN, Verdict,
    },
    subject::Subject,
};

/// The initial number of replicas.
pub(crate) const WANTED: usize = 3;
/// The endings of the pods' names.
pub(crate) const LETTERS: [&str; WANTED] = ["bcdfg", "cdfgh", "dfghj"];
/// The time after a Hello in which a create of the earlier session would take effect.
const LATE: Duration = Duration::from_millis(1_500);

/// Plays all steps. The error is the step that makes further ones impossible.
pub(crate) async fn play(
    subject: &impl Subject,
    mut listener: Listener,
    notes: &mut Notes,
) -> Verdict {
    let address = listener.address.clone();
    let start = |replicas| {
        let agent = subject.start(&address, replicas);
        agent.map_err(|error| format!("it does not start: {error}"))
    };
    let agent = start(WANTED)?;
    refuse(&mut listener, notes).await?;
    let mut peer = opened(&mut listener, notes).await?;
    let names = first_session(&mut peer, notes).await?;
    let first = peer.guard();
    sum_up(&peer, notes);
    peer.cut().await;

    let mut peer = opened(&mut listener, notes).await?;
    after_cut(&mut peer, &names, notes).await?;
    stale(&mut peer, first, notes).await?;
    lists(&mut peer, &names, notes).await?;
    pause(&mut peer, notes).await?;
    misnumber(peer, GAP, 1, notes).await;
    let peer = opened(&mut listener, notes).await?;
    misnumber(peer, DUPLICATE, -1, notes).await;

    let peer = opened(&mut listener, notes).await?;
    let peer = unread(peer, &mut listener, notes).await?;
    supersede(peer, &mut listener, notes).await;
    drop(agent);
    listener.forget();

    let agent = start(WANTED)?;
    let peer = opened(&mut listener, notes).await?;
    expect_names(KILLED, &peer, &names, notes);
    let peer = drain(peer, &mut listener, &names, notes).await?;
    drop(agent);
    drop(peer);

    let mut agent = start(1)?;
    let mut peer = opened(&mut listener, notes).await?;
    expect_names(KILLED, &peer, &names, notes);
    surplus(&mut peer, notes).await?;
    stop(peer, &mut agent, notes).await;
    drop(agent);

    let _agent = start(1)?;
    let mut peer = opened(&mut listener, notes).await?;
    silence(&mut peer, notes).await;
    sum_up(&peer, notes);
    Ok(())
}

/// Creates a pod after each kind of batch that must have no effect, and starts to create the other pods. Returns the names of all pods.
async fn first_session(
    peer: &mut ConnectedAgent,
    notes: &mut Notes,
) -> Result<Vec<String>, String> {
    let set = peer.only_set()?;
    if set.replicas != i32::try_from(WANTED).ok() || !peer.pods.is_empty() {
        let (wants, has) = (set.replicas, peer.pods.len());
        return Err(format!(
            "its ReplicaSet wants {wants:?} of {WANTED} and has {has} pods"
        ));
    }
    // One after the other, because each of them keeps the session.
    for _ in 0..2 {
        let beat = timeout(3 * INTERVAL, peer.heartbeat()).await;
        let none = || "none in three intervals".to_owned();
        notes.add(HEARTBEAT, beat.unwrap_or_else(|_| Err(none())));
    }
    peer.send_frame(None).await;
    let names = Vec::from(LETTERS.map(|letters| format!("{}-{letters}", set.name)));
    refused(peer, &set, &names[..1], notes).await;
    let guard = peer.guard();
    let one = batch(&set, guard.clone(), create(&names[..1]));
    let made = peer.execute(one.clone(), 1).await?;
    notes.add(CREATE, made_pod(&made, &names[0], &set).map(drop));
    let again = peer.execute(one, 1).await?;
    notes.add(EXISTING, again_pod(&again, &made, &names[0], &set));
    absent(peer, &set, notes).await;
    notes.add(RESYNC, peer.relist(Kind::Pod).await);
    peer.start(batch(&set, guard, create(&names[1..]))).await;
    Ok(names)
}

/// Sends batches with a wrong session, a wrong epoch and a wrong ReplicaSet.
async fn refused(peer: &mut ConnectedAgent, set: &ReplicaSet, names: &[String], notes: &mut Notes) {
    let guard = peer.guard();
    let session = Guard {
        session_id: "another session".to_owned(),
        ..guard.clone()
    };
    let epoch = Guard {
        epoch: guard.epoch + 1,
        ..guard.clone()
    };
    let other = ReplicaSet {
        uid: "another-uid".to_owned(),
        ..set.clone()
    };
    // An agent that finds the ReplicaSet by its uid alone must compare the rest.
    let renamed = ReplicaSet {
        name: format!("{}-other", set.name),
        ..set.clone()
    };
    for (rule, set, guard) in [
        (EPOCH, set, session),
        (OTHER_EPOCH, set, epoch),
        (REFERENCE, &other, guard.clone()),
        (REFERENCE, &renamed, guard),
    ] {
        let foreign = peer.execute(batch(set, guard, create(names)), 1).await;
        if rule == EPOCH {
            notes.add(UNKNOWN, foreign.as_ref().map(drop).map_err(Clone::clone));
        }
        notes.add(rule, foreign.and_then(|outcomes| not_started(&outcomes)));
    }
}

/// Requests the adoption of a pod that does not exist.
async fn absent(peer: &mut ConnectedAgent, set: &ReplicaSet, notes: &mut Notes) {
    let adopt = batch(set, peer.guard(), adopt_absent(set, 1));
    let outcomes = peer.execute(adopt, 1).await;
    notes.add(ONE_EACH, outcomes.as_ref().map(drop).map_err(Clone::clone));
    notes.add(ADOPT, outcomes.and_then(|outcomes| not_done(&outcomes)));
}

/// Verifies the lists after a batch that was interrupted by the cut, and has the rest of the batch executed.
async fn after_cut(peer: &mut ConnectedAgent, names: &[String], notes: &mut Notes) -> Verdict {
    let set = peer.only_set()?;
    let listed = peer.names();
    let is_known = listed.iter().all(|name| names.contains(name));
    // Lists that lag break their own rule.
    let lags = notes.is_broken(LAG);
    let is_kept = lags || listed.contains(&names[0]);
    notes.hold(CUT, is_known && is_kept, || {
        format!("{listed:?} of {names:?}")
    });
    let _ = timeout(LATE, peer.closed()).await;
    let relisted = peer.relist(Kind::Pod).await;
    notes.add(RESYNC, relisted.clone());
    notes.add(IN_FLIGHT, relisted);
    notes.hold(IN_FLIGHT, lags || peer.names() == listed, || {
        format!("{listed:?}, and then {:?}", peer.names())
    });
    let there = peer.names();
    let missing = names.iter().filter(|name| !there.contains(name));
    let missing: Vec<_> = missing.cloned().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let rest = batch(&set, peer.guard(), create(&missing));
    let outcomes = peer.execute(rest, missing.len()).await?;
    // An agent whose lists lag may know already that the pod is there.
    for (outcome, name) in outcomes.iter().zip(&missing).filter(|_| !lags) {
        let one = std::slice::from_ref(outcome);
        notes.add(CREATE, made_pod(one, name, &set).map(drop));
    }
    Ok(())
}

/// Sends a batch of the previous session.
async fn stale(peer: &mut ConnectedAgent, earlier: Guard, notes: &mut Notes) -> Verdict {
    let set = peer.only_set()?;
    let names = [format!("{}-fghjk", set.name)];
    let stale = batch(&set, earlier, create(&names));
    let outcomes = peer.execute(stale, 1).await;
    notes.add(EPOCH, outcomes.and_then(|outcomes| not_started(&outcomes)));
    Ok(())
}

/// Deletes a pod by its name and another uid, and requests both lists.
async fn lists(peer: &mut ConnectedAgent, names: &[String], notes: &mut Notes) -> Verdict {
    let set = peer.only_set()?;
    let known = peer.pods.values().next().cloned().unwrap_or_default();
    let other = Pod {
        uid: "another-uid".to_owned(),
        ..known
    };
    let wrong = batch(&set, peer.guard(), delete(&other));
    let outcomes = peer.execute(wrong, 1).await?;
    let is_done = matches!(outcomes[..], [Outcome::Done(_)]);
    // That the pod of this uid is gone is right, if the list below still has the other one.
    let is_true = says_absent(&outcomes) && !notes.is_broken(RESYNC);
    notes.hold(UID, !is_done || is_true, || format!("{outcomes:?}"));
    for kind in [Kind::ReplicaSet, Kind::Pod] {
        // An agent that does not answer a Resync is not asked again, because each request would wait for the timeout.
        if !notes.is_broken(RESYNC) {
            notes.add(RESYNC, peer.relist(kind).await);
        }
    }
    if !notes.is_broken(LAG) {
        for rule in [RESYNC, EXISTING, UID] {
            expect_names(rule, peer, names, notes);
        }
    }
    Ok(())
}

/// Sends nothing for more than two intervals, and then a status write.
async fn pause(peer: &mut ConnectedAgent, notes: &mut Notes) -> Verdict {
    let set = peer.only_set()?;
    let pause = 5 * INTERVAL / 2;
    peer.be_silent();
    let left = timeout(pause, peer.closed()).await.is_ok();
    notes.hold(PAUSE, !left, || "the agent has left".to_owned());
    let write = batch(&set, peer.guard(), status(&set, 3));
    let outcomes = peer.execute(write, 1).await;
    notes.add(PAUSE, outcomes.map(drop));
    Ok(())
}

/// Deletes a surplus pod, sends a status write, and requests a list without the pod.
async fn surplus(peer: &mut ConnectedAgent, notes: &mut Notes) -> Verdict {
    let set = peer.only_set()?;
    let guard = peer.guard();
    let victim = peer.pods.values().next().cloned();
    let victim = victim.ok_or("there is no pod to delete")?;
    let take = batch(&set, guard.clone(), delete(&victim));
    let outcomes = peer.execute(take, 1).await?;
    let is_gone = shows_gone(&outcomes, &victim);
    notes.hold(DELETE, is_gone, || format!("{outcomes:?}"));
    peer.end_pod(&victim.uid, &outcomes);
    let write = batch(&set, guard, status(&set, 2));
    let outcomes = peer.execute(write, 1).await?;
    let is_written = shows_status(&outcomes, 2, set.generation);
    notes.hold(STATUS, is_written, || format!("{outcomes:?}"));
    if !notes.is_broken(RESYNC) {
        notes.add(RESYNC, peer.relist(Kind::Pod).await);
    }
    Ok(())
}
