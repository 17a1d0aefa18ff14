//! The rules for an agent, the observations for each, and their verdicts.

use std::{collections::BTreeMap, fmt};

const PAGE: &str = "https://github.com/decree-dev/decree/blob/main/docs/protocol.md";

/// A tested rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The anchor of the rule's section in docs/protocol.md.
    pub section: &'static str,
    /// The short form of the rule, which is unique.
    pub words: &'static str,
}

/// The error is the observation that breaks a rule.
pub(crate) type Verdict = Result<(), String>;

/// A rule and its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The rule.
    pub rule: Rule,
    /// The error is the observation that breaks the rule.
    pub verdict: Result<(), String>,
}

/// The rows of a run, in the order of docs/protocol.md. Prints as a table with a link to each section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score(pub Vec<Row>);

/// Names each rule, and lists all with their sections of docs/protocol.md.
macro_rules! rules {
    ($(#[$doc:meta])* $rules:ident: $($section:literal { $($name:ident = $words:literal;)* })*) => {
        $($(pub(crate) const $name: &str = $words;)*)*

        $(#[$doc])*
        pub const $rules: &[Rule] = &[$($(Rule { section: $section, words: $name },)*)*];
    };
}

rules! {
    /// The rules that [`run_agent`](crate::run_agent) tests, in the order of docs/protocol.md.
    RULES:
    "opening" {
        HELLO = "the first frame is a Hello, and the only one";
        PROTOCOL = "the range of versions contains version 1";
    }
    "one-writer" {
        EPOCH = "a batch of another session has no effect";
        OTHER_EPOCH = "a batch of another epoch has no effect";
        SUPERSEDED = "a superseded agent does not come back at once";
    }
    "frames" {
        NUMBERS = "frames are numbered from 1 without gaps, or not at all";
        GAP = "a gap in the numbers of the server ends the session";
        DUPLICATE = "a number of the server that comes twice ends the session";
        UNKNOWN = "a frame of an unknown type is ignored";
    }
    "lists-and-changes" {
        LISTS = "a list has a begin, its objects, and an end that counts them";
        ORDER = "changes of a kind come after its first list, in the order of their versions";
        VERSIONS = "each state of an object has its own version, and a write a later one than the list before it";
        NOT_BACK = "no list is older than the one of its kind before it";
        LAG = "a list that begins after a create shows the pod";
        GONE = "a pod that was deleted does not come back";
        LABELS = "the ReplicaSet selects each pod that it controls";
        RESYNC = "a Resync is answered with a list, which contains what was written";
    }
    "batches-and-outcomes" {
        REFERENCE = "a batch of a ReplicaSet that is not known by name and uid has no effect";
        CREATE = "the outcome of a create carries the pod, under its name and with its controller";
        EXISTING = "a create of a name that exists makes no second pod";
        ONE_EACH = "each operation has exactly one outcome";
        ADOPT = "an adoption of a missing pod has an outcome other than Done";
        UID = "a deletion hits the pod of its uid and no other";
        DELETE = "the outcome of a deletion shows that the pod is gone or going";
        STATUS = "the outcome of a status carries the ReplicaSet with that status";
    }
    "heartbeats-and-the-end-of-a-session" {
        HEARTBEAT = "a quiet agent sends heartbeats";
        PAUSE = "a server that pauses for less than four intervals is not left";
        READ_LATE = "a server that reads late gets each outcome, once";
        UNREAD = "an agent whose frames are not read notices the end of its session, and comes back";
        CUT = "after a cut the agent comes back and lists the cluster, its writes included";
        IN_FLIGHT = "calls that are in flight at a cut end before the next Hello, and the lists show what they did";
        DRAIN = "a drained agent sends its outcomes, closes the stream and comes back";
        AFTER = "a drained agent stays away for as long as the Drain asks";
        STOP = "an agent that is stopped closes its stream and ends";
        SILENCE = "a server that is silent for four intervals is left";
        KILLED = "an agent that was killed comes back with what it had made, and no more";
    }
    "refusals" {
        REFUSED = "an agent that is refused comes back after the delay it was told";
    }
    "fields" {
        FIELDS = "each object has a namespace, a name, a uid and labels that a server accepts";
    }
}

rules! {
    /// The rules that [`run_unary`](crate::run_unary) tests, in the order of docs/protocol.md.
    UNARY_RULES:
    "decisions-without-a-session" {
        SET = "each request has the same ReplicaSet, with the desired number and a selector that matches its template";
        PODS = "each pod of a request has its own uid, and belongs to the ReplicaSet, which selects it";
        CREATED = "a name to create becomes a pod, which later requests list";
        TWICE = "an answer that comes again makes no second pod";
        TAKEN = "a name that exists does not end the turn";
        OTHER_UID = "a deletion of another uid has no effect";
        DELETED = "a deleted pod is listed no longer";
        ABSENT = "a deletion of a pod that is gone does not end the turn";
        FAILED = "a call that fails changes nothing, and the controller asks again";
        UNDECIDED = "an answer without a decision, or with quarantined, changes nothing";
        DEADLINE = "a call without an answer ends within 20 seconds, and the controller asks again";
        ONE_CALL = "a controller waits for the end of a call before the next call";
        REVIVED = "a controller that was killed comes back with its pods, and makes none of them twice";
    }
}

/// The observations for each rule. The first fault stays.
#[derive(Debug, Default)]
pub(crate) struct Notes(BTreeMap<&'static str, Verdict>);

impl Notes {
    /// The score after the end of the script. Rules that it did not reach are broken.
    pub(crate) fn score(mut self, rules: &[Rule], end: Verdict) -> Score {
        let why = end.err().map_or_else(String::new, |why| format!(": {why}"));
        let row = |rule: &Rule| Row {
            rule: *rule,
            verdict: self
                .0
                .remove(rule.words)
                .unwrap_or_else(|| Err(format!("not reached{why}"))),
        };
        Score(rules.iter().map(row).collect())
    }

    pub(crate) fn is_broken(&self, rule: &str) -> bool {
        self.0.get(rule).is_some_and(Result::is_err)
    }

    pub(crate) fn add(&mut self, rule: &'static str, verdict: Verdict) {
        let noted = self.0.entry(rule).or_insert(Ok(()));
        if noted.is_ok() {
            *noted = verdict;
        }
    }

    pub(crate) fn hold(&mut self, rule: &'static str, holds: bool, found: impl FnOnce() -> String) {
        self.add(rule, if holds { Ok(()) } else { Err(found()) });
    }
}

impl Rule {
    /// The address of the rule's section in docs/protocol.md.
    pub fn link(&self) -> String {
        format!("{PAGE}#{}", self.section)
    }
}

impl Score {
    /// Whether each rule is kept.
    pub fn is_full(&self) -> bool {
        self.0.iter().all(|row| row.verdict.is_ok())
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut section = "";
        for Row { rule, verdict } in &self.0 {
            if rule.section != section {
                section = rule.section;
                writeln!(f, "{}", rule.link())?;
            }
            match verdict {
                Ok(()) => writeln!(f, "  ok    {}", rule.words)?,
                Err(fault) => {
                    let fault = service::escaped(fault);
                    writeln!(f, "  FAIL  {}\n        {fault}", rule.words)?;
                }
            }
        }
        let kept = self.0.iter().filter(|row| row.verdict.is_ok()).count();
        write!(f, "score: {kept} of {}", self.0.len())
    }
}
