//! Agents that share a cluster, with a clock and a store that are stepped by hand.

use super::*;
use crate::{api::ApiError, backoff::after, lease::Command};

const START: Timestamp = Timestamp::UNIX_EPOCH;
const DURATION: u64 = 15;

/// The Leases of a namespace, as an API server keeps them.
#[derive(Default)]
struct Store {
    leases: BTreeMap<String, Record>,
    version: u64,
}

/// One agent: its view, and its Leases.
struct Agent {
    assignment: Assignment,
    member: Lease,
    shards: BTreeMap<u16, Lease>,
    alive: bool,
}

struct World {
    store: Store,
    agents: Vec<Agent>,
    now: Timestamp,
    /// How often a shard was taken.
    moves: usize,
}

fn config(identity: &str, shards: u16) -> AssignmentConfig {
    AssignmentConfig {
        lease: lease::LeaseConfig {
            identity: identity.into(),
            namespace: "decree".into(),
            name: "decree-agent".into(),
            duration: Duration::from_secs(DURATION),
            margin: Duration::from_secs(8),
            shared: false,
        },
        shards: NonZeroU16::new(shards).expect("not 0"),
    }
}

fn at(seconds: u64) -> Timestamp {
    after(START, Duration::from_secs(seconds))
}

// === impl Store ===

impl Store {
    fn answer(&mut self, name: &str, command: Command) -> Result<Record, ApiError> {
        let refused = |code| {
            Err(ApiError {
                code: Some(code),
                ..ApiError::default()
            })
        };
        let record = match (command, self.leases.get(name)) {
            (Command::Read, Some(record)) => return Ok(record.clone()),
            (Command::Read | Command::Replace(_), None) => return refused(404),
            (Command::Create(_), Some(_)) => return refused(409),
            (Command::Replace(record), Some(old))
                if record.resource_version != old.resource_version =>
            {
                return refused(409);
            }
            (Command::Create(record) | Command::Replace(record), _) => record,
        };
        self.version += 1;
        let stored = Record {
            resource_version: self.version.to_string(),
            object: b"stored".to_vec(),
            ..record
        };
        self.leases.insert(name.to_owned(), stored.clone());
        Ok(stored)
    }

    fn step(&mut self, name: &str, lease: &mut Lease, now: Timestamp) {
        while let Some(command) = lease.poll_command(now) {
            let answer = self.answer(name, command);
            lease.handle_answer(now, answer);
        }
    }
}

// === impl World ===

impl World {
    fn new() -> Self {
        Self {
            store: Store::default(),
            agents: Vec::new(),
            now: START,
            moves: 0,
        }
    }

    fn join(&mut self, identity: &str, shards: u16) {
        let config = config(identity, shards);
        self.agents.push(Agent {
            member: Lease::new(config.member()),
            assignment: Assignment::new(config),
            shards: BTreeMap::new(),
            alive: true,
        });
    }

    fn join_all(&mut self, identities: &[&str], shards: u16) {
        identities.iter().for_each(|it| self.join(it, shards));
    }

    /// Advances one second, in which every live agent has its turn.
    fn second(&mut self) {
        self.now = after(self.now, Duration::from_secs(1));
        for agent in self.agents.iter_mut().filter(|agent| agent.alive) {
            agent.turn(&mut self.store, self.now, &mut self.moves);
        }
        self.assert_each_shard_is_held_once();
    }

    fn seconds(&mut self, count: u64) {
        (0..count).for_each(|_| self.second());
    }

    fn assert_each_shard_is_held_once(&self) {
        let mut held = BTreeSet::new();
        for shard in self.agents.iter().flat_map(|agent| agent.led(self.now)) {
            assert!(
                held.insert(shard),
                "shard {shard} is held twice at {}",
                self.now
            );
        }
    }

    /// The number of shards of each live agent.
    fn counts(&self) -> Vec<usize> {
        let alive = self.agents.iter().filter(|agent| agent.alive);
        alive.map(|agent| agent.led(self.now).count()).collect()
    }
}

// === impl Agent ===

impl Agent {
    fn led(&self, now: Timestamp) -> impl Iterator<Item = u16> {
        let leads = self.shards.iter();
        leads.filter_map(move |(shard, lease)| lease.lead(now).map(|_| *shard))
    }

