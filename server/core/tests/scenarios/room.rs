//! The limit of operations in flight: which syncs continue while others wait for room.

use server_core::{Action, Batch, Config, Kind};

use crate::{
    objects::{pod, set},
    rig::Rig,
};

/// Returns a rig that may have 20 operations in flight. It knows ReplicaSets with these numbers of missing pods. A ReplicaSet of 0 has one
/// pod and an outdated status.
fn rig(sets: &[(&str, i32)]) -> Rig {
    let config = Config {
        operations_in_flight_max: 20,
        slow_start_initial: 500,
        ..Config::default()
    };
    let lacking = |(name, replicas): &(&str, i32)| set(name, (*replicas).max(1));
    let stale = sets.iter().filter(|(_, replicas)| *replicas == 0);
    let pods = stale.map(|(name, _)| pod(&format!("{name}-pod"), name));
    Rig::with(config).listed(sets.iter().map(lacking).collect(), pods.collect())
}

fn leave(rig: &mut Rig) -> Vec<Batch> {
    std::iter::from_fn(|| rig.poll()).collect()
}

/// Returns the name of each batch's ReplicaSet and the number of its operations, 0 for a status.
fn told(batches: &[Batch]) -> Vec<(&str, usize)> {
    let operations = |batch: &Batch| match &batch.action {
        Action::WriteStatus(_) => 0,
        Action::Create { .. } | Action::Delete(_) | Action::Claim { .. } => {
            batch.action.operations()
        }
    };
    let told = batches.iter();
    told.map(|batch| (&*batch.key.name, operations(batch)))
        .collect()
}

#[test]
fn statuses_of_others_pass_a_sync_that_waits_for_room() {
    let mut rig = rig(&[
        ("slow", 10),
        ("large", 15),
        ("a", 0),
        ("b", 0),
        ("c", 0),
        ("d", 0),
    ]);
    let out = leave(&mut rig);
    assert_eq!(told(&out), [("slow", 10), ("a", 0), ("b", 0)]);
    assert_eq!(rig.view("large").state, server_core::State::Queued);
    rig.succeed(&out[1]);
    let next = leave(&mut rig);
    assert_eq!(told(&next), [("c", 0)], "two at once, no more");
    rig.succeed(&out[0]);
    let next = leave(&mut rig);
    let told = told(&next);
    assert_eq!(told, [("large", 15), ("d", 0), ("slow", 0)], "large first");
}

#[test]
fn answered_sync_ends_beside_one_that_waits_for_room() {
    let mut rig = rig(&[("first", 5), ("second", 5), ("large", 18)]);
    let out = leave(&mut rig);
    assert_eq!(told(&out), [("first", 5), ("second", 5)]);
    rig.succeed(&out[0]);
    let status = leave(&mut rig);
    assert_eq!(told(&status), [("first", 0)]);
    rig.succeed(&status[0]);
    assert_eq!(told(&leave(&mut rig)), []);
    assert_eq!(rig.view("first").state, server_core::State::InSync);
}

#[test]
fn statuses_keep_no_room_from_a_batch_that_takes_all_of_it() {
    let mut rig = rig(&[("slow", 10), ("whole", 20), ("a", 0)]);
    let out = leave(&mut rig);
    assert_eq!(told(&out), [("slow", 10)]);
    rig.succeed(&out[0]);
    let whole = leave(&mut rig);
    assert_eq!(told(&whole), [("whole", 20)]);
    rig.succeed(&whole[0]);
    let rest = leave(&mut rig);
    assert_eq!(told(&rest), [("a", 0), ("slow", 0), ("whole", 0)]);
}

#[test]
fn syncs_that_wait_for_room_keep_their_order_and_others_begin_behind_few_of_them() {
    let names: Vec<_> = (0..80).map(|at| format!("web-{at:02}")).collect();
    let mut sets: Vec<_> = names.iter().map(|name| (&**name, 15)).collect();
    sets.push(("last", 0));
    let mut rig = rig(&sets);
    let mut created = Vec::new();
    let mut out = leave(&mut rig);
    assert_eq!(
        told(&out),
        [("web-00", 15)],
        "64 wait, and the last is behind them"
    );
    while !out.is_empty() {
        let creates = told(&out).into_iter().filter(|(_, count)| *count > 0);
        created.extend(creates.map(|(name, _)| name.to_owned()));
        out.iter().for_each(|batch| rig.succeed(batch));
        out = leave(&mut rig);
    }
    assert_eq!(created, names);
    assert_eq!(rig.view("last").state, server_core::State::InSync);
}

#[test]
fn replica_set_that_goes_while_it_waits_for_room_is_forgotten() {
    let mut rig = rig(&[("slow", 10), ("large", 15), ("a", 0), ("b", 0), ("c", 0)]);
    let out = leave(&mut rig);
    assert_eq!(told(&out), [("slow", 10), ("a", 0), ("b", 0)]);
    let rest = ["slow", "a", "b"].map(|name| set(name, 1));
    rig.list_sets(rest.to_vec());
    assert_eq!(rig.requests(), [] as [Kind; 0]);
    out[1..].iter().for_each(|batch| rig.succeed(batch));
    let next = leave(&mut rig);
    assert!(
        next.iter()
            .all(|batch| &*batch.key.name != "large" && &*batch.key.name != "c")
    );
}
