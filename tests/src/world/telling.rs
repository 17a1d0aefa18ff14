//! The description of an event in one line.

use std::fmt;

use agent_core::{
    api::{Answer, Object, Reply, Request},
    watch::WatchEvent,
};
use decree_api::v1::{
    self, event::Event, outcome::Outcome, reconcile_request as request,
    reconcile_response as response,
};

use super::happening::Happening;

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServerStarts { server } => write!(f, "server {server} starts"),
            Self::AgentStarts => write!(f, "agent starts"),
            Self::AgentWakes { life } => write!(f, "agent {life} goes on"),
            Self::LeaseAsked { life, command } => write!(f, "agent {life}: Lease: {command:?}"),
            Self::LeaseAnswered { life, answer } => write!(f, "agent {life}: Lease: {answer:?}"),
            Self::Connecting { connection } => write!(f, "connection {connection}: opens"),
            Self::ToServer { connection, frame } => {
                let frame = to_server(frame.frame.as_ref());
                write!(f, "connection {connection}: to the server: {frame}")
            }
            Self::ServerSeesEnd { connection, .. } => {
                write!(f, "connection {connection}: the server sees its end")
            }
            Self::ToAgent { connection, frame } => {
                let frame = to_agent(frame.frame.as_ref());
                write!(f, "connection {connection}: to the agent: {frame}")
            }
            Self::AgentSeesEnd { connection, cause } => {
                let end = format_args!("the agent sees its end: {cause:?}");
                write!(f, "connection {connection}: {end}")
            }
            Self::CallArrives {
                life,
                call,
                cause,
                answered,
            } => {
                let batch = cause.as_ref().map_or(0, |cause| cause.batch);
                write!(f, "agent {life}: call {} of batch {batch} ", call.id.0)?;
                let arrives = if *answered {
                    "arrives, late"
                } else {
                    "arrives"
                };
                let request = &call.request;
                write!(f, "{arrives}: {} {}", request.verb(), target(request))
            }
            Self::Reply { life, id, result } => {
                let reply = reply(result);
                write!(f, "agent {life}: call {} is answered: {reply}", id.0)
            }
            Self::CostAnswered { life, cost, .. } => write!(f, "agent {life}: cost {cost:?}"),
            Self::ListArrives { life, kind, .. } => write!(f, "agent {life}: lists {kind:?}"),
            Self::Listed {
                life, kind, list, ..
            } => match list {
                Ok(list) => {
                    let (count, version) = (list.count(), &list.resource_version);
                    write!(f, "agent {life}: is given {count} of {kind:?} at {version}")
                }
                Err(error) => write!(f, "agent {life}: is given no list of {kind:?}: {error}"),
            },
            Self::WatchOpens {
                life, kind, from, ..
            } => write!(f, "agent {life}: watches {kind:?} from {from}"),
            Self::WatchTells { life, event, .. } => {
                write!(f, "agent {life}: sees {}", seen(event))
            }
            Self::WatchEnds {
                life, kind, error, ..
            } => write!(f, "agent {life}: the watch of {kind:?} ends: {error:?}"),
            Self::NodesRead { life } => write!(f, "agent {life}: sees the nodes"),
            Self::Act { act, .. } => write!(f, "user: {act:?}"),
            Self::Fault(fault) => write!(f, "planned: {fault:?}"),
        }
    }
}

