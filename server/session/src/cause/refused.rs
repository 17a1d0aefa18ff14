//! The refusals of the cluster, by its message and by the class that the agent found in it.
//!
//! The messages of the plugins of Kubernetes are parsed strictly, and others are repeated.

use std::borrow::Cow;

use decree_api::v1;
use decree_core::{ActionKind, FailureClass};

use super::{
    finding::{Names, blocked, passing, said},
    words::short,
};

/// The messages of Kubernetes and of policy engines; the first that is known counts. A line has the text by which a message is known, the
/// text after the name that follows, the text after which it says why (`*` is the whole message, `-` nothing), the cause, the cause
/// of all ReplicaSets with this message where it is another, and the next command. A cause that passes without help begins with `~`.
///
/// In the last three, `{name}` is the name in the message, `{in}` the namespace, and `{what}` what is refused.
const MESSAGES: &str = "\
failed quota: | | : | Quota in {in} refuses pods | | kubectl -n {in} describe resourcequota
status unknown for quota: | | | ~A quota in {in} is not computed yet | | kubectl -n {in} describe resourcequota
quota evaluation timed out | | - | ~The API server does not compute the quotas | | kubectl -n {in} describe resourcequota
etcdserver: mvcc: | | | etcd takes no writes | | etcdctl alarm list
etcdserver: | | | ~etcd does not respond | |
failed calling webhook \" | \" | | Webhook {name} does not respond | | kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations
violates PodSecurity \" | \" | | Pod Security {name} refuses pods | Pod Security {name} refuses pods in {in} | kubectl get namespace {in} --show-labels
any security context constraint: | | | Security context constraints refuse pods in {in} | | kubectl get securitycontextconstraints
usage per Pod | | * | Limit range in {in} refuses pods | | kubectl -n {in} describe limitrange
usage per Container | | * | Limit range in {in} refuses pods | | kubectl -n {in} describe limitrange
limit to request ratio | | * | Limit range in {in} refuses pods | | kubectl -n {in} describe limitrange
looking up service account | : | - | Service account {name} does not exist | | kubectl -n {in} get serviceaccounts
RuntimeClass \" | \" not found | - | Runtime class {name} does not exist | | kubectl get runtimeclasses
no PriorityClass with name | was found | - | Priority class {name} does not exist | | kubectl get priorityclasses
admission webhook \" | \" denied the request | | A webhook refuses {what} | Webhook {name} refuses {what} | kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations
ValidatingAdmissionPolicy ' | ' | denied request | Admission policy {name} refuses {what} | | kubectl get validatingadmissionpolicies";

/// Returns why the cluster refused an attempt; `None` if the server decides again at once, unless the ReplicaSet `is_slow`.
pub(super) fn finding(
    action: ActionKind,
    class: Option<FailureClass>,
    words: &str,
    names: Names<'_>,
    is_slow: bool,
) -> Option<v1::Cause> {
    use FailureClass::{
        Conflict, Forbidden, Invalid, NameTaken, NamespaceTerminating, NotFound, OwnerChanged,
        Precondition, Quota, Throttled, Timeout, Unavailable,
    };
    if let Some(NameTaken | Precondition | Conflict | OwnerChanged) = class {
        let what = "Writes keep conflicting";
        return is_slow.then(|| passing(said(what, words), what, ""));
    }
    let Names { namespace, .. } = names;
    let is_ending = words.contains("because it is being terminated");
    if class == Some(NamespaceTerminating) || is_ending {
        let cause = format!("Namespace {namespace} is being deleted");
        let show = format!("kubectl get namespace {namespace} -o yaml");
        return Some(blocked(cause.as_str(), cause.as_str(), show));
    }
    let what = refused(action);
    let known = quota(words, names).or_else(|| permission(words));
    let mut messages = MESSAGES.lines();
    let known = known.or_else(|| messages.find_map(|it| message(it, words, what, names)));
    if known.is_some() {
        return known;
    }
    let passing = |what: &str| Some(passing(said(what, words), what, ""));
    match class {
        Some(Throttled) => passing("The API server asks to wait"),
        Some(Timeout | Unavailable) => passing("The API server does not respond"),
        Some(
            NameTaken | Precondition | Conflict | OwnerChanged | NamespaceTerminating | NotFound
            | Forbidden | Quota | Invalid,
        )
        | None => Some(refusal(what, words, names)),
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
        ActionKind::Advise => "deletion costs",
    }
}

