//! Decisions, their reasons and inspection, from the core to the contract; options the other way.

use decree_api::v1;
use decree_core::{
    Action, ActionKind, Advice, Batch, Brake, Condition, Config, Decision, Impact, Need, NotReady,
    OwnerReference, REPLICA_FAILURE, ScaleDown, State, Status, Timestamp, Victim, View,
};

use super::{
    Fault, Violation,
    batch::{key_ref, pod_refs, status, victim},
    field::{self, Faults},
    preferences,
    reason::{reason, reasons, rule},
};

/// The maximum number of objects of a decision in a record.
const TARGETS_MAX: usize = 20;
const BURST_MAX: i32 = 5_000;
const SLOW_START_MAX: i32 = 500;
const UNASSIGNED_MAX: i32 = 1_000_000;
/// The number of pods that are created a second while many have no node, unless the agent sets it: upstream's rate.
const UNASSIGNED_CREATES: u32 = 20;

/// Reads the options of decisions; absent fields keep the values of `base`.
///
/// # Errors
/// Names every option that is out of its range.
pub fn options(options: Option<&v1::Options>, base: Config) -> Result<Config, Vec<Violation>> {
    let Some(v1::Options {
        burst_replicas: burst,
        slow_start_initial: initial,
        delete_by_version,
        create_back_off,
        unassigned_pods_max,
        unassigned_creates_per_second,
    }) = options
    else {
        return Ok(base);
    };
    let mut faults = Faults::default();
    let mut read = |field: &str, value: Option<i32>, max, default: u32| {
        let Some(value) = value else { return default };
        if !(1..=max).contains(&value) {
            let range = format!("{value} must be 1 to {max}");
            faults.add(Violation::new(field, Fault::Range, range));
        }
        value.unsigned_abs()
    };
    let (of_burst, of_initial) = ("options.burst_replicas", "options.slow_start_initial");
    let burst = read(of_burst, *burst, BURST_MAX, base.burst_replicas);
    let initial = read(
        of_initial,
        *initial,
        SLOW_START_MAX,
        base.slow_start_initial,
    );
    let pods = read(
        "options.unassigned_pods_max",
        *unassigned_pods_max,
        UNASSIGNED_MAX,
        0,
    );
    let per_second = read(
        "options.unassigned_creates_per_second",
        *unassigned_creates_per_second,
        BURST_MAX,
        UNASSIGNED_CREATES,
    );
    let violations = faults.into_vec();
    if !violations.is_empty() {
        return Err(violations);
    }
    Ok(Config {
        brake: (pods > 0).then_some(Brake { pods, per_second }),
        burst_replicas: burst,
        slow_start_initial: initial,
        delete_by_version: delete_by_version.unwrap_or(base.delete_by_version),
        create_back_off: create_back_off.unwrap_or(base.create_back_off),
        ..base
    })
}

/// Writes one whole decision.
pub fn decision(decision: Decision) -> v1::Decision {
    let Decision {
        key,
        creates,
        deletes,
        adopts,
        releases,
        status: written,
        requeue_after,
        quarantined,
        reasons: why,
    } = decision;
    let deletes = deletes.into_iter();
    v1::Decision {
        replica_set: Some(key_ref(&key)),
        creates: creates.iter().map(ToString::to_string).collect(),
        deletes: deletes.map(|it| victim(&key.namespace, it)).collect(),
        adopts: pod_refs(&key.namespace, &adopts),
        releases: pod_refs(&key.namespace, &releases),
        status: written.map(status),
        requeue_after: requeue_after.map(field::duration),
        quarantined,
        reasons: reasons(why),
    }
}

/// A cluster as answers name it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClusterRef<'a> {
    /// Its name, or its UID if it has none.
    pub name: &'a str,
    /// Its UID.
    pub uid: &'a str,
    /// The shard of the session; empty for the whole cluster.
    pub shard: &'a str,
}

