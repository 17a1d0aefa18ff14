//! The order of deletion: upstream's vectors (spec 7.6) and scenarios (spec 12.1, 12.3), one by one, in a table.

mod properties;
mod values;

use expect_test::expect_file;

use super::*;
use crate::{
    labels::Labels,
    node::Hint,
    object::{Phase, PodState, Ready, Span},
    preferences::{Preferences, ScaleIn},
};

const NOW: Timestamp = Timestamp::from_seconds(1_700_000_000);

/// A pod with the defaults of the vectors: on a node, running, ready, created and ready 100 s ago.
#[derive(Clone, Debug)]
struct TestPod {
    uid: Uid,
    node: Option<&'static str>,
    state: PodState,
    rank: u32,
    labels: Labels,
    on_node: u32,
    hint: Option<Hint>,
    domain: Option<&'static str>,
    /// The pods of its domain that are left when it is the next of them to go, as the model counts them.
    height: usize,
    asked: Option<i32>,
    /// The same for all pods.
    preferences: Preferences,
}

/// The pod that a table describes: its UID, and its differences from the defaults of the vectors. Times are seconds ago.
fn pod(text: &str) -> TestPod {
    let (uid, differences) = text.split_once(' ').unwrap_or((text, ""));
    let mut pod = TestPod {
        uid: Uid(uid.into()),
        node: Some("n"),
        state: PodState {
            phase: Phase::Running,
            ready: Ready {
                ready: true,
                since: ago(100),
            },
            created: ago(100),
            ..PodState::default()
        },
        rank: 1,
        labels: Labels::default(),
        on_node: 0,
        hint: None,
        domain: None,
        height: 0,
        asked: None,
        preferences: Preferences::default(),
    };
    for difference in differences.split_whitespace() {
        let (field, value) = difference.split_once('=').unwrap_or((difference, "none"));
        let state = &mut pod.state;
        match field {
            "unassigned" => pod.node = None,
            "elsewhere" => pod.node = Some("m"),
            "pending" => state.phase = Phase::Pending,
            "unknown" => state.phase = Phase::Unknown,
            "phaseless" => state.phase = Phase::Other,
            "ready" => state.ready.since = time(value),
            "unready" => {
                let (ready, since) = (false, time(value));
                state.ready = Ready { ready, since };
            }
            "created" => state.created = time(value),
            "cost" => state.deletion_cost = value.parse().expect("a number"),
            "asked" => pod.asked = Some(value.parse().expect("a number")),
            "label" => pod.labels = Labels::from([label(value)]),
            "beside" => pod.on_node = value.parse().expect("a number"),
            "cordoned" => pod.hint = Some(Hint::CordonedNode),
            "leaving" => pod.hint = Some(Hint::LeavingNode),
            "announced" => pod.hint = Some(Hint::LeavingPod),
            "zone" => pod.domain = Some(["x", "y"][usize::from(value == "y")]),
            "rank" => pod.rank = value.parse().expect("a number"),
            "restarts" => state.restarts = value.parse().expect("a number"),
            "sidecars" => state.sidecar_restarts = value.parse().expect("a number"),
            other => panic!("{other} is no field of a pod"),
        }
    }
    pod
}

fn label(text: &str) -> (Arc<str>, Arc<str>) {
    let (key, value) = text.split_once(':').expect("a key and a value");
    (key.into(), value.into())
}

/// The preferences that a table describes.
fn preferences(text: &str) -> Preferences {
    let scale_in = text.split(' ').map(|word| match word {
        "consolidate" => ScaleIn::EmptiestNode,
        "oldest-stays" => ScaleIn::Youngest,
        "leaving-node" => ScaleIn::LeavingNode,
        "spread" => ScaleIn::Spread("zone".into()),
        first => {
            let (key, value) = label(first);
            ScaleIn::First(key.as_ref().into(), value.as_ref().into())
        }
    });
    Preferences {
        scale_in: scale_in.collect(),
        ..Preferences::default()
    }
}

fn time(text: &str) -> Option<Timestamp> {
    match text.strip_suffix("ns") {
        Some(nanoseconds) => ago_ns(nanoseconds.parse().expect("a number")),
        None if text == "none" => None,
        None if text == "min" => Some(Timestamp(i64::MIN)),
        None => ago(text.parse().expect("a number")),
    }
}

fn ago(seconds: i64) -> Option<Timestamp> {
    ago_ns(seconds * 1_000_000_000)
}

