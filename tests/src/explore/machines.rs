//! All machines of a search, and their known steps.

use std::collections::HashMap;

use agent_core::{
    api::{Kind, Object, Request},
    watch::{List, WatchEvent},
};
use jiff::Timestamp;

use super::{
    agents::Agents,
    api::Api,
    bounds::{Act, Bounds, Mutant},
    leases::Leases,
    servers::Servers,
    state::{Process, Server, State},
    store::{Id, Interner, Messages},
};

/// The machines of a search, which owns and changes them.
#[derive(Debug)]
pub struct Machines {
    /// The break of the world.
    pub mutant: Option<Mutant>,
    /// The agents.
    pub agents: Agents,
    /// The servers.
    pub servers: Servers,
    /// The Lease.
    pub leases: Leases,
    /// The messages in flight.
    pub messages: Messages,
    apis: Interner<Api>,
    calls: HashMap<(Id, Id, Timestamp), Executed>,
}

/// The effect of a call.
#[derive(Clone, Debug)]
pub struct Executed {
    /// The API server after it.
    pub api: Id,
    /// The answer.
    pub reply: Id,
    /// The event of watches.
    pub event: Option<(Kind, Id)>,
    /// The invariant that the call breaks.
    pub violation: Option<String>,
}

// === impl Machines ===

impl Machines {
    /// Returns machines without steps.
    #[must_use]
    pub fn new(mutant: Option<Mutant>) -> Self {
        Self {
            mutant,
            agents: Agents::new(mutant),
            servers: Servers::new(mutant),
            leases: Leases::new(mutant),
            messages: Messages::default(),
            apis: Interner::default(),
            calls: HashMap::new(),
        }
    }

    /// Returns a world at its start, without faults.
    pub fn first(&mut self, bounds: &Bounds, now: Timestamp) -> State {
        State {
            now,
            api: self
                .apis
                .intern(Api::new(bounds.replicas, bounds.readiness)),
            lease: self.leases.absent(),
            agents: (0..bounds.agents)
                .map(|place| self.process(place, 0, 0))
                .collect(),
            servers: (0..bounds.servers)
                .map(|_| Server {
                    machines: self.servers.begin(),
                    crashes: 0,
                })
                .collect(),
            links: Vec::new(),
            orphans: Vec::new(),
            acts: vec![false; bounds.acts.len()],
            broken_connections: 0,
            lost_answers: 0,
            pauses: 0,
        }
    }

    /// Returns a process that has just started and stands by.
    pub fn process(&mut self, place: usize, life: u8, crashes: u8) -> Process {
        let lease = self.leases.begin(instance(place, life));
        Process::new(life, crashes, lease)
    }

    /// Returns the API server.
    #[must_use]
    pub fn api(&self, api: Id) -> &Api {
        self.apis.get(api)
    }

    /// Returns the request of a call.
    #[must_use]
    pub fn request(&self, request: Id) -> &Request {
        self.messages.requests.get(request)
    }

    /// Lets the API server execute a call.
    pub fn execute(&mut self, api: Id, request: Id, now: Timestamp) -> Executed {
        if let Some(executed) = self.calls.get(&(api, request, now)) {
            return executed.clone();
        }
        let mut server = Api::clone(self.apis.get(api));
        let done = server.execute(now, self.messages.requests.get(request), self.mutant);
        let executed = Executed {
            api: self.apis.intern(server),
            reply: self.messages.replies.intern(done.reply),
            event: done.event.and_then(|event| self.event(event)),
            violation: done.violation,
        };
        self.calls.insert((api, request, now), executed.clone());
        executed
    }

    /// Notes a call of unknown effect.
    pub fn note_unanswered(&mut self, api: Id, request: Id) -> Id {
        let mut server = Api::clone(self.apis.get(api));
        server.note_unanswered(self.messages.requests.get(request));
        self.apis.intern(server)
    }

    /// Lets a user act.
    pub fn act(&mut self, api: Id, act: Act, now: Timestamp) -> (Id, Vec<(Kind, Id)>) {
        let mut server = Api::clone(self.apis.get(api));
        let events = server.act(now, act).into_iter();
        let events = events.filter_map(|event| self.event(event)).collect();
        (self.apis.intern(server), events)
    }

    /// Lets a pod become ready.
    pub fn make_ready(
        &mut self,
        api: Id,
        place: usize,
        now: Timestamp,
    ) -> (Id, Option<(Kind, Id)>) {
        let mut server = Api::clone(self.apis.get(api));
        let event = server.make_ready(now, place);
        let event = event.and_then(|event| self.event(event));
        (self.apis.intern(server), event)
    }

    /// Returns all objects of a kind.
    pub fn list(&mut self, api: Id, kind: Kind) -> Id {
        let server = self.apis.get(api);
        let list: List = match kind {
            Kind::Pod => server.list_pods(),
            Kind::ReplicaSet => server.list_replica_sets(),
        };
        self.messages.lists.intern(list)
    }

    /// An event with its kind, unless watches do not report it.
    fn event(&mut self, event: WatchEvent) -> Option<(Kind, Id)> {
        let (object, lost) = match &event {
            WatchEvent::Applied(object) | WatchEvent::MadeByOther { object, .. } => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            WatchEvent::Invalid { .. } | WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {
                return None;
            }
        };
        let kind = match object {
            Object::Pod(_) => Kind::Pod,
            Object::ReplicaSet(_) => Kind::ReplicaSet,
        };
        if lost && self.mutant == Some(Mutant::LoseDeletions) {
            return None;
        }
        Some((kind, self.messages.events.intern(event)))
    }
}

/// Returns the name of a process.
#[must_use]
pub fn instance(place: usize, life: u8) -> String {
    format!("agent-{place}-{life}")
}
