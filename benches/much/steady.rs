//! Thousands of events a second for minutes: the memory of a server must not grow.

use std::time::{Duration, Instant};

use tests::{
    table::head,
    usage::{memory_mb, peak_mb, processor_s},
};
use tokio::time;

use crate::{
    client::Client,
    measured::{megabytes, print},
    pace::{pace, queue},
    server::Server,
    sizes::{number, shape},
};

const COLUMNS: [&str; 5] = [
    "minute",
    "memory of the server",
    "processor",
    "p50 of an event",
    "p99 of an event",
];

/// The state of the server at the end of a minute.
struct Sample {
    memory: f64,
    processor: f64,
}

pub(crate) async fn run() {
    let shape = shape(10_000, 15);
    let rate: usize = number("DECREE_MUCH_RATE", 5_000);
    let minutes: f64 = number("DECREE_MUCH_MINUTES", 10.0);
    let length = Duration::from_secs_f64(60.0 * minutes);
    let title = format!(
        "{rate} events/s for {minutes} minutes, {} pods",
        shape.total()
    );
    head(&title, &COLUMNS);
    let server = Server::start(&[]);
    let client = Client::open(&server.address, "steady", shape).await;
    let mut client = client.expect("the session opens");
    client.list().await.expect("a decision comes");
    let (due, dues) = queue();
    let start = Instant::now();
    tokio::spawn(pace(rate, length, vec![due]));
    let losing = tokio::spawn(async move { client.lose(dues).await });
    let server_id = server.id();
    let mut before = processor_s(server_id);
    let mut samples = Vec::new();
    // The last minute may be shorter.
    while start.elapsed() < length {
        let left = length.saturating_sub(start.elapsed());
        time::sleep(left.min(Duration::from_secs(60))).await;
        let processor = processor_s(server_id);
        samples.push(Sample {
            memory: memory_mb(server_id),
            processor: processor - before,
        });
        before = processor;
    }
    let waits = losing.await.expect("it does not panic");
    let waits = waits.expect("the session lives");
    for (minute, (sample, waits)) in (1..).zip(samples.iter().zip(waits.parts(rate * 60))) {
        let [p50, p99] = waits.cells([0.5, 0.99]);
        let processor = format!("{:.1} s", sample.processor);
        let memory = format!("{:.1} MB", sample.memory);
        print(&[&format!("{minute}"), &memory, &processor, &p50, &p99]);
    }
    let slope = slope(&samples);
    let [p50, p99] = waits.cells([0.5, 0.99]);
    let peak = format!("{} at most", megabytes(peak_mb(server_id)));
    print(&["all", &peak, "", &p50, &p99]);
    let slope = format!("{slope:+.2} MB a minute (goal: 0)");
    print(&["slope from minute 2 on", &slope, "", "", ""]);
}

/// The growth of the memory in megabytes a minute from the second minute on, by least squares; 0 for too few minutes.
fn slope(samples: &[Sample]) -> f64 {
    let points = samples.iter().enumerate().skip(1);
    let points: Vec<_> = points.map(|(at, it)| (at as f64, it.memory)).collect();
    let count = points.len().max(1) as f64;
    let mean = |sum: f64| sum / count;
    let x = mean(points.iter().map(|(x, _)| x).sum());
    let y = mean(points.iter().map(|(_, y)| y).sum());
    let rise: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let run: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    if run > 0.0 { rise / run } else { 0.0 }
}
