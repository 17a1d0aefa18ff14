//! `deletion-order.jsonl`: the order of deletion of pods.

use decree_core::{Candidate, Pod};
use serde_json::Value;
use tests::golden;

use crate::{judge, list, now};

#[test]
fn pods_go_in_the_recorded_order() {
    judge("deletion-order.jsonl", |case| {
        let pods = pods(case);
        let places = places(case, &pods);
        let place = |pod: &Value| {
            pod.as_u64()
                .and_then(|at| places.get(usize::try_from(at).ok()?))
        };
        let wrong = list(case, "before").iter().filter(|pair| {
            let (first, second) = (place(&pair[0]), place(&pair[1]));
            first.is_none() || second.is_none() || first >= second
        });
        wrong
            .map(|pair| format!("{} does not go before {}", pair[0], pair[1]))
            .collect()
    });
}

/// Returns the position of each pod in the order of deletion.
fn places(case: &Value, pods: &[(Pod, u32)]) -> Vec<usize> {
    let ranked = pods.iter().map(|(pod, rank)| Candidate {
        id: (),
        uid: &pod.uid,
        node: pod.node.as_deref(),
        state: &pod.state,
        rank: *rank,
        preferred: None,
    });
    let ranked: Vec<_> = ranked.collect();
    let places = decree_core::deletion_positions(now(case), &ranked).into_iter();
    places.map(|place| place.own).collect()
}

fn pods(case: &Value) -> Vec<(Pod, u32)> {
    let rank = |rank: &Value| {
        let rank = rank.as_u64().and_then(|rank| u32::try_from(rank).ok());
        rank.expect("a rank is a small count")
    };
    let ranks = list(case, "rank").iter().map(rank);
    list(case, "pods")
        .iter()
        .map(golden::pod)
        .zip(ranks)
        .collect()
}
