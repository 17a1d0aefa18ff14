//! Decisions as lines of text, with a count of repeated decisions.

use decree::v1;
use server_core::wording::count;

use super::server::Decided;
use crate::{decision, record, table::one_line};

/// The lines to print.
#[derive(Debug, Default)]
pub(crate) struct DecisionLog {
    lines: Vec<String>,
    /// The latest decision, and the number of its repetitions.
    latest: String,
    repeats: usize,
}

// === impl DecisionLog ===

impl DecisionLog {
    /// Notes a decision, but not a status write.
    pub(crate) fn note(&mut self, record: &v1::DecisionRecord) {
        if record.action == "status" {
            return;
        }
        let line = line(record);
        if line == self.latest {
            self.repeats += 1;
            return;
        }
        self.end_repeats();
        self.latest.clone_from(&line);
        self.lines.push(line);
    }

    /// Notes a decision, and the refusal of the cluster before it, in the words of the cluster.
    pub(crate) fn note_with_refusal(&mut self, Decided { decision, refused }: &Decided) {
        self.note(decision);
        if let Some(said) = refused {
            self.end_repeats();
            self.latest.clear();
            let set = decision::path(decision.replica_set.as_ref());
            self.lines
                .push(format!("{set}: refused: {}", one_line(said)));
        }
    }

    /// Adds the number of repetitions of the latest decision.
    pub(crate) fn end_repeats(&mut self) {
        let times = match std::mem::take(&mut self.repeats) {
            0 => return,
            1 => "once more".to_owned(),
            repeats => format!("{repeats} more times"),
        };
        self.lines.push(format!("(the same decision {times})"));
    }

    /// Takes the lines out.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }
}

/// The maximum number of named victims.
const NAMED_MAX: usize = 5;

/// The decision with its rule; for deletions, the first victims with their rules.
fn line(record: &v1::DecisionRecord) -> String {
    let set = decision::path(record.replica_set.as_ref());
    let (action, pods) = (&record.action, count(record.operations, "pod"));
    let why = match action.as_str() {
        "delete" => {
            let mut named = record.clone();
            named.targets.truncate(NAMED_MAX);
            format!(": {}", record::targets(&named))
        }
        _ => record.reasons.first().map_or_else(String::new, |reason| {
            format!(": {}", record::reason(reason))
        }),
    };
    format!("{set}: {action} {pods}{why}")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn decided(action: &str, operations: i32) -> v1::DecisionRecord {
        let replica_set = v1::ObjectRef {
            namespace: "default".to_owned(),
            name: "web".to_owned(),
            uid: "u".to_owned(),
        };
        let reason = |rule: v1::Rule, detail: &str| v1::Reason {
            rule: rule.into(),
            detail: detail.to_owned(),
        };
        v1::DecisionRecord {
            replica_set: Some(replica_set),
            action: action.to_owned(),
            operations,
            reasons: vec![reason(v1::Rule::TooFewReplicas, "4 active pods, 8 wanted")],
            targets: vec![v1::DecisionTarget {
                name: "web-x".to_owned(),
                reason: Some(reason(v1::Rule::NotReady, "not ready")),
            }],
            ..v1::DecisionRecord::default()
        }
    }

    #[test]
    fn repeated_decisions_are_one_line_and_a_count_up_to_a_refusal() {
        let mut log = DecisionLog::default();
        for (action, operations, refused) in [
            ("create", 2, None),
            ("create", 2, None),
            ("create", 2, None),
            ("create", 1, None),
            ("status", 1, None),
            ("delete", 2, None),
            ("delete", 2, Some("QUOTA: no\nmore")),
            ("delete", 2, None),
        ] {
            log.note_with_refusal(&Decided {
                decision: decided(action, operations),
                refused: refused.map(str::to_owned),
            });
        }
        expect![[r#"
            default/web: create 2 pods: TOO_FEW_REPLICAS: 4 active pods, 8 wanted
            (the same decision 2 more times)
            default/web: create 1 pod: TOO_FEW_REPLICAS: 4 active pods, 8 wanted
            default/web: delete 2 pods: web-x (NOT_READY) and 1 more
            (the same decision once more)
            default/web: refused: QUOTA: no more
            default/web: delete 2 pods: web-x (NOT_READY) and 1 more
        "#]]
        .assert_eq(&(log.take().join("\n") + "\n"));
    }
}
