//! Counts and spans of time for people.

use std::fmt;

use crate::object::{Span, Timestamp};

/// The detail of a reason while nothing but nodes is yet to be shown.
pub const NODES_AWAITED: &str = "the list of nodes is not complete";
const SECOND: i64 = 1_000_000_000;

/// A span in its two largest units, such as `16m38s`; below a second it is `0s`.
pub(crate) struct Lasting(pub(crate) Span);

/// A count with its noun, with an `s` unless the count is one: `1 pod`, `2 pods`.
pub fn count<N: fmt::Display + PartialEq + From<u8>>(count: N, noun: &str) -> impl fmt::Display {
    let end = if count == N::from(1) { "" } else { "s" };
    fmt::from_fn(move |f| write!(f, "{count} {noun}{end}"))
}

/// Returns the time from now until `due`, in seconds that have at least begun.
pub(crate) fn until(due: Timestamp, now: Timestamp) -> Lasting {
    let Span(nanoseconds) = due.since(now);
    let begun = nanoseconds.max(0).saturating_add(SECOND - 1) / SECOND;
    Lasting(Span(begun.saturating_mul(SECOND)))
}

impl fmt::Display for Lasting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Span(nanoseconds)) = self;
        let seconds = (*nanoseconds).max(0) / SECOND;
        let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
        match (days, hours, minutes) {
            (1.., _, _) => write!(f, "{days}d{}h", hours % 24),
            (_, 1.., _) => write!(f, "{hours}h{}m", minutes % 60),
            (_, _, 1..) => write!(f, "{minutes}m{}s", seconds % 60),
            _ => write!(f, "{seconds}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_and_waits_are_rounded_up() {
        let text = |nanoseconds| Lasting(Span(nanoseconds)).to_string();
        assert_eq!(text(998_977_000_000), "16m38s");
        assert_eq!(text(SECOND - 1), "0s");
        assert_eq!(text(90_061 * SECOND), "1d1h");
        let wait = |nanoseconds| until(Timestamp(nanoseconds), Timestamp(0)).to_string();
        assert_eq!(wait(998_977_000_000), "16m39s");
        assert_eq!(
            (wait(1), wait(0), wait(-1)),
            ("1s".into(), "0s".into(), "0s".into())
        );
    }

    #[test]
    fn one_has_no_plural() {
        assert_eq!(count(1_i32, "active pod").to_string(), "1 active pod");
        assert_eq!(count(0_u32, "active pod").to_string(), "0 active pods");
        assert_eq!(count(0, "pod").to_string(), "0 pods");
        assert_eq!(count(1_u64, "pod").to_string(), "1 pod");
        assert_eq!(count(2_usize, "ReplicaSet").to_string(), "2 ReplicaSets");
    }
}
