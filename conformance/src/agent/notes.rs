//! The rules that an agent is held to, and what was seen of each.

use std::collections::BTreeMap;

/// What a step found where a rule is broken.
pub(super) type Verdict = Result<(), String>;

pub(super) const HELLO: &str = "the first frame is a Hello, and the only one";
pub(super) const PROTOCOL: &str = "the range of versions contains version 1";
pub(super) const EPOCH: &str = "a batch of another session has no effect";
pub(super) const OTHER_EPOCH: &str = "a batch of another epoch has no effect";
pub(super) const SUPERSEDED: &str = "a superseded agent does not come back at once";
pub(super) const TRACE: &str = "an outcome carries the trace of its batch, or none";
pub(super) const INVALID_TRACE: &str = "a batch whose trace is not valid is executed";
pub(super) const READ_LATE: &str = "a server that reads late gets each outcome, once";
pub(super) const UNREAD: &str =
    "an agent whose frames are not read notices the end of its session, and comes back";
pub(super) const AFTER: &str = "a drained agent stays away for as long as the Drain asks";
pub(super) const STOP: &str = "an agent that is stopped closes its stream and ends";
pub(super) const UNKNOWN: &str = "a frame of an unknown type is ignored";
pub(super) const NUMBERS: &str = "frames are numbered from 1 without gaps, or not at all";
pub(super) const GAP: &str = "a gap in the numbers of the server ends the session";
pub(super) const DUPLICATE: &str = "a number of the server that comes twice ends the session";
pub(super) const LISTS: &str = "a list has a begin, its objects, and an end that counts them";
pub(super) const ORDER: &str =
    "changes of a kind come after its first list, in the order of their versions";
pub(super) const NOT_BACK: &str = "no list is older than the one of its kind before it";
pub(super) const RESYNC: &str = "a Resync is answered with a list, which contains what was written";
pub(super) const REFERENCE: &str =
    "a batch of a ReplicaSet that is not known by name and uid has no effect";
pub(super) const CREATE: &str =
    "the outcome of a create carries the pod, under its name and with its controller";
pub(super) const EXISTING: &str = "a create of a name that exists makes no second pod";
pub(super) const ONE_EACH: &str = "each operation has exactly one outcome";
pub(super) const ADOPT: &str =
    "an adoption of a pod that is not there has an outcome other than Done";
pub(super) const UID: &str = "a deletion hits the pod of its uid and no other";
pub(super) const DELETE: &str = "the outcome of a deletion shows that the pod is gone or going";
pub(super) const STATUS: &str = "the outcome of a status carries the ReplicaSet with that status";
pub(super) const HEARTBEAT: &str = "a quiet agent sends heartbeats";
pub(super) const PAUSE: &str = "a server that pauses for less than four intervals is not left";
pub(super) const CUT: &str =
    "after a cut the agent comes back and lists what is there, its writes included";
pub(super) const IN_FLIGHT: &str =
    "calls that are in flight at a cut end before the next Hello, and the lists show what they did";
pub(super) const DRAIN: &str =
    "a drained agent sends its outcomes, closes the stream and comes back";
pub(super) const SILENCE: &str = "a server that is silent for four intervals is left";
pub(super) const KILLED: &str =
    "an agent that was killed comes back with what it had made, and no more";
pub(super) const REFUSED: &str = "an agent that is refused comes back after the delay it was told";

/// The rules, each with its section of docs/protocol.md.
pub(super) const RULES: &[(&str, &str)] = &[
    ("opening", HELLO),
    ("opening", PROTOCOL),
    ("one-writer", EPOCH),
    ("one-writer", OTHER_EPOCH),
    ("one-writer", SUPERSEDED),
    ("frames", NUMBERS),
    ("frames", GAP),
    ("frames", DUPLICATE),
    ("frames", UNKNOWN),
    ("lists-and-changes", LISTS),
    ("lists-and-changes", ORDER),
    ("lists-and-changes", NOT_BACK),
    ("lists-and-changes", RESYNC),
    ("batches-and-outcomes", REFERENCE),
    ("batches-and-outcomes", CREATE),
    ("batches-and-outcomes", EXISTING),
    ("batches-and-outcomes", ONE_EACH),
    ("batches-and-outcomes", ADOPT),
    ("batches-and-outcomes", UID),
    ("batches-and-outcomes", DELETE),
    ("batches-and-outcomes", STATUS),
    ("traces", TRACE),
    ("traces", INVALID_TRACE),
    ("heartbeats-and-the-end-of-a-session", HEARTBEAT),
    ("heartbeats-and-the-end-of-a-session", PAUSE),
    ("heartbeats-and-the-end-of-a-session", READ_LATE),
    ("heartbeats-and-the-end-of-a-session", UNREAD),
    ("heartbeats-and-the-end-of-a-session", CUT),
    ("heartbeats-and-the-end-of-a-session", IN_FLIGHT),
    ("heartbeats-and-the-end-of-a-session", DRAIN),
    ("heartbeats-and-the-end-of-a-session", AFTER),
    ("heartbeats-and-the-end-of-a-session", STOP),
    ("heartbeats-and-the-end-of-a-session", SILENCE),
    ("heartbeats-and-the-end-of-a-session", KILLED),
    ("refusals", REFUSED),
];

/// What was seen of each rule. The first fault stays.
#[derive(Debug, Default)]
pub(super) struct Notes(BTreeMap<&'static str, Verdict>);

// === impl Notes ===

impl Notes {
    pub(super) fn verdict(&self, rule: &str) -> Option<&Verdict> {
        self.0.get(rule)
    }

    pub(super) fn is_broken(&self, rule: &str) -> bool {
        self.verdict(rule).is_some_and(Result::is_err)
    }

    pub(super) fn add(&mut self, rule: &'static str, verdict: Verdict) {
        let noted = self.0.entry(rule).or_insert(Ok(()));
        if noted.is_ok() {
            *noted = verdict;
        }
    }

    pub(super) fn hold(&mut self, rule: &'static str, holds: bool, found: impl FnOnce() -> String) {
        self.add(rule, if holds { Ok(()) } else { Err(found()) });
    }
}
