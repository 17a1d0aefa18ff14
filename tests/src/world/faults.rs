//! What goes wrong between the steps: deaths of either half, stopped processes, clocks that are set, drains, broken and silent
//! connections, broken watches.

use std::time::Duration;

use agent_core::link::Disconnect;
use agent_fake::Kind;

use super::{Happening, World, link::Silence};
use crate::{
    actors::{AgentActor, CREATES},
    mutants::Mutant,
    schedule::Lane,
};

/// How long after its last renewal another agent takes a lease: when every create that it allowed has taken effect or never will.
const LEASE: Duration = CREATES.timeout.saturating_add(CREATES.margin);

impl World {
    pub(super) fn inject_faults(&mut self) {
        if self.rng.chance(self.chaos.bookmarks) {
            self.cluster.send_bookmarks();
        }
        if self.incidents == 0 {
            return;
        }
        let chaos = self.chaos.clone();
        if self.rng.chance(chaos.kill_server) {
            self.kill_server();
        } else if self.rng.chance(chaos.pause_agent) {
            self.pause_agent();
        } else if self.rng.chance(chaos.jump_clock) {
            self.jump_clock();
        } else if self.rng.chance(chaos.drain_server) {
            self.drain_server();
        } else if self.rng.chance(chaos.kill_agent) {
            self.kill_agent();
        } else if self.rng.chance(chaos.cut) {
            self.pick_connection()
                .into_iter()
                .for_each(|it| self.cut(it));
        } else if self.rng.chance(chaos.silence) {
            self.silence();
        } else if self.rng.chance(chaos.drop_watches) {
            self.drop_watches();
        } else {
            return;
        }
        self.incidents -= 1;
    }

    /// Kills the process of a server: all that it knew is gone.
    pub fn kill_server(&mut self) {
        let server = self.pick_server();
        if self.servers[server].take().is_none() {
            return;
        }
        self.trace.note(self.now(), &"the server dies");
        let actors = self.agents.values();
        let connections: Vec<_> = actors.filter_map(|actor| actor.connection).collect();
        for connection in connections {
            if self.routes[&connection].server == server {
                self.cut(connection);
            }
        }
        let pause = self.rng.delay(Duration::from_millis(800));
        let starts = Happening::ServerStarts { server };
        self.schedule.after(pause, starts);
    }

    fn pick_server(&mut self) -> usize {
        match self.servers.len() {
            1 => 0,
            many => self.rng.between(0, many as u64 - 1) as usize,
        }
    }

    /// Picks one of the agents that act.
    fn pick_agent(&mut self) -> Option<u64> {
        let lives: Vec<_> = self.agents.keys().copied().collect();
        match lives.len() {
            0 | 1 => lives.first().copied(),
            _ => Some(*self.rng.pick(&lives)),
        }
    }

    fn pick_connection(&mut self) -> Option<u64> {
        let life = self.pick_agent()?;
        self.agents[&life].connection
    }

    /// Stops the process of an agent for a while, as a debugger or a full machine does. Its calls take effect, and it hears nothing.
    fn pause_agent(&mut self) {
        let Some(life) = self.pick_agent() else {
            return;
        };
        if self.paused.contains_key(&life) {
            return;
        }
        self.trace.note(self.now(), &"an agent is stopped");
        self.encounters.note("Agent stopped");
        self.paused.insert(life, Vec::new());
        let longest = *self.rng.pick(&[1, 12, 40]);
        let pause = self.rng.delay(Duration::from_secs(longest));
        self.schedule.after(pause, Happening::AgentWakes { life });
    }

    /// Sets the wall clock of a server.
    fn jump_clock(&mut self) {
        let offset = self.draw_offset();
        let server = self.pick_server();
        if let Some(actor) = &mut self.servers[server] {
            actor.offset = offset;
        }
    }

