//! The words of a statement of a table, and the objects that they describe.

use decree_core::{
    FailureClass, Kind, Labels, Node, Phase, Pod, Preferences, Ready, ReplicaSet, ResourceVersion,
    ScaleIn, ScaleInCost, Span,
};

use crate::{
    objects::{START, failure, labels, orphan, owner, selector, set, with},
    rig::{deleting, invalid, uid},
};

/// The words of a statement: those without a name, and those with one.
pub(super) struct Words<'a> {
    pub(super) plain: Vec<&'a str>,
    pub(super) named: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let (named, plain) = text
            .split_whitespace()
            .partition::<Vec<_>, _>(|it| it.contains('='));
        let named = named.into_iter().filter_map(|it| it.split_once('='));
        Self {
            plain,
            named: named.collect(),
        }
    }

    pub(super) fn word(&self, at: usize) -> &'a str {
        self.plain
            .get(at)
            .unwrap_or_else(|| panic!("a word is missing behind {:?}", self.plain))
    }

    pub(super) fn number<T: std::str::FromStr>(&self, at: usize) -> T {
        number(self.word(at))
    }
}

pub(super) fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse()
        .ok()
        .unwrap_or_else(|| panic!("{word} is no number"))
}

pub(super) fn version(word: &str) -> Option<ResourceVersion> {
    (word != "none").then(|| ResourceVersion(number(word)))
}

fn labels_of(text: &str) -> Labels {
    let pairs: Vec<_> = text
        .split(',')
        .filter_map(|it| it.split_once(':'))
        .collect();
    labels(&pairs)
}

pub(super) fn kind(word: &str) -> Kind {
    match word {
        "pods" => Kind::Pod,
        "sets" => Kind::ReplicaSet,
        _ => panic!("{word} is no kind"),
    }
}

pub(super) fn millis(word: &str) -> Span {
    Span::millis(number(word))
}

pub(super) fn pods_of(words: &Words<'_>) -> Vec<Pod> {
    let names = words.word(1).split(',');
    names.map(|name| pod_of(words, name)).collect()
}

pub(super) fn pod_of(words: &Words<'_>, name: &str) -> Pod {
    let app = words.word(2);
    let mut pod = orphan(name, app);
    let mut of = (words.word(0) == "pod").then(|| owner(app));
    for flag in &words.plain[3..] {
        match *flag {
            "unready" => pod.state.ready = Ready::default(),
            "deleting" => pod = deleting(pod),
            "pending" => pod.state.phase = Phase::Pending,
            "unknown" => pod.state.phase = Phase::Unknown,
            "failed" => pod.state.phase = Phase::Failed,
            "leaving" => pod.state.leaving = true,
            _ => panic!("{flag} is no flag of a pod"),
        }
    }
    for (name, value) in &words.named {
        match *name {
            "uid" => pod.uid = uid(value),
            "v" => pod.version = version(value),
            "ns" => pod.namespace = (*value).into(),
            "node" => pod.node = Some((*value).into()),
            "labels" => pod.labels = labels_of(value),
            "cost" => pod.state.deletion_cost = number(value),
            "foreign" => (pod.state.deletion_cost, pod.state.foreign_cost) = (number(value), true),
            "restarts" => pod.state.restarts = number(value),
            "created" => pod.state.created = Some(START.plus(millis(value))),
            "since" => {
                let since = (*value != "none").then(|| START.plus(millis(value)));
                pod = with(pod, |state| state.ready = Ready { ready: true, since });
            }
            "owner-uid" => of.iter_mut().for_each(|of| of.uid = uid(value)),
            "owner-name" => of.iter_mut().for_each(|of| of.name = (*value).into()),
            "owner-kind" => of.iter_mut().for_each(|of| of.kind = (*value).into()),
            _ => panic!("{name} is no value of a pod"),
        }
    }
    Pod {
        controller: of,
        ..pod
    }
}

pub(super) fn set_of(words: &Words<'_>) -> ReplicaSet {
    let mut set = set(words.word(1), words.number(2));
    for flag in &words.plain[3..] {
        match *flag {
            "deleting" => set.deleting = true,
            "invalid" => set.selector = Err(invalid()),
            "unterminated" => set.status.terminating_replicas = None,
            "after-termination" => prefer(&mut set).create_after_termination = true,
            "asks" | "asks-again" => {
                prefer(&mut set).scale_in_cost = Some(ScaleInCost {
                    source: "http://:8080/busy".into(),
                    waits: *flag == "asks-again",
                });
            }
            "oldest-stays" => prefer(&mut set).scale_in.push(ScaleIn::Youngest),
            _ => panic!("{flag} is no flag of a ReplicaSet"),
        }
    }
    for (name, value) in &words.named {
        match *name {
            "uid" => set.key.uid = uid(value),
            "v" => set.version = version(value),
            "generation" => set.generation = number(value),
            "min" => set.min_ready_seconds = number(value),
            "first" => {
                let (key, value) = value.split_once(':').expect("a label");
                let first = ScaleIn::First(key.into(), value.into());
                prefer(&mut set).scale_in.push(first);
            }
            "keep-ended" => prefer(&mut set).keep_ended = Some(number(value)),
            "surge" => match value.strip_suffix('%') {
                Some(percent) => prefer(&mut set).surge_percent = number(percent),
                None => prefer(&mut set).surge = number(value),
            },
            "labels" => set.template_labels = labels_of(value),
            "parent" => set.controller = Some(owner(value)),
            "selector" => {
                let pairs: Vec<_> = value
                    .split(',')
                    .filter_map(|it| it.split_once(':'))
                    .collect();
                set.selector = selector(&pairs);
            }
            "counts" => {
                let status = &mut set.status;
                let fields = [
                    &mut status.replicas,
                    &mut status.fully_labeled_replicas,
                    &mut status.ready_replicas,
                    &mut status.available_replicas,
                ];
                let counts = value.split('/').map(number);
                fields
                    .into_iter()
                    .zip(counts)
                    .for_each(|(field, count)| *field = count);
            }
            "condition" => {
                let (kind, reason) = value.split_once(':').expect("kind and reason");
                let mut condition = failure(reason, "old");
                kind.clone_into(&mut condition.kind);
                set.status.conditions.push(condition);
            }
            _ => panic!("{name} is no value of a ReplicaSet"),
        }
    }
    set
}

pub(super) fn node_of(words: &Words<'_>) -> Node {
    let labels = words.named.iter();
    Node {
        name: words.word(1).into(),
        cordoned: words.plain.contains(&"cordoned"),
        leaving: words.plain.contains(&"leaving"),
        labels: labels
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect(),
    }
}

fn prefer(set: &mut ReplicaSet) -> &mut Preferences {
    set.preferences.get_or_insert_default()
}

pub(super) fn class(word: &str) -> FailureClass {
    use FailureClass as Class;
    match word {
        "name-taken" => Class::NameTaken,
        "not-found" => Class::NotFound,
        "precondition" => Class::Precondition,
        "forbidden" => Class::Forbidden,
        "quota" => Class::Quota,
        "namespace-terminating" => Class::NamespaceTerminating,
        "invalid" => Class::Invalid,
        "conflict" => Class::Conflict,
        "timeout" => Class::Timeout,
        "throttled" => Class::Throttled,
        "unavailable" => Class::Unavailable,
        "owner-changed" => Class::OwnerChanged,
        _ => panic!("{word} is no statement"),
    }
}
