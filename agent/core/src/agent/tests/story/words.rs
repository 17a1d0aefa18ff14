//! The words of stories: what they are read to, and what is printed.

use super::{super::super::*, Words};
use crate::{budget, nodes::NodeFields, tests::*};

pub(super) fn config(word: &str) -> AgentConfig {
    let mut config = AgentConfig {
        lenient: true,
        ..AgentConfig::default()
    };
    match word {
        "nodes" => config.nodes = Some(NodeFields::default()),
        "shadow-nodes" => {
            config.nodes = Some(NodeFields::default());
            config.mode = v1::Mode::Shadow;
        }
        "shadow" => config.mode = v1::Mode::Shadow,
        "withdraw" => (config.mode, config.withdraw) = (v1::Mode::Advise, true),
        "dry-run" => config.mode = v1::Mode::DryRun,
        "prod" => config.namespaces = ["prod".to_owned()].into(),
        "left-out" => config.left_out = Some(("default".into(), "web".into())),
        "strict" => config.lenient = false,
        "hold" => {
            config.budget = budget::BudgetConfig {
                action: budget::Action::Hold,
                deletes: "cluster=1".parse().expect("it is a limit"),
                ..budget::BudgetConfig::default()
            };
        }
        "" => {}
        other => panic!("{other} is no kind of agent"),
    }
    config
}

pub(super) fn kind(word: &str) -> Kind {
    match word {
        "pods" => Kind::Pod,
        "sets" => Kind::ReplicaSet,
        other => panic!("{other} is no kind"),
    }
}

pub(super) const fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => "pods",
        Kind::ReplicaSet => "sets",
    }
}

pub(super) fn set_of(words: &Words<'_>) -> crate::api::ReplicaSet {
    let mut set = replica_set(words.number(0), 1);
    for word in &words.bare[1..] {
        match *word {
            "deleted" => set.projected.deletion_timestamp = Some(prost_types::Timestamp::default()),
            "bare" => set.projected.template_labels.clear(),
            "empty" => set.template = None,
            "fresh" => set.template = Some(crate::api::Template::new(*b"fresh")),
            other => panic!("{other} is no flag"),
        }
    }
    for (name, value) in &words.named {
        match *name {
            "generation" => set.projected.generation = value.parse().expect("a number"),
            "uid" => set.projected.uid = (*value).to_owned(),
            "name" => set.projected.name = (*value).to_owned(),
            "resume" => set.projected.resume = value.replace('_', " "),
            other => panic!("{other} is no field"),
        }
    }
    set
}

pub(super) fn success(request: &Request, version: u64) -> Answer {
    match request {
        Request::CreatePod(create) => replied(pod(&create.name, version)),
        Request::DeletePod { pod: it, .. } => replied(deleting(pod(&it.name, version))),
        Request::AdoptPod { pod: it, .. } | Request::AdvisePod { pod: it, .. } => {
            replied(pod(&it.name, version))
        }
        Request::ReleasePod { pod: it, .. } => replied(orphan(&it.name, version)),
        Request::ReadPod { name, .. } => replied(pod(name, version)),
        Request::WriteStatus(_) | Request::ReadReplicaSet { .. } => {
            replied_set(replica_set(version, 1))
        }
    }
}

pub(super) fn requested(request: &Request) -> String {
    match request {
        Request::CreatePod(create) => format!("create {}/{}", create.namespace, create.name),
        Request::DeletePod {
            pod,
            resource_version,
        } => {
            let version = resource_version.iter().map(|it| format!("@{it}"));
            format!("delete {}{}", pod.uid, version.collect::<String>())
        }
        Request::AdoptPod { pod, controller } => format!("adopt {} by {}", pod.uid, controller.uid),
        Request::ReleasePod { pod, owner_uid } => format!("release {} of {owner_uid}", pod.uid),
        Request::AdvisePod {
            pod,
            resource_version,
            cost,
        } => format!("advise {}@{resource_version}: {cost}", pod.uid),
        Request::WriteStatus(it) => {
            let (set, version, status) = (&it.replica_set, &it.resource_version, &it.status);
            format!("status of {}@{version}: {}", set.uid, status.replicas)
        }
        Request::ReadPod { namespace, name } => format!("read pod {namespace}/{name}"),
        Request::ReadReplicaSet { namespace, name } => format!("read set {namespace}/{name}"),
    }
}

pub(super) fn welcome(protocol: i32) -> Frame {
    let limits = v1::Limits {
        max_operations_in_flight: 100,
        ..v1::Limits::default()
    };
    Frame::Welcome(v1::Welcome {
        protocol,
        session_id: SESSION.into(),
        heartbeat_interval: Duration::from_secs(3).try_into().ok(),
        limits: Some(limits),
        ..v1::Welcome::default()
    })
}

pub(super) fn seconds(text: &str) -> Option<Duration> {
    text.parse().ok().map(Duration::from_secs)
}

pub(super) fn reported(report: &Report) -> Option<String> {
    if let Report::Refused(it) = report {
        return Some(format!("rule {} × {}", it.rule.as_str(), it.operations));
    }
    if let Report::Listed { kind, count } = report {
        return Some(format!("{count} {} listed", plural(*kind)));
    }
    if let Report::Shown(batch) = report {
        return Some(format!("batch {} shown", batch.id));
    }
    if let Report::WentBack(WentBack { from, to, .. }) = report {
        return Some(format!("went back from {from} to {to}"));
    }
    if let Report::Finished { class, .. } = report {
        assert!(
            class.chars().all(|it| it == '_' || it.is_ascii_lowercase()),
            "{class}"
        );
        assert!(
            !class.contains("class"),
            "{class} is the word of the contract"
        );
    }
    if let Report::Noted(note) = report {
        let is_of_cluster = note.reason == Reason::VersionsWentBack;
        return is_of_cluster.then(|| format!("noted: {}", note.message));
    }
    matches!(report, Report::Skipped(_)).then(|| "skipped".to_owned())
}
