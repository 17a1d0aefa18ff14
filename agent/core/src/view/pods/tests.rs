//! Which pods and operations count, and from when to when.

use expect_test::expect_file;

use super::*;
use crate::tests::{RS, at, node_events, part, play, pod_of};

/// Plays a statement. Pods are written as in stories.
fn act(pods: &mut Pods, statement: &str) -> Option<String> {
    let words: Vec<_> = statement.split_whitespace().collect();
    let word = |place: usize| words.get(place).copied().unwrap_or_default();
    let until = word(2).parse().ok().map(at);
    let (name, uid) = (word(1), format!("uid-{}", word(1)));
    match word(0) {
        "pods" => words[1..].iter().for_each(|it| pods.apply(&pod_of(it))),
        part @ ("list" | "first" | "middle" | "last") => {
            let listed = words[1..].iter().map(|it| pod_of(it));
            pods.list(self::part(part), words.len() - 1, listed);
        }
        "nodes" => {
            pods.nodes.get_or_insert_default();
            pods.apply_nodes(node_events(&words[1..]));
        }
        "hinted" => {
            let names = pods.nodes.as_ref().map_or(0, Nodes::count_names);
            return Some(format!("{} hinted, {names} names", pods.counts(RS).hinted));
        }
        "deleted" => pods.delete(&uid),
        "gone" => pods.mark_gone(&uid),
        "create" => pods.begin_create(RS, name),
        "created" => pods.end_create(RS, name, until),
        "leave" => pods.begin_delete(RS, &uid),
        "left" => pods.end_delete(RS, &uid, until),
        "expire" => pods.forget_expired(at(name.parse().expect("a second")), RS),
        "reset-peak" => pods.reset_peak(RS),
        "forget" => pods.forget(RS),
        "forget-all" => pods.retain_known(|_| false),
        "besides" => {
            let (creates, leaving) = (
                pods.creates_besides(RS, name),
                pods.leaving_besides(RS, &uid),
            );
            return Some(format!("{creates} creating, {leaving} leaving"));
        }
        "known" => return Some(pods.get(&uid).is_some().to_string()),
        "counts" => return Some(counted(pods)),
        other => panic!("{other} is no statement"),
    }
    None
}

fn counted(pods: &Pods) -> String {
    let (counts, peak) = (pods.counts(RS), pods.peak(RS));
    format!(
        "{} active, {} ready, {} terminating, {} leaving, peak {}; {} pods, {} active of all, {} controllers, {} unlisted",
        counts.active,
        counts.ready,
        counts.terminating,
        counts.leaving,
        peak.active,
        pods.by_uid.len(),
        pods.of_replica_sets,
        pods.controllers.len(),
        pods.unlisted.len(),
    )
}

/// A cluster has many pods: the name of a node is shared, what else nodes need fits where there was room, and the own name is a hash.
#[test]
fn pod_takes_little_memory() {
    assert_eq!(size_of::<Pod>(), 56);
}

#[test]
fn labels_are_kept_no_longer_than_their_pods() {
    let ways: [fn(&mut Pods); 2] = [
        |pods| pods.delete("uid-a"),
        |pods| pods.list(Part::WHOLE, 0, []),
    ];
    for leave in ways {
        let mut pods = with_replica_set();
        pods.apply(&pod_of("a"));
        let labels = Arc::downgrade(&pods.by_uid["uid-a"].labels);
        leave(&mut pods);
        assert!(labels.upgrade().is_none());
        assert_eq!(pods.peak(RS).active, 1);
    }
}

fn with_replica_set() -> Pods {
    let mut pods = Pods::default();
    pods.know(RS);
    pods
}

/// `create` and `leave` begin an operation on a pod, and `created` and `left` end it, with a second until when its effect is unknown. The
/// ReplicaSet is known until `forget` or `forget-all`.
#[test]
fn pods_count_as_in_the_table() {
    play(&expect_file!["tests/pods.txt"], with_replica_set, act);
}