/// Writes the record of a batch that left for `cluster` at `time`.
pub fn record(time: Timestamp, cluster: ClusterRef<'_>, batch: &Batch) -> v1::DecisionRecord {
    v1::DecisionRecord {
        decide_time: Some(field::time(time)),
        cluster: cluster.name.to_owned(),
        cluster_uid: cluster.uid.to_owned(),
        shard: cluster.shard.to_owned(),
        replica_set: Some(key_ref(&batch.key)),
        batch_id: batch.id.0,
        action: action_out(batch.action.kind()).into(),
        operations: field::int32(batch.action.operations()),
        targets: targets(&batch.action),
        reasons: reasons(batch.reasons.clone()),
        status: written(&batch.action),
    }
}

/// Writes the status of an action without its texts, as records are kept for long.
fn written(action: &Action) -> Option<v1::ReplicaSetStatus> {
    let Action::WriteStatus(written) = action else {
        return None;
    };
    let mut shown = status(Status::clone(written));
    shown.conditions.retain(|it| it.r#type == REPLICA_FAILURE);
    for condition in &mut shown.conditions {
        condition.message = String::new();
        condition.last_transition_time = None;
    }
    Some(shown)
}

/// Writes the state of a ReplicaSet of `cluster`.
pub fn summary(cluster: ClusterRef<'_>, view: View) -> v1::ReplicaSetSummary {
    let View {
        key,
        replicas,
        in_advance,
        controller,
        template_labels,
        status,
        state: stands,
        reasons: why,
        in_flight,
        next_sync,
        failures: _,
        unconverged_since,
        unready: _,
        preferences,
        not_ready,
    } = view;
    let preferences = preferences.map(|it| preferences::write(*it));
    let (preferences, ignored) = preferences.unzip();
    let labels = template_labels.iter();
    let (operations, answered) = in_flight.unwrap_or_default();
    let failure = status.conditions.iter().find(|condition| {
        let Condition { kind, status, .. } = condition;
        kind == REPLICA_FAILURE && status == "True"
    });
    v1::ReplicaSetSummary {
        cluster: cluster.name.to_owned(),
        cluster_uid: cluster.uid.to_owned(),
        shard: cluster.shard.to_owned(),
        replica_set: Some(key_ref(&key)),
        replicas,
        active: status.replicas,
        ready: status.ready_replicas,
        available: status.available_replicas,
        terminating: status.terminating_replicas.unwrap_or(0),
        state: state(stands).into(),
        reasons: reasons(why),
        diverge_time: unconverged_since.map(field::time),
        next_sync_time: next_sync.map(field::time),
        operations_in_flight: field::int32(operations.saturating_sub(answered)),
        failure: failure.map_or_else(String::new, |failure| failure.message.clone()),
        template_labels: labels
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect(),
        cause: None,
        controller: controller.map(owner),
        mode: v1::Mode::Unspecified.into(),
        ignored_annotations: ignored.unwrap_or_default(),
        preferences,
        not_ready: not_ready.into_iter().map(self::not_ready).collect(),
        in_advance,
    }
}

fn not_ready(group: NotReady) -> v1::NotReady {
    let NotReady {
        reason,
        pods,
        ended,
    } = group;
    v1::NotReady {
        reason: reason.to_string(),
        pods: field::int32(pods),
        ended,
    }
}

fn owner(owner: OwnerReference) -> v1::OwnerReference {
    let OwnerReference {
        api_version,
        kind,
        name,
        uid,
        block_owner_deletion,
    } = owner;
    v1::OwnerReference {
        api_version: api_version.to_string(),
        kind: kind.to_string(),
        name: name.to_string(),
        uid: uid.0.to_string(),
        block_owner_deletion,
    }
}

/// Writes the effect of a change of `cluster` on a ReplicaSet. Refusals by a quota are not known here.
pub fn impact(cluster: ClusterRef<'_>, impact: Impact) -> v1::ReplicaSetEffect {
    let Impact {
        key,
        replicas,
        active,
        deleted,
        deleted_pods,
        ready_left,
        in_advance,
        creates,
        surplus: _,
        refused: (refused_min, refused_max),
    } = impact;
    let names = deleted_pods.iter();
    v1::ReplicaSetEffect {
        cluster: cluster.name.to_owned(),
        cluster_uid: cluster.uid.to_owned(),
        shard: cluster.shard.to_owned(),
        replica_set: Some(key_ref(&key)),
        replicas,
        active,
        deleted: field::int32(deleted),
        deleted_pods: names.map(ToString::to_string).collect(),
        creates: field::int32(creates),
        refused_min: field::int32(refused_min),
        refused_max: field::int32(refused_max),
        ready_left,
        in_advance,
    }
}

/// Writes the sums of a namespace under a quota of this number of pods.
pub fn quota(need: Need, quota: i32) -> v1::QuotaEffect {
    v1::QuotaEffect {
        pods: need.pods,
        creates: need.creates,
        refused: need.under(quota).refused,
    }
}

/// Writes the choice of the victims of a batch, for people who ask why these pods were deleted.
pub(crate) fn scale_down(scale_down: &ScaleDown) -> v1::ScaleDown {
    let ScaleDown {
        key: _,
        at,
        batch,
        from,
        to,
        chosen,
        pods,
        costs,
    } = scale_down;
    let value = |(of, value)| v1::RankValue {
        rule: rule(of).into(),
        value,
    };
    let pods = pods.iter().map(|pod| v1::RankedPod {
        name: pod.name.as_ref().to_owned(),
        chosen: pod.chosen,
        reason: pod.reason.clone().map(reason),
        values: pod.values().into_iter().map(value).collect(),
    });
    v1::ScaleDown {
        decide_time: Some(field::time(*at)),
        batch_id: batch.0,
        previous: *from,
        desired: *to,
        chosen: field::int32(*chosen),
        pods: pods.collect(),
        costs: costs.as_ref().to_owned(),
    }
}

namesakes! {
    /// Writes the state of a ReplicaSet, in a word.
    pub fn state(State) -> v1::ReplicaSetState {
        InSync Queued Acting Waiting Quarantined
    }
}

/// The word for an action in logs and metrics.
pub(crate) const fn action(action: ActionKind) -> &'static str {
    match action {
        ActionKind::Create => "create",
        ActionKind::Delete => "delete",
        ActionKind::Claim => "claim",
        ActionKind::WriteStatus => "status",
        ActionKind::Advise => "advise",
    }
}