fn refusal(what: &str, words: &str, names: Names<'_>) -> v1::Cause {
    let why = match words.split_once(" is invalid: ") {
        Some((_, why)) => why,
        None => forbidden(words),
    };
    let text = said(&format!("The API server refuses {what}"), why);
    blocked(text, "", names.describe())
}

fn forbidden(words: &str) -> &str {
    let (_, why) = words.split_once(" is forbidden: ").unwrap_or(("", words));
    why
}

/// Reads `exceeded quota: NAME, requested: pods=1, used: pods=404, limited: pods=300`, which may list several resources.
fn quota(words: &str, Names { namespace, .. }: Names<'_>) -> Option<v1::Cause> {
    let (_, lists) = words.split_once("exceeded quota: ")?;
    let show = format!("kubectl -n {namespace} describe resourcequota");
    let what = format!("Quota exceeded in {namespace}");
    let (text, group) = match excess(lists) {
        Some((used, limit)) => (format!("{what}: {used}"), format!("{what}: {limit}")),
        None => (said(&what, lists), what),
    };
    Some(blocked(text, group, show))
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

/// Reads `User "NAME" cannot create resource "pods" in API group ""`.
fn permission(words: &str) -> Option<v1::Cause> {
    let (user, rest) = named(words, "User ", '"')?;
    let (verb, rest) = rest.strip_prefix(" cannot ")?.split_once(' ')?;
    let (resource, _) = named(rest, "resource ", '"')?;
    let (user, verb, resource) = (short(user), short(verb), short(resource));
    let cause = format!("The agent may not {verb} {resource}");
    let text = format!("{cause}: {user} has no permission");
    Some(blocked(text, cause, "decree check"))
}

/// Returns the cause of a message that a line of [`MESSAGES`] describes.
fn message(line: &str, words: &str, refused: &str, names: Names<'_>) -> Option<v1::Cause> {
    let mut columns = line.split('|').map(str::trim);
    let [mark, end, lead, cause, group, next] =
        std::array::from_fn(|_| columns.next().unwrap_or_default());
    let (_, rest) = words.split_once(mark)?;
    let (name, rest) = rest
        .split_once(end)
        .filter(|_| !end.is_empty())
        .unwrap_or(("", rest));
    let why = match lead {
        "-" => "",
        "*" => forbidden(words),
        lead => rest.split_once(lead)?.1,
    };
    let name = short(name);
    let fill = |text: &str| {
        let text = text.replace("{in}", names.namespace);
        text.replace("{what}", refused).replace("{name}", &name)
    };
    let sentence = cause.trim_start_matches('~');
    let text = said(&fill(sentence), &useful(why));
    let group = fill(if group.is_empty() { sentence } else { group });
    Some(if sentence == cause {
        blocked(text, group, fill(next))
    } else {
        passing(text, group, fill(next))
    })
}

fn useful(why: &str) -> Cow<'_, str> {
    let why = why.trim_start_matches([':', ' ']);
    // Security context constraints: `[provider "a": Forbidden: not usable by …, provider b: WHY]`.
    if let Some(list) = why
        .strip_prefix('[')
        .filter(|it| it.starts_with("provider ") || *it == "]")
    {
        let each = list.trim_end_matches(']').split(", provider ");
        let usable = each.filter(|it| !it.contains(": Forbidden: not usable by "));
        return usable.collect::<Vec<_>>().join(", ").into();
    }
    // Kyverno.
    let (_, why) = why
        .split_once("was blocked due to the following policies")
        .unwrap_or(("", why));
    let why = why.strip_prefix("failed to call webhook: ").unwrap_or(why);
    let post = why
        .strip_prefix("Post \"")
        .and_then(|it| it.split_once("\": "));
    post.map_or(why, |(_, why)| why).into()
}

/// Returns the text in quotes after `lead`, and the rest.
fn named<'a>(words: &'a str, lead: &str, quote: char) -> Option<(&'a str, &'a str)> {
    let (_, rest) = words.split_once(lead)?;
    rest.strip_prefix(quote)?.split_once(quote)
}
