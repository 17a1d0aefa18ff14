//! Stories of another controller, each in a line: the ReplicaSet `web`, what happens to it, and the result.

use decree_core::{Config, Kind, NotStarted, Outcome, Preferences, ResourceVersion, ScaleIn};

use self::objects::{START, failure, labels, orphan, pod, set, unready};
use super::*;

#[path = "../../../core/tests/scenarios/objects.rs"]
mod objects;

/// A name, the pods of `web` at the start, the steps, and the results: differences, then numbers that are not 0 (compared, not compared, and
/// deleted by others).
///
/// A pod `a~` is not ready, `a!` is being deleted, `a?` has no node, `a/x` is on that node, `a+9` has restarted so often, `a-5` has that
/// deletion cost, and `a@90` has been ready for 90 s instead of an hour.
/// Steps on pods: `make`, `go`, `evict`, `orphan`, `stranger`, `adopt`, `release`, `relabel`, `change`. Other steps: `scale N`; `skip` a
/// change that nobody saw; `mature S` sets minReadySeconds; `ok` writes the due status, `ready N` and `available N` another one,
/// `ungated` one without the terminating pods, and `failure` a failed create; `advise` pods, so that an outcome shows them; `wait S`; `list`
/// begins a list; `churn S` creates and deletes a pod each second.
const STORIES: &str = "
late acts in steps agree | a | scale 3; wait 25; make b; wait 25; make c; ok; wait 11 | compared 2
pods before their number agree | a | make b c; wait 3; scale 3; ok; wait 31 | compared 2
a deleted surplus pod was still created | a | make b; go b; ok; wait 11 | Count: at most 1 active pod, created up to 2 active pods; compared 2 not 1
a surplus pod differs once | a | make b; ok; wait 99 | Count: at most 1 active pod, created up to 2 active pods; compared 1
a missing number explains creates | a | skip; scale 1; make b; go b; ok; wait 11 | compared 2 not 1
a missing create differs once | a | scale 4; ok; wait 99 | Count: create 3 pods, not done for 30 s; compared 1
a missing deletion differs once | a b | scale 1; ok; wait 99 | Count: delete 1 pod, not done for 30 s; compared 1
a refused create is not compared | a | scale 4; failure; wait 99 | not 1
a namespace ends | a | change a!; wait 99 | Count (NamespaceEnding): create 1 pod, not done for 30 s; compared 1 others 1
the chosen victim agrees | a b~ | scale 1; go b~; ok; wait 11 | compared 3
another victim may be a person's | a b~ | scale 1; go a; ok; wait 11 | Victims (DeletedByOthers): delete b (not ready), deleted a; compared 3
another victim is not a person's again | a b~ c | scale 2; go a; ok; wait 11; scale 1; go c; ok; wait 11 | Victims (DeletedByOthers): delete b (not ready), deleted a; Victims: delete b (not ready), deleted c; compared 6
a victim too many differs | a b c | scale 2; go a b; make d; ok; wait 11 | Victims (DeletedByOthers): delete no more pods, deleted b; compared 3
of pods that are alike any may go | a b c d | scale 2; go c b; ok; wait 11 | compared 3
a pod without a node is deleted first | a b? | scale 1; go a; ok; wait 11 | Victims (DeletedByOthers): delete b (not assigned to a node), deleted a; compared 3
pods of a crowded node are deleted first | a b c/x | scale 1; go c a; ok; wait 11 | Victims (DeletedByOthers): delete a (2 pods of this owner on node-a vs 1 pod of this owner on x), deleted c; compared 3
a pod with more restarts is deleted first | a b+9 | scale 1; go a; ok; wait 11 | Victims (DeletedByOthers): delete b (9 restarts vs 0), deleted a; compared 3
the order of a moment ago is right | a@139 b@130 | scale 1; go a; ok; wait 11 | compared 3
the order of a minute ago is not | a@199 b@130 | scale 1; go a; ok; wait 11 | Victims (DeletedByOthers): delete b (ready for 2m12s vs 3m21s), deleted a; compared 3
victims of a view that just changed are not compared | a b~ | change a-5; scale 1; go a-5; ok; wait 11 | compared 2 not 1
victims of a late controller are not compared | a b~ | scale 1; wait 3; go a; ok; wait 11 | compared 2 not 1
victims of costs that were just advised are not compared | a b | advise a-5; scale 1; go a-5; ok; wait 11 | compared 2 not 1
the costs that are advised are followed | a b~ c | advise a-5; wait 5; scale 1; go b~ a; ok; wait 11 | compared 3
costs that are advised in vain differ | a b | advise a-5; wait 5; scale 1; go b; ok; wait 11 | Victims (DeletedByOthers): delete a (deletion cost -5 < 0), deleted b; compared 3
victims of two quick numbers are not compared | a b c~ | scale 2; scale 1; go a c~; ok; wait 11 | compared 2 not 1
an eviction is no decision | a b~ | scale 1; evict a; ok; wait 11 | compared 2
a deletion without a surplus is by others | a b | go a; make c; ok; wait 11 | compared 2 others 1
a deletion after a pause is by others | a b~ | scale 1; go b~; wait 1; go a; make c; ok; wait 11 | compared 3 others 1
due claims agree | a | orphan b~; scale 2; adopt b~; relabel a; release a; make c; ok; wait 11 | compared 3
a missing adoption differs once | a | orphan b; wait 99 | Adoption: adopt b, not done for 30 s; compared 1
a missing release differs once | a | relabel a; make b; ok; wait 99 | Adoption: release a, not done for 30 s; compared 1
a released own pod differs once | a b | release a; wait 99 | Adoption: adopt a, not done for 30 s; compared 1
an adopted stranger differs once | a | stranger b; adopt b; wait 99 | Adoption: leave b alone, adopted b; compared 1
a stranger that just matched is not compared | a | orphan b; relabel b; adopt b; relabel b; release b; wait 11 | compared 2 not 1
a wrong status differs once | a | ready 0; wait 99 | Status: readyReplicas 1, readyReplicas 0; compared 1
a status that is not written differs once | a | scale 1; wait 99 | Status: observedGeneration 3, observedGeneration 2; compared 1
a status without the terminating pods agrees | a | scale 2; make b; ok; ungated; wait 99 | compared 2
a wrong status without the terminating pods differs once | a | ungated; ready 0; wait 99 | Status: readyReplicas 1, readyReplicas 0; compared 1
a corrected status agrees | a | ready 0; wait 15; ok; wait 31 | compared 1
a status after minReadySeconds agrees | a | mature 20; make b@0; scale 2; ok; wait 21; ok; wait 31 | compared 3
a status before minReadySeconds differs | a | mature 20; scale 2; make b@0; available 2; wait 99 | Status: availableReplicas 1, availableReplicas 2; compared 1
a list begins anew | a | make b; list; wait 99 | not 2
no rest is no comparison | a | churn 125 | not 129
";

