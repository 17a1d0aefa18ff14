//! The limits of what a server can make an agent do, judged only from the side of the cluster: by the calls that arrive, and by
//! the objects.
//!
//! An agent acts on its view, which lags behind the cluster by at most [`SLACK`]. So a limit is exceeded only if every state
//! within that time exceeds it.

use std::collections::{BTreeMap, BTreeSet};

use agent_core::{
    api::{self, Request},
    preferences::Preference,
};
use agent_fake::{Kind, Object, is_active};
use decree_api::v1;
use jiff::Timestamp;

pub use self::verdict::{SLACK, Verdict};
use self::{history::History, paces::Paces, verdict::limit};
use crate::{
    facts::Fact,
    invariants::{controller, selects},
    other_controller::{ADVISED_COST, DELETION_COST},
    world::{LEAVING_TAINT, World},
};

mod history;
mod paces;
mod verdict;

/// The maximum number of characters in a condition from a server: the limit of Kubernetes for its own types.
const TEXT_MAX: usize = 32_768;

/// The limits, and the state of one world for them.
#[derive(Debug, Default)]
pub struct Limits {
    version: u64,
    sets: BTreeMap<String, History>,
    /// The pods by uid, as last seen.
    pods: BTreeMap<String, Pod>,
    /// The specs of the nodes by name, as last seen.
    nodes: BTreeMap<String, serde_json::Value>,
    /// The last time at which somebody else changed the labels of a pod or a ReplicaSet, or a node.
    changed: BTreeMap<String, Timestamp>,
    paces: Paces,
    /// The effective calls, by verb.
    pub calls: BTreeMap<&'static str, u64>,
    /// The number of pods that were deleted from leaving nodes.
    pub replaced: u64,
}

/// The relevant fields of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pod {
    controller: Option<String>,
    is_active: bool,
    labels: serde_json::Value,
}

impl Limits {
    /// Judges the last step of a world.
    ///
    /// # Errors
    /// The first exceeded limit.
    pub fn judge(&mut self, world: &World) -> Verdict {
        let now = world.now();
        let called = self.note_step(world);
        for fact in &world.facts {
            match fact {
                Fact::Called {
                    request, before, ..
                } => self.judge_call(world, request, before.as_deref())?,
                Fact::BatchSent { .. }
                | Fact::WriteBegan { .. }
                | Fact::PodCreated { .. }
                | Fact::PodDeleted { .. }
                | Fact::SessionEnded { .. }
                | Fact::Answered { .. }
                | Fact::OlderList { .. }
                | Fact::Told { .. }
                | Fact::PutBack { .. }
                | Fact::ProtocolBroken(_) => {}
                Fact::Dialed { life } => self.paces.dialed(*life, now)?,
                Fact::ListBegan { life, kind } => self.paces.listed(*life, *kind, now)?,
                Fact::Heard { life } => self.paces.heard(*life, now),
            }
        }
        self.paces.judge_silence(now)?;
        for uid in called {
            // Later writes are measured by the later state.
            self.sets
                .entry(uid)
                .or_default()
                .status_written(now - SLACK);
        }
        Ok(())
    }

    /// Notes the state after a step. Returns the ReplicaSets whose status was written in the step.
    fn note_step(&mut self, world: &World) -> Vec<String> {
        let mut ours = BTreeSet::new();
        let mut written = Vec::new();
        for fact in &world.facts {
            let Fact::Called {
                request,
                before,
                took_effect: true,
                ..
            } = fact
            else {
                continue;
            };
            *self.calls.entry(request.verb()).or_default() += 1;
            let leaves = before.as_deref().and_then(|pod| hint(world, pod)) == Some(true);
            self.replaced += u64::from(leaves && request.verb() == "delete_pod");
            match &**request {
                Request::DeletePod { pod, .. } | Request::ReleasePod { pod, .. } => {
                    ours.insert(pod.uid.clone());
                }
                Request::WriteStatus(write) => written.push(write.replica_set.uid.clone()),
                Request::CreatePod(_)
                | Request::AdoptPod { .. }
                | Request::AdvisePod { .. }
                | Request::ReadPod { .. }
                | Request::ReadReplicaSet { .. } => {}
            }
        }
        if world.cluster.version() > self.version {
            self.version = world.cluster.version();
            self.note_pods(world, &ours);
            self.note_nodes(world);
            self.note_sets(world);
        }
        written
    }

