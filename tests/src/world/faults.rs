//! What goes wrong between the steps: deaths of either half, drains, broken and silent connections, broken watches.

use std::time::Duration;

use agent_core::link::Disconnect;
use agent_fake::Kind;

use super::{Happening, World, link::Silence};
use crate::{actors::CREATES, mutants::Mutant, schedule::Lane};

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
        } else if self.rng.chance(chaos.drain_server) {
            self.drain_server();
        } else if self.rng.chance(chaos.kill_agent) {
            self.kill_agent();
        } else if self.rng.chance(chaos.cut) {
            self.cut();
        } else if self.rng.chance(chaos.silence) {
            self.silence();
        } else if self.rng.chance(chaos.drop_watches) {
            self.drop_watches();
        } else {
            return;
        }
        self.incidents -= 1;
    }

    /// Kills the server process: all that it knew is gone.
    pub fn kill_server(&mut self) {
        if self.server.take().is_none() {
            return;
        }
        self.trace.note(self.now(), &"the server dies");
        self.cut();
        let pause = self.rng.delay(Duration::from_millis(800));
        self.schedule.after(pause, Happening::ServerStarts);
    }

    /// Begins to stop the server in order: its sessions are told, and finish what is in flight.
    fn drain_server(&mut self) {
        let now = self.now();
        if let Some(server) = &mut self.server {
            self.trace.note(now, &"the server drains");
            server.handle_drain(now);
        }
    }

    /// Ends a server that has drained; another starts.
    pub(super) fn end_server(&mut self) {
        self.server = None;
        let pause = self.rng.delay(Duration::from_millis(800));
        self.schedule.after(pause, Happening::ServerStarts);
    }

    /// Kills the agent process: its calls may or may not arrive, their answers reach nobody. The lease that it renewed up to its
    /// death runs out before another begins.
    pub fn kill_agent(&mut self) {
        let Some(actor) = self.agent.take() else {
            return;
        };
        self.trace.note(self.now(), &"the agent dies");
        for open in actor.watches.into_iter().flatten() {
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
        let pause = self.rng.delay(Duration::from_millis(800));
        let skips = self.mutant == Some(Mutant::SkipBarrier);
        let pause = if skips { pause } else { LEASE + pause };
        self.schedule.after(pause, Happening::AgentStarts);
    }

    /// Breaks the connection. What is on its way arrives before the news of it, or never.
    fn cut(&mut self) {
        let connection = self.agent.as_ref().and_then(|actor| actor.connection);
        let Some(connection) = connection else { return };
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
        let connection = self.agent.as_ref().and_then(|actor| actor.connection);
        let Some(connection) = connection else { return };
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
