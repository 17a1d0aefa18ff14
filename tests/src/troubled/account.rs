//! The requirements of a troubled world: creates stay limited, and somebody is told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agent_fake::Kind;
use decree_api::v1::batch::Action;
use jiff::{SignedDuration, Timestamp};

use super::{
    expected::Expected,
    story::{Meddling, Objection, SET, Story, Trouble},
};
use crate::{
    facts::{Cause, Fact, Teller, Told},
    invariants::replicas,
    workloads::NAMESPACE,
    world::{ILL_SET, World},
};

/// A pod that ends earlier than this after its creation has not lasted. After a quiet time of this length, their count starts
/// again.
const LASTING: SignedDuration = SignedDuration::from_secs(60);
/// The minimum number of pods that a ReplicaSet may lose, and the maximum number that grants cancel within a minute.
const ALLOWANCE: usize = 20;
const GRANTED: usize = 16;

/// The maximum delay until a server sees an event: in a calm world, and in a world with stopped agents and broken watches.
const SHOWN_CALM: SignedDuration = SignedDuration::from_secs(2);
const SHOWN_ROUGH: SignedDuration = SignedDuration::from_secs(45);

/// The account of a world.
#[derive(Debug)]
pub(super) struct Account {
    /// The maximum desired replicas.
    wanted: usize,
    /// The number of creates that were decided or in flight at restores of the store, plus one for each restore.
    in_flight: usize,
    /// The maximum number of surplus pods that the agents created.
    surplus: usize,
    is_calm: bool,
    /// The maximum lifetime of a pod of which the server sees in time that it has not lasted.
    shown_within: SignedDuration,
    /// Whether only the troubles delete pods.
    deletes_nothing: bool,
    troubles: Vec<Trouble>,
    /// Whether the agents list again at some time, after a restore of the store or as their connections are cut every few seconds: a list
    /// does not show which pods are new.
    lists_again: bool,
    version: u64,
    /// The current replicas.
    pods: BTreeMap<String, Replica>,
    sessions: BTreeMap<String, Session>,
    /// The lives of agents that hold the ReplicaSet because of another controller, with the start of the hold.
    held: BTreeMap<u64, Timestamp>,
    /// The number of decided creates of each batch without an answer, by connection and number.
    decided: BTreeMap<(u64, u64), usize>,
    /// The newest connection with a batch, and the newest one from before the restore of the store, which does not see later
    /// events.
    newest: u64,
    blind: u64,
    expected: Expected,
}

/// A replica, with its start, and the session that created it.
#[derive(Debug)]
struct Replica {
    since: Timestamp,
    made_in: Option<String>,
}

/// The pods of a session that did not last.
#[derive(Debug, Default)]
struct Session {
    /// Their recent ends.
    ended: VecDeque<Timestamp>,
    is_told: bool,
}

impl Account {
    pub(super) fn new(story: &Story) -> Self {
        let has_deletes =
            |trouble: Trouble| !matches!(trouble, Trouble::Manner(_) | Trouble::Kills);
        Self {
            wanted: usize::try_from(story.replicas).unwrap_or_default(),
            in_flight: 0,
            surplus: 0,
            is_calm: story.is_calm(),
            shown_within: LASTING
                - if story.is_calm() {
                    SHOWN_CALM
                } else {
                    SHOWN_ROUGH
                },
            deletes_nothing: !story.troubles.iter().any(|it| has_deletes(it.trouble)),
            troubles: Vec::new(),
            lists_again: story.troubles.iter().any(|it| {
                it.trouble == Trouble::Meddles(Meddling::Cuts) || it.trouble.restore().is_some()
            }),
            version: 0,
            pods: BTreeMap::new(),
            sessions: BTreeMap::new(),
            held: BTreeMap::new(),
            decided: BTreeMap::new(),
            newest: 0,
            blind: 0,
            expected: Expected::default(),
        }
    }

    /// Notes a change of the desired replicas.
    pub(super) fn note_wanted(&mut self, replicas: i32) {
        self.wanted = self.wanted.max(usize::try_from(replicas).unwrap_or(0));
    }

    pub(super) fn begin(&mut self, trouble: Trouble) {
        self.troubles.push(trouble);
    }