namesakes! {
    /// Writes the action of a batch.
    pub(crate) fn action_out(ActionKind) -> v1::Action {
        Create Delete Claim WriteStatus Advise
    }
}

fn targets(action: &Action) -> Vec<v1::DecisionTarget> {
    let target = |name: &str, reason| v1::DecisionTarget {
        name: name.to_owned(),
        reason,
    };
    match action {
        Action::Create { names, .. } => {
            let names = names.iter().take(TARGETS_MAX);
            names.map(|name| target(name, None)).collect()
        }
        Action::Delete(victims) => {
            let why = |victim: &Victim| Some(reason(victim.reason.clone()));
            let victims = victims.iter().take(TARGETS_MAX);
            victims.map(|it| target(&it.pod.name, why(it))).collect()
        }
        Action::Claim { adopts, releases } => {
            let pods = adopts.iter().chain(releases).take(TARGETS_MAX);
            pods.map(|pod| target(&pod.name, None)).collect()
        }
        Action::WriteStatus(_) => Vec::new(),
        Action::Advise(advices) => {
            let advices = advices.iter().take(TARGETS_MAX);
            let cost = |it: &Advice| v1::Reason {
                rule: v1::Rule::Advice.into(),
                detail: format!("deletion cost {}", it.cost),
            };
            advices
                .map(|it| target(&it.pod.name, Some(cost(it))))
                .collect()
        }
    }
}