    fn turn(&mut self, store: &mut Store, now: Timestamp, moves: &mut usize) {
        let config = self.assignment.config.clone();
        if self.member.is_lost(now) {
            self.member = Lease::new(config.member());
        }
        store.step(&config.member().name, &mut self.member, now);
        self.shards.retain(|_, lease| !lease.is_lost(now));
        for (shard, lease) in &mut self.shards {
            store.step(&config.shard(*shard).name, lease, now);
        }
        let leases = store.leases.iter();
        let leases = leases.map(|(name, record)| (name.clone(), record.clone()));
        self.assignment.handle_list(now, leases.collect());
        let plan = self.assignment.plan(now);
        for shard in plan.give_back {
            let lease = self.shards.remove(&shard);
            if let Some(record) = lease.and_then(|mut lease| lease.release(now)) {
                let _ = store.answer(&config.shard(shard).name, Command::Replace(record));
            }
        }
        for shard in plan.take {
            if self.shards.contains_key(&shard) {
                continue;
            }
            let mut lease = self.assignment.lease_of(now, shard);
            store.step(&config.shard(shard).name, &mut lease, now);
            *moves += usize::from(lease.lead(now).is_some());
            self.shards.insert(shard, lease);
        }
    }
}

#[test]
fn one_agent_takes_all_shards() {
    let mut world = World::new();
    world.join("a", 4);
    world.seconds(2);
    assert_eq!(world.counts(), [4]);
}

#[test]
fn agents_that_join_are_given_their_share_and_no_shard_moves_that_need_not() {
    let mut world = World::new();
    world.join("a", 8);
    world.seconds(3);
    world.join("b", 8);
    world.seconds(4);
    assert_eq!(world.counts(), [4, 4]);
    world.join("c", 8);
    world.seconds(4);
    assert_eq!(world.counts(), [3, 3, 2]);
    assert_eq!(world.moves, 8 + 4 + 2);
}

#[test]
fn shards_of_an_agent_that_is_lost_are_taken_evenly_within_lease_and_two_seconds() {
    let mut world = World::new();
    world.join_all(&["a", "b", "c", "d"], 12);
    world.seconds(30);
    assert_eq!(world.counts(), [3, 3, 3, 3]);
    world.agents[1].alive = false;
    let moves = world.moves;
    world.seconds(DURATION + 2);
    assert_eq!(world.counts(), [4, 4, 4]);
    assert_eq!(world.moves, moves + 3, "only its shards move");
    world.seconds(60);
    assert_eq!(world.moves, moves + 3, "and none after that");
}

#[test]
fn agents_of_whom_no_lease_speaks_any_more_are_forgotten() {
    let mut assignment = Assignment::new(config("a", 1));
    let shard = assignment.config.shard(0).name;
    for number in 0..1_000 {
        let record = Record {
            holder: format!("agent-{number}"),
            duration: Duration::from_secs(DURATION),
            acquired: None,
            renewed: None,
            transitions: 0,
            resource_version: String::new(),
            object: Vec::new(),
        };
        assignment.handle_list(at(number * 60), vec![(shard.clone(), record)]);
        let held = assignment.plan(at(number * 60));
        assert_eq!(held, Plan::default(), "its own Lease is not there");
        let _ = assignment.plan(at(number * 60 + DURATION));
        assert!(assignment.lost.contains(&format!("agent-{number}")));
    }
    assert_eq!(assignment.lost.len(), 1);
}

#[test]
fn agent_that_wakes_after_its_leases_ran_out_holds_nothing() {
    let mut world = World::new();
    world.join_all(&["a", "b"], 4);
    world.seconds(20);
    world.agents[0].alive = false;
    world.seconds(DURATION + 5);
    assert_eq!(world.counts(), [4]);
    // Each second checks that no shard is held twice.
    world.agents[0].alive = true;
    world.seconds(10);
    assert_eq!(world.counts(), [2, 2]);
}

#[test]
fn agents_beyond_the_number_of_shards_stand_by() {
    let mut world = World::new();
    world.join_all(&["a", "b", "c"], 2);
    world.seconds(20);
    let mut counts = world.counts();
    counts.sort_unstable();
    assert_eq!(counts, [0, 1, 1]);
}

#[test]
fn agent_that_nobody_sees_takes_nothing() {
    let mut assignment = Assignment::new(config("a", 4));
    assignment.handle_list(START, Vec::new());
    assert_eq!(assignment.plan(START), Plan::default());
}

