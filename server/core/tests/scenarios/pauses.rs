//! What concerns very many objects is done a little at a time, and when it is done makes no difference.

use server_core::{
    Batch, CompactUid, Config, Controller, Event, Kind, Pod, Ready, ReplicaSet, Report,
    ResourceVersion, Span, Status, Timestamp, Work,
};

use crate::objects::{START, labels, pod, selector, set, with};

const PODS: u64 = 300;
/// How much is done in one go: the least there is, by which all must come to its end.
const FEW: u64 = 1;
/// No test has that much work.
const PAUSES_MAX: usize = 100_000;

/// A controller that does everything at once, and one that does the same a little at a time.
struct Pair {
    whole: Controller,
    pausing: Controller,
    now: Timestamp,
    version: u64,
    pauses: usize,
}

impl Pair {
    fn new() -> Self {
        let controller = || Controller::new(Config::default());
        Self {
            whole: controller(),
            pausing: controller(),
            now: START,
            version: 1_000,
            pauses: 0,
        }
    }

    fn observe(&mut self, event: Event) {
        self.begin(event);
        while !self.pausing.resume(self.now, &mut Work::units(FEW)) {
            self.pause();
        }
    }

    fn pause(&mut self) {
        self.pauses += 1;
        assert!(self.pauses < PAUSES_MAX, "it does not come to its end");
    }

    /// Lets both observe something, without going on where the second pauses.
    fn begin(&mut self, event: Event) {
        self.whole.handle_event(self.now, event.clone());
        let mut work = Work::units(FEW);
        self.pausing.handle_event_within(self.now, event, &mut work);
        self.pauses += usize::from(work.has_paused());
    }

    fn list(&mut self, kind: Kind, objects: Vec<Event>) {
        self.observe(Event::SnapshotBegin(kind));
        objects.into_iter().for_each(|object| self.observe(object));
        let end = self.end_of(kind);
        self.observe(end);
    }

    fn end_of(&mut self, kind: Kind) -> Event {
        let version = Some(self.next_version());
        Event::SnapshotEnd { kind, version }
    }

    fn next_version(&mut self) -> ResourceVersion {
        self.version += 1;
        ResourceVersion(self.version)
    }

    /// Returns what both decide, which is the same.
    fn decide(&mut self) -> Vec<Batch> {
        let whole: Vec<_> = std::iter::from_fn(|| self.whole.poll_batch(self.now)).collect();
        let mut pausing = Vec::new();
        loop {
            let mut work = Work::units(FEW);
            let batch = self.pausing.poll_batch_within(self.now, &mut work);
            if batch.is_none() && !work.has_paused() {
                break;
            }
            if batch.is_none() {
                self.pause();
            }
            pausing.extend(batch);
        }
        assert_eq!(pausing, whole);
        assert_eq!(self.pausing.sizes(), self.whole.sizes());
        whole
    }
}

fn sets(count: usize, of: impl Fn(ReplicaSet) -> ReplicaSet) -> Vec<Event> {
    let set = |number| Event::ReplicaSetApplied(Box::new(of(set(&format!("web-{number}"), 100))));
    (0..count).map(set).collect()
}

/// Returns the pods of so many ReplicaSets.
fn pods(sets: u64) -> Vec<Event> {
    let pod = |number| pod(&format!("p-{number}"), &format!("web-{}", number % sets));
    (0..PODS).map(pod).map(Event::PodApplied).collect()
}

/// Returns both, with three ReplicaSets that have as many pods as they want.
fn at_rest() -> Pair {
    let mut pair = Pair::new();
    pair.list(Kind::ReplicaSet, sets(3, |set| set));
    pair.list(Kind::Pod, pods(3));
    pair.decide();
    pair.pauses = 0;
    pair
}

#[test]
fn pods_that_a_list_does_not_name_go_in_pieces() {
    let mut pair = at_rest();
    pair.list(Kind::Pod, Vec::new());
    assert!(pair.pauses > 50, "{}", pair.pauses);
    assert_eq!(pair.pausing.sizes().pods, 0);
    pair.decide();
}

#[test]
fn replica_sets_that_a_list_does_not_name_go_in_pieces() {
    let mut pair = at_rest();
    pair.list(Kind::ReplicaSet, sets(1, |set| set));
    assert!(pair.pauses > 0);
    assert_eq!(pair.pausing.sizes().replica_sets, 1);
    pair.decide();
}

