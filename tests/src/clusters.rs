//! Several clusters on the same servers: worlds of which one at a time has the servers at hand, stepped by whichever is due next.
//!
//! Each has its own cluster, agents, faults and people; what one does to a server (lets it die, drain or start, sets its clock) befalls
//! the sessions of all. All have one name, and some are restored from one backup, so that their objects have the same uids.

use jiff::Timestamp;

use crate::{encounters::Encounters, trace::Trace, world::World};

/// One or more worlds that share their servers.
#[derive(Debug)]
pub struct Clusters {
    worlds: Vec<World>,
    /// Which of them has the servers at hand.
    holder: usize,
}

// === impl Clusters ===

impl Clusters {
    /// Returns a world, whose servers it shares with these.
    #[must_use]
    pub fn new(first: World, others: impl IntoIterator<Item = World>) -> Self {
        let worlds = [first].into_iter().chain(others);
        let mut worlds: Vec<_> = worlds.collect();
        if worlds.len() > 1 {
            worlds[0].encounters.note("Several clusters");
        }
        Self { worlds, holder: 0 }
    }

    /// Lets the next thing happen in one of the worlds, at `until` at the latest, and everything that follows at once in any of them.
    /// Each world is judged after what happened in it. Returns whether it was before `until`.
    ///
    /// # Errors
    /// What `judge` finds wrong.
    pub fn step<E>(
        &mut self,
        until: Timestamp,
        mut judge: impl FnMut(&World) -> Result<(), E>,
    ) -> Result<bool, E> {
        let due = |world: &World| world.next_at().unwrap_or(Timestamp::MAX);
        let worlds = self.worlds.iter().enumerate();
        let next = worlds.min_by_key(|(_, world)| due(world));
        let next = next.map_or(0, |(next, _)| next);
        let stepped = self.hand_servers_to(next).step(until);
        let world = &mut self.worlds[next];
        let (now, killed) = (world.now(), world.take_killed());
        judge(world)?;
        for other in (0..self.worlds.len()).filter(|other| *other != next) {
            let world = self.hand_servers_to(other);
            world.follow(now, &killed);
            judge(world)?;
        }
        Ok(stepped)
    }

    /// Returns the worlds.
    pub fn iter(&self) -> impl Iterator<Item = &World> {
        self.worlds.iter()
    }

    /// Returns the worlds.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut World> {
        self.worlds.iter_mut()
    }

    /// Returns the first world.
    #[must_use]
    pub fn first(&self) -> &World {
        &self.worlds[0]
    }

    /// Returns the first world.
    pub fn first_mut(&mut self) -> &mut World {
        &mut self.worlds[0]
    }

    /// Returns the first world, with the servers.
    #[must_use]
    pub fn into_first(mut self) -> World {
        self.hand_servers_to(0);
        self.worlds.swap_remove(0)
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let times = self.iter().map(World::now);
        times.max().unwrap_or_default()
    }

    /// Returns what was recorded, in the order of time; where there are several worlds, each line tells its world.
    #[must_use]
    pub fn trace(&self) -> Trace {
        match self.worlds.as_slice() {
            [only] => only.trace.clone(),
            many => Trace::merged(many.iter().map(|world| &world.trace)),
        }
    }

    /// Returns what of the protocol was met in all of them.
    #[must_use]
    pub fn encounters(&self) -> Encounters {
        let mut all = Encounters::default();
        self.iter().for_each(|world| all.add(&world.encounters));
        all
    }

    /// Hands the servers to one of the worlds, which is returned.
    fn hand_servers_to(&mut self, number: usize) -> &mut World {
        let servers = std::mem::take(&mut self.worlds[self.holder].servers);
        self.holder = number;
        let world = &mut self.worlds[number];
        world.servers = servers;
        world
    }
}
