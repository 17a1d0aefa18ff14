//! The real machine of the agent, one step at a time: an input, and all its outputs.

use std::{collections::HashMap, rc::Rc, time::Duration};

use agent_core::{
    agent::{Agent, AgentCommand, AgentConfig},
    api::{CallId, Kind},
    link::LinkCommand,
    watch::{WatchCommand, WatchId},
};
use decree::v1::{self, reconcile_request::Frame};
use jiff::Timestamp;

use super::{
    bounds::{Mutant, create_limits},
    store::{Id, Interner, Messages},
};

/// An input of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// The start.
    Begun,
    /// An open stream to the server.
    Connected,
    /// A frame of the server.
    Frame(Id),
    /// The end of the connection.
    Ended(Id),
    /// The answer to a list.
    Listed(Kind, WatchId, Id),
    /// An event of a watch.
    Watched(Kind, WatchId, Id),
    /// The answer to a call.
    Replied(CallId, Id),
    /// A free place for a frame.
    Room,
    /// A timer is due.
    Timeout,
}

/// An output of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A call.
    Call(CallId, Id),
    /// A list.
    List(Kind, WatchId),
    /// A watch, from the version of the last list or event.
    Watch(Kind, WatchId),
    /// The end of a list or watch.
    StopWatch(Kind),
    /// A connection.
    Connect,
    /// The end of the connection.
    Disconnect,
    /// A frame to the server.
    Frame(Id),
}

/// The moment of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    /// The time.
    pub now: Timestamp,
    /// The number of frames that may leave.
    pub room: u8,
}

/// All visited states of agents, and their outputs.
#[derive(Debug)]
pub struct Agents {
    mutant: Option<Mutant>,
    states: Interner<Agent>,
    steps: HashMap<(Id, Input, Moment), Step>,
}

type Step = (Id, Rc<[Output]>);

// === impl Agents ===

impl Agents {
    /// Returns an empty set.
    #[must_use]
    pub fn new(mutant: Option<Mutant>) -> Self {
        Self {
            mutant,
            states: Interner::default(),
            steps: HashMap::new(),
        }
    }

    /// Returns a new agent that leads in an epoch.
    pub fn begin(&mut self, instance: String, epoch: i64, seed: u64) -> Id {
        let mut creates = create_limits();
        if self.mutant == Some(Mutant::SkipBarrier) {
            creates.margin = Duration::ZERO;
        }
        self.states.intern(Agent::new(AgentConfig {
            ask_version_every: None,
            instance,
            cluster_uid: "cluster".to_owned(),
            epoch,
            events_max: 0,
            creates,
            seed,
            lenient: self.mutant.is_some(),
            ..AgentConfig::default()
        }))
    }

    /// Gives an input to an agent.
    pub fn step(&mut self, messages: &mut Messages, agent: Id, input: Input, at: Moment) -> Step {
        if let Some(step) = self.steps.get(&(agent, input, at)) {
            return step.clone();
        }
        let mut machine = Agent::clone(self.states.get(agent));
        feed(&mut machine, messages, input, at.now);
        let outputs = self.drain(&mut machine, messages, at);
        let step = (self.states.intern(machine), outputs.into());
        self.steps.insert((agent, input, at), Step::clone(&step));
        step
    }

    /// Returns the deadline of an agent.
    #[must_use]
    pub fn poll_timeout(&self, agent: Id) -> Option<Timestamp> {
        self.states.get(agent).poll_timeout()
    }

    /// The outputs of an agent, as its shell executes them.
    fn drain(&self, agent: &mut Agent, messages: &mut Messages, at: Moment) -> Vec<Output> {
        let mut outputs = Vec::new();
        let mut room = at.room;
        loop {
            while let Some(effect) = agent.poll_command(at.now) {
                outputs.extend(output(effect, messages));
            }
            let before = outputs.len();
            while room > 0
                && let Some(frame) = agent.poll_frame(at.now)
            {
                outputs.push(Output::Frame(messages.to_server.intern(self.mutate(frame))));
                room -= 1;
            }
            if outputs.len() == before {
                break;
            }
        }
        while agent.poll_report().is_some() {}
        outputs
    }

    fn mutate(&self, mut request: v1::ReconcileRequest) -> v1::ReconcileRequest {
        let Some(Frame::Outcomes(outcomes)) = &mut request.frame else {
            return request;
        };
        if self.mutant == Some(Mutant::RetryUnderAnotherName) {
            outcomes
                .outcomes
                .iter_mut()
                .for_each(take_timeout_for_a_taken_name);
        }
        if self.mutant == Some(Mutant::ForgetOutcomes) {
            request.frame = Some(Frame::Heartbeat(v1::Heartbeat::default()));
        }
        request
    }
}

fn take_timeout_for_a_taken_name(outcome: &mut v1::Outcome) {
    if let Some(v1::outcome::Outcome::Failed(failed)) = &mut outcome.outcome
        && failed.class() == v1::FailureClass::Timeout
    {
        failed.class = v1::FailureClass::NameTaken.into();
    }
}

fn feed(agent: &mut Agent, messages: &Messages, input: Input, now: Timestamp) {
    match input {
        Input::Begun | Input::Room => {}
        Input::Connected => agent.handle_connected(now),
        Input::Frame(frame) => {
            let frame = v1::ReconcileResponse::clone(messages.to_agent.get(frame));
            agent.handle_frame(now, frame);
        }
        Input::Ended(end) => {
            let end = messages.ends.get(end).as_ref().clone();
            agent.handle_disconnected(now, end);
        }
        Input::Listed(kind, id, list) => {
            let list = messages.lists.get(list).as_ref().clone();
            agent.handle_listed(now, kind, id, Ok(list));
        }
        Input::Watched(kind, id, event) => {
            let event = messages.events.get(event).as_ref().clone();
            agent.handle_watch_event(now, kind, id, event);
        }
        Input::Replied(id, reply) => {
            let reply = messages.replies.get(reply).as_ref().clone();
            agent.handle_reply(now, id, reply);
        }
        Input::Timeout => agent.handle_timeout(now),
    }
}

fn output(effect: AgentCommand, messages: &mut Messages) -> Option<Output> {
    Some(match effect {
        AgentCommand::Call(call) => Output::Call(call.id, messages.requests.intern(call.request)),
        AgentCommand::Watch(kind, WatchCommand::List(id)) => Output::List(kind, id),
        AgentCommand::Watch(kind, WatchCommand::Watch { id, .. }) => Output::Watch(kind, id),
        AgentCommand::Watch(kind, WatchCommand::Stop) => Output::StopWatch(kind),
        // The configuration turns this off.
        AgentCommand::AskVersion(..) => return None,
        AgentCommand::Link(LinkCommand::Connect) => Output::Connect,
        AgentCommand::Link(LinkCommand::Close | LinkCommand::Abort) => Output::Disconnect,
    })
}
