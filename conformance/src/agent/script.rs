//! What is played to an agent, step by step.

use std::collections::BTreeMap;

use decree::v1::{
    Batch, Create, Delete, Drain, Guard, Kind, NotStartedCause, ObjectRef, Pod, ReplicaSet,
    ReplicaSetStatus, Victim, WriteStatus, batch::Action, done, outcome::Outcome,
    reconcile_response::Frame as Answer,
};
use tokio::time::timeout;

use super::{
    peer::{INTERVAL, Listener, Peer},
    subject::Subject,
};

type Verdict = Result<(), String>;

const HELLO: &str = "the first frame is a Hello, and the only one";
const PROTOCOL: &str = "the range of versions contains version 1";
const EPOCH: &str = "a batch of another session has no effect";
const UNKNOWN: &str = "a frame of an unknown type is ignored";
const NUMBERS: &str = "frames are numbered from 1 without gaps, or not at all";
const LISTS: &str = "a list has a begin, its objects, and an end that counts them";
const RESYNC: &str = "a Resync is answered with a list, which contains what was written";
const REFERENCE: &str = "a batch of a ReplicaSet that is not known by name and uid has no effect";
const CREATE: &str =
    "the outcome of a create carries the pod, under its name and with its controller";
const EXISTING: &str = "a create of a name that exists makes no second pod";
const ONE_EACH: &str = "each operation has exactly one outcome";
const UID: &str = "a deletion hits the pod of its uid and no other";
const DELETE: &str = "the outcome of a deletion shows that the pod is gone or going";
const STATUS: &str = "the outcome of a status carries the ReplicaSet with that status";
const HEARTBEAT: &str = "a quiet agent sends heartbeats";
const CUT: &str = "after a cut the agent comes back and lists what is there, its writes included";
const DRAIN: &str = "a drained agent sends its outcomes, closes the stream and comes back";
const SILENCE: &str = "a server that is silent for four intervals is left";
const KILLED: &str = "an agent that was killed comes back with what it had made, and no more";

/// The rules, in the order of docs/protocol.md, each with its section.
pub(super) const RULES: &[(&str, &str)] = &[
    ("opening", HELLO),
    ("opening", PROTOCOL),
    ("one-writer", EPOCH),
    ("frames", NUMBERS),
    ("frames", UNKNOWN),
    ("lists-and-changes", LISTS),
    ("lists-and-changes", RESYNC),
    ("batches-and-outcomes", REFERENCE),
    ("batches-and-outcomes", CREATE),
    ("batches-and-outcomes", EXISTING),
    ("batches-and-outcomes", ONE_EACH),
    ("batches-and-outcomes", UID),
    ("batches-and-outcomes", DELETE),
    ("batches-and-outcomes", STATUS),
    ("heartbeats-and-the-end-of-a-session", HEARTBEAT),
    ("heartbeats-and-the-end-of-a-session", CUT),
    ("heartbeats-and-the-end-of-a-session", DRAIN),
    ("heartbeats-and-the-end-of-a-session", SILENCE),
    ("heartbeats-and-the-end-of-a-session", KILLED),
];

/// How many pods the agent's ReplicaSet wants at first.
const WANTED: usize = 3;
/// What the names of the pods end in.
const LETTERS: [&str; WANTED] = ["bcdfg", "cdfgh", "dfghj"];

