//! A world: server, agent and cluster, stepped one happening at a time in virtual time.

use std::{collections::BTreeMap, time::Duration};

use agent_core::{
    agent::Effect,
    api::{self, Call, CallId, Reply},
    link::{Disconnect, LinkCommand},
    watch::{List, WatchCommand, WatchEvent, WatchId},
};
use agent_fake::{Cluster, Config};
use decree::v1;
use jiff::Timestamp;

use self::link::Silence;
use crate::{
    actors::{AgentActor, Sent, ServerActor},
    builders::pod,
    chaos::Chaos,
    encounters::Encounters,
    facts::{Cause, Fact},
    ledger::Ledger,
    mutants::Mutant,
    rng::Rng,
    schedule::{Lane, Schedule},
    trace::Trace,
    workloads::{Act, BYSTANDER, MISFIT},
};

mod api_server;
mod faults;
mod link;
mod telling;
mod user;

/// A simulated world. Its owner steps it; checkers look at it between steps.
#[derive(Debug)]
pub struct World {
    /// The cluster.
    pub cluster: Cluster,
    /// The agent, while it lives.
    pub agent: Option<AgentActor>,
    /// The server, while it lives.
    pub server: Option<ServerActor>,
    /// What has been done so far, and why.
    pub ledger: Ledger,
    /// What happened in the last step.
    pub facts: Vec<Fact>,
    /// How rough it is at this moment.
    pub chaos: Chaos,
    /// What of the protocol was met so far.
    pub encounters: Encounters,
    /// What was recorded, for people.
    pub trace: Trace,
    mutant: Option<Mutant>,
    rng: Rng,
    schedule: Schedule<Happening>,
    /// The connections that have fallen silent.
    silent: BTreeMap<u64, Silence>,
    incidents: u32,
    lives: u64,
    connections: u64,
    watches: u64,
}

/// Something that happens at a time.
#[derive(Debug)]
enum Happening {
    ServerStarts,
    AgentStarts,
    Connecting {
        connection: u64,
    },
    ToServer {
        connection: u64,
        frame: v1::ReconcileRequest,
    },
    ServerSeesEnd {
        connection: u64,
        in_order: bool,
    },
    ToAgent {
        connection: u64,
        frame: v1::ReconcileResponse,
    },
    AgentSeesEnd {
        connection: u64,
        cause: Disconnect,
    },
    CallArrives {
        life: u64,
        call: Call,
        cause: Option<Cause>,
        answered: bool,
    },
    Reply {
        life: u64,
        id: CallId,
        result: Result<Reply, api::ApiError>,
    },
    ListArrives {
        life: u64,
        kind: api::Kind,
        id: WatchId,
    },
    Listed {
        life: u64,
        kind: api::Kind,
        id: WatchId,
        list: Result<List, api::ApiError>,
    },
    WatchOpens {
        life: u64,
        kind: api::Kind,
        id: WatchId,
        from: String,
    },
    WatchTells {
        life: u64,
        kind: api::Kind,
        id: WatchId,
        event: WatchEvent,
    },
    WatchEnds {
        life: u64,
        kind: api::Kind,
        id: WatchId,
        error: Option<api::ApiError>,
    },
    Act {
        act: Act,
        tries: u32,
    },
}

// === impl World ===

impl World {
    /// Returns a world with a server and an agent that have just started.
    #[must_use]
    pub fn new(seed: u64, mut rng: Rng, chaos: Chaos, mutant: Option<Mutant>) -> Self {
        let config = Config {
            seed,
            ..crate::workloads::cluster()
        };
        let now = config.start;
        let mut schedule = Schedule::new(now);
        schedule.after(
            rng.delay(Duration::from_millis(50)),
            Happening::ServerStarts,
        );
        schedule.after(rng.delay(Duration::from_millis(50)), Happening::AgentStarts);
        let mut cluster = Cluster::new(config);
        let bystander = pod(BYSTANDER).labelled("app", "other").on("aside").build();
        cluster.create(bystander).expect("nothing refuses it");
        if chaos.bad_object {
            let mut misfit = pod(MISFIT).labelled("app", "other").build();
            // The contract has uids of at most 128 characters.
            misfit["metadata"]["uid"] = "u".repeat(129).into();
            cluster.restore(misfit).expect("nothing refuses it");
        }
        Self {
            cluster,
            agent: None,
            server: None,
            ledger: Ledger::default(),
            facts: Vec::new(),
            incidents: chaos.incidents,
            chaos,
            encounters: Encounters::default(),
            silent: BTreeMap::new(),
            trace: Trace::default(),
            mutant,
            rng,
            schedule,
            lives: 0,
            connections: 0,
            watches: 0,
        }
    }

