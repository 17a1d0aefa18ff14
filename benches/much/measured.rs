//! What a process takes, as the system counts it, and how long events wait.

use std::{
    fs,
    time::{Duration, Instant},
};

use tests::table::quantile;

/// The ticks a second in which Linux counts processor time.
const TICKS: f64 = 100.0;

/// A process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured(pub(crate) u32);

/// How long events waited, in milliseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits(Vec<f64>);

// === impl Measured ===

impl Measured {
    /// Returns the memory that it has, in MB.
    pub(crate) fn memory(self) -> f64 {
        self.status("VmRSS:")
    }

    /// Returns the most memory that it has had, in MB.
    pub(crate) fn peak(self) -> f64 {
        self.status("VmHWM:")
    }

    /// Returns how many seconds it has been on a processor.
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

// === impl Waits ===

impl Waits {
    /// Notes that something which was due then is done now.
    pub(crate) fn note(&mut self, due: Instant) {
        self.0.push(due.elapsed().as_secs_f64() * 1e3);
    }

    /// Takes in what others noted.
    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns how many there are.
    pub(crate) const fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns them in parts of so many, in the order in which they were noted.
    pub(crate) fn parts(&self, length: usize) -> impl Iterator<Item = Self> {
        self.0.chunks(length).map(|part| Self(part.to_vec()))
    }

    /// Returns quantiles as the cells of a table.
    pub(crate) fn cells<const N: usize>(mut self, shares: [f64; N]) -> [String; N] {
        self.0.sort_by(f64::total_cmp);
        shares.map(|share| format!("{:.1} ms", quantile(&self.0, share)))
    }
}

/// Returns seconds as a cell of a table.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// Returns megabytes as a cell of a table.
pub(crate) fn megabytes(memory: f64) -> String {
    format!("{memory:.0} MB")
}

/// Returns a row whose cells are these.
pub(crate) fn print(cells: &[&str]) {
    let cells: Vec<_> = cells.iter().map(|&cell| cell.to_owned()).collect();
    tests::table::row(&cells);
}
