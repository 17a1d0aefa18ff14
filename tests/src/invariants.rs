//! The checkers, one for each invariant, named by its number. Each checks the facts of the last step in the world after the step,
//! and returns the violation.

use agent_fake::{Kind, Object, is_active};
use server_session::Refusal;

use crate::{
    actors::session_id,
    facts::Fact,
    workloads::{BYSTANDER, NAMESPACE},
    world::World,
};

/// The violation, if there is one.
pub type Verdict = Result<(), String>;

/// A checker of single facts.
pub type Checker = fn(&World, &Fact) -> Verdict;

/// All checkers by name. The checkers for the end of a run are in [`crate::rest`].
pub const CHECKERS: [(&str, Checker); 15] = [
    ("i0_protocol", i0_protocol),
    (
        "i1_delete_hits_the_chosen_pod",
        i1_delete_hits_the_chosen_pod,
    ),
    ("i1_no_unowned_pod_deleted", i1_no_unowned_pod_deleted),
    ("i2_no_duplicate_create", i2_no_duplicate_create),
    ("i2_created_as_decided", i2_created_as_decided),
    ("i3_no_name_twice", i3_no_name_twice),
    ("i4_surplus_bound", i4_surplus_bound),
    ("i5_deficit_bound", i5_deficit_bound),
    ("i6_view", i6_view),
    ("i7_single_session", i7_single_session),
    ("i7_newest_epoch", i7_newest_epoch),
    ("i7_one_live_session", i7_one_live_session),
    ("i7_own_cluster", i7_own_cluster),
    ("i9_creates_are_paid_for", i9_creates_are_paid_for),
    ("i10_slow_start", i10_slow_start),
];

/// Both halves speak the protocol.
pub fn i0_protocol(_: &World, fact: &Fact) -> Verdict {
    let Fact::ProtocolBroken(text) = fact else {
        return Ok(());
    };
    Err(text.clone())
}

/// A pod that the agent deletes is controlled by the ReplicaSet of the decision.
pub fn i1_no_unowned_pod_deleted(_: &World, fact: &Fact) -> Verdict {
    let Fact::PodDeleted { cause, before, .. } = fact else {
        return Ok(());
    };
    ensure(controller(before) == Some(&cause.set), || {
        format!(
            "deleted {}, controlled by {:?}",
            name(before),
            controller(before)
        )
    })
}

/// A delete takes effect on the chosen pod, not on another pod of its name (W11).
pub fn i1_delete_hits_the_chosen_pod(_: &World, fact: &Fact) -> Verdict {
    let Fact::PodDeleted { chosen, before, .. } = fact else {
        return Ok(());
    };
    let hit = before["metadata"]["uid"].as_str();
    ensure(hit == Some(chosen), || {
        format!(
            "deleted {hit:?} of name {} where {chosen} was chosen",
            name(before)
        )
    })
}

/// An operation creates at most one pod, however often it is retried.
pub fn i2_no_duplicate_create(world: &World, fact: &Fact) -> Verdict {
    let Fact::PodCreated { cause, pod } = fact else {
        return Ok(());
    };
    let times = world.ledger.created.get(cause).copied().unwrap_or(0);
    ensure(times <= 1, || {
        format!("{} is pod number {times} of {cause:?}", name(pod))
    })
}

/// A created pod is in the namespace of the ReplicaSet of the decision, and controlled by it, unless a webhook drops owners.
pub fn i2_created_as_decided(world: &World, fact: &Fact) -> Verdict {
    let Fact::PodCreated { cause, pod } = fact else {
        return Ok(());
    };
    let owner = controller(pod);
    let is_owned = owner == Some(&cause.set) || owner.is_none() && world.chaos.orphan > 0;
    let right = is_owned && pod["metadata"]["namespace"] == NAMESPACE;
    ensure(right, || {
        format!("{} is created as {}", name(pod), pod["metadata"])
    })
}

