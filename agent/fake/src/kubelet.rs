//! The scheduler and the kubelets: they take pods from Pending to Running to Ready, and stop them.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{
    Cluster, Object,
    error::ApiError,
    kind::Kind,
    object::{self, Condition, set_condition},
    patch,
    store::Place,
    timeline::{PodRef, Task},
};

/// What a kubelet finds at its containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Containers {
    Started,
    Ready,
    Stopped { exit_code: i32 },
}

// === impl Cluster: what tests and the demo do to pods ===

impl Cluster {
    /// Merges `status` into the status of a pod, as a kubelet would write it.
    ///
    /// # Errors
    /// 404 if there is no such pod; 400 if the result is no status.
    pub fn set_pod_status(
        &mut self,
        namespace: &str,
        name: &str,
        status: &Value,
    ) -> Result<Object, ApiError> {
        let pod = self.found(Kind::Pod, &Place::new(namespace, name))?;
        let mut new = Value::clone(&pod);
        patch::merge(&mut new["status"], status);
        crate::validate::shape(Kind::Pod, &new)?;
        Ok(self.change(Kind::Pod, &pod, new))
    }

    /// Ends a pod badly, as an eviction by its kubelet does; it stays as an object.
    ///
    /// # Errors
    /// 404 if there is no such pod.
    pub fn fail_pod(
        &mut self,
        namespace: &str,
        name: &str,
        reason: &str,
    ) -> Result<Object, ApiError> {
        let pod = self.found(Kind::Pod, &Place::new(namespace, name))?;
        let mut failed = self.observe(&pod, Containers::Stopped { exit_code: 137 });
        failed["status"]["reason"] = reason.into();
        Ok(self.change(Kind::Pod, &pod, failed))
    }

    /// Adds a restart to the pod's first container.
    ///
    /// # Errors
    /// 404 if there is no such pod, 409 if no container of it has started.
    pub fn restart_pod(&mut self, namespace: &str, name: &str) -> Result<Object, ApiError> {
        let pod = self.found(Kind::Pod, &Place::new(namespace, name))?;
        let restarts = pod["status"]["containerStatuses"][0]["restartCount"].as_i64();
        let Some(restarts) = restarts else {
            return Err(ApiError::conflict(
                Kind::Pod,
                name,
                "no container has started",
            ));
        };
        let mut new = Value::clone(&pod);
        new["status"]["containerStatuses"][0]["restartCount"] = restarts.saturating_add(1).into();
        Ok(self.change(Kind::Pod, &pod, new))
    }

    /// Removes a pod without grace, finalizers and all.
    ///
    /// # Errors
    /// 404 if there is no such pod.
    pub fn remove_pod_now(&mut self, namespace: &str, name: &str) -> Result<Object, ApiError> {
        let pod = self.found(Kind::Pod, &Place::new(namespace, name))?;
        Ok(self.remove(Kind::Pod, &pod))
    }
}

// === impl Cluster: the controllers' steps ===

impl Cluster {
    /// Sets the next step of a pod going, as far as it has come.
    pub(crate) fn attend(&mut self, pod: &Object) {
        let pace = self.config.kubelet.clone();
        let (delay, task): (_, fn(PodRef) -> Task) = match object::phase(pod) {
            _ if object::is_deleting(pod) => (self.grace(pod), Task::Stop),
            "Pending" if object::node(pod).is_empty() => (pace.schedule_after, Task::Bind),
            "Pending" => (pace.start_after, Task::Start),
            "Running" if !is_ready(pod) => (pace.ready_after, Task::Ready),
            _ => return,
        };
        let delay = self.jittered(delay);
        self.timeline.after(delay, task(pod_ref(pod)));
    }

    /// Takes a pod up again whose node was away.
    pub(crate) fn revive(&mut self, pod: &Object) {
        let lost = object::phase(pod) == "Unknown" && !object::is_deleting(pod);
        if !lost {
            self.attend(pod);
            return;
        }
        let started = pod["status"]["containerStatuses"].is_array();
        let phase = if started { "Running" } else { "Pending" };
        let mut new = Value::clone(pod);
        let status = object::fields(&mut new, "status");
        status.insert("phase".to_owned(), phase.into());
        status.shift_remove("reason");
        status.shift_remove("message");
        let pod = self.change(Kind::Pod, pod, new);
        self.attend(&pod);
    }

    /// Lets the scheduler look again at what found no node.
    pub(crate) fn wake_unassigned(&mut self) {
        for place in self.store.pods_on("") {
            if let Some(pod) = self.store.find(Kind::Pod, &place).cloned() {
                let waits = pod["status"]["conditions"].is_array();
                if waits && object::phase(&pod) == "Pending" {
                    self.attend(&pod);
                }
            }
        }
    }

    pub(crate) fn bind(&mut self, pod: &PodRef) {
        let Some(pod) = self
            .live(pod, "Pending")
            .filter(|pod| object::node(pod).is_empty())
        else {
            return;
        };
        let mut bound = Value::clone(&pod);
        if let Some(node) = self.choose_node() {
            object::fields(&mut bound, "spec").insert("nodeName".to_owned(), node.into());
            let condition = Condition {
                status: "True",
                ..Condition::default()
            };
            set_condition(&mut bound, self.now(), "PodScheduled", condition);
        } else {
            let message = format!("0/{} nodes are available.", self.nodes.len());
            let condition = Condition {
                status: "False",
                reason: "Unschedulable",
                message: &message,
            };
            set_condition(&mut bound, self.now(), "PodScheduled", condition);
        }
        self.change(Kind::Pod, &pod, bound);
    }

