//! The choice of some of many pods: cycles, borders, ages.

use super::*;

/// Upstream says A before B (restarts), B before C (uid) and C before A (uid); spec 7.5.
#[test]
fn cycle_of_upstream_is_cut_in_a_settled_way() {
    let a = pod("c").restarts(5, 0);
    let b = pod("a");
    let c = pod("b").ready_since(ago(110));
    let all = [a, b, c];
    for (x, y, z) in [
        (0, 1, 2),
        (0, 2, 1),
        (1, 0, 2),
        (1, 2, 0),
        (2, 0, 1),
        (2, 1, 0),
    ] {
        let pods = [all[x].clone(), all[y].clone(), all[z].clone()];
        assert_eq!(uids(&pods, 2), ["c", "b"]);
        assert_eq!(uids(&pods, 1), ["c"]);
    }
    let first = &chosen(&all, 1)[0].reason;
    assert_eq!(
        (first.rule, &*first.detail),
        (Rule::Restarts, "5 restarts vs 0")
    );
}

#[test]
fn set_of_one_instant_that_straddles_the_border_gives_its_first_by_tail() {
    let pods = [
        pod("a"),
        pod("b").restarts(1, 0),
        pod("c").restarts(2, 0),
        pod("d").ready_since(ago(110)),
    ];
    assert_eq!(uids(&pods, 1), ["c"]);
    assert_eq!(uids(&pods, 2), ["c", "b"]);
    assert_eq!(uids(&pods, 3), ["c", "b", "a"]);
}

#[test]
fn none_of_none_and_none_of_some_are_none() {
    assert_eq!(uids(&[], 0), [""; 0]);
    assert_eq!(uids(&[], 3), [""; 0]);
    assert_eq!(uids(&[pod("a")], 0), [""; 0]);
}

#[test]
fn all_go_in_the_order_given() {
    let pods = [pod("b"), pod("a").not_ready(), pod("c").unassigned()];
    for count in [3, 4] {
        let all = chosen(&pods, count);
        assert_eq!(
            all.iter().map(|chosen| chosen.id).collect::<Vec<_>>(),
            ["b", "a", "c"]
        );
        assert!(
            all.iter()
                .all(|chosen| chosen.reason.rule == Rule::AllGo && chosen.age_ratio.is_none())
        );
    }
}

#[test]
fn two_not_ready_pods_are_chosen_over_a_ready_one() {
    assert_eq!(
        uids(&[pod("a"), pod("c").not_ready(), pod("b").not_ready()], 2),
        ["b", "c"]
    );
}

#[test]
fn mixed_list_goes_unscheduled_pending_running() {
    let pods = [
        pod("running ready"),
        pod("scheduled pending").phase(Phase::Pending).not_ready(),
        pod("unscheduled pending")
            .unassigned()
            .phase(Phase::Pending)
            .not_ready(),
        pod("running not ready").not_ready(),
        pod("running ready too"),
    ];
    let wanted = [
        "unscheduled pending",
        "scheduled pending",
        "running not ready",
    ];
    assert_eq!(uids(&pods, 3), wanted);
}

#[test]
fn whole_order_is_that_of_upstreams_sorting_test() {
    let young = ago(5);
    let old = ago(30 * DAY);
    let pods = [
        pod("unscheduled")
            .unassigned()
            .phase(Phase::Pending)
            .not_ready(),
        pod("pending").phase(Phase::Pending).not_ready(),
        pod("unknown").phase(Phase::Unknown).not_ready(),
        pod("not ready").not_ready(),
        pod("ready since unknown").ready_since(None),
        pod("ready recently").ready_since(young).created(young),
        pod("more sidecar restarts").ready_since(old).restarts(1, 2),
        pod("fewer sidecar restarts")
            .ready_since(old)
            .restarts(1, 1),
        pod("younger").ready_since(old),
        pod("oldest").ready_since(old).created(old),
    ];
    let wanted: Vec<&str> = pods.iter().map(|pod| &*pod.uid.0).collect();
    for turn in 0..pods.len() {
        let mut shuffled = pods.to_vec();
        shuffled.rotate_left(turn);
        shuffled.swap(0, turn);
        assert_eq!(uids(&shuffled, 9), wanted[..9]);
    }
}

#[test]
fn age_ratio_compares_with_the_youngest_ready_pod() {
    let pods = [
        pod("not ready").not_ready().created(ago(1)),
        pod("young").ready_since(ago(1)).created(ago(50)),
        pod("old").ready_since(ago(1000)).created(ago(125)),
        pod("stays").ready_since(ago(9000)).created(None),
    ];
    let ratios: Vec<_> = chosen(&pods, 3)
        .into_iter()
        .map(|chosen| chosen.age_ratio)
        .collect();
    assert_eq!(
        ratios,
        [None, Some(Thousandths(1000)), Some(Thousandths(2500))]
    );
}

#[test]
fn age_ratio_survives_a_skewed_clock() {
    let pods = [
        pod("a").created(ago(-60)),
        pod("b").created(ago(60)),
        pod("c").created(None),
    ];
    let ratios: Vec<_> = chosen(&pods, 2)
        .into_iter()
        .map(|chosen| chosen.age_ratio)
        .collect();
    assert_eq!(ratios, [None, Some(Thousandths(1000))]);
    let extremes = [
        pod("a").created(Some(Timestamp(i64::MIN))),
        pod("b").created(Some(NOW)),
        pod("c"),
    ];
    assert_eq!(chosen(&extremes, 2).len(), 2);
}
