//! Stories of a session in tables: frames of the agent and time, and what the session answers.
//!
//! A story begins with `# its name`, with an open session. A line has statements, separated by `; `. The line with `>` behind it has the frames
//! that they lead to, and the end of the session. `UPDATE_EXPECT=1` writes the tables anew.
//!
//! ```text
//! objects N                                    a session with this limit of objects
//! capability NAME                              a session with this capability
//! nodes [N] [NAME [cordoned]] [complete]       nodes, or N of them
//! at SECONDS                                   time, after the start
//! jump SECONDS                                 the wall clock differs by this
//! beats FROM TO answering=SET,…                a heartbeat each second, or answers TIMEOUT to the batches of these ReplicaSets
//! list KIND VERSION OBJECT …, begin KIND, objects OBJECT …, end KIND COUNT VERSION
//! raw WHAT                                     a frame that is not whole
//! gone KIND NAME VERSION, bookmark VERSION, heartbeat SEQUENCE
//! answer BATCH guard|timeout|not-found|bare|pod VERSION|foreign VERSION
//! drain, closed, state, reports
//! ```
//!
//! An object is the pod `NAME@VERSION` of the ReplicaSet `web`, `NAME*REPLICAS@VERSION` for a ReplicaSet, or `N pods` and `N nameless` pods.
//! A created pod is foreign if its controller has the UID of the ReplicaSet, and another kind. A statement behind `-` is not followed by frames yet.

use std::fmt::Write as _;

use decree_api::v1::{batch::Action, done, outcome::Outcome};
use expect_test::ExpectFile;

use super::*;

/// Plays the stories of a table, and compares what they print.
pub(super) fn play(table: &ExpectFile) {
    let scenarios = table.data();
    assert!(!scenarios.is_empty(), "{table:?} is not there");
    let (mut played, mut story) = (String::new(), Story::new(3));
    for line in scenarios.lines().filter(|line| !line.starts_with('>')) {
        writeln!(played, "{line}").expect("it is a string");
        if line.starts_with('#') {
            story = Story::new(3);
            continue;
        }
        let mut printed = Vec::new();
        for statement in line.split("; ").filter(|it| !it.is_empty()) {
            story.act(statement);
            printed.push(std::mem::take(&mut story.printed).join(", "));
        }
        if printed.iter().any(|it| !it.is_empty()) {
            let printed = printed.join(" | ");
            writeln!(played, "> {}", printed.trim_end()).expect("it is a string");
        }
    }
    table.assert_eq(&played);
}

struct Story {
    session: Session,
    now: Now,
    /// The batches without an answer.
    batches: Vec<v1::Batch>,
    has_ended: bool,
    printed: Vec<String>,
}

impl Story {
    fn new(objects_max: usize) -> Self {
        let config = Config {
            objects_max,
            ..config()
        };
        Self::open(config, hello())
    }

    fn open(config: Config, hello: v1::ReconcileRequest) -> Self {
        let session = Session::open(START, config, "s1".to_owned(), hello);
        let mut story = Self {
            session: session.expect("the hello is sound"),
            now: START,
            batches: Vec::new(),
            has_ended: false,
            printed: Vec::new(),
        };
        story.settle();
        assert_eq!(std::mem::take(&mut story.printed), ["welcome"]);
        story
    }

    fn act(&mut self, statement: &str) {
        let is_quiet = statement.starts_with('-');
        let words: Vec<_> = statement
            .trim_start_matches('-')
            .split_whitespace()
            .collect();
        let at = |place: usize| words.get(place).copied().unwrap_or_default();
        let number = |place: usize| at(place).parse().expect("it is a number");
        match at(0) {
            "objects" if at(2).is_empty() => *self = Self::new(number(1) as usize),
            "capability" => {
                let mut hello = hello();
                if let Some(Asked::Hello(hello)) = &mut hello.frame {
                    hello.capabilities = vec![at(1).to_owned()];
                }
                *self = Self::open(config(), hello);
            }
            "nodes" => self.take(request(Asked::Nodes(nodes(&words[1..])))),
            "at" => {
                self.now = after(number(1));
                self.session.handle_timeout(self.now);
            }
            "jump" => {
                let seconds = at(1).parse().expect("it is a number");
                self.now.wall = self.now.wall.plus(Span::seconds(seconds));
                self.session.handle_timeout(self.now);
            }
            "beats" => self.beats(number(1)..number(2), at(3)),
            "list" => {
                let objects = objects(&words[3..]);
                let count = objects.pods.len() + objects.replica_sets.len();
                self.take(begin(kind(at(1))));
                self.take(request(Asked::SnapshotObjects(objects)));
                self.take(end(kind(at(1)), count as i64, at(2)));
            }
            "begin" => self.take(begin(kind(at(1)))),
            "objects" => self.take(request(Asked::SnapshotObjects(objects(&words[1..])))),
            "end" => self.take(end(kind(at(1)), number(2) as i64, at(3))),
            "gone" => self.take(event(Event::Deleted(v1::Deleted {
                kind: kind(at(1)).into(),
                object: Some(v1::ObjectRef {
                    namespace: "default".to_owned(),
                    name: at(2).to_owned(),
                    uid: format!("uid-{}", at(2)),
                }),
                resource_version: at(3).to_owned(),
            }))),
            "bookmark" => self.take(event(Event::Bookmark(v1::Bookmark {
                kind: v1::Kind::Pod.into(),
                resource_version: at(1).to_owned(),
            }))),
            "heartbeat" => self.take(v1::ReconcileRequest {
                sequence: number(1),
                frame: Some(Asked::Heartbeat(v1::Heartbeat::default())),
            }),
            "raw" => self.take(v1::ReconcileRequest {
                sequence: 0,
                frame: raw(at(1)),
            }),
            "answer" => self.answer(number(1), &words[2..]),
            "drain" => self.session.handle_drain(self.now),
            "closed" => self.session.handle_closed(self.now),
            "state" => self.state(),
            "reports" => self.reports(),
            other => panic!("{other} is no statement"),
        }
        if !is_quiet {
            self.settle();
        }
    }

