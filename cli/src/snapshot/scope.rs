//! The objects that a decision on one ReplicaSet reads, found without a scan of the whole input.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use server_core::{Pod, ReplicaSet, Selector, Test, Uid};

use super::Snapshot;
use crate::args::Named;

/// The minimum common length of the name of a ReplicaSet and the names of its new pods, in bytes: longer names are truncated.
const COMMON_LENGTH: usize = 57;

type SetKey<'a> = (&'a str, &'a str);

/// The objects of a snapshot, indexed for decisions. Decisions on many ReplicaSets scan all objects once.
#[derive(Debug, Default)]
pub(crate) struct Scopes<'a> {
    sets: BTreeMap<SetKey<'a>, &'a ReplicaSet>,
    /// ReplicaSets by the uid of their controller.
    siblings: HashMap<&'a Uid, Vec<&'a ReplicaSet>>,
    pods: BTreeMap<SetKey<'a>, &'a Pod>,
    /// Pods by the uid of their controller, and by namespace and each of their labels.
    owned: HashMap<&'a Uid, Vec<&'a Pod>>,
    labelled: HashMap<(&'a str, &'a str, &'a str), Vec<&'a Pod>>,
}

// === impl Scopes ===

impl<'a> Scopes<'a> {
    pub(crate) fn of(snapshot: &'a Snapshot) -> Self {
        let mut scopes = Self::default();
        for set in &snapshot.replica_sets {
            scopes.sets.insert(place(set), set);
            if let Some(owner) = &set.controller {
                scopes.siblings.entry(&owner.uid).or_default().push(set);
            }
        }
        for pod in &snapshot.pods {
            scopes.pods.insert((&pod.namespace, &pod.name), pod);
            if let Some(owner) = &pod.controller {
                scopes.owned.entry(&owner.uid).or_default().push(pod);
            }
            for (key, value) in pod.labels.iter() {
                let labelled = scopes.labelled.entry((&pod.namespace, key, value));
                labelled.or_default().push(pod);
            }
        }
        scopes
    }

    /// The objects that a decision on a ReplicaSet reads. They are the ReplicaSet, its siblings, the pods that these own or select
    /// (spec 5.3 and 7.3), and the pods whose names a new pod might have.
    pub(crate) fn around(&self, named: &Named) -> (Vec<ReplicaSet>, Vec<Pod>) {
        let Some(set) = self.sets.get(&(&*named.namespace, &*named.name)) else {
            return (Vec::new(), Vec::new());
        };
        let owner = set.controller.as_ref();
        let siblings = owner.and_then(|owner| self.siblings.get(&owner.uid));
        let sets = siblings.into_iter().flatten().chain([set]);
        let sets: BTreeMap<_, _> = sets.map(|set| (place(set), *set)).collect();
        let namespaces: BTreeSet<_> = sets.keys().map(|(namespace, _)| *namespace).collect();
        let owned = sets.values().filter_map(|set| self.owned.get(&set.key.uid));
        let owned = owned.flatten().copied();
        let owned = owned.filter(|pod| namespaces.contains(&*pod.namespace));
        let selected = sets.values().flat_map(|set| self.selected(set));
        let name = &*set.key.name;
        let begin = &name[..name.floor_char_boundary(COMMON_LENGTH)];
        let alike_in_name = self.named(&set.key.namespace, begin);
        let pods = owned.chain(selected).chain(alike_in_name);
        let pods: BTreeMap<_, _> = pods.map(|pod| ((&pod.namespace, &pod.name), pod)).collect();
        (
            sets.into_values().cloned().collect(),
            pods.into_values().cloned().collect(),
        )
    }

    /// The pods that a ReplicaSet selects, among the pods with a label that it requires, or else among all pods of its namespace.
    fn selected(&self, set: &ReplicaSet) -> Vec<&'a Pod> {
        let Ok(selector) = &set.selector else {
            return Vec::new();
        };
        let namespace = &*set.key.namespace;
        let among: Vec<_> = match demanded(selector) {
            Some((key, values)) => {
                let labelled = values.iter().map(|value| (namespace, key, &**value));
                let labelled = labelled.filter_map(|label| self.labelled.get(&label));
                labelled.flatten().copied().collect()
            }
            None => self.named(namespace, "").collect(),
        };
        let selects = |pod: &&Pod| selector.matches(&pod.labels);
        among.into_iter().filter(selects).collect()
    }

    /// The pods of a namespace whose names begin with `begin`.
    fn named<'b>(
        &'b self,
        namespace: &'b str,
        begin: &'b str,
    ) -> impl Iterator<Item = &'a Pod> + 'b {
        let from = self.pods.range((namespace, begin)..);
        from.take_while(move |((place, name), _)| *place == namespace && name.starts_with(begin))
            .map(|(_, pod)| *pod)
    }
}

/// The key and the values of a label that a selector requires; `None` if it requires no label.
fn demanded(selector: &Selector) -> Option<(&str, &[Arc<str>])> {
    let Selector::All(requirements) = selector else {
        return None;
    };
    let mut demands = requirements.demands().iter();
    demands.find_map(|one| match &one.test {
        Test::In(values) => Some((&*one.key, values.as_slice())),
        Test::NotIn(_) | Test::Exists | Test::DoesNotExist => None,
    })
}

