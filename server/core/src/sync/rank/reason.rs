//! Why a victim comes before the first remaining pod, and the values that the rules compare, in words.

use std::fmt::{self, Display as _};

use super::candidate::{Candidate, Preferred, bucket};
use crate::{
    node::{Hint, NAME_BYTES_MAX},
    object::{Phase, Timestamp},
    preferences::ScaleIn,
    reason::{Reason, Rule},
    wording::{Lasting, count},
};

/// The maximum length of a label in a message.
const LABEL_BYTES_MAX: usize = 127;
/// The maximum length of a UID in a message; Kubernetes UIDs have 36 bytes.
const UID_BYTES_MAX: usize = 64;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

const BY_PLACE: &str =
    "by uid among pods that are ready for about as long: restarts are not compared";

/// A victim, and a pod that it comes before.
type Pair<'a, I> = [&'a Candidate<'a, I>; 2];

/// Names the first rule that distinguishes `victim` from `survivor`.
///
/// Pods of one instant may have exchanged their positions, so that two pods of other instants contradict the order of UIDs. Then the victim
/// has the position of the `holder`, a pod of its own instant, and the rule between these two is named.
pub(super) fn explain<I>(
    victim: &Candidate<'_, I>,
    survivor: &Candidate<'_, I>,
    holder: &Candidate<'_, I>,
    now: Timestamp,
) -> Reason {
    let pair = [victim, survivor];
    let differs = by_class(pair, now).or_else(|| by_time(pair, now));
    differs.unwrap_or_else(|| {
        let (mine, others) = (victim.state.ready, survivor.state.ready);
        let same_instant = !mine.ready || mine.since == others.since;
        if same_instant {
            by_tail(pair, now).unwrap_or_else(|| by_uid(pair, now))
        } else if victim.uid < survivor.uid {
            by_uid_within_bucket(pair, now)
        } else {
            let by_place = || Reason::new(Rule::Uid, BY_PLACE);
            by_tail([victim, holder], now).unwrap_or_else(by_place)
        }
    })
}

fn by_class<I>([victim, other]: Pair<'_, I>, now: Timestamp) -> Option<Reason> {
    if victim.node.is_some() != other.node.is_some() {
        return Some(Reason::new(Rule::Unassigned, "not assigned to a node"));
    }
    let (mine, others) = (victim.state, other.state);
    if mine.phase.ordinal() != others.phase.ordinal() {
        let detail = format!("phase {} vs {}", name(mine.phase), name(others.phase));
        return Some(Reason::new(Rule::Phase, detail));
    }
    if mine.ready.ready != others.ready.ready {
        return Some(Reason::new(Rule::NotReady, "not ready"));
    }
    if let Some(reason) = by_preference([victim, other], now) {
        return Some(reason);
    }
    if victim.cost() != other.cost() {
        let detail = format!("deletion cost {} < {}", cost(victim), cost(other));
        return Some(Reason::new(Rule::DeletionCost, detail));
    }
    (victim.rank != other.rank).then(|| {
        let detail = format!("{} vs {}", crowd(victim), crowd(other));
        Reason::new(Rule::CrowdedNode, detail)
    })
}

fn cost<I>(pod: &Candidate<'_, I>) -> String {
    match pod.preferred().asked {
        Some(cost) => format!("{cost} (asked)"),
        None => pod.state.deletion_cost.to_string(),
    }
}

fn by_preference<I>([victim, other]: Pair<'_, I>, now: Timestamp) -> Option<Reason> {
    let mut rules = victim.scale_in().iter();
    // Within a domain, the other rules decide.
    let is_within = |rule: &ScaleIn| {
        rule.spread().is_some() && victim.preferred().domain == other.preferred().domain
    };
    let rule = rules.find(|rule| rule.cmp(victim, other).is_ne() && !is_within(rule))?;
    let detail = match rule {
        ScaleIn::First(key, value) => format!("label {}", label(key, value)),
        ScaleIn::EmptiestNode => {
            let [mine, others] = [victim, other].map(|it| beginning(it.node.unwrap_or_default()));
            let [here, there] = [victim, other].map(|it| it.preferred().on_node);
            let pods = count(here, "pod");
            let by_name = if here == there {
                ", the first by name"
            } else {
                ""
            };
            format!("{pods} on {mine} vs {there} on {others}{by_name}")
        }
        ScaleIn::LeavingNode => stays(victim),
        ScaleIn::Spread(_) => format!("{} vs {}", in_domain(victim), in_domain(other)),
        ScaleIn::Youngest => {
            let times = [victim, other].map(|it| it.state.created);
            let [mine, others] = times.map(|it| ago(it, now).to_string());
            let alike = times[0].zip(times[1]).filter(|_| mine == others);
            let by =
                alike.map(|(mine, others)| format!(", {} younger", Lasting(mine.since(others))));
            format!("{mine} old vs {others}{}", by.unwrap_or_default())
        }
    };
    Some(Reason::new(rule.rule(), detail))
}

