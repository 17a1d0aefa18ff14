//! Leading: one agent of several acts, and each lead has a number that only grows.
//!
//! The `Lease` object and its rules are those of client-go, so that `kubectl get lease` shows what people know. Whether another's
//! lease has run out is told by this process's own clock, from when the object was last seen to change: clocks of two
//! machines are never compared.
//!
//! **Invariant:** a lead ends, by the clock of who leads, a third of the lease before another may begin: what is under way then
//! has that long to end.
//!
//! **Invariant:** a lease whose version goes back, as its cluster was restored, says nothing of who leads now: for its whole duration it is
//! taken for held by another, unless this process holds it by what it says; and the numbers of leads go on from the highest seen.
//!
//! **Invariant:** a create is given no time beyond the last renewal and the lease's duration without the margin, so that it has taken
//! effect or never will when another may begin. All other writes name what they are for by uid or version, and may come late.

use std::time::Duration;

use jiff::Timestamp;
use thiserror::Error;

use crate::{
    api::{ApiError, parse_version},
    backoff::{after, since},
};

/// The least time that a create is given. One that would have less waits for the lease to be renewed.
pub const CREATE_TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// Who wants to lead, and by which lease.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
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
    /// Whether other processes hold the lease by the same identity: what one of them renews is renewed for all, and none gives it back, as
    /// another may need it.
    pub shared: bool,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read the lease; an absent one is a 404.
    Read,
    /// Create the lease.
    Create(Record),
    /// Replace the lease, which must still have the version of the record.
    Replace(Record),
}

/// What a `Lease` object says of the election.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty if it was given back.
    pub holder: String,
    /// How long after its last renewal another may take it, in whole seconds.
    pub duration: Duration,
    /// When its holder took it.
    pub acquired: Option<Timestamp>,
    /// When its holder renewed it last.
    pub renewed: Option<Timestamp>,
    /// How often it changed hands.
    pub transitions: i64,
    /// The version of the object; empty for one that is to be created.
    pub resource_version: String,
    /// The object as the adapter read it, opaque here. Whatever else it holds, such as labels, is so kept when it is replaced.
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
    /// When the last question was asked that was answered: what is seen to differ later was written after that.
    answered: Option<Timestamp>,
    lead: Option<Lead>,
    lost: bool,
    /// The versions that went back, until it is asked.
    went_back: Option<WentBack>,
}

/// A version of the lease that is lower than one before: from, and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WentBack {
    /// The version that was seen before.
    pub from: u64,
    /// The version that it has now.
    pub to: u64,
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
enum NextRequest {
    Read,
    Create,
    Replace,
}

/// A lease as a process saw it last.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// What it says.
    pub record: Record,
    /// When it was first seen like this.
    since: Timestamp,
    /// For how long nobody knows who leads, since its version went back. Zero otherwise.
    unknown_for: Duration,
    /// The highest number of a lead that was seen.
    transitions: i64,
}

// === impl Record ===

impl Record {
    /// Returns the versions, if this one is lower than that of `before`: then it was not written after it.
    #[must_use]
    pub fn went_back(&self, before: &Self) -> Option<WentBack> {
        let from = parse_version(&before.resource_version)?;
        let to = parse_version(&self.resource_version)?;
        (to < from).then_some(WentBack { from, to })
    }

    /// Returns when the lease ends unless it is renewed, by the clock of its holder; `None` if it was never renewed.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        self.renewed?.checked_add(self.duration).ok()
    }
}

// === impl Sighting ===

impl Sighting {
    /// Returns what is known once a lease is seen as `record`. Where its version went back, it is not known who leads for its duration, or
    /// for `duration` if that is longer: by then whoever led before has renewed it, or leads no more.
    #[must_use]
    pub fn next(before: Option<&Self>, now: Timestamp, record: Record, duration: Duration) -> Self {
        let Some(before) = before else {
            return Self {
                since: now,
                unknown_for: Duration::ZERO,
                transitions: record.transitions,
                record,
            };
        };
        if before.record == record {
            return before.clone();
        }
        let unknown_for = match record.went_back(&before.record) {
            Some(_) => duration.max(before.record.duration),
            None => before.unknown_left(now),
        };
        Self {
            since: now,
            unknown_for,
            transitions: before.transitions.max(record.transitions),
            record,
        }
    }

