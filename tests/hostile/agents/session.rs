//! The frames of a malicious server in a session, round by round, a step at a time.
//!
//! ```text
//! heartbeat          nothing (a frame without content)
//! drain SECONDS      resync pod|set [cause=…]         rejection [of=N] [name=…] [field=…]
//! create COUNT [name=…]                               names go on from batch to batch, or are all the same
//! status conditions=N [type=…] [message=…]
//! times N STEP       batches N STEP (in one frame)    countless N (batches that say nothing, in one frame)
//! end CODE [retry=SECONDS] [message=…]                the number of a code of gRPC
//! ```
//! A batch goes to each ReplicaSet of the cluster.

use std::ops::Range;

use decree_api::v1::{self, batch::Action, reconcile_response::Frame};
use prost_types::Duration;
use serde::Deserialize;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::view::{View, create, suffix};
use tests::template::Template;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Session {
    /// The steps of each round.
    #[serde(default)]
    steps: Vec<String>,
    /// The additional values of the Welcome: `session=`, `heartbeat=`, `version=`.
    #[serde(default)]
    welcome: String,
    /// The refusal of each stream, if there is one: the arguments of a step `end`.
    refused: Option<String>,
    /// Whether the agent creates the desired pods first, as with an honest server.
    #[serde(default = "yes")]
    pub(super) honest: bool,
    /// Whether a round waits for the outcomes of the round before.
    #[serde(default = "yes")]
    pub(super) waits: bool,
    /// Whether there is only one round, and silence after it.
    #[serde(default)]
    pub(super) once: bool,
    /// Whether the server reads the agent's frames after the pods exist.
    #[serde(default = "yes")]
    pub(super) reads: bool,
}

/// One part of what a session sends.
pub(super) enum Output {
    Frame(Box<Frame>),
    /// A frame without content.
    Nothing,
    End(Status),
}

fn yes() -> bool {
    true
}

impl Output {
    pub(super) fn frame(frame: Frame) -> Self {
        Self::Frame(Box::new(frame))
    }
}

impl Session {
    /// Whether pods are created before the session begins.
    pub(crate) const fn settles(&self) -> bool {
        self.honest && self.refused.is_none()
    }

    /// The refusal of each stream, if there is one.
    pub(super) fn refusal(&self) -> Option<Status> {
        let words: Vec<_> = self.refused.as_ref()?.split_whitespace().collect();
        Some(status(&words))
    }

    pub(super) fn welcome(&self) -> Frame {
        let template = Template::read(self.welcome.split_whitespace());
        let text =
            |key: &str, other: &str| template.text(key, 0).unwrap_or_else(|| other.to_owned());
        Frame::Welcome(v1::Welcome {
            protocol: 1,
            session_id: text("session", "s"),
            heartbeat_interval: Some(seconds(template.value("heartbeat", 0).unwrap_or(5))),
            limits: None,
            server_version: text("version", "0.1.0"),
        })
    }

    /// The output of a round.
    pub(super) fn round(&self, round: u64, view: &mut View) -> Vec<Output> {
        let mut outputs = Vec::new();
        for step in &self.steps {
            let words: Vec<_> = step.split_whitespace().collect();
            output(&words, round, view, &mut outputs);
        }
        outputs
    }
}

fn output(words: &[&str], round: u64, view: &mut View, outputs: &mut Vec<Output>) {
    let frame = Output::frame;
    match words {
        ["nothing"] => outputs.push(Output::Nothing),
        ["end", rest @ ..] => outputs.push(Output::End(status(rest))),
        ["times", count, step @ ..] => {
            for at in 0..count.parse().expect("a number") {
                output(step, round * 1_000 + at, view, outputs);
            }
        }
        ["batches", count, step @ ..] => {
            let count: u64 = count.parse().expect("a number");
            let each = (0..count).flat_map(|at| batches(step, round * 1_000 + at, view));
            let batches = each.collect();
            outputs.push(frame(Frame::Batches(v1::Batches { batches })));
        }
        words => match plain(words) {
            Some(plain) => outputs.push(frame(plain)),
            None => {
                let each = batches(words, round, view).into_iter();
                let each = each.map(|batch| {
                    Frame::Batches(v1::Batches {
                        batches: vec![batch],
                    })
                });
                outputs.extend(each.map(frame));
            }
        },
    }
}

