//! Worlds with a fault for a while: pods do not last, the store is restored, another controller acts, or an agent
//! breaks the protocol. Creates stay limited, somebody is told, and after the fault everything is as desired.
//!
//! The promises are in docs/reliability.md ("Limits on runaway creation"): `account` counts, and `expected` has the required
//! notices and their deadlines.

mod account;
mod expected;
mod stage;
mod story;

use std::{iter, time::Duration};

use agent_fake::{Kind, Propagation};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use self::{account::Account, story::Objection};
pub use self::{
    stage::stage,
    story::{Between, Fate, Meddling, Restore, SET, Story, Stretch, Trouble},
};
use crate::{
    builders::replica_set,
    chaos::{Chaos, Fault, Manner},
    depth::number,
    encounters::Encounters,
    failure::{Failure, traced},
    invariants::{CHECKERS, i1_bystander_lives, replicas},
    mutants::Mutant,
    other_controller::OtherController,
    rest::i8_as_wanted,
    rng::Rng,
    workloads::{Act, NAMESPACE},
    world::World,
};

/// The number of worlds in a test run, unless `DECREE_SIM_RUNS` sets it.
const RUNS: u64 = 80;
/// The number of schedules of the other worlds that take as long as one of these worlds.
const SCHEDULES_PER_WORLD: u64 = 10;
/// The maximum time after the last trouble for a world to rest: two of the longest periods, ten short ones, and a reserve.
const REST_WITHIN: SignedDuration = SignedDuration::from_mins(13);
/// The time for which the world must then stay unchanged, without a write.
const REST_FOR: SignedDuration = SignedDuration::from_secs(3);
/// More steps than any run that comes to rest.
const STEPS_MAX: u64 = 2_000_000;
/// The interval of repeated removals of a pod.
const KILLED_EVERY: Duration = Duration::from_secs(3);
/// The interval of the lists of an agent that sends older ones.
const LISTED_EVERY: Duration = Duration::from_secs(20);
/// The interval of repeated changes of the ReplicaSet or the connection.
const MEDDLED_EVERY: Duration = Duration::from_secs(3);
/// The interval of another controller.
const PERIOD: SignedDuration = SignedDuration::from_millis(20);
/// The checkers that are valid if the store may be restored: the other checkers depend on versions, generations or epochs.
const HELD: [&str; 7] = [
    "i0_protocol",
    "i1_no_unowned_pod_deleted",
    "i2_no_duplicate_create",
    "i2_created_as_decided",
    "i7_single_session",
    "i9_creates_are_paid_for",
    "i10_slow_start",
];

/// A successful run.
#[derive(Clone, Debug, Default)]
pub struct Healed {
    /// The encounters with the protocol.
    pub encounters: Encounters,
    /// The maximum number of surplus pods that the agents created.
    pub surplus: usize,
}

struct Run {
    world: World,
    story: Story,
    account: Account,
    start: Timestamp,
    other: Option<OtherController>,
    steps: u64,
}

/// An action at a time.
#[derive(Clone, Copy)]
enum Cue {
    TakeBackup(Trouble),
    Begin(Trouble),
    End(Trouble),
}

/// Runs a tenth of `DECREE_SIM_RUNS` drawn worlds, from `DECREE_SIM_SEED` on. Returns their encounters.
///
/// # Panics
/// At the first failed run, with its seed and the command that repeats it.
pub fn check() -> Healed {
    let schedules: Option<u64> = number("DECREE_SIM_RUNS");
    let runs = schedules.map_or(RUNS, |it| it.div_ceil(SCHEDULES_PER_WORLD));
    let first: u64 = number("DECREE_SIM_SEED").unwrap_or(0);
    let mut met = Healed::default();
    for seed in first..first.saturating_add(runs) {
        let mut rng = rng_of(seed);
        let story = Story::draw(&mut rng);
        let healed = traced(|is_recorded| run(seed, &rng, &story, None, is_recorded));
        let healed = healed.unwrap_or_else(|failure| {
            let repeat = format!(
                "DECREE_SIM_SEED={seed} DECREE_SIM_RUNS=1 cargo test -p tests --test sim troubled::worlds"
            );
            panic!("{}", Failure { repeat, ..failure })
        });
        met.encounters.add(&healed.encounters);
        met.surplus = met.surplus.max(healed.surplus);
    }
    met
}