/// The other controller, the server, and what the server sees.
struct Story {
    shadow: Shadow,
    controller: Controller,
    set: ReplicaSet,
    pods: BTreeMap<String, Pod>,
    now: Timestamp,
    version: u64,
    found: Vec<String>,
}

impl Story {
    fn begin(pods: &str) -> Self {
        let replicas = i32::try_from(pods.split(' ').count()).expect("few");
        let mut story = Self {
            shadow: Shadow::default(),
            controller: Controller::new(Config::default()),
            // The other controller follows no preference. It counts the pods of a node only for a ReplicaSet with a controller.
            set: ReplicaSet {
                controller: Some(objects::owner("shop")),
                preferences: Some(Box::new(Preferences {
                    scale_in: vec![ScaleIn::Youngest],
                    ..Preferences::default()
                })),
                ..set("web", replicas)
            },
            pods: BTreeMap::new(),
            now: START.plus(Span::seconds(3_600)),
            version: 10,
            found: Vec::new(),
        };
        for kind in [Kind::ReplicaSet, Kind::Pod] {
            let version = Some(ResourceVersion(5));
            story.tell(Event::SnapshotBegin(kind));
            story.tell(Event::SnapshotEnd { kind, version });
        }
        story.step("scale", &[&replicas.to_string()]);
        story.step("make", &pods.split(' ').collect::<Vec<_>>());
        story.step("ok", &[]);
        story.shadow = Shadow::default();
        story
    }

    /// Shows an event to the server, which decides in vain.
    fn tell(&mut self, event: Event) {
        self.shadow.handle_event(self.now, &self.controller, &event);
        self.controller.handle_event(self.now, event);
        while let Some(batch) = self.controller.poll_batch(self.now) {
            self.shadow
                .handle_batch(self.now, &self.controller, &batch.key);
            for operation in (0..).take(batch.action.operations()) {
                let (batch, result) = (batch.id, NotStarted::NotEnforcing);
                let result = OperationResult::NotStarted(result);
                let outcome = Outcome {
                    batch,
                    operation,
                    result,
                };
                self.controller.handle_outcome(self.now, outcome);
            }
        }
    }

    fn next_version(&mut self) -> Option<ResourceVersion> {
        self.version += 1;
        Some(ResourceVersion(self.version))
    }

    fn tell_set(&mut self, generations: i64, change: impl FnOnce(&mut ReplicaSet)) {
        change(&mut self.set);
        self.set.generation += generations;
        self.set.version = self.next_version();
        self.tell(Event::ReplicaSetApplied(Box::new(self.set.clone())));
    }

    fn tell_pod(&mut self, mut pod: Pod, is_advised: bool) {
        pod.version = self.next_version();
        self.pods.insert(pod.name.to_string(), pod.clone());
        if is_advised {
            let after = Some(After::Pod(Box::new(pod.clone())));
            let version = pod.version;
            let result = OperationResult::Done { version, after };
            self.shadow
                .handle_outcome(self.now, &self.controller, &result);
            return self
                .controller
                .handle_event(self.now, Event::PodApplied(pod));
        }
        self.tell(Event::PodApplied(pod));
    }

    fn go(
        &mut self,
        Pod {
            namespace,
            name,
            uid,
            ..
        }: Pod,
    ) {
        let version = self.next_version();
        self.tell(Event::PodDeleted {
            namespace,
            name,
            uid,
            version,
        });
    }

