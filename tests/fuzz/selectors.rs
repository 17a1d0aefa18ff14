//! Selectors, compared with a second implementation, written from the rules of Kubernetes.
//!
//! An input is a `DecideRequest`. Only the selector of the ReplicaSet and the labels of the pods matter.

use std::collections::{BTreeMap, HashMap};

use decree::v1;
use prost::Message;
use server_core::Labels;
use server_session::wire::decode;
use tests::rng::Rng;

use crate::contract;

/// A ReplicaSet with more requirements is quarantined.
const REQUIREMENTS_MAX: usize = 1_000;

/// Returns a selector, and labels to match.
pub(crate) fn generate(rng: &mut Rng) -> Vec<u8> {
    let mut replica_set = tests::objects::replica_set("web").build();
    replica_set.selector = Some(contract::selector(rng));
    let pods = (0..rng.between(1, 6)).map(|_| v1::Pod {
        labels: contract::labels(rng),
        ..v1::Pod::default()
    });
    v1::DecideRequest {
        pods: pods.collect(),
        replica_set: Some(replica_set),
        ..v1::DecideRequest::default()
    }
    .encode_to_vec()
}

/// Compares both implementations.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(request) = v1::DecideRequest::decode(bytes) else {
        return;
    };
    let Some(selector) = request.replica_set.and_then(|set| set.selector) else {
        return;
    };
    let mut set = tests::objects::replica_set("web").build();
    set.selector = Some(selector.clone());
    let read = decode::unverified_replica_set(&set).expect("nothing else is wrong with it");
    let Ok(read) = read.selector else {
        assert!(!is_valid(&selector), "refused: {selector:?}");
        return;
    };
    assert!(is_valid(&selector), "accepted: {selector:?}");
    for pod in &request.pods {
        let labels: Labels = pod
            .labels
            .iter()
            .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
            .collect();
        let expected = holds(&selector, &pod.labels);
        assert_eq!(
            read.matches(&labels),
            expected,
            "{selector:?} {:?}",
            pod.labels
        );
    }
}

fn holds(selector: &v1::LabelSelector, labels: &HashMap<String, String>) -> bool {
    let equal = selector
        .match_labels
        .iter()
        .all(|(key, value)| labels.get(key) == Some(value));
    let expressions = selector.match_expressions.iter().all(|one| {
        let there = labels.get(&one.key);
        let listed = there.is_some_and(|there| one.values.contains(there));
        match one.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => there.is_some(),
            _ => there.is_none(),
        }
    });
    equal && expressions
}

fn is_valid(selector: &v1::LabelSelector) -> bool {
    let v1::LabelSelector {
        match_labels,
        match_expressions,
    } = selector;
    let sorted: BTreeMap<_, _> = match_labels.iter().collect();
    let labels = sorted
        .into_iter()
        .all(|(key, value)| is_key(key) && is_value(value));
    let expressions = match_expressions.iter().all(|one| {
        let count = one.values.len();
        let fits = match one.operator.as_str() {
            "In" | "NotIn" => count > 0,
            "Exists" | "DoesNotExist" => count == 0,
            _ => false,
        };
        fits && is_key(&one.key) && one.values.iter().all(|value| is_value(value))
    });
    let count = match_labels.len() + match_expressions.len();
    count <= REQUIREMENTS_MAX && labels && expressions
}

/// Returns whether a key is valid: `prefix/name`, where the prefix is a DNS-1123 subdomain of at most 253 characters and the name a non-empty value.
fn is_key(key: &str) -> bool {
    let parts: Vec<_> = key.split('/').collect();
    match parts[..] {
        [name] => !name.is_empty() && is_value(name),
        [prefix, name] => is_subdomain(prefix) && !name.is_empty() && is_value(name),
        _ => false,
    }
}

fn is_value(value: &str) -> bool {
    let inner = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    let edge = |character: Option<char>| character.is_none_or(|it| it.is_ascii_alphanumeric());
    value.len() <= 63
        && value.chars().all(inner)
        && edge(value.chars().next())
        && edge(value.chars().last())
}

fn is_subdomain(text: &str) -> bool {
    let is_label = |label: &str| {
        let legal = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
        !label.is_empty()
            && label.bytes().all(legal)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}