#[test]
fn pods_are_counted_anew_in_pieces_when_a_selector_changes() {
    let mut pair = at_rest();
    let version = pair.next_version();
    for changed in sets(3, |set| ReplicaSet {
        selector: selector(&[("app", "other")]),
        version: Some(version),
        ..set
    }) {
        pair.observe(changed);
    }
    assert!(pair.pauses > 0);
    pair.decide();
}

#[test]
fn deletions_are_forgotten_in_pieces_when_the_stream_has_passed_them() {
    let mut pair = at_rest();
    pair.observe(Event::SnapshotBegin(Kind::Pod));
    for number in 0..PODS {
        pair.observe(Event::PodDeleted {
            namespace: "default".into(),
            name: format!("gone-{number}").as_str().into(),
            uid: CompactUid::of(&format!("gone-{number}")),
            version: Some(ResourceVersion(500)),
        });
    }
    let before = pair.pausing.sizes().bytes;
    let end = pair.end_of(Kind::Pod);
    pair.observe(end);
    assert!(pair.pauses > 50, "{}", pair.pauses);
    assert!(pair.pausing.sizes().bytes < before);
    pair.decide();
}

#[test]
fn keys_that_are_due_at_once_are_queued_in_pieces() {
    let mut pair = Pair::new();
    let waiting = |set| ReplicaSet {
        min_ready_seconds: 10,
        replicas: 3,
        status: Status {
            replicas: 3,
            fully_labeled_replicas: 3,
            ready_replicas: 3,
            terminating_replicas: Some(0),
            observed_generation: 1,
            ..Status::default()
        },
        ..set
    };
    pair.list(Kind::ReplicaSet, sets(100, waiting));
    pair.list(Kind::Pod, pods(100));
    assert!(pair.decide().is_empty());
    pair.pauses = 0;
    pair.now = pair.now.plus(Span::seconds(11));
    assert_eq!(pair.decide().len(), 100, "a status each");
    assert!(pair.pauses > 0);
}

#[test]
fn pods_that_go_are_chosen_in_pieces_among_very_many() {
    let mut pair = Pair::new();
    let instants = [START, START.plus(Span::seconds(-50))];
    let pods = (0..3_000_usize).map(|number| {
        let since = Some(instants[number % 2]);
        let ready = Ready { ready: true, since };
        with(pod(&format!("p-{number}"), "web-0"), |state| {
            (state.ready, state.restarts) = (ready, (number % 7) as i32);
        })
    });
    pair.list(Kind::ReplicaSet, sets(1, |set| set));
    pair.list(Kind::Pod, pods.map(Event::PodApplied).collect());
    pair.pauses = 0;
    let decided = pair.decide();
    assert!(matches!(&decided[..], [batch] if batch.action.operations() == 500));
    assert!(pair.pauses > 50, "{}", pair.pauses);
}

#[test]
fn next_news_do_what_is_left_of_those_before() {
    let mut pair = at_rest();
    pair.begin(Event::SnapshotBegin(Kind::Pod));
    let end = pair.end_of(Kind::Pod);
    pair.begin(end);
    assert!(pair.pauses > 0);
    let version = Some(pair.next_version());
    let fresh = pod("fresh", "web-0");
    pair.observe(Event::PodApplied(Pod { version, ..fresh }));
    assert_eq!(pair.pausing.sizes().pods, 1);
    pair.decide();
}

#[test]
fn orphan_is_offered_in_pieces_to_all_replica_sets_that_match_it() {
    const MANY: usize = 600;
    let mut pair = Pair::new();
    let selecting = |set| ReplicaSet {
        selector: selector(&[("app", "web")]),
        replicas: 0,
        status: Status {
            terminating_replicas: Some(0),
            observed_generation: 1,
            ..Status::default()
        },
        ..set
    };
    pair.list(Kind::ReplicaSet, sets(MANY, selecting));
    pair.list(Kind::Pod, Vec::new());
    assert!(pair.decide().is_empty());
    pair.pauses = 0;
    let orphan = Pod {
        controller: None,
        labels: labels(&[("app", "web")]),
        version: Some(pair.next_version()),
        ..pod("orphan", "web-0")
    };
    pair.observe(Event::PodApplied(orphan));
    assert!(pair.pauses > 0);
    for controller in [&mut pair.whole, &mut pair.pausing] {
        assert_eq!(controller.sizes().queued, MANY);
        let mut reports = std::iter::from_fn(|| controller.poll_report());
        let is_told = |report| matches!(report, Report::OrphanMatchesMany { matches: MANY, .. });
        assert!(reports.any(is_told));
    }
    let adopts = pair.decide();
    assert!(!adopts.is_empty());
}
