//! The cost of processes, as Linux counts it.

use std::{fs, time::Duration};

use tokio::time;

/// `sysconf(_SC_CLK_TCK)`, the same on every Linux.
const TICKS_A_SECOND: u64 = 100;

/// The duration for which processes must be idle, and the processor time that an idle process may use.
const QUIET_FOR: Duration = Duration::from_millis(500);
const QUIET: f64 = 0.1;

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
        if (processor_time(pids) - before).div_duration_f64(QUIET_FOR) < QUIET {
            return;
        }
    }
}

/// The processor time of processes.
pub(crate) fn processor_time(pids: &[u32]) -> Duration {
    let ticks = pids.iter().map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name in parentheses may contain anything; utime and stime are the 14th and 15th field of the line.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let fields = fields.split_whitespace().skip(11).take(2);
        fields
            .filter_map(|field| field.parse::<u64>().ok())
            .sum::<u64>()
    });
    Duration::from_millis(ticks.sum::<u64>() * 1_000 / TICKS_A_SECOND)
}

/// The sum of the peak resident memory of each process, in megabytes. The peaks may be at different times.
pub(crate) fn peak_megabytes(pids: &[u32]) -> f64 {
    let peaks = pids.iter().map(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kibibytes.unwrap_or(f64::NAN)
    });
    peaks.sum::<f64>() * 1.024 / 1_000.0
}
