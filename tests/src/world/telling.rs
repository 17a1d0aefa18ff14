//! The description of an event in one line.

use std::fmt;

use agent_core::{
    api::{Answer, Object, Reply, Request},
    lease::Command,
    watch::WatchEvent,
};
use decree::v1::{
    self, batch::Action, event::Event, outcome::Outcome, reconcile_request as request,
    reconcile_response as response,
};

use super::happening::Happening;

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServerStarts { server } => write!(f, "server {server} starts"),
            Self::AgentStarts => write!(f, "agent starts"),
            Self::AgentWakes { life } => write!(f, "agent {life} goes on"),
            Self::LeaseAsked { life, command } => {
                write!(f, "agent {life}: {} the Lease", verb(command))
            }
            Self::LeaseAnswered { life, answer } => match answer {
                Ok(lease) => write!(f, "agent {life}: the Lease is held by {:?}", lease.holder),
                Err(error) => write!(f, "agent {life}: the Lease: {:?}", error.code),
            },
            Self::Connecting { connection } => write!(f, "connection {connection}: opens"),
            Self::ToServer { connection, frame } => {
                let frame = ToServer(frame);
                write!(f, "connection {connection}: to the server: {frame}")
            }
            Self::ServerSeesEnd { connection, .. } => {
                write!(f, "connection {connection}: the server sees its end")
            }
            Self::ToAgent { connection, frame } => {
                let frame = ToAgent(frame);
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
                write!(f, "{arrives}: {}", Asked(&call.request))
            }
            Self::Reply { life, id, result } => {
                write!(f, "agent {life}: call {} is answered: ", id.0)?;
                tell_reply(f, result)
            }
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
                write!(f, "agent {life}: sees ").and_then(|()| tell_seen(f, event))
            }
            Self::WatchEnds {
                life, kind, error, ..
            } => write!(f, "agent {life}: the watch of {kind:?} ends: {error:?}"),
            Self::Act { act, .. } => write!(f, "user: {act:?}"),
            Self::Fault(fault) => write!(f, "planned: {fault:?}"),
        }
    }
}

struct ToServer<'a>(&'a v1::ReconcileRequest);
struct ToAgent<'a>(&'a v1::ReconcileResponse);
struct Asked<'a>(&'a Request);

impl fmt::Display for ToServer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.frame {
            None => write!(f, "nothing"),
            Some(request::Frame::Hello(hello)) => write!(f, "Hello, epoch {}", hello.epoch),
            Some(request::Frame::SnapshotBegin(begin)) => {
                write!(f, "list of {:?} begins", begin.kind())
            }
            Some(request::Frame::SnapshotObjects(objects)) => {
                let (pods, sets) = (objects.pods.len(), objects.replica_sets.len());
                write!(f, "{pods} pods, {sets} replica sets")
            }
            Some(request::Frame::SnapshotEnd(end)) => {
                let (kind, version) = (end.kind(), &end.resource_version);
                write!(f, "list of {kind:?} ends at {version}")
            }
            Some(request::Frame::Events(events)) => events
                .events
                .iter()
                .try_for_each(|event| tell_event(f, event.event.as_ref())),
            Some(request::Frame::Outcomes(outcomes)) => outcomes
                .outcomes
                .iter()
                .try_for_each(|outcome| tell_outcome(f, outcome)),
            Some(request::Frame::Heartbeat(_)) => write!(f, "heartbeat"),
        }
    }
}

impl fmt::Display for ToAgent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.frame {
            None => write!(f, "nothing"),
            Some(response::Frame::Welcome(welcome)) => {
                write!(f, "Welcome to {}", welcome.session_id)
            }
            Some(response::Frame::Batches(batches)) => batches
                .batches
                .iter()
                .try_for_each(|batch| tell_batch(f, batch)),
            Some(response::Frame::Resync(resync)) => {
                write!(f, "Resync {:?}: {}", resync.kind(), resync.cause)
            }
            Some(response::Frame::Drain(_)) => write!(f, "Drain"),
            Some(response::Frame::Heartbeat(_)) => write!(f, "heartbeat"),
            Some(response::Frame::Rejection(rejection)) => write!(f, "{rejection:?}"),
        }
    }
}

impl fmt::Display for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.0.verb())?;
        match self.0 {
            Request::CreatePod(create) => write!(f, "{}", create.name),
            Request::DeletePod { pod, .. }
            | Request::AdoptPod { pod, .. }
            | Request::ReleasePod { pod, .. } => write!(f, "{} {}", pod.name, pod.uid),
            Request::WriteStatus(write) => write!(
                f,
                "{} v{} {:?}",
                write.replica_set.name, write.resource_version, write.status
            ),
            Request::ReadPod { name, .. } | Request::ReadReplicaSet { name, .. } => {
                write!(f, "{name}")
            }
        }
    }
}