/// A world gives no name to two pods, except after a create of unknown effect, which is retried under its name. Two sessions may
/// draw the same name by chance, in one world of a million.
pub fn i3_no_name_twice(world: &World, fact: &Fact) -> Verdict {
    let Fact::PodCreated { pod, .. } = fact else {
        return Ok(());
    };
    let ledger = &world.ledger;
    let again = ledger.name_uses(name(pod)) > 1 && !ledger.was_unknown(name(pod));
    ensure(!again, || {
        format!("{} is the name of an earlier pod", name(pod))
    })
}

/// The pods that the agents created never exceed the maximum desired replicas since the decision. For a pod whose creation was
/// not reported, the decision for that pod counts. So two creates for one missing pod never both stay, however late one of them
/// takes effect.
///
/// Pods that a user changed do not count, because the user changes the number. A pod whose name had another pod before it does
/// not count either. In that case, an unanswered create was retried, somebody removed the pod of one attempt, and the other
/// attempt took effect after that (docs/decisions/0011).
pub fn i4_surplus_bound(world: &World, fact: &Fact) -> Verdict {
    let Fact::PodCreated { cause, .. } = fact else {
        return Ok(());
    };
    let ledger = &world.ledger;
    let excused =
        |pod: &Object| ledger.touched.contains(uid(pod)) || ledger.name_uses(name(pod)) > 1;
    let ours = |pod: &&Object| ledger.ours.contains_key(uid(pod)) && !excused(pod);
    let there: Vec<_> = replicas(world, &cause.set).filter(ours).collect();
    let unannounced = there.iter().map(|pod| uid(pod));
    let unannounced = unannounced.filter(|uid| ledger.unannounced.contains(*uid));
    let oldest = unannounced.map(|uid| ledger.ours[uid].generation).min();
    let since = oldest.map_or(cause.generation, |oldest| oldest.min(cause.generation));
    let (_, wanted) = ledger.wanted_since(&cause.set, since);
    ensure(
        i64::try_from(there.len()).is_ok_and(|count| count <= wanted),
        || {
            format!(
                "{} pods of our making where {wanted} are wanted: {:?}",
                there.len(),
                there.iter().map(|pod| name(pod)).collect::<Vec<_>>()
            )
        },
    )
}

/// The agents never delete so many pods that fewer remain than the minimum desired replicas since the decision. This holds only
/// if nobody else removes pods and the outcome of every write is known: a delete of unknown effect can be decided twice.
pub fn i5_deficit_bound(world: &World, fact: &Fact) -> Verdict {
    let Fact::PodDeleted { cause, .. } = fact else {
        return Ok(());
    };
    let ledger = &world.ledger;
    let excused = ledger.doubtful_writes || !ledger.touched.is_empty() || ledger.lost_node;
    let (wanted, _) = ledger.wanted_since(&cause.set, cause.generation);
    let left = replicas(world, &cause.set).count();
    ensure(
        excused || i64::try_from(left).is_ok_and(|left| left >= wanted),
        || format!("{left} pods are left where {wanted} are wanted"),
    )
}

/// No batch depends on a partial view, or on a view older than what the session was told, including its own writes; and a
/// ReplicaSet has at most one batch in flight.
pub fn i6_view(_: &World, fact: &Fact) -> Verdict {
    let Fact::BatchSent { verdict, .. } = fact else {
        return Ok(());
    };
    verdict.clone()
}

/// A write begins only in the session that decided it.
pub fn i7_single_session(_: &World, fact: &Fact) -> Verdict {
    let Fact::WriteBegan { cause, session, .. } = fact else {
        return Ok(());
    };
    ensure(session.as_deref() == Some(cause.session.as_str()), || {
        format!("a write of {} begins in {session:?}", cause.session)
    })
}

/// A write begins only in the newest epoch of the Lease: a process that was stopped while another took over writes no more.
pub fn i7_newest_epoch(_: &World, fact: &Fact) -> Verdict {
    let Fact::WriteBegan { cause, epochs, .. } = fact else {
        return Ok(());
    };
    ensure(epochs.is_none_or(|(own, newest)| own == newest), || {
        format!("a write of {} begins with epochs {epochs:?}", cause.session)
    })
}

