//! The Leases of agents with and without shards, while their number changes: the real machines, without agents.
//!
//! A process holds the Lease with its number of shards and the Lease of its shard, or the Lease of the whole cluster. Processes die,
//! pause and stop, and requests are refused or lose their answers. After each step, a check ensures that no other process may write
//! in the namespaces of one that may, and that no create of another can still take effect there.

use std::{collections::BTreeMap, num::NonZeroU16, time::Duration};

use agent_core::{
    api::ApiError,
    lease::{CREATE_TIMEOUT_MIN, Command, Lease, LeaseConfig, Record, shard::Shard},
};
use jiff::Timestamp;

use crate::{lease_api, rng::Rng, schedule::Schedule};

const LEASE: Duration = Duration::from_secs(9);
const MARGIN: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(100);
/// The maximum transit time of a request or an answer.
const TRANSIT_MAX: Duration = Duration::from_millis(200);
/// The number of refused requests per thousand, and of unanswered ones.
const FAULTS: u64 = 20;
/// The processes for each shard.
const RIVALS: u16 = 2;
/// The numbers of shards, one after the other; 0 for the whole cluster.
const LAYOUTS: [u16; 4] = [0, 2, 0, 3];
/// The maximum time after a loss until a rival serves the shard: the Lease, two reads of it, and their transit.
const TAKE_OVER_WITHIN: Duration = Duration::from_millis(9_000 + 2 * 1_200 + 1_000);

listed! {
    /// A break that the check must find.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Mutant {
        /// All mutants.
        ALL: [
            /// A process ignores the Lease with its number of shards.
            IgnoreLayout,
            /// A process takes a Lease that another holds.
            TakeHeldLease,
            /// A process does not know how late a create may take effect.
            IgnoreMargin,
            /// A process gives its Lease back before its creates have ended.
            GiveBackEarly,
        ]
    }
}

/// Processes, and their Leases on the API server.
struct Layouts {
    rng: Rng,
    mutant: Option<Mutant>,
    faults: u64,
    leases: BTreeMap<String, Record>,
    schedule: Schedule<Happening>,
    /// The present number of shards; 0 for the whole cluster.
    count: u16,
    lives: u64,
    processes: BTreeMap<u64, Process>,
    /// The part of each ended process, and when its last create may take effect.
    ended: Vec<(Option<Shard>, Timestamp)>,
}

struct Process {
    /// `None` for the whole cluster.
    shard: Option<Shard>,
    /// In the order in which they are taken.
    leases: Vec<Held>,
    /// When its last create may take effect.
    creates_until: Timestamp,
    paused_until: Timestamp,
    stops_at: Option<Timestamp>,
    /// Whether no other takes its place.
    is_last: bool,
}

struct Held {
    name: String,
    lease: Lease,
}

enum Happening {
    Starts(Option<Shard>),
    Asked(u64, String, Command),
    Answered(u64, String, Result<Record, ApiError>),
}

/// Changes the number of shards several times. Returns how often a process began to write.
///
/// # Errors
/// The failure.
pub fn run(seed: u64, mutant: Option<Mutant>) -> Result<usize, String> {
    let mut layouts = Layouts {
        rng: Rng::new(seed),
        mutant,
        faults: FAULTS,
        leases: BTreeMap::new(),
        schedule: Schedule::new(Timestamp::UNIX_EPOCH),
        count: 0,
        lives: 0,
        processes: BTreeMap::new(),
        ended: Vec::new(),
    };
    let mut writers = 0;
    for count in LAYOUTS {
        layouts.begin(count);
        for _ in 0..8 {
            writers += layouts.run(5 * LEASE / 8)?;
            layouts.harm_one();
        }
    }
    layouts.faults = 0;
    writers += layouts.run(5 * LEASE)?;
    let serving: Vec<_> = layouts.writers().collect();
    layouts.is_served()?;
    let life = *layouts.rng.pick(&serving);
    layouts.end(life);
    layouts.run(TAKE_OVER_WITHIN)?;
    layouts.is_served()?;
    Ok(writers)
}

