//! Beside a kube-controller-manager that works at its default 20 requests a second, under any name, with leader election: what Decree
//! writes before and after a wrong declaration, from the audit log.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tests::{
    depth,
    real::{Agent, ApiServer, AuditLog, ControllerManager, DecisionServer, Namespace, found},
    rng::Rng,
};
use tokio::{
    task::{self, JoinHandle},
    time,
};

use crate::{
    acts, another,
    rendered::{Rendered, SYSTEM},
    take_over::{declares, record},
    workload::{ACCOUNT, user},
};

const SETS: usize = 12;
/// The interval of changes of the desired numbers: 6 a second.
const CHANGE_EVERY: Duration = Duration::from_millis(167);
/// The most desired pods of a ReplicaSet.
const MOST: u64 = 30;
/// How long after an event Decree may still begin to create and delete.
const WITHIN: SignedDuration = SignedDuration::from_secs(2);
const ELECTS: [&str; 1] = ["--leader-elect=true"];

/// A cluster with a busy built-in controller of this name, and agents that stand by.
struct Busy {
    // In the order of their drops.
    agents: Vec<Agent>,
    _server: DecisionServer,
    managers: Vec<ControllerManager>,
    name: &'static str,
    namespace: Namespace,
    log: AuditLog,
    cluster: ApiServer,
}

/// Changes of the desired numbers, until it is stopped.
struct Changes {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

/// One create or delete of a pod.
#[derive(Debug)]
struct Write {
    replica_set: String,
    is_create: bool,
    by_decree: bool,
    /// When the request came, and when it was answered.
    came: Timestamp,
    answered: Timestamp,
}

fn set(number: usize) -> String {
    format!("r{number}")
}

impl Changes {
    fn begin(namespace: &Namespace, seed: u64) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (namespace, until) = (namespace.clone(), Arc::clone(&is_over));
        let task = task::spawn(async move {
            let mut rng = Rng::new(seed);
            let mut due = time::interval(CHANGE_EVERY);
            while !until.load(Ordering::Relaxed) {
                due.tick().await;
                let name = set(rng.between(0, SETS as u64 - 1) as usize);
                let replicas = rng.between(0, MOST) as u32;
                acts::scale(&namespace, &name, replicas).await;
            }
        });
        Self { is_over, task }
    }

    async fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.await.expect("it changes numbers");
    }
}

impl Busy {
    async fn begin(name: &'static str) -> Option<Self> {
        let rendered = Rendered::of("base")?;
        let pods = json!([{"group": "", "resources": ["pods"]}]);
        let log = AuditLog::of(&json!([
            {"level": "Request", "verbs": ["create"], "resources": pods},
            {"level": "Metadata", "verbs": ["delete"], "resources": pods},
            {"level": "Metadata", "users": [user()], "verbs": ["list"], "resources": pods},
            {"level": "Request", "users": [user()], "verbs": ["create", "update", "patch", "delete"]},
            {"level": "Metadata", "verbs": ["update", "patch"], "resources": [{
                "group": "apps", "resources": ["replicasets/status"], "resourceNames": ["decree-probe"],
            }]},
            {"level": "None"},
        ]));
        let flags = log.flags();
        let cluster = ApiServer::start_with(&[&flags[0], &flags[1]]).await?;
        let admin = cluster.admin().await;
        rendered.apply(&admin).await;
        let namespace = Namespace::create(admin, "busy").await;
        for number in 0..SETS {
            acts::create_set(&namespace, &another::set(&set(number), 0)).await;
        }
        let managers = (0..2).map(|_| ControllerManager::start_as(&cluster, name, &ELECTS));
        let managers = managers.collect();
        let server = DecisionServer::start();
        let kubeconfig = cluster.service_account(SYSTEM, ACCOUNT).await;
        let flags = ["--lease-namespace", SYSTEM];
        let agents = (0..2).map(|_| Agent::start_undeclared(&server, &kubeconfig, &flags));
        let busy = Self {
            agents: agents.collect(),
            _server: server,
            managers,
            name,
            namespace,
            log,
            cluster,
        };
        for agent in &busy.agents {
            agent.becomes_ready().await;
        }
        busy.scales(1).await;
        Some(busy)
    }

    /// Scales all ReplicaSets to a number, and waits until they have it.
    async fn scales(&self, replicas: u32) {
        for number in 0..SETS {
            acts::scale(&self.namespace, &set(number), replicas).await;
        }
        let total = SETS * replicas as usize;
        acts::pods_become(&self.namespace, total).await;
        for number in 0..SETS {
            let all = json!({ "replicas": replicas });
            acts::status_becomes(&self.namespace, &set(number), &all).await;
        }
    }

    /// Kills the processes of the built-in controller, and starts others, which wait until the Lease of the killed one has expired.
    fn fails_over(&mut self) {
        self.managers.clear();
        let managers =
            (0..2).map(|_| ControllerManager::start_as(&self.cluster, self.name, &ELECTS));
        self.managers.extend(managers);
    }

    fn writes(&self) -> Vec<Write> {
        let lines = self.log.lines(0).into_iter();
        lines.filter_map(|line| Write::of(&line)).collect()
    }

