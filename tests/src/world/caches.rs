//! The watch caches of the API servers. Each cache lags behind the store, by a separate time for each kind, and never goes back.
//!
//! A watch reports what its cache has received. Lists without a version are read from the store, and lists with
//! `resourceVersion=0` from a cache.

use std::time::Duration;

use agent_core::{
    api,
    watch::{Items, List, Part, WatchEvent},
};
use agent_fake::{ApiError, Cluster, EventKind, Object};
use decree_agent::cluster::fake::calls;
use jiff::Timestamp;

use crate::rng::Rng;

/// The caches of all API servers, and the history of their store.
#[derive(Debug, Default)]
pub(super) struct Caches {
    servers: Vec<ApiServer>,
    /// The time at which the store reached each version.
    reached: Vec<(u64, Timestamp)>,
    /// The state at each version, if lists are read from caches.
    states: Option<Vec<[Vec<Object>; 2]>>,
}

#[derive(Clone, Debug)]
struct ApiServer {
    /// The lag of the cache of each kind.
    lags: [Duration; 2],
    /// The version with which its caches begin.
    begins: u64,
}

impl Caches {
    /// Draws the lags, at most `lag_max`, of the caches of `servers` API servers. `lists`: whether lists are read from the
    /// caches.
    pub(super) fn new(rng: &mut Rng, servers: usize, lag_max: Duration, lists: bool) -> Self {
        let mut server = || ApiServer {
            lags: [rng.delay(lag_max), rng.delay(lag_max)],
            begins: 0,
        };
        Self {
            servers: (0..servers).map(|_| server()).collect(),
            reached: Vec::new(),
            states: lists.then(Vec::new),
        }
    }

    /// Sets the lags of all caches: of pods, and of ReplicaSets.
    pub(super) fn lag(&mut self, pods: Duration, replica_sets: Duration) {
        for server in &mut self.servers {
            server.lags[api::Kind::Pod as usize] = pods;
            server.lags[api::Kind::ReplicaSet as usize] = replica_sets;
        }
    }

    /// Notes the state of the store.
    pub(super) fn note(&mut self, now: Timestamp, cluster: &Cluster) {
        let version = cluster.version();
        if self
            .reached
            .last()
            .is_some_and(|(last, _)| *last == version)
        {
            return;
        }
        self.reached.push((version, now));
        if let Some(states) = &mut self.states {
            let held = |kind| cluster.objects(calls::kind_of(kind)).cloned().collect();
            states.push(api::Kind::ALL.map(held));
        }
    }

    /// Picks an API server as a load balancer does.
    pub(super) fn pick(&self, rng: &mut Rng) -> usize {
        match self.servers.len() {
            0 | 1 => 0,
            many => rng.between(0, many as u64 - 1) as usize,
        }
    }

    /// The refusal of a watch that starts before the history of the cache.
    pub(super) fn check(&self, server: usize, from: u64) -> Result<(), ApiError> {
        let begins = self.servers.get(server).map_or(0, |it| it.begins);
        if from >= begins {
            return Ok(());
        }
        let text = format!("too old resource version: {from} ({begins})");
        Err(ApiError::new(410, "Expired", text))
    }

    /// The time at which a cache receives a version.
    pub(super) fn told_at(&self, server: usize, kind: api::Kind, version: u64) -> Timestamp {
        let place = self.reached.partition_point(|(it, _)| *it < version);
        let reached = self.reached.get(place).or_else(|| self.reached.last());
        let lag = self.servers.get(server).map(|it| it.lags[kind as usize]);
        reached.map_or(Timestamp::MIN, |(_, at)| *at + lag.unwrap_or_default())
    }

    /// Restarts all API servers with a store at another version, without the history of the old one.
    pub(super) fn begin_anew(&mut self, version: u64) {
        self.reached.clear();
        self.states.iter_mut().for_each(Vec::clear);
        self.servers.iter_mut().for_each(|it| it.begins = version);
    }

    /// Restarts an API server: its caches have no history.
    pub(super) fn restart(&mut self, server: usize, version: u64) {
        if let Some(server) = self.servers.get_mut(server) {
            server.begins = version;
        }
    }

    /// A list from a cache; `None` if the cache has not begun, or lists are not read from caches.
    pub(super) fn list(&self, server: usize, now: Timestamp, kind: api::Kind) -> Option<List> {
        let it = self.servers.get(server)?;
        let told = self
            .reached
            .partition_point(|(_, at)| *at + it.lags[kind as usize] <= now);
        let place = told.checked_sub(1)?;
        let (version, _) = self.reached[place];
        let objects = &self.states.as_ref()?.get(place)?[kind as usize];
        (version >= it.begins).then(|| list_of(kind, objects, version))
    }
}

fn list_of(kind: api::Kind, objects: &[Object], version: u64) -> List {
    let (mut pods, mut sets, mut invalid) = (Vec::new(), Vec::new(), Vec::new());
    for object in objects {
        let event = agent_fake::WatchEvent {
            kind: EventKind::Added,
            object: object.clone(),
        };
        match calls::event(&event) {
            WatchEvent::Applied(object) | WatchEvent::MadeByOther { object, .. } => match object {
                api::Object::Pod(pod) => pods.push(*pod),
                api::Object::ReplicaSet(set) => sets.push(*set),
            },
            WatchEvent::Invalid { error, .. } => invalid.push(error),
            WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
        }
    }
    List {
        part: Part::WHOLE,
        items: match kind {
            api::Kind::Pod => Items::Pods(pods.into_iter().collect()),
            api::Kind::ReplicaSet => Items::ReplicaSets(sets),
        },
        invalid,
        resource_version: version.to_string(),
    }
}
