//! The order compared with a literal implementation of its definition, and with upstream's comparison of two pods.

use proptest::{prelude::*, sample::select};

use super::*;

/// Pods with many equal values, so that every rule and every set of one instant occurs. Half of the ReplicaSets have preferences.
fn pods(size: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<TestPod>> {
    let pods = prop::collection::vec(any_pod(), size);
    (pods, any_preferences()).prop_map(|(mut pods, preferences)| {
        for (at, pod) in pods.iter_mut().enumerate() {
            pod.uid = Uid(format!("{}-{at}", pod.uid).into());
            pod.preferences = preferences.clone();
        }
        measure(&mut pods);
        pods
    })
}

/// None, each preference alone, and each pair and triple in every order.
fn any_preferences() -> impl Strategy<Value = Preferences> {
    let all = vec![
        "a:x",
        "b:x",
        "consolidate",
        "oldest-stays",
        "leaving-node",
        "spread",
    ];
    let some = prop::sample::subsequence(all, 1..=3).prop_shuffle();
    let some = some.prop_map(|words| preferences(&words.join(" ")));
    prop_oneof![Just(Preferences::default()), some]
}

fn any_pod() -> impl Strategy<Value = TestPod> {
    let class = (
        prop::option::weighted(0.9, select(vec!["n", "m"])),
        prop_oneof![9 => Just(Phase::Running), 1 => Just(Phase::Pending), 1 => Just(Phase::Unknown)],
        (
            prop_oneof![5 => Just(0), 1 => -1..=1],
            prop_oneof![5 => Just(None), 1 => (-1..=1).prop_map(Some)],
        ),
        prop_oneof![5 => Just(1_u32), 1 => 0..3_u32],
    );
    let ready = (prop::bool::weighted(0.8), time());
    let tail = (0..2, 0..2, time());
    let labels = prop::sample::subsequence(vec!["a:x", "b:x", "a:y"], 0..=1);
    let hint = select(vec![
        Hint::CordonedNode,
        Hint::LeavingNode,
        Hint::LeavingPod,
    ]);
    let hint = prop::option::weighted(0.3, hint);
    let domain = prop::option::weighted(0.8, select(vec!["x", "y"]));
    let preferred = (labels, 0..3_u32, hint, domain);
    let all = (class, ready, tail, "[a-e]", any::<bool>(), preferred);
    all.prop_map(
        |(class, (ready, since), tail, uid, disruption_target, preferred)| {
            let (node, phase, (deletion_cost, asked), rank) = class;
            let (restarts, sidecar_restarts, created) = tail;
            let ready = Ready { ready, since };
            TestPod {
                uid: Uid(uid.into()),
                node,
                state: PodState {
                    foreign_cost: false,
                    created,
                    deleting: false,
                    phase,
                    ready,
                    deletion_cost,
                    restarts,
                    sidecar_restarts,
                    disruption_target,
                    leaving: false,
                },
                rank,
                labels: preferred.0.into_iter().map(label).collect(),
                on_node: preferred.1,
                hint: preferred.2,
                domain: preferred.3,
                height: 0,
                asked,
                preferences: Preferences::default(),
            }
        },
    )
}

fn time() -> impl Strategy<Value = Option<Timestamp>> {
    let extremes = select(vec![i64::MIN, i64::MAX, NOW.0 - 1, NOW.0 - 2]).prop_map(Timestamp);
    prop_oneof![
        1 => Just(None),
        8 => select(vec![100, 100, 100, 105, 110, 10, 1000, 0, -5]).prop_map(ago),
        1 => extremes.prop_map(Some),
    ]
}

/// Upstream's floating point formula, if it equals the integer logarithm (spec 7.4); −2 for an absent time.
fn naive_bucket(time: Option<Timestamp>) -> i64 {
    let Some(time) = time else { return -2 };
    let span = i128::from(NOW.0) - i128::from(time.0);
    let saturated = span.clamp(0, i128::from(i64::MAX));
    (0..63).rev().find(|k| saturated >= 1 << k).unwrap_or(-1)
}

/// Every key of the tail by its definition; the smaller comes first.
fn naive_tail(pod: &TestPod) -> (i64, i64, i64, &str) {
    let restarts = (
        -i64::from(pod.state.restarts),
        -i64::from(pod.state.sidecar_restarts),
    );
    (
        restarts.0,
        restarts.1,
        naive_bucket(pod.state.created),
        &pod.uid.0,
    )
}

type NaiveClass = (bool, u8, bool, Vec<(i128, Option<&'static str>)>, i32, i64);

/// What each preference compares, in words; the smaller goes first.
fn naive_preferred(pod: &TestPod) -> Vec<(i128, Option<&'static str>)> {
    let values = pod.preferences.scale_in.iter().map(|rule| match rule {
        ScaleIn::First(key, value) => {
            let label = (Arc::from(&**key), Arc::from(&**value));
            (i128::from(!pod.labels.contains(&label)), None)
        }
        ScaleIn::EmptiestNode => (pod.on_node.into(), pod.node),
        ScaleIn::Youngest => {
            let created = pod.state.created;
            (created.map_or(i128::MIN, |it| -i128::from(it.0)), None)
        }
        ScaleIn::LeavingNode => (i128::from(pod.hint.is_none()), None),
        ScaleIn::Spread(_) => (-(pod.height as i128), None),
    });
    values.collect()
}

/// Counts the pods of a domain in the order without the rule, from each pod on.
fn measure(pods: &mut [TestPod]) {
    pods.iter_mut().for_each(|pod| pod.height = 0);
    let order = naive_order(pods).into_iter().map(ToOwned::to_owned);
    let order: Vec<String> = order.collect();
    let domains: Vec<_> = order.iter().map(|uid| of(pods, uid).domain).collect();
    for pod in pods {
        let at = order.iter().position(|uid| **uid == *pod.uid.0);
        let later = &domains[at.expect("it is in the order")..];
        pod.height = later.iter().filter(|it| **it == pod.domain).count();
    }
}

fn of<'a>(pods: &'a [TestPod], uid: &str) -> &'a TestPod {
    let mut pods = pods.iter();
    pods.find(|pod| &*pod.uid.0 == uid).expect("it was given")
}

fn naive_class(pod: &TestPod) -> NaiveClass {
    let ready = pod.state.ready.ready;
    (
        pod.node.is_some(),
        pod.state.phase.ordinal(),
        ready,
        naive_preferred(pod),
        pod.asked.unwrap_or(pod.state.deletion_cost),
        -i64::from(pod.rank),
    )
}

/// The order of deletion by its definition, at any cost.
fn naive_order(pods: &[TestPod]) -> Vec<&str> {
    let instant = |pod: &TestPod| pod.state.ready.since.filter(|_| pod.state.ready.ready);
    let mut order: Vec<&TestPod> = pods.iter().collect();
    order.sort_by_key(|pod| match instant(pod) {
        None => (naive_class(pod), -2, naive_tail(pod)),
        Some(since) => (
            naive_class(pod),
            naive_bucket(Some(since)),
            (0, 0, 0, &*pod.uid.0),
        ),
    });
    for pod in pods.iter().filter(|pod| instant(pod).is_some()) {
        let alike = |other: &TestPod| {
            instant(other) == instant(pod) && naive_class(other) == naive_class(pod)
        };
        let held: Vec<_> = (0..order.len()).filter(|at| alike(order[*at])).collect();
        let mut members: Vec<_> = held.iter().map(|at| order[*at]).collect();
        members.sort_by_key(|member| naive_tail(member));
        for (at, member) in held.into_iter().zip(members) {
            order[at] = member;
        }
    }
    order.into_iter().map(|pod| &*pod.uid.0).collect()
}

/// Upstream's comparison (spec 7.2): whether `i` is less than `j`.
fn upstream_less(i: &TestPod, j: &TestPod) -> bool {
    let (class_i, class_j) = (naive_class(i), naive_class(j));
    if class_i != class_j {
        return class_i < class_j;
    }
    let by_time = |i_time: Option<Timestamp>, j_time: Option<Timestamp>| {
        let keys = (
            (naive_bucket(i_time), &i.uid),
            (naive_bucket(j_time), &j.uid),
        );
        (i_time != j_time).then(|| keys.0 < keys.1)
    };
    let ready = i
        .state
        .ready
        .ready
        .then(|| by_time(i.state.ready.since, j.state.ready.since))
        .flatten();
    let restarts = |pod: &TestPod| {
        (
            -i64::from(pod.state.restarts),
            -i64::from(pod.state.sidecar_restarts),
        )
    };
    let restarts = (restarts(i) != restarts(j)).then(|| restarts(i) < restarts(j));
    let created = || by_time(i.state.created, j.state.created);
    ready.or(restarts).or_else(created).unwrap_or(false)
}

proptest! {
    #[test]
    fn every_choice_is_a_prefix_of_the_order_in_words(pods in pods(1..40), count in 0..40_usize) {
        let count = count.min(pods.len() - 1);
        prop_assert_eq!(uids(&pods, count), &naive_order(&pods)[..count]);
    }

    #[test]
    fn pods_near_the_cut_stand_in_the_order_in_words(pods in pods(2..60), count in 1..60_usize) {
        let count = count.min(pods.len() - 1);
        let candidates: Vec<_> = pods.iter().map(TestPod::candidate).collect();
        let Choice { near_cut, .. } = choose(&candidates, count, NOW, &|uid| uid.into());
        let names: Vec<&str> = near_cut.iter().map(|pod| &*pod.name).collect();
        let near = count.saturating_sub(20)..(count + 5).min(pods.len());
        prop_assert_eq!(names, &naive_order(&pods)[near.clone()]);
        for (at, pod) in near.zip(&near_cut) {
            prop_assert_eq!(pod.chosen, at < count);
            prop_assert_eq!(pod.reason.is_none(), at + 1 == (count + 5).min(pods.len()));
        }
    }

    #[test]
    fn two_pods_stand_as_upstream_has_them(pods in pods(2)) {
        for (i, j) in [(0, 1), (1, 0)] {
            if upstream_less(&pods[i], &pods[j]) {
                prop_assert_eq!(uids(&pods, 1), [&*pods[i].uid.0]);
            }
        }
    }

    #[test]
    fn first_rule_that_differs_is_named(pods in pods(2), turned in any::<bool>()) {
        let mut given = pods.clone();
        if turned {
            given.reverse();
        }
        let chosen = chosen(&given, 1);
        let of = |goes: bool| pods.iter().find(|pod| (*pod.uid.0 == *chosen[0].id) == goes);
        let [first, second] = [true, false].map(|goes| naive_class(of(goes).expect("there are two")));
        let preferred = pods[0].preferences.scale_in.iter().zip(first.3.iter().zip(&second.3));
        // Within a domain, the other rules decide.
        let is_within = pods[0].domain == pods[1].domain;
        let preferred = preferred.map(|(rule, (first, second))| {
            (rule.rule(), first != second && !(is_within && rule.spread().is_some()))
        });
        let before = [
            (Rule::Unassigned, first.0 != second.0),
            (Rule::Phase, first.1 != second.1),
            (Rule::NotReady, first.2 != second.2),
        ];
        let after = [
            (Rule::DeletionCost, first.4 != second.4),
            (Rule::CrowdedNode, first.5 != second.5),
        ];
        let mut rules = before.into_iter().chain(preferred).chain(after);
        let named = rules.find(|(_, differs)| *differs).map(|(rule, _)| rule);
        let is_of_class = |rule: &Rule| *rule <= Rule::CrowdedNode || *rule >= Rule::First;
        prop_assert_eq!(Some(chosen[0].reason.rule).filter(is_of_class), named);
    }

    /// A pod is asked if and only if another cost of its own could save it, or let it be deleted; beside a rule that spreads pods, at least
    /// these are asked.
    #[test]
    fn pods_are_asked_whose_costs_decide(pods in pods(2..30), count in 1..30_usize) {
        let count = count.min(pods.len() - 1);
        let chosen_with = |at: usize, cost: i32| {
            let mut pods = pods.clone();
            pods[at].asked = Some(cost);
            uids(&pods, count).contains(&&*pods[at].uid.0)
        };
        let decides = |at: &usize| chosen_with(*at, i32::MIN) && !chosen_with(*at, i32::MAX);
        let order = naive_order(&pods);
        let mut expected: Vec<_> = (0..pods.len()).filter(decides).collect();
        let candidates: Vec<_> = pods.iter().map(TestPod::candidate).collect();
        let mut asked = comparable(&candidates, count, NOW);
        asked.sort_unstable();
        if candidates[0].scale_in().iter().any(|rule| rule.spread().is_some()) {
            expected.retain(|at| !asked.contains(at));
            asked.clear();
        }
        prop_assert_eq!(asked, expected, "{:?}", order);
    }

    #[test]
    fn uid_is_named_only_where_every_other_rule_ties(pods in pods(2..30), count in 1..30_usize) {
        let count = count.min(pods.len() - 1);
        let survivor = of(&pods, naive_order(&pods)[count]);
        for chosen in chosen(&pods, count) {
            let mut victim = of(&pods, chosen.id).clone();
            if victim.domain == survivor.domain {
                victim.height = survivor.height;
            }
            let victim = &victim;
            let (of_victim, of_survivor) = (victim.candidate(), survivor.candidate());
            let ((class, tail), (survivors_class, survivors_tail)) =
                (of_victim.class_and_tail(NOW), of_survivor.class_and_tail(NOW));
            let by_uid = chosen.reason.rule == Rule::Uid;
            prop_assert!(!by_uid || class == survivors_class);
            prop_assert!(!by_uid || naive_class(victim) == naive_class(survivor));
            let same_instant = of_victim.ready_since() == of_survivor.ready_since();
            prop_assert!(!by_uid || !same_instant || tail == survivors_tail);
        }
    }

    #[test]
    fn each_pod_goes_from_the_fullest_domain(pods in pods(2..30)) {
        let spread = |rule: &ScaleIn| rule.spread().is_some();
        let rules = &pods[0].preferences.scale_in;
        if !rules.iter().any(spread) {
            return Ok(());
        }
        let before = rules.iter().take_while(|rule| !spread(rule)).count();
        let rank = |pod: &TestPod| {
            let (assigned, phase, ready, mut preferred, ..) = naive_class(pod);
            preferred.truncate(before);
            (assigned, phase, ready, preferred)
        };
        let mut left: Vec<&TestPod> = pods.iter().collect();
        for uid in uids(&pods, pods.len() - 1) {
            let victim = of(&pods, uid);
            let size = |pod: &TestPod| left.iter().filter(|it| it.domain == pod.domain).count();
            let mut others = left.iter().filter(|it| rank(it) == rank(victim));
            prop_assert!(others.all(|other| size(other) <= size(victim)), "{uid}");
            left.retain(|pod| &*pod.uid.0 != uid);
        }
    }

    #[test]
    fn public_places_follow_the_same_order(pods in pods(0..30)) {
        let ranked: Vec<_> = pods.iter().map(TestPod::candidate).collect();
        let places = deletion_positions(NOW, &ranked).into_iter().map(|place| place.own);
        let mut order: Vec<_> = places.zip(pods.iter().map(|pod| &*pod.uid.0)).collect();
        order.sort_unstable();
        let uids: Vec<_> = order.into_iter().map(|(_, uid)| uid).collect();
        prop_assert_eq!(uids, naive_order(&pods));
    }
}
