//! The Leases on the API server, and the requests of processes for them.

use agent_core::{
    api::ApiError,
    lease::{Command, Record},
};

use super::{
    happening::{Happening, LeasePlace, Slot},
    state::{Mutant, Process, Shared},
};
use crate::lease_api;

impl Shared {
    /// Sends the requests for the Leases of a process.
    pub(super) fn poll_leases(&mut self, life: u64, process: &mut Process) {
        let now = self.now();
        let shards: Vec<_> = process.wanted.keys().copied().map(Slot::Shard).collect();
        for slot in [Slot::Base, Slot::Member].into_iter().chain(shards) {
            let Some(held) = process.held_mut(slot) else {
                continue;
            };
            if let Some(command) = held.lease.poll_command(now) {
                let number = held.number;
                self.ask(LeasePlace { life, slot, number }, command);
            }
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
        // A Lease that was given back has no holder, and its process may be gone.
        let name = match held.filter(|held| held.number == place.number) {
            Some(held) => held.name.clone(),
            None => self.name_of(place),
        };
        let answer = if self.rng.chance(self.faults) {
            Err(ApiError::no_answer("refused"))
        } else {
            lease_api::execute(self.leases.get(&name), command)
        };
        if let Ok(record) = &answer {
            self.leases.insert(name, record.clone());
        }
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

    /// Gives back the Lease of a shard or of the whole cluster.
    pub(super) fn give_back(&mut self, life: u64, process: &mut Process, shard: u16) {
        let now = self.now();
        let Some(mut wanted) = process.wanted.remove(&shard) else {
            return;
        };
        let (slot, held) = match &mut wanted.held {
            Some(held) => (Slot::Shard(shard), held),
            None => (Slot::Base, &mut process.base),
        };
        if let Some(record) = held.lease.release(now) {
            let number = held.number;
            self.note("Lease given back");
            let place = LeasePlace { life, slot, number };
            self.ask(place, Command::Replace(record));
        }
    }
}
