//! A recording as steps for the page of the console: an input, the recorded answer, and the counts of ReplicaSets before and after.
//!
//! **Invariant:** the JSON is bounded, whatever the recording holds.

use std::{collections::BTreeMap, io::Read, mem, ops::ControlFlow};

use decree_core::{Key, Timestamp};
use serde_json::json;
use server_session::recording::{Input, ReadError, RecordedCall, Replay};
use server_session::{Session, SessionIdentity};

use super::entry;
use crate::{cause, near};

/// The maximum number of steps, and the number of bytes of JSON after which no step begins.
const STEPS_MAX: usize = 100_000;
const BYTES_MAX: usize = 64 << 20;
/// The maximum number of lines of an input, and of an answer, and the maximum size of a line and of a title.
const LINES_MAX: usize = 60;
const LINE_BYTES_MAX: usize = 64 << 10;

/// The counts of a ReplicaSet, as `Inspect::counts` returns them.
type Counts = [i64; 5];

/// The steps of a recording.
#[derive(Default)]
pub(super) struct Steps {
    /// The steps in JSON, separated by commas.
    pub(super) json: String,
    pub(super) count: usize,
    /// The number of differences of this version in the steps.
    pub(super) differences: u64,
    /// Whether the recording has more steps.
    pub(super) is_cut: bool,
    step: Step,
    /// Whether time has passed since the last other input.
    is_idle: bool,
    /// The counts after the last call.
    known: BTreeMap<Key, Counts>,
}

/// An input with its consequences.
#[derive(Default)]
struct Step {
    title: String,
    time: Timestamp,
    input: Lines,
    answer: Lines,
    /// The counts before and after, by namespace and name.
    changes: BTreeMap<String, [Counts; 2]>,
}

/// The first lines of an input or an answer, and the number of the others: a hostile recording has an answer without end.
#[derive(Default)]
struct Lines {
    kept: Vec<String>,
    more: usize,
}

/// Reads the steps of a replay that keeps its inputs.
pub(super) fn read(replay: &mut Replay<impl Read>) -> Result<Steps, ReadError> {
    let mut steps = Steps::new(replay.identity());
    while !steps.is_cut
        && let Some(call) = replay.next_call()?
    {
        steps.is_cut = steps.take(call, replay.session()).is_break();
    }
    steps.write();
    Ok(steps)
}

fn shortened(line: String) -> String {
    match line.floor_char_boundary(LINE_BYTES_MAX) {
        end if end < line.len() => format!("{}…", &line[..end]),
        _ => line,
    }
}

impl Lines {
    fn add(&mut self, lines: impl IntoIterator<Item = String>) {
        for line in lines {
            if self.kept.len() < LINES_MAX {
                self.kept.push(shortened(line));
            } else {
                self.more += 1;
            }
        }
    }

    fn shown(self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("and {} more", self.more));
        self.kept.into_iter().chain(more).collect()
    }
}

impl Steps {
    /// Begins with the Hello, which a recording has before its calls.
    fn new(identity: &SessionIdentity) -> Self {
        let (agent, epoch) = (&identity.agent_instance, identity.epoch);
        let mode = cause::mode_without_effect(identity.mode).unwrap_or("enforce");
        let mut input = Lines::default();
        input.add([format!("agent {agent}, mode {mode}, epoch {epoch}")]);
        Self {
            step: Step {
                title: "the agent opens the session".to_owned(),
                time: identity.started,
                input,
                ..Step::default()
            },
            ..Self::default()
        }
    }

    /// Takes a call. Breaks if its step is one too many. Time that passes begins a step only if it has an answer.
    fn take(&mut self, call: RecordedCall, session: &Session) -> ControlFlow<()> {
        let (now, end) = (call.now.wall, call.end);
        let has_output = call.frame.is_some() || call.difference.is_some();
        if has_output && mem::take(&mut self.is_idle) {
            self.begin("time passed".to_owned(), now, Vec::new())?;
        }
        let answer = call.frame.iter().flat_map(entry::explained);
        self.step.answer.add(answer);
        let pairs = call.difference.iter().flat_map(entry::of);
        let pairs = pairs.map(|it| format!("this version: {}: {}", it.subject, it.decided));
        self.step.answer.add(pairs);
        self.differences += u64::from(call.difference.is_some());
        match &call.input {
            Some(Input::Timeout) => self.is_idle = true,
            Some(input) => {
                let (title, lines) = (entry::title(input), entry::objects(input));
                let first = near::first_of(&lines, 1);
                let colon = if lines.is_empty() { "" } else { ": " };
                self.begin(format!("{title}{colon}{first}"), now, lines)?;
            }
            None => {}
        }
        if let Some(end) = end {
            let title = "the recording ends".to_owned();
            self.begin(title, now, vec![entry::end(&end)])?;
        }
        // Time that passed so far belongs to the step of its output.
        if !self.is_idle {
            self.count(session);
        }
        ControlFlow::Continue(())
    }

