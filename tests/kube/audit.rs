//! The requests of service accounts, and the refused ones, from the audit log.

use std::{collections::BTreeSet, fs};

use jiff::Timestamp;
use serde_json::{Value, json};
use tests::real::AuditLog;

#[derive(Debug)]
pub(crate) struct Audit {
    log: AuditLog,
}

/// A point in the log. Later entries may be of requests from before the point.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    read: u64,
    time: String,
}

impl Audit {
    /// Makes the policy and the file of a log of these users.
    pub(crate) fn of(users: &[String]) -> Self {
        let rules = json!([{"level": "Metadata", "users": users}, {"level": "None"}]);
        let log = AuditLog::of(&rules);
        Self { log }
    }

    /// The flags of the API server that writes the log.
    pub(crate) fn flags(&self) -> [String; 2] {
        self.log.flags()
    }

    /// Marks the current point of the log.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            read: fs::metadata(self.log.path()).map_or(0, |it| it.len()),
            time: format!("{:.6}", Timestamp::now()),
        }
    }

    /// The requests of a user since a mark, such as `list pods` or `patch replicasets/status.apps`.
    pub(crate) fn asked(&self, user: &str, since: &Mark) -> BTreeSet<String> {
        self.lines(user, since).iter().map(permission).collect()
    }

    /// The forbidden requests of a user since a mark.
    pub(crate) fn refused(&self, user: &str, since: &Mark) -> BTreeSet<String> {
        let lines = self.lines(user, since);
        let refused = lines
            .iter()
            .filter(|it| it["responseStatus"]["code"] == 403);
        refused.map(missing).collect()
    }

    fn lines(&self, user: &str, since: &Mark) -> Vec<Value> {
        let mut lines = self.log.lines(since.read);
        lines.retain(|line| {
            line["user"]["username"] == user
                && line["requestReceivedTimestamp"].as_str() >= Some(since.time.as_str())
        });
        lines
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

/// The missing permission of a refused request, which may differ from the permission to make it.
fn missing(line: &Value) -> String {
    let message = line["responseStatus"]["message"].as_str();
    if message.is_some_and(|message| message.contains("set blockOwnerDeletion")) {
        return named("update", "replicasets/finalizers", "apps");
    }
    permission(line)
}

pub(crate) fn named(verb: &str, resource: &str, group: &str) -> String {
    match group {
        "" => format!("{verb} {resource}"),
        group => format!("{verb} {resource}.{group}"),
    }
}
