//! The input and output of the machines: delivers events, and puts outputs in flight.

use std::time::Duration;

use agent_core::{
    agent::AgentCommand,
    asking::{Asks, CostCall},
    budget::{Cause, Change, Hold},
    link::{Disconnect, LinkCommand},
    report::Report,
    watch::WatchCommand,
};

use super::{
    boundaries::{Moment, Party},
    happening::Happening,
    state::World,
};
use crate::{
    actors::Sent,
    encounters::{BUDGET_EXCEEDED, BUDGET_RESUMED},
    facts::{Fact, Teller, Told},
    mutants::Mutant,
};

/// Whether a pod is busy.
pub fn is_busy(uid: &str) -> bool {
    uid.bytes()
        .last()
        .is_some_and(|byte| byte.is_multiple_of(2))
}

impl World {
    /// Gives an answer or event of the cluster to the agent, if the life that asked is not over.
    pub(super) fn tell_agent(&mut self, happening: Happening) {
        match happening {
            Happening::Reply { life, id, result } => {
                self.ledger.note_reply(life, id);
                if let Some((now, actor)) = self.living_at(life) {
                    actor.agent.handle_reply(now, id, result);
                }
            }
            Happening::CostAnswered { life, id, cost } => {
                if let Some((_, actor)) = self.living_at(life) {
                    actor.agent.handle_costs(id, vec![cost]);
                }
            }
            Happening::Listed {
                life,
                kind,
                id,
                list,
            } => {
                if let Some((now, actor)) = self.living_at(life) {
                    actor.agent.handle_listed(now, kind, id, list);
                }
            }
            Happening::WatchTells {
                life,
                kind,
                id,
                event,
            } => {
                if let Some((now, actor)) = self.living_at(life) {
                    actor.agent.handle_watch_event(now, kind, id, event);
                }
            }
            Happening::WatchEnds {
                life,
                kind,
                id,
                error,
            } => {
                if let Some((now, actor)) = self.living_at(life) {
                    actor
                        .agent
                        .handle_watch_closed(now, kind, id, error.as_ref());
                }
            }
            Happening::ServerStarts { .. }
            | Happening::AgentStarts
            | Happening::AgentWakes { .. }
            | Happening::LeaseAsked { .. }
            | Happening::LeaseAnswered { .. }
            | Happening::Connecting { .. }
            | Happening::ToServer { .. }
            | Happening::ServerSeesEnd { .. }
            | Happening::ToAgent { .. }
            | Happening::AgentSeesEnd { .. }
            | Happening::CallArrives { .. }
            | Happening::ListArrives { .. }
            | Happening::WatchOpens { .. }
            | Happening::NodesRead { .. }
            | Happening::Act { .. }
            | Happening::Fault(_) => {}
        }
    }

    pub(super) fn wake_servers(&mut self) {
        let now = self.now();
        for server in self.servers.iter_mut().flatten() {
            server.handle_timeout(now);
        }
    }

    pub(super) fn wake_agents(&mut self) {
        let now = self.now();
        for actor in self.agents.values_mut() {
            if self.paused.contains_key(&actor.life) {
                continue;
            }
            if actor.poll_timeout().is_some_and(|at| at <= now) {
                actor.agent.handle_timeout(actor.local(now));
            }
            // An overdue timer that could not be served yet is served with the next event.
            actor.served = actor.served.max(now);
        }
    }

    /// Executes all current outputs of the processes.
    pub(super) fn settle(&mut self) {
        loop {
            let awake = self.agents.keys().copied();
            let awake: Vec<_> = awake.filter(|it| !self.paused.contains_key(it)).collect();
            let acted = awake.into_iter().any(|life| self.settle_agent(life));
            if !acted && !(0..self.servers.len()).any(|server| self.settle_server(server)) {
                break;
            }
        }
        self.caches.note(self.schedule.now(), &self.cluster);
        let lives: Vec<_> = self.agents.keys().copied().collect();
        lives.into_iter().for_each(|life| self.read_watches(life));
    }

    fn settle_agent(&mut self, life: u64) -> bool {
        let Some((now, actor)) = self.living_at(life) else {
            return false;
        };
        if let Some(effect) = actor.agent.poll_command(now) {
            self.obey(life, effect);
            return true;
        }
        let Some(actor) = self.agents.get_mut(&life) else {
            return false;
        };
        let window = self.chaos.window;
        let reports = std::iter::from_fn(|| actor.agent.poll_report());
        let reports: Vec<_> = reports.collect();
        reports
            .into_iter()
            .for_each(|it| self.note_report(life, it));
        let Some(actor) = self.agents.get_mut(&life) else {
            return false;
        };
        let Some(connection) = actor.connection.filter(|_| actor.frames_out < window) else {
            return false;
        };
        let Some(mut frame) = actor.agent.poll_frame(now) else {
            return false;
        };
        actor.frames_out += 1;
        let (lane, late) = self.lane_to_server(connection, &mut frame);
        let delay = late + self.rng.delay(self.chaos.network_max);
        let sent = Happening::ToServer { connection, frame };
        let operation = sent.operation();
        self.schedule.on(lane, delay, sent);
        if let Some((what, party)) = operation {
            self.pass(what, Moment::Sent, party);
        }
        true
    }

