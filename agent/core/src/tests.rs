//! Objects, batches and answers for the tests of this crate.

use std::time::Duration;

use decree_api::v1::{
    self, batch::Action, event::Event, outcome::Outcome as OutcomeKind,
    reconcile_request::Frame as Sent,
};
use expect_test::ExpectFile;
use jiff::Timestamp;

use crate::{
    agent::AgentConfig,
    api::{ApiError, InvalidObject, ReplicaSet, Reply, Template},
    execute::guard::Guard,
    nodes::NodeEvent,
    pace::after,
    view::View,
    watch::{Items, List, Part},
};

pub(crate) const SESSION: &str = "s-1";
pub(crate) const EPOCH: i64 = 7;

/// The key of the ReplicaSet default/web.
pub(crate) const RS: &str = "default/rs";

/// Plays the scenarios of a table, and compares what their statements print. A scenario begins with `# its name`, a line has statements that
/// are separated by `; `, and the line with `>` behind it has what they print. `UPDATE_EXPECT=1` writes the table anew.
pub(crate) fn play<T>(
    table: &ExpectFile,
    new: impl Fn() -> T,
    act: impl Fn(&mut T, &str) -> Option<String>,
) {
    let scenarios = table.data();
    assert!(!scenarios.is_empty(), "{table:?} is not there");
    let (mut played, mut state) = (String::new(), new());
    for line in scenarios.lines().filter(|line| !line.starts_with('>')) {
        played += &format!("{line}\n");
        if line.starts_with('#') {
            state = new();
            continue;
        }
        let statements = line.split("; ").filter(|it| !it.is_empty());
        let told: Vec<_> = statements.filter_map(|it| act(&mut state, it)).collect();
        if told.iter().any(|it| !it.is_empty()) {
            played += &format!("> {}\n", told.join(" | ").trim_end());
        }
    }
    table.assert_eq(&played);
}

/// So many seconds after the start of a test.
pub(crate) fn at(seconds: u64) -> Timestamp {
    after(Timestamp::UNIX_EPOCH, Duration::from_secs(seconds))
}

/// The ReplicaSet default/web with the UID `rs`.
pub(crate) fn replica_set(version: u64, generation: i64) -> ReplicaSet {
    let labels = [("app".to_owned(), "web".to_owned())];
    let projected = v1::ReplicaSet {
        namespace: "default".into(),
        name: "web".into(),
        uid: "rs".into(),
        resource_version: version.to_string(),
        generation,
        replicas: Some(3),
        selector: Some(v1::LabelSelector {
            match_labels: labels.clone().into(),
            match_expressions: Vec::new(),
        }),
        template_labels: labels.into(),
        status: Some(v1::ReplicaSetStatus::default()),
        ..v1::ReplicaSet::default()
    };
    ReplicaSet {
        projected,
        template: Some(template()),
    }
}

pub(crate) fn template() -> Template {
    Template::new(*b"opaque")
}

/// A pod of default/web.
pub(crate) fn pod(name: &str, version: u64) -> v1::Pod {
    v1::Pod {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
        resource_version: version.to_string(),
        labels: [("app".to_owned(), "web".to_owned())].into(),
        controller: Some(controller()),
        ..v1::Pod::default()
    }
}

/// A pod of default/web as `NAME@VERSION:FLAG,…`.
pub(crate) fn pod_of(text: &str) -> v1::Pod {
    let (name, flags) = text.split_once(':').unwrap_or((text, ""));
    let (name, version) = name.split_once('@').unwrap_or((name, "5"));
    let mut it = pod(name, version.parse().expect("a version"));
    for flag in flags.split(',').filter(|flag| !flag.is_empty()) {
        match flag {
            "orphan" => it.controller = None,
            "deleting" => it = deleting(it),
            "ready" => it.ready.get_or_insert_default().ready = true,
            "ended" => it.phase = v1::PodPhase::Failed.into(),
            "job" => it.controller.get_or_insert_default().kind = "Job".into(),
            "foreign" => it.controller.get_or_insert_default().uid = "other".into(),
            "unlabelled" => it.labels = [("app".to_owned(), "other".to_owned())].into(),
            "another" => it.uid = "another".into(),
            "elsewhere" => it.namespace = "another".into(),
            "evicted" => it.leaving = true,
            cost if cost.starts_with("advised-") => {
                it.deletion_cost = Some(cost["advised-".len()..].to_owned());
                it.advised_cost.clone_from(&it.deletion_cost);
            }
            on if on.starts_with("on-") => it.node_name = on["on-".len()..].to_owned(),
            other => panic!("{other} is no flag"),
        }
    }
    it
}

