//! Lets one thing happen, and puts on its way what follows from it at once.

use agent_core::{
    api::{ApiError, Kind},
    link::Disconnect,
};
use jiff::Timestamp;

use super::{
    agents,
    bounds::{Bounds, PAUSE_MAX},
    choice::Choice,
    effects::{ask_lease, is_write, leave_held, step_agent, step_server},
    machines::{Machines, instance},
    servers,
    state::{Asked, Link, Listing, Orphan, Place, State, Stream, ToAgent},
    store::Id,
};

/// Returns the state in which a world is when it has just started.
pub fn begin(bounds: &Bounds, machines: &mut Machines, now: Timestamp) -> State {
    let mut state = machines.first(bounds, now);
    for place in 0..bounds.agents {
        ask_lease(machines, &mut state, place);
    }
    state
}

/// Returns the state after something has happened.
///
/// # Errors
/// If a promise is broken by it.
pub fn happen(
    bounds: &Bounds,
    machines: &mut Machines,
    before: &State,
    choice: Choice,
) -> Result<State, String> {
    let mut state = before.clone();
    let it = &mut state;
    match choice {
        Choice::LeaseTaken(place) => take_lease(bounds, machines, it, place)?,
        Choice::LeaseAnswered(place) => answer_lease(bounds, machines, it, place)?,
        Choice::LeaseLost(place) => end_process(machines, it, place, 0),
        Choice::AgentDies(place) => end_process(machines, it, place, 1),
        Choice::Connects(place, server) => connect(bounds, machines, it, (place, server))?,
        Choice::ServerHears(link) => hear_agent(bounds, machines, it, link)?,
        Choice::AgentHears(link) => hear_server(bounds, machines, it, link)?,
        Choice::ListTaken(place, kind) => take_list(machines, it, place, kind),
        Choice::ListAnswered(place, kind) => answer_list(bounds, machines, it, place, kind)?,
        Choice::CallTaken(place, call) => take_call(machines, it, place, call)?,
        Choice::CallAnswered(place, call) => answer_call(bounds, machines, it, place, call)?,
        Choice::AnswerLost(place, call) => lose_answer(bounds, machines, it, place, call)?,
        Choice::WatchTells(place, kind) => tell(bounds, machines, it, place, kind)?,
        Choice::PodReady(place) => {
            let (api, event) = machines.make_ready(it.api, place, it.now);
            it.api = api;
            event
                .into_iter()
                .for_each(|(kind, event)| it.tell(kind, event));
        }
        Choice::Acts(place) => {
            let (api, events) = machines.act(it.api, bounds.acts[place], it.now);
            it.api = api;
            it.acts[place] = false;
            events
                .into_iter()
                .for_each(|(kind, event)| it.tell(kind, event));
        }
        Choice::OrphanTaken(place) => {
            let orphan = it.orphans.remove(place);
            execute(machines, it, orphan.request)?;
        }
        Choice::OrphanLost(place) => drop(it.orphans.remove(place)),
        Choice::ServerDies(place) => kill_server(machines, it, place),
        Choice::ConnectionBreaks(link) => {
            it.broken_connections -= 1;
            it.links[link].break_off(lost(machines, "the connection broke"));
        }
        Choice::AgentStops(place) => {
            it.pauses -= 1;
            it.agents[place].paused = Some(it.now + PAUSE_MAX);
        }
        Choice::AgentGoesOn(place) => {
            it.agents[place].paused = None;
            wake(bounds, machines, it, place)?;
        }
        Choice::TimePasses(now) => pass_time(bounds, machines, it, now)?,
    }
    if bounds.prompt {
        deliver_to_servers(bounds, machines, &mut state)?;
    }
    state.forget_links();
    Ok(state)
}

/// An agent that is not stopped hears the answer at once: until then it does nothing that depends on it.
fn take_lease(
    bounds: &Bounds,
    machines: &mut Machines,
    state: &mut State,
    place: usize,
) -> Result<(), String> {
    let Some(Asked::Sent(command)) = state.agents[place].asked else {
        return Ok(());
    };
    let (lease, answer) = machines
        .leases
        .execute(&mut machines.messages, state.lease, command);
    state.lease = lease;
    state.agents[place].asked = Some(Asked::Answered(answer));
    match state.agents[place].paused {
        Some(_) => Ok(()),
        None => answer_lease(bounds, machines, state, place),
    }
}

