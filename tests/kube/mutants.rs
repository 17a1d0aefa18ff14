//! A shadow-mode agent beside upstream's own ReplicaSet controller with faults. Each fault is reported within a hundred
//! comparisons. The faults are in `tests/cluster/replicaset-controller`; `shadow` runs beside the controller without one.

mod people;

use std::time::Duration;

use serde_json::Value;
use tests::{
    depth,
    real::{Agent, ApiServer, DecisionServer, Namespace, ReplicaSetController},
};
use tokio::{
    task::JoinSet,
    time::{self, Instant},
};

pub(crate) use self::people::Kubelets;
use self::people::People;
use crate::modes::{compared, differences, may_only_read, unexplained};

/// The maximum number of comparisons, of all subjects, before the report of a fault.
const TOLD_WITHIN: u64 = 100;
/// The wait for reports: missing actions are reported after half a minute.
const TOLD: Duration = Duration::from_mins(1);
/// The number of concurrent controllers.
const AT_ONCE: usize = 4;
/// The faults that the gate tests: one each of victims, number and owners.
const IN_GATE: [&str; 3] = ["cost-reversed", "creates-twice", "adopts-strangers"];
const FAULTS: [&str; 21] = [
    "adopts-none",
    "adopts-strangers",
    "ages-reversed",
    "assignment-reversed",
    "cost-reversed",
    "creates-one-less",
    "creates-twice",
    "crowding-reversed",
    "deletes-another",
    "deletes-one-less",
    "deletes-one-more",
    "min-ready-ignored",
    "readiness-ignored",
    "releases-none",
    "releases-own",
    "restarts-reversed",
    "status-left-out",
    "status-of-before",
    "status-too-good",
    "wants-one-less",
    "wants-one-more",
];

/// A controller and the shadow-mode agent beside it.
struct Trial {
    fault: &'static str,
    people: People,
    server: DecisionServer,
    _agent: Agent,
    controller: ReplicaSetController,
}

/// The reports of a shadow-mode agent so far.
struct Told {
    compared: u64,
    unexplained: u64,
    answer: Value,
}

impl Trial {
    /// Starts a controller with a fault. `None` without tools to build it.
    async fn start(cluster: &ApiServer, fault: &'static str) -> Option<Self> {
        let namespace = Namespace::create(cluster.admin().await, fault).await;
        let reader = may_only_read(cluster, &namespace).await;
        let server = DecisionServer::start();
        let flags = ["--mode", "shadow", "--leader-elect=false", "--namespace"];
        let agent = Agent::start(&server, &reader, &[&flags[..], &[fault]].concat());
        agent.running().wait_for_message("listed", 2);
        let controller = ReplicaSetController::start(cluster, &namespace, fault).await?;
        Some(Self {
            fault,
            people: People::begin(namespace).await,
            server,
            _agent: agent,
            controller,
        })
    }

    fn told(&self) -> Told {
        let answer = differences(&self.server);
        Told {
            compared: compared(&answer),
            unexplained: unexplained(&answer),
            answer,
        }
    }

    /// Acts until an unexplained difference, or until all reports have arrived.
    async fn work(&mut self) -> Told {
        let mut looks = time::interval(Duration::from_secs(1));
        let mut told = self.told();
        for step in 0..people::STEPS {
            self.people.act(step).await;
            while told.unexplained == 0 && !self.people.stands() {
                looks.tick().await;
                told = self.told();
            }
        }
        let until = Instant::now() + TOLD;
        while told.unexplained == 0 && Instant::now() < until {
            looks.tick().await;
            told = self.told();
        }
        told
    }

    /// Acts until the fault is reported. Returns what is wrong with the report, if anything is.
    async fn finds_out(mut self) -> Option<String> {
        let told = self.work().await;
        let (fault, compared) = (self.fault, told.compared);
        let first = &told.answer["differences"][0];
        eprintln!(
            "{fault}: {} unexplained of {compared}, the latest {first}",
            told.unexplained
        );
        let has_both_sides = ["decided", "done", "why"]
            .iter()
            .all(|side| first[side] != "");
        let found = told.unexplained > 0 && compared <= TOLD_WITHIN && has_both_sides;
        let failure = || format!("{fault}: {:#}\n{}", told.answer, self.controller.log());
        (!found).then(failure)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_upstreams_controller_are_told_within_a_hundred_comparisons() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let faults = if depth::is_full() {
        &FAULTS[..]
    } else {
        &IN_GATE
    };
    let mut failures = Vec::new();
    for faults in faults.chunks(AT_ONCE) {
        let mut trials = JoinSet::new();
        for fault in faults {
            let trial = tests::or_skip!(Trial::start(cluster, fault).await);
            trials.spawn(trial.finds_out());
        }
        failures.extend(trials.join_all().await.into_iter().flatten());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
