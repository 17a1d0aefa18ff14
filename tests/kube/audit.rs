//! What the API server says that a service account asked for, and was refused.

use std::{collections::BTreeSet, fs};

use jiff::Timestamp;
use serde_json::{Value, json};
use tests::real::AuditLog;

/// The audit log of an API server.
#[derive(Debug)]
pub(crate) struct Audit {
    log: AuditLog,
}

/// A point in the log. What was asked for before it may be written after it.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    read: u64,
    time: String,
}

// === impl Audit ===

impl Audit {
    /// Makes the policy and the place of a log of what one user does.
    pub(crate) fn of(user: &str) -> Self {
        let rules = json!([{"level": "Metadata", "users": [user]}, {"level": "None"}]);
        let log = AuditLog::of(&rules);
        Self { log }
    }

    /// Returns the flags of the API server that writes it.
    pub(crate) fn flags(&self) -> [String; 2] {
        self.log.flags()
    }

    /// Returns the point from which on things are asked for later than now.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            read: fs::metadata(self.log.path()).map_or(0, |it| it.len()),
            time: format!("{:.6}", Timestamp::now()),
        }
    }

    /// Returns what was asked for since then, as `list pods` or `patch replicasets/status.apps`.
    pub(crate) fn asked(&self, since: &Mark) -> BTreeSet<String> {
        self.lines(since).iter().map(permission).collect()
    }

    /// Returns what was asked for since then and is not permitted.
    pub(crate) fn refused(&self, since: &Mark) -> BTreeSet<String> {
        let lines = self.lines(since);
        let refused = lines
            .iter()
            .filter(|it| it["responseStatus"]["code"] == 403);
        refused.map(missing).collect()
    }

    fn lines(&self, since: &Mark) -> Vec<Value> {
        let lines = self.log.lines(since.read).into_iter();
        lines
            .filter(|line| line["requestReceivedTimestamp"].as_str() >= Some(since.time.as_str()))
            .collect()
    }
}

fn permission(line: &Value) -> String {
    let asked = &line["objectRef"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (verb, group) = (text(&line["verb"]), text(&asked["apiGroup"]));
    let resource = match asked["subresource"].as_str() {
        Some(part) => format!("{}/{part}", text(&asked["resource"])),
        None => text(&asked["resource"]),
    };
    named(&verb, &resource, &group)
}

/// Returns the permission that a refused request lacks, which may be another than that to make it.
fn missing(line: &Value) -> String {
    let message = line["responseStatus"]["message"].as_str();
    let says = |words: &str| message.is_some_and(|message| message.contains(words));
    if says("set blockOwnerDeletion") {
        return named("update", "replicasets/finalizers", "apps");
    }
    if says("set an ownerRef on a resource you can't delete") {
        return named("delete", "pods", "");
    }
    permission(line)
}

/// Returns a permission in words.
pub(crate) fn named(verb: &str, resource: &str, group: &str) -> String {
    match group {
        "" => format!("{verb} {resource}"),
        group => format!("{verb} {resource}.{group}"),
    }
}
