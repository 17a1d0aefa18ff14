//! `deletion-order.jsonl`: who goes before whom, whatever the order of the input.

use serde_json::Value;
use server_core::{Pod, Timestamp, deletion_order};
use tests::golden;

#[test]
fn pods_go_in_the_recorded_order() {
    let Some(cases) = golden::cases("deletion-order.jsonl") else { return };
    let wrong: Vec<_> = cases.iter().filter(|case| !holds(case)).map(|case| &case["name"]).collect();
    assert!(wrong.is_empty(), "{} of {} differ: {wrong:?}", wrong.len(), cases.len());
}

#[test]
fn the_order_does_not_depend_on_the_input() {
    let Some(cases) = golden::cases("deletion-order.jsonl") else { return };
    for case in &cases {
        let pods = pods(case);
        let names = |order: Vec<usize>, pods: &[(Pod, u32)]| -> Vec<_> {
            order.into_iter().map(|at| pods[at].0.name.clone()).collect()
        };
        let wanted = names(deletion_order(now(case), &pods), &pods);
        for turn in 1..pods.len().min(12) {
            let mut turned = pods.clone();
            turned.rotate_left(turn);
            turned.reverse();
            assert_eq!(names(deletion_order(now(case), &turned), &turned), wanted, "{}", case["name"]);
        }
    }
}

fn holds(case: &Value) -> bool {
    let order = deletion_order(now(case), &pods(case));
    let place = |at: &Value| order.iter().position(|one| Some(*one as u64) == at.as_u64());
    let pairs = case["before"].as_array().expect("a case has pairs");
    pairs.iter().all(|pair| place(&pair[0]) < place(&pair[1]))
}

fn pods(case: &Value) -> Vec<(Pod, u32)> {
    let pods = case["pods"].as_array().expect("a case has pods");
    let ranks = case["rank"].as_array().expect("a case has ranks");
    let rank = |rank: &Value| u32::try_from(rank.as_u64().expect("a rank is a count")).expect("a rank is small");
    pods.iter().zip(ranks).map(|(pod, at)| (golden::pod(pod), rank(at))).collect()
}

fn now(case: &Value) -> Timestamp {
    golden::time(&case["now"])
}
