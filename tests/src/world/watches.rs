//! Lists and watches of an agent, with their delays and their faults.

use agent_core::{
    api,
    nodes::NodeFields,
    watch::{List, WatchCommand, WatchEvent, WatchId},
};
use agent_fake::{ApiError, Kind, Object, WatchPoll};
use decree_agent::cluster::fake::calls;

use super::{happening::Happening, state::World};
use crate::{actors::OpenWatch, mutants::Mutant, schedule::Lane};

impl World {
    pub(super) fn obey_watch(&mut self, life: u64, kind: api::Kind, command: WatchCommand) {
        let Some(actor) = self.agents.get_mut(&life) else {
            return;
        };
        actor.wanted[kind as usize] = match command {
            WatchCommand::Watch { id, .. } => Some(id),
            WatchCommand::List(_) | WatchCommand::Stop => None,
        };
        if let Some(open) = actor.watches[kind as usize].take() {
            self.cluster.close_watch(open.cluster);
        }
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

    pub(super) fn list_arrives(&mut self, life: u64, kind: api::Kind, id: WatchId) {
        if !self.agents.contains_key(&life) {
            return;
        }
        let mut list = if self.rng.chance(self.chaos.refuse) {
            let refusal = ApiError::new(503, "ServiceUnavailable", "not able to handle it now");
            Err(calls::refused(refusal))
        } else {
            let cached = self.lost_list(kind);
            match cached.or_else(|| self.cached_list(kind)) {
                Some(list) => Ok(list),
                None => calls::list(&mut self.cluster, kind),
            }
        };
        if let Ok(list) = &mut list {
            self.mutate_list(life, kind, list);
        }
        self.send_list(life, kind, id, list);
    }

    /// A list from one of the caches, if the agent is broken and accepts one.
    fn cached_list(&mut self, kind: api::Kind) -> Option<List> {
        if !self.is_mutant(Mutant::ListFromCache) {
            return None;
        }
        let server = self.caches.pick(&mut self.rng);
        let list = self.caches.list(server, self.now(), kind)?;
        self.encounters.note("List from a cache");
        Some(list)
    }

    pub(super) fn watch_opens(&mut self, life: u64, kind: api::Kind, id: WatchId, from: &str) {
        let from = self.watched_from(from);
        let server = self.caches.pick(&mut self.rng);
        let actor = self.agents.get_mut(&life);
        let Some(actor) = actor.filter(|actor| actor.wanted[kind as usize] == Some(id)) else {
            return;
        };
        if let Some(open) = actor.watches[kind as usize].take() {
            self.cluster.close_watch(open.cluster);
        }
        let checked = self.caches.check(server, from);
        match checked.and_then(|()| self.cluster.watch(calls::kind_of(kind), from)) {
            Ok(cluster) => {
                self.watches += 1;
                let number = self.watches;
                actor.watches[kind as usize] = Some(OpenWatch {
                    id,
                    cluster,
                    server,
                    number,
                });
            }
            Err(error) => {
                let error = Some(calls::refused(error));
                let delay = self.rng.delay(self.chaos.call_max);
                self.schedule.after(
                    delay,
                    Happening::WatchEnds {
                        life,
                        kind,
                        id,
                        error,
                    },
                );
            }
        }
    }

    /// Gives an agent the nodes as they are now, as a stream that begins again.
    pub(super) fn nodes_read(&mut self, life: u64) {
        if let Some(actor) = self.agents.get_mut(&life) {
            let nodes = calls::nodes(&mut self.cluster, &NodeFields::default());
            actor.agent.handle_nodes(nodes.expect("nothing refuses it"));
        }
    }

    /// Puts news of the nodes in flight to an agent that reads them.
    fn read_nodes(&mut self, life: u64) {
        let version = |node: &Object| node["metadata"]["resourceVersion"].as_str()?.parse().ok();
        let nodes = self.cluster.objects(Kind::Node);
        let versions: Vec<u64> = nodes.filter_map(version).collect();
        let newest = Some((versions.len(), versions.into_iter().max().unwrap_or(0)));
        if let Some(actor) = self.agents.get_mut(&life)
            && actor.nodes.is_some()
            && actor.nodes != newest
        {
            actor.nodes = newest;
            let delay = self.rng.delay(self.chaos.watch_max);
            self.schedule.after(delay, Happening::NodesRead { life });
        }
    }

    /// Puts the events of the open watches of an agent in flight.
    pub(super) fn read_watches(&mut self, life: u64) {
        if self.reads_nodes {
            self.read_nodes(life);
        }
        for kind in api::Kind::ALL {
            let actor = self.agents.get(&life);
            let Some(open) = actor.and_then(|actor| actor.watches[kind as usize]) else {
                continue;
            };
            let OpenWatch {
                id,
                cluster,
                server,
                number,
            } = open;
            loop {
                let mut told = self.now();
                let happening = match self.cluster.poll_watch(cluster) {
                    WatchPoll::Pending => break,
                    WatchPoll::Event(event) => {
                        if self.is_swallowed(number, event.kind) {
                            continue;
                        }
                        let version = event.object["metadata"]["resourceVersion"].as_str();
                        let version = version.and_then(|it| it.parse().ok()).unwrap_or(0);
                        told = told.max(self.caches.told_at(server, kind, version));
                        Happening::WatchTells {
                            life,
                            kind,
                            id,
                            event: self.mutate_event(&event),
                        }
                    }
                    WatchPoll::Expired(error) => Happening::WatchTells {
                        life,
                        kind,
                        id,
                        event: WatchEvent::Error(calls::refused(error)),
                    },
                    WatchPoll::Closed => {
                        if let Some(actor) = self.agents.get_mut(&life) {
                            actor.watches[kind as usize] = None;
                        }
                        Happening::WatchEnds {
                            life,
                            kind,
                            id,
                            error: None,
                        }
                    }
                };
                let ends = matches!(happening, Happening::WatchEnds { .. });
                let behind = told.duration_since(self.now()).unsigned_abs();
                let delay = behind + self.rng.delay(self.chaos.watch_max);
                self.schedule.on(Lane::Watch(number), delay, happening);
                if ends {
                    break;
                }
            }
        }
    }
}
