//! Faults: the calls that they strike, and their effects.

use std::time::Duration;

use super::{Story, cluster, pod, refusal, replica_set};
use crate::{ApiError, DeleteOptions, Fault, Kind, Verb};

#[test]
fn refusal_strikes_its_verb_and_kind_only() {
    let mut cluster = cluster();
    let fault = Fault::refuse(ApiError::internal("etcd is asleep"))
        .on(Verb::Create)
        .of(Kind::Pod);
    cluster.faults_mut().add(fault);
    assert_eq!(refusal(cluster.create(pod("a"))).0, 500);
    assert!(cluster.pod("a").is_none());
    cluster.created(replica_set("web", 1));
    cluster.faults_mut().clear();
    cluster.created(pod("a"));
}

#[test]
fn fault_spares_the_first_and_stops_after_its_count() {
    let mut cluster = cluster();
    let fault = Fault::refuse(ApiError::too_many_requests(7))
        .on(Verb::Create)
        .after(1)
        .times(2);
    cluster.faults_mut().add(fault);
    let answers: Vec<_> = ["a", "b", "c", "d"]
        .map(|name| cluster.create(pod(name)).is_ok())
        .to_vec();
    assert_eq!(answers, [true, false, false, true]);
}

#[test]
fn lost_reply_hides_a_write_that_happened() {
    let mut cluster = cluster();
    cluster
        .faults_mut()
        .add(Fault::lose_reply().on(Verb::Create).times(1));
    assert_eq!(refusal(cluster.create(pod("a"))).0, 504);
    assert!(cluster.pod("a").is_some());
    assert_eq!(refusal(cluster.create(pod("a"))).0, 409);
}

#[test]
fn fault_in_one_namespace_leaves_the_others() {
    let mut cluster = cluster();
    cluster
        .faults_mut()
        .add(Fault::refuse(ApiError::unavailable()).within("default"));
    assert_eq!(refusal(cluster.create(pod("a"))).0, 503);
    let mut elsewhere = pod("a");
    elsewhere["metadata"]["namespace"] = "kube-system".into();
    cluster.created(elsewhere);
}

#[test]
fn probable_fault_comes_from_the_seed() {
    let run = || {
        let mut cluster = cluster();
        cluster
            .faults_mut()
            .add(Fault::refuse(ApiError::timeout()).per_mille(500));
        let names = (0..40).map(|number| format!("p{number}"));
        names
            .map(|name| cluster.create(pod(&name)).is_ok())
            .collect::<Vec<_>>()
    };
    let first = run();
    assert_eq!(first, run());
    assert!(first.contains(&true) && first.contains(&false));
}

#[test]
fn delay_is_told_once() {
    let mut cluster = cluster();
    let late = Duration::from_millis(70);
    cluster
        .faults_mut()
        .add(Fault::delay(late).on(Verb::Create));
    cluster.created(pod("a"));
    assert_eq!(cluster.take_latency(), late);
    assert_eq!(cluster.take_latency(), Duration::ZERO);
}

#[test]
fn calls_are_counted_with_their_answers() {
    let mut cluster = cluster();
    cluster.created(pod("a"));
    let _ = cluster.create(pod("a"));
    let _ = cluster.drop_pod("b", &DeleteOptions::default());
    let requests = cluster.requests();
    assert_eq!(requests.count(Verb::Create, Kind::Pod), 2);
    assert_eq!(requests.count_answered(Verb::Create, Kind::Pod, 201), 1);
    assert_eq!(requests.count_answered(Verb::Create, Kind::Pod, 409), 1);
    assert_eq!(requests.count_answered(Verb::Delete, Kind::Pod, 404), 1);
}

#[test]
fn fault_does_not_change_who_is_called_what() {
    let uid = |faulty: bool| {
        let mut cluster = cluster();
        if faulty {
            cluster.faults_mut().add(
                Fault::refuse(ApiError::timeout())
                    .per_mille(500)
                    .on(Verb::Get),
            );
            for _ in 0..10 {
                let _ = cluster.get(Kind::Pod, "default", "a");
            }
        }
        cluster.created(pod("a"))["metadata"]["uid"].clone()
    };
    assert_eq!(uid(false), uid(true));
}

#[test]
fn errors_are_written_as_status_objects() {
    let status = ApiError::too_many_requests(3)
        .with_cause("Busy")
        .to_status();
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["details"]["retryAfterSeconds"], 3);
    assert_eq!(status["details"]["causes"][0]["reason"], "Busy");
}
