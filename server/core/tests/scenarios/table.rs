//! Tables of scenarios: what is given, events, and the expected batches.
//!
//! A file in `tables/` has scenarios; each begins with `# its name`. A line has statements, separated by `;`, and the line with `>` behind it
//! has what they print. The objects at the beginning of a scenario are its first lists; later objects are events at the next version.
//! `UPDATE_EXPECT=1` writes the files anew.
//!
//! ```text
//! set NAME REPLICAS …        pod NAME,… OWNER …        orphan NAME,… APP …        with flags as in `pods_of` and `set_of`
//! gone pod NAME …            gone set NAME …           begin|end pods|sets [VERSION]        bookmark pods|sets VERSION
//! node NAME …               gone node NAME             nodes (all are shown)
//! list pods|sets [VERSION]: OBJECT / OBJECT            config NAME=NUMBER …       unlisted
//! poll, all, settle          print the next batch; all that leave now; all until nothing is left to do, which succeed; `rest` prints nothing
//! ok, bare, slow-start, not-enforcing, guard: TEXT, CLASS [retry=MILLIS]: TEXT     answer the last batch, or `@N`, whole or `FROM-TO`
//! after pod|set …            answers an operation with this object
//! questions, costs QUESTION POD=COST …                 the questions for costs that leave now; an answer
//! wait MILLIS, clock MILLIS, view NAME, why NAME, reasons NAME, details, errors, syncs, synced, requests, wakes, sizes, reports, simulate NAME REPLICAS
//! ```
//!
//! Names of created pods are `$1`, `$2` … in the order of their first creates.

use std::{fmt::Write as _, fs, path::Path};

use decree_core::{
    Action, After, Batch, Config, Event, Kind, NodeChange, NotStarted, OperationResult, Pod,
    ReplicaSet,
};

use self::{
    printed::{Names, details, joined, questions, reasons, reports, sizes, synced, syncs, view},
    words::{Words, class, kind, millis, node_of, number, pod_of, pods_of, set_of, version},
};
use crate::{
    objects::{START, pod},
    rig::{BARE, Rig, failed},
};

mod printed;
mod words;

/// Plays the scenarios of a file, and compares what they print.
#[expect(
    clippy::disallowed_methods,
    reason = "the tables are files beside the test"
)]
pub(crate) fn play(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/scenarios/tables")
        .join(file);
    let expected = fs::read_to_string(&path).expect("the table is there");
    let (mut played, mut table) = (String::new(), Table::default());
    for line in expected.lines().filter(|line| !line.starts_with('>')) {
        writeln!(played, "{line}").expect("it is a string");
        if let Some(name) = line.strip_prefix("# ") {
            table = Table {
                name: name.to_owned(),
                ..Table::default()
            };
        }
        if line.starts_with('#') {
            continue;
        }
        let statements = line.split(';').map(str::trim);
        for statement in statements.filter(|it| !it.is_empty()) {
            table.act(statement);
        }
        if !table.printed.is_empty() {
            let printed = std::mem::take(&mut table.printed).join(" | ");
            writeln!(played, "> {printed}").expect("it is a string");
        }
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        return fs::write(&path, played).expect("it can be written");
    }
    let mut scenario = "";
    for (number, (played, expected)) in played.lines().zip(expected.lines()).enumerate() {
        scenario = expected.strip_prefix("# ").unwrap_or(scenario);
        assert_eq!(played, expected, "{scenario}: {file}, line {}", number + 1);
    }
    assert_eq!(
        played.len(),
        expected.len(),
        "{scenario}: the end of {file}"
    );
}

/// A scenario that is played.
#[derive(Default)]
struct Table {
    name: String,
    config: Config,
    sets: Vec<ReplicaSet>,
    pods: Vec<Pod>,
    /// From the first event on.
    rig: Option<Rig>,
    batches: Vec<Batch>,
    names: Names,
    printed: Vec<String>,
}

impl Table {
    fn act(&mut self, statement: &str) {
        let mut text = statement.to_owned();
        for (at, name) in self.names.0.iter().enumerate().rev() {
            text = text.replace(&format!("${}", at + 1), name);
        }
        let (text, rest) = text
            .split_once(": ")
            .unwrap_or_else(|| (text.trim_end_matches(':'), ""));
        let words = Words::of(text);
        match (words.word(0), &self.rig) {
            ("config", None) => self.configure(&words),
            ("unlisted", None) => self.rig = Some(Rig::with(self.config.clone())),
            ("set", None) => self.sets.push(set_of(&words)),
            ("pod" | "orphan", None) => self.pods.extend(pods_of(&words)),
            _ => self.event(&words, rest),
        }
    }

