//! One run: a seed, a workload, a world that is stepped until it rests, and the checkers after every step.

use std::{env, fmt, time::Duration};

use jiff::Timestamp;

use crate::{
    chaos::Chaos,
    encounters::Encounters,
    invariants::{CHECKERS, Verdict, i1_bystander_lives},
    mutants::Mutant,
    rest::{i3_zero_churn, i8_as_wanted},
    rng::Rng,
    trace::Trace,
    workloads::Workload,
    world::World,
};

/// How many schedules a test run tries, over all workloads, unless `DECREE_SIM_RUNS` says otherwise.
const RUNS: u64 = 24_000;
/// After how many schedules of a workload everything that is drawn must have happened.
const RUNS_THAT_MEET_ALL: u64 = 1_000;
/// How long after the last act faults may go on.
const UNREST: Duration = Duration::from_secs(3);
/// How long a healed world may take to rest: the wait after 16 failed syncs in a row, which is 164 s, and some more. The 5-minute
/// timeout of expectations must not be needed.
const REST_WITHIN: Duration = Duration::from_secs(280);
/// How long it must then stay as it is, without a write.
const REST_FOR: Duration = Duration::from_secs(3);
/// More steps than any run has that comes to rest.
const STEPS_MAX: u64 = 100_000;
/// How many happenings a failure shows, unless `DECREE_SIM_TRACE` says otherwise.
const SHOWN: u64 = 60;

/// A run that went well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rested {
    /// How many steps it took.
    pub steps: u64,
    /// How many pods were created and deleted by us.
    pub churn: (usize, usize),
    /// What of the protocol was met.
    pub encounters: Encounters,
    /// What happened; empty unless it was recorded.
    pub trace: Trace,
}

/// A run that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The workload.
    pub workload: Workload,
    /// The seed.
    pub seed: u64,
    /// The checker that objects.
    pub checker: &'static str,
    /// Why.
    pub text: String,
    /// The command that repeats it.
    pub repeat: String,
    /// What happened.
    pub trace: Trace,
}

/// Runs a workload under as many schedules as its share of `DECREE_SIM_RUNS`, from `DECREE_SIM_SEED` on.
///
/// # Panics
/// At the first run that goes wrong, with the seed and the command that repeats it; and where many runs never met something of the
/// protocol that they must meet.
pub fn check(workload: Workload) {
    let share = Workload::ALL.len() as u64;
    let runs = from_env("DECREE_SIM_RUNS").unwrap_or(RUNS).div_ceil(share);
    let first = from_env("DECREE_SIM_SEED").unwrap_or(0);
    let mut met = Encounters::default();
    for seed in first..first.saturating_add(runs) {
        match run(workload, seed, None) {
            Ok(rested) => met.add(&rested.encounters),
            Err(_) => {
                let failure = record(workload, seed, None).err();
                let text = failure.map(|failure| failure.to_string());
                panic!("{}", text.as_deref().unwrap_or("a recorded run differs"));
            }
        }
    }
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
    simulation.world.trace.record();
    simulation.run()
}

/// A world with its workload, before it is run.
#[derive(Debug)]
pub struct Simulation {
    workload: Workload,
    seed: u64,
    /// The world.
    pub world: World,
    /// The command that repeats the run.
    pub repeat: String,
    steps: u64,
}

impl Simulation {
    fn new(workload: Workload, seed: u64, mutant: Option<Mutant>) -> Self {
        let mut rng = rng_of(workload, seed);
        let chaos = Chaos::draw(&mut rng);
        let chaos = match mutant {
            Some(mutant) => mutant.roughen(chaos),
            None => chaos,
        };
        Self::of(workload, seed, (rng, chaos), mutant)
    }

    /// Returns a workload in a world that is not drawn.
    #[must_use]
    pub fn within(workload: Workload, seed: u64, chaos: Chaos, mutant: Option<Mutant>) -> Self {
        Self::of(workload, seed, (rng_of(workload, seed), chaos), mutant)
    }

