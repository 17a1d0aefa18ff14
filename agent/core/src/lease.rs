//! Leader election: one of several agents acts, and each lead has a number that only grows.
//!
//! The `Lease` object and its rules are those of client-go, so that `kubectl get lease` shows what people know. This process's own clock
//! tells whether another's lease has run out, from when the object was last seen to change. Clocks of two machines are never compared.
//!
//! **Invariant:** a lead ends, by the leader's clock, a third of the lease before another may begin. Calls under way have that long to end.
//!
//! **Invariant:** a lease whose version goes back, after its cluster was restored, does not tell who leads. For its whole duration it
//! counts as held by another, unless this process holds it by its record. The numbers of leads continue from the highest seen.
//!
//! **Invariant:** a create gets no time beyond the last renewal plus the lease's duration without the margin. So it has taken effect or
//! never will when another may begin. All other writes name their object by UID or version, and may come late.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    api::{ApiError, parse_version},
    pace::{after, since},
};

/// The shortest timeout of a create. If less time is left, the create waits for a renewal of the lease.
pub const CREATE_TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// The identity of a candidate, and its lease.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// The unique identity of this process.
    pub identity: String,
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub name: String,
    /// How long after its last renewal another process may take the lease.
    pub duration: Duration,
    /// How long after its timeout a create may still take effect ([`CreateLimits::margin`](crate::execute::creates::CreateLimits)).
    pub margin: Duration,
    /// Whether other processes hold the lease by the same identity. A renewal by one of them renews it for all, and none gives it back, as
    /// another may need it.
    pub shared: bool,
}

/// A request to the cluster. [`Lease::handle_answer`] takes the answer to each, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read the lease; an absent one is a 404.
    Read,
    /// Create the lease.
    Create(Record),
    /// Replace the lease, which must still have the version of the record.
    Replace(Record),
}

/// The election fields of a `Lease` object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The holder; empty after the lease was given back.
    pub holder: String,
    /// How long after its last renewal another process may take the lease, in whole seconds.
    pub duration: Duration,
    /// When its holder took it.
    pub acquired: Option<Timestamp>,
    /// When its holder renewed it last.
    pub renewed: Option<Timestamp>,
    /// How often the lease changed hands.
    pub transitions: i64,
    /// The version of the object; empty before its creation.
    pub resource_version: String,
    /// The object as the adapter read it, opaque here. So a replacement keeps its other content, such as labels.
    pub object: Vec<u8>,
}

/// The lease of one process. Owned and changed by the shell's one task for it.
#[derive(Clone, Debug)]
pub struct Lease {
    config: LeaseConfig,
    asked: Option<Timestamp>,
    next: Timestamp,
    step: NextRequest,
    seen: Option<Sighting>,
    /// When the last answered request left. A change that is seen later was written after that.
    answered: Option<Timestamp>,
    lead: Option<Lead>,
    lost: bool,
    /// The versions before and after a fall, until they are polled.
    went_back: Option<(u64, u64)>,
}

/// A lead: its number, and its guaranteed end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The number of transitions of the lease: the epoch of the session.
    pub epoch: i64,
    /// When the lead ends without a renewal.
    pub until: Timestamp,
    /// Until when the cluster may work on creates without a renewal.
    pub creates_until: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
enum NextRequest {
    Read,
    Create,
    Replace,
}

/// A process's last look at a lease.
#[derive(Clone, Debug)]
struct Sighting {
    record: Record,
    /// When this record was first seen.
    since: Timestamp,
    /// How long after a fall of the version nobody knows who leads; zero without a fall.
    unknown_for: Duration,
    /// The highest number of a lead that was seen.
    transitions: i64,
}

impl Record {
    /// The versions if this one is lower than the version of `before`, so that it was not written after `before`.
    fn went_back(&self, before: &Self) -> Option<(u64, u64)> {
        let from = parse_version(&before.resource_version)?;
        let to = parse_version(&self.resource_version)?;
        (to < from).then_some((from, to))
    }

    /// Returns when the lease ends without a renewal, by the clock of its holder; `None` if it was never renewed.
    pub fn until(&self) -> Option<Timestamp> {
        self.renewed?.checked_add(self.duration).ok()
    }
}

