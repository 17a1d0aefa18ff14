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
}

// === impl Chronicle ===

impl Chronicle {
    /// Begins a step: counts from nothing.
    pub(super) fn begin(&mut self) {
        self.tell_repeats();
        self.latest.clear();
        self.deletes = 0;
    }

    /// Notes a decision. Status writes go without saying.
    pub(super) fn note(&mut self, record: &v1::DecisionRecord) {
        match record.action.as_str() {
            "status" => return,
            "delete" => self.deletes = self.deletes.saturating_add(record.operations),
            _ => {}
        }
        for line in lines(record) {
            if line == self.latest {
                self.again += 1;
                continue;
            }
            self.tell_repeats();
            self.latest.clone_from(&line);
            self.lines.push_back(line);
        }
    }

    /// Says how often the latest decision was made again.
    pub(super) fn tell_repeats(&mut self) {
        if self.again > 0 {
            self.lines.push_back(format!("the same again, {} times", self.again));
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

/// Writes a decision: one line, and for deletes one for each victim, as that is where the reasons differ.
fn lines(record: &v1::DecisionRecord) -> Vec<String> {
    let set = decision::path(record.replica_set.as_ref());
    let v1::DecisionRecord {
        action,
        operations,
        targets,
        reasons,
        ..
    } = record;
    if action != "delete" {
        let reason = reasons.first().map_or_else(String::new, get::reason);
        return vec![format!("{set}: {action} {operations}: {reason}")];
    }
    let victim = |target: &v1::DecisionTarget| {
        let reason = target.reason.as_ref().map_or_else(String::new, get::reason);
        format!("{set}: delete {}: {reason}", target.name)
    };
    let mut lines: Vec<_> = targets.iter().map(victim).collect();
    let left = explain::unnamed(record);
    if left > 0 {
        lines.push(format!("{set}: delete {left} more"));
    }
    lines
}