    /// Takes a frame in parts of one item.
    fn take(&mut self, frame: v1::ReconcileRequest) {
        let frame = IncomingFrame::from(frame);
        while !self.session.handle_part(self.now, &frame, &|| true) {}
    }

    /// Answers the first operation of a batch.
    fn answer(&mut self, id: u64, words: &[&str]) {
        let at = self.batches.iter().position(|batch| batch.id == id);
        let batch = self.batches.remove(at.expect("it was decided"));
        let failed = |class: v1::FailureClass| {
            Outcome::Failed(v1::Failed {
                failure_class: class.into(),
                ..v1::Failed::default()
            })
        };
        let outcome = match words {
            ["guard"] => Outcome::NotStarted(v1::NotStarted {
                cause: v1::NotStartedCause::Guard.into(),
                ..v1::NotStarted::default()
            }),
            ["timeout"] => failed(v1::FailureClass::Timeout),
            ["not-found"] => failed(v1::FailureClass::NotFound),
            ["bare"] => Outcome::Done(v1::Done::default()),
            [what @ ("pod" | "foreign"), version] => {
                let Some(Action::Create(create)) = &batch.action else {
                    panic!("{batch:?} creates nothing")
                };
                let mut created = pod(&create.names[0], version);
                if let Some(owner) = created.controller.as_mut().filter(|_| *what == "foreign") {
                    owner.kind = "MachineSet".to_owned();
                }
                Outcome::Done(v1::Done {
                    resource_version: (*version).to_owned(),
                    object: Some(done::Object::Pod(created)),
                    ..v1::Done::default()
                })
            }
            other => panic!("{other:?} is no answer"),
        };
        let outcomes = vec![v1::Outcome {
            batch_id: id,
            operation: 0,
            outcome: Some(outcome),
        }];
        self.take(request(Asked::Outcomes(v1::Outcomes { outcomes })));
    }

    /// Lets an agent speak each second. Prints only the end of the session.
    fn beats(&mut self, seconds: std::ops::Range<u64>, answering: &str) {
        let answering = answering.strip_prefix("answering=").unwrap_or_default();
        for second in seconds {
            self.now = after(second);
            self.settle();
            let name = |batch: &v1::Batch| batch.replica_set.clone().unwrap_or_default().name;
            let answered: Vec<_> = self
                .batches
                .iter()
                .filter(|batch| answering.split(',').any(|set| set == name(batch)))
                .map(|batch| batch.id)
                .collect();
            if answered.is_empty() {
                self.take(request(Asked::Heartbeat(v1::Heartbeat::default())));
            }
            for id in answered {
                self.answer(id, &["timeout"]);
            }
            self.session.handle_timeout(self.now);
        }
        self.settle();
        self.printed.retain(|it| it.starts_with("end"));
    }

    fn state(&mut self) {
        let sizes = self.session.stats().sizes;
        let due = self.session.poll_timeout();
        let due = due.saturating_sub(START.monotonic).as_secs_f64();
        self.printed.push(format!(
            "{} pods, {} sets, due at {due} s",
            sizes.pods, sizes.replica_sets
        ));
    }

    fn reports(&mut self) {
        let reports = std::iter::from_fn(|| self.session.poll_report());
        let told = reports.filter_map(|report| {
            if let SessionReport::NotAccepted { fault, others, .. } = report {
                let field = fault.text.split(':').next().unwrap_or_default();
                return Some(format!("one not accepted for its {field}, {others} others"));
            }
            let is_list = matches!(report, SessionReport::ListRequested { .. });
            is_list.then(|| "list requested".to_owned())
        });
        self.printed.push(format!("{:?}", told.collect::<Vec<_>>()));
    }