fn by_time<I>([victim, other]: Pair<'_, I>, now: Timestamp) -> Option<Reason> {
    let (mine, others) = (victim.state.ready.since, other.state.ready.since);
    let differs = victim.state.ready.ready && bucket(mine, now) != bucket(others, now);
    differs.then(|| {
        let detail = format!("ready for {} vs {}", ago(mine, now), ago(others, now));
        Reason::new(Rule::ReadyRecently, detail)
    })
}

fn by_tail<I>([victim, other]: Pair<'_, I>, now: Timestamp) -> Option<Reason> {
    let (mine, others) = (victim.state.restarts, other.state.restarts);
    if mine != others {
        let detail = format!("{mine} restarts vs {others}");
        return Some(Reason::new(Rule::Restarts, detail));
    }
    let (mine, others) = (victim.state.sidecar_restarts, other.state.sidecar_restarts);
    if mine != others {
        let detail = format!("{mine} sidecar restarts vs {others}");
        return Some(Reason::new(Rule::Restarts, detail));
    }
    let (mine, others) = (victim.state.created, other.state.created);
    (bucket(mine, now) != bucket(others, now)).then(|| {
        let detail = format!("{} old vs {}", ago(mine, now), ago(others, now));
        Reason::new(Rule::CreatedRecently, detail)
    })
}

/// The UIDs come last in the text, so that they can be cut.
fn by_uid<I>([victim, other]: Pair<'_, I>, now: Timestamp) -> Reason {
    let (mine, others) = (victim.state.created, other.state.created);
    let tie = if mine == others {
        "tie by every other rule".to_owned()
    } else {
        let (mine, others) = (ago(mine, now), ago(others, now));
        format!("{mine} old and {others}, the same age bucket")
    };
    Reason::new(Rule::Uid, format!("{tie}, {}", uids([victim, other])))
}

/// Compares two pods that are ready for about as long. Their restarts and ages may differ, but count only between pods of one instant.
fn by_uid_within_bucket<I>([victim, other]: Pair<'_, I>, now: Timestamp) -> Reason {
    let (mine, others) = (victim.state.ready.since, other.state.ready.since);
    let detail = format!(
        "ready for {} and {}, the same age bucket: restarts are not compared, {}",
        ago(mine, now),
        ago(others, now),
        uids([victim, other]),
    );
    Reason::new(Rule::Uid, detail)
}

fn uids<I>(pair: Pair<'_, I>) -> String {
    let [mine, others] = pair.map(|pod| {
        let mut uid = pod.uid.to_string();
        uid.truncate(uid.floor_char_boundary(UID_BYTES_MAX));
        uid
    });
    format!("uid {mine} < {others}")
}

fn crowd<I>(candidate: &Candidate<'_, I>) -> String {
    match candidate.node {
        Some(node) => format!(
            "{} of this owner on {}",
            count(candidate.rank, "pod"),
            beginning(node)
        ),
        None => format!("{} of this owner", count(candidate.rank, "unassigned pod")),
    }
}

/// Returns the values of a pod that the preferences compare, for people, in the order of the preferences, each rule once.
pub(super) fn preferred<I>(pod: &Candidate<'_, I>, now: Timestamp) -> Box<[(Rule, String)]> {
    let mut values = Vec::new();
    for preference in pod.scale_in() {
        let rule = preference.rule();
        if values.iter().any(|(known, _)| *known == rule) {
            continue;
        }
        let value = match preference {
            ScaleIn::First(..) => labels(pod),
            ScaleIn::EmptiestNode => on_node(pod.preferred().on_node, pod.node),
            ScaleIn::Youngest => ago(pod.state.created, now).to_string(),
            ScaleIn::LeavingNode => stays(pod),
            ScaleIn::Spread(_) => in_domain(pod),
        };
        values.push((rule, value));
    }
    values.into()
}

