//! The limit of operations in flight: which syncs continue while others wait for room.

use server_core::{Action, Batch, Config};

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
