//! A crash at each boundary of an operation, enumerated. A quiet world of each workload shows its boundaries; then each boundary
//! has a run with a crash at it.

use std::{collections::BTreeMap, env, fmt};

use crate::{
    chaos::Chaos,
    failure::{Failure, traced},
    mutants::Mutant,
    simulation::{Simulation, test_name},
    workloads::Workload,
    world::{Boundary, PlannedCrash, World},
};

/// The seed of the world of each workload.
const SEED: u64 = 1;
/// The interval of plans to run, unless all plans run. It shares no divisor with the number of crashes at a boundary, so each
/// kind of crash runs.
pub const STEP: usize = 61;
/// The variable with the one plan to run.
const ONE: &str = "DECREE_CRASH_PLAN";
/// The variable that requests all plans.
const HOW_MANY: &str = "DECREE_CRASH_PLANS";

/// A run with one crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Plan {
    /// The acts of people.
    pub workload: Workload,
    /// The processes.
    pub topology: Topology,
    /// The crash, and its time.
    pub planned: PlannedCrash,
}

/// The processes of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topology {
    /// One server and one agent.
    Single,
    /// Two servers, and two agents that contend for the Lease.
    Redundant,
}

/// Returns the boundaries that a workload passes in a quiet world.
///
/// # Errors
/// If a checker objects.
pub fn boundaries(
    workload: Workload,
    topology: Topology,
    mutant: Option<Mutant>,
) -> Result<Vec<Boundary>, Failure> {
    let mut simulation = Simulation::within(workload, SEED, topology.chaos(), mutant);
    simulation.clusters.first_mut().record_boundaries();
    let world = simulation.run_world()?;
    Ok(world.boundaries().to_vec())
}

/// Returns the plans of a workload with this number of boundaries.
pub fn plans(
    workload: Workload,
    topology: Topology,
    boundaries: usize,
) -> impl Iterator<Item = Plan> {
    let crashes = (0..boundaries).flat_map(PlannedCrash::at);
    crashes.map(move |planned| Plan {
        workload,
        topology,
        planned,
    })
}

/// Runs one plan, and returns its world.
///
/// # Errors
/// If a checker objects; the failure has the command that repeats the plan.
pub fn run(plan: Plan, mutant: Option<Mutant>) -> Result<World, Failure> {
    plan.simulation(mutant).run_world()
}

/// Runs every [`STEP`]th plan of a workload, all plans if `DECREE_CRASH_PLANS=all`, or the plan in `DECREE_CRASH_PLAN`. Prints
/// their number, by boundary.
///
/// # Panics
/// At the first plan that fails, with its trace and the command that repeats it; if a crash never happened; and if no plan is the one in
/// `DECREE_CRASH_PLAN`.
pub fn check(workload: Workload) {
    let mut ran = 0;
    for topology in Topology::ALL {
        let boundaries = boundaries(workload, topology, None);
        let boundaries = boundaries.unwrap_or_else(|failure| panic!("{failure}"));
        let mut counts: BTreeMap<Boundary, usize> = BTreeMap::new();
        for plan in chosen(plans(workload, topology, boundaries.len())) {
            let expected = boundaries[plan.planned.boundary];
            let world = traced(|is_recorded| {
                let mut simulation = plan.simulation(None);
                if is_recorded {
                    simulation.record();
                }
                simulation.run_world()
            });
            let world = world.unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!(world.crashed(), Some(expected), "{plan} crashes elsewhere");
            *counts.entry(expected).or_default() += 1;
        }
        print(workload, topology, &counts);
        ran += counts.values().sum::<usize>();
    }
    if let Ok(text) = env::var(ONE) {
        let names = |it: &Workload| text.starts_with(&format!("{it:?}:"));
        let is_of_another = !names(&workload) && Workload::ALL.iter().any(names);
        assert!(ran > 0 || is_of_another, "{ONE}={text}: no plan is so");
    }
}

/// The plans of this test run.
fn chosen(plans: impl Iterator<Item = Plan>) -> Vec<Plan> {
    if let Ok(text) = env::var(ONE) {
        return plans.filter(|plan| plan.to_string() == text).collect();
    }
    let step = match env::var(HOW_MANY).as_deref() {
        Ok("all") => 1,
        Ok(other) => panic!("{HOW_MANY}={other}: it is `all`, or not set"),
        Err(_) => STEP,
    };
    plans.step_by(step).collect()
}

#[expect(
    clippy::print_stdout,
    reason = "the counts are for whoever runs the plans"
)]
fn print(workload: Workload, topology: Topology, counts: &BTreeMap<Boundary, usize>) {
    let all: usize = counts.values().sum();
    println!("{workload:?}, {topology:?}: {all} plans");
    for (boundary, count) in counts {
        println!("{workload:?}, {topology:?}: {boundary}: {count}");
    }
}

impl Plan {
    fn simulation(self, mutant: Option<Mutant>) -> Simulation {
        let chaos = self.topology.chaos();
        let mut simulation = Simulation::within(self.workload, SEED, chaos, mutant);
        simulation.clusters.first_mut().plan_crash(self.planned);
        simulation.repeat = format!(
            "{ONE}={self} cargo test -p tests --test sim crashes::{}",
            test_name(self.workload)
        );
        simulation
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            workload,
            topology,
            planned:
                PlannedCrash {
                    boundary,
                    crash,
                    in_flight,
                },
        } = self;
        write!(
            f,
            "{workload:?}:{topology:?}:{boundary}:{crash:?}:{in_flight:?}"
        )
    }
}

impl Topology {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Single, Self::Redundant];

    fn chaos(self) -> Chaos {
        let calm = Chaos::calm();
        match self {
            Self::Single => calm,
            Self::Redundant => Chaos {
                servers: 2,
                standbys: 1,
                ..calm
            },
        }
    }
}