/// News of nodes: `all` before a list of all, or changes. A node has the flags cordoned and leaving; `-NAME` is gone.
pub(crate) fn node_events(words: &[&str]) -> Vec<NodeEvent> {
    let node = |text: &str| {
        let (name, flags) = text.split_once(':').unwrap_or((text, ""));
        v1::Node {
            name: name.to_owned(),
            unschedulable: flags.contains("cordoned"),
            leaving: flags.contains("leaving"),
            ..v1::Node::default()
        }
    };
    if let ["all", listed @ ..] = words {
        let listed = listed.iter().map(|it| node(it));
        return vec![NodeEvent::Listed(listed.collect())];
    }
    let events = words.iter().map(|it| match it.strip_prefix('-') {
        Some(gone) => NodeEvent::Deleted(gone.to_owned()),
        None => NodeEvent::Applied(node(it)),
    });
    events.collect()
}

/// The owner reference of the pods of default/web.
pub(crate) fn controller() -> v1::OwnerReference {
    v1::OwnerReference {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        name: "web".into(),
        uid: "rs".into(),
        block_owner_deletion: Some(true),
    }
}

pub(crate) fn orphan(name: &str, version: u64) -> v1::Pod {
    v1::Pod {
        controller: None,
        ..pod(name, version)
    }
}

pub(crate) fn deleting(pod: v1::Pod) -> v1::Pod {
    v1::Pod {
        deletion_timestamp: Some(prost_types::Timestamp::default()),
        ..pod
    }
}

/// Another ReplicaSet of the same name.
pub(crate) fn replica_set_of_uid(uid: &str, version: u64) -> ReplicaSet {
    let mut set = replica_set(version, 1);
    set.projected.uid = uid.into();
    set
}

pub(crate) fn replied(pod: v1::Pod) -> Result<Reply, ApiError> {
    Ok(Reply::Pod(Box::new(pod)))
}

pub(crate) fn replied_set(set: ReplicaSet) -> Result<Reply, ApiError> {
    Ok(Reply::ReplicaSet(Box::new(set)))
}

pub(crate) fn owner() -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: "default".into(),
        name: "web".into(),
        uid: "rs".into(),
    }
}

pub(crate) fn pod_ref(name: &str) -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
    }
}

pub(crate) fn batch(id: u64, action: Action) -> v1::Batch {
    v1::Batch {
        id,
        replica_set: Some(owner()),
        generation: 1,
        replica_set_version: "10".into(),
        guard: Some(v1::Guard {
            session_id: SESSION.into(),
            epoch: EPOCH,
        }),
        action: Some(action),
        ..v1::Batch::default()
    }
}

pub(crate) fn create(count: usize) -> Action {
    Action::Create(v1::Create {
        names: (0..count).map(|index| format!("web-{index}")).collect(),
        generate_name: "web-".into(),
        slow_start_initial: 1,
    })
}

pub(crate) fn delete(names: &[&str]) -> Action {
    let victim = |name: &&str| v1::Victim {
        pod: Some(pod_ref(name)),
        ..v1::Victim::default()
    };
    Action::Delete(v1::Delete {
        victims: names.iter().map(victim).collect(),
    })
}

pub(crate) fn claim(adopts: &[&str], releases: &[&str]) -> Action {
    let refs = |names: &[&str]| names.iter().map(|name| pod_ref(name)).collect();
    Action::Claim(v1::Claim {
        adopts: refs(adopts),
        releases: refs(releases),
    })
}

pub(crate) fn write_status(replicas: i32) -> Action {
    let status = v1::ReplicaSetStatus {
        replicas,
        ..v1::ReplicaSetStatus::default()
    };
    Action::WriteStatus(v1::WriteStatus {
        status: Some(status),
    })
}

/// A guard of the session that checks no rules, for tests of other things.
pub(crate) fn guard() -> Guard {
    Guard {
        session_id: Some(SESSION.into()),
        config: AgentConfig {
            epoch: EPOCH,
            lenient: true,
            ..AgentConfig::default()
        },
        ..Guard::default()
    }
}

/// A view with default/web at version 10 and generation 1, and these pods.
pub(crate) fn view(pods: &[v1::Pod]) -> View {
    let mut view = View::default();
    view.apply_replica_set(&replica_set(10, 1));
    pods.iter().for_each(|pod| view.pods.apply(pod));
    view
}

/// The part of a list that a word of a table names.
pub(crate) fn part(word: &str) -> Part {
    Part {
        begins: !["middle", "last"].contains(&word),
        ends: !["first", "middle"].contains(&word),
    }
}