#[test]
fn leases_of_agents_long_gone_are_deleted_and_of_others_never() {
    let mut world = World::new();
    world.join_all(&["a", "b"], 2);
    world.seconds(2);
    let foreign = Record {
        holder: "somebody".into(),
        ..Record::default()
    };
    for name in ["decree-agent", "decree-agent-x", "other-member-x"] {
        world.store.leases.insert(name.into(), foreign.clone());
    }
    world.agents[1].alive = false;
    world.seconds(DURATION * 10);
    let names = |world: &World| {
        let forgotten = world.agents[0].assignment.forgotten(world.now);
        let names = forgotten.map(|(name, _)| name.to_owned());
        names.collect::<Vec<_>>()
    };
    assert!(names(&world).is_empty());
    world.seconds(3);
    assert_eq!(names(&world), ["decree-agent-member-b"]);
}

#[test]
fn layouts_exclude_each_other_and_agents_of_one_share_its_lease() {
    let mut store = Store::default();
    let [four, six] = [4, 6].map(|shards| config("a", shards).layout());
    let [mut first, mut second] = [Lease::new(four.clone()), Lease::new(four.clone())];
    let mut other = Lease::new(six);
    for seconds in 0..40 {
        let now = at(seconds);
        for lease in [&mut first, &mut second, &mut other] {
            store.step(&four.name, lease, now);
        }
        let ends = [&first, &second].map(|it| it.lead(now).map(|lead| lead.until));
        assert!(
            ends.iter().all(|end| *end > Some(at(seconds + 6))),
            "{ends:?}"
        );
        assert!(
            other.lead(now).is_none(),
            "a layout waits for the one before"
        );
    }
    assert!(
        (18..=22).contains(&store.version),
        "what one renews is renewed for both: {} writes in 40 s",
        store.version
    );
    let taken = (40..70).map(at).find(|now| {
        store.step(&four.name, &mut other, *now);
        other.lead(*now).is_some()
    });
    let taken = taken.expect("the other layout leads");
    assert!((at(53)..=at(57)).contains(&taken), "{taken}");
    assert!(
        first.is_lost(taken) && second.is_lost(taken),
        "they overlap"
    );
    assert_eq!(other.release(taken), None, "others may need it");
}

/// Restores the Leases, and lets the agents share the cluster again. Each second checks that no shard is held twice.
fn restore(world: &mut World, leases: BTreeMap<String, Record>, version: u64) {
    (world.store.leases, world.store.version) = (leases, version);
    // Agents without shards are faster.
    world.agents.reverse();
    world.seconds(DURATION * 3);
    assert_eq!(world.counts().iter().sum::<usize>(), 8, "all are served");
}

#[test]
fn leases_that_are_put_back_make_no_shard_served_twice() {
    let mut world = World::new();
    world.join("a", 8);
    world.seconds(20);
    let (mut leases, version) = (world.store.leases.clone(), world.store.version);
    world.join_all(&["b", "c"], 8);
    world.seconds(20);
    assert_eq!(world.counts(), [3, 3, 2]);
    restore(&mut world, leases.clone(), version);
    world.seconds(20);
    for record in leases.values_mut() {
        record.holder.clear();
        record.duration = Duration::from_secs(1);
    }
    restore(&mut world, leases, version);
}

#[test]
fn leases_that_are_lost_make_no_shard_served_twice() {
    let mut world = World::new();
    world.join_all(&["a", "b", "c"], 8);
    world.seconds(20);
    restore(&mut world, BTreeMap::new(), 0);
}

#[test]
fn lease_of_a_shard_that_somebody_deletes_is_waited_for_and_keeps_its_number() {
    let mut world = World::new();
    world.join_all(&["a", "b"], 2);
    world.seconds(20);
    let name = world.agents[0].assignment.config.shard(0).name;
    let before = world.store.leases[&name].transitions;
    world
        .agents
        .iter_mut()
        .for_each(|agent| agent.shards.clear());
    world.store.leases.remove(&name);
    world.second();
    assert!(
        !world.store.leases.contains_key(&name),
        "it has not run out"
    );
    world.seconds(DURATION + 2);
    assert!(world.store.leases[&name].transitions >= before);
}
