//! Processes: how they start, follow their plan, are stopped, and end.

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

    /// Lets every process that is awake do what is due.
    pub(super) fn wake(&mut self) {
        let lives: Vec<_> = self.processes.keys().copied().collect();
        for life in lives {
            if !self.paused.contains_key(&life) {
                self.wake_process(life);
            }
        }
    }

    fn wake_process(&mut self, life: u64) {
        let now = self.now();
        let Some(process) = self.processes.get_mut(&life) else {
            return;
        };
        process.served = now;
        let (shards, is_stopping) = (process.shards, process.is_stopping);
        if process.base.lease.is_lost(now) {
            self.end_process(life);
            if !is_stopping {
                self.count("process lost its number of shards");
                let shards = shards.map(NonZeroU16::get);
                let starts = Happening::ProcessStarts { shards };
                let delay = self.rng.delay(Duration::from_secs(1));
                self.schedule.after(delay, starts);
            }
            return;
        }
        self.begin(life);
        self.follow_leases(life);
        self.follow_plan(life);
        self.finish(life);
        self.poll_leases(life);
    }

    /// Begins what the base Lease is for, once it is held.
    fn begin(&mut self, life: u64) {
        let now = self.now();
        let is_free = self.is_mutant(Mutant::IgnoreLayout);
        let Some(process) = self.processes.get(&life) else {
            return;
        };
        let leads = process.base.lease.lead(now).is_some() || is_free;
        if !leads || process.is_stopping {
            return;
        }
        match process.shards {
            Some(_)
                if process
                    .member
                    .as_ref()
                    .is_none_or(|it| it.lease.is_lost(now)) =>
            {
                let config = process.names.member();
                let member = self.held(Lease::new(config.clone()), config.name);
                if let Some(process) = self.processes.get_mut(&life) {
                    process.member = Some(member);
                }
                self.ask_for_leases(life);
            }
            None if process.wanted.is_empty() => {
                let whole = Wanted {
                    held: None,
                    agent: None,
                    is_stopping: false,
                };
                if let Some(process) = self.processes.get_mut(&life) {
                    process.wanted.insert(0, whole);
                }
            }
            Some(_) | None => {}
        }
    }

    fn ask_for_leases(&mut self, life: u64) {
        let delay = self.transit();
        if let Some(process) = self.processes.get_mut(&life) {
            process.next_list = None;
        }
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
    fn follow_leases(&mut self, life: u64) {
        let now = self.now();
        let Some(process) = self.processes.get(&life) else {
            return;
        };
        let shards: Vec<_> = process.wanted.keys().copied().collect();
        for shard in shards {
            let Some(process) = self.processes.get(&life) else {
                return;
            };
            let wanted = &process.wanted[&shard];
            let lease = wanted
                .held
                .as_ref()
                .map_or(&process.base.lease, |it| &it.lease);
            let (lead, is_lost) = (lease.lead(now), lease.is_lost(now));
            let is_asking = lease.is_asking();
            let (agent, is_stopping) = (wanted.agent, wanted.is_stopping);
            match (lead, agent) {
                _ if is_lost => {
                    self.count("shard lost");
                    agent.into_iter().for_each(|agent| self.drop_agent(agent));
                    if let Some(process) = self.processes.get_mut(&life) {
                        process.wanted.remove(&shard);
                    }
                }
                (Some(lead), None) if !is_stopping => self.serve(life, shard, lead.epoch),
                (_, None) if is_stopping && !is_asking => self.give_back(life, shard),
                _ => {}
            }
        }
    }

    fn serve(&mut self, life: u64, number: u16, epoch: i64) {
        let Some(process) = self.processes.get(&life) else {
            return;
        };
        let shard = process.shards.and_then(|count| {
            // In another way: the shards are counted from the other end.
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
        self.count("shard taken");
        let process = self.processes.get_mut(&life);
        if let Some(wanted) = process.and_then(|it| it.wanted.get_mut(&number)) {
            wanted.agent = Some(id);
        }
    }

    /// Takes and gives back what the other processes leave.
    fn follow_plan(&mut self, life: u64) {
        let now = self.now();
        let Some(process) = self.processes.get_mut(&life) else {
            return;
        };
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
        let new = plan.take.into_iter();
        let new: Vec<_> = new.filter(|it| !process.wanted.contains_key(it)).collect();
        let is_due = process.next_list.is_some_and(|due| due <= now);
        for shard in new {
            let Some(process) = self.processes.get(&life) else {
                return;
            };
            let lease = process.assignment.lease_of(now, shard);
            let name = process.names.shard(shard).name;
            let wanted = Wanted {
                held: Some(self.held(lease, name)),
                agent: None,
                is_stopping: false,
            };
            if let Some(process) = self.processes.get_mut(&life) {
                process.wanted.insert(shard, wanted);
            }
        }
        if is_due {
            self.ask_for_leases(life);
        }
    }

    /// Gives back the Leases of agents that have stopped, and ends a process that has none left and is to stop.
    fn finish(&mut self, life: u64) {
        let (now, early) = (self.now(), self.is_mutant(Mutant::GiveBackEarly));
        let Some(process) = self.processes.get_mut(&life) else {
            return;
        };
        let stopping = process.wanted.iter();
        let stopping = stopping.filter(|(_, it)| it.is_stopping || process.is_stopping);
        let stopping = stopping.map(|(shard, it)| {
            let is_asking = it.held.as_ref().is_some_and(|it| it.lease.is_asking());
            (*shard, it.agent, is_asking)
        });
        for (shard, agent, is_asking) in stopping.collect::<Vec<_>>() {
            let agent = agent.and_then(|id| Some((id, self.world.agents.get_mut(&id)?)));
            let Some((id, actor)) = agent else {
                // What it asks may give it the Lease.
                if !is_asking {
                    self.give_back(life, shard);
                }
                continue;
            };
            actor.agent.handle_shutdown();
            if actor.agent.is_stopped(now) {
                self.drop_agent(id);
                self.give_back(life, shard);
            } else if early {
                self.give_back(life, shard);
            }
        }
        let process = &self.processes[&life];
        if process.is_stopping && process.wanted.is_empty() {
            self.count("process ended in order");
            self.end_process(life);
        }
    }

    /// Ends a process in order: first nobody counts on it.
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

    /// Ends a process where it stands.
    pub(super) fn end_process(&mut self, life: u64) {
        self.paused.remove(&life);
        if self.processes.remove(&life).is_none() {
            return;
        }
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
            self.count("process paused");
            self.paused.insert(life, Vec::new());
            for agent in self.agents_of(life) {
                self.world.pause(agent, pause);
            }
            self.schedule.after(pause, Happening::ProcessWakes { life });
        }
    }
}
