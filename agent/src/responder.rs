//! The responder to Evictions: it announces the eviction of a pod to the server, which replaces the pod, and reports until the pod is gone.
//!
//! ```text
//! Eviction: Active ─▶ pod: decree.dev/leaving ─▶ replacement ─▶ deletion ─▶ Eviction: Completed
//!           Canceled ─▶ the annotation goes
//! ```
//! It follows from the state of the Eviction and of the pod alone, and is repeated while it fails.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    mem::take,
    time::Duration,
};

use agent_core::{
    agent::AgentConfig,
    api::{ApiError, Reply, Request},
    cluster::Cluster as _,
    pace::since,
    preferences::surges,
};
use agent_kube::{Change, Eviction, Expected, KubeCluster, News, Progress};
use decree_api::v1;
use jiff::Timestamp;
use tokio::{
    select,
    sync::{mpsc, oneshot},
    time::{MissedTickBehavior, interval},
};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use crate::{
    log::{self, CLUSTER},
    metrics::Metrics,
    shell::ShellConfig,
};

/// The least time between two reports on an Eviction, which the API demands.
const REPORT_EVERY: Duration = Duration::from_secs(20);
const KIND: &str = "evictions";
const ENDED: &str = "the pod has ended";
const NOT_OURS: &str = "no ReplicaSet replaces the pod before its eviction";

/// The responder of an agent. It acts on all Evictions that name it.
#[derive(Debug)]
pub(crate) struct Responder {
    cluster: KubeCluster,
    config: AgentConfig,
    metrics: Metrics,
}

/// The Evictions that are to be acted on again, by namespace and name.
type Pending = BTreeMap<(String, String), (Eviction, Expected)>;

/// What the responder does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    /// It announces the eviction of the pod.
    announces: bool,
    reports: Option<Progress>,
}

impl Responder {
    /// Starts the responder of an agent. Returns after the first list of Evictions or its failure, so that the first pods name the responder
    /// where they may; `None` if the agent replaces no pods before their eviction.
    pub(crate) async fn start(
        config: &ShellConfig,
        cluster: &KubeCluster,
    ) -> Option<AbortOnDropHandle<Infallible>> {
        if config.agent.mode != v1::Mode::Enforce || config.agent.nodes.is_none() {
            return None;
        }
        let responder = Self {
            cluster: cluster.clone(),
            config: config.agent.clone(),
            metrics: config.metrics.clone(),
        };
        let (begins, begun) = oneshot::channel();
        let task = AbortOnDropHandle::new(tokio::spawn(responder.respond(begins)));
        // It is dropped, which is the signal.
        let _ = begun.await;
        Some(task)
    }

