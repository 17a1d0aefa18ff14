//! The ways of lying, each as the frames that a round of it sends.

use std::time::Duration;

use decree::v1::{self, batch::Action, reconcile_response::Frame};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::{
    Saying, Speaks,
    creation::{OPERATIONS, create, suffix},
    witness::Witness,
};

/// How many batches say nothing: what is 2 MB on the wire would be some 300 MB where they are built.
const BATCHES: usize = 1_000_000;
/// Ten years, in seconds.
const YEARS: i64 = 10 * 365 * 24 * 3600;
/// A text that clears a terminal, begins a line, and turns the direction of writing.
const STEERING: &str = "\u{1b}[2J\r\n{\"level\":\"ERROR\"}\u{202e}\u{2066}\u{9b}31m";

/// One way of lying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Creates pods where none is wanted.
    CreateSurplus,
    /// Creates pods in another namespace, from the template of a ReplicaSet.
    CreateElsewhere,
    /// Creates pods under names of its own.
    NameAtWill,
    /// Deletes all pods of each ReplicaSet.
    DeleteEverything,
    /// Deletes pods that belong to nobody or to others.
    DeleteOutside,
    /// Releases pods that match.
    ReleaseMatching,
    /// Adopts pods that do not match, or belong to others.
    AdoptOutside,
    /// Writes a status that was never true.
    FalseStatus,
    /// Says things that steer terminals.
    Steer,
    /// Drains each session at once.
    DrainAtOnce,
    /// Asks for lists without end.
    AskForLists,
    /// Refuses each session, and asks to be called again at once.
    RefuseAll,
    /// Asks for more and more, and reads no outcome.
    ReadNoOutcome,
    /// Sends a frame of batches that say nothing.
    CountlessBatches,
    /// Asks for ten years of patience as it drains.
    DrainForYears,
    /// Wants a sign of life every 10^11 years, and says nothing.
    FallSilent,
}

// === impl Lie ===

impl Lie {
    /// All lies.
    pub const ALL: [Self; 16] = [
        Self::CreateSurplus,
        Self::CreateElsewhere,
        Self::NameAtWill,
        Self::DeleteEverything,
        Self::DeleteOutside,
        Self::ReleaseMatching,
        Self::AdoptOutside,
        Self::FalseStatus,
        Self::Steer,
        Self::DrainAtOnce,
        Self::AskForLists,
        Self::RefuseAll,
        Self::ReadNoOutcome,
        Self::CountlessBatches,
        Self::DrainForYears,
        Self::FallSilent,
    ];

    /// Returns what a round sends.
    fn frames(self, round: u64, witness: &mut Witness) -> Vec<Frame> {
        match self {
            Self::DrainAtOnce => vec![drain(0)],
            Self::DrainForYears => vec![drain(YEARS)],
            Self::FallSilent | Self::RefuseAll => Vec::new(),
            Self::CountlessBatches => {
                let batches = vec![v1::Batch::default(); BATCHES];
                vec![Frame::Batches(v1::Batches { batches })]
            }
            Self::AskForLists => vec![resync(v1::Kind::Pod), resync(v1::Kind::ReplicaSet)],
            Self::Steer => vec![resync(v1::Kind::Pod), rejection()],
            Self::CreateSurplus
            | Self::CreateElsewhere
            | Self::NameAtWill
            | Self::DeleteEverything
            | Self::DeleteOutside
            | Self::ReleaseMatching
            | Self::AdoptOutside
            | Self::FalseStatus
            | Self::ReadNoOutcome => self.batches(round, witness),
        }
    }

    fn batches(self, round: u64, witness: &mut Witness) -> Vec<Frame> {
        let mut frames = Vec::new();
        for mut set in witness.replica_sets() {
            let action = self.action(round, &set, witness);
            if self == Self::CreateElsewhere {
                "kube-system".clone_into(&mut set.namespace);
            }
            let batches = vec![witness.batch(&set, action)];
            frames.push(Frame::Batches(v1::Batches { batches }));
        }
        frames
    }

