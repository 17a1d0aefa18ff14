//! The memory of a session after every kind of input that can make it grow, and after its objects are gone.

use std::{sync::PoisonError, time::Duration};

use decree_api::v1::{
    self, event::Event, outcome::Outcome, reconcile_request::Frame,
    reconcile_response::Frame as Answer,
};
use decree_core::{Span, Timestamp};
use server_session::{Config, Now, Session};
use tests::{
    objects::{self, pod, pod_ref, replica_set, session_config},
    oracle::operations,
};

use super::{ALONE, measured};

const START: Now = Now {
    wall: Timestamp::from_seconds(1_700_000_000),
    monotonic: Duration::from_secs(100),
};

/// A session that is fed.
struct Fed {
    session: Session,
    now: Now,
    version: u64,
}

/// The name of an input, and a function that feeds a session with it.
type Row = (&'static str, fn(&mut Fed));

const ROWS: [Row; 20] = [
    ("questions for costs, half of them answered", |fed| {
        let mut sets = replica_sets(50, 99);
        let asks = v1::ScaleInCost {
            source: "http://:8080/".to_owned() + &"busy".repeat(50),
            ..v1::ScaleInCost::default()
        };
        for set in &mut sets {
            set.preferences.get_or_insert_default().scale_in_cost = Some(asks.clone());
        }
        let of = |set| {
            let name = move |at| format!("p-{set}-{at}");
            (0..100).map(move |at| pod(&name(at), &format!("web-{set}")).build())
        };
        let pods: Vec<_> = (0..50).flat_map(of).collect();
        let costs = pods.iter().map(|pod| v1::PodCost {
            uid: pod.uid.clone(),
            cost: Some(1),
            failure: String::new(),
        });
        let costs: Vec<_> = costs.collect();
        fed.list(sets, pods);
        fed.drain();
        for (id, costs) in (1..).zip(costs.chunks(100)).take(25) {
            let costs = costs.to_vec();
            fed.say(Frame::Costs(v1::Costs { id, costs }));
        }
    }),
    ("results that wait for a list", |fed| {
        fed.answer_creates(1_000, 4, |_, at| match at {
            0 => failed(v1::FailureClass::NameTaken),
            1 => failed(v1::FailureClass::Throttled),
            2 => refused(),
            _ => Outcome::Done(v1::Done::default()),
        })
    }),
    ("names that wait for a list", |fed| {
        fed.answer_creates(1, 5_000, |_, _| Outcome::Done(v1::Done::default()))
    }),
    ("names of creates without an answer", |fed| {
        fed.answer_creates(1, 5_000, |_, _| failed(v1::FailureClass::Timeout))
    }),
    ("messages of batches in flight", |fed| {
        fed.list(replica_sets(500, 2), vec![]);
        for (id, ..) in fed.batches() {
            fed.outcomes(vec![(id, 0, failed(v1::FailureClass::Forbidden))]);
        }
    }),
    ("operations in flight", |fed| {
        fed.list(replica_sets(2, 5_000), vec![]);
        fed.batches();
    }),
    ("statuses in flight after failures", |fed| {
        fed.answer_creates(500, 1, |_, _| failed(v1::FailureClass::Forbidden));
        fed.batches();
    }),
    ("results while a list is open", |fed| {
        fed.list(replica_sets(500, 1), vec![]);
        let batches = fed.batches();
        fed.begin(v1::Kind::Pod);
        for (id, ..) in batches {
            fed.outcomes(vec![(id, 0, failed(v1::FailureClass::Forbidden))]);
        }
        fed.drain();
    }),
    ("pods that are claimed", |fed| {
        let orphan = |number| v1::Pod {
            controller: None,
            ..pod(&format!("p{number}"), "web-0").build()
        };
        fed.list(replica_sets(1, 9_000), (0..9_000).map(orphan).collect());
        for _ in 0..2 {
            for (id, operations) in fed.batches() {
                let gone = |at| (id, at, failed(v1::FailureClass::NotFound));
                fed.outcomes((0..operations).map(gone).collect());
            }
        }
    }),
    ("objects that are not accepted", |fed| {
        fed.list(vec![], vec![]);
        for frame in 0..40 {
            let bad = |number| v1::Pod {
                node_name: "n".repeat(300),
                ..pod(&format!("p-{frame}-{number}"), "web").build()
            };
            let events = (0..100).map(|number| Event::PodApplied(bad(number)));
            fed.events(events.collect());
        }
    }),
    ("reports that nobody takes", |fed| {
        let twin = v1::ReplicaSet {
            name: "twin".to_owned(),
            uid: "twin".to_owned(),
            ..replica_set("web-0").build()
        };
        fed.list(vec![replica_set("web-0").build(), twin], vec![]);
        for frame in 0..10 {
            let orphan = |number| v1::Pod {
                controller: None,
                ..pod(&format!("p-{frame}-{number}"), "web-0").build()
            };
            fed.events(
                (0..1_000)
                    .map(|number| Event::PodApplied(orphan(number)))
                    .collect(),
            );
        }
    }),
    ("ReplicaSets that are quarantined", |fed| {
        let bad = |number| v1::ReplicaSet {
            replicas: Some(-1),
            ..replica_set(&format!("web-{number}")).build()
        };
        fed.list((0..2_000).map(bad).collect(), vec![]);
        fed.drain();
    }),
    ("conditions", |fed| {
        let condition = |number| v1::ReplicaSetCondition {
            r#type: format!("Type{number}"),
            message: "m".repeat(500),
            ..v1::ReplicaSetCondition::default()
        };
        let set = |number| {
            let mut set = replica_set(&format!("web-{number}")).build();
            set.status.get_or_insert_default().conditions = (0..100).map(condition).collect();
            set
        };
        fed.list((0..100).map(set).collect(), vec![]);
        fed.drain();
    }),
    ("histories", |fed| {
        fed.list(replica_sets(300, 0), vec![]);
        fed.drain();
        for replicas in 1..10 {
            for set in replica_sets(300, replicas) {
                let version = fed.next_version();
                fed.events(vec![Event::ReplicaSetApplied(v1::ReplicaSet {
                    resource_version: version,
                    ..set
                })]);
            }
            for (id, operations) in fed.batches() {
                fed.outcomes(
                    (0..operations)
                        .map(|at| (id, at, failed(v1::FailureClass::Forbidden)))
                        .collect(),
                );
            }
        }
        fed.drain();
    }),
    ("deletions", |fed| {
        let pods = (0..1_000).flat_map(|set| {
            (0..30)
                .map(move |number| pod(&format!("p-{set}-{number}"), &format!("web-{set}")).build())
        });
        fed.list(replica_sets(1_000, 2), pods.collect());
        fed.batches();
    }),
    ("acts of another controller", |fed| {
        fed.watch(100, 20);
        fed.replace_pods(100, 20);
    }),
    ("differences of another controller", |fed| {
        fed.watch(600, 2);
        fed.drain();
        for _ in 0..40 {
            fed.pass(Duration::from_secs(4));
        }
        assert!(
            fed.session.stats().comparisons > 500,
            "{:?}",
            fed.session.stats()
        );
    }),
    ("nodes", |fed| {
        let hello = v1::Hello {
            capabilities: vec!["nodes".to_owned()],
            ..objects::hello("c1")
        };
        let config = Config {
            objects_max: 2_000,
            ..session_config()
        };
        fed.session = open_with(config, hello);
        for frame in 0..20 {
            let label = |at| (format!("example.com/label-{at}"), "value".to_owned());
            let node = |number| v1::Node {
                name: format!("node-{frame}-{number}"),
                labels: (0..8).map(label).collect(),
                ..v1::Node::default()
            };
            fed.say(Frame::Nodes(v1::Nodes {
                applied: (0..100).map(node).collect(),
                ..v1::Nodes::default()
            }));
        }
    }),
    ("objects that came and went", |fed| {
        let pods = (0..40_000).map(|number| pod(&format!("p-{number}"), "web-0").build());
        fed.list(replica_sets(500, 0), pods.collect());
        fed.list(replica_sets(1, 0), vec![]);
        fed.drain();
    }),
    ("objects that the session has no memory for", |fed| {
        fed.session = open(
            Config {
                bytes_max: 3 << 20,
                objects_max: 1_000_000,
                ..session_config()
            },
            v1::Mode::Enforce,
        );
        let expression = |number| v1::LabelSelectorRequirement {
            key: "other".to_owned(),
            operator: "NotIn".to_owned(),
            values: (0..4_000)
                .map(|value| format!("{number}-{value}"))
                .collect(),
        };
        fed.begin(v1::Kind::Pod);
        fed.end(v1::Kind::Pod, 0);
        fed.begin(v1::Kind::ReplicaSet);
        for number in 0..200 {
            let mut set = replica_set(&format!("web-{number}")).build();
            set.selector
                .get_or_insert_default()
                .match_expressions
                .push(expression(number));
            fed.say(Frame::SnapshotObjects(v1::SnapshotObjects {
                replica_sets: vec![set],
                pods: vec![],
            }));
            fed.drain();
        }
        fed.end(v1::Kind::ReplicaSet, 200);
        fed.drain();
    }),
];

fn open(config: Config, mode: v1::Mode) -> Session {
    let hello = v1::Hello {
        mode: mode.into(),
        options: Some(v1::Options {
            burst_replicas: Some(5_000),
            ..v1::Options::default()
        }),
        capabilities: vec!["costs".to_owned()],
        ..objects::hello("c1")
    };
    open_with(config, hello)
}

fn open_with(config: Config, hello: v1::Hello) -> Session {
    let first = v1::ReconcileRequest {
        sequence: 0,
        frame: Some(Frame::Hello(hello)),
    };
    Session::open(START, config, "s1".to_owned(), first).expect("the Hello is sound")
}

fn replica_sets(count: usize, replicas: i32) -> Vec<v1::ReplicaSet> {
    let set = |number| {
        replica_set(&format!("web-{number}"))
            .replicas(replicas)
            .build()
    };
    (0..count).map(set).collect()
}

fn failed(class: v1::FailureClass) -> Outcome {
    let message = "quota exceeded ".repeat(2_000);
    Outcome::Failed(v1::Failed {
        failure_class: class.into(),
        message,
        ..v1::Failed::default()
    })
}

fn refused() -> Outcome {
    let message = "the budget is used up ".repeat(1_000);
    Outcome::NotStarted(v1::NotStarted {
        cause: v1::NotStartedCause::Guard.into(),
        message,
    })
}

impl Fed {
    fn open(mode: v1::Mode) -> Self {
        let config = Config {
            objects_max: 1_000_000,
            ..session_config()
        };
        Self {
            session: open(config, mode),
            now: START,
            version: 1_000,
        }
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    fn say(&mut self, frame: Frame) {
        let frame = v1::ReconcileRequest {
            sequence: 0,
            frame: Some(frame),
        };
        self.session.handle_frame(self.now, frame);
        assert_eq!(self.session.poll_end(), None);
    }

    fn begin(&mut self, kind: v1::Kind) {
        self.say(Frame::SnapshotBegin(v1::SnapshotBegin {
            kind: kind.into(),
        }));
    }

    fn end(&mut self, kind: v1::Kind, count: usize) {
        let (kind, count) = (kind.into(), i64::try_from(count).expect("it is small"));
        let resource_version = self.next_version();
        self.say(Frame::SnapshotEnd(v1::SnapshotEnd {
            kind,
            resource_version,
            count,
        }));
    }

    fn list(&mut self, replica_sets: Vec<v1::ReplicaSet>, pods: Vec<v1::Pod>) {
        let version = self.next_version();
        for frame in objects::lists(&replica_sets, &pods, &version) {
            self.say(frame);
        }
    }

    fn events(&mut self, events: Vec<Event>) {
        self.say(objects::events(events));
    }

    fn outcomes(&mut self, outcomes: Vec<(u64, u32, Outcome)>) {
        let outcome = |(batch_id, operation, outcome)| v1::Outcome {
            batch_id,
            operation,
            outcome: Some(outcome),
        };
        let outcomes = outcomes.into_iter().map(outcome).collect();
        self.say(Frame::Outcomes(v1::Outcomes { outcomes }));
    }

    /// Begins to watch another controller, whose ReplicaSets have all but one of their pods.
    fn watch(&mut self, sets: usize, pods: usize) {
        *self = Self::open(v1::Mode::Shadow);
        let replicas = i32::try_from(pods).expect("it is small");
        let pod = |set, number| pod(&format!("p-{set}-{number}"), &format!("web-{set}")).build();
        let of = |set| (1..pods).map(move |number| pod(set, number));
        self.list(
            replica_sets(sets, replicas),
            (0..sets).flat_map(of).collect(),
        );
        self.drain();
    }

    /// Replaces each pod by another.
    fn replace_pods(&mut self, sets: usize, pods: usize) {
        for set in 0..sets {
            for number in 1..pods {
                let owner = format!("web-{set}");
                let gone = pod(&format!("p-{set}-{number}"), &owner).build();
                let new = pod(&format!("n-{set}-{number}"), &owner).build();
                let resource_version = self.next_version();
                let gone = v1::Deleted {
                    kind: v1::Kind::Pod.into(),
                    object: Some(pod_ref(&gone)),
                    resource_version,
                };
                let resource_version = self.next_version();
                let new = v1::Pod {
                    resource_version,
                    ..new
                };
                self.events(vec![Event::Deleted(gone), Event::PodApplied(new)]);
            }
        }
    }

    /// Lets this time pass, with a heartbeat at its end.
    fn pass(&mut self, time: Duration) {
        self.now.monotonic += time;
        let nanos = i64::try_from(time.as_nanos()).expect("it is short");
        self.now.wall = self.now.wall.plus(Span(nanos));
        self.say(Frame::Heartbeat(v1::Heartbeat::default()));
        self.drain();
    }

    /// Takes all frames and reports. Returns the batches, with their number of operations.
    fn batches(&mut self) -> Vec<(u64, u32)> {
        let mut batches = Vec::new();
        while let Some(frame) = self.session.poll_frame(self.now) {
            if let Some(Answer::Batches(decided)) = frame.frame {
                let of = |batch: &v1::Batch| (batch.id, operations(batch) as u32);
                batches.extend(decided.batches.iter().map(of));
            }
            while self.session.poll_report().is_some() {}
        }
        while self.session.poll_report().is_some() {}
        batches
    }

    fn drain(&mut self) {
        self.batches();
    }

    /// Lists ReplicaSets that lack pods, and answers each operation of their batches.
    fn answer_creates(&mut self, sets: usize, replicas: i32, answer: fn(u64, u32) -> Outcome) {
        self.list(replica_sets(sets, replicas), vec![]);
        for (id, operations) in self.batches() {
            for at in 0..operations {
                self.outcomes(vec![(id, at, answer(id, at))]);
            }
        }
        while self.session.poll_report().is_some() {}
    }
}

/// Feeds a session, and takes its objects away again if `is_emptied`. Returns the memory of the session: as it counts, and as the allocator
/// counts.
fn held(feed: fn(&mut Fed), is_emptied: bool) -> (usize, usize) {
    let (fed, real) = measured(|| {
        let mut fed = Fed::open(v1::Mode::Enforce);
        feed(&mut fed);
        if is_emptied {
            fed.drain();
            fed.list(vec![], vec![]);
            fed.drain();
        }
        fed
    });
    (fed.session.stats().sizes.bytes, real)
}

#[test]
fn session_counts_what_it_holds_after_every_input_and_gives_it_back() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut wrong = Vec::new();
    for (input, feed) in ROWS {
        let [fed, emptied] = [false, true].map(|is_emptied| held(feed, is_emptied));
        // What every session has, such as its identity, does not count.
        let is_right = |(counted, real): (usize, usize)| {
            (real.saturating_sub(30_000)..=4 * real + 30_000).contains(&counted)
        };
        // A few UIDs of ReplicaSets that are gone stay.
        if !is_right(fed) || !is_right(emptied) || emptied.1 > fed.1 + 1_000 {
            wrong.push(format!("{input}: {fed:?}, and {emptied:?} without objects"));
        }
    }
    assert_eq!(wrong, [""; 0], "bytes counted, bytes held");
}
