//! Leader election in the world: the processes that contend for the Lease, and the Lease on the API server.

use std::{collections::BTreeMap, time::Duration};

use agent_core::{
    api::ApiError,
    lease::{Command, Lease, LeaseConfig, Record},
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    actors::{CREATES, Clock},
    lease_api,
};

/// The time after its last renewal at which another process takes the Lease. A third of it is longer than any write of the world
/// takes.
const DURATION: Duration = Duration::from_secs(9);

/// The contenders for the Lease, and the Lease.
#[derive(Debug, Default)]
pub(super) struct Leadership {
    contenders: BTreeMap<u64, Contender>,
    lease: Option<Record>,
}

/// A process that holds the Lease or tries to.
#[derive(Debug)]
struct Contender {
    lease: Lease,
    clock: Clock,
    /// Whether it wrongly reads the wall clock, as a mutant does.
    by_wall_clock: bool,
}

impl Leadership {
    /// The next Lease deadline of the processes that are awake.
    pub(super) fn poll_timeout(&self, awake: impl Fn(&u64) -> bool) -> Option<Timestamp> {
        let contenders = self.contenders.iter().filter(|(life, _)| awake(life));
        let due = contenders.filter_map(|(_, it)| {
            let due = it.lease.poll_timeout();
            (due != Timestamp::MAX).then(|| it.when(due))
        });
        due.min()
    }

    /// Whether a process may write. Without a Lease, every process may.
    pub(super) fn leads(&self, life: u64, now: Timestamp) -> bool {
        let contender = self.contenders.get(&life);
        contender.is_none_or(|it| it.lease.lead(it.time(now)).is_some())
    }

    /// The epoch of a process and the newest epoch; `None` without a Lease.
    pub(super) fn epochs(&self, life: u64, now: Timestamp) -> Option<(i64, i64)> {
        let contender = self.contenders.get(&life)?;
        let own = contender.lease.lead(contender.time(now));
        let newest = self.lease.as_ref()?.transitions;
        Some((own.map_or(-1, |lead| lead.epoch), newest))
    }

    pub(super) fn contend(&mut self, life: u64, clock: Clock, by_wall_clock: bool) {
        let lease = Lease::new(LeaseConfig {
            identity: format!("agent-{life}"),
            namespace: "kube-system".to_owned(),
            name: "decree-agent".to_owned(),
            duration: DURATION,
            margin: CREATES.margin,
            shared: false,
        });
        let contender = Contender {
            lease,
            clock,
            by_wall_clock,
        };
        self.contenders.insert(life, contender);
    }

    pub(super) fn contenders(&self) -> Vec<u64> {
        self.contenders.keys().copied().collect()
    }

    pub(super) fn set_clock(&mut self, life: u64, now: Timestamp, offset: SignedDuration) {
        if let Some(it) = self.contenders.get_mut(&life) {
            it.clock.set(now, offset);
        }
    }

    /// Whether a process contends for the Lease and lives.
    pub(super) fn contends(&self, life: u64) -> bool {
        self.contenders.contains_key(&life)
    }

    /// The processes that have lost the Lease, among those that are awake.
    pub(super) fn lost(&self, now: Timestamp, awake: impl Fn(&u64) -> bool) -> Vec<u64> {
        let awake = self.contenders.iter().filter(|(life, _)| awake(life));
        let lost = awake.filter(|(_, it)| it.lease.is_lost(it.time(now)));
        lost.map(|(life, _)| *life).collect()
    }

    /// The Lease requests of the processes that are awake, except those that have lost the Lease.
    pub(super) fn poll_commands(
        &mut self,
        now: Timestamp,
        awake: impl Fn(&u64) -> bool,
    ) -> Vec<(u64, Command)> {
        let awake = self.contenders.iter_mut().filter(|(life, _)| awake(life));
        let wanted = awake.filter_map(|(life, it)| {
            let now = it.time(now);
            let command = (!it.lease.is_lost(now)).then(|| it.lease.poll_command(now));
            Some((*life, command??))
        });
        wanted.collect()
    }

    /// Takes the answer to a request of a process. Returns its new epoch and its clocks if the process leads now.
    pub(super) fn handle_answer(
        &mut self,
        life: u64,
        now: Timestamp,
        answer: Result<Record, ApiError>,
    ) -> Option<(i64, Clock)> {
        let it = self.contenders.get_mut(&life)?;
        it.lease.handle_answer(it.time(now), answer);
        let lead = it.lease.lead(it.time(now))?;
        Some((lead.epoch, it.clock))
    }

    /// Forgets a process that has ended; returns whether it contended for the Lease.
    pub(super) fn forget(&mut self, life: u64) -> bool {
        self.contenders.remove(&life).is_some()
    }

    /// Makes the Lease look vacant.
    pub(super) fn vacate(&mut self) {
        if let Some(lease) = &mut self.lease {
            lease.holder.clear();
        }
    }

    /// Executes a Lease request as the API server does.
    pub(super) fn execute(&mut self, command: &Command) -> Result<Record, ApiError> {
        let answer = lease_api::execute(self.lease.as_ref(), command);
        if let Ok(record) = &answer {
            self.lease = Some(record.clone());
        }
        answer
    }
}

impl Contender {
    /// The time by its own clock.
    fn time(&self, now: Timestamp) -> Timestamp {
        if self.by_wall_clock {
            self.clock.wall(now)
        } else {
            self.clock.monotonic(now)
        }
    }

    /// The time at which its own clock shows a time.
    fn when(&self, shown: Timestamp) -> Timestamp {
        if self.by_wall_clock {
            self.clock.when_wall(shown)
        } else {
            self.clock.when_monotonic(shown)
        }
    }
}