/// A frame that is not a batch; `None` if the step asks for batches.
fn plain(words: &[&str]) -> Option<Frame> {
    Some(match words {
        ["heartbeat"] => Frame::Heartbeat(v1::Heartbeat::default()),
        ["drain", wait] => Frame::Drain(v1::Drain {
            reconnect_after: Some(seconds(wait.parse().expect("a number"))),
            ..v1::Drain::default()
        }),
        ["resync", kind, rest @ ..] => {
            let kind = match *kind {
                "pod" => v1::Kind::Pod.into(),
                _ => v1::Kind::ReplicaSet.into(),
            };
            let cause = Template::read(rest.iter().copied()).text("cause", 0);
            let cause = cause.unwrap_or_default();
            Frame::Resync(v1::Resync { kind, cause })
        }
        ["countless", count] => Frame::Batches(v1::Batches {
            batches: vec![v1::Batch::default(); count.parse().expect("a number")],
        }),
        ["rejection", rest @ ..] => rejection(&Template::read(rest.iter().copied())),
        _ => return None,
    })
}

fn rejection(template: &Template) -> Frame {
    let one = |at: u64| v1::RejectedObject {
        kind: v1::Kind::Pod.into(),
        object: Some(template.reference(at)),
        violations: vec![v1::FieldViolation {
            field: template.text("field", at).unwrap_or_default(),
            ..v1::FieldViolation::default()
        }],
    };
    let objects = template.value("of", 0).unwrap_or(1_u64);
    Frame::Rejection(v1::Rejection {
        objects: (0..objects).map(one).collect(),
        ..v1::Rejection::default()
    })
}

/// The batches of a step: one for each ReplicaSet.
fn batches(words: &[&str], round: u64, view: &mut View) -> Vec<v1::Batch> {
    let sets = view.replica_sets();
    let batch = |set: v1::ReplicaSet| {
        let action = match words {
            ["create", count, rest @ ..] => {
                let count: u64 = count.parse().expect("a number");
                creates(round * count..(round + 1) * count, &set, rest)
            }
            ["status", rest @ ..] => write(&set, &Template::read(rest.iter().copied())),
            _ => panic!("{words:?} is no step"),
        };
        view.batch(&set, action)
    };
    sets.into_iter().map(batch).collect()
}

fn creates(numbers: Range<u64>, set: &v1::ReplicaSet, words: &[&str]) -> Action {
    let template = Template::read(words.iter().copied());
    let prefix = format!("{}-", set.name);
    let name = |at: u64| {
        let name = template.text("name", at);
        name.unwrap_or_else(|| format!("{prefix}{}", suffix(at)))
    };
    create(&prefix, numbers.map(name).collect())
}

fn write(set: &v1::ReplicaSet, template: &Template) -> Action {
    let condition = |at: u64| v1::ReplicaSetCondition {
        r#type: template
            .text("type", at)
            .unwrap_or_else(|| "ReplicaFailure".to_owned()),
        status: "True".to_owned(),
        message: template.text("message", at).unwrap_or_default(),
        ..v1::ReplicaSetCondition::default()
    };
    let conditions = template.value("conditions", 0).unwrap_or(0);
    Action::WriteStatus(v1::WriteStatus {
        status: Some(v1::ReplicaSetStatus {
            conditions: (0..conditions).map(condition).collect(),
            ..set.status.clone().unwrap_or_default()
        }),
    })
}

/// The status of `CODE [retry=SECONDS] [message=…]`.
fn status(words: &[&str]) -> Status {
    let (code, rest) = words.split_first().expect("an end has a code");
    let template = Template::read(rest.iter().copied());
    let code = Code::from(code.parse::<i32>().expect("a number of a code"));
    let message = template.text("message", 0).unwrap_or_default();
    match template.value::<u64>("retry", 0) {
        None => Status::new(code, message),
        Some(retry) => {
            let wait = std::time::Duration::from_secs(retry);
            Status::with_error_details(code, message, ErrorDetails::with_retry_info(Some(wait)))
        }
    }
}

const fn seconds(seconds: i64) -> Duration {
    Duration { seconds, nanos: 0 }
}
