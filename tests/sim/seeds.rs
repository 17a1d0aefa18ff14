//! The schedules that must detect a world with a deliberate fault.

use tests::depth::number;

/// The maximum number of schedules until a world made for the fault shows it. If every second schedule shows the fault, twenty that do not are one case in
/// a million.
pub(crate) const SCHEDULES: u64 = 20;
/// The distance between the two places from which seeds are counted.
const APART: u64 = 1_000_000;

/// Returns the first seeds of two separate runs of schedules; the first run begins at `DECREE_SIM_SEED`.
pub(crate) fn places() -> [u64; 2] {
    let first = number("DECREE_SIM_SEED").unwrap_or(0);
    [first, first + APART]
}
