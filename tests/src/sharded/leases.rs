//! The Leases, as the API server keeps them and as processes ask for them.

use agent_core::{
    api::ApiError,
    lease::{Command, Record},
};

use super::{
    happening::{Happening, LeasePlace, Slot},
    state::{Mutant, Shared},
};

impl Shared {
    /// Asks what the Leases of a process want asked.
    pub(super) fn poll_leases(&mut self, life: u64) {
        let now = self.now();
        let Some(process) = self.processes.get_mut(&life) else {
            return;
        };
        let shards = process.wanted.keys().map(|shard| Slot::Shard(*shard));
        let slots: Vec<_> = [Slot::Base, Slot::Member]
            .into_iter()
            .chain(shards)
            .collect();
        let mut asked = Vec::new();
        for slot in slots {
            let Some(held) = process.held_mut(slot) else {
                continue;
            };
            if let Some(command) = held.lease.poll_command(now) {
                let number = held.number;
                asked.push((LeasePlace { life, slot, number }, command));
            }
        }
        for (place, command) in asked {
            self.ask(place, command);
        }
    }

    pub(super) fn ask(&mut self, place: LeasePlace, command: Command) {
        let delay = self.transit();
        let asked = Happening::LeaseAsked { place, command };
        self.schedule.after(delay, asked);
    }

    pub(super) fn lease_asked(&mut self, place: LeasePlace, command: &Command) {
        let process = self.processes.get_mut(&place.life);
        let held = process.and_then(|it| it.held_mut(place.slot));
        // One that is given back is nobody's, and its process may be gone.
        let name = match held.filter(|held| held.number == place.number) {
            Some(held) => held.name.clone(),
            None => self.name_of(place),
        };
        let answer = if self.rng.chance(self.faults) {
            Err(ApiError::no_answer("refused"))
        } else {
            self.execute(&name, command)
        };
        let is_lost = self.rng.chance(self.faults);
        let answer = answer.and_then(|record| {
            if is_lost {
                Err(ApiError::no_answer("context deadline exceeded"))
            } else {
                Ok(record)
            }
        });
        let delay = self.transit();
        let answered = Happening::LeaseAnswered { place, answer };
        self.schedule.after(delay, answered);
    }

    fn name_of(&self, place: LeasePlace) -> String {
        let names = self.names(place.life, None);
        match place.slot {
            Slot::Base => names.lease.name,
            Slot::Member => names.member().name,
            Slot::Shard(shard) => names.shard(shard).name,
        }
    }

    /// Does what the API server does with a Lease: an update must know its newest version.
    fn execute(&mut self, name: &str, command: &Command) -> Result<Record, ApiError> {
        let refused = |code| {
            Err(ApiError {
                code: Some(code),
                ..ApiError::default()
            })
        };
        let record = match (command, self.leases.get(name)) {
            (Command::Read, Some(record)) => return Ok(record.clone()),
            (Command::Read | Command::Replace(_), None) => return refused(404),
            (Command::Create(_), Some(_)) => return refused(409),
            (Command::Replace(record), Some(old))
                if record.resource_version != old.resource_version =>
            {
                return refused(409);
            }
            (Command::Create(record) | Command::Replace(record), _) => record,
        };
        self.lease_version += 1;
        let stored = Record {
            resource_version: self.lease_version.to_string(),
            ..record.clone()
        };
        self.leases.insert(name.to_owned(), stored.clone());
        Ok(stored)
    }

    pub(super) fn lease_answered(
        &mut self,
        place: LeasePlace,
        mut answer: Result<Record, ApiError>,
    ) {
        let (now, takes) = (self.now(), self.is_mutant(Mutant::TakeHeldLease));
        let process = self.processes.get_mut(&place.life);
        let held = process.and_then(|it| it.held_mut(place.slot));
        let Some(held) = held.filter(|held| held.number == place.number) else {
            return;
        };
        if let (true, Ok(record)) = (takes && held.lease.lead(now).is_none(), &mut answer) {
            record.holder.clear();
        }
        held.lease.handle_answer(now, answer);
    }

    pub(super) fn leases_asked(&mut self, life: u64) {
        let leases = if self.rng.chance(self.faults) {
            Err(ApiError::no_answer("refused"))
        } else {
            Ok(self.leases.clone().into_iter().collect())
        };
        let delay = self.transit();
        let listed = Happening::LeasesListed { life, leases };
        self.schedule.after(delay, listed);
    }

    /// Gives the Lease of a shard back, or that of the whole cluster.
    pub(super) fn give_back(&mut self, life: u64, shard: u16) {
        let now = self.now();
        let Some(process) = self.processes.get_mut(&life) else {
            return;
        };
        let Some(wanted) = process.wanted.remove(&shard) else {
            return;
        };
        let is_whole = wanted.held.is_none();
        let slot = if is_whole {
            Slot::Base
        } else {
            Slot::Shard(shard)
        };
        let held = match wanted.held {
            Some(mut held) => held.lease.release(now).map(|it| (held.number, it)),
            None => {
                let record = process.base.lease.release(now);
                record.map(|it| (process.base.number, it))
            }
        };
        if let Some((number, record)) = held {
            self.count("Lease given back");
            let place = LeasePlace { life, slot, number };
            self.ask(place, Command::Replace(record));
        }
    }
}
