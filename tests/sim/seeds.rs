//! The schedules in which a world that is broken on purpose must be found out.

use tests::depth::number;

/// How many schedules that may take in a world that is made for the fault: where every second one shows it, twenty that do not are one case in
/// a million.
pub(crate) const SCHEDULES: u64 = 20;
/// How far apart the two places are from which seeds are counted.
const APART: u64 = 1_000_000;

/// Returns the first seeds of two runs of schedules that have nothing in common, the first from `DECREE_SIM_SEED` on.
pub(crate) fn places() -> [u64; 2] {
    let first = number("DECREE_SIM_SEED").unwrap_or(0);
    [first, first + APART]
}