impl Layouts {
    /// Starts the processes of another number of shards, and ends those before them.
    fn begin(&mut self, count: u16) {
        self.count = count;
        let shards = (0..count.max(1)).map(|index| Shard::new(index, NonZeroU16::new(count)?));
        for shard in (0..RIVALS).flat_map(|_| shards.clone()) {
            let delay = self.rng.delay(LEASE / 3);
            self.schedule.after(delay, Happening::Starts(shard));
        }
        let now = self.schedule.now();
        let mut died = Vec::new();
        for (life, process) in &mut self.processes {
            process.is_last = true;
            match self.rng.between(0, 2) {
                0 => died.push(*life),
                1 => process.paused_until = now + self.rng.delay(2 * LEASE),
                _ => {}
            }
            process.stops_at = Some(now + self.rng.delay(LEASE / 2));
        }
        died.into_iter().for_each(|life| self.end(life));
    }

    /// Kills, pauses or stops a process; another takes its place.
    fn harm_one(&mut self) {
        let lives: Vec<_> = self.processes.keys().copied().collect();
        if lives.is_empty() {
            return;
        }
        let (life, now) = (*self.rng.pick(&lives), self.schedule.now());
        let (kind, pause) = (self.rng.between(0, 2), self.rng.delay(2 * LEASE));
        let delay = self.rng.delay(LEASE / 9);
        match self.processes.get_mut(&life) {
            Some(process) if kind == 0 => process.paused_until = now + pause,
            Some(process) if kind == 1 => process.stops_at = Some(now + delay),
            Some(_) | None => self.replace(life),
        }
    }

    /// Runs for a time. Returns how often a process began to write.
    fn run(&mut self, time: Duration) -> Result<usize, String> {
        let end = self.schedule.now() + time;
        let mut begun = 0;
        while self.schedule.now() < end {
            let now = self.schedule.now() + STEP;
            let before: Vec<_> = self.writers().collect();
            while self.schedule.next_at().is_some_and(|at| at <= now) {
                let happening = self.schedule.pop().expect("one is due");
                self.handle(happening);
            }
            self.schedule.arrive(now);
            self.wake();
            begun += self.writers().filter(|life| !before.contains(life)).count();
            self.check()?;
        }
        Ok(begun)
    }

    fn handle(&mut self, happening: Happening) {
        let now = self.schedule.now();
        match happening {
            Happening::Starts(shard) => {
                if shard.map_or(0, |shard| shard.count().get()) == self.count {
                    self.start(shard);
                }
            }
            Happening::Asked(life, name, command) => {
                let answer = if self.rng.chance(self.faults) {
                    Err(ApiError::no_answer("refused"))
                } else {
                    lease_api::execute(self.leases.get(&name), &command)
                };
                if let Ok(record) = &answer {
                    self.leases.insert(name.clone(), record.clone());
                }
                let is_lost = self.rng.chance(self.faults);
                let lost = Err(ApiError::no_answer("context deadline exceeded"));
                let answer = if is_lost { lost } else { answer };
                let delay = self.rng.delay(TRANSIT_MAX);
                let answered = Happening::Answered(life, name, answer);
                self.schedule.after(delay, answered);
            }
            Happening::Answered(life, name, mut answer) => {
                let Some(process) = self.processes.get_mut(&life) else {
                    return;
                };
                if process.paused_until > now {
                    let delay = Duration::try_from(process.paused_until.duration_since(now));
                    let again = Happening::Answered(life, name, answer);
                    return self.schedule.after(delay.unwrap_or_default(), again);
                }
                for held in process.leases.iter_mut().filter(|it| it.name == name) {
                    let takes = self.mutant == Some(Mutant::TakeHeldLease);
                    if let (true, Ok(record)) =
                        (takes && held.lease.lead(now).is_none(), &mut answer)
                    {
                        record.holder.clear();
                    }
                    held.lease.handle_answer(now, answer.clone());
                }
            }
        }
    }

    fn start(&mut self, shard: Option<Shard>) {
        self.lives += 1;
        let ignores_margin = self.mutant == Some(Mutant::IgnoreMargin);
        let whole = LeaseConfig {
            identity: format!("agent-{}", self.lives),
            namespace: "decree".into(),
            name: "decree-agent".into(),
            duration: LEASE,
            margin: if ignores_margin {
                Duration::ZERO
            } else {
                MARGIN
            },
            shared: false,
        };
        let configs = match shard {
            None => vec![whole],
            Some(shard) if self.mutant == Some(Mutant::IgnoreLayout) => vec![shard.lease(&whole)],
            Some(shard) => vec![shard.layout_lease(&whole), shard.lease(&whole)],
        };
        let held = |config: LeaseConfig| Held {
            name: config.name.clone(),
            lease: Lease::new(config),
        };
        let process = Process {
            shard,
            leases: configs.into_iter().map(held).collect(),
            creates_until: Timestamp::MIN,
            paused_until: Timestamp::MIN,
            stops_at: None,
            is_last: false,
        };
        self.processes.insert(self.lives, process);
    }