    /// Takes all frames, and the end.
    fn settle(&mut self) {
        while let Some(frame) = self.session.poll_frame(self.now) {
            let frame = frame.frame.expect("a frame has content");
            let text = match &frame {
                Frame::Welcome(_) => "welcome".to_owned(),
                Frame::Batches(batches) => {
                    let told = batches.batches.iter().map(told);
                    told.collect::<Vec<_>>().join(", ")
                }
                Frame::Resync(it) => format!("resync {}", it.kind().as_str_name()),
                Frame::Rejection(_) => "rejection".to_owned(),
                Frame::Heartbeat(_) => "heartbeat".to_owned(),
                Frame::Drain(_) => "drain".to_owned(),
                Frame::CostsWanted(it) => format!("question {}", it.id),
            };
            if let Frame::Batches(batches) = frame {
                self.batches.extend(batches.batches);
            }
            self.printed.push(text);
        }
        if let Some(end) = self.session.poll_end()
            && !std::mem::replace(&mut self.has_ended, true)
        {
            self.printed.push(match end {
                End::Closed => "end: closed".to_owned(),
                End::Refused(refusal) => {
                    let facts = refusal.facts();
                    format!("end: {} {facts:?} {refusal}", refusal.reason())
                }
            });
        }
    }
}

/// A batch in words.
fn told(batch: &v1::Batch) -> String {
    let name = batch.replica_set.clone().unwrap_or_default().name;
    let action = match &batch.action {
        Some(Action::Create(it)) => format!("create {}", it.names.len()),
        Some(Action::Delete(it)) => format!("delete {}", it.victims.len()),
        Some(Action::Claim(it)) => format!("claim {}", it.adopts.len() + it.releases.len()),
        Some(Action::WriteStatus(_)) => "status".to_owned(),
        Some(Action::Advise(it)) => format!("advise {}", it.advices.len()),
        None => "nothing".to_owned(),
    };
    format!("batch {} {name}: {action}", batch.id)
}

fn kind(word: &str) -> v1::Kind {
    match word {
        "pods" => v1::Kind::Pod,
        "sets" => v1::Kind::ReplicaSet,
        other => panic!("{other} is no kind"),
    }
}

/// A frame that lacks something.
fn raw(what: &str) -> Option<Asked> {
    let events = |events| Some(Asked::Events(v1::Events { events }));
    let outcomes = |outcomes| Some(Asked::Outcomes(v1::Outcomes { outcomes }));
    match what.split_once('-') {
        None => None,
        Some(("no", "events")) => events(Vec::new()),
        Some(("no", "event")) => events(vec![v1::Event::default()]),
        Some(("no", "outcomes")) => outcomes(Vec::new()),
        Some(("no", "outcome")) => outcomes(vec![v1::Outcome::default()]),
        Some((what, kind)) => {
            let kind = kind.parse().expect("it is a number");
            if what == "begin" {
                return Some(Asked::SnapshotBegin(v1::SnapshotBegin { kind }));
            }
            let deleted = v1::Deleted {
                kind,
                ..v1::Deleted::default()
            };
            let event = Some(Event::Deleted(deleted));
            events(vec![v1::Event { event }])
        }
    }
}

fn nodes(words: &[&str]) -> v1::Nodes {
    let named = |name: &str| v1::Node {
        name: name.to_owned(),
        unschedulable: words.contains(&"cordoned"),
        ..v1::Node::default()
    };
    let names = words
        .iter()
        .filter(|word| !["cordoned", "complete"].contains(word));
    let nodes = names.flat_map(|word| match word.parse::<usize>() {
        Ok(count) => (0..count).map(|at| format!("node-{at}")).collect(),
        Err(_) => vec![word.trim_matches('-').to_owned()],
    });
    v1::Nodes {
        applied: nodes.map(|name| named(&name)).collect(),
        deleted: Vec::new(),
        complete: words.contains(&"complete"),
    }
}

fn event(event: Event) -> v1::ReconcileRequest {
    let events = vec![v1::Event { event: Some(event) }];
    request(Asked::Events(v1::Events { events }))
}

fn objects(words: &[&str]) -> v1::SnapshotObjects {
    let mut objects = v1::SnapshotObjects::default();
    if let [count, what] = words
        && let Ok(count) = count.parse::<usize>()
    {
        let any = |number| v1::Pod {
            controller: None,
            labels: [].into(),
            ..pod(&format!("pod-{number}"), "")
        };
        objects.pods = match *what {
            "pods" => (0..count).map(any).collect(),
            _ => vec![v1::Pod::default(); count],
        };
        return objects;
    }
    for word in words {
        let (name, version) = word.split_once('@').unwrap_or((word, ""));
        match name.split_once('*') {
            Some((name, replicas)) => {
                let replicas = replicas.parse().expect("it is a number");
                objects.replica_sets.push(set(name, replicas, version));
            }
            None => objects.pods.push(pod(name, version)),
        }
    }
    objects
}