    /// Notes the pods, and counts the pods that others removed for their ReplicaSets.
    fn note_pods(&mut self, world: &World, ours: &BTreeSet<String>) {
        let now = world.now();
        let pods = world.cluster.objects(Kind::Pod);
        let pods: BTreeMap<_, _> = pods.map(|pod| (text(pod, "uid"), Pod::of(pod))).collect();
        for (uid, before) in &self.pods {
            let after = pods.get(uid);
            let stays = after.is_some_and(|it| it.is_active && it.controller == before.controller);
            if let Some(owner) = &before.controller
                && before.is_active
                && !stays
                && !ours.contains(uid)
            {
                self.sets.entry(owner.clone()).or_default().lost(now);
            }
            if after.is_some_and(|after| after.labels != before.labels) {
                self.changed.insert(uid.clone(), now);
            }
        }
        self.pods = pods;
    }

    fn note_nodes(&mut self, world: &World) {
        for node in world.cluster.objects(Kind::Node) {
            let (name, spec) = (text(node, "name"), &node["spec"]);
            if self.nodes.get(&name).is_some_and(|known| known != spec) {
                self.changed.insert(name.clone(), world.now());
            }
            self.nodes.insert(name, spec.clone());
        }
    }

    fn note_sets(&mut self, world: &World) {
        let now = world.now();
        let mut there = BTreeSet::new();
        for set in world.cluster.objects(Kind::ReplicaSet) {
            let uid = text(set, "uid");
            let pods: Vec<_> = world.cluster.objects(Kind::Pod).collect();
            let pods = pods.iter().copied();
            let own = pods.filter(|pod| controller(pod) == Some(&uid));
            let hinted = own
                .clone()
                .filter(|pod| is_active(pod) && hint(world, pod).is_some());
            let mut sample = history::Sample::of(set, own);
            if annotation(set, Preference::Surge) == Some("100%") {
                sample.allowed = hinted.count().min(sample.wanted);
            }
            let it = self.sets.entry(uid.clone()).or_default();
            it.note(now, sample);
            there.insert(uid);
        }
        for (uid, it) in &mut self.sets {
            if !there.contains(uid) {
                it.gone(now);
            }
        }
    }

    fn judge_call(&self, world: &World, request: &Request, before: Option<&Object>) -> Verdict {
        let there = |pod: &v1::ObjectRef| before.filter(|it| text(it, "uid") == pod.uid);
        match request {
            Request::CreatePod(create) => self.judge_create(world, create),
            Request::DeletePod { pod, .. } => {
                there(pod).map_or(Ok(()), |pod| self.judge_delete(world, pod))
            }
            Request::AdoptPod { pod, controller } => {
                there(pod).map_or(Ok(()), |pod| self.judge_adopt(world, &controller.uid, pod))
            }
            Request::ReleasePod { pod, owner_uid } => {
                there(pod).map_or(Ok(()), |pod| self.judge_release(world, owner_uid, pod))
            }
            Request::AdvisePod { pod, cost, .. } => {
                there(pod).map_or(Ok(()), |pod| self.judge_advice(world, pod, *cost))
            }
            Request::WriteStatus(write) => self.judge_status(world, write),
            Request::ReadPod { namespace, name } | Request::ReadReplicaSet { namespace, name } => {
                judge_name(namespace, name)
            }
        }
    }

    /// Never more active pods than desired, with allowed names, in the namespace of the ReplicaSet.
    fn judge_create(&self, world: &World, create: &api::CreatePod) -> Verdict {
        judge_name(&create.namespace, &create.name)?;
        let uid = &create.controller.uid;
        let history = self.owner(uid, &create.namespace, &create.controller.name, world)?;
        let fits = create.name.starts_with(&create.controller.name);
        limit("names_of_its_own", fits, || {
            format!("{} is created for {}", create.name, create.controller.name)
        })?;
        let pods = world.cluster.objects(Kind::Pod);
        let there = pods.filter(|pod| controller(pod) == Some(uid) && is_active(pod));
        let since = || history.since(world.now() - SLACK);
        let wanted = since().map(|it| it.wanted).max().unwrap_or(0);
        let allowed = since().map(|it| it.allowed).max().unwrap_or(0);
        let (there, wanted) = (there.count(), wanted + allowed);
        limit("never_more_than_wanted", there <= wanted, || {
            format!(
                "{} is number {there} where {wanted} are wanted",
                create.name
            )
        })?;
        let set = self.set(world, uid);
        if set.is_none_or(|set| annotation(set, Preference::Create).is_none()) {
            return Ok(());
        }
        let pods = world.cluster.objects(Kind::Pod);
        let there = pods.filter(|pod| controller(pod) == Some(uid) && !has_ended(pod));
        let there = there.count();
        limit("creates_after_termination", there <= wanted, || {
            let name = &create.name;
            format!(
                "{name} is number {there}, those being deleted included, where {wanted} are wanted"
            )
        })
    }

