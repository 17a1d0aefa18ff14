//! Pods, ReplicaSets and the frames with them in the messages of the contract, for tests without an agent.

use std::{borrow::Cow, time::Duration};

use decree_api::v1::{self, done::Object, event::Event, reconcile_request::Frame};
use server_session::Config;

/// The number of objects in a frame of a list.
const PAGE: usize = 500;

/// Builds a ReplicaSet of `default` that selects `app=NAME`.
#[derive(Clone, Debug)]
pub struct ReplicaSetBuilder(v1::ReplicaSet);

/// Builds a pod of `default`.
#[derive(Clone, Debug)]
pub struct PodBuilder(v1::Pod);

/// Returns the options of a session that replaces lost pods at once.
pub fn replacing_at_once() -> v1::Options {
    v1::Options {
        create_back_off: Some(false),
        ..v1::Options::default()
    }
}

/// Returns the settings of a session with the defaults of a server, and few objects.
pub const fn session_config() -> Config {
    Config {
        server_version: Cow::Borrowed("tested"),
        frame_bytes_max: 4 << 20,
        objects_max: 1_000,
        operations_in_flight_max: 10_000,
        bytes_max: usize::MAX,
        backoff_max: Duration::from_secs(30),
        heartbeat_interval: Duration::from_secs(5),
        drain_deadline: Duration::from_secs(20),
        reconnect_after: Duration::from_secs(1),
    }
}

/// Starts a ReplicaSet with no desired replicas and an up-to-date status.
pub fn replica_set(name: &str) -> ReplicaSetBuilder {
    let app = [("app".to_owned(), name.to_owned())];
    ReplicaSetBuilder(v1::ReplicaSet {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: format!("{name}-uid"),
        resource_version: "10".to_owned(),
        generation: 1,
        replicas: Some(0),
        selector: Some(v1::LabelSelector {
            match_labels: app.clone().into(),
            match_expressions: Vec::new(),
        }),
        template_labels: app.into(),
        status: Some(v1::ReplicaSetStatus {
            observed_generation: 1,
            terminating_replicas: Some(0),
            ..v1::ReplicaSetStatus::default()
        }),
        ..v1::ReplicaSet::default()
    })
}

/// Starts a running, ready pod that a ReplicaSet controls.
pub fn pod(name: &str, owner: &str) -> PodBuilder {
    let ready = v1::ReadyCondition {
        ready: true,
        last_transition_time: Some(prost_types::Timestamp {
            seconds: 1_700_000_000,
            nanos: 0,
        }),
    };
    PodBuilder(v1::Pod {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: format!("{name}-uid"),
        resource_version: "11".to_owned(),
        labels: [("app".to_owned(), owner.to_owned())].into(),
        controller: Some(v1::OwnerReference {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            name: owner.to_owned(),
            uid: format!("{owner}-uid"),
            block_owner_deletion: Some(true),
        }),
        creation_timestamp: Some(prost_types::Timestamp {
            seconds: 1_700_000_000,
            nanos: 0,
        }),
        node_name: "node-a".to_owned(),
        phase: v1::PodPhase::Running.into(),
        ready: Some(ready),
        ..v1::Pod::default()
    })
}

/// Returns the reference to a pod.
pub fn pod_ref(pod: &v1::Pod) -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
    }
}

/// Returns the reference to a ReplicaSet.
pub fn set_ref(set: &v1::ReplicaSet) -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: set.namespace.clone(),
        name: set.name.clone(),
        uid: set.uid.clone(),
    }
}

/// Returns the Hello of the only agent of a cluster.
pub fn hello(cluster: &str) -> v1::Hello {
    v1::Hello {
        protocol_min: 1,
        protocol_max: 1,
        agent_instance: cluster.to_owned(),
        cluster_uid: cluster.to_owned(),
        ..v1::Hello::default()
    }
}

/// Returns a frame with events.
pub fn events(events: impl IntoIterator<Item = Event>) -> Frame {
    let events = events
        .into_iter()
        .map(|event| v1::Event { event: Some(event) });
    Frame::Events(v1::Events {
        events: events.collect(),
    })
}

/// Returns the frames of the lists of both kinds, which end at a version.
pub fn lists(
    replica_sets: &[v1::ReplicaSet],
    pods: &[v1::Pod],
    version: &str,
) -> impl Iterator<Item = Frame> {
    let page = |replica_sets: &[v1::ReplicaSet], pods: &[v1::Pod]| {
        Frame::SnapshotObjects(v1::SnapshotObjects {
            replica_sets: replica_sets.to_vec(),
            pods: pods.to_vec(),
        })
    };
    let counts = [
        (v1::Kind::ReplicaSet.into(), replica_sets.len()),
        (v1::Kind::Pod.into(), pods.len()),
    ];
    let begin = |(kind, _)| Frame::SnapshotBegin(v1::SnapshotBegin { kind });
    let end = |(kind, count)| {
        Frame::SnapshotEnd(v1::SnapshotEnd {
            kind,
            resource_version: version.to_owned(),
            count: i64::try_from(count).expect("lists are small"),
        })
    };
    let sets = replica_sets.chunks(PAGE).map(move |sets| page(sets, &[]));
    let pods = pods.chunks(PAGE).map(move |pods| page(&[], pods));
    let begins = counts.into_iter().map(begin);
    let ends = counts.into_iter().map(end);
    begins.chain(sets).chain(pods).chain(ends)
}

/// Returns the frame with the successes of all operations of a batch.
pub fn done(batch_id: u64, objects: Vec<Object>) -> Frame {
    let outcome = |(operation, object)| {
        let (uid, resource_version) = match &object {
            Object::Pod(pod) => (pod.uid.clone(), pod.resource_version.clone()),
            Object::ReplicaSet(set) => (set.uid.clone(), set.resource_version.clone()),
            Object::Gone(_) => (String::new(), String::new()),
        };
        v1::Outcome {
            batch_id,
            operation,
            outcome: Some(v1::outcome::Outcome::Done(v1::Done {
                uid,
                resource_version,
                object: Some(object),
                already_existed: false,
            })),
        }
    };
    let outcomes = (0..).zip(objects).map(outcome).collect();
    Frame::Outcomes(v1::Outcomes { outcomes })
}

impl ReplicaSetBuilder {
    /// Sets the pods in its status, all of them ready.
    pub fn ready(mut self, pods: i32) -> Self {
        if let Some(status) = &mut self.0.status {
            status.replicas = pods;
            status.fully_labeled_replicas = pods;
            status.ready_replicas = pods;
            status.available_replicas = pods;
        }
        self
    }

    /// Sets the desired replicas.
    pub fn replicas(mut self, replicas: i32) -> Self {
        self.0.replicas = Some(replicas);
        self
    }

    /// Moves it to another namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.0.namespace);
        self
    }

    /// Returns the message.
    pub fn build(self) -> v1::ReplicaSet {
        self.0
    }
}

impl PodBuilder {
    /// Sets the version.
    pub fn version(mut self, version: u64) -> Self {
        self.0.resource_version = version.to_string();
        self
    }

    /// Returns the message.
    pub fn build(self) -> v1::Pod {
        self.0
    }
}
