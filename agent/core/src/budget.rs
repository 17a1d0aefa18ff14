//! The limits of pods created and deleted in a minute, for any server.
//!
//! 1. Each operation counts for its ReplicaSet and the cluster, for a minute from its start.
//! 2. A limit is a number, a percentage of pods, or both together. A percentage is of the most desired pods in that minute for creates, and
//!    of the most active pods for deletes.
//! 3. A percentage of the cluster leaves out the ReplicaSet with the most operations: scaling one ReplicaSet to 0 is no mass deletion.
//! 4. The budget reports or refuses an operation beyond a limit. A refusal holds the scope: no operation of its kind starts there.
//! 5. A pod of a ReplicaSet that another controller creates holds that ReplicaSet: two controllers undo what the other does. A user who may
//!    create pods in a namespace can feign another controller, so such a pod holds no other ReplicaSet, and only one in its namespace.
//! 6. A hold ends when a person resumes it, or when its ReplicaSet is deleted. Counting then begins at zero.
//!
//! The rules of `execute` bound how far a server can go; the budget bounds how fast.

use std::collections::{BTreeMap, HashSet, VecDeque};

use decree_api::{
    causes::{HELD_BY_BUDGET, HELD_BY_BUDGET_OF_CLUSTER, OTHER_CONTROLLER},
    v1,
};
use jiff::Timestamp;

pub use self::{
    limit::{Action, BudgetConfig, Limit, LimitError, Limits},
    scope::{Scope, Verb},
};
use self::{
    resume::Extent,
    window::{BUCKET, Count, Window},
};
use crate::{
    api::{display, object_ref},
    pace::since,
    recorder::{Note, Reason},
    refusal::{Refusal, Rule},
};

/// The prefix of the detail of a hold that another controller caused.
const AT_WORK: &str = "another controller is at work: ";

/// The longest name of a writer in Kubernetes; longer names are cut.
const WRITER_BYTES_MAX: usize = 128;

/// A scope in which operations of a kind do not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The kind of operations.
    pub verb: Verb,
    /// The scope.
    pub scope: Scope,
    /// When the hold began.
    pub since: Timestamp,
    /// The ReplicaSet whose operation would have exceeded the limit: that of the scope, if the scope is one.
    pub replica_set: v1::ObjectRef,
    /// The cause.
    pub cause: Cause,
    /// The exceeded limit in numbers, or the other controller.
    pub detail: String,
    /// The ReplicaSets with an event about the hold.
    notified: HashSet<String>,
}

/// A pod of a ReplicaSet that another controller created while the agent executes decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodOfOther {
    /// The ReplicaSet.
    pub replica_set: v1::ObjectRef,
    /// The name of the pod.
    pub pod: String,
    /// The pod's creator, as its managed fields name it.
    pub writer: String,
}

/// Why operations are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// One more would have exceeded a limit.
    Limit,
    /// Another controller creates pods of the ReplicaSet.
    OtherController,
}

/// What happened to a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A limit was exceeded, and the operation started all the same.
    Warned(Hold),
    /// A limit would have been exceeded, or another controller is at work: the scope is held.
    Held(Hold),
    /// The hold of the scope has ended.
    Ended(Hold),
}

/// The counts and the holds. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget {
    config: BudgetConfig,
    windows: BTreeMap<Key, Window>,
    pub(crate) holds: BTreeMap<Key, Hold>,
    /// The time of the last warning for each scope whose limit is exceeded.
    warned: BTreeMap<Key, Timestamp>,
    swept: Timestamp,
    /// The changes and the notes that were not taken yet.
    pub(crate) changes: VecDeque<Change>,
    pub(crate) notes: VecDeque<Note>,
}

/// A kind of operations, and the uid of the ReplicaSet of the scope; `None` for the cluster.
type Key = (Verb, Option<String>);

impl Hold {
    fn new(
        since: Timestamp,
        (verb, scope): (Verb, Scope),
        replica_set: &v1::ObjectRef,
        cause: Cause,
        detail: String,
    ) -> Self {
        Self {
            verb,
            scope,
            since,
            replica_set: replica_set.clone(),
            cause,
            detail,
            notified: HashSet::new(),
        }
    }

    /// Returns the name of the scope.
    pub fn place(&self) -> String {
        match self.scope {
            Scope::ReplicaSet => format!("replica set {}", display(&self.replica_set)),
            Scope::Cluster => "the cluster".to_owned(),
        }
    }

    /// Returns the command that resumes the scope.
    pub fn command(&self) -> String {
        match self.scope {
            Scope::ReplicaSet => format!("decree resume {}", display(&self.replica_set)),
            Scope::Cluster => "decree resume --all".to_owned(),
        }
    }