/// What was seen of each rule. The first fault stays.
#[derive(Default)]
pub(super) struct Notes(BTreeMap<&'static str, Verdict>);

// === impl Notes ===

impl Notes {
    pub(super) fn verdict(&self, rule: &str) -> Option<&Verdict> {
        self.0.get(rule)
    }

    fn add(&mut self, rule: &'static str, verdict: Verdict) {
        let noted = self.0.entry(rule).or_insert(Ok(()));
        if noted.is_ok() {
            *noted = verdict;
        }
    }

    fn hold(&mut self, rule: &'static str, holds: bool, found: impl FnOnce() -> String) {
        self.add(rule, if holds { Ok(()) } else { Err(found()) });
    }
}

/// Plays all steps. Where one makes the next impossible, returns why.
pub(super) async fn play(subject: &Subject, mut listener: Listener, notes: &mut Notes) -> Verdict {
    let address = listener.address.clone();
    let start = |replicas| {
        let agent = subject.start(&address, replicas);
        agent.map_err(|error| error.to_string())
    };
    let agent = start(WANTED)?;
    let mut peer = opened(&mut listener, notes).await?;
    let names = first_session(&mut peer, notes).await?;
    let first = peer.id.clone();
    sum_up(&peer, notes);
    peer.cut().await;

    let mut peer = opened(&mut listener, notes).await?;
    expect_names(CUT, &peer, &names, notes);
    let (_, reference) = peer.only_set()?;
    let stale = peer
        .execute(
            batch(
                &reference,
                &first,
                create(&[format!("{}-fghjk", reference.name)]),
            ),
            1,
        )
        .await;
    notes.add(EPOCH, stale.and_then(|outcomes| not_started(&outcomes)));
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
    notes.add(ONE_EACH, verdict(&peer.repeated));
    notes.add(LISTS, verdict(&peer.bad_list));
}

/// Makes the pods, after each kind of batch that must have no effect. Returns their names.
async fn first_session(peer: &mut Peer, notes: &mut Notes) -> Result<Vec<String>, String> {
    let (set, reference) = peer.only_set()?;
    if set.replicas != i32::try_from(WANTED).ok() || !peer.pods.is_empty() {
        return Err(format!(
            "its ReplicaSet wants {:?} of {WANTED} and has {} pods",
            set.replicas,
            peer.pods.len()
        ));
    }
    notes.add(
        HEARTBEAT,
        timeout(3 * INTERVAL, peer.heartbeat())
            .await
            .unwrap_or_else(|_| Err("none in three intervals".to_owned())),
    );
    peer.send_unknown().await;
    let names: Vec<_> = LETTERS
        .map(|letters| format!("{}-{letters}", set.name))
        .into();
    refused(peer, &reference, &names[..1], notes).await;
    let id = peer.id.clone();
    let made = peer
        .execute(batch(&reference, &id, create(&names[..1])), 1)
        .await?;
    notes.add(CREATE, made_pod(&made, &names[0], &set).map(drop));
    let again = peer
        .execute(batch(&reference, &id, create(&names[..1])), 1)
        .await?;
    notes.add(EXISTING, again_pod(&again, &made, &names[0], &set));
    let others = peer
        .execute(batch(&reference, &id, create(&names[1..])), 2)
        .await?;
    for (outcome, name) in others.iter().zip(&names[1..]) {
        notes.add(
            CREATE,
            made_pod(std::slice::from_ref(outcome), name, &set).map(drop),
        );
    }
    notes.add(RESYNC, peer.relist(Kind::Pod).await);
    expect_names(RESYNC, peer, &names, notes);
    expect_names(EXISTING, peer, &names, notes);

    wrong_uid(peer, &reference, notes).await?;
    expect_names(UID, peer, &names, notes);
    Ok(names)
}

/// Sends batches of another session and of another ReplicaSet.
async fn refused(peer: &mut Peer, reference: &ObjectRef, names: &[String], notes: &mut Notes) {
    let id = peer.id.clone();
    let foreign = peer
        .execute(batch(reference, "another session", create(names)), 1)
        .await;
    notes.add(UNKNOWN, foreign.as_ref().map(drop).map_err(Clone::clone));
    notes.add(EPOCH, foreign.and_then(|outcomes| not_started(&outcomes)));
    let other = ObjectRef {
        uid: "another-uid".to_owned(),
        ..reference.clone()
    };
    let foreign = peer.execute(batch(&other, &id, create(names)), 1).await;
    notes.add(
        REFERENCE,
        foreign.and_then(|outcomes| not_started(&outcomes)),
    );
}

/// Deletes a pod by its name and another uid, and lists.
async fn wrong_uid(peer: &mut Peer, reference: &ObjectRef, notes: &mut Notes) -> Verdict {
    let id = peer.id.clone();
    let known = peer.pods.values().next().cloned().unwrap_or_default();
    let wrong = peer
        .execute(
            batch(
                reference,
                &id,
                delete(&Pod {
                    uid: "another-uid".to_owned(),
                    ..known
                }),
            ),
            1,
        )
        .await?;
    notes.hold(UID, !matches!(wrong[..], [Outcome::Done(_)]), || {
        format!("{wrong:?}")
    });
    notes.add(UID, peer.relist(Kind::Pod).await);
    Ok(())
}

/// Asks for a status and drains before it is answered.
async fn drain(peer: &mut Peer, notes: &mut Notes) -> Verdict {
    let (_, reference) = peer.only_set()?;
    let id = peer.id.clone();
    let batch = peer.start(batch(&reference, &id, status(WANTED))).await;
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
    let (_, reference) = peer.only_set()?;
    let id = peer.id.clone();
    let victim = peer
        .pods
        .values()
        .next()
        .cloned()
        .ok_or("there is no pod to delete")?;
    let outcomes = peer
        .execute(batch(&reference, &id, delete(&victim)), 1)
        .await?;
    let shows = match &outcomes[..] {
        [Outcome::Done(done)] => match &done.object {
            Some(done::Object::Gone(gone)) => *gone,
            Some(done::Object::Pod(pod)) => pod.uid == victim.uid && pod.deleted.is_some(),
            Some(done::Object::ReplicaSet(_)) | None => false,
        },
        _ => false,
    };
    notes.hold(DELETE, shows, || format!("{outcomes:?}"));
    let outcomes = peer.execute(batch(&reference, &id, status(2)), 1).await?;
    let shows = matches!(&outcomes[..], [Outcome::Done(done)] if matches!(&done.object,
        Some(done::Object::ReplicaSet(set)) if set.status.as_ref().is_some_and(|status| status.replicas == 2)));
    notes.hold(STATUS, shows, || format!("{outcomes:?}"));
    peer.fall_silent().await;
    let left = timeout(8 * INTERVAL, peer.closed()).await;
    notes.add(
        SILENCE,
        left.map_err(|_| "it is still there after eight intervals".to_owned()),
    );
    Ok(())
}

fn expect_names(rule: &'static str, peer: &Peer, names: &[String], notes: &mut Notes) {
    let mut there: Vec<_> = peer.pods.values().map(|pod| pod.name.clone()).collect();
    there.sort();
    let mut names = names.to_vec();
    names.sort();
    notes.hold(rule, there == names, || {
        format!("{there:?} in place of {names:?}")
    });
}

/// Returns the pod that a create has made.
fn made_pod<'a>(outcomes: &'a [Outcome], name: &str, set: &ReplicaSet) -> Result<&'a Pod, String> {
    if let [Outcome::Done(done)] = outcomes
        && let Some(done::Object::Pod(pod)) = &done.object
        && pod.name == name
        && pod
            .controller
            .as_ref()
            .is_some_and(|owner| owner.uid == set.uid)
    {
        return Ok(pod);
    }
    Err(format!("{outcomes:?} in place of {name}"))
}

