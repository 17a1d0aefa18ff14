//! One run: a seed, a workload, a world that is stepped until it rests, together with the worlds that share its servers, and the
//! checkers after every step.

mod staged;

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    chaos::Chaos,
    clusters::Clusters,
    depth::number,
    encounters::{BUDGET_EXCEEDED, Encounters, GUARD, OUTCOME},
    failure::{Failure, traced},
    invariants::{CHECKERS, Verdict, i1_bystander_lives},
    mutants::Mutant,
    rest::{i3_zero_churn, i8_as_wanted},
    rng::Rng,
    trace::Trace,
    workloads::Workload,
    world::World,
};

pub use staged::run_stage;

/// The number of schedules in a test run, over all workloads, unless `DECREE_SIM_RUNS` sets it.
const RUNS: u64 = 6_000;
/// The number of schedules of a workload after which everything drawn must have occurred.
const RUNS_THAT_MEET_ALL: u64 = 1_000;
/// The time after the last act at which faults end.
const UNREST: Duration = Duration::from_secs(3);
/// The maximum time for a healed world to rest: the wait after 16 failed syncs in a row, which is 164 s, and a reserve. The world
/// must not need the 5-minute timeout of expectations.
const REST_WITHIN: Duration = Duration::from_secs(280);
/// The time for which the world must then stay unchanged, without a write.
const REST_FOR: Duration = Duration::from_secs(3);
/// More steps than any run that comes to rest.
const STEPS_MAX: u64 = 100_000;

/// A successful run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rested {
    /// The number of steps.
    pub steps: u64,
    /// The numbers of pods that the agents created and deleted.
    pub churn: (usize, usize),
    /// The encounters with the protocol.
    pub encounters: Encounters,
    /// The trace; empty unless recorded.
    pub trace: Trace,
}

/// Runs a workload under its share of `DECREE_SIM_RUNS` schedules, from `DECREE_SIM_SEED` on.
///
/// # Panics
/// At the first failed run, with the seed and the command that repeats it; and if many runs lack an expected encounter.
#[expect(
    clippy::print_stdout,
    reason = "the counts are for whoever runs the schedules"
)]
pub fn check(workload: Workload) {
    let share = Workload::ALL.len() as u64;
    let runs = number("DECREE_SIM_RUNS").unwrap_or(RUNS).div_ceil(share);
    let first: u64 = number("DECREE_SIM_SEED").unwrap_or(0);
    let mut met = Encounters::default();
    for seed in first..first.saturating_add(runs) {
        let rested = traced(|is_recorded| {
            let mut simulation = Simulation::new(workload, seed, None);
            if is_recorded {
                simulation.record();
            }
            simulation.run()
        });
        let rested = rested.unwrap_or_else(|failure| panic!("{failure}"));
        met.add(&rested.encounters);
    }
    println!(
        "{workload:?}: {runs} runs, {} of {} operations refused by the agent",
        met.count(GUARD),
        met.count(OUTCOME)
    );
    let exceeded = met.count(BUDGET_EXCEEDED);
    assert_eq!(exceeded, 0, "an honest server exceeds no default budget");
    let missing = met.missing();
    assert!(
        runs < RUNS_THAT_MEET_ALL || missing.is_empty(),
        "{runs} runs never met {missing:?}, but {met:?}"
    );
}

/// Runs one schedule.
///
/// # Errors
/// If a checker objects.
pub fn run(workload: Workload, seed: u64, mutant: Option<Mutant>) -> Result<Rested, Failure> {
    Simulation::new(workload, seed, mutant).run()
}

/// Runs one schedule and keeps the trace.
///
/// # Errors
/// If a checker objects.
pub fn record(workload: Workload, seed: u64, mutant: Option<Mutant>) -> Result<Rested, Failure> {
    let mut simulation = Simulation::new(workload, seed, mutant);
    simulation.record();
    simulation.run()
}

/// A world with its workload, and its neighbors, before their run.
#[derive(Debug)]
pub struct Simulation {
    workload: Workload,
    seed: u64,
    /// The worlds.
    pub clusters: Clusters,
    /// The command that repeats the run.
    pub repeat: String,
    steps: u64,
}

impl Simulation {
    fn new(workload: Workload, seed: u64, mutant: Option<Mutant>) -> Self {
        let mut rng = rng_of(workload, seed);
        let others = draw_others(&mut Rng::new(rng.clone().next_u64()));
        let chaos = Chaos::draw(&mut rng);
        Self::of(workload, seed, (rng, chaos), others, mutant)
    }

    /// Returns a workload in a given world.
    pub fn within(workload: Workload, seed: u64, chaos: Chaos, mutant: Option<Mutant>) -> Self {
        let drawn = (rng_of(workload, seed), chaos);
        Self::of(workload, seed, drawn, Vec::new(), mutant)
    }

    fn of(
        workload: Workload,
        seed: u64,
        (mut rng, mut chaos): (Rng, Chaos),
        others: Vec<Other>,
        mutant: Option<Mutant>,
    ) -> Self {
        let workloads = others.iter().map(|other| other.workload);
        let skews = workloads.chain([workload]).map(Workload::clock_skew_max);
        chaos.clock_skew = skews.fold(chaos.clock_skew, Duration::min);
        let plan = workload.plan(&mut rng);
        let others = (1..).zip(others);
        let others: Vec<_> = others
            .map(|(number, other)| other.world(number, seed, &chaos, mutant))
            .collect();
        let first = World::new(seed, rng, chaos, mutant).with_plan(plan);
        Self::with_clusters(workload, seed, Clusters::new(first, others))
    }

