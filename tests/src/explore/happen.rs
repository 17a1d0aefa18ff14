//! Executes one event, and puts its immediate effects in flight.

use agent_core::{
    api::{ApiError, Kind},
    link::Disconnect,
};
use jiff::Timestamp;

use super::{
    agents::Input,
    bounds::{Bounds, PAUSE_MAX},
    choice::Choice,
    effects::{Step, is_write},
    machines::{Machines, instance},
    servers,
    state::{Asked, Link, Listing, Orphan, Place, State, Stream, ToAgent},
    store::Id,
};

/// Returns the state of a world at its start.
pub fn begin(bounds: &Bounds, machines: &mut Machines, now: Timestamp) -> State {
    let state = machines.first(bounds, now);
    let mut step = Step {
        bounds,
        machines,
        state,
    };
    (0..bounds.agents).for_each(|place| step.ask_lease(place));
    step.state
}

/// Returns the state after an event.
///
/// # Errors
/// If the event breaks a promise.
pub fn happen(
    bounds: &Bounds,
    machines: &mut Machines,
    before: &State,
    choice: Choice,
) -> Result<State, String> {
    let mut step = Step {
        bounds,
        machines,
        state: before.clone(),
    };
    step.choose(choice)?;
    if bounds.prompt {
        step.deliver_to_servers()?;
    }
    step.state.forget_links();
    Ok(step.state)
}

// === impl Step ===