fn answer_lease(
    bounds: &Bounds,
    machines: &mut Machines,
    state: &mut State,
    place: usize,
) -> Result<(), String> {
    let process = &mut state.agents[place];
    let Some(Asked::Answered(answer)) = process.asked.take() else {
        return Ok(());
    };
    process.lease = machines
        .leases
        .answer(&machines.messages, process.lease, answer, state.now);
    let lead = machines.leases.lead(process.lease, state.now);
    if let (Some(lead), None) = (lead, process.agent) {
        let seed = place as u64 * 100 + u64::from(process.life);
        let name = instance(place, process.life);
        process.agent = Some(machines.agents.begin(name, lead.epoch, seed));
        step_agent(bounds, machines, state, place, agents::Input::Begun)?;
    }
    leave_held(machines, state, place)?;
    ask_lease(machines, state, place);
    Ok(())
}

/// Ends a process: its writes may take effect yet. Another begins in its place.
fn end_process(machines: &mut Machines, state: &mut State, place: usize, deaths: u8) {
    if let Some(link) = state.link_of(place) {
        link.leave_agent();
    }
    let (life, crashes) = (
        state.agents[place].life + 1,
        state.agents[place].crashes - deaths,
    );
    let process = machines.process(place, life, crashes);
    let process = std::mem::replace(&mut state.agents[place], process);
    for call in process.calls {
        if let Place::Sent(deadline) = call.place {
            orphan(machines, state, call.request, deadline);
        }
    }
    ask_lease(machines, state, place);
}

fn connect(
    bounds: &Bounds,
    machines: &mut Machines,
    state: &mut State,
    (place, server): (usize, usize),
) -> Result<(), String> {
    let process = &mut state.agents[place];
    process.dials = false;
    process.dialled += 1;
    let number = place as u64 * 10_000 + u64::from(process.life) * 100 + u64::from(process.dialled);
    state.links.push(Link {
        number,
        agent: Some(place),
        server: Some(server),
        to_server: [].into(),
        to_agent: [].into(),
    });
    state.links.sort_by_key(|link| link.number);
    step_agent(bounds, machines, state, place, agents::Input::Connected)
}

fn hear_agent(
    bounds: &Bounds,
    machines: &mut Machines,
    state: &mut State,
    link: usize,
) -> Result<(), String> {
    let link = &mut state.links[link];
    let (number, agent) = (link.number, link.agent);
    let (Some(server), Some(heard)) = (link.server, link.to_server.pop_front()) else {
        return Ok(());
    };
    let Some(frame) = heard else {
        link.server = None;
        link.to_server.clear();
        return step_server(machines, state, server, servers::Input::Ended(number));
    };
    step_server(
        machines,
        state,
        server,
        servers::Input::Frame(number, frame),
    )?;
    match agent.filter(|_| bounds.window.is_some()) {
        Some(agent) if state.agents[agent].paused.is_none() => {
            step_agent(bounds, machines, state, agent, agents::Input::Room)
        }
        Some(_) | None => Ok(()),
    }
}

/// Lets servers hear all that is on its way to them.
fn deliver_to_servers(
    bounds: &Bounds,
    machines: &mut Machines,
    state: &mut State,
) -> Result<(), String> {
    let waits = |link: &Link| link.server.is_some() && !link.to_server.is_empty();
    while let Some(link) = state.links.iter().position(waits) {
        hear_agent(bounds, machines, state, link)?;
    }
    Ok(())
}

fn hear_server(
    bounds: &Bounds,
    machines: &mut Machines,
    state: &mut State,
    link: usize,
) -> Result<(), String> {
    let link = &mut state.links[link];
    let (Some(agent), Some(heard)) = (link.agent, link.to_agent.pop_front()) else {
        return Ok(());
    };
    let input = match heard {
        ToAgent::Frame(frame) => agents::Input::Frame(frame),
        ToAgent::End(end) => {
            link.agent = None;
            agents::Input::Ended(end)
        }
    };
    step_agent(bounds, machines, state, agent, input)
}

fn take_list(machines: &mut Machines, state: &mut State, place: usize, kind: Kind) {
    let list = machines.list(state.api, kind);
    let process = &mut state.agents[place];
    if let Some(Listing::Sent(id)) = process.lists[kind as usize] {
        process.lists[kind as usize] = Some(Listing::Answered(id, list));
        process.streams[kind as usize] = Some(Stream::default());
    }
}

