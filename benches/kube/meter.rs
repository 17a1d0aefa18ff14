//! The cost of processes, as Linux counts it.

use std::time::Duration;

use tests::usage::{Used, peak_mb, processor_s};
use tokio::time;

/// The duration for which processes must be idle, and the processor time that an idle process may use.
const QUIET_FOR: Duration = Duration::from_millis(500);
const QUIET: f64 = 0.1;

/// The columns of [`cells`].
pub(crate) const COLUMNS: [&str; 2] = ["CPU s", "peak MB"];

/// The cost of one direction.
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    /// Of the controller, in seconds.
    pub(crate) processor: f64,
    /// Of the API server and etcd, in seconds.
    pub(crate) cluster: f64,
}

/// Waits until processes are idle: an API server that has just become ready still works.
pub(crate) async fn until_quiet(pids: &[u32]) {
    let mut looks = time::interval(QUIET_FOR);
    looks.tick().await;
    loop {
        let before = processor_time(pids);
        looks.tick().await;
        if (processor_time(pids) - before) / QUIET_FOR.as_secs_f64() < QUIET {
            return;
        }
    }
}

/// Formats what a controller used in all rounds: the sum of its processor time, and its highest peak.
pub(crate) fn cells(used: &[Used]) -> [String; 2] {
    let processor: f64 = used.iter().map(|it| it.processor_s).sum();
    let peak = used.iter().map(|it| it.peak_mb).fold(0.0, f64::max);
    [format!("{processor:.2}"), format!("{peak:.0}")]
}

/// The processor time of processes, in seconds.
pub(crate) fn processor_time(pids: &[u32]) -> f64 {
    pids.iter().map(|pid| processor_s(*pid)).sum()
}

/// The sum of the peak resident memory of each process, in megabytes. The peaks may be at different times.
pub(crate) fn peak_megabytes(pids: &[u32]) -> f64 {
    pids.iter().map(|pid| peak_mb(*pid)).sum()
}
