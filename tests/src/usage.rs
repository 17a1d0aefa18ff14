//! What a process uses, as Linux counts it.

use std::fs;

/// The clock ticks of a second, as Linux reports them to processes.
const TICKS: f64 = 100.0;

/// Returns the processor time of a process in seconds; 0 if the process is gone.
pub fn processor_s(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses may contain blanks; the state, the third field, follows it.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields = rest.split_whitespace().skip(11).take(2);
    fields.filter_map(|it| it.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// Returns the resident memory of a process in MB; 0 if the process is gone.
pub fn memory_mb(process: u32) -> f64 {
    status_mb(process, "VmRSS:")
}

/// Returns the peak of the resident memory of a process in MB; 0 if the process is gone.
pub fn peak_mb(process: u32) -> f64 {
    status_mb(process, "VmHWM:")
}

fn status_mb(process: u32, field: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) * 1024.0 / 1e6
}