    fn configure(&mut self, words: &Words<'_>) {
        let config = &mut self.config;
        for (name, value) in &words.named {
            match *name {
                "burst" => config.burst_replicas = number(value),
                "in-flight" => config.operations_in_flight_max = number(value),
                "slow-start" => config.slow_start_initial = number(value),
                "nodes" => config.nodes = *value == "1",
                "costs" => config.asks_costs = true,
                "advises" => config.advises = *value == "1",
                "by-version" => config.delete_by_version = *value == "1",
                _ => panic!("{name} is no option"),
            }
        }
    }

    fn rig(&mut self) -> &mut Rig {
        let Self {
            config, sets, pods, ..
        } = self;
        self.rig.get_or_insert_with(|| {
            Rig::with(config.clone()).listed(std::mem::take(sets), std::mem::take(pods))
        })
    }

    fn event(&mut self, words: &Words<'_>, rest: &str) {
        let rig = self.rig();
        let given = words.named.iter().find(|(name, _)| *name == "v");
        let is_given = given.is_some();
        rig.reach(given.and_then(|(_, value)| version(value)));
        match words.word(0) {
            "set" if is_given => rig.observe(Event::ReplicaSetApplied(Box::new(set_of(words)))),
            "set" => rig.apply_replica_set(set_of(words)),
            "pod" | "orphan" => {
                for pod in pods_of(words) {
                    if is_given {
                        rig.observe(Event::PodApplied(pod));
                    } else {
                        rig.apply_pod(pod);
                    }
                }
            }
            "node" => rig.change_node(NodeChange::Applied(node_of(words))),
            "nodes" => rig.change_node(NodeChange::Complete),
            "gone" if words.word(1) == "node" => {
                rig.change_node(NodeChange::Deleted(words.word(2).into()));
            }
            "gone" => gone(rig, words, is_given),
            "begin" => rig.observe(Event::SnapshotBegin(kind(words.word(1)))),
            "end" => end_list(rig, words),
            "bookmark" => {
                let version = version(words.word(2)).expect("a version");
                rig.observe(Event::Bookmark {
                    kind: kind(words.word(1)),
                    version,
                });
            }
            "list" => self.list(words, rest),
            "costs" => {
                let of = |(name, cost): &(&str, &str)| (pod(name, "web").uid, Ok(number(cost)));
                let costs = words.named.iter().map(of).collect();
                let question = words.number(1);
                rig.controller.handle_costs(rig.now, question, costs);
            }
            "rest" => drop(rig.settle()),
            "quiet" => drop((rig.settle(), rig.reports())),
            "wait" => rig.wait(millis(words.word(1))),
            "clock" => rig.now = START.plus(millis(words.word(1))),
            "after" => self.after(words),
            "ok" | "bare" | "slow-start" | "not-enforcing" | "guard" => self.answer(words, rest),
            other if other.starts_with(|it: char| it.is_lowercase()) => self.ask(words, rest),
            other => panic!("{}: {other} is no statement", self.name),
        }
    }

    fn list(&mut self, words: &Words<'_>, rest: &str) {
        let rig = self.rig();
        let of = kind(words.word(1));
        rig.observe(Event::SnapshotBegin(of));
        for object in rest.split(" / ").filter(|it| !it.is_empty()) {
            let object = Words::of(object);
            if of == Kind::ReplicaSet {
                rig.observe(Event::ReplicaSetApplied(Box::new(set_of(&object))));
            } else {
                pods_of(&object)
                    .into_iter()
                    .for_each(|pod| rig.observe(Event::PodApplied(pod)));
            }
        }
        end_list(rig, words);
    }

    /// The batch that a statement answers, and the operations.
    fn answered(&self, words: &Words<'_>) -> (Batch, std::ops::Range<u32>) {
        let (mut at, mut operations) = (self.batches.len(), None);
        for word in &words.plain[1..] {
            if let Some(number_of) = word.strip_prefix('@') {
                at = number(number_of);
            } else {
                let (from, to) = word.split_once('-').unwrap_or((word, word));
                operations = Some(number(from)..number::<u32>(to) + 1);
            }
        }
        let batch = self.batches[at - 1].clone();
        let all = 0..u32::try_from(batch.action.operations()).expect("scenarios are small");
        (batch, operations.unwrap_or(all))
    }

