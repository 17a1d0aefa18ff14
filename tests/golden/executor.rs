//! Executes batches like an agent, against a cluster with only the faults of a case.

use std::collections::BTreeSet;

use decree_core::{
    Action, After, Batch, Controller, FailureClass, Key, NotStarted, OperationResult, Outcome,
    OwnerReference, Pod, PodRef, PodState, ReplicaSet, ResourceVersion, Status, Uid, Victim,
};
use serde_json::Value;

/// Success. The object is added when the batch is answered.
const DONE: OperationResult = OperationResult::Done {
    version: None,
    after: None,
};
/// A version after all versions of a case.
const LATER: ResourceVersion = ResourceVersion(u64::MAX);

/// The attempts and effects of a sync, to compare with upstream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Executor {
    pub(crate) create_calls: u64,
    pub(crate) created: u64,
    /// Pods with an attempted deletion. The recordings of upstream contain failed attempts too.
    pub(crate) deletes: BTreeSet<String>,
    pub(crate) adopts: BTreeSet<String>,
    pub(crate) releases: BTreeSet<String>,
    pub(crate) status: Option<Status>,
    fault: Value,
}

impl Executor {
    pub(crate) fn new(fault: &Value) -> Self {
        Self {
            fault: fault.clone(),
            ..Self::default()
        }
    }

    /// Executes a batch and returns the outcome of each operation, with the object derived from the controller's view.
    pub(crate) fn execute(&mut self, controller: &Controller, batch: &Batch) -> Vec<Outcome> {
        let effects = match &batch.action {
            Action::Create {
                names,
                slow_start_initial,
                ..
            } => self.create(names.len(), *slow_start_initial),
            Action::Delete(victims) => victims.iter().map(|victim| self.delete(victim)).collect(),
            Action::Claim { adopts, releases } => self.claim(adopts, releases),
            Action::Advise(advices) => vec![DONE; advices.len()],
            Action::WriteStatus(status) => {
                self.status = Some((**status).clone());
                vec![DONE]
            }
        };
        let outcome = |(at, result)| {
            let result = match result {
                OperationResult::Done { version, .. } => OperationResult::Done {
                    version,
                    after: after(controller, batch, at),
                },
                other @ (OperationResult::Failed { .. } | OperationResult::NotStarted(_)) => other,
            };
            Outcome {
                batch: batch.id,
                operation: u32::try_from(at).expect("batches are bounded"),
                result,
            }
        };
        effects.into_iter().enumerate().map(outcome).collect()
    }

    /// Starts creates in rounds of 1, 2, 4…, and stops after the first round with a failure.
    fn create(&mut self, count: usize, initial: u32) -> Vec<OperationResult> {
        let mut effects = Vec::new();
        let mut round = usize::try_from(initial).expect("a round fits in memory");
        while effects.len() < count {
            let rest = count - effects.len();
            let results: Vec<_> = (0..round.min(rest)).map(|_| self.create_one()).collect();
            let failed = results
                .iter()
                .any(|effect| !matches!(effect, OperationResult::Done { .. }));
            effects.extend(results);
            if failed {
                effects.resize(count, OperationResult::NotStarted(NotStarted::SlowStart));
            }
            round *= 2;
        }
        effects
    }

    fn create_one(&mut self) -> OperationResult {
        self.create_calls += 1;
        if self.fault["failCreatesFrom"]
            .as_u64()
            .is_some_and(|first| self.create_calls >= first)
        {
            return failed(&self.fault["createError"]);
        }
        self.created += 1;
        DONE
    }

    fn delete(&mut self, victim: &Victim) -> OperationResult {
        let name = victim.pod.name.to_string();
        let fails = self.fault["failDeletes"].as_array().into_iter().flatten();
        let fails = fails.into_iter().any(|one| *one == *name);
        self.deletes.insert(name);
        if fails {
            failed(&self.fault["deleteError"])
        } else {
            DONE
        }
    }

    fn claim(&mut self, adopts: &[PodRef], releases: &[PodRef]) -> Vec<OperationResult> {
        let live = |fault: &str| self.fault[fault] == true;
        let alive = !live("liveUid") && !live("liveDeletionTimestamp");
        let name = |pod: &PodRef| pod.name.to_string();
        if alive {
            self.adopts.extend(adopts.iter().map(name));
        }
        self.releases.extend(releases.iter().map(name));
        let adopt = |_| if alive { DONE } else { owner_changed() };
        adopts
            .iter()
            .map(adopt)
            .chain(releases.iter().map(|_| DONE))
            .collect()
    }
}

fn owner_changed() -> OperationResult {
    let message = "the replica set is another or being deleted".to_owned();
    OperationResult::Failed {
        class: FailureClass::OwnerChanged,
        message,
        retry_after: None,
    }
}

fn failed(error: &Value) -> OperationResult {
    let class = match error.as_str() {
        Some("forbidden") => FailureClass::Forbidden,
        Some("invalid") => FailureClass::Invalid,
        Some("timeout") => FailureClass::Timeout,
        Some("namespaceTerminating") => FailureClass::NamespaceTerminating,
        Some("notFound") => FailureClass::NotFound,
        other => panic!("a case names an error that the executor does not know: {other:?}"),
    };
    OperationResult::Failed {
        class,
        message: error.to_string(),
        retry_after: None,
    }
}

/// Returns the object after an operation, derived from the controller's view.
fn after(controller: &Controller, batch: &Batch, operation: usize) -> Option<After> {
    let Batch { key, action, .. } = batch;
    let version = Some(LATER);
    let set = controller.inspect().replica_set(key)?.object();
    let owned_by = |pod: &PodRef, controller_reference| {
        let known = controller.inspect().pod(&key.namespace, &pod.name)?;
        Some(After::Pod(Box::new(Pod {
            version,
            controller: controller_reference,
            ..known
        })))
    };
    match action {
        Action::Create { names, .. } => Some(After::Pod(Box::new(Pod {
            namespace: key.namespace.clone(),
            name: names.get(operation)?.clone(),
            uid: Uid(format!("created-{}", names[operation]).into()),
            version,
            labels: set.template_labels.clone(),
            controller: Some(reference(key)),
            node: None,
            deleted: None,
            waiting: None,
            state: PodState::default(),
        }))),
        Action::Delete(_) => Some(After::Gone),
        Action::Claim { adopts, releases } => match adopts.get(operation) {
            Some(orphan) => owned_by(orphan, Some(reference(key))),
            None => owned_by(releases.get(operation - adopts.len())?, None),
        },
        Action::Advise(_) => None,
        Action::WriteStatus(status) => Some(After::ReplicaSet(Box::new(ReplicaSet {
            version,
            status: (**status).clone(),
            ..set.clone()
        }))),
    }
}

fn reference(key: &Key) -> OwnerReference {
    OwnerReference {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        name: key.name.clone(),
        uid: key.uid.clone(),
        block_owner_deletion: Some(true),
    }
}
