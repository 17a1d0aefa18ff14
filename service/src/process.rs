//! Figures of the system about this process, under the names of Prometheus' own libraries.

use std::{
    fmt, fs,
    time::{Duration, SystemTime},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge, info::Info},
    registry::Registry,
};
use rustix::{
    param::page_size,
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};

use crate::build_info::{COMMIT, VERSION};

/// The nice value of a thread that computes in the background.
#[cfg(target_os = "linux")]
const LOW_PRIORITY: i32 = 10;

/// Registers `process_…`, read anew for each page, and `{prefix}_build_info` of this build. On systems other than Linux, the sizes and the
/// number of open files are left out. Call it at the start of the process.
pub fn register(registry: &mut Registry, prefix: &str) {
    let help = "Which build this is, always 1";
    let labels = [
        ("version", VERSION),
        ("commit", COMMIT),
        ("contract", "decree.v1"),
    ];
    registry.register(format!("{prefix}_build"), help, Info::new(labels));
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let started = started.unwrap_or_default().as_secs_f64();
    registry.register_collector(Box::new(Process { started }));
}

/// Raises the limit of open files and sockets to the maximum that the system allows. Warns if the maximum is less than `needed`.
pub fn raise_file_limit(needed: u64) {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) if files < needed => {
            tracing::warn!(files, needed, "the limit of open files is low (ulimit -n)");
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "the limit of open files cannot be raised"),
    }
}

/// Lowers the priority of the calling thread for the rest of its life, to about a tenth of a busy processor. Only on Linux: other systems
/// have priorities of processes alone.
pub fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, LOW_PRIORITY) {
        tracing::debug!(%error, "the priority of a thread cannot be lowered");
    }
}

/// Reads the figures of the process on each scrape.
#[derive(Debug)]
struct Process {
    /// In seconds since 1970.
    started: f64,
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Duration::try_from(cpu).unwrap_or_default().as_secs_f64();
        let help = "User and system CPU time spent in seconds.";
        let kind = MetricType::Counter;
        let metric = encoder.encode_descriptor("process_cpu_seconds", help, None, kind)?;
        ConstCounter::new(cpu).encode(metric)?;
        // The sizes in pages, of which the second one is resident (proc(5)).
        let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let bytes = |number| {
            let pages: f64 = pages.split(' ').nth(number)?.parse().ok()?;
            Some(pages * as_f64(page_size() as u64))
        };
        // The folder itself is open during the read.
        let files = fs::read_dir("/proc/self/fd").ok();
        let files = files.map(|files| as_f64(files.count().saturating_sub(1) as u64));
        let files_max = getrlimit(Resource::Nofile).current;
        let files_max = files_max.map_or(f64::INFINITY, as_f64);
        for (name, help, value) in [
            (
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
                Some(self.started),
            ),
            (
                "process_resident_memory_bytes",
                "Resident memory size in bytes.",
                bytes(1),
            ),
            (
                "process_virtual_memory_bytes",
                "Virtual memory size in bytes.",
                bytes(0),
            ),
            (
                "process_open_fds",
                "Number of open file descriptors.",
                files,
            ),
            (
                "process_max_fds",
                "Maximum number of open file descriptors.",
                Some(files_max),
            ),
        ] {
            let Some(value) = value else { continue };
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "all are less than 2^52")]
const fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_all_its_figures() {
        let mut registry = Registry::default();
        register(&mut registry, "test");
        let mut page = String::new();
        text::encode(&mut page, &registry).expect("it can be written");
        let figure = |name: &str| -> f64 {
            let mut lines = page.lines();
            let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            value.expect(name).parse().expect("a number")
        };
        assert!(figure("process_start_time_seconds") > 1e9, "{page}");
        assert!(page.contains("process_cpu_seconds_total "), "{page}");
        let sizes = 1e6..figure("process_virtual_memory_bytes");
        assert!(
            sizes.contains(&figure("process_resident_memory_bytes")),
            "{page}"
        );
        let files = 3.0..=figure("process_max_fds");
        assert!(files.contains(&figure("process_open_fds")), "{page}");
    }
}
