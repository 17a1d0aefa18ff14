//! The real machine of the Lease, one step at a time, and the Lease on the API server.

use std::{collections::HashMap, time::Duration};

use agent_core::lease::{Command, Lead, Lease, LeaseConfig, Record};
use jiff::Timestamp;

use super::{
    bounds::{LEASE_DURATION, Mutant, create_limits},
    store::{Id, Interner, Messages},
};
use crate::lease_api::execute;

/// All visited states of the Lease, on the API server and in the processes that contend for it.
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
    /// Returns an empty set.
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

    /// Returns the state of the API server without a Lease.
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

    /// Returns the Lease request of a process, if there is one.
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

    /// Gives an answer to a process.
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

    /// Returns the deadline of a process for the Lease.
    #[must_use]
    pub fn poll_timeout(&self, lease: Id) -> Timestamp {
        self.states.get(lease).poll_timeout()
    }

    /// Returns the newest epoch on the API server.
    #[must_use]
    pub fn epoch(&self, object: Id) -> Option<i64> {
        let object = self.objects.get(object);
        object.as_ref().as_ref().map(|record| record.transitions)
    }

    /// Executes a Lease request as the API server does: an update must know the newest version.
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
