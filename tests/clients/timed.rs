//! A controller that asks on a timer, with a planted fault, of which the conformance kit names the rules.

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use conformance::{Running, Subject};
use decree_api::v1::{
    DecideRequest, Decision, Pod, ReplicaSet, decision_service_client::DecisionServiceClient,
};
use tests::lock;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint},
};

use crate::puppet::{pod, replica_set};

/// The pause between two turns.
const PAUSE: Duration = Duration::from_millis(100);
/// The deadline of a call: half of the time that the kit waits.
const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// None, and a list is three turns late.
    None,
    /// The selector has a label that the template lacks.
    Selector,
    /// The number of replicas of the first start stays.
    Replicas,
    /// A restart changes the uid of the ReplicaSet.
    OtherSet,
    /// Requests have pods without labels.
    Labels,
    /// The first pod gets another name.
    OtherName,
    /// A name that exists gets a second pod.
    Doubles,
    /// A name that exists gets a new pod in place of the old one.
    Overwrites,
    /// Which names are taken is known until the next start only.
    Forgets,
    /// A name that exists ends the turn.
    StopsAtTaken,
    /// The name alone says which pod to delete.
    ByName,
    /// Nothing is deleted.
    Keeps,
    /// A pod that is gone ends the turn.
    StopsAtGone,
    /// A call that fails is an answer: create one pod more.
    ActsOnFailure,
    /// An absent decision is an answer: create one pod more.
    ActsOnNothing,
    /// A call has no deadline.
    Waits,
    /// Two calls are open at once.
    Hastes,
}

/// The controller's cluster, which outlives the controller.
pub(crate) struct Timed {
    mistake: Mistake,
    cluster: Arc<Mutex<Cluster>>,
}

#[derive(Default)]
struct Cluster {
    pods: Vec<Pod>,
    made: usize,
    /// The ReplicaSet of each start.
    sets: Vec<ReplicaSet>,
}

/// The turns, which end when this is dropped.
pub(crate) struct Turning(JoinHandle<()>);

/// A controller from one start to its end.
struct Controller {
    mistake: Mistake,
    cluster: Arc<Mutex<Cluster>>,
    set: ReplicaSet,
    server: DecisionServiceClient<Channel>,
    lists: Vec<Vec<Pod>>,
    taken: BTreeSet<String>,
}

impl Timed {
    pub(crate) fn new(mistake: Mistake) -> Self {
        let cluster = Arc::default();
        Self { mistake, cluster }
    }
}

impl Subject for Timed {
    type Running = Turning;

    fn start(&self, address: &str, replicas: usize) -> io::Result<Turning> {
        let replicas = i32::try_from(replicas).map_err(io::Error::other)?;
        let endpoint = Endpoint::from_shared(format!("http://{address}"));
        let channel = endpoint.map_err(io::Error::other)?.connect_lazy();
        let mut set = replica_set(replicas);
        let mut cluster = lock(&self.cluster);
        match (self.mistake, cluster.sets.first()) {
            (Mistake::Selector, _) => set.template_labels.clear(),
            (Mistake::Replicas, Some(first)) => set.replicas = first.replicas,
            (Mistake::OtherSet, Some(_)) => set.uid = format!("set-{}", cluster.sets.len()),
            _ => {}
        }
        cluster.sets.push(set.clone());
        let mut controller = Controller {
            mistake: self.mistake,
            cluster: Arc::clone(&self.cluster),
            set,
            server: DecisionServiceClient::new(channel),
            lists: Vec::new(),
            taken: BTreeSet::new(),
        };
        Ok(Turning(tokio::spawn(async move {
            loop {
                controller.turn().await;
                sleep(PAUSE).await;
            }
        })))
    }
}

impl Running for Turning {
    fn stop(&mut self) -> io::Result<()> {
        self.0.abort();
        Ok(())
    }

    fn has_ended(&mut self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for Turning {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Controller {
    async fn turn(&mut self) {
        let mut pods = lock(&self.cluster).pods.clone();
        for pod in &mut pods {
            let owner = pod.controller.get_or_insert_default();
            owner.name.clone_from(&self.set.name);
            owner.uid.clone_from(&self.set.uid);
            if self.mistake == Mistake::Labels {
                pod.labels.clear();
            }
        }
        self.lists.insert(0, pods);
        self.lists
            .truncate(if self.mistake == Mistake::None { 4 } else { 1 });
        if self.mistake == Mistake::Hastes {
            let (first, second) = tokio::join!(self.ask(), self.ask());
            self.act(first);
            self.act(second);
        } else {
            let answer = self.ask().await;
            self.act(answer);
        }
    }

    async fn ask(&self) -> Result<Option<Decision>, Status> {
        let request = DecideRequest {
            replica_set: Some(self.set.clone()),
            pods: self.lists.last().cloned().unwrap_or_default(),
            ..DecideRequest::default()
        };
        let mut server = self.server.clone();
        let call = server.decide(request);
        let late = |_| Status::deadline_exceeded("late");
        let answer = if self.mistake == Mistake::Waits {
            call.await
        } else {
            timeout(DEADLINE, call).await.map_err(late)?
        };
        answer.map(|answer| answer.into_inner().decision)
    }

    fn act(&mut self, answer: Result<Option<Decision>, Status>) {
        let decision = match answer {
            Ok(Some(decision)) => decision,
            Ok(None) if self.mistake == Mistake::ActsOnNothing => one_more(),
            Err(why)
                if self.mistake == Mistake::ActsOnFailure && why.code() == Code::Unavailable =>
            {
                one_more()
            }
            Ok(None) | Err(_) => return,
        };
        for name in decision.creates {
            if !self.create(name) && self.mistake == Mistake::StopsAtTaken {
                return;
            }
        }
        for victim in decision.deletes.into_iter().filter_map(|victim| victim.pod) {
            let mut cluster = lock(&self.cluster);
            let count = cluster.pods.len();
            let is_victim = |pod: &Pod| {
                let has_name = self.mistake == Mistake::ByName && pod.name == victim.name;
                has_name || pod.uid == victim.uid
            };
            if self.mistake != Mistake::Keeps {
                cluster.pods.retain(|pod| !is_victim(pod));
            }
            if cluster.pods.len() == count && self.mistake == Mistake::StopsAtGone {
                return;
            }
        }
    }

    /// Creates a pod. Returns false if its name is taken.
    fn create(&mut self, name: String) -> bool {
        let mut cluster = lock(&self.cluster);
        let is_new = if self.mistake == Mistake::Forgets {
            self.taken.insert(name.clone())
        } else {
            cluster.pods.iter().all(|pod| pod.name != name)
        };
        if !is_new && ![Mistake::Doubles, Mistake::Overwrites].contains(&self.mistake) {
            return false;
        }
        if self.mistake == Mistake::Overwrites {
            cluster.pods.retain(|pod| pod.name != name);
        }
        let is_odd = self.mistake == Mistake::OtherName && cluster.made == 0;
        let name = if is_odd { "set-other".to_owned() } else { name };
        cluster.made += 1;
        let uid = format!("uid-{}", cluster.made);
        cluster.pods.push(Pod {
            uid,
            ..pod(&name, "node")
        });
        is_new
    }
}

fn one_more() -> Decision {
    Decision {
        creates: vec!["set-more".to_owned()],
        ..Decision::default()
    }
}
