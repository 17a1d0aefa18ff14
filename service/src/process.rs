//! Figures of the system about this process, under the names of Prometheus' own libraries.

use std::{fs, time::Duration};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge, info::Info},
    registry::Registry,
};

use crate::build_info::{COMMIT, VERSION};

/// The clock ticks per second in times of Linux: the same on all supported machines.
const TICKS: f64 = 100.0;
const KIBIBYTE: f64 = 1024.0;
/// The only figure that is a counter.
const CPU: &str = "process_cpu_seconds";
/// The time slice of a thread that answers requests: the minimum of Linux, and longer than an answer takes.
const TIME_SLICE: Duration = Duration::from_micros(100);
/// The nice value of a thread that computes in the background.
#[cfg(target_os = "linux")]
const LOW_PRIORITY: i32 = 10;

/// Registers `process_…`, read anew for each page, and `{prefix}_build_info` of this build. On systems other than Linux,
/// `process_…` is left out.
pub fn register(registry: &mut Registry, prefix: &str) {
    let help = "Which build this is, always 1";
    let labels = [
        ("version", VERSION),
        ("commit", COMMIT),
        ("contract", "decree.v1"),
    ];
    registry.register(format!("{prefix}_build"), help, Info::new(labels));
    registry.register_collector(Box::new(Process));
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

/// Requests short time slices for this thread and the threads that it starts. Such threads run sooner, but get no more processor time in
/// all (docs/decisions/0057). If the system refuses, nothing changes.
pub fn shorten_time_slice() {
    if let Err(error) = time_slice::request(TIME_SLICE) {
        tracing::debug!(%error, "no shorter time slice is granted");
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
struct Process;

/// A figure: its name, its help text, and its value; `None` if the system does not provide it.
type Figure = (&'static str, &'static str, Option<f64>);

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let file = |name: &str| fs::read_to_string(name).unwrap_or_default();
        let figures = figures(
            &file("/proc/self/stat"),
            &file("/proc/self/status"),
            &file("/proc/stat"),
            &file("/proc/self/limits"),
        );
        for (name, help, value) in figures {
            let Some(value) = value else { continue };
            if name == CPU {
                let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
                ConstCounter::new(value).encode(metric)?;
            } else {
                let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                ConstGauge::new(value).encode(metric)?;
            }
        }
        Ok(())
    }
}

/// Parses the contents of these files (proc(5)), and counts the open files.
fn figures(stat: &str, status: &str, machine: &str, limits: &str) -> [Figure; 6] {
    // The second field is the program's name in parentheses, which may contain any character. So the split begins at the third field.
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    let fields: Vec<&str> = behind.split_ascii_whitespace().collect();
    let ticks = |number: usize| {
        let field: f64 = fields.get(number - 3)?.parse().ok()?;
        Some(field / TICKS)
    };
    let kibibytes = |name| Some(number(status, name)? * KIBIBYTE);
    let cpu = ticks(14).zip(ticks(15)).map(|(user, system)| user + system);
    let booted = number(machine, "btime ");
    let open_fds = fs::read_dir("/proc/self/fd").map(Iterator::count).ok();
    [
        (CPU, "User and system CPU time spent in seconds.", cpu),
        (
            "process_start_time_seconds",
            "Start time of the process since unix epoch in seconds.",
            booted.zip(ticks(22)).map(|(booted, after)| booted + after),
        ),
        (
            "process_resident_memory_bytes",
            "Resident memory size in bytes.",
            kibibytes("VmRSS:"),
        ),
        (
            "process_virtual_memory_bytes",
            "Virtual memory size in bytes.",
            kibibytes("VmSize:"),
        ),
        (
            "process_open_fds",
            "Number of open file descriptors.",
            // The folder itself is open during the read.
            open_fds.map(|count| as_f64(count.saturating_sub(1))),
        ),
        (
            "process_max_fds",
            "Maximum number of open file descriptors.",
            max_fds(limits),
        ),
    ]
}

/// The number after `name` at the beginning of a line.
fn number(file: &str, name: &str) -> Option<f64> {
    let value = file.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

fn max_fds(limits: &str) -> Option<f64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_ascii_whitespace().next()? {
        "unlimited" => Some(f64::INFINITY),
        soft => soft.parse().ok(),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a process has fewer files than 2^52"
)]
const fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    #[test]
    fn figures_are_read_whatever_the_program_is_called() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 3 0 12345 99 9 18446744073709551615\n";
        let status = "Name:\ta\nVmSize:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        let machine = "cpu 1 2 3\nbtime 1700000000\n";
        let [cpu, start, resident, size, _, files] =
            figures(stat, status, machine, "").map(|(_, _, value)| value);
        assert_eq!((cpu, start), (Some(3.0), Some(1_700_000_123.45)));
        assert_eq!((resident, size), (Some(1_048_576.0), Some(2_097_152.0)));
        assert_eq!(files, None);
        let unknown = figures("", "", "", "");
        assert!(unknown[..4].iter().all(|(_, _, value)| value.is_none()));
    }

    #[test]
    fn limit_of_files_is_the_soft_one() {
        let limits = |soft: &str| {
            format!(
                "Max processes 1 2 processes\nMax open files            {soft}                 4096                 files\n"
            )
        };
        assert_eq!(max_fds(&limits("1024")), Some(1024.0));
        assert_eq!(max_fds(&limits("unlimited")), Some(f64::INFINITY));
        assert_eq!(max_fds(""), None);
    }

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
        let sizes = 1e6..figure("process_virtual_memory_bytes");
        assert!(
            sizes.contains(&figure("process_resident_memory_bytes")),
            "{page}"
        );
        let files = 3.0..=figure("process_max_fds");
        assert!(files.contains(&figure("process_open_fds")), "{page}");
    }
}
