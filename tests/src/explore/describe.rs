//! Descriptions of events, for people.

use agent_core::api::{Kind, Request};
use decree::v1::{batch::Action, reconcile_request, reconcile_response};

use super::{
    bounds::Bounds,
    choice::Choice,
    machines::Machines,
    state::{Listing, State, ToAgent},
    store::Id,
};

/// Describes an event in one line.
#[must_use]
pub fn describe(bounds: &Bounds, machines: &Machines, state: &State, choice: Choice) -> String {
    match choice {
        Choice::LeaseTaken(agent) => {
            format!("the API server takes agent {agent}'s call for the Lease")
        }
        Choice::LeaseAnswered(agent) => format!("agent {agent} hears the answer about the Lease"),
        Choice::LeaseLost(agent) => format!("agent {agent} ends, as its Lease is lost"),
        Choice::Connects(agent, server) => format!("agent {agent} connects to server {server}"),
        Choice::ServerHears(link) => server_hears(machines, state, link),
        Choice::AgentHears(link) => agent_hears(machines, state, link),
        Choice::ListTaken(agent, kind) => {
            format!("the API server lists {} for agent {agent}", plural(kind))
        }
        Choice::ListAnswered(agent, kind) => list_answered(machines, state, agent, kind),
        Choice::CallTaken(agent, call) => {
            let call = of_agent(machines, state, agent, call);
            format!("{call} of agent {agent} reaches the API server")
        }
        Choice::CallAnswered(agent, call) => {
            let call = of_agent(machines, state, agent, call);
            format!("agent {agent} receives the answer to {call}")
        }
        Choice::AnswerLost(agent, call) => {
            let call = of_agent(machines, state, agent, call);
            format!("agent {agent} loses the answer to {call}")
        }
        Choice::WatchTells(agent, kind) => {
            format!(
                "agent {agent} receives an event of its watch of {}",
                plural(kind)
            )
        }
        Choice::PodReady(_) => "a pod becomes ready".to_owned(),
        Choice::Acts(act) => format!("a user acts: {:?}", bounds.acts[act]),
        Choice::OrphanTaken(orphan) => {
            let call = call_of(machines, state.orphans[orphan].request);
            format!("{call}, unanswered, reaches the API server")
        }
        Choice::OrphanLost(orphan) => {
            let call = call_of(machines, state.orphans[orphan].request);
            format!("{call}, unanswered, never takes effect")
        }
        Choice::ServerDies(server) => format!("server {server} dies"),
        Choice::AgentDies(agent) => format!("agent {agent} dies"),
        Choice::ConnectionBreaks(link) => format!("connection {} breaks", state.links[link].number),
        Choice::AgentStops(agent) => format!("agent {agent} is stopped"),
        Choice::AgentGoesOn(agent) => format!("agent {agent} goes on"),
        Choice::TimePasses(until) => {
            let passed = until.duration_since(state.now);
            format!("{:.3} s pass", passed.as_secs_f64())
        }
    }
}

fn server_hears(machines: &Machines, state: &State, link: usize) -> String {
    let link = &state.links[link];
    let (connection, server) = (link.number, link.server.unwrap_or_default());
    let heard = link.to_server.front().copied().flatten();
    let what = heard.map_or("the end", |frame| {
        match machines.messages.to_server.get(frame).frame {
            Some(reconcile_request::Frame::Hello(_)) => "Hello",
            Some(reconcile_request::Frame::SnapshotBegin(_)) => "SnapshotBegin",
            Some(reconcile_request::Frame::SnapshotObjects(_)) => "SnapshotObjects",
            Some(reconcile_request::Frame::SnapshotEnd(_)) => "SnapshotEnd",
            Some(reconcile_request::Frame::Events(_)) => "Events",
            Some(reconcile_request::Frame::Outcomes(_)) => "Outcomes",
            Some(reconcile_request::Frame::Heartbeat(_)) => "Heartbeat",
            None => "nothing",
        }
    });
    format!("server {server} receives {what} on connection {connection}")
}

fn agent_hears(machines: &Machines, state: &State, link: usize) -> String {
    let link = &state.links[link];
    let (connection, agent) = (link.number, link.agent.unwrap_or_default());
    let what = match link.to_agent.front() {
        Some(ToAgent::Frame(frame)) => frame_of(machines, *frame),
        Some(ToAgent::End(end)) => format!("the end, {:?},", machines.messages.ends.get(*end)),
        None => "nothing".to_owned(),
    };
    format!("agent {agent} receives {what} on connection {connection}")
}

fn frame_of(machines: &Machines, frame: Id) -> String {
    match &machines.messages.to_agent.get(frame).frame {
        Some(reconcile_response::Frame::Welcome(_)) => "Welcome".to_owned(),
        Some(reconcile_response::Frame::Batches(batches)) => {
            let batches = batches
                .batches
                .iter()
                .filter_map(|batch| batch.action.as_ref());
            let batches: Vec<_> = batches.map(action).collect();
            format!("Batches ({})", batches.join("; "))
        }
        Some(reconcile_response::Frame::Resync(_)) => "Resync".to_owned(),
        Some(reconcile_response::Frame::Rejection(_)) => "Rejection".to_owned(),
        Some(reconcile_response::Frame::Drain(_)) => "Drain".to_owned(),
        Some(reconcile_response::Frame::Heartbeat(_)) => "Heartbeat".to_owned(),
        None => "nothing".to_owned(),
    }
}

fn action(action: &Action) -> String {
    match action {
        Action::Create(create) => format!("create {}", create.names.join(", ")),
        Action::Delete(delete) => {
            let victims = delete
                .victims
                .iter()
                .filter_map(|victim| victim.pod.as_ref());
            let victims: Vec<_> = victims.map(|pod| pod.name.as_str()).collect();
            format!("delete {}", victims.join(", "))
        }
        Action::Claim(_) => "claim".to_owned(),
        Action::WriteStatus(_) => "write the status".to_owned(),
    }
}

fn list_answered(machines: &Machines, state: &State, agent: usize, kind: Kind) -> String {
    let listed = match state.agents[agent].lists[kind as usize] {
        Some(Listing::Answered(_, list)) => machines.messages.lists.get(list).count(),
        Some(Listing::Sent(_)) | None => 0,
    };
    format!(
        "agent {agent} receives the list of {listed} {}",
        plural(kind)
    )
}

fn of_agent(machines: &Machines, state: &State, agent: usize, call: usize) -> String {
    call_of(machines, state.agents[agent].calls[call].request)
}

fn call_of(machines: &Machines, request: Id) -> String {
    let request = machines.request(request);
    let verb = request.verb();
    match request {
        Request::CreatePod(create) => format!("{verb} {}", create.name),
        Request::DeletePod { pod, .. }
        | Request::AdoptPod { pod, .. }
        | Request::ReleasePod { pod, .. } => format!("{verb} {}", pod.name),
        Request::ReadPod { name, .. } => format!("{verb} {name}"),
        Request::WriteStatus(_) | Request::ReadReplicaSet { .. } => verb.to_owned(),
    }
}

const fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => "pods",
        Kind::ReplicaSet => "ReplicaSets",
    }
}
