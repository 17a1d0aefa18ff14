//! A world with another acting controller and a shadow-mode watcher, in virtual time.
//!
//! Both see the cluster late, by separate streams without a common order, and the calls of the other controller take a while. The
//! other controller follows upstream and shares no code with the core. Like upstream's expectations, it waits for its own writes.
//! It sorts as Go does, so ties have either order. A [`Fault`] makes it decide wrongly.

mod cluster;
mod fault;
mod order;
mod upstream;
mod users;
mod watcher;

use std::{collections::BTreeMap, sync::Arc};

use server_core::{Event, Kind, Span, Timestamp};
use server_shadow::{Agreements, Difference};

pub use self::fault::Fault;
use self::{
    cluster::{Cluster, PodName, Step, Write},
    upstream::{Claimed, Upstream},
    users::Act,
    watcher::Watcher,
};
use crate::rng::Rng;

/// The start time of the world.
const START: Timestamp = Timestamp::from_seconds(1_800_000_000);

/// The delays of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As on an idle machine.
    Quiet,
    /// As on an overloaded machine.
    Busy,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The reported differences.
    pub differences: Vec<Difference>,
    /// The results of comparisons.
    pub agreements: Agreements,
    /// The number of pods that count as deleted by others.
    pub deleted_by_others: u64,
}

/// The world.
#[derive(Debug)]
pub struct Stage {
    rng: Rng,
    pace: Pace,
    now: Timestamp,
    cluster: Cluster,
    other: Upstream,
    watcher: Watcher,
    schedule: BTreeMap<(Timestamp, u64), Happening>,
    /// The number of the next event, so that events have distinct keys.
    next: u64,
    /// The arrival of the latest event of each stream: streams keep their order.
    arrivals: BTreeMap<(Who, Kind), Timestamp>,
}

/// The observer of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Other,
    Watcher,
}

#[derive(Clone, Debug)]
enum Happening {
    /// A stream shows an event.
    Shown(Who, Box<Event>),
    /// A write reaches the cluster.
    Write(Write),
    /// A pod takes its next step.
    Step(PodName, Step),
    /// A user acts.
    Act(Act),
    /// Users plan their next acts.
    Think,
    /// The other controller syncs a ReplicaSet.
    Sync(Arc<str>),
    /// The other controller has claimed its pods, and continues.
    Manage(Box<Claimed>),
    /// The other controller has finished a ReplicaSet.
    Done(Arc<str>),
    /// The timer of the watcher is due.
    Wake,
}

// === impl Pace ===

impl Pace {
    /// The maximum delay of a stream.
    const fn lag(self) -> u64 {
        match self {
            Self::Quiet => 40,
            Self::Busy => 1_500,
        }
    }

    /// The maximum duration of a call.
    const fn call(self) -> u64 {
        match self {
            Self::Quiet => 15,
            Self::Busy => 600,
        }
    }

    /// The maximum pause of users.
    const fn idle(self) -> u64 {
        match self {
            Self::Quiet => 10_000,
            Self::Busy => 5_000,
        }
    }
}

// === impl Stage ===

impl Stage {
    /// Returns the world of a seed.
    #[must_use]
    pub fn new(seed: u64, pace: Pace, fault: Option<Fault>) -> Self {
        let cluster = Cluster::new();
        let mut stage = Self {
            rng: Rng::new(seed),
            pace,
            now: START,
            other: Upstream::new(cluster.sets(), fault),
            watcher: Watcher::new(START, cluster.sets()),
            cluster,
            schedule: BTreeMap::new(),
            next: 0,
            arrivals: BTreeMap::new(),
        };
        let names: Vec<_> = stage.cluster.names().cloned().collect();
        for name in names {
            stage.later(0, Happening::Sync(name));
        }
        stage.later(1_000, Happening::Think);
        stage
    }

    /// Runs the world until `comparisons` comparisons.
    ///
    /// # Panics
    /// If there are no more events.
    pub fn run(&mut self, comparisons: u64) -> Outcome {
        self.run_while(|watcher| watcher.agreements().compared() < comparisons)
    }

    /// Runs the world until an unexplained difference, or `comparisons` comparisons.
    ///
    /// # Panics
    /// If there are no more events.
    pub fn run_to_surprise(&mut self, comparisons: u64) -> Outcome {
        self.run_while(|watcher| {
            watcher.agreements().compared() < comparisons && !watcher.is_surprised()
        })
    }

