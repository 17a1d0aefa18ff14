//! Leading: one agent of several acts, and each lead has a number that only grows.
//!
//! The `Lease` object and its rules are those of client-go, so that `kubectl get lease` shows what people know. Whether another's
//! lease has run out is told by this process's own clock, from when the object was last seen to change: clocks of two
//! machines are never compared.
//!
//! **Invariant:** a lead ends, by the clock of who leads, a third of the lease before another may begin: what is under way then
//! has that long to end.
//!
//! **Invariant:** a create is given no time beyond the last renewal and the lease's duration without the margin, so that it has taken
//! effect or never will when another may begin. All other writes name what they are for by uid or version, and may come late.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use thiserror::Error;

use crate::{
    api::ApiError,
    backoff::{after, since},
};

/// The least time that a create is given. One that would have less waits for the lease to be renewed.
pub const CREATE_TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// Who wants to lead, and by which lease.
#[derive(Clone, Debug)]
pub struct Config {
    /// This process, unique.
    pub identity: String,
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub name: String,
    /// How long after its last renewal another may take it.
    pub duration: Duration,
    /// How long after its timeout a create may still take effect ([`CreateLimits::margin`](crate::creates::CreateLimits)).
    pub margin: Duration,
}

/// The lease is over before its creates are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a lease of {} s leaves no time for creates: one may take effect up to {} s after its timeout, so the lease must last {} s or longer",
    .duration.as_secs(), .margin.as_secs(), .needed.as_secs()
)]
pub struct LeaseTooShort {
    /// The lease's duration.
    pub duration: Duration,
    /// How long after its timeout a create may still take effect.
    pub margin: Duration,
    /// The shortest duration, in whole seconds, that will do.
    pub needed: Duration,
}

/// What is asked of the cluster. Each is answered, once, by [`Lease::handle_answer`].
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Read the lease; an absent one is a 404.
    Read,
    /// Create the lease.
    Create(Value),
    /// Replace the lease; the object carries the version that it must have.
    Replace(Value),
}

/// The lease of one process. Owned and changed by the shell's one task for it.
#[derive(Clone, Debug)]
pub struct Lease {
    config: Config,
    asked: Option<Timestamp>,
    next: Timestamp,
    step: Step,
    seen: Option<Seen>,
    lead: Option<Lead>,
    lost: bool,
}

/// A lead: its number, and how long it is sure to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The number of transitions of the lease: the epoch of the session.
    pub epoch: i64,
    /// When it ends unless it is renewed before.
    pub until: Timestamp,
    /// Until when the cluster may work on creates, unless it is renewed before.
    pub creates_until: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Read,
    Create,
    Replace,
}

/// The lease as it was last seen.
#[derive(Clone, Debug)]
struct Seen {
    object: Value,
    /// When it was first seen like this.
    since: Timestamp,
}

// === impl Config ===

impl Config {
    /// Checks that a create has time at any moment between two renewals.
    ///
    /// # Errors
    /// Says how long the lease must last.
    pub fn check(&self) -> Result<(), LeaseTooShort> {
        // A renewal is asked for every 2/15 of the duration; what is left of it, and not needed for the margin, is for a create.
        let needed = (self.margin + CREATE_TIMEOUT_MIN) * 15;
        let seconds = needed.as_millis().div_ceil(13 * 1000);
        let needed = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX));
        if self.duration >= needed {
            return Ok(());
        }
        Err(LeaseTooShort {
            duration: self.duration,
            margin: self.margin,
            needed,
        })
    }
}

// === impl Lease ===

