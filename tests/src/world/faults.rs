//! The faults between the steps: deaths of server or agent, stopped processes, changed clocks, drains, broken and silent
//! connections, broken watches.

use std::time::Duration;

use agent_fake::Kind;
use jiff::SignedDuration;

use super::{
    happening::Happening,
    state::{Silence, World},
};
use crate::{actors::DecisionServer, chaos::Fault};

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
            let server = self.pick_server();
            self.kill_server(server);
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
        } else if self.rng.chance(chaos.restart_api_server) {
            self.restart_api_server();
        } else {
            return;
        }
        self.incidents -= 1;
    }

    /// Executes a planned fault.
    pub(super) fn suffer(&mut self, fault: Fault) {
        let lives: Vec<_> = self.agents.keys().copied().collect();
        match fault {
            Fault::KillAgents => lives.into_iter().for_each(|life| self.end_agent(life)),
            Fault::PauseAgents(pause) => {
                lives.into_iter().for_each(|life| self.pause(life, pause));
            }
            Fault::JumpClocks => {
                let now = self.now();
                for life in self.leadership.contenders() {
                    let offset = self.draw_offset();
                    self.leadership.set_clock(life, now, offset);
                }
            }
            Fault::SetClocks(offset) => self.set_clocks(offset),
            Fault::StopServers(pause) => {
                (0..self.servers.len()).for_each(|server| self.kill_server_for(server, pause));
            }
            Fault::Write(times) => self.write_often(times),
            Fault::TakeBackup => self.take_backup(),
            Fault::PutBack(open) => self.put_back(open, Duration::ZERO),
            Fault::PutBackBehind(span) => self.put_back_behind(span),
            Fault::RestartBehind => self.restart_behind(),
            Fault::AddIllSet => self.add_ill_set(),
            Fault::RemoveIllSet => self.remove_ill_set(),
            Fault::Cut => {
                let actors = self.agents.values();
                let connections: Vec<_> = actors.filter_map(|actor| actor.connection).collect();
                connections.into_iter().for_each(|it| self.cut(it));
            }
            Fault::DropWatches => {
                for kind in [Kind::Pod, Kind::ReplicaSet] {
                    self.cluster.drop_watches(kind);
                    self.cluster.compact(kind);
                }
            }
        }
    }

    fn pick_server(&mut self) -> usize {
        match self.servers.len() {
            1 => 0,
            many => self.rng.between(0, many as u64 - 1) as usize,
        }
    }

    /// Picks one of the acting agents.
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

    /// Stops the process of an agent for a while, as a debugger or an overloaded machine does. Its calls take effect, and it
    /// receives nothing.
    fn pause_agent(&mut self) {
        let Some(life) = self.pick_agent() else {
            return;
        };
        if self.paused.contains_key(&life) {
            return;
        }
        let longest = *self.rng.pick(&[1, 12, 40]);
        let pause = self.rng.delay(Duration::from_secs(longest));
        self.pause(life, pause);
    }

    /// Stops the process of an agent for this duration.
    pub fn pause(&mut self, life: u64, pause: Duration) {
        if self.paused.contains_key(&life) {
            return;
        }
        self.trace.note(self.now(), &"an agent is stopped");
        self.encounters.note("Agent stopped");
        self.paused.insert(life, Vec::new());
        self.schedule.after(pause, Happening::AgentWakes { life });
    }

    /// Sets the wall clock of a server, or of a process that contends for the Lease.
    fn jump_clock(&mut self) {
        let (now, offset) = (self.now(), self.draw_offset());
        let contenders = self.leadership.contenders();
        if !contenders.is_empty() && self.rng.chance(500) {
            let life = *self.rng.pick(&contenders);
            return self.leadership.set_clock(life, now, offset);
        }
        let server = self.pick_server();
        let actor = self.servers[server].as_mut();
        if let Some(clock) = actor.and_then(DecisionServer::clock_mut) {
            clock.set(now, offset);
        }
    }

    /// Sets the wall clocks of all servers, and of all processes that contend for the Lease.
    fn set_clocks(&mut self, offset: SignedDuration) {
        let now = self.now();
        for life in self.leadership.contenders() {
            self.leadership.set_clock(life, now, offset);
        }
        let servers = self.servers.iter_mut().flatten();
        for clock in servers.filter_map(DecisionServer::clock_mut) {
            clock.set(now, offset);
        }
    }

    /// Starts an orderly stop of the server: its sessions are told, and finish the work in flight.
    fn drain_server(&mut self) {
        let server = self.pick_server();
        self.drain(server);
    }

    /// Starts a drain of the server, as a shutdown does.
    pub fn drain(&mut self, server: usize) {
        let now = self.now();
        if let Some(server) = &mut self.servers[server] {
            self.trace.note(now, &"the server drains");
            server.handle_drain(now);
        }
    }

    /// Kills the agent process: its calls may or may not arrive, and their answers are dropped. Without a simulated Lease, the
    /// Lease expires before another agent starts.
    pub fn kill_agent(&mut self) {
        if let Some(life) = self.pick_agent() {
            self.end_agent(life);
        }
    }

    /// Makes the connection silent: its messages are lost, and neither half is told.
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

    /// Restarts an API server: its watches break, and its caches have no history.
    fn restart_api_server(&mut self) {
        let server = self.caches.pick(&mut self.rng);
        self.trace.note(self.now(), &"an API server starts anew");
        self.caches.restart(server, self.cluster.version());
        let watches = self.agents.values().flat_map(|actor| actor.watches);
        let served = watches.flatten().filter(|open| open.server == server);
        let served: Vec<_> = served.map(|open| open.cluster).collect();
        served
            .into_iter()
            .for_each(|watch| self.cluster.close_watch(watch));
    }

    /// Breaks the watches of one kind; the missed events may be compacted away, so that only a list shows them.
    fn drop_watches(&mut self) {
        let kind = *self.rng.pick(&[Kind::Pod, Kind::ReplicaSet]);
        self.trace.note(self.now(), &"watches break");
        self.cluster.drop_watches(kind);
        if self.rng.chance(500) {
            self.cluster.compact(kind);
        }
    }
}