/// A list of pods, or a page of it.
pub(crate) fn pod_list(part: Part, version: &str, pods: &[v1::Pod]) -> List {
    List {
        part,
        items: Items::Pods(pods.iter().collect()),
        invalid: Vec::new(),
        resource_version: version.into(),
    }
}

pub(crate) fn invalid() -> InvalidObject {
    InvalidObject {
        object: "pod default/bad".into(),
        field: "metadata.labels.app".into(),
        detail: "expected a string".into(),
    }
}

pub(crate) fn refusal(code: u16, reason: &str) -> ApiError {
    ApiError {
        code: Some(code),
        reason: reason.into(),
        message: format!("refused: {reason}"),
        ..ApiError::default()
    }
}

/// An outcome in one word: `done`, the class of the failure, or the cause of not starting.
pub(crate) fn word(outcome: &v1::Outcome) -> &'static str {
    match outcome.outcome.as_ref().expect("an outcome says something") {
        OutcomeKind::Done(done) if done.already_existed => "already existed",
        OutcomeKind::Done(_) => "done",
        OutcomeKind::Failed(failed) => failed.failure_class().as_str_name(),
        OutcomeKind::NotStarted(not_started) => not_started.cause().as_str_name(),
    }
}

/// A frame in words, one for each outcome.
pub(crate) fn sent(frame: &Sent) -> Vec<String> {
    let text = match frame {
        Sent::Hello(hello) if hello.resumes_session_id.is_empty() => "hello".into(),
        Sent::Hello(hello) => format!("hello after {}", hello.resumes_session_id),
        Sent::Heartbeat(_) => "heartbeat".into(),
        Sent::Nodes(it) => {
            let applied = it
                .applied
                .iter()
                .map(|node| match (node.unschedulable, node.leaving) {
                    (_, true) => format!("{}:leaving", node.name),
                    (true, false) => format!("{}:cordoned", node.name),
                    (false, false) => node.name.clone(),
                });
            let gone = it.deleted.iter().map(|name| format!("-{name}"));
            let complete = it.complete.then(|| "complete".to_owned());
            let words: Vec<_> = applied.chain(gone).chain(complete).collect();
            format!("nodes {}", words.join(" "))
        }
        Sent::Costs(costs) => format!("costs {costs:?}"),
        Sent::SnapshotBegin(it) => format!("begin {}", it.kind().as_str_name()),
        Sent::SnapshotObjects(it) => {
            let pods = it.pods.iter().map(|pod| pod.name.as_str());
            let sets = it.replica_sets.iter().map(|set| set.name.as_str());
            format!("objects {}", pods.chain(sets).collect::<Vec<_>>().join(" "))
        }
        Sent::SnapshotEnd(it) => {
            let kind = it.kind().as_str_name();
            format!("end {kind} {}@{}", it.count, it.resource_version)
        }
        Sent::Events(it) => {
            let events = it.events.iter().filter_map(|it| it.event.as_ref());
            let events = events.map(|event| match event {
                Event::PodApplied(pod) => {
                    let deleting = if pod.deletion_timestamp.is_some() {
                        " deleting"
                    } else {
                        ""
                    };
                    format!("{}@{}{deleting}", pod.uid, pod.resource_version)
                }
                Event::ReplicaSetApplied(set) => format!("{}@{}", set.uid, set.resource_version),
                Event::Deleted(it) => {
                    let uid = it.object.as_ref().map(|it| it.uid.as_str());
                    format!("{} gone@{}", uid.unwrap_or_default(), it.resource_version)
                }
                Event::Bookmark(it) => format!("bookmark@{}", it.resource_version),
            });
            format!("events {}", events.collect::<Vec<_>>().join(" + "))
        }
        Sent::Outcomes(it) => return it.outcomes.iter().map(outcome_of).collect(),
    };
    vec![text]
}

fn outcome_of(it: &v1::Outcome) -> String {
    let word = word(it).trim_start_matches("FAILURE_CLASS_").to_owned();
    let word = word.replace("NOT_STARTED_CAUSE_", "not started ");
    let detail = match &it.outcome {
        Some(OutcomeKind::Done(done)) => {
            assert!(done.object.is_some(), "each success carries its object");
            format!(" {}@{}", done.uid, done.resource_version)
        }
        Some(OutcomeKind::Failed(failed)) => format!(": {}", failed.message),
        Some(OutcomeKind::NotStarted(_)) | None => String::new(),
    };
    format!("{}.{} {word}{detail}", it.batch_id, it.operation)
}
