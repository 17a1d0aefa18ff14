//! The story of a world, drawn by seed, until a quiet phase in which it must come to rest.

use std::time::Duration;

use super::{
    happening::Happening,
    state::{CREATES_LIMITED_BY_LEASE, LEASE, Mutant, NAMESPACES, Shared, TRANSIT_MAX},
};

/// The number of refused requests per thousand, and of unanswered ones.
const FAULTS: u64 = 20;
/// The number of hasty scale-ups, and of their pods in each namespace.
const HASTES: u64 = 3;
const PODS_OF_HASTE: usize = 6;
/// The duration of the events.
const UNREST: Duration = Duration::from_secs(90);
/// The maximum time of a quiet world to come to rest: uncertain writes, Leases and backoffs have ended.
const REST_WITHIN: Duration = Duration::from_secs(120);
/// The maximum time after the expiry of the Lease until other processes serve the shards of a lost process.
const TAKE_OVER_WITHIN: Duration = Duration::from_secs(2);

/// Processes with shards of a cluster die, pause, leave and join, while servers die and drain, and people scale up.
///
/// # Errors
/// The failure.
pub fn unrest(seed: u64, mutant: Option<Mutant>) -> Result<Shared, String> {
    let mut shared = Shared::new(seed, FAULTS, mutant);
    let shards = Some(6);
    for _ in 0..4 {
        shared.start_within(Duration::from_secs(5), shards);
    }
    let end = shared.now() + UNREST;
    while shared.now() < end {
        shared.act(shards)?;
    }
    shared.rest()?;
    Ok(shared)
}

/// While agents create pods in all namespaces, a process dies, and another is stopped until the remaining ones have taken over.
/// Half of the creates take effect at the last possible moment, which the Lease limits.
///
/// # Errors
/// The failure.
pub fn haste(seed: u64, mutant: Option<Mutant>) -> Result<Shared, String> {
    let mut shared = Shared::new(seed, 0, mutant);
    shared.limit_creates(CREATES_LIMITED_BY_LEASE);
    shared.world.chaos.be_late = 500;
    let shards = Some(6);
    for _ in 0..4 {
        shared.start_within(Duration::from_secs(1), shards);
    }
    shared.run(2 * LEASE)?;
    for _ in 0..HASTES {
        (0..NAMESPACES).for_each(|namespace| shared.scale_up_in(namespace, PODS_OF_HASTE));
        let wait = shared.rng.delay(6 * TRANSIT_MAX);
        shared.run(wait)?;
        shared.lose_one_and_stop_another();
        shared.start_within(Duration::from_secs(3), shards);
        shared.run(3 * LEASE)?;
    }
    shared.rest()?;
    Ok(shared)
}

/// A cluster that one process of two serves gets two shards, then five, then none again. Each time, new processes start, and the
/// old ones stop in order, die, or pause and resume later.
///
/// # Errors
/// The failure.
pub fn growth(seed: u64, mutant: Option<Mutant>) -> Result<Shared, String> {
    let mut shared = Shared::new(seed, FAULTS, mutant);
    let mut before: Vec<u64> = Vec::new();
    for shards in [None, Some(2), Some(5), None] {
        let first = shared.numbers;
        shared.start_within(Duration::from_secs(1), shards);
        shared.start_within(Duration::from_secs(1), shards);
        shared.run(Duration::from_secs(3))?;
        for life in before {
            let happening = match shared.rng.between(0, 2) {
                0 => Happening::ProcessStops { life },
                1 => Happening::ProcessDies { life },
                _ => {
                    let pause = shared.rng.delay(2 * LEASE);
                    let stops = Happening::ProcessStops { life };
                    shared.schedule.after(pause, stops);
                    Happening::ProcessPauses { life, pause }
                }
            };
            let delay = shared.rng.delay(Duration::from_secs(4));
            shared.schedule.after(delay, happening);
        }
        for _ in 0..8 {
            shared.scale_up();
            let wait = shared.rng.delay(Duration::from_secs(5));
            shared.run(wait)?;
        }
        // Every process since then has this number of shards, including a process that replaces one without its Lease.
        before = shared.processes.keys().copied().collect();
        before.retain(|life| *life > first);
        shared.note("number of shards changed");
    }
    // A process that has lost its Lease since then has restarted with its old number.
    for _ in 0..30 {
        shared.run(Duration::from_secs(1))?;
        let stale = shared
            .processes
            .iter()
            .filter(|(_, it)| it.shards.is_some());
        let stale: Vec<_> = stale.map(|(life, _)| *life).collect();
        for life in stale {
            let stops = Happening::ProcessStops { life };
            shared.schedule.after(Duration::ZERO, stops);
        }
    }
    shared.rest()?;
    Ok(shared)
}

