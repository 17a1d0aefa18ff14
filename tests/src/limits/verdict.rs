//! The verdict of a limit.

use jiff::SignedDuration;

use crate::invariants::ensure;

/// The exceeded limit and how, if there is one.
pub type Verdict = Result<(), (&'static str, String)>;

/// The maximum lag of an agent's view behind the cluster, including calls in flight.
pub const SLACK: SignedDuration = SignedDuration::from_secs(4);

/// Judges by the limit of this name.
pub(super) fn limit(name: &'static str, holds: bool, why_not: impl FnOnce() -> String) -> Verdict {
    ensure(holds, why_not).map_err(|text| (name, text))
}
