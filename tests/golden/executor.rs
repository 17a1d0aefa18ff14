//! Obeys batches as an agent does, against a cluster that has only the faults of a case.

use std::collections::BTreeSet;

use serde_json::Value;
use server_core::{Action, After, Batch, Effect, FailureClass, NotStarted, Outcome, PodRef, Status, Uid, Victim};

/// What was done, for comparing with what upstream did.
#[derive(Debug, Default)]
pub(crate) struct Executor {
    pub(crate) create_calls: u64,
    pub(crate) created: u64,
    /// Deletions that were tried: upstream's record counts those that failed as well.
    pub(crate) deletes: BTreeSet<String>,
    pub(crate) adopts: BTreeSet<String>,
    pub(crate) releases: BTreeSet<String>,
    pub(crate) status: Option<Status>,
    fault: Value,
}

impl Executor {
    pub(crate) fn new(fault: &Value) -> Self {
        Self { fault: fault.clone(), ..Self::default() }
    }

    /// Executes a batch and returns the outcome of each operation.
    pub(crate) fn execute(&mut self, batch: &Batch) -> Vec<Outcome> {
        let effects = match &batch.action {
            Action::Create { names, slow_start_initial, .. } => self.create(names.len(), *slow_start_initial),
            Action::Delete(victims) => victims.iter().map(|victim| self.delete(victim)).collect(),
            Action::Claim { adopts, releases } => self.claim(adopts, releases),
            Action::WriteStatus(status) => {
                self.status = Some((**status).clone());
                vec![done(None)]
            }
        };
        let outcome = |(operation, result)| Outcome { batch: batch.id, operation, result };
        (0..).zip(effects).map(outcome).collect()
    }

    /// Starts 1, 2, 4… creates, and no further round after one with a failure.
    fn create(&mut self, count: usize, initial: u32) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut round = initial as usize;
        let mut stopped = false;
        while effects.len() < count {
            if stopped {
                effects.push(Effect::NotStarted(NotStarted::SlowStart));
                continue;
            }
            let rest = count - effects.len();
            let results: Vec<_> = (0..round.min(rest)).map(|_| self.create_one()).collect();
            stopped = results.iter().any(|effect| !matches!(effect, Effect::Done { .. }));
            effects.extend(results);
            round *= 2;
        }
        effects
    }

    fn create_one(&mut self) -> Effect {
        self.create_calls += 1;
        if self.fault["failCreatesFrom"].as_u64().is_some_and(|first| self.create_calls >= first) {
            return failed(&self.fault["createError"]);
        }
        self.created += 1;
        done(Some(Uid(format!("made-{}", self.created).into())))
    }

    fn delete(&mut self, victim: &Victim) -> Effect {
        let name = victim.pod.name.to_string();
        let refused = self.fault["failDeletes"].as_array().is_some_and(|names| {
            names.iter().any(|one| one.as_str() == Some(&name))
        });
        self.deletes.insert(name);
        if refused {
            return failed(&self.fault["deleteError"]);
        }
        done(None)
    }

    fn claim(&mut self, adopts: &[PodRef], releases: &[PodRef]) -> Vec<Effect> {
        let other = self.fault["liveUid"].as_bool() == Some(true);
        let going = self.fault["liveDeletionTimestamp"].as_bool() == Some(true);
        let adopt = |pod: &PodRef, adopted: &mut BTreeSet<String>| {
            if other || going {
                let message = "the ReplicaSet is gone or being deleted".to_owned();
                return Effect::Failed { class: FailureClass::OwnerChanged, message, retry_after: None };
            }
            adopted.insert(pod.name.to_string());
            done(None)
        };
        let mut effects: Vec<_> = adopts.iter().map(|pod| adopt(pod, &mut self.adopts)).collect();
        for pod in releases {
            self.releases.insert(pod.name.to_string());
            effects.push(done(None));
        }
        effects
    }
}

fn done(uid: Option<Uid>) -> Effect {
    Effect::Done { uid, version: None, after: After::Untold }
}

fn failed(error: &Value) -> Effect {
    let class = match error.as_str() {
        Some("forbidden") => FailureClass::Quota,
        Some("invalid") => FailureClass::Invalid,
        Some("timeout") => FailureClass::Timeout,
        Some("namespaceTerminating") => FailureClass::NamespaceTerminating,
        Some("notFound") => FailureClass::NotFound,
        other => panic!("a case names an error that the executor does not know: {other:?}"),
    };
    Effect::Failed { class, message: error.to_string(), retry_after: None }
}
