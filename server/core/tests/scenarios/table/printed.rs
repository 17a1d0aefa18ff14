//! What the statements of a table print.

use std::fmt::Write as _;

use decree_core::{Action, Batch, ControllerReport, Reason, Status};

use crate::{objects::START, rig::Rig};

/// The names of created pods, in the order of their first creates.
#[derive(Default)]
pub(super) struct Names(pub(super) Vec<String>);

impl Names {
    /// The name of a pod, by its number if the controller created it.
    fn short(&self, name: &str) -> String {
        let created = self.0.iter().position(|it| it == name);
        created.map_or_else(|| name.to_owned(), |at| format!("${}", at + 1))
    }

    /// A batch in words.
    pub(super) fn told(&mut self, batch: &Batch) -> String {
        let mut told = String::new();
        let kind = match &batch.action {
            Action::Create { names, .. } => {
                let mut places = Vec::new();
                for name in names {
                    let known = self.0.iter().position(|it| **it == **name);
                    places.push(known.unwrap_or_else(|| {
                        self.0.push(name.to_string());
                        self.0.len() - 1
                    }));
                }
                for run in places.chunk_by(|one, next| *next == one + 1) {
                    match run {
                        [first, .., last] => write!(told, " ${}-${}", first + 1, last + 1),
                        [one] => write!(told, " ${}", one + 1),
                        [] => Ok(()),
                    }
                    .expect("it is a string");
                }
                "create"
            }
            Action::Delete(victims) => {
                for it in victims {
                    let version = if it.version.is_some() { "@version" } else { "" };
                    let is_usual = *it.pod.uid.0 == *format!("uid-{}", it.pod.name);
                    let uid = if is_usual { "" } else { "(other UID)" };
                    let (name, rule) = (self.short(&it.pod.name), it.reason.rule);
                    write!(told, " {name}{uid}{version}:{rule:?}").expect("it is a string");
                }
                "delete"
            }
            Action::Claim { adopts, releases } => {
                let signed = adopts.iter().map(|it| ('+', it));
                let signed = signed.chain(releases.iter().map(|it| ('-', it)));
                told.extend(signed.map(|(sign, it)| format!(" {sign}{}", self.short(&it.name))));
                "claim"
            }
            Action::Advise(advices) => {
                let advices = advices.iter();
                told.extend(advices.map(|it| format!(" {}={}", it.pod.name, it.cost)));
                "advise"
            }
            Action::WriteStatus(status) => {
                told = status_of(status);
                "status"
            }
        };
        let key = &batch.key;
        let is_usual = key.uid == crate::objects::key(&key.name).uid;
        let other = if is_usual {
            String::new()
        } else {
            format!("({})", &*key.uid.0)
        };
        format!("{kind} {}{other}{told}", key.name)
    }
}

fn status_of(status: &Status) -> String {
    let mut told = format!(" {}", counts(status));
    if status.observed_generation != 1 {
        told += &format!(" generation {}", status.observed_generation);
    }
    for it in &status.conditions {
        let since = it
            .last_transition
            .map_or(-1, |at| at.since(START).0 / 1_000_000);
        told += &format!(" ({} {} since {since}: {})", it.kind, it.reason, it.message);
    }
    told
}

pub(super) fn syncs(rig: &mut Rig) -> String {
    let syncs = rig.syncs().into_iter().map(|it| {
        let requeue = it
            .requeue_after
            .map(|it| format!(", again in {} ms", it.0 / 1_000_000));
        let error = it.error.map(|it| format!(", {it}"));
        let (requeue, error) = (requeue.unwrap_or_default(), error.unwrap_or_default());
        format!("{}{requeue}{error}", it.key.name)
    });
    joined(&syncs.collect::<Vec<_>>(), "no sync")
}

/// The names of the ReplicaSets that synced since the last call.
pub(super) fn synced(rig: &mut Rig) -> String {
    rig.settle();
    let mut names: Vec<_> = rig
        .syncs()
        .iter()
        .map(|it| it.key.name.to_string())
        .collect();
    names.sort_unstable();
    names.dedup();
    joined(&names, "no sync")
}

