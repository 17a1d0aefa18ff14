//! What a process uses, as Linux counts it.

use std::fs;

use crate::table::quantile_of;

/// The clock ticks of a second, as Linux reports them to processes.
const TICKS: f64 = 100.0;

/// The growth above which [`grown`] objects.
const GROWTH_MAX: f64 = 1.15;

/// What a load cost a program.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// The processor time in seconds.
    pub processor_s: f64,
    /// The peak of the resident memory in MB.
    pub peak_mb: f64,
}

/// Returns what costs more than 15 % above `before`: the sum of processor time, the median of the peaks.
pub fn grown(before: &[Used], now: &[Used]) -> Vec<String> {
    let processor = |used: &[Used]| used.iter().map(|it| it.processor_s).sum();
    let peak = |used: &[Used]| {
        let mut peaks: Vec<_> = used.iter().map(|it| it.peak_mb).collect();
        quantile_of(&mut peaks, 0.5)
    };
    let costs: [(&str, f64, f64); 2] = [
        ("processor seconds", processor(before), processor(now)),
        ("MB at the peak", peak(before), peak(now)),
    ];
    let more = costs
        .iter()
        .filter(|(_, before, now)| *now > before * GROWTH_MAX);
    more.map(|(name, before, now)| format!("{now:.2} {name} after {before:.2}"))
        .collect()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_by_more_than_15_percent_is_found() {
        let used = |processor_s, peak_mb| Used {
            processor_s,
            peak_mb,
        };
        let before = [used(2.0, 40.0), used(1.5, 41.0), used(2.5, 90.0)];
        for (processor, memory, expected) in [
            (1.14, 1.14, [].as_slice()),
            (0.5, 0.5, &[]),
            (1.16, 1.0, &["6.96 processor seconds after 6.00"]),
            (1.0, 1.16, &["47.56 MB at the peak after 41.00"]),
        ] {
            let now = before.map(|it| used(it.processor_s * processor, it.peak_mb * memory));
            assert_eq!(grown(&before, &now), expected);
        }
    }
}
