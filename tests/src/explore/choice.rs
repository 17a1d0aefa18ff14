//! The possible next events of a state.

use agent_core::api::Kind;
use jiff::Timestamp;

use super::{
    bounds::{Mutant, REST_WITHIN},
    machines::Machines,
    state::{Asked, Link, Listing, Place, Process, State, Stream},
};

/// One possible event. Numbers are places in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The API server executes a Lease request of an agent.
    LeaseTaken(usize),
    /// An agent gets the answer to its Lease request.
    LeaseAnswered(usize),
    /// An agent that has lost the Lease ends, and starts as a new process.
    LeaseLost(usize),
    /// An agent is connected to a server.
    Connects(usize, usize),
    /// The server gets the next input of a connection.
    ServerHears(usize),
    /// The agent gets the next input of a connection.
    AgentHears(usize),
    /// The API server executes a list request of an agent.
    ListTaken(usize, Kind),
    /// An agent gets the list.
    ListAnswered(usize, Kind),
    /// A call takes effect, or is refused.
    CallTaken(usize, usize),
    /// An agent gets the answer to a call.
    CallAnswered(usize, usize),
    /// An agent gets the next event of a watch.
    WatchTells(usize, Kind),
    /// A pod becomes ready.
    PodReady(usize),
    /// A user acts.
    Acts(usize),
    /// An agent learns that a call has no answer. The call may still take effect.
    AnswerLost(usize, usize),
    /// A write without a waiting agent takes effect, or is refused.
    OrphanTaken(usize),
    /// A write without a waiting agent never takes effect.
    OrphanLost(usize),
    /// A server dies, and restarts.
    ServerDies(usize),
    /// An agent dies, and starts as a new process.
    AgentDies(usize),
    /// A connection breaks.
    ConnectionBreaks(usize),
    /// An agent is stopped.
    AgentStops(usize),
    /// A stopped agent resumes.
    AgentGoesOn(usize),
    /// Time passes until the next timer.
    TimePasses(Timestamp),
}

/// The possible next events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choices {
    /// The world continues with one of these events.
    Some(Vec<Choice>),
    /// The world is at rest in the desired state; only these events disturb it.
    AtRest(Vec<Choice>),
    /// The world is not in the desired state, and no event follows, or not for long.
    Stuck(String),
}

/// Returns the possible next events. Time passes only if nothing is in flight but the writes of dead or stopped agents.
#[must_use]
pub fn choices(machines: &Machines, state: &State, start: Timestamp) -> Choices {
    let mut found = Vec::new();
    for (place, process) in state.agents.iter().enumerate() {
        of_process(&mut found, machines, state, (place, process));
    }
    of_links(&mut found, state);
    let api = machines.api(state.api);
    found.extend(api.unready().map(Choice::PodReady));
    let acts = state.acts.iter().enumerate().filter(|(_, due)| **due);
    found.extend(acts.map(|(place, _)| Choice::Acts(place)));
    let is_quiet = found.is_empty();
    let before = found.len();
    of_late_writes(&mut found, state);
    let late = found.len() > before;
    of_ends(&mut found, state);
    let paused = state.agents.iter().any(|process| process.paused.is_some());
    let unwanted = api.not_as_wanted();
    let at_rest = is_quiet && !late && !paused && unwanted.is_none();
    of_faults(&mut found, state);
    if at_rest {
        return Choices::AtRest(found);
    }
    if is_quiet && let Some(next) = next_time(machines, state) {
        found.push(Choice::TimePasses(next));
    }
    let unwanted = || unwanted.unwrap_or_else(|| "an agent is stopped".to_owned());
    if is_quiet && state.now > start + REST_WITHIN {
        return Choices::Stuck(format!("after {REST_WITHIN:?}: {}", unwanted()));
    }
    if found.is_empty() {
        Choices::Stuck(format!("nothing is due: {}", unwanted()))
    } else {
        Choices::Some(found)
    }
}

fn of_process(
    found: &mut Vec<Choice>,
    machines: &Machines,
    state: &State,
    (place, process): (usize, &Process),
) {
    let awake = process.paused.is_none();
    match process.asked {
        Some(Asked::Sent(_)) => found.push(Choice::LeaseTaken(place)),
        Some(Asked::Answered(_)) if awake => found.push(Choice::LeaseAnswered(place)),
        Some(Asked::Answered(_)) | None => {}
    }
    let lost = machines.leases.is_lost(process.lease, state.now);
    if lost && awake && machines.mutant != Some(Mutant::IgnoreLeaseLoss) {
        found.push(Choice::LeaseLost(place));
    }
    if process.dials && awake {
        let servers = 0..state.servers.len();
        let unlike = servers.filter(|server| !has_twin(state, *server));
        found.extend(unlike.map(|server| Choice::Connects(place, server)));
    }
    for kind in Kind::ALL {
        match process.lists[kind as usize] {
            Some(Listing::Sent(_)) => found.push(Choice::ListTaken(place, kind)),
            Some(Listing::Answered(..)) if awake => found.push(Choice::ListAnswered(place, kind)),
            Some(Listing::Answered(..)) | None => {}
        }
        let stream = process.streams[kind as usize].as_ref();
        let tells = |stream: &&Stream| stream.watch.is_some() && !stream.events.is_empty();
        if awake && stream.is_some_and(|stream| tells(&stream)) {
            found.push(Choice::WatchTells(place, kind));
        }
    }
    for (number, call) in process.calls.iter().enumerate().filter(|_| awake) {
        match call.place {
            Place::Held => {}
            Place::Sent(_) => found.push(Choice::CallTaken(place, number)),
            Place::Answered(_) => found.push(Choice::CallAnswered(place, number)),
        }
    }
}

