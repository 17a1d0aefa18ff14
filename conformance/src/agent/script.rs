//! What is played to an agent, step by step.

use decree::v1::{
    Drain, Kind, ObjectRef, Pod, ReplicaSet, outcome::Outcome, reconcile_response::Frame as Answer,
};
use tokio::time::{Duration, Instant, timeout};

use super::{
    action::{
        adopt, again_pod, batch, create, delete, made_pod, not_started, reference, shows_gone,
        shows_replicas, status,
    },
    listener::Listener,
    notes::{
        ADOPT, CREATE, CUT, DELETE, DRAIN, DUPLICATE, EPOCH, EXISTING, GAP, HEARTBEAT, HELLO,
        IN_FLIGHT, KILLED, LISTS, NUMBERS, Notes, ONE_EACH, ORDER, PAUSE, PROTOCOL, REFERENCE,
        REFUSED, RESYNC, SILENCE, STATUS, UID, UNKNOWN, Verdict,
    },
    peer::{INTERVAL, Misnumber, Peer},
    subject::Subject,
};

/// How many pods the agent's ReplicaSet wants at first.
const WANTED: usize = 3;
/// What the names of the pods end in.
const LETTERS: [&str; WANTED] = ["bcdfg", "cdfgh", "dfghj"];
/// How long a refused agent is told to wait.
const DELAY: Duration = Duration::from_secs(1);

/// Plays all steps. Where one makes the next impossible, returns why.
pub(super) async fn play(
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
    let first = peer.id.clone();
    sum_up(&peer, notes);
    peer.cut().await;

    let mut peer = opened(&mut listener, notes).await?;
    after_cut(&mut peer, &names, notes).await?;
    stale(&mut peer, &first, notes).await?;
    lists(&mut peer, &names, notes).await?;
    pause(&mut peer, notes).await?;
    misnumber(peer, GAP, Misnumber::Skip, notes).await;
    let peer = opened(&mut listener, notes).await?;
    misnumber(peer, DUPLICATE, Misnumber::Repeat, notes).await;

    let mut peer = opened(&mut listener, notes).await?;
    drain(&mut peer, notes).await?;
    sum_up(&peer, notes);
    peer.cut().await;
    let peer = opened(&mut listener, notes).await?;
    expect_names(DRAIN, &peer, &names, notes);

    drop(agent);
    drop(peer);
    let _agent = start(1)?;
    let mut peer = opened(&mut listener, notes).await?;
    expect_names(KILLED, &peer, &names, notes);
    last_session(&mut peer, notes).await?;
    sum_up(&peer, notes);
    Ok(())
}

/// Refuses the agent, and waits until it comes back. Its next stream is the next that is accepted.
async fn refuse(listener: &mut Listener, notes: &mut Notes) -> Verdict {
    let peer = listener.accept().await?;
    peer.refuse(DELAY).await;
    let refused = Instant::now();
    listener.await_next().await?;
    let waited = refused.elapsed();
    // What the agent measures has begun before what is measured here, by the time that a frame takes.
    notes.hold(REFUSED, waited + DELAY / 10 >= DELAY, || {
        format!("it came back after {waited:.1?}, and was told to wait {DELAY:?}")
    });
    Ok(())
}

/// Accepts a session and verifies how it begins.
async fn opened(listener: &mut Listener, notes: &mut Notes) -> Result<Peer, String> {
    let mut peer = listener.accept().await?;
    let open = peer.open().await;
    notes.hold(HELLO, peer.hello.is_some(), || format!("{open:?}"));
    if let Some(hello) = &peer.hello {
        let contains = (hello.protocol_min..=hello.protocol_max).contains(&1);
        notes.hold(PROTOCOL, contains, || {
            format!("{} to {}", hello.protocol_min, hello.protocol_max)
        });
    }
    notes.add(LISTS, open.clone());
    open.map(|()| peer)
}

/// Notes what holds for all frames of a session.
fn sum_up(peer: &Peer, notes: &mut Notes) {
    let verdict = |fault: &Option<String>| fault.clone().map_or(Ok(()), Err);
    notes.add(HELLO, verdict(&peer.second_hello));
    notes.add(NUMBERS, verdict(&peer.misnumbered));
    notes.add(ORDER, verdict(&peer.disordered));
    notes.add(ONE_EACH, verdict(&peer.repeated));
    notes.add(LISTS, verdict(&peer.bad_list));
}

