//! The questions of inspection to a session. They change nothing.

use decree_api::v1;
use decree_core::{Answered, Timestamp, View};

use crate::{
    cause::{Flapping, Known, cause},
    config::Config,
    hello::SessionIdentity,
    report::Stats,
    session::Session,
    wire::{
        self,
        encode::{self, ClusterRef},
    },
};

/// The beginning of commands that only a cluster of Kubernetes has.
const KUBECTL: &str = "kubectl ";

impl Session {
    /// Returns up to `limit` ReplicaSets of a namespace, or of all namespaces for the empty text, after the namespace and name of `after`
    /// in that order.
    pub fn list(
        &self,
        now: Timestamp,
        after: (&str, &str),
        namespace: &str,
        limit: usize,
    ) -> Vec<v1::ReplicaSetSummary> {
        // A namespace begins after the empty name in it.
        let after = after.max((namespace, ""));
        let views = self.controller().inspect().views(now, Some(after), limit);
        let wanted = |view: &View| namespace.is_empty() || *view.key.namespace == *namespace;
        let views = views.into_iter().take_while(wanted);
        views.map(|view| self.summary(now, view)).collect()
    }

    fn summary(&self, now: Timestamp, view: View) -> v1::ReplicaSetSummary {
        let identity = &self.state.identity;
        let (timeline, uid) = (&self.state.timeline, &view.key.uid);
        let attempt = timeline.last_attempt(uid);
        let flapping = Flapping::of(now, timeline.changes(uid));
        let history = (attempt, flapping.as_ref());
        let mut summary = summarize(identity.cluster_ref(), now, view, identity.mode, history);
        if let Some(cause) = summary.cause.as_mut().filter(|_| !identity.is_kubernetes)
            && cause.next_command.starts_with(KUBECTL)
        {
            cause.next_command.clear();
        }
        summary
    }

    /// Returns one ReplicaSet with its last decisions; `None` if it is unknown.
    pub fn describe(
        &self,
        now: Timestamp,
        namespace: &str,
        name: &str,
    ) -> Option<v1::GetReplicaSetResponse> {
        let (state, inspect) = (&self.state, self.controller().inspect());
        let view = inspect.view(now, namespace, name)?;
        let in_flight = view.in_flight.zip(inspect.action_on(namespace, name));
        let in_flight = in_flight.map(|((operations, outcomes), action)| v1::BatchInFlight {
            action: wire::action_out(action).into(),
            operations: wire::int32(operations),
            outcomes: wire::int32(outcomes),
        });
        Some(v1::GetReplicaSetResponse {
            in_flight,
            next_sync_time: view.next_sync.map(encode::time),
            failures: wire::int32(view.failures),
            decisions: state.timeline.decisions(&view.key.uid),
            timeline: state.timeline.of(&view.key.uid),
            last_scale_down: state.timeline.last_scale_down(&view.key.uid),
            summary: Some(self.summary(now, view)),
            stale_view: None,
        })
    }

    /// Returns the differences of another controller for a ReplicaSet, or for all with empty names, the newest first, and the results of all
    /// comparisons. Returns `None` in other modes than SHADOW and ADVISE.
    pub fn differences(&self, namespace: &str, name: &str) -> Option<v1::ListDifferencesResponse> {
        let found = self.state.shadow.as_ref()?.found(namespace, name);
        let replica_sets = self.state.controller.inspect().sizes().replica_sets;
        Some(v1::ListDifferencesResponse {
            replica_sets: i64::try_from(replica_sets).unwrap_or(i64::MAX),
            start_time: Some(encode::time(self.state.identity.started)),
            ..found
        })
    }
}

/// Describes a ReplicaSet of a snapshot, which has no session: the cause is as the objects tell it.
pub fn summary_without_session(
    cluster: ClusterRef<'_>,
    now: Timestamp,
    view: View,
) -> v1::ReplicaSetSummary {
    summarize(cluster, now, view, v1::Mode::Unspecified, (None, None))
}

fn summarize(
    cluster: ClusterRef<'_>,
    now: Timestamp,
    mut view: View,
    mode: v1::Mode,
    (attempt, flapping): (Option<&Answered>, Option<&Flapping>),
) -> v1::ReplicaSetSummary {
    let (failures, unready) = (view.failures, view.unready.take());
    let mut summary = encode::summary(cluster, view);
    summary.set_mode(mode);
    let known = Known {
        now,
        failures,
        attempt,
        unready: unready.as_deref(),
        flapping,
    };
    summary.cause = Some(cause(&summary, &known));
    summary
}

impl Stats {
    /// Describes the session of an agent.
    pub fn summarize(&self, identity: &SessionIdentity, config: &Config) -> v1::SessionSummary {
        let Self {
            sizes,
            view_age,
            synced,
            pods_version,
            replica_sets_version,
            ..
        } = *self;
        let int = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        v1::SessionSummary {
            session_id: identity.session_id.clone(),
            cluster_uid: identity.cluster_uid.clone(),
            cluster_name: identity.cluster_name.clone(),
            shard: identity.shard.clone(),
            agent_instance: identity.agent_instance.clone(),
            epoch: identity.epoch,
            mode: identity.mode.into(),
            start_time: Some(encode::time(identity.started)),
            synced,
            replica_sets: int(sizes.replica_sets),
            pods: int(sizes.pods),
            batches_in_flight: int(sizes.batches_in_flight),
            pods_version: wire::version(pods_version),
            replica_sets_version: wire::version(replica_sets_version),
            view_age: view_age.map(encode::duration),
            memory_bytes: int(sizes.bytes),
            memory_bytes_max: int(config.bytes_max),
            objects_max: int(config.objects_max),
            age: None,
        }
    }
}