fn of_links(found: &mut Vec<Choice>, state: &State) {
    for (place, link) in state.links.iter().enumerate() {
        let heard = link.to_server.front().filter(|_| link.server.is_some());
        if heard.is_some_and(Option::is_some) {
            found.push(Choice::ServerHears(place));
        }
        let awake = link
            .agent
            .is_some_and(|agent| state.agents[agent].paused.is_none());
        if awake && !link.to_agent.is_empty() {
            found.push(Choice::AgentHears(place));
        }
    }
}

/// The ends of connections, which a server may notice much later.
fn of_ends(found: &mut Vec<Choice>, state: &State) {
    let links = state.links.iter().enumerate();
    let ended = |link: &Link| link.server.is_some() && link.to_server.front() == Some(&None);
    let ended = links.filter(|(_, link)| ended(link));
    found.extend(ended.map(|(place, _)| Choice::ServerHears(place)));
}

/// The writes of dead and of stopped agents.
fn of_late_writes(found: &mut Vec<Choice>, state: &State) {
    for place in 0..state.orphans.len() {
        found.extend([Choice::OrphanTaken(place), Choice::OrphanLost(place)]);
    }
    for (place, process) in state.agents.iter().enumerate() {
        let sent = |place| matches!(place, Place::Sent(_));
        let calls = process.calls.iter().enumerate();
        let sent = calls.filter(|(_, call)| process.paused.is_some() && sent(call.place));
        found.extend(sent.map(|(number, _)| Choice::CallTaken(place, number)));
    }
}

fn of_faults(found: &mut Vec<Choice>, state: &State) {
    for (place, process) in state.agents.iter().enumerate() {
        if process.paused.is_some() {
            found.push(Choice::AgentGoesOn(place));
        } else if state.pauses > 0 && process.agent.is_some() {
            found.push(Choice::AgentStops(place));
        }
        if process.crashes > 0 {
            found.push(Choice::AgentDies(place));
        }
        let calls = 0..process.calls.len();
        let awake = process.paused.is_none();
        let losable = |call: &usize| process.calls[*call].place != Place::Held;
        if state.lost_answers > 0 && awake {
            found.extend(
                calls
                    .filter(losable)
                    .map(|call| Choice::AnswerLost(place, call)),
            );
        }
    }
    let servers = state.servers.iter().enumerate();
    let mortal = servers.filter(|(_, server)| server.crashes > 0);
    found.extend(mortal.map(|(place, _)| Choice::ServerDies(place)));
    if state.broken_connections > 0 {
        let links = state.links.iter().enumerate();
        let whole = links.filter(|(_, link)| link.agent.is_some() && !link.is_broken());
        found.extend(whole.map(|(place, _)| Choice::ConnectionBreaks(place)));
    }
}

/// Whether an earlier server has the same state, and both have no connections: then it makes no difference which of them
/// connects.
fn has_twin(state: &State, server: usize) -> bool {
    let alone = |server| state.links.iter().all(|link| link.server != Some(server));
    alone(server)
        && (0..server).any(|twin| alone(twin) && state.servers[twin] == state.servers[server])
}

/// The next timer, unless something must happen before it.
fn next_time(machines: &Machines, state: &State) -> Option<Timestamp> {
    let awake = || {
        state
            .agents
            .iter()
            .filter(|process| process.paused.is_none())
    };
    let agents = awake().filter_map(|process| process.agent);
    let agents = agents.filter_map(|agent| machines.agents.poll_timeout(agent));
    let leases = awake().map(|process| machines.leases.poll_timeout(process.lease));
    let servers = state.servers.iter();
    let servers = servers.filter_map(|server| machines.servers.poll_timeout(server.machines));
    let due = agents.chain(leases).chain(servers);
    let next = due
        .filter(|due| *due > state.now && *due < Timestamp::MAX)
        .min()?;
    let orphans = state.orphans.iter().map(|orphan| orphan.deadline);
    let stopped = state.agents.iter().filter_map(|process| process.paused);
    let calls = state.agents.iter().flat_map(|process| &process.calls);
    let calls = calls.filter_map(|call| match call.place {
        Place::Sent(deadline) => Some(deadline),
        Place::Held | Place::Answered(_) => None,
    });
    let bound = orphans.chain(stopped).chain(calls).min();
    bound.is_none_or(|bound| next < bound).then_some(next)
}
