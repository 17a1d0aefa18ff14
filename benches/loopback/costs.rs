//! The time from the write of a smaller number of desired pods to the first deletion, with and without a question to 100 pods for their
//! deletion costs. The agent and the server are the real ones, and the cluster is embedded.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use agent_core::{
    api::{ApiError, Kind, Reply, Request},
    asking::{CostKind, PodSource},
    nodes::{NodeFields, NodeNews},
    preferences::PreferencePolicy,
};
use agent_fake::is_ready;
use decree_agent::{Cluster, FakeCluster, ShellConfig};
use decree_api::v1;
use service::transport::{Connector, ListenEndpoint};
use tests::{
    builders::{brisk_cluster, replica_set},
    table::{head, quantile, row},
};
use tokio::{runtime::Runtime, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::host::Host;

/// As many pods as are asked for one choice.
const PODS: i32 = 100;
const ROUNDS: usize = 200;
/// The time of the slowest possible answer.
const ANSWER_MAX: Duration = Duration::from_millis(50);
const SETS: [&str; 2] = ["not-asked", "asked"];

/// A cluster whose pods take their time to answer.
#[derive(Clone)]
struct Slow {
    cluster: FakeCluster,
    noted: Arc<Mutex<Noted>>,
}

#[derive(Default)]
struct Noted {
    calls: u32,
    slowest: Duration,
    deleted: Option<Instant>,
}

impl Slow {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a ReplicaSet has all its pods ready.
    async fn settled(&self, set: &str) {
        loop {
            let changed = self.cluster.changed();
            let ready = self.cluster.with(|model| {
                let pods = model.objects(agent_fake::Kind::Pod);
                let own = pods.filter(|pod| pod["metadata"]["labels"]["app"] == *set);
                own.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null() && is_ready(pod))
                    .count()
            });
            if i32::try_from(ready) == Ok(PODS) {
                return;
            }
            changed.await;
        }
    }

    fn scale(&self, set: &str, replicas: i32) {
        let scaled = self
            .cluster
            .with(|model| model.scale("default", set, replicas));
        scaled.expect("it is there");
    }

    /// Returns the times until the first deletion, and of the slowest answer, in milliseconds.
    async fn round(&self, set: &str) -> [f64; 2] {
        self.settled(set).await;
        // Statuses and events of the pods that became ready are over.
        sleep(Duration::from_millis(50)).await;
        *self.noted() = Noted::default();
        let start = Instant::now();
        self.scale(set, PODS - 1);
        let deleted = loop {
            if let Some(deleted) = self.noted().deleted {
                break deleted;
            }
            sleep(Duration::from_millis(1)).await;
        };
        let slowest = self.noted().slowest;
        self.scale(set, PODS);
        [deleted - start, slowest].map(|it| it.as_secs_f64() * 1e3)
    }
}

impl Cluster for Slow {
    type Pages = <FakeCluster as Cluster>::Pages;
    type Events = <FakeCluster as Cluster>::Events;

    async fn uid(&self) -> Result<String, ApiError> {
        self.cluster.uid().await
    }

    fn list(&self, kind: Kind) -> Self::Pages {
        self.cluster.list(kind)
    }

    async fn newest_version(&self, kind: Kind) -> Result<String, ApiError> {
        self.cluster.newest_version(kind).await
    }

    async fn watch(&self, kind: Kind, from: String) -> Result<Self::Events, ApiError> {
        self.cluster.watch(kind, from).await
    }

    async fn follow_nodes<F: Future<Output = ()> + Send>(
        self,
        fields: NodeFields,
        tell: impl FnMut(NodeNews) -> F + Send,
    ) -> Infallible {
        self.cluster.follow_nodes(fields, tell).await
    }

    fn cost(
        &self,
        _: v1::ObjectRef,
        _: PodSource,
    ) -> impl Future<Output = Result<i32, String>> + Send + use<> {
        let (start, cluster) = (Instant::now(), self.clone());
        let call = {
            let mut noted = self.noted();
            noted.calls += 1;
            noted.calls
        };
        // A walk over the whole span, in no order.
        let takes = ANSWER_MAX * (call * 37 % 101) / 100;
        async move {
            sleep(takes).await;
            let mut noted = cluster.noted();
            noted.slowest = noted.slowest.max(start.elapsed());
            Ok(0)
        }
    }

    fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Reply, ApiError>> + Send + use<> {
        if matches!(request, Request::DeletePod { .. }) {
            self.noted().deleted.get_or_insert_with(Instant::now);
        }
        self.cluster.call(request)
    }
}

pub(crate) fn run(runtime: &Runtime) {
    head(
        "Smaller number in, first deletion out",
        &[
            "pods",
            "rounds",
            "slowest answer p50 ms",
            "deletion p50 ms",
            "beyond the slowest answer p50 ms",
            "p99 ms",
            "max ms",
        ],
    );
    let rounds = runtime.block_on(measure());
    for (set, rounds) in SETS.into_iter().zip(rounds) {
        let sorted = |of: fn(&[f64; 2]) -> f64| {
            let mut values: Vec<_> = rounds.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let beyond = sorted(|[deleted, slowest]| deleted - slowest);
        let figure = |values: &[f64], share| format!("{:.1}", quantile(values, share));
        row(&[
            set.to_owned(),
            rounds.len().to_string(),
            figure(&sorted(|[_, slowest]| *slowest), 0.5),
            figure(&sorted(|[deleted, _]| *deleted), 0.5),
            figure(&beyond, 0.5),
            figure(&beyond, 0.99),
            figure(&beyond, 1.0),
        ]);
    }
}

/// The rounds of each ReplicaSet, in turn.
async fn measure() -> [Vec<[f64; 2]>; 2] {
    let host = Host::decree();
    let cluster = FakeCluster::start(brisk_cluster(), Vec::new()).expect("it is empty");
    let [not_asked, asked] = SETS.map(|set| replica_set(set).replicas(PODS));
    let asked = asked.annotated("decree.dev/scale-in-cost", "http://:8080/busy");
    for set in [not_asked, asked] {
        let set = set.build();
        cluster
            .with(|model| model.create(set))
            .expect("it is valid");
    }
    let slow = Slow {
        cluster,
        noted: Arc::default(),
    };
    let mut config = ShellConfig::new(Connector::local(&ListenEndpoint::Tcp(host.address)));
    config.agent.preferences = PreferencePolicy {
        cost_sources: [CostKind::Http].into(),
        ..PreferencePolicy::default()
    };
    let stop = CancellationToken::new();
    let agent = tokio::spawn(decree_agent::run(config, slow.clone(), stop.clone()));
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (set, rounds) in SETS.into_iter().zip(&mut rounds) {
            rounds.push(slow.round(set).await);
        }
    }
    stop.cancel();
    let ended = agent.await.expect("it does not panic");
    ended.expect("it ends in order");
    rounds
}