/// A server has one live session of a cluster, however many agents connect.
pub fn i7_one_live_session(world: &World, _: &Fact) -> Verdict {
    let servers = world.servers.iter().flatten();
    let sessions = servers.map(|it| it.session_count(|connection| world.has_opened(connection)));
    let most = sessions.max().unwrap_or(0);
    ensure(most <= 1, || {
        format!("{most} sessions of one cluster live on a server")
    })
}

/// Only a session of the same cluster on the same server ends a session or refuses its epoch.
pub fn i7_own_cluster(world: &World, fact: &Fact) -> Verdict {
    let Fact::SessionEnded {
        connection,
        refusal,
    } = fact
    else {
        return Ok(());
    };
    let mut others = world.epochs_beside(*connection);
    let fair = if let Refusal::Superseded { by, .. } = refusal {
        others.any(|(other, _)| *by == session_id(other))
    } else if let Refusal::EpochTooOld { newest, .. } = refusal {
        others.any(|(_, epoch)| epoch == *newest)
    } else {
        true
    };
    ensure(fair, || {
        format!("a session of another cluster ends that of connection {connection}: {refusal}")
    })
}

/// The creates of a ReplicaSet are paid for: by its desired pods and its allowance, with each process of a server and each resume of a
/// person, by grants, and by pods that lived for a minute or that an agent deleted.
pub fn i9_creates_are_paid_for(world: &World, fact: &Fact) -> Verdict {
    let Fact::PodCreated { cause, .. } = fact else {
        return Ok(());
    };
    let balance = world.ledger.creates_paid.balance(world.now(), &cause.set);
    let (created, paid_for) = balance.unwrap_or_default();
    ensure(created <= paid_for, || {
        format!(
            "{created} creates of {}, and {paid_for} are paid for",
            cause.set
        )
    })
}

/// Creates start in rounds of 1, 2, 4, …: each round waits for the one before.
pub fn i10_slow_start(_: &World, fact: &Fact) -> Verdict {
    let Fact::WriteBegan {
        cause,
        creates: (begun, answered),
        ..
    } = fact
    else {
        return Ok(());
    };
    ensure(*begun <= 2 * answered, || {
        format!(
            "create {} of batch {} begins with {answered} of {begun} answered",
            cause.operation, cause.batch
        )
    })
}

/// The bystander always exists.
pub fn i1_bystander_lives(world: &World) -> Verdict {
    let bystander = world.cluster.peek(Kind::Pod, NAMESPACE, BYSTANDER);
    ensure(bystander.is_some(), || "the bystander is gone".to_owned())
}

/// Returns whether the status of the newest spec has more pods than desired. A Deployment would spend these.
pub fn has_status_beyond_desired(set: &serde_json::Value) -> bool {
    let (desired, status) = (set["spec"]["replicas"].as_u64(), &set["status"]);
    let is_current = status["observedGeneration"] == set["metadata"]["generation"];
    is_current && desired > Some(0) && status["replicas"].as_u64() > desired
}

/// Returns the active pods that a ReplicaSet controls and selects.
pub fn replicas<'a>(world: &'a World, set: &str) -> impl Iterator<Item = &'a Object> {
    let found = world
        .cluster
        .objects(Kind::ReplicaSet)
        .find(|it| uid(it) == set);
    let selector = found.map(|set| set["spec"]["selector"]["matchLabels"].clone());
    let set = set.to_owned();
    world.cluster.objects(Kind::Pod).filter(move |pod| {
        let selected = selector
            .as_ref()
            .is_none_or(|selector| selects(selector, pod));
        is_active(pod) && selected && controller(pod) == Some(&set)
    })
}

/// Returns whether a pod has all these labels.
pub fn selects(match_labels: &serde_json::Value, pod: &Object) -> bool {
    let mut labels = match_labels.as_object().into_iter().flatten();
    labels.all(|(key, value)| pod["metadata"]["labels"].get(key) == Some(value))
}

/// Returns the uid of the controller of an object.
pub fn controller(object: &Object) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    owners.find(|owner| owner["controller"] == true)?["uid"].as_str()
}

pub(crate) fn uid(object: &Object) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

pub(crate) fn name(object: &Object) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(crate) fn ensure(holds: bool, why_not: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(why_not()) }
}