    pub(super) fn end(&mut self, trouble: Trouble) {
        self.troubles.retain(|it| *it != trouble);
        if trouble == Trouble::OtherController {
            self.held.clear();
        }
        if matches!(trouble, Trouble::Manner(_)) {
            self.expected.forget();
        }
    }

    /// Whether a trouble has begun and not ended.
    pub(super) fn is_on(&self, trouble: Trouble) -> bool {
        self.troubles.contains(&trouble)
    }

    /// The maximum number of surplus pods that the agents created.
    pub(super) const fn surplus(&self) -> usize {
        self.surplus
    }

    /// Notes the end of all troubles.
    pub(super) fn expect_rest(&mut self) {
        self.troubles.clear();
    }

    pub(super) fn judge(&mut self, world: &World) -> Result<(), Objection> {
        for fact in &world.facts {
            self.judge_fact(world, fact)?;
        }
        if self.version != world.cluster.version() || !world.facts.is_empty() {
            self.version = world.cluster.version();
            self.follow_pods(world)?;
        }
        self.expected.judge(world).map_err(|text| ("told", text))
    }

    fn judge_fact(&mut self, world: &World, fact: &Fact) -> Result<(), Objection> {
        match fact {
            Fact::PodCreated { cause, .. } => self.judge_create(world, cause),
            Fact::PodDeleted { .. } if self.deletes_nothing => {
                Err(("nothing_lost", "a pod is deleted that is wanted".to_owned()))
            }
            Fact::Told { what, by } => {
                self.note_told(world.now(), *what, *by);
                Ok(())
            }
            Fact::PutBack {
                reached,
                creates,
                behind,
                watching,
            } => {
                let decided: usize = self.decided.values().sum();
                // The server also decides on events in flight; the first create of such a batch shows them.
                self.in_flight += decided.max(*creates) + 1;
                self.forget_pods();
                self.expected.put_back(world, *reached, *behind, watching);
                Ok(())
            }
            Fact::OlderList { connection } => {
                self.expected.older_list(world.now(), *connection);
                Ok(())
            }
            Fact::BatchSent {
                connection, batch, ..
            } => {
                self.newest = self.newest.max(*connection);
                if let Some(Action::Create(create)) = &batch.action {
                    let key = (*connection, batch.id);
                    self.decided.insert(key, create.names.len());
                }
                if self.is_calm {
                    self.expected.sent(world.now(), *connection, batch);
                }
                Ok(())
            }
            Fact::Answered {
                connection,
                batches,
            } => {
                for batch in batches {
                    if let Some(left) = self.decided.get_mut(&(*connection, *batch)) {
                        *left = left.saturating_sub(1);
                    }
                }
                self.expected.answered(world.now(), *connection, batches);
                Ok(())
            }
            Fact::SessionEnded {
                connection,
                refusal,
            } => {
                self.decided.retain(|(of, _), _| of != connection);
                self.expected.ended(*connection, refusal);
                Ok(())
            }
            Fact::PodDeleted { .. }
            | Fact::WriteBegan { .. }
            | Fact::Called { .. }
            | Fact::Dialed { .. }
            | Fact::ListBegan { .. }
            | Fact::Heard { .. }
            | Fact::ProtocolBroken(_) => Ok(()),
        }
    }

    fn judge_create(&mut self, world: &World, cause: &Cause) -> Result<(), Objection> {
        let set = |name| world.cluster.peek(Kind::ReplicaSet, NAMESPACE, name);
        if set(ILL_SET).is_some_and(|set| uid(set) == cause.set) {
            let text = "a pod is made that its ReplicaSet does not select".to_owned();
            return Err(("none_for_ill_sets", text));
        }
        let slack = SignedDuration::from_secs(1);
        let late = |since: &Timestamp| *since + slack < world.now();
        if self.is_calm && self.held.values().any(late) {
            let text = "a pod is made while the ReplicaSet is held".to_owned();
            return Err(("held", text));
        }
        // An unanswered create is retried under its name, and both take effect if somebody removes the first pod: decision 11.
        let is_repeated = |pod: &agent_fake::Object| {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            world.ledger.name_uses(name) > 1
        };
        let ours = |pod: &&agent_fake::Object| {
            world.ledger.ours.contains_key(&uid(pod)) && !is_repeated(pod)
        };
        let there = replicas(world, &cause.set).filter(ours).count();
        self.surplus = self.surplus.max(there.saturating_sub(self.wanted));
        if there > self.wanted + self.in_flight {
            let text = format!(
                "{there} pods of our making where {} are wanted",
                self.wanted
            );
            return Err(("surplus", text));
        }
        Ok(())
    }

