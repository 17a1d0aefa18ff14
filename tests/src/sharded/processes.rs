//! Processes: their start, their plan, their pauses, and their end.

use std::{num::NonZeroU16, time::Duration};

use agent_core::{
    agent::AgentConfig,
    api::ApiError,
    assignment::Assignment,
    lease::{Command, Lease, Record},
    shard::Shard,
};

use super::{
    happening::{Happening, LeasePlace, Slot},
    state::{Held, Mutant, Process, Shared, Wanted, namespaces_of},
};
use crate::actors::Part;

impl Shared {
    pub(super) fn start_process(&mut self, shards: Option<u16>) {
        let life = self.number();
        let shards = shards.and_then(NonZeroU16::new);
        let names = self.names(life, shards);
        let config = match shards {
            Some(_) => names.layout(),
            None => names.lease.clone(),
        };
        let base = self.held(Lease::new(config.clone()), config.name);
        let is_odd = self.is_mutant(Mutant::HashOtherwise) && life.is_multiple_of(2);
        let now = self.now();
        let process = Process {
            shards,
            assignment: Assignment::new(names.clone()),
            names,
            base,
            member: None,
            wanted: std::collections::BTreeMap::new(),
            next_list: None,
            is_stopping: false,
            served: now,
            is_odd,
        };
        self.processes.insert(life, process);
    }

    fn held(&mut self, lease: Lease, name: String) -> Held {
        let number = self.number();
        Held {
            lease,
            name,
            number,
        }
    }

    /// Handles due timers of every process that is not stopped.
    pub(super) fn wake(&mut self) {
        let mut lives: Vec<_> = self.processes.keys().copied().collect();
        lives.retain(|life| !self.paused.contains_key(life));
        for life in lives {
            if let Some(process) = self.processes.remove(&life) {
                self.wake_process(life, process);
            }
        }
    }

    fn wake_process(&mut self, life: u64, mut process: Process) {
        let now = self.now();
        process.served = now;
        if process.base.lease.is_lost(now) {
            self.end_process(life);
            if !process.is_stopping {
                self.note("process lost its number of shards");
                let shards = process.shards.map(NonZeroU16::get);
                let starts = Happening::ProcessStarts { shards };
                let delay = self.rng.delay(Duration::from_secs(1));
                self.schedule.after(delay, starts);
            }
            return;
        }
        self.begin(life, &mut process);
        self.follow_leases(life, &mut process);
        self.follow_plan(life, &mut process);
        self.finish(life, &mut process);
        if process.is_stopping && process.wanted.is_empty() {
            self.note("process ended in order");
            return self.end_process(life);
        }
        self.poll_leases(life, &mut process);
        self.processes.insert(life, process);
    }

    /// Starts the work of a process once it holds the base Lease.
    fn begin(&mut self, life: u64, process: &mut Process) {
        let now = self.now();
        let is_free = self.is_mutant(Mutant::IgnoreLayout);
        let leads = process.base.lease.lead(now).is_some() || is_free;
        if !leads || process.is_stopping {
            return;
        }
        let member = process.member.as_ref();
        if process.shards.is_none() {
            process.wanted.entry(0).or_default();
        } else if member.is_none_or(|it| it.lease.is_lost(now)) {
            let config = process.names.member();
            process.member = Some(self.held(Lease::new(config.clone()), config.name));
            self.ask_for_leases(life, process);
        }
    }

    fn ask_for_leases(&mut self, life: u64, process: &mut Process) {
        let delay = self.transit();
        process.next_list = None;
        self.schedule.after(delay, Happening::LeasesAsked { life });
    }

    pub(super) fn leases_listed(
        &mut self,
        life: u64,
        leases: Result<Vec<(String, Record)>, ApiError>,
    ) {
        let now = self.now();
        let Some(process) = self.processes.get_mut(&life) else {
            return;
        };
        if let Ok(leases) = leases {
            process.assignment.handle_list(now, leases);
        }
        process.next_list = Some(now + process.names.list_every());
    }

    /// Starts the agents of shards whose Lease is held, and ends those of shards whose Lease is lost.
    fn follow_leases(&mut self, life: u64, process: &mut Process) {
        let now = self.now();
        let shards: Vec<_> = process.wanted.keys().copied().collect();
        for shard in shards {
            let wanted = &process.wanted[&shard];
            let held = wanted.held.as_ref().unwrap_or(&process.base);
            let (lead, is_asking) = (held.lease.lead(now), held.lease.is_asking());
            let (agent, is_stopping) = (wanted.agent, wanted.is_stopping);
            match (lead, agent) {
                _ if held.lease.is_lost(now) => {
                    self.note("shard lost");
                    agent.into_iter().for_each(|agent| self.drop_agent(agent));
                    process.wanted.remove(&shard);
                }
                (Some(lead), None) if !is_stopping => self.serve(life, process, shard, lead.epoch),
                (_, None) if is_stopping && !is_asking => self.give_back(life, process, shard),
                _ => {}
            }
        }
    }

