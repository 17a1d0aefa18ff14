//! The frames of a malicious server in a session, round by round, a step at a time.
//!
//! ```text
//! heartbeat          nothing (a frame without content)      gap (a frame is left out)
//! drain SECONDS      resync pod|set|KIND [cause=…]          rejection [of=N] [name=…] [field=…]
//! create COUNT [generate=…] [name=…] [slow=N] [batch]       names go on from batch to batch, or are all the same
//! delete all|outside|gone [batch]      release all|outside [batch]      adopt all|outside [batch]
//! status [replicas=N] [ready=N] [generation=N] [conditions=N] [message=…] [batch]
//! empty [batch]      a batch without an action
//! times N STEP       batches N STEP (in one frame)          countless N (batches that say nothing, in one frame)
//! end CODE [retry=SECONDS] [message=…]                      the number of a code of gRPC
//! ```
//! `[batch]` has the wrong values of a batch: `namespace=`, `set=`, `uid=`, `session=`, `epoch=`, `id=`, `of=`.
//! A batch goes to each ReplicaSet of the cluster.

use decree::v1::{self, batch::Action, reconcile_response::Frame};
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
    /// The additional values of the Welcome: `protocol=`, `session=`, `heartbeat=`, `operations=`, `frame=`, `version=`.
    #[serde(default)]
    welcome: String,
    /// The replacement of the Welcome: a step of one frame.
    first: Option<String>,
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
    /// A skipped frame number.
    Gap,
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
        self.honest && self.refused.is_none() && self.first.is_none()
    }

    /// The refusal of each stream, if there is one.
    pub(super) fn refusal(&self) -> Option<Status> {
        let words: Vec<_> = self.refused.as_ref()?.split_whitespace().collect();
        Some(status(&words))
    }

    pub(super) fn welcome(&self) -> Frame {
        if let Some(first) = &self.first {
            let words: Vec<_> = first.split_whitespace().collect();
            return plain(&words).expect("a frame that is no batch");
        }
        let template = Template::read(self.welcome.split_whitespace());
        let text =
            |key: &str, other: &str| template.text(key, 0).unwrap_or_else(|| other.to_owned());
        let number = |key: &str| template.value(key, 0);
        Frame::Welcome(v1::Welcome {
            protocol: number("protocol").unwrap_or(1),
            session_id: text("session", "s"),
            heartbeat_interval: Some(seconds(template.value("heartbeat", 0).unwrap_or(5))),
            limits: Some(v1::Limits {
                max_operations_in_flight: number("operations").unwrap_or(0),
                max_frame_bytes: number("frame").unwrap_or(0),
                ..v1::Limits::default()
            }),
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
        ["gap"] => outputs.push(Output::Gap),
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
                "set" => v1::Kind::ReplicaSet.into(),
                number => number.parse().expect("a kind"),
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
    let one = |at: u64| v1::Rejection {
        kind: v1::Kind::Pod.into(),
        object: Some(template.reference(at)),
        violations: vec![v1::FieldViolation {
            field: template.text("field", at).unwrap_or_default(),
            ..v1::FieldViolation::default()
        }],
        ..v1::Rejection::default()
    };
    let others = template.value("of", 0).unwrap_or(1_u64);
    Frame::Rejection(v1::Rejection {
        others: (1..others).map(one).collect(),
        ..one(0)
    })
}

/// The batches of a step: one for each ReplicaSet.
fn batches(words: &[&str], round: u64, view: &mut View) -> Vec<v1::Batch> {
    let (verb, rest) = words.split_first().expect("a step has a verb");
    let (of, rest) = match rest {
        [of, rest @ ..] if !of.contains('=') => (*of, rest),
        rest => ("", rest),
    };
    let template = Template::read(rest.iter().copied());
    let sets = view.replica_sets();
    let batch = |set: v1::ReplicaSet| {
        let action = action(verb, of, round, &set, view, &template);
        let mut batch = view.batch(&set, action.unwrap_or_else(|| create("", Vec::new(), 1)));
        batch.action = batch.action.filter(|_| *verb != "empty");
        mistake(&mut batch, &template, round);
        batch
    };
    sets.into_iter().map(batch).collect()
}

/// Adds wrong values to a batch.
fn mistake(batch: &mut v1::Batch, template: &Template, round: u64) {
    let text = |key: &str| template.text(key, round);
    if let Some(set) = &mut batch.replica_set {
        let v1::ObjectRef {
            namespace,
            name,
            uid,
        } = set;
        for (field, key) in [(namespace, "namespace"), (name, "set"), (uid, "uid")] {
            *field = text(key).unwrap_or_else(|| std::mem::take(field));
        }
    }
    if let Some(guard) = &mut batch.guard {
        guard.session_id = text("session").unwrap_or_else(|| std::mem::take(&mut guard.session_id));
        guard.epoch = template.value("epoch", round).unwrap_or(guard.epoch);
    }
    batch.id = template.value("id", round).unwrap_or(batch.id);
    batch.generation = template.value("of", round).unwrap_or(batch.generation);
}

fn action(
    verb: &str,
    of: &str,
    round: u64,
    set: &v1::ReplicaSet,
    view: &View,
    template: &Template,
) -> Option<Action> {
    // Names and uids of objects that never existed.
    let gone = |at: u64| v1::ObjectRef {
        namespace: set.namespace.clone(),
        name: format!("{}-gone{at}", set.name),
        uid: format!("gone-{at}"),
    };
    let pods = || match of {
        "outside" => view.outside(),
        "gone" => (0..500).map(gone).collect(),
        _ => view.pods_of(&set.uid),
    };
    Some(match verb {
        "create" => {
            let count: u64 = of.parse().expect("a number");
            let prefix = format!("{}-", set.name);
            let name = |at: u64| {
                let name = template.text("name", round * count + at);
                name.unwrap_or_else(|| format!("{prefix}{}", suffix(round * count + at)))
            };
            let prefix = template
                .text("generate", round)
                .unwrap_or_else(|| prefix.clone());
            create(
                &prefix,
                (0..count).map(name).collect(),
                template.value("slow", 0).unwrap_or(500),
            )
        }
        "delete" => {
            let victim = |pod| v1::Victim {
                pod: Some(pod),
                ..v1::Victim::default()
            };
            let victims = pods().into_iter().map(victim).collect();
            Action::Delete(v1::Delete { victims })
        }
        "release" => Action::Claim(v1::Claim {
            adopts: Vec::new(),
            releases: pods(),
        }),
        "adopt" => Action::Claim(v1::Claim {
            adopts: pods(),
            releases: Vec::new(),
        }),
        "status" => write(set, template),
        "empty" => return None,
        verb => panic!("{verb} is no step"),
    })
}

fn write(set: &v1::ReplicaSet, template: &Template) -> Action {
    let known = set.status.clone().unwrap_or_default();
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
            replicas: template.value("replicas", 0).unwrap_or(known.replicas),
            ready_replicas: template.value("ready", 0).unwrap_or(known.ready_replicas),
            observed_generation: template
                .value("generation", 0)
                .unwrap_or(known.observed_generation),
            conditions: (0..conditions).map(condition).collect(),
            ..known
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
