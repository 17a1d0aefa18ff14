//! What a limit says.

use jiff::SignedDuration;

use crate::invariants::ensure;

/// What is wrong, if anything is: the limit that is exceeded, and how.
pub type Verdict = Result<(), (&'static str, String)>;

/// By how much what an agent has seen may be behind what there is, calls on their way included.
pub const SLACK: SignedDuration = SignedDuration::from_secs(4);

/// Judges by a limit of this name.
pub(super) fn limit(name: &'static str, holds: bool, why_not: impl FnOnce() -> String) -> Verdict {
    ensure(holds, why_not).map_err(|text| (name, text))
}
