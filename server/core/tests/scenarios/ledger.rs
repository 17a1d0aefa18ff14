//! Each create is paid for: whatever a cluster, an agent or a spec does, the number of creates is bounded.

use decree_core::{
    Action, Brake, Config, ControllerReport, FailureClass, Node, NodeChange, Phase, Pod, Reason,
    Rule, Span, State,
};

use crate::{
    hostile::{Answer, End, Fate, GOOD, Hostile},
    objects::{pod, set, unready, with},
    rig::{Rig, created, done},
};

/// The grants of a ReplicaSet that loses creates all the time, until a second from its first loss.
fn grants(until: i64, desired: usize) -> usize {
    let (mut at, mut period, mut count) = (10, 10, 0);
    while at <= until {
        period = (period * 2).min(300);
        (at, count) = (at + period, count + 1);
    }
    count * (desired / 10).max(5)
}

/// What a ReplicaSet may create if no pod is credited.
fn credit(until: i64, desired: usize) -> usize {
    desired + desired.max(20) + grants(until, desired)
}

const fn ends(answer: Answer, end: End, after: i64) -> Fate {
    Fate {
        answer,
        end,
        after,
        ..GOOD
    }
}

const FAILING: Fate = ends(Answer::Done, End::Fails, 0);

/// A webhook removes the owner of each pod.
const ORPHANING: Fate = Fate {
    keeps_orphans: true,
    ..GOOD
};

#[test]
fn however_pods_end_their_number_is_bounded() {
    use Answer::{Bare, Done, Ghost, Timeout, TimeoutThenTaken};
    use End::{Fails, IsDeleted, LosesLabels, LosesOwner, Never, Vanishes};
    let mut fates = vec![ends(Ghost, Never, 0)];
    for answer in [Done, Bare, Timeout, TimeoutThenTaken] {
        for end in [Fails, Vanishes, IsDeleted, LosesLabels, LosesOwner] {
            fates.extend([0, 15, 30, 55].map(|after| ends(answer, end, after)));
        }
    }
    for fate in fates {
        for desired in [1, 3, 60, 300] {
            let mut cluster = Hostile::of(vec![set("web", desired)], fate);
            let desired = desired as usize;
            for until in [1, 60, 300, 2_000] {
                cluster.live(until);
                let made = cluster.made.len();
                let case = (fate, desired, until, made);
                assert!(made <= credit(until, desired), "{case:?}");
            }
        }
    }
}

#[test]
fn pods_that_fail_at_once_are_created_at_the_grants() {
    let mut cluster = Hostile::of(vec![set("web", 3)], FAILING);
    cluster.live(1_000);
    let at_once = cluster.made.chunk_by(|one, next| one == next);
    let counts: Vec<_> = at_once.map(|made| (made[0], made.len())).collect();
    let grants = [10, 30, 70, 150, 310, 610, 910].map(|at| (at, 5));
    assert_eq!(counts, [vec![(0, 23)], grants.to_vec()].concat());
}

#[test]
fn pods_whose_owner_a_webhook_removes_at_each_write_are_created_once() {
    let mut cluster = Hostile::of(vec![set("web", 7)], ORPHANING);
    cluster.live(50);
    assert_eq!(cluster.made.len(), 7, "{:?}", cluster.batches);
    let view = cluster.rig.view("web");
    assert_eq!((view.state, view.status.replicas), (State::Waiting, 7));
    let reason = Reason {
        rule: Rule::Backoff,
        detail: "adopted pods show no owner, next try in 10s".into(),
    };
    assert_eq!(view.reasons, [reason]);
    let claims = |it: &Hostile| {
        let is_claim = |it: &&decree_core::Batch| matches!(it.action, Action::Claim { .. });
        it.batches.iter().filter(is_claim).count()
    };
    assert_eq!(claims(&cluster), 1);
    // A list shows that the pods have no owner; the ReplicaSet adopts them again.
    cluster.list_pods();
    cluster.live(51);
    assert_eq!((cluster.made.len(), claims(&cluster)), (7, 2));
    // So it does each minute, until it succeeds.
    cluster.live(299);
    assert_eq!((cluster.made.len(), claims(&cluster)), (7, 6));
    cluster.fate = GOOD;
    cluster.live(900);
    assert_eq!((cluster.made.len(), claims(&cluster)), (7, 7));
}

