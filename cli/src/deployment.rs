//! The division of a Deployment's new number of replicas among its ReplicaSets: what the Deployment controller of Kubernetes v1.36.3 does
//! (`scale` in `pkg/controller/deployment/sync.go`), from the objects alone. Decree has no part in this step.

use std::cmp::Reverse;

use serde_json::Value;

use crate::args::Named;

/// The pods beyond the desired ones that a rolling update may have, unless the Deployment says otherwise.
const SURGE: &str = "25%";

/// A Deployment, as far as the division reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deployment {
    pub(crate) named: Named,
    /// The revision of its current template.
    revision: String,
    /// The pods of all its ReplicaSets, by its status.
    pods: i64,
    /// The number or the percentage of further pods in a rolling update; `None` without rolling updates.
    surge: Option<String>,
    is_paused: bool,
    /// Whether the Deployment controller has seen its current spec.
    pub(crate) is_observed: bool,
}

/// A ReplicaSet of a Deployment, as far as the division reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// The time of creation in RFC 3339, whose texts sort as the times do.
    created: String,
    revision: String,
    pub(crate) replicas: i64,
    available: i64,
    /// The desired and the most pods of the Deployment when this ReplicaSet was last scaled.
    desired: Option<i64>,
    most: Option<i64>,
}

impl Deployment {
    pub(crate) fn of(object: &Value) -> Self {
        let strategy = text(object, "/spec/strategy/type");
        let surge = object.pointer("/spec/strategy/rollingUpdate/maxSurge");
        let surge = match surge {
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::String(text)) => text.clone(),
            _ => SURGE.to_owned(),
        };
        let is_rolling = ["", "RollingUpdate"].contains(&strategy);
        let seen = number(object, "/status/observedGeneration");
        Self {
            named: Named::of(object),
            revision: annotation(object, "revision").to_owned(),
            pods: pods(object, "/status/replicas").unwrap_or(0),
            surge: is_rolling.then_some(surge),
            is_paused: object.pointer("/spec/paused") == Some(&Value::Bool(true)),
            is_observed: seen == number(object, "/metadata/generation"),
        }
    }

    /// Returns the new number of replicas of each ReplicaSet, if the Deployment is scaled to `replicas`.
    pub(crate) fn divide(&self, members: &[Member], replicas: i64) -> Vec<i64> {
        let mut sizes: Vec<_> = members.iter().map(|it| it.replicas).collect();
        let mut by_age: Vec<_> = (0..members.len()).collect();
        by_age.sort_by_key(|at| (&members[*at].created, &members[*at].name));
        // Of several, the oldest is the newest revision.
        let is_new =
            |at: &usize| !self.revision.is_empty() && members[*at].revision == self.revision;
        let new = by_age.iter().copied().find(is_new);
        let mut active = by_age.clone();
        active.retain(|at| members[*at].replicas > 0);
        if let [] | [_] = active[..] {
            let one = active
                .first()
                .copied()
                .or(new)
                .or_else(|| by_age.last().copied());
            one.into_iter().for_each(|at| sizes[at] = replicas);
            return sizes;
        }
        // If nothing is scaled, the rollout continues, unless it is paused.
        let mut seen = active.iter().filter_map(|at| members[*at].desired);
        if !self.is_paused && seen.all(|desired| desired == replicas) {
            return sizes;
        }
        let is_saturated = |at: &usize| {
            let it = &members[*at];
            it.replicas == replicas && it.available == replicas && it.desired == Some(replicas)
        };
        if let Some(new) = new.filter(is_saturated) {
            let old = active.into_iter().filter(|at| *at != new);
            old.for_each(|at| sizes[at] = 0);
            return sizes;
        }
        if self.surge.is_some() {
            self.share_out(members, replicas, active, &mut sizes);
        }
        sizes
    }

    /// Scales the active ReplicaSets, given from the oldest to the newest, in proportion to their sizes. The largest gets the rest.
    fn share_out(
        &self,
        members: &[Member],
        replicas: i64,
        mut active: Vec<usize>,
        sizes: &mut [i64],
    ) {
        let total: i64 = active.iter().map(|at| sizes[*at]).sum();
        let most = match replicas {
            0 => 0,
            _ => replicas + self.surge_of(replicas),
        };
        let to_add = most - total;
        if to_add > 0 {
            active.reverse();
        }
        active.sort_by_key(|at| Reverse(members[*at].replicas));
        let mut added = 0;
        for at in &active {
            let before = members[*at].most.filter(|most| *most != 0);
            let before = before.unwrap_or(self.pods);
            let share = match (replicas, before) {
                (0, _) => -sizes[*at],
                (_, 0) => 0,
                _ => proportion(sizes[*at], most, before) - sizes[*at],
            };
            let left = to_add - added;
            let share = match to_add {
                1.. => share.min(left),
                0 => 0,
                ..0 => share.max(left),
            };
            let share = if left == 0 { 0 } else { share };
            sizes[*at] += share;
            added += share;
        }
        if let Some(first) = active.first() {
            sizes[*first] = (sizes[*first] + to_add - added).max(0);
        }
    }

    /// The pods beyond the desired ones that a rolling update may have; a part of a pod counts as a whole one.
    fn surge_of(&self, replicas: i64) -> i64 {
        let surge = self.surge.as_deref().unwrap_or_default();
        let number = |text: &str| text.parse().ok().and_then(count).unwrap_or(0);
        match surge.strip_suffix('%') {
            Some(percent) => (replicas * number(percent) + 99).div_euclid(100),
            None => number(surge),
        }
    }
}