/// Makes a pod, after each kind of batch that must have no effect, and begins to make the others. Returns the names of all.
async fn first_session(peer: &mut Peer, notes: &mut Notes) -> Result<Vec<String>, String> {
    let set = peer.only_set()?;
    if set.replicas != i32::try_from(WANTED).ok() || !peer.pods.is_empty() {
        return Err(format!(
            "its ReplicaSet wants {:?} of {WANTED} and has {} pods",
            set.replicas,
            peer.pods.len()
        ));
    }
    let beat = timeout(3 * INTERVAL, peer.heartbeat()).await;
    notes.add(
        HEARTBEAT,
        beat.unwrap_or_else(|_| Err("none in three intervals".to_owned())),
    );
    peer.send_unknown().await;
    let names: Vec<_> = LETTERS
        .map(|letters| format!("{}-{letters}", set.name))
        .into();
    refused(peer, &set, &names[..1], notes).await;
    let id = peer.id.clone();
    let one = batch(&set, &id, create(&names[..1]));
    let made = peer.execute(one.clone(), 1).await?;
    notes.add(CREATE, made_pod(&made, &names[0], &set).map(drop));
    let again = peer.execute(one, 1).await?;
    notes.add(EXISTING, again_pod(&again, &made, &names[0], &set));
    absent(peer, &set, notes).await;
    peer.start(batch(&set, &id, create(&names[1..]))).await;
    Ok(names)
}

/// Sends batches of another session and of another ReplicaSet.
async fn refused(peer: &mut Peer, set: &ReplicaSet, names: &[String], notes: &mut Notes) {
    let id = peer.id.clone();
    let foreign = peer
        .execute(batch(set, "another session", create(names)), 1)
        .await;
    notes.add(UNKNOWN, foreign.as_ref().map(drop).map_err(Clone::clone));
    notes.add(EPOCH, foreign.and_then(|outcomes| not_started(&outcomes)));
    let other = ReplicaSet {
        uid: "another-uid".to_owned(),
        ..set.clone()
    };
    let foreign = peer.execute(batch(&other, &id, create(names)), 1).await;
    notes.add(
        REFERENCE,
        foreign.and_then(|outcomes| not_started(&outcomes)),
    );
}

/// Has a pod adopted that is not there.
async fn absent(peer: &mut Peer, set: &ReplicaSet, notes: &mut Notes) {
    let pod = ObjectRef {
        name: format!("{}-absent", set.name),
        uid: "absent-uid".to_owned(),
        ..reference(set)
    };
    let id = peer.id.clone();
    let outcomes = peer.execute(batch(set, &id, adopt(pod)), 1).await;
    notes.add(ONE_EACH, outcomes.as_ref().map(drop).map_err(Clone::clone));
    let verdict = outcomes.and_then(|outcomes| match &outcomes[..] {
        [Outcome::Done(_)] => Err(format!("{outcomes:?}")),
        _ => Ok(()),
    });
    notes.add(ADOPT, verdict);
}

/// Verifies what the lists show of a batch that the cut has met, and has the rest of it made.
async fn after_cut(peer: &mut Peer, names: &[String], notes: &mut Notes) -> Verdict {
    let set = peer.only_set()?;
    let listed = peer.names();
    let is_known = listed.iter().all(|name| names.contains(name));
    notes.hold(CUT, is_known && listed.contains(&names[0]), || {
        format!("{listed:?} of {names:?}")
    });
    let relisted = peer.relist(Kind::Pod).await;
    notes.add(RESYNC, relisted.clone());
    notes.add(IN_FLIGHT, relisted);
    notes.hold(IN_FLIGHT, peer.names() == listed, || {
        format!("{listed:?}, and then {:?}", peer.names())
    });
    let missing = names.iter().filter(|name| !listed.contains(name));
    let missing: Vec<_> = missing.cloned().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let id = peer.id.clone();
    let rest = batch(&set, &id, create(&missing));
    let outcomes = peer.execute(rest, missing.len()).await?;
    for (outcome, name) in outcomes.iter().zip(&missing) {
        let one = std::slice::from_ref(outcome);
        notes.add(CREATE, made_pod(one, name, &set).map(drop));
    }
    Ok(())
}