impl Sighting {
    /// Returns the sighting after a lease is seen as `record`. If its version went back, the leader is unknown for the lease's duration, or
    /// for `duration` if longer. By then the former leader has renewed the lease, or has stopped leading.
    fn next(before: Option<&Self>, now: Timestamp, record: Record, duration: Duration) -> Self {
        let unknown_for = match before {
            Some(before) if before.record == record => return before.clone(),
            Some(before) if record.went_back(&before.record).is_some() => {
                duration.max(before.record.duration)
            }
            Some(before) => before.unknown_left(now),
            None => Duration::ZERO,
        };
        let transitions = before.map_or(record.transitions, |before| before.transitions);
        Self {
            since: now,
            unknown_for,
            transitions: transitions.max(record.transitions),
            record,
        }
    }

    fn until(&self) -> Timestamp {
        after(self.since, self.record.duration.max(self.unknown_for))
    }

    fn unknown_left(&self, now: Timestamp) -> Duration {
        self.unknown_for.saturating_sub(since(now, self.since))
    }
}

impl LeaseConfig {
    /// Checks that a create has time at any moment between two renewals.
    ///
    /// # Errors
    /// Says how long the lease must last, in whole seconds.
    pub fn check(&self) -> Result<(), String> {
        // A renewal is due every 2/15 of the duration. A create may use the rest, without the margin.
        let needed = (self.margin + CREATE_TIMEOUT_MIN) * 15;
        let needed = needed.as_millis().div_ceil(13 * 1000);
        if self.duration.as_millis() >= needed * 1000 {
            return Ok(());
        }
        let (duration, margin) = (self.duration.as_secs(), self.margin.as_secs());
        Err(format!(
            "a lease of {duration} s leaves no time for creates: one may take effect up to {margin} s after its timeout, \
             so the lease must last {needed} s or longer"
        ))
    }
}

impl Lease {
    /// Creates a lease that has seen nothing.
    pub const fn new(config: LeaseConfig) -> Self {
        Self {
            config,
            asked: None,
            next: Timestamp::MIN,
            step: NextRequest::Read,
            seen: None,
            answered: None,
            lead: None,
            lost: false,
            went_back: None,
        }
    }

    /// Returns the lead, while it lasts.
    pub fn lead(&self, now: Timestamp) -> Option<Lead> {
        self.lead.filter(|lead| !self.lost && now < lead.until)
    }

    /// Returns whether a lead has ended. It does not come back: a former leader begins as a new process.
    pub fn is_lost(&self, now: Timestamp) -> bool {
        self.lost || self.lead.is_some_and(|lead| lead.until <= now)
    }

    /// Returns the versions before and after a fall since the last call: the cluster was restored, or replaced.
    pub const fn poll_went_back(&mut self) -> Option<(u64, u64)> {
        self.went_back.take()
    }

    /// Returns the next request; `None` while an answer is awaited.
    pub fn poll_command(&mut self, now: Timestamp) -> Option<Command> {
        if self.asked.is_some() || now < self.next || self.is_lost(now) {
            return None;
        }
        self.asked = Some(now);
        Some(match self.step {
            NextRequest::Read => Command::Read,
            NextRequest::Create => Command::Create(self.fresh(now)),
            NextRequest::Replace => Command::Replace(self.taken(now)),
        })
    }

    /// Returns when [`poll_command`](Self::poll_command) or [`is_lost`](Self::is_lost) is due.
    pub fn poll_timeout(&self) -> Timestamp {
        let next = self.asked.map_or(self.next, |_| Timestamp::MAX);
        self.lead.map_or(next, |lead| next.min(lead.until))
    }

    /// Takes the answer to the command.
    pub fn handle_answer(&mut self, now: Timestamp, answer: Result<Record, ApiError>) {
        let Some(asked) = self.asked.take() else {
            return;
        };
        let step = std::mem::replace(&mut self.step, NextRequest::Read);
        self.next = after(now, self.retry_every());
        let answered = self.answered;
        if answer.is_ok() {
            self.answered = Some(asked);
        }
        match (step, answer) {
            (NextRequest::Read, Ok(record)) if self.is_renewed_by_another(&record) => {
                self.lead = self.lead_since(answered.unwrap_or(Timestamp::MIN), &record);
                self.note_seen(now, record);
            }
            (NextRequest::Read, Ok(record)) => self.handle_read(now, record),
            (NextRequest::Read, Err(error)) if error.code == Some(404) => {
                if !self.is_held_by_another(now) {
                    self.step = NextRequest::Create;
                    self.next = now;
                }
            }
            (NextRequest::Create | NextRequest::Replace, Ok(record)) => {
                self.lead = self.lead_since(asked, &record);
                self.note_seen(now, record);
                if !self.config.shared {
                    self.step = NextRequest::Replace;
                }
            }
            // Another process has renewed the lease meanwhile.
            (NextRequest::Replace, Err(error)) if self.config.shared && error.code == Some(409) => {
                self.next = now;
            }
            // It is unknown whether the write took effect, so the lease is read. The read is immediate if the answer took long, as little
            // of the lead is left.
            (NextRequest::Read | NextRequest::Create | NextRequest::Replace, Err(error))
                if error.code.is_none() =>
            {
                self.next = after(asked, self.retry_every()).max(now);
            }
            (NextRequest::Read | NextRequest::Create | NextRequest::Replace, Err(_)) => {}
        }
    }