/// Runs the world for a mutant, broken or sound.
///
/// # Errors
/// If a checker objects.
pub fn run_stage(mutant: Mutant, seed: u64, is_broken: bool) -> Result<Healed, Failure> {
    let mut rng = rng_of(seed);
    let story = stage(mutant, &mut rng);
    let repeat = format!("DECREE_SIM_SEED={seed} cargo test -p tests --test sim troubled::");
    let mutant = is_broken.then_some(mutant);
    let run = |is_recorded| run(seed, &rng, &story, mutant, is_recorded);
    // A failure of a sound world needs its trace.
    let result = if is_broken { run(false) } else { traced(run) };
    result.map_err(|failure| Failure { repeat, ..failure })
}

fn run(
    seed: u64,
    rng: &Rng,
    story: &Story,
    mutant: Option<Mutant>,
    is_recorded: bool,
) -> Result<Healed, Failure> {
    let mut run = Run::new(seed, rng.clone(), story.clone(), mutant);
    if is_recorded {
        run.world.trace.record();
    }
    match run.live() {
        Ok(()) => Ok(Healed {
            surplus: run.account.surplus(),
            encounters: run.world.encounters,
        }),
        Err((checker, text)) => Err(Failure {
            checker,
            text,
            world: format!(
                "{} pods, {:?}\n{:?}\nThis world",
                run.story.replicas, run.story.troubles, run.story.chaos
            ),
            repeat: String::new(),
            trace: run.world.trace,
        }),
    }
}

impl Run {
    fn new(seed: u64, rng: Rng, story: Story, mutant: Option<Mutant>) -> Self {
        let set = replica_set(SET).replicas(story.replicas).build();
        let world = World::new(seed, rng, story.chaos.clone(), mutant)
            .with_budget(story.budget)
            .with_plan(vec![(Duration::ZERO, Act::Create(set))]);
        Self {
            start: world.now(),
            account: Account::new(&story),
            world,
            story,
            other: None,
            steps: 0,
        }
    }

    fn live(&mut self) -> Result<(), Objection> {
        for (at, cue) in self.cues() {
            let at = self.start + at;
            self.pass(at)?;
            self.follow(cue);
        }
        self.pass(self.start + self.story.ends())?;
        self.account.expect_rest();
        // An annotation of a person may be lost with a store, or exist when the agent restarts with another store, so the person
        // writes it again.
        self.resume("2", Duration::from_secs(60));
        self.world.heal();
        self.rest()
    }

    /// The actions with their times, in order.
    fn cues(&self) -> Vec<(Duration, Cue)> {
        let mut cues = Vec::new();
        for stretch in &self.story.troubles {
            let Stretch {
                begins,
                lasts,
                trouble,
            } = *stretch;
            if let Some(restore) = trouble.restore() {
                let at = begins.saturating_sub(restore.age);
                cues.push((at, Cue::TakeBackup(trouble)));
            }
            cues.push((begins, Cue::Begin(trouble)));
            cues.push((begins + lasts, Cue::End(trouble)));
        }
        cues.sort_by_key(|(at, _)| *at);
        cues
    }

    fn follow(&mut self, cue: Cue) {
        match cue {
            Cue::TakeBackup(trouble) => self.take_backup(trouble),
            Cue::Begin(trouble) => self.begin(trouble),
            Cue::End(trouble) => self.end(trouble),
        }
    }

