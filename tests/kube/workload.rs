//! A workload that makes an agent send every kind of request.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use serde_json::{Value, json};
use tests::real::{Agent, ApiServer, DecisionServer, LOOK_EVERY, Namespace, PATIENCE, Proxy};
use tokio::time;

use crate::{
    acts,
    audit::{Audit, Mark},
    objects,
    rendered::SYSTEM,
};

pub(crate) const ACCOUNT: &str = "decree-agent";
const SET: &str = "web";

/// The refused requests of the agent.
pub(crate) type Refused = BTreeSet<String>;

/// A namespace, and an agent that runs as the service account `decree-agent` of its system namespace.
#[derive(Debug)]
pub(crate) struct Workload {
    namespace: Namespace,
    /// The namespace of the service account, the Lease and the probe.
    system: String,
    audit: Arc<Audit>,
    proxy: Proxy,
    agent: Agent,
    _server: DecisionServer,
    since: Mark,
    replicas: u32,
}

/// The user name of the shipped agent at the API server.
pub(crate) fn user() -> String {
    user_of(SYSTEM)
}

pub(crate) fn user_of(system: &str) -> String {
    format!("system:serviceaccount:{system}:{ACCOUNT}")
}

impl Workload {
    /// Starts with a ReplicaSet, an orphan for it, and an agent with the shipped flags and further ones.
    pub(crate) async fn begin(
        cluster: &ApiServer,
        namespace: &Namespace,
        system: &str,
        flags: &[&str],
        audit: &Arc<Audit>,
    ) -> Self {
        acts::create_pod(namespace, &objects::pod("orphan")).await;
        acts::create_set(namespace, &objects::replica_set(SET, 2)).await;
        let kubeconfig = cluster.service_account(system, ACCOUNT).await;
        let url = cluster.url();
        let proxy = Proxy::start(url.trim_start_matches("https://"));
        let (since, server) = (audit.mark(), DecisionServer::start());
        let flags = [&["--lease-namespace", system][..], flags].concat();
        let agent = Agent::start(&server, &proxy.kubeconfig(&kubeconfig, &url), &flags);
        Self {
            namespace: namespace.clone(),
            system: system.to_owned(),
            audit: Arc::clone(audit),
            proxy,
            agent,
            _server: server,
            since,
            replicas: 2,
        }
    }

    /// Runs the whole workload, until a request of the agent is refused.
    pub(crate) async fn run(&mut self) -> Result<(), Refused> {
        let (orphan, events) = (self.namespace.pod("orphan"), self.events());
        self.reaches("the orphan adopted", &orphan, |pod| {
            pod["metadata"]["ownerReferences"].is_array()
        })
        .await?;
        self.status_follows().await?;
        self.reaches("an event", &events, |list| {
            has_event(list, |event| event["reason"] == "SuccessfulCreate")
        })
        .await?;
        self.reaches("a renewed lease", &self.lease(), |lease| {
            lease["spec"]["renewTime"] != lease["spec"]["acquireTime"]
        })
        .await?;

        let labels = json!({"metadata": {"labels": {"app": "another"}}});
        acts::patch_pod(&self.namespace, &objects::pod("orphan"), &labels).await;
        self.reaches("the former orphan released", &orphan, |pod| {
            pod["metadata"]["ownerReferences"].is_null()
        })
        .await?;
        self.scale(14).await;
        self.status_follows().await?;
        // More events of a kind than are written one by one.
        self.reaches("an event counted up", &events, |list| {
            has_event(list, |event| event["count"].as_u64() > Some(1))
        })
        .await?;
        self.lose_requests().await?;
        self.scale(0).await;
        self.status_follows().await
    }

    /// All requests of the agent.
    pub(crate) fn asked(&self) -> BTreeSet<String> {
        self.audit.asked(&user_of(&self.system), &self.since)
    }

    /// Loses requests for pods in flight until the agent has looked up the effect of one. A request that was not sent when the
    /// connection broke needs no look-up.
    async fn lose_requests(&mut self) -> Result<(), Refused> {
        while !self.asked().contains("get pods") {
            let calls = self.agent.calls("create_pod");
            self.proxy.hold_requests();
            self.scale(self.replicas + 1).await;
            let mut looks = time::interval(LOOK_EVERY);
            let until = Instant::now() + PATIENCE;
            while self.agent.calls("create_pod") == calls {
                assert!(Instant::now() < until, "nothing is created");
                looks.tick().await;
            }
            looks.tick().await;
            assert!(self.proxy.cut() > 0, "the agent was connected");
            self.status_follows().await?;
        }
        Ok(())
    }

    async fn scale(&mut self, replicas: u32) {
        self.replicas = replicas;
        acts::scale(&self.namespace, SET, replicas).await;
    }

    async fn status_follows(&self) -> Result<(), Refused> {
        let (path, replicas) = (self.namespace.replica_set(SET), self.replicas);
        self.reaches("the status as wanted", &path, |set| {
            let status = &set["status"];
            let observed = status["observedGeneration"] == set["metadata"]["generation"];
            observed && status["replicas"] == replicas
        })
        .await
    }

    /// Waits until `is_so` holds for the object at a path, or a request of the agent was refused.
    async fn reaches(
        &self,
        what: &str,
        path: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Result<(), Refused> {
        let until = Instant::now() + PATIENCE;
        let mut looks = time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let refused = self.audit.refused(&user_of(&self.system), &self.since);
            if !refused.is_empty() {
                return Err(refused);
            }
            let there = self.namespace.get(path).await;
            if there.as_ref().is_ok_and(&is_so) {
                return Ok(());
            }
            assert!(Instant::now() < until, "not {what}: {there:#?}");
        }
    }

    fn lease(&self) -> String {
        let leases = "/apis/coordination.k8s.io/v1/namespaces";
        format!("{leases}/{}/leases/{ACCOUNT}", self.system)
    }

    fn events(&self) -> String {
        format!("/api/v1/namespaces/{}/events", self.namespace.name())
    }
}

fn has_event(list: &Value, is_so: impl Fn(&Value) -> bool) -> bool {
    let events = list["items"].as_array().expect("it is a list");
    events.iter().any(is_so)
}
