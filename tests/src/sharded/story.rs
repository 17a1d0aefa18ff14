//! What happens to a world, drawn by seed, until it is left alone and must come to rest.

use std::time::Duration;

use super::{
    happening::Happening,
    state::{CREATES_LIMITED_BY_LEASE, LEASE, Mutant, NAMESPACES, TRANSIT_MAX, World},
};

/// How many of a thousand requests are refused, and as many are answered by nothing.
const FAULTS: u64 = 20;
/// How many pods a ReplicaSet has at most.
const PODS_MAX: u64 = 40;
/// How often pods are created in haste, and how many in each namespace.
const HASTES: u64 = 3;
const PODS_OF_HASTE: u64 = 6;
/// How long things happen.
const UNREST: Duration = Duration::from_secs(90);
/// How long a world that is left alone may take to come to rest: what was in doubt is over, Leases have run out, and backoffs too.
const REST_WITHIN: Duration = Duration::from_secs(120);
/// How much later than the end of their Lease the shards of a process that is lost are served.
const TAKE_OVER_WITHIN: Duration = Duration::from_secs(2);

/// Processes that share a cluster out die, pause, leave and join, while servers die and drain, and people scale up.
///
/// # Errors
/// Says what went wrong.
pub fn unrest(seed: u64, mutant: Option<Mutant>) -> Result<World, String> {
    let mut world = World::new(seed, FAULTS, mutant);
    let shards = Some(6);
    for _ in 0..4 {
        world.start_within(Duration::from_secs(5), shards);
    }
    let end = world.now() + UNREST;
    while world.now() < end {
        world.act(shards)?;
    }
    world.rest()?;
    Ok(world)
}

/// While pods are created in all namespaces, a process dies, and another is stopped until those that are left have taken over. Half of the
/// creates take effect as late as they may, and it is the Lease that limits how late.
///
/// # Errors
/// Says what went wrong.
pub fn haste(seed: u64, mutant: Option<Mutant>) -> Result<World, String> {
    let mut world = World::new(seed, 0, mutant);
    world.creates = CREATES_LIMITED_BY_LEASE;
    world.be_late = 500;
    let shards = Some(6);
    for _ in 0..4 {
        world.start_within(Duration::from_secs(1), shards);
    }
    world.run(2 * LEASE)?;
    for _ in 0..HASTES {
        (0..NAMESPACES).for_each(|namespace| world.scale_up_in(namespace, PODS_OF_HASTE));
        let wait = world.rng.delay(6 * TRANSIT_MAX);
        world.run(wait)?;
        world.lose_one_and_stop_another();
        world.start_within(Duration::from_secs(3), shards);
        world.run(3 * LEASE)?;
    }
    world.rest()?;
    Ok(world)
}

/// A cluster that one process of two serves is shared out in two, then in five, then served whole again: each time new processes come,
/// and those before them end in order, die, or are paused and wake later.
///
/// # Errors
/// Says what went wrong.
pub fn growth(seed: u64, mutant: Option<Mutant>) -> Result<World, String> {
    let mut world = World::new(seed, FAULTS, mutant);
    let mut before: Vec<u64> = Vec::new();
    for shards in [None, Some(2), Some(5), None] {
        let first = world.numbers;
        world.start_within(Duration::from_secs(1), shards);
        world.start_within(Duration::from_secs(1), shards);
        world.run(Duration::from_secs(3))?;
        for life in before {
            let happening = match world.rng.between(0, 2) {
                0 => Happening::ProcessStops { life },
                1 => Happening::ProcessDies { life },
                _ => {
                    let pause = world.rng.delay(2 * LEASE);
                    let stops = Happening::ProcessStops { life };
                    world.schedule.after(pause, stops);
                    Happening::ProcessPauses { life, pause }
                }
            };
            let delay = world.rng.delay(Duration::from_secs(4));
            world.schedule.after(delay, happening);
        }
        for _ in 0..8 {
            world.scale_up();
            let wait = world.rng.delay(Duration::from_secs(5));
            world.run(wait)?;
        }
        // Whatever started since then, also in place of one that lost its Lease, is of this number of shards.
        before = world.processes.keys().copied().collect();
        before.retain(|life| *life > first);
        world.count("number of shards changed");
    }
    // One that lost its Lease since then has begun again with the number that it had.
    for _ in 0..30 {
        world.run(Duration::from_secs(1))?;
        let stale = world.processes.iter().filter(|(_, it)| it.shards.is_some());
        let stale: Vec<_> = stale.map(|(life, _)| *life).collect();
        for life in stale {
            let stops = Happening::ProcessStops { life };
            world.schedule.after(Duration::ZERO, stops);
        }
    }
    world.rest()?;
    Ok(world)
}

/// One of three processes dies without a word where nothing else happens: its shards are served by the others in time.
///
/// # Errors
/// Says what went wrong.
pub fn loss(seed: u64) -> Result<(), String> {
    let mut world = World::new(seed, 0, None);
    for _ in 0..3 {
        world.start_within(Duration::from_secs(1), Some(6));
    }
    world.run(Duration::from_secs(40))?;
    if let Some(why) = world.unfinished() {
        return Err(why);
    }
    let lives: Vec<_> = world.processes.keys().copied().collect();
    let life = *world.rng.pick(&lives);
    world.end_process(life);
    world.run(LEASE + TAKE_OVER_WITHIN)?;
    world.unfinished().map_or(Ok(()), Err)
}

// === impl World ===

impl World {
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
            let happening = match is_loss {
                true => Happening::ProcessDies { life },
                false => Happening::ProcessPauses { life, pause },
            };
            self.schedule.after(Duration::ZERO, happening);
        }
    }

    /// Lets one thing happen, and time pass.
    fn act(&mut self, shards: Option<u16>) -> Result<(), String> {
        let lives: Vec<_> = self.processes.keys().copied().collect();
        let server = usize::from(self.rng.chance(500));
        let kind = self.rng.between(0, 9);
        if kind < 4 && !lives.is_empty() {
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
        } else if kind == 4 {
            self.schedule
                .after(Duration::ZERO, Happening::ServerDies { server });
        } else if kind == 5 {
            self.schedule
                .after(Duration::ZERO, Happening::ServerDrains { server });
        } else {
            self.scale_up();
        }
        let wait = self.rng.delay(Duration::from_secs(4));
        self.run(wait)
    }

    /// Asks for more pods in a namespace. None is ever to go, so each that is created twice is one too many.
    fn scale_up(&mut self) {
        let namespace = self.rng.between(0, NAMESPACES as u64 - 1) as usize;
        let more = self.rng.between(1, 6);
        self.scale_up_in(namespace, more);
    }

    fn scale_up_in(&mut self, namespace: usize, more: u64) {
        let before = self.wanted[&super::state::namespace(namespace)] as u64;
        let replicas = (before + more).min(PODS_MAX);
        let replicas = i32::try_from(replicas).unwrap_or(i32::MAX);
        let scales = Happening::Scales {
            namespace,
            replicas,
        };
        self.schedule.after(Duration::ZERO, scales);
    }

    fn run(&mut self, time: Duration) -> Result<(), String> {
        let until = self.now() + time;
        while self.step(until)? {}
        Ok(())
    }

    /// Ends all faults, and waits until everything is as wanted.
    fn rest(&mut self) -> Result<(), String> {
        self.faults = 0;
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