impl Step<'_> {
    fn choose(&mut self, choice: Choice) -> Result<(), String> {
        match choice {
            Choice::LeaseTaken(place) => self.take_lease(place)?,
            Choice::LeaseAnswered(place) => self.answer_lease(place)?,
            Choice::LeaseLost(place) => self.end_process(place, 0),
            Choice::AgentDies(place) => self.end_process(place, 1),
            Choice::Connects(place, server) => self.connect(place, server)?,
            Choice::ServerHears(link) => self.hear_agent(link)?,
            Choice::AgentHears(link) => self.hear_server(link)?,
            Choice::ListTaken(place, kind) => self.take_list(place, kind),
            Choice::ListAnswered(place, kind) => self.answer_list(place, kind)?,
            Choice::CallTaken(place, call) => self.take_call(place, call)?,
            Choice::CallAnswered(place, call) => self.answer_call(place, call)?,
            Choice::AnswerLost(place, call) => self.lose_answer(place, call)?,
            Choice::WatchTells(place, kind) => self.tell(place, kind)?,
            Choice::PodReady(place) => {
                let (api, now) = (self.state.api, self.state.now);
                let (api, event) = self.machines.make_ready(api, place, now);
                self.change(api, event);
            }
            Choice::Acts(place) => {
                let (act, now) = (self.bounds.acts[place], self.state.now);
                let (api, events) = self.machines.act(self.state.api, act, now);
                self.state.acts[place] = false;
                self.change(api, events);
            }
            Choice::OrphanTaken(place) => {
                let orphan = self.state.orphans.remove(place);
                self.execute(orphan.request)?;
            }
            Choice::OrphanLost(place) => drop(self.state.orphans.remove(place)),
            Choice::ServerDies(place) => self.kill_server(place),
            Choice::ConnectionBreaks(link) => {
                self.state.broken_connections -= 1;
                let end = self.lost("the connection broke");
                self.state.links[link].break_off(end);
            }
            Choice::AgentStops(place) => {
                self.state.pauses -= 1;
                self.state.agents[place].paused = Some(self.state.now + PAUSE_MAX);
            }
            Choice::AgentGoesOn(place) => {
                self.state.agents[place].paused = None;
                self.wake(place)?;
            }
            Choice::TimePasses(now) => self.pass_time(now)?,
        }
        Ok(())
    }

    fn change(&mut self, api: Id, events: impl IntoIterator<Item = (Kind, Id)>) {
        self.state.api = api;
        let events = events.into_iter();
        events.for_each(|(kind, event)| self.state.tell(kind, event));
    }

    /// An agent that is not stopped gets the answer at once: before the answer, the agent does nothing that depends on it.
    fn take_lease(&mut self, place: usize) -> Result<(), String> {
        let Some(Asked::Sent(command)) = self.state.agents[place].asked else {
            return Ok(());
        };
        let Machines {
            leases, messages, ..
        } = self.machines;
        let (lease, answer) = leases.execute(messages, self.state.lease, command);
        self.state.lease = lease;
        self.state.agents[place].asked = Some(Asked::Answered(answer));
        match self.state.agents[place].paused {
            Some(_) => Ok(()),
            None => self.answer_lease(place),
        }
    }

    fn answer_lease(&mut self, place: usize) -> Result<(), String> {
        let (process, now) = (&mut self.state.agents[place], self.state.now);
        let Some(Asked::Answered(answer)) = process.asked.take() else {
            return Ok(());
        };
        let (leases, messages) = (&mut self.machines.leases, &self.machines.messages);
        process.lease = leases.answer(messages, process.lease, answer, now);
        let lead = leases.lead(process.lease, now);
        if let (Some(lead), None) = (lead, process.agent) {
            let seed = place as u64 * 100 + u64::from(process.life);
            let name = instance(place, process.life);
            process.agent = Some(self.machines.agents.begin(name, lead.epoch, seed));
            self.step_agent(place, Input::Begun)?;
        }
        self.leave_held(place)?;
        self.ask_lease(place);
        Ok(())
    }

    /// Ends a process, whose writes may still take effect. Another process starts in its place.
    fn end_process(&mut self, place: usize, deaths: u8) {
        if let Some(link) = self.state.link_of(place) {
            link.leave_agent();
        }
        let process = &mut self.state.agents[place];
        let (life, crashes) = (process.life + 1, process.crashes - deaths);
        let next = self.machines.process(place, life, crashes);
        for call in std::mem::replace(process, next).calls {
            if let Place::Sent(deadline) = call.place {
                self.orphan(call.request, deadline);
            }
        }
        self.ask_lease(place);
    }

    fn connect(&mut self, place: usize, server: usize) -> Result<(), String> {
        let process = &mut self.state.agents[place];
        process.dials = false;
        process.dialled += 1;
        let (life, dialled) = (u64::from(process.life), u64::from(process.dialled));
        self.state.links.push(Link {
            number: place as u64 * 10_000 + life * 100 + dialled,
            agent: Some(place),
            server: Some(server),
            to_server: [].into(),
            to_agent: [].into(),
        });
        self.state.links.sort_by_key(|link| link.number);
        self.step_agent(place, Input::Connected)
    }

    fn hear_agent(&mut self, link: usize) -> Result<(), String> {
        let link = &mut self.state.links[link];
        let (number, agent) = (link.number, link.agent);
        let (Some(server), Some(heard)) = (link.server, link.to_server.pop_front()) else {
            return Ok(());
        };
        let Some(frame) = heard else {
            link.server = None;
            link.to_server.clear();
            return self.step_server(server, servers::Input::Ended(number));
        };
        self.step_server(server, servers::Input::Frame(number, frame))?;
        match agent.filter(|_| self.bounds.window.is_some()) {
            Some(agent) if self.state.agents[agent].paused.is_none() => {
                self.step_agent(agent, Input::Room)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Delivers everything in flight to servers.
    fn deliver_to_servers(&mut self) -> Result<(), String> {
        let waits = |link: &Link| link.server.is_some() && !link.to_server.is_empty();
        while let Some(link) = self.state.links.iter().position(waits) {
            self.hear_agent(link)?;
        }
        Ok(())
    }

    fn hear_server(&mut self, link: usize) -> Result<(), String> {
        let link = &mut self.state.links[link];
        let (Some(agent), Some(heard)) = (link.agent, link.to_agent.pop_front()) else {
            return Ok(());
        };
        let input = match heard {
            ToAgent::Frame(frame) => Input::Frame(frame),
            ToAgent::End(end) => {
                link.agent = None;
                Input::Ended(end)
            }
        };
        self.step_agent(agent, input)
    }

    fn take_list(&mut self, place: usize, kind: Kind) {
        let list = self.machines.list(self.state.api, kind);
        let process = &mut self.state.agents[place];
        if let Some(Listing::Sent(id)) = process.lists[kind as usize] {
            process.lists[kind as usize] = Some(Listing::Answered(id, list));
            process.streams[kind as usize] = Some(Stream::default());
        }
    }

    fn answer_list(&mut self, place: usize, kind: Kind) -> Result<(), String> {
        match self.state.agents[place].lists[kind as usize].take() {
            Some(Listing::Answered(id, list)) => {
                self.step_agent(place, Input::Listed(kind, id, list))
            }
            Some(Listing::Sent(_)) | None => Ok(()),
        }
    }

    fn tell(&mut self, place: usize, kind: Kind) -> Result<(), String> {
        let stream = self.state.agents[place].streams[kind as usize].as_mut();
        let told = stream.and_then(|stream| Some((stream.watch?, stream.events.pop_front()?)));
        told.map_or(Ok(()), |(id, event)| {
            self.step_agent(place, Input::Watched(kind, id, event))
        })
    }

    fn take_call(&mut self, place: usize, call: usize) -> Result<(), String> {
        let reply = self.execute(self.state.agents[place].calls[call].request)?;
        self.state.agents[place].calls[call].place = Place::Answered(reply);
        Ok(())
    }

    fn answer_call(&mut self, place: usize, call: usize) -> Result<(), String> {
        let call = self.state.agents[place].calls.remove(call);
        match call.place {
            Place::Answered(reply) => self.step_agent(place, Input::Replied(call.id, reply)),
            Place::Held | Place::Sent(_) => Ok(()),
        }
    }

    fn lose_answer(&mut self, place: usize, call: usize) -> Result<(), String> {
        self.state.lost_answers -= 1;
        let call = self.state.agents[place].calls.remove(call);
        let api = self.state.api;
        self.state.api = self.machines.note_unanswered(api, call.request);
        if let Place::Sent(deadline) = call.place {
            self.orphan(call.request, deadline);
        }
        let no_answer = Err(ApiError::no_answer("context deadline exceeded"));
        let reply = self.machines.messages.replies.intern(no_answer);
        self.step_agent(place, Input::Replied(call.id, reply))
    }

    fn orphan(&mut self, request: Id, deadline: Timestamp) {
        if is_write(self.machines.request(request)) {
            self.state.orphans.push(Orphan { deadline, request });
            self.state.orphans.sort_unstable();
        }
    }

    fn execute(&mut self, request: Id) -> Result<Id, String> {
        let (api, now) = (self.state.api, self.state.now);
        let executed = self.machines.execute(api, request, now);
        self.change(executed.api, executed.event);
        executed.violation.map_or(Ok(executed.reply), Err)
    }

    fn kill_server(&mut self, place: usize) {
        let end = self.lost("the server died");
        let server = &mut self.state.servers[place];
        server.crashes -= 1;
        server.machines = self.machines.servers.begin();
        let links = self.state.links.iter_mut();
        links
            .filter(|link| link.server == Some(place))
            .for_each(|link| link.leave_server(end));
    }

    /// Handles the timers of a process that were due during its pause.
    fn wake(&mut self, place: usize) -> Result<(), String> {
        let agent = self.state.agents[place].agent;
        let due = agent.and_then(|agent| self.machines.agents.poll_timeout(agent));
        if due.is_some_and(|due| due <= self.state.now) {
            self.step_agent(place, Input::Timeout)?;
        }
        self.ask_lease(place);
        Ok(())
    }

    fn pass_time(&mut self, now: Timestamp) -> Result<(), String> {
        self.state.now = now;
        for place in 0..self.state.agents.len() {
            if self.state.agents[place].paused.is_none() {
                self.wake(place)?;
            }
        }
        for place in 0..self.state.servers.len() {
            let server = self.state.servers[place].machines;
            let due = self.machines.servers.poll_timeout(server);
            if due.is_some_and(|due| due <= now) {
                self.step_server(place, servers::Input::Timeout)?;
            }
        }
        Ok(())
    }

    fn lost(&mut self, cause: &str) -> Id {
        let ends = &mut self.machines.messages.ends;
        ends.intern(Disconnect::Lost(cause.to_owned()))
    }
}