#[test]
fn pods_whose_owner_a_webhook_removes_belong_to_the_next_replica_set() {
    let mut cluster = Hostile::of(vec![set("web", 7)], ORPHANING);
    cluster.live(50);
    cluster.fate = GOOD;
    let next = cluster.delete_set();
    cluster.rig.apply_replica_set(next);
    cluster.live(100);
    assert_eq!(cluster.made.len(), 7, "{:?}", cluster.batches);
}

#[test]
fn adoptions_without_effect_and_without_an_object_are_repeated_slowly_and_create_nothing() {
    let fate = Fate {
        answer: Answer::Bare,
        ..ORPHANING
    };
    let mut cluster = Hostile::of(vec![set("web", 7)], fate);
    cluster.live(60);
    let made = cluster.made.len();
    assert!(made <= credit(60, 7), "{made}");
    assert!(cluster.batches.len() <= 200, "{}", cluster.batches.len());
}

#[test]
fn pods_that_last_or_that_we_delete_cost_nothing() {
    let mut cluster = Hostile::of(vec![set("web", 30)], ends(Answer::Done, End::Vanishes, 61));
    cluster.live(600);
    assert_eq!(cluster.made.len(), 300, "each lived for a minute");
    assert_eq!(cluster.lost(), 30, "those that are young");

    let mut cluster = Hostile::of(vec![set("web", 30)], GOOD);
    for round in 1..=40 {
        cluster.change(|set| set.replicas = 30 * (round as i32 % 2));
        cluster.live(round);
    }
    assert_eq!(cluster.made.len(), 30 * 20);
}

/// They wait for a minute before they come to it.
#[test]
fn replacements_that_come_to_a_leaving_node_are_lost_at_any_age() {
    let mut web = set("web", 30);
    web.preferences.get_or_insert_default().surge = 30;
    let pods = (0..30).map(|at| pod(&format!("old-{at}"), "web"));
    let mut rig = Rig::of(vec![web], pods.collect());
    rig.change_node(NodeChange::Applied(Node {
        name: "node-a".into(),
        leaving: true,
        ..Node::default()
    }));
    let mut count = 0;
    for _ in 0..10 {
        let mut made = Vec::new();
        while let Some(batch) = rig.poll() {
            if !matches!(batch.action, Action::Create { .. }) {
                rig.succeed(&batch);
                continue;
            }
            for (operation, name) in (0..).zip(created(&batch)) {
                let version = Some(rig.next_version());
                let pod = unready(pod(&name, "web"));
                let unassigned = Pod {
                    version,
                    node: None,
                    ..pod.clone()
                };
                rig.answer(&batch, operation, done(unassigned));
                made.push(pod);
            }
        }
        count += made.len();
        rig.wait(Span::seconds(61));
        made.into_iter().for_each(|pod| rig.apply_pod(pod));
    }
    assert!(count <= 200, "{count} pods");
}

#[test]
fn pods_that_somebody_deletes_once_come_back_at_once() {
    for desired in [10, 2_000] {
        let mut cluster = Hostile::of(vec![set("web", desired)], GOOD);
        cluster.live(2);
        cluster.delete_all();
        cluster.live(3);
        assert_eq!(cluster.count(), desired as usize);
    }
}

#[test]
fn replica_set_whose_cause_is_fixed_is_complete_within_minutes() {
    for (desired, later) in [(1, 1), (10, 10), (1_000, 1_000), (1_000, 7)] {
        for lasted in [1, 60, 1_000] {
            let mut cluster = Hostile::of(vec![set("web", desired)], FAILING);
            cluster.live(lasted);
            cluster.fate = GOOD;
            cluster.change(|set| set.replicas = later);
            cluster.live(lasted + 720);
            let case = (desired, later, lasted);
            assert_eq!(cluster.count(), later as usize, "{case:?}");
            cluster.live(lasted + 1_200);
            assert_eq!(cluster.lost(), 0, "nothing is left of it");
        }
    }
}