    /// Only pods that a ReplicaSet controls, and never below the desired number of active pods.
    fn judge_delete(&self, world: &World, before: &Object) -> Verdict {
        let (name, now) = (text(before, "name"), world.now());
        let owner = controller(before).unwrap_or_default();
        let history = self.sets.get(owner);
        let Some(history) = history else {
            return Err((
                "only_what_is_controlled",
                format!("{name} is deleted, of {owner:?}"),
            ));
        };
        if has_ended(before) {
            return self.judge_ended(world, owner, before);
        }
        if !is_active(before) {
            return Ok(());
        }
        let pods = world.cluster.objects(Kind::Pod);
        let left = pods.filter(|pod| controller(pod) == Some(owner) && is_active(pod));
        let left = left.count() + history.lost_since(now - SLACK);
        let wanted = history.since(now - SLACK).map(|it| it.wanted);
        let wanted = wanted.min().unwrap_or(0);
        limit("never_fewer_than_wanted", left >= wanted, || {
            format!("{left} are left without {name} where {wanted} are wanted")
        })?;
        let allowed = history.since(now - SLACK).map(|it| it.allowed);
        let allowed = allowed.min().unwrap_or(0);
        let node = before["spec"]["nodeName"].as_str().unwrap_or_default();
        let leaves = hint(world, before) == Some(true) || self.has_changed(now, node);
        limit(
            "only_leaving_pods_are_replaced",
            left >= wanted + allowed || leaves,
            || format!("{name} stays, and {wanted} are wanted, and {allowed} in advance"),
        )
    }

    /// The deletion of a ready pod leaves as many ready pods as desired, as far as the server can know. An agent does not check this.
    pub fn judge_ready(&self, world: &World) -> Verdict {
        for fact in &world.facts {
            if let Fact::Called {
                request,
                before: Some(before),
                ..
            } = fact
                && let Request::DeletePod { .. } = &**request
                && is_active(before)
                && history::was_ready(before, world.now() - SLACK)
                && let Some(history) = controller(before).and_then(|owner| self.sets.get(owner))
            {
                let since = || history.since(world.now() - SLACK);
                let ready = since().map(|it| it.ready).max().unwrap_or(0);
                let wanted = since().map(|it| it.wanted).min().unwrap_or(0);
                limit("available_pods_stay", ready > wanted, || {
                    let name = text(before, "name");
                    format!("{name} goes, and at most {ready} were ready where {wanted} are wanted")
                })?;
            }
        }
        Ok(())
    }

    /// Only ended pods beyond those that the ReplicaSet prefers to keep.
    fn judge_ended(&self, world: &World, owner: &str, before: &Object) -> Verdict {
        let keep = self
            .set(world, owner)
            .and_then(|set| annotation(set, Preference::KeepEnded)?.parse().ok());
        let pods = world.cluster.objects(Kind::Pod);
        let left = pods.filter(|pod| controller(pod) == Some(owner) && has_ended(pod));
        let left = left.count();
        let was_deleted = !before["metadata"]["deletionTimestamp"].is_null();
        let right = was_deleted || keep.is_some_and(|keep: usize| left >= keep);
        limit("ended_pods_are_kept", right, || {
            let name = text(before, "name");
            format!("{left} ended pods are left without {name} where {keep:?} are kept")
        })
    }

    /// Only matching orphans of the namespace.
    fn judge_adopt(&self, world: &World, owner: &str, pod: &Object) -> Verdict {
        let name = text(pod, "name");
        let set = self.set(world, owner);
        let matches = set.is_none_or(|set| is_selected(set, pod));
        let excused = self.has_changed(world.now(), &text(pod, "uid"));
        let right = self.sets.contains_key(owner) && (matches || excused);
        limit("adopts_what_matches", right, || {
            format!("{name} is adopted by {owner}")
        })?;
        let orphan = controller(pod).is_none_or(|it| it == owner);
        limit("adopts_orphans", orphan, || {
            format!("{name} is adopted by {owner}")
        })
    }

    /// Only pods that do not match, of the ReplicaSet that controls them.
    fn judge_release(&self, world: &World, owner: &str, pod: &Object) -> Verdict {
        let name = text(pod, "name");
        if controller(pod) != Some(owner) {
            return Ok(());
        }
        let matches = self
            .set(world, owner)
            .is_some_and(|set| is_selected(set, pod));
        let excused = self.has_changed(world.now(), &text(pod, "uid"));
        limit("releases_what_does_not_match", !matches || excused, || {
            format!("{name} is released by {owner}")
        })
    }

