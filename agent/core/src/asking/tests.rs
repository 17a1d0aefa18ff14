//! Questions of any server, and the calls and answers that they lead to.

use super::*;
use crate::tests::{at, owner, pod_of, pod_ref, replica_set, replica_set_of_uid, view};

const SECOND: Duration = Duration::from_secs(1);

/// default/web and another/web, whose pods may be asked.
fn asking_view(pods: &[&str]) -> View {
    view_asking("http://:8080/busy", pods)
}

fn view_asking(source: &str, pods: &[&str]) -> View {
    let pods: Vec<_> = pods.iter().map(|text| pod_of(text)).collect();
    let mut view = view(&pods);
    let mut another = replica_set_of_uid("other", 11);
    another.projected.namespace = "another".to_owned();
    for mut web in [replica_set(11, 1), another] {
        web.projected.preferences = Some(v1::Preferences {
            scale_in_cost: Some(v1::ScaleInCost {
                source: source.to_owned(),
                ..v1::ScaleInCost::default()
            }),
            ..v1::Preferences::default()
        });
        view.apply_replica_set(&web);
    }
    view
}

fn wanted(id: u64, pods: &[&str]) -> v1::CostsWanted {
    v1::CostsWanted {
        id,
        replica_set: Some(owner()),
        pods: pods.iter().map(|name| pod_ref(name)).collect(),
        timeout: Some(prost_types::Duration {
            seconds: 2,
            nanos: 0,
        }),
    }
}

/// A question about pods of another/web.
fn wanted_elsewhere(id: u64, pods: &[&str]) -> v1::CostsWanted {
    let mut wanted = wanted(id, pods);
    for it in wanted.pods.iter_mut().chain(&mut wanted.replica_set) {
        it.namespace = "another".to_owned();
    }
    wanted.replica_set.get_or_insert_default().uid = "other".to_owned();
    wanted
}

/// Takes a question that a correct server may ask.
fn ask(asking: &mut Asking, seconds: u64, view: &View, question: v1::CostsWanted) {
    let taken = asking.handle_question(at(seconds), view, question);
    taken.expect("it is sound");
}

fn calls(asking: &mut Asking, seconds: u64) -> Vec<(u64, String)> {
    let calls = std::iter::from_fn(|| asking.poll_call(at(seconds)));
    let told = calls.map(|call| {
        let pods = match call.asks {
            Asks::Pod(pod, _) => pod.name,
            Asks::Service(request) => {
                assert_eq!(request.replica_set, Some(owner()));
                let names = request.pods.into_iter().map(|pod| pod.name);
                names.collect::<Vec<_>>().join(" ")
            }
        };
        (call.id, pods)
    });
    told.collect()
}

/// The answers so far: the number of the question, and the cost or the failure of each pod.
fn answers(asking: &mut Asking) -> Vec<String> {
    let answers = std::iter::from_fn(|| asking.poll_answer());
    let told = answers.map(|v1::Costs { id, costs }| {
        let costs = costs.into_iter().map(|it| match it.cost {
            Some(cost) => format!("{} {cost}{}", it.uid, it.failure),
            None => it.failure,
        });
        format!("{id}: {}", costs.collect::<Vec<_>>().join(", "))
    });
    told.collect()
}

#[test]
fn pods_are_asked_once_and_the_answer_has_all_of_them() {
    let (mut asking, view) = (Asking::default(), asking_view(&["a", "b"]));
    ask(&mut asking, 0, &view, wanted(7, &["a", "b"]));
    let call = asking.poll_call(at(1)).expect("a pod is to be asked");
    let (port, path) = (8080, "/busy".to_owned());
    let asks = Asks::Pod(pod_ref("a"), PodSource::Http { port, path });
    assert_eq!((call.asks, call.timeout), (asks, SECOND));
    let rest = calls(&mut asking, 1);
    assert_eq!(rest, [(2, "b".to_owned())]);
    asking.handle_costs(2, vec![Ok(-3)]);
    asking.handle_costs(2, vec![Ok(5)]);
    asking.handle_costs(99, vec![Ok(5)]);
    assert_eq!(answers(&mut asking), [""; 0], "one is still asked");
    asking.handle_costs(1, vec![Err("refused".to_owned())]);
    assert_eq!(answers(&mut asking), ["7: a: refused, uid-b -3"]);
    assert_eq!(asking.poll_timeout(), None);
}

#[test]
fn service_gets_all_pods_of_a_question_at_once() {
    let (mut asking, view) = (Asking::default(), view_asking("grpc", &["a", "b", "c"]));
    ask(&mut asking, 0, &view, wanted(7, &["a", "x", "b", "c"]));
    ask(&mut asking, 0, &view, wanted(8, &["x"]));
    assert_eq!(calls(&mut asking, 0), [(1, "a b c".to_owned())]);
    // Too few answers, from a caller that counts wrongly.
    asking.handle_costs(1, vec![Ok(3), Err("refused".to_owned())]);
    let not = format!("x: {NOT_ASKED}");
    assert_eq!(answers(&mut asking), [format!("8: {not}")]);
    asking.handle_timeout(at(2));
    let late = format!("7: uid-a 3, {not}, b: refused, c: no answer in time");
    assert_eq!(answers(&mut asking), [late]);
}