#[test]
fn creates_without_effect_cost_nothing_and_back_off() {
    use FailureClass::{Quota, Timeout, Unavailable};
    for class in [Timeout, Unavailable, Quota] {
        let mut rig = Rig::of(vec![set("web", 400)], vec![]);
        let mut attempts = 0;
        for _ in 0..600 {
            while let Some(batch) = rig.poll() {
                attempts += usize::from(matches!(batch.action, Action::Create { .. }));
                rig.fail_all(&batch, class);
            }
            // An event that says nothing new.
            rig.apply_replica_set(set("web", 400));
            rig.wait(Span::millis(100));
        }
        if class != Quota {
            assert!(attempts <= 15, "{class:?}: {attempts} attempts in a minute");
        }
        rig.wait(Span::seconds(30));
        let names = rig.batch_done();
        assert_eq!(created(&names).len(), 400, "{class:?}");
        rig.wait(Span::seconds(60));
        assert!(rig.controller.leave().is_empty(), "{class:?}");
    }
}

/// Otherwise, the brake would repeat the create each second, and the status would change each time.
#[test]
fn refused_creates_back_off_while_creates_are_slow_and_their_condition_stays() {
    let config = Config {
        brake: Some(Brake {
            pods: 3,
            per_second: 1,
        }),
        ..Config::default()
    };
    let unassigned = |name| Pod {
        node: None,
        ..pod(name, "web")
    };
    let pods = ["a", "b", "c"].map(unassigned).into();
    let mut rig = Rig::with(config).listed(vec![set("web", 20)], pods);
    let (mut attempts, mut writes) = (0, 0);
    for _ in 0..6_000 {
        while let Some(batch) = rig.poll() {
            if matches!(batch.action, Action::Create { .. }) {
                attempts += 1;
                rig.fail_all(&batch, FailureClass::Quota);
            } else {
                writes += 1;
                rig.succeed(&batch);
            }
        }
        rig.wait(Span::millis(100));
    }
    assert!((25..=35).contains(&attempts), "{attempts} in ten minutes");
    assert_eq!(writes, 1);
}

#[test]
fn without_the_back_off_pods_are_replaced_at_once() {
    let config = Config {
        create_back_off: false,
        ..Config::default()
    };
    let fate = ends(Answer::Done, End::Fails, 1);
    let mut cluster = Hostile::with(config, vec![set("web", 1)], fate);
    cluster.live(100);
    assert_eq!(cluster.made.len(), 101);
}

#[test]
fn reason_names_the_numbers_the_end_and_the_way_on() {
    let mut cluster = Hostile::of(vec![set("web", 1)], ends(Answer::Done, End::LosesLabels, 0));
    cluster.live(1);
    let detail = "21 pods ended within a minute of being created, and 20 may; the latest has other labels or another owner than it \
                  was created with, as a webhook may set them. 5 more may be created after each 10s, and all after: decree resume \
                  default/web";
    let view = cluster.rig.view("web");
    let first = &view.reasons[0];
    assert_eq!(view.state, State::Waiting);
    assert_eq!(first.rule, Rule::PodsDoNotLast);
    assert_eq!(first.detail, format!("{detail}; next try in 9s"));
    let reports = cluster.rig.reports().into_iter();
    let mut told = Vec::new();
    for report in reports {
        if let ControllerReport::CreatesWait { reason, wait, .. } = report {
            told.push((reason.detail, wait));
        }
    }
    assert_eq!(told, [(detail.into(), Span::seconds(10))]);
    cluster.batches.clear();
    cluster.live(10);
    let rules = |batch: &decree_core::Batch| batch.reasons.iter().map(|it| it.rule).collect();
    let rules: Vec<Vec<_>> = cluster.batches.iter().map(rules).collect();
    assert_eq!(rules[0], [Rule::TooFewReplicas, Rule::PodsDoNotLast]);
}