fn again_pod(again: &[Outcome], made: &[Outcome], name: &str, set: &ReplicaSet) -> Verdict {
    let (again, made) = (made_pod(again, name, set)?, made_pod(made, name, set)?);
    if again.uid == made.uid {
        return Ok(());
    }
    Err(format!(
        "{name} was made twice, as {} and {}",
        made.uid, again.uid
    ))
}

fn not_started(outcomes: &[Outcome]) -> Verdict {
    let is_guard = |one: &Outcome| matches!(one, Outcome::NotStarted(it) if it.cause() == NotStartedCause::Guard);
    if outcomes.iter().all(is_guard) {
        return Ok(());
    }
    Err(format!("{outcomes:?} in place of NOT_STARTED, cause GUARD"))
}

fn batch(set: &ObjectRef, session: &str, action: Action) -> Batch {
    Batch {
        replica_set: Some(set.clone()),
        generation: 1,
        guard: Some(Guard {
            session_id: session.to_owned(),
            epoch: 0,
        }),
        action: Some(action),
        ..Batch::default()
    }
}

fn create(names: &[String]) -> Action {
    let generate_name = names
        .first()
        .map_or("", |name| &name[..name.len() - 5])
        .to_owned();
    Action::Create(Create {
        names: names.to_vec(),
        generate_name,
        slow_start_initial: 1,
    })
}

fn delete(pod: &Pod) -> Action {
    let pod = ObjectRef {
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
    };
    Action::Delete(Delete {
        victims: vec![Victim {
            pod: Some(pod),
            ..Victim::default()
        }],
    })
}

fn status(replicas: usize) -> Action {
    let replicas = i32::try_from(replicas).unwrap_or(0);
    let status = ReplicaSetStatus {
        replicas,
        observed_generation: 1,
        ..ReplicaSetStatus::default()
    };
    Action::WriteStatus(WriteStatus {
        status: Some(status),
    })
}
