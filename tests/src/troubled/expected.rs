//! The required notices, with their deadlines.

use std::{collections::BTreeMap, time::Duration};

use decree_api::v1;
use jiff::{SignedDuration, Timestamp};
use server_session::Refusal;

use crate::{
    actors::{DecisionServer, session_id},
    facts::{Teller, Told},
    oracle::operations,
    world::World,
};

/// The deadline of most notices.
const SOON: SignedDuration = SignedDuration::from_mins(1);
/// The time until an agent that asks for versions has asked.
const ASKED: SignedDuration = SignedDuration::from_secs(35);
/// The maximum time of a batch without an outcome, and the time after that until its session has ended.
const PATIENCE: SignedDuration = SignedDuration::from_mins(5);
const LOOK: SignedDuration = SignedDuration::from_secs(31);

/// The outstanding notices. A notice removes its expectation.
#[derive(Debug, Default)]
pub(super) struct Expected {
    news: BTreeMap<(Told, Teller), News>,
    /// Sessions with a list that is too old, by their connection.
    older: BTreeMap<u64, Timestamp>,
    /// Batches without outcomes, by connection and number: the time of the last outcome, and the number of missing ones.
    batches: BTreeMap<(u64, u64), (Timestamp, usize)>,
}

/// A required notice.
#[derive(Debug)]
struct News {
    since: Timestamp,
    by: Timestamp,
    /// The version that the store must not reach before an agent checks.
    below: Option<u64>,
}

impl Expected {
    /// Forgets the expectations of a replaced agent.
    pub(super) fn forget(&mut self) {
        self.older.clear();
        self.batches.clear();
    }

    /// Expects notices of a different cluster from agents that have seen the old state.
    pub(super) fn put_back(
        &mut self,
        world: &World,
        reached: u64,
        behind: Duration,
        watching: &[u64],
    ) {
        let since = world.now() + behind;
        for life in watching.iter().filter(|it| world.agents.contains_key(it)) {
            let news = News {
                since,
                by: since + SOON,
                below: Some(reached),
            };
            self.news
                .insert((Told::WentBack, Teller::Agent(*life)), news);
        }
    }

    pub(super) fn other_controller(&mut self, world: &World, has_told: impl Fn(u64) -> bool) {
        for life in world.agents.keys().filter(|life| !has_told(**life)) {
            let key = (Told::OtherController, Teller::Agent(*life));
            self.expect(world.now(), key);
        }
    }

    pub(super) fn pods_do_not_last(&mut self, now: Timestamp, connection: u64) {
        self.expect(now, (Told::PodsDoNotLast, Teller::Session(connection)));
    }

    fn expect(&mut self, now: Timestamp, key: (Told, Teller)) {
        self.news.entry(key).or_insert(News {
            since: now,
            by: now + SOON,
            below: None,
        });
    }

    pub(super) fn told(&mut self, what: Told, by: Teller) {
        self.news.remove(&(what, by));
    }

    pub(super) fn older_list(&mut self, now: Timestamp, connection: u64) {
        self.older.entry(connection).or_insert(now);
    }

    pub(super) fn sent(&mut self, now: Timestamp, connection: u64, batch: &v1::Batch) {
        let missing = (now, operations(batch));
        self.batches.insert((connection, batch.id), missing);
    }

    pub(super) fn answered(&mut self, now: Timestamp, connection: u64, batches: &[u64]) {
        for batch in batches {
            let key = (connection, *batch);
            if let Some((heard, missing)) = self.batches.get_mut(&key) {
                (*heard, *missing) = (now, missing.saturating_sub(1));
                if *missing == 0 {
                    self.batches.remove(&key);
                }
            }
        }
    }

    pub(super) fn ended(&mut self, connection: u64, refusal: &Refusal) {
        if matches!(refusal, Refusal::VersionsWentBack { .. }) {
            self.older.remove(&connection);
        }
        if matches!(refusal, Refusal::OutcomesMissing(_)) {
            self.batches.retain(|(of, _), _| *of != connection);
        }
    }

    /// Fails if a notice is overdue, unless its teller is gone.
    pub(super) fn judge(&mut self, world: &World) -> Result<(), String> {
        let now = world.now();
        self.news.retain(|(_, teller), news| {
            let is_overtaken = news.below.is_some_and(|reached| {
                now >= news.since && now < news.since + ASKED && world.cluster.version() >= reached
            });
            lives(world, *teller) && !is_overtaken
        });
        let overdue = self.news.iter().find(|(_, news)| news.by < now);
        if let Some(((what, teller), _)) = overdue {
            return Err(format!("{teller:?} does not tell: {}", what.as_str()));
        }
        self.older
            .retain(|connection, _| lives(world, Teller::Session(*connection)));
        if let Some((connection, _)) = self.older.iter().find(|(_, at)| **at + SOON < now) {
            let id = session_id(*connection);
            return Err(format!("{id} goes on after a list that is older"));
        }
        self.judge_batches(world)
    }

    fn judge_batches(&mut self, world: &World) -> Result<(), String> {
        let now = world.now();
        let late = |heard: &Timestamp, patience| *heard + patience < now;
        let mut silent = self.batches.iter();
        // Nothing else ends the session of a calm world at that time.
        let patience = PATIENCE - SignedDuration::from_secs(1);
        let found = silent.find(|((connection, _), (heard, _))| {
            let is_over = !lives(world, Teller::Session(*connection));
            late(heard, PATIENCE + LOOK) || is_over && late(heard, patience)
        });
        if let Some(((connection, batch), _)) = found {
            let id = session_id(*connection);
            return Err(format!(
                "nobody is told that batch {batch} of {id} has no outcome"
            ));
        }
        self.batches
            .retain(|(connection, _), _| lives(world, Teller::Session(*connection)));
        Ok(())
    }
}

/// Whether the teller of a notice exists.
fn lives(world: &World, teller: Teller) -> bool {
    match teller {
        Teller::Session(connection) => {
            let mut servers = world.servers.iter().flatten();
            let count = |it: &DecisionServer| it.session_count(|of| of == connection);
            servers.any(|it| count(it) > 0)
        }
        Teller::Agent(life) => world.agents.contains_key(&life) && !world.is_paused(life),
    }
}