#[test]
fn waiting_for_an_answer_hides_no_loss() {
    let mut rig = Rig::of(vec![set("web", 100)], vec![]);
    let mut late = Vec::new();
    for _ in 0..14 {
        late = loop {
            match rig.poll() {
                Some(batch) if matches!(batch.action, Action::Create { .. }) => {
                    rig.fail_all(&batch, FailureClass::Timeout);
                    break created(&batch);
                }
                Some(batch) => rig.succeed(&batch),
                None => rig.wait(Span::seconds(1)),
            }
        };
    }
    rig.reports();
    for name in late {
        rig.apply_pod(with(pod(&name, "web"), |state| state.phase = Phase::Failed));
    }
    // All 20 pods must wait: for the grant, and longer for the retry of the create without an answer.
    rig.apply_replica_set(set("web", 20));
    rig.settle();
    let told = rig.reports().into_iter().filter_map(|report| {
        if let ControllerReport::CreatesWait { reason, .. } = report {
            Some(reason.rule)
        } else {
            None
        }
    });
    assert_eq!(told.collect::<Vec<_>>(), [Rule::PodsDoNotLast]);
}

#[test]
fn removed_replica_set_and_ended_session_leave_their_young_pods() {
    let mut cluster = Hostile::of(vec![set("web", 15)], GOOD);
    for second in [1, 2] {
        cluster.live(second);
        cluster.recreate();
    }
    cluster.live(3);
    // 30 are lost and 20 may be, so 10 of 15 are held back.
    assert_eq!(cluster.count(), 5);
    let mut cluster = Hostile::of(vec![set("web", 15)], GOOD);
    cluster.live(61);
    cluster.recreate();
    cluster.live(62);
    cluster.delete_all();
    assert_eq!(cluster.lost(), 15, "not those that lived");
}

/// A fault of the whole cluster makes many ReplicaSets lose the same number.
#[test]
fn of_equal_losses_the_first_are_left_to_the_next_session() {
    let sets = (0..1_100).map(|at| set(&format!("web-{at:04}"), 1));
    let sets = sets.chain([set("zoo", 2)]).collect();
    let mut rig = Rig::of(sets, vec![]);
    rig.settle();
    let left = rig.controller.leave();
    let names: Vec<_> = left.iter().map(|(_, name, _)| &**name).collect();
    assert_eq!(names.len(), 1_000);
    let [first, last, most] = [0, 998, 999].map(|at| names[at]);
    assert_eq!([first, last, most], ["web-0000", "web-0998", "zoo"]);
}

#[test]
fn mistake_in_the_number_is_slow_and_what_is_desired_comes() {
    let config = Config {
        brake: Some(Brake {
            pods: 1_000,
            per_second: 20,
        }),
        ..Config::default()
    };
    let fate = Fate {
        has_node: false,
        ..GOOD
    };
    let mut cluster = Hostile::with(config, vec![set("web", 2_000)], fate);
    cluster.live(0);
    assert_eq!(cluster.count(), 1_000);
    cluster.live(10);
    assert_eq!(cluster.count(), 1_200);
    let view = cluster.rig.view("web");
    let first = &view.reasons[0];
    assert_eq!(
        (view.state, first.rule),
        (State::Waiting, Rule::ManyUnassigned)
    );
    let detail = "1200 of its pods have no node yet, so 20 of 800 missing pods are created a second. If the number is a mistake, \
                  lower spec.replicas; if not, wait, or raise --unassigned-pods-max of the agent; next try in 1s";
    assert_eq!(first.detail, detail);
    let reports = cluster.rig.reports().into_iter();
    let told = reports.filter(|report| matches!(report, ControllerReport::CreatesWait { .. }));
    assert_eq!(told.count(), 1, "once a minute");
    cluster.assign_all();
    cluster.live(11);
    assert_eq!(cluster.count(), 2_000, "pods with a node do not count");
}
