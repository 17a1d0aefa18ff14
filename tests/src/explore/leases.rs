//! The real machine of the Lease, one step at a time, and the Lease as the API server keeps it.

use std::{collections::HashMap, time::Duration};

use agent_core::lease::{Command, Lead, Lease, LeaseConfig, Record};
use jiff::Timestamp;

use super::{
    bounds::{LEASE_DURATION, Mutant, create_limits},
    store::{Id, Interner, Messages},
};
use crate::lease_api::execute;

/// All states of the Lease that were met, in the API server and in the processes that contend for it.
#[derive(Debug)]
pub struct Leases {
    mutant: Option<Mutant>,
    states: Interner<Lease>,
    objects: Interner<Option<Record>>,
    asked: HashMap<(Id, Timestamp), (Id, Option<Id>)>,
    answered: HashMap<(Id, Id, Timestamp), Id>,
}

// === impl Leases ===

impl Leases {
    /// Returns none yet.
    #[must_use]
    pub fn new(mutant: Option<Mutant>) -> Self {
        Self {
            mutant,
            states: Interner::default(),
            objects: Interner::default(),
            asked: HashMap::new(),
            answered: HashMap::new(),
        }
    }

    /// Returns the state of the API server in which there is no Lease.
    pub fn absent(&mut self) -> Id {
        self.objects.intern(None)
    }

    /// Returns a process that contends for the Lease.
    pub fn begin(&mut self, identity: String) -> Id {
        let margin = if self.mutant == Some(Mutant::SkipBarrier) {
            Duration::ZERO
        } else {
            create_limits().margin
        };
        self.states.intern(Lease::new(LeaseConfig {
            identity,
            namespace: "kube-system".to_owned(),
            name: "decree-agent".to_owned(),
            duration: LEASE_DURATION,
            margin,
            shared: false,
        }))
    }

    /// Returns what a process wants of the Lease, if anything.
    pub fn poll(&mut self, messages: &mut Messages, lease: Id, now: Timestamp) -> (Id, Option<Id>) {
        if let Some(step) = self.asked.get(&(lease, now)) {
            return *step;
        }
        let mut machine = Lease::clone(self.states.get(lease));
        let command = machine.poll_command(now);
        let command = command.map(|command| messages.lease_commands.intern(command));
        let step = (self.states.intern(machine), command);
        self.asked.insert((lease, now), step);
        step
    }

    /// Lets a process take an answer.
    pub fn answer(&mut self, messages: &Messages, lease: Id, answer: Id, now: Timestamp) -> Id {
        if let Some(step) = self.answered.get(&(lease, answer, now)) {
            return *step;
        }
        let mut machine = Lease::clone(self.states.get(lease));
        machine.handle_answer(now, messages.lease_answers.get(answer).as_ref().clone());
        let step = self.states.intern(machine);
        self.answered.insert((lease, answer, now), step);
        step
    }

    /// Returns the lead of a process.
    #[must_use]
    pub fn lead(&self, lease: Id, now: Timestamp) -> Option<Lead> {
        self.states.get(lease).lead(now)
    }

    /// Returns whether a process has lost its lead.
    #[must_use]
    pub fn is_lost(&self, lease: Id, now: Timestamp) -> bool {
        self.states.get(lease).is_lost(now)
    }

    /// Returns when a process has something to do for the Lease.
    #[must_use]
    pub fn poll_timeout(&self, lease: Id) -> Timestamp {
        self.states.get(lease).poll_timeout()
    }

    /// Returns the newest epoch that the API server knows.
    #[must_use]
    pub fn epoch(&self, object: Id) -> Option<i64> {
        let object = self.objects.get(object);
        object.as_ref().as_ref().map(|record| record.transitions)
    }

    /// Does what the API server does with the Lease: an update must know its newest version.
    pub fn execute(&mut self, messages: &mut Messages, object: Id, command: Id) -> (Id, Id) {
        let command = messages.lease_commands.get(command).as_ref().clone();
        let known = self.objects.get(object).as_ref().clone();
        let known = if self.mutant == Some(Mutant::TakeLeaseAtOnce) {
            known.map(vacant)
        } else {
            known
        };
        let answer = execute(known.as_ref(), &command);
        let object = match (&command, &answer) {
            (Command::Create(_) | Command::Replace(_), Ok(written)) => {
                self.objects.intern(Some(written.clone()))
            }
            (Command::Read, _) | (_, Err(_)) => object,
        };
        (object, messages.lease_answers.intern(answer))
    }
}

fn vacant(mut lease: Record) -> Record {
    lease.holder.clear();
    lease
}
