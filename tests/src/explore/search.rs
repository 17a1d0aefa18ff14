//! The search: every reachable state, nearest first, each visited once.

use std::{
    collections::HashSet,
    fmt,
    hash::{Hash as _, Hasher},
    time::{Duration, Instant},
};

use jiff::Timestamp;

use super::{
    bounds::{Bounds, Mutant},
    choice::{Choice, Choices, choices},
    describe::describe,
    happen::{begin, happen},
    machines::Machines,
    state::State,
};

/// The result of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// The number of states.
    pub states: usize,
    /// The number of transitions between states.
    pub transitions: usize,
    /// The longest distance of a state from the first.
    pub depth: usize,
    /// The number of states at rest, as desired.
    pub at_rest: usize,
    /// The duration.
    pub took: Duration,
}

/// Why a search failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A broken promise, on a shortest path.
    Violation {
        /// What is wrong.
        text: String,
        /// The events from the first state on.
        path: Vec<String>,
    },
    /// More states than the search may visit.
    TooMany(usize),
}

/// A search under way.
struct Search<'a> {
    bounds: &'a Bounds,
    machines: Machines,
    first: State,
    /// For each state, the state before it on a shortest path, and the event there.
    ways: Vec<(usize, Choice)>,
    seen: HashSet<u128>,
    searched: Searched,
}

/// Visits every state of a bounded world, at most `states_max`.
///
/// # Errors
/// The nearest state with a broken promise, or too many states.
pub fn search(
    bounds: &Bounds,
    mutant: Option<Mutant>,
    states_max: usize,
) -> Result<Searched, Failure> {
    let began = Instant::now();
    let mut machines = Machines::new(mutant);
    let first = settled(bounds, &mut machines)?;
    let mut search = Search {
        bounds,
        machines,
        seen: HashSet::from([digest(&first)]),
        ways: vec![(0, Choice::TimePasses(start()))],
        first,
        searched: Searched::default(),
    };
    let mut nearest = vec![(0, search.first.clone())];
    while !nearest.is_empty() {
        let mut next = Vec::new();
        for (number, state) in nearest {
            search.extend(number, &state, &mut next)?;
        }
        if search.ways.len() > states_max {
            return Err(Failure::TooMany(states_max));
        }
        search.searched.depth += usize::from(!next.is_empty());
        nearest = next;
    }
    search.searched.states = search.ways.len();
    search.searched.took = began.elapsed();
    Ok(search.searched)
}

// === impl Search ===

impl Search<'_> {
    /// Adds the new states next to a state.
    fn extend(
        &mut self,
        number: usize,
        state: &State,
        next: &mut Vec<(usize, State)>,
    ) -> Result<(), Failure> {
        let found = match choices(&self.machines, state, start()) {
            Choices::Some(found) => found,
            Choices::AtRest(found) => {
                self.searched.at_rest += 1;
                found
            }
            Choices::Stuck(text) => return Err(self.violation(text, number, None)),
        };
        for choice in found {
            self.searched.transitions += 1;
            let after = match happen(self.bounds, &mut self.machines, state, choice) {
                Ok(after) => after,
                Err(text) => return Err(self.violation(text, number, Some(choice))),
            };
            if self.seen.insert(digest(&after)) {
                next.push((self.ways.len(), after));
                self.ways.push((number, choice));
            }
        }
        Ok(())
    }

    /// Repeats a shortest path to a state, and describes its events.
    fn violation(&mut self, text: String, mut number: usize, last: Option<Choice>) -> Failure {
        let mut way: Vec<_> = last.into_iter().collect();
        while number != 0 {
            let (before, choice) = self.ways[number];
            way.push(choice);
            number = before;
        }
        let mut state = self.first.clone();
        let mut path = Vec::new();
        for choice in way.into_iter().rev() {
            path.push(describe(self.bounds, &self.machines, &state, choice));
            if let Ok(after) = happen(self.bounds, &mut self.machines, &state, choice) {
                state = after;
            }
        }
        Failure::Violation { text, path }
    }
}

/// The first state of the search: an agent leads, its session is open, all is as desired, and nothing is in flight.
fn settled(bounds: &Bounds, machines: &mut Machines) -> Result<State, Failure> {
    let mut state = begin(bounds, machines, start());
    let mut path = Vec::new();
    loop {
        let choice = match choices(machines, &state, start()) {
            Choices::Some(found) => found[0],
            Choices::AtRest(_) => break,
            Choices::Stuck(text) => return Err(Failure::Violation { text, path }),
        };
        path.push(describe(bounds, machines, &state, choice));
        state = match happen(bounds, machines, &state, choice) {
            Ok(state) => state,
            Err(text) => return Err(Failure::Violation { text, path }),
        };
    }
    for process in &mut state.agents {
        process.crashes = bounds.agent_crashes;
    }
    for server in &mut state.servers {
        server.crashes = bounds.server_crashes;
    }
    state.acts.fill(true);
    Ok(State {
        broken_connections: bounds.broken_connections,
        lost_answers: bounds.lost_answers,
        pauses: bounds.pauses,
        ..state
    })
}

const fn start() -> Timestamp {
    Timestamp::constant(1_767_225_600, 0)
}

/// The digest of a state. With 10^7 states, two have the same digest with a chance of one in 10^24.
fn digest(state: &State) -> u128 {
    let mut hasher = WideHasher(0);
    state.hash(&mut hasher);
    hasher.0
}

/// Hashes to 128 bits, by multiplication.
struct WideHasher(u128);

// === impl WideHasher ===

impl WideHasher {
    const fn mix(&mut self, word: u64) {
        let mixed = (self.0 ^ word as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = mixed ^ (mixed >> 61);
    }
}

impl Hasher for WideHasher {
    fn finish(&self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }
}

// === impl Searched ===

impl fmt::Display for Searched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            states,
            transitions,
            depth,
            at_rest,
            took,
        } = self;
        write!(
            f,
            "{states} states, {transitions} transitions, depth {depth}, {at_rest} at rest, {:.1} s",
            took.as_secs_f64()
        )
    }
}

// === impl Failure ===

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation { text, path } => {
                writeln!(f, "{text}, after {} steps:", path.len())?;
                let mut steps = path.iter().enumerate();
                steps.try_for_each(|(number, step)| writeln!(f, "{:>4}. {step}", number + 1))
            }
            Self::TooMany(most) => write!(f, "not searched whole: more than {most} states"),
        }
    }
}
