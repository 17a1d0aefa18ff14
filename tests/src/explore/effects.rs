//! Puts the outputs of machines in flight.

use std::time::Duration;

use agent_core::{
    api::{CallId, Request},
    lease::{CREATE_TIMEOUT_MIN, Lead},
};

use super::{
    agents::{Input, Moment, Output},
    bounds::{Bounds, Mutant, create_limits},
    machines::Machines,
    servers,
    state::{Asked, Call, Listing, Place, State, ToAgent},
    store::Id,
};

/// An event of a state, in which the machines change it.
#[derive(Debug)]
pub struct Step<'a> {
    /// The bounds of the world.
    pub bounds: &'a Bounds,
    /// The machines and their known steps.
    pub machines: &'a mut Machines,
    /// The current state.
    pub state: State,
}

// === impl Step ===

impl Step<'_> {
    /// Gives an input to an agent, and puts its outputs in flight.
    ///
    /// # Errors
    /// If the agent begins a write that it may not begin.
    pub fn step_agent(&mut self, place: usize, input: Input) -> Result<(), String> {
        let Some(agent) = self.state.agents[place].agent else {
            return Ok(());
        };
        let at = Moment {
            now: self.state.now,
            room: self.room(place),
        };
        let Machines {
            agents, messages, ..
        } = self.machines;
        let (agent, outputs) = agents.step(messages, agent, input, at);
        self.state.agents[place].agent = Some(agent);
        for output in outputs.iter() {
            let process = &mut self.state.agents[place];
            match *output {
                Output::Call(id, request) => self.leave(place, id, request)?,
                Output::List(kind, id) => {
                    process.lists[kind as usize] = Some(Listing::Sent(id));
                    process.streams[kind as usize] = None;
                }
                Output::Watch(kind, id) => {
                    if let Some(stream) = &mut process.streams[kind as usize] {
                        stream.watch = Some(id);
                    }
                }
                Output::StopWatch(kind) => {
                    process.lists[kind as usize] = None;
                    process.streams[kind as usize] = None;
                }
                Output::Connect => process.dials = true,
                Output::Disconnect => {
                    if let Some(link) = self.state.link_of(place) {
                        link.leave_agent();
                    }
                }
                Output::Frame(frame) => {
                    let link = self.state.link_of(place);
                    if let Some(link) = link.filter(|link| !link.is_broken()) {
                        link.to_server.push_back(Some(frame));
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives an input to a server, and puts its outputs in flight.
    ///
    /// # Errors
    /// If the server has two sessions of the one cluster.
    pub fn step_server(&mut self, place: usize, input: servers::Input) -> Result<(), String> {
        let (server, now) = (self.state.servers[place].machines, self.state.now);
        let Machines {
            servers, messages, ..
        } = &mut *self.machines;
        let (server, outputs) = servers.step(messages, server, input, now);
        self.state.servers[place].machines = server;
        for output in outputs.iter() {
            let (servers::Output::Frame(number, _) | servers::Output::End(number, _)) = *output;
            let Some(link) = self.state.link(number) else {
                continue;
            };
            match *output {
                servers::Output::Frame(_, frame) => link.to_agent.push_back(ToAgent::Frame(frame)),
                servers::Output::End(_, end) => {
                    link.to_agent.push_back(ToAgent::End(end));
                    link.server = None;
                    link.to_server.clear();
                }
            }
            if link.agent.is_none() {
                link.to_agent.clear();
            }
        }
        match self.machines.servers.sessions(server) {
            0 | 1 => Ok(()),
            many => Err(format!("server {place} has {many} sessions of one cluster")),
        }
    }

    /// Puts the Lease request of a process in flight.
    pub fn ask_lease(&mut self, place: usize) {
        let process = &mut self.state.agents[place];
        if process.asked.is_none() {
            let Machines {
                leases, messages, ..
            } = &mut *self.machines;
            let (lease, command) = leases.poll(messages, process.lease, self.state.now);
            process.lease = lease;
            process.asked = command.map(Asked::Sent);
        }
    }

    /// Sends the calls that wait for a renewal of the Lease.
    ///
    /// # Errors
    /// If a call begins that may not begin.
    pub fn leave_held(&mut self, place: usize) -> Result<(), String> {
        let calls = std::mem::take(&mut self.state.agents[place].calls);
        let (held, others): (Vec<_>, Vec<_>) = calls
            .into_iter()
            .partition(|call| call.place == Place::Held);
        self.state.agents[place].calls = others;
        held.into_iter()
            .try_for_each(|call| self.leave(place, call.id, call.request))
    }

    /// Sends a call as the agent's shell does: only with the Lease, and a create with the remaining time of the Lease.
    fn leave(&mut self, place: usize, id: CallId, request: Id) -> Result<(), String> {
        let (machines, now) = (&mut *self.machines, self.state.now);
        let lead = machines.leases.lead(self.state.agents[place].lease, now);
        let mut asked = machines.request(request).clone();
        let mut held = lead.is_none() && machines.mutant != Some(Mutant::IgnoreLeaseLoss);
        let mut timeout = create_limits().timeout;
        if let (Request::CreatePod(create), Some(lead)) = (&mut asked, lead) {
            let left = lead.creates_until.duration_since(now);
            let left = Duration::try_from(left).unwrap_or_default();
            held |= left < CREATE_TIMEOUT_MIN;
            create.timeout = create.timeout.min(left);
            timeout = create.timeout;
        }
        let mut call = Call {
            id,
            request,
            place: Place::Held,
        };
        if !held {
            if is_write(&asked) {
                let newest = machines.leases.epoch(self.state.lease).unwrap_or(0);
                check_epoch(place, lead, newest)?;
            }
            let deadline = now + timeout + lateness_max(machines.mutant);
            call.request = machines.messages.requests.intern(asked);
            call.place = Place::Sent(deadline);
        }
        self.state.agents[place].calls.push(call);
        Ok(())
    }

    /// The number of frames that an agent may send now.
    fn room(&mut self, place: usize) -> u8 {
        let Some(window) = self.bounds.window else {
            return u8::MAX;
        };
        let link = self.state.link_of(place);
        let used = link.map_or(0, |link| {
            u8::try_from(link.to_server.len()).unwrap_or(u8::MAX)
        });
        window.saturating_sub(used)
    }
}

/// Returns whether a call writes.
#[must_use]
pub const fn is_write(request: &Request) -> bool {
    !matches!(
        request,
        Request::ReadPod { .. } | Request::ReadReplicaSet { .. }
    )
}

/// Checks that a write begins in the newest epoch.
fn check_epoch(agent: usize, lead: Option<Lead>, newest: i64) -> Result<(), String> {
    match lead.map(|lead| lead.epoch) {
        Some(epoch) if epoch >= newest => Ok(()),
        Some(epoch) => Err(format!(
            "agent {agent} begins a write in epoch {epoch}, the newest is {newest}"
        )),
        None => Err(format!("agent {agent} begins a write without the Lease")),
    }
}

/// The maximum time after its timeout at which a call may take effect.
fn lateness_max(mutant: Option<Mutant>) -> Duration {
    let margin = create_limits().margin;
    if mutant == Some(Mutant::IgnoreTimeout) {
        margin + Duration::from_secs(60)
    } else {
        margin
    }
}
