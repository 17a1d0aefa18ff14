//! `Decide`: one decision from a snapshot, checked against the counts of the snapshot.

use std::{cmp::Reverse, collections::BTreeSet};

use decree_api::v1;
use decree_core::{Config, Decision, Node, Objects, Pod, ReplicaSet, Timestamp};
use prost::Message;
use server_session::wire::{decode, encode};
use tests::rng::Rng;

use crate::contract;

/// An accepted snapshot.
struct Snapshot {
    now: Timestamp,
    config: Config,
    set: ReplicaSet,
    others: Vec<ReplicaSet>,
    pods: Vec<Pod>,
    nodes: Vec<Node>,
}

/// Returns an encoded request.
pub(crate) fn generate(rng: &mut Rng) -> Vec<u8> {
    request(rng).encode_to_vec()
}

fn request(rng: &mut Rng) -> v1::DecideRequest {
    let (others, pods) = (rng.between(0, 3), rng.between(0, 14));
    v1::DecideRequest {
        replica_set: Some(contract::replica_set(rng)),
        other_replica_sets: (0..others).map(|_| contract::replica_set(rng)).collect(),
        pods: (0..pods).map(|_| contract::pod(rng)).collect(),
        decide_time: Some(contract::time(rng)),
        options: rng.chance(400).then(|| contract::options(rng)),
        nodes: (0..rng.between(0, 2))
            .map(|_| contract::node(rng))
            .collect(),
        costs: (0..rng.between(0, 2))
            .map(|_| (contract::name(rng), contract::count(rng)))
            .collect(),
    }
}

/// Checks a decision against its snapshot.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(request) = v1::DecideRequest::decode(bytes) else {
        return;
    };
    let Some(snapshot) = read(&request) else {
        return;
    };
    let decision = snapshot.decide(snapshot.pods.clone(), snapshot.others.clone());
    let mut pods = snapshot.pods.clone();
    pods.sort_by_key(|pod| Reverse(pod.name.clone()));
    let mut others = snapshot.others.clone();
    others.reverse();
    let turned = snapshot.decide(pods, others);
    assert_eq!(decision, turned, "the order of the input matters");
    if is_plain(&snapshot) {
        hold(&snapshot, &decision);
    }
    let encoded = encode::decision(decision).encoded_len();
    assert!(encoded <= 8 << 20, "an answer of {encoded} bytes");
}

fn read(request: &v1::DecideRequest) -> Option<Snapshot> {
    let sets = request.other_replica_sets.iter().map(decode::replica_set);
    let pods = request.pods.iter().map(decode::pod);
    let nodes = request.nodes.iter().map(decode::node);
    let costs = request.costs.iter();
    let config = Config {
        costs: costs
            .map(|(pod, cost)| (pod.as_str().into(), *cost))
            .collect(),
        ..Config::default()
    };
    Some(Snapshot {
        now: decode::timestamp("decide_time", request.decide_time.as_ref()).ok()??,
        config: decode::options(request.options.as_ref(), config).ok()?,
        set: decode::replica_set(request.replica_set.as_ref()?).ok()?,
        others: sets.collect::<Result<_, _>>().ok()?,
        pods: pods.collect::<Result<_, _>>().ok()?,
        nodes: nodes.collect::<Result<_, _>>().ok()?,
    })
}

/// Returns whether all names are unique. Of duplicates the newest counts, which only the core has to know.
fn is_plain(snapshot: &Snapshot) -> bool {
    let Snapshot {
        set,
        others,
        pods,
        nodes,
        ..
    } = snapshot;
    let names_of_nodes = nodes.iter().map(|node| &node.name);
    let sets = others
        .iter()
        .chain([set])
        .map(|set| (&set.key.namespace, &set.key.name));
    let names = pods.iter().map(|pod| (&pod.namespace, &pod.name));
    let uids = pods.iter().map(|pod| &pod.uid);
    let set_uids = others.iter().chain([set]).map(|set| &set.key.uid);
    names_of_nodes.collect::<BTreeSet<_>>().len() == nodes.len()
        && sets.collect::<BTreeSet<_>>().len() == others.len() + 1
        && set_uids.collect::<BTreeSet<_>>().len() == others.len() + 1
        && names.collect::<BTreeSet<_>>().len() == pods.len()
        && uids.collect::<BTreeSet<_>>().len() == pods.len()
}

