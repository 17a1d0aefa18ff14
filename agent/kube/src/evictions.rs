//! Evictions (KEP-4563): the requests of a responder, which acts for the pods that name it.
//!
//! Kubernetes makes a responder active for one pod at a time. The responder reports that it works, and at the end that it has completed.
//! Kubernetes 1.37 and later serve the API behind a gate.

use std::{convert::Infallible, sync::atomic::Ordering};

use agent_core::{
    api::{ApiError, Kind},
    cluster::{Cluster as _, PageStream as _},
    preferences,
    watch::Items,
};
use decree_api::v1;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    cluster::KubeCluster,
    codec,
    follow::{Followed, Follower, News},
    objects::{LEAVING, seconds},
    operator::Access,
    probe::text,
    requests,
    resource::selector_text,
};

/// The name of the responder in pods and Evictions.
pub const RESPONDER: &str = "decree.dev/replicaset";
/// The priority of the responder that is the controller of the pod, as Kubernetes' API defines it.
pub(crate) const PRIORITY: i32 = 10_000;
/// The value of the annotation that announces an eviction, if the responder set it.
const BY_RESPONDER: &str = "eviction";
/// The permissions of the responder, beside those of an agent.
pub const RESPONDER_ACCESSES: [Access<'static>; 3] = [
    access("list", ""),
    access("watch", ""),
    access("patch", "status"),
];

/// An Eviction that names the responder.
#[derive(Clone, Debug, Deserialize)]
pub struct Eviction(Value);

/// What Kubernetes expects of the responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing: another responder is active, or this one has completed.
    Nothing,
    /// Work, and reports of it.
    Work,
    /// An end of the work: the eviction is withdrawn, or another responder works.
    End,
}

/// A report of the responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It works, and expects to end at this time, if it knows.
    Works(Option<Timestamp>),
    /// It has ended, for this reason.
    Completed(&'static str),
}

impl Followed for Eviction {
    fn resource_version(&self) -> &str {
        text(&self.0, "/metadata/resourceVersion")
    }
}

impl Eviction {
    /// Returns the namespace and the name.
    pub fn key(&self) -> (String, String) {
        let part = |path| text(&self.0, path).to_owned();
        (part("/metadata/namespace"), part("/metadata/name"))
    }

    /// Returns the pod to evict; `None` for a target of another kind.
    pub fn pod(&self) -> Option<v1::ObjectRef> {
        let pod = self.0.pointer("/spec/target/pod")?;
        Some(v1::ObjectRef {
            namespace: self.key().0,
            name: text(pod, "/name").to_owned(),
            uid: text(pod, "/uid").to_owned(),
        })
    }

    /// Returns what is expected of the responder.
    pub fn expected(&self) -> Expected {
        match self.own("targetResponders").map(|it| text(it, "/state")) {
            Some("Active") => Expected::Work,
            Some("Canceled" | "Interrupted") => Expected::End,
            Some(_) | None => Expected::Nothing,
        }
    }

    /// Returns when the responder has become active, and when it has last reported.
    pub fn times(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let own = self.own("responders");
        let time = |path| text(own?, path).parse().ok();
        (time("/startTime"), time("/heartbeatTime"))
    }

    /// The entry of the responder in a list of the status.
    fn own(&self, list: &str) -> Option<&Value> {
        let entries = self.0["status"][list].as_array()?;
        entries.iter().find(|it| it["name"] == RESPONDER)
    }
}