    fn run_while(&mut self, goes_on: impl Fn(&Watcher) -> bool) -> Outcome {
        while goes_on(&self.watcher) {
            let ((at, _), happening) = self.schedule.pop_first().expect("users go on");
            self.now = at;
            self.happen(happening);
        }
        Outcome {
            differences: self.watcher.told().to_vec(),
            agreements: *self.watcher.agreements(),
            deleted_by_others: self.watcher.deleted_by_others(),
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Shown(Who::Watcher, event) => {
                self.watcher.see(self.now, *event);
                self.wake();
            }
            Happening::Shown(Who::Other, event) => {
                for set in self.other.see(*event) {
                    self.enqueue(set);
                }
            }
            Happening::Write(write) => self.write(&write),
            Happening::Step(pod, step) => self.step(&pod, step),
            Happening::Think => self.think(),
            Happening::Act(act) => self.act(&act),
            Happening::Sync(set) => self.sync(&set),
            Happening::Manage(claimed) => self.manage(*claimed),
            Happening::Done(set) => {
                if self.other.end(&set) {
                    self.enqueue(set);
                }
            }
            Happening::Wake => {
                self.watcher.wake(self.now);
                self.wake();
            }
        }
    }

    /// Runs the watcher when its timer is due.
    fn wake(&mut self) {
        if let Some(due) = self.watcher.due(self.now) {
            self.at(due, Happening::Wake);
        }
    }

    fn enqueue(&mut self, set: Arc<str>) {
        if self.other.enqueue(&set) {
            let wait = self.rng.between(0, self.pace.call());
            self.later(wait, Happening::Sync(set));
        }
    }

    /// Lets the other controller claim the pods of a ReplicaSet, and continue after that.
    fn sync(&mut self, set: &Arc<str>) {
        let Some((claimed, writes)) = self.other.sync(set) else {
            return;
        };
        let mut wait = 0;
        for write in writes {
            wait += self.rng.between(1, self.pace.call());
            self.later(wait, Happening::Write(write));
        }
        self.later(wait, Happening::Manage(Box::new(claimed)));
    }

    /// Creates pods in growing rounds, or deletes all surplus pods at once.
    fn manage(&mut self, claimed: Claimed) {
        let plan = self.other.manage(self.now, &claimed, &mut self.rng);
        let (mut wait, mut most) = (0, 0);
        let mut size = 1;
        let mut creates = plan.creates.into_iter().peekable();
        while creates.peek().is_some() {
            for write in creates.by_ref().take(size) {
                let call = self.rng.between(1, self.pace.call());
                most = most.max(wait + call);
                self.later(wait + call, Happening::Write(write));
            }
            (wait, size) = (most, size * 2);
        }
        for write in plan.deletes {
            let call = self.rng.between(1, self.pace.call());
            most = most.max(call);
            self.later(call, Happening::Write(write));
        }
        if let Some(status) = plan.status {
            most += self.rng.between(1, self.pace.call());
            self.later(most, Happening::Write(status));
        }
        self.later(most + 1, Happening::Done(Arc::clone(&claimed.set.key.name)));
    }

    fn write(&mut self, write: &Write) {
        let done = self.cluster.write(self.now, write, &mut self.rng);
        self.publish(done);
    }

    fn step(&mut self, pod: &PodName, step: Step) {
        let done = self.cluster.step(self.now, pod, step, &mut self.rng);
        self.publish(done);
    }

    fn think(&mut self) {
        let acts = Act::think(&self.cluster, &mut self.rng);
        for (wait, act) in acts {
            self.later(wait, Happening::Act(act));
        }
        let idle = self.rng.between(200, self.pace.idle());
        self.later(idle, Happening::Think);
    }

    fn act(&mut self, act: &Act) {
        let done = act.take_place(self.now, &mut self.cluster, &mut self.rng);
        self.publish(done);
    }

    /// Schedules the events of a change for both streams, and the next steps of pods.
    fn publish(&mut self, done: cluster::Done) {
        let cluster::Done { events, steps } = done;
        for (wait, pod, step) in steps {
            self.later(wait, Happening::Step(pod, step));
        }
        for event in events {
            for who in [Who::Other, Who::Watcher] {
                let kind = match event {
                    Event::ReplicaSetApplied(_) | Event::ReplicaSetDeleted { .. } => {
                        Kind::ReplicaSet
                    }
                    Event::PodApplied(_)
                    | Event::PodDeleted { .. }
                    | Event::SnapshotBegin(_)
                    | Event::SnapshotEnd { .. }
                    | Event::Bookmark { .. } => Kind::Pod,
                };
                let lag = i64::try_from(self.rng.between(0, self.pace.lag())).unwrap_or(0);
                let arrival = self.arrivals.entry((who, kind)).or_default();
                let at = self.now.plus(Span::millis(lag)).max(*arrival);
                *arrival = at;
                self.at(at, Happening::Shown(who, Box::new(event.clone())));
            }
        }
    }

    fn later(&mut self, millis: u64, happening: Happening) {
        let wait = Span::millis(i64::try_from(millis).unwrap_or(i64::MAX));
        self.at(self.now.plus(wait), happening);
    }

    fn at(&mut self, at: Timestamp, happening: Happening) {
        self.next += 1;
        self.schedule.insert((at, self.next), happening);
    }
}
