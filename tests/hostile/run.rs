//! Runs a cell: a process, a neighbour, the attack, and what must be true after it.

use std::{
    collections::BTreeSet,
    fmt,
    time::{Duration, Instant},
};

use tests::table::quantile;
use tokio::{
    runtime::{Builder, Runtime},
    time,
};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{
    cells::{Attack, Cell},
    neighbour::Neighbour,
    process::{Port, Process},
    seen::Seen,
    target::Target,
};

/// How long the neighbour goes on at least where it is measured.
pub(crate) const MEASURED: Duration = Duration::from_secs(2);
/// How long a newcomer may take to be served while whatever is held is held.
const NEWCOMER: Duration = Duration::from_secs(15);

/// What was found of a cell.
pub(crate) struct Found {
    pub(crate) ends: BTreeSet<String>,
    pub(crate) answer_kb: u64,
    pub(crate) memory_mb: u64,
    /// Absent where the neighbour was not served to the end.
    pub(crate) p99_ms: Option<f64>,
    pub(crate) stop_s: f64,
    pub(crate) took: Duration,
    /// What is not as it must be.
    pub(crate) faults: Vec<String>,
}

/// Runs a cell. `alone_ms` is the neighbour's p99 without any attack.
pub(crate) fn run(cell: &Cell, alone_ms: f64) -> Found {
    let start = Instant::now();
    let process = Process::guarded(&cell.flags, cell.proof);
    let mut faults = Vec::new();
    let neighbour = Neighbour::start(process.target("neighbour"), 0);
    let seen = attack(cell, &process);
    faults.extend(newcomer(&process).err());
    let measured = match cell.p99_ms {
        Some(_) => MEASURED,
        None => Duration::ZERO,
    };
    let latencies = neighbour.and_then(|neighbour| neighbour.finish(measured));
    let p99_ms = match &latencies {
        Ok(latencies) => Some(quantile(latencies, 0.99)),
        Err(error) => {
            faults.push(error.clone());
            None
        }
    };
    let (memory_mb, log_kb) = (process.memory_mb(), process.log_kb());
    let stopped = process.stop();
    let Seen {
        ends, bytes, held, ..
    } = seen;
    drop(held);
    let stop_s = stopped.as_ref().map_or(f64::NAN, Duration::as_secs_f64);
    faults.extend(stopped.err());
    let mut bound = |name: &str, found: f64, max: f64| {
        if found > max {
            faults.push(format!("{name}: {found:.1}, at most {max:.1}"));
        }
    };
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
    {
        bound("answer in KB", bytes as f64 / 1024.0, cell.answer_kb as f64);
        bound("memory in MB", memory_mb as f64, cell.memory_mb as f64);
        bound("log in KB", log_kb as f64, cell.log_kb as f64);
    }
    bound("stop in s", stop_s, cell.stop_s);
    if let (Some(found), Some(max), false) = (p99_ms, cell.p99_ms, cfg!(debug_assertions)) {
        bound("p99 in ms", found, max.max(3.0 * alone_ms));
    }
    if !ends.is_subset(&cell.ends) || ends.is_empty() {
        faults.push(format!("ends as {ends:?}, not as {:?}", cell.ends));
    }
    Found {
        ends,
        answer_kb: bytes as u64 / 1024,
        memory_mb,
        p99_ms,
        stop_s,
        took: start.elapsed(),
        faults,
    }
}

/// Returns the neighbour's p99 where nobody attacks.
pub(crate) fn alone() -> f64 {
    let process = Process::start(&[]);
    let neighbour = Neighbour::start(process.address(Port::Grpc), 0).expect("it is served");
    let latencies = neighbour.finish(MEASURED).expect("it is served");
    quantile(&latencies, 0.99)
}

/// Runs all attacks of a cell.
pub(crate) fn attack(cell: &Cell, process: &Process) -> Seen {
    let runtime = runtime();
    let mut seen = runtime.block_on(async {
        let mut seen = Seen::default();
        for attack in &cell.attacks {
            let target = || process.target("nobody");
            seen.add(match attack {
                Attack::Session(script) => script.run(target()).await,
                Attack::Calls(calls) => calls.run(target()).await,
                Attack::Handshakes(handshakes) => handshakes.run(&target()).await,
                Attack::Sockets(sockets) => sockets.run(process.address(sockets.port)).await,
                Attack::Http2(http2) => http2.run(process.address(Port::Grpc)).await,
            });
        }
        seen
    });
    // What is held lives on this runtime.
    seen.held.push(Box::new(runtime));
    seen
}

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}

/// Proves that whoever comes new is served, and that the server says so.
fn newcomer(process: &Process) -> Result<(), String> {
    let served = runtime().block_on(async {
        time::timeout(NEWCOMER, async {
            let target = process.target("newcomer");
            while let Err(error) = health(&target).await {
                time::sleep(Duration::from_millis(50)).await;
                drop(error);
            }
        })
        .await
    });
    served.map_err(|_| "a newcomer is not served".to_owned())?;
    let ready = process.page("/readyz").map(drop);
    ready.map_err(|error| format!("/readyz: {error}"))
}

async fn health(target: &Target) -> Result<(), String> {
    let mut client = HealthClient::new(target.connect().await?);
    let answer = client.check(HealthCheckRequest::default()).await;
    let answer = answer.map_err(|status| status.to_string())?;
    let status = answer.into_inner().status();
    match status == ServingStatus::Serving {
        true => Ok(()),
        false => Err(status.as_str_name().to_owned()),
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends: Vec<_> = self.ends.iter().map(String::as_str).collect();
        write!(
            f,
            "{} | {} KB | {} MB | {} ms | {:.1} s | {:.1} s",
            ends.join(", "),
            self.answer_kb,
            self.memory_mb,
            self.p99_ms
                .map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}")),
            self.stop_s,
            self.took.as_secs_f64(),
        )
    }
}