    /// Returns the cause of the hold and how to end it, for people.
    pub fn message(&self) -> String {
        let (verb, place, since) = (self.verb.as_str(), self.place(), self.since);
        let (detail, command) = (&self.detail, self.command());
        format!("{verb}s in {place} are held since {since:.0}: {detail}; resume with: {command}")
    }

    /// The text of the event: the cause in the server's words, and how to end it. It has no time, because each hold would then be another
    /// event.
    fn event(&self) -> String {
        let detail = self.detail.trim_start_matches(AT_WORK);
        let cause = match (self.cause, self.scope) {
            (Cause::OtherController, _) => OTHER_CONTROLLER,
            (Cause::Limit, Scope::ReplicaSet) => HELD_BY_BUDGET,
            (Cause::Limit, Scope::Cluster) => HELD_BY_BUDGET_OF_CLUSTER,
        };
        format!("{cause}: {detail}; resume with: {}", self.command())
    }
}

impl Cause {
    /// The rule that refuses the operations, and the reason of the event.
    const fn names(self) -> (Rule, Reason) {
        match self {
            Self::Limit => (Rule::Budget, Reason::BudgetExceeded),
            Self::OtherController => (Rule::OtherController, Reason::OtherController),
        }
    }
}

impl PodOfOther {
    pub(crate) fn new(set: &v1::ReplicaSet, pod: &v1::Pod, writer: &str) -> Self {
        Self {
            replica_set: object_ref(set),
            pod: pod.name.clone(),
            writer: writer[..writer.floor_char_boundary(WRITER_BYTES_MAX)].to_owned(),
        }
    }
}

