//! Servers, and the connections of agents to them.

use std::time::Duration;

use agent_core::link::Disconnect;
use decree::v1;
use jiff::SignedDuration;
use serde_json::json;

use super::{
    happening::Happening,
    state::{Route, World, namespace},
};
use crate::{
    actors::{Clock, Sent, ServerActor, disconnect},
    schedule::Lane,
};

/// How many operations a server lets be in flight.
const OPERATIONS_MAX: usize = 64;

impl World {
    pub(super) fn start_server(&mut self, server: usize) {
        let clock = Clock::new(self.now(), SignedDuration::ZERO, 0);
        self.servers[server] = Some(ServerActor::new(None, OPERATIONS_MAX, clock));
    }

    /// Kills a server; another starts in its place.
    pub(super) fn kill_server(&mut self, server: usize) {
        if self.servers[server].take().is_none() {
            return;
        }
        self.count("server killed");
        let routes = self.routes.iter();
        let cut = routes.filter(|(_, route)| route.server == server);
        let cut: Vec<_> = cut.map(|(connection, _)| *connection).collect();
        for connection in cut {
            let delay = self.transit();
            let cause = Disconnect::Lost("the server died".to_owned());
            let end = Happening::AgentSeesEnd { connection, cause };
            self.schedule.on(Lane::ToAgent(connection), delay, end);
        }
        self.restart(server);
    }

    pub(super) fn drain_server(&mut self, server: usize) {
        let now = self.now();
        if let Some(actor) = &mut self.servers[server] {
            actor.handle_drain(now);
            self.count("server drained");
        }
    }

    fn restart(&mut self, server: usize) {
        let pause = self.rng.delay(Duration::from_secs(1));
        self.schedule
            .after(pause, Happening::ServerStarts { server });
    }

    /// Lets servers do what is due, and sends what they have to say on its way.
    pub(super) fn drive_servers(&mut self) {
        let now = self.now();
        for server in 0..self.servers.len() {
            if let Some(actor) = &mut self.servers[server] {
                actor.handle_timeout(now);
            }
            loop {
                let actor = self.servers[server].as_mut();
                let Some(sent) = actor.and_then(|it| it.poll(now, |_| true)) else {
                    break;
                };
                self.send(sent);
            }
            let drained = self.servers[server].as_ref();
            if drained.is_some_and(ServerActor::is_drained) {
                self.servers[server] = None;
                self.restart(server);
            }
        }
    }

    fn send(&mut self, sent: Sent) {
        let delay = self.transit();
        let (connection, happening) = match sent {
            Sent::Frame {
                connection,
                frame,
                batches,
            } => {
                for (batch, verdict) in batches {
                    if let Err(why) = verdict {
                        self.broken = Some(format!("batch {} is wrong: {why}", batch.id));
                    }
                }
                (connection, Happening::ToAgent { connection, frame })
            }
            Sent::Cut { connection, cause } => {
                (connection, Happening::AgentSeesEnd { connection, cause })
            }
            Sent::End {
                connection,
                refusal,
            } => {
                let cause = disconnect(refusal.as_ref());
                (connection, Happening::AgentSeesEnd { connection, cause })
            }
        };
        self.schedule
            .on(Lane::ToAgent(connection), delay, happening);
    }

    /// Connects an agent to one of the servers, as a Service does.
    pub(super) fn dial(&mut self, agent: u64) {
        let connection = self.number();
        let server = usize::from(self.rng.chance(500));
        self.routes.insert(connection, Route { agent, server });
        if let Some(served) = self.agents.get_mut(&agent) {
            served.connection = Some(connection);
        }
        let delay = self.transit();
        self.schedule
            .after(delay, Happening::Connecting { connection });
    }

    /// Ends the agent's half of its connection.
    pub(super) fn hang_up(&mut self, agent: u64, in_order: bool) {
        let delay = self.transit();
        let served = self.agents.get_mut(&agent);
        let Some((connection, served)) = served.and_then(|it| Some((it.connection?, it))) else {
            return;
        };
        if !in_order {
            served.connection = None;
        }
        let end = Happening::ServerSeesEnd {
            connection,
            in_order,
        };
        self.schedule.on(Lane::ToServer(connection), delay, end);
        if in_order {
            let cause = Disconnect::Ended;
            let end = Happening::AgentSeesEnd { connection, cause };
            self.schedule.on(Lane::ToAgent(connection), 3 * delay, end);
        }
    }

    pub(super) fn connect(&mut self, connection: u64) {
        let (now, route) = (self.now(), self.routes[&connection]);
        let server = self.servers[route.server].as_mut();
        let is_up = server.is_some_and(|server| server.handle_connected(connection));
        let served = self.agents.get_mut(&route.agent);
        let Some(served) = served.filter(|it| it.connection == Some(connection)) else {
            return;
        };
        if is_up {
            return served.agent.handle_connected(now);
        }
        served.connection = None;
        let refused = Disconnect::Lost("refused".to_owned());
        served.agent.handle_disconnected(now, refused);
    }

    pub(super) fn hear_agent(&mut self, connection: u64, frame: v1::ReconcileRequest) {
        let (now, route) = (self.now(), self.routes[&connection]);
        if let Some(server) = &mut self.servers[route.server] {
            server.handle_frame(now, connection, frame);
        }
    }

    pub(super) fn server_sees_end(&mut self, connection: u64, in_order: bool) {
        let (now, route) = (self.now(), self.routes[&connection]);
        if let Some(server) = &mut self.servers[route.server] {
            server.handle_disconnected(now, connection, in_order);
        }
    }

    pub(super) fn hear_server(&mut self, connection: u64, frame: v1::ReconcileResponse) {
        let (now, route) = (self.now(), self.routes[&connection]);
        let served = self.agents.get_mut(&route.agent);
        if let Some(served) = served.filter(|it| it.connection == Some(connection)) {
            served.agent.handle_frame(now, frame);
        }
    }

    pub(super) fn agent_sees_end(&mut self, connection: u64, cause: Disconnect) {
        let (now, route) = (self.now(), self.routes[&connection]);
        let served = self.agents.get_mut(&route.agent);
        if let Some(served) = served.filter(|it| it.connection == Some(connection)) {
            served.connection = None;
            served.agent.handle_disconnected(now, cause);
        }
    }

    /// Scales the ReplicaSet of a namespace up.
    pub(super) fn scale(&mut self, number: usize, replicas: i32) {
        let namespace = namespace(number);
        let patch = json!({"spec": {"replicas": replicas}});
        let kind = agent_fake::Kind::ReplicaSet;
        let scaled = self.cluster.patch(kind, &namespace, "web", &patch);
        scaled.expect("it is there");
        let wanted = usize::try_from(replicas).expect("not negative");
        self.wanted.insert(namespace, wanted);
    }
}