    /// Only costs that nobody else has set, of pods whose ReplicaSet prefers an order of deletion, by an agent that advises.
    fn judge_advice(&self, world: &World, before: &Object, cost: i32) -> Verdict {
        let set = controller(before).and_then(|owner| self.set(world, owner));
        let mut order = [Preference::ScaleIn, Preference::ScaleInCost].into_iter();
        let prefers = set.and_then(|set| order.find_map(|it| annotation(set, it)));
        let annotations = &before["metadata"]["annotations"];
        let is_ours = annotations[DELETION_COST] == annotations[ADVISED_COST];
        let right = world.advises && is_ours && (cost == 0 || prefers.is_some());
        limit("advice", right, || {
            format!("{} gets the cost {cost}", text(before, "name"))
        })
    }

    /// No number beyond the maximum since the last status, and no text without a limit.
    fn judge_status(&self, world: &World, write: &api::WriteStatus) -> Verdict {
        let v1::ObjectRef {
            namespace,
            name,
            uid,
        } = &write.replica_set;
        let history = self.owner(uid, namespace, name, world)?;
        let most = history.most();
        let it = &write.status;
        let numbers = [
            (it.replicas, most.active),
            (it.fully_labeled_replicas, most.active),
            (it.ready_replicas, most.ready),
            (it.available_replicas, most.ready),
            (it.terminating_replicas(), most.terminating),
        ];
        let fits =
            |(said, most): (i32, usize)| usize::try_from(said).is_ok_and(|said| said <= most);
        let generation = i64::try_from(most.generation).unwrap_or(i64::MAX);
        let right = numbers.into_iter().all(fits) && it.observed_generation <= generation;
        limit("status_as_seen", right, || {
            format!("{name} says {it:?} where there were {most:?}")
        })?;
        let texts = it
            .conditions
            .iter()
            .flat_map(|it| [&it.r#type, &it.reason, &it.message]);
        let longest = texts.map(String::len).max().unwrap_or(0);
        limit("status_is_short", longest <= TEXT_MAX, || {
            format!("{name} says {longest} bytes")
        })
    }

    /// The history of the ReplicaSet of a call, which must be exactly an existing or former one.
    fn owner(
        &self,
        uid: &str,
        namespace: &str,
        name: &str,
        world: &World,
    ) -> Result<&History, (&'static str, String)> {
        let set = self.set(world, uid);
        let named = |set: &Object| text(set, "name") == name && text(set, "namespace") == namespace;
        let history = self
            .sets
            .get(uid)
            .filter(|it| set.map_or_else(|| it.is_gone_since(world.now() - SLACK), named));
        history.ok_or_else(|| {
            (
                "exact_reference",
                format!("{namespace}/{name} {uid} is no ReplicaSet"),
            )
        })
    }

    fn set<'a>(&self, world: &'a World, uid: &str) -> Option<&'a Object> {
        let mut sets = world.cluster.objects(Kind::ReplicaSet);
        sets.find(|set| set["metadata"]["uid"] == uid)
    }

    fn has_changed(&self, now: Timestamp, uid: &str) -> bool {
        self.changed.get(uid).is_some_and(|at| *at >= now - SLACK)
    }
}

impl Pod {
    fn of(pod: &Object) -> Self {
        Self {
            controller: controller(pod).map(str::to_owned),
            is_active: is_active(pod),
            labels: pod["metadata"]["labels"].clone(),
        }
    }
}

fn annotation(set: &Object, preference: Preference) -> Option<&str> {
    set["metadata"]["annotations"][preference.annotation()].as_str()
}

/// Whether a pod may be deleted before its eviction; `None` if nothing announces one.
fn hint(world: &World, pod: &Object) -> Option<bool> {
    let mut nodes = world.cluster.objects(Kind::Node);
    let node = nodes.find(|node| node["metadata"]["name"] == pod["spec"]["nodeName"])?;
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let leaves = taints.any(|taint| taint["key"] == LEAVING_TAINT);
    (leaves || node["spec"]["unschedulable"] == true).then_some(leaves)
}

fn has_ended(pod: &Object) -> bool {
    let phase = pod["status"]["phase"].as_str();
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn is_selected(set: &Object, pod: &Object) -> bool {
    set["metadata"]["namespace"] == pod["metadata"]["namespace"]
        && selects(&set["spec"]["selector"]["matchLabels"], pod)
}

/// The agent creates only pods with valid names.
fn judge_name(namespace: &str, name: &str) -> Verdict {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| allowed(byte) || matches!(byte, b'-' | b'.');
    let is_name = |text: &str| {
        let ends = text.bytes().next().zip(text.bytes().last());
        text.len() <= 253
            && ends.is_some_and(|(first, last)| allowed(first) && allowed(last))
            && text.bytes().all(inner)
    };
    limit(
        "names_are_names",
        is_name(namespace) && is_name(name),
        || {
            format!(
                "{namespace:?}/{:?} leaves the agent",
                name.chars().take(80).collect::<String>()
            )
        },
    )
}

fn text(object: &Object, field: &str) -> String {
    object["metadata"][field]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
