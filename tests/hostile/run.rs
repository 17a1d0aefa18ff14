//! Runs a cell: a process, a neighbor, the attack, and the requirements after it.

use std::{
    collections::BTreeSet,
    fmt,
    time::{Duration, Instant},
};

use tests::{table::quantile, usage::processor_s};
use tokio::{
    runtime::{Builder, Runtime},
    time,
};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{
    cells::{Attack, Cell, LOG_KB},
    neighbour::{Neighbour, OFTEN, SELDOM, Waits},
    others::{Others, Visited},
    process::{Process, comes_to_rest, peak_mib},
    seen::Seen,
    target::Target,
};

/// The minimum duration of the neighbor with measurements.
const MEASURED: Duration = Duration::from_secs(2);
/// The timeout for a newcomer to be served during an attack, which only a hanging server reaches.
const NEWCOMER: Duration = Duration::from_mins(3);
/// The maximum number of refusals of a newcomer.
const REFUSALS_MAX: u32 = 200;
/// The pause of a newcomer after each refusal.
const REFUSED_WAIT: Duration = Duration::from_millis(50);
/// The maximum processor time of the server for others during one wait of the neighbor, in seconds.
const BEHIND_S_MAX: f64 = 3.0;

/// The result of a cell.
pub(crate) struct Found {
    pub(crate) ends: BTreeSet<String>,
    pub(crate) answer_kb: u64,
    pub(crate) memory_mb: u64,
    /// `None` if the neighbor was not served to the end.
    pub(crate) waits: Option<Waits>,
    /// The acts of another peer meanwhile; `None` if they failed.
    pub(crate) visited: Option<Visited>,
    pub(crate) processor_s: f64,
    pub(crate) took: Duration,
    /// The violated requirements.
    pub(crate) faults: Vec<String>,
}

/// Runs a cell. If it `is_timed`, it is alone on the machine.
pub(crate) fn run(cell: &Cell, is_timed: bool) -> Found {
    let start = Instant::now();
    let process = Process::guarded(&cell.flags(is_timed), cell.proof);
    let mut faults = Vec::new();
    let (every, least) = if is_timed {
        (OFTEN, MEASURED)
    } else {
        (SELDOM, Duration::ZERO)
    };
    let (target, others) = (process.target("neighbour"), &cell.neighbour);
    let neighbour = Neighbour::start(target, process.id(), every, others);
    let others = Others::start(
        process.target("visitor"),
        &process.who("visitor"),
        &cell.keeps,
    );
    let seen = attack(cell, &process, &mut faults);
    faults.extend(newcomer(&process).err());
    let visited = others.finish().map_err(|error| faults.push(error)).ok();
    let waits = neighbour.and_then(|neighbour| neighbour.finish(least));
    let waits = waits.map_err(|error| faults.push(error)).ok();
    if !comes_to_rest(process.id()) {
        faults.push("it works on and on while nobody asks for anything".to_owned());
    }
    let (memory_mb, log_kb) = (peak_mib(process.id()), process.log_kb());
    let processor_s = processor_s(process.id());
    let stopped = process.stop();
    let Seen {
        ends, bytes, held, ..
    } = seen;
    drop(held);
    faults.extend(stopped.err());
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
    let bounds = [
        ("answer in KB", bytes as f64 / 1024.0, cell.answer_kb as f64),
        ("memory in MB", memory_mb as f64, cell.memory_mb as f64),
        ("log in KB", log_kb as f64, LOG_KB as f64),
        (
            "work while the neighbour waits, in s of a processor",
            waits.as_ref().map_or(0.0, |waits| waits.behind_s),
            BEHIND_S_MAX,
        ),
    ];
    faults.extend(beyond(&bounds));
    Found {
        ends,
        answer_kb: bytes as u64 / 1024,
        memory_mb,
        waits,
        visited,
        processor_s,
        took: start.elapsed(),
        faults,
    }
}

/// The figures beyond their bounds.
pub(crate) fn beyond(bounds: &[(&str, f64, f64)]) -> Vec<String> {
    let beyond = bounds.iter().filter(|(_, found, max)| found > max);
    let said = beyond.map(|(name, found, max)| format!("{name}: {found:.1}, at most {max:.1}"));
    said.collect()
}

/// Runs all attacks of a cell, in turn.
fn attack(cell: &Cell, process: &Process, faults: &mut Vec<String>) -> Seen {
    let runtime = runtime();
    let mut seen = runtime.block_on(async {
        let mut seen = Seen::default();
        for attack in &cell.attacks {
            let target = || process.target("nobody");
            let one = match attack {
                Attack::Session(script) => script.run(target()).await,
                Attack::Calls(calls) => calls.run(target()).await,
                Attack::Connections(connections) => {
                    let address = process.address(connections.port);
                    connections.run(address, &target()).await
                }
            };
            if !one.ends.is_subset(&cell.ends) || one.ends.is_empty() {
                let (ends, wanted) = (&one.ends, &cell.ends);
                faults.push(format!("{attack:?} ends as {ends:?}, not as {wanted:?}"));
            }
            seen.add(one);
        }
        seen
    });
    // Held connections live on this runtime. It runs no task from here on, so without held connections it goes: the server would wait
    // for the outcomes of sessions whose ends did not reach their sockets.
    if !seen.held.is_empty() {
        seen.held.push(Box::new(runtime));
    }
    seen
}

fn runtime() -> Runtime {
    // One thread makes the frames of all sessions. A hundred threads would take the processors from the server and the neighbor, which
    // an attacker on another machine cannot do.
    let mut builder = Builder::new_current_thread();
    let runtime = builder.max_blocking_threads(1).enable_all().build();
    runtime.expect("a runtime")
}

/// Proves that a new peer is served, and that the server reports ready.
fn newcomer(process: &Process) -> Result<(), String> {
    let served = runtime().block_on(async {
        time::timeout(NEWCOMER, async {
            let target = process.target("newcomer");
            let mut refusals = 0;
            while let Err(error) = health(&target).await {
                refusals += 1;
                if refusals > REFUSALS_MAX {
                    return Err(format!("a newcomer is refused without end: {error}"));
                }
                time::sleep(REFUSED_WAIT).await;
            }
            Ok(())
        })
        .await
    });
    served.map_err(|_| "a newcomer is not served".to_owned())??;
    let ready = process.page("/readyz").map(drop);
    ready.map_err(|error| format!("/readyz: {error}"))
}

async fn health(target: &Target) -> Result<(), String> {
    let mut client = HealthClient::new(target.connect().await?);
    let answer = client.check(HealthCheckRequest::default()).await;
    let answer = answer.map_err(|status| status.to_string())?;
    let status = answer.into_inner().status();
    if status == ServingStatus::Serving {
        Ok(())
    } else {
        Err(status.as_str_name().to_owned())
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends: Vec<_> = self.ends.iter().map(String::as_str).collect();
        let (ms, behind_s) = self
            .waits
            .as_ref()
            .map_or((&[][..], f64::NAN), |waits| (&waits.ms, waits.behind_s));
        let [p99, longest] = [0.99, 1.0].map(|share| quantile(ms, share));
        write!(
            f,
            "{} | {} KB | {} MB | {behind_s:.2} of {:.2} s | p99 {p99:.1} ms, longest {longest:.1} ms | {:.1} s",
            ends.join(", "),
            self.answer_kb,
            self.memory_mb,
            self.processor_s,
            self.took.as_secs_f64(),
        )?;
        match &self.visited {
            Some(visited) => write!(f, " | {visited}"),
            None => Ok(()),
        }
    }
}
