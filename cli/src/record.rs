//! The text of a decision record, for people.

use decree::v1;

use crate::decision::word;

/// Formats as the rule and its detail.
pub(crate) fn reason(reason: &v1::Reason) -> String {
    let word = word(reason.rule());
    if reason.detail.is_empty() {
        word.to_owned()
    } else {
        format!("{word}: {}", reason.detail)
    }
}

/// The pods of a decision; a victim with the rule that chose it.
pub(crate) fn targets(record: &v1::DecisionRecord) -> String {
    let each = record.targets.iter().map(|target| match &target.reason {
        Some(reason) => format!("{} ({})", target.name, word(reason.rule())),
        None => target.name.clone(),
    });
    let mut text = each.collect::<Vec<_>>().join(", ");
    let left = unnamed(record);
    if !record.targets.is_empty() && left > 0 {
        text.push_str(&format!(" and {left} more"));
    }
    text
}

/// The number of operations that the record does not name one by one.
pub(crate) fn unnamed(record: &v1::DecisionRecord) -> usize {
    usize::try_from(record.operations)
        .unwrap_or(0)
        .saturating_sub(record.targets.len())
}