    fn with_clusters(workload: Workload, seed: u64, clusters: Clusters) -> Self {
        Self {
            workload,
            seed,
            clusters,
            repeat: format!(
                "DECREE_SIM_SEED={seed} DECREE_SIM_RUNS=1 cargo test -p tests --test sim canonical::{}",
                test_name(workload)
            ),
            steps: 0,
        }
    }

    fn run(mut self) -> Result<Rested, Failure> {
        self.judge()?;
        let ledgers = self.clusters.iter().map(|world| &world.ledger);
        let churn = ledgers.map(|ledger| (ledger.ours.len(), ledger.deleted.len()));
        Ok(Rested {
            steps: self.steps,
            churn: churn.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1)),
            encounters: self.clusters.encounters(),
            trace: self.clusters.trace(),
        })
    }

    /// Starts to record the traces.
    pub fn record(&mut self) {
        let worlds = self.clusters.iter_mut();
        worlds.for_each(|world| world.trace.record());
    }

    /// Runs the worlds until they rest, and returns the first.
    ///
    /// # Errors
    /// If a checker objects.
    pub fn run_world(mut self) -> Result<World, Failure> {
        self.judge()?;
        Ok(self.clusters.into_first())
    }

    fn judge(&mut self) -> Result<(), Failure> {
        let verdict = self.live();
        verdict.map_err(|(checker, text)| Failure {
            checker,
            text,
            world: format!("{:?} with seed {}", self.workload, self.seed),
            repeat: self.repeat.clone(),
            trace: self.clusters.trace(),
        })
    }

    fn live(&mut self) -> Result<(), (&'static str, String)> {
        while self.clusters.iter().any(World::is_planned) {
            self.step(Timestamp::MAX)?;
        }
        self.pass(UNREST)?;
        self.clusters.iter_mut().for_each(World::heal);
        let deadline = self.clusters.now() + REST_WITHIN;
        loop {
            let unrest = self.clusters.iter().try_for_each(i8_as_wanted);
            let overdue = self.clusters.now() >= deadline;
            match unrest {
                Err(text) if overdue => return Err(("i8_comes_to_rest", text)),
                Err(_) => {
                    self.step(deadline)?;
                }
                Ok(()) if self.rests()? => break,
                Ok(()) if overdue => {
                    return Err((
                        "i8_stays_at_rest",
                        "it is as wanted, and goes on".to_owned(),
                    ));
                }
                Ok(()) => {}
            }
        }
        let churn = self.clusters.iter().try_for_each(i3_zero_churn);
        churn.map_err(|text| ("i3_zero_churn", text))
    }

    /// Waits for a while, and returns whether there was no write and everything stayed as desired.
    fn rests(&mut self) -> Result<bool, (&'static str, String)> {
        let writes = |clusters: &Clusters| clusters.iter().map(|it| it.ledger.writes).sum::<u64>();
        let before = writes(&self.clusters);
        self.pass(REST_FOR)?;
        let mut worlds = self.clusters.iter();
        Ok(writes(&self.clusters) == before
            && worlds.all(|world| i8_as_wanted(world).is_ok() && !world.is_busy()))
    }

    fn pass(&mut self, span: Duration) -> Result<(), (&'static str, String)> {
        let until = self.clusters.now() + span;
        while self.step(until)? {}
        Ok(())
    }

    fn step(&mut self, until: Timestamp) -> Result<bool, (&'static str, String)> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err((
                "i8_comes_to_rest",
                format!("{STEPS_MAX} steps were not enough"),
            ));
        }
        self.clusters.step(until, judge)
    }
}

/// The contents of a cluster that shares the servers of another.
struct Other {
    workload: Workload,
    rng: Rng,
    /// Whether the cluster comes from the same backup, so that its objects have the same uids.
    is_twin: bool,
}

impl Other {
    fn world(mut self, number: u64, seed: u64, first: &Chaos, mutant: Option<Mutant>) -> World {
        let chaos = Chaos {
            servers: first.servers,
            clock_skew: first.clock_skew,
            ..Chaos::draw(&mut self.rng)
        };
        let seed = if self.is_twin {
            seed
        } else {
            self.rng.next_u64()
        };
        let plan = self.workload.plan(&mut self.rng);
        World::beside(number, seed, self.rng, chaos, mutant).with_plan(plan)
    }
}

/// Draws the neighbors of the first cluster: one in one world of eight, two in another one of eight.
fn draw_others(rng: &mut Rng) -> Vec<Other> {
    let count = *rng.pick(&[0, 0, 0, 0, 0, 0, 1, 2]);
    let other = |_| Other {
        workload: *rng.pick(&Workload::ALL),
        rng: Rng::new(rng.next_u64()),
        is_twin: rng.chance(500),
    };
    (0..count).map(other).collect()
}

fn judge(world: &World) -> Result<(), (&'static str, String)> {
    for fact in &world.facts {
        for (name, checker) in CHECKERS {
            checker(world, fact).map_err(|text| (name, text))?;
        }
    }
    let bystander: Verdict = i1_bystander_lives(world);
    bystander.map_err(|text| ("i1_bystander_lives", text))
}

fn rng_of(workload: Workload, seed: u64) -> Rng {
    Rng::new(seed.wrapping_mul(31).wrapping_add(workload as u64))
}

/// Returns the name of the test of a workload, in its module.
pub fn test_name(workload: Workload) -> String {
    let mut name = String::new();
    for (index, letter) in format!("{workload:?}").char_indices() {
        if letter.is_ascii_uppercase() && index > 0 {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}
