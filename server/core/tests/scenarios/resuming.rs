//! A person resumes creates that are held back, by an annotation.

use decree_core::{Action, Config, NameSeed, ReplicaSet};

use crate::{
    hostile::{End, Fate, GOOD, Hostile},
    objects::{set, unready},
    rig::{Rig, uid},
};

#[test]
fn person_resumes_at_once_and_once_a_minute() {
    let failing = Fate {
        end: End::Fails,
        ..GOOD
    };
    let mut cluster = Hostile::of(vec![set("web", 10)], failing);
    let mut resumed = Vec::new();
    for second in 1..200 {
        // As an agent might do it with each event.
        cluster.change(|set| set.resume = second.to_string().into());
        let before = cluster.made.len();
        cluster.live(second);
        if cluster.made.len() - before > 5 {
            resumed.push((second, cluster.made.len() - before));
        }
    }
    assert_eq!(resumed, [(1, 30), (2, 30), (61, 30), (121, 30), (181, 30)]);
}

#[test]
fn request_of_a_person_reaches_as_far_as_it_says() {
    for (request, resumed) in [("now", 1), ("namespace now", 1), ("all now", 3)] {
        let elsewhere = |mut set: ReplicaSet| {
            set.key.namespace = "other".into();
            set
        };
        let sets = vec![set("web", 1), set("db", 1), elsewhere(set("web", 1))];
        let mut rig = Rig::of(sets, vec![]);
        assert_eq!(fail(&mut rig), 3 * 21);
        rig.apply_replica_set(with_request(request));
        assert_eq!(fail(&mut rig), resumed * 21, "{request}");
    }
}

fn with_request(request: &str) -> ReplicaSet {
    ReplicaSet {
        resume: request.into(),
        ..set("web", 1)
    }
}

/// Lets each pod that is created vanish, until no more are created. Returns the number of creates.
fn fail(rig: &mut Rig) -> usize {
    let mut count = 0;
    while let Some(batch) = rig.poll() {
        rig.succeed(&batch);
        if let Action::Create { names, .. } = &batch.action {
            count += 1;
            let pods = rig.controller.inspect();
            let known = pods.pod(&batch.key.namespace, &names[0]);
            rig.delete_pod(&unready(known.expect("it was made")));
        }
    }
    count
}

/// The number of ReplicaSets that resume later, since they have resumed within a minute.
fn requested(rig: &Rig) -> usize {
    let left = rig.controller.leave();
    let accounts = left.iter().map(|(.., account)| account);
    accounts.filter(|it| it.resume_at.is_some()).count()
}

#[test]
fn request_that_came_between_two_sessions_counts_once() {
    for (before, meanwhile, resumed) in [
        ("old", "old", 0),
        ("all old", "all old", 0),
        ("", "new", 1),
        ("old", "new", 1),
        ("old", "all new", 2),
    ] {
        let db = set("db", 1);
        let mut rig = Rig::of(vec![with_request(before), db.clone()], vec![]);
        assert_eq!(fail(&mut rig), 2 * 21);
        let next = |rig: &Rig, session: &str| {
            let config = Config {
                names: NameSeed::of_session(0, session),
                ..Config::default()
            };
            let sets = vec![with_request(meanwhile), db.clone()];
            rig.successor(config).listed(sets, vec![])
        };
        let mut second = next(&rig, "second");
        let case = (before, meanwhile);
        assert_eq!(fail(&mut second), resumed * 21, "{case:?}");
        let mut third = next(&second, "third");
        assert_eq!((fail(&mut third), requested(&third)), (0, 0), "{case:?}");
        // The first list is over: a ReplicaSet that comes later brings no request.
        let mut recreated = with_request("all later");
        recreated.key.uid = uid("again");
        third.apply_replica_set(recreated);
        assert_eq!((fail(&mut third), requested(&third)), (0, 0), "{case:?}");
    }
}