    /// Returns when the lease has run out.
    #[must_use]
    pub fn until(&self) -> Timestamp {
        after(self.since, self.record.duration.max(self.unknown_for))
    }

    /// Returns when the lease was first seen like this.
    #[must_use]
    pub const fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns whether who leads is not known at this time.
    #[must_use]
    pub fn is_unknown(&self, now: Timestamp) -> bool {
        !self.unknown_left(now).is_zero()
    }

    fn unknown_left(&self, now: Timestamp) -> Duration {
        self.unknown_for.saturating_sub(since(now, self.since))
    }
}

// === impl LeaseConfig ===

impl LeaseConfig {
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

    /// Returns a lease that was seen as `sighting` says.
    #[must_use]
    pub fn seen(config: LeaseConfig, now: Timestamp, sighting: Sighting) -> Self {
        let mut lease = Self::new(config);
        let record = sighting.record.clone();
        lease.seen = Some(sighting);
        lease.handle_read(now, record);
        lease
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

    /// Returns whether the version of the lease went back since this was asked last: its cluster was restored, or is another.
    pub const fn poll_went_back(&mut self) -> Option<WentBack> {
        self.went_back.take()
    }

    /// Returns what to ask; nothing while an answer is awaited.
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

    /// Returns whether an answer is awaited: until it comes, the lease may be held without anybody knowing.
    #[must_use]
    pub const fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Returns when [`poll_command`](Self::poll_command) or [`is_lost`](Self::is_lost) is due.
    #[must_use]
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
            // Another has renewed it meanwhile.
            (NextRequest::Replace, Err(error)) if self.config.shared && error.code == Some(409) => {
                self.next = now;
            }
            // Whether it was written is not known: what is there is read, at once where the answer was awaited for long, as little of the lead is
            // left.
            (NextRequest::Read | NextRequest::Create | NextRequest::Replace, Err(error))
                if error.code.is_none() =>
            {
                self.next = after(asked, self.retry_every()).max(now);
            }
            (NextRequest::Read | NextRequest::Create | NextRequest::Replace, Err(_)) => {}
        }
    }

    /// Gives the lease up: returns the record that says so, to be put in place without delay. Nothing follows. One that is shared runs out.
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

    /// Returns whether a process that shares the lease has renewed it since it was last seen.
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

    /// Returns whether the lease as it was last seen is another's and has not run out. A lease that somebody deletes is held on.
    fn is_held_by_another(&self, now: Timestamp) -> bool {
        let Some(seen) = &self.seen else {
            return false;
        };
        let holder = &seen.record.holder;
        let may_be_held = !holder.is_empty() || seen.is_unknown(now);
        may_be_held && *holder != self.config.identity && now < seen.until()
    }

    fn note_seen(&mut self, now: Timestamp, record: Record) {
        let before = self.seen.as_ref();
        let went_back = before.and_then(|before| record.went_back(&before.record));
        self.went_back = went_back.or(self.went_back);
        self.seen = Some(Sighting::next(before, now, record, self.config.duration));
    }

    fn fresh(&self, now: Timestamp) -> Record {
        Record {
            holder: self.config.identity.clone(),
            duration: self.config.duration,
            acquired: Some(now),
            renewed: Some(now),
            transitions: self.next_transitions(),
            ..Record::default()
        }
    }

    /// Returns the number of the lead by the lease that this process writes next: it goes on from the lease as it was last seen, also where
    /// somebody has deleted that.
    fn next_transitions(&self) -> i64 {
        let Some(seen) = &self.seen else {
            return 0;
        };
        let is_own = seen.record.holder == self.config.identity;
        seen.transitions.saturating_add(i64::from(!is_own))
    }

    /// Returns the lease as seen, taken or renewed by this process.
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

#[cfg(test)]
mod tests;
