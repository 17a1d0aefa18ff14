//! The waits of events, and the cells of tables.

use std::time::{Duration, Instant};

use tests::table::quantile;

/// The waits of events, in milliseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits(Vec<f64>);

impl Waits {
    /// Notes that something due at `due` is done now.
    pub(crate) fn note(&mut self, due: Instant) {
        self.0.push(due.elapsed().as_secs_f64() * 1e3);
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(crate) const fn count(&self) -> usize {
        self.0.len()
    }

    /// Splits the waits into parts of `length`, in the order of their notes.
    pub(crate) fn parts(&self, length: usize) -> impl Iterator<Item = Self> {
        self.0.chunks(length).map(|part| Self(part.to_vec()))
    }

    /// The quantiles as the cells of a table.
    pub(crate) fn cells<const N: usize>(mut self, shares: [f64; N]) -> [String; N] {
        self.0.sort_by(f64::total_cmp);
        shares.map(|share| format!("{:.1} ms", quantile(&self.0, share)))
    }
}

/// Formats seconds as a cell of a table.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// Formats megabytes as a cell of a table.
pub(crate) fn megabytes(memory: f64) -> String {
    format!("{memory:.0} MB")
}

pub(crate) fn print(cells: &[&str]) {
    let cells: Vec<_> = cells.iter().map(|&cell| cell.to_owned()).collect();
    tests::table::row(&cells);
}