    fn action(self, round: u64, set: &v1::ReplicaSet, witness: &Witness) -> Action {
        let prefix = format!("{}-", set.name);
        let names = (0..OPERATIONS).map(|index| format!("{prefix}{}", suffix(round, index)));
        match self {
            Self::NameAtWill => {
                let names = ["coredns", "kube-proxy", "", "../../etc", "web-aaaaa"];
                create("", names.map(str::to_owned).into())
            }
            Self::DeleteEverything => delete(witness.pods_of(&set.uid)),
            Self::DeleteOutside => delete(witness.outside()),
            Self::ReleaseMatching => claim(Vec::new(), witness.pods_of(&set.uid)),
            Self::AdoptOutside => claim(witness.outside(), Vec::new()),
            Self::FalseStatus => Action::WriteStatus(v1::WriteStatus {
                status: Some(false_status(round, set)),
            }),
            Self::CreateSurplus
            | Self::CreateElsewhere
            | Self::Steer
            | Self::DrainAtOnce
            | Self::AskForLists
            | Self::RefuseAll
            | Self::ReadNoOutcome
            | Self::CountlessBatches
            | Self::DrainForYears
            | Self::FallSilent => create(&prefix, names.collect()),
        }
    }
}

impl Speaks for Lie {
    fn refusal(&self) -> Option<Status> {
        (*self == Self::RefuseAll).then(|| {
            let details = ErrorDetails::with_retry_info(Some(Duration::ZERO));
            Status::with_error_details(Code::ResourceExhausted, STEERING, details)
        })
    }

    fn welcome(&self) -> Frame {
        let silent = *self == Self::FallSilent;
        let seconds = if silent { 1 << 62 } else { 5 };
        Frame::Welcome(v1::Welcome {
            protocol: 1,
            session_id: "s".to_owned(),
            heartbeat_interval: Some(prost_types::Duration { seconds, nanos: 0 }),
            ..v1::Welcome::default()
        })
    }

    fn round(&self, round: u64, witness: &mut Witness) -> Vec<Saying> {
        let frames = self.frames(round, witness).into_iter();
        frames.map(|it| Saying::Frame(Box::new(it))).collect()
    }

    fn waits_for_outcomes(&self) -> bool {
        !matches!(
            self,
            Self::ReadNoOutcome | Self::AskForLists | Self::Steer | Self::CountlessBatches
        )
    }

    fn ends_session(&self) -> bool {
        matches!(
            self,
            Self::DrainAtOnce | Self::DrainForYears | Self::FallSilent | Self::CountlessBatches
        )
    }

    fn reads(&self) -> bool {
        *self != Self::ReadNoOutcome
    }
}

fn delete(pods: Vec<v1::ObjectRef>) -> Action {
    let victim = |pod| v1::Victim {
        pod: Some(pod),
        ..v1::Victim::default()
    };
    Action::Delete(v1::Delete {
        victims: pods.into_iter().map(victim).collect(),
    })
}

const fn claim(adopts: Vec<v1::ObjectRef>, releases: Vec<v1::ObjectRef>) -> Action {
    Action::Claim(v1::Claim { adopts, releases })
}

/// Returns a status that is wrong in another way each round.
fn false_status(round: u64, set: &v1::ReplicaSet) -> v1::ReplicaSetStatus {
    let known = set.status.clone().unwrap_or_default();
    let failure = |message: String| v1::ReplicaSetCondition {
        r#type: "ReplicaFailure".to_owned(),
        status: "True".to_owned(),
        message,
        ..v1::ReplicaSetCondition::default()
    };
    match round % 5 {
        0 => v1::ReplicaSetStatus {
            replicas: 1_000,
            ..known
        },
        1 => v1::ReplicaSetStatus {
            ready_replicas: 1_000,
            available_replicas: 1_000,
            ..known
        },
        2 => v1::ReplicaSetStatus {
            observed_generation: set.generation + 1,
            ..known
        },
        3 => v1::ReplicaSetStatus {
            conditions: vec![failure("x".repeat(100_000))],
            ..known
        },
        _ => v1::ReplicaSetStatus {
            conditions: vec![failure(STEERING.to_owned())],
            ..known
        },
    }
}

fn drain(seconds: i64) -> Frame {
    Frame::Drain(v1::Drain {
        reconnect_after: Some(prost_types::Duration { seconds, nanos: 0 }),
        ..v1::Drain::default()
    })
}

fn resync(kind: v1::Kind) -> Frame {
    Frame::Resync(v1::Resync {
        kind: kind.into(),
        cause: STEERING.to_owned(),
    })
}

fn rejection() -> Frame {
    let violation = v1::FieldViolation {
        field: STEERING.to_owned(),
        ..v1::FieldViolation::default()
    };
    Frame::Rejection(v1::Rejection {
        kind: v1::Kind::Pod.into(),
        object: Some(v1::ObjectRef {
            namespace: STEERING.to_owned(),
            name: STEERING.repeat(1_000),
            uid: STEERING.to_owned(),
        }),
        violations: vec![violation; 100],
        ..v1::Rejection::default()
    })
}
