//! Several clusters on the same servers. One world at a time has the servers, and the world with the next event is stepped.
//!
//! Each world has its own cluster, agents, faults and people. A death, drain, start or clock change of a server affects the
//! sessions of all worlds. All clusters have one name, and some are restored from one backup, so that their objects have the same
//! uids.

use jiff::Timestamp;

use crate::{encounters::Encounters, trace::Trace, world::World};

/// One or more worlds that share their servers.
#[derive(Debug)]
pub struct Clusters {
    worlds: Vec<World>,
    /// The index of the world that has the servers.
    holder: usize,
}

impl Clusters {
    /// Returns worlds that share the servers of the first.
    pub fn new(first: World, others: impl IntoIterator<Item = World>) -> Self {
        let worlds = [first].into_iter().chain(others);
        let mut worlds: Vec<_> = worlds.collect();
        if worlds.len() > 1 {
            worlds[0].encounters.note("Several clusters");
        }
        Self { worlds, holder: 0 }
    }

    /// Executes the next event in one of the worlds, at `until` at the latest, with its immediate effects in all worlds. Judges
    /// each affected world. Returns whether the event was before `until`.
    ///
    /// # Errors
    /// The objection of `judge`.
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
    pub fn first(&self) -> &World {
        &self.worlds[0]
    }

    /// Returns the first world.
    pub fn first_mut(&mut self) -> &mut World {
        &mut self.worlds[0]
    }

    /// Returns the first world, with the servers.
    pub fn into_first(mut self) -> World {
        self.hand_servers_to(0);
        self.worlds.swap_remove(0)
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        let times = self.iter().map(World::now);
        times.max().unwrap_or_default()
    }

    /// Returns the trace, in the order of time; with several worlds, each line names its world.
    pub fn trace(&self) -> Trace {
        match self.worlds.as_slice() {
            [only] => only.trace.clone(),
            many => Trace::merged(many.iter().map(|world| &world.trace)),
        }
    }

    /// Returns the encounters of all worlds.
    pub fn encounters(&self) -> Encounters {
        let mut all = Encounters::default();
        self.iter().for_each(|world| all.add(&world.encounters));
        all
    }

    /// Hands the servers to one of the worlds, and returns it.
    fn hand_servers_to(&mut self, number: usize) -> &mut World {
        let servers = std::mem::take(&mut self.worlds[self.holder].servers);
        self.holder = number;
        let world = &mut self.worlds[number];
        world.servers = servers;
        world
    }
}
