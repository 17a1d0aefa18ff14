//! The refusals of the cluster, by its message and by the class that the agent found in it.
//!
//! The messages of the plugins of Kubernetes are parsed strictly, and others are repeated.

use server_core::{ActionKind, FailureClass};

use super::{
    finding::{Finding, Names, said},
    words::short,
};

/// Reads a message of a part of Kubernetes, for the ReplicaSet with these names.
type Reader = fn(&str, Names<'_>) -> Option<Finding>;

/// The parts of Kubernetes with known messages.
const READERS: [Reader; 7] = [
    quota,
    quota_without_values,
    broken_webhook,
    pod_security,
    limit_range,
    service_account,
    permission,
];

const SHOW_WEBHOOKS: &str =
    "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations";

/// Returns why the cluster refused an attempt; `None` if the server decides again at once.
pub(super) fn finding(
    action: ActionKind,
    class: Option<FailureClass>,
    words: &str,
    names: Names<'_>,
) -> Option<Finding> {
    use FailureClass::{
        Conflict, Forbidden, Invalid, NameTaken, NamespaceTerminating, NotFound, OwnerChanged,
        Precondition, Quota, Throttled, Timeout, Unavailable,
    };
    if let Some(NameTaken | Precondition | Conflict | OwnerChanged) = class {
        return None;
    }
    let Names { namespace, .. } = names;
    let is_ending = words.contains("because it is being terminated");
    if class == Some(NamespaceTerminating) || is_ending {
        let cause = format!("Namespace {namespace} is being deleted");
        let show = format!("kubectl get namespace {namespace} -o yaml");
        return Some(of_plugin(&cause, "").next(show));
    }
    let what = refused(action);
    let known = READERS.iter().find_map(|read| read(words, names));
    if let Some(known) = known
        .or_else(|| webhook(words, what))
        .or_else(|| policy(words, what))
    {
        return Some(known);
    }
    let passing = |what: &str| Some(Finding::passing(said(what, words)).group(what));
    match class {
        Some(Throttled) => passing("The API server asks to wait"),
        Some(Timeout | Unavailable) => passing("The API server does not respond"),
        Some(
            NameTaken | Precondition | Conflict | OwnerChanged | NamespaceTerminating | NotFound
            | Forbidden | Quota | Invalid,
        )
        | None => Some(refusal(what, words).next(names.describe())),
    }
}

/// Returns the action of an attempt and the cluster's message, by the condition in which a controller repeated it.
pub(super) fn action(failure: &str) -> (ActionKind, &str) {
    match failure.strip_prefix("unable to delete pods: ") {
        Some(words) => (ActionKind::Delete, words),
        None => (ActionKind::Create, failure),
    }
}

const fn refused(action: ActionKind) -> &'static str {
    match action {
        ActionKind::Create => "pods",
        ActionKind::Delete => "to delete pods",
        ActionKind::Claim => "to adopt or release pods",
        ActionKind::WriteStatus => "the status",
    }
}

fn refusal(what: &str, words: &str) -> Finding {
    let why = match words.split_once(" is invalid: ") {
        Some((_, why)) => why,
        None => forbidden(words),
    };
    Finding::blocked(said(&format!("The API server refuses {what}"), why))
}

/// Returns the message after the part that names the object.
fn forbidden(words: &str) -> &str {
    let (_, why) = words.split_once(" is forbidden: ").unwrap_or(("", words));
    why
}

/// Reads `exceeded quota: NAME, requested: pods=1, used: pods=404, limited: pods=300`, which may list several resources.
fn quota(words: &str, Names { namespace, .. }: Names<'_>) -> Option<Finding> {
    let (_, lists) = words.split_once("exceeded quota: ")?;
    let show = format!("kubectl -n {namespace} describe resourcequota");
    let what = format!("Quota exceeded in {namespace}");
    let finding = match excess(lists) {
        Some((used, limit)) => {
            Finding::blocked(format!("{what}: {used}")).group(format!("{what}: {limit}"))
        }
        None => Finding::blocked(said(&what, lists)).group(what.clone()),
    };
    Some(finding.next(show))
}

/// Returns the use and the limit of a resource, and the limit alone, which is the same for all ReplicaSets that exceed it.
fn excess(lists: &str) -> Option<(String, String)> {
    let (_, lists) = lists.split_once(", requested: ")?;
    let (requested, lists) = lists.split_once(", used: ")?;
    let (used, limited) = lists.split_once(", limited: ")?;
    let (resource, request) = requested.split(',').next()?.split_once('=')?;
    let of = |list: &'_ str| {
        let mut pairs = list.split(',').filter_map(|pair| pair.split_once('='));
        let value = pairs.find(|(name, _)| *name == resource)?.1;
        is_quantity(value).then(|| value.to_owned())
    };
    let (used, limit) = (of(used)?, of(limited)?);
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "./_-".contains(letter);
    if resource.is_empty() || !resource.chars().all(is_name) || !is_quantity(request) {
        return None;
    }
    Some(match resource {
        "pods" | "count/pods" => (
            format!("{used} of {limit} pods"),
            format!("at most {limit} pods"),
        ),
        _ => (
            format!("{resource} {used} of {limit}, {request} more needed"),
            format!("{resource} at most {limit}"),
        ),
    })
}