    fn serve(&mut self, life: u64, process: &mut Process, number: u16, epoch: i64) {
        let shard = process.shards.and_then(|count| {
            // A different hash: it counts the shards from the other end.
            let number = if process.is_odd {
                count.get() - 1 - number
            } else {
                number
            };
            Shard::new(number, count)
        });
        let config = AgentConfig {
            instance: format!("agent-{life}"),
            cluster_uid: "shared".into(),
            cluster_name: "shared".into(),
            shard: shard.map_or_else(String::new, |_| number.to_string()),
            epoch,
            namespaces_of: shard,
            calls_max: 16,
            creates: self.creates,
            seed: self.rng.next_u64(),
            ..AgentConfig::default()
        };
        let part = Part {
            namespaces: namespaces_of(shard),
            leases: None,
        };
        let id = self.world.begin_part(config, part);
        self.agents.insert(id, (life, number));
        self.note("shard taken");
        if let Some(wanted) = process.wanted.get_mut(&number) {
            wanted.agent = Some(id);
        }
    }

    /// Takes and gives back Leases as the other processes allow.
    fn follow_plan(&mut self, life: u64, process: &mut Process) {
        let now = self.now();
        if process.member.is_none() || process.is_stopping {
            return;
        }
        let plan = process.assignment.plan(now);
        for (shard, wanted) in &mut process.wanted {
            let is_unwanted = match wanted.agent {
                Some(_) => plan.give_back.contains(shard),
                None => !plan.take.contains(shard),
            };
            wanted.is_stopping |= is_unwanted;
        }
        for shard in plan.take {
            if process.wanted.contains_key(&shard) {
                continue;
            }
            let lease = process.assignment.lease_of(now, shard);
            let held = self.held(lease, process.names.shard(shard).name);
            let wanted = Wanted {
                held: Some(held),
                ..Wanted::default()
            };
            process.wanted.insert(shard, wanted);
        }
        if process.next_list.is_some_and(|due| due <= now) {
            self.ask_for_leases(life, process);
        }
    }

    /// Gives back the Leases of agents that have stopped.
    fn finish(&mut self, life: u64, process: &mut Process) {
        let (now, early) = (self.now(), self.is_mutant(Mutant::GiveBackEarly));
        let stopping = process.wanted.iter();
        let stopping = stopping.filter(|(_, it)| it.is_stopping || process.is_stopping);
        let stopping = stopping.map(|(shard, it)| {
            let is_asking = it.held.as_ref().is_some_and(|it| it.lease.is_asking());
            (*shard, it.agent, is_asking)
        });
        for (shard, agent, is_asking) in stopping.collect::<Vec<_>>() {
            let agent = agent.and_then(|id| Some((id, self.world.agents.get_mut(&id)?)));
            let Some((id, actor)) = agent else {
                // A pending request may still acquire the Lease.
                if !is_asking {
                    self.give_back(life, process, shard);
                }
                continue;
            };
            actor.agent.handle_shutdown();
            let is_stopped = actor.agent.is_stopped(now);
            if is_stopped {
                self.drop_agent(id);
            }
            if is_stopped || early {
                self.give_back(life, process, shard);
            }
        }
    }

    /// Ends a process in order: first, other processes stop counting on it.
    pub(super) fn stop_process(&mut self, life: u64) {
        let now = self.now();
        let Some(process) = self.processes.get_mut(&life) else {
            return;
        };
        process.is_stopping = true;
        let Some(mut member) = process.member.take() else {
            return;
        };
        if let Some(record) = member.lease.release(now) {
            let (slot, number) = (Slot::Member, member.number);
            let place = LeasePlace { life, slot, number };
            self.ask(place, Command::Replace(record));
        }
    }

    /// Ends a process without notice.
    pub(super) fn end_process(&mut self, life: u64) {
        self.paused.remove(&life);
        self.processes.remove(&life);
        for agent in self.agents_of(life) {
            self.drop_agent(agent);
        }
    }

    fn agents_of(&self, life: u64) -> Vec<u64> {
        let agents = self.agents.iter().filter(|(_, it)| it.0 == life);
        agents.map(|(id, _)| *id).collect()
    }

    fn drop_agent(&mut self, agent: u64) {
        self.agents.remove(&agent);
        self.world.end_part(agent);
    }

    pub(super) fn pause(&mut self, life: u64, pause: Duration) {
        if self.processes.contains_key(&life) && !self.paused.contains_key(&life) {
            self.note("process paused");
            self.paused.insert(life, Vec::new());
            for agent in self.agents_of(life) {
                self.world.pause(agent, pause);
            }
            self.schedule.after(pause, Happening::ProcessWakes { life });
        }
    }
}