    fn begin(&mut self, title: String, time: Timestamp, input: Vec<String>) -> ControlFlow<()> {
        if self.count + 1 >= STEPS_MAX || self.json.len() >= BYTES_MAX {
            return ControlFlow::Break(());
        }
        self.write();
        self.step = Step {
            title: shortened(title),
            time,
            ..Step::default()
        };
        self.step.input.add(input);
        self.is_idle = false;
        ControlFlow::Continue(())
    }

    /// Adds to the step how the counts have changed.
    fn count(&mut self, session: &Session) {
        let counts = session.controller().inspect().counts();
        let counts = counts.map(|(key, counts)| (key.clone(), counts));
        let before = mem::replace(&mut self.known, counts.collect());
        for key in before.keys().chain(self.known.keys()) {
            let of = |all: &BTreeMap<Key, Counts>| all.get(key).copied().unwrap_or_default();
            self.step.change(key, of(&before), of(&self.known));
        }
    }

    /// Adds the step to the JSON. Leaves it without content.
    fn write(&mut self) {
        let step = json!({
            "title": self.step.title,
            "time": self.step.time.0.div_euclid(1_000_000),
            "input": mem::take(&mut self.step.input).shown(),
            "answer": mem::take(&mut self.step.answer).shown(),
            "changes": self.step.changes,
        });
        let comma = if self.count > 0 { "," } else { "" };
        self.json.push_str(&format!("{comma}{step}"));
        self.count += 1;
    }
}

impl Step {
    fn change(&mut self, key: &Key, before: Counts, after: Counts) {
        if before != after {
            let path = format!("{}/{}", key.namespace, key.name);
            self.changes.entry(path).or_insert([before, after])[1] = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Replay<&'static [u8]> {
        let bytes = include_bytes!("../../../docs/examples/session.recording");
        let replay = Replay::open(&bytes[..]).expect("it is a recording");
        replay.keep_inputs()
    }

    #[test]
    fn steps_have_the_answer_the_differences_and_the_changed_counts() {
        let steps = read(&mut example()).expect("it is whole");
        let counts = (steps.count, steps.differences, steps.is_cut);
        assert_eq!(counts, (9, 1, false));
        let steps = format!("[{}]", steps.json);
        let steps: serde_json::Value = serde_json::from_str(&steps).expect("it is JSON");
        let decided = &steps[6];
        assert_eq!(decided["title"], "frame 0 of the agent: list of pods ends");
        let answer = [
            "default/web: create 3: web-9wm7w, web-7rvnf, web-5m55v; TOO_FEW_REPLICAS: 0 active pods, 3 desired",
            "default/api: delete 1: api-x; TOO_MANY_REPLICAS: 2 active pods, 1 desired",
            "api-x (UNASSIGNED: not assigned to a node)",
            "this version: default/api: delete 1: api-y",
        ];
        assert_eq!(decided["answer"], json!(answer));
        let changes = json!({
            "default/api": [[1, 2, 1, 0, 0], [1, 2, 1, 0, 1]],
            "default/web": [[3, 0, 0, 0, 0], [3, 0, 0, 0, 3]],
        });
        assert_eq!(decided["changes"], changes);
        let end = json!(["the session ends: CLOSED_BY_AGENT"]);
        assert_eq!(steps[8]["input"], end);
    }

    #[test]
    fn lines_and_steps_are_bounded() {
        let mut lines = Lines::default();
        lines.add(["ö".repeat(LINE_BYTES_MAX), "ö".to_owned()]);
        lines.add(vec![String::new(); LINES_MAX]);
        assert_eq!(lines.kept.len(), LINES_MAX);
        assert_eq!(lines.kept[0], "ö".repeat(LINE_BYTES_MAX / 2) + "…");
        let lines = lines.shown();
        assert_eq!((&*lines[1], &*lines[LINES_MAX]), ("ö", "and 2 more"));
        for (count, bytes, fits) in [
            (STEPS_MAX - 2, 0, true),
            (STEPS_MAX - 1, 0, false),
            (0, BYTES_MAX - 1, true),
            (0, BYTES_MAX, false),
        ] {
            let mut steps = Steps::new(example().identity());
            steps.count = count;
            steps.json = " ".repeat(bytes);
            let begun = steps.begin(String::new(), Timestamp::default(), Vec::new());
            assert_eq!(begun.is_continue(), fits, "{count} {bytes}");
        }
    }
}
