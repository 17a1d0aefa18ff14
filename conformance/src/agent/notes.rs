//! The rules for an agent, and the observations for each.

use std::collections::BTreeMap;

use crate::score::Rule;

/// The error is the observation that breaks a rule.
pub(super) type Verdict = Result<(), String>;

/// Names each rule, and lists all with their sections of docs/protocol.md.
macro_rules! rules {
    ($($section:literal { $($name:ident = $rule:literal;)* })*) => {
        $($(pub(super) const $name: &str = $rule;)*)*

        pub(super) const RULES: &[Rule] = &[$($(Rule { section: $section, rule: $name },)*)*];
    };
}

rules! {
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
        NOT_BACK = "no list is older than the one of its kind before it";
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
}

/// The observations for each rule. The first fault stays.
#[derive(Debug, Default)]
pub(super) struct Notes(BTreeMap<&'static str, Verdict>);

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
