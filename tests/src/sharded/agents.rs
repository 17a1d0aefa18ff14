//! What agents do: calls, lists and watches, each with its delay.

use std::time::Duration;

use agent_core::{
    agent::Effect,
    api::{ApiError, Call, CallId, Kind, Reply, Request},
    lease::CREATE_TIMEOUT_MIN,
    link::LinkCommand,
    watch::{List, WatchCommand, WatchEvent, WatchId},
};
use agent_fake::WatchPoll;
use decree_agent::cluster::fake::calls;

use super::{
    happening::Happening,
    state::{Mutant, OpenWatch, World},
};
use crate::schedule::Lane;

/// How soon a create is looked at again that waits for a Lease to be renewed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl World {
    /// Lets every agent that is awake do what is due, and reads its watches.
    pub(super) fn drive_agents(&mut self) {
        let agents: Vec<_> = self.agents.keys().copied().collect();
        for id in agents {
            self.read_watches(id);
            let now = self.now();
            let Some(served) = self.agents.get_mut(&id) else {
                continue;
            };
            if self.paused.contains_key(&served.life) {
                continue;
            }
            served.served = now;
            served.agent.handle_timeout(now);
            while self.drive(id) {}
        }
    }

    /// Does the next thing that an agent wants. Returns whether there was any.
    fn drive(&mut self, id: u64) -> bool {
        let now = self.now();
        let Some(served) = self.agents.get_mut(&id) else {
            return false;
        };
        if let Some(effect) = served.agent.poll_effect(now) {
            self.obey(id, effect);
            return true;
        }
        if let Some(connection) = served.connection
            && let Some(frame) = served.agent.poll_frame(now)
        {
            let delay = self.transit();
            let sent = Happening::ToServer { connection, frame };
            self.schedule.on(Lane::ToServer(connection), delay, sent);
            return true;
        }
        served.agent.poll_report().is_some()
    }

    fn obey(&mut self, agent: u64, effect: Effect) {
        match effect {
            Effect::Link(LinkCommand::Connect) => self.dial(agent),
            Effect::Link(LinkCommand::Close) => self.hang_up(agent, true),
            Effect::Link(LinkCommand::Abort) => self.hang_up(agent, false),
            Effect::Watch(kind, command) => self.obey_watch(agent, kind, command),
            Effect::AskVersion(kind, id) => {
                let (now, version) = (self.now(), Ok(self.cluster.version().to_string()));
                if let Some(served) = self.agents.get_mut(&agent) {
                    served.agent.handle_version(now, kind, id, &version);
                }
            }
            Effect::Call(call) => self.send_call(agent, call),
        }
    }

    /// Lets a call leave if the Leases of its agent last. A create takes as long as it may at most, and often so long.
    pub(super) fn send_call(&mut self, agent: u64, mut call: Call) {
        let time = match self.is_mutant(Mutant::IgnoreFence) {
            true => Some(Duration::MAX),
            false => self.create_time(agent),
        };
        let mut delay = self.transit();
        if let Request::CreatePod(create) = &mut call.request {
            match time {
                Some(time) if time >= CREATE_TIMEOUT_MIN => {
                    create.timeout = create.timeout.min(time);
                }
                Some(_) => {
                    let leaves = Happening::CallLeaves { agent, call };
                    return self.schedule.after(LOOK_EVERY, leaves);
                }
                None => return self.count("create held back"),
            }
            if self.rng.chance(self.be_late) {
                let mut latest = create.timeout + self.creates.margin;
                if self.is_mutant(Mutant::IgnoreTimeout) {
                    latest *= 8;
                }
                // Any later it would be given up.
                delay = latest.saturating_sub(Duration::from_micros(1));
                self.count("create as late as it may be");
            }
        } else if time.is_none() && !self.may_still_call(agent) {
            return self.count("call held back");
        }
        self.schedule
            .after(delay, Happening::CallArrives { agent, call });
    }

    /// Returns whether the Leases of an agent last, though not for a create.
    fn may_still_call(&self, agent: u64) -> bool {
        let leads = || {
            let served = self.agents.get(&agent)?;
            let process = self.processes.get(&served.life)?;
            process.base.lease.lead(self.now())?;
            let wanted = process.wanted.get(&served.shard)?;
            match &wanted.held {
                Some(held) => held.lease.lead(self.now()).map(drop),
                None => Some(()),
            }
        };
        leads().is_some()
    }

    pub(super) fn call_arrives(&mut self, agent: u64, call: Call) {
        let Call { id, request } = call;
        let result = if self.rng.chance(self.faults) {
            Err(calls::refused(agent_fake::ApiError::unavailable()))
        } else {
            if let Request::CreatePod(create) = &request {
                self.check_create(agent, create);
            }
            self.execute_call(request)
        };
        let result = match self.rng.chance(self.faults) {
            true => Err(ApiError::no_answer("context deadline exceeded")),
            false => result,
        };
        let delay = self.transit();
        let reply = Happening::Reply { agent, id, result };
        self.schedule.after(delay, reply);
    }

    fn execute_call(&mut self, request: Request) -> Result<Reply, ApiError> {
        let created = match &request {
            Request::CreatePod(create) => Some(create.namespace.clone()),
            Request::DeletePod { .. } => {
                self.broken = Some("a pod is deleted, and none is surplus".to_owned());
                None
            }
            Request::AdoptPod { .. }
            | Request::ReleasePod { .. }
            | Request::WriteStatus(_)
            | Request::ReadPod { .. }
            | Request::ReadReplicaSet { .. } => None,
        };
        let result = calls::call(&mut self.cluster, request);
        if let (Some(namespace), Ok(_)) = (created, &result) {
            self.note_created(&namespace);
        }
        result
    }

    pub(super) fn reply(&mut self, agent: u64, id: CallId, result: Result<Reply, ApiError>) {
        let now = self.now();
        if let Some(served) = self.agents.get_mut(&agent) {
            served.agent.handle_reply(now, id, result);
        }
    }

    fn obey_watch(&mut self, agent: u64, kind: Kind, command: WatchCommand) {
        let delay = self.transit();
        let Some(served) = self.agents.get_mut(&agent) else {
            return;
        };
        if let Some(open) = served.watches[kind as usize].take() {
            self.cluster.close_watch(open.cluster);
        }
        served.wanted[kind as usize] = None;
        let happening = match command {
            WatchCommand::List(id) => Happening::ListArrives { agent, kind, id },
            WatchCommand::Watch { id, from } => {
                served.wanted[kind as usize] = Some(id);
                Happening::WatchOpens {
                    agent,
                    kind,
                    id,
                    from,
                }
            }
            WatchCommand::Stop => return,
        };
        self.schedule.after(delay, happening);
    }

    pub(super) fn list_arrives(&mut self, agent: u64, kind: Kind, id: WatchId) {
        let list = match self.rng.chance(self.faults) {
            true => Err(calls::refused(agent_fake::ApiError::unavailable())),
            false => calls::list(&mut self.cluster, kind),
        };
        let delay = self.transit();
        let listed = Happening::Listed {
            agent,
            kind,
            id,
            list,
        };
        self.schedule.after(delay, listed);
    }

    pub(super) fn listed(
        &mut self,
        agent: u64,
        kind: Kind,
        id: WatchId,
        list: Result<List, ApiError>,
    ) {
        let now = self.now();
        if let Some(served) = self.agents.get_mut(&agent) {
            let list = list.map(|list| served.own_list(list));
            served.agent.handle_listed(now, kind, id, list);
        }
    }

    pub(super) fn watch_opens(&mut self, agent: u64, kind: Kind, id: WatchId, from: &str) {
        let number = self.number();
        let Some(served) = self.agents.get_mut(&agent) else {
            return;
        };
        if served.wanted[kind as usize] != Some(id) {
            return;
        }
        let from = from.parse().unwrap_or(0);
        match self.cluster.watch(calls::kind_of(kind), from) {
            Ok(cluster) => {
                let open = OpenWatch {
                    id,
                    cluster,
                    number,
                };
                served.watches[kind as usize] = Some(open);
            }
            Err(error) => {
                let error = Some(calls::refused(error));
                let ends = Happening::WatchEnds {
                    agent,
                    kind,
                    id,
                    error,
                };
                self.schedule.after(Duration::ZERO, ends);
            }
        }
    }

    /// Sends what the open watches of an agent have to say on its way.
    fn read_watches(&mut self, agent: u64) {
        for kind in Kind::ALL {
            let open = self.agents.get(&agent);
            let Some(open) = open.and_then(|it| it.watches[kind as usize]) else {
                continue;
            };
            let id = open.id;
            loop {
                let happening = match self.cluster.poll_watch(open.cluster) {
                    WatchPoll::Pending => break,
                    WatchPoll::Event(event) => Happening::WatchTells {
                        agent,
                        kind,
                        id,
                        event: calls::event(&event),
                    },
                    WatchPoll::Closed => {
                        if let Some(served) = self.agents.get_mut(&agent) {
                            served.watches[kind as usize] = None;
                        }
                        Happening::WatchEnds {
                            agent,
                            kind,
                            id,
                            error: None,
                        }
                    }
                };
                let is_end = matches!(happening, Happening::WatchEnds { .. });
                let delay = self.transit();
                self.schedule.on(Lane::Watch(open.number), delay, happening);
                if is_end {
                    break;
                }
            }
        }
    }

    pub(super) fn watch_tells(&mut self, agent: u64, kind: Kind, id: WatchId, event: WatchEvent) {
        let now = self.now();
        if let Some(served) = self.agents.get_mut(&agent) {
            let event = served.own_event(event);
            served.agent.handle_watch_event(now, kind, id, event);
        }
    }

    pub(super) fn watch_ends(
        &mut self,
        agent: u64,
        kind: Kind,
        id: WatchId,
        error: Option<&ApiError>,
    ) {
        let now = self.now();
        if let Some(served) = self.agents.get_mut(&agent) {
            served.agent.handle_watch_closed(now, kind, id, error);
        }
    }

    /// Ends an agent where it stands: what is on its way arrives, and no answer reaches anybody.
    pub(super) fn drop_agent(&mut self, agent: u64) {
        self.hang_up(agent, false);
        let Some(served) = self.agents.remove(&agent) else {
            return;
        };
        for open in served.watches.iter().flatten() {
            self.cluster.close_watch(open.cluster);
        }
    }
}