fn ago_ns(nanoseconds: i64) -> Option<Timestamp> {
    Some(NOW.plus(Span(-nanoseconds)))
}

impl TestPod {
    fn candidate(&self) -> Candidate<'_, &str> {
        Candidate {
            id: &self.uid.0,
            node: self.node,
            state: &self.state,
            rank: self.rank,
            uid: &self.uid,
            preferred: Some(Box::new(Preferred {
                preferences: Some(&self.preferences),
                labels: Some(&self.labels),
                on_node: self.on_node,
                hint: self.hint,
                domain: self.domain,
                height: 0,
                asked: self.asked,
            })),
        }
    }
}

fn chosen(pods: &[TestPod], count: usize) -> Vec<Chosen<&str>> {
    let pods: Vec<_> = pods.iter().map(TestPod::candidate).collect();
    choose(&pods, count, NOW, &|_| Arc::default()).chosen
}

/// The UIDs of the victims, in order of choice.
fn uids(pods: &[TestPod], count: usize) -> Vec<&str> {
    let chosen = chosen(pods, count).into_iter();
    chosen.map(|chosen| chosen.id).collect()
}

/// The victims with the rules that decide on them.
fn told(pods: &[TestPod], count: usize) -> String {
    let told = chosen(pods, count).into_iter().map(|it| {
        let Chosen { id, reason } = it;
        format!("{id} {:?}: {}", reason.rule, reason.detail)
    });
    told.collect::<Vec<_>>().join(" | ")
}

/// A line has preferences (`prefer …:`), if there are any, pods, and how many of them go (`2 of`); one goes if the line does not say so. The
/// line with `>` behind it has the victims. Their
/// order in the line does not matter. `UPDATE_EXPECT=1` writes the table anew.
#[test]
fn victims_are_those_of_the_table() {
    let mut played = String::new();
    for line in include_str!("tests/order.txt").lines() {
        if line.starts_with('>') {
            continue;
        }
        played += &format!("{line}\n");
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let preferring = line.strip_prefix("prefer ");
        let preferring = preferring.and_then(|it| it.split_once(": "));
        let (prefers, rest) = preferring.unwrap_or(("", line));
        let preferences = match prefers {
            "" => Preferences::default(),
            some => preferences(some),
        };
        let (count, pods) = rest.split_once(" of ").unwrap_or(("1", rest));
        let count = count.parse().expect("a number");
        let pods = pods.split("; ").map(pod).map(|pod| TestPod {
            preferences: preferences.clone(),
            ..pod
        });
        let pods: Vec<_> = pods.collect();
        let expected = told(&pods, count);
        for turn in 0..pods.len() {
            let mut turned = pods.clone();
            turned.rotate_left(turn);
            assert_eq!(told(&turned, count), expected, "{line}, turned");
            turned.swap(0, turn);
            assert_eq!(told(&turned, count), expected, "{line}, turned and swapped");
            turned.reverse();
            assert_eq!(told(&turned, count), expected, "{line}, reversed");
        }
        played += &format!("> {expected}\n");
    }
    expect_file!["tests/order.txt"].assert_eq(&played);
}

#[test]
fn pods_are_asked_only_among_those_that_tie_before_they_are_spread() {
    let preferences = preferences("state:idle spread");
    let idle = ["a label=state:idle zone=x", "b label=state:idle zone=y"];
    let pods = idle.into_iter().chain(["c zone=x", "d zone=y"]);
    let pods: Vec<_> = pods
        .map(|text| TestPod {
            preferences: preferences.clone(),
            ..pod(text)
        })
        .collect();
    let candidates: Vec<_> = pods.iter().map(TestPod::candidate).collect();
    let asked = |count| comparable(&candidates, count, NOW);
    assert_eq!(
        [asked(1), asked(2), asked(3)],
        [vec![0, 1], vec![], vec![2, 3]]
    );
}

#[test]
fn none_of_none_and_none_of_some_are_none() {
    assert_eq!(uids(&[], 0), [""; 0]);
    assert_eq!(uids(&[], 3), [""; 0]);
    assert_eq!(uids(&[pod("a")], 0), [""; 0]);
}

#[test]
fn all_go_in_the_order_given() {
    let pods = ["b", "a unready", "c unassigned"].map(pod);
    for count in [3, 4] {
        let all = ["b", "a", "c"].map(|uid| format!("{uid} AllGo: all active pods are deleted"));
        assert_eq!(told(&pods, count), all.join(" | "));
    }
}
