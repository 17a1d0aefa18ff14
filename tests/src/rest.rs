//! The state of a world at rest (I8): every ReplicaSet has its desired pods and a matching status, and no pod is left behind.

use agent_fake::{Kind, Object, is_active};

use crate::{
    actors::DecisionServer,
    invariants::{Verdict, controller, ensure, name, replicas, selects, uid},
    world::World,
};

/// Checks the desired state of the world.
///
/// # Errors
/// The first difference from the desired state.
pub fn i8_as_wanted(world: &World) -> Verdict {
    for set in world.cluster.objects(Kind::ReplicaSet) {
        ensure(set["metadata"]["deletionTimestamp"].is_null(), || {
            format!("{} is being deleted", name(set))
        })?;
        has_its_pods(world, set)?;
        says_so(world, set)?;
    }
    for pod in world.cluster.objects(Kind::Pod) {
        is_settled(world, pod)?;
    }
    let servers = world.servers.iter().flatten();
    let in_flight: usize = servers.map(DecisionServer::batches_in_flight).sum();
    ensure(in_flight == 0, || {
        format!("{in_flight} batches are in flight")
    })
}

/// The agents delete no more pods than scaling down and adoption require (I3). A decision may be repeated if the outcome of a
/// write is unknown.
///
/// # Errors
/// The number of surplus deletions.
pub fn i3_zero_churn(world: &World) -> Verdict {
    let mut surplus = world.ledger.adopted;
    for wanted in world.ledger.wanted.values() {
        let changes = wanted.values().zip(wanted.values().skip(1));
        let fewer = changes.map(|(before, after)| usize::try_from(before - after).unwrap_or(0));
        surplus += fewer.sum::<usize>();
    }
    let deleted = world.ledger.deleted.len();
    ensure(world.ledger.doubtful_writes || deleted <= surplus, || {
        format!("{deleted} pods were deleted where {surplus} were too many")
    })
}

fn has_its_pods(world: &World, set: &Object) -> Verdict {
    let wanted = set["spec"]["replicas"].as_u64().unwrap_or(1);
    let there = replicas(world, uid(set)).count() as u64;
    ensure(there == wanted, || {
        format!("{} has {there} of {wanted} pods", name(set))
    })
}

fn says_so(world: &World, set: &Object) -> Verdict {
    let wanted = set["spec"]["replicas"].as_u64().unwrap_or(1);
    let template = &set["spec"]["template"]["metadata"]["labels"];
    let labelled = replicas(world, uid(set))
        .filter(|pod| selects(template, pod))
        .count() as u64;
    let status = &set["status"];
    let count = |field: &str| status[field].as_u64().unwrap_or(0);
    let counts = [
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "fullyLabeledReplicas",
    ]
    .map(count);
    let right = counts == [wanted, wanted, wanted, labelled] && status["terminatingReplicas"] == 0;
    let observed = status["observedGeneration"] == set["metadata"]["generation"];
    let calm = status["conditions"].is_null();
    ensure(right && observed && calm, || {
        format!("{} wants {wanted} and says {status}", name(set))
    })
}

fn is_settled(world: &World, pod: &Object) -> Verdict {
    let owner = controller(pod);
    let sets = || world.cluster.objects(Kind::ReplicaSet);
    let dangling = owner.is_some_and(|owner| sets().all(|set| uid(set) != owner));
    ensure(!dangling, || format!("{} outlived its owner", name(pod)))?;
    ensure(pod["metadata"]["deletionTimestamp"].is_null(), || {
        format!("{} is on its way out", name(pod))
    })?;
    if !is_active(pod) {
        return Ok(());
    }
    let wanted_by = |set: &&Object| {
        set["metadata"]["namespace"] == pod["metadata"]["namespace"]
            && selects(&set["spec"]["selector"]["matchLabels"], pod)
    };
    let orphan = owner.is_none().then(|| sets().find(wanted_by)).flatten();
    ensure(orphan.is_none(), || {
        format!("{} is an orphan that could be adopted", name(pod))
    })?;
    let stray = owner.is_some_and(|owner| sets().any(|set| uid(set) == owner && !wanted_by(&set)));
    ensure(!stray, || {
        format!("{} belongs to an owner that does not select it", name(pod))
    })
}
