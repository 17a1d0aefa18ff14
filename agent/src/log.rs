//! Reports as log lines. ERROR: a person must look; WARN: a person may look; INFO: the life of sessions; DEBUG: operations.

use agent_core::{
    api::{ApiError, Kind},
    budget::{Cause, Change, PodOfOther},
    link::Disconnect,
    refusal::Rule,
    report::{Refused, Report},
    watch::history::WentBack,
};
use decree_api::v1::{self, batch::Action};
use service::excerpt;
use tracing::{debug, error, info, warn};

/// The most pods of a decision in a line.
const PODS_MAX: usize = 20;
/// The most fields of a rejected object in a line.
const FIELDS_MAX: usize = 20;

/// The peers of lines that they can cause at will.
pub(crate) const SERVER: &str = "server";
pub(crate) const CLUSTER: &str = "cluster";

pub(crate) fn write(report: &Report) {
    match report {
        Report::SessionOpened { id: _ } => info!("session opened"),
        Report::Disconnected(cause) => disconnected(cause),
        Report::WentBack(WentBack { kind, from, to }) => warn!(
            kind = kind.plural(),
            from,
            to,
            "the versions of the cluster went back: it was restored from a backup, or another cluster answers at its address; \
             the agent forgets its view and lists the cluster again"
        ),
        Report::OldHistory { pods } => warn!(
            pods,
            "the API server lists a state that was lost, without pods that it has created since: restart it; until then nothing is decided"
        ),
        Report::Draining => info!("the server drains"),
        Report::Listed { kind, count } => info!(kind = kind.plural(), count, "listed"),
        Report::ResyncAsked(resync) => info!(
            kind = resync.kind().as_str_name(),
            cause = excerpt(&resync.cause),
            "the server asks for another list"
        ),
        Report::Skipped(error) => error!(%error, "an object is left out"),
        Report::Rejected(rejected) => {
            let object = rejected.object.clone().unwrap_or_default();
            let (namespace, name) = (excerpt(&object.namespace), excerpt(&object.name));
            let violations = rejected.violations.iter().take(FIELDS_MAX);
            let fields: Vec<_> = violations.map(|it| excerpt(&it.field)).collect();
            warn!(
                namespace,
                name,
                ?fields,
                "the server does not accept an object"
            );
        }
        Report::Refused(it) => refused(it),
        Report::PodOfOther(pod) => pod_of_other(pod),
        Report::Budget(change) => budget(change),
        Report::Shown(batch) => shown(batch),
        Report::Noted(note) => {
            debug!(reason = note.reason.as_str(), message = %note.message, "noted")
        }
        Report::AdviceFailed { pod, message } => warn!(
            pod = named(pod),
            why = excerpt(message),
            "the deletion cost of a pod cannot be written; the agent tries again"
        ),
        Report::Finished {
            batch_id,
            operation,
            class,
            message,
        } => debug!(
            batch = batch_id,
            operation,
            outcome = &**class,
            why = excerpt(message),
            "operation finished"
        ),
    }
}

/// A server whose view is older than the agent's breaks the other rules whenever a scale changes amid its operations, and decides again.
fn refused(refused: &Refused) {
    let Refused {
        replica_set,
        rule,
        operations,
        message,
    } = refused;
    let (replica_set, why) = (named(replica_set), excerpt(message));
    if let Rule::Reference | Rule::Name | Rule::Ownership = rule {
        let rule = rule.as_str();
        warn!(
            replica_set,
            rule, operations, why, "operations that no correct server requests are not started"
        );
    } else {
        let rule = rule.as_str();
        debug!(
            replica_set,
            rule, operations, why, "operations that contradict the agent's view are not started"
        );
    }
}

fn pod_of_other(created: &PodOfOther) {
    let PodOfOther {
        replica_set,
        pod,
        writer,
    } = created;
    warn!(
        replica_set = named(replica_set),
        pod = excerpt(pod),
        writer = excerpt(writer),
        "another controller created a pod"
    );
}

fn named(object: &v1::ObjectRef) -> String {
    excerpt(&format!("{}/{}", object.namespace, object.name))
}

pub(crate) fn cluster_away(error: &ApiError) {
    warn!(
        peer = CLUSTER,
        %error,
        "the uid of the namespace kube-system, which identifies the cluster, cannot be read"
    );
}

pub(crate) fn read_failed(kind: &'static str, verb: &'static str, error: &ApiError) {
    let (peer, code) = (CLUSTER, error.code);
    if error.is_everyday() {
        debug!(kind, verb, code, %error, "the cluster cannot be read")
    } else {
        warn!(peer, kind, verb, code, %error, "the cluster cannot be read; the agent tries again")
    }
}