pub(super) fn reports(rig: &mut Rig) -> String {
    let reports = rig.reports().into_iter().filter_map(|it| {
        if let ControllerReport::Quarantined { key, .. } = it {
            Some(format!("quarantined {}", key.name))
        } else {
            None
        }
    });
    joined(&reports.collect::<Vec<_>>(), "no report")
}

fn counts(status: &Status) -> String {
    let Status {
        replicas,
        fully_labeled_replicas: labeled,
        ready_replicas: ready,
        available_replicas: available,
        terminating_replicas: terminating,
        ..
    } = status;
    let terminating = terminating.map_or_else(|| "absent".to_owned(), |it| it.to_string());
    format!("{replicas}/{labeled}/{ready}/{available}+{terminating}")
}

pub(super) fn joined(all: &[String], none: &str) -> String {
    if all.is_empty() {
        none.to_owned()
    } else {
        all.join(", ")
    }
}

/// The questions for costs that leave now.
pub(super) fn questions(rig: &mut Rig) -> String {
    let questions = std::iter::from_fn(|| rig.controller.poll_question());
    let questions = questions.map(|it| {
        let names: Vec<_> = it.pods.iter().map(|pod| &*pod.name).collect();
        let millis = it.timeout.0 / 1_000_000;
        format!("question {} within {millis} ms: {}", it.id, names.join(" "))
    });
    joined(&questions.collect::<Vec<_>>(), "no question")
}

/// The reasons of a batch, and of each of its deletes.
pub(super) fn details(batch: &Batch) -> String {
    let Action::Delete(victims) = &batch.action else {
        return reasons(&batch.reasons);
    };
    let victims = victims
        .iter()
        .map(|it| format!("{}: {}", it.pod.name, it.reason.detail));
    let victims: Vec<_> = victims.collect();
    format!("{}; {}", reasons(&batch.reasons), victims.join("; "))
}

pub(super) fn reasons(reasons: &[Reason]) -> String {
    let reasons = reasons
        .iter()
        .map(|it| format!("{:?}: {}", it.rule, it.detail));
    reasons.collect::<Vec<_>>().join("; ")
}

pub(super) fn sizes(rig: &Rig) -> String {
    let (inspect, it) = (rig.controller.inspect(), rig.controller.inspect().sizes());
    let longest = inspect.longest_sync(rig.now).unwrap_or_default().0 / 1_000_000;
    let parts = [
        (it.pods, "pods".to_owned()),
        (it.replica_sets, "sets".to_owned()),
        (it.quarantined, "quarantined".to_owned()),
        (it.syncing, format!("syncing for {longest} ms")),
        (it.miscounted_for_long, "miscounted".to_owned()),
        (it.unavailable_for_long, "unavailable".to_owned()),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    joined(&parts, "nothing")
}

pub(super) fn view(rig: &Rig, name: &str) -> String {
    let view = rig.view(name);
    let rules: Vec<_> = view
        .reasons
        .iter()
        .map(|it| format!("{:?}", it.rule))
        .collect();
    let mut told = format!(
        "{:?} {} {}",
        view.state,
        counts(&view.status),
        rules.join(" ")
    );
    if let Some(reason) = view.reasons.last().filter(|it| {
        it.rule == decree_core::Rule::RefusedByAgent || it.rule == decree_core::Rule::Throttled
    }) {
        write!(told, ": {}", reason.detail).expect("it is a string");
    }
    let millis = |at: decree_core::Timestamp| at.since(START).0 / 1_000_000;
    let parts = [
        view.in_flight
            .map(|(operations, came)| format!("{came} of {operations} came")),
        (view.failures > 0).then(|| format!("{} failures", view.failures)),
        view.next_sync
            .map(|at| format!("next sync at {} ms", millis(at))),
        view.unconverged_since
            .map(|at| format!("unconverged since {} ms", millis(at))),
    ];
    for part in parts.into_iter().flatten() {
        write!(told, ", {part}").expect("it is a string");
    }
    told
}