#[test]
fn costs_that_are_late_are_left_out() {
    let (mut asking, view) = (Asking::default(), asking_view(&["a", "b"]));
    ask(&mut asking, 0, &view, wanted(7, &["a", "b"]));
    assert_eq!(calls(&mut asking, 0).len(), 2);
    asking.handle_costs(1, vec![Ok(4)]);
    asking.handle_timeout(at(1));
    assert_eq!(
        (answers(&mut asking), asking.poll_timeout()),
        (vec![], Some(at(2)))
    );
    asking.handle_timeout(at(2));
    assert_eq!(answers(&mut asking), ["7: uid-a 4, b: no answer in time"]);
    asking.handle_costs(2, vec![Ok(4)]);
    assert_eq!(answers(&mut asking), [""; 0]);
    // A server may allow any time, and none.
    let forever = v1::CostsWanted {
        timeout: None,
        ..wanted(8, &["a"])
    };
    ask(&mut asking, 10, &view, forever);
    assert_eq!(asking.poll_timeout(), Some(at(20)));
}

#[test]
fn reason_without_a_cost_has_128_bytes() {
    let (mut asking, view) = (Asking::default(), asking_view(&["a"]));
    ask(&mut asking, 0, &view, wanted(7, &["a"]));
    assert_eq!(calls(&mut asking, 0).len(), 1);
    // The cut falls within a character.
    asking.handle_costs(1, vec![Err("é".repeat(1_000))]);
    assert_eq!(answers(&mut asking), [format!("7: a: {}", "é".repeat(62))]);
}

#[test]
fn only_active_pods_of_a_replica_set_that_prefers_it_are_asked() {
    let pods = [
        "a",
        "ended:ended",
        "deleting:deleting",
        "foreign:foreign",
        "orphan:orphan",
    ];
    let (mut asking, asks) = (Asking::default(), asking_view(&pods));
    let names = ["a", "ended", "deleting", "foreign", "orphan", "unknown"];
    ask(&mut asking, 0, &asks, wanted(1, &names));
    assert_eq!(calls(&mut asking, 0), [(1, "a".to_owned())]);
    asking.handle_costs(1, vec![Ok(0)]);
    let not = |name: &str| format!("{name}: {NOT_ASKED}");
    let expected = names[1..]
        .iter()
        .map(|name| not(name))
        .collect::<Vec<_>>()
        .join(", ");
    assert_eq!(answers(&mut asking), [format!("1: uid-a 0, {expected}")]);
    let elsewhere = |id, change: fn(&mut v1::CostsWanted)| {
        let mut wanted = wanted(id, &["a"]);
        change(&mut wanted);
        wanted
    };
    let others = [
        elsewhere(2, |it| it.replica_set = None),
        elsewhere(3, |it| {
            it.replica_set.get_or_insert_default().name = "other".to_owned()
        }),
        elsewhere(4, |it| {
            it.replica_set.get_or_insert_default().namespace = "other".to_owned()
        }),
        elsewhere(5, |it| it.pods[0].namespace = "other".to_owned()),
        elsewhere(6, |it| it.pods[0].name = "other".to_owned()),
    ];
    for other in others {
        ask(&mut asking, 0, &asks, other);
    }
    ask(&mut asking, 0, &view(&[pod_of("a")]), wanted(7, &["a"]));
    assert_eq!(calls(&mut asking, 0), []);
    assert_eq!(answers(&mut asking).len(), 6, "each has its answer at once");
}