fn answer_list(
    bounds: &Bounds,
    machines: &mut Machines,
    state: &mut State,
    place: usize,
    kind: Kind,
) -> Result<(), String> {
    let listing = state.agents[place].lists[kind as usize].take();
    let Some(Listing::Answered(id, list)) = listing else {
        return Ok(());
    };
    step_agent(
        bounds,
        machines,
        state,
        place,
        agents::Input::Listed(kind, id, list),
    )
}

fn tell(
    bounds: &Bounds,
    machines: &mut Machines,
    state: &mut State,
    place: usize,
    kind: Kind,
) -> Result<(), String> {
    let stream = state.agents[place].streams[kind as usize].as_mut();
    let told = stream.and_then(|stream| Some((stream.watch?, stream.events.pop_front()?)));
    let Some((id, event)) = told else {
        return Ok(());
    };
    step_agent(
        bounds,
        machines,
        state,
        place,
        agents::Input::Watched(kind, id, event),
    )
}

fn take_call(
    machines: &mut Machines,
    state: &mut State,
    place: usize,
    call: usize,
) -> Result<(), String> {
    let request = state.agents[place].calls[call].request;
    let reply = execute(machines, state, request)?;
    state.agents[place].calls[call].place = Place::Answered(reply);
    Ok(())
}

fn answer_call(
    bounds: &Bounds,
    machines: &mut Machines,
    state: &mut State,
    place: usize,
    call: usize,
) -> Result<(), String> {
    let call = state.agents[place].calls.remove(call);
    let Place::Answered(reply) = call.place else {
        return Ok(());
    };
    step_agent(
        bounds,
        machines,
        state,
        place,
        agents::Input::Replied(call.id, reply),
    )
}

fn lose_answer(
    bounds: &Bounds,
    machines: &mut Machines,
    state: &mut State,
    place: usize,
    call: usize,
) -> Result<(), String> {
    state.lost_answers -= 1;
    let call = state.agents[place].calls.remove(call);
    state.api = machines.note_unanswered(state.api, call.request);
    if let Place::Sent(deadline) = call.place {
        orphan(machines, state, call.request, deadline);
    }
    let no_answer = Err(ApiError::no_answer("context deadline exceeded"));
    let reply = machines.messages.replies.intern(no_answer);
    step_agent(
        bounds,
        machines,
        state,
        place,
        agents::Input::Replied(call.id, reply),
    )
}

fn orphan(machines: &Machines, state: &mut State, request: Id, deadline: Timestamp) {
    if is_write(machines.request(request)) {
        state.orphans.push(Orphan { deadline, request });
        state.orphans.sort_unstable();
    }
}

fn execute(machines: &mut Machines, state: &mut State, request: Id) -> Result<Id, String> {
    let executed = machines.execute(state.api, request, state.now);
    state.api = executed.api;
    if let Some((kind, event)) = executed.event {
        state.tell(kind, event);
    }
    match executed.violation {
        Some(violation) => Err(violation),
        None => Ok(executed.reply),
    }
}

fn kill_server(machines: &mut Machines, state: &mut State, place: usize) {
    let end = lost(machines, "the server died");
    let server = &mut state.servers[place];
    server.crashes -= 1;
    server.machines = machines.servers.begin();
    let links = state.links.iter_mut();
    links
        .filter(|link| link.server == Some(place))
        .for_each(|link| link.leave_server(end));
}

/// Lets a process do what time has asked for while it was stopped.
fn wake(
    bounds: &Bounds,
    machines: &mut Machines,
    state: &mut State,
    place: usize,
) -> Result<(), String> {
    let agent = state.agents[place].agent;
    let due = agent.and_then(|agent| machines.agents.poll_timeout(agent));
    if due.is_some_and(|due| due <= state.now) {
        step_agent(bounds, machines, state, place, agents::Input::Timeout)?;
    }
    ask_lease(machines, state, place);
    Ok(())
}

fn pass_time(
    bounds: &Bounds,
    machines: &mut Machines,
    state: &mut State,
    now: Timestamp,
) -> Result<(), String> {
    state.now = now;
    for place in 0..state.agents.len() {
        if state.agents[place].paused.is_none() {
            wake(bounds, machines, state, place)?;
        }
    }
    for place in 0..state.servers.len() {
        let due = machines.servers.poll_timeout(state.servers[place].machines);
        if due.is_some_and(|due| due <= now) {
            step_server(machines, state, place, servers::Input::Timeout)?;
        }
    }
    Ok(())
}

fn lost(machines: &mut Machines, cause: &str) -> Id {
    machines
        .messages
        .ends
        .intern(Disconnect::Lost(cause.to_owned()))
}
