//! What was decided, told in lines: each decision once, and those that repeat counted.

use std::collections::VecDeque;

use decree::v1;

use crate::{decision, explain, get};

/// How many lines are kept where no one takes them.
const KEPT_MAX: usize = 8;

/// The lines of the last decisions, the newest last.
#[derive(Debug, Default)]
pub(super) struct Chronicle {
    lines: VecDeque<String>,
    /// The latest decision, and how often it was made again.
    latest: String,
    again: usize,
    /// How many pods were chosen to go since [`Chronicle::begin`].
    pub(super) deletes: i32,
    /// The lines about them.
    pub(super) victims: Vec<String>,
}

// === impl Chronicle ===

impl Chronicle {
    /// Begins a step: counts from nothing.
    pub(super) fn begin(&mut self) {
        self.tell_repeats();
        self.latest.clear();
        self.deletes = 0;
        self.victims.clear();
    }

    /// Notes a decision. Status writes go without saying.
    pub(super) fn note(&mut self, record: &v1::DecisionRecord) {
        match record.action.as_str() {
            "status" => {}
            "delete" => {
                self.deletes = self.deletes.saturating_add(record.operations);
                let victims = victims(record);
                self.victims.extend_from_slice(&victims);
                victims.into_iter().for_each(|line| self.tell(line));
            }
            _ => self.tell(line(record)),
        }
    }

    fn tell(&mut self, line: String) {
        if line == self.latest {
            self.again += 1;
            return;
        }
        self.tell_repeats();
        self.latest.clone_from(&line);
        self.lines.push_back(line);
    }

    /// Says how often the latest decision was made again.
    pub(super) fn tell_repeats(&mut self) {
        if self.again > 0 {
            self.lines
                .push_back(format!("the same again, {} times", self.again));
            self.again = 0;
        }
    }

    /// Takes the lines out.
    pub(super) fn take(&mut self) -> impl Iterator<Item = String> + use<> {
        std::mem::take(&mut self.lines).into_iter()
    }

    /// Returns the last lines, and forgets the rest.
    pub(super) fn last(&mut self) -> &[String] {
        let surplus = self.lines.len().saturating_sub(KEPT_MAX);
        self.lines.drain(..surplus);
        self.lines.make_contiguous()
    }
}

fn line(record: &v1::DecisionRecord) -> String {
    let v1::DecisionRecord {
        replica_set,
        action,
        operations,
        reasons,
        ..
    } = record;
    let set = decision::path(replica_set.as_ref());
    let reason = reasons.first().map_or_else(String::new, get::reason);
    format!("{set}: {action} {operations}: {reason}")
}

/// Writes a line for each victim, as that is where the reasons differ.
fn victims(record: &v1::DecisionRecord) -> Vec<String> {
    let set = decision::path(record.replica_set.as_ref());
    let victim = |target: &v1::DecisionTarget| {
        let reason = target.reason.as_ref().map_or_else(String::new, get::reason);
        format!("{set}: delete {}: {reason}", target.name)
    };
    let left = explain::unnamed(record);
    let rest = (left > 0).then(|| format!("{set}: delete {left} more"));
    record.targets.iter().map(victim).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(operations: i32) -> v1::DecisionRecord {
        let replica_set = v1::ObjectRef {
            namespace: "default".to_owned(),
            name: "web".to_owned(),
            uid: "u".to_owned(),
        };
        v1::DecisionRecord {
            replica_set: Some(replica_set),
            action: "create".to_owned(),
            operations,
            reasons: vec![v1::Reason {
                rule: v1::Rule::TooFewReplicas.into(),
                detail: "4 active pods, 8 wanted".to_owned(),
            }],
            ..v1::DecisionRecord::default()
        }
    }

    #[test]
    fn decision_that_repeats_is_told_once_and_counted() {
        let mut chronicle = Chronicle::default();
        [2, 2, 2, 1]
            .into_iter()
            .for_each(|operations| chronicle.note(&create(operations)));
        let lines: Vec<_> = chronicle.take().collect();
        let reason = "TOO_FEW_REPLICAS: 4 active pods, 8 wanted";
        assert_eq!(
            lines,
            [
                format!("default/web: create 2: {reason}"),
                "the same again, 2 times".to_owned(),
                format!("default/web: create 1: {reason}"),
            ]
        );
    }

    #[test]
    fn only_the_last_lines_are_kept_for_the_view() {
        let mut chronicle = Chronicle::default();
        (0..100).for_each(|operations| chronicle.note(&create(operations)));
        let last = chronicle.last();
        assert_eq!(last.len(), KEPT_MAX);
        assert!(last[KEPT_MAX - 1].contains("create 99"), "{last:?}");
    }
}