/// Returns whether a text is a quantity in the form of Kubernetes, such as `300`, `1900m` or `2Gi`.
fn is_quantity(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
    text.len() <= 32
        && text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(is_part)
}

/// Reads `failed quota: NAME: must specify limits.cpu for: main`.
fn quota_without_values(words: &str, Names { namespace, .. }: Names<'_>) -> Option<Finding> {
    let (_, what) = words.split_once("failed quota: ")?;
    let (_, why) = what.split_once(": ").unwrap_or(("", what));
    let cause = format!("Quota in {namespace} refuses pods");
    let show = format!("kubectl -n {namespace} describe resourcequota");
    Some(of_plugin(&cause, why).next(show))
}

/// Reads `admission webhook "NAME" denied the request: WHY`.
fn webhook(words: &str, what: &str) -> Option<Finding> {
    let (name, rest) = named(words, "admission webhook ", '"')?;
    let why = rest.strip_prefix(" denied the request")?;
    let group = format!("Webhook {} refuses {what}", short(name));
    let finding = of_plugin(&format!("A webhook refuses {what}"), why);
    Some(finding.group(group).next(SHOW_WEBHOOKS))
}

/// Reads `failed calling webhook "NAME": WHY`, of a webhook that is required to admit pods.
fn broken_webhook(words: &str, _: Names<'_>) -> Option<Finding> {
    let (name, why) = named(words, "failed calling webhook ", '"')?;
    let cause = format!("Webhook {} does not respond", short(name));
    Some(of_plugin(&cause, why).next(SHOW_WEBHOOKS))
}

/// Reads `violates PodSecurity "LEVEL:VERSION": WHY`.
fn pod_security(words: &str, Names { namespace, .. }: Names<'_>) -> Option<Finding> {
    let (level, why) = named(words, "violates PodSecurity ", '"')?;
    let cause = format!("Pod Security {} refuses pods", short(level));
    let show = format!("kubectl get namespace {namespace} --show-labels");
    let finding = of_plugin(&cause, why).next(show);
    Some(finding.group(format!("{cause} in {namespace}")))
}

/// Reads `ValidatingAdmissionPolicy 'NAME' with binding 'BINDING' denied request: WHY`.
fn policy(words: &str, what: &str) -> Option<Finding> {
    let (name, rest) = named(words, "ValidatingAdmissionPolicy ", '\'')?;
    let (_, why) = rest.split_once(" denied request")?;
    let cause = format!("Admission policy {} refuses {what}", short(name));
    Some(of_plugin(&cause, why).next("kubectl get validatingadmissionpolicies"))
}

/// Reads `maximum cpu usage per Container is 500m, but limit is 1`.
fn limit_range(words: &str, Names { namespace, .. }: Names<'_>) -> Option<Finding> {
    const KINDS: [&str; 3] = [
        "usage per Pod",
        "usage per Container",
        "limit to request ratio",
    ];
    if !KINDS.iter().any(|kind| words.contains(kind)) {
        return None;
    }
    let cause = format!("Limit range in {namespace} refuses pods");
    let show = format!("kubectl -n {namespace} describe limitrange");
    Some(of_plugin(&cause, forbidden(words)).next(show))
}

/// Reads `error looking up service account NAMESPACE/NAME: WHY`.
fn service_account(words: &str, Names { namespace, .. }: Names<'_>) -> Option<Finding> {
    let (_, what) = words.split_once("error looking up service account ")?;
    let (name, _) = what.split_once(": ")?;
    let cause = format!("Service account {} does not exist", short(name));
    let show = format!("kubectl -n {namespace} get serviceaccounts");
    Some(of_plugin(&cause, "").next(show))
}

/// Reads `User "NAME" cannot create resource "pods" in API group ""`.
fn permission(words: &str, _: Names<'_>) -> Option<Finding> {
    let (user, rest) = named(words, "User ", '"')?;
    let (verb, rest) = rest.strip_prefix(" cannot ")?.split_once(' ')?;
    let (resource, _) = named(rest, "resource ", '"')?;
    let (user, verb, resource) = (short(user), short(verb), short(resource));
    let cause = format!("The agent may not {verb} {resource}");
    let text = format!("{cause}: {user} has no permission");
    Some(Finding::blocked(text).group(cause).next("decree check"))
}

/// Returns a cause for all ReplicaSets that a part of Kubernetes refuses, with its message.
fn of_plugin(cause: &str, why: &str) -> Finding {
    Finding::blocked(said(cause, why.trim_start_matches(": "))).group(cause)
}

/// Returns the text in quotes after `lead`, and the rest.
fn named<'a>(words: &'a str, lead: &str, quote: char) -> Option<(&'a str, &'a str)> {
    let (_, rest) = words.split_once(lead)?;
    rest.strip_prefix(quote)?.split_once(quote)
}