    /// Drops `begins` after the first news.
    async fn respond(self, begins: oneshot::Sender<Infallible>) -> Infallible {
        let (sender, mut news) = mpsc::channel(1);
        let tell = move |news| {
            let sender = sender.clone();
            async move { drop(sender.send(news).await) }
        };
        let follow = self.cluster.clone().follow_evictions(tell);
        let _reader = AbortOnDropHandle::new(tokio::spawn(follow));
        let (mut begins, mut is_listed, mut pending) = (Some(begins), false, Pending::new());
        let mut again = interval(REPORT_EVERY);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let due = select! {
                Some(news) = news.recv() => {
                    match &news {
                        Ok(Some(Change::Listed(_))) => {
                            is_listed = true;
                            self.learn(Ok(())).await;
                        }
                        Err((_, error)) => {
                            is_listed = false;
                            self.learn(Err(error)).await;
                        }
                        Ok(_) => {}
                    }
                    drop(begins.take());
                    self.due(news, &mut pending)
                }
                _ = again.tick() => {
                    if is_listed && !self.cluster.responds() {
                        self.learn(Ok(())).await;
                    }
                    take(&mut pending).into_values().collect()
                }
            };
            for (eviction, expected) in due {
                let key = eviction.key();
                if self.act(&eviction, expected).await {
                    pending.insert(key, (eviction, expected));
                } else {
                    pending.remove(&key);
                }
            }
        }
    }

    /// Learns whether new pods may name the responder. After a failure, that is asked again soon.
    async fn learn(&self, listed: Result<(), &ApiError>) {
        if let Err(error) = self.cluster.learn_to_respond(listed).await {
            log::read_failed("selfsubjectaccessreviews", "create", &error);
        }
    }

    /// The Evictions that news are about, and what is expected for each.
    fn due(&self, news: News<Eviction>, pending: &mut Pending) -> Vec<(Eviction, Expected)> {
        let listed = match news {
            Ok(None) => return Vec::new(),
            Ok(Some(Change::Applied(eviction))) => {
                let expected = eviction.expected();
                return vec![(eviction, expected)];
            }
            Ok(Some(Change::Deleted(eviction))) => return vec![(eviction, Expected::End)],
            Ok(Some(Change::Listed(listed))) => listed,
            // The API server does not serve Evictions.
            Err((_, error)) if error.code == Some(404) => Vec::new(),
            Err((verb, error)) => {
                self.metrics.count_read_failure(KIND, verb, error.code);
                log::read_failed(KIND, verb, &error);
                return Vec::new();
            }
        };
        let mut gone = take(pending);
        let there: BTreeSet<_> = listed.iter().map(Eviction::key).collect();
        gone.retain(|key, _| !there.contains(key));
        let gone = gone.into_values().map(|(it, _)| (it, Expected::End));
        let listed = listed.into_iter().map(|it| {
            let expected = it.expected();
            (it, expected)
        });
        gone.chain(listed).collect()
    }

    /// Does what is expected now. Returns whether that is to be repeated.
    async fn act(&self, eviction: &Eviction, expected: Expected) -> bool {
        let (namespace, name) = eviction.key();
        let Some(pod) = eviction
            .pod()
            .filter(|_| self.config.allows_namespace(&namespace))
        else {
            return false;
        };
        let done = match expected {
            Expected::Nothing => Ok(()),
            Expected::Work => self.work(eviction, &pod).await,
            Expected::End => self.cluster.take_back(&pod).await,
        };
        if let Err(error) = &done {
            warn!(peer = CLUSTER, %namespace, eviction = %name, %error, "the agent tries again");
        }
        expected == Expected::Work || done.is_err()
    }

    async fn work(&self, eviction: &Eviction, target: &v1::ObjectRef) -> Result<(), ApiError> {
        let now = Timestamp::now();
        let pod = self.pod(target).await?;
        let set = match &pod {
            Some(pod) => self.replica_set(pod).await?,
            None => None,
        };
        let step = step(eviction, (pod.as_ref(), set.as_ref()), now);
        let (namespace, name) = (&target.namespace, &target.name);
        if step.announces {
            self.cluster.announce(target).await?;
            info!(%namespace, pod = %name, "the pod is replaced before its eviction");
        }
        let Some(progress) = step.reports else {
            return Ok(());
        };
        if let Progress::Completed(why) = progress {
            info!(%namespace, pod = %name, why, "the eviction is completed");
        }
        self.cluster.report_progress(eviction, now, progress).await
    }

    /// The pod, unless it has ended.
    async fn pod(&self, target: &v1::ObjectRef) -> Result<Option<v1::Pod>, ApiError> {
        let (namespace, name) = (target.namespace.clone(), target.name.clone());
        let read = Request::ReadPod { namespace, name };
        let pod = match self.cluster.call(read).await {
            Err(error) if error.code == Some(404) => return Ok(None),
            Ok(Reply::Pod(pod)) => *pod,
            other => return other.map(|_| None),
        };
        let has_ended = [v1::PodPhase::Succeeded, v1::PodPhase::Failed].contains(&pod.phase());
        Ok((pod.uid == target.uid && !has_ended).then_some(pod))
    }

    /// The ReplicaSet that controls a pod, with the preferences that the agent follows.
    async fn replica_set(&self, pod: &v1::Pod) -> Result<Option<v1::ReplicaSet>, ApiError> {
        let Some(owner) = pod.controller.as_ref().filter(|it| it.kind == "ReplicaSet") else {
            return Ok(None);
        };
        let (namespace, name) = (pod.namespace.clone(), owner.name.clone());
        let read = Request::ReadReplicaSet { namespace, name };
        let mut set = match self.cluster.call(read).await {
            Err(error) if error.code == Some(404) => return Ok(None),
            Ok(Reply::ReplicaSet(set)) => set.projected,
            other => return other.map(|_| None),
        };
        let nodes = self.config.nodes.as_ref();
        self.config.preferences.apply(&mut set, nodes);
        Ok(Some(set).filter(|it| it.uid == owner.uid))
    }
}

/// The next step for an active responder. The pod is absent once it has ended, and the ReplicaSet if none controls the pod.
fn step(
    eviction: &Eviction,
    found: (Option<&v1::Pod>, Option<&v1::ReplicaSet>),
    now: Timestamp,
) -> Step {
    let completed = |why| Step {
        announces: false,
        reports: Some(Progress::Completed(why)),
    };
    let (pod, set) = match found {
        (None, _) => return completed(ENDED),
        (Some(pod), Some(set)) if surges(set) => (pod, set),
        (Some(_), _) => return completed(NOT_OURS),
    };
    let (started, reported) = eviction.times();
    let is_due = reported.is_none_or(|at| since(now, at) >= REPORT_EVERY);
    let until = started.and_then(|it| it.checked_add(readying(pod, set)?).ok());
    Step {
        announces: !pod.leaving && pod.deletion_timestamp.is_none(),
        reports: is_due.then_some(Progress::Works(until.filter(|until| *until > now))),
    }
}

/// How long the pod took until it was available: an estimate for its replacement.
fn readying(pod: &v1::Pod, set: &v1::ReplicaSet) -> Option<Duration> {
    let ready = pod.ready.as_ref().filter(|it| it.ready)?;
    let (ready, created) = (ready.last_transition_time?, pod.creation_timestamp?);
    let seconds = ready.seconds.checked_sub(created.seconds)?;
    let seconds = seconds.checked_add(set.min_ready_seconds.into())?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests;
