//! Whether an agent may act on ReplicaSets, for which Kubernetes has its built-in controller.
//!
//! Nothing shows which controllers a kube-controller-manager runs, and silence proves nothing: a busy one answers after minutes. So a person
//! declares that the built-in controller is off, by a flag or by a record. The record wins over the flag. It is in the *probe*, a ReplicaSet
//! without desired pods in the namespace of the agent's Lease, which no agent reconciles.
//!
//! The probe also stops an agent. An agent that leads changes the probe: it *asks* which controllers are on. Each controller of ReplicaSets
//! *answers*: it reports the new generation in the status. The question stays open while the agent acts, so a controller that starts later
//! answers, too. The agent stops at any answer, under any name, and records that it stopped. Only a new declaration ends a recorded stop.
//!
//! **Invariant:** an agent acts only while the built-in controller is declared off, and begins only after its question has been open for two
//! seconds. **Invariant:** only answers to a question of the present lead count, as an agent of an older version answers while it leads.

use std::{fmt, time::Duration};

use jiff::Timestamp;

use crate::{api::ApiError, pace::after};

/// The annotation of the probe that holds the record. Its first word counts; the rest is for people.
pub const DECLARATION_ANNOTATION: &str = "decree.dev/built-in-replicaset-controller";

/// The longest record that is kept. It fits the names of a user, a controller and an agent.
const BYTES_MAX: usize = 512;

/// How long a question stays open before an agent acts. An idle controller answers within a second.
const SILENCE: Duration = Duration::from_secs(2);
/// The interval of questions of an agent that does not act. They show that it could ask if it led.
const ASK_EVERY: Duration = Duration::from_mins(1);
/// The wait after a failed request.
const RETRY: Duration = Duration::from_secs(5);
/// The wait before a question that a lower generation needs.
const SETTLE: Duration = Duration::from_secs(1);

/// What a person or an agent has recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The first word of the record.
    pub built_in: BuiltIn,
    /// The record, for people.
    pub text: String,
}

/// The recorded state of the built-in controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    /// A person has declared that it is off, so agents act.
    Off,
    /// A person has declared that it is on or will be, so agents stand by. Also any unknown word.
    On,
    /// An agent has found another controller on, and has stopped.
    FoundOn,
}

/// The probe, as the API server shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeState {
    /// The version of the object.
    pub version: String,
    /// The record; `None` if nobody has declared anything.
    pub declaration: Option<Declaration>,
    /// The generation, which each question raises.
    pub generation: i64,
    /// The generation in the status: the last answered question.
    pub observed: i64,
    /// The writer of the last answer; empty without an answer.
    pub observer: String,
}

/// A request for the probe. [`TakeOver::handle_answer`] takes the answer to each, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Create the probe, with this record.
    Create(Option<Declaration>),
    /// Change the probe, so that its generation grows.
    Ask,
    /// Replace the record, if the probe still has this version.
    Record(Declaration, String),
}

/// What an agent may do, and what keeps it from more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What it may do.
    pub stage: Stage,
    /// Why it stands by; or, while it waits for the Lease, why it could not act if it led.
    pub why: Option<Why>,
}

/// What an agent may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It does not act, and needs no Lease.
    #[default]
    StandBy,
    /// It may wait for the Lease and take it, and asks when it has the Lease.
    Lead,
    /// It may act while it leads.
    Act,
}

/// What keeps an agent from acting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has not read and changed the probe yet.
    Starting,
    /// It cannot change the probe.
    Failed(ApiError),
    /// Nobody has declared that the built-in controller is off.
    Undeclared,
    /// The record does not say that the built-in controller is off.
    On(Declaration),
}

/// The state of one agent. Owned and changed by the shell's one task for the probe.
#[derive(Clone, Debug, Default)]
pub struct TakeOver {
    /// The name of the agent in records.
    agent: String,
    /// Whether a flag declares that the built-in controller is off.
    flag: bool,
    /// The probe as last seen.
    probe: Option<ProbeState>,
    is_missing: bool,
    /// The record as last seen, also of a probe that is gone.
    declaration: Option<Declaration>,
    /// The stop that is not recorded yet.
    stop: Option<Declaration>,
    leads: bool,
    stage: Stage,
    /// The generation of the question of this lead.
    asked: Option<i64>,
    /// Since when the present question has been open.
    open_since: Option<Timestamp>,
    /// Whether the probe was read, and changed.
    has_read: bool,
    has_changed: bool,
    /// The error of the last request.
    failed: Option<ApiError>,
    /// The request without an answer, and whether it was made in this lead.
    request: Option<(Command, bool)>,
    /// When the next request may leave.
    retry: Timestamp,
    /// When an agent that does not lead asks again.
    ask_again: Timestamp,
}

