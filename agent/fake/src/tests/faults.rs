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
fn fault_stops_after_its_count() {
    let mut cluster = cluster();
    let fault = Fault::refuse(ApiError::too_many_requests(7))
        .on(Verb::Create)
        .times(2);
    cluster.faults_mut().add(fault);
    let answers: Vec<_> = ["a", "b", "c"]
        .map(|name| cluster.create(pod(name)).is_ok())
        .to_vec();
    assert_eq!(answers, [false, false, true]);
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
fn errors_are_written_as_status_objects() {
    let status = ApiError::too_many_requests(3)
        .with_cause("Busy")
        .to_status();
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["details"]["retryAfterSeconds"], 3);
    assert_eq!(status["details"]["causes"][0]["reason"], "Busy");
}