/// Checks the numbers of a decision against a separate count.
fn hold(snapshot: &Snapshot, decision: &Decision) {
    let Snapshot {
        set, pods, config, ..
    } = snapshot;
    let Ok(selector) = &set.selector else {
        assert!(decision.quarantined.is_some(), "an invalid selector");
        return;
    };
    if decision.quarantined.is_some() {
        return;
    }
    let here = || pods.iter().filter(|pod| pod.namespace == set.key.namespace);
    let is_owned = |pod: &Pod| {
        let owner = pod.controller.as_ref();
        owner.is_some_and(|owner| {
            (&*owner.kind, &owner.name, &owner.uid) == ("ReplicaSet", &set.key.name, &set.key.uid)
        })
    };
    let matches = |pod: &Pod| selector.matches(&pod.labels);
    let adopts = here().filter(|pod| {
        pod.controller.is_none() && matches(pod) && pod.state.is_active() && !set.deleting
    });
    let adopts: BTreeSet<_> = adopts.map(|pod| pod.uid.clone()).collect();
    let adopted: BTreeSet<_> = decision.adopts.iter().map(|pod| pod.uid.clone()).collect();
    assert_eq!(adopted, adopts, "orphans that match are adopted");
    let released = decision.releases.iter().all(|released| {
        let mut owned = here().filter(|pod| is_owned(pod) && !matches(pod));
        owned.any(|pod| released.uid == pod.uid)
    });
    assert!(released, "only owned pods that do not match are released");
    let mine = |pod: &&Pod| {
        pod.state.is_active() && (adopts.contains(&pod.uid) || is_owned(pod) && matches(pod))
    };
    let active = here().filter(mine).count();
    let wanted = usize::try_from(set.replicas).unwrap_or(0);
    if set.preferences.is_some() {
        let mine: Vec<_> = here().filter(mine).collect();
        return hold_to_preferences(snapshot, decision, &mine);
    }
    let burst = usize::try_from(config.burst_replicas).expect("it fits");
    let unassigned = here().filter(mine).filter(|pod| pod.node.is_none()).count();
    let slow = config.brake.as_ref().map_or(usize::MAX, |brake| {
        let free = (brake.pods as usize).saturating_sub(unassigned);
        if free == 0 {
            brake.per_second as usize
        } else {
            free
        }
    });
    let (creates, deletes) = if set.deleting {
        (0, 0)
    } else {
        (
            wanted.saturating_sub(active).min(burst).min(slow),
            active.saturating_sub(wanted).min(burst),
        )
    };
    assert_eq!(
        (decision.creates.len(), decision.deletes.len()),
        (creates, deletes),
        "{wanted} are wanted, {active} active, {unassigned} without a node, at most {burst}"
    );
    let victims = decision.deletes.iter().all(|victim| {
        let mut candidates = here().filter(mine);
        candidates.any(|pod| victim.pod.uid == pod.uid)
    });
    assert!(victims, "only pods of the ReplicaSet are deleted");
}

/// Checks the bounds of a decision on a ReplicaSet with preferences and these active pods.
fn hold_to_preferences(snapshot: &Snapshot, decision: &Decision, mine: &[&Pod]) {
    let Snapshot { set, nodes, .. } = snapshot;
    let Some(preferences) = &set.preferences else {
        return;
    };
    let is_hinted = |pod: &&&Pod| {
        let node = nodes.iter().find(|it| Some(&it.name) == pod.node.as_ref());
        pod.state.leaving || node.is_some_and(|it| it.cordoned || it.leaving)
    };
    let (active, hinted) = (mine.len(), mine.iter().filter(is_hinted).count());
    let number = |number: i32| usize::try_from(number).unwrap_or(0);
    let wanted = number(set.replicas);
    let percent = number(preferences.surge_percent);
    let surge = (percent * wanted)
        .div_ceil(100)
        .max(number(preferences.surge));
    let room = (wanted + hinted.min(surge.min(wanted))).saturating_sub(active);
    assert!(decision.creates.len() <= room, "{room} may be created");
    let is_victim = |pod: &&&Pod| decision.deletes.iter().any(|it| it.pod.uid == pod.uid);
    let gone = mine.iter().filter(is_victim).count();
    assert!(
        gone == 0 || active - gone >= wanted,
        "{gone} of {active} go"
    );
}

impl Snapshot {
    fn decide(&self, pods: Vec<Pod>, mut replica_sets: Vec<ReplicaSet>) -> Decision {
        replica_sets.push(self.set.clone());
        let key = &self.set.key;
        let (config, name) = (self.config.clone(), (&*key.namespace, &*key.name));
        let objects = Objects {
            replica_sets,
            pods,
            nodes: self.nodes.clone(),
            ..Objects::default()
        };
        let decided = decree_core::decide_while(self.now, config, name, objects, &|| true);
        let decided = decided.expect("nobody ends it");
        decided.expect("the ReplicaSet is in the snapshot")
    }
}

#[test]
fn generated_snapshots_reach_the_counts() {
    let reaches = |seed: &u64| {
        let snapshot = read(&request(&mut Rng::new(*seed)));
        snapshot.is_some_and(|it| is_plain(&it) && it.set.selector.is_ok())
    };
    let count = (0..500).filter(reaches).count();
    assert!(count > 20, "{count} of 500");
}