impl Declaration {
    /// Reads the value of the [annotation](DECLARATION_ANNOTATION).
    pub fn parse(value: &str) -> Self {
        let built_in = match value.split_whitespace().next() {
            Some("off") => BuiltIn::Off,
            Some("found-on") => BuiltIn::FoundOn,
            Some(_) | None => BuiltIn::On,
        };
        let text = value[..value.floor_char_boundary(BYTES_MAX)].to_owned();
        Self { built_in, text }
    }

    /// Returns the record of a person who turns the built-in controller off or on.
    pub fn by_person(now: Timestamp, is_off: bool, user: &str) -> Self {
        let word = if is_off { "off" } else { "on" };
        Self::parse(&format!("{word} since {now:.0}, declared by {user}"))
    }

    /// Returns the record of an agent that has stopped because `writer` answered.
    fn found_on(now: Timestamp, writer: &str, agent: &str) -> Self {
        Self::parse(&format!(
            "found-on since {now:.0}: {writer} answered {agent}, which has stopped"
        ))
    }

    /// Returns the time of the record; `None` if it has another form.
    pub fn since(&self) -> Option<Timestamp> {
        let time = self.text.split_whitespace().nth(2)?;
        time.trim_end_matches([',', ':']).parse().ok()
    }
}

impl Why {
    /// The values of a metric's label: those that [`as_str`](Self::as_str) returns.
    pub const CAUSES: [&str; 4] = ["undeclared", "on", "found_on", "no_probe"];

    /// Returns the cause in one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Starting | Self::Failed(_) => "no_probe",
            Self::Undeclared => "undeclared",
            Self::On(record) if record.built_in == BuiltIn::FoundOn => "found_on",
            Self::On(_) => "on",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => formatter.write_str("it has not used the probe yet"),
            Self::Failed(error) => {
                write!(formatter, "the probe cannot be read and changed: {error}")
            }
            Self::Undeclared => formatter
                .write_str("nobody has declared that the built-in ReplicaSet controller is off"),
            Self::On(record) => write!(formatter, "the probe records: {}", record.text),
        }
    }
}

impl TakeOver {
    /// Creates the state of an agent that has read nothing; `flag` declares that the built-in controller is off.
    pub fn new(agent: String, flag: bool) -> Self {
        Self {
            agent,
            flag,
            ..Self::default()
        }
    }

    /// Takes the probe as read, or that there is none.
    pub fn handle_read(&mut self, now: Timestamp, probe: Option<ProbeState>) {
        self.has_read = true;
        match probe {
            Some(probe) => self.see(now, probe),
            None => {
                self.is_missing = true;
                (self.probe, self.asked, self.open_since) = (None, None, None);
            }
        }
    }

    /// Takes the answer to the request.
    pub fn handle_answer(&mut self, now: Timestamp, answer: Result<ProbeState, ApiError>) {
        let Some((command, of_this_lead)) = self.request.take() else {
            return;
        };
        let error = match answer {
            Ok(probe) => {
                if of_this_lead && !matches!(command, Command::Record(..)) {
                    self.asked = Some(probe.generation);
                }
                (self.has_changed, self.failed) = (true, None);
                self.ask_again = after(now, ASK_EVERY);
                return self.see(now, probe);
            }
            Err(error) => error,
        };
        let creates = matches!(command, Command::Create(_));
        if error.code == Some(404) && !creates {
            self.is_missing = true;
            return;
        }
        (self.retry, self.ask_again) = (after(now, RETRY), Timestamp::MIN);
        if error.code == Some(409) {
            // Another agent or a person was faster.
            self.is_missing = false;
        } else {
            self.failed = Some(error);
        }
    }

    /// Notes whether the agent leads. What was asked before does not count in this lead.
    pub fn handle_lead(&mut self, leads: bool) {
        (self.leads, self.asked) = (leads, None);
        if self.stage == Stage::Act {
            self.stage = Stage::Lead;
        }
        if let Some((_, of_this_lead)) = &mut self.request {
            *of_this_lead = false;
        }
    }