impl Lease {
    /// Returns a lease that nothing is known of.
    #[must_use]
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            asked: None,
            next: Timestamp::MIN,
            step: Step::Read,
            seen: None,
            lead: None,
            lost: false,
        }
    }

    /// Returns the lead, if there is one that still lasts.
    #[must_use]
    pub fn lead(&self, now: Timestamp) -> Option<Lead> {
        self.lead.filter(|lead| !self.lost && now < lead.until)
    }

    /// Returns whether there was a lead, and it is over. It does not come back: whoever led begins as a new process.
    #[must_use]
    pub fn is_lost(&self, now: Timestamp) -> bool {
        self.lost || self.lead.is_some_and(|lead| lead.until <= now)
    }

    /// Returns what to ask; nothing while an answer is awaited.
    pub fn poll_command(&mut self, now: Timestamp) -> Option<Command> {
        if self.asked.is_some() || now < self.next || self.is_lost(now) {
            return None;
        }
        self.asked = Some(now);
        Some(match self.step {
            Step::Read => Command::Read,
            Step::Create => Command::Create(self.fresh(now)),
            Step::Replace => Command::Replace(self.taken(now)),
        })
    }

    /// Returns when [`poll_command`](Self::poll_command) or [`is_lost`](Self::is_lost) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Timestamp {
        let next = self.asked.map_or(self.next, |_| Timestamp::MAX);
        self.lead.map_or(next, |lead| next.min(lead.until))
    }

    /// Takes the answer to the command.
    pub fn handle_answer(&mut self, now: Timestamp, answer: Result<Value, ApiError>) {
        let Some(asked) = self.asked.take() else {
            return;
        };
        let step = std::mem::replace(&mut self.step, Step::Read);
        self.next = after(now, self.retry_every());
        match (step, answer) {
            (Step::Read, Ok(object)) => self.handle_read(now, object),
            (Step::Read, Err(error)) if error.code == Some(404) => {
                if !self.is_held_by_another(now) {
                    self.step = Step::Create;
                    self.next = now;
                }
            }
            (Step::Create | Step::Replace, Ok(object)) => {
                self.lead = Some(Lead {
                    epoch: number(&object, "leaseTransitions"),
                    until: after(asked, self.config.duration * 2 / 3),
                    creates_until: after(
                        asked,
                        self.config.duration.saturating_sub(self.config.margin),
                    ),
                });
                self.seen = Some(Seen { object, since: now });
                self.step = Step::Replace;
            }
            // Whether it was written is not known: what is there is read.
            (Step::Read | Step::Create | Step::Replace, Err(_)) => {}
        }
    }

    /// Gives the lease up: returns the object that says so, to be put in place without delay. Nothing follows.
    pub fn release(&mut self, now: Timestamp) -> Option<Value> {
        let mut object = self.lead(now).and_then(|_| self.seen.take())?.object;
        self.lost = true;
        let spec = object.get_mut("spec")?.as_object_mut()?;
        spec.insert("holderIdentity".into(), "".into());
        spec.insert("leaseDurationSeconds".into(), 1.into());
        spec.insert("renewTime".into(), micros(now).into());
        spec.insert("acquireTime".into(), micros(now).into());
        Some(object)
    }

    fn handle_read(&mut self, now: Timestamp, object: Value) {
        let changed = self.seen.as_ref().is_none_or(|seen| seen.object != object);
        if changed {
            self.seen = Some(Seen { object, since: now });
        }
        let Some(seen) = &self.seen else { return };
        if self.lead.is_some() && text(&seen.object, "holderIdentity") != self.config.identity {
            self.lost = true;
        }
        if !self.is_held_by_another(now) {
            self.step = Step::Replace;
            self.next = now;
        }
    }

    /// Returns whether the lease as it was last seen is another's and has not run out. A lease that somebody deletes is held on.
    fn is_held_by_another(&self, now: Timestamp) -> bool {
        let Some(seen) = &self.seen else { return false };
        let holder = text(&seen.object, "holderIdentity");
        let seconds = number(&seen.object, "leaseDurationSeconds");
        let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let is_anothers = !holder.is_empty() && holder != self.config.identity;
        is_anothers && since(now, seen.since) < lasts
    }

    fn fresh(&self, now: Timestamp) -> Value {
        let Config {
            identity,
            namespace,
            name,
            duration,
            margin: _,
        } = &self.config;
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {
                "holderIdentity": identity,
                "leaseDurationSeconds": duration.as_secs(),
                "acquireTime": micros(now),
                "renewTime": micros(now),
                // Where a lease is deleted under who leads, its number must not begin anew.
                "leaseTransitions": self.lead.map_or(0, |lead| lead.epoch),
            },
        })
    }

    /// Returns the lease as seen, taken or renewed by this process.
    fn taken(&self, now: Timestamp) -> Value {
        let Some(seen) = &self.seen else {
            return self.fresh(now);
        };
        let mut object = seen.object.clone();
        let is_own = text(&object, "holderIdentity") == self.config.identity;
        let transitions = number(&object, "leaseTransitions");
        let spec = self.fresh(now)["spec"].take();
        if let (Some(new), Some(fields)) = (spec.as_object(), object.as_object_mut()) {
            let spec = fields.entry("spec").or_insert_with(|| json!({}));
            for (name, value) in new {
                if !(is_own && name == "acquireTime") {
                    spec[name] = value.clone();
                }
            }
            let step = i64::from(!is_own);
            spec["leaseTransitions"] = transitions.saturating_add(step).into();
        }
        object
    }

    fn retry_every(&self) -> Duration {
        self.config.duration * 2 / 15
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    let field = object.get("spec").and_then(|spec| spec.get(field));
    field.and_then(Value::as_str).unwrap_or_default()
}

fn number(object: &Value, field: &str) -> i64 {
    let field = object.get("spec").and_then(|spec| spec.get(field));
    field.and_then(Value::as_i64).unwrap_or_default()
}

/// Writes a time as Kubernetes does, to the microsecond.
fn micros(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests;
