//! Another peer beside an attack, with a separate identity: it opens sessions, watches and asks in order, as `others.toml` says.

use std::{
    collections::BTreeMap,
    fmt, fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use serde::Deserialize;
use tests::binaries;
use tokio::{runtime::Builder, time};

use crate::{calls::Calls, guard::Who, script::Script, seen::Seen, target::Target};

/// The maximum number of consecutive refusals: a limit may be reached at the moment, and a returning peer gets its share.
const REFUSALS_MAX: u32 = 20;
/// The pause after a refusal, and after all visits.
const PAUSE: Duration = Duration::from_millis(50);
const REFUSED: &str = "ResourceExhausted LIMIT_REACHED";

/// An act of a peer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Visit {
    act: Act,
    /// The required end.
    ends: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Act {
    Session(Script),
    Calls(Calls),
}

/// A peer that acts beside an attack.
pub(crate) struct Others {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<Visited, String>>,
}

/// The successful acts of a peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Visited {
    times: u32,
    refusals: u32,
    longest: Duration,
}

impl Others {
    /// Starts to repeat these acts, as `who`.
    pub(crate) fn start(target: Target, who: &Who, kept: &[String]) -> Self {
        let mut all = all();
        let taken = kept.iter().map(|name| {
            let Visit { act, ends } = all.remove(name).expect("others.toml has it");
            let visit = Visit {
                act: act.by(who.clone()),
                ends,
            };
            (name.clone(), visit)
        });
        let visits: Vec<_> = taken.collect();
        let is_over = Arc::<AtomicBool>::default();
        let shared = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let mut visited = Visited::default();
                loop {
                    // All acts are done once more after the attack.
                    let is_last = shared.load(Ordering::Relaxed);
                    for (name, visit) in &visits {
                        let done = visited.visit(&target, visit).await;
                        done.map_err(|end| format!("{name} of somebody else: {end}"))?;
                    }
                    if is_last {
                        return Ok(visited);
                    }
                    time::sleep(PAUSE).await;
                }
            })
        });
        Self { is_over, thread }
    }

    /// Does all acts once more, and returns the successful acts, or the failure.
    pub(crate) fn finish(self) -> Result<Visited, String> {
        self.is_over.store(true, Ordering::Relaxed);
        let done = self.thread.join();
        done.unwrap_or_else(|_| Err("somebody else panicked".to_owned()))
    }
}

fn all() -> BTreeMap<String, Visit> {
    let path = binaries::checkout().join("tests/hostile/others.toml");
    let text = fs::read_to_string(path).expect("the file is in the checkout");
    toml::from_str(&text).expect("the file is right")
}

impl Act {
    fn by(self, who: Who) -> Self {
        match self {
            Self::Session(script) => Self::Session(script.by(who)),
            Self::Calls(calls) => Self::Calls(calls.by(who)),
        }
    }

    async fn run(&self, target: Target) -> Seen {
        match self {
            Self::Session(script) => script.run(target).await,
            Self::Calls(calls) => calls.run(target).await,
        }
    }
}

impl Visited {
    /// Acts once; the error is an end other than the required one.
    async fn visit(&mut self, target: &Target, visit: &Visit) -> Result<(), String> {
        let begun = Instant::now();
        self.times += 1;
        for _ in 0..=REFUSALS_MAX {
            let Seen { ends, .. } = visit.act.run(target.clone()).await;
            let ends = ends.into_iter().collect::<Vec<_>>().join(", ");
            if ends == visit.ends {
                self.longest = self.longest.max(begun.elapsed());
                return Ok(());
            }
            if ends != REFUSED {
                return Err(format!("ends as {ends}, not as {}", visit.ends));
            }
            self.refusals += 1;
            time::sleep(PAUSE).await;
        }
        Err("is refused again and again".to_owned())
    }
}

impl fmt::Display for Visited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            times,
            refusals,
            longest,
        } = self;
        let ms = longest.as_millis();
        write!(f, "{times} visits, {refusals} refused, longest {ms} ms")
    }
}