    fn take_backup(&mut self, trouble: Trouble) {
        let Some(restore) = trouble.restore() else {
            return;
        };
        let (now, soon) = (Duration::ZERO, Duration::from_millis(1));
        self.world.plan_fault(now, Fault::TakeBackup);
        self.world.plan_fault(now, Fault::Write(restore.lost));
        match restore.between {
            Between::Kills => self.kill_all(soon),
            Between::Scales => {
                let replicas = 31 - self.story.replicas;
                self.account.note_wanted(replicas);
                let set = SET.to_owned();
                self.world.plan(soon, Act::Scale { set, replicas });
            }
            Between::Nothing | Between::KillsAfter => {}
        }
    }

    fn begin(&mut self, trouble: Trouble) {
        self.account.begin(trouble);
        let now = Duration::ZERO;
        match trouble {
            Trouble::Pods {
                fate,
                per_mille,
                kills,
            } => {
                self.set_chance(fate, per_mille);
                if kills {
                    self.kill_all(now);
                }
            }
            Trouble::Restore(open, restore) => self.lose(Fault::PutBack(open), restore),
            Trouble::RunsOn(restore) => {
                let lasts = self.lasts(trouble);
                self.lose(Fault::PutBackBehind(lasts), restore);
            }
            Trouble::Kills => {
                for after in times(KILLED_EVERY, self.lasts(trouble)) {
                    self.world.plan(after, Act::KillPod);
                }
            }
            Trouble::OtherController => self.other = Some(OtherController::new(SET)),
            Trouble::IllSet => self.world.plan_fault(now, Fault::AddIllSet),
            Trouble::Meddles(meddling) => self.meddle(meddling, self.lasts(trouble)),
            Trouble::Manner(Manner::OlderLists) => {
                for after in times(LISTED_EVERY, self.lasts(trouble)) {
                    self.world.plan_fault(after, Fault::DropWatches);
                }
            }
            Trouble::Manner(_) => {}
        }
    }

    fn end(&mut self, trouble: Trouble) {
        self.account.end(trouble);
        match trouble {
            Trouble::Pods { fate, .. } => self.set_chance(fate, 0),
            Trouble::OtherController => {
                self.other = None;
                self.resume("1", Duration::from_secs(1));
            }
            Trouble::IllSet => self.world.plan_fault(Duration::ZERO, Fault::RemoveIllSet),
            Trouble::Manner(_) => {
                let fate = self.world.chaos.clone();
                self.world.chaos = Chaos {
                    relabel: fate.relabel,
                    orphan: fate.orphan,
                    reject: fate.reject,
                    remove: fate.remove,
                    ..Chaos::calm()
                };
                self.world.plan_fault(Duration::ZERO, Fault::KillAgents);
            }
            Trouble::Restore(..) | Trouble::RunsOn(_) | Trouble::Kills | Trouble::Meddles(_) => {}
        }
    }

    /// Plans a change that somebody makes again and again.
    fn meddle(&mut self, meddling: Meddling, lasts: Duration) {
        if meddling == Meddling::Scales {
            self.account.note_wanted(self.story.replicas + 1);
        }
        let mut afters = times(MEDDLED_EVERY, lasts).enumerate().peekable();
        while let Some((number, after)) = afters.next() {
            let set = SET.to_owned();
            match meddling {
                Meddling::Scales => {
                    let more = i32::from(number % 2 == 0 && afters.peek().is_some());
                    let replicas = self.story.replicas + more;
                    self.world.plan(after, Act::Scale { set, replicas });
                }
                Meddling::Recreates => {
                    let propagation = Propagation::Background;
                    self.world.plan(after, Act::Delete { set, propagation });
                    let object = replica_set(SET).replicas(self.story.replicas).build();
                    self.world.plan(after, Act::Create(object));
                }
                Meddling::Cuts => self.world.plan_fault(after, Fault::Cut),
            }
        }
    }

    /// Lets a person resume the agent.
    fn resume(&mut self, value: &str, after: Duration) {
        let patch = json!({"metadata": {"annotations": {"decree.dev/resume": value}}});
        let set = SET.to_owned();
        let act = Act::Patch { set, patch };
        self.world.plan(after, act);
    }