    fn step(&mut self, verb: &str, words: &[&str]) {
        let number = || words[0].parse::<i32>().expect("a number");
        match verb {
            "wait" => (0..number()).for_each(|_| self.wait_a_second()),
            "churn" => (0..number()).for_each(|second| {
                let extra = unready(pod(&format!("extra-{second}"), "web"));
                self.tell_pod(extra.clone(), false);
                self.go(extra);
                self.wait_a_second();
            }),
            "list" => self.tell(Event::SnapshotBegin(Kind::Pod)),
            "scale" => self.tell_set(1, |set| set.replicas = number()),
            "skip" => self.tell_set(2, |_| ()),
            "mature" => self.tell_set(1, |set| set.min_ready_seconds = number()),
            "ungated" => self.tell_set(0, |set| set.status.terminating_replicas = None),
            "failure" => self.tell_set(0, |set| {
                set.status.conditions = vec![failure("FailedCreate", "quota")]
            }),
            "ok" | "ready" | "available" => {
                let known = self.controller.inspect().replica_set(&self.set.key);
                let due = known.expect("it was told").status_due(self.now);
                self.tell_set(0, |set| {
                    set.status = due.unwrap_or_else(|| set.status.clone());
                    match verb {
                        "ready" => set.status.ready_replicas = number(),
                        "available" => set.status.available_replicas = number(),
                        _ => {}
                    }
                });
            }
            _ => words.iter().for_each(|word| self.act(verb, word)),
        }
    }

    fn wait_a_second(&mut self) {
        self.now = self.now.plus(Span::seconds(1));
        self.controller.handle_timeout(self.now);
        let (kind, version) = (Kind::Pod, ResourceVersion(self.version));
        self.tell(Event::Bookmark { kind, version });
        self.shadow.handle_timeout(self.now, &self.controller);
        let cluster = ClusterRef {
            name: "c",
            uid: "u",
            shard: "",
        };
        while let Some(it) = self.shadow.poll_difference(self.now, cluster) {
            assert!(!it.why.is_empty() && it.replica_set.is_some(), "{it:?}");
            let because = format!(" ({:?})", it.departure()).replace(" (Unspecified)", "");
            let (subject, decided, done) = (it.subject(), it.decided, it.done);
            self.found
                .push(format!("{subject:?}{because}: {decided}, {done}"));
        }
    }

    fn act(&mut self, verb: &str, word: &str) {
        let is_mark = |letter: char| "~!?/+-@".contains(letter);
        let (name, mark) = word.split_at(word.find(is_mark).unwrap_or(word.len()));
        let known = self.pods.get(name).cloned();
        let mut it = known.unwrap_or_else(|| orphan(name, "web"));
        let number = || mark[1..].parse::<i32>().expect("a number");
        match mark.get(..1) {
            Some("~") => it = unready(it),
            Some("!") => it.state.deleting = true,
            Some("?") => it.node = None,
            Some("/") => it.node = mark.get(1..).map(Into::into),
            Some("+") => it.state.restarts = number(),
            Some("-") => it.state.deletion_cost = -number(),
            Some(_) => {
                it.state.ready.since = Some(self.now.plus(Span::seconds((-number()).into())))
            }
            None => {}
        }
        it.state.disruption_target = verb == "evict";
        match verb {
            "go" => return self.go(it),
            "make" | "adopt" => it.controller = pod(name, "web").controller,
            "release" => it.controller = None,
            "relabel" | "stranger" => it.labels = labels(&[("app", "other")]),
            _ => assert!(
                ["orphan", "change", "advise", "evict"].contains(&verb),
                "{verb} is no step"
            ),
        }
        self.tell_pod(it.clone(), verb == "advise");
        if verb == "evict" {
            self.go(it);
        }
    }
}

#[test]
fn stories_are_told() {
    for line in STORIES.trim().lines() {
        let [name, pods, steps, expected] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line} is no story");
        };
        let mut story = Story::begin(pods);
        for step in steps.split("; ") {
            let (verb, words) = step.split_once(' ').unwrap_or((step, ""));
            story.step(verb, &words.split(' ').collect::<Vec<_>>());
        }
        let bytes = story.shadow.bytes();
        assert!(bytes < 10_000, "{name}: {bytes} bytes");
        let [compared, not] = story.shadow.comparisons();
        let numbers = [
            ("compared", compared),
            ("not", not),
            ("others", story.shadow.results.deleted_by_others),
        ];
        let numbers = numbers.iter().filter(|(_, number)| *number > 0);
        let numbers = numbers.map(|(what, number)| format!("{what} {number}"));
        story.found.push(numbers.collect::<Vec<_>>().join(" "));
        assert_eq!(story.found.join("; "), expected, "{name}");
    }
}

#[test]
fn greatest_generation_has_no_next_one() {
    let mut story = Story::begin("a");
    story.tell_set(0, |set| set.generation = i64::MAX);
    story.tell_set(0, |set| set.replicas = 2);
    assert!(story.found.is_empty(), "{:?}", story.found);
}