    fn answer(&mut self, words: &Words<'_>, rest: &str) {
        let (batch, operations) = self.answered(words);
        for operation in operations {
            let result = match words.word(0) {
                "ok" => {
                    self.rig().succeed_one(&batch, operation as usize);
                    continue;
                }
                "bare" => BARE,
                "slow-start" => OperationResult::NotStarted(NotStarted::SlowStart),
                "not-enforcing" => OperationResult::NotStarted(NotStarted::NotEnforcing),
                "guard" => OperationResult::NotStarted(NotStarted::Guard(rest.to_owned())),
                word => {
                    let mut result = failed(class(word), if rest.is_empty() { "no" } else { rest });
                    if let OperationResult::Failed { retry_after, .. } = &mut result {
                        *retry_after = words.named.first().map(|(_, value)| millis(value));
                    }
                    result
                }
            };
            self.rig().answer(&batch, operation, result);
        }
    }

    fn after(&mut self, words: &Words<'_>) {
        let batch = self.batches.last().expect("a batch").clone();
        let next = Some(self.rig().next_version());
        let is_given = words.named.iter().any(|(name, _)| *name == "v");
        let object = Words {
            plain: words.plain[1..].to_vec(),
            named: words.named.clone(),
        };
        let (version, after) = if words.word(1) == "set" {
            let mut set = set_of(&object);
            set.version = if is_given { set.version } else { next };
            if let Action::WriteStatus(status) = &batch.action {
                set.status = (**status).clone();
            }
            (set.version, After::ReplicaSet(Box::new(set)))
        } else {
            let mut pod = pod_of(&object, object.word(1));
            pod.version = if is_given { pod.version } else { next };
            (pod.version, After::Pod(Box::new(pod)))
        };
        let after = Some(after);
        self.rig()
            .answer(&batch, 0, OperationResult::Done { version, after });
    }

    fn ask(&mut self, words: &Words<'_>, rest: &str) {
        let rig = self.rig();
        let printed = match words.word(0) {
            "poll" => {
                let batch = rig.poll();
                self.left(batch.into_iter().collect(), "no batch")
            }
            "all" => {
                let batches = std::iter::from_fn(|| rig.poll()).collect();
                self.left(batches, "no batch")
            }
            "settle" => {
                let batches = rig.settle();
                self.left(batches, "rest")
            }
            "errors" => {
                let errors = rig.errors();
                joined(&errors, "no error")
            }
            "syncs" => syncs(rig),
            "synced" => synced(rig),
            "requests" => {
                let requests: Vec<_> = rig
                    .requests()
                    .iter()
                    .map(|it| format!("{it:?} list"))
                    .collect();
                joined(&requests, "no list")
            }
            "wakes" => rig.controller.poll_timeout().map_or_else(
                || "no timeout".to_owned(),
                |at| format!("at {} ms", at.since(START).0 / 1_000_000),
            ),
            "sizes" => sizes(rig),
            "reports" => reports(rig),
            "simulate" => {
                let decision = rig.simulate(words.word(1), words.number(2));
                let names: Vec<_> = decision
                    .deletes
                    .iter()
                    .map(|it| it.pod.name.to_string())
                    .collect();
                format!(
                    "{} creates, deletes {}",
                    decision.creates.len(),
                    names.join(" ")
                )
            }
            "questions" => questions(rig),
            "details" => details(self.batches.last().expect("a batch")),
            "reasons" => reasons(&rig.view(words.word(1)).reasons),
            "view" => view(rig, words.word(1)),
            "why" => rig.view(words.word(1)).reasons[0].detail.to_string(),
            _ => return self.answer(words, rest),
        };
        self.printed.push(printed);
    }

    /// The batches in words, which later statements answer.
    fn left(&mut self, batches: Vec<Batch>, none: &str) -> String {
        let told: Vec<_> = batches.iter().map(|batch| self.names.told(batch)).collect();
        self.batches.extend(batches);
        joined(&told, none)
    }
}

/// Ends a list of a kind, at the version that is given or at the next one.
fn end_list(rig: &mut Rig, words: &Words<'_>) {
    let (kind, next) = (kind(words.word(1)), Some(rig.next_version()));
    let version = words.plain.get(2).map_or(next, |it| version(it));
    rig.observe(Event::SnapshotEnd { kind, version });
}

/// Deletes a pod or a ReplicaSet, at the version that is given or at the next one.
fn gone(rig: &mut Rig, words: &Words<'_>, is_given: bool) {
    let next = Some(rig.next_version());
    let object = Words {
        plain: vec![words.word(1), words.word(2), "0"],
        named: words.named.clone(),
    };
    if words.word(1) == "set" {
        let ReplicaSet { key, version, .. } = set_of(&object);
        let version = if is_given { version } else { next };
        return rig.observe(Event::ReplicaSetDeleted { key, version });
    }
    let Pod {
        namespace,
        name,
        uid,
        version,
        ..
    } = pod_of(&object, words.word(2));
    rig.observe(Event::PodDeleted {
        namespace,
        name,
        uid,
        version: if is_given { version } else { next },
    });
}