impl Member {
    pub(crate) fn of(object: &Value) -> Self {
        let noted = |name| annotation(object, name).parse().ok().and_then(count);
        Self {
            name: Named::of(object).name,
            created: text(object, "/metadata/creationTimestamp").to_owned(),
            revision: annotation(object, "revision").to_owned(),
            replicas: pods(object, "/spec/replicas").unwrap_or(1),
            available: pods(object, "/status/availableReplicas").unwrap_or(0),
            desired: noted("desired-replicas"),
            most: noted("max-replicas"),
        }
    }
}

/// The size that has the same proportion to `most` as `size` to `before`, to the nearest integer; a half counts as one.
fn proportion(size: i64, most: i64, before: i64) -> i64 {
    let (dividend, divisor) = (i128::from(size) * i128::from(most), i128::from(before));
    let nearest = (2 * dividend + divisor).div_euclid(2 * divisor);
    i32::try_from(nearest).unwrap_or(i32::MAX).into()
}

/// The number if it is one of pods. Files, and annotations of anyone, can have others.
fn count(number: i64) -> Option<i64> {
    (0..=i64::from(i32::MAX))
        .contains(&number)
        .then_some(number)
}

fn pods(object: &Value, path: &str) -> Option<i64> {
    number(object, path).and_then(count)
}

/// An annotation of the Deployment controller.
fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    let path = format!("/metadata/annotations/deployment.kubernetes.io~1{name}");
    text(object, &path)
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    let found = object.pointer(path).and_then(Value::as_str);
    found.unwrap_or_default()
}

fn number(object: &Value, path: &str) -> Option<i64> {
    object.pointer(path)?.as_i64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_that_nobody_can_have_divide_nothing_and_end_nothing() {
        let note = |name: &str| format!("deployment.kubernetes.io/{name}");
        for (most, surge) in [
            ("9223372036854775807", json!(i64::MAX)),
            ("-9223372036854775808", json!("9223372036854775807%")),
            ("1", json!("2147483647%")),
            ("2147483647", json!(-1)),
        ] {
            let member = |name: &str, replicas: i64| {
                Member::of(&json!({
                    "metadata": {"name": name, "annotations": {note("desired-replicas"): "7", note("max-replicas"): most}},
                    "spec": {"replicas": replicas},
                }))
            };
            let members = [member("web-a", 2), member("web-b", i64::from(i32::MAX))];
            let deployment = Deployment::of(&json!({
                "spec": {"strategy": {"rollingUpdate": {"maxSurge": surge}}},
                "status": {"replicas": i64::MIN},
            }));
            for replicas in [1, i64::from(i32::MAX)] {
                let divided = deployment.divide(&members, replicas);
                assert!(
                    divided.iter().all(|it| *it >= 0),
                    "{most} {surge}: {divided:?}"
                );
            }
        }
    }

    /// Of each case: the surge, the most pods before, the sizes with the desired pods before, and the new sizes. The sizes are those of the
    /// newest ReplicaSet first; it is the current revision, and all its pods are available unless it has a `!`. Most are those of
    /// Kubernetes' own test.
    const CASES: &str = "
        0   10  10@10           to 12: 12
        0   10  10@10           to 5:  5
        0   5   2@5 3@5         to 10: 4 6
        0   5   2@5 3@5         to 3:  1 2
        0   9   8@9 1@9         to 4:  4 0
        0   7   2@7 3@7 2@7     to 10: 3 4 3
        0   13  2@13 8@13 3@13  to 8:  1 5 2
        0   3   1@3 1@3 1@3     to 4:  2 1 1
        0   3   1@3 1@3 1@3     to 2:  1 1 0
        0   4   2@4 2@4         to 5:  3 2
        0   6   3@6 2@6 1@6     to 0:  0 0 0
        0   6   0@6 0@6 0@6     to 6:  6 0 0
        0   6   0@6 4@6         to 7:  0 7
        2   12  6@10 6@10       to 20: 11 11
        6   13  5@10 8@10       to 50: 22 34
        0   10  7@10 3@10       to 14: 10 4
        25% 13  5@10 8@10       to 20: 10 15
        1   3   2@2! 1@2        to 2:  2 1
        1   4   3@3 1@5         to 3:  3 0
        1   4   3@3! 1@5        to 3:  3 1
        -   4   2@4 2@4         to 8:  2 2";

    #[test]
    fn replicas_are_divided_as_kubernetes_divides_them() {
        for case in CASES.trim().lines().map(str::trim) {
            let (given, expected) = case.split_once(':').expect("a colon");
            let (given, to) = given.split_once(" to ").expect("a target");
            let mut words = given.split_whitespace();
            let surge = words.next().filter(|it| *it != "-");
            let most: i64 = words.next().and_then(|it| it.parse().ok()).expect("pods");
            let members = words.enumerate().map(|(at, word)| {
                let is_available = !word.ends_with('!');
                let (size, desired) = word.split_once('@').expect("a size");
                let size = size.parse().expect("a number");
                Member {
                    name: format!("web-{at}"),
                    created: format!("2026-01-{:02}T00:00:00Z", 20 - at),
                    revision: (9 - at).to_string(),
                    replicas: size,
                    available: if is_available { size } else { 0 },
                    desired: desired.trim_end_matches('!').parse().ok(),
                    most: Some(most),
                }
            });
            let members: Vec<_> = members.collect();
            let deployment = Deployment {
                revision: "9".to_owned(),
                surge: surge.map(str::to_owned),
                ..Deployment::default()
            };
            let divided = deployment.divide(&members, to.trim().parse().expect("a number"));
            let divided: Vec<_> = divided.iter().map(i64::to_string).collect();
            assert_eq!(divided.join(" "), expected.trim(), "{case}");
        }
    }
}