    /// Returns the time.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.schedule.now()
    }

    /// Lets a user act after a while.
    pub fn plan(&mut self, after: Duration, act: Act) {
        self.schedule.after(after, Happening::Act { act, tries: 0 });
    }

    /// Ends all faults, but for links that have fallen silent: those are found by their silence.
    pub fn heal(&mut self) {
        self.chaos = self.chaos.healed();
        self.incidents = 0;
    }

    /// Returns whether a user's act is still to come.
    #[must_use]
    pub fn is_planned(&self) -> bool {
        self.schedule
            .count(|it| matches!(it, Happening::Act { .. }))
            > 0
    }

    /// Returns whether a call, an answer or a watch event is on its way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let busy = |it: &Happening| {
            matches!(
                it,
                Happening::CallArrives { .. }
                    | Happening::Reply { .. }
                    | Happening::WatchTells { .. }
            )
        };
        self.schedule.count(busy) > 0
    }

    /// Lets the next thing happen, at `until` at the latest, and everything that follows at once. Returns whether it was before `until`.
    pub fn step(&mut self, until: Timestamp) -> bool {
        self.facts.clear();
        let at = self.next_at().filter(|at| *at <= until);
        let Some(at) = at else {
            self.schedule.arrive(until);
            self.cluster.advance(until);
            return false;
        };
        let cluster_first = self.cluster.next_due().is_some_and(|due| due <= at);
        self.schedule.arrive(at);
        self.cluster.advance(at);
        if !cluster_first && self.schedule.next_at() == Some(at) {
            self.happen();
        }
        self.wake_server();
        self.wake_agent();
        self.inject_faults();
        self.settle();
        true
    }

    fn next_at(&self) -> Option<Timestamp> {
        let agent = self.agent.as_ref().and_then(AgentActor::poll_timeout);
        let server = self.server.as_ref().and_then(ServerActor::poll_timeout);
        let next = [
            self.schedule.next_at(),
            self.cluster.next_due(),
            agent,
            server,
        ];
        let next = next.into_iter().flatten().min();
        next.map(|at| at.max(self.now()))
    }

    fn happen(&mut self) {
        let Some(happening) = self.schedule.pop() else {
            return;
        };
        self.trace.note(self.schedule.now(), &happening);
        if self.is_lost(&happening) {
            return;
        }
        match happening {
            Happening::ServerStarts => {
                self.server = Some(ServerActor::new(self.mutant, self.chaos.operations_max));
            }
            Happening::AgentStarts => self.start_agent(),
            Happening::Connecting { connection } => self.connect(connection),
            Happening::ToServer { connection, frame } => self.hear_agent(connection, frame),
            Happening::ServerSeesEnd {
                connection,
                in_order,
            } => {
                let now = self.now();
                if let Some(server) = &mut self.server {
                    server.handle_disconnected(now, connection, in_order);
                }
            }
            Happening::ToAgent { connection, frame } => self.hear_server(connection, frame),
            Happening::AgentSeesEnd { connection, cause } => self.agent_sees_end(connection, cause),
            Happening::CallArrives {
                life,
                call,
                cause,
                answered,
            } => {
                self.call_arrives(life, call, cause, answered);
            }
            Happening::Reply { .. }
            | Happening::Listed { .. }
            | Happening::WatchTells { .. }
            | Happening::WatchEnds { .. } => self.tell_agent(happening),
            Happening::ListArrives { life, kind, id } => self.list_arrives(life, kind, id),
            Happening::WatchOpens {
                life,
                kind,
                id,
                from,
            } => self.watch_opens(life, kind, id, &from),
            Happening::Act { act, tries } => self.act(act, tries),
        }
    }

    /// Hands the agent what the cluster answers or tells, if the life that asked is not over.
    fn tell_agent(&mut self, happening: Happening) {
        let now = self.now();
        match happening {
            Happening::Reply { life, id, result } => {
                self.ledger.note_reply(life, id);
                if let Some(actor) = self.living(life) {
                    actor.agent.handle_reply(now, id, result);
                }
            }
            Happening::Listed {
                life,
                kind,
                id,
                list,
            } => {
                if let Some(actor) = self.living(life) {
                    actor.agent.handle_listed(now, kind, id, list);
                }
            }
            Happening::WatchTells {
                life,
                kind,
                id,
                event,
            } => {
                if let Some(actor) = self.living(life) {
                    actor.agent.handle_watch_event(now, kind, id, event);
                }
            }
            Happening::WatchEnds {
                life,
                kind,
                id,
                error,
            } => {
                if let Some(actor) = self.living(life) {
                    actor
                        .agent
                        .handle_watch_closed(now, kind, id, error.as_ref());
                }
            }
            Happening::ServerStarts
            | Happening::AgentStarts
            | Happening::Connecting { .. }
            | Happening::ToServer { .. }
            | Happening::ServerSeesEnd { .. }
            | Happening::ToAgent { .. }
            | Happening::AgentSeesEnd { .. }
            | Happening::CallArrives { .. }
            | Happening::ListArrives { .. }
            | Happening::WatchOpens { .. }
            | Happening::Act { .. } => {}
        }
    }

    fn start_agent(&mut self) {
        self.lives += 1;
        let actor = AgentActor::new(self.now(), self.lives, self.rng.next_u64(), self.mutant);
        self.agent = Some(actor);
    }

    fn wake_server(&mut self) {
        let now = self.now();
        if let Some(server) = &mut self.server {
            server.handle_timeout(now);
        }
    }

    fn wake_agent(&mut self) {
        let now = self.now();
        let Some(actor) = &mut self.agent else { return };
        let due = actor.poll_timeout().is_some_and(|at| at <= now);
        if due {
            actor.agent.handle_timeout(now);
        }
        // An overdue wake-up that could not be served yet is served with the next news.
        actor.served = actor.served.max(now);
    }

    /// Does everything that the halves want at this moment.
    fn settle(&mut self) {
        while self.settle_agent() || self.settle_server() {}
        self.read_watches();
    }

    fn settle_agent(&mut self) -> bool {
        let now = self.now();
        let Some(actor) = &mut self.agent else {
            return false;
        };
        if let Some(effect) = actor.agent.poll_effect(now) {
            self.obey(effect);
            return true;
        }
        while actor.agent.poll_report().is_some() {}
        let Some(connection) = actor
            .connection
            .filter(|_| actor.frames_out < self.chaos.window)
        else {
            return false;
        };
        let Some(frame) = actor.agent.poll_frame(now) else {
            return false;
        };
        actor.frames_out += 1;
        let delay = self.rng.delay(self.chaos.network_max);
        self.schedule.on(
            Lane::ToServer(connection),
            delay,
            Happening::ToServer { connection, frame },
        );
        true
    }

    fn settle_server(&mut self) -> bool {
        let now = self.now();
        let Some(server) = &mut self.server else {
            return false;
        };
        match server.poll(now) {
            Some(Sent::Frame {
                connection,
                frame,
                batches,
            }) => self.send_frame(connection, frame, batches),
            Some(Sent::End {
                connection,
                refusal,
            }) => self.send_end(connection, refusal.as_ref()),
            None if server.is_drained() => self.end_server(),
            None => return false,
        }
        true
    }

    fn obey(&mut self, effect: Effect) {
        match effect {
            Effect::Link(LinkCommand::Connect) => self.dial(),
            Effect::Link(LinkCommand::Close) => self.hang_up(Some(Disconnect::Ended)),
            Effect::Link(LinkCommand::Abort) => self.hang_up(None),
            Effect::Watch(kind, command) => self.obey_watch(kind, command),
            Effect::Call(call) => self.send_call(call),
        }
    }

    fn obey_watch(&mut self, kind: api::Kind, command: WatchCommand) {
        let Some(actor) = &mut self.agent else { return };
        actor.wanted[kind as usize] = match command {
            WatchCommand::Watch { id, .. } => Some(id),
            WatchCommand::List(_) | WatchCommand::Stop => None,
        };
        if let Some(open) = actor.watches[kind as usize].take() {
            self.cluster.close_watch(open.cluster);
        }
        let life = actor.life;
        let delay = self.rng.delay(self.chaos.call_max);
        match command {
            WatchCommand::List(id) => {
                self.schedule
                    .after(delay, Happening::ListArrives { life, kind, id });
            }
            WatchCommand::Watch { id, from } => {
                self.schedule.after(
                    delay,
                    Happening::WatchOpens {
                        life,
                        kind,
                        id,
                        from,
                    },
                );
            }
            WatchCommand::Stop => {}
        }
    }

    fn living(&mut self, life: u64) -> Option<&mut AgentActor> {
        self.agent.as_mut().filter(|actor| actor.life == life)
    }
}