    /// Returns the next request; `None` while an answer is awaited.
    pub fn poll_command(&mut self, now: Timestamp) -> Option<Command> {
        if self.due().is_none_or(|due| now < due) {
            return None;
        }
        let command = match (&self.stop, &self.probe) {
            _ if self.is_missing => Command::Create(self.record()),
            (Some(stop), Some(probe)) => Command::Record(stop.clone(), probe.version.clone()),
            (None, _) | (_, None) => Command::Ask,
        };
        self.request = Some((command.clone(), self.leads));
        Some(command)
    }

    /// Returns what the agent may do now.
    pub fn poll_verdict(&mut self, now: Timestamp) -> Verdict {
        let mut why = self.why_undeclared();
        // Where the question of the lead is refused, another agent may lead, and this one tries again later.
        let is_refused = self.failed.as_ref().is_some_and(|it| it.code.is_some());
        if why.is_some() || (is_refused && self.leads && self.stage == Stage::Lead) {
            self.stage = Stage::StandBy;
        }
        if let Some(error) = &self.failed {
            why = Some(Why::Failed(error.clone()));
        } else if !(self.has_read && self.has_changed) {
            why = Some(Why::Starting);
        }
        if self.stage == Stage::StandBy && why.is_none() {
            self.stage = Stage::Lead;
        }
        if self.silent_at().is_some_and(|silent| silent <= now) {
            self.stage = Stage::Act;
        }
        let stage = self.stage;
        Verdict { stage, why }
    }

    /// Returns when a poll is due without other input.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let silent = self.silent_at().filter(|_| self.stage == Stage::Lead);
        self.due().into_iter().chain(silent).min()
    }

    /// Returns who has answered the last question.
    pub fn answered_by(&self) -> Option<&str> {
        let answered = self
            .probe
            .as_ref()
            .filter(|it| it.observed >= it.generation);
        answered.map(|probe| probe.observer.as_str())
    }

    fn see(&mut self, now: Timestamp, probe: ProbeState) {
        let before = self.probe.as_ref();
        let is_same_answer = before.is_some_and(|before| before.observed == probe.observed);
        let open_since = self.open_since.filter(|_| is_same_answer).unwrap_or(now);
        self.open_since = (probe.observed < probe.generation).then_some(open_since);
        if probe.declaration != self.declaration {
            // The stop is recorded, or the declaration that it ends is over.
            self.stop = None;
            self.declaration.clone_from(&probe.declaration);
        }
        // A lower generation is of another object, which was not asked, or of a watch that is behind. If such a watch showed each question
        // after the answer to the next, the agent would ask without end.
        if self.asked.is_some_and(|asked| asked > probe.generation) {
            self.asked = None;
            self.retry = self.retry.max(after(now, SETTLE));
        }
        if self.asked.is_some_and(|asked| asked <= probe.observed) {
            self.asked = None;
            let stop = Declaration::found_on(now, &probe.observer, &self.agent);
            self.stop = self.why_undeclared().is_none().then_some(stop);
        }
        (self.probe, self.is_missing) = (Some(probe), false);
    }

    /// The record of the probe, or the one that it should have.
    fn record(&self) -> Option<Declaration> {
        self.stop.clone().or_else(|| self.declaration.clone())
    }

    /// Why the built-in controller does not count as off; `None` if it does.
    fn why_undeclared(&self) -> Option<Why> {
        match self.record() {
            Some(record) if record.built_in == BuiltIn::Off => None,
            Some(record) => Some(Why::On(record)),
            None => (!self.flag).then_some(Why::Undeclared),
        }
    }

    /// When the next request is due.
    fn due(&self) -> Option<Timestamp> {
        let is_urgent =
            self.is_missing || self.stop.is_some() || self.leads && self.asked.is_none();
        let due = match (is_urgent, self.leads) {
            (true, _) => self.retry,
            (false, true) => return None,
            (false, false) => self.retry.max(self.ask_again),
        };
        self.request.is_none().then_some(due)
    }

    /// When the question of this lead will have been open for long enough; `None` if the agent may not act.
    fn silent_at(&self) -> Option<Timestamp> {
        let is_able = self.has_read && self.failed.is_none();
        let may_act = is_able && self.asked.is_some() && self.why_undeclared().is_none();
        let open_since = self.open_since.filter(|_| may_act)?;
        Some(after(open_since, SILENCE))
    }
}

#[cfg(test)]
mod tests;