#[test]
fn few_pods_are_asked_at_a_time_and_few_questions_are_open() {
    let names: Vec<_> = (0..100).map(|at| format!("p{at}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let (mut asking, view) = (Asking::default(), asking_view(&names));
    for id in 1..=1_000 {
        ask(&mut asking, 0, &view, wanted(id, &names));
    }
    assert_eq!(calls(&mut asking, 0).len(), 100);
    assert_eq!(calls(&mut asking, 0), []);
    asking.handle_costs(1, vec![Ok(0)]);
    assert_eq!(calls(&mut asking, 0), [(101, "p0".to_owned())]);
    ask(&mut asking, 0, &view, wanted(1_001, &names));
    assert_eq!(answers(&mut asking), ["1001: "]);
    // The calls of an ended session still count, and its answers go nowhere.
    asking.clear();
    assert_eq!(
        (calls(&mut asking, 0), asking.poll_timeout()),
        (vec![], None)
    );
    ask(&mut asking, 0, &view, wanted(1, &["p1"]));
    assert_eq!(calls(&mut asking, 0), []);
    asking.handle_costs(2, vec![Ok(9)]);
    assert_eq!(calls(&mut asking, 0), [(102, "p1".to_owned())]);
    asking.handle_costs(102, vec![Ok(1)]);
    assert_eq!(answers(&mut asking), ["1: uid-p1 1"]);
}

#[test]
fn slow_pods_do_not_hold_up_those_of_other_namespaces() {
    let names: Vec<_> = (0..100).map(|at| format!("p{at}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let (mut asking, mut view) = (Asking::default(), asking_view(&names));
    for name in ["x", "y", "z"] {
        let pod = pod_of(&format!("{name}:elsewhere,foreign"));
        view.pods.apply(&pod);
    }
    let next = |asking: &mut Asking| {
        let names = calls(asking, 0).into_iter().map(|(_, name)| name);
        names.collect::<Vec<_>>().join(" ")
    };
    ask(&mut asking, 0, &view, wanted(1, &names));
    assert_eq!(next(&mut asking), names.join(" "), "one has half the calls");
    let others = [
        wanted(2, &["p0", "p1", "p2"]),
        wanted_elsewhere(3, &["x", "y", "z"]),
    ];
    for other in others.clone() {
        ask(&mut asking, 0, &view, other);
    }
    assert_eq!(next(&mut asking), "x y z");
    for call in 1..=4 {
        asking.handle_costs(call, vec![Ok(0)]);
    }
    assert_eq!(next(&mut asking), "p0 p1 p2");
    // Where no call is in flight, the older question is first.
    let mut asking = Asking::default();
    for other in others {
        ask(&mut asking, 0, &view, other);
    }
    assert_eq!(next(&mut asking), "p0 x p1 y p2 z");
}

#[test]
fn answers_never_meet_another_question_of_the_same_number() {
    let (mut asking, view) = (Asking::default(), asking_view(&["a", "b"]));
    let ask = |asking: &mut Asking, id, pods: &[&str]| {
        asking.handle_question(at(0), &view, wanted(id, pods))
    };
    assert_eq!(ask(&mut asking, 7, &["a", "b"]), Ok(()));
    let call = asking.poll_call(at(0)).map(|it| it.id);
    assert_eq!(call, Some(1), "the other pod still waits");
    asking.handle_timeout(at(2));
    assert_eq!(answers(&mut asking).len(), 1);
    for id in [0, 6, 7] {
        assert!(ask(&mut asking, id, &["a"]).is_err(), "{id}");
    }
    asking.handle_costs(1, vec![Ok(1)]);
    assert_eq!(calls(&mut asking, 2), []);
    // Another session counts again, while calls of the last one are in flight.
    assert_eq!(ask(&mut asking, 8, &["a", "b"]), Ok(()));
    assert_eq!(calls(&mut asking, 0).len(), 2);
    asking.clear();
    assert_eq!(ask(&mut asking, 8, &["a"]), Ok(()));
    for call in [2, 3] {
        asking.handle_costs(call, vec![Ok(1)]);
    }
    assert_eq!(answers(&mut asking), [""; 0]);
    assert_eq!(calls(&mut asking, 0), [(4, "a".to_owned())]);
    asking.handle_costs(4, vec![Ok(2)]);
    assert_eq!(answers(&mut asking), ["8: uid-a 2"]);
}

#[test]
fn questions_with_texts_that_no_object_has_end_the_session() {
    let view = asking_view(&["a"]);
    let cases = [
        ([253, 253, 128], true),
        ([254, 1, 1], false),
        ([1, 254, 1], false),
        ([1, 1, 129], false),
    ];
    for (bytes, is_sound) in cases {
        let [namespace, name, uid] = bytes.map(|it| "x".repeat(it));
        let long = v1::ObjectRef {
            namespace,
            name,
            uid,
        };
        let mut about_pod = wanted(1, &["a"]);
        about_pod.pods.push(long.clone());
        let about_set = v1::CostsWanted {
            replica_set: Some(long),
            ..wanted(1, &["a"])
        };
        for question in [about_pod, about_set] {
            let taken = Asking::default().handle_question(at(0), &view, question);
            assert_eq!(taken.is_ok(), is_sound, "{bytes:?}: {taken:?}");
        }
    }
}

#[test]
fn questions_of_no_correct_server_end_the_session() {
    let (mut asking, view) = (Asking::default(), asking_view(&["a"]));
    let mut is_refused = |id, pods: &[&str]| {
        let taken = asking.handle_question(at(0), &view, wanted(id, pods));
        taken.is_err()
    };
    assert!(!is_refused(1, &["a"]));
    assert!(is_refused(1, &["a"]), "repeated");
    assert!(is_refused(2, &["a"; 101]), "large");
    assert!(!is_refused(2, &[]));
    let unread = (3..).find(|id| is_refused(*id, &[]));
    assert_eq!(unread, Some(100_003));
}