impl Budget {
    pub(crate) fn new(config: BudgetConfig) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }

    /// Counts an operation of a ReplicaSet that is about to start. `pods` returns the pods of a scope of which a percentage is taken.
    ///
    /// # Errors
    /// The hold that keeps the operation from starting.
    pub(crate) fn admit(
        &mut self,
        now: Timestamp,
        verb: Verb,
        replica_set: &v1::ObjectRef,
        pods: impl Fn(Scope) -> u32,
    ) -> Result<(), Refusal> {
        self.sweep(now);
        let keys = Scope::ALL.map(|scope| scope.key(verb, replica_set));
        if let Some(key) = keys.iter().find(|key| self.holds.contains_key(key)) {
            return Err(self.refuse(key, replica_set));
        }
        if *self.limits(verb) == Limits::default() {
            return Ok(());
        }
        for (scope, key) in Scope::ALL.into_iter().zip(&keys) {
            // A scope over its limit need not be measured again.
            if self.warned.contains_key(key) {
                continue;
            }
            let Some(detail) = self.excess(key, &keys[0], pods(scope)) else {
                continue;
            };
            let hold = Hold::new(now, (verb, scope), replica_set, Cause::Limit, detail);
            match self.config.action {
                Action::Warn => {
                    self.warned.insert(key.clone(), now);
                    self.warn(hold);
                }
                Action::Hold => return Err(self.hold(hold)),
            }
        }
        for (scope, key) in Scope::ALL.into_iter().zip(keys) {
            let count = Count::one(pods(scope));
            self.windows.entry(key).or_default().add(now, count);
        }
        Ok(())
    }

    /// Holds the ReplicaSet of a pod that another controller created, until a person resumes it.
    pub(crate) fn note_other(&mut self, now: Timestamp, pod: &PodOfOther) {
        for verb in Verb::ALL {
            let (set, scope) = (&pod.replica_set, Scope::ReplicaSet);
            if self.holds.contains_key(&scope.key(verb, set)) {
                continue;
            }
            let detail = format!("{AT_WORK}{} created its pod {}", pod.writer, pod.pod);
            let cause = Cause::OtherController;
            // The event is recorded at once, as the agent may have nothing else to do for this ReplicaSet.
            self.hold(Hold::new(now, (verb, scope), set, cause, detail));
        }
    }

    /// Ends the holds that a person resumes at a ReplicaSet. True if a hold of more than the one ReplicaSet ended.
    pub(crate) fn resume(&mut self, replica_set: &v1::ObjectRef, extent: Extent) -> bool {
        let of_set = Some(replica_set.uid.as_str());
        let ended = self.end(|uid| extent == Extent::All || uid == of_set);
        for hold in &ended {
            let (verb, place) = (hold.verb.as_str(), hold.place());
            self.notes.push_back(Note {
                object: replica_set.clone(),
                reason: Reason::BudgetResumed,
                message: format!("{verb}s in {place} are resumed"),
            });
        }
        !ended.is_empty() && extent == Extent::All
    }

    /// Ends the holds of deleted ReplicaSets.
    pub(crate) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.end(|uid| uid.is_some_and(|uid| !is_there(uid)));
    }

    const fn limits(&self, verb: Verb) -> &Limits {
        match verb {
            Verb::Create => &self.config.creates,
            Verb::Delete => &self.config.deletes,
        }
    }

    /// Refuses an operation in a held scope. Each ReplicaSet that meets the hold gets one event.
    fn refuse(&mut self, key: &Key, replica_set: &v1::ObjectRef) -> Refusal {
        let hold = self.holds.get_mut(key).expect("the scope is held");
        let (rule, reason) = hold.cause.names();
        if hold.notified.insert(replica_set.uid.clone()) {
            self.notes.push_back(Note {
                object: replica_set.clone(),
                reason,
                message: hold.event(),
            });
        }
        Refusal::new(rule, hold.message())
    }

    /// Holds a scope, unless it is held already, and notifies people. Returns the refusal of its operations.
    fn hold(&mut self, hold: Hold) -> Refusal {
        let key = hold.scope.key(hold.verb, &hold.replica_set);
        let replica_set = hold.replica_set.clone();
        self.changes.push_back(Change::Held(hold.clone()));
        self.holds.insert(key.clone(), hold);
        self.refuse(&key, &replica_set)
    }

    /// Reports a hold without holding the scope.
    fn warn(&mut self, hold: Hold) {
        // Nothing is held, so the server reports no cause with the same text.
        let (verb, place) = (hold.verb.as_str(), hold.place());
        let message = format!("{verb}s in {place}: {}", hold.detail);
        self.notes.push_back(Note {
            object: hold.replica_set.clone(),
            reason: hold.cause.names().1,
            message,
        });
        self.changes.push_back(Change::Warned(hold));
    }

    /// How one more operation of the ReplicaSet `own` would exceed the limit of a scope with this many pods; `None` if it would not.
    fn excess(&self, key: &Key, own: &Key, pods: u32) -> Option<String> {
        let (verb, replica_set) = key;
        let limits = self.limits(*verb);
        let limit = match replica_set {
            Some(_) => limits.replica_set,
            None => limits.cluster,
        };
        let one_more = Count::one(pods);
        let window = self.windows.get(key);
        let Count { operations, pods } = window.map_or(one_more, |window| window.total(one_more));
        let allowed = limit.allowed(pods)?;
        let is_count = limit.percent == 0;
        let left_out = if operations > allowed && !is_count && key != own {
            self.most_of_one(*verb, own)
        } else {
            0
        };
        if operations.saturating_sub(left_out) <= allowed {
            return None;
        }
        let besides = match left_out {
            0 => String::new(),
            count => format!(" beside the {count} of one ReplicaSet"),
        };
        let of = match verb {
            _ if is_count => String::new(),
            Verb::Create => format!(" ({limit} of {pods} desired pods)"),
            Verb::Delete => format!(" ({limit} of {pods} active pods)"),
        };
        let verb = verb.as_str();
        Some(format!(
            "{operations} {verb}s in a minute, {allowed} are allowed{besides}{of}"
        ))
    }

    /// The highest number of operations of one ReplicaSet, with one more of `own`.
    fn most_of_one(&self, verb: Verb, own: &Key) -> u32 {
        let of_one = |(key, window): (&Key, &Window)| {
            let is_one = key.0 == verb && key.1.is_some();
            is_one.then(|| window.operations().saturating_add((key == own).into()))
        };
        self.windows.iter().filter_map(of_one).max().unwrap_or(1)
    }

    /// Ends holds, and forgets the counts within their scopes.
    fn end(&mut self, ends: impl Fn(Option<&str>) -> bool) -> Vec<Hold> {
        let ended = self
            .holds
            .extract_if(.., |(_, uid), _| ends(uid.as_deref()));
        let ended: Vec<_> = ended.collect();
        for ((verb, uid), hold) in &ended {
            let within = |key: &Key| key.0 == *verb && (uid.is_none() || key.1 == *uid);
            self.windows.retain(|key, _| !within(key));
            self.changes.push_back(Change::Ended(hold.clone()));
        }
        ended.into_iter().map(|(_, hold)| hold).collect()
    }

    /// Forgets counts older than a minute.
    fn sweep(&mut self, now: Timestamp) {
        if since(now, self.swept) < BUCKET && self.swept <= now {
            return;
        }
        self.swept = now;
        self.windows.values_mut().for_each(|it| it.slide(now));
        self.windows.retain(|_, window| !window.is_empty());
        self.warned
            .retain(|_, warned| since(now, *warned) < window::SPAN);
    }
}

mod limit;
pub mod resume;
mod scope;
#[cfg(test)]
mod tests;
mod window;
