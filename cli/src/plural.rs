//! Counts with their nouns.

/// Returns a count with a noun, which has an `s` unless the count is one: `1 pod`, `2 pods`.
pub(crate) fn count(count: impl TryInto<i128>, noun: &str) -> String {
    match count.try_into().unwrap_or(i128::MAX) {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_no_plural() {
        assert_eq!(count(0, "pod"), "0 pods");
        assert_eq!(count(1_u64, "pod"), "1 pod");
        assert_eq!(count(2_usize, "ReplicaSet"), "2 ReplicaSets");
    }
}