    fn lose(&mut self, fault: Fault, restore: Restore) {
        self.world.plan_fault(Duration::ZERO, fault);
        if !self.account.is_on(Trouble::IllSet) {
            // The backup may contain the set.
            self.world
                .plan_fault(Duration::from_millis(1), Fault::RemoveIllSet);
        }
        if restore.between == Between::KillsAfter {
            self.world.plan(Duration::from_millis(1), Act::KillPod);
        }
    }

    fn kill_all(&mut self, after: Duration) {
        let set = self.world.cluster.peek(Kind::ReplicaSet, NAMESPACE, SET);
        let uid = set.and_then(|set| set["metadata"]["uid"].as_str());
        let count = uid.map_or(0, |uid| replicas(&self.world, uid).count());
        (0..count).for_each(|_| self.world.plan(after, Act::KillPod));
    }

    fn set_chance(&mut self, fate: Fate, per_mille: u64) {
        let chance = match fate {
            Fate::Relabelled => &mut self.world.chaos.relabel,
            Fate::Rejected => &mut self.world.chaos.reject,
            Fate::Removed => &mut self.world.chaos.remove,
            Fate::Orphaned => &mut self.world.chaos.orphan,
        };
        *chance = per_mille;
    }

    fn lasts(&self, trouble: Trouble) -> Duration {
        let mut troubles = self.story.troubles.iter();
        let found = troubles.find(|it| it.trouble == trouble);
        found.map_or(Duration::ZERO, |it| it.lasts)
    }

    fn pass(&mut self, until: Timestamp) -> Result<(), Objection> {
        while self.world.now() < until {
            let next = match &self.other {
                Some(_) => (self.world.now() + PERIOD).min(until),
                None => until,
            };
            while self.step(next)? {}
            if let Some(other) = &mut self.other {
                other.look(&mut self.world);
            }
        }
        Ok(())
    }

    fn step(&mut self, until: Timestamp) -> Result<bool, Objection> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            let text = format!("{STEPS_MAX} steps were not enough");
            return Err(("comes_to_rest", text));
        }
        let goes_on = self.world.step(until);
        for fact in &self.world.facts {
            for (name, checker) in CHECKERS.iter().filter(|(name, _)| HELD.contains(name)) {
                checker(&self.world, fact).map_err(|text| (*name, text))?;
            }
        }
        i1_bystander_lives(&self.world).map_err(|text| ("i1_bystander_lives", text))?;
        self.account.judge(&self.world)?;
        Ok(goes_on)
    }

    /// Waits until everything is as desired and stays so.
    fn rest(&mut self) -> Result<(), Objection> {
        let deadline = self.world.now() + REST_WITHIN;
        loop {
            let overdue = self.world.now() >= deadline;
            match i8_as_wanted(&self.world) {
                Ok(()) => {
                    let writes = self.world.ledger.writes;
                    self.pass(self.world.now() + REST_FOR)?;
                    if self.world.ledger.writes == writes && i8_as_wanted(&self.world).is_ok() {
                        return Ok(());
                    }
                    if overdue {
                        let text = "it is as wanted, and goes on".to_owned();
                        return Err(("comes_to_rest", text));
                    }
                }
                Err(text) if overdue => return Err(("comes_to_rest", text)),
                Err(_) => {
                    self.step(deadline)?;
                }
            }
        }
    }
}

/// Returns the times of something repeated, before it ends.
fn times(interval: Duration, lasts: Duration) -> impl Iterator<Item = Duration> {
    let next = move |at: &Duration| Some(*at + interval);
    let times = iter::successors(Some(interval), next);
    times.take_while(move |at| *at + interval <= lasts)
}

fn rng_of(seed: u64) -> Rng {
    Rng::new(seed ^ u64::from_be_bytes(*b"troubled"))
}