impl KubeCluster {
    /// Returns whether the API server serves Evictions, to anyone.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn serves_evictions(&self) -> Result<bool, ApiError> {
        let request = requests::read(requests::LIFECYCLE, codec::JSON)?;
        match self.read(request).await {
            Err(error) if error.code == Some(404) => Ok(false),
            served => served.map(|_| true),
        }
    }

    /// Learns whether these credentials can respond to Evictions, after a list of them or its failure. From then on, new pods of ReplicaSets
    /// that replace pods before evictions name the responder, or do not.
    ///
    /// # Errors
    /// The error of the API server, which changes nothing.
    pub async fn learn_to_respond(&self, listed: Result<(), &ApiError>) -> Result<(), ApiError> {
        let mut responds = match listed {
            Ok(()) => true,
            Err(error) if [Some(403), Some(404)].contains(&error.code) => false,
            Err(_) => return Ok(()),
        };
        for access in RESPONDER_ACCESSES {
            responds = responds && self.may(access, self.scope.namespace.as_deref()).await?;
        }
        self.responds.store(responds, Ordering::Relaxed);
        Ok(())
    }

    /// Returns whether new pods may name the responder.
    pub fn responds(&self) -> bool {
        self.responds.load(Ordering::Relaxed)
    }

    /// Tells all news of the Evictions that name the responder, and each failure: with 404 where the API server does not serve them, which
    /// may change.
    pub async fn follow_evictions<F: Future<Output = ()> + Send>(
        self,
        tell: impl FnMut(News<Eviction>) -> F + Send,
    ) -> Result<Infallible, ApiError> {
        let path = requests::evictions(self.scope.namespace.as_deref(), RESPONDER)?;
        Ok(Follower::new(self.reader, path, tell).follow().await)
    }

    /// Announces the eviction of a pod by its annotation.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn announce(&self, pod: &v1::ObjectRef) -> Result<(), ApiError> {
        let patch = json!({"metadata": {"uid": pod.uid, "annotations": {LEAVING: BY_RESPONDER}}});
        self.write(requests::patch_pod(pod, &patch)?).await
    }

    /// Takes back the announcement of an eviction, unless somebody else has announced it.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn take_back(&self, pod: &v1::ObjectRef) -> Result<(), ApiError> {
        // The memory of the API server may lack an announcement of a moment ago.
        let path = requests::pod_path(&pod.namespace, &pod.name)?;
        let found = match self.read(requests::read(&path, codec::JSON)?).await {
            Err(error) if error.code == Some(404) => return Ok(()),
            found => found?,
        };
        let metadata = &found["metadata"];
        if metadata["uid"] != pod.uid || metadata["annotations"][LEAVING] != BY_RESPONDER {
            return Ok(());
        }
        let version = &metadata["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version, "annotations": {LEAVING: Value::Null}}});
        self.write(requests::patch_pod(pod, &patch)?).await
    }

    /// Writes a report into the status of an Eviction, and of no later one of its name.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn report_progress(
        &self,
        eviction: &Eviction,
        now: Timestamp,
        progress: Progress,
    ) -> Result<(), ApiError> {
        let report = match progress {
            Progress::Works(until) => json!({
                "name": RESPONDER, "heartbeatTime": seconds(now),
                "expectedCompletionTime": until.map(seconds),
                "message": "waits until a replacement of the pod is available",
            }),
            Progress::Completed(message) => json!({
                "name": RESPONDER, "completionTime": seconds(now), "message": message,
            }),
        };
        let (namespace, name) = eviction.key();
        let uid = text(&eviction.0, "/metadata/uid");
        let patch = json!({"metadata": {"uid": uid}, "status": {"responders": [report]}});
        let request = requests::eviction_status(&namespace, &name, &patch)?;
        self.write(request).await
    }

    /// Returns the ReplicaSets with an annotation for replacements before evictions that have pods without the responder, each with the
    /// number of these pods: `None` where the API server does not serve Evictions. At most 500 pods of a ReplicaSet are looked at.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn without_responder(&self) -> Result<Option<Vec<(String, usize)>>, ApiError> {
        if !self.serves_evictions().await? {
            return Ok(None);
        }
        let (mut found, mut pages) = (Vec::new(), self.list(Kind::ReplicaSet));
        while let Some(page) = pages.next().await {
            let Items::ReplicaSets(sets) = page?.items else {
                continue;
            };
            let sets = sets.into_iter().map(|it| it.projected);
            for set in sets.filter(preferences::surges) {
                let selector = set.selector.as_ref().and_then(selector_text);
                let selector = selector.unwrap_or_default();
                let mut pods = self.pods(Some(&set.namespace), &selector).await?;
                pods.retain(|pod| is_of(pod, &set.uid) && !names_responder(pod));
                if !pods.is_empty() {
                    found.push((format!("{}/{}", set.namespace, set.name), pods.len()));
                }
            }
        }
        Ok(Some(found))
    }
}

fn is_of(pod: &Value, uid: &str) -> bool {
    let owners = pod["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|owners| owners.iter().any(|it| it["uid"] == uid))
}

fn names_responder(pod: &Value) -> bool {
    let responders = pod["spec"]["evictionResponders"].as_array();
    responders.is_some_and(|it| it.iter().any(|it| it["name"] == RESPONDER))
}

const fn access(verb: &'static str, subresource: &'static str) -> Access<'static> {
    Access {
        verb,
        group: "lifecycle.k8s.io",
        resource: "evictions",
        subresource,
        name: "",
    }
}
