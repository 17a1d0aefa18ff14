//! The comparison of a ReplicaSet at rest with its pods.

use decree_api::v1::{Departure, Difference, Subject};
use decree_core::{Condition, KnownSet, REPLICA_FAILURE, Span, Status, Timestamp, wording};

use super::results::difference;

/// How long nothing may have changed before a comparison.
pub(super) const REST: Span = Span::seconds(10);
/// How much the clocks of the server and of the other controller may differ.
pub(super) const SKEW: Span = Span::seconds(2);

pub(super) enum AtRest {
    Agrees,
    Differs(Box<Difference>),
    /// The other controller tried in vain to create pods.
    NotComparable,
    /// Pods have just become available.
    Ripens,
}

/// Compares owners, then the number of pods, which depends on them, then the status, which depends on both and was last `written` then.
pub(super) fn compare(
    now: Timestamp,
    set: &KnownSet<'_>,
    written: Option<Timestamp>,
    looks: &mut usize,
) -> AtRest {
    let (object, surplus) = (set.object(), set.surplus());
    let not_done = |subject, decided, why: &str| {
        let sides = [decided, "not done for 30 s".to_owned()];
        difference(subject, &object.key, sides, why)
    };
    let adopt = set.first_to_adopt().map(|name| ("adopt", name));
    if let Some((verb, name)) = adopt.or_else(|| Some(("release", set.first_to_release()?))) {
        let why = match verb {
            "adopt" => "the selector matches its labels, and it has no controller",
            _ => "the selector does not match its labels",
        };
        return AtRest::Differs(Box::new(Difference {
            decided_pods: vec![name.to_string()],
            ..not_done(Subject::Adoption, format!("{verb} {name}"), why)
        }));
    }
    let failed = |it: &Condition| it.kind == REPLICA_FAILURE && it.status == "True";
    if surplus == 0 {
        return compare_status(now, set, written);
    } else if surplus < 0 && object.status.conditions.iter().any(failed) {
        return AtRest::NotComparable;
    }
    let verb = if surplus < 0 { "create" } else { "delete" };
    let decided = format!("{verb} {}", wording::count(surplus.unsigned_abs(), "pod"));
    let active = wording::count(set.active(), "active pod");
    let why = format!("{active}, {} desired", set.wanted());
    let mut found = not_done(Subject::Count, decided, &why);
    if set.is_namespace_ending(looks) {
        found.set_departure(Departure::NamespaceEnding);
        found.why = "no pod can be created in a namespace that is being deleted".to_owned();
    }
    AtRest::Differs(Box::new(found))
}

fn compare_status(now: Timestamp, set: &KnownSet<'_>, written: Option<Timestamp>) -> AtRest {
    let (object, there) = (set.object(), &set.object().status);
    if set.available_at(now.plus(Span(-REST.0))) != set.available_at(now) {
        return AtRest::Ripens;
    }
    let early = set.available_at(written.unwrap_or(now).plus(SKEW));
    let (sides, why) = match set.status_due(now) {
        Some(due) => (
            differing_fields(&due, there),
            "nothing has changed for 30 s",
        ),
        None if there.available_replicas > early => {
            let sides = [early, there.available_replicas];
            let why = "the status was written before minReadySeconds had passed";
            (sides.map(|pods| format!("availableReplicas {pods}")), why)
        }
        None => return AtRest::Agrees,
    };
    let found = difference(Subject::Status, &object.key, sides, why);
    AtRest::Differs(Box::new(found))
}

/// Returns the fields in which two statuses differ, with their values in each.
fn differing_fields(due: &Status, there: &Status) -> [String; 2] {
    let [due, there] = [due, there].map(|status| {
        let terminating = status.terminating_replicas.map(|it| it.to_string());
        let terminating = terminating.unwrap_or_else(|| "none".to_owned());
        let kinds = status.conditions.iter().map(|it| format!(" {}", it.kind));
        let count = |name: &str, count: i32| format!("{name} {count}");
        [
            count("replicas", status.replicas),
            count("fullyLabeledReplicas", status.fully_labeled_replicas),
            count("readyReplicas", status.ready_replicas),
            count("availableReplicas", status.available_replicas),
            format!("terminatingReplicas {terminating}"),
            format!("observedGeneration {}", status.observed_generation),
            format!("conditions{}", kinds.collect::<String>()),
        ]
    });
    let pairs = due.into_iter().zip(there);
    let differ = pairs.filter(|(due, there)| due != there);
    let (due, there): (Vec<_>, Vec<_>) = differ.unzip();
    [due.join(", "), there.join(", ")]
}