    /// The requests of Decree that write anything but its probe.
    fn other_writes_of_decree(&self) -> Vec<Value> {
        let mut lines = self.log.lines(0);
        lines.retain(|line| {
            let object = &line["objectRef"];
            let is_probe = object["resource"] == "replicasets"
                && (object["name"] == "decree-probe" || line["verb"] == "create");
            line["user"]["username"] == user().as_str() && line["verb"] != "list" && !is_probe
        });
        lines
    }

    /// Declares the built-in controller off while it is on, and waits until an agent has recorded that it has stopped. Returns the time of
    /// the declaration.
    async fn is_declared_off_wrongly(&self) -> Timestamp {
        let (since, admin) = (Timestamp::now(), self.cluster.admin().await);
        let declared = task::block_in_place(|| declares(&self.cluster, "take-over"));
        found(async || {
            let has_stopped = record(&admin).await.starts_with("found-on");
            let failure = || format!("it never stops: {declared:?}");
            has_stopped.then_some(()).ok_or_else(failure)
        })
        .await;
        since
    }

    /// Checks from the log since a time: Decree begins no create and no delete later than 2 s after the answer that stops it, and for a
    /// ReplicaSet after its first pod by the other controller.
    fn stopped_in_time(&self, since: Timestamp) {
        let lines = self.log.lines(0);
        let is_since = |line: &&Value| time_of(line, "stageTimestamp") >= since;
        let of_decree = |line: &&Value| line["user"]["username"] == user().as_str();
        let mut records = lines
            .iter()
            .filter(is_since)
            .filter(of_decree)
            .filter(|line| line["requestObject"].to_string().contains("found-on"));
        let recorded = records.next().expect("it is recorded");
        let recorded = time_of(recorded, "requestReceivedTimestamp");
        let answers = lines.iter().filter(|line| {
            line["objectRef"]["subresource"] == "status"
                && line["user"]["username"] != user().as_str()
                && time_of(line, "stageTimestamp") <= recorded
        });
        let answered = answers.map(|line| time_of(line, "stageTimestamp")).max();
        let answered = answered.expect("the probe is answered");
        let mut lists = lines.iter().filter(is_since).filter(of_decree);
        let listed = lists.find(|line| line["verb"] == "list");
        let listed = listed.map_or(Timestamp::MAX, |line| time_of(line, "stageTimestamp"));
        let writes = self.writes();
        let mut first: BTreeMap<&str, Timestamp> = BTreeMap::new();
        for write in writes.iter().filter(|it| !it.by_decree && it.is_create) {
            if write.answered > listed {
                let first = first.entry(&write.replica_set).or_insert(write.answered);
                *first = write.answered.min(*first);
            }
        }
        let ours: Vec<_> = writes
            .iter()
            .filter(|it| it.by_decree && it.came >= since)
            .collect();
        eprintln!(
            "{}: {} creates and deletes by Decree until the answer, {} ReplicaSets with pods by the other",
            self.name,
            ours.len(),
            first.len()
        );
        for write in ours {
            let of_set = first.get(&*write.replica_set).copied();
            let end = of_set.unwrap_or(answered).min(answered) + WITHIN;
            assert!(write.came <= end, "too late, after {end}: {write:?}");
        }
    }
}

impl Write {
    fn of(line: &Value) -> Option<Self> {
        let object = &line["objectRef"];
        let is_create = line["verb"] == "create";
        let code = line["responseStatus"]["code"].as_u64()?;
        let is_write = is_create || line["verb"] == "delete";
        if object["resource"] != "pods" || !is_write || !(200..300).contains(&code) {
            return None;
        }
        let metadata = &line["requestObject"]["metadata"];
        let name = [&metadata["generateName"], &object["name"]];
        let name = name.into_iter().find_map(|it| it.as_str())?;
        Some(Self {
            replica_set: name.rsplit_once('-')?.0.to_owned(),
            is_create,
            by_decree: line["user"]["username"] == user().as_str(),
            came: time_of(line, "requestReceivedTimestamp"),
            answered: time_of(line, "stageTimestamp"),
        })
    }
}

fn time_of(line: &Value, field: &str) -> Timestamp {
    let time = line[field].as_str().expect("each line has it");
    time.parse().expect("it is a time")
}

/// Runs it all beside a built-in controller of this name.
async fn goes(name: &'static str) {
    let seconds = depth::number("DECREE_BUSY_SECONDS");
    let seconds = seconds.unwrap_or_else(|| if depth::is_full() { 120 } else { 4 });
    let mut busy = tests::or_skip!(Busy::begin(name).await);
    let changes = Changes::begin(&busy.namespace, seconds);
    time::sleep(Duration::from_secs(seconds)).await;
    if depth::is_full() {
        busy.fails_over();
        time::sleep(Duration::from_secs(seconds)).await;
    }
    let writes = busy.other_writes_of_decree();
    assert!(writes.is_empty(), "{writes:#?}");

    let since = busy.is_declared_off_wrongly().await;
    busy.stopped_in_time(since);
    if depth::is_full() {
        // Nobody answers until the next process leads.
        busy.fails_over();
        let since = busy.is_declared_off_wrongly().await;
        busy.stopped_in_time(since);
    }
    changes.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn declared_beside_a_built_in_controller_that_is_on_it_stops() {
    goes("k3s").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn declared_beside_controllers_of_other_names_it_stops() {
    if depth::is_full_or_told("it runs beside controllers of other names") {
        goes("kube-controller-manager").await;
        goes("kubelite").await;
    }
}