/// Sends a batch of the session before.
async fn stale(peer: &mut Peer, earlier: &str, notes: &mut Notes) -> Verdict {
    let set = peer.only_set()?;
    let names = [format!("{}-fghjk", set.name)];
    let stale = batch(&set, earlier, create(&names));
    let outcomes = peer.execute(stale, 1).await;
    notes.add(EPOCH, outcomes.and_then(|outcomes| not_started(&outcomes)));
    Ok(())
}

/// Deletes a pod by its name and another uid, and has both kinds listed.
async fn lists(peer: &mut Peer, names: &[String], notes: &mut Notes) -> Verdict {
    let set = peer.only_set()?;
    let id = peer.id.clone();
    let known = peer.pods.values().next().cloned().unwrap_or_default();
    let other = Pod {
        uid: "another-uid".to_owned(),
        ..known
    };
    let wrong = batch(&set, &id, delete(&other));
    let outcomes = peer.execute(wrong, 1).await?;
    notes.hold(UID, !matches!(outcomes[..], [Outcome::Done(_)]), || {
        format!("{outcomes:?}")
    });
    for kind in [Kind::ReplicaSet, Kind::Pod] {
        // One that leaves a Resync without an answer is not asked again, because each question takes its time.
        if !notes.is_broken(RESYNC) {
            notes.add(RESYNC, peer.relist(kind).await);
        }
    }
    for rule in [RESYNC, EXISTING, UID] {
        expect_names(rule, peer, names, notes);
    }
    Ok(())
}

/// Says nothing for more than two intervals, and then has a status written.
async fn pause(peer: &mut Peer, notes: &mut Notes) -> Verdict {
    let set = peer.only_set()?;
    let pause = 5 * INTERVAL / 2;
    peer.fall_silent(pause).await;
    let left = timeout(pause, peer.closed()).await.is_ok();
    notes.hold(PAUSE, !left, || "the agent has left".to_owned());
    let id = peer.id.clone();
    let write = batch(&set, &id, status(&set, 3));
    let outcomes = peer.execute(write, 1).await;
    notes.add(PAUSE, outcomes.map(drop));
    Ok(())
}

/// Sends a frame under a number that is not its own, and cuts the stream if the agent does not end it.
async fn misnumber(mut peer: Peer, rule: &'static str, how: Misnumber, notes: &mut Notes) {
    peer.misnumber(how).await;
    let closed = timeout(4 * INTERVAL, peer.closed()).await;
    notes.add(
        rule,
        closed.map_err(|_| "the stream is still open after four intervals".to_owned()),
    );
    sum_up(&peer, notes);
    peer.cut().await;
}

/// Asks for a status and drains before it is answered.
async fn drain(peer: &mut Peer, notes: &mut Notes) -> Verdict {
    let set = peer.only_set()?;
    let id = peer.id.clone();
    let batch = peer.start(batch(&set, &id, status(&set, 3))).await;
    peer.send(Answer::Drain(Drain {
        deadline: None,
        reconnect_after: None,
    }))
    .await;
    let outcome = peer.outcomes_of(batch, 1).await;
    notes.add(DRAIN, outcome.map(drop));
    let closed = timeout(4 * INTERVAL, peer.closed()).await;
    notes.add(
        DRAIN,
        closed.map_err(|_| "the stream is still open after four intervals".to_owned()),
    );
    Ok(())
}

/// Takes a surplus pod away, writes a status, and falls silent.
async fn last_session(peer: &mut Peer, notes: &mut Notes) -> Verdict {
    let set = peer.only_set()?;
    let id = peer.id.clone();
    let victim = peer.pods.values().next().cloned();
    let victim = victim.ok_or("there is no pod to delete")?;
    let outcomes = peer.execute(batch(&set, &id, delete(&victim)), 1).await?;
    notes.hold(DELETE, shows_gone(&outcomes, &victim), || {
        format!("{outcomes:?}")
    });
    let outcomes = peer.execute(batch(&set, &id, status(&set, 2)), 1).await?;
    notes.hold(STATUS, shows_replicas(&outcomes, 2), || {
        format!("{outcomes:?}")
    });
    peer.fall_silent(Duration::from_secs(3600)).await;
    let left = timeout(8 * INTERVAL, peer.closed()).await;
    notes.add(
        SILENCE,
        left.map_err(|_| "it is still there after eight intervals".to_owned()),
    );
    Ok(())
}

fn expect_names(rule: &'static str, peer: &Peer, names: &[String], notes: &mut Notes) {
    let there = peer.names();
    notes.hold(rule, there == names, || {
        format!("{there:?} in place of {names:?}")
    });
}