    /// Gives the lease up. Returns the record to write without delay; no request follows. A shared lease runs out instead.
    pub fn release(&mut self, now: Timestamp) -> Option<Record> {
        if self.config.shared {
            return None;
        }
        let record = self.lead(now).and_then(|_| self.seen.take())?.record;
        self.lost = true;
        Some(Record {
            holder: String::new(),
            duration: Duration::from_secs(1),
            acquired: Some(now),
            renewed: Some(now),
            ..record
        })
    }

    /// Returns the lead by a lease that was renewed at `since` or later.
    fn lead_since(&self, since: Timestamp, record: &Record) -> Option<Lead> {
        let config = &self.config;
        Some(Lead {
            epoch: record.transitions,
            until: after(since, config.duration * 2 / 3),
            creates_until: after(since, config.duration.saturating_sub(config.margin)),
        })
    }

    /// True if a process that shares the lease has renewed it since the last look.
    fn is_renewed_by_another(&self, record: &Record) -> bool {
        let is_newer =
            |seen: &Sighting| seen.record != *record && record.went_back(&seen.record).is_none();
        let is_changed = self.seen.as_ref().is_some_and(is_newer);
        let is_held = self.lead.is_some() && record.holder == self.config.identity;
        self.config.shared && is_changed && is_held
    }

    fn handle_read(&mut self, now: Timestamp, record: Record) {
        if self.lead.is_some() && record.holder != self.config.identity {
            self.lost = true;
        }
        self.note_seen(now, record);
        if !self.is_held_by_another(now) {
            self.step = NextRequest::Replace;
            self.next = now;
        }
    }

    /// True if another holds the lease, as last seen, and it has not run out. A deleted lease still counts as held.
    fn is_held_by_another(&self, now: Timestamp) -> bool {
        let Some(seen) = &self.seen else {
            return false;
        };
        let holder = &seen.record.holder;
        let may_be_held = !holder.is_empty() || !seen.unknown_left(now).is_zero();
        may_be_held && *holder != self.config.identity && now < seen.until()
    }

    fn note_seen(&mut self, now: Timestamp, record: Record) {
        let before = self.seen.as_ref();
        let went_back = before.and_then(|before| record.went_back(&before.record));
        self.went_back = went_back.or(self.went_back);
        self.seen = Some(Sighting::next(before, now, record, self.config.duration));
    }

    /// The lease as created by this process. The number of the lead continues from the lease as last seen, even if that lease was deleted.
    fn fresh(&self, now: Timestamp) -> Record {
        let next_transitions = |seen: &Sighting| {
            let is_own = seen.record.holder == self.config.identity;
            seen.transitions.saturating_add(i64::from(!is_own))
        };
        Record {
            holder: self.config.identity.clone(),
            duration: self.config.duration,
            acquired: Some(now),
            renewed: Some(now),
            transitions: self.seen.as_ref().map_or(0, next_transitions),
            ..Record::default()
        }
    }

    /// The lease as taken or renewed by this process.
    fn taken(&self, now: Timestamp) -> Record {
        let fresh = self.fresh(now);
        let Some(Sighting { record, .. }) = &self.seen else {
            return fresh;
        };
        let is_own = record.holder == self.config.identity;
        Record {
            acquired: if is_own { record.acquired } else { Some(now) },
            resource_version: record.resource_version.clone(),
            object: record.object.clone(),
            ..fresh
        }
    }

    fn retry_every(&self) -> Duration {
        self.config.duration * 2 / 15
    }
}

pub mod shard;
#[cfg(test)]
mod tests;
