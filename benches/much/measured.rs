//! The resources of a process, as the system counts them, and the waits of events.

use std::{
    fs,
    time::{Duration, Instant},
};

use tests::table::quantile;

/// The ticks a second in which Linux counts processor time.
const TICKS: f64 = 100.0;

/// A process, by its id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured(pub(crate) u32);

/// The waits of events, in milliseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits(Vec<f64>);

impl Measured {
    /// The resident memory, in MB.
    pub(crate) fn memory(self) -> f64 {
        self.status("VmRSS:")
    }

    /// The peak of the resident memory, in MB.
    pub(crate) fn peak(self) -> f64 {
        self.status("VmHWM:")
    }

    /// The processor time, in seconds.
    pub(crate) fn processor(self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap_or_default();
        let (_, fields) = stat.rsplit_once(") ").unwrap_or_default();
        let times = fields.split(' ').skip(11).take(2);
        times
            .filter_map(|ticks| ticks.parse::<f64>().ok())
            .sum::<f64>()
            / TICKS
    }

    fn status(self, field: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap_or_default();
        let mut lines = status.lines().filter_map(|line| line.strip_prefix(field));
        let kib = lines.next().and_then(|it| it.split_whitespace().next());
        let kib: f64 = kib.and_then(|it| it.parse().ok()).unwrap_or(f64::NAN);
        kib * 1024.0 / 1e6
    }
}

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