/// One of three processes dies without notice while nothing else happens: the others serve its shards in time.
///
/// # Errors
/// The failure.
pub fn loss(seed: u64, mutant: Option<Mutant>) -> Result<Shared, String> {
    let mut shared = Shared::new(seed, 0, mutant);
    for _ in 0..3 {
        shared.start_within(Duration::from_secs(1), Some(6));
    }
    shared.run(Duration::from_secs(40))?;
    if let Some(why) = shared.unfinished() {
        return Err(why);
    }
    let lives: Vec<_> = shared.processes.keys().copied().collect();
    let life = *shared.rng.pick(&lives);
    shared.end_process(life);
    shared.run(LEASE + TAKE_OVER_WITHIN)?;
    match shared.unfinished() {
        Some(why) => Err(why),
        None => Ok(shared),
    }
}

// === impl Shared ===

impl Shared {
    fn start_within(&mut self, most: Duration, shards: Option<u16>) {
        let delay = self.rng.delay(most);
        self.schedule
            .after(delay, Happening::ProcessStarts { shards });
    }

    fn lose_one_and_stop_another(&mut self) {
        let mut lives: Vec<_> = self.processes.keys().copied().collect();
        let pause = LEASE + TAKE_OVER_WITHIN + self.rng.delay(TAKE_OVER_WITHIN);
        for is_loss in [true, false] {
            let last = lives.len().saturating_sub(1) as u64;
            let life = lives.remove(self.rng.between(0, last) as usize);
            let happening = if is_loss {
                Happening::ProcessDies { life }
            } else {
                Happening::ProcessPauses { life, pause }
            };
            self.schedule.after(Duration::ZERO, happening);
        }
    }

    /// Executes one act, and advances the time.
    fn act(&mut self, shards: Option<u16>) -> Result<(), String> {
        let lives: Vec<_> = self.processes.keys().copied().collect();
        let server = usize::from(self.rng.chance(500));
        match self.rng.between(0, 9) {
            kind @ 0..4 if !lives.is_empty() => {
                let life = *self.rng.pick(&lives);
                let happening = match kind {
                    0 => Happening::ProcessDies { life },
                    1 => Happening::ProcessStops { life },
                    _ => Happening::ProcessPauses {
                        life,
                        pause: self.rng.delay(2 * LEASE),
                    },
                };
                if kind < 2 {
                    self.start_within(Duration::from_secs(3), shards);
                }
                self.schedule.after(Duration::ZERO, happening);
            }
            4 => {
                self.world.kill_server(server);
                self.note("server killed");
            }
            5 => {
                self.world.drain(server);
                self.note("server drained");
            }
            _ => self.scale_up(),
        }
        let wait = self.rng.delay(Duration::from_secs(4));
        self.run(wait)
    }

    fn scale_up(&mut self) {
        let namespace = self.rng.between(0, NAMESPACES as u64 - 1) as usize;
        let more = self.rng.between(1, 6) as usize;
        self.scale_up_in(namespace, more);
    }

    fn run(&mut self, time: Duration) -> Result<(), String> {
        let now = self.now();
        self.world.follow(now, &[]);
        while self.step(now + time)? {}
        Ok(())
    }

    /// Ends all faults, and waits for the desired state.
    fn rest(&mut self) -> Result<(), String> {
        self.faults = 0;
        self.world.heal();
        let until = self.now() + REST_WITHIN;
        while self.now() < until {
            self.run(Duration::from_secs(1))?;
            if self.paused.is_empty() && self.unfinished().is_none() {
                return Ok(());
            }
        }
        let why = self.unfinished().unwrap_or_else(|| "paused".to_owned());
        Err(format!("it does not come to rest: {why}"))
    }
}