    fn of(
        workload: Workload,
        seed: u64,
        (mut rng, mut chaos): (Rng, Chaos),
        mutant: Option<Mutant>,
    ) -> Self {
        chaos.clock_skew = chaos.clock_skew.min(workload.clock_skew_max());
        let plan = workload.plan(&mut rng);
        let mut world = World::new(seed, rng, chaos, mutant);
        for (after, act) in plan {
            world.plan(after, act);
        }
        Self {
            workload,
            seed,
            world,
            repeat: format!(
                "DECREE_SIM_SEED={seed} DECREE_SIM_RUNS=1 cargo test -p tests --test sim canonical::{}",
                test_name(workload)
            ),
            steps: 0,
        }
    }

    fn run(mut self) -> Result<Rested, Failure> {
        self.judge()?;
        let ledger = &self.world.ledger;
        Ok(Rested {
            steps: self.steps,
            churn: (ledger.ours.len(), ledger.deleted.len()),
            encounters: self.world.encounters,
            trace: self.world.trace,
        })
    }

    /// Runs the world until it rests, and returns it.
    ///
    /// # Errors
    /// If a checker objects.
    pub fn run_world(mut self) -> Result<World, Failure> {
        self.judge()?;
        Ok(self.world)
    }

    fn judge(&mut self) -> Result<(), Failure> {
        let verdict = self.live();
        verdict.map_err(|(checker, text)| Failure {
            workload: self.workload,
            seed: self.seed,
            checker,
            text,
            repeat: self.repeat.clone(),
            trace: self.world.trace.clone(),
        })
    }

    fn live(&mut self) -> Result<(), (&'static str, String)> {
        while self.world.is_planned() {
            self.step(Timestamp::MAX)?;
        }
        self.pass(UNREST)?;
        self.world.heal();
        let deadline = self.world.now() + REST_WITHIN;
        loop {
            let unrest = i8_as_wanted(&self.world);
            let overdue = self.world.now() >= deadline;
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
        i3_zero_churn(&self.world).map_err(|text| ("i3_zero_churn", text))
    }

    /// Waits for a while, and returns whether nothing was written and all stayed as wanted.
    fn rests(&mut self) -> Result<bool, (&'static str, String)> {
        let writes = self.world.ledger.writes;
        self.pass(REST_FOR)?;
        Ok(self.world.ledger.writes == writes
            && i8_as_wanted(&self.world).is_ok()
            && !self.world.is_busy())
    }

    fn pass(&mut self, span: Duration) -> Result<(), (&'static str, String)> {
        let until = self.world.now() + span;
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
        let stepped = self.world.step(until);
        for fact in &self.world.facts {
            for (name, checker) in CHECKERS {
                checker(&self.world, fact).map_err(|text| (name, text))?;
            }
        }
        let bystander: Verdict = i1_bystander_lives(&self.world);
        bystander.map_err(|text| ("i1_bystander_lives", text))?;
        Ok(stepped)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            workload,
            seed,
            checker,
            text,
            repeat,
            trace,
        } = self;
        let shown = from_env("DECREE_SIM_TRACE").unwrap_or(SHOWN);
        let shown = usize::try_from(shown).unwrap_or(usize::MAX);
        let skipped = trace.lines().len().saturating_sub(shown);
        writeln!(
            f,
            "{checker}: {text}\n\nthe last of {} happenings:",
            trace.lines().len()
        )?;
        for line in &trace.lines()[skipped..] {
            writeln!(f, "  {line}")?;
        }
        write!(
            f,
            "\n{workload:?} with seed {seed} goes wrong. It is repeated by:\n  {repeat}"
        )
    }
}

fn rng_of(workload: Workload, seed: u64) -> Rng {
    Rng::new(seed.wrapping_mul(31).wrapping_add(workload as u64))
}

/// Returns the name of the test of a workload, in its module.
#[must_use]
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

fn from_env(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}