    /// Begins to stop the server in order: its sessions are told, and finish what is in flight.
    fn drain_server(&mut self) {
        let now = self.now();
        let server = self.pick_server();
        if let Some(server) = &mut self.servers[server] {
            self.trace.note(now, &"the server drains");
            server.handle_drain(now);
        }
    }

    /// Ends a server that has drained; another starts.
    pub(super) fn end_server(&mut self, server: usize) {
        self.servers[server] = None;
        let pause = self.rng.delay(Duration::from_millis(800));
        let starts = Happening::ServerStarts { server };
        self.schedule.after(pause, starts);
    }

    /// Kills the agent process: its calls may or may not arrive, their answers reach nobody. Where the
    /// Lease is not simulated, it runs out before another begins.
    pub fn kill_agent(&mut self) {
        if let Some(life) = self.pick_agent() {
            self.end_agent(life);
        }
    }

    /// Ends the process of an agent, where it stands; another starts.
    pub(super) fn end_agent(&mut self, life: u64) {
        let contended = self.leadership.forget(life);
        let actor = self.agents.remove(&life);
        if actor.is_none() && !contended {
            return;
        }
        self.paused.remove(&life);
        self.trace.note(self.now(), &"the agent dies");
        actor.into_iter().for_each(|actor| self.orphan(&actor));
        let pause = self.rng.delay(Duration::from_millis(800));
        let waits = contended || self.mutant == Some(Mutant::SkipBarrier);
        let pause = if waits { pause } else { LEASE + pause };
        self.schedule.after(pause, Happening::AgentStarts);
    }

    /// Ends the watches and the connection of a process that has died.
    fn orphan(&mut self, actor: &AgentActor) {
        for open in actor.watches.iter().flatten() {
            self.cluster.close_watch(open.cluster);
        }
        if let Some(connection) = actor.connection {
            let delay = self.rng.delay(Duration::from_secs(2));
            let end = Happening::ServerSeesEnd {
                connection,
                in_order: false,
            };
            self.schedule.on(Lane::ToServer(connection), delay, end);
        }
    }

    /// Breaks the connection. What is on its way arrives before the news of it, or never.
    fn cut(&mut self, connection: u64) {
        self.trace.note(self.now(), &"the connection breaks");
        if self.rng.chance(500) {
            self.schedule.forget(
                |it| matches!(it, Happening::ToServer { connection: on, .. } if *on == connection),
            );
        }
        if self.rng.chance(500) {
            self.schedule.forget(
                |it| matches!(it, Happening::ToAgent { connection: on, .. } if *on == connection),
            );
        }
        let delay = self.rng.delay(self.chaos.network_max);
        let end = Happening::ServerSeesEnd {
            connection,
            in_order: false,
        };
        self.schedule.on(Lane::ToServer(connection), delay, end);
        let cause = Disconnect::Lost("broken".to_owned());
        let delay = self.rng.delay(self.chaos.network_max);
        let end = Happening::AgentSeesEnd { connection, cause };
        self.schedule.on(Lane::ToAgent(connection), delay, end);
    }

    /// Lets the connection fall silent: what is sent on it is lost, and neither half is told.
    fn silence(&mut self) {
        let Some(connection) = self.pick_connection() else {
            return;
        };
        self.trace.note(self.now(), &"the connection falls silent");
        let (to_server, to_agent) = *self.rng.pick(&[(true, false), (false, true), (true, true)]);
        let silence = Silence {
            to_server,
            to_agent,
        };
        self.silent.entry(connection).or_insert(silence);
    }

    /// Breaks the watches of one kind; what they missed may be compacted away, so that only a list can tell it.
    fn drop_watches(&mut self) {
        let kind = *self.rng.pick(&[Kind::Pod, Kind::ReplicaSet]);
        self.trace.note(self.now(), &"watches break");
        self.cluster.faults_mut().drop_watches(kind);
        if self.rng.chance(500) {
            self.cluster.faults_mut().compact(kind);
        }
    }
}