fn to_server(frame: Option<&request::Frame>) -> String {
    match frame {
        None => "nothing".to_owned(),
        Some(request::Frame::Hello(hello)) => format!("Hello, epoch {}", hello.epoch),
        Some(request::Frame::SnapshotBegin(begin)) => format!("list of {:?} begins", begin.kind()),
        Some(request::Frame::SnapshotObjects(objects)) => {
            let (pods, sets) = (objects.pods.len(), objects.replica_sets.len());
            format!("{pods} pods, {sets} ReplicaSets")
        }
        Some(request::Frame::SnapshotEnd(end)) => {
            let (kind, version) = (end.kind(), &end.resource_version);
            format!("list of {kind:?} ends at {version}")
        }
        Some(request::Frame::Events(events)) => joined(&events.events, |it| match &it.event {
            Some(Event::PodApplied(it)) => pod(it),
            Some(Event::ReplicaSetApplied(it)) => set(it),
            other => format!("{other:?}"),
        }),
        Some(request::Frame::Outcomes(outcomes)) => joined(&outcomes.outcomes, |it| {
            let what = match &it.outcome {
                Some(Outcome::Done(done)) => format!("done v{}", done.resource_version),
                other => format!("{other:?}"),
            };
            format!("batch {}/{}: {what}", it.batch_id, it.operation)
        }),
        Some(request::Frame::Heartbeat(_)) => "heartbeat".to_owned(),
        Some(request::Frame::Costs(costs)) => format!("{costs:?}"),
        Some(request::Frame::Nodes(nodes)) => format!("{nodes:?}"),
    }
}

fn to_agent(frame: Option<&response::Frame>) -> String {
    match frame {
        Some(response::Frame::Batches(batches)) => joined(&batches.batches, |batch| {
            let set = batch.replica_set.as_ref().map_or("?", |set| &set.name);
            format!("batch {} for {set}: {:?}", batch.id, batch.action)
        }),
        Some(response::Frame::Heartbeat(_)) => "heartbeat".to_owned(),
        other => format!("{other:?}"),
    }
}

fn joined<T>(parts: &[T], tell: impl Fn(&T) -> String) -> String {
    parts.iter().map(tell).collect::<Vec<_>>().join("; ")
}

fn target(request: &Request) -> String {
    match request {
        Request::CreatePod(create) => create.name.clone(),
        Request::DeletePod { pod, .. }
        | Request::AdoptPod { pod, .. }
        | Request::ReleasePod { pod, .. }
        | Request::AdvisePod { pod, .. } => format!("{} {}", pod.name, pod.uid),
        Request::WriteStatus(write) => {
            let (name, version) = (&write.replica_set.name, &write.resource_version);
            format!("{name} v{version} {:?}", write.status)
        }
        Request::ReadPod { name, .. } | Request::ReadReplicaSet { name, .. } => name.clone(),
    }
}

fn reply(result: &Answer) -> String {
    match result {
        Ok(Reply::Pod(it)) => pod(it),
        Ok(Reply::ReplicaSet(it)) => set(&it.projected),
        Ok(Reply::Gone(version)) => format!("gone v{version}"),
        Err(error) => format!("{:?} {}", error.code, error.message),
    }
}

fn seen(event: &WatchEvent) -> String {
    match event {
        WatchEvent::Applied(it) => object(it),
        WatchEvent::MadeByOther { object: it, writer } => format!("by {writer} {}", object(it)),
        WatchEvent::Deleted(it) => format!("deleted {}", object(it)),
        WatchEvent::Invalid { error, .. } => error.to_string(),
        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => format!("{event:?}"),
    }
}

fn object(object: &Object) -> String {
    match object {
        Object::Pod(it) => pod(it),
        Object::ReplicaSet(it) => set(&it.projected),
    }
}

fn pod(pod: &v1::Pod) -> String {
    let end = if pod.deletion_timestamp.is_some() {
        " deleting"
    } else {
        ""
    };
    let (name, version, phase) = (&pod.name, &pod.resource_version, pod.phase());
    format!("{name} v{version}{end} {phase:?} on {:?}", pod.node_name)
}

fn set(set: &v1::ReplicaSet) -> String {
    let end = if set.deletion_timestamp.is_some() {
        " deleting"
    } else {
        ""
    };
    let (name, version, wanted) = (&set.name, &set.resource_version, set.replicas);
    format!(
        "{name} v{version}{end} wants {wanted:?} says {:?}",
        set.status
    )
}
