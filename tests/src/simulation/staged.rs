//! Runs of the worlds for mutants.

use super::{Rested, Simulation, rng_of};
use crate::{
    chaos::Chaos, clusters::Clusters, failure::Failure, mutants::Mutant, rng::Rng, world::World,
};

/// Runs the world for a mutant, broken or sound.
///
/// # Errors
/// If a checker objects.
pub fn run_stage(mutant: Mutant, seed: u64, is_broken: bool) -> Result<Rested, Failure> {
    Simulation::staged(mutant, seed, is_broken).run()
}

impl Simulation {
    /// The world for a mutant, and its neighbors, broken or sound.
    fn staged(mutant: Mutant, seed: u64, is_broken: bool) -> Self {
        let workload = mutant.workload();
        let broken = is_broken.then_some(mutant);
        let mut rng = rng_of(workload, seed);
        let first = mutant.stage(&mut rng);
        let mut others = Vec::new();
        for number in 1..=first.neighbours {
            let mut rng = Rng::new(rng.next_u64());
            let other = mutant.stage(&mut rng);
            // Half of them come from the same backup.
            let seed = *rng.pick(&[seed, rng.clone().next_u64()]);
            let chaos = Chaos {
                servers: first.chaos.servers,
                clock_skew: first.chaos.clock_skew,
                ..other.chaos
            };
            let world = World::beside(number, seed, rng, chaos, broken);
            others.push(world.with_plan(other.plan).with_faults(other.faults));
        }
        let world = World::new(seed, rng, first.chaos, broken);
        let world = world.with_plan(first.plan).with_faults(first.faults);
        let mut simulation = Self::with_clusters(workload, seed, Clusters::new(world, others));
        simulation.repeat =
            format!("DECREE_SIM_SEED={seed} cargo test -p tests --test sim mutants::");
        simulation
    }
}