    fn note_report(&mut self, life: u64, report: Report) {
        if let Report::Refused(refused) = &report {
            self.encounters.note(refused.rule.as_str());
        }
        if let Report::WentBack(_) = &report {
            self.tell(Told::WentBack, Teller::Agent(life));
        }
        if let Report::Budget(change) = &report {
            self.encounters.note(match &**change {
                Change::Warned(_) | Change::Held(_) => BUDGET_EXCEEDED,
                Change::Ended(_) => BUDGET_RESUMED,
            });
            let is_other = |hold: &Hold| hold.cause == Cause::OtherController;
            if matches!(&**change, Change::Held(hold) if is_other(hold)) {
                self.tell(Told::OtherController, Teller::Agent(life));
            }
        }
        if let Report::Disconnected(Disconnect::Refused { status, .. }) = report
            && status.starts_with("the server broke the protocol")
        {
            self.facts.push(Fact::ProtocolBroken(status));
        }
    }

    fn tell(&mut self, what: Told, by: Teller) {
        let is_quiet = match what {
            Told::WentBack => self.is_mutant(Mutant::KeepRestoresQuiet),
            Told::OtherController => self.is_mutant(Mutant::KeepHoldsQuiet),
            Told::PodsDoNotLast | Told::Quarantined => false,
        };
        if is_quiet {
            return;
        }
        self.encounters.note(what.as_str());
        self.facts.push(Fact::Told { what, by });
    }

    fn settle_server(&mut self, server: usize) -> bool {
        let now = self.now();
        let Some(actor) = &mut self.servers[server] else {
            return false;
        };
        let next = actor.poll(now, |connection| self.routes.contains_key(&connection));
        let (is_drained, told) = (actor.is_drained(), actor.take_told());
        for (connection, what) in told {
            self.tell(what, Teller::Session(connection));
        }
        match next {
            Some(Sent::Frame {
                connection,
                frame,
                batches,
            }) => self.send_frame(connection, frame, batches),
            Some(Sent::Cut { connection, cause }) => self.send_cut(connection, cause),
            Some(Sent::End {
                connection,
                refusal,
            }) => self.send_end(connection, refusal.as_ref()),
            None if is_drained => self.end_server(server),
            None => return false,
        }
        true
    }

    /// Lets a pod answer. A busy pod has an even last byte in its uid.
    fn ask_cost(&mut self, life: u64, call: CostCall) {
        let Some(asked) = &mut self.asked else { return };
        let CostCall { id, asks, timeout } = call;
        let Asks::Pod(pod, _) = asks else { return };
        let busy = if is_busy(&pod.uid) { 17 } else { 0 };
        asked.pods.push(pod);
        let (mut cost, mut delay, mut twice) = (Ok(busy), Duration::from_millis(5), false);
        if asked.is_troubled {
            delay = self.rng.delay(Duration::from_secs(3));
            twice = self.rng.chance(200);
            cost = match self.rng.between(0, 5) {
                0 => {
                    delay = timeout;
                    Err("no answer in time".to_owned())
                }
                1 => Err("refused".to_owned()),
                2 => Ok(*self.rng.pick(&[i32::MIN, i32::MAX, -1])),
                _ => cost,
            };
        }
        for _ in 0..=u8::from(twice) {
            let cost = cost.clone();
            let answer = Happening::CostAnswered { life, id, cost };
            self.schedule.after(delay.min(timeout), answer);
        }
    }

    fn obey(&mut self, life: u64, effect: AgentCommand) {
        match effect {
            AgentCommand::Link(LinkCommand::Connect) => {
                self.facts.push(Fact::Dialed { life });
                self.dial(life);
            }
            AgentCommand::Link(LinkCommand::Close) => self.hang_up(life, Some(Disconnect::Ended)),
            AgentCommand::Link(LinkCommand::Abort) => self.hang_up(life, None),
            AgentCommand::Watch(kind, command) => {
                if matches!(command, WatchCommand::List(_)) {
                    self.facts.push(Fact::ListBegan { life, kind });
                }
                self.obey_watch(life, kind, command);
            }
            AgentCommand::WatchNodes => {
                if let Some(actor) = self.living(life) {
                    actor.nodes = Some((usize::MAX, 0));
                }
            }
            AgentCommand::AskVersion(kind) => {
                let version = self.listed_version();
                let version = self.mutate_version(version);
                let version = Ok(version.to_string());
                if let Some((now, actor)) = self.living_at(life) {
                    actor.agent.handle_version(now, kind, &version);
                }
            }
            AgentCommand::AskCosts(call) => self.ask_cost(life, call),
            AgentCommand::Call(call) => {
                let verb = call.request.verb();
                self.pass(verb, Moment::Checked, Party::Life(life));
                if self.agents.contains_key(&life) {
                    self.send_call(life, call);
                    self.pass(verb, Moment::Sent, Party::Life(life));
                }
            }
        }
    }
}