    fn note_told(&mut self, now: Timestamp, what: Told, by: Teller) {
        match (what, by) {
            (Told::PodsDoNotLast, Teller::Session(connection)) => {
                let id = crate::actors::session_id(connection);
                self.sessions.entry(id).or_default().is_told = true;
            }
            (Told::OtherController, Teller::Agent(life)) => {
                self.held.entry(life).or_insert(now);
            }
            _ => {}
        }
        self.expected.told(what, by);
    }

    /// Forgets which session created which pod: after a restore, the pods come from elsewhere.
    fn forget_pods(&mut self) {
        self.pods.clear();
        self.blind = self.newest;
    }

    /// Notes new and deleted replicas.
    fn follow_pods(&mut self, world: &World) -> Result<(), Objection> {
        let now = world.now();
        let Some(set) = world.cluster.peek(Kind::ReplicaSet, NAMESPACE, SET) else {
            return Ok(());
        };
        let there: BTreeSet<_> = replicas(world, &uid(set)).map(uid).collect();
        for fact in &world.facts {
            if let Fact::PodCreated { cause, pod } = fact
                && cause.set == uid(set)
            {
                let made_in = Some(cause.session.clone());
                self.pods.insert(
                    uid(pod),
                    Replica {
                        since: now,
                        made_in,
                    },
                );
            }
        }
        for pod in &there {
            if !self.pods.contains_key(pod) {
                let made_in = None;
                self.pods.insert(
                    pod.clone(),
                    Replica {
                        since: now,
                        made_in,
                    },
                );
                self.note_other(world, pod);
            }
        }
        let gone = self.pods.keys().filter(|it| !there.contains(*it));
        let gone: Vec<_> = gone.cloned().collect();
        for pod in gone {
            let Some(Replica { since, made_in }) = self.pods.remove(&pod) else {
                continue;
            };
            let is_ours = world.ledger.deleted.contains(&pod);
            let is_known = !world.ledger.unannounced.contains(&pod);
            if let Some(session) = made_in
                && !is_ours
                && is_known
                && since + self.shown_within > now
            {
                self.end_early(session, now);
            }
        }
        Ok(())
    }

    /// Notes a pod from elsewhere: from another controller, or from a backup.
    fn note_other(&mut self, world: &World, pod: &str) {
        let by_other = self.troubles.contains(&Trouble::OtherController)
            && !world.ledger.ours.contains_key(pod);
        if by_other && self.is_calm && !self.lists_again {
            self.expected
                .other_controller(world, |life| self.held.contains_key(&life));
        }
    }

    /// Handles a pod of a session that has ended early. Somebody must be told once all creates wait: when the pods that are lost beyond the
    /// allowance are as many as the lacking ones. If more pods are desired than 20, all of them can end at once.
    fn end_early(&mut self, id: String, now: Timestamp) {
        let session = self.sessions.entry(id.clone()).or_default();
        session.ended.push_back(now);
        session.ended.retain(|at| *at + LASTING > now);
        let many = if self.wanted > ALLOWANCE {
            2 * self.wanted
        } else {
            ALLOWANCE
        };
        let allowed = many + GRANTED;
        let runs_on = |it: &Trouble| matches!(it, Trouble::RunsOn(_));
        let is_shown = number(&id) > self.blind && !self.troubles.iter().any(runs_on);
        if session.ended.len() >= allowed && !session.is_told && is_shown {
            self.expected.pods_do_not_last(now, number(&id));
        }
    }
}

fn number(session: &str) -> u64 {
    let number = session.strip_prefix("session-");
    number.and_then(|it| it.parse().ok()).unwrap_or(0)
}

fn uid(object: &agent_fake::Object) -> String {
    let uid = object["metadata"]["uid"].as_str();
    uid.unwrap_or_default().to_owned()
}