const fn verb(command: &Command) -> &'static str {
    match command {
        Command::Read => "reads",
        Command::Create(_) => "creates",
        Command::Replace(_) => "replaces",
    }
}

fn tell_reply(f: &mut fmt::Formatter<'_>, result: &Answer) -> fmt::Result {
    match result {
        Ok(Reply::Pod(pod)) => tell_pod(f, pod),
        Ok(Reply::ReplicaSet(set)) => tell_set(f, &set.projected),
        Ok(Reply::Gone(version)) => write!(f, "gone v{version}"),
        Err(error) => write!(f, "{:?} {}", error.code, error.message),
    }
}

fn tell_seen(f: &mut fmt::Formatter<'_>, event: &WatchEvent) -> fmt::Result {
    match event {
        WatchEvent::Applied(object) => tell_object(f, object),
        WatchEvent::MadeByOther { object, writer } => {
            write!(f, "by {writer} ").and_then(|()| tell_object(f, object))
        }
        WatchEvent::Deleted(object) => write!(f, "deleted ").and_then(|()| tell_object(f, object)),
        WatchEvent::Invalid { error, .. } => write!(f, "{error}"),
        WatchEvent::Bookmark(version) => write!(f, "bookmark v{version}"),
        WatchEvent::Error(error) => write!(f, "{:?} {error}", error.code),
    }
}

fn tell_object(f: &mut fmt::Formatter<'_>, object: &Object) -> fmt::Result {
    match object {
        Object::Pod(pod) => tell_pod(f, pod),
        Object::ReplicaSet(set) => tell_set(f, &set.projected),
    }
}

fn tell_pod(f: &mut fmt::Formatter<'_>, pod: &v1::Pod) -> fmt::Result {
    write!(f, "{} v{}", pod.name, pod.resource_version)?;
    if pod.deleted.is_some() {
        write!(f, " deleting")?;
    }
    write!(f, " {:?} on {:?}", pod.phase(), pod.node_name)
}

fn tell_set(f: &mut fmt::Formatter<'_>, set: &v1::ReplicaSet) -> fmt::Result {
    write!(f, "{} v{}", set.name, set.resource_version)?;
    if set.deleted.is_some() {
        write!(f, " deleting")?;
    }
    write!(f, " wants {:?} says {:?}", set.replicas, set.status)
}

fn tell_event(f: &mut fmt::Formatter<'_>, event: Option<&Event>) -> fmt::Result {
    match event {
        None => write!(f, "nothing; "),
        Some(Event::PodApplied(pod)) => tell_pod(f, pod).and_then(|()| write!(f, "; ")),
        Some(Event::ReplicaSetApplied(set)) => tell_set(f, set).and_then(|()| write!(f, "; ")),
        Some(Event::Deleted(deleted)) => {
            let name = deleted.object.as_ref().map(|object| &object.name);
            write!(f, "gone {name:?} v{}; ", deleted.resource_version)
        }
        Some(Event::Bookmark(mark)) => {
            write!(f, "bookmark {:?} v{}; ", mark.kind(), mark.resource_version)
        }
    }
}

fn tell_outcome(f: &mut fmt::Formatter<'_>, outcome: &v1::Outcome) -> fmt::Result {
    write!(f, "batch {}/{}: ", outcome.batch_id, outcome.operation)?;
    match &outcome.outcome {
        None => write!(f, "nothing; "),
        Some(Outcome::Done(done)) => write!(f, "done v{}; ", done.resource_version),
        Some(Outcome::Failed(failed)) => write!(f, "{:?} {}; ", failed.class(), failed.message),
        Some(Outcome::NotStarted(it)) => {
            write!(f, "not started, {:?} {}; ", it.cause(), it.message)
        }
    }
}

fn tell_batch(f: &mut fmt::Formatter<'_>, batch: &v1::Batch) -> fmt::Result {
    let set = batch
        .replica_set
        .as_ref()
        .map_or("?", |set| set.name.as_str());
    write!(f, "batch {} for {set}: ", batch.id)?;
    let names =
        |pods: &[v1::ObjectRef]| pods.iter().map(|pod| pod.name.clone()).collect::<Vec<_>>();
    match &batch.action {
        None => write!(f, "nothing; "),
        Some(Action::Create(create)) => write!(f, "create {:?}; ", create.names),
        Some(Action::Delete(delete)) => {
            let victims: Vec<_> = delete
                .victims
                .iter()
                .filter_map(|victim| victim.pod.clone())
                .collect();
            write!(f, "delete {:?}; ", names(&victims))
        }
        Some(Action::Claim(claim)) => {
            write!(
                f,
                "adopt {:?}, release {:?}; ",
                names(&claim.adopts),
                names(&claim.releases)
            )
        }
        Some(Action::WriteStatus(write)) => {
            let status = write.status.clone().unwrap_or_default();
            write!(
                f,
                "status {} of {} ready; ",
                status.ready_replicas, status.replicas
            )
        }
    }
}