pub(crate) fn version_not_read(kind: Kind, error: &ApiError) {
    debug!(kind = kind.plural(), %error, "the newest version cannot be read");
}

pub(crate) fn watch_ended(kind: Kind) {
    debug!(kind = kind.plural(), "watch ended");
}

fn budget(change: &Change) {
    const EXCEEDED: &str =
        "the budget is exceeded, and no further operation starts until a person resumes them";
    const AT_WORK: &str = "another controller is at work, and no further operation starts until a person turns it off and resumes them";
    let (Change::Warned(hold) | Change::Held(hold) | Change::Ended(hold)) = change;
    let (operation, scope) = (hold.verb.as_str(), hold.scope.as_str());
    let (replica_set, why) = (named(&hold.replica_set), excerpt(&hold.detail));
    match change {
        Change::Warned(_) => {
            warn!(operation, scope, replica_set, why, "the budget is exceeded");
        }
        Change::Held(_) => {
            let resume = excerpt(&hold.command());
            let said = match hold.cause {
                Cause::OtherController => AT_WORK,
                Cause::Limit => EXCEEDED,
            };
            error!(operation, scope, replica_set, why, resume, "{said}");
        }
        Change::Ended(_) => info!(operation, scope, replica_set, "held operations continue"),
    }
}

/// Writes the operations of a batch and their reasons: in dry-run mode, this line is the output.
fn shown(batch: &v1::Batch) {
    let owner = batch.replica_set.clone().unwrap_or_default();
    let replica_set = named(&owner);
    let (action, operations, pods) = described(batch);
    let pods: Vec<_> = pods.into_iter().take(PODS_MAX).collect();
    let pods = excerpt(&pods.join(", "));
    let why: Vec<_> = batch.reasons.iter().map(reason).collect();
    let why = excerpt(&why.join("; "));
    info!(
        replica_set,
        action, operations, pods, why, "decided, not executed"
    );
}

/// The action, the number of its operations, and its pods: victims with their reasons.
fn described(batch: &v1::Batch) -> (&'static str, usize, Vec<String>) {
    let (action, pods): (_, Vec<_>) = match &batch.action {
        Some(Action::Create(create)) => ("create", create.names.clone()),
        Some(Action::Delete(delete)) => ("delete", delete.victims.iter().map(victim).collect()),
        Some(Action::Claim(claim)) => {
            let named = |verb: &str, pod: &v1::ObjectRef| format!("{verb} {}", pod.name);
            let adopts = claim.adopts.iter().map(|pod| named("adopt", pod));
            let releases = claim.releases.iter().map(|pod| named("release", pod));
            ("claim", adopts.chain(releases).collect())
        }
        Some(Action::Advise(advise)) => {
            let advices = advise.advices.iter();
            let pod = |it: &v1::Advice| {
                it.pod
                    .as_ref()
                    .map(|pod| format!("{}={}", pod.name, it.cost))
            };
            ("advise", advices.filter_map(pod).collect())
        }
        Some(Action::WriteStatus(_)) => return ("status", 1, Vec::new()),
        None => return ("nothing", 0, Vec::new()),
    };
    (action, pods.len(), pods)
}

fn victim(victim: &v1::Victim) -> String {
    let pod = victim.pod.clone().unwrap_or_default().name;
    let why = victim.reason.as_ref().map(reason).unwrap_or_default();
    format!("{pod} ({why})")
}

fn reason(reason: &v1::Reason) -> String {
    let rule = reason.rule().as_str_name().trim_start_matches("RULE_");
    format!("{rule}: {}", reason.detail)
}

fn disconnected(cause: &Disconnect) {
    match cause {
        Disconnect::Ended => info!("session ended"),
        Disconnect::WentBack(_) => {
            info!(
                reason = "VERSIONS_WENT_BACK",
                "this agent ended the session"
            )
        }
        Disconnect::Lost(cause) => warn!(cause = excerpt(cause), "the server is away"),
        Disconnect::Superseded(status) => warn!(
            status = excerpt(status),
            "superseded by another agent of this cluster and shard, trying again in minutes: \
             stop one of the two, let them elect a leader, or give each its own --shard or server"
        ),
        Disconnect::Refused {
            status,
            retry_after: Some(wait),
        } => warn!(
            status = excerpt(status),
            retry_after = ?wait,
            "the server does not accept this agent at the moment"
        ),
        Disconnect::Refused {
            status,
            retry_after: None,
        } => error!(status = excerpt(status), "the server refuses this agent"),
    }
}