/// Returns the labels of a pod that go first.
fn labels<I>(pod: &Candidate<'_, I>) -> String {
    let found = pod.scale_in().iter().filter_map(|rule| match rule {
        ScaleIn::First(key, value) => pod.has_label(key, value).then(|| label(key, value)),
        ScaleIn::EmptiestNode | ScaleIn::Youngest | ScaleIn::LeavingNode | ScaleIn::Spread(_) => {
            None
        }
    });
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return "none".to_owned();
    }
    found.join(", ")
}

/// Says where a pod is that is expected to be evicted.
fn stays<I>(pod: &Candidate<'_, I>) -> String {
    let words = |hint: Hint| hint.words(pod.node);
    pod.preferred()
        .hint
        .map_or_else(|| "stays".to_owned(), words)
}

fn in_domain<I>(pod: &Candidate<'_, I>) -> String {
    let Preferred { domain, height, .. } = pod.preferred();
    let domain = domain.map_or("no domain", beginning);
    format!("{} in {domain}", count(height, "pod"))
}

fn on_node(pods: u32, node: Option<&str>) -> String {
    match node {
        Some(node) => format!("{pods} on {}", beginning(node)),
        None => format!("{pods} unassigned"),
    }
}

/// Returns the values of a pod that the rules compare, for people, in the order of the rules.
pub(super) fn values<I>(
    pod: &Candidate<'_, I>,
    preferred: &[(Rule, String)],
    now: Timestamp,
) -> Vec<(Rule, String)> {
    let (state, ready) = (pod.state, pod.state.ready);
    let ready_for = if ready.ready {
        age(bucket(ready.since, now))
    } else {
        "not ready".to_owned()
    };
    let restarts = match (state.restarts, state.sidecar_restarts) {
        (restarts, 0) => restarts.to_string(),
        (restarts, sidecars) => format!("{restarts}, sidecars {sidecars}"),
    };
    let says = |is: bool, yes: &str, no: &str| if is { yes } else { no }.to_owned();
    let assigned = says(pod.node.is_some(), "assigned", "unassigned");
    let before = [
        (Rule::Unassigned, assigned),
        (Rule::Phase, name(state.phase).to_owned()),
        (Rule::NotReady, says(ready.ready, "ready", "not ready")),
    ];
    let after = [
        (Rule::DeletionCost, cost(pod)),
        (Rule::CrowdedNode, on_node(pod.rank, pod.node)),
        (Rule::ReadyRecently, ready_for),
        (Rule::Restarts, restarts),
        (Rule::CreatedRecently, age(bucket(state.created, now))),
        (Rule::Uid, pod.uid.to_string()),
    ];
    let preferred = preferred.iter().cloned();
    before.into_iter().chain(preferred).chain(after).collect()
}

/// Returns the ages in a bucket, which compare as equal.
fn age(bucket: u8) -> String {
    let Some(log) = bucket.checked_sub(2) else {
        return if bucket == 0 { "unknown" } else { "0 s" }.to_owned();
    };
    let (from, below) = (1_u64 << log, 1_u64 << (log + 1));
    let (unit, word) = match below {
        _ if below < MILLISECOND => return "under 1 ms".to_owned(),
        _ if below < 2 * SECOND => (MILLISECOND, "ms"),
        _ if below < 10 * MINUTE => (SECOND, "s"),
        _ if below < 10 * HOUR => (MINUTE, "min"),
        _ if below < 10 * DAY => (HOUR, "h"),
        _ => (DAY, "d"),
    };
    let rounded = |time: u64| (time + unit / 2) / unit;
    format!("{}-{} {word}", rounded(from), rounded(below))
}

fn label(key: &str, value: &str) -> String {
    let mut label = format!("{key}={value}");
    label.truncate(label.floor_char_boundary(LABEL_BYTES_MAX));
    label
}

/// Returns the beginning of a node's name: a victim with the longest names must fit in a frame.
fn beginning(node: &str) -> &str {
    &node[..node.floor_char_boundary(NAME_BYTES_MAX)]
}

const fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::Other => "of no known name",
        Phase::Unknown => "Unknown",
        Phase::Running => "Running",
        Phase::Succeeded => "Succeeded",
        Phase::Failed => "Failed",
    }
}

/// Says the time since a point in time, in the two units that matter most, without an allocation.
fn ago(time: Option<Timestamp>, now: Timestamp) -> impl fmt::Display {
    fmt::from_fn(move |f| match time {
        Some(time) => Lasting(now.since(time)).fmt(f),
        None => f.write_str("an unknown time"),
    })
}