    pub(crate) fn start(&mut self, pod: &PodRef) {
        if let Some(pod) = self
            .live(pod, "Pending")
            .filter(|pod| self.is_up(object::node(pod)))
        {
            let at_once = self.config.kubelet.ready_after.is_zero();
            let found = if at_once {
                Containers::Ready
            } else {
                Containers::Started
            };
            let started = self.observe(&pod, found);
            self.change(Kind::Pod, &pod, started);
        }
    }

    pub(crate) fn become_ready(&mut self, pod: &PodRef) {
        if let Some(pod) = self
            .live(pod, "Running")
            .filter(|pod| self.is_up(object::node(pod)))
        {
            let ready = self.observe(&pod, Containers::Ready);
            self.change(Kind::Pod, &pod, ready);
        }
    }

    /// Stops a pod that was asked to go: first its last status, then the end of its grace, as a kubelet does.
    pub(crate) fn stop(&mut self, pod: &PodRef) {
        let Some(pod) = self.find_pod(pod).filter(|pod| object::is_deleting(pod)) else {
            return;
        };
        if !self.is_up(object::node(&pod)) {
            return;
        }
        let mut stopped = pod.clone();
        if !object::has_ended(&pod) {
            let last = self.observe(&pod, Containers::Stopped { exit_code: 0 });
            stopped = self.change(Kind::Pod, &pod, last);
        }
        self.end_grace(&stopped);
    }

    fn find_pod(&self, pod: &PodRef) -> Option<Object> {
        let found = self.store.find(Kind::Pod, &pod.place);
        found.filter(|found| object::uid(found) == pod.uid).cloned()
    }

    fn live(&self, pod: &PodRef, phase: &str) -> Option<Object> {
        let pod = self.find_pod(pod)?;
        (!object::is_deleting(&pod) && object::phase(&pod) == phase).then_some(pod)
    }

    fn grace(&self, pod: &Value) -> Duration {
        let own = pod["metadata"]["deletionGracePeriodSeconds"].as_u64();
        let own = Duration::from_secs(own.unwrap_or(0));
        if self.config.kubelet.grace == Duration::MAX {
            Duration::MAX
        } else {
            own.min(self.config.kubelet.grace)
        }
    }

    fn jittered(&mut self, delay: Duration) -> Duration {
        let jitter = u64::try_from(self.config.kubelet.jitter.as_nanos()).unwrap_or(u64::MAX);
        let extra = if jitter == 0 {
            0
        } else {
            self.chance.below(jitter)
        };
        delay.saturating_add(Duration::from_nanos(extra))
    }

    /// Writes down what a kubelet finds: phase, conditions and container statuses.
    fn observe(&self, pod: &Object, found: Containers) -> Value {
        let now = self.now();
        let mut new = Value::clone(pod);
        let (phase, ready, reason) = match found {
            Containers::Started => ("Running", "False", "ContainersNotReady"),
            Containers::Ready => ("Running", "True", ""),
            Containers::Stopped { exit_code: 0 } => ("Succeeded", "False", "PodCompleted"),
            Containers::Stopped { .. } => ("Failed", "False", "PodFailed"),
        };
        let yes = Condition {
            status: "True",
            ..Condition::default()
        };
        set_condition(&mut new, now, "Initialized", yes);
        for kind in ["Ready", "ContainersReady"] {
            set_condition(
                &mut new,
                now,
                kind,
                Condition {
                    status: ready,
                    reason,
                    message: "",
                },
            );
        }
        let containers = statuses(
            pod,
            "containers",
            "containerStatuses",
            found,
            &object::time(now),
        );
        let sidecars = statuses(
            pod,
            "initContainers",
            "initContainerStatuses",
            found,
            &object::time(now),
        );
        let status = object::fields(&mut new, "status");
        status.insert("phase".to_owned(), phase.into());
        status
            .entry("startTime")
            .or_insert_with(|| object::time(now));
        status.insert("containerStatuses".to_owned(), containers.into());
        if !sidecars.is_empty() {
            status.insert("initContainerStatuses".to_owned(), sidecars.into());
        }
        new
    }
}

/// Returns the statuses of a pod's containers of one list; restarts are carried over.
fn statuses(pod: &Value, list: &str, known: &str, found: Containers, now: &Value) -> Vec<Value> {
    let containers = pod["spec"][list].as_array();
    let known = pod["status"][known].as_array();
    let status = |container: &Value| {
        let mut known = known.into_iter().flatten();
        let old = known.find(|it| it["name"] == container["name"]);
        let runs_once = list == "initContainers" && container["restartPolicy"] != "Always";
        container_status(
            container,
            old,
            if runs_once {
                Containers::Stopped { exit_code: 0 }
            } else {
                found
            },
            now,
        )
    };
    containers.into_iter().flatten().map(status).collect()
}

fn container_status(
    container: &Value,
    old: Option<&Value>,
    found: Containers,
    now: &Value,
) -> Value {
    let since = old.map_or(now, |old| &old["state"]["running"]["startedAt"]);
    let since = if since.is_null() { now } else { since };
    let mut state = Map::new();
    match found {
        Containers::Started | Containers::Ready => {
            state.insert("running".to_owned(), json!({"startedAt": since}));
        }
        Containers::Stopped { exit_code } => {
            let reason = if exit_code == 0 { "Completed" } else { "Error" };
            let end = json!({"exitCode": exit_code, "reason": reason, "startedAt": since, "finishedAt": now});
            state.insert("terminated".to_owned(), end);
        }
    }
    let runs = found == Containers::Started || found == Containers::Ready;
    json!({
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": found == Containers::Ready,
        "started": runs,
        "restartCount": old.and_then(|old| old["restartCount"].as_i64()).unwrap_or(0),
        "state": state,
        "lastState": {},
    })
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}

fn pod_ref(pod: &Value) -> PodRef {
    PodRef {
        place: Place::of(pod),
        uid: object::uid(pod).to_owned(),
    }
}