fn place(set: &ReplicaSet) -> SetKey<'_> {
    (&set.key.namespace, &set.key.name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use server_core::{Config, Decision, Labels, OwnerReference, Timestamp, decide};

    use super::*;

    /// Numbers below a bound, the same for the same seed.
    fn draw(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed;
        move |bound| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % bound
        }
    }

    fn owner(kind: &str, name: String, uid: String) -> Value {
        json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}])
    }

    /// The uid of a drawn ReplicaSet. Some inputs have it twice, as a file that a person wrote may.
    fn uid(number: u64) -> String {
        format!("s{}", number % 5)
    }

    fn drawn_set(number: u64, draw: &mut impl FnMut(u64) -> u64) -> Value {
        let app = format!("app-{}", draw(3));
        let mut set = json!({
            "kind": "ReplicaSet",
            "metadata": {"namespace": format!("n{}", draw(2)), "name": format!("web-{number}"), "uid": uid(number)},
            "spec": {
                "replicas": draw(6),
                "selector": {"matchLabels": {"app": app}},
                "template": {"metadata": {"labels": {"app": app}}},
            },
        });
        if draw(4) == 0 {
            set["spec"]["selector"] = json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["app-0"]}]});
        }
        if draw(3) > 0 {
            set["metadata"]["ownerReferences"] =
                owner("Deployment", "web".to_owned(), format!("d{}", draw(3)));
        }
        set
    }

    fn drawn_pod(number: usize, sets: u64, draw: &mut impl FnMut(u64) -> u64) -> Value {
        let set = draw(sets);
        // An adopted pod has any name.
        let begin = match draw(2) {
            0 => format!("web-{set}"),
            _ => "pod".to_owned(),
        };
        let mut pod = json!({
            "kind": "Pod",
            "metadata": {
                "namespace": format!("n{}", draw(2)),
                "name": format!("{begin}-{number}"),
                "uid": format!("p{number}"),
                "labels": {"app": format!("app-{}", draw(3))},
            },
            "spec": {"nodeName": format!("node-{}", draw(3)), "containers": []},
            "status": {"phase": "Running"},
        });
        if draw(4) > 0 {
            pod["metadata"]["ownerReferences"] =
                owner("ReplicaSet", format!("web-{set}"), uid(set));
        }
        pod
    }

    fn drawn(seed: u64) -> Snapshot {
        let mut draw = draw(seed);
        let sets = 2 + draw(6);
        let mut objects: Vec<_> = (0..sets).map(|it| drawn_set(it, &mut draw)).collect();
        objects.extend((0..40).map(|it| drawn_pod(it, sets, &mut draw)));
        let text = json!({"kind": "List", "items": objects}).to_string();
        let contents = manifest::open("drawn".as_ref(), &text).expect("a list");
        let mut snapshot = Snapshot::default();
        let mut objects = contents.documents.iter();
        let added = objects.try_for_each(|object| snapshot.add(object));
        added.expect("a state of a cluster");
        snapshot
    }

    fn decide_in(view: (Vec<ReplicaSet>, Vec<Pod>), (namespace, name): SetKey<'_>) -> Decision {
        let (sets, pods) = view;
        let decision = decide(
            Timestamp(0),
            Config::default(),
            (namespace, name),
            sets,
            pods,
        );
        decision.expect("it is there")
    }

    fn all(snapshot: &Snapshot) -> (Vec<ReplicaSet>, Vec<Pod>) {
        (snapshot.replica_sets.clone(), snapshot.pods.clone())
    }

    fn around(snapshot: &Snapshot, (namespace, name): SetKey<'_>) -> (Vec<ReplicaSet>, Vec<Pod>) {
        Scopes::of(snapshot).around(&Named::new(namespace, name))
    }

    #[test]
    fn decisions_are_as_with_all_that_the_input_has() {
        let mut acts = [0; 4];
        for seed in 0..300 {
            let snapshot = drawn(seed);
            for set in &snapshot.replica_sets {
                let decision = decide_in(around(&snapshot, place(set)), place(set));
                acts[0] += decision.creates.len();
                acts[1] += decision.deletes.len();
                acts[2] += decision.adopts.len();
                acts[3] += decision.releases.len();
                let expected = decide_in(all(&snapshot), place(set));
                assert_eq!(decision, expected, "seed {seed}, {}", set.key.name);
            }
        }
        assert!(acts.iter().all(|it| *it > 200), "{acts:?}");
    }

    #[test]
    fn names_of_pods_that_have_nothing_else_to_do_with_it_are_not_given_again() {
        for length in [3, 56, 57, 58, 63, 253] {
            let selects_all = |set: &ReplicaSet| {
                let selector = set.selector.as_ref();
                selector.is_ok_and(|selector| selector.matches(&Labels::default()))
            };
            let mut drawn = (0..).map(drawn);
            let snapshot = drawn.find(|it| !selects_all(&it.replica_sets[0]));
            let mut snapshot = snapshot.expect("most select by a label");
            let name: Arc<str> = "w".repeat(length).into();
            let set = &mut snapshot.replica_sets[0];
            (set.key.name, set.replicas) = (name, 20);
            let at = set.key.clone();
            let at = (&*at.namespace, &*at.name);
            let before = decide_in(around(&snapshot, at), at).creates;
            let owned = snapshot.pods.iter().find_map(|pod| pod.controller.clone());
            let stranger = Pod {
                labels: Labels::default(),
                controller: owned.map(|owner| OwnerReference {
                    uid: Uid("of-nobody-here".into()),
                    ..owner
                }),
                ..snapshot.pods[0].clone()
            };
            assert!(stranger.controller.is_some());
            for (number, name) in before.iter().enumerate() {
                snapshot.pods.push(Pod {
                    namespace: at.0.into(),
                    name: Arc::clone(name),
                    uid: Uid(format!("stranger-{number}").into()),
                    ..stranger.clone()
                });
            }
            let after = decide_in(around(&snapshot, at), at);
            assert_eq!(after, decide_in(all(&snapshot), at), "{length}");
            assert!(
                before.iter().all(|name| !after.creates.contains(name)),
                "{length}"
            );
        }
    }
}