    /// Lets every process that is awake do what is due.
    fn wake(&mut self) {
        let now = self.schedule.now();
        let awake = self
            .processes
            .iter()
            .filter(|(_, it)| it.paused_until <= now);
        let awake: Vec<_> = awake.map(|(life, _)| *life).collect();
        for life in awake {
            let gives_back_early = self.mutant == Some(Mutant::GiveBackEarly);
            let Some(process) = self.processes.get_mut(&life) else {
                continue;
            };
            if process.leases.iter().any(|it| it.lease.is_lost(now)) {
                self.replace(life);
                continue;
            }
            let is_due = process
                .stops_at
                .is_some_and(|at| at <= now || gives_back_early);
            if is_due {
                if !gives_back_early {
                    process.creates_until = now;
                }
                let released = process.leases.last_mut().and_then(|it| {
                    let record = it.lease.release(now)?;
                    Some((it.name.clone(), record))
                });
                self.replace(life);
                if let Some((name, record)) = released {
                    self.ask(life, name, Command::Replace(record));
                }
                continue;
            }
            if let Some(until) = process.writes_until(now)
                && now + CREATE_TIMEOUT_MIN <= until
            {
                process.creates_until = process.creates_until.max(until + MARGIN);
            }
            let mut asked = Vec::new();
            for held in &mut process.leases {
                let command = held.lease.poll_command(now);
                asked.extend(command.map(|command| (held.name.clone(), command)));
                if held.lease.lead(now).is_none() {
                    break;
                }
            }
            for (name, command) in asked {
                self.ask(life, name, command);
            }
        }
    }

    fn ask(&mut self, life: u64, name: String, command: Command) {
        let delay = self.rng.delay(TRANSIT_MAX);
        let asked = Happening::Asked(life, name, command);
        self.schedule.after(delay, asked);
    }

    /// Ends a process, which another replaces unless its number of shards is over.
    fn replace(&mut self, life: u64) {
        let process = &self.processes[&life];
        if !process.is_last {
            let starts = Happening::Starts(process.shard);
            let delay = self.rng.delay(LEASE / 3);
            self.schedule.after(delay, starts);
        }
        self.end(life);
    }

    fn end(&mut self, life: u64) {
        let ended = self.processes.remove(&life);
        self.ended
            .extend(ended.map(|it| (it.shard, it.creates_until)));
    }

    fn writers(&self) -> impl Iterator<Item = u64> {
        let now = self.schedule.now();
        let writers = self.processes.iter();
        let writers = writers.filter(move |(_, it)| it.writes_until(now).is_some());
        writers.map(|(life, _)| *life)
    }

    fn check(&mut self) -> Result<(), String> {
        let now = self.schedule.now();
        self.ended.retain(|(_, until)| *until > now);
        for life in self.writers() {
            let shard = self.processes[&life].shard;
            let others = self.processes.iter().filter(|(other, _)| **other != life);
            for (other, process) in others.filter(|(_, it)| overlap(it.shard, shard)) {
                if process.writes_until(now).is_some() || process.creates_until > now {
                    return Err(format!(
                        "{life} and {other} may write in {shard:?} at {now}"
                    ));
                }
            }
            let mut ended = self.ended.iter();
            if let Some((_, until)) = ended.find(|(part, _)| overlap(*part, shard)) {
                return Err(format!(
                    "{life} may write in {shard:?} at {now}, and a create may take effect until {until}"
                ));
            }
        }
        Ok(())
    }

    /// Checks that each shard of the last layout has its process.
    fn is_served(&self) -> Result<(), String> {
        let (served, all) = (self.writers().count(), LAYOUTS[LAYOUTS.len() - 1]);
        let is_served = served == usize::from(all);
        is_served
            .then_some(())
            .ok_or_else(|| format!("{served} shards of {all} are served"))
    }
}

impl Process {
    /// Returns until when its creates may run; `None` if it may not write.
    fn writes_until(&self, now: Timestamp) -> Option<Timestamp> {
        let mut leads = self.leases.iter().map(|it| it.lease.lead(now));
        leads.try_fold(Timestamp::MAX, |least, lead| {
            Some(least.min(lead?.creates_until))
        })
    }
}

/// Whether two parts of a cluster have namespaces in common.
fn overlap(one: Option<Shard>, other: Option<Shard>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.count() != other.count() || one == other,
        (None, _) | (_, None) => true,
    }
}
